//! Approvers: who says yes or no, and how are they asked?

use std::fmt::Write as _;
use std::fs::File;
use std::future::Future;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use prowess_policy::{Answer, Judgment, Objection, Question, shown};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How long a question stays open.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// The longest answer that is read.
const MAX_ANSWER_BYTES: usize = 256;

/// From how many lines on the question says how many there are, lest some scroll away unseen.
const MANY_LINES: usize = 10;

/// The same for bytes.
const MANY_BYTES: usize = 1000;

/// How many reads of earlier input are thrown away before a question.
const MAX_FORGOTTEN: usize = 1024;

/// Somebody who can be asked. No answer is no.
pub trait Approver: Send + Sync {
    /// Puts the question, and waits for the answer.
    fn ask<'a>(&'a self, question: &'a Question) -> Pin<Box<dyn Future<Output = Option<Answer>> + Send + 'a>>;
}

/// Nobody: every question stays unanswered.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nobody;

impl Approver for Nobody {
    fn ask<'a>(&'a self, _question: &'a Question) -> Pin<Box<dyn Future<Output = Option<Answer>> + Send + 'a>> {
        Box::pin(std::future::ready(None))
    }
}

/// The person at a terminal.
#[derive(Debug)]
pub struct Terminal {
    /// Where answers come from and questions go, one question at a time.
    line: Arc<Mutex<(File, File)>>,
    patience: Duration,
}

/// All that is said in one conversation, ready before it begins.
struct Talk {
    asked: String,
    why: String,
    may_last: bool,
    deadline: Instant,
}

impl Terminal {
    /// The terminal of this process, if it has one.
    pub fn open() -> std::io::Result<Self> {
        let tty = File::options().read(true).write(true).open("/dev/tty")?;
        Ok(Self::over(tty.try_clone()?, tty, PATIENCE))
    }

    /// Asks over these files.
    #[must_use]
    pub fn over(input: File, output: File, patience: Duration) -> Self {
        Self { line: Arc::new(Mutex::new((input, output))), patience }
    }
}

impl Approver for Terminal {
    fn ask<'a>(&'a self, question: &'a Question) -> Pin<Box<dyn Future<Output = Option<Answer>> + Send + 'a>> {
        let judgment = question.judgment();
        let talk = Talk {
            asked: asked(judgment),
            why: why(judgment),
            may_last: judgment.grants().is_ok(),
            deadline: Instant::now() + self.patience,
        };
        let line = Arc::clone(&self.line);
        Box::pin(async move {
            let talking = tokio::task::spawn_blocking(move || {
                let mut line = line.lock().ok()?;
                let (input, output) = &mut *line;
                converse(&talk, input, output)
            });
            talking.await.ok().flatten()
        })
    }
}

fn converse(talk: &Talk, input: &mut File, output: &mut File) -> Option<Answer> {
    forget(input);
    write!(output, "{}", talk.asked).ok()?;
    loop {
        let always = if talk.may_last { " / [a]lways" } else { "" };
        write!(output, "Run it? [y]es, once / [n]o{always} / [w]hy: ").ok()?;
        output.flush().ok()?;
        match read_line(input, talk.deadline)?.trim().to_lowercase().as_str() {
            "y" | "yes" => return Some(Answer::Once),
            "n" | "no" | "" => return Some(Answer::No),
            "a" | "always" if talk.may_last => return Some(Answer::Always),
            "w" | "why" => write!(output, "{}", talk.why).ok()?,
            _ => writeln!(output, "Please answer with one of these words.").ok()?,
        }
    }
}

/// Throws away what was typed before the question was there to be read: an answer that came too late for the last one
/// is none to this one.
fn forget(input: &mut File) {
    // Only terminals hold back half a line.
    let _ = rustix::termios::tcflush(&input, rustix::termios::QueueSelector::IFlush);
    let mut bytes = [0; 1024];
    let none = Timespec { tv_sec: 0, tv_nsec: 0 };
    for _ in 0..MAX_FORGOTTEN {
        let mut ready = [PollFd::from_borrowed_fd(input.as_fd(), PollFlags::IN)];
        if !matches!(poll(&mut ready, Some(&none)), Ok(1)) || !matches!(input.read(&mut bytes), Ok(1..)) {
            return;
        }
    }
}

/// The question: the exact words, where they would run, and why it is asked.
fn asked(judgment: &Judgment) -> String {
    let binding = &judgment.request().binding;
    let mut text = String::from("\nA command wants to run:\n\n");
    for line in binding.command.split('\n') {
        let _ = writeln!(text, "    {}", shown(line));
    }
    let lines = binding.command.split('\n').count();
    if lines > MANY_LINES || binding.command.len() > MANY_BYTES {
        let _ =
            writeln!(text, "\n  The command has {lines} lines and {} bytes; look at all of it.", binding.command.len());
    }
    let _ = writeln!(text, "\n  in       {}", shown(&binding.cwd.path.to_string_lossy()));
    let _ = writeln!(text, "  agent    {} (session {})", shown(&binding.agent), shown(&binding.session));
    for (name, value) in &judgment.request().variables {
        let _ = writeln!(text, "  with     {}={}", shown(name), shown(value));
    }
    for objection in judgment.all_objections() {
        let _ = writeln!(text, "  because  {}", shown(&objection.to_string()));
    }
    if let Ok(grants) = judgment.grants() {
        for grant in grants {
            let argv = grant.argv.iter().map(|arg| prowess_policy::quote(arg)).collect::<Vec<_>>().join(" ");
            let _ = writeln!(
                text,
                "  always   would allow {} as `{}` in {}",
                shown(&grant.program.to_string_lossy()),
                shown(&argv),
                shown(&grant.cwd.to_string_lossy())
            );
        }
    }
    text
}

/// All that is known about the command.
fn why(judgment: &Judgment) -> String {
    let mut text = String::new();
    for segment in judgment.segments() {
        let _ = writeln!(text, "\n  {}", shown(&segment.text));
        for program in &segment.starts {
            let _ = writeln!(text, "    starts   {}", shown(&program.real.to_string_lossy()));
        }
        match &segment.standing {
            Ok(_) => text.push_str("    covered by a rule\n"),
            Err(objections) => {
                for objection in objections {
                    let _ = writeln!(text, "    but      {}", shown(&objection.to_string()));
                }
            }
        }
    }
    for remedy in judgment.all_objections().filter_map(Objection::remedy) {
        let _ = writeln!(text, "  to change that: {}", shown(&remedy));
    }
    if let Err(never) = judgment.grants() {
        let _ = writeln!(text, "  it cannot be allowed for good: {never}");
    }
    text.push('\n');
    text
}

/// A line of the answer, unless the time is up or the other end has gone.
fn read_line(input: &mut File, deadline: Instant) -> Option<String> {
    let mut line = Vec::new();
    while line.len() < MAX_ANSWER_BYTES {
        let left = deadline.checked_duration_since(Instant::now())?;
        let timeout = Timespec { tv_sec: i64::try_from(left.as_secs()).ok()?, tv_nsec: i64::from(left.subsec_nanos()) };
        let mut ready = [PollFd::from_borrowed_fd(input.as_fd(), PollFlags::IN)];
        if poll(&mut ready, Some(&timeout)).ok()? == 0 {
            return None;
        }
        let mut byte = [0];
        match input.read(&mut byte) {
            Ok(1) if byte[0] == b'\n' => return String::from_utf8(line).ok(),
            Ok(1) => line.push(byte[0]),
            _ => return None,
        }
    }
    None
}
