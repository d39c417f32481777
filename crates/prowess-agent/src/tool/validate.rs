//! Validation: do the arguments of a call fit the tool's schema?
//!
//! Models are careless with types: they write `"5"` for 5 and 5 for `"5"`. What can only mean one thing is read as that;
//! everything else is named in one answer, so that the next attempt can be right. Of JSON Schema there is what tools
//! use; other keywords are ignored.

use prowess_exec::ToolResult;
use serde_json::{Map, Number, Value};

/// How deeply values are looked into.
const MAX_DEPTH: usize = 32;

/// How many problems are named.
const MAX_PROBLEMS: usize = 20;

/// How much of the arguments is shown back, in characters.
const MAX_SHOWN: usize = 4_000;

/// The arguments as the schema wants them, or the answer that says what is wrong.
pub fn validate(tool: &str, schema: &Value, given: &Map<String, Value>) -> Result<Map<String, Value>, ToolResult> {
    let mut reading = Reading::default();
    let fitted = reading.object(schema, given, "", 0);
    if reading.problems.is_empty() {
        return Ok(fitted);
    }
    let mut problems: Vec<String> = reading.problems;
    if problems.len() > MAX_PROBLEMS {
        let more = problems.len() - MAX_PROBLEMS;
        problems.truncate(MAX_PROBLEMS);
        problems.push(format!("  - and {more} more"));
    }
    let received = serde_json::to_string_pretty(given).unwrap_or_default();
    let received = match received.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}\n[… cut]", &received[..end]),
        None => received,
    };
    let text =
        format!("Validation failed for tool \"{tool}\":\n{}\n\nReceived arguments:\n{received}", problems.join("\n"));
    Err(ToolResult::failed(text, Value::Object(Map::new())))
}

/// A type of JSON Schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    String,
    Number,
    Integer,
    Boolean,
    Null,
    Array,
    Object,
}

impl Type {
    fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "string" => Self::String,
            "number" => Self::Number,
            "integer" => Self::Integer,
            "boolean" => Self::Boolean,
            "null" => Self::Null,
            "array" => Self::Array,
            "object" => Self::Object,
            _ => return None,
        })
    }

    fn word(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Number => "number",
            Self::Integer => "integer",
            Self::Boolean => "boolean",
            Self::Null => "null",
            Self::Array => "array",
            Self::Object => "object",
        }
    }

    fn fits(self, value: &Value) -> bool {
        match self {
            Self::String => value.is_string(),
            Self::Number => value.is_number(),
            Self::Integer => value.as_f64().is_some_and(|number| number.fract() == 0.0),
            Self::Boolean => value.is_boolean(),
            Self::Null => value.is_null(),
            Self::Array => value.is_array(),
            Self::Object => value.is_object(),
        }
    }

    /// What `value` means as this type, if it can mean only one thing.
    fn read(self, value: &Value) -> Option<Value> {
        match (self, value) {
            (Self::String, Value::Number(number)) => Some(Value::String(written(number))),
            (Self::String, Value::Bool(flag)) => Some(Value::String(flag.to_string())),
            (Self::String, Value::Null) => Some(Value::String(String::new())),
            (Self::Number, Value::String(text)) => number(text),
            (Self::Number | Self::Integer, Value::Bool(flag)) => Some(Value::from(u8::from(*flag))),
            (Self::Integer, Value::String(text)) => number(text).filter(|number| Self::Integer.fits(number)),
            (Self::Boolean, Value::String(text)) => text.parse().ok().map(Value::Bool),
            (Self::Boolean, Value::Number(number)) => match number.as_f64() {
                Some(1.0) => Some(Value::Bool(true)),
                Some(0.0) => Some(Value::Bool(false)),
                _ => None,
            },
            (Self::Null, Value::String(text)) if text.is_empty() => Some(Value::Null),
            (
                Self::String | Self::Number | Self::Integer | Self::Boolean | Self::Null | Self::Array | Self::Object,
                _,
            ) => None,
        }
    }
}

/// 5.0 is 5 where numbers have one kind only.
fn written(number: &Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() => float.to_string(),
        _ => number.to_string(),
    }
}

fn number(text: &str) -> Option<Value> {
    let text = text.trim();
    if let Ok(whole) = text.parse::<i64>() {
        return Some(Value::from(whole));
    }
    // Words such as `inf` and `nan` are numbers to Rust, but not to JSON.
    text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c))
        .then(|| text.parse::<f64>().ok().and_then(Number::from_f64))
        .flatten()
        .map(Value::Number)
}

#[derive(Default)]
struct Reading {
    problems: Vec<String>,
}

impl Reading {
    fn value(&mut self, schema: &Value, value: &Value, path: &str, depth: usize) -> Value {
        if depth > MAX_DEPTH {
            self.complain(path, "is nested too deeply");
            return Value::Null;
        }
        let types = types(schema);
        let value = if types.is_empty() || types.iter().any(|one| one.fits(value)) {
            value.clone()
        } else if let Some(read) = types.iter().find_map(|one| one.read(value)) {
            read
        } else {
            let words: Vec<&str> = types.iter().map(|one| one.word()).collect();
            self.complain(path, &format!("must be {}", words.join(",")));
            return Value::Null;
        };
        self.check(schema, &value, path);
        match &value {
            Value::Object(fields) => Value::Object(self.object(schema, fields, path, depth)),
            Value::Array(items) => match schema.get("items").filter(|items| items.is_object()) {
                Some(schema) => {
                    let read = |(at, item): (usize, &Value)| {
                        self.value(schema, item, &below(path, &at.to_string()), depth + 1)
                    };
                    Value::Array(items.iter().enumerate().map(read).collect())
                }
                None => value,
            },
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
        }
    }

    fn object(&mut self, schema: &Value, fields: &Map<String, Value>, path: &str, depth: usize) -> Map<String, Value> {
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for name in required.iter().filter(|name| !fields.contains_key(**name)) {
            let at = if path.is_empty() { name } else { path };
            self.complain(at, &format!("must have required property '{name}'"));
        }
        let mut fitted = Map::new();
        for (name, value) in fields {
            let at = below(path, name);
            match (schema["properties"].get(name), schema.get("additionalProperties")) {
                // Models write null for what they leave out.
                (Some(known), _) if value.is_null() && !required.contains(&name.as_str()) && !takes_null(known) => {}
                (Some(known), _) => {
                    fitted.insert(name.clone(), self.value(known, value, &at, depth + 1));
                }
                (None, Some(Value::Bool(false))) => self.complain(&at, "is not a property of this tool"),
                (None, Some(other @ Value::Object(_))) => {
                    fitted.insert(name.clone(), self.value(other, value, &at, depth + 1));
                }
                (None, _) => {
                    fitted.insert(name.clone(), value.clone());
                }
            }
        }
        fitted
    }

    fn check(&mut self, schema: &Value, value: &Value, path: &str) {
        if let Some(allowed) = schema["enum"].as_array().filter(|allowed| !allowed.contains(value)) {
            let words: Vec<String> = allowed.iter().map(ToString::to_string).collect();
            self.complain(path, &format!("must be one of {}", words.join(", ")));
        }
        if let Some(number) = value.as_f64() {
            if let Some(least) = schema["minimum"].as_f64().filter(|least| number < *least) {
                self.complain(path, &format!("must be >= {least}"));
            }
            if let Some(most) = schema["maximum"].as_f64().filter(|most| number > *most) {
                self.complain(path, &format!("must be <= {most}"));
            }
        }
        let shortest = schema["minLength"].as_u64().and_then(|length| usize::try_from(length).ok());
        if let Some((text, shortest)) = value.as_str().zip(shortest)
            && text.chars().take(shortest).count() < shortest
        {
            self.complain(path, &format!("must have at least {shortest} characters"));
        }
    }

    fn complain(&mut self, path: &str, rule: &str) {
        let path = if path.is_empty() { "root" } else { path };
        self.problems.push(format!("  - {path}: {rule}"));
    }
}

fn types(schema: &Value) -> Vec<Type> {
    match &schema["type"] {
        Value::String(word) => Type::parse(word).into_iter().collect(),
        Value::Array(words) => words.iter().filter_map(Value::as_str).filter_map(Type::parse).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    }
}

fn takes_null(schema: &Value) -> bool {
    let types = types(schema);
    types.is_empty() || types.contains(&Type::Null)
}

fn below(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::validate;

    fn check(schema: &Value, given: &Value) -> Result<Value, String> {
        let given = given.as_object().expect("an object");
        validate("t", schema, given).map(Value::Object).map_err(|answer| answer.text())
    }

    fn schema() -> Value {
        json!({
            "type": "object",
            "required": ["path"],
            "additionalProperties": false,
            "properties": {
                "path": {"type": "string", "minLength": 1},
                "line": {"type": "integer", "minimum": 1, "maximum": 10},
                "ratio": {"type": "number"},
                "flag": {"type": "boolean"},
                "either": {"type": ["number", "string"]},
                "maybe": {"type": ["string", "null"]},
                "mode": {"type": "string", "enum": ["a", "b"], "unknown": true},
                "list": {"type": "array", "items": {"type": "integer"}},
                "env": {"type": "object", "additionalProperties": {"type": "string"}},
                "inner": {"type": "object", "required": ["x"], "properties": {"x": {"type": "string"}}}
            }
        })
    }

    #[test]
    fn careless_types_are_read() {
        let table = [
            (json!({"path": 5}), json!({"path": "5"})),
            (json!({"path": 5.0}), json!({"path": "5"})),
            (json!({"path": true}), json!({"path": "true"})),
            (json!({"path": "p", "line": "5"}), json!({"path": "p", "line": 5})),
            (json!({"path": "p", "line": 5.0}), json!({"path": "p", "line": 5.0})),
            (json!({"path": "p", "ratio": " 1.5 "}), json!({"path": "p", "ratio": 1.5})),
            (json!({"path": "p", "ratio": true}), json!({"path": "p", "ratio": 1})),
            (json!({"path": "p", "flag": "true"}), json!({"path": "p", "flag": true})),
            (json!({"path": "p", "flag": 0}), json!({"path": "p", "flag": false})),
            (json!({"path": "p", "either": "5"}), json!({"path": "p", "either": "5"})),
            (json!({"path": "p", "line": null}), json!({"path": "p"})),
            (json!({"path": "p", "maybe": null}), json!({"path": "p", "maybe": null})),
            (json!({"path": "p", "list": ["1", 2]}), json!({"path": "p", "list": [1, 2]})),
            (json!({"path": "p", "env": {"A": 1}}), json!({"path": "p", "env": {"A": "1"}})),
        ];
        for (given, expected) in table {
            assert_eq!(check(&schema(), &given), Ok(expected), "{given}");
        }
    }

    #[test]
    fn each_problem_has_its_line() {
        let table = [
            (json!({}), "path: must have required property 'path'"),
            (json!({"path": null}), "path: must have at least 1 characters"),
            (json!({"path": []}), "path: must be string"),
            (json!({"path": "p", "line": "x"}), "line: must be integer"),
            (json!({"path": "p", "line": 1.5}), "line: must be integer"),
            (json!({"path": "p", "line": "inf"}), "line: must be integer"),
            (json!({"path": "p", "line": 0}), "line: must be >= 1"),
            (json!({"path": "p", "line": 11}), "line: must be <= 10"),
            (json!({"path": "p", "ratio": "nan"}), "ratio: must be number"),
            (json!({"path": "p", "flag": "yes"}), "flag: must be boolean"),
            (json!({"path": "p", "either": []}), "either: must be number,string"),
            (json!({"path": "p", "mode": "c"}), "mode: must be one of \"a\", \"b\""),
            (json!({"path": "p", "list": ["x"]}), "list/0: must be integer"),
            (json!({"path": "p", "env": {"A": []}}), "env/A: must be string"),
            (json!({"path": "p", "inner": {}}), "inner: must have required property 'x'"),
            (json!({"path": "p", "other": 1}), "other: is not a property of this tool"),
        ];
        for (given, problem) in table {
            let begin = format!("Validation failed for tool \"t\":\n  - {problem}\n\nReceived arguments:\n");
            let text = check(&schema(), &given).expect_err("a problem");
            assert!(text.starts_with(&begin), "{given}: {text}");
        }
        let text = check(&schema(), &json!({"line": "x", "flag": 2})).expect_err("problems");
        assert_eq!(text.matches("\n  - ").count(), 3, "{text}");
    }

    #[test]
    fn long_and_deep_arguments_get_a_short_answer() {
        let text = check(&schema(), &json!({"path": ["x".repeat(100_000)]})).expect_err("a problem");
        assert!(text.len() < 5_000 && text.ends_with("[… cut]"));
        let mut schema = json!({"type": "string"});
        let mut given = json!("x");
        for _ in 0..100 {
            schema = json!({"type": "array", "items": schema});
            given = json!([given]);
        }
        let schema = json!({"properties": {"a": schema}});
        assert!(check(&schema, &json!({"a": given})).expect_err("a problem").contains("is nested too deeply"));
    }

    proptest! {
        /// Whatever a model writes gets an answer, and what passes once passes again unchanged.
        #[test]
        fn a_fitted_value_fits(path in any::<String>(), line in any::<i64>(), text in "[0-9truefalsnx.]{0,6}", flag in any::<bool>()) {
            for given in [json!({"path": path, "line": line}), json!({"path": line, "flag": text}), json!({"path": flag, "ratio": text})] {
                if let Ok(fitted) = check(&schema(), &given) {
                    prop_assert_eq!(check(&schema(), &fitted), Ok(fitted.clone()));
                }
            }
        }
    }
}
