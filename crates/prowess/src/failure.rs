//! Failures: what went wrong, why, and what to do about it?

use std::fmt;

/// Whose turn it is to act, which is also the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The input: a file, a name, a value.
    Input = 1,
    /// The command line.
    Usage = 2,
    /// This program or the system under it.
    Ours = 3,
}

/// A command that could not do what was asked.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) fault: Fault,
    pub(crate) message: String,
    pub(crate) hints: Vec<String>,
}

impl Failure {
    pub(crate) fn input(message: impl fmt::Display) -> Self {
        Self { fault: Fault::Input, message: message.to_string(), hints: Vec::new() }
    }

    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Self { fault: Fault::Usage, message: message.to_string(), hints: Vec::new() }
    }

    pub(crate) fn ours(message: impl fmt::Display) -> Self {
        Self { fault: Fault::Ours, message: message.to_string(), hints: Vec::new() }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// The same for machines.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        let kind = match self.fault {
            Fault::Input => "input",
            Fault::Usage => "usage",
            Fault::Ours => "internal",
        };
        serde_json::json!({"ok": false, "error": {"type": kind, "message": self.message, "hints": self.hints}})
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "error: {}", self.message)?;
        self.hints.iter().try_for_each(|hint| writeln!(f, "  help: {hint}"))
    }
}
