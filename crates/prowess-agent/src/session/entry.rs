//! Entries: what does one line of a transcript say?
//!
//! The shapes are those of OpenClaw 2026.3.2. A line that this program does not know is kept as it is and stepped over;
//! only its place in the tree counts.

use std::fmt;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::message::Message;

/// The version of the format that is written.
pub(crate) const VERSION: u64 = 3;

/// Custom entries of ours.
pub mod note {
    /// The frozen skills of a session: `{fingerprint, prompt, skills}`. The last one counts.
    pub const SKILLS: &str = "prowess:skills";
    /// What a call cost, by account.
    pub const USAGE: &str = "prowess:usage";
    /// A skill came into use: `{skill, path, how}`.
    pub const USE: &str = "prowess:use";
    /// What the model is told when there is news.
    pub const NOTICE: &str = "prowess:notice";
    /// A run of the agent.
    pub const RUN: &str = "prowess:run";
}

/// What an entry is found by within its transcript.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(pub(crate) String);

impl EntryId {
    /// The id as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What is to be written.
#[derive(Debug, Clone)]
pub enum Body<'a> {
    /// A message.
    Message(&'a Message),
    /// Another model answers from here on.
    ModelChange {
        /// Who runs it.
        provider: &'a str,
        /// Its name there.
        model: &'a str,
    },
    /// It thinks more or less from here on.
    ThinkingChange {
        /// How much.
        level: &'a str,
    },
    /// What came before is a summary from here on.
    Compaction {
        /// The summary.
        summary: &'a str,
        /// The first entry that is kept as it is.
        first_kept: &'a EntryId,
        /// About how many tokens there were before.
        tokens_before: u64,
        /// For programs.
        details: Option<Value>,
    },
    /// Something that the model is told and people are not shown.
    Notice {
        /// What.
        text: &'a str,
    },
    /// Something of ours that no model sees; see [`note`].
    Custom {
        /// What it is.
        kind: &'a str,
        /// The data.
        data: Value,
    },
}

impl Body<'_> {
    /// The line as JSON.
    pub(crate) fn render(self, id: &EntryId, parent: Option<&str>) -> serde_json::Result<Map<String, Value>> {
        let (kind, rest) = match self {
            Self::Message(message) => ("message", json!({"message": serde_json::to_value(message)?})),
            Self::ModelChange { provider, model } => ("model_change", json!({"provider": provider, "modelId": model})),
            Self::ThinkingChange { level } => ("thinking_level_change", json!({"thinkingLevel": level})),
            Self::Compaction { summary, first_kept, tokens_before, details } => {
                let mut rest = json!({
                    "summary": summary, "firstKeptEntryId": first_kept.as_str(), "tokensBefore": tokens_before,
                });
                if let Some(details) = details {
                    rest["details"] = details;
                }
                ("compaction", rest)
            }
            Self::Notice { text } => {
                ("custom_message", json!({"customType": note::NOTICE, "content": text, "display": false}))
            }
            Self::Custom { kind, data } => ("custom", json!({"customType": kind, "data": data})),
        };
        let mut line = Map::new();
        line.insert("type".to_owned(), kind.into());
        line.insert("id".to_owned(), id.as_str().into());
        line.insert("parentId".to_owned(), parent.map_or(Value::Null, Value::from));
        line.insert("timestamp".to_owned(), now().into());
        if let Value::Object(rest) = rest {
            line.extend(rest);
        }
        Ok(line)
    }
}

/// What was read from a line, as far as a conversation needs it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Said {
    /// A message, as it is stored.
    Message(Value),
    /// Another model.
    Model { provider: String, model: String },
    /// Another level of thinking.
    Thinking(String),
    /// A summary of what came before.
    Compaction(Compaction),
    /// The frozen skills.
    Skills(Value),
    /// Nothing that matters here.
    Other,
}

/// A summary of what came before.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Compaction {
    pub(crate) summary: String,
    /// The first entry that is kept as it is, by id or, in the first version of the format, by its number among the
    /// lines.
    pub(crate) first_kept: FirstKept,
    pub(crate) tokens_before: u64,
    pub(crate) details: Option<Value>,
}

/// Where what is kept begins.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum FirstKept {
    Id(String),
    Line(usize),
    Nothing,
}

/// What a line says. Takes what it needs out of the line.
pub(crate) fn parse(line: &mut Map<String, Value>) -> Said {
    let text = |line: &Map<String, Value>, key: &str| line.get(key).and_then(Value::as_str).map(str::to_owned);
    match line.get("type").and_then(Value::as_str) {
        Some("message") => line.remove("message").map_or(Said::Other, message),
        Some("custom_message") => shown(line),
        Some("branch_summary") => match text(line, "summary") {
            Some(summary) if !summary.is_empty() => {
                Said::Message(user(&format!("Meanwhile, on another branch of this conversation:\n\n{summary}"), line))
            }
            _ => Said::Other,
        },
        Some("model_change") => match (text(line, "provider"), text(line, "modelId")) {
            (Some(provider), Some(model)) => Said::Model { provider, model },
            _ => Said::Other,
        },
        Some("thinking_level_change") => text(line, "thinkingLevel").map_or(Said::Other, Said::Thinking),
        Some("compaction") => {
            let number = line.get("firstKeptEntryIndex").and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
            let first_kept = match (text(line, "firstKeptEntryId"), number) {
                (Some(id), _) => FirstKept::Id(id),
                (None, Some(number)) => FirstKept::Line(number),
                (None, None) => FirstKept::Nothing,
            };
            Said::Compaction(Compaction {
                summary: text(line, "summary").unwrap_or_default(),
                first_kept,
                tokens_before: line.get("tokensBefore").and_then(Value::as_u64).unwrap_or_default(),
                details: line.remove("details"),
            })
        }
        Some("custom") if line.get("customType").and_then(Value::as_str) == Some(note::SKILLS) => {
            line.remove("data").map_or(Said::Other, Said::Skills)
        }
        _ => Said::Other,
    }
}

/// A message as a model may hear it. What the peer's surface put among the messages is said in the person's name.
fn message(message: Value) -> Said {
    let Value::Object(mut fields) = message else { return Said::Other };
    match fields.get("role").and_then(Value::as_str) {
        Some("custom" | "hookMessage") => shown(&mut fields),
        Some("branchSummary" | "compactionSummary") => {
            let summary = fields.get("summary").and_then(Value::as_str).unwrap_or_default();
            Said::Message(user(&format!("A summary of what came before:\n\n{summary}"), &fields))
        }
        Some("bashExecution") => {
            if fields.get("excludeFromContext").and_then(Value::as_bool) == Some(true) {
                return Said::Other;
            }
            let text = |key: &str| fields.get(key).and_then(Value::as_str).unwrap_or_default();
            Said::Message(user(&format!("I ran `{}`. It printed:\n\n{}", text("command"), text("output")), &fields))
        }
        Some(_) => Said::Message(Value::Object(fields)),
        None => Said::Other,
    }
}

fn shown(fields: &mut Map<String, Value>) -> Said {
    match fields.remove("content") {
        Some(content @ (Value::String(_) | Value::Array(_))) => {
            let mut message = json!({"role": "user", "content": content, "timestamp": millis(fields)});
            if fields.get("display") == Some(&Value::Bool(false)) {
                message["display"] = false.into();
            }
            Said::Message(message)
        }
        _ => Said::Other,
    }
}

fn user(text: &str, fields: &Map<String, Value>) -> Value {
    json!({"role": "user", "content": [{"type": "text", "text": text}], "timestamp": millis(fields)})
}

/// When it was said: messages count milliseconds, entries write a date.
fn millis(fields: &Map<String, Value>) -> u64 {
    match fields.get("timestamp") {
        Some(Value::String(date)) => {
            let when = date.parse::<Timestamp>().map(Timestamp::as_millisecond).unwrap_or_default();
            u64::try_from(when).unwrap_or_default()
        }
        Some(number) => number.as_u64().unwrap_or_default(),
        None => 0,
    }
}

/// The first line of a transcript.
///
/// The key is an addition of ours that the peer keeps: with it an index that was lost can be made again.
pub(crate) fn header(id: &str, cwd: &str, key: &str) -> Map<String, Value> {
    let fields: [(&str, Value); 6] = [
        ("type", "session".into()),
        ("version", VERSION.into()),
        ("id", id.into()),
        ("timestamp", now().into()),
        ("cwd", cwd.into()),
        ("sessionKey", key.into()),
    ];
    fields.into_iter().map(|(field, value)| (field.to_owned(), value)).collect()
}

/// Now, as entries write it.
pub(crate) fn now() -> String {
    format!("{:.3}", Timestamp::now())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::User;

    fn said(line: Value) -> Said {
        let Value::Object(mut line) = line else { panic!("an object") };
        parse(&mut line)
    }

    #[test]
    fn lines_have_the_shape_of_the_peer() {
        let id = EntryId("0a0b0c0d".into());
        let hello = Message::User(User { content: vec![crate::message::Block::text("hi")], timestamp: 5 });
        let kept = EntryId("00000002".into());
        let table = [
            (
                Body::Message(&hello),
                json!({"type": "message", "message": {"role": "user", "content": [{"type": "text", "text": "hi"}], "timestamp": 5}}),
            ),
            (
                Body::ModelChange { provider: "p", model: "m" },
                json!({"type": "model_change", "provider": "p", "modelId": "m"}),
            ),
            (Body::ThinkingChange { level: "low" }, json!({"type": "thinking_level_change", "thinkingLevel": "low"})),
            (
                Body::Compaction { summary: "s", first_kept: &kept, tokens_before: 9, details: None },
                json!({"type": "compaction", "summary": "s", "firstKeptEntryId": "00000002", "tokensBefore": 9}),
            ),
            (
                Body::Custom { kind: note::USE, data: json!({"skill": "x"}) },
                json!({"type": "custom", "customType": "prowess:use", "data": {"skill": "x"}}),
            ),
        ];
        for (body, expected) in table {
            let mut fields = body.render(&id, Some("00000001")).expect("a line");
            assert_eq!(fields.keys().take(4).collect::<Vec<_>>(), ["type", "id", "parentId", "timestamp"]);
            let date = fields.remove("timestamp").and_then(|date| date.as_str().map(str::to_owned)).expect("a date");
            assert_eq!((date.len(), date.ends_with('Z')), ("2026-01-01T00:00:00.000Z".len(), true), "{date}");
            assert_eq!(fields.remove("id"), Some("0a0b0c0d".into()));
            assert_eq!(fields.remove("parentId"), Some("00000001".into()));
            assert_eq!(Value::Object(fields), expected);
        }
    }

    #[test]
    fn the_root_has_no_parent() {
        let body = Body::ThinkingChange { level: "off" };
        let line = body.render(&EntryId("1".into()), None).expect("a line");
        assert_eq!(line["parentId"], Value::Null);
    }

    #[test]
    fn what_the_peer_showed_is_said_in_the_persons_name() {
        let table = [
            json!({"type": "custom_message", "customType": "x", "content": "look", "display": true, "timestamp": "1970-01-01T00:00:01.000Z"}),
            json!({"type": "message", "message": {"role": "hookMessage", "content": "look", "timestamp": 1000}}),
            json!({"type": "message", "message": {"role": "custom", "content": "look", "timestamp": 1000}}),
        ];
        for line in table {
            let expected = json!({"role": "user", "content": "look", "timestamp": 1000});
            assert_eq!(said(line), Said::Message(expected));
        }
        for role in ["bashExecution", "branchSummary"] {
            let line = json!({"type": "message", "message": {"role": role, "command": "ls", "summary": "s"}});
            let Said::Message(message) = said(line) else { panic!("a message") };
            assert_eq!(message["role"], "user");
        }
    }

    #[test]
    fn what_is_not_known_says_nothing() {
        let table = [
            json!({}),
            json!({"type": 3}),
            json!({"type": "label", "targetId": "x", "label": "y"}),
            json!({"type": "message"}),
            json!({"type": "message", "message": "hi"}),
            json!({"type": "message", "message": {}}),
            json!({"type": "model_change", "provider": 1}),
            json!({"type": "custom", "customType": "openclaw:prompt-error", "data": {}}),
        ];
        for line in table {
            assert_eq!(said(line.clone()), Said::Other, "{line}");
        }
    }
}
