//! A gateway or a node that runs beside a test, as a program of its own.

use std::fs::{File, OpenOptions};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Child;

use prowess_testkit::{Prowess, eventually};
use rustix::process::{Pid, Signal, kill_process};

/// What clients have to know.
pub(crate) const TOKEN: &str = "a-token-for-tests";

/// A program that serves until the test is over.
pub(crate) struct Served {
    child: Child,
    log: PathBuf,
    url: Option<String>,
}

impl Served {
    /// `prowess gateway run` with these words more, once it listens.
    pub(crate) fn gateway(home: &Prowess, words: &[&str]) -> Self {
        let mut served = Self::start(home, &[&["gateway", "run"], words].concat());
        eventually("the gateway listens", || {
            served.url = served.log().split_whitespace().rev().find_map(address);
            served.url.is_some() || served.child.try_wait().is_ok_and(|ended| ended.is_some())
        });
        assert!(served.url.is_some(), "the gateway did not start: {}", served.log());
        served
    }

    /// The program with these words.
    pub(crate) fn start(home: &Prowess, words: &[&str]) -> Self {
        let log = home.path(&format!("{}.log", words[0]));
        // What an earlier one said is no longer true.
        drop(File::create(&log).expect("a log"));
        let open = || OpenOptions::new().append(true).open(&log).expect("a log");
        let child = home.command().args(words).stdout(open()).stderr(open()).spawn().expect("started");
        Self { child, log, url: None }
    }

    /// What it said.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Ends it at once, as if the power had failed.
    pub(crate) fn kill(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::TERM);
        }
        let _ = self.child.wait();
    }
}

fn address(word: &str) -> Option<String> {
    word.starts_with("ws://127.0.0.1:").then(|| word.trim_end_matches(['/', '.', ',']).to_owned())
}

/// A port that nobody has, for a gateway that is started more than once.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).and_then(|socket| socket.local_addr()).expect("a free port").port()
}
