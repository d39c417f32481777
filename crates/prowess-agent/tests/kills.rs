//! Kills: is everything there that was acknowledged, whenever a process is killed, and is there ever a second owner?
//!
//! The children are this test program itself, started on one of its ignored tests with a state directory in the
//! environment.

#[path = "kills/turns.rs"]
mod turns;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use prowess_agent::message::{Message, User};
use prowess_agent::session::{Body, OpenError, SessionKey, Sessions};
use prowess_testkit::{Dice, Tree};
use serde_json::{Value, json};

const STATE: &str = "PROWESS_TEST_STATE";
const WORD: &str = "PROWESS_TEST_WORD";
const ACK: &str = "ack ";

/// How many processes are killed, over how many sessions.
const SESSIONS: u64 = 100;
const KILLS_EACH: u64 = 10;

/// How many are started and killed at a time: most of their time they wait for the disk.
const WORKERS: u64 = 6;

/// How many entries a child writes if nobody kills it.
const MAX_APPENDS: u64 = 400;

/// Waits for something that is done on another thread.
fn finished<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(future)
}

fn start(test: &str, state: &Path, word: &str) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    let test = format!("{}::{test}", module_path!().split_once("::").expect("a module").1);
    command.args(["--exact", &test, "--ignored", "--nocapture", "--test-threads", "1"]);
    command.env(STATE, state).env(WORD, word).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    command.spawn().expect("a child")
}

/// The next thing a child acknowledges.
fn next_ack(from: &mut BufReader<ChildStdout>) -> Option<String> {
    let mut line = String::new();
    loop {
        line.clear();
        if from.read_line(&mut line).expect("a pipe") == 0 {
            return None;
        }
        // A line that the kill cut short acknowledges nothing.
        if let (Some(at), true) = (line.find(ACK), line.ends_with('\n')) {
            return Some(line[at + ACK.len()..].trim().to_owned());
        }
    }
}

fn given() -> Option<(PathBuf, String)> {
    Some((PathBuf::from(std::env::var_os(STATE)?), std::env::var(WORD).ok()?))
}

#[test]
#[ignore = "a child of the test below"]
fn appender() {
    let Some((state, word)) = given() else { return };
    let (key, round) = word.split_once('/').expect("a key and a round");
    let mut transcript = Sessions::new(&state, "main").open(&SessionKey::new("main", key), &state).expect("a session");
    let mut out = std::io::stdout().lock();
    for number in 0..MAX_APPENDS {
        let label = format!("{round}.{number}");
        // Some are long, so that a kill can hit within one write.
        let padding = if number % 16 == 3 { "x".repeat(20_000) } else { String::new() };
        transcript.message(&Message::User(User::says(format!("{label} {padding}")))).expect("room on the disk");
        out.write_all(format!("{ACK}{label}\n").as_bytes()).and_then(|()| out.flush()).expect("a pipe");
        if number % 16 == 15 {
            finished(transcript.sync()).expect("a disk");
        }
    }
}

#[test]
fn a_thousand_kills_lose_nothing_that_was_acknowledged() {
    let tree = Tree::new();
    let state = tree.path("");
    std::thread::scope(|scope| {
        for worker in 0..WORKERS {
            let state = &state;
            scope.spawn(move || {
                let mut dice = Dice::new(worker);
                for session in (0..SESSIONS).filter(|session| session % WORKERS == worker) {
                    kill_over_and_over(state, &format!("s{session}"), &mut dice);
                }
            });
        }
    });
    let listed = Sessions::new(&state, "main").list().expect("an index");
    assert_eq!(listed.iter().filter(|one| one.key.is_some()).count() as u64, SESSIONS);
}

fn kill_over_and_over(state: &Path, key: &str, dice: &mut Dice) {
    let sessions = Sessions::new(state, "main");
    let mut acknowledged: Vec<String> = Vec::new();
    for round in 0..KILLS_EACH {
        let mut child = start("appender", state, &format!("{key}/{round}"));
        let mut from = BufReader::new(child.stdout.take().expect("a pipe"));
        if dice.below(4) == 0 {
            // While it starts, or opens the session.
            std::thread::sleep(Duration::from_micros(dice.below(6_000)));
        } else {
            // While it writes.
            for _ in 0..=dice.below(12) {
                acknowledged.extend(next_ack(&mut from));
            }
            std::thread::sleep(Duration::from_micros(dice.below(1_500)));
        }
        child.kill().expect("it is ours");
        child.wait().expect("it is ours");
        acknowledged.extend(std::iter::from_fn(|| next_ack(&mut from)));

        let transcript = sessions.open(&SessionKey::new("main", key), state).expect("the dead block nobody");
        let context = transcript.context();
        let found: Vec<&str> = context.messages.iter().map(label).collect();
        let mut rest = found.iter();
        for one in &acknowledged {
            assert!(rest.any(|found| found == one), "{key}: {one} is lost; found {found:?}");
        }
        let distinct: BTreeSet<&&str> = found.iter().collect();
        assert_eq!(distinct.len(), found.len(), "{key}: something is there twice");
    }
    assert!(!acknowledged.is_empty(), "{key}: no child ever wrote anything");
}

fn label(message: &Value) -> &str {
    let text = message["content"][0]["text"].as_str().expect("text");
    text.split(' ').next().expect("a label")
}

/// How often each child takes the session, and how much it writes each time.
const TURNS: usize = 25;
const ENTRIES: usize = 3;

#[test]
#[ignore = "a child of the test below"]
fn contender() {
    let Some((state, word)) = given() else { return };
    let sessions = Sessions::new(&state, "main");
    let key = SessionKey::new("main", "main");
    let mut turn = 0;
    while turn < TURNS {
        let mut transcript = match sessions.open(&key, &state) {
            Ok(transcript) => transcript,
            Err(OpenError::Busy { .. }) => {
                std::thread::sleep(Duration::from_micros(300));
                continue;
            }
            Err(error) => panic!("{error}"),
        };
        for entry in 0..ENTRIES {
            let data = json!({"owner": format!("{word}.{turn}"), "entry": entry});
            transcript.append(Body::Custom { kind: "test:turn", data }).expect("the session is ours");
        }
        turn += 1;
    }
}

#[test]
fn two_processes_never_own_one_session() {
    let tree = Tree::new();
    let state = tree.path("");
    let mut dice = Dice::new(7);
    let mut children: Vec<Child> = (0..6).map(|child| start("contender", &state, &format!("c{child}"))).collect();
    // Half of them die at some point, perhaps with the session in their hands.
    for child in children.iter_mut().take(3) {
        std::thread::sleep(Duration::from_millis(10 + dice.below(40)));
        child.kill().expect("it is ours");
    }
    for child in &mut children {
        child.wait().expect("it is ours");
    }
    let stored = Sessions::new(&state, "main").read("main").expect("it is there");
    let mut owners: Vec<(String, usize)> = Vec::new();
    for entry in &stored.entries {
        let owner = entry["data"]["owner"].as_str().expect("an owner");
        match owners.last_mut() {
            Some((last, count)) if last == owner => *count += 1,
            _ => owners.push((owner.to_owned(), 1)),
        }
    }
    let distinct: BTreeSet<&str> = owners.iter().map(|(owner, _)| owner.as_str()).collect();
    assert_eq!(distinct.len(), owners.len(), "somebody wrote while another owned the session: {owners:?}");
    for survivor in ["c3", "c4", "c5"] {
        let turns = owners.iter().filter(|(owner, count)| owner.starts_with(survivor) && *count == ENTRIES).count();
        assert_eq!(turns, TURNS, "{survivor} did not get its turns");
    }
}
