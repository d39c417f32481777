//! May the command reach a host that no rule covers?
//!
//! The connection waits while a person answers. All connections to the same host and port share one question, and its
//! answer holds for the rest of the run: a client that retries after a refusal is refused at once.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prowess_policy::lease::Host;
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};

use crate::audit::{Protocol, Refusal};
use crate::limits::Limits;

/// A question about one host and port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HostQuestion {
    /// The host, as the rules would name it.
    #[serde(serialize_with = "crate::audit::as_text")]
    pub host: Host,
    /// The port.
    pub port: u16,
    /// How the client asked.
    pub protocol: Protocol,
    /// The skill that the command belongs to.
    pub skill: Option<String>,
    /// The command's id.
    pub command: String,
}

/// How long an answer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lifetime {
    /// For this command.
    Once,
    /// For this session. The embedding program stores it; the outlet treats it like [`Once`](Self::Once).
    Session,
    /// From now on. The embedding program stores it; the outlet treats it like [`Once`](Self::Once).
    Always,
}

/// The answer to a [`HostQuestion`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The command may reach the host.
    Allow(Lifetime),
    /// It may not, for this reason.
    Refuse(String),
}

/// The future of an [`Answer`].
pub type Answering<'a> = Pin<Box<dyn Future<Output = Answer> + Send + 'a>>;

/// Answers questions, usually by asking a person. A function that returns such a future is one too.
pub trait Asker: Send + Sync + 'static {
    /// Asks. The future is dropped when the command ends or [`Limits::answer_time`] has passed.
    fn ask(&self, question: HostQuestion) -> Answering<'_>;
}

impl<F, R> Asker for F
where
    F: Fn(HostQuestion) -> R + Send + Sync + 'static,
    R: Future<Output = Answer> + Send + 'static,
{
    fn ask(&self, question: HostQuestion) -> Answering<'_> {
        Box::pin(self(question))
    }
}

/// An [`Asker`] that refuses every host without a rule.
#[derive(Debug, Clone, Copy, Default)]
pub struct AskNobody;

impl Asker for AskNobody {
    fn ask(&self, _question: HostQuestion) -> Answering<'_> {
        Box::pin(std::future::ready(Answer::Refuse("no rule allows it".to_owned())))
    }
}

type Shared = watch::Receiver<Option<Result<(), Refusal>>>;

/// The questions of one run, open and answered.
pub(crate) struct Questions {
    asker: Arc<dyn Asker>,
    /// The runtime of whoever is asked. The proxy's own ends with the command.
    runtime: Handle,
    asked: Mutex<HashMap<(Host, u16), Shared>>,
    waiting: Semaphore,
    most: usize,
    time: Duration,
}

impl Questions {
    pub(crate) fn new(asker: Arc<dyn Asker>, limits: &Limits) -> Self {
        Self {
            asker,
            runtime: Handle::current(),
            asked: Mutex::default(),
            waiting: Semaphore::new(limits.held),
            most: limits.questions,
            time: limits.answer_time,
        }
    }

    /// Waits for the answer, asking only if nobody did yet.
    pub(crate) async fn ask(&self, question: HostQuestion) -> Result<(), Refusal> {
        let mut answer = self.shared(question)?;
        if let Some(known) = answer.borrow_and_update().clone() {
            return known;
        }
        let Ok(_permit) = self.waiting.try_acquire() else { return Err(Refusal::TooManyHeld) };
        match answer.wait_for(Option::is_some).await {
            Ok(found) => found.clone().unwrap_or(Err(Refusal::NoAnswer)),
            // The task of the question is gone.
            Err(_) => Err(Refusal::NoAnswer),
        }
    }

    fn shared(&self, question: HostQuestion) -> Result<Shared, Refusal> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (question.host.clone(), question.port);
        if let Some(shared) = asked.get(&key) {
            return Ok(shared.clone());
        }
        if asked.len() >= self.most {
            return Err(Refusal::TooManyQuestions);
        }
        let (sender, shared) = watch::channel(None);
        asked.insert(key, shared.clone());
        let (person, time) = (Arc::clone(&self.asker), self.time);
        // A task of its own: the question outlives the connection that raised it first. It ends with the last receiver,
        // which is the one in the table.
        self.runtime.spawn(async move {
            let answer = tokio::select! {
                answer = tokio::time::timeout(time, person.ask(question)) => match answer {
                    Ok(Answer::Allow(_)) => Ok(()),
                    Ok(Answer::Refuse(reason)) => Err(Refusal::NotAllowed(reason)),
                    Err(_) => Err(Refusal::NoAnswer),
                },
                () = sender.closed() => return,
            };
            sender.send_replace(Some(answer));
        });
        Ok(shared)
    }
}
