//! Messages: what was said in a conversation, in the one shape that all providers are brought into.
//!
//! The JSON is that of OpenClaw's transcripts, so either program can go on with the other's sessions. Provider shapes
//! exist only in `provider`, around the call.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::image::Image;

/// Something that was said, or that a tool gave back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "camelCase")]
pub enum Message {
    /// By a person, or on their behalf.
    User(User),
    /// By the model.
    Assistant(Assistant),
    /// By a tool.
    ToolResult(ToolReply),
}

/// What a person said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct User {
    /// What was said.
    #[serde(deserialize_with = "text_or_blocks")]
    pub content: Vec<Block>,
    /// When, in milliseconds since 1970.
    #[serde(default)]
    pub timestamp: u64,
}

/// What the model said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Assistant {
    /// Text, thoughts and calls, in the order they came.
    #[serde(deserialize_with = "text_or_blocks")]
    pub content: Vec<Block>,
    /// The wire format it came over.
    #[serde(default)]
    pub api: String,
    /// Who runs the model.
    #[serde(default)]
    pub provider: String,
    /// The model.
    #[serde(default)]
    pub model: String,
    /// What it cost.
    #[serde(default)]
    pub usage: Usage,
    /// Why it ended.
    #[serde(default)]
    pub stop_reason: StopReason,
    /// What went wrong, if something did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// What the provider wants back with the message as it came, by the name of its field.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub provider_data: Map<String, Value>,
    /// When, in milliseconds since 1970.
    #[serde(default)]
    pub timestamp: u64,
}

/// What a tool gave back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolReply {
    /// The call it answers.
    pub tool_call_id: String,
    /// The tool.
    #[serde(default)]
    pub tool_name: String,
    /// For the model.
    #[serde(default, deserialize_with = "text_or_blocks")]
    pub content: Vec<Block>,
    /// For programs; never sent to a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// Whether the call failed.
    #[serde(default)]
    pub is_error: bool,
    /// When, in milliseconds since 1970.
    #[serde(default)]
    pub timestamp: u64,
}

/// A piece of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Block {
    /// Text.
    Text {
        /// The text.
        text: String,
        /// What the provider wants back with it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text_signature: Option<String>,
    },
    /// What the model thought before it spoke.
    Thinking {
        /// The thought; empty when it was withheld.
        #[serde(default)]
        thinking: String,
        /// What the provider wants back with it: without it, it does not take the thought back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        thinking_signature: Option<String>,
        /// Whether the thought was withheld; then the signature is all there is.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        redacted: bool,
    },
    /// A call of a tool.
    #[serde(alias = "toolUse", alias = "functionCall")]
    ToolCall(ToolCall),
    /// An image.
    Image(Image),
    /// Something this program does not know, kept as it is.
    #[serde(untagged)]
    Other(Value),
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// What its result is found by, among the calls of one message.
    pub id: String,
    /// The tool.
    pub name: String,
    /// What it is given.
    #[serde(alias = "input")]
    pub arguments: Map<String, Value>,
    /// What the provider wants back with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thought_signature: Option<String>,
    /// What else it wants back as it came, by the name of its field.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub provider_data: Map<String, Value>,
}

/// Why a model stopped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StopReason {
    /// It had nothing more to say.
    #[default]
    Stop,
    /// It ran out of room: what it said last may be half of something.
    Length,
    /// It waits for tools.
    ToolUse,
    /// Something went wrong.
    Error,
    /// It was interrupted.
    Aborted,
}

/// Tokens of one call, as the provider counted them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Usage {
    /// Read, without those that came from the provider's cache.
    pub input: u64,
    /// Written, thoughts included.
    pub output: u64,
    /// Read from the provider's cache.
    pub cache_read: u64,
    /// Put into the provider's cache.
    pub cache_write: u64,
    /// All of them.
    pub total_tokens: u64,
    /// What that costs, where the price is known.
    pub cost: Cost,
}

/// A price in dollars.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Cost {
    /// For [`Usage::input`].
    pub input: f64,
    /// For [`Usage::output`].
    pub output: f64,
    /// For [`Usage::cache_read`].
    pub cache_read: f64,
    /// For [`Usage::cache_write`].
    pub cache_write: f64,
    /// For all of it.
    pub total: f64,
}

impl Usage {
    /// Everything that was read, from wherever.
    #[must_use]
    pub fn read(&self) -> u64 {
        self.input + self.cache_read + self.cache_write
    }

    /// With the total made to fit the parts.
    #[must_use]
    pub fn totalled(self) -> Self {
        Self { total_tokens: self.read() + self.output, ..self }
    }
}

impl Usage {
    /// With what it costs at `price`, in dollars for a million tokens.
    #[must_use]
    pub fn priced(self, price: &Cost) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "a price is no exact number")]
        let cost = |tokens: u64, price: f64| tokens as f64 * price / 1e6;
        let mut sum = Cost {
            input: cost(self.input, price.input),
            output: cost(self.output, price.output),
            cache_read: cost(self.cache_read, price.cache_read),
            cache_write: cost(self.cache_write, price.cache_write),
            total: 0.0,
        };
        sum.total = sum.input + sum.output + sum.cache_read + sum.cache_write;
        Self { cost: sum, ..self }
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input += other.input;
        self.output += other.output;
        self.cache_read += other.cache_read;
        self.cache_write += other.cache_write;
        self.total_tokens += other.total_tokens;
        self.cost.input += other.cost.input;
        self.cost.output += other.cost.output;
        self.cost.cache_read += other.cost.cache_read;
        self.cost.cache_write += other.cost.cache_write;
        self.cost.total += other.cost.total;
    }
}

impl Block {
    /// Plain text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into(), text_signature: None }
    }

    /// Its text, if it is text.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { text, .. } => Some(text),
            Self::Thinking { .. } | Self::ToolCall(_) | Self::Image(_) | Self::Other(_) => None,
        }
    }
}

impl User {
    /// `text`, said now.
    #[must_use]
    pub fn says(text: impl Into<String>) -> Self {
        Self { content: vec![Block::text(text)], timestamp: now() }
    }
}

impl Assistant {
    /// The calls in it.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.content.iter().filter_map(|block| match block {
            Block::ToolCall(call) => Some(call),
            Block::Text { .. } | Block::Thinking { .. } | Block::Image(_) | Block::Other(_) => None,
        })
    }

    /// All of its text.
    #[must_use]
    pub fn text(&self) -> String {
        self.content.iter().filter_map(Block::as_text).collect()
    }
}

impl ToolReply {
    /// All of its text.
    #[must_use]
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self.content.iter().filter_map(Block::as_text).collect();
        texts.join("\n")
    }
}

/// The time in milliseconds since 1970.
#[must_use]
pub fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A list of blocks, or one text in its place.
fn text_or_blocks<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Block>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Text(String),
        Blocks(Vec<Block>),
    }
    Ok(match Written::deserialize(from)? {
        Written::Text(text) => vec![Block::text(text)],
        Written::Blocks(blocks) => blocks,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn there_and_back(written: Value) -> Value {
        let message: Message = serde_json::from_value(written).expect("a message");
        serde_json::to_value(message).expect("JSON")
    }

    #[test]
    fn what_openclaw_writes_is_written_back() {
        let usage = json!({
            "input": 10, "output": 5, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 15,
            "cost": {"input": 0.0, "output": 0.0, "cacheRead": 0.0, "cacheWrite": 0.0, "total": 0.0}
        });
        let table = [
            json!({"role": "user", "content": [{"type": "text", "text": "hi"}], "timestamp": 3}),
            json!({
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "thinkingSignature": "s"},
                    {"type": "text", "text": "Let me look."},
                    {"type": "toolCall", "id": "a", "name": "exec", "arguments": {"command": "ls"}}
                ],
                "api": "openai-completions", "provider": "fake", "model": "m", "usage": usage,
                "stopReason": "toolUse", "timestamp": 1
            }),
            json!({
                "role": "toolResult", "toolCallId": "a", "toolName": "exec",
                "content": [{"type": "text", "text": "ok"}, {"type": "image", "data": "…", "mimeType": "image/png"}],
                "details": {"status": "completed"}, "isError": false, "timestamp": 2
            }),
        ];
        for written in table {
            assert_eq!(there_and_back(written.clone()), written);
        }
    }

    #[test]
    fn older_spellings_are_understood() {
        let written = json!({
            "role": "assistant", "content": [{"type": "toolUse", "id": "a", "name": "exec", "input": {}}], "timestamp": 1
        });
        let Message::Assistant(assistant) = serde_json::from_value(written).expect("a message") else {
            panic!("an assistant message");
        };
        assert_eq!(assistant.calls().map(|call| call.id.as_str()).collect::<Vec<_>>(), ["a"]);
        let user: Message = serde_json::from_value(json!({"role": "user", "content": "hi"})).expect("a message");
        assert_eq!(user, Message::User(User { content: vec![Block::text("hi")], timestamp: 0 }));
    }
}
