//! The scribe: a thread that writes the journal, so that nobody else waits for a disk.
//!
//! Whatever came while it wrote is written in one go. A run is over, for those who wait, when its line is written; who
//! begins one is told when that is on the disk itself.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use prowess_files::Lock;
use serde_json::Value;
use tokio::sync::oneshot;

use super::{MAX_BYTES, begun_line, ended_line, newest, read, rewrite};
use crate::runs::known::{Ended, Run};

/// How many lines there may be before those that no longer matter are thrown away.
pub(super) const MAX_LINES: usize = 8_192;

/// How many orders are taken at once.
const MAX_BATCH: usize = 256;

/// How many lines that could not be written are tried again.
const MAX_OWED: usize = 1_000;

/// What is to be written.
pub(super) enum Order {
    /// A run begins; the answer says whether that is on the disk.
    Begun(Arc<Run>, oneshot::Sender<Result<(), String>>),
    /// A run is over.
    Ended(Arc<Run>, Ended),
}

/// Who writes.
pub(super) struct Scribe {
    path: PathBuf,
    file: File,
    /// Keeps others out.
    _lock: Lock,
    lines: usize,
    /// With how many lines the journal is compacted.
    compact_at: usize,
    /// Ends that could not be written yet.
    owed: Vec<Value>,
    /// Whether the last line may be half a line.
    is_torn: bool,
}

impl Scribe {
    pub(super) fn new(path: PathBuf, file: File, lock: Lock, lines: usize) -> Self {
        Self { path, file, _lock: lock, lines, compact_at: MAX_LINES, owed: Vec::new(), is_torn: false }
    }

    /// Writes until nobody can send orders any more, and lets go of the journal.
    pub(super) fn write_all(mut self, orders: &Receiver<Order>) {
        while let Ok(first) = orders.recv() {
            let batch = std::iter::once(first).chain(orders.try_iter().take(MAX_BATCH)).collect();
            self.take(batch);
        }
    }

    fn take(&mut self, batch: Vec<Order>) {
        let mut lines = std::mem::take(&mut self.owed);
        let mut is_begin = false;
        let (mut asked, mut over, mut seen) = (Vec::new(), Vec::new(), HashSet::new());
        let owed = lines.len();
        for order in batch {
            match order {
                Order::Begun(run, answer) => {
                    is_begin = true;
                    lines.push(begun_line(&run.id, &run.key, run.accepted));
                    asked.push(answer);
                }
                // The first end counts.
                Order::Ended(run, ended) => {
                    if !run.is_over() && seen.insert(Arc::as_ptr(&run)) {
                        lines.push(ended_line(&run.id, &ended));
                        over.push((run, ended));
                    }
                }
            }
        }
        let written = self.write(&lines, is_begin);
        if let Err(error) = &written {
            tracing::error!("the journal of runs cannot be written: {error}");
            self.is_torn = true;
            // A beginning is refused; an end has happened, and is written as soon as that is possible.
            let is_end = |line: &Value| line.get("ended").is_some();
            self.owed = lines
                .into_iter()
                .enumerate()
                .filter(|(at, line)| *at < owed || is_end(line))
                .map(|(_, line)| line)
                .collect();
            let surplus = self.owed.len().saturating_sub(MAX_OWED);
            self.owed.drain(..surplus);
        }
        let written = written.map_err(|error| error.to_string());
        for answer in asked {
            // Who no longer waits for an answer does not get one.
            let _ = answer.send(written.clone());
        }
        for (run, ended) in over {
            run.end(ended);
        }
        self.compact();
    }

    fn write(&mut self, lines: &[Value], is_begin: bool) -> std::io::Result<()> {
        let mut bytes = if self.is_torn { vec![b'\n'] } else { Vec::new() };
        for line in lines {
            serde_json::to_writer(&mut bytes, line)?;
            bytes.push(b'\n');
        }
        self.file.write_all(&bytes)?;
        self.is_torn = false;
        self.lines += lines.len();
        // A power cut must not make a run unknown that was accepted; it may make one of which the end was not told.
        if is_begin {
            self.file.sync_data()?;
        }
        Ok(())
    }

    /// Throws away lines that no longer matter. If that fails, the journal is as good as before, only longer: the lines
    /// that were just written count, and a later batch tries again.
    fn compact(&mut self) {
        if self.lines <= self.compact_at {
            return;
        }
        match read(&self.path, MAX_BYTES).and_then(|runs| rewrite(&self.path, &newest(runs))) {
            Ok((file, lines)) => (self.file, self.lines, self.compact_at) = (file, lines, MAX_LINES.max(2 * lines)),
            Err(error) => {
                tracing::warn!("the journal of runs cannot be compacted: {error}");
                self.compact_at = self.lines + MAX_LINES;
                // It may have been replaced before it failed; a journal without a name must not be written on.
                if let Ok(file) = OpenOptions::new().append(true).open(&self.path) {
                    self.file = file;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use prowess_agent::session::SessionKey;
    use prowess_testkit::Tree;

    use super::*;
    use crate::runs::known::{Begun, Known};

    fn run(known: &Known, id: &str) -> Arc<Run> {
        let Begun::New(run) = known.begin(id, &SessionKey::new("main", "main")) else { panic!("it is new") };
        run
    }

    #[test]
    fn what_no_longer_matters_is_thrown_away() {
        let known = Known::default();
        let line = |line: Value| format!("{line}\n");
        let old = |number: usize| {
            let run = number.to_string();
            let ended = Ended { at: 1, ..Ended::stopped(&run) };
            line(begun_line(&run, &SessionKey::new("main", "main"), 1)) + &line(ended_line(&run, &ended))
        };
        let going_on = begun_line("going on", &SessionKey::new("main", "main"), 1);
        let text: String = std::iter::once(line(going_on)).chain((0..MAX_LINES / 2).map(old)).collect();
        let tree = Tree::new().file("runs.jsonl", text);
        let open = |name: &str| OpenOptions::new().read(true).append(true).open(tree.path(name)).expect("a file");
        let mut scribe = Scribe::new(tree.path("runs.jsonl"), open("runs.jsonl"), held(&tree), MAX_LINES + 1);
        scribe.take(vec![Order::Ended(run(&known, "new"), Ended::stopped("new"))]);
        assert_eq!(scribe.lines, 1);
        let text = std::fs::read_to_string(tree.path("runs.jsonl")).expect("a journal");
        assert!(text.contains("going on") && text.lines().count() == 1, "{text}");
    }

    fn held(tree: &Tree) -> Lock {
        Lock::acquire(&tree.path("lock"), Duration::ZERO).expect("it is free")
    }

    #[test]
    fn a_failed_compaction_refuses_no_run() {
        let tree = Tree::new().file("runs.jsonl", "");
        let open = |name: &str| OpenOptions::new().read(true).append(true).open(tree.path(name)).expect("a file");
        // Compaction looks for the journal under another name, finds a directory, and fails.
        std::fs::create_dir(tree.path("directory")).expect("a directory");
        let mut scribe = Scribe::new(tree.path("directory"), open("runs.jsonl"), held(&tree), MAX_LINES);
        let known = Known::default();
        for id in ["first", "second"] {
            let (answer, mut told) = oneshot::channel();
            scribe.take(vec![Order::Begun(run(&known, id), answer)]);
            assert_eq!(told.try_recv().expect("an answer"), Ok(()), "{id}");
        }
        let text = std::fs::read_to_string(tree.path("runs.jsonl")).expect("a journal");
        assert_eq!(text.lines().count(), 2, "{text}");
        assert_eq!(scribe.lines, MAX_LINES + 2);
    }

    /// A disk that is full for a while: the beginning is refused, the end is written later, and no other line is lost.
    #[cfg(target_os = "linux")]
    #[test]
    fn an_end_that_cannot_be_written_is_written_later() {
        let tree = Tree::new().file("runs.jsonl", "{\"run\":\"torn");
        let open = |name: &str| OpenOptions::new().read(true).append(true).open(tree.path(name)).expect("a file");
        let full = OpenOptions::new().write(true).open("/dev/full").expect("a device that is full");
        let mut scribe = Scribe::new(tree.path("runs.jsonl"), full, held(&tree), 0);
        let known = Known::default();
        let (first, second, third) = (run(&known, "first"), run(&known, "second"), run(&known, "third"));
        let begin = |scribe: &mut Scribe, run: &Arc<Run>| {
            let (answer, mut told) = oneshot::channel();
            scribe.take(vec![Order::Begun(Arc::clone(run), answer)]);
            told.try_recv().expect("an answer")
        };
        assert!(begin(&mut scribe, &first).is_err());
        scribe.take(vec![Order::Ended(Arc::clone(&second), Ended::stopped("second"))]);
        assert!(second.is_over(), "it has ended, whatever the disk says");

        scribe.file = open("runs.jsonl");
        assert_eq!(begin(&mut scribe, &third), Ok(()));
        let text = std::fs::read_to_string(tree.path("runs.jsonl")).expect("a journal");
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert!(lines[0].contains("\"second\"") && lines[1].contains("\"third\"") && lines.len() == 2, "{text}");
    }

    #[test]
    fn a_run_is_over_once_also_within_one_batch() {
        let tree = Tree::new().file("runs.jsonl", "");
        let open = |name: &str| OpenOptions::new().read(true).append(true).open(tree.path(name)).expect("a file");
        let scribe = Scribe::new(tree.path("runs.jsonl"), open("runs.jsonl"), held(&tree), 0);
        let run = run(&Known::default(), "a");
        let (orders, inbox) = mpsc::channel();
        for why in ["first", "second"] {
            orders.send(Order::Ended(Arc::clone(&run), Ended::failed("a", None, why))).expect("sent");
        }
        drop(orders);
        scribe.write_all(&inbox);
        let text = std::fs::read_to_string(tree.path("runs.jsonl")).expect("a journal");
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.contains("first"));
    }
}
