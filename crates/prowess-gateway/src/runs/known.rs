//! Known runs: which have begun, which are over, and how did they end?
//!
//! A run is known by the name that whoever asked for it gave it, so that asking twice runs once.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use prowess_agent::message::now;
use prowess_agent::session::SessionKey;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::teller::Teller;
use crate::wire::Refusal;

/// How long a run that is over is remembered.
const MEMORY: Duration = Duration::from_secs(5 * 60);

/// How many runs are remembered at most. One that goes on is never forgotten.
const MAX_RUNS: usize = 1_000;

/// One run of an agent.
pub(crate) struct Run {
    /// The name that whoever asked for it gave it.
    pub(crate) id: String,
    /// In which session.
    pub(crate) key: SessionKey,
    /// When it was accepted, in milliseconds since 1970.
    pub(crate) accepted: u64,
    /// Ends it.
    pub(crate) cancel: CancellationToken,
    why: OnceLock<Why>,
    /// Connections that hear of its tools.
    ears: Mutex<Vec<String>>,
    /// Its commands that wait for a person.
    waiting: Mutex<Vec<Value>>,
    /// Who tells of it, once it begins.
    teller: OnceLock<Weak<Teller>>,
    /// Whether clients were told of its end.
    is_told_over: AtomicBool,
    state: watch::Sender<State>,
}

/// How far a run is.
#[derive(Debug, Clone)]
pub(crate) enum State {
    /// Others come first.
    Waiting,
    /// It runs since then, in milliseconds since 1970.
    Running(u64),
    /// It is over since then.
    Ended(Arc<Ended>, Instant),
}

/// Why a run was ended from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// A client asked for it.
    Asked,
    /// Somebody said a word that means stop.
    Said,
    /// Who wanted the answer is gone.
    Gone,
    /// The gateway stops.
    Gateway,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ended {
    /// When it began, if it did, in milliseconds since 1970.
    pub(crate) started: Option<u64>,
    /// When it was over.
    pub(crate) at: u64,
    pub(crate) how: How,
    /// What is answered.
    pub(crate) payload: Value,
}

/// In which way a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum How {
    /// With an answer.
    Done,
    /// Somebody ended it.
    Stopped,
    /// It failed, and why.
    Failed(String),
}

/// What came of asking for a run.
#[derive(Debug)]
pub(crate) enum Begun {
    /// It is a new one.
    New(Arc<Run>),
    /// It was asked for before.
    Known,
    /// Too many go on.
    Full,
}

/// All runs that are remembered.
#[derive(Debug, Default)]
pub(crate) struct Known(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    runs: HashMap<String, Arc<Run>>,
    /// The oldest first.
    order: VecDeque<String>,
}

impl Why {
    /// As clients know it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Asked => "rpc",
            Self::Said => "stop",
            Self::Gone => "disconnect",
            Self::Gateway => "shutdown",
        }
    }
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run").field("id", &self.id).field("key", &self.key).finish_non_exhaustive()
    }
}

impl Run {
    fn new(id: &str, key: &SessionKey, state: State) -> Self {
        Self {
            id: id.to_owned(),
            key: key.clone(),
            accepted: now(),
            cancel: CancellationToken::new(),
            why: OnceLock::new(),
            ears: Mutex::default(),
            waiting: Mutex::default(),
            teller: OnceLock::new(),
            is_told_over: AtomicBool::new(false),
            state: watch::Sender::new(state),
        }
    }

    /// Ends it, for the first reason that is given.
    pub(crate) fn stop(&self, why: Why) {
        // Who comes second does not change why.
        let _ = self.why.set(why);
        self.cancel.cancel();
    }

    /// Why it was ended from outside, if it was.
    pub(crate) fn why(&self) -> Option<Why> {
        self.why.get().copied()
    }

    /// Clients are told of it by `teller`.
    pub(super) fn told_by(&self, teller: &Arc<Teller>) {
        // A run begins once.
        let _ = self.teller.set(Arc::downgrade(teller));
    }

    /// Who tells of it, while it runs.
    pub(crate) fn teller(&self) -> Option<Arc<Teller>> {
        self.teller.get().and_then(Weak::upgrade)
    }

    /// Clients are told that it is over; the journal hears of it right after.
    pub(super) fn tell_over(&self) {
        self.is_told_over.store(true, Ordering::Relaxed);
    }

    /// Whether clients were told that it is over.
    pub(crate) fn is_told_over(&self) -> bool {
        self.is_told_over.load(Ordering::Relaxed)
    }

    /// A command of it waits for a person; see [`prowess_agent::frame::waiting`].
    pub(super) fn begin_waiting(&self, command: Value) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(command);
    }

    /// The command that waited for that approval is over.
    pub(super) fn end_waiting(&self, approval: &str) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).retain(|one| one["approvalId"] != approval);
    }

    /// Its commands that wait for a person.
    pub(crate) fn waiting(&self) -> Vec<Value> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// `conn` hears of its tools from now on.
    pub(crate) fn join(&self, conn: &str) {
        let mut ears = self.ears.lock().unwrap_or_else(PoisonError::into_inner);
        if !ears.iter().any(|known| known == conn) {
            ears.push(conn.to_owned());
        }
    }

    /// Who hears of its tools.
    pub(crate) fn ears(&self) -> Vec<String> {
        self.ears.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn state(&self) -> State {
        self.state.borrow().clone()
    }

    /// It runs.
    pub(crate) fn begin(&self) {
        self.state.send_replace(State::Running(now()));
    }

    /// When it began, if it did.
    pub(crate) fn started(&self) -> Option<u64> {
        match &*self.state.borrow() {
            State::Waiting => None,
            State::Running(at) => Some(*at),
            State::Ended(ended, _) => ended.started,
        }
    }

    /// Whether it is over.
    pub(crate) fn is_over(&self) -> bool {
        matches!(&*self.state.borrow(), State::Ended(..))
    }

    /// It is over. Says whether that is news.
    pub(super) fn end(&self, ended: Ended) -> bool {
        self.state.send_if_modified(|state| {
            if matches!(state, State::Ended(..)) {
                return false;
            }
            *state = State::Ended(Arc::new(ended), Instant::now());
            true
        })
    }

    /// Waits until it is over.
    pub(crate) async fn over(&self) -> Arc<Ended> {
        let mut changes = self.state.subscribe();
        loop {
            if let State::Ended(ended, _) = &*changes.borrow_and_update() {
                return Arc::clone(ended);
            }
            if changes.changed().await.is_err() {
                // The sender is a field of `self`, so this does not happen.
                std::future::pending::<()>().await;
            }
        }
    }
}

impl Ended {
    /// It failed before or while it ran.
    pub(crate) fn failed(run: &str, started: Option<u64>, why: &str) -> Self {
        let payload = json!({"runId": run, "status": "error", "summary": why});
        Self { started, at: now(), how: How::Failed(why.to_owned()), payload }
    }

    /// Somebody ended it before it began.
    pub(crate) fn stopped(run: &str) -> Self {
        let payload = json!({"runId": run, "status": "ok", "summary": "aborted"});
        Self { started: None, at: now(), how: How::Stopped, payload }
    }

    /// What is answered to who asked for the run.
    pub(crate) fn answer(&self) -> Result<Value, Refusal> {
        match &self.how {
            How::Done | How::Stopped => Ok(self.payload.clone()),
            How::Failed(why) => Err(Refusal::unavailable(why.clone()).payload(self.payload.clone())),
        }
    }
}

impl Known {
    /// The run of that name, new or known.
    pub(crate) fn begin(&self, id: &str, key: &SessionKey) -> Begun {
        let mut inner = self.lock();
        if inner.runs.contains_key(id) {
            return Begun::Known;
        }
        inner.forget_old();
        if inner.runs.len() >= MAX_RUNS && !inner.forget_one() {
            return Begun::Full;
        }
        Begun::New(inner.add(Run::new(id, key, State::Waiting)))
    }

    /// Remembers a run from before the gateway was started.
    pub(crate) fn restore(&self, id: &str, key: &SessionKey, ended: Ended) {
        self.lock().add(Run::new(id, key, State::Ended(Arc::new(ended), Instant::now())));
    }

    /// The run of that name.
    pub(crate) fn get(&self, id: &str) -> Option<Arc<Run>> {
        self.lock().runs.get(id).cloned()
    }

    /// The runs of a session that are not over, in the order in which they were asked for.
    pub(crate) fn open(&self, key: &SessionKey) -> Vec<Arc<Run>> {
        let mut open = self.all_open();
        open.retain(|run| run.key == *key);
        open
    }

    /// All runs that are not over.
    pub(crate) fn all_open(&self) -> Vec<Arc<Run>> {
        let inner = self.lock();
        inner.order.iter().filter_map(|id| inner.runs.get(id)).filter(|run| !run.is_over()).cloned().collect()
    }

    /// Forgets a run that came to nothing.
    pub(crate) fn forget(&self, id: &str) {
        let mut inner = self.lock();
        inner.runs.remove(id);
        inner.order.retain(|known| known != id);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn add(&mut self, run: Run) -> Arc<Run> {
        let run = Arc::new(run);
        self.order.push_back(run.id.clone());
        self.runs.insert(run.id.clone(), Arc::clone(&run));
        run
    }

    /// Forgets runs that have been over for long enough. They are looked at from the oldest on, up to one that is not.
    fn forget_old(&mut self) {
        while let Some(id) = self.order.front() {
            let is_old = match self.runs.get(id).map(|run| run.state()) {
                Some(State::Ended(_, at)) => at.elapsed() > MEMORY,
                Some(State::Waiting | State::Running(_)) => false,
                None => true,
            };
            if !is_old {
                return;
            }
            if let Some(id) = self.order.pop_front() {
                self.runs.remove(&id);
            }
        }
    }

    /// Forgets the oldest run that is over. Says whether there was one.
    fn forget_one(&mut self) -> bool {
        let place = self.order.iter().position(|id| self.runs.get(id).is_none_or(|run| run.is_over()));
        let Some(id) = place.and_then(|place| self.order.remove(place)) else { return false };
        self.runs.remove(&id);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> SessionKey {
        SessionKey::new("main", "main")
    }

    #[test]
    fn asking_twice_runs_once() {
        let known = Known::default();
        let Begun::New(run) = known.begin("a", &key()) else { panic!("it is new") };
        assert!(matches!(known.begin("a", &key()), Begun::Known));
        assert!(known.get("a").is_some_and(|same| Arc::ptr_eq(&same, &run)));
        assert_eq!(known.open(&key()).len(), 1);
        assert!(run.end(Ended::stopped("a")));
        assert!(!run.end(Ended::failed("a", None, "too late")), "a run ends once");
        assert!(known.open(&key()).is_empty());
        assert!(matches!(known.begin("a", &key()), Begun::Known), "and is remembered");
    }

    #[test]
    fn a_run_that_goes_on_is_never_forgotten() {
        let known = Known::default();
        let Begun::New(first) = known.begin("first", &key()) else { panic!("it is new") };
        for number in 0..MAX_RUNS * 2 {
            let Begun::New(run) = known.begin(&number.to_string(), &key()) else { panic!("there is room") };
            run.end(Ended::stopped(&run.id));
        }
        assert!(known.get("first").is_some_and(|run| Arc::ptr_eq(&run, &first)));
        assert!(known.get("0").is_none(), "others are");
        assert!(known.lock().runs.len() <= MAX_RUNS && known.lock().order.len() <= MAX_RUNS);
    }

    #[test]
    fn there_is_an_end_to_what_can_go_on() {
        let known = Known::default();
        for number in 0..MAX_RUNS {
            assert!(matches!(known.begin(&number.to_string(), &key()), Begun::New(_)));
        }
        assert!(matches!(known.begin("one more", &key()), Begun::Full));
    }

    #[test]
    fn the_first_reason_counts() {
        let run = Run::new("a", &key(), State::Waiting);
        run.stop(Why::Said);
        run.stop(Why::Gateway);
        assert_eq!(run.why(), Some(Why::Said));
        assert!(run.cancel.is_cancelled());
    }
}
