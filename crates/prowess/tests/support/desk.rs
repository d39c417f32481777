//! A desk: how does a test sit at a terminal and talk to the program?
//!
//! The terminal is a real one, the program's controlling terminal, so that Ctrl-C is a signal and a question reaches
//! `/dev/tty`. Nothing here is timed: a test waits for what it wants to see, for as long as it takes.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use prowess_testkit::Prowess;
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

/// How long a test waits for anything before it gives up.
const PATIENCE: Duration = Duration::from_secs(60);

/// Stands on the screen where the program begins to read a line.
pub(crate) const PROMPT: &str = "\u{1}";

/// What a line editor sends when it begins to read.
const BEGINS_TO_READ: &str = "?2004h";

pub(crate) const ENTER: &str = "\r";
pub(crate) const TAB: &str = "\t";
pub(crate) const UP: &str = "\u{1b}[A";
pub(crate) const LEFT: &str = "\u{1b}[D";
pub(crate) const CTRL_A: &str = "\u{1}";
pub(crate) const CTRL_C: &str = "\u{3}";
pub(crate) const CTRL_D: &str = "\u{4}";

/// Somebody at a terminal in which the program runs.
pub(crate) struct Desk {
    keys: File,
    /// The program's end; as long as it is open the terminal is there.
    other: Option<File>,
    child: Child,
    screen: Arc<Screen>,
    watcher: Option<JoinHandle<()>>,
    /// How much of the screen has been looked at.
    looked: usize,
}

/// How it was when the program had ended.
pub(crate) struct Left {
    /// Everything it wrote, byte by byte.
    pub(crate) raw: String,
    pub(crate) status: ExitStatus,
    /// Whether the terminal shows what is typed, as it did before.
    pub(crate) echoes: bool,
}

#[derive(Default)]
struct Screen {
    bytes: Mutex<(Vec<u8>, bool)>,
    changed: Condvar,
}

impl Desk {
    /// Runs the program with `args` in `home`, on a terminal with colours.
    pub(crate) fn sit(home: &Prowess, args: &[&str]) -> Self {
        Self::sit_before(120, home, args)
    }

    /// The same before a terminal of this many columns.
    pub(crate) fn sit_before(columns: u16, home: &Prowess, args: &[&str]) -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
        grantpt(&ours).and_then(|()| unlockpt(&ours)).expect("a terminal");
        let name = ptsname(&ours, Vec::new()).expect("a name").into_string().expect("text");
        // The one who opens it leads no session, so it is nobody's controlling terminal yet.
        let other = File::options().read(true).write(true).open(name).expect("the other end");
        tcsetwinsize(&other, Winsize { ws_row: 40, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).expect("a size");

        let inner = home.command();
        // What starts the program has to be found; what the program finds is up to the test.
        let path = std::env::var_os("PATH").unwrap_or_default();
        let setsid = std::env::split_paths(&path).map(|dir| dir.join("setsid")).find(|file| file.exists());
        let mut command = Command::new(setsid.expect("setsid of util-linux"));
        let given = inner.get_envs().filter(|(name, _)| *name != "NO_COLOR");
        command.arg("--ctty").arg(inner.get_program()).args(args);
        command.current_dir(inner.get_current_dir().expect("a home"));
        command.env_clear().envs(given.filter_map(|(name, value)| Some((name, value?)))).env("TERM", "xterm-256color");
        let end = || other.try_clone().expect("the other end");
        let child = command.stdin(end()).stdout(end()).stderr(end()).spawn().expect("a child");

        let screen = Arc::new(Screen::default());
        let keys = File::from(ours);
        let watcher = {
            let (screen, from) = (Arc::clone(&screen), keys.try_clone().expect("our end"));
            std::thread::spawn(move || screen.watch(from))
        };
        Self { keys, other: Some(other), child, screen, watcher: Some(watcher), looked: 0 }
    }

    /// Waits until `text` is on the screen, after what was seen last.
    #[track_caller]
    pub(crate) fn see(&mut self, text: &str) -> &mut Self {
        match self.screen.find(text, self.looked) {
            Ok(end) => self.looked = end,
            Err(rest) => panic!("{text:?} was not seen; after what was seen last there is\n{rest}"),
        }
        self
    }

    /// Types these keys, one text after the other.
    #[track_caller]
    pub(crate) fn type_in(&mut self, keys: &[&str]) -> &mut Self {
        self.keys.write_all(keys.concat().as_bytes()).expect("the other end is there");
        self
    }

    /// Waits for the prompt and says something.
    #[track_caller]
    pub(crate) fn say(&mut self, text: &str) -> &mut Self {
        self.see(PROMPT).type_in(&[text, ENTER])
    }

    /// Asks the program to end.
    pub(crate) fn terminate(&mut self) -> &mut Self {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a process");
        kill_process(pid, Signal::TERM).expect("it is ours");
        self
    }

    /// Waits for the end of the program.
    #[track_caller]
    pub(crate) fn leave(mut self) -> Left {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("it is ours") {
                break status;
            }
            assert!(Instant::now() < deadline, "it did not end; there is\n{}", self.shown());
            std::thread::sleep(Duration::from_millis(5));
        };
        let settings = tcgetattr(self.other.as_ref().expect("until now")).expect("a terminal");
        let echoes = settings.local_modes.contains(LocalModes::ECHO | LocalModes::ICANON);
        // Once nobody has the other end, reading ours comes to its end.
        self.other = None;
        self.watcher.take().expect("one leaves once").join().expect("no panic");
        let raw = String::from_utf8_lossy(&self.screen.bytes.lock().expect("no panic").0).into_owned();
        Left { raw, status, echoes }
    }

    fn shown(&self) -> String {
        plain(&self.screen.bytes.lock().expect("no panic").0)
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        // After a test that failed. One that has ended is left alone.
        if matches!(self.child.try_wait(), Ok(None)) {
            self.child.kill().expect("it is ours");
            self.child.wait().expect("it is ours");
        }
    }
}

impl Left {
    /// Checks that it ended well and gave the terminal back, and hands on what was written.
    #[track_caller]
    pub(crate) fn well(self) -> String {
        assert!(self.status.success(), "{} (signal {:?})\n{}", self.status, self.status.signal(), self.raw);
        assert!(self.echoes, "the terminal is left as the line editor had it");
        self.raw
    }
}

impl Screen {
    fn watch(&self, mut from: File) {
        let mut piece = [0; 4096];
        loop {
            // Linux says so when the last program has closed its end.
            let read = from.read(&mut piece).unwrap_or(0);
            let mut bytes = self.bytes.lock().expect("no panic");
            bytes.0.extend_from_slice(&piece[..read]);
            bytes.1 = read == 0;
            self.changed.notify_all();
            if read == 0 {
                return;
            }
        }
    }

    /// Waits for `text` after the first `looked` bytes, and says where it ends; or what there is instead.
    fn find(&self, text: &str, looked: usize) -> Result<usize, String> {
        let deadline = Instant::now() + PATIENCE;
        let mut bytes = self.bytes.lock().expect("no panic");
        loop {
            let shown = plain(&bytes.0);
            if let Some(at) = shown[looked..].find(text) {
                return Ok(looked + at + text.len());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if bytes.1 || left.is_zero() {
                return Err(shown[looked..].to_owned());
            }
            bytes = self.changed.wait_timeout(bytes, left).expect("no panic").0;
        }
    }
}

/// What is there to read: without styles and moves of the cursor, and with a mark where a line is asked for.
fn plain(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut shown = String::new();
    let mut rest = text.as_ref();
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        shown.push_str(before);
        let Some(end) = after.find(|c: char| ('@'..='~').contains(&c)) else { return shown };
        if &after[..=end] == BEGINS_TO_READ {
            shown.push_str(PROMPT);
        }
        rest = &after[end + 1..];
    }
    shown.push_str(rest.strip_suffix(['\u{1b}', '\u{fffd}']).unwrap_or(rest));
    shown
}
