//! Does this tree hold what the table says?

use serde_json::Value;

use super::{KEYS, Key, Kind, find};
use crate::KeyPath;
use crate::tree::{Fix, type_name};
use crate::warning::WarningKind;

/// What a check found: corrections of the tree, and remarks about places in it.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) fixes: Vec<Fix>,
    pub(crate) remarks: Vec<(KeyPath, WarningKind)>,
}

/// Compares a tree with the table.
pub(crate) fn plan_check(tree: &Value) -> Findings {
    let mut findings = Findings::default();
    check_section(tree, &KeyPath::root(), false, &mut findings);
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

fn check_value(value: &Value, path: &KeyPath, is_open: bool, findings: &mut Findings) {
    let Some(key) = find(path.segments()) else {
        if is_open {
            check_below(value, path, true, findings);
        } else {
            let suggestion = nearest(path);
            findings.remarks.push((path.clone(), WarningKind::UnknownKey { suggestion }));
        }
        return;
    };
    let (found, expected) = (type_name(value), || key.kind.to_string());
    let mut fix = |value| findings.fixes.push(Fix { path: path.clone(), value });
    let remark = match judge(key.kind, value) {
        Judgment::Fine => return,
        Judgment::Descend => return check_below(value, path, key.kind == Kind::Open, findings),
        Judgment::Read(read) => return fix(Some(read)),
        Judgment::Converted(read) => {
            fix(Some(read));
            WarningKind::Converted { expected: expected(), found }
        }
        Judgment::WrongType | Judgment::NotAllowed if key.strict().is_some() => {
            fix(key.strict());
            WarningKind::Restricted { expected: expected(), found }
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
    findings.remarks.push((path.clone(), remark));
}

fn check_below(value: &Value, path: &KeyPath, is_open: bool, findings: &mut Findings) {
    match value {
        Value::Object(_) => check_section(value, path, is_open, findings),
        Value::Array(items) => {
            for (position, item) in items.iter().enumerate() {
                check_value(item, &path.join(position.to_string()), is_open, findings);
            }
        }
        _ => {}
    }
}

fn check_section(value: &Value, path: &KeyPath, is_open: bool, findings: &mut Findings) {
    for (key, value) in value.as_object().into_iter().flatten() {
        let below = path.join(key);
        // An open section has keys we know nothing about, but one letter off a known key is most likely a slip.
        if is_open && find(below.segments()).is_none() {
            let near = nearest(&below).filter(|near| key.len() > 3 && distance(key, near) == 1);
            if let Some(near) = near {
                findings.remarks.push((below.clone(), WarningKind::UnknownKey { suggestion: Some(near) }));
            }
        }
        check_value(value, &below, is_open, findings);
    }
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
        | (Kind::Text | Kind::Secret, Value::String(_))
        | (Kind::TextListOrFalse, Value::Bool(false)) => Judgment::Fine,
        (Kind::Section | Kind::Open, Value::Object(_)) | (Kind::List, Value::Array(_)) => Judgment::Descend,
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

/// The known key beside `path` whose name is most like its last segment, if any is like it.
fn nearest(path: &KeyPath) -> Option<String> {
    let (name, parents) = path.segments().split_last()?;
    let beside = KEYS.iter().filter_map(|key| sibling(key, parents));
    let ranked = beside.map(|known| (distance(&name.to_lowercase(), &known.to_lowercase()), known));
    let (found, known) = ranked.min_by_key(|(found, _)| *found)?;
    (found <= known.chars().count() / 3).then(|| known.to_owned())
}

fn sibling(key: &'static Key, parents: &[String]) -> Option<&'static str> {
    let (above, name) = key.path.rsplit_once('.').unwrap_or(("", key.path));
    let row: Vec<&str> = above.split('.').filter(|segment| !segment.is_empty()).collect();
    (super::matches(&row, parents).is_some() && !name.starts_with('<')).then_some(name)
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
            "gateway": { "anything": { "goes": [1] } }, "bindings": [{ "agentId": "a" }],
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
            ]
        );
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
