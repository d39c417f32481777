//! Questions of a gateway: what does it want to know about a command, and how is it told?

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::Arc;

use prowess_exec::approver::{Spoken, Terminal};
use prowess_gateway::client::{CallError, Client};
use prowess_policy::{Answer, shown};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::show::Printer;

/// The most lines of reasons that are shown.
const MAX_REASONS: usize = 20;

/// How many questions wait at a desk at most.
const MAX_WAITING: usize = 256;

/// A question that waits for an answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pending {
    pub(crate) id: String,
    request: Value,
}

impl Pending {
    /// From the payload of `exec.approval.requested`, or a row of `exec.approval.list`.
    pub(crate) fn read(payload: &Value) -> Option<Self> {
        let id = payload["id"].as_str().filter(|id| !id.is_empty())?;
        Some(Self { id: id.to_owned(), request: payload["request"].clone() })
    }

    /// What is asked about, as it came.
    pub(crate) fn request(&self) -> &Value {
        &self.request
    }

    /// The conversation it comes from.
    pub(crate) fn session(&self) -> Option<&str> {
        self.request["sessionKey"].as_str()
    }

    /// The whole command, one line for each of its lines, with nothing that a terminal would obey.
    pub(crate) fn command(&self) -> Vec<String> {
        let command = self.request["command"].as_str().unwrap_or_default();
        command.split('\n').map(|line| shown(line).to_string()).collect()
    }

    /// As it is put to a person.
    pub(crate) fn spoken(&self) -> Spoken {
        let mut asked = String::from("\nA command wants to run:\n\n");
        for line in self.command() {
            let _ = writeln!(asked, "    {line}");
        }
        asked.push('\n');
        let place = self.request["nodeId"].as_str().or_else(|| self.request["host"].as_str());
        let facts = [
            ("on", place),
            ("in", self.request["cwd"].as_str()),
            ("program", self.request["resolvedPath"].as_str()),
            ("agent", self.request["agentId"].as_str()),
            ("session", self.session()),
        ];
        for (name, fact) in facts {
            if let Some(fact) = fact {
                let _ = writeln!(asked, "  {name:<8} {}", shown(fact));
            }
        }
        for variable in texts(&self.request["variables"]) {
            let _ = writeln!(asked, "  with     {variable}");
        }
        for reason in texts(&self.request["objections"]) {
            let _ = writeln!(asked, "  because  {reason}");
        }
        for rule in self.request["always"].as_array().into_iter().flatten().take(MAX_REASONS) {
            let text = |name: &str| shown(rule[name].as_str().unwrap_or_default()).to_string();
            let _ = writeln!(asked, "  always   would allow `{}` in {}", text("command"), text("cwd"));
        }
        Spoken { asked, why: self.why(), may_last: self.may_last() }
    }

    /// Whether it can be allowed for good. A gateway that does not say lets it be.
    fn may_last(&self) -> bool {
        let decisions = self.request["decisions"].as_array();
        decisions.is_none_or(|decisions| decisions.iter().any(|decision| decision == "allow-always"))
    }

    fn why(&self) -> String {
        let mut text = String::from("\n");
        for (name, about) in [("security", "which commands may run"), ("ask", "when a person is asked")] {
            if let Some(word) = self.request[name].as_str() {
                let _ = writeln!(text, "  {about}: {}", shown(word));
            }
        }
        let reasons = texts(&self.request["objections"]);
        if reasons.is_empty() {
            text.push_str("  the gateway gives no other reason\n");
        }
        for reason in reasons {
            let _ = writeln!(text, "  {reason}");
        }
        let _ = writeln!(text, "  the question is {}\n", shown(&self.id));
        text
    }
}

fn texts(value: &Value) -> Vec<String> {
    let texts = value.as_array().into_iter().flatten().filter_map(Value::as_str);
    texts.take(MAX_REASONS).map(|text| shown(text).to_string()).collect()
}

/// An answer as it is written on the wire.
pub(crate) fn word(answer: Answer) -> &'static str {
    match answer {
        Answer::Once => "allow-once",
        Answer::Always => "allow-always",
        Answer::No => "deny",
    }
}

/// The person's desk: questions lie there in the order in which they came, and the first one is open.
#[derive(Default)]
pub(crate) struct Desk {
    terminal: Option<Arc<Terminal>>,
    /// What has to keep quiet while somebody is asked.
    printer: Option<Printer>,
    waiting: VecDeque<Pending>,
    open: Option<Open>,
}

/// A question that somebody is asked now; taken back when it is dropped.
struct Open {
    id: String,
    answer: JoinHandle<Option<Answer>>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.answer.abort();
    }
}

impl Desk {
    /// At the terminal of this process; without one nobody can be asked.
    pub(crate) fn new(printer: Option<&Printer>) -> Self {
        Self { terminal: Terminal::open().ok().map(Arc::new), printer: printer.cloned(), ..Self::default() }
    }

    /// Whether somebody can be asked.
    pub(crate) fn has_person(&self) -> bool {
        self.terminal.is_some()
    }

    /// Puts a question down; says whether there is somebody and room for it.
    pub(crate) fn put(&mut self, pending: Pending) -> bool {
        let is_taken = self.has_person() && self.waiting.len() < MAX_WAITING;
        if is_taken {
            self.waiting.push_back(pending);
        }
        is_taken
    }

    /// Takes a question away that somebody else has answered.
    pub(crate) fn take_away(&mut self, id: &str) {
        self.waiting.retain(|pending| pending.id != id);
        if self.open.as_ref().is_some_and(|open| open.id == id) {
            self.open = None;
        }
    }

    /// Takes everything away.
    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
        self.open = None;
    }

    /// Waits until the open question has its answer, if it gets one. Waiting can be given up and begun again.
    pub(crate) async fn answered(&mut self) -> (String, Option<Answer>) {
        if self.open.is_none() {
            self.open = self.begin();
        }
        let Some(open) = &mut self.open else { return std::future::pending().await };
        let answer = (&mut open.answer).await.ok().flatten();
        let id = open.id.clone();
        self.open = None;
        (id, answer)
    }

    fn begin(&mut self) -> Option<Open> {
        let terminal = Arc::clone(self.terminal.as_ref()?);
        let pending = self.waiting.pop_front()?;
        let asked = terminal.put(pending.spoken());
        let answer = match &self.printer {
            Some(printer) => tokio::spawn(printer.hushed().until(asked)),
            None => tokio::spawn(asked),
        };
        Some(Open { id: pending.id, answer })
    }
}

/// Tells the gateway the answer.
pub(crate) async fn resolve(client: &Client, id: &str, decision: &str) -> Result<(), CallError> {
    client.call("exec.approval.resolve", json!({"id": id, "decision": decision})).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pending(request: &Value) -> Pending {
        Pending::read(&json!({"id": "a3b2", "request": request})).expect("a question")
    }

    #[test]
    fn a_question_is_put_with_the_whole_command_and_nothing_to_obey() {
        let spoken = pending(&json!({
            "command": "uname -a\nrm -rf \u{1b}[2Jx", "cwd": "/w", "host": "gateway", "agentId": "main",
            "resolvedPath": "/usr/bin/uname", "sessionKey": "agent:main:main", "security": "allowlist",
            "objections": ["no rule covers uname"], "decisions": ["allow-once", "deny"],
        }))
        .spoken();
        for line in ["    uname -a\n", "  in       /w\n", "  because  no rule covers uname\n"] {
            assert!(spoken.asked.contains(line), "{line}\n{}", spoken.asked);
        }
        assert!(!spoken.asked.contains('\u{1b}'), "{}", spoken.asked);
        assert!(!spoken.may_last);
        assert!(spoken.why.contains("allowlist") && spoken.why.contains("a3b2"), "{}", spoken.why);
    }

    #[test]
    fn a_question_of_openclaw_can_be_answered_for_good() {
        let spoken = pending(&json!({"command": "uname", "systemRunPlan": null, "nodeId": null})).spoken();
        assert!(spoken.may_last && spoken.why.contains("no other reason"));
    }
}
