//! Jobs: what runs now, what ran, and who may ask about it?
//!
//! Each job is looked after by one task that owns its process, its streams and its output. Everybody else has a
//! [`Job`], which sends that task messages and sees its [`State`] change. The [`Runner`] has the table of them all.

mod family;
mod spawn;
mod table;
mod task;
mod words;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use tokio::sync::{Notify, Semaphore, mpsc, oneshot, watch};

use self::family::Census;
pub(crate) use self::family::{network_of, process_numbers};
use self::table::Table;
pub use self::task::{News, Then};
use self::task::{Order, Task};
use crate::launch::Launch;
use crate::output::{self, Kept, Output};
use crate::sandbox::{Refused, SetAside};

/// How many messages may wait for a job.
const MESSAGES: usize = 64;

/// How long finished jobs are kept, at least and at most.
const KEEP_RANGE: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(3 * 60 * 60));

/// The bounds of jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How much of each output is kept.
    pub output: output::Limits,
    /// Between asking processes to end and killing them.
    pub grace: Duration,
    /// After a process has ended, how long its output is waited for when somebody else still holds it open.
    pub drain: Duration,
    /// How long finished jobs are kept.
    pub keep: Duration,
    /// How many finished jobs are kept.
    pub finished: usize,
    /// How many jobs may run at once.
    pub running: usize,
}

impl Limits {
    /// These limits with finished jobs kept for `keep`, as far as that is sensible.
    #[must_use]
    pub fn keep(self, keep: Duration) -> Self {
        Self { keep: keep.clamp(KEEP_RANGE.0, KEEP_RANGE.1), ..self }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            output: output::Limits::default(),
            grace: Duration::from_secs(3),
            drain: Duration::from_millis(200),
            keep: Duration::from_secs(30 * 60),
            finished: 100,
            running: 2_048,
        }
    }
}

/// Where the time of day comes from.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> SystemTime + Send + Sync>);

impl Clock {
    /// A clock that shows what `read` returns.
    pub fn new(read: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }

    /// What it shows.
    #[must_use]
    pub fn now(&self) -> SystemTime {
        (self.0)()
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new(SystemTime::now)
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

/// Where the names of jobs come from.
#[derive(Clone)]
pub struct Random(Arc<dyn Fn() -> u128 + Send + Sync>);

impl Random {
    /// A source that gives what `draw` returns.
    pub fn new(draw: impl Fn() -> u128 + Send + Sync + 'static) -> Self {
        Self(Arc::new(draw))
    }
}

impl Default for Random {
    fn default() -> Self {
        Self::new(|| uuid::Uuid::new_v4().as_u128())
    }
}

impl fmt::Debug for Random {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Random")
    }
}

/// What a program has for input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// Nothing: it ends at once.
    Closed,
    /// A pipe that stays open.
    Piped,
    /// A terminal, for output too.
    Terminal,
}

/// What happens to processes that a program leaves behind when it ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Leftovers {
    /// They are ended with it.
    #[default]
    End,
    /// They are left alone. Nobody looks after them any more.
    Keep,
}

/// How a launch is looked after. What runs is the launch's alone.
#[derive(Debug, Clone, Default)]
pub struct Start {
    /// The directory it runs in, as the caller wrote it.
    pub shown_cwd: String,
    /// How long it may take.
    pub timeout: Option<Duration>,
    /// Who may ask about it.
    pub scope: String,
    /// What happens to what it leaves behind.
    pub leftovers: Leftovers,
}

/// Why nothing was started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The system did not start the program.
    #[error("the program could not be started: {0}")]
    Spawn(#[source] io::Error),
    /// There is no terminal for it.
    #[error("cannot create a terminal: {0}")]
    Terminal(#[source] io::Error),
    /// The helper could not be told what to do.
    #[error("cannot send the order to the sandbox helper: {0}")]
    Helper(#[source] io::Error),
    /// The helper said nothing and did nothing.
    #[error("the sandbox helper did not answer")]
    Silent,
    /// The helper said no.
    #[error("the sandbox refused: {0}")]
    Refused(#[source] Refused),
    /// It ended before it had a number.
    #[error("the program ended before it started")]
    Vanished,
    /// Too many are running.
    #[error("{0} commands are already running, which is the limit; wait for one to finish, or stop one")]
    TooMany(usize),
}

/// Why a program was given no input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// It takes none.
    #[error("its input is closed")]
    Closed,
    /// It has not read what it was given before.
    #[error("it has not read its earlier input yet")]
    Full,
    /// It is over.
    #[error("it has ended")]
    Ended,
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with a code.
    Code(i32),
    /// By a signal that did not come from us.
    Signal(String),
    /// We ended it, because its time was up.
    TimedOut,
    /// We ended it, because somebody asked for that.
    Killed,
}

impl Exit {
    /// Whether the program ran and came to its own end. The codes with which a shell says that it could not even start
    /// something do not count.
    #[must_use]
    pub fn is_completed(&self) -> bool {
        match self {
            Self::Code(code) => !matches!(code, 126 | 127),
            Self::Signal(_) | Self::TimedOut | Self::Killed => false,
        }
    }
}

/// What came of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// How it ended.
    pub exit: Exit,
    /// Its exit code, if it has one.
    pub code: Option<i32>,
    /// The signal that ended it, if one did.
    pub signal: Option<String>,
    /// How long it took.
    pub duration: Duration,
    /// What it said.
    pub output: Kept,
    /// The end of that.
    pub tail: String,
    /// What nobody had asked for when it ended.
    pub unread: News,
    /// How many processes it left behind that were ended.
    pub ended_with_it: usize,
    /// How many processes could not be ended.
    pub left: usize,
    /// Protected files that it left behind, and what became of them.
    pub set_aside: Vec<SetAside>,
    /// Connections that were refused or failed: a line for each.
    pub failed_connections: Vec<String>,
    /// When it ended.
    pub ended_at: SystemTime,
}

impl Outcome {
    /// Of a job whose task is gone.
    fn lost(ended_at: SystemTime) -> Self {
        Self {
            exit: Exit::Killed,
            code: None,
            signal: None,
            duration: Duration::ZERO,
            output: Kept::default(),
            tail: String::new(),
            unread: News::default(),
            ended_with_it: 0,
            left: 0,
            set_aside: Vec::new(),
            failed_connections: Vec::new(),
            ended_at,
        }
    }
}

/// Whether a job is over.
#[derive(Debug, Clone)]
pub enum State {
    /// It runs, and has said something this many times.
    Running(u64),
    /// It is over.
    Finished(Arc<Outcome>),
}

impl State {
    fn grow(&mut self) {
        if let Self::Running(count) = self {
            *count += 1;
        }
    }
}

/// A job, seen from outside.
#[derive(Debug)]
pub struct Job {
    /// Its name.
    pub id: String,
    /// The number of its first process.
    pub pid: u32,
    /// The command as people know it.
    pub command: String,
    /// The folder it runs in, as the caller wrote it.
    pub cwd: String,
    /// Who may ask about it.
    pub scope: String,
    /// When it began.
    pub started_at: SystemTime,
    backgrounded: AtomicBool,
    orders: mpsc::Sender<Order>,
    kill: Arc<Notify>,
    state: watch::Receiver<State>,
}

impl Job {
    /// Its outcome, if it is over.
    #[must_use]
    pub fn outcome(&self) -> Option<Arc<Outcome>> {
        // Asked first: whoever has gone without saying anything by now never will.
        let abandoned = self.state.has_changed().is_err();
        match &*self.state.borrow() {
            State::Finished(outcome) => Some(Arc::clone(outcome)),
            State::Running(_) => abandoned.then(|| Arc::new(Outcome::lost(self.started_at))),
        }
    }

    /// Its state, now and whenever it changes.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<State> {
        self.state.clone()
    }

    /// Waits until it is over.
    pub async fn wait(&self) -> Arc<Outcome> {
        let mut state = self.state.clone();
        match state.wait_for(|state| matches!(state, State::Finished(_))).await.as_deref() {
            Ok(State::Finished(outcome)) => Arc::clone(outcome),
            Ok(State::Running(_)) | Err(_) => Arc::new(Outcome::lost(self.started_at)),
        }
    }

    /// What came since the last time; once it is over, what was left.
    pub async fn news(&self) -> News {
        match self.ask(Order::Drain).await {
            Some(news) => news,
            None => self.wait().await.unread.clone(),
        }
    }

    /// What is kept of its output.
    pub async fn output(&self) -> Kept {
        match self.ask(Order::Show).await {
            Some(kept) => kept,
            None => self.wait().await.output.clone(),
        }
    }

    /// The end of its output.
    pub async fn tail(&self) -> String {
        match self.ask(Order::Tail).await {
            Some(tail) => tail,
            None => self.wait().await.tail.clone(),
        }
    }

    /// Gives it input.
    pub async fn write(&self, bytes: Vec<u8>, then: Then) -> Result<(), WriteError> {
        self.ask(|reply| Order::Write(bytes, then, reply)).await.unwrap_or(Err(WriteError::Ended))
    }

    /// Asks for its end: TERM for everyone who belongs to it, and KILL for who is left after the grace.
    pub fn kill(&self) {
        self.kill.notify_one();
    }

    /// Whether it goes on by itself, and may be asked about by name.
    #[must_use]
    pub fn is_backgrounded(&self) -> bool {
        self.backgrounded.load(Ordering::Relaxed)
    }

    async fn ask<T>(&self, order: impl FnOnce(oneshot::Sender<T>) -> Order) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.orders.send(order(reply)).await.ok()?;
        answer.await.ok()
    }
}

/// A job in the foreground. Dropping it ends the job.
#[derive(Debug)]
pub struct Handle {
    job: Arc<Job>,
    table: Arc<Table>,
}

impl Handle {
    /// The job.
    #[must_use]
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// Lets it go on by itself.
    #[must_use]
    pub fn into_background(self) -> Arc<Job> {
        self.job.backgrounded.store(true, Ordering::Relaxed);
        Arc::clone(&self.job)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if !self.job.is_backgrounded() {
            self.job.kill();
            self.table.remove(&self.job.id);
        }
    }
}

/// Starts jobs and knows them by name.
#[derive(Debug, Clone)]
pub struct Runner {
    table: Arc<Table>,
    census: Arc<Census>,
    places: Arc<Semaphore>,
    limits: Limits,
    clock: Clock,
    random: Random,
}

impl Runner {
    /// A runner with no jobs yet.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self::with(limits, Clock::default(), Random::default())
    }

    /// A runner with its own clock and its own source of names.
    #[must_use]
    pub fn with(limits: Limits, clock: Clock, random: Random) -> Self {
        Self {
            table: Arc::default(),
            census: Arc::default(),
            places: Arc::new(Semaphore::new(limits.running.min(Semaphore::MAX_PERMITS))),
            limits,
            clock,
            random,
        }
    }

    /// Starts a job in the foreground.
    pub async fn start(&self, launch: Launch, start: Start) -> Result<Handle, StartError> {
        self.sweep();
        let place = Arc::clone(&self.places).try_acquire_owned();
        let place = place.map_err(|_| StartError::TooMany(self.limits.running))?;
        let command = launch.command.clone();
        // It needs much memory, and only for as long as it takes.
        let spawned = Box::pin(spawn::spawn(launch)).await?;
        let (orders, inbox) = mpsc::channel(MESSAGES);
        let (sender, state) = watch::channel(State::Running(0));
        let kill = Arc::new(Notify::new());
        let pid = spawned.leader.as_raw_nonzero().get().unsigned_abs();
        let task = Task {
            spawned,
            output: Output::new(self.limits.output),
            limits: self.limits,
            leftovers: start.leftovers,
            timeout: start.timeout,
            place,
            census: Arc::clone(&self.census),
            orders: inbox,
            kill: Arc::clone(&kill),
            state: sender,
            now: self.clock.clone(),
        };
        let started_at = self.clock.now();
        let job = self.table.insert((self.random.0)(), |id| Job {
            id,
            pid,
            command,
            cwd: start.shown_cwd,
            scope: start.scope,
            started_at,
            backgrounded: AtomicBool::new(false),
            orders,
            kill,
            state,
        });
        tokio::spawn(task.run());
        Ok(Handle { job, table: Arc::clone(&self.table) })
    }

    /// The job called `id`, if `scope` may ask about it.
    #[must_use]
    pub fn find(&self, scope: &str, id: &str) -> Option<Arc<Job>> {
        self.sweep();
        self.table.find(id).filter(|job| job.scope == scope)
    }

    /// The jobs that `scope` may ask about and that go on by themselves or have done so, the newest first.
    #[must_use]
    pub fn list(&self, scope: &str) -> Vec<Arc<Job>> {
        self.sweep();
        let mut jobs = self.table.all();
        jobs.retain(|job| job.scope == scope && job.is_backgrounded());
        jobs
    }

    /// Forgets a job. If it runs, it is ended.
    pub fn remove(&self, job: &Job) {
        job.kill();
        self.table.remove(&job.id);
    }

    /// How long `job` has been or was running.
    #[must_use]
    pub fn runtime(&self, job: &Job) -> Duration {
        let so_far = || self.clock.now().duration_since(job.started_at).unwrap_or_default();
        job.outcome().map_or_else(so_far, |outcome| outcome.duration)
    }

    fn sweep(&self) {
        self.table.sweep(self.clock.now(), self.limits.keep, self.limits.finished);
    }
}
