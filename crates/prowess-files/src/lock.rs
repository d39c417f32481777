//! Locks: who holds a file, across threads and processes?
//!
//! A kernel lock on a file of its own. The kernel drops the locks of dead processes, so a crash blocks nobody. The holder
//! writes its process id into the lock file, so that those who wait in vain can say whom for. The lock file stays when
//! the lock is released: removing it would let two processes hold two different files.

use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long to sleep between two attempts: briefly at first, longer when many may be waiting.
const SHORTEST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// The most that is read of a lock file.
const MAX_HOLDER_BYTES: u64 = 64;

/// A lock that is held until it is dropped.
#[derive(Debug)]
pub struct Lock(FileLock);

/// A kernel lock on an open file, released when it is dropped.
///
/// Closing the file is not enough: a child that another thread is just starting has a copy of the descriptor until it
/// executes its program.
#[derive(Debug)]
pub struct FileLock(File);

/// Who holds a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder(pub Option<u32>);

/// A lock was not acquired.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process, or another thread, holds it.
    #[error("{} is locked by {holder}; wait until it is done, or end it", path.display())]
    Held {
        /// The lock file.
        path: PathBuf,
        /// Who holds it.
        holder: Holder,
    },
    /// The system refused.
    #[error("cannot lock {}: {source}", path.display())]
    Io {
        /// The lock file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(pid) if pid == std::process::id() => f.write_str("this process"),
            Some(pid) => write!(f, "process {pid}"),
            None => f.write_str("another process"),
        }
    }
}

impl Lock {
    /// Locks the file at `path`, which is created if it is missing, and waits up to `patience` for its holder.
    pub fn acquire(path: &Path, patience: Duration) -> Result<Self, LockError> {
        let failed = |source| LockError::Io { path: path.to_owned(), source };
        let mut file = Some(open(path).map_err(failed)?);
        poll(|waited| {
            let Some(free) = file.take() else { return Ok(None) };
            match FileLock::try_new(free).map_err(failed)? {
                Ok(lock) => {
                    // Only a hint for those who wait: a full disk does not make the lock less of one.
                    let _ = write_holder(&lock);
                    Ok(Some(Self(lock)))
                }
                Err(held) if waited < patience => {
                    file = Some(held);
                    Ok(None)
                }
                Err(held) => Err(LockError::Held { path: path.to_owned(), holder: read_holder(&held) }),
            }
        })
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // The next holder writes its own id; until then there is none to name.
        let _ = self.0.set_len(0);
    }
}

impl FileLock {
    /// Locks `file`, or gives it back if somebody else has locked it.
    pub fn try_new(file: File) -> io::Result<Result<Self, File>> {
        match file.try_lock() {
            Ok(()) => Ok(Ok(Self(file))),
            Err(TryLockError::WouldBlock) => Ok(Err(file)),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

impl Deref for FileLock {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // A lock that cannot be released goes with the last descriptor.
        let _ = self.0.unlock();
    }
}

/// Calls `attempt` until it returns something, and sleeps in between. It is told how long it has been waited, and ends
/// the wait with an error.
pub fn poll<T, E>(mut attempt: impl FnMut(Duration) -> Result<Option<T>, E>) -> Result<T, E> {
    let start = Instant::now();
    loop {
        let waited = start.elapsed();
        if let Some(done) = attempt(waited)? {
            return Ok(done);
        }
        std::thread::sleep((waited / 4).clamp(SHORTEST_PAUSE, LONGEST_PAUSE));
    }
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).read(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
        crate::create_private_dir(dir)?;
    }
    let file = options.open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "it is not a regular file; move it elsewhere"));
    }
    Ok(file)
}

fn write_holder(mut file: &File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    write!(file, "{}", std::process::id())
}

fn read_holder(mut file: &File) -> Holder {
    let mut text = String::new();
    let read = file.rewind().and_then(|()| file.take(MAX_HOLDER_BYTES).read_to_string(&mut text));
    Holder(read.ok().and_then(|_| text.trim().parse().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_holder_at_a_time_and_it_is_named() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("new/state.lock");
        let lock = Lock::acquire(&path, Duration::ZERO).expect("it is free");
        let refused = Lock::acquire(&path, Duration::from_millis(5)).expect_err("it is held");
        assert!(matches!(refused, LockError::Held { holder: Holder(Some(pid)), .. } if pid == std::process::id()));
        assert!(refused.to_string().contains("is locked by this process"), "{refused}");
        drop(lock);
        assert_eq!(std::fs::read(&path).expect("the file stays"), b"");
        Lock::acquire(&path, Duration::ZERO).expect("it is free again");
    }

    #[test]
    fn a_lock_file_of_a_dead_process_is_free() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("state.lock");
        std::fs::write(&path, "4242").expect("written");
        drop(Lock::acquire(&path, Duration::ZERO).expect("nobody holds it"));
        // A holder that wrote nothing, or something else, is still a holder.
        let held = FileLock::try_new(open(&path).expect("a file")).expect("locked").expect("free");
        let refused = Lock::acquire(&path, Duration::ZERO).expect_err("it is held");
        assert!(refused.to_string().contains("is locked by another process"), "{refused}");
        std::fs::write(&path, "4242").expect("written");
        let refused = Lock::acquire(&path, Duration::ZERO).expect_err("it is held");
        assert!(refused.to_string().contains("is locked by process 4242"), "{refused}");
        drop(held);
    }

    #[test]
    fn those_who_wait_get_their_turn() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("state.lock");
        let lock = Lock::acquire(&path, Duration::ZERO).expect("it is free");
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| Lock::acquire(&path, Duration::from_secs(60)).map(drop));
            std::thread::sleep(Duration::from_millis(10));
            drop(lock);
            waiting.join().expect("no panic").expect("it got the lock");
        });
    }

    #[test]
    fn what_is_not_a_file_is_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        assert!(matches!(Lock::acquire(dir.path(), Duration::ZERO), Err(LockError::Io { .. })));
    }

    /// A child that is just being started may have a copy of the descriptor.
    #[test]
    fn a_copy_of_the_descriptor_does_not_keep_the_lock() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("state.lock");
        let lock = Lock::acquire(&path, Duration::ZERO).expect("it is free");
        let copy = lock.0.try_clone().expect("a copy");
        drop(lock);
        Lock::acquire(&path, Duration::ZERO).expect("it is free again");
        drop(copy);
    }
}
