//! Lookup: what do the names of a command mean on this machine, right now?

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use prowess_policy::lookup::{Identity, Keeper, Lookup, Program, Repository};
use rustix::fs::{Access, access};

use crate::repository;

/// The largest file whose content is compared, and not only its place and times.
const MAX_DIGEST_BYTES: u64 = 64 * 1024 * 1024;

/// The most bytes that are read for one judgment to compare contents. Beyond it a file is known by its place and times only,
/// and what others could change cannot be approved.
const MAX_DIGEST_TOTAL: u64 = 256 * 1024 * 1024;

/// How many links are followed, as far as the system goes along.
const MAX_LINKS: usize = 40;

/// How much of a script's first line the system reads.
const MAX_FIRST_LINE: u64 = 256;

/// The programs of this machine, found the way a run would find them.
#[derive(Debug)]
pub struct Disk {
    path: Vec<PathBuf>,
    cwd: PathBuf,
    /// Folders that commands and skills can change, whoever owns them.
    open: Vec<PathBuf>,
    /// Folders already looked at, and who can change them.
    kept: RefCell<HashMap<PathBuf, Keeper>>,
    /// Files already looked at: the same word often comes again.
    files: RefCell<HashMap<PathBuf, Option<Program>>>,
    /// Contents already read, by device, inode and time of the last change, and how many bytes that took.
    digests: RefCell<HashMap<(u64, u64, i128), Option<String>>>,
    read: Cell<u64>,
}

impl Disk {
    /// Looks along `path` (a `PATH` value) and from `cwd`. Empty and relative entries are left out: they would mean
    /// "wherever the command happens to be".
    #[must_use]
    pub fn new(path: impl AsRef<OsStr>, cwd: &Path) -> Self {
        let path = std::env::split_paths(path.as_ref()).filter(|dir| dir.is_absolute()).collect();
        Self {
            path,
            cwd: cwd.to_owned(),
            open: Vec::new(),
            kept: RefCell::default(),
            files: RefCell::default(),
            digests: RefCell::default(),
            read: Cell::new(0),
        }
    }

    /// The same, where commands and skills can change what is in these folders.
    #[must_use]
    pub fn open_to_runs(mut self, folders: impl IntoIterator<Item = PathBuf>) -> Self {
        self.open.extend(folders.into_iter().filter_map(|folder| folder.canonicalize().ok()));
        self
    }

    /// The file at `path`, looked at once.
    fn describe(&self, path: PathBuf) -> Option<Program> {
        if let Some(known) = self.files.borrow().get(&path) {
            return known.clone();
        }
        let found = self.look(path.clone());
        self.files.borrow_mut().insert(path, found.clone());
        found
    }

    fn look(&self, path: PathBuf) -> Option<Program> {
        let (real, way) = self.walk(&path)?;
        let metadata = std::fs::metadata(&real).ok().filter(std::fs::Metadata::is_file)?;
        let keeper = way.max(owner(&metadata));
        Some(Program { path, real, keeper, identity: identity(&metadata) })
    }

    /// The digest of a file, read once, unless it or all of them together are too large.
    fn digest(&self, file: &Program) -> Option<String> {
        let Identity { device, inode, length, changed, .. } = file.identity;
        let key = (device, inode, changed);
        if let Some(known) = self.digests.borrow().get(&key) {
            return known.clone();
        }
        let total = self.read.get().saturating_add(length);
        let found = if length <= MAX_DIGEST_BYTES && total <= MAX_DIGEST_TOTAL {
            self.read.set(total);
            // One that grows meanwhile is not followed.
            File::open(&file.real).and_then(|open| digest(open.take(length))).ok()
        } else {
            None
        };
        self.digests.borrow_mut().insert(key, found.clone());
        found
    }

    /// The file behind `path`, and who can change any step of the way there: folders, and links in the middle.
    fn walk(&self, path: &Path) -> Option<(PathBuf, Keeper)> {
        let mut ahead: VecDeque<OsString> = path.components().map(|part| part.as_os_str().to_owned()).collect();
        let mut here = PathBuf::from("/");
        let mut keeper = self.keeper(&here);
        let mut links = 0;
        while let Some(part) = ahead.pop_front() {
            match Path::new(&part).components().next()? {
                Component::RootDir | Component::Prefix(_) => here = PathBuf::from("/"),
                Component::CurDir => {}
                Component::ParentDir => drop(here.pop()),
                Component::Normal(name) => {
                    let next = here.join(name);
                    let metadata = std::fs::symlink_metadata(&next).ok()?;
                    if metadata.is_symlink() {
                        links += 1;
                        let target = std::fs::read_link(&next).ok().filter(|_| links <= MAX_LINKS)?;
                        keeper = keeper.max(link_owner(&metadata));
                        for part in target.components().rev() {
                            ahead.push_front(part.as_os_str().to_owned());
                        }
                    } else {
                        if metadata.is_dir() {
                            keeper = keeper.max(self.keeper(&next));
                        }
                        here = next;
                    }
                }
            }
        }
        Some((here, keeper))
    }

    /// Who can change what is in `folder`.
    fn keeper(&self, folder: &Path) -> Keeper {
        if let Some(&known) = self.kept.borrow().get(folder) {
            return known;
        }
        let is_open = self.open.iter().any(|open| open == folder);
        let keeper = match std::fs::metadata(folder) {
            Ok(metadata) if !is_open => owner(&metadata),
            _ => Keeper::Anyone,
        };
        self.kept.borrow_mut().insert(folder.to_owned(), keeper);
        keeper
    }
}

impl Lookup for Disk {
    fn exists(&self, path: &Path) -> bool {
        path.symlink_metadata().is_ok()
    }

    fn text(&self, path: &Path) -> Option<String> {
        repository::read(path).and_then(|bytes| String::from_utf8(bytes).ok())
    }

    fn is_dir(&self, path: &Path) -> bool {
        path.is_dir()
    }

    fn can_change(&self, path: &Path) -> bool {
        access(path, Access::WRITE_OK).is_ok()
    }

    fn repository(&self, dir: &Path) -> Option<Repository> {
        repository::repository(dir)
    }

    fn git_dir_around(&self, path: &Path) -> Option<PathBuf> {
        repository::git_dir_around(path)
    }

    fn program(&self, token: &str) -> Option<Program> {
        let is_executable = |path: &PathBuf| path.is_file() && access(path, Access::EXEC_OK).is_ok();
        let path = if token.contains('/') {
            // Without `.` in the middle, so that a path is written in one way.
            Some(self.cwd.join(token).components().collect()).filter(is_executable)?
        } else if token.is_empty() {
            return None;
        } else {
            self.path.iter().map(|dir| dir.join(token)).find(is_executable)?
        };
        self.describe(path).map(|program| self.seal(program))
    }

    fn seal(&self, mut file: Program) -> Program {
        if file.keeper != Keeper::System && file.identity.digest.is_none() {
            file.identity.digest = self.digest(&file);
        }
        file
    }

    fn file(&self, path: &Path) -> Option<Program> {
        self.describe(self.cwd.join(path))
    }

    fn interpreter(&self, program: &Program) -> Option<Program> {
        let mut start = Vec::new();
        File::open(&program.real).ok()?.take(MAX_FIRST_LINE).read_to_end(&mut start).ok()?;
        let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
        let mut words = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
        let named = Path::new(words.next()?);
        // `env` starts the program that the next word names.
        if named.file_name() == Some("env".as_ref())
            && let Some(name) = words.find(|word| !word.starts_with('-') && !word.contains('='))
        {
            return self.program(name);
        }
        self.file(named).map(|program| self.seal(program))
    }
}

/// Who can change a file or a folder by its owner and mode. In a folder like `/tmp`, where everybody may put things but
/// only their owners can take them away, what is there stays what it is.
fn owner(metadata: &std::fs::Metadata) -> Keeper {
    let is_sticky = metadata.is_dir() && metadata.mode() & 0o1000 != 0;
    let by_group = metadata.mode() & 0o020 != 0 && metadata.gid() != 0;
    let by_others = metadata.mode() & 0o002 != 0;
    match metadata.uid() {
        _ if (by_group || by_others) && !is_sticky => Keeper::Anyone,
        0 => Keeper::System,
        uid if uid == rustix::process::geteuid().as_raw() => Keeper::Operator,
        _ => Keeper::Anyone,
    }
}

/// Who can point a link elsewhere: its owner, besides those who can change its folder.
fn link_owner(metadata: &std::fs::Metadata) -> Keeper {
    match metadata.uid() {
        0 => Keeper::System,
        uid if uid == rustix::process::geteuid().as_raw() => Keeper::Operator,
        _ => Keeper::Anyone,
    }
}

/// What tells a file from another, without its content.
#[must_use]
pub fn identity(metadata: &std::fs::Metadata) -> Identity {
    Identity {
        device: metadata.dev(),
        inode: metadata.ino(),
        length: metadata.len(),
        modified: i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec()),
        changed: i128::from(metadata.ctime()) * 1_000_000_000 + i128::from(metadata.ctime_nsec()),
        digest: None,
    }
}

fn digest(file: impl Read) -> std::io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(file)?;
    Ok(hasher.finalize().to_hex().to_string())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn tool(dir: &Path, name: &str, mode: u32) -> PathBuf {
        let path = dir.join(name);
        std::fs::write(&path, format!("#!/bin/sh\necho {name}\n")).expect("the file is written");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).expect("the mode is set");
        path
    }

    #[test]
    fn the_first_executable_on_the_path_is_the_one() {
        let (first, second) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        tool(first.path(), "tool", 0o644);
        let path = tool(second.path(), "tool", 0o755);
        let search = format!("{}::relative:{}", first.path().display(), second.path().display());
        let disk = Disk::new(&search, second.path()).open_to_runs([second.path().to_owned()]);
        let found = disk.program("tool").expect("it is there");
        assert_eq!(found.path, path);
        assert!(found.keeper == Keeper::Anyone && found.identity.digest.is_some());
    }

    #[test]
    fn links_are_followed_and_folders_are_no_programs() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = tool(dir.path(), "tool", 0o755);
        symlink(&path, dir.path().join("link")).expect("a link");
        std::fs::create_dir(dir.path().join("folder")).expect("a folder");
        let disk = Disk::new("", dir.path());
        let found = disk.program("./link").expect("it is there");
        assert_eq!(found.real, path.canonicalize().expect("it is there"));
        assert_eq!(disk.program("./folder"), None);
        assert_eq!(disk.program("tool"), None, "nothing is searched for in the working directory");
        assert_eq!(disk.program(""), None);
    }

    #[test]
    fn what_commands_can_change_belongs_to_anyone() {
        let dir = tempfile::tempdir().expect("a folder");
        tool(dir.path(), "tool", 0o755);
        let keeper = |disk: Disk| disk.program("./tool").expect("it is there").keeper;
        assert!(keeper(Disk::new("", dir.path())) < Keeper::Anyone, "the operator made it");
        assert_eq!(keeper(Disk::new("", dir.path()).open_to_runs([dir.path().to_owned()])), Keeper::Anyone);
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o777)).expect("the mode is set");
        assert_eq!(keeper(Disk::new("", dir.path())), Keeper::Anyone, "everybody can put another in its place");
    }

    #[test]
    fn a_link_in_the_middle_counts() {
        let (mine, open) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        tool(mine.path(), "tool", 0o755);
        symlink(mine.path().join("tool"), open.path().join("hop")).expect("a link");
        symlink(open.path().join("hop"), mine.path().join("far")).expect("a link");
        let disk = Disk::new("", mine.path()).open_to_runs([open.path().to_owned()]);
        assert!(disk.program("./tool").expect("it is there").keeper < Keeper::Anyone);
        assert_eq!(
            disk.program("./far").expect("it is there").keeper,
            Keeper::Anyone,
            "a run could point it elsewhere"
        );
    }

    #[test]
    fn a_file_that_is_only_named_is_not_read_and_one_that_runs_is_read_once() {
        let dir = tempfile::tempdir().expect("a folder");
        tool(dir.path(), "tool", 0o755);
        let disk = Disk::new("", dir.path()).open_to_runs([dir.path().to_owned()]);
        let named = disk.file(Path::new("tool")).expect("it is there");
        assert_eq!((named.identity.digest.clone(), disk.read.get()), (None, 0));
        let sealed = disk.seal(named);
        assert!(sealed.identity.digest.is_some());
        let once = disk.read.get();
        assert_eq!(once, sealed.identity.length);
        std::fs::hard_link(dir.path().join("tool"), dir.path().join("other")).expect("a link");
        let disk = Disk::new("", dir.path()).open_to_runs([dir.path().to_owned()]);
        let digests: Vec<_> = ["./tool", "./other", "./tool"].iter().filter_map(|name| disk.program(name)).collect();
        assert!(digests.iter().all(|one| one.identity.digest == sealed.identity.digest));
        assert_eq!((digests.len(), disk.read.get()), (3, once));
    }

    #[test]
    fn all_that_is_read_for_one_judgment_is_bounded() {
        let dir = tempfile::tempdir().expect("a folder");
        let disk = Disk::new("", dir.path()).open_to_runs([dir.path().to_owned()]);
        let small = tool(dir.path(), "small", 0o755);
        let large = tool(dir.path(), "large", 0o755);
        // Without content, so that nothing is written.
        let file = File::options().write(true).open(&large).expect("the file");
        file.set_len(MAX_DIGEST_BYTES + 1).expect("longer");
        assert_eq!(disk.program("./large").expect("it is there").identity.digest, None);
        assert_eq!(disk.read.get(), 0, "it was not read");
        let files = [small, large].map(|path| disk.file(&path).expect("it is there"));
        disk.read.set(MAX_DIGEST_TOTAL);
        assert!(files.iter().all(|file| disk.seal(file.clone()).identity.digest.is_none()));
        assert_eq!(disk.read.get(), MAX_DIGEST_TOTAL);
    }

    #[test]
    fn the_shell_belongs_to_the_system() {
        let found = Disk::new("/usr/bin:/bin", Path::new("/")).program("sh").expect("every machine has one");
        assert!(found.is_settled() && found.identity.digest.is_none());
    }
}
