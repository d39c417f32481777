//! How does new text get into the file without anyone ever seeing half of it, or losing another's change?
//!
//! A lock beside the file keeps our own writers apart. Other programs know nothing of it, so just before the new file
//! takes the old one's place, the old one must still be what it was.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use prowess_files::{Draft, Lock, LockError};

use super::EditError;
use crate::source::{MAX_BYTES, SourceError};

/// How long to wait for another writer.
const PATIENCE: Duration = Duration::from_secs(30);

/// The file that `path` stands for, through symlinks, even if the last of them points nowhere yet.
pub(super) fn follow_links(path: &Path) -> Result<PathBuf, EditError> {
    prowess_files::follow_links(path).map_err(failed(path))
}

/// Locks the file against our own writers. Its directory is created if it is missing.
pub(super) fn lock(file: &Path) -> Result<Lock, EditError> {
    let path = lock_path(file);
    Lock::acquire(&path, PATIENCE).map_err(|error| match error {
        LockError::Held { path, holder } => EditError::Busy { file: file.to_owned(), lock: path, holder },
        LockError::Io { path, source } => EditError::Write { file: path, source },
    })
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

/// Replaces the file with `text` if it still holds `before`. Returns whether it did. Only the owner can read a new file;
/// one that existed keeps its mode.
pub(super) fn replace(file: &Path, before: Option<&[u8]>, text: &str) -> Result<bool, EditError> {
    let failed = failed(file);
    let mut draft = Draft::beside(file).map_err(&failed)?;
    draft.keep_mode().map_err(&failed)?;
    draft.write_all(text.as_bytes()).map_err(&failed)?;
    if read_bytes(file)?.as_deref() != before {
        return Ok(false);
    }
    draft.commit().map_err(&failed)?;
    Ok(true)
}

fn lock_path(file: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(file.file_name().unwrap_or_default());
    name.push(".lock");
    file.with_file_name(name)
}

fn failed(file: &Path) -> impl Fn(io::Error) -> EditError + '_ {
    |source| EditError::Write { file: file.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::replace;

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
}
