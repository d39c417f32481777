//! The configuration file as a client may see it.

use prowess_config::{Change, Config, ConfigFile, EditError, redact_with, secrets};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::Place;
use crate::device::hex;
use crate::wire::REDACTED;

/// A secret shorter than this is not looked for in comments: it would be found in other words.
const MIN_SECRET: usize = 6;

/// The configuration file, as it is on disk.
pub(super) struct Written {
    path: std::path::PathBuf,
    /// Nothing when there is no file.
    pub(super) text: Option<String>,
    /// What the text itself says: no includes, and variables by their names.
    pub(super) value: Value,
    /// What it means; nothing when it cannot be understood.
    pub(super) config: Option<Config>,
    /// Why it cannot.
    issue: Option<String>,
}

/// What identifies a text.
pub(super) fn hash(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}

impl Written {
    /// Reads it.
    pub(super) fn read(place: &Place) -> Self {
        let file = place.file();
        let path = place.locations.config_path.clone();
        let broken = |text: Option<String>, why: String| {
            let (path, value) = (path.clone(), json!({}));
            Self { path, text, value, config: None, issue: Some(why) }
        };
        let text = match file.read() {
            Ok(text) => text,
            Err(error) => return broken(None, error.to_string()),
        };
        let said = text.as_deref().unwrap_or_default();
        let value = match file.parse(said) {
            Ok(value) => value,
            Err(error) => return broken(text, error.to_string()),
        };
        match Config::imagine(said, &place.locations, &place.env) {
            Ok(config) => Self { path, text, value, config: Some(config), issue: None },
            Err(error) => Self { path, text, value, config: None, issue: Some(error.to_string()) },
        }
    }

    /// All that is set, includes and variables filled in.
    pub(super) fn effective(&self) -> &Value {
        self.config.as_ref().map_or(&self.value, Config::tree)
    }

    /// All that a mark can stand for: what is set, and beside it what could not be filled in.
    pub(super) fn both(&self) -> Value {
        let mut both = self.effective().clone();
        add_missing(&mut both, &self.value);
        both
    }

    /// The answer to `config.get`.
    pub(super) fn shown(&self) -> Value {
        let said = self.text.as_deref().unwrap_or_default();
        let mut answer = json!({
            "path": self.path,
            "exists": self.text.is_some(),
            "raw": null,
            "parsed": null,
            "resolved": {},
            "valid": self.config.is_some(),
            "config": {},
            "hash": hash(said),
            "issues": [],
            "warnings": [],
            "legacyIssues": [],
        });
        let Some(config) = &self.config else {
            // What cannot be understood may have its secrets anywhere.
            answer["issues"] = json!([{"path": "", "message": self.issue}]);
            return answer;
        };
        let shown = redact_with(config.tree(), REDACTED);
        answer["parsed"] = redact_with(&self.value, REDACTED);
        answer["raw"] = self.text.as_ref().map(|text| raw(&ConfigFile::new(&self.path), text, &self.value)).into();
        answer["resolved"] = shown.clone();
        answer["config"] = shown;
        let warnings = config.warnings().iter();
        let told = warnings.map(|one| json!({"path": one.path.to_string(), "message": one.kind.to_string()}));
        answer["warnings"] = told.collect();
        answer
    }
}

fn add_missing(whole: &mut Value, other: &Value) {
    let (Some(whole), Some(other)) = (whole.as_object_mut(), other.as_object()) else { return };
    for (key, value) in other {
        match whole.get_mut(key) {
            Some(known) => add_missing(known, value),
            None => drop(whole.insert(key.clone(), value.clone())),
        }
    }
}

/// The text with marks for secrets. Its comments stay, as long as a mark in them changes no value.
fn raw(file: &ConfigFile, text: &str, value: &Value) -> String {
    let shown = redact_with(value, REDACTED);
    let marked = marked(file, text, value).ok();
    let faithful = marked.filter(|text| file.parse(text).is_ok_and(|said| said == shown));
    faithful.unwrap_or_else(|| format!("{}\n", serde_json::to_string_pretty(&shown).unwrap_or_default()))
}

fn marked(file: &ConfigFile, text: &str, value: &Value) -> Result<String, EditError> {
    let places = secrets(value);
    let marks: Vec<Change> = places.iter().map(|path| Change::Set(path.clone(), REDACTED.into())).collect();
    let text = file.preview(text, &marks)?;
    let hidden = places.iter().filter_map(|path| at(value, path.segments()).and_then(Value::as_str));
    Ok(hidden.filter(|secret| secret.len() >= MIN_SECRET).fold(text, |text, secret| text.replace(secret, REDACTED)))
}

/// The value at a place.
pub(super) fn at<'a>(value: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, segment| match value {
        Value::Array(items) => items.get(segment.parse::<usize>().ok()?),
        other => other.get(segment),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> String {
        let file = ConfigFile::new("/nonexistent/openclaw.json");
        let value = file.parse(text).expect("a configuration");
        raw(&file, text, &value)
    }

    #[test]
    fn comments_stay_and_secrets_go_wherever_they_are() {
        let text =
            "{\n  // the token was hunter22-x before\n  gateway: { auth: { token: 'hunter22-x' } }, // see above\n}\n";
        let shown = check(text);
        assert!(shown.contains("// see above") && !shown.contains("hunter22-x"), "{shown}");
        assert!(shown.contains("// the token was __OPENCLAW_REDACTED__ before"), "{shown}");
    }

    #[test]
    fn a_text_that_cannot_be_marked_is_written_anew() {
        // The secret is part of another value, which may not change.
        let text = "{ gateway: { auth: { token: 'secret-1' } }, ui: { title: 'not secret-1 at all' } }";
        let shown: Value = serde_json::from_str(&check(text)).expect("plain JSON");
        assert_eq!(shown["gateway"]["auth"]["token"], REDACTED);
        assert_eq!(shown["ui"]["title"], "not secret-1 at all");
    }
}
