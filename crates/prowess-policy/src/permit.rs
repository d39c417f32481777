//! Permits: what exactly may be started, and who said so?
//!
//! A [`Permit`] owns the text that was judged, the folder it runs in and the files it names, as they were when it was
//! judged. Only a [`Judgment`](crate::Judgment) makes one, and it can be used once: whoever runs it consumes it.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::judge::{Grant, Judgment};
use crate::lease::Lease;
use crate::lookup::Identity;
use crate::script::prescan::suspicion;
use crate::script::{Span, quote};

/// What an approval is bound to. Change any of it, and the approval is void.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Binding {
    /// The command text.
    pub command: String,
    /// The working directory.
    pub cwd: Place,
    /// [`RunEnv::digest`](crate::env::RunEnv::digest) of the environment.
    pub environment: String,
    /// The agent that asks.
    pub agent: String,
    /// The conversation it asks in.
    pub session: String,
}

impl Binding {
    /// One short word for all of it.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        let cwd = format!("{}:{}:{}", self.cwd.device, self.cwd.inode, self.cwd.path.display());
        for part in [&self.command, &cwd, &self.environment, &self.agent, &self.session] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }
}

/// A folder as it was when somebody looked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Place {
    /// Its path.
    pub path: PathBuf,
    /// The file system.
    pub device: u64,
    /// The folder on it.
    pub inode: u64,
}

/// The shell that runs the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shell {
    /// Where it is.
    pub path: PathBuf,
    /// Which language it speaks.
    pub dialect: Dialect,
}

/// The language of a shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Bash, which is the grammar the text was read with.
    Bash,
    /// The common subset only.
    Posix,
}

impl Shell {
    /// The arguments that make it run `text` and nothing of its own.
    #[must_use]
    pub fn argv(&self, text: &str) -> Vec<String> {
        let mut argv = vec![self.path.to_string_lossy().into_owned()];
        if self.dialect == Dialect::Bash {
            argv.extend(["--norc".to_owned(), "--noprofile".to_owned()]);
        }
        argv.extend(["-c".to_owned(), text.to_owned()]);
        argv
    }
}

/// A file that the command names and that must not change before it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// The word that names it, where the word can be replaced by the file's path; `None` inside nested commands.
    pub(crate) span: Option<Span>,
    /// The path that goes into the text.
    pub path: PathBuf,
    /// The same without links: the file itself.
    pub real: PathBuf,
    /// What it was.
    pub identity: Identity,
    /// Whether others than the administrator could change it, so that a person's approval must run a copy.
    pub settled: bool,
}

/// Who said yes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Basis {
    /// The rules alone.
    Rules,
    /// A person, who saw this very command.
    Person,
    /// Nobody answered, and the rules allow for that.
    Unanswered,
}

/// The right to start one command once.
#[derive(Debug)]
pub struct Permit {
    binding: Binding,
    shell: Shell,
    text: Template,
    pins: Vec<Pin>,
    basis: Basis,
    lease: Lease,
    creates: Vec<PathBuf>,
}

/// The judged text, with places for pinned paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template(pub(crate) Vec<Piece>);

/// A piece of the executed text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    /// As written.
    Text(String),
    /// The path of this pin.
    Pin(usize),
    /// A script inside the script, as one quoted word.
    Quoted(Template),
}

impl Template {
    fn render(&self, pins: &[Pin], place: &dyn Fn(&Pin) -> PathBuf) -> String {
        self.0.iter().fold(String::new(), |mut text, piece| {
            match piece {
                Piece::Text(part) => text.push_str(part),
                Piece::Pin(index) => text.push_str(&quote(&place(&pins[*index]).to_string_lossy())),
                Piece::Quoted(inner) => text.push_str(&quote(&inner.render(pins, place))),
            }
            text
        })
    }
}

impl Permit {
    /// What it is bound to.
    #[must_use]
    pub fn binding(&self) -> &Binding {
        &self.binding
    }

    /// Who said yes.
    #[must_use]
    pub fn basis(&self) -> Basis {
        self.basis
    }

    /// What it may use beyond the sandbox.
    #[must_use]
    pub fn lease(&self) -> &Lease {
        &self.lease
    }

    /// What of that has to be made before it starts: files, and directories with a `/` behind.
    #[must_use]
    pub fn creates(&self) -> &[PathBuf] {
        &self.creates
    }

    /// The files it names.
    #[must_use]
    pub fn pins(&self) -> &[Pin] {
        &self.pins
    }

    /// The shell that runs it.
    #[must_use]
    pub fn shell(&self) -> &Shell {
        &self.shell
    }

    /// Whether this pin must be run from a copy that was compared with what the person approved.
    #[must_use]
    pub fn seals(&self, pin: &Pin) -> bool {
        self.basis == Basis::Person && !pin.settled && pin.span.is_some() && pin.identity.digest.is_some()
    }

    /// The text to execute: the judged text, byte for byte, but for programs that are named by their path.
    #[must_use]
    pub fn text(&self) -> String {
        self.text_with(&|pin| pin.path.clone())
    }

    /// The same, with `place` saying where each pinned file is to be found.
    #[must_use]
    pub fn text_with(&self, place: &dyn Fn(&Pin) -> PathBuf) -> String {
        self.text.render(&self.pins, place)
    }
}

/// A person's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// This once.
    Once,
    /// This once, and what it needs beyond the sandbox for the rest of the conversation.
    Session,
    /// This once, and the same again from now on.
    Always,
    /// No.
    No,
}

/// Something a person has to decide. Answering consumes it.
#[derive(Debug)]
pub struct Question(Judgment);

/// The answer was no, or there was none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// A person said no.
    #[error("the user said no")]
    ByPerson,
    /// Nobody answered in time.
    #[error("it needs approval, and nobody answered")]
    Unanswered,
    /// "Always" is not to be had for this command.
    #[error("this command cannot always be allowed: {0}")]
    NotForGood(String),
}

impl Question {
    pub(crate) fn new(judgment: Judgment) -> Self {
        Self(judgment)
    }

    /// What was found out about the command.
    #[must_use]
    pub fn judgment(&self) -> &Judgment {
        &self.0
    }

    /// Takes the answer. What [`Answer::Always`] stores is what [`Judgment::grants`] showed.
    pub fn answer(self, answer: Answer) -> Result<(Permit, Vec<Grant>), Denied> {
        match answer {
            Answer::No => Err(Denied::ByPerson),
            Answer::Once | Answer::Session => Ok((self.0.into_permit(Basis::Person), Vec::new())),
            Answer::Always => {
                let grants = self.0.grants().map_err(|why| Denied::NotForGood(why.to_string()))?;
                Ok((self.0.into_permit(Basis::Person), grants))
            }
        }
    }

    /// What becomes of it when nobody answers.
    pub fn unanswered(self) -> Result<Permit, Denied> {
        if self.0.runs_unanswered() { Ok(self.0.into_permit(Basis::Unanswered)) } else { Err(Denied::Unanswered) }
    }
}

impl Permit {
    pub(crate) fn new(
        binding: Binding,
        shell: Shell,
        text: Template,
        pins: Vec<Pin>,
        basis: Basis,
        (lease, creates): (Lease, Vec<PathBuf>),
    ) -> Self {
        Self { binding, shell, text, pins, basis, lease, creates }
    }
}

/// `text` as a person may safely see it, on one line: nothing that moves the cursor, hides or turns letters, or begins a
/// line that could pass for one of ours.
#[must_use]
pub fn shown(text: &str) -> Shown<'_> {
    Shown(text)
}

/// See [`shown`].
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a>(&'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut chars = self.0.chars().peekable();
        while let Some(char) = chars.next() {
            let is_last_space = char == ' ' && chars.peek().is_none();
            if char != '\n' && !is_last_space && suspicion(char).is_none() {
                write!(f, "{char}")?;
            } else {
                write!(f, "\\u{{{:x}}}", u32::from(char))?;
            }
        }
        Ok(())
    }
}

impl AsRef<Path> for Pin {
    fn as_ref(&self) -> &Path {
        &self.path
    }
}
