//! Files: how is a small piece of state kept, so that nobody sees half of it?

use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;
use thiserror::Error;

/// How large a file of ours can be.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// How long a lock is waited for that somebody may be about to let go.
const PATIENCE: Duration = Duration::from_secs(3);

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
    replace(path, &format!("{value:#}\n")).map_err(|source| io(path, source))
}

/// Puts `text` into the file in one step, for us alone.
pub(crate) fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    draft(path, text)?.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// The same, unless there is a file already.
pub(crate) fn create_json(path: &Path, value: &Value) -> Result<(), FileError> {
    let draft = draft(path, &format!("{value:#}\n")).map_err(|source| io(path, source))?;
    match draft.persist_noclobber(path) {
        Ok(_) => Ok(()),
        Err(error) if error.error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(io(path, error.error)),
    }
}

/// A file beside the one that it is to become. It is on the disk, and readable by its owner only from the beginning.
fn draft(path: &Path, text: &str) -> std::io::Result<tempfile::NamedTempFile> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    Ok(file)
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

/// A lock that is held as long as this is kept.
#[derive(Debug)]
pub(crate) struct Held(File);

impl Held {
    /// Takes the lock of that file; nothing, if another program has it. May wait a moment: a command that was just being
    /// started by a program that is gone has its files until it runs.
    pub(crate) fn take(path: &Path) -> std::io::Result<Option<Self>> {
        let file = File::options().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
        let start = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Some(Self(file))),
                Err(TryLockError::WouldBlock) if start.elapsed() < PATIENCE => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // Closing is not enough: a command that is just being started has the file, too, and the lock with it.
        if let Err(error) = self.0.unlock() {
            tracing::warn!("a lock is held for a moment longer: {error}");
        }
    }
}

fn io(path: &Path, source: std::io::Error) -> FileError {
    FileError::Io { path: path.to_owned(), source }
}
