//! Protected files: what keeps a run from leaving behind something that acts later?
//!
//! Protected files that exist when a run starts are mounted read-only in its view ([`ProtectedGuard::apply`]), and Git directories are
//! mounted on themselves, because a mount point can be neither renamed nor removed. What was not there cannot be mounted,
//! and placeholders would be seen by everyone, so it is looked for while the run goes on and when it is over
//! ([`ProtectedGuard::check`]): a new Git directory stays as long as nothing in it starts a program; everything else is
//! renamed, and the result of the run says so.
//!
//! A file counts as the same when it has the same name in the same folder (by inode): a run cannot replace a mount point,
//! and whoever moves the folder moves the mount with it.

mod judge;
mod scan;

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use prowess_policy::protected::Protection;

use self::scan::{Found, Scan, scan};
use super::confinement::{Confinement, real};
use crate::repository::git_dir_around;

/// The most files that are mounted. With more of them, nothing runs.
const MAX_MOUNTS: usize = 4096;

/// The most approved files that are remembered.
const MAX_APPROVED: usize = 10_000;

/// What a file is called when it was set aside, behind its own name.
const ASIDE: &str = ".quarantined-by-prowess";

/// Protected files that a person let a tool change, so that no run is blamed for them.
#[derive(Debug, Default)]
pub struct ApprovedFiles(Mutex<HashSet<PathBuf>>);

impl ApprovedFiles {
    /// Remembers that a person approved a change of the file at `path`, which is free of links.
    pub fn note(&self, path: &Path) {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if files.len() < MAX_APPROVED {
            files.insert(path.to_owned());
        }
    }

    /// Whether a change at `path`, or of something in it, was approved.
    fn has(&self, path: &Path) -> bool {
        let files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        files.iter().any(|file| file.starts_with(path))
    }
}

/// A file that a run left behind and that was taken out of effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAside {
    /// Where it was.
    pub path: PathBuf,
    /// Where it is now, or why it is still there.
    pub moved: Result<PathBuf, String>,
    /// What it is.
    pub what: String,
}

impl fmt::Display for SetAside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, what) = (self.path.display(), &self.what);
        match &self.moved {
            Ok(to) => write!(
                f,
                "The command left {path}, which is {what}. It was renamed to {}. To create such a file, use the write \
                 tool, which asks the user.",
                to.file_name().unwrap_or_default().display()
            ),
            Err(why) => {
                write!(f, "The command left {path}, which is {what}. It could not be renamed ({why}); tell the user.")
            }
        }
    }
}

/// Why a run cannot be kept from the protected files, and does not start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unprotectable {
    /// There are too many of them.
    #[error(
        "the workspace has more than {MAX_MOUNTS} protected files, such as settings of Git repositories; move some of \
         them elsewhere, or work in a smaller directory"
    )]
    TooMany,
    /// They cannot all be found.
    #[error(
        "{} has too many files to look for protected ones, such as settings of Git repositories; move some of them \
         elsewhere, or work in a smaller directory", .0.display()
    )]
    TooLarge(PathBuf),
}

/// A name in a folder, by the folder's inode.
type Spot = (u64, u64, OsString);

/// The protected files of one run.
#[derive(Debug)]
pub struct ProtectedGuard {
    roots: Vec<PathBuf>,
    protection: Protection,
    approved: Arc<ApprovedFiles>,
    before: Vec<Scan>,
    /// What was there, and what a link was.
    known: HashMap<Spot, Option<(u64, i64, i64)>>,
    /// What the operator lets runs change by its own name.
    granted: Vec<PathBuf>,
    /// Git directories, and directories in them, that a person let this run change with all that is in them.
    opened: Vec<PathBuf>,
    started: SystemTime,
    aside: Mutex<Vec<SetAside>>,
}

impl ProtectedGuard {
    /// Looks for protected files wherever a run may change files.
    #[must_use]
    pub fn new(confinement: &Confinement, protection: Protection, approved: Arc<ApprovedFiles>) -> Self {
        let started = SystemTime::now();
        let granted: Vec<PathBuf> = confinement.write.iter().map(|path| real(path)).collect();
        let mut roots: Vec<PathBuf> =
            granted.iter().filter(|path| path.is_dir() && !path.starts_with("/dev")).cloned().collect();
        roots.sort();
        roots.dedup();
        let before: Vec<Scan> = roots.iter().map(|root| scan(root, &protection)).collect();
        let found = before.iter().flat_map(|scan| &scan.found);
        let known = found.filter_map(|found| Some((spot(&found.path)?, link(&found.path)))).collect();
        Self {
            roots,
            protection,
            approved,
            before,
            known,
            granted,
            opened: Vec::new(),
            started,
            aside: Mutex::default(),
        }
    }

    /// The same, where a person let the run change `leased`. A Git directory in a place that the run may change, such as
    /// one that it is to remove, is open with all that is in it.
    #[must_use]
    pub fn with_leases(mut self, leased: &[PathBuf]) -> Self {
        let leased = leased.iter().map(|path| real(path));
        let is_inside = |path: &PathBuf| self.granted.iter().any(|root| path != root && path.starts_with(root));
        self.opened = leased.filter(|path| is_inside(path) && git_dir_around(path).is_some()).collect();
        self
    }

    /// Whether the run may change the protected file at `path`.
    fn is_open(&self, path: &Path) -> bool {
        self.granted.iter().any(|granted| granted == path) || self.opened.iter().any(|opened| path.starts_with(opened))
    }

    /// Adds the files that are there to what `confinement` keeps from changes. There can be too many.
    pub fn apply(&self, confinement: &mut Confinement) -> Result<(), Unprotectable> {
        if let Some((root, _)) = self.roots.iter().zip(&self.before).find(|(_, scan)| scan.is_cut_short) {
            return Err(Unprotectable::TooLarge(root.clone()));
        }
        let is_free = |path: &PathBuf| self.roots.contains(path) || self.is_open(path);
        let is_file = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|meta| !meta.is_symlink());
        let pinned = self.before.iter().flat_map(|scan| &scan.git_dirs).filter(|path| !is_free(path));
        let found = self.before.iter().flat_map(|scan| &scan.found).map(|found| &found.path);
        let read_only = found.filter(|path| !self.is_open(path) && is_file(path));
        confinement.pinned = nearest(pinned.cloned().collect());
        confinement.protected = nearest(read_only.cloned().collect());
        if confinement.pinned.len() + confinement.protected.len() > MAX_MOUNTS {
            return Err(Unprotectable::TooMany);
        }
        Ok(())
    }

    /// Takes out of effect what has appeared since, and remembers it.
    pub fn check(&self) {
        for (root, before) in self.roots.iter().zip(&self.before) {
            let after = scan(root, &self.protection);
            for found in after.found.iter().filter(|found| self.is_new(found, before)) {
                for (path, what) in judge::objections(found, &self.roots) {
                    self.set_aside(path, what);
                }
            }
        }
    }

    /// What was taken out of effect.
    #[must_use]
    pub fn set_aside_files(&self) -> Vec<SetAside> {
        self.aside.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether a run can have made it.
    fn is_new(&self, found: &Found, before: &Scan) -> bool {
        let Some(spot) = spot(&found.path) else { return false };
        match self.known.get(&spot) {
            // What was no link was mounted.
            Some(None) => return false,
            Some(was) if *was == link(&found.path) => return false,
            Some(_) | None => {}
        }
        // Where not everything was looked at before, what is older than the run is not the run's.
        let is_recent = || {
            let changed = fs::symlink_metadata(&found.path).map_or(i64::MAX, |meta| meta.ctime());
            let started = self.started.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
            changed.saturating_add(1) >= i64::try_from(started).unwrap_or(i64::MAX)
        };
        !self.is_open(&found.path) && !self.approved.has(&found.path) && (before.is_complete || is_recent())
    }

    fn set_aside(&self, path: PathBuf, what: String) {
        let moved = rename_aside(&path).map_err(|error| error.to_string());
        let mut aside = self.aside.lock().unwrap_or_else(PoisonError::into_inner);
        if !aside.iter().any(|one| one.path == path && one.moved.is_err()) {
            aside.push(SetAside { path, moved, what });
        }
    }
}

/// Gives the file a name under which it has no effect.
fn rename_aside(path: &Path) -> std::io::Result<PathBuf> {
    let name = path.file_name().unwrap_or_default();
    for number in 1..100 {
        let mut aside = name.to_owned();
        aside.push(ASIDE);
        if number > 1 {
            aside.push(format!("-{number}"));
        }
        let aside = path.with_file_name(aside);
        if fs::symlink_metadata(&aside).is_err() {
            return fs::rename(path, &aside).map(|()| aside);
        }
    }
    Err(std::io::Error::other("too many files were set aside already"))
}

/// Nearest to the top first, so that nothing covers what was mounted before it.
fn nearest(mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
    paths.sort_by_cached_key(|path| (path.components().count(), path.clone()));
    paths.dedup();
    paths
}

fn spot(path: &Path) -> Option<Spot> {
    let folder = fs::metadata(path.parent()?).ok()?;
    Some((folder.dev(), folder.ino(), path.file_name()?.to_owned()))
}

/// Which link is at `path`; none if it is something else.
fn link(path: &Path) -> Option<(u64, i64, i64)> {
    let meta = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_symlink)?;
    Some((meta.ino(), meta.ctime(), meta.ctime_nsec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A workspace with these files, and what a guard renames after `run` has been there.
    fn check(files: &[(&str, &str)], run: impl FnOnce(&Path)) -> Vec<String> {
        let scratch = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(scratch.path()).unwrap();
        write(&root, files);
        let confinement = Confinement { write: vec![root.clone()], ..Confinement::default() };
        let guard = ProtectedGuard::new(&confinement, Protection::default(), Arc::default());
        run(&root);
        guard.check();
        let aside = guard.set_aside_files();
        assert!(aside.iter().all(|one| !one.path.exists() && one.moved.as_ref().unwrap().exists()), "{aside:?}");
        aside.iter().map(|one| one.path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned()).collect()
    }

    fn write(root: &Path, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = root.join(name);
            let folder = if name.ends_with('/') { path.as_path() } else { path.parent().unwrap() };
            fs::create_dir_all(folder).unwrap();
            if !name.ends_with('/') {
                fs::write(path, text).unwrap();
            }
        }
    }

    const GIT: [(&str, &str); 4] =
        [("g/HEAD", "ref: refs/heads/main"), ("g/objects/", ""), ("g/refs/", ""), ("g/config", "[core]\nbare=true\n")];

    #[test]
    fn what_is_there_is_mounted() {
        let scratch = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(scratch.path()).unwrap();
        write(&root, &GIT);
        write(&root, &[("g/hooks/x", ""), ("AGENTS.md", ""), ("sub/.vscode/a", ""), ("src/main.rs", "")]);
        write(
            &root,
            &[
                ("g/modules/m/HEAD", ""),
                ("g/modules/m/objects/", ""),
                ("g/modules/m/refs/", ""),
                ("g/modules/m/config", ""),
            ],
        );
        write(
            &root,
            &[("g/worktrees/w/HEAD", ""), ("g/worktrees/w/commondir", "../.."), ("g/worktrees/w/gitdir", "/x")],
        );
        write(&root, &[("w/.git", "gitdir: ../g/worktrees/w"), ("node_modules/x/.vscode/y", "")]);
        std::os::unix::fs::symlink("docs/tools", root.join("TOOLS.md")).unwrap();
        write(&root, &[("docs/tools", "")]);
        let mut confinement = Confinement { write: vec![root.clone()], ..Confinement::default() };
        ProtectedGuard::new(&confinement, Protection::default(), Arc::default()).apply(&mut confinement).unwrap();
        let names = |paths: &[PathBuf]| {
            let names = paths.iter().map(|path| path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned());
            names.collect::<Vec<_>>()
        };
        assert_eq!(names(&confinement.pinned), ["g", "g/modules/m", "g/worktrees/w"]);
        let expected = [
            "AGENTS.md",
            "docs/tools",
            "g/config",
            "g/hooks",
            "sub/.vscode",
            "w/.git",
            "g/modules/m/config",
            "g/worktrees/w/commondir",
            "g/worktrees/w/gitdir",
        ];
        assert_eq!(names(&confinement.protected), expected);
        // What the operator grants by its own name may be changed.
        let mut granted = Confinement { write: vec![root.clone(), root.join("AGENTS.md")], ..Confinement::default() };
        ProtectedGuard::new(&granted, Protection::default(), Arc::default()).apply(&mut granted).unwrap();
        assert!(!names(&granted.protected).contains(&"AGENTS.md".to_owned()));
    }

    #[test]
    fn where_not_everything_can_be_looked_at_nothing_runs() {
        let scratch = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(scratch.path()).unwrap();
        write(&root, &[("a/1", ""), ("a/2", ""), ("b/c/.envrc", "")]);
        let mut confinement = Confinement { write: vec![root.clone()], ..Confinement::default() };
        let mut guard = ProtectedGuard::new(&confinement, Protection::default(), Arc::default());
        for (bound, expected) in [(100, Ok(())), (3, Err(Unprotectable::TooLarge(root.clone())))] {
            guard.before = vec![scan::scan_within(&root, &Protection::default(), bound)];
            assert_eq!(guard.apply(&mut confinement), expected, "{bound}");
        }
    }

    #[test]
    fn a_lease_for_a_git_directory_opens_all_of_it() {
        let scratch = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(scratch.path()).unwrap();
        write(&root, &GIT);
        write(&root, &[("g/hooks/x", ""), ("g/worktrees/w/HEAD", ""), ("g/worktrees/w/commondir", "../..")]);
        let kept = |leased: &[&str]| {
            let leased: Vec<PathBuf> = leased.iter().map(|path| root.join(path)).collect();
            let write = std::iter::once(root.clone()).chain(leased.iter().cloned()).collect();
            let mut confinement = Confinement { write, ..Confinement::default() };
            let guard = ProtectedGuard::new(&confinement, Protection::default(), Arc::default()).with_leases(&leased);
            guard.apply(&mut confinement).unwrap();
            let kept = confinement.pinned.iter().chain(&confinement.protected);
            kept.map(|path| path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(kept(&[]), ["g", "g/worktrees/w", "g/config", "g/hooks", "g/worktrees/w/commondir"]);
        assert_eq!(kept(&["g/hooks"]), ["g", "g/worktrees/w", "g/config", "g/worktrees/w/commondir"]);
        assert_eq!(kept(&["g/worktrees"]), ["g", "g/config", "g/hooks"]);
        assert_eq!(kept(&["g"]), Vec::<String>::new());
        assert_eq!(kept(&[""]), kept(&[]), "a workspace is not opened by its own name");
    }

    #[test]
    fn what_appears_is_renamed_and_what_was_there_is_left_alone() {
        let none: Vec<String> = Vec::new();
        assert_eq!(check(&[(".envrc", "old")], |_| {}), none);
        assert_eq!(check(&[(".envrc", "old")], |root| write(root, &[(".envrc", "edited by its owner")])), none);
        assert_eq!(
            check(&[], |root| write(root, &[(".envrc", "x"), ("src/.vscode/tasks.json", "{}")])),
            [".envrc", "src/.vscode"]
        );
        assert_eq!(check(&[], |root| write(root, &[("src/main.rs", "x")])), none);
        // A link that leads elsewhere now.
        let relink = |root: &Path| {
            fs::remove_file(root.join("AGENTS.md")).unwrap();
            std::os::unix::fs::symlink("evil", root.join("AGENTS.md")).unwrap();
        };
        let scratch = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(scratch.path()).unwrap();
        std::os::unix::fs::symlink("good", root.join("AGENTS.md")).unwrap();
        let confinement = Confinement { write: vec![root.clone()], ..Confinement::default() };
        let guard = ProtectedGuard::new(&confinement, Protection::default(), Arc::default());
        guard.check();
        assert_eq!(guard.set_aside_files(), []);
        relink(&root);
        guard.check();
        assert_eq!(guard.set_aside_files()[0].path, root.join("AGENTS.md"));
    }

    #[test]
    fn what_a_person_approved_stays() {
        let scratch = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(scratch.path()).unwrap();
        let confinement = Confinement { write: vec![root.clone()], ..Confinement::default() };
        let approved = Arc::new(ApprovedFiles::default());
        let guard = ProtectedGuard::new(&confinement, Protection::default(), Arc::clone(&approved));
        approved.note(&root.join(".vscode/tasks.json"));
        write(&root, &[(".vscode/tasks.json", "{}"), (".envrc", "")]);
        guard.check();
        let aside: Vec<PathBuf> = guard.set_aside_files().into_iter().map(|one| one.path).collect();
        assert_eq!(aside, [root.join(".envrc")]);
    }

    #[test]
    fn a_new_git_directory_stays_as_far_as_it_starts_nothing() {
        let none: Vec<String> = Vec::new();
        let git = |config: &'static str, more: &'static [(&str, &str)]| {
            check(&[], move |root| {
                write(root, &GIT);
                write(root, &[("g/config", config)]);
                write(root, more);
            })
        };
        assert_eq!(git("[core]\nbare=true\n", &[("g/hooks/pre-commit.sample", "")]), none);
        assert_eq!(git("[core]\nfsmonitor=./x\n", &[]), ["g/config"]);
        assert_eq!(git("[core\n", &[]), ["g/config"], "what git cannot read either");
        assert_eq!(
            git("", &[("g/hooks/pre-commit", ""), ("g/info/attributes", "")]),
            ["g/hooks/pre-commit", "g/info/attributes"]
        );
        assert_eq!(git("[core]\nworktree=../sub\n", &[("sub/x", "")]), none);
        assert_eq!(git("[core]\nworktree=../..\n", &[]), ["g/config"]);
        assert_eq!(git("", &[("sub/.git", "gitdir: ../g")]), none);
        assert_eq!(git("", &[("sub/.git", "gitdir: /elsewhere")]), ["sub/.git"]);
        assert_eq!(git("", &[("g/commondir", "/elsewhere")]), ["g/commondir"]);
        assert_eq!(
            git("", &[("g/commondir", "../other"), ("other/config", "[core]\npager=x\n")]),
            ["g/commondir", "other/config"]
        );
        let linked =
            [("g/worktrees/w/HEAD", ""), ("g/worktrees/w/commondir", "../..\n"), ("g/worktrees/w/gitdir", "/x")];
        assert_eq!(check(&GIT, |root| write(root, &linked)), none);
        let steered = |root: &Path| {
            write(root, &linked);
            write(root, &[("g/worktrees/w/config.worktree", "[core]\nfsmonitor=./x\n")]);
        };
        assert_eq!(check(&GIT, steered), ["g/worktrees/w/config.worktree"]);
        // A folder becomes a Git directory when its last part arrives.
        let parts = [("g/objects/", ""), ("g/refs/", ""), ("g/config", "[alias]\nst=!x\n")];
        assert_eq!(check(&parts, |root| write(root, &[("g/HEAD", "x")])), ["g/config"]);
        // Another one in the place of one that was there.
        let swap = |root: &Path| {
            fs::rename(root.join("g"), root.join("moved")).unwrap();
            write(root, &GIT);
            write(root, &[("g/config", "[core]\npager=x\n")]);
        };
        let mut old = GIT.to_vec();
        old[3].1 = "[core]\nsshCommand=mine\n";
        assert_eq!(check(&old, swap), ["g/config"], "the one that was moved keeps its settings");
    }
}
