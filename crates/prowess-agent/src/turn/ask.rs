//! How is a model asked, and asked again when it could not answer?

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;

use super::Turn;
use crate::conversation::Conversation;
use crate::event::{End, Event};
use crate::message::{Assistant, StopReason};
use crate::model::{Delta, Draft, Model, ModelError, Reply, Request};
use crate::tool::ToolSpec;

/// How many calls one reply may make.
const MAX_CALLS: usize = 1_000;

/// What came of asking.
pub(super) enum Asked {
    /// An answer.
    Reply(Reply),
    /// The turn was ended from outside; what was said until then.
    Interrupted(Option<Assistant>, End),
    /// No answer; what was said until then.
    Failed(ModelError, Assistant),
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
        self.stopped(Draft::new(self.agent.model.about()), turn)
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
        let mut attempt = 1;
        loop {
            let mut draft = Draft::new(model.about());
            let tell = |event| match listening {
                Listening::Yes => turn.run.events.tell(event),
                Listening::No => {}
            };
            let error = match attempt_once(model, request, &mut draft, turn, tell).await {
                Ok(()) => return Asked::Reply(draft.finish()),
                Err(Trouble::Stopped) => return self.stopped(draft, turn),
                Err(Trouble::Model(error)) => error,
            };
            let Some(wait) = backoff.wait(attempt, &error, jitter()) else {
                let why = backoff.refusal(&error).map_or_else(|| error.to_string(), |why| format!("{error}; {why}"));
                return Asked::Failed(error, draft.abandon(StopReason::Error, Some(why)));
            };
            attempt += 1;
            turn.wasted += draft.finish().message.usage;
            turn.run.events.tell(Event::Retrying { attempt, wait, why: error.to_string() });
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = turn.stopped() => return self.stopped(Draft::new(model.about()), turn),
            }
        }
    }

    fn stopped(&self, draft: Draft, turn: &Turn<'_>) -> Asked {
        let partial = (!draft.is_empty()).then(|| draft.abandon(StopReason::Aborted, None));
        Asked::Interrupted(partial, self.why_stopped(turn))
    }

    /// Why a turn that was ended from outside ended.
    pub(super) fn why_stopped(&self, turn: &Turn<'_>) -> End {
        if turn.run.cancel.is_cancelled() {
            return End::Interrupted;
        }
        let seconds = self.agent.limits.time.unwrap_or(Duration::ZERO).as_secs();
        End::Failed(format!("the turn took longer than {seconds} seconds and was ended"))
    }
}

/// Asks once, and tells what is said. The answer is in the draft, as far as it came.
async fn attempt_once(
    model: &dyn Model,
    request: Request<'_>,
    draft: &mut Draft,
    turn: &Turn<'_>,
    tell: impl Fn(Event),
) -> Result<(), Trouble> {
    let mut stream = model.stream(request);
    loop {
        let next = tokio::select! {
            biased;
            () = turn.stopped() => return Err(Trouble::Stopped),
            next = stream.next() => next,
        };
        let Some(delta) = next else { break };
        let delta = delta.map_err(Trouble::Model)?;
        draft.apply(&delta);
        if draft.calls() > MAX_CALLS {
            let why = format!("it makes more than {MAX_CALLS} calls at once");
            return Err(Trouble::Model(ModelError::Malformed { provider: model.about().provider.clone(), why }));
        }
        match delta {
            Delta::Text { text, .. } => tell(Event::Text { delta: text }),
            Delta::Thinking { text, .. } => tell(Event::Thinking { delta: text }),
            Delta::Redacted { .. }
            | Delta::Call { .. }
            | Delta::Arguments { .. }
            | Delta::Signature { .. }
            | Delta::Usage(_)
            | Delta::Stop(_) => {}
        }
    }
    if draft.is_done() {
        return Ok(());
    }
    Err(Trouble::Model(ModelError::Cut { provider: model.about().provider.clone() }))
}

impl Turn<'_> {
    /// Waits until somebody ends the turn, or its time is up.
    pub(super) async fn stopped(&self) {
        let late = async {
            match self.deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.run.cancel.cancelled() => {}
            () = late => {}
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
