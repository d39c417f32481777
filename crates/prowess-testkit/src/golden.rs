//! Do we still do what was recorded? Golden files, read and checked case by case.
//!
//! A golden file is a JSON object with a list of cases. Every case is tried, and every failure is listed: one broken
//! rule often shows in ten cases, and seeing all ten tells which rule it is.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::Value;

/// The names under which golden files keep their list.
const LISTS: [&str; 2] = ["cases", "vectors"];

/// The cases of a golden file with their ids, all different.
///
/// A case without an id is called by its place, `#0` being the first; one whose id was there before has its place added.
#[track_caller]
pub fn cases(json: &str) -> impl Iterator<Item = (String, Value)> + use<> {
    let mut file = parse(json);
    let list = LISTS.iter().find_map(|name| file.get_mut(name).map(Value::take));
    number(list.unwrap_or_else(|| panic!("a golden file has one of {LISTS:?}")))
}

/// The cases in the list called `list`, for a file that has several.
#[track_caller]
pub fn cases_in(json: &str, list: &str) -> impl Iterator<Item = (String, Value)> + use<> {
    let found = parse(json).get_mut(list).map(Value::take);
    number(found.unwrap_or_else(|| panic!("the golden file has no list `{list}`")))
}

/// Tries every case and panics with all that failed. A check that panics itself counts as a failure of its case.
#[track_caller]
pub fn check_all(cases: impl IntoIterator<Item = (String, Value)>, check: impl FnMut(&Value) -> Result<(), String>) {
    check_all_but(&[], cases, check);
}

/// Like [`check_all`], but the cases listed with a reason in `deviations` must fail: once they pass, the list is stale.
#[track_caller]
pub fn check_all_but(
    deviations: &[(&str, &str)],
    cases: impl IntoIterator<Item = (String, Value)>,
    mut check: impl FnMut(&Value) -> Result<(), String>,
) {
    let mut unseen: Vec<&str> = deviations.iter().map(|(id, _)| *id).collect();
    let mut failures = Vec::new();
    let mut total = 0;
    for (id, case) in cases {
        total += 1;
        unseen.retain(|listed| *listed != id);
        let deviation = deviations.iter().find(|(listed, _)| *listed == id);
        match (attempt(&mut check, &case), deviation) {
            (Err(why), None) => failures.push(format!("{id}: {why}")),
            (Ok(()), Some((_, reason))) => failures.push(format!("{id}: passes, though we deviate because {reason}")),
            (Ok(()), None) | (Err(_), Some(_)) => {}
        }
    }
    failures.extend(unseen.iter().map(|id| format!("{id}: a deviation without a case")));
    assert!(total > 0, "no cases, so nothing was checked");
    assert!(failures.is_empty(), "{} of {total} cases failed:\n{}", failures.len(), failures.join("\n"));
}

fn attempt(check: &mut impl FnMut(&Value) -> Result<(), String>, case: &Value) -> Result<(), String> {
    // The state of the closure after a panic does not matter: the whole test fails at the end.
    catch_unwind(AssertUnwindSafe(|| check(case))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        Err(format!("panicked: {}", text.unwrap_or("(no message)")))
    })
}

#[track_caller]
fn parse(json: &str) -> Value {
    serde_json::from_str(&mend(json)).unwrap_or_else(|error| panic!("the golden file is not JSON: {error}"))
}

/// `json` with every half of a surrogate pair that stands alone replaced by U+FFFD.
///
/// The peer cuts text by UTF-16 units, so it records halves; here no string can hold one, and JSON with one is refused.
fn mend(json: &str) -> String {
    let mut mended = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        mended.push_str(&rest[..at]);
        rest = &rest[at..];
        let (keep, length) = match (unit(rest), rest.get(6..).and_then(unit)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => (true, 12),
            (Some(0xD800..=0xDFFF), _) => (false, 6),
            // Any other escape; the backslash and what follows it stay together, for that may be a backslash too.
            _ => (true, 1 + rest[1..].chars().next().map_or(0, char::len_utf8)),
        };
        mended.push_str(if keep { &rest[..length] } else { "\\uFFFD" });
        rest = &rest[length..];
    }
    mended + rest
}

/// The UTF-16 unit that `text` begins with as a `\uXXXX` escape.
fn unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u16::from_str_radix(digits, 16).ok()
}

#[track_caller]
fn number(list: Value) -> impl Iterator<Item = (String, Value)> {
    let Value::Array(cases) = list else { panic!("the cases of a golden file are a list") };
    let mut seen = HashSet::new();
    cases.into_iter().enumerate().map(move |(place, case)| {
        let own = case.get("id").or_else(|| case.pointer("/input/id")).and_then(Value::as_str).unwrap_or_default();
        let is_new = !own.is_empty() && seen.insert(own.to_owned());
        (if is_new { own.to_owned() } else { format!("{own}#{place}") }, case)
    })
}

#[cfg(test)]
mod tests {
    use super::{mend, parse};

    #[test]
    fn half_a_surrogate_pair_is_replaced() {
        let table = [
            (r#""plain \n é""#, r#""plain \n é""#),
            (r#""\ud83d\ude00""#, r#""\ud83d\ude00""#),
            (r#""\ud83d""#, r#""\uFFFD""#),
            (r#""\ude00\ud83d\ud83d\ude00x""#, r#""\uFFFD\uFFFD\ud83d\ude00x""#),
            (r#""\\ud83d""#, r#""\\ud83d""#),
            (r#""\ud83dé""#, r#""\uFFFDé""#),
        ];
        for (json, expected) in table {
            assert_eq!(mend(json), expected, "{json}");
            assert!(parse(json).is_string(), "{json}");
        }
    }
}
