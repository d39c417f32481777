//! Connections: which hosts did commands reach, and which do they talk to now?
//!
//! One JSON line for each connection that is over, in `audit/egress.jsonl`, for its owner's eyes only. A server that shows
//! traffic can also [watch](Connections::watch) connections while they are open.

mod live;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prowess_egress::{AuditSink, ConnectionRecord, Flushing, Progress};
use prowess_files::{Durability, LineLog};
use serde_json::{Value, json};
use tokio::sync::Notify;

pub use live::LiveConnections;

use crate::audit::now;
use crate::egress::FailedConnections;

/// Past this size the file is put aside and a new one begun; one old file is kept.
const MAX_BYTES: u64 = 8 * 1024 * 1024;

/// How much of a command a line holds, in characters.
const MAX_COMMAND: usize = 1024;

/// The most lines that wait to be written. More are lost, which only happens if the disk does not keep up.
const MAX_QUEUED: usize = 20_000;

/// How long the end of a command waits for its lines to be written.
const PATIENCE: Duration = Duration::from_secs(10);

/// How many entries a page has, unless something else is said, and at most.
const PAGE: (usize, usize) = (50, 500);

/// The log of connections, and who watches them.
#[derive(Debug, Clone)]
pub struct Connections {
    log: ConnectionLog,
    live: Option<Arc<LiveConnections>>,
}

impl Connections {
    /// Those of the commands that use this state directory.
    #[must_use]
    pub fn in_state_dir(state_dir: &Path) -> Self {
        Self { log: ConnectionLog::in_state_dir(state_dir), live: None }
    }

    /// Where they are written down.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.log.file.path()
    }

    /// Their log.
    #[must_use]
    pub fn log(&self) -> &ConnectionLog {
        &self.log
    }

    /// Keeps track of connections that are open, from now on.
    pub fn watch(&mut self) -> Arc<LiveConnections> {
        Arc::clone(self.live.get_or_insert_default())
    }

    /// Takes the records of one command, and notes in `failed` what did not work.
    pub(crate) fn of_command(&self, session: &str, failed: FailedConnections) -> impl AuditSink + use<> {
        let run = uuid::Uuid::new_v4().to_string();
        CommandSink { connections: self.clone(), session: session.to_owned(), run, failed }
    }
}

/// Takes the records of one command.
struct CommandSink {
    connections: Connections,
    session: String,
    /// Makes the ids of its connections unique.
    run: String,
    failed: FailedConnections,
}

impl CommandSink {
    /// A record as the log and clients see it, without what only its end tells.
    fn line(&self, record: &ConnectionRecord) -> Value {
        let mut line = serde_json::to_value(record).unwrap_or_default();
        line["id"] = json!(format!("{}-{}", self.run, record.number));
        line["at"] = json!(now());
        line["session"] = json!(self.session);
        line["command"] = json!(shortened(&record.command, MAX_COMMAND));
        line
    }
}

impl AuditSink for CommandSink {
    fn record(&self, record: ConnectionRecord) {
        self.failed.note(&record);
        let line = self.line(&record);
        self.connections.log.append(line.to_string());
        if let Some(live) = &self.connections.live {
            live.ended(&line);
        }
    }

    fn opened(&self, record: &ConnectionRecord, progress: &Arc<Progress>) {
        if let Some(live) = &self.connections.live {
            live.opened(self.line(record), progress);
        }
    }

    fn flush(&self) -> Flushing<'_> {
        Box::pin(async {
            // A disk that does not answer must not keep a command from ending.
            let _ = tokio::time::timeout(PATIENCE, self.connections.log.written()).await;
        })
    }
}

fn shortened(command: &str, most: usize) -> String {
    command.chars().take(most).collect()
}

/// The file of connections. One thread at a time writes all lines that wait.
#[derive(Debug, Clone)]
pub struct ConnectionLog {
    file: LineLog,
    queue: Arc<Mutex<Queue>>,
    /// Told when nothing waits to be written any more.
    idle: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Queue {
    lines: Vec<String>,
    is_writing: bool,
}

/// Which entries are wanted. The newest come first.
#[derive(Debug, Clone, Default)]
pub struct ConnectionQuery {
    /// How many; 50 if nothing is said, and at most 500.
    pub limit: Option<usize>,
    /// The `nextCursor` of the page before.
    pub cursor: Option<String>,
    /// This host and its subdomains.
    pub host: Option<String>,
    /// This skill.
    pub skill: Option<String>,
    /// `served`, `refused` or `failed`.
    pub outcome: Option<String>,
}

impl ConnectionLog {
    /// The log in that state directory.
    #[must_use]
    pub fn in_state_dir(state_dir: &Path) -> Self {
        let path = state_dir.join("audit").join("egress.jsonl");
        Self { file: LineLog::new(path, MAX_BYTES, Durability::Buffered), queue: Arc::default(), idle: Arc::default() }
    }

    /// One page: `{"entries": […], "nextCursor": …}`, the newest entry first. Looks at the disk.
    pub fn page(&self, query: &ConnectionQuery) -> std::io::Result<Value> {
        let limit = query.limit.unwrap_or(PAGE.0).clamp(1, PAGE.1);
        let mut is_reached = query.cursor.is_none();
        let mut entries = Vec::new();
        for text in self.file.read()? {
            for entry in text.lines().rev().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
                if !is_reached {
                    is_reached = entry["id"].as_str() == query.cursor.as_deref();
                    continue;
                }
                if !query.finds(&entry) {
                    continue;
                }
                if entries.len() == limit {
                    let next = entries.last().map(|last: &Value| last["id"].clone());
                    return Ok(json!({"entries": entries, "nextCursor": next}));
                }
                entries.push(entry);
            }
        }
        Ok(json!({"entries": entries, "nextCursor": null}))
    }

    /// Writes `line` soon.
    fn append(&self, line: String) {
        let mut queue = self.lock();
        if queue.lines.len() < MAX_QUEUED {
            queue.lines.push(line);
        }
        if std::mem::replace(&mut queue.is_writing, true) {
            return;
        }
        drop(queue);
        let log = self.clone();
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(move || log.write())),
            // The runtime ended before its connections.
            Err(_) => log.write(),
        }
    }

    fn write(&self) {
        loop {
            let mut queue = self.lock();
            let lines = std::mem::take(&mut queue.lines);
            queue.is_writing = !lines.is_empty();
            drop(queue);
            if lines.is_empty() {
                self.idle.notify_waiters();
                return;
            }
            // A connection that is not written down is a gap in a record; it must not stop the run.
            let _ = self.file.append_all(&lines);
        }
    }

    /// Waits until everything is written.
    async fn written(&self) {
        loop {
            let idle = self.idle.notified();
            if !self.lock().is_writing {
                return;
            }
            idle.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionQuery {
    fn finds(&self, entry: &Value) -> bool {
        let is = |wanted: &Option<String>, name: &str| {
            wanted.as_deref().is_none_or(|wanted| entry[name].as_str() == Some(wanted.trim()))
        };
        is(&self.skill, "skill")
            && is(&self.outcome, "outcome")
            && self.is_for(entry["host"].as_str().unwrap_or_default())
    }

    fn is_for(&self, host: &str) -> bool {
        let Some(wanted) = self.host.as_deref().map(|wanted| wanted.trim().to_lowercase()) else { return true };
        host.strip_suffix(&wanted).is_some_and(|before| before.is_empty() || before.ends_with('.'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(page: &Value) -> Vec<&str> {
        page["entries"].as_array().expect("entries").iter().filter_map(|entry| entry["id"].as_str()).collect()
    }

    #[test]
    fn pages_go_from_the_newest_connection_to_the_oldest() {
        let dir = tempfile::tempdir().expect("a folder");
        let log = ConnectionLog::in_state_dir(dir.path());
        assert_eq!(log.page(&ConnectionQuery::default()).expect("a page"), json!({"entries": [], "nextCursor": null}));
        for number in 0..7 {
            let (host, outcome) = if number % 3 == 0 { ("api.a.example", "refused") } else { ("b.example", "served") };
            log.append(json!({"id": format!("c{number}"), "host": host, "skill": "s", "outcome": outcome}).to_string());
        }
        let (mut seen, mut cursor) = (Vec::new(), None);
        loop {
            let query = ConnectionQuery { limit: Some(3), cursor, ..ConnectionQuery::default() };
            let page = log.page(&query).expect("a page");
            seen.extend(ids(&page).into_iter().map(str::to_owned));
            cursor = page["nextCursor"].as_str().map(str::to_owned);
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(seen, ["c6", "c5", "c4", "c3", "c2", "c1", "c0"]);
        let of = |query: ConnectionQuery| ids(&log.page(&query).expect("a page")).join(" ");
        let host = |text: &str| ConnectionQuery { host: Some(text.to_owned()), ..ConnectionQuery::default() };
        assert_eq!(of(host("A.example")), "c6 c3 c0");
        assert_eq!(of(host("example")), "c6 c5 c4 c3 c2 c1 c0");
        assert_eq!(of(host(".example")), "");
        assert_eq!(of(host("xample")), "");
        let refused =
            ConnectionQuery { outcome: Some("refused".to_owned()), limit: Some(2), ..ConnectionQuery::default() };
        assert_eq!(of(refused), "c6 c3");
        assert_eq!(of(ConnectionQuery { skill: Some("other".to_owned()), ..ConnectionQuery::default() }), "");
    }
}
