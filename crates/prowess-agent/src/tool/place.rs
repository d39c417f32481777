//! Places: where does a path lead, and may a call go there?
//!
//! Names lie: a link, `..` or a folder that was swapped a moment ago lead elsewhere. So a file is opened first, without
//! reading it, and what is judged is the path that the system itself gives for what was opened. What is read later is
//! that very file.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use prowess_exec::leases::{Holder, Leases};
use prowess_exec::sandbox::ApprovedFiles;
use prowess_policy::lease::Lease;
use prowess_policy::protected::{GIT, Protection, is_git_dir};
use prowess_skills::Skill;
use rustix::fs::{Mode, OFlags};

use crate::skills::SkillSet;
use crate::tool::Scope;

/// What no tool reads: there, running programs show their secrets.
const NEVER: &[&str] = &["/proc"];

/// The bits of a mode that are for others than the owner.
const OTHERS: u32 = 0o077;

/// Where tools may not go at all, and what is done about places outside the workspace.
#[derive(Debug, Clone)]
pub(crate) struct Fences {
    /// What nobody may see or change.
    pub(crate) hidden: Vec<PathBuf>,
    /// Places outside the workspace.
    pub(crate) outside: Outside,
    /// What of the workspace acts later, outside the sandbox.
    pub(crate) protection: Protection,
    /// What people allowed beyond the workspace.
    pub(crate) leases: Leases,
    /// What a person let a tool write, so that no command is blamed for it.
    pub(crate) approved: Arc<ApprovedFiles>,
}

/// What is done about places outside the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outside {
    /// A person is asked.
    Ask,
    /// They are refused.
    Refuse,
}

/// Whether a call may go somewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It may.
    Free,
    /// A person has to say; why.
    Ask(String),
    /// It may not; why.
    Refused(String),
}

/// Something that was found, and cannot be swapped any more.
#[derive(Debug)]
pub(crate) struct Opened {
    file: File,
    /// What it is.
    pub(crate) metadata: Metadata,
    /// Where it really is.
    pub(crate) real: PathBuf,
}

impl Opened {
    /// Finds what is at `path`, without reading it, and without waiting for anybody.
    pub(crate) fn find(path: &Path) -> io::Result<Self> {
        let file = File::from(rustix::fs::open(path, LOOKING | OFlags::CLOEXEC, Mode::empty())?);
        let metadata = file.metadata()?;
        let real = real_path(&file, path)?;
        // What has no name any more cannot be judged by one.
        if metadata.nlink() == 0 {
            return Err(io::Error::new(io::ErrorKind::NotFound, "it was just deleted"));
        }
        Ok(Self { file, metadata, real })
    }

    /// The same file, to be read.
    pub(crate) fn reader(&self) -> io::Result<File> {
        reopen(&self.file)
    }
}

#[cfg(target_os = "linux")]
const LOOKING: OFlags = OFlags::PATH;

#[cfg(not(target_os = "linux"))]
const LOOKING: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// Where `file` really is, as the system knows it.
#[cfg(target_os = "linux")]
pub(crate) fn real_path(file: &File, _path: &Path) -> io::Result<PathBuf> {
    std::fs::read_link(descriptor(file))
}

/// Where `file` really is: where `path` leads now, if that is still the same file.
#[cfg(not(target_os = "linux"))]
pub(crate) fn real_path(file: &File, path: &Path) -> io::Result<PathBuf> {
    let real = path.canonicalize()?;
    let (opened, found) = (file.metadata()?, std::fs::metadata(&real)?);
    if (opened.dev(), opened.ino()) == (found.dev(), found.ino()) {
        Ok(real)
    } else {
        Err(io::Error::other("it changed while it was being read"))
    }
}

#[cfg(target_os = "linux")]
fn reopen(file: &File) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(descriptor(file), flags, Mode::empty())?))
}

#[cfg(not(target_os = "linux"))]
fn reopen(file: &File) -> io::Result<File> {
    file.try_clone()
}

#[cfg(target_os = "linux")]
fn descriptor(file: &File) -> String {
    use std::os::fd::AsRawFd;
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// The path that a call means: seen from the workspace, with `~` as the home.
pub(crate) fn absolute(path: &str, workspace: &Path, home: &Path) -> PathBuf {
    match path.strip_prefix('~') {
        Some("") => home.to_owned(),
        Some(rest) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
        _ => workspace.join(path),
    }
}

/// Where `path` leads, also when its end is not there yet. Nothing when that cannot be told.
pub(crate) fn settle(path: &Path) -> Option<PathBuf> {
    let mut missing = Vec::new();
    let mut there = path;
    loop {
        match there.canonicalize() {
            Ok(real) => return Some(missing.into_iter().rev().fold(real, |path, name| path.join(name))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(_) => return None,
        }
        // `a/..` is no folder above `a` when there is no `a`.
        let Some(Component::Normal(name)) = there.components().next_back() else { return None };
        missing.push(name);
        there = there.parent()?;
    }
}

impl Fences {
    /// Whether a call may read what was opened; `asked` is how it was called.
    pub(crate) fn reading(&self, opened: &Opened, asked: &Path, scope: &Scope<'_>) -> Standing {
        if self.hides(&opened.real, Some(&opened.metadata)) {
            return Standing::Refused(kept_out(&opened.real));
        }
        let is_inside = is_in(&opened.real, scope.workspace);
        if is_inside && is_shared_secret(&opened.metadata) {
            let (real, names) = (opened.real.display(), opened.metadata.nlink());
            return Standing::Ask(format!(
                "{real} is a private file with {names} names (hard links), maybe one outside"
            ));
        }
        if is_inside || scope.skills.around(asked, &opened.real).is_some() {
            return Standing::Free;
        }
        let Lease { reads, writes, .. } = self.held(scope);
        let is_leased = reads.iter().chain(&writes).any(|folder| is_in(&opened.real, folder));
        if is_leased && !is_shared_secret(&opened.metadata) && self.outside == Outside::Ask {
            return Standing::Free;
        }
        self.elsewhere(&opened.real, scope.workspace)
    }

    /// Whether a call may write the file at `real`, which is free of links.
    pub(crate) fn writing(&self, real: &Path, scope: &Scope<'_>) -> Standing {
        if self.hides(real, std::fs::metadata(real).ok().as_ref()) {
            return Standing::Refused(kept_out(real));
        }
        let mut root = scope.workspace.to_owned();
        if !is_in(real, scope.workspace) {
            let leased = self.held(scope).writes.into_iter().find(|folder| is_in(real, folder));
            let Some(leased) = leased.filter(|_| self.outside == Outside::Ask) else {
                return self.elsewhere(real, scope.workspace);
            };
            root = leased;
        }
        if let Some(skill) = scope.skills.around(real, real) {
            return Standing::Ask(format!("it belongs to the skill `{}`, and skills steer the agent", skill.name));
        }
        let root = root.canonicalize().ok();
        let inside = root.and_then(|root| real.strip_prefix(root).ok()).unwrap_or(real);
        match self.decides(inside, real) {
            Some(what) => Standing::Ask(format!("{} is {what}", real.display())),
            None => Standing::Free,
        }
    }

    /// What the agent may use beyond its workspace in this conversation. A file of leases that cannot be read gives nothing.
    fn held(&self, scope: &Scope<'_>) -> Lease {
        let holder = Holder { agent: scope.agent.to_owned(), session: scope.session.to_owned(), skill: None };
        self.leases.held(&holder).unwrap_or_default()
    }

    /// What a file is that decides what later commands do; `inside` is the path of `real` seen from the workspace.
    fn decides(&self, inside: &Path, real: &Path) -> Option<&'static str> {
        let name = inside.file_name().unwrap_or_default();
        if name.eq_ignore_ascii_case("SKILL.md") {
            return Some("part of a new skill, and skills steer the agent");
        }
        if let Some(what) = self.protection.covering(inside) {
            return Some(what);
        }
        let is_named_git = inside.components().any(|part| part.as_os_str().eq_ignore_ascii_case(GIT));
        let folders = real.ancestors().skip(1).take(inside.components().count());
        let is_git = || folders.into_iter().any(|folder| is_git_dir(|name| folder.join(name).exists()));
        // A folder with a `HEAD` can pass for a repository, and the settings of a repository start programs.
        let is_git = self.protection.covers_git() && (is_named_git || name == "HEAD" || is_git());
        is_git.then_some("part of a Git repository's own files, which can start programs")
    }

    fn elsewhere(&self, real: &Path, workspace: &Path) -> Standing {
        let place = format!("{} is outside the workspace {}", real.display(), workspace.display());
        match self.outside {
            Outside::Ask => Standing::Ask(place),
            Outside::Refuse => Standing::Refused(format!(
                "{place}, and tools.fs.workspaceOnly restricts tools to it; use a file in the workspace"
            )),
        }
    }

    /// Whether nobody may see what is at `real`, by whichever of its names it was found.
    fn hides(&self, real: &Path, metadata: Option<&Metadata>) -> bool {
        let same_file = |hidden: &Path| {
            let Some((one, other)) = metadata.zip(std::fs::metadata(hidden).ok()) else { return false };
            (one.dev(), one.ino()) == (other.dev(), other.ino())
        };
        let is_below =
            |hidden: &Path| real.starts_with(hidden) || settle(hidden).is_some_and(|hidden| real.starts_with(hidden));
        NEVER.iter().any(|never| real.starts_with(never))
            || self.hidden.iter().any(|hidden| is_below(hidden) || same_file(hidden))
    }
}

fn kept_out(real: &Path) -> String {
    format!("{} holds keys, settings or records that tools must not access; ask the operator", real.display())
}

/// Whether a file that belongs to somebody else, or that only its owner may read, has a second name. Git and package
/// managers link files too, but those may be read by all.
fn is_shared_secret(metadata: &Metadata) -> bool {
    let is_private = metadata.mode() & OTHERS == 0 || metadata.uid() != rustix::process::geteuid().as_raw();
    metadata.is_file() && metadata.nlink() > 1 && is_private
}

/// Whether `real` is in `folder` or is it.
pub(crate) fn is_in(real: &Path, folder: &Path) -> bool {
    folder.canonicalize().is_ok_and(|folder| real.starts_with(folder))
}

/// The skill whose `SKILL.md` is at `real`.
pub(crate) fn skill_at<'a>(skills: &'a SkillSet, asked: &Path, real: &Path) -> Option<&'a Arc<Skill>> {
    let leads_here = |skill: &&Arc<Skill>| skill.file.canonicalize().is_ok_and(|file| file == real);
    let is_named = |skill: &&Arc<Skill>| skill.file == real || skill.file == asked;
    let named = skills.snapshot.skills().iter().filter(is_named).find(leads_here);
    named.or_else(|| skills.around(asked, real).filter(leads_here))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use std::sync::Arc;

    use prowess_policy::protected::Protection;

    use super::{Fences, Leases, Outside, absolute, is_shared_secret, settle};

    #[test]
    fn a_path_is_seen_from_the_workspace() {
        let seen = |path| absolute(path, Path::new("/ws"), Path::new("/home/me"));
        assert_eq!(seen("a/b"), Path::new("/ws/a/b"));
        assert_eq!(seen("/etc/hosts"), Path::new("/etc/hosts"));
        assert_eq!(seen("~/x"), Path::new("/home/me/x"));
        assert_eq!(seen("~//etc/x"), Path::new("/home/me/etc/x"));
        assert_eq!(seen("~"), Path::new("/home/me"));
        assert_eq!(seen("~other/x"), Path::new("/ws/~other/x"));
    }

    #[test]
    fn what_is_not_there_yet_is_settled_as_far_as_it_goes() {
        let root = tempfile::tempdir().expect("a folder");
        let real = root.path().canonicalize().expect("it is there");
        std::fs::create_dir(real.join("a")).expect("a folder");
        std::os::unix::fs::symlink(real.join("a"), real.join("link")).expect("a link");
        std::os::unix::fs::symlink(real.join("nowhere"), real.join("a/dangling")).expect("a link");
        assert_eq!(settle(&real.join("link/new/file")), Some(real.join("a/new/file")));
        assert_eq!(settle(&real.join("link/../x")), Some(real.join("x")));
        assert_eq!(settle(&real.join("new/../../x")), None);
        assert_eq!(settle(&real.join("a/dangling")), Some(real.join("a/dangling")));
    }

    #[test]
    fn what_decides_about_later_commands_is_known() {
        let root = tempfile::tempdir().expect("a folder");
        let fences = Fences {
            hidden: Vec::new(),
            outside: Outside::Ask,
            protection: Protection::default(),
            leases: Leases::in_state_dir(root.path()),
            approved: Arc::default(),
        };
        for folder in ["store/objects", "store/refs", "half/objects"] {
            std::fs::create_dir_all(root.path().join(folder)).expect("a folder");
        }
        std::fs::write(root.path().join("store/HEAD"), "ref: refs/heads/main").expect("a file");
        let decides = |path: &str| fences.decides(Path::new(path), &root.path().join(path));
        let deciding = [
            ".git/config",
            ".GIT/hooks/x",
            "a/HEAD",
            "skills/new/skill.md",
            ".openclaw/extensions/x/index.js",
            "a/.OpenClaw/x",
            ".agents/skills/x/run.sh",
            "store/config",
            "store/hooks/pre-push",
            "AGENTS.md",
            ".envrc",
            "sub/.vscode/tasks.json",
            ".github/workflows/ci.yml",
            ".mcp.json",
            ".git",
        ];
        for path in deciding {
            assert!(decides(path).is_some(), "{path}");
        }
        for path in [".gitignore", "head", "SKILL.md.txt", "notes.md", "openclaw/x", ".agents.md", "half/config"] {
            assert_eq!(decides(path), None, "{path}");
        }
    }

    #[test]
    fn a_private_file_with_a_second_name_is_told_apart() {
        use std::os::unix::fs::PermissionsExt;
        let root = tempfile::tempdir().expect("a folder");
        let (file, link) = (root.path().join("key"), root.path().join("link"));
        std::fs::write(&file, "secret").expect("a file");
        let is_shared = |mode: u32| {
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).expect("a mode");
            is_shared_secret(&std::fs::metadata(&file).expect("it is there"))
        };
        assert!(!is_shared(0o600), "one name");
        std::fs::hard_link(&file, &link).expect("a link");
        assert!(is_shared(0o600) && !is_shared(0o644), "others may read it anyway");
    }
}
