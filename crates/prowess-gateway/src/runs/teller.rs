//! The teller: who hears what of a run?
//!
//! Operators who may read hear the text of every run, as `agent` and as `chat` events. What its tools do is told only to
//! the connections that started or joined the run and can show it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use prowess_agent::event::{End, Event, Events};
use prowess_agent::frame::Frames;
use prowess_agent::message::now;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::known::Run;
use crate::gateway::Gateway;
use crate::hub::{Audience, Urgency};
use crate::scope::Scope;

/// How much time there is between two `chat` events with a growing text.
const BREATH: Duration = Duration::from_millis(150);

/// What a client can do that wants to hear of tools.
pub(crate) const TOOL_EVENTS: &str = "tool-events";

/// Hears everything of one run, as it happens.
pub(crate) type Ear = mpsc::UnboundedSender<Event>;

/// Tells of one run.
pub(super) struct Teller {
    gateway: Arc<Gateway>,
    run: Arc<Run>,
    ear: Option<Ear>,
    /// Whether what tools give back is told as well.
    is_full: AtomicBool,
    state: Mutex<Told>,
}

/// What was told so far.
struct Told {
    frames: Frames,
    /// What the model said last.
    text: String,
    /// When the last growing text was told.
    at: Option<Instant>,
    seq: u64,
}

impl Teller {
    pub(super) fn new(gateway: &Arc<Gateway>, run: &Arc<Run>, ear: Option<Ear>) -> Arc<Self> {
        let frames = Frames::new(&run.id, run.key.to_string());
        Arc::new(Self {
            gateway: Arc::clone(gateway),
            run: Arc::clone(run),
            ear,
            is_full: AtomicBool::new(false),
            state: Mutex::new(Told { frames, text: String::new(), at: None, seq: 0 }),
        })
    }

    /// What tools give back is told as well.
    pub(super) fn tell_results(&self) {
        self.is_full.store(true, Ordering::Relaxed);
    }

    /// Listens to a turn.
    pub(super) fn events(self: &Arc<Self>) -> Events {
        let teller = Arc::clone(self);
        Events::to(move |event| teller.tell(&event))
    }

    /// Tells that the run failed before the conversation had a part in it.
    pub(super) fn failed(&self, why: &str) {
        self.tell(&Event::Started);
        self.tell(&Event::Ended(End::Failed(why.to_owned())));
    }

    /// Tells that the run was ended before it began.
    pub(super) fn never_began(&self) {
        let mut told = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        told.seq += 1;
        self.end_chat(&told, &End::Interrupted);
    }

    /// Tells one event. The lock is held until it is told, so that events go out in their order.
    pub(super) fn tell(&self, event: &Event) {
        let mut told = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        for frame in told.frames.frames(event) {
            told.seq = frame["seq"].as_u64().unwrap_or(told.seq);
            self.tell_frame(frame, &mut told);
        }
        if let Event::Ended(end) = event {
            self.end_chat(&told, end);
        }
        if let Some(ear) = &self.ear {
            // Who listens no longer does not mind.
            let _ = ear.send(event.clone());
        }
    }

    fn tell_frame(&self, mut frame: Value, told: &mut Told) {
        let hub = &self.gateway.hub;
        if frame["stream"] == "tool" {
            if !self.is_full.load(Ordering::Relaxed)
                && let Some(data) = frame["data"].as_object_mut()
            {
                data.remove("result");
                data.remove("partialResult");
            }
            hub.tell(Audience::Only(&self.run.ears()), "agent", &frame, Urgency::Needed);
            return;
        }
        hub.tell(Audience::With(Scope::Read), "agent", &frame, Urgency::Needed);
        if frame["stream"] != "assistant" {
            return;
        }
        frame["data"]["text"].as_str().unwrap_or_default().clone_into(&mut told.text);
        if told.at.is_none_or(|at| at.elapsed() >= BREATH) {
            told.at = Some(Instant::now());
            let payload = self.chat(told, "delta", Some(said(&told.text)));
            // The next one has all of it again.
            hub.tell(Audience::With(Scope::Read), "chat", &payload, Urgency::Droppable);
        }
    }

    fn end_chat(&self, told: &Told, end: &End) {
        let message = (!told.text.trim().is_empty()).then(|| said(&told.text));
        let payload = match end {
            End::Answered => self.chat(told, "final", message),
            End::Interrupted => {
                let mut payload = self.chat(told, "aborted", message);
                payload["stopReason"] = self.run.why().map_or("stop", super::known::Why::word).into();
                payload
            }
            End::Failed(why) => {
                let mut payload = self.chat(told, "error", None);
                payload["errorMessage"] = why.as_str().into();
                payload
            }
        };
        self.gateway.hub.tell(Audience::With(Scope::Read), "chat", &payload, Urgency::Needed);
    }

    fn chat(&self, told: &Told, state: &str, message: Option<Value>) -> Value {
        let mut payload = json!({
            "runId": self.run.id,
            "sessionKey": self.run.key.to_string(),
            "seq": told.seq,
            "state": state,
        });
        if let Some(message) = message {
            payload["message"] = message;
        }
        payload
    }
}

/// A message as `chat` events have it.
fn said(text: &str) -> Value {
    json!({"role": "assistant", "content": [{"type": "text", "text": text}], "timestamp": now()})
}
