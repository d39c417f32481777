//! The journal: which questions were open when a gateway ended?
//!
//! A small file with the names of open questions. Whoever answers one of them after a restart is told that it is over;
//! nothing is ever allowed from it.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

/// The largest file that is read.
const MAX_BYTES: u64 = 256 * 1024;

/// The names of questions that were open.
pub(super) struct Journal {
    path: PathBuf,
    writing: Mutex<()>,
    /// Those of gateways before this one.
    expired: HashSet<String>,
}

impl Journal {
    /// The journal in `state_dir`, with what an earlier gateway left in it. Looks at the disk.
    pub(super) fn open(state_dir: &Path) -> Self {
        let path = state_dir.join("exec-questions.json");
        let expired = read(&path).unwrap_or_default();
        Self { path, writing: Mutex::default(), expired }
    }

    /// Whether a gateway before this one had the question open.
    pub(super) fn is_expired(&self, id: &str) -> bool {
        self.expired.contains(id)
    }

    /// Writes down what is open. `open` is asked under a lock, so that the newest list is written last.
    pub(super) fn save(&self, open: impl FnOnce() -> Vec<String>) {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let text = json!({"version": 1, "open": open()}).to_string();
        if let Err(error) = prowess_files::replace(&self.path, text.as_bytes()) {
            // Without it late answers are "unknown" and not "expired"; both allow nothing.
            tracing::warn!("cannot save approval requests in {}: {error}", self.path.display());
        }
    }
}

fn read(path: &Path) -> Option<HashSet<String>> {
    std::fs::metadata(path).ok().filter(|file| file.is_file() && file.len() <= MAX_BYTES)?;
    let file: Value = serde_json::from_str(&std::fs::read_to_string(path).ok()?).ok()?;
    Some(file["open"].as_array()?.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}
