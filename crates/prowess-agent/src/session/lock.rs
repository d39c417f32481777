//! Locks: who owns a file, across processes and programs?
//!
//! A lock file beside the file, which says who holds it, as OpenClaw writes it; and a kernel lock on that lock file. The
//! kernel forgets the locks of the dead, so a process that was killed never blocks anybody. Where only the file speaks,
//! because OpenClaw wrote it, it is believed for as long as the process lives and the file is not stale.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use jiff::Timestamp;
use prowess_files::FileLock;
use rustix::fs::OFlags;
use rustix::process::{Pid, test_kill_process};
use serde::{Deserialize, Serialize};

/// How old a lock of another program may be before it is taken for forgotten.
pub(crate) const STALE: Duration = Duration::from_secs(30 * 60);

/// How often a holder says that it is still there: well before [`STALE`].
const REFRESH: Duration = Duration::from_secs(5 * 60);

/// How long a lock file without a word in it is given: somebody may be about to write it.
const BLANK_PATIENCE: Duration = Duration::from_millis(250);

/// The most that is read of a lock file.
const MAX_BYTES: u64 = 4_096;

/// How often the lock file may vanish between two looks at it, and for how long, before we call it held.
const MAX_ATTEMPTS: usize = 1_000;
const VANISHING: Duration = Duration::from_secs(2);

/// What marks a lock file as ours: without a kernel lock on it, its owner is dead, whatever its process id is used for
/// now.
const PROGRAM: &str = "prowess";

/// What stands in a lock file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Holder {
    pid: u32,
    #[serde(default)]
    created_at: Option<String>,
    /// When the process began, so that another with its number is not taken for it.
    #[serde(default, rename = "starttime", skip_serializing_if = "Option::is_none")]
    started: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    program: Option<String>,
}

/// A lock that is held until it is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    path: PathBuf,
    file: FileLock,
    refreshed: Instant,
}

/// Why a lock is not to be had.
#[derive(Debug)]
pub(crate) enum LockError {
    /// Somebody holds it: this process, if it said so.
    Held(Option<u32>),
    /// The system refused.
    Io(PathBuf, std::io::Error),
}

/// What came of one attempt to take a lock.
enum Attempt {
    Taken(Lock),
    /// Somebody holds it: this process, if it said so.
    Held(Option<u32>),
    /// Somebody may be about to say that they hold it.
    Blank,
    /// The lock file was removed under our hands.
    Vanished,
}

/// What a look at a lock file that is not locked by the kernel says.
enum Claim {
    /// Nobody holds it.
    Free,
    /// A process of another program does.
    Held(u32),
    /// Nothing is written in it, and it is new.
    Blank,
}

impl Lock {
    /// Takes the lock beside `target`, or says who has it. Only a lock file that somebody is about to write is waited
    /// for.
    pub(crate) fn take(target: &Path) -> Result<Self, LockError> {
        Self::within(target, Duration::ZERO, BLANK_PATIENCE)
    }

    /// Takes the lock beside `target`, waiting up to `patience` for others; without any it never waits.
    pub(crate) fn wait(target: &Path, patience: Duration) -> Result<Self, LockError> {
        Self::within(target, patience, patience.min(BLANK_PATIENCE))
    }

    /// Waits up to `for_holders` for those who hold it, and up to `for_blanks` for a word in an empty lock file.
    fn within(target: &Path, for_holders: Duration, for_blanks: Duration) -> Result<Self, LockError> {
        prowess_files::poll(|waited| match Self::attempt(target, waited)? {
            Attempt::Taken(lock) => Ok(Some(lock)),
            Attempt::Held(pid) if waited >= for_holders => Err(LockError::Held(pid)),
            Attempt::Blank if waited >= for_blanks => Err(LockError::Held(None)),
            Attempt::Vanished if waited >= for_holders + VANISHING => Err(LockError::Held(None)),
            Attempt::Held(_) | Attempt::Blank | Attempt::Vanished => Ok(None),
        })
    }

    /// Tries once, after others were waited for this long.
    fn attempt(target: &Path, waited: Duration) -> Result<Attempt, LockError> {
        let path = beside(target);
        let failed = |error| LockError::Io(path.clone(), error);
        let (file, is_new) = open(&path).map_err(failed)?;
        let file = match FileLock::try_new(file).map_err(failed)? {
            Ok(file) => file,
            Err(held) => return Ok(Attempt::Held(read(&held).map(|one| one.pid))),
        };
        if !is_at(&file, &path) {
            // Its last holder removed it between our opening and our locking.
            return Ok(Attempt::Vanished);
        }
        let claim = if is_new { Claim::Free } else { judge(&file).map_err(failed)? };
        match claim {
            Claim::Free => {}
            Claim::Held(pid) => return Ok(Attempt::Held(Some(pid))),
            Claim::Blank if waited >= BLANK_PATIENCE => {}
            Claim::Blank => return Ok(Attempt::Blank),
        }
        let lock = Self { path: path.clone(), file, refreshed: Instant::now() };
        lock.write().map_err(failed)?;
        Ok(if lock.is_held() { Attempt::Taken(lock) } else { Attempt::Vanished })
    }

    /// Whether it is still ours: another program may take a lock whose holder said nothing for too long.
    pub(crate) fn is_held(&self) -> bool {
        is_at(&self.file, &self.path)
    }

    /// Says that the holder is still there, if that has not been said for a while.
    pub(crate) fn refresh(&mut self) -> std::io::Result<()> {
        if self.refreshed.elapsed() < REFRESH {
            return Ok(());
        }
        self.refreshed = Instant::now();
        self.write()
    }

    fn write(&self) -> std::io::Result<()> {
        let pid = std::process::id();
        let holder = Holder {
            pid,
            created_at: Some(super::entry::now()),
            started: started(pid),
            program: Some(PROGRAM.to_owned()),
        };
        let text = serde_json::to_vec(&holder)?;
        self.file.write_all_at(&text, 0)?;
        self.file.set_len(text.len() as u64)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // First the name, then the kernel lock: a process that opened the file before sees that it has lost its name. A
        // name that stays does no harm, for the kernel lock is gone.
        if self.is_held() {
            std::fs::remove_file(&self.path).ok();
        }
    }
}

fn beside(target: &Path) -> PathBuf {
    let mut name = OsString::from(target);
    name.push(".lock");
    PathBuf::from(name)
}

/// Opens the lock file, and says whether it is one we have just made.
fn open(path: &Path) -> std::io::Result<(File, bool)> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600).custom_flags(flags.bits().cast_signed());
    for _ in 0..MAX_ATTEMPTS {
        match options.clone().create_new(true).open(path) {
            Ok(file) => return Ok((file, true)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        match options.open(path) {
            Ok(file) => return Ok((file, false)),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Err(ErrorKind::ResourceBusy.into())
}

fn is_at(file: &File, path: &Path) -> bool {
    let (Ok(ours), Ok(there)) = (file.metadata(), std::fs::symlink_metadata(path)) else { return false };
    (ours.dev(), ours.ino()) == (there.dev(), there.ino())
}

fn read(file: &File) -> Option<Holder> {
    let mut text = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

fn judge(file: &File) -> std::io::Result<Claim> {
    let age = |since: SystemTime| SystemTime::now().duration_since(since).unwrap_or_default();
    let written = file.metadata()?.modified()?;
    let Some(holder) = read(file) else {
        return Ok(if age(written) > BLANK_PATIENCE { Claim::Free } else { Claim::Blank });
    };
    // What we wrote ourselves is worth nothing without its kernel lock, and no other program has our process id.
    if holder.program.as_deref() == Some(PROGRAM) || holder.pid == std::process::id() {
        return Ok(Claim::Free);
    }
    // A number is used again when its process is gone.
    if let (Some(then), Some(now)) = (holder.started, started(holder.pid))
        && then != now
    {
        return Ok(Claim::Free);
    }
    let said = holder.created_at.and_then(|date| date.parse::<Timestamp>().ok());
    let since = said.map_or(written, SystemTime::from);
    if !is_alive(holder.pid) || age(since) > STALE {
        return Ok(Claim::Free);
    }
    Ok(Claim::Held(holder.pid))
}

fn is_alive(pid: u32) -> bool {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return false };
    // Not being allowed to signal it means that it is there.
    !matches!(test_kill_process(pid), Err(rustix::io::Errno::SRCH))
}

/// When a process began, in ticks since the machine did; nothing where the system does not say.
fn started(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program comes second and may have anything in it; the time is the twentieth word after it.
    let (_, after) = stat.rsplit_once(')')?;
    after.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use prowess_testkit::Tree;

    use super::*;

    fn holder(lock: Result<Lock, LockError>) -> Option<u32> {
        match lock {
            Err(LockError::Held(pid)) => pid,
            other => panic!("not held: {other:?}"),
        }
    }

    /// A process that lives until the end of the test.
    struct Living(std::process::Child);

    impl Living {
        fn new() -> Self {
            let mut command = std::process::Command::new("sleep");
            Self(command.arg("60").spawn().expect("a process"))
        }
    }

    impl Drop for Living {
        fn drop(&mut self) {
            self.0.kill().expect("it was alive");
            self.0.wait().expect("it is ours");
        }
    }

    #[test]
    fn there_is_one_holder_at_a_time() {
        let tree = Tree::new();
        let target = tree.path("a.jsonl");
        let lock = Lock::take(&target).expect("a lock");
        assert_eq!(holder(Lock::take(&target)), Some(std::process::id()));
        assert!(Lock::wait(&target, Duration::from_millis(20)).is_err());
        drop(lock);
        assert!(!tree.path("a.jsonl.lock").exists());
        Lock::take(&target).expect("the lock is free again");
    }

    #[test]
    fn a_dead_owner_blocks_nobody() {
        let tree = Tree::new();
        let dead = {
            let living = Living::new();
            living.0.id()
        };
        let now = Timestamp::now();
        let ours_alive = std::process::id();
        let table = [
            format!(r#"{{"pid":{dead},"createdAt":"{now}"}}"#),
            // Ours, but nobody holds the kernel lock: the id belongs to somebody else by now.
            format!(r#"{{"pid":1,"createdAt":"{now}","program":"prowess"}}"#),
            format!(r#"{{"pid":{ours_alive},"createdAt":"{now}"}}"#),
            r#"{"pid":1,"createdAt":"2020-01-01T00:00:00.000Z"}"#.to_owned(),
            r#"{"pid":4294967295}"#.to_owned(),
            r#"{"pid":0}"#.to_owned(),
            "garbage".to_owned(),
            String::new(),
        ];
        for text in table {
            fs::write(tree.path("a.jsonl.lock"), &text).expect("a file");
            Lock::take(&tree.path("a.jsonl")).unwrap_or_else(|error| panic!("{text:?}: {error:?}"));
        }
    }

    #[test]
    fn a_living_process_of_another_program_is_believed() {
        let tree = Tree::new();
        let living = Living::new();
        let pid = living.0.id();
        let now = Timestamp::now();
        for text in [format!(r#"{{"pid":{pid},"createdAt":"{now}"}}"#), format!(r#"{{"pid":{pid}}}"#)] {
            fs::write(tree.path("a.jsonl.lock"), &text).expect("a file");
            assert_eq!(holder(Lock::take(&tree.path("a.jsonl"))), Some(pid));
            assert_eq!(fs::read_to_string(tree.path("a.jsonl.lock")).expect("a file"), text);
        }
    }

    /// The words of OpenClaw 2026.3.2, and ours as it reads them.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_number_that_is_used_again_is_not_its_first_owner() {
        let tree = Tree::new();
        let living = Living::new();
        let pid = living.0.id();
        let now = Timestamp::now();
        let began = started(pid).expect("it is there");
        let claim = |began: u64| format!(r#"{{"pid": {pid}, "createdAt": "{now}", "starttime": {began}}}"#);
        fs::write(tree.path("a.jsonl.lock"), claim(began)).expect("a file");
        assert_eq!(holder(Lock::take(&tree.path("a.jsonl"))), Some(pid));
        fs::write(tree.path("a.jsonl.lock"), claim(began + 1)).expect("a file");
        let lock = Lock::take(&tree.path("a.jsonl")).expect("nobody holds it");
        let text = fs::read_to_string(tree.path("a.jsonl.lock")).expect("a file");
        let ours: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(ours["pid"], std::process::id());
        assert_eq!(ours["starttime"].as_u64(), started(std::process::id()));
        drop(lock);
    }

    #[test]
    fn a_lock_that_was_taken_away_is_noticed_and_left_alone() {
        let tree = Tree::new();
        let lock = Lock::take(&tree.path("a.jsonl")).expect("a lock");
        assert!(lock.is_held());
        fs::remove_file(tree.path("a.jsonl.lock")).expect("it was there");
        fs::write(tree.path("a.jsonl.lock"), "another's").expect("a file");
        assert!(!lock.is_held());
        drop(lock);
        assert_eq!(fs::read_to_string(tree.path("a.jsonl.lock")).expect("a file"), "another's");
    }

    /// As a process that another thread is starting has one, for a moment.
    #[test]
    fn a_copy_of_the_descriptor_holds_nothing() {
        let tree = Tree::new();
        let target = tree.path("a.jsonl");
        let lock = Lock::take(&target).expect("a lock");
        let copy = lock.file.try_clone().expect("a copy");
        // Its name stays, as if it could not be removed.
        fs::hard_link(tree.path("a.jsonl.lock"), tree.path("kept")).expect("a link");
        drop(lock);
        fs::rename(tree.path("kept"), tree.path("a.jsonl.lock")).expect("a file");
        Lock::take(&target).expect("the lock is free again");
        drop(copy);
    }

    #[test]
    fn without_patience_an_empty_lock_file_is_not_waited_for() {
        let tree = Tree::new().file("a.jsonl.lock", "");
        // As if it had been made just now, however long the test takes.
        let file = File::options().write(true).open(tree.path("a.jsonl.lock")).expect("a file");
        file.set_modified(SystemTime::now() + Duration::from_secs(3600)).expect("a time");
        assert_eq!(holder(Lock::wait(&tree.path("a.jsonl"), Duration::ZERO)), None);
        assert!(tree.path("a.jsonl.lock").exists(), "it may be another's");
        Lock::take(&tree.path("a.jsonl")).expect("nobody ever wrote it");
    }

    #[test]
    fn a_link_is_not_followed() {
        let tree = Tree::new().file("elsewhere", "precious");
        std::os::unix::fs::symlink(tree.path("elsewhere"), tree.path("a.jsonl.lock")).expect("a link");
        assert!(matches!(Lock::take(&tree.path("a.jsonl")), Err(LockError::Io(..))));
        assert_eq!(fs::read_to_string(tree.path("elsewhere")).expect("a file"), "precious");
    }
}
