//! Owed results: which commands outlived their turn and have not given their session a result yet?
//!
//! The transcript says of each of them that it waits. A small file knows them, so that a gateway that is started again can
//! say what became of those that the last one left: they were interrupted.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use prowess_agent::session::SessionKey;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::aside::blocking;

/// How many commands are known at most; the oldest are forgotten first.
const MAX_OWED: usize = 1_024;

/// The largest file that is read.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// A command that owes its session a result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OwedResult {
    pub(super) session_key: String,
    /// The run that made the call, if it is known.
    pub(super) run_id: Option<String>,
    pub(super) tool_call_id: String,
    pub(super) approval_id: String,
    pub(super) command: String,
    /// Where it would run.
    pub(super) host: String,
    /// What the tool was given.
    pub(super) arguments: Map<String, Value>,
}

/// All commands that owe a result.
#[derive(Debug)]
pub(super) struct OwedResults {
    path: PathBuf,
    writing: Mutex<()>,
    owed: Mutex<Vec<OwedResult>>,
}

impl OwedResults {
    /// Those in `dir`, with what an earlier gateway left. Looks at the disk.
    pub(super) fn open(dir: &Path) -> Self {
        let path = dir.join("waiting.json");
        let owed = Mutex::new(read(&path).unwrap_or_default());
        Self { path, writing: Mutex::default(), owed }
    }

    /// All of them, the oldest first.
    pub(super) fn all(&self) -> Vec<OwedResult> {
        self.owed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// One more. It is on disk when this returns.
    pub(super) async fn add(self: &Arc<Self>, one: OwedResult) {
        self.change(|owed| {
            if owed.len() >= MAX_OWED {
                owed.remove(0);
            }
            owed.push(one);
        })
        .await;
    }

    /// The results of the commands with these approvals are in the transcript.
    pub(super) async fn settle(self: &Arc<Self>, approvals: &[String]) {
        if !approvals.is_empty() {
            self.change(|owed| owed.retain(|one| !approvals.contains(&one.approval_id))).await;
        }
    }

    /// The session is over, and nobody waits for its results.
    pub(super) async fn forget(self: &Arc<Self>, key: &SessionKey) {
        let key = key.to_string();
        self.change(|owed| owed.retain(|one| one.session_key != key)).await;
    }

    async fn change(self: &Arc<Self>, change: impl FnOnce(&mut Vec<OwedResult>)) {
        {
            let mut owed = self.owed.lock().unwrap_or_else(PoisonError::into_inner);
            let before = owed.len();
            let last = owed.last().cloned();
            change(&mut owed);
            if owed.len() == before && owed.last() == last.as_ref() {
                return;
            }
        }
        let own = Arc::clone(self);
        // What could not be written is in the log.
        let _ = blocking(move || own.save()).await;
    }

    /// Writes all of it down. The list is taken under the lock, so that the newest is written last.
    fn save(&self) {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let text = json!({"version": 1, "waiting": self.all()}).to_string();
        if let Err(error) = prowess_files::replace(&self.path, text.as_bytes()) {
            tracing::warn!("cannot save waiting commands in {}: {error}", self.path.display());
        }
    }
}

fn read(path: &Path) -> Option<Vec<OwedResult>> {
    std::fs::metadata(path).ok().filter(|file| file.is_file() && file.len() <= MAX_BYTES)?;
    let mut file: Value = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
    let rows = file["waiting"].as_array_mut().map(std::mem::take)?;
    Some(rows.into_iter().filter_map(|row| serde_json::from_value(row).ok()).take(MAX_OWED).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owed(session: &str, approval: &str) -> OwedResult {
        OwedResult {
            session_key: session.to_owned(),
            run_id: None,
            tool_call_id: "c1".to_owned(),
            approval_id: approval.to_owned(),
            command: "make".to_owned(),
            host: "gateway".to_owned(),
            arguments: Map::new(),
        }
    }

    #[tokio::test]
    async fn what_is_owed_survives_a_restart_until_it_is_settled() {
        let dir = tempfile::tempdir().expect("a folder");
        let results = Arc::new(OwedResults::open(dir.path()));
        for (session, approval) in [("agent:main:main", "a"), ("agent:main:main", "b"), ("agent:main:other", "c")] {
            results.add(owed(session, approval)).await;
        }
        results.settle(&["a".to_owned()]).await;
        let again = Arc::new(OwedResults::open(dir.path()));
        assert_eq!(again.all(), [owed("agent:main:main", "b"), owed("agent:main:other", "c")]);
        again.forget(&SessionKey::new("main", "main")).await;
        assert_eq!(OwedResults::open(dir.path()).all(), [owed("agent:main:other", "c")]);
    }

    #[tokio::test]
    async fn there_is_an_end_to_what_is_kept() {
        let dir = tempfile::tempdir().expect("a folder");
        let results = Arc::new(OwedResults::open(dir.path()));
        *results.owed.lock().expect("no panic") = vec![owed("agent:main:main", "old"); MAX_OWED];
        results.add(owed("agent:main:main", "new")).await;
        assert_eq!(results.all().len(), MAX_OWED);
        assert_eq!(OwedResults::open(dir.path()).all().last(), Some(&owed("agent:main:main", "new")));
    }
}
