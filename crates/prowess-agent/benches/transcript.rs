//! Transcripts: what does it cost to open and to continue a long one, compared with only parsing and only writing?

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use criterion::{Criterion, criterion_group};
use prowess_agent::message::{Message, User};
use prowess_agent::session::{Context, SessionKey, Sessions, Transcript};
use prowess_testkit::Tree;
use prowess_testkit::bench::ratio;
use serde_json::Value;

/// A session with this many messages.
struct Long {
    _tree: Tree,
    sessions: Sessions,
    file: PathBuf,
}

impl Long {
    fn new(messages: usize) -> Self {
        let tree = Tree::new();
        let sessions = Sessions::new(&tree.path(""), "main");
        let mut transcript = sessions.open(&key(), Path::new("/")).expect("a session");
        for number in 0..messages {
            transcript.message(&says(number)).expect("room on the disk");
        }
        let file = transcript.path().to_owned();
        Self { _tree: tree, sessions, file }
    }

    /// As a turn does: take it, and see what goes on in it. Both are given back, so that letting go of them is not
    /// measured here and left out for the floor.
    fn open(&self) -> (Transcript, Context) {
        let transcript = self.sessions.open(&key(), Path::new("/")).expect("a session");
        let context = transcript.context();
        (transcript, context)
    }

    /// The floor: every line through the parser, and nothing kept but that.
    fn parse(&self) -> Vec<Value> {
        let from = BufReader::new(File::open(&self.file).expect("a transcript"));
        from.split(b'\n').map(|line| serde_json::from_slice(&line.expect("a line")).expect("JSON")).collect()
    }
}

fn key() -> SessionKey {
    SessionKey::new("main", "main")
}

fn says(number: usize) -> Message {
    Message::User(User::says(format!("message {number}: {}", "the quick brown fox jumps over the lazy dog ".repeat(8))))
}

fn main() {
    benches();
    println!();
    let (short, long, longer) = (Long::new(1_000), Long::new(10_000), Long::new(20_000));
    ratio("10,000 messages opened / parsed", 15, || long.parse(), || long.open());
    ratio("10,000 messages / 1,000 messages, opened (10 is linear)", 15, || short.open(), || long.open());
    ratio("20,000 messages / 10,000 messages, opened (2 is linear)", 15, || long.open(), || longer.open());
    ratio("10,000 messages glanced at / opened", 15, || long.open(), || long.sessions.list().expect("an index").len());
    append(&long);
}

/// A message added to a long session, against its line added to a file.
fn append(long: &Long) {
    let line = serde_json::to_vec(&says(0)).expect("JSON");
    let line = [line.as_slice(), &[b' '; 100], b"\n"].concat();
    let bare = long.file.with_extension("bare");
    let mut bare = OpenOptions::new().create(true).append(true).open(bare).expect("a file");
    let mut transcript = long.sessions.open(&key(), Path::new("/")).expect("a session");
    let many = 500;
    ratio(
        "500 messages appended / their bytes written",
        50,
        || (0..many).for_each(|_| bare.write_all(&line).expect("room on the disk")),
        || (0..many).for_each(|number| drop(transcript.message(&says(number)).expect("room on the disk"))),
    );
}

criterion_group!(benches, transcripts);

fn transcripts(criterion: &mut Criterion) {
    let long = Long::new(10_000);
    criterion.bench_function("open 10,000 messages", |bench| bench.iter_with_large_drop(|| long.open().1));
    let mut transcript = long.sessions.open(&key(), Path::new("/")).expect("a session");
    let message = says(1);
    criterion.bench_function("append a message", |bench| bench.iter(|| transcript.message(&message)));
}
