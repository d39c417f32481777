//! Announced jobs: the end of which jobs in the background does a model know of already?
//!
//! A conversation knows it as long as it is open. It is let go when nothing happens, and must not be told again what it
//! heard before.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use prowess_agent::session::SessionKey;

/// How many sessions are remembered.
const MAX_SESSIONS: usize = 1_024;

/// What conversations that are not open know.
#[derive(Debug, Default)]
pub(super) struct Announced(Mutex<HashMap<SessionKey, HashSet<String>>>);

impl Announced {
    /// Remembers what the conversation behind `key` knows.
    pub(super) fn keep(&self, key: &SessionKey, jobs: &HashSet<String>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !jobs.is_empty() && (known.len() < MAX_SESSIONS || known.contains_key(key)) {
            known.insert(key.clone(), jobs.clone());
        }
    }

    /// What the conversation behind `key` knows; it is for it to remember from now on.
    pub(super) fn take(&self, key: &SessionKey) -> HashSet<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_told_is_remembered_for_its_session() {
        let announced = Announced::default();
        let key = |rest: &str| SessionKey::new("main", rest);
        let jobs = HashSet::from(["a".to_owned()]);
        announced.keep(&key("main"), &jobs);
        announced.keep(&key("idle"), &HashSet::new());
        assert_eq!(announced.take(&key("other")), HashSet::new());
        assert_eq!(announced.take(&key("main")), jobs);
        assert_eq!(announced.take(&key("main")), HashSet::new());
        for number in 0..MAX_SESSIONS * 2 {
            announced.keep(&key(&number.to_string()), &jobs);
        }
        assert_eq!(announced.0.lock().expect("no panic").len(), MAX_SESSIONS);
    }
}
