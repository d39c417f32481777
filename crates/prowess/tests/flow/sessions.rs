//! Sessions: does a conversation go on, and can it be looked at?

use prowess_testkit::{Chunking, Heard, ModelServer, Turn, eventually};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

use super::MESSAGE;
use super::home::{APIS, FORECAST, Line, talking_to};
use super::steps::{self, forecaster};

/// A model that counts what people have said to it.
fn counter() -> ModelServer {
    ModelServer::answering(Chunking::Whole, |request| {
        let heard = request.heard();
        let said: Vec<&str> = heard.iter().filter(|one| matches!(one, Heard::Person(_))).map(Heard::text).collect();
        Turn::text(&format!("heard: {}", said.join(" + ")))
    })
}

#[test]
fn a_conversation_goes_on_where_it_was_left() {
    for api in APIS {
        let server = counter();
        let home = talking_to(&server, api);
        home.go("run one").ok().out_has("heard: one\n");
        home.go("run --continue two").ok().out_has("heard: one + two\n");
        let second = server.requests()[1].heard();
        assert_eq!(second[1], Heard::Model("heard: one".to_owned()), "its own words are there, too");
        home.go("run three").ok().out_has("heard: three\n");
        home.go("run -c four").ok().out_has("heard: three + four\n");
        home.go("run --session other five").ok().out_has("heard: five\n");
        home.go("run six").ok().out_has("heard: six\n");
        home.go("run --session other seven").ok().out_has("heard: five + seven\n");
        home.go("run --continue eight").ok().out_has("heard: five + seven + eight\n");
        home.go("run --session other --new nine").ok().out_has("heard: nine\n");
        home.go("sessions reset other").ok().out_has("started agent:main:other over");
        home.go("run --session other ten").ok().out_has("heard: ten\n");
        let id = home.go("sessions show other --json").ok().json()["sessionId"].as_str().expect("an id").to_owned();
        home.go(&format!("run --session {id} eleven")).ok().out_has("heard: ten + eleven\n");
    }
}

#[test]
fn a_conversation_can_be_looked_at() {
    let server = ModelServer::answering(Chunking::Random(11), forecaster);
    let home = talking_to(&server, APIS[2]);
    home.go("approvals allow curl").ok();
    let told = steps::the_result_is_told(&home.go(&format!("run --json {MESSAGE}")).ok());
    let list = home.go("sessions list --json").ok().json();
    let row = &list["sessions"][0];
    assert!(row["key"].as_str().is_some_and(|key| key.starts_with("agent:main:cli-")), "{list}");
    assert_eq!(row["messages"], json!(6), "{list}");
    assert_eq!(
        (&row["title"], &row["sessionId"]),
        (&json!(MESSAGE), &told["result"]["meta"]["agentMeta"]["sessionId"])
    );
    home.go("sessions list").ok().out_has("cli-").out_has(MESSAGE).out_has("test-model");
    let show = home.go("sessions show").ok();
    show.out_has(&format!("> {MESSAGE}")).out_has("● weather (read)").out_has("▸ exec curl -s wttr.in/Shanghai  ✓");
    let replay = home.go("sessions replay").ok();
    assert!(replay.stdout().contains(FORECAST) && replay.stderr().contains("● weather (read)"), "{replay}");
    home.go("sessions export").ok().out_has(MESSAGE).out_has("wttr.in/Shanghai").out_has(FORECAST);
    let lines = home.go("sessions export --format jsonl").ok();
    assert!(lines.stdout().lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{lines}");
    assert_eq!(server.requests().len(), 3, "looking asks nobody");

    // Every token is accounted for, and the skill's own are told apart.
    let shown = home.go("sessions show --json").ok().json();
    let usage = &told["result"]["meta"]["agentMeta"]["usage"];
    assert_eq!(usage["total"], json!(server.tokens()), "{told}");
    assert_eq!(told["result"]["meta"]["ledger"]["total"], json!(server.tokens()));
    assert_eq!(shown["ledger"]["total"], json!(server.tokens()));
    assert_eq!(shown["usage"]["totalTokens"], json!(server.tokens()));
    let weather = &shown["ledger"]["skills"][0];
    assert_eq!(weather["skill"], "weather", "{shown}");
    for part in ["catalog", "body", "output"] {
        assert!(weather[part].as_u64() > Some(0), "{part}: {weather}");
    }
}

#[test]
fn the_ledger_adds_up_over_turns_and_wire_formats() {
    for api in APIS {
        let server = ModelServer::answering(Chunking::Bytes(7), forecaster);
        let home = talking_to(&server, api);
        home.go("approvals allow curl").ok();
        home.go(&format!("run {MESSAGE}")).ok();
        home.go("run --continue --json 'and tomorrow?'").ok();
        let shown = home.go("sessions show --json").ok().json();
        assert_eq!(shown["ledger"]["total"], json!(server.tokens()), "{api}");
        assert_eq!(shown["usage"]["totalTokens"], json!(server.tokens()), "{api}");
    }
}

#[test]
fn two_runs_at_once_have_a_session_each_and_one_session_has_one_owner() {
    let server = ModelServer::answering(Chunking::Whole, |request| match request.last().as_str() {
        "wait" => Turn::Stall { turn: Box::new(Turn::text("never said")), after: 0 },
        other => Turn::text(&format!("heard {other}")),
    });
    let home = talking_to(&server, APIS[0]);
    let first = home.begin("run --session main wait");
    eventually("the first has asked", || server.requests().len() == 1);
    home.go("run hello").ok().out_has("heard hello");
    let second = home.go("run --session main hello").code(1);
    second.err_has("agent:main:main").err_has(&first.id().to_string()).err_has("error: ");
    home.go("run --json --session main hello").code(1).err_has("agent:main:main");
    home.go("run --session other hello").ok().out_has("heard hello");
    let group = Pid::from_raw(i32::try_from(first.id()).expect("a process")).expect("a process");
    kill_process_group(group, Signal::INT).expect("it runs");
    first.wait().code(130);
    home.go("run --session main hello").ok().out_has("heard hello");
}

#[test]
fn there_may_be_nothing_to_continue_and_a_typo_finds_the_session() {
    let server = counter();
    let home = talking_to(&server, APIS[0]);
    home.go("run --continue hi").code(1).err_has("there is no session yet").err_has("prowess run");
    home.go("sessions show").code(1).err_has("there is no session yet");
    home.go("run --session travel hi").ok();
    home.go("sessions show travle").code(1).err_has("did you mean `travel`?");
}

#[test]
fn what_is_noted_beside_a_large_index_is_in_it_when_the_program_ends() {
    let server = counter();
    let home = talking_to(&server, APIS[0]);
    let entry = |number: usize| {
        (
            format!("agent:main:s{number}"),
            json!({"sessionId": format!("id{number}"), "updatedAt": 1, "x": "y".repeat(50)}),
        )
    };
    let index: serde_json::Map<String, Value> = (0..2_000).map(entry).collect();
    let folder = ".openclaw/agents/main/sessions";
    let home = home.file(&format!("{folder}/sessions.json"), Value::Object(index).to_string());
    home.go("run --session trip one").ok();
    assert!(!home.path(&format!("{folder}/sessions.json.changes")).exists());
    let index = std::fs::read_to_string(home.path(&format!("{folder}/sessions.json"))).expect("an index");
    let index: Value = serde_json::from_str(&index).expect("JSON");
    assert!(index["agent:main:trip"]["sessionId"].is_string() && index["agent:main:trip"]["model"].is_string());
    assert_eq!(index.as_object().map(serde_json::Map::len), Some(2_001));
}
