//! The steps of the flow, one function each: what has to be true after it?

use prowess_testkit::{Heard, Output, Prowess, RecordedRequest, Turn};
use serde_json::{Value, json};

use super::home::FORECAST;

pub(crate) const LOCATION: &str = "~/.openclaw/workspace/skills/weather/SKILL.md";

/// A model that does what a good one does: reads the skill it is shown or told of, runs what the skill says, and answers
/// with what the command said.
pub(crate) fn forecaster(request: &RecordedRequest) -> Turn {
    match request.heard().last() {
        Some(Heard::Person(text)) => {
            let told = text.split_once(" at ").and_then(|(_, rest)| rest.lines().next());
            let system = request.system();
            let path = told.map_or_else(|| location(&system, "weather"), str::to_owned);
            Turn::call("call_read", "read", json!({"path": path}))
        }
        Some(Heard::Result(text)) if text.contains("# Weather") => {
            let command = text.lines().find(|line| line.starts_with("curl")).expect("a command in the skill");
            Turn::call("call_exec", "exec", json!({"command": command.replace("London", "Shanghai")}))
        }
        Some(Heard::Result(text)) => Turn::text(&format!("Here you are.\nThe tool says: {text}")),
        other => Turn::text(&format!("There is nothing to do about {other:?}.")),
    }
}

/// The location of a skill in a catalogue.
pub(crate) fn location(system: &str, skill: &str) -> String {
    let entry = system.split_once(&format!("<name>{skill}</name>")).expect("the skill is in the catalogue").1;
    let after = entry.split_once("<location>").expect("a location").1;
    after.split_once("</location>").expect("a location").0.to_owned()
}

/// The model is told which skills there are, and not what they say.
#[track_caller]
pub(crate) fn the_catalogue_is_in_the_prompt(request: &RecordedRequest) {
    let system = request.system();
    assert_eq!(location(&system, "weather"), LOCATION);
    assert!(system.contains("Get current weather and forecasts for any place."), "{system}");
    assert!(!system.contains("# Weather") && !system.contains("wttr.in"), "the body is not in the prompt\n{system}");
    let tools: Vec<&str> = request.texts().into_iter().filter(|text| ["read", "exec"].contains(text)).collect();
    assert_eq!(tools.len(), 2, "the tools are offered");
}

/// The message arrives as it was said.
#[track_caller]
pub(crate) fn the_message_is_there(request: &RecordedRequest, message: &str) {
    assert_eq!(request.heard().last(), Some(&Heard::Person(message.to_owned())));
}

/// The call of `read` went through, and its result is the body with its folder filled in.
#[track_caller]
pub(crate) fn the_model_has_read_the_skill(request: &RecordedRequest, home: &Prowess) {
    let heard = request.heard();
    let [.., Heard::Call(tool, arguments), Heard::Result(body)] = heard.as_slice() else {
        panic!("no call and result at the end: {heard:?}")
    };
    assert_eq!((tool.as_str(), &arguments["path"]), ("read", &json!(LOCATION)));
    let folder = home.path(".openclaw/workspace/skills/weather");
    assert!(body.contains(&format!("{}/places.txt", folder.display())), "{body}");
    assert!(body.contains("curl -s wttr.in/London") && !body.contains("{baseDir}"), "{body}");
}

/// The command ran, and what it said is its result.
#[track_caller]
pub(crate) fn the_command_has_run(request: &RecordedRequest, home: &Prowess) {
    let heard = request.heard();
    let [.., Heard::Call(tool, arguments), Heard::Result(said)] = heard.as_slice() else {
        panic!("no call and result at the end: {heard:?}")
    };
    assert_eq!((tool.as_str(), &arguments["command"]), ("exec", &json!("curl -s wttr.in/Shanghai")));
    assert!(said.contains(&format!("wttr.in/Shanghai: {FORECAST}")), "{said}");
    let trail = std::fs::read_to_string(home.path(".openclaw/audit/exec.jsonl")).expect("a trail");
    let ran = trail.lines().filter(|line| line.contains("wttr.in/Shanghai")).count();
    assert!(ran > 0, "the policy judged it, and that is written down: {trail}");
}

/// The command did not run, and the model knows.
#[track_caller]
pub(crate) fn the_command_was_refused(request: &RecordedRequest) {
    let heard = request.heard();
    let Some(Heard::Result(said)) = heard.last() else { panic!("no result at the end: {heard:?}") };
    assert!(!said.contains(FORECAST) && said.contains("nobody to ask"), "{said}");
}

/// The answer is printed, and with it which skill was used and what was called.
#[track_caller]
pub(crate) fn the_answer_is_printed(output: &Output) {
    let expected = format!("Here you are.\nThe tool says: wttr.in/Shanghai: {FORECAST}");
    assert!(output.stdout().starts_with(&expected), "{output}");
    for line in ["read ~/", "● weather (read)", "exec curl -s wttr.in/Shanghai"] {
        assert!(output.stderr().contains(line), "expected in stderr: {line}\n{output}");
    }
}

/// The same for machines, all at once.
#[track_caller]
pub(crate) fn the_result_is_told(output: &Output) -> Value {
    let result = output.json();
    assert_eq!((&result["status"], &result["summary"]), (&json!("ok"), &json!("completed")), "{output}");
    let meta = &result["result"]["meta"];
    let payloads = result["result"]["payloads"].as_array().expect("payloads");
    let last = payloads.last().and_then(|payload| payload["text"].as_str()).expect("an answer");
    assert!(last.contains(FORECAST), "{output}");
    assert_eq!(meta["skills"][0]["name"], "weather");
    assert_eq!((&meta["skills"][0]["how"], &meta["calls"][1]["skills"]), (&json!("read"), &json!(["weather"])));
    result
}

/// The same for machines, while it happens.
#[track_caller]
pub(crate) fn the_events_are_told(output: &Output) {
    let events: Vec<Value> =
        output.stdout().lines().map(|line| serde_json::from_str(line).expect("an event")).collect();
    let mut order: Vec<String> = events
        .iter()
        .map(|event| {
            let name = event["data"]["name"].as_str().map(|name| format!(" {name}")).unwrap_or_default();
            format!(
                "{} {}{name}",
                event["stream"].as_str().unwrap_or(""),
                event["data"]["phase"].as_str().unwrap_or("")
            )
        })
        .filter(|event| !event.starts_with("tool update"))
        .collect();
    assert!(order.iter().filter(|event| *event == "assistant ").count() > 3, "the answer comes word by word\n{output}");
    order.dedup();
    let expected = [
        "lifecycle start",
        "tool start read",
        "skill read weather",
        "tool result read",
        "tool start exec",
        "tool result exec",
        "assistant ",
        "lifecycle end",
    ];
    assert_eq!(order, expected, "{output}");
    let spoken: String = events.iter().filter_map(|event| event["data"]["delta"].as_str()).collect();
    assert!(spoken.contains(FORECAST), "{output}");
}
