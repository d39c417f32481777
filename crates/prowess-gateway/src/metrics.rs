//! Metrics: how much is done here, how fast, and with what outcome?
//!
//! Counters that cost one atomic addition each, and a page of them in the text form of Prometheus. Labels are words of
//! ours, never words of a client, so that nobody can make the page grow.

mod histogram;
mod page;
pub(crate) mod serve;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use prowess_agent::message::Usage;

use histogram::Histogram;

use crate::wire::{Code, Refusal};

/// The tools that have a label of their own; all others are one.
const TOOLS: [&str; 6] = ["read", "write", "edit", "exec", "process", "other"];

/// How a request was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// As asked.
    Ok,
    /// It was not granted.
    Refused,
    /// It could not be done.
    Unavailable,
}

impl Outcome {
    const ALL: [(Self, &'static str); 3] =
        [(Self::Ok, "ok"), (Self::Refused, "refused"), (Self::Unavailable, "unavailable")];

    /// What came of a request.
    pub(crate) fn of<T>(result: &Result<T, Refusal>) -> Self {
        match result {
            Ok(_) => Self::Ok,
            Err(refusal) => match refusal.code {
                Code::InvalidRequest | Code::NotPaired => Self::Refused,
                Code::Unavailable | Code::AgentTimeout => Self::Unavailable,
            },
        }
    }

    /// In a word.
    pub(crate) fn word(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

/// How a turn, a tool call or a node's work ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// As it should.
    Done,
    /// With an error.
    Failed,
    /// Somebody stopped it.
    Stopped,
}

impl Ended {
    const ALL: [(Self, &'static str); 3] = [(Self::Done, "done"), (Self::Failed, "failed"), (Self::Stopped, "stopped")];
}

/// How a question about a command was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decided {
    /// Yes, this time.
    AllowOnce,
    /// Yes, for the session.
    AllowSession,
    /// Yes, from now on.
    AllowAlways,
    /// No.
    Deny,
    /// Nobody answered in time.
    Expired,
}

impl Decided {
    const ALL: [(Self, &'static str); 5] = [
        (Self::AllowOnce, "allow-once"),
        (Self::AllowSession, "allow-session"),
        (Self::AllowAlways, "allow-always"),
        (Self::Deny, "deny"),
        (Self::Expired, "expired"),
    ];
}

/// One number per case of an enumeration.
#[derive(Debug)]
struct Tally<const N: usize>([AtomicU64; N]);

impl<const N: usize> Default for Tally<N> {
    fn default() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl<const N: usize> Tally<N> {
    fn add(&self, case: usize, number: u64) {
        if let Some(counter) = self.0.get(case) {
            counter.fetch_add(number, Ordering::Relaxed);
        }
    }

    fn get(&self, case: usize) -> u64 {
        self.0.get(case).map_or(0, |counter| counter.load(Ordering::Relaxed))
    }
}

/// The requests for one method.
#[derive(Debug)]
struct Method {
    name: &'static str,
    outcomes: Tally<3>,
    took: Histogram,
}

impl Method {
    fn new(name: &'static str) -> Self {
        Self { name, outcomes: Tally::default(), took: Histogram::default() }
    }
}

/// All numbers of one gateway.
#[derive(Debug)]
pub(crate) struct Metrics {
    started: u64,
    /// By name, sorted; the last one is for all that we do not know.
    methods: Vec<Method>,
    other: Method,
    turns: Tally<3>,
    turn_took: Histogram,
    tokens: Tally<4>,
    tools: [Tally<3>; TOOLS.len()],
    approvals: Tally<4>,
    invokes: Tally<3>,
    invoke_took: Histogram,
    refreshes: AtomicU64,
    refresh_took: Histogram,
    http: Tally<6>,
    refused_connections: AtomicU64,
}

impl Metrics {
    /// For a gateway that answers these methods.
    pub(crate) fn new(names: &[&'static str]) -> Self {
        let mut methods: Vec<Method> = names.iter().map(|name| Method::new(name)).collect();
        methods.sort_by_key(|method| method.name);
        let started = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Self {
            started,
            methods,
            other: Method::new("other"),
            turns: Tally::default(),
            turn_took: Histogram::default(),
            tokens: Tally::default(),
            tools: Default::default(),
            approvals: Tally::default(),
            invokes: Tally::default(),
            invoke_took: Histogram::default(),
            refreshes: AtomicU64::new(0),
            refresh_took: Histogram::default(),
            http: Tally::default(),
            refused_connections: AtomicU64::new(0),
        }
    }

    /// A request was answered.
    pub(crate) fn request_ended(&self, method: &str, outcome: Outcome, began: Instant) {
        let known = self.methods.binary_search_by_key(&method, |known| known.name);
        let entry = known.ok().and_then(|place| self.methods.get(place)).unwrap_or(&self.other);
        entry.outcomes.add(outcome as usize, 1);
        entry.took.record(began.elapsed());
    }

    /// A turn is over.
    pub(crate) fn turn_ended(&self, ended: Ended, took: Duration, usage: &Usage) {
        self.turns.add(ended as usize, 1);
        self.turn_took.record(took);
        let spent = [usage.input, usage.output, usage.cache_read, usage.cache_write];
        for (kind, number) in spent.into_iter().enumerate() {
            self.tokens.add(kind, number);
        }
    }

    /// A tool call is over.
    pub(crate) fn tool_ended(&self, tool: &str, ended: Ended) {
        let place = TOOLS.iter().position(|name| *name == tool).unwrap_or(TOOLS.len() - 1);
        self.tools[place].add(ended as usize, 1);
    }

    /// A question about a command was answered, or nobody did.
    pub(crate) fn approval_ended(&self, decided: Decided) {
        self.approvals.add(decided as usize, 1);
    }

    /// A node has done what it was asked to, or not.
    pub(crate) fn invoke_ended(&self, ended: Ended, took: Duration) {
        self.invokes.add(ended as usize, 1);
        self.invoke_took.record(took);
    }

    /// Skills were read again.
    pub(crate) fn refreshed(&self, took: Duration) {
        self.refreshes.fetch_add(1, Ordering::Relaxed);
        self.refresh_took.record(took);
    }

    /// A request over HTTP was answered with this status.
    pub(crate) fn http_ended(&self, status: u16) {
        self.http.add(usize::from(status / 100).min(5), 1);
    }

    /// Somebody was sent away at the door.
    pub(crate) fn turned_away(&self) {
        self.refused_connections.fetch_add(1, Ordering::Relaxed);
    }
}
