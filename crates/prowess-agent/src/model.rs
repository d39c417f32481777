//! Models: what are they asked, and what comes back?
//!
//! A [`Model`] turns a [`Request`] into a stream of [`Delta`]s. Dropping the stream ends the call. A [`Draft`] puts the
//! deltas together again, keyed by block, so that calls whose pieces arrive interleaved stay apart.

mod draft;
pub mod facts;
mod remedy;

use std::time::Duration;

use futures_util::stream::BoxStream;
use serde_json::Value;
use thiserror::Error;

pub use draft::{Draft, Reply};

use crate::message::{Message, StopReason, Usage};
use crate::tool::ToolSpec;

/// Something that answers. Others bring their own, so it is a trait.
pub trait Model: Send + Sync {
    /// Who it is.
    fn about(&self) -> &About;

    /// Asks it. Nothing happens before the stream is polled, and dropping the stream ends the call.
    fn stream<'a>(&'a self, request: Request<'a>) -> BoxStream<'a, Result<Delta, ModelError>>;
}

/// Who a model is and what it can take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// Who runs it, as the configuration names them.
    pub provider: String,
    /// Its name there.
    pub model: String,
    /// The wire format it speaks.
    pub api: Api,
    /// How many tokens fit into one call, question and answer together.
    pub context_window: u64,
    /// How many tokens one answer may have.
    pub max_tokens: u64,
    /// Whether it can look at images.
    pub takes_images: bool,
}

/// A wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Api {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Chat Completions.
    Chat,
    /// OpenAI Responses.
    Responses,
    /// No wire: the model is in this program.
    Embedded,
}

impl Api {
    /// Its name in configurations and transcripts.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic-messages",
            Self::Chat => "openai-completions",
            Self::Responses => "openai-responses",
            Self::Embedded => "embedded",
        }
    }

    /// The format of that name.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Anthropic, Self::Chat, Self::Responses, Self::Embedded].into_iter().find(|api| api.word() == word)
    }
}

/// What a model is asked.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The system prompt.
    pub system: &'a str,
    /// The conversation so far; every call in it has its result right after it.
    pub messages: &'a [Message],
    /// The tools it may call.
    pub tools: &'a [ToolSpec],
    /// How long the answer may be, if shorter than the model's own limit.
    pub max_tokens: Option<u64>,
    /// How much it should think first.
    pub thinking: Thinking,
    /// What calls of one conversation have in common, for the provider's cache.
    pub session: &'a str,
}

/// How much a model should think before it answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Thinking {
    /// Not unless the model does so by itself.
    #[default]
    Off,
    /// Hardly.
    Minimal,
    /// A moment.
    Low,
    /// A while.
    Medium,
    /// Long.
    High,
    /// Longer.
    XHigh,
}

impl Thinking {
    /// The level of that name.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "off" => Self::Off,
            "minimal" => Self::Minimal,
            "low" => Self::Low,
            "medium" | "adaptive" => Self::Medium,
            "high" => Self::High,
            "xhigh" => Self::XHigh,
            _ => return None,
        })
    }
}

/// A piece of an answer. `block` is the provider's own key; blocks stand in the order in which they were first heard of.
#[derive(Debug, Clone, PartialEq)]
pub enum Delta {
    /// More text.
    Text {
        /// The block.
        block: u32,
        /// The text.
        text: String,
    },
    /// More of a thought.
    Thinking {
        /// The block.
        block: u32,
        /// The thought.
        text: String,
    },
    /// A thought that is withheld; the data goes back as it is.
    Redacted {
        /// The block.
        block: u32,
        /// The data.
        data: String,
    },
    /// A call begins, or more of its name and id is known. Empty texts say nothing.
    Call {
        /// The block.
        block: u32,
        /// Its id.
        id: String,
        /// The tool.
        name: String,
    },
    /// More of the JSON of a call's arguments.
    Arguments {
        /// The block.
        block: u32,
        /// The text.
        json: String,
    },
    /// What the provider wants back with a block; later pieces are appended.
    Signature {
        /// The block.
        block: u32,
        /// The signature.
        text: String,
    },
    /// A block that belongs to the provider, as far as it is known by now; it goes back as it came.
    Opaque {
        /// The block.
        block: u32,
        /// All of it.
        value: Value,
    },
    /// What the provider wants back as it came, with a call, or with the message if no block is named. Replaces what was
    /// there under the same name.
    Data {
        /// The block of the call.
        block: Option<u32>,
        /// The name of the field.
        field: &'static str,
        /// What is in it.
        value: Value,
    },
    /// Tokens, as far as they are known by now; replaces what was known.
    Usage(Usage),
    /// The provider paused in the middle of its work; it goes on when it gets back what it said.
    Pause,
    /// The model is done. The stream may still say more about tokens.
    Stop(StopReason),
}

/// Why a model did not answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ModelError {
    /// The key is missing, wrong, or may not do this.
    #[error("{provider} does not accept the key: {said}")]
    Key {
        /// Who.
        provider: String,
        /// What they said.
        said: String,
    },
    /// The account has nothing left to spend.
    #[error("{provider} has no quota left for this account: {said}")]
    Quota {
        /// Who.
        provider: String,
        /// What they said.
        said: String,
    },
    /// The request makes no sense to the provider.
    #[error("{provider} refused the request ({status}): {said}")]
    Request {
        /// Who.
        provider: String,
        /// The HTTP status.
        status: u16,
        /// What they said.
        said: String,
    },
    /// The conversation is too long for the model.
    #[error("the conversation is too long for the model: {said}")]
    Overflow {
        /// What they said.
        said: String,
    },
    /// Too many requests, or no capacity: later may work.
    #[error("{provider} is busy ({status}): {said}")]
    Busy {
        /// Who.
        provider: String,
        /// The HTTP status.
        status: u16,
        /// What they said.
        said: String,
        /// When to come back.
        after: Option<Duration>,
    },
    /// The provider failed.
    #[error("{provider} failed ({status}): {said}")]
    Server {
        /// Who.
        provider: String,
        /// The HTTP status.
        status: u16,
        /// What they said.
        said: String,
        /// When to come back.
        after: Option<Duration>,
    },
    /// Nobody is there, or the line went dead.
    #[error("{provider} cannot be reached: {why}")]
    Connection {
        /// Who.
        provider: String,
        /// Why.
        why: String,
    },
    /// The answer ended in the middle.
    #[error("the answer of {provider} was cut off")]
    Cut {
        /// Who.
        provider: String,
    },
    /// The answer is not what the wire format says.
    #[error("the answer of {provider} is invalid: {why}")]
    Malformed {
        /// Who.
        provider: String,
        /// What is wrong.
        why: String,
    },
    /// The answer does not end.
    #[error("the answer of {provider} is longer than {limit} bytes")]
    TooLong {
        /// Who.
        provider: String,
        /// The limit.
        limit: u64,
    },
    /// The model, or whoever watches it, would not answer.
    #[error("{provider} refused to answer: {said}")]
    Refused {
        /// Who.
        provider: String,
        /// What they said.
        said: String,
    },
}

impl ModelError {
    /// Whether the same request may work later.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Busy { .. } | Self::Server { .. } | Self::Connection { .. } | Self::Cut { .. } => true,
            Self::Key { .. }
            | Self::Quota { .. }
            | Self::Request { .. }
            | Self::Overflow { .. }
            | Self::Malformed { .. }
            | Self::TooLong { .. }
            | Self::Refused { .. } => false,
        }
    }

    /// Whether another provider might do better with the same request.
    #[must_use]
    pub fn is_the_providers(&self) -> bool {
        match self {
            Self::Key { .. }
            | Self::Quota { .. }
            | Self::Busy { .. }
            | Self::Server { .. }
            | Self::Connection { .. }
            | Self::Cut { .. }
            | Self::Malformed { .. }
            | Self::TooLong { .. } => true,
            Self::Request { .. } | Self::Overflow { .. } | Self::Refused { .. } => false,
        }
    }

    /// When to come back, if the provider said so.
    #[must_use]
    pub fn after(&self) -> Option<Duration> {
        match self {
            Self::Busy { after, .. } | Self::Server { after, .. } => *after,
            _ => None,
        }
    }
}
