//! A call on one line: what was asked of the tool, and what became of it?

use std::path::Path;
use std::time::Duration;

use prowess_exec::ToolResult;
use prowess_skills::compact;
use prowess_skills::text::shorten;
use serde_json::{Map, Value};

use super::turn::seconds;
use crate::output::{BAD, DIM, GOOD, paint};

/// The longest label, in UTF-16 units: it should fit on a line with its outcome.
const MAX_LABEL: usize = 72;

/// The longest reason.
const MAX_WHY: usize = 160;

/// What became of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Outcome {
    /// It did what it should.
    Done,
    /// It goes on, or waits for somebody.
    Runs(String),
    /// It did not.
    Bad(String),
}

/// The tool and the argument that tells most about the call.
pub(crate) fn label(tool: &str, arguments: &Map<String, Value>, home: &Path) -> String {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    let path = || ["path", "file_path", "filePath"].iter().find_map(|name| text(name)).map(|path| place(path, home));
    let what = match tool {
        "exec" => text("command").map(str::to_owned),
        "read" | "write" | "edit" => path(),
        "process" => {
            let words: Vec<&str> = [text("action"), text("sessionId")].into_iter().flatten().collect();
            Some(words.join(" "))
        }
        _ => None,
    };
    let all = || if arguments.is_empty() { String::new() } else { Value::Object(arguments.clone()).to_string() };
    let what = what.unwrap_or_else(all);
    shorten(format!("{tool} {what}").trim_end(), MAX_LABEL)
}

/// The same from a line about the call, where its arguments are not known.
pub(crate) fn brief(tool: &str, summary: &str) -> String {
    shorten(format!("{tool} {summary}").trim_end(), MAX_LABEL)
}

/// A path for people. Of a long one the end tells most.
fn place(path: &str, home: &Path) -> String {
    let short = compact(path, Some(home));
    if short.chars().count() <= MAX_LABEL / 2 + 12 {
        return short;
    }
    let parts: Vec<&str> = short.split('/').collect();
    match parts.as_slice() {
        [first, .., folder, name] if parts.len() > 4 => format!("{first}/…/{folder}/{name}"),
        _ => short,
    }
}

/// What became of the call that gave `result` back.
fn outcome(result: &ToolResult) -> Outcome {
    let status = result.details["status"].as_str().unwrap_or_default();
    if result.is_error || matches!(status, "error" | "failed") {
        let why = result.details["error"].as_str().map_or_else(|| result.text(), str::to_owned);
        // What a command said before it failed is not why.
        let said = result.details["aggregated"].as_str().unwrap_or_default();
        return Outcome::Bad(reason(why.strip_prefix(said).unwrap_or(&why)));
    }
    match (status, result.details["exitCode"].as_i64()) {
        ("running", _) => Outcome::Runs("running in the background".to_owned()),
        ("approval-pending", _) => Outcome::Runs("waiting for your approval".to_owned()),
        (_, Some(code)) if code != 0 => Outcome::Bad(format!("exit code {code}")),
        _ => Outcome::Done,
    }
}

/// Why a call has not done what it should, if it has not: it failed, was refused, or still needs an approval.
pub(crate) fn failure(result: &ToolResult) -> Option<String> {
    match outcome(result) {
        Outcome::Bad(why) => Some(why),
        Outcome::Runs(how) if result.details["status"] == "approval-pending" => Some(how),
        Outcome::Runs(_) | Outcome::Done => None,
    }
}

/// What became of a call, as a sign and a word, with how long it took where that is known.
pub(crate) fn mark(result: &ToolResult, took: Option<Duration>) -> String {
    match outcome(result) {
        Outcome::Done => {
            let time = took.map_or_else(String::new, |took| format!(" {}", paint(DIM, &seconds(took))));
            format!("{}{time}", paint(GOOD, "✓"))
        }
        Outcome::Runs(how) => format!("{} {how}", paint(DIM, "…")),
        Outcome::Bad(why) => format!("{} {why}", paint(BAD, "✗")),
    }
}

/// The first line that says something, and the one after it where it only leads there.
fn reason(why: &str) -> String {
    let mut lines = why.lines().map(str::trim).filter(|line| line.contains(char::is_alphanumeric));
    let first = lines.next().unwrap_or("failed");
    match lines.next().filter(|_| first.ends_with(':')) {
        Some(next) => shorten(&format!("{first} {}", next.trim_start_matches("- ")), MAX_WHY),
        None => shorten(first, MAX_WHY),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn labelled(tool: &str, arguments: Value) -> String {
        let Value::Object(arguments) = arguments else { panic!("an object") };
        label(tool, &arguments, Path::new("/home/me"))
    }

    #[test]
    fn a_label_says_what_matters() {
        let deep = "/home/me/.openclaw/tools/prowess/bundled/1234567890/skills/weather/SKILL.md";
        let table = [
            ("read", json!({"path": "/home/me/a/SKILL.md"}), "read ~/a/SKILL.md"),
            ("read", json!({"path": deep}), "read ~/…/weather/SKILL.md"),
            ("exec", json!({"command": "curl -s \\\n  'x'"}), "exec curl -s \\ 'x'"),
            ("exec", json!({"command": "a\u{1b}[2Jb"}), "exec a[2Jb"),
            ("process", json!({"action": "poll", "sessionId": "calm-owl"}), "process poll calm-owl"),
            ("mine", json!({"x": 1}), "mine {\"x\":1}"),
            ("mine", json!({}), "mine"),
            ("exec", json!({}), "exec"),
        ];
        for (tool, arguments, expected) in table {
            assert_eq!(labelled(tool, arguments), expected);
        }
        assert!(labelled("exec", json!({"command": "x".repeat(500)})).chars().count() <= MAX_LABEL);
    }

    #[test]
    fn an_outcome_is_a_word_or_a_reason() {
        let table = [
            (ToolResult::done("x", json!({"status": "completed", "exitCode": 0})), Outcome::Done),
            (ToolResult::done("x", Value::Null), Outcome::Done),
            (
                ToolResult::done("x", json!({"status": "completed", "exitCode": 2})),
                Outcome::Bad("exit code 2".to_owned()),
            ),
            (
                ToolResult::done("x", json!({"status": "running"})),
                Outcome::Runs("running in the background".to_owned()),
            ),
            (
                ToolResult::error("exec", "exec denied: nobody was there\n- why\n- prowess approvals allow curl"),
                Outcome::Bad("exec denied: nobody was there".to_owned()),
            ),
            (
                ToolResult::error("read", "Validation failed for tool \"read\":\n  - path: must be string\n\nR:\n{\n}"),
                Outcome::Bad("Validation failed for tool \"read\": path: must be string".to_owned()),
            ),
            (
                ToolResult::failed(
                    "one\ntwo\n\nCommand not found",
                    json!({"status": "error", "error": "one\ntwo\n\nCommand not found", "aggregated": "one\ntwo"}),
                ),
                Outcome::Bad("Command not found".to_owned()),
            ),
            (ToolResult::failed("  ", json!({})), Outcome::Bad("failed".to_owned())),
        ];
        for (result, expected) in table {
            assert_eq!(outcome(&result), expected);
        }
    }
}
