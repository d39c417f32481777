//! How is a model asked, and asked again when it could not answer?
//!
//! An attempt is held back at first: nobody hears of it, so a broken one can be thrown away and asked for again, or
//! handed to another model. Once it is told it is committed. If it breaks then, what was told stays, and the turn ends.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use tokio::time::Instant;

use super::{Delivery, Turn};
use crate::conversation::Conversation;
use crate::event::{End, Event};
use crate::message::{Assistant, StopReason};
use crate::model::{About, Delta, Draft, Model, ModelError, Reply, Request};
use crate::tool::ToolSpec;

/// How many calls one reply may make.
const MAX_CALLS: usize = 1_000;

/// How much text a live attempt has, and how long ago its first piece came, before it is sent: what breaks, mostly
/// breaks early.
const HOLD_CHARS: usize = 256;
const HOLD_TIME: Duration = Duration::from_millis(300);

/// How long shorter text is held: a model that is slow, or stalls, is heard after this.
const HOLD_SHORT: Duration = Duration::from_secs(2);

/// What came of asking.
pub(super) enum Asked {
    /// An answer.
    Reply(Reply),
    /// The turn was ended from outside; what was said until then.
    Interrupted(Option<Assistant>, End),
    /// No answer, and nobody has heard any of it; what was spent.
    Failed(ModelError, Assistant),
    /// An answer that broke after some of it was told; what was said until then.
    Broken(ModelError, Assistant),
}

/// Whether what the model says is told.
#[derive(Debug, Clone, Copy)]
pub(super) enum Listening {
    /// It is.
    Yes,
    /// It is not: it is not meant for the person.
    No,
}

/// How one attempt went wrong.
enum Trouble {
    /// The turn was ended from outside.
    Stopped,
    /// The model did not answer.
    Model(ModelError),
}

impl Conversation {
    /// Asks the model for its next reply.
    pub(super) async fn ask(&self, system: &str, tools: &[ToolSpec], turn: &mut Turn<'_>) -> Asked {
        let messages = self.sent();
        let request = Request {
            system,
            messages: &messages,
            tools,
            max_tokens: None,
            thinking: self.agent.limits.thinking,
            session: self.transcript.id(),
        };
        self.ask_any(request, turn, Listening::Yes).await
    }

    /// Asks the model, and those who stand in for it where it fails. Who answered is asked first for the rest of the turn.
    pub(super) async fn ask_any(&self, request: Request<'_>, turn: &mut Turn<'_>, listening: Listening) -> Asked {
        let models: Vec<&Arc<dyn Model>> = self.agent.models().skip(turn.failed_models).collect();
        for (place, model) in models.iter().enumerate() {
            let asked = self.ask_one(model.as_ref(), request, turn, listening).await;
            match (asked, models.get(place + 1)) {
                (Asked::Failed(error, partial), Some(next)) if error.is_the_providers() => {
                    turn.failed_models += 1;
                    turn.wasted += partial.usage;
                    let next = &next.about().model;
                    turn.run.events.tell(Event::Notice(format!("{error}; asking {next} instead")));
                }
                (asked, _) => return asked,
            }
        }
        // There is always one left: who is the last does not count as failed.
        self.stopped(Attempt::new(self.agent.model.about(), turn, listening), turn)
    }

    /// Asks one model, with patience for what passes.
    async fn ask_one(
        &self,
        model: &dyn Model,
        request: Request<'_>,
        turn: &mut Turn<'_>,
        listening: Listening,
    ) -> Asked {
        let backoff = &self.agent.limits.backoff;
        let mut number = 1;
        loop {
            let mut attempt = Attempt::new(model.about(), turn, listening);
            let error = match attempt.run(model, request, turn).await {
                Ok(()) => return Asked::Reply(attempt.finish(turn)),
                Err(Trouble::Stopped) => return self.stopped(attempt, turn),
                Err(Trouble::Model(error)) => error,
            };
            if attempt.is_told {
                let why = error.to_string();
                return Asked::Broken(error, attempt.draft.abandon(StopReason::Error, Some(why)));
            }
            let Some(wait) = backoff.wait(number, &error, jitter()) else {
                let why = backoff.refusal(&error).map_or_else(|| error.to_string(), |why| format!("{error}; {why}"));
                return Asked::Failed(error, attempt.discard(why));
            };
            number += 1;
            turn.wasted += attempt.draft.finish().message.usage;
            turn.run.events.tell(Event::Retrying { attempt: number, wait, why: error.to_string() });
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = turn.stopped() => return self.stopped(Attempt::new(model.about(), turn, listening), turn),
            }
        }
    }

    /// What was said until now counts: who ended the turn wants to keep it.
    fn stopped(&self, mut attempt: Attempt, turn: &Turn<'_>) -> Asked {
        attempt.release(turn);
        let partial = (!attempt.draft.is_empty()).then(|| attempt.draft.abandon(StopReason::Aborted, None));
        Asked::Interrupted(partial, self.why_stopped(turn))
    }

    /// Why a turn that was ended from outside ended.
    pub(super) fn why_stopped(&self, turn: &Turn<'_>) -> End {
        if turn.run.cancel.is_cancelled() {
            return End::Interrupted;
        }
        let seconds = self.agent.limits.time.unwrap_or(Duration::ZERO).as_secs();
        End::Failed(format!("the turn was stopped: it took longer than {seconds} seconds"))
    }
}

/// One attempt at a reply: what it said, and whether anybody has heard of it.
struct Attempt {
    draft: Draft,
    listening: Listening,
    delivery: Delivery,
    /// What is not told yet.
    held: Vec<Event>,
    /// How much text is held, and since when.
    chars: usize,
    since: Option<Instant>,
    is_told: bool,
}

impl Attempt {
    fn new(about: &About, turn: &Turn<'_>, listening: Listening) -> Self {
        Self {
            draft: Draft::new(about),
            listening,
            delivery: turn.run.delivery,
            held: Vec::new(),
            chars: 0,
            since: None,
            is_told: false,
        }
    }

    /// Asks once. The answer is in the draft, as far as it came.
    async fn run(&mut self, model: &dyn Model, request: Request<'_>, turn: &Turn<'_>) -> Result<(), Trouble> {
        let mut stream = model.stream(request);
        loop {
            let next = tokio::select! {
                biased;
                () = turn.stopped() => return Err(Trouble::Stopped),
                () = until(self.due()) => {
                    self.release(turn);
                    continue;
                }
                next = stream.next() => next,
            };
            let Some(delta) = next else { break };
            self.hear(delta.map_err(Trouble::Model)?);
            if self.is_told {
                self.release(turn);
            }
            if self.draft.calls() > MAX_CALLS {
                let why = format!("it makes more than {MAX_CALLS} calls at once");
                return Err(Trouble::Model(ModelError::Malformed { provider: model.about().provider.clone(), why }));
            }
        }
        if self.draft.is_done() {
            return Ok(());
        }
        Err(Trouble::Model(ModelError::Cut { provider: model.about().provider.clone() }))
    }

    fn hear(&mut self, delta: Delta) {
        self.draft.apply(&delta);
        match delta {
            Delta::Text { text, .. } => {
                if !text.is_empty() {
                    self.chars += text.chars().count();
                    self.since.get_or_insert_with(Instant::now);
                }
                self.held.push(Event::Text { delta: text });
            }
            Delta::Thinking { text, .. } => self.held.push(Event::Thinking { delta: text }),
            Delta::Redacted { .. }
            | Delta::Call { .. }
            | Delta::Arguments { .. }
            | Delta::Signature { .. }
            | Delta::Opaque { .. }
            | Delta::Data { .. }
            | Delta::Pause
            | Delta::Usage(_)
            | Delta::Stop(_) => {}
        }
    }

    /// When it is told although it is not complete; nothing if it is not time yet, or told already.
    fn due(&self) -> Option<Instant> {
        let may_tell = match (self.listening, self.delivery) {
            (Listening::Yes, Delivery::Live) => !self.is_told,
            (Listening::No, _) | (Listening::Yes, Delivery::Whole) => false,
        };
        let hold = if self.chars >= HOLD_CHARS { HOLD_TIME } else { HOLD_SHORT };
        self.since.filter(|_| may_tell).map(|since| since + hold)
    }

    /// Tells what is held. From here on it cannot be taken back.
    fn release(&mut self, turn: &Turn<'_>) {
        self.is_told = true;
        for event in self.held.drain(..) {
            match self.listening {
                Listening::Yes => turn.run.events.tell(event),
                Listening::No => {}
            }
        }
    }

    fn finish(mut self, turn: &Turn<'_>) -> Reply {
        self.release(turn);
        self.draft.finish()
    }

    /// What is left of an attempt that nobody has heard of: what it cost, and why it failed.
    fn discard(self, why: String) -> Assistant {
        Assistant { content: Vec::new(), ..self.draft.abandon(StopReason::Error, Some(why)) }
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

impl Turn<'_> {
    /// Waits until somebody ends the turn, or its time is up.
    pub(super) async fn stopped(&self) {
        tokio::select! {
            () = self.run.cancel.cancelled() => {}
            () = until(self.deadline) => {}
        }
    }
}

/// Something between 0 and 1 that differs between programs that were refused together.
fn jitter() -> f64 {
    let (high, _) = uuid::Uuid::new_v4().as_u64_pair();
    #[expect(clippy::cast_precision_loss, reason = "any number near it will do")]
    let share = high as f64 / u64::MAX as f64;
    share
}
