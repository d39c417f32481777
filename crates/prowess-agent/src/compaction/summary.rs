//! Summaries: what is a model asked for, and what is said when it cannot answer?

use std::collections::BTreeSet;
use std::fmt::Write;

use serde_json::{Value, json};

use super::{pieces, summary_alone};
use crate::compaction::Piece;
use crate::message::{Block, Message};

/// What a model that summarises is told.
pub(crate) const SYSTEM: &str = "You summarise a conversation between a person and an assistant that uses tools, so that the \
    assistant can go on without having seen it. You do not answer or continue the conversation. You write only the summary.";

/// The most of one message that a model that summarises is shown, in characters.
const MAX_SHOWN: usize = 2_000;

/// In a summary that no model made: how many requests are listed, how much of each, and how much of the last answer.
const MAX_REQUESTS: usize = 20;
const MAX_REQUEST: usize = 300;
const MAX_ANSWER: usize = 2_000;
/// And how much of an earlier summary is carried on.
const MAX_PREVIOUS: usize = 8_000;

/// The most files that are listed.
const MAX_FILES: usize = 100;

/// The files that a conversation was about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Files {
    /// Read, and not changed.
    pub(crate) read: BTreeSet<String>,
    /// Written or edited.
    pub(crate) changed: BTreeSet<String>,
}

impl Files {
    /// Those that `messages` name, and those that `previous` details of a compaction named.
    #[must_use]
    pub(crate) fn of(messages: &[Message], previous: Option<&Value>) -> Self {
        let mut files = Self::default();
        let listed = |key: &str| {
            let list = previous.and_then(|details| details.get(key)).and_then(Value::as_array);
            list.into_iter().flatten().filter_map(|path| path.as_str().map(str::to_owned)).collect::<Vec<_>>()
        };
        files.read.extend(listed("readFiles"));
        files.changed.extend(listed("modifiedFiles"));
        for message in messages {
            let Message::Assistant(said) = message else { continue };
            for call in said.calls() {
                let path = ["path", "file_path", "filePath"].iter().find_map(|key| call.arguments.get(*key)?.as_str());
                let Some(path) = path else { continue };
                match call.name.as_str() {
                    "read" => files.read.insert(path.to_owned()),
                    "write" | "edit" | "apply_patch" => files.changed.insert(path.to_owned()),
                    _ => continue,
                };
            }
        }
        files.read = files.read.difference(&files.changed).cloned().collect();
        files
    }

    /// For the `details` of a compaction entry, as the peer writes them.
    #[must_use]
    pub(crate) fn details(&self) -> Value {
        json!({"readFiles": self.read, "modifiedFiles": self.changed})
    }

    fn render(&self) -> String {
        let mut text = String::new();
        for (title, files) in [("Files that were read", &self.read), ("Files that were changed", &self.changed)] {
            if files.is_empty() {
                continue;
            }
            text.extend(["\n\n## ", title, "\n"]);
            let lines = files.iter().take(MAX_FILES).map(|path| format!("- {path}"));
            text.push_str(&lines.collect::<Vec<_>>().join("\n"));
            if files.len() > MAX_FILES {
                text.push_str("\n- and more");
            }
        }
        text
    }
}

/// What a model is asked in order to summarise `messages`, in about `room` tokens. An earlier summary is merged.
#[must_use]
pub(crate) fn request(previous: Option<&str>, messages: &[Message], files: &Files, room: u64) -> String {
    let mut text = String::from(
        "Summarise the conversation below. Use these headings, and leave out those for which there is nothing to say:\n\
         \n\
         ## Goal\nWhat the person wants, in their terms, and what they ruled out.\n\
         ## Decisions\nWhat was decided, and why.\n\
         ## Done\nWhat has been done, with exact names, paths, commands and results that still matter.\n\
         ## Open\nWhat is unfinished or failed, and what should happen next.\n\
         \n\
         Keep numbers, identifiers and error texts exactly as they are. Do not make anything up.",
    );
    if let Some(previous) = previous.map(summary_alone).filter(|previous| !previous.is_empty()) {
        let previous = shorten(&previous, MAX_PREVIOUS);
        text.extend([
            "\n\nA summary of what came before is there already. Merge it: keep what still holds, and change \
            what does not.\n\n<earlier_summary>\n",
            &previous,
            "\n</earlier_summary>",
        ]);
    }
    text.push_str(&files.render());
    let shown: Vec<String> = messages.iter().map(show).filter(|one| !one.is_empty()).collect();
    let shown = shown.join("\n\n");
    let taken = prowess_skills::tokens(&text);
    let room = usize::try_from(room).unwrap_or(usize::MAX).saturating_sub(taken);
    text.extend(["\n\n<conversation>\n", &within(&shown, room), "\n</conversation>"]);
    text
}

/// A summary that needs no model: what was asked, what was used, and what was said last.
#[must_use]
pub(crate) fn fallback(previous: Option<&str>, messages: &[Message], files: &Files) -> String {
    let mut text = String::new();
    if let Some(previous) = previous.map(summary_alone).filter(|previous| !previous.is_empty()) {
        text.extend(["## Before that\n", &shorten(&previous, MAX_PREVIOUS), "\n\n"]);
    }
    let requests: Vec<String> = messages.iter().filter_map(asked).collect();
    if !requests.is_empty() {
        text.push_str("## What the user asked for\n");
        if requests.len() > MAX_REQUESTS {
            text.push_str("- (earlier requests are left out)\n");
        }
        for request in &requests[requests.len().saturating_sub(MAX_REQUESTS)..] {
            text.extend(["- ", &shorten(&request.split_whitespace().collect::<Vec<_>>().join(" "), MAX_REQUEST), "\n"]);
        }
    }
    let tools = tools(messages);
    if !tools.is_empty() {
        text.extend(["\n## Tools that were used\n", &tools]);
    }
    let last = messages.iter().rev().find_map(|message| match message {
        Message::Assistant(said) => Some(said.text()).filter(|text| !text.trim().is_empty()),
        Message::User(_) | Message::ToolResult(_) => None,
    });
    if let Some(last) = last {
        text.extend(["\n## What the assistant said last\n", &shorten(last.trim(), MAX_ANSWER), "\n"]);
    }
    text.push_str(&files.render());
    let text = text.trim();
    if text.is_empty() { "Nothing of note.".to_owned() } else { text.to_owned() }
}

/// What a person asked for in a message, without what a summary put into their mouth.
fn asked(message: &Message) -> Option<String> {
    let Message::User(user) = message else { return None };
    let texts: Vec<&str> = user.content.iter().filter_map(Block::as_text).collect();
    let text = texts.join("\n");
    let is_carried = pieces(&text).iter().any(|piece| matches!(piece, Piece::Instructions { .. }));
    (!is_carried && !text.trim().is_empty()).then_some(text)
}

/// How often which tool was used, and how often it failed.
fn tools(messages: &[Message]) -> String {
    let mut used: Vec<(&str, usize, usize)> = Vec::new();
    for message in messages {
        let Message::ToolResult(reply) = message else { continue };
        let place = used.iter().position(|one| one.0 == reply.tool_name).unwrap_or_else(|| {
            used.push((&reply.tool_name, 0, 0));
            used.len() - 1
        });
        used[place].1 += 1;
        used[place].2 += usize::from(reply.is_error);
    }
    let mut text = String::new();
    for (name, times, failed) in used {
        let failed = if failed > 0 { format!(", {failed} failed") } else { String::new() };
        // Writing to a string cannot fail.
        writeln!(text, "- {name}: {times}{failed}").ok();
    }
    text
}

/// A message, as a model that summarises is shown it.
fn show(message: &Message) -> String {
    let (who, content) = match message {
        Message::User(user) => ("Person".to_owned(), &user.content),
        Message::Assistant(said) => ("Assistant".to_owned(), &said.content),
        Message::ToolResult(reply) => {
            (format!("{} of {}", if reply.is_error { "Failure" } else { "Result" }, reply.tool_name), &reply.content)
        }
    };
    let shown: Vec<String> = content.iter().filter_map(show_block).filter(|text| !text.trim().is_empty()).collect();
    if shown.is_empty() {
        return String::new();
    }
    format!("[{who}]\n{}", shorten(&shown.join("\n"), MAX_SHOWN))
}

fn show_block(block: &Block) -> Option<String> {
    match block {
        Block::Text { text, .. } => Some(summary_alone(text)),
        Block::Thinking { .. } => None,
        Block::ToolCall(call) => {
            let arguments = serde_json::to_string(&call.arguments).unwrap_or_default();
            Some(format!("(calls {} with {arguments})", call.name))
        }
        Block::Image(_) => Some("(an image)".to_owned()),
        Block::Other(_) => Some("(something that is not text)".to_owned()),
    }
}

/// The first `longest` characters.
fn shorten(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// The end of `text` that has at most `room` tokens: what came last matters most.
fn within(text: &str, room: usize) -> String {
    if prowess_skills::tokens(text) <= room {
        return text.to_owned();
    }
    // A character that is not ASCII counts as four that are.
    let mut left = room.saturating_mul(4);
    let mut start = text.len();
    for (at, c) in text.char_indices().rev() {
        let cost = if c.is_ascii() { 1 } else { 4 };
        if cost > left {
            break;
        }
        left -= cost;
        start = at;
    }
    format!("[the beginning is left out]\n{}", &text[start..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compaction::tests::{model, person, result};
    use crate::compaction::{Instructions, compose};

    fn messages() -> Vec<Message> {
        vec![
            person("Fix the parser,\n please."),
            model("I look.", &[("a", "read", json!({"path": "src/a.rs"})), ("b", "edit", json!({"path": "src/b.rs"}))]),
            result("a", &"fn a() {}\n".repeat(1_000), &json!({})),
            result("b", "done", &json!({})),
            model("It is fixed.", &[]),
        ]
    }

    #[test]
    fn files_are_told_apart_and_remembered() {
        let previous = json!({"readFiles": ["src/b.rs", "old.rs"], "modifiedFiles": ["new.rs"], "more": 1});
        let files = Files::of(&messages(), Some(&previous));
        assert_eq!(
            files.details(),
            json!({"readFiles": ["old.rs", "src/a.rs"], "modifiedFiles": ["new.rs", "src/b.rs"]})
        );
    }

    #[test]
    fn a_request_shows_what_matters_within_its_room() {
        let stored = compose("Earlier words.", &[Instructions { skill: "w".into(), text: "secret recipe".into() }]);
        let files = Files::of(&messages(), None);
        let text = request(Some(&stored), &messages(), &files, 100_000);
        for part in
            ["## Goal", "Earlier words.", "src/a.rs", "[Person]", "calls read", "Result of read", "It is fixed."]
        {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
        assert!(!text.contains("secret recipe"));
        assert!(text.len() < 8_000, "a long result is shown in part");
        let short = request(None, &messages(), &files, 300);
        assert!(prowess_skills::tokens(&short) < 350);
        assert!(short.contains("It is fixed."), "the end stays");
    }

    #[test]
    fn without_a_model_there_is_still_a_summary() {
        let files = Files::of(&messages(), None);
        let text = fallback(Some("Earlier words."), &messages(), &files);
        assert_eq!(
            text,
            "## Before that\nEarlier words.\n\n## What the user asked for\n- Fix the parser, please.\n\n\
             ## Tools that were used\n- read: 2\n\n## What the assistant said last\nIt is fixed.\n\n\n\
             ## Files that were read\n- src/a.rs\n\n## Files that were changed\n- src/b.rs"
        );
        assert_eq!(text, fallback(Some("Earlier words."), &messages(), &files));
        assert_eq!(fallback(None, &[], &Files::default()), "Nothing of note.");
        let many: Vec<Message> = (0..500).map(|number| person(&format!("{number} {}", "ü".repeat(9_000)))).collect();
        assert!(fallback(None, &many, &Files::default()).chars().count() < 8_000);
    }
}
