//! What holds for every input.

use std::fs;

use proptest::prelude::*;
use prowess_config::{Config, ConfigFile, Env, KeyPath, LocationFlags, Locations};
use serde_json::Value;
use tempfile::TempDir;

/// Any JSON value without references in it.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e6..1e6).prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key(), inner), 0..4).prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z ]{0,8}", r#"[a"'\\/\n\t\x01éß日😀#{}\[\],:]{0,8}"#]
}

/// Keys of no known setting, some of which need quotes.
fn key() -> impl Strategy<Value = String> {
    prop_oneof!["x[a-z]{0,3}", r#"x[."'\\ /é\n]{0,3}"#]
}

fn path() -> impl Strategy<Value = KeyPath> {
    prop::collection::vec(key(), 1..4).prop_map(|keys| keys.into_iter().collect())
}

/// The value as JSON5 with comments and trailing commas.
fn as_json5(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let entries = map
                .iter()
                .map(|(key, value)| format!("\n  {}: {}, // note", Value::from(key.as_str()), as_json5(value)));
            format!("{{{}\n}}", entries.collect::<String>())
        }
        Value::Array(items) => format!("[{}]", items.iter().map(as_json5).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

fn section() -> impl Strategy<Value = Value> {
    prop::collection::vec((key(), value()), 0..4).prop_map(|pairs| Value::Object(pairs.into_iter().collect()))
}

struct File(TempDir);

impl File {
    fn new(text: &str) -> Self {
        let file = Self(TempDir::new().expect("a directory"));
        fs::write(file.0.path().join("openclaw.json"), text).expect("written");
        file
    }

    fn config(&self) -> ConfigFile {
        ConfigFile::new(self.0.path().join("openclaw.json"))
    }

    fn load(&self) -> Config {
        let flags = LocationFlags { config: Some(self.config().path().to_owned()), ..LocationFlags::default() };
        let locations = Locations::probe(&Env::new(), self.0.path(), &flags).expect("fine flags");
        Config::load(&locations, &Env::new()).expect("it loads")
    }
}

/// Equal up to the last digit of a fraction, which JSON and JSON5 readers round differently.
fn close(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| close(a, b)))
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| close(a, b)),
        (Value::Number(a), Value::Number(b)) => {
            a == b || (a.as_f64().unwrap_or(0.0) - b.as_f64().unwrap_or(1.0)).abs() < 1e-9
        }
        _ => a == b,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_path_shown_and_read_again_is_the_same(keys in prop::collection::vec(".{0,6}", 1..5)) {
        let path: KeyPath = keys.into_iter().collect();
        prop_assert_eq!(path.to_string().parse::<KeyPath>(), Ok(path));
    }

    #[test]
    fn an_edit_is_what_is_loaded(before in section(), path in path(), new in value()) {
        let file = File::new(&as_json5(&before));
        if file.config().set(&path.to_string(), new.clone()).is_ok() {
            let found = file.load().get_at(&path).expect("it was set").value;
            prop_assert!(close(&found, &new), "{found} {new}");
        } else {
            // Only a value in the way may stop an edit.
            let parents = (1..path.segments().len()).map(|depth| &path.segments()[..depth]);
            let mut found = parents.filter_map(|way| way.iter().try_fold(&before, |here, key| here.get(key)));
            prop_assert!(found.any(|value| !value.is_object()), "{before} {path}");
        }
    }

    #[test]
    fn unset_undoes_set(before in section(), key in key(), new in value()) {
        prop_assume!(before.get(&key).is_none());
        let file = File::new(&as_json5(&before));
        let path = KeyPath::from_iter([key]).to_string();
        file.config().set(&path, new).expect("the key is new");
        file.config().unset(&path).expect("the key is there");
        prop_assert!(close(file.load().tree(), &before));
    }

    #[test]
    fn the_other_keys_never_change(before in section(), key in key(), new in value()) {
        let file = File::new(&as_json5(&before));
        file.config().set(&KeyPath::from_iter([key.clone()]).to_string(), new).expect("nothing is in the way");
        let after = file.load();
        for (other, value) in before.as_object().expect("a section").iter().filter(|(other, _)| **other != key) {
            prop_assert!(close(&after.tree()[other], value));
        }
        let count = |tree: &Value| tree.as_object().map_or(0, serde_json::Map::len);
        prop_assert_eq!(count(after.tree()), count(&before) + usize::from(before.get(&key).is_none()));
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let file = File::new("");
        fs::write(file.config().path(), &bytes).expect("written");
        drop(file.config().set("a.b", Value::from(1)));
        fs::write(file.0.path().join(".env"), &bytes).expect("written");
        let text = String::from_utf8_lossy(&bytes);
        drop(Config::parse(&text, &Env::new()));
        drop(text.parse::<KeyPath>());
    }

    #[test]
    fn nothing_that_looks_like_json5_makes_it_panic(text in r#"([{}\[\],:'"/*\\ \n$]|a|1|0x|//|\$\{A\}|null|\$include|\u{2028}|é){0,40}"#) {
        let file = File::new(&text);
        drop(file.config().set("a.a", Value::from(1)));
        fs::write(file.config().path(), &text).expect("written");
        drop(file.config().unset("a"));
        drop(Config::parse(&text, &Env::from_iter([("A", "x")])));
    }
}
