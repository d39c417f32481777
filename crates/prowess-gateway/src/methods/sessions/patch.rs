//! A patch: what of a session can be set, and to what?

use prowess_agent::model::Thinking;
use prowess_agent::session::SessionKey;
use prowess_agent::settings::{Choice, Settings, choose};
use serde_json::{Map, Value, json};

use crate::params::{ANY, Kind, Shape, TEXT, choice, integer_from, optional, required, shape};
use crate::runs::listing::Row;
use crate::wire::Refusal;

/// The longest label.
const MAX_LABEL: usize = 64;

const TEXT_OR_NULL: Kind = Kind::Either(&[TEXT, Kind::Null]);

/// What can be given.
pub(super) const SHAPE: Shape = shape(&[
    required("key", TEXT),
    optional("label", Kind::Either(&[Kind::Text { min: 1, max: MAX_LABEL }, Kind::Null])),
    optional("thinkingLevel", TEXT_OR_NULL),
    optional("verboseLevel", TEXT_OR_NULL),
    optional("reasoningLevel", TEXT_OR_NULL),
    optional("responseUsage", Kind::Either(&[choice(&["off", "tokens", "full", "on"]), Kind::Null])),
    optional("elevatedLevel", ANY),
    optional("execHost", ANY),
    optional("execSecurity", ANY),
    optional("execAsk", ANY),
    optional("execNode", ANY),
    optional("model", TEXT_OR_NULL),
    optional("spawnedBy", TEXT_OR_NULL),
    optional("spawnDepth", Kind::Either(&[integer_from(0), Kind::Null])),
    optional("sendPolicy", Kind::Either(&[choice(&["allow", "deny"]), Kind::Null])),
    optional("groupActivation", Kind::Either(&[choice(&["mention", "always"]), Kind::Null])),
]);

/// Fields with a few words each.
const WORDS: &[(&str, &[&str])] = &[
    ("verboseLevel", &["off", "on", "full"]),
    ("reasoningLevel", &["on", "off", "stream"]),
    ("responseUsage", &["off", "tokens", "full", "on"]),
    ("sendPolicy", &["allow", "deny"]),
    ("groupActivation", &["mention", "always"]),
];

/// What decides about commands is set for agents, where everybody sees it, and not for one session.
const NOT_HERE: &[&str] = &["elevatedLevel", "execHost", "execSecurity", "execAsk", "execNode"];

/// What is asked for, and what has to be known to grant it.
pub(super) struct Patch<'a> {
    pub(super) params: &'a Value,
    pub(super) key: &'a SessionKey,
    pub(super) models: Settings,
    /// All sessions.
    pub(super) others: &'a [Row],
}

impl Patch<'_> {
    /// Changes an entry, or says what is wrong.
    pub(super) fn apply(&self, entry: &mut Map<String, Value>) -> Result<(), Refusal> {
        if let Some(name) = NOT_HERE.iter().find(|name| self.given(name).is_some()) {
            let why = format!("{name} cannot be set for a session here; set tools.exec for the agent instead");
            return Err(Refusal::invalid(why));
        }
        self.parentage(entry)?;
        self.label(entry)?;
        if let Some(value) = self.given("thinkingLevel") {
            let word = value.as_str().map(|word| word.trim().to_lowercase());
            if word.as_deref().is_some_and(|word| Thinking::parse(word).is_none()) {
                let known = "off, minimal, low, medium, high, xhigh";
                return Err(Refusal::invalid(format!("invalid thinkingLevel (use {known})")));
            }
            put(entry, "thinkingLevel", word.map(Value::from));
        }
        for (name, words) in WORDS {
            if let Some(value) = self.given(name) {
                let word = value.as_str().map(|word| word.trim().to_lowercase());
                if word.as_deref().is_some_and(|word| !words.contains(&word)) {
                    return Err(Refusal::invalid(format!("invalid {name} (use {})", words.join(", "))));
                }
                put(entry, name, word.map(Value::from));
            }
        }
        self.model(entry)
    }

    /// The model that the session uses then.
    pub(super) fn resolved(&self, entry: &Value) -> Value {
        let kept = entry["modelOverride"].as_str().map(|model| match entry["providerOverride"].as_str() {
            Some(provider) => format!("{provider}/{model}"),
            None => model.to_owned(),
        });
        let (provider, model) = match choose(&self.models, kept.as_deref()) {
            Ok(Choice::Wire { first, .. }) => (first.provider, first.model),
            Ok(Choice::Embedded | Choice::Scripted(_)) | Err(_) => ("prowess".to_owned(), "embedded".to_owned()),
        };
        json!({"modelProvider": provider, "model": model})
    }

    fn given(&self, name: &str) -> Option<&Value> {
        self.params.get(name)
    }

    /// Who started a sub-agent and how deep it is stays as it was set first.
    fn parentage(&self, entry: &mut Map<String, Value>) -> Result<(), Refusal> {
        for name in ["spawnedBy", "spawnDepth"] {
            let Some(value) = self.given(name) else { continue };
            if !self.key.is_subagent() {
                return Err(Refusal::invalid(format!("{name} is only supported for subagent:* sessions")));
            }
            match (entry.get(name), value) {
                (None, Value::Null) => {}
                (Some(_), Value::Null) => {
                    return Err(Refusal::invalid(format!("{name} cannot be cleared once set")));
                }
                (Some(known), value) if known != value => {
                    return Err(Refusal::invalid(format!("{name} cannot be changed once set")));
                }
                (_, value) => put(entry, name, Some(value.clone())),
            }
        }
        Ok(())
    }

    fn label(&self, entry: &mut Map<String, Value>) -> Result<(), Refusal> {
        let Some(value) = self.given("label") else { return Ok(()) };
        let label = value.as_str().map(str::trim);
        if label == Some("") {
            return Err(Refusal::invalid("invalid label: empty"));
        }
        let is_taken = |row: &Row| row.key != *self.key && label.is_some() && row.entry["label"].as_str() == label;
        if self.others.iter().any(is_taken) {
            return Err(Refusal::invalid(format!("label already in use: {}", label.unwrap_or_default())));
        }
        put(entry, "label", label.map(Value::from));
        Ok(())
    }

    fn model(&self, entry: &mut Map<String, Value>) -> Result<(), Refusal> {
        let Some(value) = self.given("model") else { return Ok(()) };
        let Some(name) = value.as_str().map(str::trim) else {
            put(entry, "modelOverride", None);
            put(entry, "providerOverride", None);
            return Ok(());
        };
        match choose(&self.models, Some(name)) {
            Ok(Choice::Wire { first, .. }) => {
                put(entry, "providerOverride", Some(first.provider.into()));
                put(entry, "modelOverride", Some(first.model.into()));
                Ok(())
            }
            Ok(Choice::Embedded | Choice::Scripted(_)) => {
                put(entry, "providerOverride", None);
                put(entry, "modelOverride", Some(name.into()));
                Ok(())
            }
            Err(error) => Err(Refusal::invalid(error.to_string())),
        }
    }
}

fn put(entry: &mut Map<String, Value>, name: &str, value: Option<Value>) {
    match value {
        Some(value) => entry.insert(name.to_owned(), value),
        None => entry.remove(name),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patched(key: &SessionKey, before: &Value, params: &Value) -> Result<Value, String> {
        let other = Row { key: SessionKey::new("main", "other"), updated: 0, entry: json!({"label": "Taken"}).into() };
        let patch = Patch { params, key, models: Settings::default(), others: &[other] };
        let mut entry = before.as_object().cloned().unwrap_or_default();
        patch.apply(&mut entry).map_err(|refusal| refusal.message)?;
        Ok(Value::Object(entry))
    }

    #[test]
    fn fields_are_set_and_cleared() {
        let key = SessionKey::new("main", "work");
        let set = json!({"label": " Work ", "thinkingLevel": "HIGH", "verboseLevel": "full", "sendPolicy": "deny"});
        let expected = json!({"label": "Work", "thinkingLevel": "high", "verboseLevel": "full", "sendPolicy": "deny"});
        assert_eq!(patched(&key, &json!({}), &set), Ok(expected.clone()));
        let clear = json!({"label": null, "thinkingLevel": null, "verboseLevel": null, "sendPolicy": null});
        assert_eq!(patched(&key, &expected, &clear), Ok(json!({})));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let key = SessionKey::new("main", "work");
        for (params, expected) in [
            (json!({"label": "Taken"}), "label already in use: Taken"),
            (json!({"thinkingLevel": "deep"}), "invalid thinkingLevel (use off, minimal, low, medium, high, xhigh)"),
            (json!({"verboseLevel": "loud"}), "invalid verboseLevel (use off, on, full)"),
            (json!({"spawnDepth": 1}), "spawnDepth is only supported for subagent:* sessions"),
            (
                json!({"execSecurity": "full"}),
                "execSecurity cannot be set for a session here; set tools.exec for the agent instead",
            ),
        ] {
            assert_eq!(patched(&key, &json!({}), &params), Err(expected.to_owned()), "{params}");
        }
    }

    #[test]
    fn who_started_a_sub_agent_cannot_be_changed() {
        let key = SessionKey::new("main", "subagent:1");
        let set = json!({"spawnedBy": "agent:main:main", "spawnDepth": 1});
        let entry = patched(&key, &json!({}), &set).expect("it is new");
        assert_eq!(patched(&key, &entry, &set), Ok(entry.clone()), "the same again is no change");
        let changed = patched(&key, &entry, &json!({"spawnDepth": 0}));
        assert_eq!(changed, Err("spawnDepth cannot be changed once set".to_owned()));
        let cleared = patched(&key, &entry, &json!({"spawnedBy": null}));
        assert_eq!(cleared, Err("spawnedBy cannot be cleared once set".to_owned()));
    }
}
