//! Tools: what did the model ask for, and what does it get back?
//!
//! Models are careless with types: they write `"5"` for 5 and 123 for `"123"`. `Args` reads both, as the peer does,
//! and names everything that is wrong in one answer.

use serde::Serialize;
use serde_json::{Map, Value, json};

/// A piece of what a tool gives back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Content {
    /// Text for the model.
    Text {
        /// The text.
        text: String,
    },
    /// An image for the model.
    #[serde(rename_all = "camelCase")]
    Image {
        /// Its bytes in base64.
        data: String,
        /// Its kind, for example `image/png`.
        mime_type: String,
    },
}

impl Content {
    /// Its text, if it is text.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { text } => Some(text),
            Self::Image { .. } => None,
        }
    }
}

/// What a tool gives back.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    /// For the model.
    pub content: Vec<Content>,
    /// For programs.
    pub details: Value,
    /// Whether the call failed.
    pub is_error: bool,
}

impl ToolResult {
    /// The call did what it should.
    #[must_use]
    pub fn done(text: impl Into<String>, details: Value) -> Self {
        Self { content: vec![Content::Text { text: text.into() }], details, is_error: false }
    }

    /// The call failed.
    #[must_use]
    pub fn failed(text: impl Into<String>, details: Value) -> Self {
        Self { is_error: true, ..Self::done(text, details) }
    }

    /// The call of `tool` failed with nothing to tell but why.
    #[must_use]
    pub fn error(tool: &str, why: &str) -> Self {
        Self::failed(why, json!({"status": "error", "tool": tool, "error": why}))
    }

    /// All of its text.
    #[must_use]
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self.content.iter().filter_map(Content::as_text).collect();
        texts.join("\n")
    }
}

/// The arguments of one call, read with a list of what is wrong with them.
#[derive(Debug)]
pub(crate) struct Args<'a> {
    tool: &'static str,
    given: &'a Value,
    wrong: Vec<String>,
}

impl<'a> Args<'a> {
    /// The arguments `given` to `tool`.
    pub(crate) fn new(tool: &'static str, given: &'a Value) -> Self {
        let mut args = Self { tool, given, wrong: Vec::new() };
        if !given.is_object() {
            args.complain("root", "must be object");
        }
        args
    }

    /// A text that has to be there. Here null is an empty text, so that the tool can say what it wants.
    pub(crate) fn required(&mut self, name: &str) -> String {
        match self.given.get(name) {
            Some(Value::Null) => String::new(),
            Some(_) => self.text(name).unwrap_or_default(),
            None => {
                if self.given.is_object() {
                    self.complain(name, &format!("must have required property '{name}'"));
                }
                String::new()
            }
        }
    }

    /// A text, if it was given.
    pub(crate) fn text(&mut self, name: &str) -> Option<String> {
        let value = self.value(name)?;
        self.check(name, "must be string", to_text(value))
    }

    /// A number, if it was given.
    pub(crate) fn number(&mut self, name: &str) -> Option<f64> {
        let value = self.value(name)?;
        self.check(name, "must be number", to_number(value))
    }

    /// Yes or no, if it was given.
    pub(crate) fn flag(&mut self, name: &str) -> Option<bool> {
        let value = self.value(name)?;
        self.check(name, "must be boolean", to_flag(value))
    }

    /// A list of texts.
    pub(crate) fn texts(&mut self, name: &str) -> Vec<String> {
        let Some(value) = self.value(name) else { return Vec::new() };
        let Value::Array(items) = value else {
            self.complain(name, "must be array");
            return Vec::new();
        };
        let read = |(at, item)| self.check(&format!("{name}/{at}"), "must be string", to_text(item));
        items.iter().enumerate().filter_map(read).collect()
    }

    /// Names with texts, in the order they were given.
    pub(crate) fn pairs(&mut self, name: &str) -> Vec<(String, String)> {
        let Some(value) = self.value(name) else { return Vec::new() };
        let Value::Object(items) = value else {
            self.complain(name, "must be object");
            return Vec::new();
        };
        let read = |(key, item): (&String, _)| {
            let text = self.check(&format!("{name}/{key}"), "must be string", to_text(item));
            text.map(|text| (key.clone(), text))
        };
        items.iter().filter_map(read).collect()
    }

    /// Nothing if all is well, or the answer that says what is not.
    pub(crate) fn finish(self) -> Result<(), ToolResult> {
        if self.wrong.is_empty() {
            return Ok(());
        }
        let received = serde_json::to_string_pretty(self.given).unwrap_or_default();
        let text = format!(
            "Validation failed for tool \"{}\":\n{}\n\nReceived arguments:\n{received}",
            self.tool,
            self.wrong.join("\n")
        );
        Err(ToolResult::failed(text, Value::Object(Map::new())))
    }

    /// What was given as `name`. Models write null for what they leave out.
    fn value(&self, name: &str) -> Option<&'a Value> {
        self.given.get(name).filter(|value| !value.is_null())
    }

    fn check<T>(&mut self, name: &str, rule: &str, read: Option<T>) -> Option<T> {
        if read.is_none() {
            self.complain(name, rule);
        }
        read
    }

    fn complain(&mut self, name: &str, rule: &str) {
        self.wrong.push(format!("  - {name}: {rule}"));
    }
}

fn to_text(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some(String::new()),
        Value::String(text) => Some(text.clone()),
        Value::Bool(flag) => Some(flag.to_string()),
        // 5.0 is 5 where numbers have one kind only.
        Value::Number(number) => Some(match number.as_f64() {
            Some(float) if number.is_f64() => float.to_string(),
            _ => number.to_string(),
        }),
        Value::Array(_) | Value::Object(_) => None,
    }
}

fn to_number(value: &Value) -> Option<f64> {
    let number = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        Value::Bool(flag) => Some(f64::from(u8::from(*flag))),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    };
    number.filter(|number: &f64| number.is_finite())
}

fn to_flag(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(flag) => Some(*flag),
        Value::String(text) if text == "true" => Some(true),
        Value::String(text) if text == "false" => Some(false),
        Value::Number(number) if number.as_f64() == Some(1.0) => Some(true),
        Value::Number(number) if number.as_f64() == Some(0.0) => Some(false),
        Value::Number(_) | Value::String(_) | Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Args, ToolResult};

    #[test]
    fn careless_types_are_read() {
        let given =
            json!({"text": 123, "half": 1.5, "whole": 5.0, "yes": "true", "one": 1, "number": " 5 ", "null": null});
        let mut args = Args::new("t", &given);
        assert_eq!(args.text("text").as_deref(), Some("123"));
        assert_eq!(args.text("half").as_deref(), Some("1.5"));
        assert_eq!(args.text("whole").as_deref(), Some("5"));
        assert_eq!((args.flag("yes"), args.flag("one")), (Some(true), Some(true)));
        assert_eq!(args.number("number"), Some(5.0));
        assert_eq!((args.number("null"), args.text("null"), args.flag("none")), (None, None, None));
        assert!(args.finish().is_ok());
    }

    #[test]
    fn everything_wrong_is_named_at_once() {
        let given = json!({"flag": "maybe", "env": {"A": [1], "B": 2}, "number": "inf"});
        let mut args = Args::new("t", &given);
        args.required("command");
        args.flag("flag");
        args.number("number");
        assert_eq!(args.pairs("env"), [("B".to_owned(), "2".to_owned())]);
        let text = args.finish().unwrap_err().text();
        let lines = [
            "Validation failed for tool \"t\":",
            "  - command: must have required property 'command'",
            "  - flag: must be boolean",
            "  - number: must be number",
            "  - env/A: must be string",
        ];
        assert!(text.starts_with(&lines.join("\n")), "{text}");
    }

    #[test]
    fn a_result_has_the_shape_of_the_peer() {
        let result = serde_json::to_value(ToolResult::done("hi", json!({"a": 1}))).unwrap();
        assert_eq!(result, json!({"content": [{"type": "text", "text": "hi"}], "details": {"a": 1}, "isError": false}));
    }
}
