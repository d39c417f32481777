//! Changing the file keeps everything else, and loses nobody's change.

use std::fs;
use std::path::PathBuf;
use std::thread;

use prowess_config::{Change, ConfigFile, EditError, Env, FlagError, LocationFlags, Locations};
use serde_json::{Value, json};
use tempfile::TempDir;

struct Place(TempDir);

impl Place {
    fn new(files: &[(&str, &str)]) -> Self {
        let place = Self(TempDir::new().expect("a directory"));
        for (name, text) in files {
            fs::write(place.file(name), text).expect("written");
        }
        place
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn config(&self) -> ConfigFile {
        ConfigFile::new(self.file("openclaw.json"))
    }

    fn text(&self) -> String {
        fs::read_to_string(self.file("openclaw.json")).expect("readable")
    }

    fn tree(&self) -> Value {
        let flags = LocationFlags { config: Some(self.file("openclaw.json")), ..LocationFlags::default() };
        let locations = Locations::probe(&Env::new(), self.0.path(), &flags).expect("fine flags");
        prowess_config::Config::load(&locations, &Env::new()).expect("it loads").tree().clone()
    }
}

#[test]
fn a_new_file_is_made_for_its_owner() {
    let place = Place::new(&[]);
    let config = ConfigFile::new(place.file("deep/er/openclaw.json"));
    let edited = config.set("skills.load.watch", json!(false)).expect("written");
    assert!(edited.changed);
    let text = fs::read_to_string(config.path()).expect("readable");
    assert_eq!(text, "{\n  \"skills\": {\n    \"load\": {\n      \"watch\": false\n    }\n  }\n}\n");
    #[cfg(unix)]
    assert_eq!(mode(config.path()), 0o600);
}

#[cfg(unix)]
fn mode(file: &std::path::Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(file).expect("there").permissions().mode() & 0o777
}

#[cfg(unix)]
#[test]
fn the_mode_and_the_link_stay() {
    use std::os::unix::fs::PermissionsExt;

    let place = Place::new(&[("real.json", "{a: 1} // mine\n")]);
    fs::set_permissions(place.file("real.json"), fs::Permissions::from_mode(0o640)).expect("set");
    std::os::unix::fs::symlink("real.json", place.file("openclaw.json")).expect("linked");
    let edited = place.config().set("a", json!(2)).expect("written");
    assert_eq!(edited.file, place.file("real.json"));
    assert!(fs::symlink_metadata(place.file("openclaw.json")).expect("there").is_symlink());
    assert_eq!(place.text(), "{a: 2} // mine\n");
    assert_eq!(mode(&place.file("real.json")), 0o640);
}

#[test]
fn references_stay_as_they_are() {
    let place = Place::new(&[("openclaw.json", "{a: '${A}', b: '$${B}', c: 1}")]);
    place.config().set("c", json!(2)).expect("written");
    place.config().set("skills.entries.w.apiKey", json!("${KEY}")).expect("written");
    place.config().unset("c").expect("written");
    let text = place.text();
    assert!(text.starts_with("{\n  a: '${A}',\n  b: '$${B}',\n"), "{text}");
    assert!(text.contains(r#""apiKey": "${KEY}""#), "{text}");
}

#[test]
fn values_are_checked_before_they_are_written() {
    let place = Place::new(&[("openclaw.json", "{}")]);
    let error = place.config().set("skills.load.watch", json!("maybe")).expect_err("not a switch");
    assert!(matches!(error, EditError::Value(FlagError::WrongValue { .. })));
    place.config().set("skills.load.watch", json!("false")).expect("reads as a switch");
    place.config().set("skills.load.debounceMs", json!(5)).expect("another name");
    assert_eq!(place.tree(), json!({ "skills": { "load": { "watch": false, "watchDebounceMs": 5 } } }));
    assert!(place.text().contains("watchDebounceMs"));
}

#[test]
fn nothing_is_written_when_in_doubt() {
    for text in ["{a: 1", "[1]", "{a: {b: 1}}"] {
        let place = Place::new(&[("openclaw.json", text)]);
        assert!(place.config().set("a.b.c", json!(1)).is_err(), "{text}");
        assert_eq!(place.text(), text);
    }
}

#[test]
fn several_changes_are_made_together_or_not_at_all() {
    let place = Place::new(&[("openclaw.json", "{ a : 1, b: 2 } // end")]);
    let path = |text: &str| text.parse().expect("a path");
    let fine = [Change::Set(path("a"), json!(3)), Change::Set(path("c.d"), json!(4)), Change::Unset(path("b"))];
    let not = [Change::Set(path("a"), json!(5)), Change::Set(path("a.b"), json!(6))];
    assert!(place.config().write_all(&fine).expect("written").changed);
    let text = place.text();
    assert_eq!(place.tree(), json!({"a": 3, "c": {"d": 4}}));
    assert!(text.ends_with("// end"), "{text}");
    assert!(place.config().write_all(&not).is_err());
    assert_eq!(place.text(), text);
    assert!(!place.config().write_all(&[]).expect("nothing to do").changed);
}

#[test]
fn nothing_to_do_is_no_change() {
    let place = Place::new(&[("openclaw.json", "{ a : 1 }")]);
    assert!(!place.config().set("a", json!(1)).expect("fine").changed);
    assert!(!place.config().unset("b.c").expect("fine").changed);
    assert_eq!(place.text(), "{ a : 1 }");
}

#[test]
fn included_values() {
    let main = "{$include: './base.json5', own: [1], both: 1, mixed: ['x']}";
    let base = "{list: ['a'], scalar: 1, section: {k: 1, l: ['b']}, both: 2, mixed: ['y']}";
    let place = Place::new(&[("openclaw.json", main), ("base.json5", base)]);
    let config = place.config();
    for (path, value) in
        [("list", json!(["z"])), ("section", json!({ "l": [] })), ("mixed", json!([])), ("mixed.0", json!("q"))]
    {
        match config.set(path, value) {
            // An empty list adds nothing, so the include's own list would stay.
            Err(EditError::FromInclude { include, .. }) => assert_eq!(include, place.file("base.json5"), "{path}"),
            other => panic!("{path}: {other:?}"),
        }
    }
    for path in ["scalar", "list", "section.k", "list.0", "mixed.0"] {
        let error = config.unset(path).expect_err(path);
        assert!(matches!(error, EditError::FromInclude { .. }), "{path}: {error}");
    }
    assert_eq!(place.text(), main, "nothing was written so far");

    config.set("scalar", json!(5)).expect("siblings win");
    config.set("section.k", json!(6)).expect("siblings win");
    config.set("own", json!([2])).expect("no include has it");
    config.unset("own").expect("no include has it");
    let edited = config.unset("both").expect("removed here");
    assert_eq!(edited.revealed, Some(place.file("base.json5")));
    assert_eq!(
        place.tree(),
        json!({
            "list": ["a"], "scalar": 5, "section": { "k": 6, "l": ["b"] }, "both": 2, "mixed": ["y", "x"],
        })
    );
}

#[test]
fn a_broken_include_can_be_removed() {
    let place = Place::new(&[("openclaw.json", "{$include: './gone.json5', a: 1}")]);
    assert!(matches!(place.config().set("a", json!(2)), Err(EditError::Include(_))));
    place.config().unset("$include").expect("removed");
    assert_eq!(place.tree(), json!({ "a": 1 }));
}

#[test]
fn two_at_the_same_time_lose_nothing() {
    const WRITERS: usize = 6;
    const EACH: usize = 8;
    let place = Place::new(&[("openclaw.json", "{ /* keep me */ }\n")]);
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let config = place.config();
            scope.spawn(move || {
                for number in 0..EACH {
                    config.set(&format!("w{writer}.n{number}"), json!(number)).expect("written");
                }
            });
        }
    });
    let tree = place.tree();
    for writer in 0..WRITERS {
        for number in 0..EACH {
            assert_eq!(tree[format!("w{writer}")][format!("n{number}")], number);
        }
    }
    assert!(place.text().contains("/* keep me */"));
    let left: Vec<_> = fs::read_dir(place.0.path())
        .expect("readable")
        .map(|entry| entry.expect("readable").file_name().into_string().expect("Unicode"))
        .filter(|name| name.contains("new-"))
        .collect();
    assert_eq!(left, [""; 0], "no temporary files stay");
}
