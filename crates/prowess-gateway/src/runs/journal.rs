//! The journal: which runs had begun, should the gateway be killed?
//!
//! One line when a run begins, one when it is over. A run that a dead gateway left without its second line gets one from
//! the next, so every run ends exactly once, as done or failed. Nobody else writes the journal as long as it is open.

mod scribe;

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use prowess_agent::message::now;
use prowess_agent::session::SessionKey;
use prowess_files::{Draft, Holder, Lock, LockError};
use serde_json::{Value, json};
use thiserror::Error;
use tokio::sync::oneshot;

use super::known::{Ended, How, Run};
use scribe::{Order, Scribe};

/// What is said of a run that a gateway left behind.
pub(crate) const LEFT_BEHIND: &str =
    "the gateway stopped before this run was done; its session has what was finished until then";

/// How many bytes of a journal are read: the last ones, for the newest lines are what a crash leaves open.
const MAX_BYTES: u64 = 256 * 1024 * 1024;

/// How long to wait for another gateway. A command that a killed gateway was just starting has its descriptors until it
/// executes its program.
const PATIENCE: Duration = Duration::from_secs(3);

/// The largest answer that is kept whole.
const MAX_ANSWER: usize = 64 * 1024;

/// How many runs that are over are kept, and for how long, in milliseconds.
const KEPT: usize = 1_000;
const KEPT_FOR: u64 = 60 * 60 * 1_000;

/// A journal that is open.
#[derive(Debug)]
pub(crate) struct Journal(Mutex<Option<Writing>>);

/// Where orders go, and who carries them out.
#[derive(Debug)]
struct Writing {
    orders: mpsc::Sender<Order>,
    scribe: JoinHandle<()>,
}

/// Nothing is written any more.
struct Closed;

/// A run that the journal knows of.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Past {
    pub(crate) run: String,
    pub(crate) key: SessionKey,
    begun: u64,
    pub(crate) ended: Option<Ended>,
}

/// A journal cannot be used.
#[derive(Debug, Error)]
pub enum JournalError {
    /// Another gateway writes it.
    #[error("another gateway ({}) uses the files in {}; stop it first, or choose another state directory", .1, .0.display())]
    Taken(PathBuf, Holder),
    /// The system refused.
    #[error("cannot write {}: {source}; {}", path.display(), crate::files::remedy(source))]
    Io {
        /// Which file.
        path: PathBuf,
        /// What it said.
        source: std::io::Error,
    },
}

/// Whether a gateway runs with this state directory.
#[must_use]
pub fn is_running_in(state_dir: &Path) -> bool {
    let path = state_dir.join("gateway").join("runs.lock");
    path.exists() && matches!(Lock::acquire(&path, Duration::ZERO), Err(LockError::Held { .. }))
}

impl Journal {
    /// Opens the journal in `folder`, and ends what was left open. Gives back all runs that it knows of.
    pub(crate) fn open(folder: &Path) -> Result<(Self, Vec<Past>), JournalError> {
        let path = folder.join("runs.jsonl");
        let failed = |source| JournalError::Io { path: path.clone(), source };
        let lock = Lock::acquire(&folder.join("runs.lock"), PATIENCE).map_err(|error| match error {
            LockError::Held { holder, .. } => JournalError::Taken(folder.to_owned(), holder),
            LockError::Io { path, source } => JournalError::Io { path, source },
        })?;
        let mut past = read(&path, MAX_BYTES).map_err(failed)?;
        for one in &mut past {
            let begun = one.begun;
            one.ended.get_or_insert_with(|| Ended::failed(&one.run, Some(begun), LEFT_BEHIND));
        }
        let past = newest(past);
        let (file, lines) = rewrite(&path, &past).map_err(failed)?;
        let scribe = Scribe::new(path.clone(), file, lock, lines);
        let (orders, inbox) = mpsc::channel();
        let thread = std::thread::Builder::new().name("prowess-journal".to_owned());
        let scribe = thread.spawn(move || scribe.write_all(&inbox)).map_err(failed)?;
        Ok((Self(Mutex::new(Some(Writing { orders, scribe }))), past))
    }

    /// A run begins. Lines are written in the order of these calls. When the future is done, neither a kill nor a power
    /// cut makes the run unknown.
    pub(crate) fn begun(&self, run: &Arc<Run>) -> impl Future<Output = Result<(), String>> + Send + use<> {
        let (answer, told) = oneshot::channel();
        // A journal that is closed drops the order, and with it the other end.
        let _ = self.order(Order::Begun(Arc::clone(run), answer));
        async move { told.await.unwrap_or_else(|_| Err("it is closed".to_owned())) }
    }

    /// A run is over: on disk first, and then for those who wait. When the journal is closed, the next gateway says that
    /// it was left behind, and so does this one.
    pub(crate) fn ended(&self, run: &Arc<Run>, ended: Ended) {
        if self.order(Order::Ended(Arc::clone(run), ended)).is_err() {
            run.end(Ended::failed(&run.id, run.started(), LEFT_BEHIND));
        }
    }

    /// Nothing is taken from now on; what was taken is written, and another gateway may go on with it.
    pub(crate) fn close(&self) {
        let writing = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Writing { orders, scribe }) = writing {
            drop(orders);
            if scribe.join().is_err() {
                tracing::error!("the journal of runs was not written to its end");
            }
        }
    }

    fn order(&self, order: Order) -> Result<(), Closed> {
        let writing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        writing.as_ref().ok_or(Closed)?.orders.send(order).map_err(|_| Closed)
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.close();
    }
}

fn begun_line(run: &str, key: &SessionKey, at: u64) -> Value {
    json!({"run": run, "key": key.to_string(), "begun": at})
}

fn ended_line(run: &str, ended: &Ended) -> Value {
    let (how, why) = match &ended.how {
        How::Done => ("done", None),
        How::Stopped => ("stopped", None),
        How::Failed(why) => ("failed", Some(why)),
    };
    let mut payload = ended.payload.clone();
    if payload.to_string().len() > MAX_ANSWER
        && let Some(payload) = payload.as_object_mut()
    {
        payload.remove("result");
    }
    json!({"run": run, "started": ended.started, "ended": ended.at, "how": how, "why": why, "payload": payload})
}

/// The runs in the last `limit` bytes of a journal, in the order in which they began. Lines that are torn or make no
/// sense are skipped.
fn read(path: &Path, limit: u64) -> std::io::Result<Vec<Past>> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let surplus = file.metadata()?.len().saturating_sub(limit);
    file.seek(SeekFrom::Start(surplus))?;
    let mut runs: Vec<Past> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for line in BufReader::new(file).split(b'\n') {
        let Ok(line) = serde_json::from_slice::<Value>(&line?) else { continue };
        let Some(run) = line["run"].as_str() else { continue };
        match (line["begun"].as_u64(), places.get(run)) {
            (Some(begun), None) => {
                let Some(key) = line["key"].as_str().and_then(SessionKey::parse) else { continue };
                places.insert(run.to_owned(), runs.len());
                runs.push(Past { run: run.to_owned(), key, begun, ended: None });
            }
            (Some(begun), Some(&place)) => {
                // A name that was forgotten since, and given again.
                if let Some(one) = runs.get_mut(place) {
                    (one.begun, one.ended) = (begun, None);
                }
            }
            (None, Some(&place)) => {
                // The first end counts.
                if let Some(one) = runs.get_mut(place).filter(|one| one.ended.is_none()) {
                    one.ended = ending(&line);
                }
            }
            (None, None) => {}
        }
    }
    Ok(runs)
}

fn ending(line: &Value) -> Option<Ended> {
    let how = match line["how"].as_str()? {
        "done" => How::Done,
        "stopped" => How::Stopped,
        _ => How::Failed(line["why"].as_str().unwrap_or(LEFT_BEHIND).to_owned()),
    };
    let payload = line["payload"].clone();
    Some(Ended { started: line["started"].as_u64(), at: line["ended"].as_u64()?, how, payload })
}

/// Those that still matter.
fn newest(mut runs: Vec<Past>) -> Vec<Past> {
    let since = now().saturating_sub(KEPT_FOR);
    runs.retain(|one| one.ended.as_ref().is_none_or(|ended| ended.at >= since));
    let surplus = runs.iter().filter(|one| one.ended.is_some()).count().saturating_sub(KEPT);
    let mut left = surplus;
    runs.retain(|one| {
        let goes = left > 0 && one.ended.is_some();
        left -= usize::from(goes);
        !goes
    });
    runs
}

/// Replaces the journal with one that has these runs. Returns it, open at its end, and how many lines it has.
fn rewrite(path: &Path, runs: &[Past]) -> std::io::Result<(File, usize)> {
    let mut text = Vec::new();
    let mut lines = 0;
    for one in runs {
        let end = one.ended.as_ref().map(|ended| ended_line(&one.run, ended));
        for line in [Some(begun_line(&one.run, &one.key, one.begun)), end].into_iter().flatten() {
            serde_json::to_writer(&mut text, &line)?;
            text.push(b'\n');
            lines += 1;
        }
    }
    let mut draft = Draft::beside(path)?;
    draft.write_all(&text)?;
    Ok((draft.commit()?, lines))
}

#[cfg(test)]
mod tests {
    use prowess_testkit::Tree;

    use super::super::known::{Begun, Known, State};
    use super::*;

    async fn begin(journal: &Journal, known: &Known, id: &str) -> Arc<Run> {
        let Begun::New(run) = known.begin(id, &SessionKey::new("main", "main")) else { panic!("it is new") };
        journal.begun(&run).await.expect("a line");
        run
    }

    #[tokio::test]
    async fn what_was_left_open_ends_as_failed_and_only_once() {
        let tree = Tree::new();
        let folder = tree.path("gateway");
        let (journal, past) = Journal::open(&folder).expect("a journal");
        assert_eq!(past, []);
        let known = Known::default();
        let done = begin(&journal, &known, "done").await;
        begin(&journal, &known, "left").await;
        let payload = json!({"runId": "done", "status": "ok"});
        let ended = Ended { started: Some(1), at: now(), how: How::Done, payload };
        journal.ended(&done, ended.clone());
        drop(journal);

        for _ in 0..2 {
            let (journal, past) = Journal::open(&folder).expect("a journal");
            assert_eq!(past.iter().map(|one| one.run.as_str()).collect::<Vec<_>>(), ["done", "left"]);
            assert_eq!(past[0].ended.as_ref(), Some(&ended));
            let left = past[1].ended.as_ref().expect("it is over");
            assert_eq!(left.how, How::Failed(LEFT_BEHIND.to_owned()));
            drop(journal);
        }
    }

    #[tokio::test]
    async fn a_torn_line_costs_only_itself() {
        let tree = Tree::new();
        let folder = tree.path("gateway");
        let (journal, _) = Journal::open(&folder).expect("a journal");
        let known = Known::default();
        begin(&journal, &known, "a").await;
        drop(journal);
        let path = folder.join("runs.jsonl");
        let mut text = std::fs::read(&path).expect("a journal");
        text.extend_from_slice(b"not json\n[]\n{\"run\":\"a\",\"ended\":");
        std::fs::write(&path, text).expect("a journal");
        let (_journal, past) = Journal::open(&folder).expect("a journal");
        assert_eq!(past.len(), 1);
        assert!(past[0].ended.is_some());
    }

    #[tokio::test]
    async fn two_gateways_do_not_write_one_journal() {
        let tree = Tree::new();
        let folder = tree.path("gateway");
        let (journal, _) = Journal::open(&folder).expect("a journal");
        assert!(matches!(Journal::open(&folder), Err(JournalError::Taken(..))));
        journal.close();
        let (_other, _) = Journal::open(&folder).expect("it was let go");
        let Begun::New(late) = Known::default().begin("late", &SessionKey::new("main", "main")) else { panic!("new") };
        assert!(journal.begun(&late).await.is_err());
        journal.ended(&late, Ended::stopped("late"));
        let State::Ended(ended, _) = late.state() else { panic!("it is over") };
        assert_eq!(ended.how, How::Failed(LEFT_BEHIND.to_owned()), "as the next gateway would say");
        let written = std::fs::read_to_string(folder.join("runs.jsonl")).expect("a journal");
        assert_eq!(written, "", "who let go writes nothing");
    }

    #[test]
    fn the_size_bound_keeps_the_newest_lines() {
        let line = |run: &str| format!("{}\n", begun_line(run, &SessionKey::new("main", "main"), 1));
        let text = line("old") + &line("new");
        let tree = Tree::new().file("runs.jsonl", &text);
        let runs = |limit: usize| -> Vec<String> {
            let past = read(&tree.path("runs.jsonl"), limit as u64).expect("a journal");
            past.into_iter().map(|one| one.run).collect()
        };
        assert_eq!(runs(text.len()), ["old", "new"]);
        assert_eq!(runs(text.len() - 1), ["new"], "half a line is none");
        assert_eq!(runs(line("new").len()), ["new"]);
    }

    #[test]
    fn a_long_answer_is_kept_without_its_words() {
        let payload = json!({"runId": "a", "status": "ok", "result": "x".repeat(MAX_ANSWER)});
        let line = ended_line("a", &Ended { started: None, at: 1, how: How::Done, payload });
        assert_eq!(line["payload"], json!({"runId": "a", "status": "ok"}));
    }

    #[tokio::test]
    async fn a_name_that_is_given_again_is_another_run() {
        let tree = Tree::new();
        let folder = tree.path("gateway");
        let (journal, _) = Journal::open(&folder).expect("a journal");
        let first = begin(&journal, &Known::default(), "again").await;
        journal.ended(&first, Ended { how: How::Done, ..Ended::stopped("again") });
        begin(&journal, &Known::default(), "again").await;
        drop(journal);
        let (_journal, past) = Journal::open(&folder).expect("a journal");
        assert_eq!(past.len(), 1);
        let ended = past[0].ended.as_ref().expect("it is over");
        assert_eq!(ended.how, How::Failed(LEFT_BEHIND.to_owned()), "the second one was left behind");
    }
}
