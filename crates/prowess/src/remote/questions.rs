//! Questions of a gateway: what does it want to know about a command, and how is it told?

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::Arc;

use prowess_exec::approver::{Offer, Spoken, Terminal, heading};
use prowess_gateway::client::{CallError, Client};
use prowess_policy::{Answer, shown};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::output::safe;
use crate::show::Printer;

/// The longest question that is put, in bytes. What cannot be shown whole cannot be approved.
const MAX_SPOKEN: usize = 512 * 1024;

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

    /// As it is put to a person.
    pub(crate) fn spoken(&self) -> Spoken {
        let asked = self.asked();
        if asked.len() > MAX_SPOKEN {
            let asked = format!("\nA command wants to run, but it is too long to show ({} bytes).\n", asked.len());
            return Spoken { asked, why: String::new(), offer: Offer::Nothing };
        }
        Spoken { asked, why: self.why(), offer: self.offer() }
    }

    /// The whole question, with nothing in it that a terminal would obey.
    fn asked(&self) -> String {
        let text = |name: &str| self.request[name].as_str();
        let what = text("tool").map_or("A command wants to run", heading);
        let mut asked = format!("\n{what}:\n\n");
        // Clients that know nothing of tools see which one it is before what it wants.
        let prefix = text("tool").map(|tool| format!("{tool}: ")).unwrap_or_default();
        let command = text("command").map(|command| command.strip_prefix(&prefix).unwrap_or(command));
        for block in [command, text("text")].into_iter().flatten() {
            for line in block.trim_end_matches('\n').split('\n') {
                let _ = writeln!(asked, "    {}", shown(line));
            }
            asked.push('\n');
        }
        let place = match (text("nodeName"), text("nodeId")) {
            (Some(name), Some(id)) if !name.is_empty() && name != id => Some(format!("{name} ({id})")),
            (_, id) => id.or_else(|| text("host")).map(str::to_owned),
        };
        let facts = [
            ("on", place.as_deref()),
            ("in", text("cwd")),
            ("program", text("resolvedPath")),
            ("agent", text("agentId")),
            ("session", self.session()),
        ];
        for (name, fact) in facts {
            if let Some(fact) = fact {
                let _ = writeln!(asked, "  {name:<8} {}", shown(fact));
            }
        }
        // Some gateways only tell the names.
        let variables = texts(&self.request["variables"]);
        let variables = if variables.is_empty() { texts(&self.request["envKeys"]) } else { variables };
        for variable in variables {
            let _ = writeln!(asked, "  with     {variable}");
        }
        for name in texts(&self.request["skillVariables"]) {
            let _ = writeln!(asked, "  gets     the value that a skill has for {name}");
        }
        for reason in texts(&self.request["objections"]) {
            let _ = writeln!(asked, "  because  {reason}");
        }
        if matches!(self.offer(), Offer::Session | Offer::Always) {
            // What leaves the sandbox is said with a verb: reach a host, change a directory.
            let is_lease = self.request["wants"].is_object() || text("tool").is_some();
            for rule in self.request["always"].as_array().into_iter().flatten() {
                let allowed = if is_lease && rule.is_string() { "allow it to" } else { "allow" };
                let _ = writeln!(asked, "  always   would {allowed} {}", grant(rule));
            }
        }
        asked
    }

    /// What can be answered. A gateway that does not say takes everything.
    fn offer(&self) -> Offer {
        let Some(decisions) = self.request["decisions"].as_array() else { return Offer::Always };
        let has = |word: &str| decisions.iter().any(|decision| decision == word);
        match (has("allow-once"), has("allow-always")) {
            (true, true) if has("allow-session") => Offer::Session,
            (true, true) => Offer::Always,
            (true, false) => Offer::Once,
            (false, _) => Offer::Nothing,
        }
    }

    fn why(&self) -> String {
        let mut text = String::from("\n");
        for (name, about) in [("security", "which commands may run"), ("ask", "when approval is needed")] {
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

/// All of a list, one text each.
fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(text).collect()
}

/// A value as a person may safely see it.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| shown(&value.to_string()).to_string(), |text| shown(text).to_string())
}

/// What a rule for good would allow: a gateway tells it in parts, a node in its own words.
fn grant(rule: &Value) -> String {
    match (rule["program"].as_str(), rule["command"].as_str(), rule["cwd"].as_str()) {
        (Some(program), Some(command), Some(cwd)) => {
            format!("{} as `{}` in {}", shown(program), shown(command), shown(cwd))
        }
        _ => text(rule),
    }
}

/// What is said when a question is left without an answer: how it can still be given one.
pub(crate) fn unanswered(id: &str, url: &str) -> String {
    let (id, url) = (safe(id), safe(url));
    format!("{id} can no longer be answered here; use: prowess approvals resolve {id} allow-once|deny --gateway {url}")
}

/// An answer as it is written on the wire.
pub(crate) fn word(answer: Answer) -> &'static str {
    match answer {
        Answer::Once => "allow-once",
        Answer::Session => "allow-session",
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

    /// Takes everything away, and waits until the terminal is free for somebody else.
    pub(crate) async fn close(mut self) {
        self.waiting.clear();
        if let Some(mut open) = self.open.take() {
            open.answer.abort();
            // Whatever came of it, nobody waits for it.
            let _ = (&mut open.answer).await;
        }
        if let Some(terminal) = &self.terminal {
            terminal.released().await;
        }
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
        assert_eq!(spoken.offer, Offer::Once);
        assert!(spoken.why.contains("allowlist") && spoken.why.contains("a3b2"), "{}", spoken.why);
    }

    #[test]
    fn a25_nothing_of_a_question_is_left_out() {
        let variables: Vec<String> = (0..100).map(|at| format!("V{at}=x")).collect();
        let spoken = pending(&json!({
            "command": "uname", "variables": variables, "nodeId": "n1", "nodeName": "box",
            "always": [{"program": "/bin/uname", "command": "uname", "cwd": "/w"}, "/bin/id as `id` in /w"],
            "skillVariables": ["API_KEY"], "decisions": ["allow-once", "allow-always", "deny"],
        }))
        .spoken();
        let lines = [
            "  with     V0=x\n",
            "  with     V99=x\n",
            "  on       box (n1)\n",
            "  gets     the value that a skill has for API_KEY\n",
            "  always   would allow /bin/uname as `uname` in /w\n",
            "  always   would allow /bin/id as `id` in /w\n",
        ];
        for line in lines {
            assert!(spoken.asked.contains(line), "{line}\n{}", spoken.asked);
        }
        assert_eq!(spoken.offer, Offer::Always);
        let long = json!({"command": "x", "variables": ["x".repeat(MAX_SPOKEN)]});
        let spoken = pending(&long).spoken();
        assert!(spoken.offer == Offer::Nothing && spoken.asked.len() < 200, "{}", spoken.asked);
    }

    #[test]
    fn a_tool_is_asked_about_with_what_it_would_write() {
        let spoken = pending(&json!({
            "command": "edit: edit /a", "tool": "edit", "text": "- old\n+ new\u{1b}[2J\n+ because  all is well\n",
            "objections": ["it is a skill"], "decisions": ["allow-once", "deny"], "sessionKey": "agent:main:main",
        }))
        .spoken();
        let expected = "\nThe agent wants to:\n\n    edit /a\n\n    - old\n    + new\\u{1b}[2J\n    + because  all is well\n\n  \
                        session  agent:main:main\n  because  it is a skill\n";
        assert_eq!(spoken.asked, expected);
    }

    #[test]
    fn a_host_is_asked_about_in_a_sentence() {
        let decisions = ["allow-once", "allow-session", "allow-always", "deny"];
        let of_command = pending(&json!({
            "command": "curl https://wttr.in", "objections": ["it would reach wttr.in"], "wants": {"hosts": ["wttr.in"]},
            "always": ["reach wttr.in, for skill weather"], "decisions": decisions,
        }));
        let asked = of_command.spoken().asked;
        assert!(asked.contains("  always   would allow it to reach wttr.in, for skill weather\n"), "{asked}");
        let of_connection = pending(&json!({
            "command": "network: reach wttr.in:443", "tool": "network", "always": ["reach wttr.in:443"],
            "objections": ["it connects to this host: ./fetch"], "decisions": decisions,
        }));
        let expected = "\nA running command wants to:\n\n    reach wttr.in:443\n\n  \
                        because  it connects to this host: ./fetch\n  always   would allow it to reach wttr.in:443\n";
        assert_eq!(of_connection.spoken().asked, expected);
    }

    #[test]
    fn a_question_of_openclaw_can_be_answered_for_good() {
        let spoken = pending(&json!({"command": "uname", "systemRunPlan": null, "nodeId": null})).spoken();
        assert!(spoken.offer == Offer::Always && spoken.why.contains("no other reason"));
    }
}
