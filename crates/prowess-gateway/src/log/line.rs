//! A line of the log: how is an event written, for programs and for people?

use std::fmt::{self, Write as _};

use jiff::Timestamp;
use prowess_config::Secret;
use serde_json::{Map, Value, json};
use tracing::field::{Field, Visit};
use tracing::{Event, Level};

use crate::wire::REDACTED;

/// The longest text of an event, in characters; whoever writes more is cut short.
const MAX_TEXT: usize = 4096;

/// What an event says.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Line {
    pub(super) time: Timestamp,
    pub(super) level: Level,
    /// Which part of the program it is about.
    pub(super) subsystem: String,
    pub(super) message: String,
    pub(super) fields: Map<String, Value>,
}

impl Line {
    pub(super) fn of(event: &Event<'_>) -> Self {
        let mut said = Said::default();
        event.record(&mut said);
        let target = event.metadata().target();
        let subsystem = target.strip_prefix("prowess_").unwrap_or(target).replace("::", "/");
        let (level, time) = (*event.metadata().level(), Timestamp::now());
        Self { time, level, subsystem, message: said.message, fields: said.fields }
    }

    /// As JSON, with the keys by which OpenClaw's own reader of logs finds its way.
    pub(super) fn json(&self) -> String {
        let name = json!({"subsystem": self.subsystem}).to_string();
        let time = format!("{:.3}", self.time);
        let mut line = json!({
            "time": time,
            "level": self.level.as_str().to_ascii_lowercase(),
            "subsystem": self.subsystem,
            "0": self.text(),
            "_meta": {"date": time, "logLevelName": self.level.as_str(), "name": name},
        });
        if !self.fields.is_empty() {
            line["fields"] = Value::Object(self.fields.clone());
        }
        line.to_string()
    }

    /// In one line for a person, who sees everything in it and obeys nothing.
    pub(super) fn human(&self) -> String {
        let time = format!("{:.0}", self.time);
        let time = time.get(11..19).unwrap_or_default();
        let text: String = self.text().chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
        format!("{time} {:<5} {text}", self.level.as_str().to_ascii_lowercase())
    }

    /// The message and its fields.
    fn text(&self) -> String {
        self.fields.iter().fold(self.message.clone(), |mut text, (name, value)| {
            let _ = match value {
                Value::String(value) => write!(text, " {name}={value}"),
                value => write!(text, " {name}={value}"),
            };
            text
        })
    }
}

/// `line` without the secrets, however they came into it.
pub(super) fn covered(line: String, secrets: &[Secret]) -> String {
    secrets.iter().fold(line, |line, secret| {
        let plain = secret.expose();
        let escaped = Value::from(plain).to_string();
        let escaped = &escaped[1..escaped.len() - 1];
        if line.contains(plain) || line.contains(escaped) {
            line.replace(plain, REDACTED).replace(escaped, REDACTED)
        } else {
            line
        }
    })
}

#[derive(Default)]
struct Said {
    message: String,
    fields: Map<String, Value>,
}

impl Said {
    fn take(&mut self, field: &Field, value: Value) {
        match (field.name(), value) {
            ("message", Value::String(text)) => self.message = text,
            (name, value) => drop(self.fields.insert(name.to_owned(), value)),
        }
    }
}

fn short(text: &str) -> String {
    text.chars().take(MAX_TEXT).collect()
}

impl Visit for Said {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.take(field, short(&format!("{value:?}")).into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.take(field, short(value).into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.take(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.take(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.take(field, value.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> Line {
        Line {
            time: Timestamp::from_millisecond(1_794_808_640_888).expect("a time"),
            level: Level::WARN,
            subsystem: "gateway/server".to_owned(),
            message: "somebody\u{1b}[2J\nleft".to_owned(),
            fields: [("conn".to_owned(), "abc".into()), ("after".to_owned(), 7.into())].into_iter().collect(),
        }
    }

    #[test]
    fn programs_find_time_level_and_text() {
        let json: Value = serde_json::from_str(&line().json()).expect("JSON");
        assert_eq!((&json["time"], &json["level"]), (&json!("2026-11-16T05:57:20.888Z"), &json!("warn")));
        assert_eq!(json["0"], "somebody\u{1b}[2J\nleft conn=abc after=7");
        assert_eq!(json["_meta"]["name"], "{\"subsystem\":\"gateway/server\"}");
        assert_eq!(json["fields"], json!({"conn": "abc", "after": 7}));
    }

    #[test]
    fn people_get_one_line_and_nothing_to_obey() {
        assert_eq!(line().human(), "05:57:20 warn  somebody\u{fffd}[2J\u{fffd}left conn=abc after=7");
    }

    #[test]
    fn a_secret_is_covered_in_either_spelling() {
        let secrets = [Secret::new("to\"ken-1")];
        let text = covered("a to\"ken-1 b to\\\"ken-1 c".to_owned(), &secrets);
        assert_eq!(text, "a __OPENCLAW_REDACTED__ b __OPENCLAW_REDACTED__ c");
    }
}
