//! A question: who asked, for what, and until when?

use std::time::Duration;

use prowess_agent::message::now;
use prowess_policy::Answer;
use serde_json::Value;

use super::log::Answerer;

/// How long a question stays open when nobody says otherwise.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// What can be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    /// This once.
    Once,
    /// This once, and what it needs beyond the sandbox for the rest of the session.
    Session,
    /// This once, and the same again from now on.
    Always,
    /// No.
    Deny,
}

impl Decision {
    /// As policies know it.
    pub(crate) fn answer(self) -> Answer {
        match self {
            Self::Once => Answer::Once,
            Self::Session => Answer::Session,
            Self::Always => Answer::Always,
            Self::Deny => Answer::No,
        }
    }

    /// From a policy's answer.
    pub(crate) fn of(answer: Answer) -> Self {
        match answer {
            Answer::Once => Self::Once,
            Answer::Session => Self::Session,
            Answer::Always => Self::Always,
            Answer::No => Self::Deny,
        }
    }

    /// From its word on the wire.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        [Self::Once, Self::Session, Self::Always, Self::Deny].into_iter().find(|one| one.as_str() == word)
    }

    /// As it is written.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Once => "allow-once",
            Self::Session => "allow-session",
            Self::Always => "allow-always",
            Self::Deny => "deny",
        }
    }
}

/// Who put a question. Only they can use the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Requester {
    /// A turn of this gateway.
    Gateway,
    /// A client: its connection, and its device if it showed one.
    Client {
        /// The connection.
        conn: String,
        /// The device.
        device: Option<String>,
    },
}

impl Requester {
    /// Whether both are one client: one device, or one connection of somebody without a device.
    pub(crate) fn is_same_client(&self, other: &Self) -> bool {
        self.client().is_some_and(|own| other.client() == Some(own))
    }

    fn client(&self) -> Option<&str> {
        match self {
            Self::Gateway => None,
            Self::Client { conn, device } => Some(device.as_ref().unwrap_or(conn)),
        }
    }
}

/// A question before it is put.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    /// Its name, if whoever asks has one.
    pub(crate) id: Option<String>,
    /// What people are shown, and what the answer is bound to.
    pub(crate) request: Value,
    /// How long it stays open.
    pub(crate) patience: Duration,
    /// Who asks.
    pub(crate) requester: Requester,
    /// Why it cannot be allowed for good, if it cannot.
    pub(crate) once_only: Option<String>,
}

/// A question that was put.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub(crate) id: String,
    pub(crate) request: Value,
    /// In milliseconds since 1970.
    pub(crate) created_at: u64,
    /// In milliseconds since 1970.
    pub(crate) expires_at: u64,
    pub(crate) requester: Requester,
    pub(crate) once_only: Option<String>,
}

impl Record {
    /// How long it stays open from now on, in milliseconds. Clocks of clients differ, so they are told this as well.
    pub(crate) fn time_left(&self) -> u64 {
        self.expires_at.saturating_sub(now())
    }
}

impl Settled {
    /// The end of a question without an answer, and the reason.
    pub(super) fn without_answer(why: &str) -> Self {
        Self { decision: None, by: why.to_owned(), who: None }
    }
}

/// How a question ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settled {
    /// The answer; none when nobody gave one in time.
    pub(crate) decision: Option<Decision>,
    /// The name of who answered, or what ended it.
    pub(crate) by: String,
    /// The client that answered, if one did.
    pub(crate) who: Option<Answerer>,
}
