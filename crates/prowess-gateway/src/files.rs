//! Files: how is a small piece of state kept as JSON?

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use prowess_files::LockError;
use serde_json::Value;
use thiserror::Error;

/// How large a file of ours can be.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// A file cannot be used.
#[derive(Debug, Error)]
pub enum FileError {
    /// The system said no.
    #[error("cannot use {}: {source}; {}", path.display(), remedy(source))]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Another process is writing it and does not finish.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// It is not what it should be, so it is not touched.
    #[error("{} is not valid JSON ({why}); fix it or move it elsewhere", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

/// What to do about an error of the file system.
pub(crate) fn remedy(error: &std::io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "the disk is full: free some space, or move the state directory with OPENCLAW_STATE_DIR"
        }
        ErrorKind::ReadOnlyFilesystem => "the disk is read-only: mount it writable, or set OPENCLAW_STATE_DIR",
        _ => "make it readable and writable for you",
    }
}

/// What is in the file, if there is one.
pub(crate) fn read_json(path: &Path) -> Result<Option<Value>, FileError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(io(path, source)),
    };
    let broken = |why: String| FileError::Broken { path: path.to_owned(), why };
    let mut text = String::new();
    file.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(|source| io(path, source))?;
    if text.len() as u64 > MAX_BYTES {
        return Err(broken(format!("it has more than {MAX_BYTES} bytes")));
    }
    serde_json::from_str(&text).map(Some).map_err(|error| broken(error.to_string()))
}

/// Replaces the file with `value`, readable by its owner only.
pub(crate) fn write_json(path: &Path, value: &Value) -> Result<(), FileError> {
    prowess_files::replace(path, format!("{value:#}\n").as_bytes()).map_err(|source| io(path, source))
}

/// The same, unless the file exists already.
pub(crate) fn create_json(path: &Path, value: &Value) -> Result<(), FileError> {
    let created = prowess_files::create(path, format!("{value:#}\n").as_bytes());
    created.map(drop).map_err(|source| io(path, source))
}

fn io(path: &Path, source: std::io::Error) -> FileError {
    FileError::Io { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_called_one() {
        let full = std::io::Error::from(ErrorKind::StorageFull);
        assert!(remedy(&full).contains("disk is full"), "{full}");
        let error = FileError::Io { path: "/state/x".into(), source: full };
        assert!(error.to_string().contains("disk is full") && !error.to_string().contains("writable"), "{error}");
        assert!(remedy(&ErrorKind::PermissionDenied.into()).contains("writable"));
    }
}
