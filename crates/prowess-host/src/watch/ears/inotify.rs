//! Ears on Linux: an inotify queue, and a bell beside it.
//!
//! The kernel counts a watch by folder, not by path: asking again for a folder that is watched gives the same number, and
//! another folder in its place another. So following a plan is asking for all of it and dropping what was not asked for,
//! and a number that was not there before says that something may have gone unheard.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;

use super::{Armed, Until, is_remote};
use crate::watch::heard::{Heard, Kind};
use crate::watch::plan::{Interest, Plan};

/// Bytes of events that are read at once.
const BUFFER: usize = 8 * 1024;
/// Events that are taken at once: a storm must not keep us listening for ever.
const MAX_EVENTS: usize = 64 * 1024;

/// What tells that names come, go or may be used, by whom ever.
const NAMES: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR)
    .union(WatchFlags::MASK_ADD);

/// Events after which a name stands for something else, or for nothing.
const SHAPE: ReadFlags = ReadFlags::CREATE
    .union(ReadFlags::DELETE)
    .union(ReadFlags::MOVED_FROM)
    .union(ReadFlags::MOVED_TO)
    .union(ReadFlags::DELETE_SELF)
    .union(ReadFlags::MOVE_SELF)
    .union(ReadFlags::UNMOUNT)
    .union(ReadFlags::IGNORED);

/// Wakes whoever waits.
#[derive(Debug, Clone)]
pub(crate) struct Bell(Arc<OwnedFd>);

impl Bell {
    /// Rings it.
    pub(crate) fn ring(&self) {
        // It fails only when it has been rung more often than a number can count, and then it rings already.
        let _ = rustix::io::write(&*self.0, &1_u64.to_ne_bytes());
    }
}

/// A folder that is watched.
#[derive(Debug)]
struct Watched {
    dir: PathBuf,
    interest: Interest,
}

/// An inotify queue, if one can be had, and a bell.
#[derive(Debug)]
pub(crate) struct Ears {
    queue: Option<OwnedFd>,
    bell: Bell,
    /// By the kernel's numbers.
    watched: HashMap<i32, Watched>,
}

impl Ears {
    /// With a queue and a bell of their own.
    pub(crate) fn new() -> io::Result<Self> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        // There is a limit for each user. Without a queue the disk is asked now and then.
        let queue = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok();
        Ok(Self { queue, bell: Bell(Arc::new(bell)), watched: HashMap::new() })
    }

    /// What wakes them.
    pub(crate) fn bell(&self) -> Bell {
        self.bell.clone()
    }

    /// Watches what `plan` says, and nothing else.
    pub(crate) fn arm(&mut self, plan: &Plan) -> Armed {
        let Some(queue) = &self.queue else { return Armed { is_partial: true, ..Armed::default() } };
        let mut armed =
            Armed { is_partial: plan.is_cut() || plan.roots().iter().any(|root| is_remote(root)), ..Armed::default() };
        let mut watched: HashMap<i32, Watched> = HashMap::with_capacity(self.watched.len());
        for (dir, interest) in plan.dirs() {
            let mask = if interest.reads() { NAMES | WatchFlags::MODIFY } else { NAMES };
            match inotify::add_watch(queue, dir, mask) {
                Ok(number) => {
                    armed.new += usize::from(!self.watched.contains_key(&number) && !watched.contains_key(&number));
                    let known = watched
                        .entry(number)
                        .or_insert_with(|| Watched { dir: dir.to_owned(), interest: Interest::default() });
                    known.interest.merge(interest.clone());
                }
                // It is gone again, which is heard where it was; or nobody lets us look, and only its name matters.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                Err(Errno::ACCESS) if !interest.reads() => {}
                Err(_) => armed.is_partial = true,
            }
        }
        let old = std::mem::replace(&mut self.watched, watched);
        for number in old.into_keys().filter(|number| !self.watched.contains_key(number)) {
            // One that died by itself is already gone.
            let _ = inotify::remove_watch(queue, number);
        }
        armed.watches = self.watched.len();
        armed
    }

    /// Watches nothing.
    pub(crate) fn disarm(&mut self) {
        let Some(queue) = &self.queue else { return };
        for number in std::mem::take(&mut self.watched).into_keys() {
            // One that died by itself is already gone.
            let _ = inotify::remove_watch(queue, number);
        }
    }

    /// Waits, at most for `limit`.
    pub(crate) fn wait(&self, until: Until, limit: Option<Duration>) {
        let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
        let bell = PollFd::new(&*self.bell.0, PollFlags::IN);
        let queue = self.queue.as_ref().filter(|_| until == Until::Anything);
        let mut waited: Vec<PollFd<'_>> = queue.map(|queue| PollFd::new(queue, PollFlags::IN)).into_iter().collect();
        waited.push(bell);
        // A signal wakes us early, which does no harm.
        let _ = poll(&mut waited, limit.as_ref());
        let mut count = [0; 8];
        // When it was not rung there is nothing to take.
        let _ = rustix::io::read(&*self.bell.0, &mut count);
    }

    /// Takes what is in the queue, notes what matters, and says whether anything did.
    pub(crate) fn hear(&mut self, heard: &mut Heard) -> bool {
        let Some(queue) = &self.queue else { return false };
        let mut buffer = [MaybeUninit::uninit(); BUFFER];
        let mut reader = Reader::new(queue, &mut buffer);
        let mut matters = false;
        for _ in 0..MAX_EVENTS {
            let Ok(event) = reader.next() else { break };
            let events = event.events();
            if events.contains(ReadFlags::QUEUE_OVERFLOW) {
                heard.note_loss();
                matters = true;
                continue;
            }
            // Watches that were dropped may still have said something.
            let Some(watched) = self.watched.get(&event.wd()) else { continue };
            let kind = if events.intersects(SHAPE) { Kind::Shape } else { Kind::Content };
            let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()));
            let minds = |name: &OsStr| watched.interest.minds(name, kind, events.contains(ReadFlags::ISDIR));
            // Without a name it is about the folder itself.
            if name.is_none_or(minds) {
                heard.note(name.map_or_else(|| watched.dir.clone(), |name| watched.dir.join(name)), kind);
                matters = true;
            }
            if events.contains(ReadFlags::IGNORED) {
                self.watched.remove(&event.wd());
            }
        }
        matters
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use prowess_skills::Place;
    use prowess_testkit::Tree;

    use super::*;

    fn plan(tree: &Tree, dirs: &[&str]) -> Plan {
        Plan::of_places(&dirs.iter().map(|dir| Place::Folder(tree.path(dir))).collect::<Vec<_>>())
    }

    fn heard(ears: &mut Ears, tree: &Tree) -> Vec<String> {
        let mut heard = Heard::default();
        ears.hear(&mut heard);
        heard.paths.iter().map(|path| tree.mask(&path.to_string_lossy())).collect()
    }

    #[test]
    fn a_folder_is_watched_once_however_it_is_called() {
        let tree = Tree::new().dir("a").symlink("b", "a").dir("c");
        let mut ears = Ears::new().expect("ears");
        let armed = ears.arm(&plan(&tree, &["a", "b", "c", "missing"]));
        assert_eq!(armed, Armed { new: 2, watches: 2, is_partial: false });
        assert_eq!(ears.arm(&plan(&tree, &["b", "c"])).new, 0);
        assert_eq!(ears.arm(&plan(&tree, &["c"])).watches, 1);
        fs::write(tree.path("a/SKILL.md"), "x").expect("written");
        assert!(heard(&mut ears, &tree).is_empty());
        fs::write(tree.path("c/SKILL.md"), "x").expect("written");
        assert_eq!(heard(&mut ears, &tree), ["$ROOT/c/SKILL.md"]);
        ears.disarm();
        fs::write(tree.path("c/SKILL.md"), "y").expect("written");
        assert!(heard(&mut ears, &tree).is_empty());
    }

    #[test]
    fn another_folder_in_its_place_is_new() {
        let tree = Tree::new().dir("a/sub").dir("b");
        let mut ears = Ears::new().expect("ears");
        ears.arm(&plan(&tree, &["a"]));
        fs::rename(tree.path("a"), tree.path("away")).expect("renamed");
        fs::rename(tree.path("b"), tree.path("a")).expect("renamed");
        assert_eq!(heard(&mut ears, &tree), ["$ROOT/a"]);
        assert_eq!(ears.arm(&plan(&tree, &["a"])).new, 1);
        fs::remove_dir_all(tree.path("a")).expect("removed");
        fs::create_dir(tree.path("a")).expect("made");
        assert_eq!(heard(&mut ears, &tree), ["$ROOT/a"]);
        assert_eq!(ears.arm(&plan(&tree, &["a"])), Armed { new: 1, watches: 1, is_partial: false });
        fs::write(tree.path("a/SKILL.md"), "x").expect("written");
        assert_eq!(heard(&mut ears, &tree), ["$ROOT/a/SKILL.md"]);
    }

    #[test]
    fn reading_is_not_heard() {
        let tree = Tree::new().plant("a: d");
        let mut ears = Ears::new().expect("ears");
        ears.arm(&plan(&tree, &["a"]));
        fs::read(tree.path("a/SKILL.md")).expect("read");
        assert_eq!(tree.path("a").read_dir().expect("listed").count(), 1);
        assert!(heard(&mut ears, &tree).is_empty());
    }

    #[test]
    fn a_queue_that_overflows_may_have_held_anything() {
        let limit = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").expect("a setting");
        let limit: usize = limit.trim().parse().expect("a number");
        // Where the queue is longer than that, nobody fills it in a test.
        if limit > 200_000 {
            return;
        }
        let tree = Tree::new().file("a/SKILL.md", "").file("a/skill.md", "");
        let mut ears = Ears::new().expect("ears");
        ears.arm(&plan(&tree, &["a"]));
        // In turn, because the kernel keeps equal events in a row only once.
        let touch = |name: &str| fs::set_permissions(tree.path(name), fs::metadata(tree.path(name))?.permissions());
        for _ in 0..=limit / 2 {
            touch("a/SKILL.md").and_then(|()| touch("a/skill.md")).expect("touched");
        }
        let mut heard = Heard::default();
        while ears.hear(&mut heard) {}
        assert!(heard.is_everything && heard.is_shape);
        assert_eq!(heard.paths.len(), 2);
    }

    #[test]
    fn the_bell_is_heard_even_if_it_rang_before() {
        let ears = Ears::new().expect("ears");
        ears.bell().ring();
        ears.wait(Until::Rung, None);
        let bell = ears.bell();
        std::thread::scope(|scope| {
            scope.spawn(move || bell.ring());
            ears.wait(Until::Anything, None);
        });
        ears.wait(Until::Rung, Some(Duration::ZERO));
    }
}
