//! The command line of conversations: whom to talk to, and how?

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use prowess_agent::model::Thinking;
use prowess_exec::output::is_hidden;

use super::Mode;

/// How a conversation is held.
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own on the command line")]
pub(crate) struct TalkArgs {
    /// Go on with this conversation
    #[arg(long, value_name = "KEY", default_value = "main", value_parser = parse_session)]
    pub(crate) session: String,
    /// Begin it anew; what was said before is kept aside
    #[arg(long)]
    pub(crate) new: bool,
    /// Ask this model, as in provider/name
    #[arg(long, value_name = "MODEL", value_parser = parse_model)]
    pub(crate) model: Option<String>,
    /// Let the embedded model run the commands it finds instead of only showing them
    #[arg(long)]
    pub(crate) act: bool,
    /// Run commands that only read without asking
    #[arg(long)]
    pub(crate) yes_read_only: bool,
    /// How long the model thinks first: off, minimal, low, medium, high or xhigh
    #[arg(long, value_name = "LEVEL", value_parser = parse_thinking)]
    pub(crate) thinking: Option<Thinking>,
    /// Stop a turn after this many seconds; 0 never
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<u64>,
    /// Show what the model thinks and what its commands say
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

/// One message.
#[derive(Debug, Clone, Args)]
pub(crate) struct MessageArgs {
    #[command(flatten)]
    pub(crate) talk: TalkArgs,
    /// Print what happens while it happens, one JSON object per line
    #[arg(long, conflicts_with = "json")]
    pub(crate) events: bool,
    /// Show the model this image: PNG, JPEG, GIF or WebP. May be given several times
    #[arg(long, value_name = "FILE")]
    pub(crate) image: Vec<PathBuf>,
    /// What to say; `-` reads it from stdin
    #[arg(required_unless_present = "image", value_name = "MESSAGE")]
    pub(crate) words: Vec<String>,
}

/// The longest name of a conversation, in characters.
const MAX_SESSION: usize = 200;

fn parse_session(name: &str) -> Result<String, String> {
    if name.trim().is_empty() {
        return Err("a conversation needs a name; leave the option out for the main one".to_owned());
    }
    if name.chars().count() > MAX_SESSION {
        return Err(format!("the name of a conversation has at most {MAX_SESSION} characters"));
    }
    if name.chars().any(|c| c.is_control() || is_hidden(c)) {
        return Err("the name of a conversation has no control characters or others that cannot be seen".to_owned());
    }
    Ok(name.to_owned())
}

fn parse_model(name: &str) -> Result<String, String> {
    if name.trim().is_empty() {
        return Err("name a model, as in provider/name; prowess models shows what there is".to_owned());
    }
    Ok(name.to_owned())
}

fn parse_thinking(word: &str) -> Result<Thinking, String> {
    Thinking::parse(word).ok_or_else(|| "use off, minimal, low, medium, high or xhigh".to_owned())
}

#[derive(Debug, Subcommand)]
pub(crate) enum Sessions {
    /// List conversations, the newest first
    List,
    /// Show what was said and called, and what it cost by skill
    Show {
        /// Its key or id
        key: String,
    },
    /// Show a conversation as it looked when it was held; nothing is run or asked again
    Replay {
        /// Its key or id
        key: String,
        /// Show what the model thought and what its commands said
        #[arg(short, long)]
        verbose: bool,
    },
    /// Write a conversation to a file or stdout
    Export {
        /// Its key or id
        key: String,
        /// The format: markdown unless it is named; with --json it is json
        #[arg(long, value_enum)]
        format: Option<Format>,
        /// Write it here instead of to stdout; an existing file is left alone
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Let a key begin anew; what was said before is kept aside
    Reset {
        /// Its key
        #[arg(value_parser = parse_session)]
        key: String,
    },
}

/// How a conversation is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Markdown,
    /// One message per line
    Jsonl,
    /// All of it as one value
    Json,
}

/// What to find out about models.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct ModelsArgs {
    /// Ask each endpoint whether it answers
    #[arg(long)]
    pub(crate) probe: bool,
}

/// Which system prompt, and what about it.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct PromptArgs {
    /// How much of a system prompt the run gets
    #[arg(long, value_enum, default_value_t = Mode::Full)]
    pub(crate) mode: Mode,
    /// Show what each part costs instead of what it says
    #[arg(long)]
    pub(crate) cost: bool,
}
