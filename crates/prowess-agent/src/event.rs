//! Events: what is there to see while a turn runs?

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use prowess_exec::ToolResult;
use serde_json::{Map, Value};

use crate::message::{StopReason, Usage};

/// Something happened in a turn.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A turn begins.
    Started,
    /// The skills of the conversation are others than in its last turn.
    SkillsChanged {
        /// How many there are now.
        count: usize,
    },
    /// The model said more.
    Text {
        /// What.
        delta: String,
    },
    /// The model thought more.
    Thinking {
        /// What.
        delta: String,
    },
    /// A reply of the model is over; the next text belongs to another one.
    Replied {
        /// Why it ended: [`StopReason::Error`] and [`StopReason::Aborted`] say that it was broken off.
        stop: StopReason,
        /// What it cost.
        usage: Usage,
    },
    /// A call begins.
    CallStarted {
        /// Its id.
        id: String,
        /// The tool.
        tool: String,
        /// What it is given.
        arguments: Map<String, Value>,
        /// The skills it runs for.
        skills: Vec<String>,
    },
    /// A call that runs said something.
    CallUpdate {
        /// Its id.
        id: String,
        /// The tool.
        tool: String,
        /// The newest of it.
        tail: String,
    },
    /// A call is over.
    CallEnded {
        /// Its id.
        id: String,
        /// The tool.
        tool: String,
        /// What it was about, in a line.
        summary: String,
        /// What it gave back.
        result: ToolResult,
        /// How long it took.
        took: Duration,
    },
    /// A skill is used.
    SkillUsed {
        /// Its name.
        skill: String,
        /// Its `SKILL.md`.
        path: PathBuf,
        /// How it came to that.
        how: How,
    },
    /// The model is asked again.
    Retrying {
        /// Which attempt comes next, from 2.
        attempt: u32,
        /// After how long.
        wait: Duration,
        /// Why.
        why: String,
    },
    /// What was said long ago is now a summary.
    Compacted {
        /// About how many tokens there were before.
        before: u64,
        /// And now.
        after: u64,
    },
    /// Something the person should know.
    Notice(String),
    /// The turn is over.
    Ended(End),
}

/// How a skill came to be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum How {
    /// The model read its `SKILL.md`.
    Read,
    /// The person called on it by its slash command or by `$name`.
    Called,
    /// Its slash command went straight to a tool.
    Dispatched,
    /// A command named a file of it.
    Named,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// With an answer.
    Answered,
    /// It was interrupted.
    Interrupted,
    /// It failed.
    Failed(String),
}

/// Somebody who listens. Called from the turn itself, so it must not take long.
#[derive(Clone)]
pub struct Events(Arc<dyn Fn(Event) + Send + Sync>);

impl Events {
    /// Tells `listener` everything.
    pub fn to(listener: impl Fn(Event) + Send + Sync + 'static) -> Self {
        Self(Arc::new(listener))
    }

    /// Tells nobody.
    #[must_use]
    pub fn nobody() -> Self {
        Self::to(|_| {})
    }

    /// Tells it.
    pub fn tell(&self, event: Event) {
        (self.0)(event);
    }
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Events")
    }
}
