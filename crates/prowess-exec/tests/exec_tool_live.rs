//! The exec tool against recorded answers: the same calls, run for real.

#![cfg(target_os = "linux")]

use crate::support;
use std::path::Path;

use prowess_exec::exec_tool::{self, Defaults, ExecCall, workdir};
use prowess_exec::job::Runner;
use prowess_exec::output::units;
use prowess_exec::process_tool;
use prowess_exec::tool::ToolResult;
use prowess_testkit::{assert_documented, cases, check_all_but};
use serde_json::Value;
use support::{Begin, Begins, bash, runner, soon, start};
use tempfile::TempDir;

const GOLDEN: &str = include_str!("golden/exec-tool-live.json");

const FLAGGED: &str = "failures of a command";
const MISSING: &str = "a working directory that is not there";
const BOTH_ENDS: &str = "output that is too long";
const ORDER: &str = "the order of output and errors";
const BOTH_NAMES: &str = "the name of the timeout";

/// Where we differ in what a result says.
const DEVIATIONS: &[(&str, &str)] = &[
    ("workdir missing", MISSING),
    ("big output", BOTH_ENDS),
    ("stderr order", ORDER),
    ("legacy timeout (2026.9.6)", BOTH_NAMES),
];

/// Where we differ in whether it is an error as well.
const FLAGS: &[(&str, &str)] = &[
    ("exit 126", FLAGGED),
    ("signal", FLAGGED),
    ("timeout 1s", FLAGGED),
    ("number coerced", FLAGGED),
    ("write stdin without pty", FLAGGED),
];

/// Whether the mark of an error is compared.
#[derive(Clone, Copy, PartialEq)]
enum Flag {
    Compared,
    Ignored,
}

#[test]
fn results_say_what_was_recorded() {
    check_all_but(DEVIATIONS, cases(GOLDEN), |case| check(case, Flag::Ignored));
}

#[test]
fn failures_are_flagged_where_they_were_or_should_have_been() {
    assert_documented(DEVIATIONS);
    assert_documented(FLAGS);
    let all: Vec<_> = DEVIATIONS.iter().chain(FLAGS).copied().collect();
    check_all_but(&all, cases(GOLDEN), |case| check(case, Flag::Compared));
}

fn check(case: &Value, flag: Flag) -> Result<(), String> {
    let folder = TempDir::new().map_err(|error| error.to_string())?;
    std::fs::create_dir(folder.path().join("skills")).map_err(|error| error.to_string())?;
    let runtime = tokio::runtime::Runtime::new().map_err(|error| error.to_string())?;
    let results = runtime.block_on(steps(case, folder.path()));
    let expected = case["results"].as_array().ok_or("no results")?;
    if results.len() != expected.len() {
        return Err(format!("{} results", results.len()));
    }
    results.iter().zip(expected).try_for_each(|(result, expected)| compare(result, expected, folder.path(), flag))
}

async fn steps(case: &Value, folder: &Path) -> Vec<ToolResult> {
    let runner = runner();
    let mut session = String::new();
    let mut results = Vec::new();
    for step in case["steps"].as_array().expect("a list of steps") {
        let args = step["args"].to_string().replace("$SESSION", &session);
        let args: Value = serde_json::from_str(&args).expect("arguments in JSON");
        let result = if step["name"] == "exec" {
            exec(&runner, folder, &args).await
        } else {
            // In the recording there was time enough for it to end.
            soon(runner.find("scope", &session).expect("a job of that name").wait()).await;
            soon(process_tool::run(&runner, "scope", &args)).await
        };
        if let Some(id) = result.details["sessionId"].as_str() {
            id.clone_into(&mut session);
        }
        results.push(result);
    }
    results
}

/// The tool without anybody who says what may run.
async fn exec(runner: &Runner, folder: &Path, args: &Value) -> ToolResult {
    let call = match ExecCall::parse(args) {
        Ok(call) => call,
        Err(answer) => return answer,
    };
    let place = match workdir(call.workdir.as_deref(), folder, Path::is_dir) {
        Ok(place) => place,
        Err(answer) => return answer,
    };
    let mut begin = Begin { cwd: place.path, shown_cwd: place.shown, ..start(folder) };
    begin.env.extend(call.env.iter().map(|(name, value)| (name.clone(), value.into())));
    let plan = call.plan(&Defaults::default());
    begin.timeout = plan.timeout;
    match soon(runner.begin(bash(&call.command), begin)).await {
        Ok(handle) => soon(exec_tool::wait(handle, &plan)).await,
        Err(error) => exec_tool::not_started(&error),
    }
}

fn compare(result: &ToolResult, expected: &Value, folder: &Path, flag: Flag) -> Result<(), String> {
    let session = result.details["sessionId"].as_str().unwrap_or("<session>");
    let hide = |text: &str| text.replace(&folder.display().to_string(), "<ws>").replace(session, "<session>");
    let text = hide(&result.text());
    let error = hide(result.details["error"].as_str().unwrap_or_default());
    for (fact, value) in expected.as_object().ok_or("no facts")? {
        let word = value.as_str().unwrap_or_default();
        let holds = match fact.as_str() {
            "isError" => flag == Flag::Ignored || *value == result.is_error,
            "text" => same(&text, word),
            "textStart" => text.starts_with(word),
            "textEnd" => text.ends_with(word),
            "error" => error == word && text == word,
            "errorEnd" => error.ends_with(word) && text.ends_with(word),
            "chars" => *value == units(&text),
            "cwd" => hide(result.details["cwd"].as_str().unwrap_or_default()) == word,
            _ => result.details[fact] == *value,
        };
        if !holds {
            return Err(format!("{fact} should be {value}, but: {text:.300}"));
        }
    }
    Ok(())
}

/// A name of a session that was given out in an earlier step is a name all the same.
fn same(text: &str, expected: &str) -> bool {
    match expected.strip_suffix("<session>") {
        Some(start) => text.strip_prefix(start).is_some_and(|name| name.split('-').count() >= 2),
        None => text == expected,
    }
}
