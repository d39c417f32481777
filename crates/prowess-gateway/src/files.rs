//! Files: how is a small piece of state kept, so that nobody sees half of it?

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use serde_json::Value;
use thiserror::Error;

/// How large a file of ours can be.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// A file cannot be used.
#[derive(Debug, Error)]
pub enum FileError {
    /// The system said no.
    #[error("cannot use {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It is not what it should be, so it is not touched.
    #[error("{} is not readable as JSON ({why}); mend it or move it away", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
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

/// Puts `value` into the file in one step, for us alone.
pub(crate) fn write_json(path: &Path, value: &Value) -> Result<(), FileError> {
    let file = draft(path, value)?;
    file.persist(path).map_err(|error| io(path, error.error))?;
    Ok(())
}

/// The same, unless there is a file already.
pub(crate) fn create_json(path: &Path, value: &Value) -> Result<(), FileError> {
    match draft(path, value)?.persist_noclobber(path) {
        Ok(_) => Ok(()),
        Err(error) if error.error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(io(path, error.error)),
    }
}

fn draft(path: &Path, value: &Value) -> Result<tempfile::NamedTempFile, FileError> {
    let write = || -> std::io::Result<tempfile::NamedTempFile> {
        let folder = path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder)?;
        // Readable by its owner only, from the beginning.
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        writeln!(file, "{value:#}")?;
        file.as_file().sync_all()?;
        Ok(file)
    };
    write().map_err(|source| io(path, source))
}

/// Keeps other programs out until the result is dropped.
pub(crate) fn lock(path: &Path) -> Result<File, FileError> {
    let lock = || -> std::io::Result<File> {
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
        let file = File::options().create(true).truncate(false).write(true).open(path)?;
        file.lock()?;
        Ok(file)
    };
    lock().map_err(|source| io(path, source))
}

fn io(path: &Path, source: std::io::Error) -> FileError {
    FileError::Io { path: path.to_owned(), source }
}
