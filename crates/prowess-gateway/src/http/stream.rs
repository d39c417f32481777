//! Following a run over HTTP: what does it say, and what if nobody listens any more?

use std::sync::Arc;

use prowess_agent::Delivery;
use prowess_agent::event::Event;
use prowess_agent::message::StopReason;
use prowess_agent::session::SessionKey;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::gateway::Gateway;
use crate::runs::{Asked, Begin, Ended, How, Run, Why, Wish};
use crate::wire::Refusal;

/// Stands between what was said before and after a call of a tool.
const BETWEEN: &str = "\n\n";

/// How the client wants the answer to `body`. One that asked for a whole answer gets none of it before it is complete.
pub(super) fn delivery(body: &Value) -> Delivery {
    if body["stream"] == true { Delivery::Live } else { Delivery::Whole }
}

/// A run that an HTTP client follows. It ends when the client leaves.
pub(super) struct Following {
    run: Arc<Run>,
    events: mpsc::UnboundedReceiver<Event>,
    /// Whether something was said, and whether that was a reply ago.
    said: Said,
    /// Why the last reply ended.
    stop: StopReason,
    is_told: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    Nothing,
    InThisReply,
    InAnEarlierReply,
}

/// What happens next.
pub(super) enum Step {
    /// More is said.
    Text(String),
    /// It is over.
    Over(Arc<Ended>),
}

impl Following {
    /// Starts a run and follows it.
    pub(super) async fn start(
        gateway: &Arc<Gateway>,
        id: &str,
        key: SessionKey,
        text: String,
        asked: Asked,
    ) -> Result<Self, Refusal> {
        let (ear, events) = mpsc::unbounded_channel();
        let wish = Wish { id: id.to_owned(), key, text, asked, begin: Begin::GoOn, conn: None, ear: Some(ear) };
        let run = Arc::clone(gateway.runs.start(gateway, wish).await?.run());
        Ok(Self { run, events, said: Said::Nothing, stop: StopReason::Stop, is_told: false })
    }

    /// What happens next; nothing after it is over.
    pub(super) async fn next(&mut self) -> Option<Step> {
        while let Some(event) = self.events.recv().await {
            match event {
                Event::Text { delta } if !delta.is_empty() => {
                    let before = if self.said == Said::InAnEarlierReply { BETWEEN } else { "" };
                    self.said = Said::InThisReply;
                    return Some(Step::Text(format!("{before}{delta}")));
                }
                Event::Replied { stop, .. } => {
                    self.stop = stop;
                    if self.said == Said::InThisReply {
                        self.said = Said::InAnEarlierReply;
                    }
                }
                _ => {}
            }
        }
        if self.is_told {
            return None;
        }
        self.is_told = true;
        Some(Step::Over(self.run.over().await))
    }

    /// Waits until it is over.
    pub(super) async fn over(&mut self) -> Arc<Ended> {
        loop {
            if let Some(Step::Over(ended)) = self.next().await {
                return ended;
            }
        }
    }

    /// Why it ended, in OpenAI's words.
    pub(super) fn finish_reason(&self) -> &'static str {
        if self.stop == StopReason::Length { "length" } else { "stop" }
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        if !self.run.is_over() {
            self.run.stop(Why::Gone);
        }
    }
}

/// What a run cost, in tokens: read, of that from a cache, and written.
pub(super) struct Cost {
    pub(super) read: u64,
    pub(super) cached: u64,
    pub(super) written: u64,
}

impl Cost {
    pub(super) fn of(ended: &Ended) -> Self {
        let usage = &ended.payload["result"]["meta"]["agentMeta"]["usage"];
        let count = |name: &str| usage[name].as_u64().unwrap_or_default();
        let cached = count("cacheRead");
        Self { read: count("input") + cached + count("cacheWrite"), cached, written: count("output") }
    }

    /// As chat completions have it.
    pub(super) fn chat(&self) -> Value {
        json!({
            "prompt_tokens": self.read,
            "completion_tokens": self.written,
            "total_tokens": self.read + self.written,
            "prompt_tokens_details": {"cached_tokens": self.cached},
        })
    }

    /// As responses have it.
    pub(super) fn responses(&self) -> Value {
        json!({
            "input_tokens": self.read,
            "output_tokens": self.written,
            "total_tokens": self.read + self.written,
            "input_tokens_details": {"cached_tokens": self.cached},
        })
    }
}

/// Why a run failed, if it did.
pub(super) fn failure(ended: &Ended) -> Option<&str> {
    match &ended.how {
        How::Done | How::Stopped => None,
        How::Failed(why) => Some(why),
    }
}

/// Seconds since 1970.
pub(super) fn seconds() -> u64 {
    prowess_agent::message::now() / 1_000
}
