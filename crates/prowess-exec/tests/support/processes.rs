//! Processes: what do they say, and do they still run?

use prowess_exec::job::Job;

use crate::support::soon;

/// Waits until `job` has said `word`, and returns what it has said.
pub(crate) async fn says(job: &Job, word: &str) -> String {
    let mut changes = job.watch();
    soon(async {
        loop {
            let said = job.output().await.text();
            if said.contains(word) {
                return said;
            }
            changes.changed().await.expect("it ended without saying what was expected");
        }
    })
    .await
}

/// The numbers in `text` that stand behind `pid=`.
pub(crate) fn pids(text: &str) -> Vec<i32> {
    text.split_whitespace().filter_map(|word| word.strip_prefix("pid=")?.parse().ok()).collect()
}

/// Whether the process runs; one that has ended and waits to be reaped does not.
pub(crate) fn is_running(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}
