//! How does a program serve beside a test? As a process of its own that writes a log, and that ends with the test.

use std::fs::{File, OpenOptions};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use rustix::process::{Pid, Signal, kill_process};

use crate::{Prowess, eventually};

/// A program that serves until the test is over.
#[derive(Debug)]
#[must_use = "it is ended when this is dropped"]
pub struct Served {
    child: Child,
    log: PathBuf,
    url: String,
}

impl Served {
    /// `prowess gateway run` with these words more, once it listens.
    #[track_caller]
    pub fn gateway(home: &Prowess, words: &[&str]) -> Self {
        let mut command = home.command();
        command.args(["gateway", "run"]).args(words);
        Self::listening(command, &home.path("gateway.log"))
    }

    /// Any gateway that says where it listens, once it does so.
    #[track_caller]
    pub fn listening(command: Command, log: &Path) -> Self {
        let mut served = Self::spawn(command, log);
        eventually("the gateway listens", || {
            served.url = served.log().split_whitespace().rev().find_map(address).unwrap_or_default();
            !served.url.is_empty() || served.child.try_wait().is_ok_and(|ended| ended.is_some())
        });
        assert!(!served.url.is_empty(), "the gateway did not start: {}", served.log());
        served
    }

    /// `prowess` with these words. Its log has the name of the first of them.
    #[track_caller]
    pub fn start(home: &Prowess, words: &[&str]) -> Self {
        let mut command = home.command();
        command.args(words);
        Self::spawn(command, &home.path(&format!("{}.log", words[0])))
    }

    #[track_caller]
    fn spawn(mut command: Command, log: &Path) -> Self {
        // What an earlier one said is no longer true.
        drop(File::create(log).expect("a log"));
        let open = || OpenOptions::new().append(true).open(log).expect("a log");
        let child = command.stdout(open()).stderr(open()).spawn().expect("started");
        Self { child, log: log.to_owned(), url: String::new() }
    }

    /// Where it listens, as in `ws://127.0.0.1:18789`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The same without the protocol.
    #[must_use]
    pub fn address(&self) -> &str {
        self.url.trim_start_matches("ws://")
    }

    /// The number of its process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it said.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Ends it at once, as if the power had failed.
    pub fn kill(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        terminate(self.child.id());
        let _ = self.child.wait();
    }
}

/// Asks a process to end, as a service manager does.
pub fn terminate(process: u32) {
    if let Some(pid) = i32::try_from(process).ok().and_then(Pid::from_raw) {
        // It may have ended by itself.
        let _ = kill_process(pid, Signal::TERM);
    }
}

/// A port that nobody has, for a gateway that is started more than once.
#[must_use]
pub fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).and_then(|socket| socket.local_addr()).expect("a free port").port()
}

fn address(word: &str) -> Option<String> {
    word.starts_with("ws://127.0.0.1:").then(|| word.trim_end_matches(['/', '.', ',']).to_owned())
}
