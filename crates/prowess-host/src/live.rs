//! Live: how does an agent get to see skills that change while it works?
//!
//! One [`Live`] for each agent keeps the newest [`View`] and puts its skills into the store that conversations take them
//! from when a turn begins. A thread of its own notices changes and refreshes once for each burst of them; whoever is
//! about to begin a turn asks for a refresh itself and so depends on nobody's being told in time. Both read only what
//! changed. Nothing that cannot be read now takes away what was read before.

mod desk;
mod listener;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread::JoinHandle;

use prowess_agent::skills::{ShareOf, SkillSet, SkillStore};
use prowess_skills::Machine;
use tokio::sync::watch;

use crate::context::{Ground, View};
use crate::conversation::skills_sharing;
use crate::failure::Failure;
use crate::share::Shares;
use crate::watch::{Bell, Ears, Heard, Means};
use desk::{Desk, Outcome};

/// Whether changes are noticed between refreshes that somebody asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Watching {
    /// As the configuration says: by a thread that waits for them, unless watching is switched off.
    #[default]
    Configured,
    /// Not at all. For programs that only look when a turn begins.
    OnDemand,
}

/// Why there was a refresh.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Cause {
    /// It is the first.
    #[default]
    Start,
    /// Something changed on disk.
    Disk,
    /// Somebody asked for it.
    Asked,
    /// Other machines can be reached, or have other programs.
    Remote,
}

/// Something that a person or a model can see is not what it was.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// How many there were before it.
    pub number: u64,
    /// Why anybody looked.
    pub cause: Cause,
    /// Where something changed, as far as it is known; some of it, when there is much.
    pub paths: Vec<PathBuf>,
    /// Whether models are told something else than before.
    pub is_prompt: bool,
}

/// How it goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// How often the disk was looked at.
    pub refreshes: u64,
    /// How many files the last look opened.
    pub read: usize,
    /// How many folders are watched.
    pub watches: usize,
    /// Whether the disk is asked now and then, because watching alone would miss something.
    pub is_polling: bool,
}

/// What a new session begins with.
#[derive(Clone)]
pub struct Opened {
    /// The skills as they are now.
    pub view: Arc<View>,
    /// Where the session takes its skills from. Where watching is off they never change.
    pub skills: SkillStore,
}

/// The skills of one agent, kept up to date for as long as this lives.
pub struct Live {
    shared: Arc<Shared>,
    listener: Option<JoinHandle<()>>,
}

impl Live {
    /// Loads the skills, and keeps them up to date from then on.
    pub fn start(ground: Ground, watching: Watching) -> Result<Arc<Self>, Failure> {
        let (desk, view) = Desk::open(ground)?;
        let ears = match watching {
            Watching::Configured => Some(Ears::new().map_err(Failure::ours)?),
            Watching::OnDemand => None,
        };
        let shared = Arc::new(Shared::new(desk, view, ears.as_ref().map(Ears::bell)));
        let listener = ears.map(|ears| listener::spawn(Arc::clone(&shared), ears)).transpose();
        let listener = listener.map_err(|error| Failure::ours(format!("cannot start a thread: {error}")))?;
        Ok(Arc::new(Self { shared, listener }))
    }

    /// The newest skills, without looking at the disk.
    #[must_use]
    pub fn view(&self) -> Arc<View> {
        self.shared.view()
    }

    /// Where conversations take their skills from.
    #[must_use]
    pub fn skills(&self) -> SkillStore {
        self.shared.skills.clone()
    }

    /// Tells of every change that a person or a model can see.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<Change> {
        self.shared.changes.subscribe()
    }

    /// Sees to it that everything that changed on disk before this call is in the view and in the store; call it when a
    /// turn begins. Where watching is off, nothing is looked at. Blocks for as long as reading takes.
    pub fn refresh_now(&self) {
        self.shared.refresh_now();
    }

    /// The skills as they are on disk now, for whoever wants them even where watching is off. In that case nobody else
    /// gets to see them.
    #[must_use]
    pub fn fresh(&self) -> Arc<View> {
        let mut desk = self.shared.desk();
        desk.check_config();
        if desk.settings().is_on {
            drop(desk);
            self.refresh_now();
            return self.view();
        }
        desk.look().map_or_else(|| self.shared.view(), Arc::new)
    }

    /// What a new session begins with.
    #[must_use]
    pub fn open(&self) -> Opened {
        let view = self.fresh();
        let is_shared = self.shared.desk().settings().is_on;
        let own = || SkillStore::new(crate::conversation::skills(&view));
        let skills = if is_shared { self.skills() } else { own() };
        Opened { view, skills }
    }

    /// From now on these machines can be reached besides this host, and models are told `note` about them.
    pub fn set_remote(&self, machines: Vec<Machine>, note: Option<String>) {
        let mut desk = self.shared.desk();
        let view = desk.set_remote(&self.shared.view(), machines, note);
        self.shared.publish(view, Cause::Remote, Heard::default());
    }

    /// Reads the configuration again, and the skills by it, even where watching is off. Says what is wrong with it; then
    /// the old one stays.
    pub fn reload_config(&self) -> Result<Arc<View>, Failure> {
        let mut desk = self.shared.desk();
        let failure = desk.reload_config();
        if let Some(view) = desk.look() {
            self.shared.publish(view, Cause::Asked, Heard::default());
        }
        drop(desk);
        self.shared.wake();
        failure.map(|()| self.shared.view())
    }

    /// How it goes.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let shared = &self.shared;
        Stats {
            refreshes: shared.begun.load(Ordering::SeqCst),
            read: shared.read.load(Ordering::SeqCst),
            watches: shared.watches.load(Ordering::SeqCst),
            is_polling: shared.is_polling.load(Ordering::SeqCst),
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        self.shared.wake();
        if let Some(listener) = self.listener.take() {
            // It has told of its panic already, and nobody waits for its result.
            let _ = listener.join();
        }
    }
}

/// What the thread and its owner share.
struct Shared {
    /// Where refreshing happens, one at a time.
    desk: Mutex<Desk>,
    view: RwLock<Arc<View>>,
    skills: SkillStore,
    /// What skills bring, by the newest configuration: a key that was replaced counts at once.
    shares: Arc<RwLock<Arc<Shares>>>,
    changes: watch::Sender<Change>,
    bell: Option<Bell>,
    is_over: AtomicBool,
    /// Looks at the disk that have begun.
    begun: AtomicU64,
    read: AtomicUsize,
    watches: AtomicUsize,
    is_polling: AtomicBool,
}

impl Shared {
    fn new(desk: Desk, view: View, bell: Option<Bell>) -> Self {
        let shares = Arc::new(RwLock::new(Arc::new(Shares::of(&view))));
        let read = AtomicUsize::new(desk.read());
        Self {
            skills: SkillStore::new(skills_sharing(&view, share_of(&shares))),
            desk: Mutex::new(desk),
            view: RwLock::new(Arc::new(view)),
            shares,
            changes: watch::Sender::new(Change::default()),
            bell,
            is_over: AtomicBool::new(false),
            begun: AtomicU64::new(1),
            read,
            watches: AtomicUsize::new(0),
            is_polling: AtomicBool::new(false),
        }
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn view(&self) -> Arc<View> {
        Arc::clone(&self.view.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn wake(&self) {
        if let Some(bell) = &self.bell {
            bell.ring();
        }
    }

    /// Looks at the disk, unless somebody else has begun to after this was called.
    fn refresh_now(&self) {
        let asked = self.begun.load(Ordering::SeqCst);
        let mut desk = self.desk();
        if self.begun.load(Ordering::SeqCst) == asked {
            self.refresh(&mut desk, Cause::Asked, Heard::default());
            drop(desk);
            // Folders that are new have to be watched as well.
            self.wake();
        }
    }

    fn refresh(&self, desk: &mut Desk, cause: Cause, heard: Heard) {
        self.begun.fetch_add(1, Ordering::SeqCst);
        match desk.refresh(&heard) {
            Outcome::View(view) => self.publish(*view, cause, heard),
            Outcome::Off => {}
        }
        self.read.store(desk.read(), Ordering::SeqCst);
    }

    /// Puts `view` where everyone finds it, and tells, if it is not the one that is there. The caller holds the desk.
    fn publish(&self, view: View, cause: Cause, heard: Heard) {
        let old = self.view();
        if desk::are_same(&old, &view) {
            return;
        }
        *self.shares.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(Shares::of(&view));
        let before = self.skills.current();
        self.skills.replace(self.skill_set(&view));
        let is_prompt = before.snapshot.fingerprint() != self.skills.current().snapshot.fingerprint();
        *self.view.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(view);
        self.changes.send_modify(|change| {
            let paths = heard.paths.into_iter().collect();
            *change = Change { number: change.number + 1, cause, paths, is_prompt };
        });
    }

    fn skill_set(&self, view: &View) -> SkillSet {
        skills_sharing(view, share_of(&self.shares))
    }

    /// Notes what the ears are able to do.
    fn note_watches(&self, watches: usize, means: Means) {
        self.watches.store(watches, Ordering::SeqCst);
        self.is_polling.store(means == Means::Polling, Ordering::SeqCst);
    }
}

/// Finds what a skill brings by whatever the newest configuration says then.
fn share_of(shares: &Arc<RwLock<Arc<Shares>>>) -> ShareOf {
    let shares = Arc::clone(shares);
    Arc::new(move |skill| {
        let newest = Arc::clone(&shares.read().unwrap_or_else(PoisonError::into_inner));
        newest.share(skill).map_err(|failure| failure.sentence())
    })
}
