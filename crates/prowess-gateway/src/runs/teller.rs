//! The teller: who hears what of a run?
//!
//! Clients that hear whole texts get OpenClaw's `agent` and `chat` events of every run; what its tools do is told only to
//! the connections that started or joined the run and can show it. Clients with `event-deltas` hear of the sessions that
//! they follow, and each piece of text once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use prowess_agent::event::{End, Event, Events};
use prowess_agent::frame::{self, Frames};
use prowess_agent::message::now;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::known::Run;
use crate::gateway::Gateway;
use crate::hub::{Audience, Guest, Piece, Urgency};
use crate::wire;

/// How much time there is between two `chat` events with a growing text.
const BREATH: Duration = Duration::from_millis(150);

/// How often pieces of text that wait are looked at.
pub(super) const TICK: Duration = Duration::from_millis(200);

/// How much text is worth a frame at the next tick, in bytes, and how much is told at once. A frame has some hundred
/// bytes besides its text.
const WORTH_A_FRAME: usize = 256;
const TOLD_AT_ONCE: usize = 4 * 1024;

/// What a client can do that wants to hear of tools.
pub(crate) const TOOL_EVENTS: &str = "tool-events";

/// Hears everything of one run, as it happens.
pub(crate) type Ear = mpsc::UnboundedSender<Event>;

/// Tells of one run.
pub(crate) struct Teller {
    gateway: Arc<Gateway>,
    run: Arc<Run>,
    key: String,
    ear: Option<Ear>,
    /// Whether what tools give back is told as well.
    is_full: AtomicBool,
    state: Mutex<Told>,
}

/// What was told so far.
struct Told {
    frames: Frames,
    /// When the last growing text was told.
    at: Option<Instant>,
    /// What followers wait for.
    followers: Followers,
}

/// What was told to clients that hear each piece of text once.
#[derive(Default)]
struct Followers {
    /// How much of the text of the current reply they heard, in bytes.
    heard: usize,
    /// The number of that reply.
    reply: u32,
    /// Whether that reply is complete.
    is_complete: bool,
    /// Thoughts that wait.
    thoughts: String,
    /// Whether what waits was waiting at the last tick.
    has_waited: bool,
}

impl Teller {
    pub(super) fn new(gateway: &Arc<Gateway>, run: &Arc<Run>, ear: Option<Ear>) -> Arc<Self> {
        let key = run.key.to_string();
        let frames = Frames::new(&run.id, key.clone());
        let teller = Arc::new(Self {
            gateway: Arc::clone(gateway),
            run: Arc::clone(run),
            key,
            ear,
            is_full: AtomicBool::new(false),
            state: Mutex::new(Told { frames, at: None, followers: Followers::default() }),
        });
        run.told_by(&teller);
        teller
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
        self.end_chat(&self.lock(), &End::Interrupted);
    }

    /// Tells one event. The lock is held until it is told, so that events go out in their order.
    pub(super) fn tell(&self, event: &Event) {
        let mut told = self.lock();
        if self.gateway.hub.has_whole() {
            for frame in told.frames.frames(event) {
                self.tell_whole(frame, &mut told);
            }
        } else {
            told.frames.keep_up(event);
        }
        self.tell_followers(event, &mut told);
        if let Event::Ended(end) = event {
            self.end_chat(&told, end);
        }
        if let Some(ear) = &self.ear {
            // Who listens no longer does not mind.
            let _ = ear.send(event.clone());
        }
    }

    /// Tells followers what has waited long enough.
    pub(super) fn tick(&self) {
        let mut told = self.lock();
        let waiting = told.frames.text().len().saturating_sub(told.followers.heard) + told.followers.thoughts.len();
        if waiting >= WORTH_A_FRAME || told.followers.has_waited {
            self.tell_pieces(&mut told);
        } else {
            told.followers.has_waited = waiting > 0;
        }
    }

    /// `guest` follows this session, or all of them, from now on, and is sent what the current reply says so far. Says
    /// whether there is room for that.
    pub(crate) fn catch_up(&self, guest: &Arc<Guest>, key: &str) -> bool {
        // Nothing is told in between, so no piece is missed and none comes twice.
        let mut told = self.lock();
        self.tell_pieces(&mut told);
        if !self.gateway.hub.follow(guest, key) {
            return false;
        }
        // A reply that is complete is in the history of the session.
        if told.followers.is_complete {
            return true;
        }
        let payload = json!({
            "runId": self.run.id,
            "sessionKey": self.key,
            "stream": "assistant",
            "data": {"reply": told.followers.reply, "text": told.frames.text()},
        });
        guest.outbox.send(wire::event("agent", &payload, None).into(), Urgency::Needed);
        true
    }

    fn tell_whole(&self, mut frame: Value, told: &mut Told) {
        let hub = &self.gateway.hub;
        if frame["stream"] == "tool" {
            self.hide_result(&mut frame["data"]);
            hub.tell(Audience::Only(&self.run.ears()), "agent", &frame, Urgency::Needed);
            return;
        }
        hub.tell(Audience::Whole, "agent", &frame, Urgency::Needed);
        if frame["stream"] == "assistant" && told.at.is_none_or(|at| at.elapsed() >= BREATH) {
            told.at = Some(Instant::now());
            let payload = self.chat(told, "delta", Some(said(told.frames.text())));
            // The next one has all of it again.
            hub.tell(Audience::Whole, "chat", &payload, Urgency::Droppable);
        }
    }

    fn hide_result(&self, data: &mut Value) {
        if !self.is_full.load(Ordering::Relaxed)
            && let Some(data) = data.as_object_mut()
        {
            data.remove("result");
            data.remove("partialResult");
        }
    }

    fn tell_followers(&self, event: &Event, told: &mut Told) {
        match event {
            Event::Text { delta } => {
                if std::mem::take(&mut told.followers.is_complete) {
                    told.followers.reply += 1;
                    told.followers.heard = 0;
                }
                let waiting = told.frames.text().len().saturating_sub(told.followers.heard);
                // The beginning of a reply is told at once.
                if waiting == delta.len() && told.followers.heard == 0 || waiting >= TOLD_AT_ONCE {
                    self.tell_pieces(told);
                }
            }
            Event::Thinking { delta } => {
                told.followers.thoughts.push_str(delta);
                if told.followers.thoughts.len() >= TOLD_AT_ONCE {
                    self.tell_pieces(told);
                }
            }
            Event::Replied { .. } => {
                self.tell_pieces(told);
                told.followers.is_complete = true;
            }
            // The `chat` event says how it ended.
            Event::Ended(_) => self.tell_pieces(told),
            _ => {
                self.tell_pieces(told);
                self.tell_frame(event);
            }
        }
    }

    /// Tells followers all that waits.
    fn tell_pieces(&self, told: &mut Told) {
        let followers = &mut told.followers;
        followers.has_waited = false;
        let text = told.frames.text();
        let said = text.get(followers.heard..).unwrap_or_default();
        for (stream, text) in [("reasoning", followers.thoughts.as_str()), ("assistant", said)] {
            if !text.is_empty() {
                let piece =
                    Piece { run: self.run.id.as_str().into(), stream, reply: followers.reply, text: text.into() };
                self.gateway.hub.tell_piece(&self.key, &piece);
            }
        }
        followers.heard = text.len();
        followers.thoughts.clear();
    }

    /// Tells followers an event that is no text.
    fn tell_frame(&self, event: &Event) {
        let Some((stream, mut data)) = frame::data(event) else { return };
        let caps: &[&str] = if stream == "tool" { &[TOOL_EVENTS] } else { &[] };
        if stream == "tool" {
            self.hide_result(&mut data);
        }
        let payload = json!({"runId": self.run.id, "sessionKey": self.key, "stream": stream, "data": data});
        self.gateway.hub.tell(Audience::Followers(&self.key, caps), "agent", &payload, Urgency::Needed);
    }

    fn end_chat(&self, told: &Told, end: &End) {
        self.run.tell_over();
        let text = told.frames.text();
        let message = (!text.trim().is_empty()).then(|| said(text));
        let mut payload = match end {
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
        let waiting = self.run.waiting();
        if !waiting.is_empty() {
            payload["waiting"] = waiting.into();
        }
        let hub = &self.gateway.hub;
        if hub.has_whole() {
            hub.tell(Audience::Whole, "chat", &payload, Urgency::Needed);
        }
        if let Some(payload) = payload.as_object_mut() {
            // Followers have heard all of it.
            payload.remove("message");
            payload.remove("seq");
        }
        hub.tell(Audience::Followers(&self.key, &[]), "chat", &payload, Urgency::Needed);
    }

    fn chat(&self, told: &Told, state: &str, message: Option<Value>) -> Value {
        let mut payload = json!({
            "runId": self.run.id,
            "sessionKey": self.key,
            "seq": told.frames.seq().max(1),
            "state": state,
        });
        if let Some(message) = message {
            payload["message"] = message;
        }
        payload
    }

    fn lock(&self) -> MutexGuard<'_, Told> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A message as `chat` events have it.
fn said(text: &str) -> Value {
    json!({"role": "assistant", "content": [{"type": "text", "text": text}], "timestamp": now()})
}
