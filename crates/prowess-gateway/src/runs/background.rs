//! The background: how does a session hear that a command it left running has ended?
//!
//! Its next turn begins with that in any case. So that nobody has to ask, the end of a command that failed or said
//! something begins a turn by itself, unless `tools.exec.notifyOnExit` says no.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use prowess_agent::session::SessionKey;
use prowess_exec::job::{Job, Outcome};

use super::desk::Letter;
use crate::gateway::Gateway;

/// The jobs that somebody waits for.
#[derive(Debug, Default)]
pub(super) struct Attended(Mutex<HashSet<String>>);

impl Attended {
    /// Says whether it is the first to wait for it.
    fn begin(&self, job: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(job.to_owned())
    }

    fn end(&self, job: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(job);
    }
}

/// Waits for what the session behind `key` has running. A sub-agent that is done hears nothing more.
pub(super) fn attend(gateway: &Arc<Gateway>, key: &SessionKey) {
    if key.is_subagent() {
        return;
    }
    for job in gateway.exec.runner.list(&key.to_string()) {
        if job.outcome().is_none() && gateway.runs.attended.begin(&job.id) {
            gateway.runs.tasks.spawn(wait_for(Arc::clone(gateway), key.clone(), job));
        }
    }
}

async fn wait_for(gateway: Arc<Gateway>, key: SessionKey, job: Arc<Job>) {
    let closing = gateway.runs.closing();
    let outcome = closing.run_until_cancelled(job.wait()).await;
    gateway.runs.attended.end(&job.id);
    if outcome.is_some_and(|outcome| is_news(&outcome))
        && let Err(refusal) = gateway.runs.post(&gateway, &key, Letter::JobEnded(job.id.clone()))
    {
        tracing::debug!(session = %key, "it hears of its command later: {}", refusal.message);
    }
}

/// Whether there is something to say about it.
pub(super) fn is_news(outcome: &Outcome) -> bool {
    outcome.code != Some(0) || !outcome.tail.trim().is_empty()
}
