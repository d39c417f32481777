//! The flows that were recorded with OpenClaw, replayed: do clients get the same shapes?

use std::collections::{BTreeMap, BTreeSet};

use prowess_gateway::client::Event;
use prowess_testkit::{Answer, Chunking, Heard, ModelServer, RecordedRequest, Tree, Turn, cases};
use serde_json::{Value, json};

use crate::hall::{Ears, Hall, config};

const GOLDEN: &str = include_str!("../golden/agent-chat.json");

/// What ours have besides: counts of the cache, and where a turn's tokens and calls went.
const MORE: &[&str] = &[
    "/nextCursor",
    "/result/meta/agentMeta/usage/cacheRead",
    "/result/meta/agentMeta/usage/cacheWrite",
    "/result/meta/skills",
    "/result/meta/calls",
    "/result/meta/ledger",
];

/// Answers as the model of the recording did.
fn speak(request: &RecordedRequest) -> Turn {
    let heard = request.heard();
    if let Some(Heard::Result(text)) = heard.last() {
        return Turn::text(&format!("All done: {}", &text[..text.len().min(40)]));
    }
    let said =
        heard.iter().rev().find_map(|one| if let Heard::Person(text) = one { Some(text.as_str()) } else { None });
    let command = said.and_then(|text| text.split_once("RUNTOOL:")).and_then(|(_, rest)| rest.split_once("ENDTOOL"));
    match command {
        Some((command, _)) => Turn::Answer(Answer {
            text: "Let me run it.".to_owned(),
            calls: vec![("call_1".to_owned(), "exec".to_owned(), json!({"command": command}))],
            ..Answer::default()
        }),
        None => Turn::text("All done: "),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recorded_flows_have_equal_shapes() {
    let model = ModelServer::answering(Chunking::Whole, speak);
    let demo = "---\nname: demo\ndescription: d\n---\n";
    let tree = Tree::new().file(".openclaw/workspace/skills/demo/SKILL.md", demo);
    let hall = Hall::open(tree, &config(&model, json!({}))).await;
    let client = hall.operator().await;
    let mut ears = Ears::of(&client);
    for (id, case) in cases(GOLDEN) {
        let method = case["method"].as_str().expect("a method");
        let recorded: Vec<&Value> = case["frames"].as_array().expect("frames").iter().collect();
        let answers = recorded.iter().filter(|frame| frame.get("res").is_some()).count();
        let mut asked = client.ask(method, &case["params"]).expect("a connection");
        let mut ours = Vec::new();
        for _ in 0..answers {
            ours.push(json!({"res": asked.next().await.expect("an answer"), "ok": true}));
        }
        let runs = recorded.iter().any(|frame| frame["event"] == "chat");
        if runs {
            let events = ears.until_chat(&id, "final").await;
            let mine = events.into_iter().filter(|event| event.payload["runId"] == id.as_str());
            // A skill that is used is told in a stream of its own.
            ours.extend(mine.filter(|event| event.payload["stream"] != "skill").map(|event| told(&event)));
        }
        assert_alike(&id, &recorded, &ours);
    }
    hall.end().await;
}

fn told(event: &Event) -> Value {
    json!({"event": event.name, "payload": event.payload, "numbered": event.seq.is_some()})
}

/// Frames of the same kind have the same fields, with values of the same kind.
fn assert_alike(id: &str, recorded: &[&Value], ours: &[Value]) {
    let mut theirs = shapes(recorded.iter().copied());
    let mut ours = shapes(ours);
    // Whether a command says something while it runs is a matter of luck.
    for kind in [&theirs, &ours].iter().flat_map(|shapes| shapes.keys().cloned()).collect::<Vec<_>>() {
        if kind.contains("\"update\"") && !(theirs.contains_key(&kind) && ours.contains_key(&kind)) {
            theirs.remove(&kind);
            ours.remove(&kind);
        }
    }
    assert_eq!(theirs.keys().collect::<Vec<_>>(), ours.keys().collect::<Vec<_>>(), "{id}: the kinds of frames");
    for (kind, fields) in &theirs {
        let mut mine = ours[kind].clone();
        mine.retain(|field| !MORE.iter().any(|more| field.contains(more)));
        assert_eq!(&mine, fields, "{id}: {kind}");
    }
}

fn shapes<'a>(frames: impl IntoIterator<Item = &'a Value>) -> BTreeMap<String, BTreeSet<String>> {
    let mut shapes: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for frame in frames {
        let payload = if frame["res"].is_null() { &frame["payload"] } else { &frame["res"] };
        let kind = match frame["event"].as_str() {
            Some("agent") => format!("agent {} {}", payload["stream"], payload["data"]["phase"]),
            Some(event) => format!("{event} {}", payload["state"]),
            None => format!("answer {}", payload["status"]),
        };
        let kind = format!("{kind} numbered {}", frame["numbered"] == true);
        collect(payload, "", shapes.entry(kind).or_default());
    }
    shapes
}

fn collect(value: &Value, path: &str, fields: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                collect(value, &format!("{path}/{name}"), fields);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, &format!("{path}/*"), fields)),
        // What a tool is given is up to the model.
        Value::String(_) if path.starts_with("/data/args/") => {}
        Value::String(_) => drop(fields.insert(format!("{path}: text"))),
        Value::Number(_) => drop(fields.insert(format!("{path}: number"))),
        Value::Bool(_) => drop(fields.insert(format!("{path}: bool"))),
        Value::Null => drop(fields.insert(format!("{path}: null"))),
    }
}
