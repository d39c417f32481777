//! Later: what becomes of commands that outlive their turn?

use std::path::PathBuf;
use std::time::Duration;

use prowess_agent::news::NOTICE;
use prowess_gateway::client::{Client, Event, Introduction};
use prowess_gateway::{Gateway, Options};
use prowess_testkit::{Chunking, Heard, ModelServer, RecordedRequest, Tree, Turn};
use serde_json::{Value, json};

use crate::hall::{Ears, Hall, config, words};
use crate::plain::ask;
use crate::room::{TOKEN, ground};

fn said(text: &str, run: &str) -> Value {
    json!({"sessionKey": "main", "message": text, "idempotencyKey": run})
}

/// Runs what it is told to, and repeats what came of it.
fn model() -> ModelServer {
    ModelServer::answering(Chunking::Whole, |request| {
        let heard = request.heard();
        let last = heard.last().map(|last| last.text().to_owned()).unwrap_or_default();
        // News is a tool result, and the notice behind it has nothing of the news in it.
        let result =
            heard.iter().rev().find(|one| matches!(one, Heard::Result(_))).map(Heard::text).unwrap_or_default();
        let last = if last == NOTICE { result.to_owned() } else { last };
        match last.strip_prefix("RUN ") {
            Some(arguments) => Turn::call("c1", "exec", serde_json::from_str(arguments).expect("arguments")),
            None => Turn::text(&format!("So: {last}")),
        }
    })
}

/// A gateway whose turns do not wait for answers, and whose commands have to be approved.
async fn hall(model: &ModelServer, more: Value) -> Hall {
    hall_in(Tree::new().file(".openclaw/openclaw.json", config(model, more).to_string())).await
}

/// The same in a home that is there already.
async fn hall_in(tree: Tree) -> Hall {
    let helper = Some(PathBuf::from(env!("CARGO_BIN_EXE_prowess-gateway-helper")));
    let options = Options { port: Some(0), wait: Some(Duration::ZERO), helper, ..Options::default() };
    let running = Gateway::start(ground(&tree), options).await.expect("a gateway");
    Hall { tree, running }
}

fn asking() -> Value {
    json!({"tools": {"exec": {"security": "allowlist", "ask": "on-miss"}}})
}

/// What the model says of something in a turn that nobody asked for.
async fn woken(ears: &mut Ears, about: &str) -> String {
    let is_it = |event: &Event| {
        let is_asked_for = event.payload["runId"].as_str().is_some_and(|run| run.starts_with("asked"));
        event.payload["state"] == "final" && !is_asked_for && words(event).contains(about)
    };
    let heard = ears.until(about, is_it).await;
    words(heard.last().expect("an event")).to_owned()
}

async fn pending(client: &Client, ears: &mut Ears, run: &str) -> Value {
    client.call("chat.send", said(r#"RUN {"command": "touch made; echo it is made"}"#, run)).await.expect("started");
    let heard = ears.until_chat(run, "final").await;
    assert!(words(heard.last().expect("an event")).contains("waits for a person"), "{heard:?}");
    let asked = heard.into_iter().find(|event| event.name == "exec.approval.requested").expect("a question");
    asked.payload
}

#[tokio::test]
async fn a_command_that_waits_for_a_person_does_not_hold_up_its_turn() {
    let model = model();
    let hall = hall(&model, asking()).await;
    let client = hall.operator().await;
    let mut ears = Ears::of(&client);
    let question = pending(&client, &mut ears, "asked-1").await;
    let made = hall.tree.path(".openclaw/workspace/made");
    assert!(!made.exists(), "nobody has answered");
    let resolve = json!({"id": question["id"], "decision": "allow-once"});
    client.call("exec.approval.resolve", resolve).await.expect("taken");
    let told = woken(&mut ears, "it is made").await;
    assert!(told.contains("So: Exec finished (") && told.contains("code 0"), "{told}");
    assert!(made.exists());

    let question = pending(&client, &mut ears, "asked-2").await;
    client.call("exec.approval.resolve", json!({"id": question["id"], "decision": "deny"})).await.expect("taken");
    let told = woken(&mut ears, "Exec denied").await;
    assert!(told.contains("touch made"), "{told}");
    hall.end().await;
}

#[tokio::test]
async fn a_command_that_waits_is_shown_as_waiting_and_later_with_its_result() {
    let model = model();
    let hall = hall(&model, asking()).await;
    let client = hall.visitor(&Introduction::operator(TOKEN).with_deltas()).await;
    let mut ears = Ears::of(&client);
    let run = said(r#"RUN {"command": "echo it is made"}"#, "asked-1");
    let mut answers = client.ask("agent", &run).expect("a connection");
    answers.next().await.expect("accepted");
    let answer = answers.next().await.expect("an answer");
    let waiting = &answer["waiting"][0];
    assert_eq!((&waiting["toolCallId"], &waiting["command"]), (&json!("c1"), &json!("echo it is made")));
    let heard = ears.until_chat("asked-1", "final").await;
    assert_eq!(heard.last().expect("an end").payload["waiting"][0], *waiting);
    let result = heard.iter().find(|event| event.payload["data"]["phase"] == "result").expect("a result");
    assert_eq!((&result.payload["data"]["status"], &result.payload["data"]["approval"]), (&json!("waiting"), waiting));

    let yes = json!({"id": waiting["approvalId"], "decision": "allow-once"});
    client.call("exec.approval.resolve", yes).await.expect("taken");
    let late = ears.until("the result", |event| event.payload["data"]["late"] == true).await;
    let late = &late.last().expect("a result").payload;
    assert_eq!((&late["runId"], &late["data"]["toolCallId"]), (&json!("asked-1"), &json!("c1")));
    assert_eq!(late["data"]["status"], "approved");
    let text = late["data"]["result"]["content"][0]["text"].as_str().expect("a text");
    assert!(text.contains("it is made"), "{late}");
    let over = |event: &Event| event.payload["state"] == "final" && event.payload["runId"] != "asked-1";
    ears.until("the turn about it", over).await;

    let history = client.call("chat.history", json!({"sessionKey": "main"})).await.expect("a history");
    let messages = history["messages"].as_array().expect("messages");
    assert_eq!(messages.iter().filter(|message| message["role"] == "user").count(), 1, "{messages:#?}");
    let results: Vec<&Value> = messages.iter().filter(|message| message["role"] == "toolResult").collect();
    assert_eq!(results[0]["approval"]["status"], "waiting");
    let expected = json!({"status": "approved", "approvalId": waiting["approvalId"], "toolCallId": "c1"});
    assert_eq!(results[1]["approval"], expected);
    assert!(results[1]["content"][0]["text"].as_str().is_some_and(|text| text.contains("it is made")));
    let listed = client.call("exec.approval.log", json!({})).await.expect("a page");
    assert_eq!(
        (&listed["entries"][0]["id"], &listed["entries"][0]["by"]["client"]),
        (&waiting["approvalId"], &json!("cli"))
    );
    hall.end().await;
}

#[tokio::test]
async fn a_session_that_is_gone_is_not_woken() {
    let model = model();
    let hall = hall(&model, asking()).await;
    let client = hall.operator().await;
    let mut ears = Ears::of(&client);
    let question = pending(&client, &mut ears, "asked-1").await;
    let key = "agent:main:main";
    client.call("sessions.delete", json!({"key": key})).await.expect_err("the main session stays");
    let other =
        json!({"sessionKey": "other", "message": r#"RUN {"command": "touch other"}"#, "idempotencyKey": "asked-2"});
    client.call("chat.send", other).await.expect("started");
    let heard = ears.until_chat("asked-2", "final").await;
    let second = heard.into_iter().find(|event| event.name == "exec.approval.requested").expect("a question").payload;
    client.call("sessions.delete", json!({"key": "agent:main:other"})).await.expect("removed");
    let is_taken_back =
        |event: &Event| event.payload["id"] == second["id"] && event.payload["resolvedBy"] == "withdrawn";
    ears.until("its question is taken back", is_taken_back).await;
    client.call("exec.approval.resolve", json!({"id": question["id"], "decision": "deny"})).await.expect("taken");
    woken(&mut ears, "touch made").await;
    let third = pending(&client, &mut ears, "asked-3").await;
    client.call("sessions.reset", json!({"key": key})).await.expect("begun anew");
    let is_taken_back =
        |event: &Event| event.payload["id"] == third["id"] && event.payload["resolvedBy"] == "withdrawn";
    ears.until("a new session does not run it either", is_taken_back).await;
    assert!(!hall.tree.path(".openclaw/workspace/made").exists());
    let listed = client.call("sessions.list", json!({})).await.expect("a list").to_string();
    assert!(!listed.contains("agent:main:other"), "{listed}");
    hall.end().await;
}

/// The states of the calls in the main session: of each result, what became of its command.
async fn states(client: &Client) -> Vec<Value> {
    let history = client.call("chat.history", json!({"sessionKey": "main"})).await.expect("a history");
    let messages = history["messages"].as_array().expect("messages").clone();
    messages
        .into_iter()
        .filter(|message| message["role"] == "toolResult")
        .map(|mut one| one["approval"].take())
        .collect()
}

#[tokio::test]
async fn a_command_that_a_stopped_gateway_left_is_interrupted_once() {
    let model = model();
    let hall = hall(&model, asking()).await;
    let client = hall.operator().await;
    let mut ears = Ears::of(&client);
    // One waits for an answer, and one was approved and runs.
    let waiting = pending(&client, &mut ears, "asked-1").await;
    let command = r#"RUN {"command": "touch begun; sleep 600"}"#;
    client.call("chat.send", said(command, "asked-2")).await.expect("started");
    let heard = ears.until_chat("asked-2", "final").await;
    let running = heard.into_iter().find(|event| event.name == "exec.approval.requested").expect("a question").payload;
    let yes = json!({"id": running["id"], "decision": "allow-once"});
    client.call("exec.approval.resolve", yes).await.expect("taken");
    let begun = hall.tree.path(".openclaw/workspace/begun");
    crate::hall::until("it runs", || async { begun.exists() }).await;
    let mut tree = hall.leave().await;
    let ids = [&waiting["id"], &running["id"]];
    for _ in 0..2 {
        let hall = hall_in(tree).await;
        let client = hall.operator().await;
        crate::hall::until("both have a result", || async { states(&client).await.len() == 4 }).await;
        let states = states(&client).await;
        for (waited, ended) in [(&states[0], &states[2]), (&states[1], &states[3])] {
            assert_eq!((&waited["status"], &ended["status"]), (&json!("waiting"), &json!("interrupted")));
            assert!(ids.contains(&&ended["approvalId"]) && ended["toolCallId"] == "c1", "{states:?}");
        }
        tree = hall.leave().await;
    }
    assert!(!tree.path(".openclaw/workspace/made").exists());
}

#[tokio::test]
async fn who_stops_a_session_takes_back_the_question_of_a_turn_that_has_ended() {
    let model = model();
    let hall = hall(&model, asking()).await;
    let client = hall.operator().await;
    let mut ears = Ears::of(&client);
    for (run, params) in
        [("asked-1", json!({"sessionKey": "main"})), ("asked-2", json!({"sessionKey": "main", "runId": "asked-2"}))]
    {
        let question = pending(&client, &mut ears, run).await;
        let before = (states(&client).await.len(), model.requests().len());
        let aborted = client.call("chat.abort", params.clone()).await.expect("stopped");
        assert_eq!(aborted, json!({"ok": true, "aborted": true, "runIds": [run]}));
        let is_it = |event: &Event| event.name == "exec.approval.resolved" && event.payload["id"] == question["id"];
        let resolved = ears.until("its end", is_it).await;
        assert_eq!(resolved.last().expect("an event").payload["resolvedBy"], "withdrawn");
        crate::hall::until("it has a result", || async { states(&client).await.len() > before.0 }).await;
        let states = states(&client).await;
        let last = states.last().expect("a result");
        assert_eq!((&last["status"], &last["approvalId"]), (&json!("interrupted"), &question["id"]));
        assert_eq!(model.requests().len(), before.1, "no turn begins for it");
        let again = client.call("chat.abort", params).await.expect("an answer");
        assert_eq!(again["aborted"], false);
    }
    hall.end().await;
}

/// A program over HTTP gets its answer when the turn ends, not when somebody answers the question.
#[tokio::test]
async fn a_program_does_not_wait_for_a_command_that_waits() {
    let model = model();
    let mut more = asking();
    more["gateway"] = json!({"http": {"endpoints": {"chatCompletions": {"enabled": true}}}});
    let hall = hall(&model, more).await;
    let client = hall.operator().await;
    let bearer = format!("Bearer {TOKEN}");
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    for is_streamed in [true, false] {
        let message = json!({"role": "user", "content": r#"RUN {"command": "touch made"}"#});
        let body = json!({"model": "openclaw", "stream": is_streamed, "messages": [message]}).to_string();
        let answer = ask(hall.running.address, "POST", "/v1/chat/completions", &headers, &body).await;
        assert!(answer.body.contains("approve"), "{}", answer.body);
    }
    let open = client.call("exec.approval.list", json!({})).await.expect("a list");
    assert_eq!(open.to_string().matches("\"createdAtMs\"").count(), 2, "both still wait: {open}");
    hall.end().await;
}

#[tokio::test]
async fn who_stops_a_turn_takes_its_question_back() {
    let model = model();
    let tree = Tree::new().file(".openclaw/openclaw.json", config(&model, asking()).to_string());
    let hall = Hall::open_again(tree, Duration::from_secs(60)).await;
    let client = hall.operator().await;
    let mut ears = Ears::of(&client);
    client.call("chat.send", said(r#"RUN {"command": "touch made"}"#, "asked")).await.expect("started");
    ears.until("the question", |event| event.name == "exec.approval.requested").await;
    client.call("chat.abort", json!({"sessionKey": "main"})).await.expect("stopped");
    let resolved = ears.until("its end", |event| event.name == "exec.approval.resolved").await;
    assert_eq!(resolved.last().expect("an event").payload["resolvedBy"], "withdrawn");
    hall.end().await;
}

#[tokio::test]
async fn the_end_of_a_command_in_the_background_begins_a_turn() {
    let model = model();
    let hall = hall(&model, json!({})).await;
    let client = hall.operator().await;
    let mut ears = Ears::of(&client);
    let run = r#"RUN {"command": "until [ -e go ]; do sleep 0.05; done; echo at last", "background": true}"#;
    client.call("chat.send", said(run, "asked")).await.expect("started");
    ears.until_chat("asked", "final").await;
    std::fs::write(hall.tree.path(".openclaw/workspace/go"), "").expect("written");
    let told = woken(&mut ears, "at last").await;
    assert!(told.contains("So: Exec completed ("), "{told}");
    hall.end().await;
}

#[tokio::test]
async fn who_does_not_want_to_be_woken_is_told_with_the_next_turn() {
    let model = model();
    let hall = hall(&model, json!({"tools": {"exec": {"notifyOnExit": false}}})).await;
    let client = hall.operator().await;
    let mut ears = Ears::of(&client);
    let run = r#"RUN {"command": "echo at last; touch over", "background": true}"#;
    client.call("chat.send", said(run, "asked-1")).await.expect("started");
    ears.until_chat("asked-1", "final").await;
    let over = hall.tree.path(".openclaw/workspace/over");
    crate::hall::until("it is over", || async { over.exists() }).await;
    let mut number = 2;
    loop {
        let run = format!("asked-{number}");
        client.call("chat.send", said("hello", &run)).await.expect("started");
        let heard = ears.until_chat(&run, "final").await;
        let runs = heard.iter().filter_map(|event| event.payload["runId"].as_str());
        assert!(runs.into_iter().all(|run| run.starts_with("asked")), "nobody else speaks");
        // It may have been told a moment before the job was seen to be over.
        if model
            .requests()
            .iter()
            .flat_map(RecordedRequest::heard)
            .any(|one| matches!(one, Heard::Result(text) if text.contains(":: at last")))
        {
            break;
        }
        number += 1;
    }
    hall.end().await;
}
