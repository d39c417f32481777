//! The approvals file: what has the operator allowed for good?
//!
//! `exec-approvals.json` in the state directory. Writers lock a file beside it, read it again, and replace it with one
//! that only its owner can read. A file that cannot be read whole is an error, and stays as it is: taking it for empty
//! would loosen or lose what the operator wrote. All of it blocks.

use std::fs::OpenOptions;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use prowess_files::{Lock, LockError};
use prowess_policy::approvals::{Approvals, BrokenApprovals, MAX_BYTES};
use rustix::fs::OFlags;

/// How long to wait for another writer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where approvals are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalsFile {
    path: PathBuf,
}

/// The approvals cannot be used, so nothing runs until they are fixed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It is not what it should be.
    #[error("{}: {source}", path.display())]
    Broken {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        source: BrokenApprovals,
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

impl ApprovalsFile {
    /// The file in `state_dir`.
    #[must_use]
    pub fn in_state_dir(state_dir: &Path) -> Self {
        Self { path: state_dir.join("exec-approvals.json") }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file that writers lock.
    #[must_use]
    pub fn lock_path(&self) -> PathBuf {
        self.path.with_extension("json.lock")
    }

    /// What is in it; nothing when there is no file.
    pub fn load(&self) -> Result<Approvals, StoreError> {
        // Opening a pipe would wait for its other end.
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let file = match OpenOptions::new().read(true).custom_flags(flags).open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Approvals::default()),
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
        Approvals::parse(&text, names(&text)).map_err(|source| StoreError::Broken { path: self.path.clone(), source })
    }

    /// Changes what is in it. Nobody else writes between the reading and the writing, and nothing is written when
    /// nothing changes.
    pub fn update<T>(&self, change: impl FnOnce(&mut Approvals) -> T) -> Result<T, StoreError> {
        let _lock = Lock::acquire(&self.lock_path(), PATIENCE)?;
        let before = self.load()?;
        let mut after = before.clone();
        let done = change(&mut after);
        if after != before || !self.path.exists() {
            prowess_files::replace(&self.path, after.render().as_bytes()).map_err(|error| self.io(error))?;
        }
        Ok(done)
    }

    fn io(&self, source: std::io::Error) -> StoreError {
        StoreError::Io { path: self.path.clone(), source }
    }
}

/// Names for entries that have none. Who reads the same file twice finds the same names, so that the use of an entry can
/// be noted after its command was started.
fn names(text: &str) -> impl FnMut() -> String {
    let mut count = 0_u64;
    move || {
        count += 1;
        let half = |salt: u8| {
            let mut hasher = DefaultHasher::new();
            (salt, count, text).hash(&mut hasher);
            hasher.finish()
        };
        let bits = (u128::from(half(0)) << 64) | u128::from(half(1));
        uuid::Builder::from_random_bytes(bits.to_be_bytes()).into_uuid().to_string()
    }
}
