//! Failures: what went wrong, why, and what to do about it?

use std::fmt;

/// Whose turn it is to act, which is also the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The input: a file, a name, a value.
    Input = 1,
    /// The command line.
    Usage = 2,
    /// This program or the system under it.
    Ours = 3,
}

/// A command that could not do what was asked.
#[derive(Debug)]
pub struct Failure {
    /// Whose turn it is.
    pub fault: Fault,
    /// What went wrong.
    pub message: String,
    /// What may help.
    pub hints: Vec<String>,
}

impl Failure {
    /// Something is wrong with a file, a name or a value.
    pub fn input(message: impl fmt::Display) -> Self {
        Self { fault: Fault::Input, message: message.to_string(), hints: Vec::new() }
    }

    /// Something is wrong with the command line.
    pub fn usage(message: impl fmt::Display) -> Self {
        Self { fault: Fault::Usage, message: message.to_string(), hints: Vec::new() }
    }

    /// This program or the system under it failed.
    pub fn ours(message: impl fmt::Display) -> Self {
        Self { fault: Fault::Ours, message: message.to_string(), hints: Vec::new() }
    }

    /// With something that may help.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// In one line, for a model or a client.
    #[must_use]
    pub fn sentence(&self) -> String {
        let hints = self.hints.iter().map(|hint| format!("; {hint}"));
        hints.fold(self.message.clone(), |text, hint| text + &hint)
    }

    /// The same for machines.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
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

impl std::error::Error for Failure {}
