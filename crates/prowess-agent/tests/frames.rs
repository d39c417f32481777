//! Do OpenClaw's clients see of a turn what they are used to? The same turns, told as recorded ones were.

use crate::stage;
use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use prowess_agent::Run;
use prowess_agent::event::{Event, Events};
use prowess_agent::frame::{self, Frames};
use prowess_agent::message::{StopReason, Usage};
use prowess_agent::model::Delta;
use prowess_agent::tool::{Call, Scope, Tool, ToolSpec};
use prowess_exec::ToolResult;
use prowess_testkit::{assert_documented, cases, check_all, check_all_but};
use serde_json::{Value, json};
use stage::{Pieces, Puppet, Stage, skills};

const GOLDEN: &str = include_str!("golden/frames.json");

const TOTAL: &str = "the total of tokens in a result";

/// Where a recorded number is of something else than it says.
const TOTALS: &[(&str, &str)] = &[("run-1", TOTAL), ("run-2", TOTAL), ("env-1", TOTAL), ("env-2", TOTAL)];

/// What our frames have and the recorded ones have not.
const MORE_IN_FRAMES: [&str; 2] = ["/data/partialResult", "/data/result"];
/// The same for results.
const MORE_IN_RESULTS: [&str; 5] = [
    "/result/meta/agentMeta/usage/cacheRead",
    "/result/meta/agentMeta/usage/cacheWrite",
    "/result/meta/calls",
    "/result/meta/ledger",
    "/result/meta/skills",
];

#[test]
fn events_are_told_as_recorded() {
    check_all(cases(GOLDEN), |case| {
        let (frames, _) = play(case);
        let numbers: Vec<u64> = frames.iter().filter_map(|frame| frame["seq"].as_u64()).collect();
        if numbers != (1..=frames.len() as u64).collect::<Vec<_>>() {
            return Err(format!("numbered {numbers:?}"));
        }
        // The use of a skill is told in a stream of its own, so its frames are not counted here.
        let known = ["lifecycle", "assistant", "tool"];
        let told: Vec<&Value> =
            frames.iter().filter(|frame| known.iter().any(|stream| frame["stream"] == *stream)).collect();
        let recorded = case["frames"].as_array().expect("frames");
        if told.len() != recorded.len() {
            return Err(format!("{} frames: {told:?}", told.len()));
        }
        let mut more = BTreeSet::new();
        for (recorded, frame) in recorded.iter().zip(told) {
            let mut recorded = recorded.clone();
            recorded["seq"] = frame["seq"].clone();
            covers(frame, &recorded, "", &mut more)?;
        }
        let unknown: Vec<&String> = more.iter().filter(|path| !MORE_IN_FRAMES.contains(&path.as_str())).collect();
        if unknown.is_empty() { Ok(()) } else { Err(format!("not known: {unknown:?}")) }
    });
}

#[test]
fn a_result_is_what_the_method_gave() {
    check_all(cases(GOLDEN).filter(|(_, case)| case.get("result").is_some()), |case| {
        let mut recorded = case["result"].clone();
        // See the next test.
        recorded["result"]["meta"]["agentMeta"]["usage"]["total"] = json!("<number>");
        let mut more = BTreeSet::new();
        covers(&play(case).1, &recorded, "", &mut more)?;
        let expected: BTreeSet<String> = MORE_IN_RESULTS.map(str::to_owned).into();
        if more == expected { Ok(()) } else { Err(format!("besides: {more:?}")) }
    });
}

#[test]
fn totals_are_sums() {
    assert_documented(TOTALS);
    check_all_but(TOTALS, cases(GOLDEN).filter(|(_, case)| case.get("result").is_some()), |case| {
        let at = "/result/meta/agentMeta/usage";
        let (_, result) = play(case);
        let usage = result.pointer(at).expect("usage");
        assert_eq!((&usage["input"], &usage["output"], &usage["total"]), (&json!(20), &json!(10), &json!(30)));
        let recorded = case["result"].pointer(at).expect("usage");
        if usage["total"] == recorded["total"] { Ok(()) } else { Err("another total".to_owned()) }
    });
}

#[test]
fn a_command_that_goes_to_a_tool_is_told_like_a_call() {
    let stage = Stage::new();
    stage.store.replace(skills(&stage.path("skills"), &[("shout", "command-dispatch: tool\ncommand-tool: exec")]));
    let model = Puppet::new(|_, _| panic!("the model has no part in it"));
    let (frames, result) = told(&stage, model, exec(1, done()), "agent:main:main", "/shout hi", "run");
    let phases: Vec<String> =
        frames.iter().map(|frame| format!("{} {}", word(frame, "stream"), phase(frame))).collect();
    let expected = [
        "lifecycle start",
        "skill dispatched",
        "tool start",
        "tool update",
        "tool result",
        "assistant ",
        "lifecycle end",
    ];
    assert_eq!(phases, expected);
    assert_eq!(result["result"]["payloads"], json!([{"text": "done", "mediaUrl": null}]));
}

fn word<'a>(frame: &'a Value, key: &str) -> &'a str {
    frame[key].as_str().expect("a word")
}

fn phase(frame: &Value) -> &str {
    frame["data"]["phase"].as_str().unwrap_or_default()
}

/// Lets a model behave as the recorded one did, and tells what there is to see of it: the frames, and the result.
fn play(case: &Value) -> (Vec<Value>, Value) {
    let stage = Stage::new();
    stage.store.replace(skills(&stage.path("skills"), &[("demo-four", "")]));
    let replies: Vec<Value> = case["replies"].as_array().expect("replies").clone();
    let model = Puppet::of(("fake", "m"), 64_000, move |time, _| pieces(&replies[time - 1]));
    let updates = case["updates"].as_u64().expect("a number");
    let failed = case["isError"] == true;
    let tool = exec(updates, if failed { ToolResult::error("exec", "no") } else { done() });
    let [key, message, id] = ["sessionKey", "message", "id"].map(|name| word(case, name));
    told(&stage, model, tool, key, message, id)
}

fn told(
    stage: &Stage,
    model: Arc<Puppet>,
    tool: Arc<dyn Tool>,
    key: &str,
    message: &str,
    id: &str,
) -> (Vec<Value>, Value) {
    let agent = Arc::new(stage.agent_with(model, vec![tool]));
    let told = Arc::new(Mutex::new((Frames::new(id, key), Vec::new())));
    let heard = Arc::clone(&told);
    let events = Events::to(move |event| {
        let mut told = heard.lock().expect("no panic");
        let frame = told.0.frames(&event);
        told.1.extend(frame);
    });
    let run = Run { id: id.to_owned(), ..Run::new(events) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let outcome = runtime.block_on(agent.open(key).expect("a conversation").say(message, &run)).expect("a turn");
    let frames = std::mem::take(&mut told.lock().expect("no panic").1);
    (frames, frame::result(&outcome))
}

fn pieces(reply: &Value) -> Pieces {
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let deltas = reply["deltas"].as_array().expect("deltas").iter();
    let mut pieces: Pieces = deltas.map(|delta| Ok(Delta::Text { block: 0, text: text(delta) })).collect();
    let mut stop = StopReason::Stop;
    if let Some(call) = reply.get("call") {
        pieces.push(Ok(Delta::Call { block: 1, id: text(&call["id"]), name: text(&call["name"]) }));
        pieces.push(Ok(Delta::Arguments { block: 1, json: call["args"].to_string() }));
        stop = StopReason::ToolUse;
    }
    pieces.push(Ok(Delta::Usage(Usage { input: 10, output: 5, total_tokens: 15, ..Usage::default() })));
    pieces.push(Ok(Delta::Stop(stop)));
    pieces
}

/// A tool that is heard of a number of times before it is done.
struct Teller {
    spec: ToolSpec,
    updates: u64,
    result: ToolResult,
}

fn done() -> ToolResult {
    ToolResult::done("done", Value::Null)
}

fn exec(updates: u64, result: ToolResult) -> Arc<dyn Tool> {
    let spec = ToolSpec {
        name: "exec".to_owned(),
        description: "Runs commands.".to_owned(),
        parameters: json!({"type": "object"}),
    };
    Arc::new(Teller { spec, updates, result })
}

impl Tool for Teller {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        call: Call<'a>,
        scope: &'a Scope<'a>,
    ) -> Pin<Box<dyn Future<Output = ToolResult> + Send + 'a>> {
        for number in 0..self.updates {
            let (id, tool) = (call.id.to_owned(), self.spec.name.clone());
            scope.events.tell(Event::CallUpdate { id, tool, tail: format!("line {number}") });
        }
        Box::pin(std::future::ready(self.result.clone()))
    }
}

/// Whether everything that was recorded is in `ours`, with the same value; `<…>` stands for any of its kind. What `ours`
/// has besides goes into `more`.
fn covers(ours: &Value, recorded: &Value, path: &str, more: &mut BTreeSet<String>) -> Result<(), String> {
    let fits = match (recorded, ours) {
        (Value::String(mask), value) if mask == "<time>" || mask == "<number>" => value.is_u64(),
        (Value::String(mask), value) if mask.starts_with('<') => value.as_str().is_some_and(|text| !text.is_empty()),
        (Value::Object(recorded), Value::Object(ours)) => {
            for (key, value) in recorded {
                let own = ours.get(key).ok_or_else(|| format!("{path}/{key} is missing"))?;
                covers(own, value, &format!("{path}/{key}"), more)?;
            }
            let besides = ours.keys().filter(|key| !recorded.contains_key(*key));
            more.extend(besides.map(|key| format!("{path}/{key}")));
            true
        }
        (Value::Array(recorded), Value::Array(ours)) if recorded.len() == ours.len() => {
            for (place, (recorded, ours)) in recorded.iter().zip(ours).enumerate() {
                covers(ours, recorded, &format!("{path}/{place}"), more)?;
            }
            true
        }
        (recorded, ours) => recorded == ours,
    };
    if fits { Ok(()) } else { Err(format!("{path}: wanted {recorded}, got {ours}")) }
}
