//! Changes: from what a client wants the configuration to say, to single edits of the file.
//!
//! A client has seen either what the file says or what it means, with includes and variables filled in. What is as it
//! was in either of the two was not changed, and is left as it is written.

use prowess_config::{Change, ConfigFile, EditError, KeyPath, NothingHidden, unredact};
use serde_json::{Map, Value};

use super::shown::at;
use crate::wire::REDACTED;

/// Where another file is taken in.
const INCLUDE: &str = "$include";

/// A mark cannot be replaced by what it stands for.
#[derive(Debug)]
pub(super) enum MarkError {
    Nothing(NothingHidden),
    Edit(EditError),
}

/// `raw` with the secrets of `original` in the place of their marks, and with all else as it is.
pub(super) fn with_secrets(
    file: &ConfigFile,
    raw: &str,
    wanted: &Value,
    original: &Value,
) -> Result<String, MarkError> {
    let whole = unredact(wanted, original, REDACTED).map_err(MarkError::Nothing)?;
    let mut changes = Vec::new();
    marks(wanted, &mut Vec::new(), &mut |path| {
        if let Some(secret) = at(&whole, path) {
            changes.push(Change::Set(path.iter().collect(), secret.clone()));
        }
    });
    file.preview(raw, &changes).map_err(MarkError::Edit)
}

fn marks(value: &Value, path: &mut Vec<String>, found: &mut impl FnMut(&[String])) {
    let mut below = |key: String, value: &Value| {
        path.push(key);
        marks(value, path, found);
        path.pop();
    };
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| below(key.clone(), value)),
        Value::Array(items) => items.iter().enumerate().for_each(|(at, value)| below(at.to_string(), value)),
        value if value == REDACTED => found(path),
        _ => {}
    }
}

/// A merge patch from its text.
pub(super) fn parse_patch(raw: &str) -> Result<Value, EditError> {
    ConfigFile::new("raw").parse(raw)
}

/// `base` with `patch` over it: sections are merged, `null` removes, and all else replaces. Lists of sections with ids
/// are merged by these.
pub(super) fn merged(base: &Value, patch: &Value) -> Value {
    match (base, patch) {
        (base, Value::Object(patch)) => {
            let mut whole = base.as_object().cloned().unwrap_or_default();
            for (key, value) in patch {
                if value.is_null() {
                    whole.shift_remove(key);
                } else {
                    let old = whole.get(key).cloned().unwrap_or(Value::Null);
                    whole.insert(key.clone(), merged(&old, value));
                }
            }
            Value::Object(whole)
        }
        (Value::Array(old), Value::Array(new)) if have_ids(old) && have_ids(new) => {
            let mut whole = old.clone();
            for item in new {
                match whole.iter_mut().find(|known| known["id"] == item["id"]) {
                    Some(known) => *known = merged(known, item),
                    None => whole.push(merged(&Value::Null, item)),
                }
            }
            Value::Array(whole)
        }
        (_, other) => other.clone(),
    }
}

fn have_ids(items: &[Value]) -> bool {
    !items.is_empty() && items.iter().all(|item| item["id"].is_string())
}

/// The edits that let a file say `wanted`, which says `written` now and means `seen`.
pub(super) fn between(written: &Value, seen: &Value, wanted: &Value) -> Vec<Change> {
    let mut walk = Walk { path: Vec::new(), changes: Vec::new() };
    let known = Known { written: Some(written), seen: Some(seen) };
    walk.value(known, wanted, Began::Meaning);
    walk.changes
}

/// What a client changed: what the file means, or what it says.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Began {
    Meaning,
    Text,
}

/// A value as it is now.
#[derive(Clone, Copy)]
struct Known<'a> {
    written: Option<&'a Value>,
    seen: Option<&'a Value>,
}

impl<'a> Known<'a> {
    fn is(self, wanted: &Value) -> bool {
        self.written == Some(wanted) || self.seen == Some(wanted)
    }

    fn key(self, key: &str) -> Self {
        Self {
            written: self.written.and_then(|value| value.get(key)),
            seen: self.seen.and_then(|value| value.get(key)),
        }
    }

    fn section(value: Option<&'a Value>) -> Option<&'a Map<String, Value>> {
        value.and_then(Value::as_object)
    }
}

struct Walk {
    path: Vec<String>,
    changes: Vec<Change>,
}

impl Walk {
    fn value(&mut self, known: Known<'_>, wanted: &Value, began: Began) {
        if known.is(wanted) {
            return;
        }
        let written = Known::section(known.written);
        let is_section = written.is_some() || Known::section(known.seen).is_some();
        match wanted {
            Value::Object(wanted) if is_section => self.section(known, wanted, began),
            Value::Array(wanted) => self.list(known, wanted),
            other => self.changes.push(Change::Set(self.place(), other.clone())),
        }
    }

    fn section(&mut self, known: Known<'_>, wanted: &Map<String, Value>, began: Began) {
        let written = Known::section(known.written);
        let includes = written.is_some_and(|written| written.contains_key(INCLUDE));
        let began = if includes && wanted.contains_key(INCLUDE) { Began::Text } else { began };
        for (key, value) in wanted {
            self.path.push(key.clone());
            self.value(known.key(key), value, began);
            self.path.pop();
        }
        let seen = Known::section(known.seen).into_iter().flatten().filter(|_| began == Began::Meaning);
        let mut gone: Vec<&String> = written.into_iter().flatten().chain(seen).map(|(key, _)| key).collect();
        gone.sort_unstable();
        gone.dedup();
        // Who changed what the file means has never seen where it came from.
        let is_kept = |key: &String| wanted.contains_key(key) || (key == INCLUDE && began == Began::Meaning);
        for key in gone.into_iter().filter(|key| !is_kept(key)) {
            self.path.push(key.clone());
            self.changes.push(Change::Unset(self.place()));
            self.path.pop();
        }
    }

    /// A list is written as a whole, with each item as it was written where it is as it was.
    fn list(&mut self, known: Known<'_>, wanted: &[Value]) {
        let list = |value: Option<&Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();
        let (written, seen) = (list(known.written), list(known.seen));
        let as_written = |item: &Value| {
            let place = if written.len() == seen.len() { seen.iter().position(|old| old == item) } else { None };
            place.and_then(|place| written.get(place)).unwrap_or(item).clone()
        };
        let items: Vec<Value> = wanted.iter().map(as_written).collect();
        self.changes.push(Change::Set(self.place(), Value::Array(items)));
    }

    fn place(&self) -> KeyPath {
        self.path.iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn edits(written: &Value, seen: &Value, wanted: &Value) -> Vec<(String, Option<Value>)> {
        let told = |change: Change| match change {
            Change::Set(path, value) => (path.to_string(), Some(value)),
            Change::Unset(path) => (path.to_string(), None),
        };
        between(written, seen, wanted).into_iter().map(told).collect()
    }

    #[test]
    fn a_patch_merges_removes_and_replaces() {
        let base = json!({"a": {"b": 1, "c": 2}, "l": [1, 2], "agents": [{"id": "x", "k": 1}, {"id": "y"}]});
        let patch =
            json!({"a": {"b": null, "d": {"e": null, "f": 3}}, "l": [3], "agents": [{"id": "x", "k": 2}, {"id": "z"}]});
        assert_eq!(
            merged(&base, &patch),
            json!({
                "a": {"c": 2, "d": {"f": 3}}, "l": [3],
                "agents": [{"id": "x", "k": 2}, {"id": "y"}, {"id": "z"}],
            })
        );
    }

    #[test]
    fn what_was_not_changed_is_not_written() {
        let written = json!({"a": "${HOME}/x", "b": {"c": 1, "d": 2}});
        let seen = json!({"a": "/home/me/x", "b": {"c": 1, "d": 2}});
        // Whichever of the two the client began with.
        assert_eq!(edits(&written, &seen, &written), []);
        assert_eq!(edits(&written, &seen, &seen), []);
        let wanted = json!({"a": "/home/me/x", "b": {"c": 3}, "e": {"f": true}});
        assert_eq!(
            edits(&written, &seen, &wanted),
            [("b.c".to_owned(), Some(json!(3))), ("b.d".to_owned(), None), ("e".to_owned(), Some(json!({"f": true}))),]
        );
    }

    #[test]
    fn includes_stay_included() {
        let written = json!({"$include": "more.json", "a": 1});
        let seen = json!({"a": 1, "from": {"include": 2}});
        assert_eq!(edits(&written, &seen, &json!({"a": 1, "from": {"include": 2}})), []);
        assert_eq!(edits(&written, &seen, &json!({"$include": "more.json", "a": 1})), []);
        // Taken away by who saw it; the file's editor then says where it comes from.
        assert_eq!(edits(&written, &seen, &json!({"a": 1})), [("from".to_owned(), None)]);
    }

    #[test]
    fn items_of_a_list_keep_their_names_of_variables() {
        let written = json!({"l": ["${A}", "b"]});
        let seen = json!({"l": ["x", "b"]});
        let wanted = json!({"l": ["new", "x"]});
        assert_eq!(edits(&written, &seen, &wanted), [("l".to_owned(), Some(json!(["new", "${A}"])))]);
    }
}
