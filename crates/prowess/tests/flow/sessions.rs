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
        home.go("run two").ok().out_has("heard: one + two\n");
        let second = server.requests()[1].heard();
        assert_eq!(second[1], Heard::Model("heard: one".to_owned()), "its own words are there, too");
        home.go("run --session other three").ok().out_has("heard: three\n");
        home.go("run four").ok().out_has("heard: one + two + four\n");
        home.go("run --new five").ok().out_has("heard: five\n");
        home.go("run six").ok().out_has("heard: five + six\n");
        home.go("sessions reset main").ok().out_has("begins anew");
        home.go("run seven").ok().out_has("heard: seven\n");
        home.go("run --session other eight").ok().out_has("heard: three + eight\n");
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
    assert_eq!((&row["key"], &row["messages"]), (&json!("agent:main:main"), &json!(6)), "{list}");
    assert_eq!(
        (&row["title"], &row["sessionId"]),
        (&json!(MESSAGE), &told["result"]["meta"]["agentMeta"]["sessionId"])
    );
    home.go("sessions list").ok().out_has("agent:main:main").out_has(MESSAGE).out_has("test-model");
    let show = home.go("sessions show main").ok();
    show.out_has(&format!("> {MESSAGE}")).out_has("● weather (read)").out_has("▸ exec curl -s wttr.in/Shanghai  ✓");
    let replay = home.go("sessions replay main").ok();
    assert!(replay.stdout().contains(FORECAST) && replay.stderr().contains("● weather (read)"), "{replay}");
    home.go("sessions export main").ok().out_has(MESSAGE).out_has("wttr.in/Shanghai").out_has(FORECAST);
    let lines = home.go("sessions export main --format jsonl").ok();
    assert!(lines.stdout().lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{lines}");
    assert_eq!(server.requests().len(), 3, "looking asks nobody");

    // Every token is accounted for, and the skill's own are told apart.
    let shown = home.go("sessions show main --json").ok().json();
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
        home.go("run --json 'and tomorrow?'").ok();
        let shown = home.go("sessions show main --json").ok().json();
        assert_eq!(shown["ledger"]["total"], json!(server.tokens()), "{api}");
        assert_eq!(shown["usage"]["totalTokens"], json!(server.tokens()), "{api}");
    }
}

#[test]
fn one_conversation_has_one_owner_at_a_time() {
    let server = ModelServer::answering(Chunking::Whole, |request| match request.last().as_str() {
        "wait" => Turn::Stall { turn: Box::new(Turn::text("never said")), after: 0 },
        other => Turn::text(&format!("heard {other}")),
    });
    let home = talking_to(&server, APIS[0]);
    let first = home.begin("run wait");
    eventually("the first has asked", || server.requests().len() == 1);
    let second = home.go("run hello").code(1);
    second.err_has("agent:main:main").err_has(&first.id().to_string()).err_has("error: ");
    home.go("run --json hello").code(1).err_has("agent:main:main");
    home.go("run --session other hello").ok().out_has("heard hello");
    let group = Pid::from_raw(i32::try_from(first.id()).expect("a process")).expect("a process");
    kill_process_group(group, Signal::INT).expect("it runs");
    first.wait().code(130);
    home.go("run hello").ok().out_has("heard hello");
}
