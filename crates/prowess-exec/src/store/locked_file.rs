//! A file that decides what may run: who could have written it, and how is it changed?
//!
//! Writers lock a file beside it, read it again, and replace it with one that only its owner can read. A file that cannot
//! be read whole is an error, and stays as it is: taking it for empty would loosen or lose what the operator wrote. All of
//! it blocks.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use prowess_files::{Lock, LockError};
use rustix::fs::OFlags;

/// The largest file that is read, in bytes.
pub(crate) const MAX_BYTES: usize = prowess_policy::approvals::MAX_BYTES;

/// How long to wait for another writer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why such a file cannot be used. Nothing runs until that is fixed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It is not what it should be.
    #[error("{}: {why}", path.display())]
    Broken {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Others could have written it.
    #[error("{} can be changed by users other than its owner", .0.display())]
    Unsafe(PathBuf),
    /// It is a folder or a pipe, say.
    #[error("{} is not a regular file; move it elsewhere", .0.display())]
    NotAFile(PathBuf),
    /// It is too large to be ours.
    #[error("{} is larger than {MAX_BYTES} bytes", .0.display())]
    TooLarge(PathBuf),
    /// Another process is writing it and does not finish.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// What it said.
        source: std::io::Error,
    },
}

/// The file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LockedFile {
    path: PathBuf,
}

impl LockedFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The file that writers lock.
    pub(crate) fn lock_path(&self) -> PathBuf {
        self.path.with_extension("json.lock")
    }

    /// Its text; nothing when there is no file.
    pub(crate) fn read(&self) -> Result<Option<String>, StoreError> {
        // Opening a pipe would wait for its other end.
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let file = match OpenOptions::new().read(true).custom_flags(flags).open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.io(error)),
        };
        let metadata = file.metadata().map_err(|error| self.io(error))?;
        if !metadata.is_file() {
            return Err(StoreError::NotAFile(self.path.clone()));
        }
        let is_ours = [0, rustix::process::geteuid().as_raw()].contains(&metadata.uid());
        if !is_ours || metadata.mode() & 0o022 != 0 {
            return Err(StoreError::Unsafe(self.path.clone()));
        }
        // Where everybody may rename files, this one may be anybody's.
        let folder = self.path.parent().unwrap_or(Path::new("."));
        if std::fs::metadata(folder).is_ok_and(|folder| folder.mode() & 0o1002 == 0o0002) {
            return Err(StoreError::Unsafe(folder.to_owned()));
        }
        if metadata.len() > MAX_BYTES as u64 {
            return Err(StoreError::TooLarge(self.path.clone()));
        }
        let mut text = String::new();
        file.take(MAX_BYTES as u64).read_to_string(&mut text).map_err(|error| self.io(error))?;
        Ok(Some(text))
    }

    /// Changes it. Nobody else writes between the reading and the writing; nothing is written where `change`, which gets
    /// the present text, gives no new one.
    pub(crate) fn update<T>(
        &self,
        change: impl FnOnce(Option<&str>) -> Result<(Option<String>, T), StoreError>,
    ) -> Result<T, StoreError> {
        let _lock = Lock::acquire(&self.lock_path(), PATIENCE)?;
        let (after, done) = change(self.read()?.as_deref())?;
        if let Some(text) = after {
            prowess_files::replace(&self.path, text.as_bytes()).map_err(|error| self.io(error))?;
        }
        Ok(done)
    }

    /// It is not what it should be.
    pub(crate) fn broken(&self, why: &dyn std::fmt::Display) -> StoreError {
        StoreError::Broken { path: self.path.clone(), why: why.to_string() }
    }

    fn io(&self, source: std::io::Error) -> StoreError {
        StoreError::Io { path: self.path.clone(), source }
    }
}
