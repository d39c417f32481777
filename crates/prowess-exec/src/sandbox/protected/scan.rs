//! Which protected files are in a folder?
//!
//! The folders nearest to the top come first. A workspace may be of any size, so a scan has bounds, and it says whether it
//! came to them.

use std::collections::{HashSet, VecDeque};
use std::ffi::OsString;
use std::fs;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use prowess_policy::git_config::parse_git_config;
use prowess_policy::protected::{GIT, GIT_NESTED, GIT_PROTECTED, Protection, gitdir_of, is_git_dir};

/// How deep folders are looked into.
const MAX_DEPTH: usize = 12;

/// How many names are looked at.
const MAX_ENTRIES: usize = 1_000_000;

/// How long it may take.
const MAX_TIME: Duration = Duration::from_secs(5);

/// The most of a file that is read.
const MAX_BYTES: u64 = 256 * 1024;

/// Folders that programs fill with what they fetch or build: large, and nobody works in them.
const SKIPPED: &[&str] = &[
    "__pycache__",
    "node_modules",
    "target",
    ".cache",
    ".gradle",
    ".mypy_cache",
    ".next",
    ".pytest_cache",
    ".tox",
    ".venv",
    "venv",
];

/// What a scan found.
#[derive(Debug)]
pub(super) struct Scan {
    pub(super) found: Vec<Found>,
    pub(super) git_dirs: Vec<PathBuf>,
    /// Whether it reached everything.
    pub(super) is_complete: bool,
    /// Whether it was given up because there is too much.
    pub(super) is_cut_short: bool,
}

/// A protected file or folder.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) path: PathBuf,
    pub(super) role: Role,
    pub(super) what: &'static str,
}

/// What a protected file is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// It is on the list, or a repository's settings lead to it.
    Listed,
    /// It says where a Git directory is.
    GitFile,
    /// Part of a Git directory, by its name there.
    InGitDir(&'static str),
}

/// Looks for protected files below `root`, which is free of links.
pub(super) fn scan(root: &Path, protection: &Protection) -> Scan {
    scan_within(root, protection, MAX_ENTRIES)
}

/// The same with another bound on the names that are looked at.
pub(super) fn scan_within(root: &Path, protection: &Protection, max_entries: usize) -> Scan {
    let mut walk = Walk {
        root,
        protection,
        until: Instant::now() + MAX_TIME,
        entries: 0,
        queue: VecDeque::from([(root.to_owned(), 0)]),
        looked_at: HashSet::new(),
        scan: Scan { found: Vec::new(), git_dirs: Vec::new(), is_complete: true, is_cut_short: false },
    };
    while let Some((folder, depth)) = walk.queue.pop_front() {
        if walk.entries > max_entries || Instant::now() > walk.until {
            (walk.scan.is_complete, walk.scan.is_cut_short) = (false, true);
            break;
        }
        walk.folder(&folder, depth);
    }
    walk.scan
}

struct Walk<'a> {
    root: &'a Path,
    protection: &'a Protection,
    until: Instant,
    entries: usize,
    queue: VecDeque<(PathBuf, usize)>,
    looked_at: HashSet<PathBuf>,
    scan: Scan,
}

impl Walk<'_> {
    fn folder(&mut self, folder: &Path, depth: usize) {
        let listing = match fs::read_dir(folder) {
            Ok(listing) => listing,
            Err(error) if error.kind() == ErrorKind::PermissionDenied && depth > 0 => {
                // Its owner can make it readable again, with whatever was put there meanwhile.
                self.note(folder.to_owned(), Role::Listed, "a directory that cannot be looked into");
                return;
            }
            Err(_) => return,
        };
        if !self.looked_at.insert(folder.to_owned()) {
            return;
        }
        let entries: Vec<(OsString, fs::FileType)> =
            listing.flatten().filter_map(|entry| Some((entry.file_name(), entry.file_type().ok()?))).collect();
        self.entries += entries.len();
        let has = |name: &str| entries.iter().any(|(entry, _)| entry == name);
        if self.protection.covers_git() && is_git_dir(has) {
            self.git_dir(folder, depth);
            return;
        }
        let seen_from_root = folder.strip_prefix(self.root).unwrap_or(folder).to_owned();
        for (name, kind) in entries {
            let path = folder.join(&name);
            if let Some(what) = self.protection.entry(&seen_from_root.join(&name)) {
                self.note(path, Role::Listed, what);
            } else if name == GIT && !kind.is_dir() && self.protection.covers_git() {
                self.git_file(path, depth);
            } else if kind.is_dir() && name == GIT {
                self.queue.push_front((path, depth + 1));
            } else if kind.is_dir() && !SKIPPED.iter().any(|skipped| name == *skipped) {
                self.queue(path, depth + 1);
            }
        }
    }

    fn queue(&mut self, folder: PathBuf, depth: usize) {
        if depth > MAX_DEPTH {
            self.scan.is_complete = false;
        } else {
            self.queue.push_back((folder, depth));
        }
    }

    /// Notes a file, and what it links to.
    fn note(&mut self, path: PathBuf, role: Role, what: &'static str) {
        let is_link = fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_symlink());
        if let Some(target) = is_link.then(|| self.inside(&path)).flatten() {
            self.scan.found.push(Found { path: target, role, what });
        }
        self.scan.found.push(Found { path, role, what });
    }

    /// Where a path leads, if that is below the root.
    fn inside(&self, path: &Path) -> Option<PathBuf> {
        fs::canonicalize(path).ok().filter(|path| path.starts_with(self.root) && path != self.root)
    }

    /// A `.git` that is no folder: a file that names one, or a link to one.
    fn git_file(&mut self, path: PathBuf, depth: usize) {
        let folder = path.parent().unwrap_or(self.root);
        let named = read(&path).and_then(|text| Some(folder.join(gitdir_of(&String::from_utf8_lossy(&text))?)));
        let leads_to = self.inside(named.as_deref().unwrap_or(&path)).filter(|target| target.is_dir());
        self.note(path, Role::GitFile, "a file that says where a Git directory is, whose settings can start programs");
        if let Some(target) = leads_to {
            self.queue.push_back((target, depth + 1));
        }
    }

    fn git_dir(&mut self, folder: &Path, depth: usize) {
        self.scan.git_dirs.push(folder.to_owned());
        for name in GIT_PROTECTED {
            let path = folder.join(name);
            if fs::symlink_metadata(&path).is_ok() {
                self.note(path, Role::InGitDir(name), "part of a Git directory, which can start programs");
            }
        }
        for path in self.named_in_settings(folder) {
            self.note(path, Role::Listed, "named in the settings of a Git directory, which can start programs");
        }
        let common = read(&folder.join("commondir")).map(|text| {
            let text = String::from_utf8_lossy(&text).trim().to_owned();
            folder.join(text)
        });
        // What it leads to serves as a Git directory, whether or not it looks like one.
        if let Some(common) = common.and_then(|common| self.inside(&common))
            && self.looked_at.insert(common.clone())
        {
            self.git_dir(&common, depth + 1);
        }
        for nested in GIT_NESTED.iter().map(|name| folder.join(name)).filter(|nested| nested.is_dir()) {
            self.queue(nested, depth + 1);
        }
    }

    /// Hooks and further settings that the settings lead to.
    fn named_in_settings(&self, folder: &Path) -> Vec<PathBuf> {
        let Some(settings) = read(&folder.join("config")).and_then(|text| parse_git_config(&text).ok()) else {
            return Vec::new();
        };
        let tree = if folder.file_name().is_some_and(|name| name == GIT) { folder.parent() } else { None };
        let named = settings.iter().filter_map(|setting| {
            let base = match (setting.section.as_str(), setting.key.as_str()) {
                ("core", "hookspath" | "attributesfile" | "fsmonitor") => tree.unwrap_or(folder),
                ("include" | "includeif", "path") => folder,
                _ => return None,
            };
            Some(base.join(setting.value.as_deref()?))
        });
        named.filter_map(|path| self.inside(&path)).collect()
    }
}

/// A small file.
pub(super) fn read(path: &Path) -> Option<Vec<u8>> {
    // Asked before it is opened: opening a pipe would wait for somebody to write to it.
    fs::metadata(path).ok().filter(|meta| meta.is_file() && meta.len() <= MAX_BYTES)?;
    let mut text = Vec::new();
    fs::File::open(path).ok()?.take(MAX_BYTES).read_to_end(&mut text).ok()?;
    Some(text)
}
