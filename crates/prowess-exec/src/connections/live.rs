//! Which connections are open, and what happened since somebody looked?
//!
//! However many connections come and go, what is kept and told is bounded: clients that missed some read the log.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prowess_egress::Progress;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::shortened;

/// How many open connections are kept track of; more are only counted.
const MAX_TRACKED: usize = 1_000;

/// How many rows of each kind are told at once.
const MAX_TOLD: usize = 100;

/// How much of a command is told, in characters.
const MAX_COMMAND: usize = 200;

/// Connections that are open now, and those that ended since [`news`](Self::news) was called.
#[derive(Debug, Default)]
pub struct LiveConnections {
    state: Mutex<LiveState>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct LiveState {
    open: HashMap<String, OpenConnection>,
    /// How many are open, also those without an entry.
    count: usize,
    /// How many were ever opened.
    opened: u64,
    ended: Vec<Value>,
    /// How many ended that are in no list.
    missed: usize,
    has_news: bool,
    /// What the open connections had transferred when they were told last.
    told: u64,
}

#[derive(Debug)]
struct OpenConnection {
    /// Its place: the newest has the highest.
    place: u64,
    row: Value,
    progress: Arc<Progress>,
}

impl LiveConnections {
    /// A connection is about to be made.
    pub(super) fn opened(&self, mut row: Value, progress: &Arc<Progress>) {
        shorten(&mut row);
        if let Some(fields) = row.as_object_mut() {
            // How a connection would end if nothing else happened.
            fields.retain(|name, _| !matches!(name.as_str(), "reason" | "ms"));
        }
        let id = row["id"].as_str().unwrap_or_default().to_owned();
        let mut state = self.lock();
        state.count += 1;
        state.opened += 1;
        if state.open.len() < MAX_TRACKED {
            let connection = OpenConnection { place: state.opened, row, progress: Arc::clone(progress) };
            state.open.insert(id, connection);
        }
        self.tell(state);
    }

    /// A connection is over. Those that never named a host were never open.
    pub(super) fn ended(&self, line: &Value) {
        let mut row = line.clone();
        shorten(&mut row);
        let mut state = self.lock();
        if !row["host"].is_null() {
            state.count = state.count.saturating_sub(1);
            state.open.remove(row["id"].as_str().unwrap_or_default());
        }
        if state.ended.len() < MAX_TOLD {
            state.ended.push(row);
        } else {
            state.missed += 1;
        }
        self.tell(state);
    }

    /// Waits until there may be news: a connection began or ended, or some have been open for `every`.
    pub async fn changed(&self, every: Duration) {
        let is_open = self.lock().count > 0;
        let tick = async {
            if is_open {
                tokio::time::sleep(every).await;
            } else {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = self.changed.notified() => {}
            () = tick => {}
        }
    }

    /// What happened since the last call, if anything did: `{"open": […], "openCount", "ended": […], "missed"}`, the newest
    /// connections first.
    pub fn news(&self) -> Option<Value> {
        let mut state = self.lock();
        let moved = state.open.values().map(|one| one.progress.up() + one.progress.down()).sum::<u64>();
        let reached = state.open.values().filter(|one| one.progress.is_reached()).count() as u64;
        let sum = moved.wrapping_add(reached);
        let has_news = std::mem::take(&mut state.has_news);
        if !has_news && sum == state.told {
            return None;
        }
        state.told = sum;
        let mut ended = std::mem::take(&mut state.ended);
        ended.reverse();
        let missed = std::mem::take(&mut state.missed);
        let (open, count) = rows(&state);
        Some(json!({"open": open, "openCount": count, "ended": ended, "missed": missed}))
    }

    /// The connections that are open now, the newest first, and how many there are.
    #[must_use]
    pub fn open(&self) -> (Vec<Value>, usize) {
        rows(&self.lock())
    }

    fn tell(&self, mut state: MutexGuard<'_, LiveState>) {
        state.has_news = true;
        drop(state);
        self.changed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, LiveState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn rows(state: &LiveState) -> (Vec<Value>, usize) {
    let mut open: Vec<&OpenConnection> = state.open.values().collect();
    open.sort_unstable_by_key(|one| std::cmp::Reverse(one.place));
    let row = |one: &OpenConnection| {
        let mut row = one.row.clone();
        row["outcome"] = json!(if one.progress.is_reached() { "open" } else { "waiting" });
        (row["up"], row["down"]) = (json!(one.progress.up()), json!(one.progress.down()));
        row
    };
    (open.into_iter().take(MAX_TOLD).map(row).collect(), state.count)
}

/// Takes most of a long command away.
fn shorten(row: &mut Value) {
    let command = shortened(row["command"].as_str().unwrap_or_default(), MAX_COMMAND);
    row["command"] = json!(command);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(number: usize) -> Value {
        json!({"id": format!("c{number}"), "host": "a.example", "command": "x".repeat(500), "outcome": "failed"})
    }

    #[test]
    fn news_are_what_changed_and_bounded() {
        let live = LiveConnections::default();
        assert_eq!(live.news(), None);
        let progress: Vec<Arc<Progress>> = (0..MAX_TRACKED + 5).map(|_| Arc::default()).collect();
        for (number, progress) in progress.iter().enumerate() {
            live.opened(row(number), progress);
        }
        let news = live.news().expect("news");
        assert_eq!((news["open"].as_array().map(Vec::len), &news["openCount"]), (Some(MAX_TOLD), &json!(1_005)));
        let first = &news["open"][0];
        assert_eq!((&first["id"], &first["outcome"]), (&json!("c999"), &json!("waiting")));
        assert_eq!(first["command"].as_str().map(str::len), Some(MAX_COMMAND));
        assert_eq!(live.news(), None, "nothing changed");
        for number in 0..progress.len() {
            live.ended(&row(number));
        }
        live.ended(&json!({"id": "refused", "host": null, "command": ""}));
        let news = live.news().expect("news");
        assert_eq!((&news["open"], &news["openCount"], &news["missed"]), (&json!([]), &json!(0), &json!(906)));
        assert_eq!((&news["ended"][0]["id"], news["ended"].as_array().map(Vec::len)), (&json!("c99"), Some(MAX_TOLD)));
        assert_eq!((live.news(), live.open()), (None, (Vec::new(), 0)));
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_waited_for_by_a_timer_while_nothing_is_open() {
        let live = LiveConnections::default();
        let every = Duration::from_secs(1);
        let day = Duration::from_secs(86_400);
        assert!(tokio::time::timeout(day, live.changed(every)).await.is_err());
        live.opened(row(0), &Arc::default());
        live.changed(every).await;
        let start = tokio::time::Instant::now();
        live.changed(every).await;
        assert_eq!(start.elapsed(), every);
    }
}
