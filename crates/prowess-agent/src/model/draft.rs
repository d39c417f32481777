//! How do the pieces of an answer become the answer?

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::{About, Delta};
use crate::message::{Assistant, Block, StopReason, ToolCall, Usage, now};
use crate::repair::clip_texts;

/// An answer on its way.
#[derive(Debug)]
pub struct Draft {
    about: About,
    places: HashMap<u32, usize>,
    parts: Vec<Part>,
    calls: usize,
    usage: Usage,
    stop: Option<StopReason>,
    data: Map<String, Value>,
    is_paused: bool,
}

/// A block on its way.
#[derive(Debug)]
enum Part {
    Text { text: String, signature: String },
    Thinking { text: String, signature: String, redacted: bool },
    Call { id: String, name: String, json: String, signature: String, data: Map<String, Value> },
    Opaque(Value),
}

/// An answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// What was said.
    pub message: Assistant,
    /// Calls whose arguments cannot be read, by their place among the calls, with the reason. They stand in the message
    /// with empty arguments.
    pub broken: Vec<(usize, String)>,
    /// Whether the provider only paused, and goes on when it gets back what it said.
    pub is_paused: bool,
}

impl Draft {
    /// Nothing yet, from the model that `about` is about.
    #[must_use]
    pub fn new(about: &About) -> Self {
        Self {
            about: about.clone(),
            places: HashMap::new(),
            parts: Vec::new(),
            calls: 0,
            usage: Usage::default(),
            stop: None,
            data: Map::new(),
            is_paused: false,
        }
    }

    /// Takes one more piece.
    pub fn apply(&mut self, delta: &Delta) {
        match delta {
            Delta::Text { block, text } => match self.part(*block, Part::text) {
                Part::Text { text: all, .. } => all.push_str(text),
                Part::Thinking { .. } | Part::Call { .. } | Part::Opaque(_) => {}
            },
            Delta::Thinking { block, text } => match self.part(*block, Part::thinking) {
                Part::Thinking { text: all, .. } => all.push_str(text),
                Part::Text { .. } | Part::Call { .. } | Part::Opaque(_) => {}
            },
            Delta::Redacted { block, data } => {
                if let Part::Thinking { signature, redacted, .. } = self.part(*block, Part::thinking) {
                    signature.push_str(data);
                    *redacted = true;
                }
            }
            Delta::Call { block, id, name } => {
                if let Part::Call { id: known, name: so_far, .. } = self.part(*block, Part::call) {
                    if known.is_empty() {
                        known.push_str(id);
                    }
                    if so_far.is_empty() {
                        so_far.push_str(name);
                    }
                }
            }
            Delta::Arguments { block, json } => {
                if let Part::Call { json: all, .. } = self.part(*block, Part::call) {
                    all.push_str(json);
                }
            }
            Delta::Signature { block, text } => match self.part(*block, Part::text) {
                Part::Text { signature, .. } | Part::Thinking { signature, .. } | Part::Call { signature, .. } => {
                    signature.push_str(text);
                }
                Part::Opaque(_) => {}
            },
            Delta::Opaque { block, value } => {
                if let Part::Opaque(known) = self.part(*block, || Part::Opaque(Value::Null)) {
                    known.clone_from(value);
                }
            }
            Delta::Data { block: None, field, value } => {
                self.data.insert((*field).to_owned(), value.clone());
            }
            Delta::Data { block: Some(block), field, value } => {
                if let Part::Call { data, .. } = self.part(*block, Part::call) {
                    data.insert((*field).to_owned(), value.clone());
                }
            }
            Delta::Pause => self.is_paused = true,
            Delta::Usage(usage) => self.usage = usage.totalled(),
            Delta::Stop(stop) => self.stop = Some(*stop),
        }
    }

    /// How many calls there are by now.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.calls
    }

    /// Whether the model said that it is done.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.stop.is_some()
    }

    /// Whether nothing has come yet that anybody could have seen.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// The answer. Calls are normal only in one that waits for tools.
    #[must_use]
    pub fn finish(self) -> Reply {
        let mut broken = Vec::new();
        let mut content = Vec::new();
        let mut calls = 0;
        for part in self.parts {
            let is_call = matches!(part, Part::Call { .. });
            content.extend(part.finish(|why| broken.push((calls, why))));
            calls += usize::from(is_call);
        }
        let stop_reason = match self.stop {
            // Some servers say "stop" and mean the calls they have just made.
            Some(StopReason::Stop) if calls > 0 => StopReason::ToolUse,
            Some(StopReason::ToolUse) if calls == 0 => StopReason::Stop,
            Some(stop) => stop,
            None => StopReason::Error,
        };
        let message = Assistant {
            content,
            api: self.about.api.word().to_owned(),
            provider: self.about.provider,
            model: self.about.model,
            usage: self.usage,
            stop_reason,
            error_message: None,
            provider_data: self.data,
            timestamp: now(),
        };
        Reply { message, broken, is_paused: self.is_paused }
    }

    /// What there is when the call is broken off: no calls, for nobody knows whether they are whole, and not more text
    /// than can be sent along from now on.
    #[must_use]
    pub fn abandon(self, stop: StopReason, why: Option<String>) -> Assistant {
        let mut message = self.finish().message;
        message.content.retain(|block| matches!(block, Block::Text { .. } | Block::Thinking { .. }));
        message.provider_data.clear();
        message.content = clip_texts(message.content);
        message.stop_reason = stop;
        message.error_message = why;
        message
    }

    fn part(&mut self, block: u32, new: impl FnOnce() -> Part) -> &mut Part {
        let place = *self.places.entry(block).or_insert_with(|| {
            let part = new();
            self.calls += usize::from(matches!(part, Part::Call { .. }));
            self.parts.push(part);
            self.parts.len() - 1
        });
        &mut self.parts[place]
    }
}

impl Part {
    fn text() -> Self {
        Self::Text { text: String::new(), signature: String::new() }
    }

    fn thinking() -> Self {
        Self::Thinking { text: String::new(), signature: String::new(), redacted: false }
    }

    fn call() -> Self {
        let empty = String::new;
        Self::Call { id: empty(), name: empty(), json: empty(), signature: empty(), data: Map::new() }
    }

    fn finish(self, mut is_broken: impl FnMut(String)) -> Option<Block> {
        let some = |text: String| (!text.is_empty()).then_some(text);
        match self {
            Self::Text { text, signature } => {
                (!text.is_empty()).then(|| Block::Text { text, text_signature: some(signature) })
            }
            Self::Thinking { text, signature, redacted } => (!text.is_empty() || !signature.is_empty())
                .then(|| Block::Thinking { thinking: text, thinking_signature: some(signature), redacted }),
            Self::Opaque(value) => Some(Block::Other(value)),
            Self::Call { id, name, json, signature, data } => {
                let arguments = arguments(&json).unwrap_or_else(|why| {
                    is_broken(why);
                    Map::new()
                });
                let thought_signature = some(signature);
                Some(Block::ToolCall(ToolCall { id, name, arguments, thought_signature, provider_data: data }))
            }
        }
    }
}

/// The arguments of a call. No text at all means none; half a text is not repaired, for it may mean something else.
fn arguments(json: &str) -> Result<Map<String, Value>, String> {
    if json.trim().is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_str(json) {
        Ok(Value::Object(arguments)) => Ok(arguments),
        Ok(_) => Err("the arguments are not an object".to_owned()),
        Err(error) => Err(format!("the arguments are not JSON: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::Api;

    fn about() -> About {
        About {
            provider: "p".to_owned(),
            model: "m".to_owned(),
            api: Api::Chat,
            context_window: 1000,
            max_tokens: 100,
            takes_images: false,
        }
    }

    fn draft(deltas: &[Delta]) -> Draft {
        let mut draft = Draft::new(&about());
        for delta in deltas {
            draft.apply(delta);
        }
        draft
    }

    fn call(block: u32, id: &str, name: &str) -> Delta {
        Delta::Call { block, id: id.to_owned(), name: name.to_owned() }
    }

    fn arguments(block: u32, json: &str) -> Delta {
        Delta::Arguments { block, json: json.to_owned() }
    }

    #[test]
    fn calls_that_arrive_interleaved_stay_apart() {
        let reply = draft(&[
            Delta::Text { block: 9, text: "Two ".to_owned() },
            call(0, "a", "exec"),
            call(1, "a", "read"),
            arguments(0, "{\"x\""),
            arguments(1, "{\"y\""),
            Delta::Text { block: 9, text: "things.".to_owned() },
            arguments(0, ":1}"),
            arguments(1, ":2}"),
            Delta::Stop(StopReason::Stop),
        ])
        .finish();
        let calls: Vec<_> =
            reply.message.calls().map(|call| (call.name.as_str(), Value::Object(call.arguments.clone()))).collect();
        assert_eq!(calls, [("exec", json!({"x": 1})), ("read", json!({"y": 2}))]);
        assert_eq!((reply.message.text().as_str(), reply.message.stop_reason), ("Two things.", StopReason::ToolUse));
        assert!(reply.broken.is_empty());
    }

    #[test]
    fn half_a_call_is_not_made_whole() {
        let reply = draft(&[
            call(0, "a", "exec"),
            call(1, "b", "exec"),
            arguments(1, "{\"command\": \"rm -rf /tmp/x"),
            call(2, "c", "exec"),
            arguments(2, "[1]"),
            Delta::Stop(StopReason::ToolUse),
        ])
        .finish();
        assert_eq!(reply.broken.iter().map(|(place, _)| *place).collect::<Vec<_>>(), [1, 2]);
        assert!(reply.message.calls().all(|call| call.arguments.is_empty()));
    }

    #[test]
    fn what_is_broken_off_has_no_calls() {
        let message = draft(&[Delta::Text { block: 0, text: "Wait".to_owned() }, call(1, "a", "exec")])
            .abandon(StopReason::Aborted, None);
        assert_eq!((message.text().as_str(), message.calls().count()), ("Wait", 0));
        assert_eq!(message.stop_reason, StopReason::Aborted);
        let endless = Delta::Text { block: 0, text: "x".repeat(2 * crate::repair::MAX_RESULT) };
        let message = draft(&[endless]).abandon(StopReason::Error, None);
        assert!(message.text().len() <= crate::repair::MAX_RESULT, "what is sent along from now on has an end");
    }
}
