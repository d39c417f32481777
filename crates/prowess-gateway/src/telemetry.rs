//! Telemetry: what did the gateway do, step by step, for those who gather traces?
//!
//! Spans go to an OpenTelemetry collector as OTLP over HTTP in its JSON form, if the operator names one. Sending never
//! holds up the work it tells of: spans wait in a short queue, and what does not fit there is dropped and counted.

mod export;
mod otlp;
mod settings;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub(crate) use settings::TelemetrySettings;

/// How many spans wait for the collector before more are dropped.
const MAX_WAITING: usize = 2048;

/// How many attributes a span has at most.
const MAX_ATTRIBUTES: usize = 16;

/// The longest text of an attribute, in characters.
const MAX_TEXT: usize = 256;

/// Where spans are sent, or nowhere.
#[derive(Debug, Default)]
pub(crate) struct Telemetry {
    queue: Option<mpsc::Sender<Span>>,
    sampled: f64,
    dropped: Arc<AtomicU64>,
}

/// What a span is to its trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Work of our own.
    Internal,
    /// Somebody asked for it.
    Server,
}

/// Which trace and which step of it; what a step of a step needs to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Trace {
    id: u128,
    span: u64,
}

/// One step, with when it began and ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Span {
    trace: Trace,
    name: &'static str,
    kind: Kind,
    began: u64,
    ended: u64,
    attributes: Vec<(&'static str, Attribute)>,
    /// Why it failed, if it did.
    error: Option<String>,
}

/// A fact about a step.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Attribute {
    Text(String),
    Number(u64),
}

impl From<&str> for Attribute {
    fn from(text: &str) -> Self {
        Self::Text(text.chars().take(MAX_TEXT).collect())
    }
}

impl From<u64> for Attribute {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl Trace {
    /// A new one, or nothing when the system has no randomness to give.
    fn begin() -> Option<Self> {
        let mut bytes = [0; 24];
        getrandom::fill(&mut bytes).ok()?;
        let (id, span) = bytes.split_at(16);
        Some(Self { id: u128::from_be_bytes(id.try_into().ok()?), span: u64::from_be_bytes(span.try_into().ok()?) })
    }

    /// Whether this trace is among the part that is sent. All steps of a trace are judged alike.
    fn is_within(self, part: f64) -> bool {
        // The upper half of the id, as a number between 0 and 1.
        #[expect(clippy::cast_precision_loss, reason = "which traces are sent does not depend on the last bits")]
        let place = (self.id >> 64) as f64 / (u64::MAX as f64);
        place < part
    }
}

impl Span {
    /// A step that begins now.
    pub(crate) fn attribute(mut self, name: &'static str, value: impl Into<Attribute>) -> Self {
        if self.attributes.len() < MAX_ATTRIBUTES {
            self.attributes.push((name, value.into()));
        }
        self
    }

    /// It failed, and why: a word of ours, for what clients and models say may be anything.
    pub(crate) fn failed(mut self, why: &'static str) -> Self {
        self.error = Some(why.to_owned());
        self
    }
}

impl Telemetry {
    /// Sends to where `settings` say until `stop`, and a little longer for what is still waiting.
    pub(crate) fn start(
        settings: Option<TelemetrySettings>,
        stop: CancellationToken,
    ) -> (Self, Option<export::Exporter>) {
        let Some(settings) = settings else { return (Self::default(), None) };
        let (queue, waiting) = mpsc::channel(MAX_WAITING);
        let sampled = settings.sampled;
        let telemetry = Self { queue: Some(queue), sampled, dropped: Arc::default() };
        let exporter = export::Exporter::new(settings, waiting, stop, Arc::clone(&telemetry.dropped));
        (telemetry, Some(exporter))
    }

    /// A step that begins now, in a trace of its own. Nothing where nobody gathers it.
    pub(crate) fn span(&self, name: &'static str, kind: Kind) -> Option<Span> {
        self.queue.as_ref()?;
        let trace = Trace::begin().filter(|trace| trace.is_within(self.sampled))?;
        Some(Span { trace, name, kind, began: nanos(), ended: 0, attributes: Vec::new(), error: None })
    }

    /// The step is over.
    pub(crate) fn ended(&self, span: Option<Span>) {
        let (Some(queue), Some(mut span)) = (&self.queue, span) else { return };
        span.ended = nanos();
        if queue.try_send(span).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many spans were dropped so far.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

fn nanos() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_all_traces_is_sent() {
        let at = |upper: u64| Trace { id: u128::from(upper) << 64, span: 1 };
        assert!(at(0).is_within(0.5) && !at(u64::MAX).is_within(0.5));
        assert!(!at(0).is_within(0.0) && at(u64::MAX - 4096).is_within(1.0));
    }

    #[test]
    fn where_nobody_gathers_nothing_is_made() {
        let telemetry = Telemetry::default();
        assert!(telemetry.span("x", Kind::Server).is_none());
        telemetry.ended(None);
        assert_eq!(telemetry.dropped(), 0);
    }

    #[tokio::test]
    async fn what_does_not_fit_is_dropped_and_counted() {
        let (queue, _waiting) = mpsc::channel(1);
        let telemetry = Telemetry { queue: Some(queue), sampled: 1.0, dropped: Arc::default() };
        for _ in 0..3 {
            telemetry.ended(telemetry.span("x", Kind::Internal));
        }
        assert_eq!(telemetry.dropped(), 2);
    }
}
