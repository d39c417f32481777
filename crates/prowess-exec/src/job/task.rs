//! The one who looks after a job: reads what it says, keeps its time, and ends it with everyone who came of it.

use std::collections::VecDeque;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::process::Child;
use tokio::sync::{Notify, OwnedSemaphorePermit, mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use super::family::Census;
use super::spawn::{Spawned, Stream};
use super::{Exit, Leftovers, Limits, Outcome, State, WriteError};
use crate::output::{Drained, Kept, Output};
use crate::sandbox::StopInside;
use crate::terminal;

/// The most that is read at once.
const PIECE: usize = 16 * 1024;

/// The most that is read after a job is over. A pipe holds no more.
const LAST_WORDS: usize = 1024 * 1024;

/// The most input that waits for a program to read it.
const QUEUE: usize = 1024 * 1024;

/// The most answers about the cursor to one piece of output.
const ANSWERS: usize = 16;

/// How often it is checked whether everyone is gone.
const LOOK: Duration = Duration::from_millis(10);

/// How often a run that goes on is checked for protected files that have appeared.
const CHECK: Duration = Duration::from_secs(5);

/// How long processes that do not even obey KILL are waited for.
const STUBBORN: Duration = Duration::from_secs(10);

/// What a job can be asked to do.
#[derive(Debug)]
pub(super) enum Order {
    /// Hand over what came since the last time.
    Drain(oneshot::Sender<News>),
    /// Show what is kept.
    Show(oneshot::Sender<Kept>),
    /// Show the end.
    Tail(oneshot::Sender<String>),
    /// Give the program input.
    Write(Vec<u8>, Then, oneshot::Sender<Result<(), WriteError>>),
}

/// What came since somebody asked, and how often nothing did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct News {
    /// What came.
    pub drained: Drained,
    /// How many times in a row there was nothing, this time included.
    pub empty: u32,
}

/// What happens to the input after a piece of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// More may come.
    Continue,
    /// That was all.
    Close,
}

/// Where a job is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running,
    /// Everyone was asked to end; who has not by then is killed.
    Ending(Instant),
    /// Everyone is being killed; after that we give up.
    Killing(Instant),
    /// Nobody is left, or nobody is to be ended.
    Gone,
}

/// Whether the time of a phase is up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    Now,
    Later,
}

/// Why a job is ended from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    Time,
    Asked,
}

/// What a task waits for.
enum Event {
    Read(io::Result<usize>),
    Wrote(io::Result<usize>),
    Exited,
    Order(Option<Order>),
    Kill,
    Time,
}

/// A job and all that is needed to look after it.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) spawned: Spawned,
    pub(super) output: Output,
    pub(super) limits: Limits,
    pub(super) leftovers: Leftovers,
    pub(super) timeout: Option<Duration>,
    /// Its place among the jobs that may run at once.
    pub(super) place: OwnedSemaphorePermit,
    pub(super) census: Arc<Census>,
    pub(super) orders: mpsc::Receiver<Order>,
    pub(super) kill: Arc<Notify>,
    pub(super) state: watch::Sender<State>,
    pub(super) now: super::Clock,
}

impl Task {
    /// Looks after the job until it is over.
    pub(super) async fn run(self) {
        let began = Instant::now();
        let state = self.state.clone();
        let now = self.now.clone();
        let mut life = Life {
            phase: Phase::Running,
            cause: None,
            notice: Notice::of(self.spawned.leader),
            exited: None,
            timeout_at: self.timeout.and_then(|timeout| began.checked_add(timeout)),
            open: true,
            drain_until: None,
            look_at: began,
            nobody_seen: false,
            queue: VecDeque::new(),
            close_after: false,
            empty: 0,
            ended_with_it: 0,
            left: 0,
            stopping: None,
            check_at: began + CHECK,
            task: self,
        };
        life.live().await;
        let outcome = life.conclude(began, now.now()).await;
        // Nobody may be interested any more.
        let _ = state.send(State::Finished(Arc::new(outcome)));
    }
}

#[derive(Debug)]
struct Life {
    phase: Phase,
    cause: Option<Cause>,
    notice: Notice,
    /// When the leader's end was noticed.
    exited: Option<Instant>,
    timeout_at: Option<Instant>,
    /// Whether output may still come.
    open: bool,
    drain_until: Option<Instant>,
    /// When to look again who is left.
    look_at: Instant,
    /// Whether nobody was left the last time.
    nobody_seen: bool,
    queue: VecDeque<u8>,
    close_after: bool,
    empty: u32,
    ended_with_it: usize,
    left: usize,
    /// What ends the processes inside a container.
    stopping: Option<JoinHandle<()>>,
    /// When to look again for protected files that have appeared.
    check_at: Instant,
    task: Task,
}

impl Life {
    async fn live(&mut self) {
        let mut buffer = vec![0; PIECE];
        while !self.is_over() {
            match self.next(&mut buffer).await {
                Event::Read(read) => self.on_read(read, &buffer),
                Event::Wrote(wrote) => self.on_wrote(wrote),
                Event::Exited => self.on_exited(),
                Event::Order(Some(order)) => self.on_order(order),
                // Whoever could have asked is gone.
                Event::Order(None) | Event::Kill => self.end(Cause::Asked).await,
                Event::Time => {}
            }
            self.advance().await;
        }
        if self.open {
            self.last_words(&mut buffer);
        }
        self.task.output.finish();
    }

    async fn next(&mut self, buffer: &mut [u8]) -> Event {
        let wake = self.wake();
        let Self { task, notice, exited, queue, open, phase, .. } = self;
        let Task { spawned, orders, kill, .. } = task;
        let Spawned { stream, child, .. } = spawned;
        let running = *phase == Phase::Running;
        let (front, _) = queue.as_slices();
        tokio::select! {
            read = stream.read(buffer), if *open => Event::Read(read),
            wrote = stream.write(front), if !front.is_empty() => Event::Wrote(wrote),
            () = notice.wait(child), if exited.is_none() => Event::Exited,
            () = kill.notified(), if running => Event::Kill,
            order = orders.recv(), if running || !orders.is_closed() => Event::Order(order),
            () = sleep_until(wake) => Event::Time,
        }
    }

    /// When something has to happen even if nothing is heard.
    fn wake(&self) -> Instant {
        let now = Instant::now();
        let far = now + Duration::from_secs(3_600);
        let due = match self.phase {
            Phase::Running if self.exited.is_some() => self.drain_until,
            Phase::Running => Some(self.timeout_at.map_or(self.check_at, |at| at.min(self.check_at))),
            Phase::Ending(_) | Phase::Killing(_) => Some(self.look_at),
            Phase::Gone => self.drain_until,
        };
        due.unwrap_or(far).min(far)
    }

    /// Goes on to what follows from what has happened.
    async fn advance(&mut self) {
        let now = Instant::now();
        match self.phase {
            Phase::Running if self.exited.is_some() => {
                if self.is_quiet(now) {
                    self.settle().await;
                }
            }
            Phase::Running => {
                if self.timeout_at.is_some_and(|at| at <= now) {
                    self.end(Cause::Time).await;
                } else if self.check_at <= now {
                    self.check_protected(now).await;
                }
            }
            Phase::Ending(until) | Phase::Killing(until) if self.look_at <= now => {
                let due = if until <= now { Due::Now } else { Due::Later };
                self.look(due).await;
            }
            Phase::Ending(_) | Phase::Killing(_) | Phase::Gone => {}
        }
    }

    /// A run that goes on for hours must not leave a hook in place for hours.
    async fn check_protected(&mut self, now: Instant) {
        self.check_at = now + CHECK;
        if let Some(guard) = self.task.spawned.cleanup.guarded_by() {
            // What it finds, it remembers.
            let _ = tokio::task::spawn_blocking(move || guard.check()).await;
        }
    }

    /// Looks who is left, and kills again and again: somebody may have started another one just before it was killed.
    async fn look(&mut self, due: Due) {
        let left = self.alive().await;
        self.look_at = Instant::now() + LOOK;
        let nobody = left.is_empty();
        // A list is made one by one: somebody started meanwhile may be missing once, but not twice.
        let sure = std::mem::replace(&mut self.nobody_seen, nobody) && nobody;
        match (self.phase, due) {
            _ if sure => self.gone(),
            _ if nobody => self.look_at = Instant::now(),
            (Phase::Ending(_), Due::Now) => {
                self.task.spawned.family.signal(&left, Signal::KILL);
                self.phase = Phase::Killing(Instant::now() + STUBBORN);
            }
            (Phase::Killing(_), Due::Now) => {
                self.left = left.len();
                self.gone();
            }
            (Phase::Killing(_), Due::Later) => self.task.spawned.family.signal(&left, Signal::KILL),
            (Phase::Ending(_), Due::Later) | (Phase::Running | Phase::Gone, _) => {}
        }
    }

    /// The leader has ended by itself. What it left behind is ended too, unless it is to be kept.
    async fn settle(&mut self) {
        let left = match self.task.leftovers {
            Leftovers::Keep => Vec::new(),
            Leftovers::End => self.alive().await,
        };
        self.ended_with_it = left.len();
        if left.is_empty() {
            self.forget();
            self.phase = Phase::Gone;
        } else {
            self.ask_to_end(&left);
        }
    }

    async fn end(&mut self, cause: Cause) {
        if self.phase != Phase::Running {
            return;
        }
        if self.exited.is_none() {
            self.cause = Some(cause);
        }
        if let Some(stop) = self.task.spawned.stop.take() {
            // The client of a container engine ends when what it started has ended. Signals to the client itself would
            // only cut it off from what goes on inside.
            self.stopping = Some(tokio::spawn(stop.run(self.task.limits.grace)));
            self.phase = Phase::Ending(Instant::now() + StopInside::longest(self.task.limits.grace));
            self.look_at = Instant::now();
            return;
        }
        let members = self.alive().await;
        self.ask_to_end(&members);
    }

    fn ask_to_end(&mut self, members: &[Pid]) {
        self.task.spawned.family.signal(members, Signal::TERM);
        // One that was stopped hears nothing until it goes on.
        self.task.spawned.family.signal(members, Signal::CONT);
        self.phase = Phase::Ending(Instant::now() + self.task.limits.grace);
        self.look_at = Instant::now();
    }

    /// Everyone has been ended. What the last of them wrote is in the pipe by now.
    fn gone(&mut self) {
        self.forget();
        self.phase = Phase::Gone;
        self.drain_until = Some(Instant::now() + self.task.limits.drain);
    }

    /// Nobody has to be looked after any more, here or inside a container.
    fn forget(&mut self) {
        self.task.spawned.family.forget();
        if let Some(stop) = self.task.spawned.stop.take() {
            stop.disarm();
        }
    }

    async fn alive(&mut self) -> Vec<Pid> {
        let list = self.task.census.after(std::time::Instant::now()).await;
        self.task.spawned.family.alive(&list)
    }

    /// Whether all output has come, or enough time for it has passed.
    fn is_quiet(&self, now: Instant) -> bool {
        !self.open || self.drain_until.is_some_and(|until| until <= now)
    }

    fn is_over(&self) -> bool {
        self.phase == Phase::Gone && (self.left > 0 || (self.exited.is_some() && self.is_quiet(Instant::now())))
    }

    fn on_exited(&mut self) {
        let now = Instant::now();
        self.exited = Some(now);
        self.drain_until = Some(now + self.task.limits.drain);
        self.look_at = now;
    }

    fn on_read(&mut self, read: io::Result<usize>, buffer: &[u8]) {
        match read {
            Ok(0) => self.open = false,
            Ok(length) => {
                let asked = self.task.output.push(&buffer[..length]);
                if matches!(self.task.spawned.stream, Stream::Terminal(_)) {
                    for _ in 0..asked.min(ANSWERS) {
                        self.queue.extend(terminal::CURSOR_AT_HOME);
                    }
                }
                self.task.state.send_modify(State::grow);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => self.open = false,
        }
    }

    fn on_wrote(&mut self, wrote: io::Result<usize>) {
        match wrote {
            Ok(length) => {
                self.queue.drain(..length);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => {
                self.queue.clear();
                self.close_after = true;
            }
        }
        if self.queue.is_empty() && self.close_after {
            self.task.spawned.stream.close_input();
        }
    }

    fn on_order(&mut self, order: Order) {
        // Who asked may have gone: then nobody needs the answer.
        match order {
            Order::Drain(reply) => {
                let drained = self.task.output.drain();
                self.empty = if drained.text.is_empty() { self.empty.saturating_add(1) } else { 0 };
                let _ = reply.send(News { drained, empty: self.empty });
            }
            Order::Show(reply) => {
                let _ = reply.send(self.task.output.kept());
            }
            Order::Tail(reply) => {
                let _ = reply.send(self.task.output.tail());
            }
            Order::Write(bytes, then, reply) => {
                let _ = reply.send(self.accept(&bytes, then));
            }
        }
    }

    fn accept(&mut self, bytes: &[u8], then: Then) -> Result<(), WriteError> {
        if self.close_after || !self.task.spawned.stream.takes_input() {
            return Err(WriteError::Closed);
        }
        if self.queue.len() + bytes.len() > QUEUE {
            return Err(WriteError::Full);
        }
        self.queue.extend(bytes);
        if then == Then::Close {
            match self.task.spawned.stream {
                Stream::Terminal(_) => self.queue.push_back(terminal::END_OF_INPUT),
                Stream::Pipe { .. } => self.close_after = true,
            }
        }
        if self.queue.is_empty() && self.close_after {
            self.task.spawned.stream.close_input();
        }
        Ok(())
    }

    /// What has been written but not read when we stop listening.
    fn last_words(&mut self, buffer: &mut [u8]) {
        let mut taken = 0;
        while taken < LAST_WORDS
            && let Ok(length @ 1..) = self.task.spawned.stream.try_read(buffer)
        {
            self.task.output.push(&buffer[..length]);
            taken += length;
        }
    }

    async fn conclude(mut self, began: Instant, ended_at: std::time::SystemTime) -> Outcome {
        let status = match self.left {
            0 => self.task.spawned.child.wait().await.ok(),
            // It does not end: waiting for it would be waiting for ever.
            _ => self.task.spawned.child.try_wait().ok().flatten(),
        };
        if let Some(stopping) = self.stopping.take() {
            // It has a time limit of its own. A panic in it leaves nothing to do here.
            let _ = stopping.await;
        }
        let code = status.and_then(|status| status.code());
        let signal = status.as_ref().and_then(ExitStatus::signal).map(signal_name);
        let exit = match (self.cause, code, &signal) {
            (Some(Cause::Time), ..) => Exit::TimedOut,
            (Some(Cause::Asked), ..) | (None, None, None) => Exit::Killed,
            (None, Some(code), _) => Exit::Code(code),
            (None, None, Some(signal)) => Exit::Signal(signal.clone()),
        };
        let kept = self.task.output.kept();
        let drained = self.task.output.drain();
        let empty = if drained.text.is_empty() { self.empty.saturating_add(1) } else { 0 };
        let tail = self.task.output.tail();
        // Before anybody hears that it is over, nothing of it is left and its place is free.
        let failed_connections = match self.task.spawned.outlet {
            Some(outlet) => outlet.close().await,
            None => Vec::new(),
        };
        let mut cleanup = self.task.spawned.cleanup;
        if self.task.leftovers == Leftovers::Keep && self.cause.is_none() {
            cleanup.leave_processes();
        }
        let set_aside = tokio::task::spawn_blocking(move || cleanup.finish()).await.unwrap_or_default();
        drop(self.task.place);
        Outcome {
            exit,
            code,
            signal,
            duration: self.exited.unwrap_or_else(Instant::now).duration_since(began),
            tail,
            output: kept,
            unread: News { drained, empty },
            ended_with_it: self.ended_with_it,
            left: self.left,
            set_aside,
            failed_connections,
            ended_at,
        }
    }
}

/// Tells when the leader has ended, without reaping it where the system allows that.
#[derive(Debug)]
struct Notice {
    /// Readable once the process has ended. It is no pipe, but it is waited for like one.
    #[cfg(target_os = "linux")]
    handle: Option<tokio::net::unix::pipe::Receiver>,
}

impl Notice {
    #[cfg(target_os = "linux")]
    fn of(leader: Pid) -> Self {
        use rustix::process::{PidfdFlags, pidfd_open};
        let handle = pidfd_open(leader, PidfdFlags::NONBLOCK).ok();
        Self { handle: handle.and_then(|fd| tokio::net::unix::pipe::Receiver::from_owned_fd_unchecked(fd).ok()) }
    }

    #[cfg(not(target_os = "linux"))]
    fn of(_leader: Pid) -> Self {
        Self {}
    }

    async fn wait(&self, child: &mut Child) {
        #[cfg(target_os = "linux")]
        if let Some(handle) = &self.handle
            && handle.readable().await.is_ok()
        {
            return;
        }
        // An error here shows again when the status is asked for.
        let _ = child.wait().await;
    }
}

/// The name of a signal, as people write it.
fn signal_name(number: i32) -> String {
    const NAMES: [(Signal, &str); 17] = [
        (Signal::HUP, "SIGHUP"),
        (Signal::INT, "SIGINT"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::ILL, "SIGILL"),
        (Signal::TRAP, "SIGTRAP"),
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::KILL, "SIGKILL"),
        (Signal::USR1, "SIGUSR1"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::USR2, "SIGUSR2"),
        (Signal::PIPE, "SIGPIPE"),
        (Signal::ALARM, "SIGALRM"),
        (Signal::TERM, "SIGTERM"),
        (Signal::XCPU, "SIGXCPU"),
        (Signal::SYS, "SIGSYS"),
    ];
    let known = NAMES.iter().find(|(signal, _)| signal.as_raw() == number);
    known.map_or_else(|| format!("signal {number}"), |(_, name)| (*name).to_owned())
}
