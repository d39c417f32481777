//! The table of jobs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use super::{Job, words};

/// All jobs by name, with their place in the order of starting.
#[derive(Debug, Default)]
pub(super) struct Table {
    rows: Mutex<Rows>,
}

#[derive(Debug, Default)]
struct Rows {
    jobs: HashMap<String, (u64, Arc<Job>)>,
    started: u64,
}

impl Table {
    /// Adds a job under a name that nobody else has.
    pub(super) fn insert(&self, random: u128, job: impl FnOnce(String) -> Job) -> Arc<Job> {
        let mut rows = self.lock();
        let name = words::name(random, |name| rows.jobs.contains_key(name));
        let job = Arc::new(job(name.clone()));
        rows.started += 1;
        let place = rows.started;
        rows.jobs.insert(name, (place, Arc::clone(&job)));
        job
    }

    /// The job called `id`.
    pub(super) fn find(&self, id: &str) -> Option<Arc<Job>> {
        self.lock().jobs.get(id).map(|(_, job)| Arc::clone(job))
    }

    /// All jobs, the newest first.
    pub(super) fn all(&self) -> Vec<Arc<Job>> {
        let mut rows: Vec<_> = self.lock().jobs.values().cloned().collect();
        rows.sort_by_key(|(place, _)| std::cmp::Reverse(*place));
        rows.into_iter().map(|(_, job)| job).collect()
    }

    /// Forgets the job called `id`.
    pub(super) fn remove(&self, id: &str) {
        self.lock().jobs.remove(id);
    }

    /// Forgets jobs that have been finished for longer than `keep`, and the oldest of more than `most`.
    pub(super) fn sweep(&self, now: SystemTime, keep: Duration, most: usize) {
        let mut rows = self.lock();
        let ends = |job: &Job| job.outcome().map(|outcome| outcome.ended_at);
        rows.jobs
            .retain(|_, (_, job)| !ends(job).is_some_and(|end| now.duration_since(end).is_ok_and(|age| age > keep)));
        let finished = rows.jobs.values().filter_map(|(place, job)| Some((ends(job)?, *place, job.id.clone())));
        let mut finished: Vec<_> = finished.collect();
        if finished.len() > most {
            finished.sort();
            for (.., id) in &finished[..finished.len() - most] {
                rows.jobs.remove(id);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Rows> {
        // No code that can panic runs with the table locked halfway through a change.
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
