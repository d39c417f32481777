//! The family: which processes belong to a run, and how are all of them told to end?
//!
//! A run is one process, the leader, and everything that came of it: its session, its group, its network namespace if it
//! has one, and every descendant of a member, even after moving to a session of its own. Members are remembered with the time they began, so that one
//! who loses its parent is still known, and a stranger with the same number is not taken for it. The leader is not
//! reaped before the family is gone: its number cannot be given to a stranger while we use it.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::sync::Mutex;

/// One process as the system lists it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pid: Pid,
    parent: i32,
    group: i32,
    session: i32,
    began: u64,
    dead: bool,
}

/// A list of all processes, shared: a thousand runs that end together look at a few lists, not at a thousand.
#[derive(Debug, Default)]
pub(super) struct Census {
    last: Mutex<Option<(Instant, Arc<Vec<Entry>>)>>,
}

impl Census {
    /// A list made after `moment`.
    pub(super) async fn after(&self, moment: Instant) -> Arc<Vec<Entry>> {
        let mut newest = self.last.lock().await;
        if let Some((made, known)) = newest.as_ref()
            && *made > moment
        {
            return Arc::clone(known);
        }
        let made = Instant::now();
        let list = Arc::new(tokio::task::spawn_blocking(processes).await.unwrap_or_default());
        *newest = Some((made, Arc::clone(&list)));
        list
    }
}

/// The processes of one run.
#[derive(Debug)]
pub(super) struct Family {
    leader: Pid,
    /// The number of the network namespace that only they are in.
    namespace: Option<u64>,
    known: HashSet<(i32, u64)>,
    gone: bool,
}

impl Family {
    /// The family that will come of `leader`.
    pub(super) fn of(leader: Pid) -> Self {
        Self { leader, namespace: None, known: HashSet::new(), gone: false }
    }

    /// They have the network namespace with this number to themselves. A socket of it has to stay open for as long as
    /// they are looked after, or the kernel could give the number to another.
    pub(super) fn live_in(&mut self, namespace: u64) {
        self.namespace = Some(namespace);
    }

    /// Nobody has to be looked after any more.
    pub(super) fn forget(&mut self) {
        self.gone = true;
    }

    /// Sends `signal` to `members`, who were alive a moment ago.
    pub(super) fn signal(&self, members: &[Pid], signal: Signal) {
        // One who has ended in the meantime needs no signal, and one who may not be reached is seen to be left.
        let _ = kill_process_group(self.leader, signal);
        for &member in members {
            let _ = kill_process(member, signal);
        }
    }

    /// Who of them is alive.
    #[cfg(target_os = "linux")]
    pub(super) fn alive(&mut self, list: &[Entry]) -> Vec<Pid> {
        let leader = self.leader.as_raw_nonzero().get();
        let began = list.iter().find(|entry| entry.pid == self.leader).map_or(0, |entry| entry.began);
        let is_inside = |entry: &&Entry| {
            entry.began >= began
                && self.namespace.is_some()
                && network_of(entry.pid.as_raw_nonzero().get()) == self.namespace
        };
        let mut members: HashSet<i32> =
            list.iter().filter(is_inside).map(|entry| entry.pid.as_raw_nonzero().get()).collect();
        let mut grown = true;
        while std::mem::take(&mut grown) {
            for entry in list {
                let pid = entry.pid.as_raw_nonzero().get();
                let belongs = [pid, entry.group, entry.session].contains(&leader)
                    || members.contains(&entry.parent)
                    || self.known.contains(&(pid, entry.began));
                grown |= belongs && members.insert(pid);
            }
        }
        let ours = list.iter().filter(|entry| members.contains(&entry.pid.as_raw_nonzero().get()));
        self.known.extend(ours.clone().map(|entry| (entry.pid.as_raw_nonzero().get(), entry.began)));
        ours.filter(|entry| !entry.dead).map(|entry| entry.pid).collect()
    }

    /// Who of them is alive. Without a list of processes only the group can be asked, as one.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn alive(&mut self, _list: &[Entry]) -> Vec<Pid> {
        rustix::process::test_kill_process_group(self.leader).map(|()| self.leader).into_iter().collect()
    }
}

impl Drop for Family {
    /// A run that is dropped in the middle, because the program ends, takes its processes with it.
    fn drop(&mut self) {
        if !self.gone {
            let members = self.alive(&processes());
            self.signal(&members, Signal::KILL);
        }
    }
}

/// All processes of this system.
#[cfg(target_os = "linux")]
fn processes() -> Vec<Entry> {
    use std::io::Read as _;
    let mut line = [0; 1024];
    let entry = |pid: i32| {
        let length = std::fs::File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut line).ok()?;
        // A process chooses its own name, which need not be text. That must not hide it.
        parse(&String::from_utf8_lossy(&line[..length]))
    };
    process_numbers().filter_map(entry).collect()
}

/// The numbers of all processes. Where the system does not list them, none.
pub(crate) fn process_numbers() -> impl Iterator<Item = i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The number of the network namespace of a process, if this process may look at it.
pub(crate) fn network_of(process: i32) -> Option<u64> {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata(format!("/proc/{process}/ns/net")).ok().map(|entry| entry.ino())
}

#[cfg(not(target_os = "linux"))]
fn processes() -> Vec<Entry> {
    Vec::new()
}

/// One line of `/proc/PID/stat`. The name in brackets may hold anything, brackets and line breaks included.
fn parse(stat: &str) -> Option<Entry> {
    let (pid, _) = stat.split_once(' ')?;
    let (_, rest) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    Some(Entry {
        pid: Pid::from_raw(pid.parse().ok()?)?,
        dead: matches!(*fields.first()?, "Z" | "X" | "x"),
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        began: fields.get(19)?.parse().ok()?,
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::process::Pid;

    use super::{Entry, Family, parse};

    fn entry(pid: i32, parent: i32, group: i32, session: i32, began: u64) -> Entry {
        Entry { pid: Pid::from_raw(pid).expect("a number above zero"), parent, group, session, began, dead: false }
    }

    fn alive(family: &mut Family, list: &[Entry]) -> Vec<i32> {
        family.alive(list).into_iter().map(|pid| pid.as_raw_nonzero().get()).collect()
    }

    #[test]
    fn a_name_cannot_forge_the_fields() {
        let stat = "42 (a) Z 1 1 1 (b) S 7 8 9 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 12345 1 1";
        let entry = parse(stat).unwrap();
        assert_eq!((entry.parent, entry.group, entry.session, entry.began, entry.dead), (7, 8, 9, 12345, false));
        assert!(parse("").is_none() && parse("1 (x) S 1").is_none());
    }

    #[test]
    fn descendants_belong_wherever_they_moved() {
        let mut family = Family::of(Pid::from_raw(10).unwrap());
        // These processes are made up: nobody must be signalled when the test is over.
        family.forget();
        let list = [
            entry(1, 0, 1, 1, 1),
            // Listed before its parent.
            entry(5, 12, 5, 5, 60),
            entry(10, 2, 10, 10, 50),
            entry(11, 10, 10, 10, 51),
            entry(12, 11, 12, 12, 52),
            entry(20, 2, 20, 20, 40),
        ];
        assert_eq!(alive(&mut family, &list), [5, 10, 11, 12]);
        // Its parent is gone, and 20 has become another process: the first is still ours, the second is not.
        let later = [entry(1, 0, 1, 1, 1), entry(5, 1, 5, 5, 60), entry(12, 1, 12, 12, 99), entry(20, 2, 20, 20, 70)];
        assert_eq!(alive(&mut family, &later), [5]);
    }
}
