//! Does this tree hold what the table says?

use std::net::IpAddr;

use serde_json::Value;

use super::lookup::Spot;
use super::{Kind, find};
use crate::KeyPath;
use crate::tree::{Fix, Trail, type_name};
use crate::warning::WarningKind;

/// What a check found: corrections of the tree, and remarks about places in it.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) fixes: Vec<Fix>,
    pub(crate) remarks: Vec<(KeyPath, WarningKind)>,
    /// Settings that have no effect here; of a section, only the section itself.
    pub(crate) unused: Vec<(KeyPath, WarningKind)>,
}

/// Compares a tree with the table.
pub(crate) fn plan_check(tree: &Value) -> Findings {
    let mut findings = Findings::default();
    findings.section(tree, &Trail::ROOT, &Spot::root(), false);
    findings
}

/// The value a flag means, or what would have been right. Flags are texts, so a text that reads well is fine.
pub(crate) fn check_flag(path: &[String], value: Value) -> Result<Value, String> {
    match find(path) {
        None => Ok(value),
        Some(key) => match judge(key.kind, &value) {
            Judgment::Fine | Judgment::Descend => Ok(value),
            Judgment::Read(read) | Judgment::Converted(read) => Ok(read),
            Judgment::WrongType | Judgment::NotAllowed => Err(key.kind.to_string()),
        },
    }
}

impl Findings {
    /// Checks the value at `trail`, which is at `spot` of the table and stands in a section `above` it.
    fn value(&mut self, value: &Value, trail: &Trail<'_>, above: &Spot, is_open: bool) {
        let spot = above.step(trail.name());
        let Some(key) = spot.key() else {
            let near = || nearest(trail.name(), above);
            if !is_open {
                return self.remark(trail, WarningKind::UnknownKey { suggestion: near() });
            }
            // OpenClaw has more keys in an open section, but one letter off a known key is most likely a slip.
            let name = Some(trail.name()).filter(|name| name.len() > 3 && !trail.is_item());
            if let Some(slip) = name.and_then(|name| near().filter(|near| distance(name, near) == 1)) {
                return self.remark(trail, WarningKind::UnknownKey { suggestion: Some(slip) });
            }
            self.unused(trail, WarningKind::NotUsed);
            return self.below(value, trail, &spot, true);
        };
        if let Some(instead) = key.instead.filter(|_| !is_bare(value)) {
            self.unused(trail, WarningKind::NoEffect { instead });
        }
        let (found, expected) = (type_name(value), || key.kind.to_string());
        let mut fix = |value| self.fixes.push(Fix { path: trail.path(), value });
        let remark = match judge(key.kind, value) {
            Judgment::Fine => return,
            Judgment::Descend => return self.below(value, trail, &spot, key.kind == Kind::Open),
            Judgment::Read(read) => return fix(Some(read)),
            Judgment::Converted(read) => {
                fix(Some(read));
                WarningKind::Converted { expected: expected(), found }
            }
            Judgment::WrongType | Judgment::NotAllowed if key.strict().is_some() => {
                fix(key.strict());
                WarningKind::Restricted { expected: expected(), found }
            }
            Judgment::WrongType | Judgment::NotAllowed if key.is_refused_later() => {
                WarningKind::Refused { expected: expected() }
            }
            Judgment::WrongType => {
                fix(None);
                WarningKind::WrongType { expected: expected(), found }
            }
            Judgment::NotAllowed => {
                fix(None);
                WarningKind::NotAllowed { expected: expected() }
            }
        };
        self.remark(trail, remark);
    }

    fn below(&mut self, value: &Value, trail: &Trail<'_>, spot: &Spot, is_open: bool) {
        match value {
            Value::Object(_) => self.section(value, trail, spot, is_open),
            Value::Array(items) => {
                for (position, item) in items.iter().enumerate() {
                    self.value(item, &trail.item(&position.to_string()), spot, is_open);
                }
            }
            _ => {}
        }
    }

    fn section(&mut self, value: &Value, trail: &Trail<'_>, spot: &Spot, is_open: bool) {
        for (key, value) in value.as_object().into_iter().flatten() {
            self.value(value, &trail.key(key), spot, is_open);
        }
    }

    /// Notes a setting without effect; one note is enough for a section.
    fn unused(&mut self, trail: &Trail<'_>, kind: WarningKind) {
        let path = trail.path();
        if !self.unused.last().is_some_and(|(above, _)| path.starts_with(above)) {
            self.unused.push((path, kind));
        }
    }

    fn remark(&mut self, trail: &Trail<'_>, kind: WarningKind) {
        self.remarks.push((trail.path(), kind));
    }
}

/// Whether this says nothing that could have an effect: a section that is empty, or has lists of skills alone.
fn is_bare(value: &Value) -> bool {
    value.as_object().is_some_and(|section| section.keys().all(|key| key == "skills"))
}

enum Judgment {
    Fine,
    /// A container of the right type, to be looked into.
    Descend,
    /// The same, written in another way.
    Read(Value),
    /// Wrong, but it reads as this. `${NAME}` can only ever give a text, so texts must be able to mean other things.
    Converted(Value),
    WrongType,
    NotAllowed,
}

fn judge(kind: Kind, value: &Value) -> Judgment {
    match (kind, value) {
        (Kind::Anything, _)
        | (Kind::Switch | Kind::SwitchOr(_), Value::Bool(_))
        | (Kind::Text | Kind::Secret | Kind::TextOrSection, Value::String(_))
        | (Kind::Free, Value::Object(_))
        | (Kind::TextListOrFalse, Value::Bool(false)) => Judgment::Fine,
        (Kind::Section | Kind::Open | Kind::TextOrSection, Value::Object(_)) | (Kind::List, Value::Array(_)) => {
            Judgment::Descend
        }
        (Kind::Switch | Kind::SwitchOr(_), Value::String(text)) if matches!(text.trim(), "true" | "false") => {
            Judgment::Converted(Value::Bool(text.trim() == "true"))
        }
        (Kind::SwitchOr(words) | Kind::Choice(words), Value::String(text)) => {
            if words.contains(&text.as_str()) {
                Judgment::Fine
            } else {
                Judgment::NotAllowed
            }
        }
        (Kind::ChoiceOrAddress(words), Value::String(text)) => {
            let text = text.trim();
            if words.contains(&text) || text.parse::<IpAddr>().is_ok() { Judgment::Fine } else { Judgment::NotAllowed }
        }
        (Kind::Count { min, max }, _) => judge_count(value, min, max),
        (Kind::Secret, Value::Object(map)) if map.contains_key("source") && map.contains_key("id") => Judgment::Fine,
        (Kind::TextListOrFalse, Value::String(text)) if text.trim() == "false" => {
            Judgment::Converted(Value::Bool(false))
        }
        (Kind::TextList | Kind::TextListOrFalse, _) => judge_list(value),
        _ => Judgment::WrongType,
    }
}

fn judge_count(value: &Value, min: u64, max: u64) -> Judgment {
    let in_range = |count: u64| (min..=max).contains(&count);
    match value {
        Value::String(text) => match text.trim().parse::<u64>() {
            Ok(count) if in_range(count) => Judgment::Converted(count.into()),
            Ok(_) => Judgment::NotAllowed,
            Err(_) => Judgment::WrongType,
        },
        Value::Number(number) => match (number.as_u64(), number.as_f64()) {
            (Some(count), _) if in_range(count) => Judgment::Fine,
            // `150.0` and `1e3` are whole numbers too.
            (None, Some(float)) if float.fract() == 0.0 && (0.0..9e15).contains(&float) => {
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole and in range")]
                let count = float as u64;
                if in_range(count) { Judgment::Read(count.into()) } else { Judgment::NotAllowed }
            }
            _ => Judgment::NotAllowed,
        },
        _ => Judgment::WrongType,
    }
}

/// Lists are mostly lists of what is allowed or forbidden. To fall back to "everything" because of a slip would be
/// worse than to guess, so a lone text is a list of one, and numbers and switches are read as texts.
fn judge_list(value: &Value) -> Judgment {
    let as_text = |item: &Value| match item {
        Value::String(text) => Some(Value::String(text.clone())),
        Value::Number(_) | Value::Bool(_) => Some(Value::String(item.to_string())),
        _ => None,
    };
    match value {
        Value::Array(items) if items.iter().all(Value::is_string) => Judgment::Fine,
        Value::Array(items) => Judgment::Converted(items.iter().filter_map(as_text).collect()),
        Value::String(text) => Judgment::Converted(Value::from(vec![text.as_str()])),
        _ => Judgment::WrongType,
    }
}

/// The known key below `above` whose name is most like `name`, if any is like it.
fn nearest(name: &str, above: &Spot) -> Option<String> {
    let name = name.to_lowercase();
    let ranked = above.names().into_iter().map(|known| (distance(&name, &known.to_lowercase()), known));
    let (found, known) = ranked.min_by_key(|(found, _)| *found)?;
    (found <= known.chars().count() / 3).then(|| known.to_owned())
}

/// How many letters must be added, removed, changed or swapped with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(64).collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            if i == 0 || j == 0 {
                rows[i][j] = i.max(j);
                continue;
            }
            let same = usize::from(a[i - 1] != b[j - 1]);
            let mut best = (rows[i - 1][j] + 1).min(rows[i][j - 1] + 1).min(rows[i - 1][j - 1] + same);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{distance, plan_check};
    use crate::tree::{Origin, Tree};

    /// The corrected tree, and the remarks as text.
    fn check(tree: Value) -> (Value, Vec<String>) {
        let findings = plan_check(&tree);
        let remarks = findings.remarks.iter().map(|(path, kind)| format!("{path}: {kind}")).collect();
        let mut tree = Tree { value: tree, origin: Origin::new(0) };
        tree.apply(findings.fixes);
        (tree.value, remarks)
    }

    #[test]
    fn unknown_keys_stay_and_are_reported() {
        let tree = json!({
            "skils": {}, "skills": { "load": { "watchDebounceMS": 1 }, "zzz": 1 },
            "agents": { "list": [{ "id": "a", "skill": ["x"], "model": "m", "sandbox": { "mode": "off" } }] },
            "gateway": { "anything": { "goes": [1] } }, "tools": { "web": { "search": 1 } }, "bindings": [{ "agentId": "a" }],
        });
        let (after, remarks) = check(tree.clone());
        assert_eq!(after, tree);
        assert_eq!(
            remarks,
            [
                "skils: unknown key, ignored; did you mean `skills`?",
                "skills.load.watchDebounceMS: unknown key, ignored; did you mean `watchDebounceMs`?",
                "skills.zzz: unknown key, ignored",
                "agents.list.0.skill: unknown key, ignored; did you mean `skills`?",
                "gateway.anything: unknown key, ignored",
            ]
        );
        let unused: Vec<_> = plan_check(&tree).unused.into_iter().map(|(path, _)| path.to_string()).collect();
        assert_eq!(unused, ["agents.list.0.sandbox", "tools.web", "bindings"]);
    }

    #[test]
    fn what_the_gateway_refuses_stays_and_is_reported() {
        let tree = json!({
            "gateway": { "port": "abc", "bind": "mars", "auth": { "mode": "nope" } },
            "agents": { "defaults": { "model": { "primry": "a/b" } } },
        });
        let (after, remarks) = check(tree.clone());
        assert_eq!(after, tree);
        assert_eq!(
            remarks,
            [
                "gateway.port: expected a whole number from 0 to 65535; the gateway does not start with this value",
                "gateway.bind: expected one of \"loopback\", \"lan\", \"auto\", \"custom\", or an IP address; the gateway does not start with this value",
                "gateway.auth.mode: expected one of \"token\", \"password\", \"trusted-proxy\", \"none\"; the gateway does not start with this value",
                "agents.defaults.model.primry: unknown key, ignored; did you mean `primary`?",
            ]
        );
        let fine =
            json!({ "gateway": { "bind": "192.0.2.7", "port": 0 }, "agents": { "defaults": { "model": "a/b" } } });
        assert_eq!(check(fine.clone()), (fine, vec![]));
    }

    #[test]
    fn wrong_types_are_taken_out() {
        let (after, remarks) = check(json!({
            "skills": {
                "load": { "watch": 1, "watchDebounceMs": -5, "extraDirs": { "a": 1 } },
                "install": { "nodeManager": "cargo" },
                "limits": { "maxCandidatesPerRoot": 0, "maxSkillsInPrompt": 1.5, "maxSkillFileBytes": null },
                "entries": { "a": 5, "b": { "env": { "X": 1, "Y": "y" }, "apiKey": { "source": "env" } } },
            },
            "plugins": [],
        }));
        assert_eq!(
            after,
            json!({ "skills": { "load": {}, "install": {}, "limits": {}, "entries": { "b": { "env": { "Y": "y" } } } } })
        );
        assert_eq!(remarks.len(), 11);
        assert_eq!(
            remarks[0],
            "skills.load.watch: expected true or false, found a number; the default is used instead"
        );
        assert_eq!(
            remarks[3],
            "skills.install.nodeManager: expected one of \"npm\", \"pnpm\", \"yarn\", \"bun\"; the default is used instead"
        );
    }

    #[test]
    fn texts_and_lone_items_are_read_when_they_make_sense() {
        let (after, remarks) = check(json!({
            "skills": {
                "allowBundled": "weather",
                "load": { "watch": "false", "watchDebounceMs": " 20 ", "extraDirs": ["a", 5, null] },
                "limits": { "maxSkillsInPrompt": 20.0 },
            },
            "channels": { "telegram": { "groups": { "1": { "skills": "x" } } } },
        }));
        assert_eq!(
            after,
            json!({
                "skills": {
                    "allowBundled": ["weather"],
                    "load": { "watch": false, "watchDebounceMs": 20, "extraDirs": ["a", "5"] },
                    "limits": { "maxSkillsInPrompt": 20 },
                },
                "channels": { "telegram": { "groups": { "1": { "skills": ["x"] } } } },
            })
        );
        assert_eq!(remarks.len(), 5, "{remarks:?}");
    }

    #[test]
    fn a_switched_off_bundle_is_fine() {
        assert_eq!(check(json!({ "skills": { "allowBundled": false } })).1, [""; 0]);
    }

    #[test]
    fn distances() {
        for (a, b, expected) in [("", "ab", 2), ("abc", "abc", 0), ("skils", "skills", 1), ("enbaled", "enabled", 1)] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }
}
