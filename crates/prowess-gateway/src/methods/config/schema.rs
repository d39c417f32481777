//! `config.schema`: the settings we know, as a JSON schema that forms are made of.

use jiff::Timestamp;
use prowess_config::schema::{KEYS, Key, Kind};
use serde_json::{Map, Value, json};

/// The answer to `config.schema`.
pub(super) fn described() -> Value {
    json!({
        "schema": schema(),
        "uiHints": hints(),
        "version": env!("CARGO_PKG_VERSION"),
        "generatedAt": Timestamp::now().to_string(),
    })
}

fn schema() -> Value {
    let mut root = section();
    root["$schema"] = "http://json-schema.org/draft-07/schema#".into();
    root["title"] = "prowess".into();
    for key in KEYS {
        place(&mut root, key);
    }
    root
}

/// Puts a setting where it belongs; the sections on the way are made as they come.
fn place(root: &mut Value, key: &Key) {
    let mut here = root;
    let mut segments = key.path.split('.').peekable();
    while let Some(segment) = segments.next() {
        // Below any number of keys there is nothing that a schema of this kind could say.
        if segment == "**" {
            return;
        }
        let is_list = here["type"] == "array";
        let slot = match segment.strip_prefix('<') {
            Some(_) if is_list => &mut here["items"],
            Some(_) => &mut here["additionalProperties"],
            None => &mut here["properties"][segment],
        };
        if !slot.is_object() {
            *slot = section();
        }
        here = slot;
        if segments.peek().is_none() {
            let mut said = kind(key.kind);
            said["description"] = key.meaning.into();
            if let Some(default) = key.default_value() {
                said["default"] = default;
            }
            *here = said;
        }
    }
}

fn section() -> Value {
    json!({"type": "object", "properties": {}, "additionalProperties": true})
}

fn kind(kind: Kind) -> Value {
    let words = |words: &[&str]| json!({"type": "string", "enum": words});
    let reference = json!({
        "type": "object",
        "properties": {"source": {"type": "string"}, "provider": {"type": "string"}, "id": {"type": "string"}},
        "required": ["source", "id"],
    });
    match kind {
        Kind::Section => json!({"type": "object", "properties": {}, "additionalProperties": false}),
        Kind::Open | Kind::Free => section(),
        Kind::List => json!({"type": "array", "items": {}}),
        Kind::Anything => json!({}),
        Kind::Switch => json!({"type": "boolean"}),
        Kind::SwitchOr(others) => json!({"anyOf": [{"type": "boolean"}, words(others)]}),
        Kind::Choice(choices) => words(choices),
        Kind::Count { min, max: u64::MAX } => json!({"type": "integer", "minimum": min}),
        Kind::Count { min, max } => json!({"type": "integer", "minimum": min, "maximum": max}),
        Kind::Text | Kind::ChoiceOrAddress(_) => json!({"type": "string"}),
        Kind::TextOrSection => json!({
            "anyOf": [{"type": "string"}, {"type": "object"}], "properties": {}, "additionalProperties": false,
        }),
        Kind::Secret => json!({"anyOf": [{"type": "string"}, reference]}),
        Kind::TextList => json!({"type": "array", "items": {"type": "string"}}),
        Kind::TextListOrFalse => {
            json!({"anyOf": [{"type": "array", "items": {"type": "string"}}, {"const": false}]})
        }
    }
}

/// What a form needs to know about single settings: what they are for, and which of them are hidden.
fn hints() -> Value {
    let hint = |key: &Key| {
        let label = key.path.rsplit('.').next().unwrap_or(key.path);
        let mut hint = json!({"label": label, "help": key.meaning});
        if key.kind == Kind::Secret {
            hint["sensitive"] = true.into();
        }
        hint
    };
    let path = |key: &Key| {
        let segments = key.path.split('.');
        segments.map(|segment| if segment.starts_with('<') { "*" } else { segment }).collect::<Vec<_>>().join(".")
    };
    Value::Object(KEYS.iter().map(|key| (path(key), hint(key))).collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_has_its_place() {
        let schema = schema();
        let skills = &schema["properties"]["skills"];
        assert_eq!(skills["properties"]["load"]["properties"]["watch"]["type"], "boolean");
        assert_eq!(skills["properties"]["load"]["properties"]["watch"]["default"], true);
        let entry = &skills["properties"]["entries"]["additionalProperties"];
        assert_eq!(entry["properties"]["enabled"]["type"], "boolean");
        assert_eq!(entry["properties"]["env"]["additionalProperties"]["type"], "string");
        let agent = &schema["properties"]["agents"]["properties"]["list"]["items"];
        assert_eq!(agent["properties"]["id"]["type"], "string");
    }

    #[test]
    fn secrets_are_told_to_forms() {
        let hints = hints();
        assert_eq!(hints["skills.entries.*.apiKey"]["sensitive"], true);
        assert!(hints["skills.load.watch"].get("sensitive").is_none());
    }
}
