//! What did the command say, and was it right?

use std::fmt;
use std::process::ExitStatus;

use serde_json::Value;

/// What a run wrote and how it ended; a check that fails shows all of it.
#[derive(Debug)]
pub struct Output {
    pub(crate) line: String,
    pub(crate) status: Option<ExitStatus>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

#[expect(clippy::return_self_not_must_use, clippy::must_use_candidate, reason = "a check is made for its panic")]
impl Output {
    /// It ended with this exit code.
    #[track_caller]
    pub fn code(self, expected: i32) -> Self {
        let code = self.status.and_then(|status| status.code());
        assert!(code == Some(expected), "expected exit code {expected}\n{self}");
        self
    }

    /// It ended well.
    #[track_caller]
    pub fn ok(self) -> Self {
        self.code(0)
    }

    /// `text` is somewhere in its stdout.
    #[track_caller]
    pub fn out_has(self, text: &str) -> Self {
        assert!(self.stdout.contains(text), "expected in stdout: {text}\n{self}");
        self
    }

    /// `text` is somewhere in its stderr.
    #[track_caller]
    pub fn err_has(self, text: &str) -> Self {
        assert!(self.stderr.contains(text), "expected in stderr: {text}\n{self}");
        self
    }

    /// `text` is nowhere, neither in stdout nor in stderr.
    #[track_caller]
    pub fn lacks(self, text: &str) -> Self {
        assert!(!self.stdout.contains(text) && !self.stderr.contains(text), "expected nowhere: {text}\n{self}");
        self
    }
}

impl Output {
    /// What it wrote to stdout.
    #[must_use]
    pub fn stdout(&self) -> &str {
        &self.stdout
    }

    /// What it wrote to stderr.
    #[must_use]
    pub fn stderr(&self) -> &str {
        &self.stderr
    }

    /// Its stdout, which must be one JSON value.
    #[track_caller]
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("stdout is not JSON: {error}\n{self}"))
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, status, stdout, stderr } = self;
        let status = status.map_or_else(|| "killed by the watchdog".to_owned(), |status| status.to_string());
        writeln!(f, "$ {line}\n{status}\n--- stdout\n{stdout}\n--- stderr\n{stderr}\n---")
    }
}
