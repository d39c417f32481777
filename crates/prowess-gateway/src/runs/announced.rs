//! What sessions know that are not open.
//!
//! A conversation is let go when nothing happens. It must not be told again which jobs in the background ended, as far
//! as it heard of that before, and must still be told the news that waits for its next turn.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use prowess_agent::news::News;
use prowess_agent::session::SessionKey;

/// How many sessions are remembered.
const MAX_SESSIONS: usize = 1_024;

/// Of the end of which jobs they know.
pub(super) type Announced = Kept<HashSet<String>>;

/// The news that they have not heard.
pub(super) type Unheard = Kept<Vec<News>>;

/// Something that is kept for each session.
#[derive(Debug)]
pub(super) struct Kept<T>(Mutex<HashMap<SessionKey, T>>);

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Default> Kept<T> {
    /// Keeps it for the session behind `key`, unless there is nothing to keep.
    pub(super) fn keep<I>(&self, key: &SessionKey, what: T)
    where
        for<'a> &'a T: IntoIterator<Item = &'a I>,
        I: 'static,
    {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_empty = (&what).into_iter().next().is_none();
        if !is_empty && (kept.len() < MAX_SESSIONS || kept.contains_key(key)) {
            kept.insert(key.clone(), what);
        }
    }

    /// What was kept for the session behind `key`; it is for it to remember from now on.
    pub(super) fn take(&self, key: &SessionKey) -> T {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key).unwrap_or_default()
    }
}

impl Announced {
    /// Whether the session behind `key`, which is not open, knows that `job` has ended.
    pub(super) fn knows(&self, key: &SessionKey, job: &str) -> bool {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(key).is_some_and(|jobs| jobs.contains(job))
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
        announced.keep(&key("main"), jobs.clone());
        announced.keep(&key("idle"), HashSet::new());
        assert!(announced.knows(&key("main"), "a") && !announced.knows(&key("main"), "b"));
        assert_eq!(announced.take(&key("other")), HashSet::new());
        assert_eq!(announced.take(&key("main")), jobs);
        assert_eq!(announced.take(&key("main")), HashSet::new());
        for number in 0..MAX_SESSIONS * 2 {
            announced.keep(&key(&number.to_string()), jobs.clone());
        }
        assert_eq!(announced.0.lock().expect("no panic").len(), MAX_SESSIONS);
    }
}
