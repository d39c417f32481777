//! The command line of conversations: which session, which model, and what is shown?

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use clap_complete::engine::ArgValueCompleter;
use prowess_agent::model::Thinking;
use prowess_exec::output::is_hidden;

use super::Mode;
use crate::completion;

/// How a conversation is held.
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own on the command line")]
pub(crate) struct TalkArgs {
    /// Continue the session that was used last
    #[arg(short = 'c', long = "continue", conflicts_with_all = ["session", "new"])]
    pub(crate) resume: bool,
    /// Resume this session, or start one with this name
    #[arg(short, long, value_name = "KEY", value_parser = parse_session, add = ArgValueCompleter::new(completion::sessions))]
    pub(crate) session: Option<String>,
    /// With --session: start it over; the old messages are kept as a session without a name
    #[arg(long)]
    pub(crate) new: bool,
    /// Use this model, such as provider/name
    #[arg(short, long, value_name = "MODEL", value_parser = parse_model, add = ArgValueCompleter::new(completion::models))]
    pub(crate) model: Option<String>,
    /// Let the embedded planner run the command it finds instead of only showing it
    #[arg(long)]
    pub(crate) act: bool,
    /// Run commands that only read files without asking
    #[arg(long)]
    pub(crate) yes_read_only: bool,
    /// How much the model thinks first: off, minimal, low, medium, high or xhigh
    #[arg(long, value_name = "LEVEL", value_parser = parse_thinking)]
    pub(crate) thinking: Option<Thinking>,
    /// Stop a turn after this many seconds; 0 means never
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<u64>,
    /// Also show the model's thinking and the output of its commands
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

/// Which session a message goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhichSession<'a> {
    /// A new one.
    New,
    /// The one that was used last.
    Last,
    /// The one of this name, new or not.
    Named(&'a str),
}

impl TalkArgs {
    /// The session that the flags ask for.
    pub(crate) fn which(&self) -> WhichSession<'_> {
        match &self.session {
            Some(name) => WhichSession::Named(name),
            None if self.resume => WhichSession::Last,
            None => WhichSession::New,
        }
    }
}

/// A name for a new session, which no other session has.
pub(crate) fn fresh_session() -> String {
    let id = uuid::Uuid::new_v4().simple().to_string();
    format!("cli-{}", &id[..8])
}

/// One message.
#[derive(Debug, Clone, Args)]
pub(crate) struct MessageArgs {
    #[command(flatten)]
    pub(crate) talk: TalkArgs,
    /// Print events as they happen, one JSON object per line
    #[arg(long, conflicts_with = "json")]
    pub(crate) events: bool,
    /// Show the model this image: PNG, JPEG, GIF or WebP. May be given several times
    #[arg(long, value_name = "FILE")]
    pub(crate) image: Vec<PathBuf>,
    /// The message; `-` reads it from stdin
    #[arg(required_unless_present = "image", value_name = "MESSAGE")]
    pub(crate) words: Vec<String>,
}

/// The longest name of a session, in characters.
const MAX_SESSION: usize = 200;

fn parse_session(name: &str) -> Result<String, String> {
    if name.trim().is_empty() {
        return Err("the session name is empty; leave the option out to start a new session".to_owned());
    }
    if name.chars().count() > MAX_SESSION {
        return Err(format!("a session name has at most {MAX_SESSION} characters"));
    }
    if name.chars().any(|c| c.is_control() || is_hidden(c)) {
        return Err("a session name must not contain control characters or invisible ones".to_owned());
    }
    Ok(name.to_owned())
}

fn parse_model(name: &str) -> Result<String, String> {
    if name.trim().is_empty() {
        return Err("the model name is empty; write provider/name (prowess models lists them)".to_owned());
    }
    Ok(name.to_owned())
}

fn parse_thinking(word: &str) -> Result<Thinking, String> {
    Thinking::parse(word).ok_or_else(|| "use off, minimal, low, medium, high or xhigh".to_owned())
}

#[derive(Debug, Subcommand)]
pub(crate) enum Sessions {
    /// List sessions, the newest first
    List,
    /// Show a session's messages and tool calls, and what they cost by skill
    Show {
        /// Its key or id; the last session if left out
        #[arg(add = ArgValueCompleter::new(completion::sessions))]
        key: Option<String>,
    },
    /// Replay a session as it looked when it ran; nothing runs again
    Replay {
        /// Its key or id; the last session if left out
        #[arg(add = ArgValueCompleter::new(completion::sessions))]
        key: Option<String>,
        /// Also show the model's thinking and the output of its commands
        #[arg(short, long)]
        verbose: bool,
    },
    /// Write a session to a file or stdout
    Export {
        /// Its key or id; the last session if left out
        #[arg(add = ArgValueCompleter::new(completion::sessions))]
        key: Option<String>,
        /// The format: markdown by default, json with --json
        #[arg(long, value_enum)]
        format: Option<Format>,
        /// Write to this new file instead of stdout
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Start a session over; the old messages are kept as a session without a name
    Reset {
        /// Its key
        #[arg(value_parser = parse_session, add = ArgValueCompleter::new(completion::sessions))]
        key: String,
    },
}

/// The format of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Markdown to read
    Markdown,
    /// One message per line
    Jsonl,
    /// One JSON value
    Json,
}

/// What to find out about models.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct ModelsArgs {
    /// Send each model a short request to test it
    #[arg(long)]
    pub(crate) probe: bool,
}

/// Which system prompt, and what about it.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct PromptArgs {
    /// Which variant of the prompt
    #[arg(long, value_enum, default_value_t = Mode::Full)]
    pub(crate) mode: Mode,
    /// Show what each part costs instead of its text
    #[arg(long)]
    pub(crate) cost: bool,
}
