//! The journal: which runs had begun, should the gateway be killed?
//!
//! One line when a run begins, one when it is over. A run that a dead gateway left without its second line gets one from
//! the next, so every run ends exactly once, as done or failed. Nobody else writes the journal as long as it is open.

use std::collections::HashMap;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use prowess_agent::message::now;
use prowess_agent::session::SessionKey;
use serde_json::{Value, json};
use thiserror::Error;

use super::known::{Ended, How, Run};

/// What is said of a run that a gateway left behind.
pub(crate) const LEFT_BEHIND: &str =
    "the gateway stopped before this run was done; what was said so far is kept in its session";

/// How long a lock is waited for.
const PATIENCE: Duration = Duration::from_secs(3);

/// How many bytes of a journal are read.
const MAX_BYTES: u64 = 256 * 1024 * 1024;

/// The largest answer that is kept whole.
const MAX_ANSWER: usize = 64 * 1024;

/// How many lines there may be before those that no longer matter are thrown away.
const MAX_LINES: usize = 8_192;

/// How many runs that are over are kept, and for how long, in milliseconds.
const KEPT: usize = 1_000;
const KEPT_FOR: u64 = 60 * 60 * 1_000;

/// A journal that is open.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    writer: Mutex<Option<Writer>>,
}

#[derive(Debug)]
struct Writer {
    file: File,
    /// Keeps others out.
    lock: File,
    lines: usize,
}

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
    #[error("another gateway is running with the files in {}; end it first, or choose another state directory", .0.display())]
    Taken(PathBuf),
    /// The system refused.
    #[error("{}: {source}; make it writable", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// What it said.
        source: std::io::Error,
    },
}

impl Journal {
    /// Opens the journal in `folder`, and ends what was left open. Gives back all runs that it knows of.
    pub(crate) fn open(folder: &Path) -> Result<(Self, Vec<Past>), JournalError> {
        let path = folder.join("runs.jsonl");
        let failed = |source| JournalError::Io { path: path.clone(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
        let lock = owned(&folder.join("runs.lock")).map_err(failed)?;
        if !take(&lock).map_err(failed)? {
            return Err(JournalError::Taken(folder.to_owned()));
        }
        let mut past = read(&path).map_err(failed)?;
        for one in &mut past {
            let begun = one.begun;
            one.ended.get_or_insert_with(|| Ended::failed(&one.run, Some(begun), LEFT_BEHIND));
        }
        let past = newest(past);
        let (file, lines) = rewrite(&path, &past).map_err(failed)?;
        let writer = Writer { file, lock, lines };
        Ok((Self { path, writer: Mutex::new(Some(writer)) }, past))
    }

    /// A run begins. When this returns, a kill cannot make it unknown.
    pub(crate) fn begun(&self, run: &Run) -> std::io::Result<()> {
        self.write(&begun_line(&run.id, &run.key, run.accepted))
    }

    /// A run is over.
    pub(crate) fn ended(&self, run: &str, ended: &Ended) -> std::io::Result<()> {
        self.write(&ended_line(run, ended))
    }

    /// Nothing is written from now on, and another gateway may go on with it.
    pub(crate) fn close(&self) {
        if let Some(writer) = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // A command that is just being started has the file for a moment, and the lock with it, unless it is let go.
            if let Err(error) = writer.lock.unlock() {
                tracing::warn!("the journal of runs stays locked for a moment: {error}");
            }
        }
    }

    fn write(&self, line: &Value) -> std::io::Result<()> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        // Who is closed has nothing more to say: the next gateway speaks for the runs that were left.
        let Some(open) = writer.as_mut() else { return Ok(()) };
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        open.file.write_all(&bytes)?;
        open.lines += 1;
        if open.lines > MAX_LINES {
            let (file, lines) = rewrite(&self.path, &newest(read(&self.path)?))?;
            (open.file, open.lines) = (file, lines);
        }
        Ok(())
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

/// All runs of a journal, in the order in which they began. Lines that are torn or make no sense are stepped over.
fn read(path: &Path) -> std::io::Result<Vec<Past>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut runs: Vec<Past> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for line in BufReader::new(file.take(MAX_BYTES)).split(b'\n') {
        let Ok(line) = serde_json::from_slice::<Value>(&line?) else { continue };
        let Some(run) = line["run"].as_str() else { continue };
        match (line["begun"].as_u64(), places.get(run)) {
            (Some(begun), None) => {
                let Some(key) = line["key"].as_str().and_then(SessionKey::parse) else { continue };
                places.insert(run.to_owned(), runs.len());
                runs.push(Past { run: run.to_owned(), key, begun, ended: None });
            }
            (None, Some(&place)) => {
                // The first end counts.
                if let Some(one) = runs.get_mut(place).filter(|one| one.ended.is_none()) {
                    one.ended = ending(&line);
                }
            }
            (Some(_), Some(_)) | (None, None) => {}
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

/// Puts a journal with these runs in the place of the old one, whole.
fn rewrite(path: &Path, runs: &[Past]) -> std::io::Result<(File, usize)> {
    let beside = path.with_extension("jsonl.new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
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
    file.write_all(&text)?;
    file.sync_data()?;
    std::fs::rename(&beside, path)?;
    Ok((OpenOptions::new().append(true).open(path)?, lines))
}

/// Takes a lock. Commands that a killed gateway was just starting have it for a moment, so it is tried again.
fn take(lock: &File) -> std::io::Result<bool> {
    let start = Instant::now();
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) if start.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(TryLockError::WouldBlock) => return Ok(false),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// A file that is for its owner's eyes only.
fn owned(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use prowess_testkit::Tree;

    use super::super::known::{Begun, Known};
    use super::*;

    fn begin(journal: &Journal, known: &Known, id: &str) -> std::sync::Arc<Run> {
        let Begun::New(run) = known.begin(id, &SessionKey::new("main", "main")) else { panic!("it is new") };
        journal.begun(&run).expect("a line");
        run
    }

    #[test]
    fn what_was_left_open_ends_as_failed_and_only_once() {
        let tree = Tree::new();
        let folder = tree.path("gateway");
        let (journal, past) = Journal::open(&folder).expect("a journal");
        assert_eq!(past, []);
        let known = Known::default();
        let done = begin(&journal, &known, "done");
        begin(&journal, &known, "left");
        let payload = json!({"runId": "done", "status": "ok"});
        let ended = Ended { started: Some(1), at: now(), how: How::Done, payload };
        journal.ended(&done.id, &ended).expect("a line");
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

    #[test]
    fn a_torn_line_costs_only_itself() {
        let tree = Tree::new();
        let folder = tree.path("gateway");
        let (journal, _) = Journal::open(&folder).expect("a journal");
        let known = Known::default();
        begin(&journal, &known, "a");
        drop(journal);
        let path = folder.join("runs.jsonl");
        let mut text = std::fs::read(&path).expect("a journal");
        text.extend_from_slice(b"not json\n[]\n{\"run\":\"a\",\"ended\":");
        std::fs::write(&path, text).expect("a journal");
        let (_journal, past) = Journal::open(&folder).expect("a journal");
        assert_eq!(past.len(), 1);
        assert!(past[0].ended.is_some());
    }

    #[test]
    fn two_gateways_do_not_write_one_journal() {
        let tree = Tree::new();
        let folder = tree.path("gateway");
        let (journal, _) = Journal::open(&folder).expect("a journal");
        assert!(matches!(Journal::open(&folder), Err(JournalError::Taken(_))));
        journal.close();
        let (_other, _) = Journal::open(&folder).expect("it was let go");
        begin(&journal, &Known::default(), "late");
        let written = std::fs::read_to_string(folder.join("runs.jsonl")).expect("a journal");
        assert_eq!(written, "", "who let go writes nothing");
    }

    #[test]
    fn it_does_not_grow_without_end() {
        let tree = Tree::new();
        let (journal, _) = Journal::open(&tree.path("gateway")).expect("a journal");
        let known = Known::default();
        let going_on = begin(&journal, &known, "going on");
        for number in 0..MAX_LINES {
            let run = begin(&journal, &known, &number.to_string());
            journal.ended(&run.id, &Ended::stopped(&run.id)).expect("a line");
            run.end(Ended::stopped(&run.id));
        }
        let written = std::fs::read_to_string(tree.path("gateway/runs.jsonl")).expect("a journal");
        assert!(written.lines().count() <= MAX_LINES + 1);
        assert!(written.contains(&going_on.id));
    }

    #[test]
    fn a_long_answer_is_kept_without_its_words() {
        let payload = json!({"runId": "a", "status": "ok", "result": "x".repeat(MAX_ANSWER)});
        let line = ended_line("a", &Ended { started: None, at: 1, how: How::Done, payload });
        assert_eq!(line["payload"], json!({"runId": "a", "status": "ok"}));
    }
}
