//! Does a model answer? The shortest request of the kind that a turn sends, and what is wrong if it fails.

use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::json;

use super::Remote;
use crate::message::{Message, User};
use crate::model::{Delta, Model as _, ModelError, Request, Thinking};
use crate::tool::ToolSpec;

/// How long the answer may be: the least that all providers take.
const ANSWER_TOKENS: u64 = 16;

/// What has to be set right before a model answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrong {
    /// The key is not accepted.
    Key,
    /// The account has nothing left to spend.
    Quota,
    /// Nobody answers at this address, or somebody else does.
    Address,
    /// The provider has no such model.
    Model,
    /// The provider is busy or broken; later may work.
    Provider,
    /// The provider does not take the request.
    Request,
}

impl Remote {
    /// Asks for a word, with a tool to choose from, and waits for the beginning of an answer.
    pub async fn probe(&self, thinking: Thinking, patience: Duration) -> Result<(), ModelError> {
        let late = |_| {
            let why = format!("no data for {} seconds", patience.as_secs());
            ModelError::Connection { provider: self.endpoint.provider.clone(), why }
        };
        tokio::time::timeout(patience, self.first_word(thinking)).await.map_err(late)?
    }

    async fn first_word(&self, thinking: Thinking) -> Result<(), ModelError> {
        let messages = [Message::User(User::says("Say OK."))];
        let tools = [ToolSpec {
            name: "noop".to_owned(),
            description: "Does nothing.".to_owned(),
            parameters: json!({"type": "object", "properties": {}}),
        }];
        let request = Request {
            system: "Answer with one word.",
            messages: &messages,
            tools: &tools,
            max_tokens: Some(ANSWER_TOKENS),
            thinking,
            session: "",
        };
        let mut answer = self.stream(request);
        while let Some(delta) = answer.next().await {
            let has_begun = match delta? {
                Delta::Text { text, .. } | Delta::Thinking { text, .. } => !text.is_empty(),
                Delta::Call { .. } | Delta::Stop(_) => true,
                _ => false,
            };
            if has_begun {
                return Ok(());
            }
        }
        Err(ModelError::Cut { provider: self.endpoint.provider.clone() })
    }
}

impl ModelError {
    /// What has to be set right.
    #[must_use]
    pub fn wrong(&self) -> Wrong {
        let names_model = |said: &str| said.to_lowercase().contains("model");
        match self {
            Self::Key { .. } => Wrong::Key,
            Self::Quota { .. } => Wrong::Quota,
            Self::Request { status: 400 | 404 | 422, said, .. } if names_model(said) => Wrong::Model,
            Self::Connection { .. } | Self::Malformed { .. } | Self::Request { status: 404 | 405, .. } => {
                Wrong::Address
            }
            Self::Busy { .. } | Self::Server { .. } | Self::Cut { .. } => Wrong::Provider,
            Self::Request { .. } | Self::Overflow { .. } | Self::TooLong { .. } | Self::Refused { .. } => {
                Wrong::Request
            }
        }
    }
}
