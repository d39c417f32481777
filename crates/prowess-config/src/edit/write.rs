//! How does new text get into the file without anyone ever seeing half of it, or losing another's change?
//!
//! A lock beside the file keeps our own writers apart. Other programs know nothing of it, so just before the new file
//! takes the old one's place, the old one must still be what it was.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use super::EditError;
use crate::source::{MAX_BYTES, SourceError};

/// As many links as the system itself would follow.
const MAX_LINKS: usize = 40;

const LOCK_PAUSE: Duration = Duration::from_millis(20);
const LOCK_TRIES: usize = 1500;

/// The file that `path` stands for, through links, even if the last of them leads nowhere yet.
pub(super) fn follow_links(path: &Path) -> Result<PathBuf, EditError> {
    let mut here = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&here) {
            Ok(target) => here = here.parent().unwrap_or(Path::new("")).join(target),
            // Not a link, or not there at all.
            Err(_) => return Ok(here),
        }
    }
    let source = io::Error::other("too many links, perhaps a circle");
    Err(EditError::Write { file: path.to_owned(), source })
}

/// Makes the directory the file belongs in, for its owner alone.
pub(super) fn create_parent(file: &Path) -> Result<(), EditError> {
    let Some(parent) = file.parent().filter(|parent| !parent.as_os_str().is_empty()) else { return Ok(()) };
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(parent).map_err(failed(file))
}

/// Waits for its turn. The lock is gone when the returned file is closed, also after a crash.
///
/// The lock file itself stays: to remove it would let two writers hold two different ones.
pub(super) fn lock(file: &Path) -> Result<File, EditError> {
    let path = beside(file, ".lock");
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let lock = options.open(&path).map_err(failed(&path))?;
    for _ in 0..LOCK_TRIES {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(TryLockError::WouldBlock) => thread::sleep(LOCK_PAUSE),
            Err(TryLockError::Error(source)) => return Err(EditError::Write { file: path, source }),
        }
    }
    Err(EditError::Busy { file: file.to_owned(), lock: path })
}

/// The bytes of the file; `None` when there is none.
pub(super) fn read_bytes(file: &Path) -> Result<Option<Vec<u8>>, EditError> {
    let unreadable = |source| EditError::Source(SourceError::Read { file: file.to_owned(), source });
    match fs::metadata(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(error)),
        Ok(metadata) if !metadata.is_file() => return Err(SourceError::NotAFile { file: file.to_owned() }.into()),
        Ok(_) => {}
    }
    let mut bytes = Vec::new();
    File::open(file).and_then(|open| open.take(MAX_BYTES + 1).read_to_end(&mut bytes)).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(SourceError::TooLarge { file: file.to_owned() }.into());
    }
    Ok(Some(bytes))
}

/// Puts `text` in the file's place if it still holds `before`; says whether it did.
pub(super) fn replace(file: &Path, before: Option<&[u8]>, text: &str) -> Result<bool, EditError> {
    let failed = failed(file);
    let dir = file.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut prefix = beside(file, ".").file_name().map(OsString::from).unwrap_or_default();
    prefix.push("new-");
    // Only the owner can read the new file, unless the old one says otherwise.
    let mut new = tempfile::Builder::new().prefix(&prefix).tempfile_in(dir).map_err(&failed)?;
    if before.is_some() {
        let permissions = fs::metadata(file).map_err(&failed)?.permissions();
        new.as_file().set_permissions(permissions).map_err(&failed)?;
    }
    new.write_all(text.as_bytes()).map_err(&failed)?;
    new.as_file().sync_all().map_err(&failed)?;
    if read_bytes(file)?.as_deref() != before {
        return Ok(false);
    }
    new.persist(file).map_err(|error| failed(error.error))?;
    sync_dir(dir);
    Ok(true)
}

/// Makes the rename last through a power cut. Not every file system can, and the change is made either way.
fn sync_dir(dir: &Path) {
    if let Ok(dir) = File::open(dir) {
        drop(dir.sync_all());
    }
}

fn beside(file: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(file.file_name().unwrap_or_default());
    name.push(suffix);
    file.with_file_name(name)
}

fn failed(file: &Path) -> impl Fn(io::Error) -> EditError + '_ {
    |source| EditError::Write { file: file.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{follow_links, replace};

    #[test]
    fn a_change_by_someone_else_is_noticed() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("openclaw.json");
        fs::write(&file, "theirs").expect("written");
        assert!(!replace(&file, Some(b"before"), "ours").expect("looked"));
        assert!(!replace(&file, None, "ours").expect("looked"));
        assert_eq!(fs::read_to_string(&file).expect("readable"), "theirs");
        assert!(replace(&file, Some(b"theirs"), "ours").expect("written"));
        assert_eq!(fs::read_to_string(&file).expect("readable"), "ours");
        assert_eq!(fs::read_dir(dir.path()).expect("readable").count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn links_that_lead_nowhere_or_in_a_circle() {
        let dir = tempfile::tempdir().expect("a directory");
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        std::os::unix::fs::symlink("b", &a).expect("linked");
        assert_eq!(follow_links(&a).expect("there is no b yet"), b);
        std::os::unix::fs::symlink("a", &b).expect("linked");
        assert!(follow_links(&a).is_err());
    }
}
