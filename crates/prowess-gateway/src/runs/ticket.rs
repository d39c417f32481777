//! A ticket: whoever holds it has to say how the run ended.

use std::sync::Arc;

use super::known::{Ended, Run};
use crate::gateway::Gateway;
use crate::runs::journal::LEFT_BEHIND;

/// What is said of a run whose task was lost.
const LOST: &str = "the run ended without an answer; see the gateway's log";

/// A run that has to end. When nobody says how, it ends as failed.
pub(super) struct Ticket {
    run: Arc<Run>,
    gateway: Arc<Gateway>,
}

impl Ticket {
    pub(super) fn new(gateway: &Arc<Gateway>, run: Arc<Run>) -> Self {
        Self { run, gateway: Arc::clone(gateway) }
    }

    pub(super) fn run(&self) -> &Arc<Run> {
        &self.run
    }

    /// Says how it ended.
    pub(super) fn end(self, ended: Ended) {
        self.gateway.runs.finish(&self.run, ended);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.run.is_over() {
            let why = if self.gateway.runs.closing().is_cancelled() { LEFT_BEHIND } else { LOST };
            self.gateway.runs.finish(&self.run, Ended::failed(&self.run.id, self.run.started(), why));
        }
    }
}
