//! Compaction: what is left of a conversation that has become too long?
//!
//! A summary of the older part, the instructions of the skills that are in use, word for word, and the newer part as it
//! was. Everything here is values from values; asking a model for the summary is up to the turn.

mod clip;
mod summary;

use std::collections::HashSet;

use prowess_skills::tokens;

pub(crate) use clip::{clip, is_tight};
pub(crate) use summary::{Files, SYSTEM, fallback, request};

use crate::ledger::{Mark, Marked};
use crate::message::{Block, Message, User};

/// How many tokens are kept free for an answer, in a window that has room for it.
pub(crate) const RESERVE: u64 = 20_000;

/// How many tokens of the newest messages stay as they are, in a window that has room for it.
pub(crate) const KEEP: u64 = 20_000;

/// The most of one skill's instructions that is carried over, in characters.
pub(crate) const MAX_INSTRUCTIONS: usize = 40_000;

/// About how many tokens an image takes.
const IMAGE_TOKENS: u64 = 1_200;

/// Around the instructions of a skill in a summary.
const OPEN: &str = "<skill_instructions name=\"";
const OPEN_END: &str = "\">\n";
const CLOSE: &str = "\n</skill_instructions>";

/// How many tokens to keep free in a window: never more than half of it.
#[must_use]
pub(crate) fn reserve(window: u64) -> u64 {
    RESERVE.min(window / 2)
}

/// How many tokens of the newest messages to keep in a window.
#[must_use]
pub(crate) fn keep(window: u64) -> u64 {
    KEEP.min(window / 4)
}

/// Whether a conversation that takes `used` tokens must be compacted before the next call.
#[must_use]
pub(crate) fn needed(used: u64, window: u64, reserve: u64) -> bool {
    used > window - reserve.min(window / 2)
}

/// About how many tokens messages take.
#[must_use]
pub(crate) fn estimate(messages: &[Message]) -> u64 {
    messages.iter().map(size).sum()
}

/// About how many tokens a message takes.
fn size(message: &Message) -> u64 {
    let content = match message {
        Message::User(user) => &user.content,
        Message::Assistant(said) => &said.content,
        Message::ToolResult(reply) => &reply.content,
    };
    content.iter().map(weight).sum()
}

/// About how many tokens a block takes.
pub(crate) fn weight(block: &Block) -> u64 {
    let count = |text: &str| tokens(text) as u64;
    match block {
        Block::Text { text, .. } => count(text),
        Block::Thinking { thinking, thinking_signature, .. } => {
            count(thinking) + thinking_signature.as_deref().map_or(0, count)
        }
        Block::ToolCall(call) => {
            let arguments = serde_json::to_string(&call.arguments).unwrap_or_default();
            count(&call.name) + count(&arguments)
        }
        Block::Image(_) => IMAGE_TOKENS,
        Block::Other(value) => count(&value.to_string()),
    }
}

/// Where to cut so that about `keep_tokens` of the newest messages stay: the first that is kept.
///
/// Never between a call and its result. Nothing when there is nothing to cut away, or no place to do it.
#[must_use]
pub(crate) fn cut(messages: &[Message], keep_tokens: u64) -> Option<usize> {
    let mut kept = 0;
    let reached = messages.iter().rposition(|message| {
        kept += size(message);
        kept >= keep_tokens
    })?;
    let allowed = boundaries(messages);
    let later = (reached..messages.len()).find(|place| allowed[*place]);
    let place = later.or_else(|| (0..reached).rev().find(|place| allowed[*place]))?;
    (place > 0).then_some(place)
}

/// For each message, whether what is kept may begin with it.
fn boundaries(messages: &[Message]) -> Vec<bool> {
    let mut allowed = vec![true; messages.len()];
    let mut calls_at = None;
    for (place, message) in messages.iter().enumerate() {
        match message {
            Message::Assistant(_) => calls_at = Some(place),
            Message::ToolResult(_) => {
                // Whatever stands between a call and its result belongs to both.
                allowed[calls_at.map_or(place, |calls_at| calls_at + 1)..=place].fill(false);
            }
            Message::User(_) => {}
        }
    }
    allowed
}

/// The instructions of a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Instructions {
    /// The skill.
    pub(crate) skill: String,
    /// What its `SKILL.md` says, as the model read it.
    pub(crate) text: String,
}

/// The instructions of the skills in use that the model would no longer see when messages before `first_kept` are gone.
#[must_use]
pub(crate) fn instructions(messages: &[Message], first_kept: usize, active: &[String]) -> Vec<Instructions> {
    let (gone, kept) = messages.split_at(first_kept.min(messages.len()));
    let still_there: HashSet<(String, String)> = kept.iter().flat_map(read_in).collect();
    let read: Vec<(String, String)> = gone.iter().flat_map(read_in).collect();
    let mut found = Vec::new();
    for skill in active {
        // A long file may have been read in parts, and a part more than once.
        let mut parts: Vec<&str> = Vec::new();
        for one in read.iter().filter(|one| one.0 == *skill && !still_there.contains(*one)) {
            if !parts.contains(&one.1.as_str()) {
                parts.push(&one.1);
            }
        }
        if !parts.is_empty() {
            found.push(Instructions { skill: skill.clone(), text: bounded(&parts.join("\n")) });
        }
    }
    found
}

/// The instructions that a message brought, with their skills.
fn read_in(message: &Message) -> Vec<(String, String)> {
    match message {
        Message::ToolResult(reply) if !reply.is_error => Mark::read(reply.details.as_ref())
            .into_iter()
            .filter(|mark| mark.what == Marked::File)
            .map(|mark| (mark.skill, reply.text()))
            .collect(),
        // An earlier summary carries them on.
        Message::User(user) => {
            let texts = user.content.iter().filter_map(Block::as_text);
            texts
                .flat_map(pieces)
                .filter_map(|piece| match piece {
                    Piece::Instructions { skill, text } => Some((skill, text.to_owned())),
                    Piece::Text(_) => None,
                })
                .collect()
        }
        Message::ToolResult(_) | Message::Assistant(_) => Vec::new(),
    }
}

fn bounded(text: &str) -> String {
    match text.char_indices().nth(MAX_INSTRUCTIONS) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}\n[The rest is left out here; read the SKILL.md again for it.]", &text[..end]),
    }
}

/// The text of a summary as it is stored: the summary itself, then the instructions, word for word.
///
/// They are part of the text, so that whoever goes on with the session has them.
#[must_use]
pub(crate) fn compose(summary: &str, instructions: &[Instructions]) -> String {
    let mut text = summary.trim().to_owned();
    for one in instructions {
        // A quote would end the name, and names have none.
        let skill = one.skill.replace(['"', '\n'], "");
        text.extend(["\n\n", OPEN, &skill, OPEN_END, &one.text, CLOSE]);
    }
    text
}

/// A piece of a stored summary.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    Text(&'a str),
    Instructions { skill: String, text: &'a str },
}

/// A stored summary, taken apart.
pub(crate) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((before, inside, after)) = first_block(rest) {
        found.push(Piece::Text(before));
        found.push(inside);
        rest = after;
    }
    found.push(Piece::Text(rest));
    found
}

fn first_block(text: &str) -> Option<(&str, Piece<'_>, &str)> {
    let (before, rest) = text.split_once(OPEN)?;
    let (skill, rest) = rest.split_once(OPEN_END)?;
    let (inside, after) = rest.split_once(CLOSE)?;
    Some((before, Piece::Instructions { skill: skill.to_owned(), text: inside }, after))
}

/// The summary without the instructions that were carried along.
#[must_use]
pub(crate) fn summary_alone(stored: &str) -> String {
    let texts = pieces(stored).into_iter().filter_map(|piece| match piece {
        Piece::Text(text) => Some(text.trim()),
        Piece::Instructions { .. } => None,
    });
    texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n")
}

/// The skills whose instructions a stored summary carries along.
#[must_use]
pub(crate) fn carried(stored: &str) -> Vec<String> {
    let skills = pieces(stored).into_iter().filter_map(|piece| match piece {
        Piece::Instructions { skill, .. } => Some(skill),
        Piece::Text(_) => None,
    });
    skills.collect()
}

/// The conversation as it goes on: the stored summary in one message, then what was kept.
#[must_use]
pub(crate) fn rebuild(stored: &str, kept: &[Message]) -> Vec<Message> {
    let timestamp = match kept.first() {
        Some(Message::User(user)) => user.timestamp,
        Some(Message::Assistant(said)) => said.timestamp,
        Some(Message::ToolResult(reply)) => reply.timestamp,
        None => 0,
    };
    let text = format!("The beginning of this conversation is left out. In short, this is what happened:\n\n{stored}");
    let summary = Message::User(User { content: vec![Block::text(text)], timestamp });
    std::iter::once(summary).chain(kept.iter().cloned()).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    pub(crate) fn person(text: &str) -> Message {
        Message::User(User { content: vec![Block::text(text)], timestamp: 1 })
    }

    pub(crate) fn model(text: &str, calls: &[(&str, &str, Value)]) -> Message {
        let mut content = vec![json!({"type": "text", "text": text})];
        let call = |(id, name, arguments): &(&str, &str, Value)| json!({"type": "toolCall", "id": id, "name": name, "arguments": arguments});
        content.extend(calls.iter().map(call));
        serde_json::from_value(json!({"role": "assistant", "content": content, "timestamp": 2})).expect("a message")
    }

    pub(crate) fn result(id: &str, text: &str, details: &Value) -> Message {
        let content = json!([{"type": "text", "text": text}]);
        let reply =
            json!({"role": "toolResult", "toolCallId": id, "toolName": "read", "content": content, "details": details});
        serde_json::from_value(reply).expect("a message")
    }

    pub(crate) fn skill_file(skill: &str) -> Value {
        json!({"skill": {"name": skill, "file": true}})
    }

    #[test]
    fn a_small_window_is_not_all_reserve() {
        let table = [(200_000, 20_000, 20_000), (40_000, 20_000, 10_000), (8_000, 4_000, 2_000), (0, 0, 0)];
        for (window, expected, kept) in table {
            assert_eq!((reserve(window), keep(window)), (expected, kept), "{window}");
            assert!(!needed(window - reserve(window), window, reserve(window)));
            assert!(needed(window - reserve(window) + 1, window, reserve(window)));
        }
        assert!(!needed(500, 1_000, u64::MAX), "a reserve larger than the window is half of it");
    }

    #[test]
    fn cuts_are_where_nothing_is_torn_apart() {
        let words = "x".repeat(400);
        let turn = || {
            let call = model(&words, &[("a", "read", json!({}))]);
            vec![person(&words), call, result("a", &words, &json!({})), model(&words, &[])]
        };
        let messages: Vec<Message> = turn().into_iter().chain(turn()).collect();
        let table = [
            (1, Some(7)),
            (100, Some(7)),
            // The result alone would be kept; it goes with what comes after it.
            (150, Some(7)),
            (300, Some(5)),
            (350, Some(4)),
            (601, Some(3)),
            (100_000, None),
        ];
        for (keep, expected) in table {
            assert_eq!(cut(&messages, keep), expected, "{keep}");
        }
        // One huge result at the end: its call stays with it.
        let messages = [person("hi"), model("", &[("a", "read", json!({}))]), result("a", &words, &json!({}))];
        assert_eq!(cut(&messages, 10), Some(1));
        assert_eq!(cut(&messages[1..], 10), None);
        assert_eq!(cut(&[], 10), None);
    }

    #[test]
    fn instructions_of_skills_in_use_are_kept_word_for_word() {
        let body = "# Weather\n\nRun `curl wttr.in/{city}`.";
        let messages = vec![
            person("weather?"),
            model("", &[("a", "read", json!({"path": "w/SKILL.md"}))]),
            result("a", body, &skill_file("weather")),
            result("b", "other", &skill_file("other")),
            model("It rains.", &[]),
            person("and now?"),
        ];
        let active = ["weather".to_owned()];
        let found = instructions(&messages, 5, &active);
        assert_eq!(found, [Instructions { skill: "weather".to_owned(), text: body.to_owned() }]);
        assert_eq!(instructions(&messages, 2, &active), [], "the model still sees them");

        let stored = compose("It was about rain.", &found);
        assert_eq!(summary_alone(&stored), "It was about rain.");
        let rebuilt = rebuild(&stored, &messages[5..]);
        assert_eq!(rebuilt.len(), 2);
        assert_eq!(rebuilt[1], messages[5]);
        // And once more, from the summary.
        assert_eq!(instructions(&rebuilt, 1, &active), found);
        assert_eq!(instructions(&rebuilt, 1, &[]), []);
    }

    #[test]
    fn instructions_read_in_parts_are_put_together_and_bounded() {
        let messages = [
            result("a", "one", &skill_file("w")),
            result("b", "two", &skill_file("w")),
            result("c", "one", &skill_file("w")),
        ];
        let active = ["w".to_owned()];
        assert_eq!(instructions(&messages, 3, &active)[0].text, "one\ntwo");
        let long = [result("a", &"ü".repeat(2 * MAX_INSTRUCTIONS), &skill_file("w"))];
        let text = &instructions(&long, 1, &active)[0].text;
        assert!(text.chars().count() < MAX_INSTRUCTIONS + 100);
        assert!(text.ends_with("read the SKILL.md again for it.]"));
    }

    fn turns() -> impl Strategy<Value = Vec<Message>> {
        let turn = (0..200_usize, prop::collection::vec(0..300_usize, 0..4)).prop_map(|(said, results)| {
            let ids: Vec<String> = (0..results.len()).map(|number| format!("c{number}")).collect();
            let calls: Vec<(&str, &str, Value)> = ids.iter().map(|id| (id.as_str(), "read", json!({}))).collect();
            let mut turn = vec![person(&"p".repeat(said)), model(&"m".repeat(said), &calls)];
            turn.extend(ids.iter().zip(&results).map(|(id, size)| result(id, &"r".repeat(*size), &json!({}))));
            turn
        });
        prop::collection::vec(turn, 0..12).prop_map(|turns| turns.into_iter().flatten().collect())
    }

    proptest! {
        #[test]
        fn a_cut_never_tears_a_call_from_its_result(messages in turns(), keep in 1..2_000_u64) {
            let Some(place) = cut(&messages, keep) else { return Ok(()) };
            prop_assert!(place > 0 && place < messages.len());
            let pending: HashSet<&str> = messages[..place].iter().fold(HashSet::new(), |mut open, message| {
                match message {
                    Message::Assistant(said) => open = said.calls().map(|call| call.id.as_str()).collect(),
                    Message::ToolResult(reply) => {
                        open.remove(reply.tool_call_id.as_str());
                    }
                    Message::User(_) => {}
                }
                open
            });
            prop_assert!(pending.is_empty());
        }

        #[test]
        fn a_stored_summary_can_be_taken_apart(summary in "[a-z<>\" \n]{0,40}", skill in "[a-z-]{1,10}", text in "[a-z#<>\n]{0,60}") {
            let given = [Instructions { skill: skill.clone(), text: text.clone() }];
            let stored = compose(&summary, &given);
            let found = pieces(&stored);
            let expected = Piece::Instructions { skill, text: &text };
            prop_assert!(found.contains(&expected), "{:?}", found);
            prop_assert_eq!(summary_alone(&stored), summary.trim());
        }
    }
}
