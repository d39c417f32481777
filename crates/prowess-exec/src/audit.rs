//! The audit trail: what was asked for, what was decided, and why?
//!
//! One JSON line for each decision, appended to a file that only its owner can read. Values of variables are not in it.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use prowess_files::{Durability, LineLog};
use prowess_policy::{Judgment, Objection};
use serde_json::{Value, json};

/// Past this size the file is put aside and a new one begun; one old file is kept.
const MAX_BYTES: u64 = 8 * 1024 * 1024;

/// How much of a command a line holds.
const MAX_COMMAND_CHARS: usize = 4096;

/// The file decisions are written to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audit(LineLog);

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The rules allowed it.
    Allowed,
    /// A person allowed it.
    Approved,
    /// It was refused.
    Refused,
    /// It was to run, but something had changed, or could not be set up.
    NotStarted,
}

impl Ending {
    fn word(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Approved => "approved",
            Self::Refused => "refused",
            Self::NotStarted => "not-started",
        }
    }
}

/// What is written down about a judgment.
#[derive(Debug, Clone, PartialEq)]
pub struct Note(Value);

impl Note {
    /// What there is to say about `judgment`.
    #[must_use]
    pub fn of(judgment: &Judgment) -> Self {
        let binding = &judgment.request().binding;
        Self(json!({
            "at": 0,
            "ending": "",
            "verdict": judgment.verdict(),
            "agent": binding.agent,
            "session": binding.session,
            "cwd": binding.cwd.path,
            "command": shortened(&binding.command),
            "binding": binding.digest(),
            "against": judgment.all_objections().map(Objection::code).collect::<Vec<_>>(),
        }))
    }
}

impl Audit {
    /// The trail in `state_dir`.
    #[must_use]
    pub fn in_state_dir(state_dir: &Path) -> Self {
        let path = state_dir.join("audit").join("exec.jsonl");
        Self(LineLog::new(path, MAX_BYTES, Durability::Buffered))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes one line; `detail` says what the note does not.
    pub fn record(&self, note: &Note, ending: Ending, detail: &str) -> std::io::Result<()> {
        let mut line = note.0.clone();
        line["at"] = json!(now());
        line["ending"] = json!(ending.word());
        line["detail"] = json!(detail);
        self.append(&line)
    }

    /// Writes one line about a call that was refused before there was anything to judge.
    pub fn record_unjudged(&self, agent: &str, session: &str, command: &str, detail: &str) -> std::io::Result<()> {
        self.append(&json!({
            "at": now(),
            "ending": Ending::Refused.word(),
            "agent": agent,
            "session": session,
            "command": shortened(command),
            "detail": detail,
        }))
    }

    fn append(&self, line: &Value) -> std::io::Result<()> {
        self.0.append(&line.to_string())
    }
}

fn shortened(command: &str) -> String {
    command.chars().take(MAX_COMMAND_CHARS).collect()
}

/// Milliseconds since 1970.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
