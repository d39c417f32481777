//! The log of approvals: who answered which question, from where, and when?
//!
//! One JSON line for each question that is over, in `audit/approvals.jsonl`, for its owner's eyes only. `binding` ties a
//! line to the line about the same command in `audit/exec.jsonl`.

use std::path::Path;

use prowess_files::{Durability, LineLog};
use serde_json::{Value, json};

/// Past this size the file is put aside and a new one begun; one old file is kept.
const MAX_BYTES: u64 = 8 * 1024 * 1024;

/// How much of a command a line holds, in characters.
const MAX_COMMAND: usize = 4096;

/// How many entries a page has, unless something else is said, and at most.
const PAGE: (usize, usize) = (50, 500);

/// The log of one gateway, or of several one after the other.
#[derive(Debug)]
pub struct ApprovalLog(LineLog);

/// Which entries are wanted. The newest come first.
#[derive(Debug, Clone, Default)]
pub struct LogQuery {
    /// How many; 50 if nothing is said, and at most 500.
    pub limit: Option<usize>,
    /// The `nextCursor` of the page before.
    pub cursor: Option<String>,
    /// A text that the entry contains: in its command, the name of who answered, or its id.
    pub search: Option<String>,
}

/// The client that answered a question, and the user behind it as far as the gateway knows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Answerer {
    /// The name that people are shown.
    pub(crate) name: String,
    /// Which program, as in `cli` or `openclaw-control-ui`.
    pub(crate) client: String,
    /// Its device, if it showed one.
    pub(crate) device: Option<String>,
    /// What the device calls itself.
    pub(crate) device_name: Option<String>,
    /// The user that a trusted proxy named.
    pub(crate) user: Option<String>,
    /// From which address; none for this machine.
    pub(crate) address: Option<String>,
    pub(crate) conn: String,
}

impl Answerer {
    /// As events and the log show it.
    pub(crate) fn render(&self) -> Value {
        json!({
            "name": self.name,
            "client": self.client,
            "deviceId": self.device,
            "deviceName": self.device_name,
            "user": self.user,
            "address": self.address.as_deref().unwrap_or("loopback"),
            "connId": self.conn,
        })
    }
}

impl ApprovalLog {
    /// The log in that state directory.
    #[must_use]
    pub fn in_state_dir(state_dir: &Path) -> Self {
        let path = state_dir.join("audit").join("approvals.jsonl");
        Self(LineLog::new(path, MAX_BYTES, Durability::Synced))
    }

    /// Writes one line. Looks at the disk.
    pub(crate) fn append(&self, entry: &Value) {
        if let Err(error) = self.0.append(&entry.to_string()) {
            tracing::error!("cannot write the approval log {}: {error}", self.0.path().display());
        }
    }

    /// One page: `{"entries": […], "nextCursor": …}`, the newest entry first. Looks at the disk.
    pub fn page(&self, query: &LogQuery) -> std::io::Result<Value> {
        let limit = query.limit.unwrap_or(PAGE.0).clamp(1, PAGE.1);
        let search = query.search.as_deref().map(|text| text.trim().to_lowercase()).filter(|text| !text.is_empty());
        let mut is_reached = query.cursor.is_none();
        let mut entries = Vec::new();
        for text in self.0.read()? {
            for entry in text.lines().rev().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
                if !is_reached {
                    is_reached = query.cursor.as_deref() == Some(&cursor(&entry));
                    continue;
                }
                if search.as_deref().is_none_or(|search| finds(&entry, search)) {
                    entries.push(entry);
                }
                if entries.len() > limit {
                    entries.pop();
                    let next = entries.last().map(cursor);
                    return Ok(json!({"entries": entries, "nextCursor": next}));
                }
            }
        }
        Ok(json!({"entries": entries, "nextCursor": null}))
    }
}

/// A line of the log about a question that is over.
pub(super) fn entry(record: &super::Record, settled: &super::record::Settled, at: u64) -> Value {
    let request = &record.request;
    let command = request["command"].as_str().unwrap_or_default();
    let mut entry = json!({
        "id": record.id,
        "decision": settled.decision.map(super::Decision::as_str),
        "at": at,
        "askedAt": record.created_at,
        "by": settled.who.as_ref().map(Answerer::render),
        "why": settled.who.is_none().then_some(settled.by.as_str()),
        "command": command.chars().take(MAX_COMMAND).collect::<String>(),
    });
    for name in ["cwd", "host", "nodeId", "nodeName", "agentId", "sessionKey", "tool", "binding"] {
        if !request[name].is_null() {
            entry[name] = request[name].clone();
        }
    }
    entry
}

/// What names an entry among all others.
fn cursor(entry: &Value) -> String {
    format!("{}:{}", entry["at"], entry["id"].as_str().unwrap_or_default())
}

fn finds(entry: &Value, search: &str) -> bool {
    let by = &entry["by"];
    let fields = [&entry["command"], &entry["id"], &entry["sessionKey"], &by["name"], &by["deviceName"], &by["user"]];
    fields.into_iter().filter_map(Value::as_str).any(|text| text.to_lowercase().contains(search))
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write as _;

    use super::*;

    #[test]
    fn pages_go_from_the_newest_entry_to_the_oldest() {
        let dir = tempfile::tempdir().expect("a folder");
        let log = ApprovalLog::in_state_dir(dir.path());
        assert_eq!(log.page(&LogQuery::default()).expect("a page"), json!({"entries": [], "nextCursor": null}));
        for number in 0..7 {
            log.append(&json!({"id": format!("q{number}"), "at": number, "command": format!("make t{number}")}));
        }
        // A line that was torn by a power cut.
        std::fs::write(log.0.old_path(), "{\"id\": \"older\", \"at\": 0, \"command\": \"ls\"}\n{\"id\": \"to")
            .expect("written");
        OpenOptions::new()
            .append(true)
            .open(log.0.path())
            .and_then(|mut log| log.write_all(b"{\"id\": \"to"))
            .expect("torn");
        let log = ApprovalLog::in_state_dir(dir.path());
        log.append(&json!({"id": "q7", "at": 7, "command": "make t7"}));
        let (mut seen, mut cursor) = (Vec::new(), None);
        loop {
            let page = log.page(&LogQuery { limit: Some(3), cursor, search: None }).expect("a page");
            seen.extend(page["entries"].as_array().expect("entries").iter().map(|entry| entry["id"].clone()));
            cursor = page["nextCursor"].as_str().map(str::to_owned);
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(Value::from(seen), json!(["q7", "q6", "q5", "q4", "q3", "q2", "q1", "q0", "older"]));
        let found = log.page(&LogQuery { search: Some(" T3".to_owned()), ..LogQuery::default() }).expect("a page");
        assert_eq!(found["entries"][0]["id"], "q3");
        assert_eq!(found["entries"].as_array().map(Vec::len), Some(1));
    }
}
