//! An answer that is already there: how does it become deltas, as if it came over a wire?

use serde_json::Value;

use crate::message::{StopReason, ToolCall, Usage};
use crate::model::Delta;

/// The most pieces that one text is sent in.
const MAX_PIECES: usize = 2_000;

/// An answer, whole.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Answer {
    /// What was thought first.
    pub thinking: String,
    /// What is said.
    pub text: String,
    /// What is called.
    pub calls: Vec<ToolCall>,
    /// Why it ends; waiting for tools is known from the calls.
    pub stop: StopReason,
    /// What it cost.
    pub usage: Usage,
}

impl Answer {
    /// Text only.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Its deltas: thoughts, text and calls in small pieces, then tokens and the end.
    pub(crate) fn deltas(self) -> Vec<Delta> {
        let mut deltas = Vec::new();
        deltas.extend(pieces(&self.thinking).map(|text| Delta::Thinking { block: 0, text: text.to_owned() }));
        deltas.extend(pieces(&self.text).map(|text| Delta::Text { block: 1, text: text.to_owned() }));
        let stop = match self.stop {
            StopReason::Stop if !self.calls.is_empty() => StopReason::ToolUse,
            stop => stop,
        };
        for (block, call) in (2..).zip(self.calls) {
            deltas.push(Delta::Call { block, id: call.id, name: call.name });
            let json = Value::Object(call.arguments).to_string();
            deltas.extend(pieces(&json).map(|json| Delta::Arguments { block, json: json.to_owned() }));
            if let Some(text) = call.thought_signature {
                deltas.push(Delta::Signature { block, text });
            }
        }
        deltas.push(Delta::Usage(self.usage.totalled()));
        deltas.push(Delta::Stop(stop));
        deltas
    }
}

/// `text` in words with the space behind them; in longer pieces when there would be too many.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let least = text.len() / MAX_PIECES;
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let from = (least..rest.len()).find(|&at| rest.is_char_boundary(at)).unwrap_or(rest.len());
        let end = rest[from..].find(char::is_whitespace).map_or(rest.len(), |at| from + at);
        let end = rest[end..].find(|c: char| !c.is_whitespace()).map_or(rest.len(), |at| end + at);
        let (piece, after) = rest.split_at(end);
        rest = after;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::message::Block;
    use crate::model::{About, Api, Draft};

    #[test]
    fn words_come_one_by_one() {
        assert_eq!(pieces("a bc\n\n d").collect::<Vec<_>>(), ["a ", "bc\n\n ", "d"]);
        assert_eq!(pieces("").count(), 0);
        let long = "word ".repeat(100_000);
        assert!(pieces(&long).count() <= MAX_PIECES + 1);
    }

    proptest! {
        #[test]
        fn a_draft_puts_it_together_again(text in ".{0,200}", thinking in "[a-z ]{0,40}", value in ".{0,40}") {
            let about = About {
                provider: "p".to_owned(), model: "m".to_owned(), api: Api::Embedded, context_window: 1, max_tokens: 1,
                takes_images: false,
            };
            let arguments = [("value".to_owned(), Value::String(value))].into_iter().collect();
            let provider_data = serde_json::Map::new();
            let (id, name) = ("a".to_owned(), "t".to_owned());
            let call = ToolCall { id, name, arguments, thought_signature: None, provider_data };
            let answer = Answer { thinking: thinking.clone(), calls: vec![call.clone()], ..Answer::text(text.clone()) };
            let mut draft = Draft::new(&about);
            for delta in answer.deltas() {
                draft.apply(&delta);
            }
            let reply = draft.finish();
            prop_assert!(reply.broken.is_empty());
            prop_assert_eq!(reply.message.stop_reason, StopReason::ToolUse);
            prop_assert_eq!(reply.message.text(), text);
            prop_assert_eq!(reply.message.calls().collect::<Vec<_>>(), [&call]);
            let thought = reply.message.content.iter().find_map(|block| match block {
                Block::Thinking { thinking, .. } => Some(thinking.clone()),
                _ => None,
            });
            prop_assert_eq!(thought.unwrap_or_default(), thinking);
        }
    }
}
