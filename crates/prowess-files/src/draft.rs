//! Drafts: how does a file get its new content in one step that survives a power cut?

use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// As many symlinks as the system itself would follow.
const MAX_LINKS: usize = 40;

/// The new content of a file, in a temporary file beside it. Dropping it removes the temporary file.
///
/// Only its owner can read it, unless [`Draft::keep_mode`] gives it the mode of the file it replaces.
#[derive(Debug)]
pub struct Draft {
    file: NamedTempFile,
    target: PathBuf,
}

/// Replaces `path` with `bytes`, readable by its owner only. A symlink stays, and its target is replaced.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut draft = Draft::beside(path)?;
    draft.write_all(bytes)?;
    draft.commit().map(drop)
}

/// Creates `path` with `bytes`, readable by its owner only. Returns false, and changes nothing, if it exists.
pub fn create(path: &Path, bytes: &[u8]) -> io::Result<bool> {
    let mut draft = Draft::beside(path)?;
    draft.write_all(bytes)?;
    draft.commit_new()
}

impl Draft {
    /// Starts a draft for `path`, in the directory of the file that `path` leads to. The directory is created if it is
    /// missing.
    pub fn beside(path: &Path) -> io::Result<Self> {
        let target = follow_links(path)?;
        let dir = dir_of(&target);
        create_private_dir(dir)?;
        let file = tempfile::Builder::new().prefix(".prowess-").suffix(".tmp").tempfile_in(dir)?;
        Ok(Self { file, target })
    }

    /// Gives the draft the mode of the file it replaces, if there is one.
    pub fn keep_mode(&mut self) -> io::Result<()> {
        match fs::metadata(&self.target) {
            Ok(metadata) => self.file.as_file().set_permissions(metadata.permissions()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Brings the draft to the disk and puts it in the place of the file. Returns the file, open at its end.
    pub fn commit(self) -> io::Result<File> {
        let Self { file, target } = self;
        file.as_file().sync_all()?;
        let file = file.persist(&target).map_err(|error| error.error)?;
        sync_dir(dir_of(&target))?;
        Ok(file)
    }

    /// The same, unless the file exists by now: then nothing changes, and the result is false.
    pub fn commit_new(self) -> io::Result<bool> {
        let Self { file, target } = self;
        file.as_file().sync_all()?;
        match file.persist_noclobber(&target) {
            Ok(_) => sync_dir(dir_of(&target)).map(|()| true),
            Err(error) if error.error.kind() == ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error.error),
        }
    }
}

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// The file that `path` leads to through symlinks, even if the last of them points to a file that does not exist yet.
pub fn follow_links(path: &Path) -> io::Result<PathBuf> {
    let mut here = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&here) {
            Ok(target) => here = here.parent().unwrap_or(Path::new("")).join(target),
            // Not a symlink, or not there at all.
            Err(_) => return Ok(here),
        }
    }
    Err(io::Error::other("too many symlinks, perhaps a loop"))
}

/// Creates `dir` and its missing parents for their owner alone.
pub fn create_private_dir(dir: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}

/// Makes names that were created, renamed or removed in `dir` survive a power cut. File systems and systems that cannot
/// do that are left to their own promises.
pub fn sync_dir(dir: &Path) -> io::Result<()> {
    if cfg!(windows) {
        return Ok(());
    }
    match File::open(dir)?.sync_all() {
        Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => Ok(()),
        synced => synced,
    }
}

fn dir_of(file: &Path) -> &Path {
    file.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(dir)
            .expect("the directory is readable")
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_replaced_whole_and_nothing_else_stays() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("new/deep/state.json");
        replace(&path, b"one").expect("written");
        replace(&path, b"two").expect("written");
        assert_eq!(fs::read(&path).expect("readable"), b"two");
        assert_eq!(names(&dir.path().join("new/deep")), ["state.json"]);
    }

    #[test]
    fn a_draft_that_is_dropped_leaves_the_old_file() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("state.json");
        replace(&path, b"old").expect("written");
        let mut draft = Draft::beside(&path).expect("a draft");
        draft.write_all(b"half").expect("written");
        assert_eq!(names(dir.path()).len(), 2, "the draft is in the same directory, so that a rename is enough");
        drop(draft);
        assert_eq!(fs::read(&path).expect("readable"), b"old");
        assert_eq!(names(dir.path()), ["state.json"]);
    }

    #[test]
    fn the_returned_file_is_the_new_one_at_its_end() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("log");
        let mut draft = Draft::beside(&path).expect("a draft");
        draft.write_all(b"one\n").expect("written");
        draft.commit().expect("committed").write_all(b"two\n").expect("written");
        assert_eq!(fs::read(&path).expect("readable"), b"one\ntwo\n");
    }

    #[test]
    fn an_existing_file_is_not_created_again() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("identity.json");
        assert!(create(&path, b"first").expect("written"));
        assert!(!create(&path, b"second").expect("looked"));
        assert_eq!(fs::read(&path).expect("readable"), b"first");
        assert_eq!(names(dir.path()), ["identity.json"]);
    }

    #[cfg(unix)]
    #[test]
    fn modes_are_private_or_kept() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("state.json");
        let mode = || fs::metadata(&path).expect("it exists").permissions().mode() & 0o7777;
        replace(&path, b"").expect("written");
        assert_eq!(mode(), 0o600);
        fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).expect("the mode is set");
        let mut draft = Draft::beside(&path).expect("a draft");
        draft.keep_mode().expect("the mode is kept");
        draft.commit().expect("committed");
        assert_eq!(mode(), 0o640);
        replace(&path, b"").expect("written");
        assert_eq!(mode(), 0o600);
    }

    #[cfg(unix)]
    #[test]
    fn a_symlink_stays_and_its_target_is_replaced() {
        let dir = tempfile::tempdir().expect("a directory");
        let (link, target) = (dir.path().join("link"), dir.path().join("real/state.json"));
        std::os::unix::fs::symlink("real/state.json", &link).expect("linked");
        replace(&link, b"one").expect("written, though the target did not exist");
        assert_eq!(fs::read(&target).expect("readable"), b"one");
        assert!(fs::symlink_metadata(&link).expect("it exists").is_symlink());
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        std::os::unix::fs::symlink("b", &a).expect("linked");
        std::os::unix::fs::symlink("a", &b).expect("linked");
        assert!(replace(&a, b"").is_err(), "a loop leads nowhere");
    }
}
