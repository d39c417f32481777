//! Runs on nodes: whose are they, and who hears what becomes of them?
//!
//! A node can tell something about a run only if this gateway sent it there; which conversation that reaches was decided
//! when it was sent, and not by the node.

use std::time::{Duration, Instant};

use prowess_agent::session::SessionKey;
use prowess_policy::shown;
use serde_json::Value;
use tokio::sync::mpsc;

use super::registry::Nodes;
use crate::hub::Guest;

/// How many runs are remembered.
const MAX_RUNS: usize = 4096;

/// For how long.
const MEMORY: Duration = Duration::from_secs(24 * 60 * 60);

/// How much of a command and of an output is told, in characters.
const SNIPPET: (usize, usize) = (400, 180);

/// The largest piece of output that is taken, in bytes.
const MAX_PIECE: usize = 256 * 1024;

/// A command that was sent to a node.
#[derive(Debug)]
pub(crate) struct Run {
    /// To which.
    pub(crate) node: String,
    /// For which conversation, if for one.
    pub(crate) session: Option<SessionKey>,
    /// Who listens to its output.
    pub(crate) progress: Option<mpsc::Sender<String>>,
    /// Whether the conversation gets its result anyway.
    pub(crate) is_awaited: bool,
    /// Values that nobody may learn from what it says.
    pub(crate) secrets: Vec<String>,
    /// When it was sent.
    pub(crate) since: Instant,
}

impl Nodes {
    /// Remembers a run.
    pub(crate) fn expect(&self, id: &str, run: Run) {
        let mut state = self.lock();
        state.runs.retain(|_, run| run.since.elapsed() < MEMORY);
        if state.runs.len() >= MAX_RUNS {
            let oldest = state.runs.iter().min_by_key(|(_, run)| run.since).map(|(id, _)| id.clone());
            oldest.and_then(|id| state.runs.remove(&id));
        }
        state.runs.insert(id.to_owned(), run);
    }

    /// Nobody waits for a run any more; its conversation is told when it ends.
    pub(crate) fn unattended(&self, id: &str) {
        if let Some(run) = self.lock().runs.get_mut(id) {
            run.is_awaited = false;
            run.progress = None;
        }
    }

    /// A run came to its end and everybody knows, or nobody wants to know.
    pub(crate) fn done(&self, id: &str) {
        self.lock().runs.remove(id);
    }

    /// A conversation is over: what is still told of its runs is for nobody.
    pub(crate) fn session_over(&self, key: &SessionKey) {
        self.lock().runs.retain(|_, run| run.session.as_ref() != Some(key));
    }

    /// Takes what a node tells unasked. What it says about runs that are none of its own is nothing.
    pub(crate) fn heard(&self, guest: &Guest, event: &str, payload: &Value) {
        let Some(id) = payload["runId"].as_str() else { return };
        let mut state = self.lock();
        let Some(run) = state.runs.get(id).filter(|run| run.node == Self::id_of(guest)) else {
            tracing::debug!(conn = guest.conn, "a node reported a run that it did not receive");
            return;
        };
        match event {
            "exec.output" => {
                let piece = payload["output"].as_str().filter(|piece| piece.len() <= MAX_PIECE);
                if let (Some(piece), Some(progress)) = (piece, &run.progress) {
                    // A listener that is behind hears the next piece.
                    let _ = progress.try_send(concealed(piece, &run.secrets));
                }
            }
            "exec.finished" | "exec.denied" => {
                let Some(run) = (if run.is_awaited { None } else { state.runs.remove(id) }) else { return };
                drop(state);
                let told = (announcement(&run, id, event, payload), &run.session, self.wake.get());
                if let (Some(text), Some(session), Some(wake)) = told {
                    wake(session, text);
                }
            }
            _ => {}
        }
    }
}

/// What a conversation is told; nothing about a run that did well and said nothing.
fn announcement(run: &Run, id: &str, event: &str, payload: &Value) -> Option<String> {
    let text = |name: &str, most: usize| {
        let text = concealed(payload[name].as_str().unwrap_or_default(), &run.secrets);
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let skip = if name == "output" { words.chars().count().saturating_sub(most) } else { 0 };
        shown(&words.chars().skip(skip).take(most).collect::<String>()).to_string()
    };
    let (node, id) = (shown(&run.node), shown(id));
    if event == "exec.denied" {
        let (reason, command) = (text("reason", SNIPPET.1), text("command", SNIPPET.0));
        return Some(format!("Exec denied (node={node} id={id}, {reason}): {command}"));
    }
    let output = text("output", SNIPPET.1);
    let code = payload["exitCode"].as_i64();
    if output.is_empty() && code == Some(0) {
        return None;
    }
    let ending = match code {
        _ if payload["timedOut"] == true => "timeout".to_owned(),
        Some(code) => format!("code {code}"),
        None => "code ?".to_owned(),
    };
    let said = if output.is_empty() { String::new() } else { format!("\n{output}") };
    Some(format!("Exec finished (node={node} id={id}, {ending}){said}"))
}

/// `text` without secret values.
pub(super) fn concealed(text: &str, secrets: &[String]) -> String {
    secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), "[secret]"))
}
