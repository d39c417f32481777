//! The end of a gateway: what becomes of the runs that go on?

use std::time::Duration;

use prowess_gateway::StartError;
use prowess_gateway::client::CallError;
use prowess_testkit::{Chunking, ModelServer, Tree, Turn};
use serde_json::{Value, json};

use crate::hall::{Ears, Hall, config, endless};
use crate::plain::ask;

const LEFT_BEHIND: &str = "the gateway stopped before this run was done; its session has what was finished until then";

fn said(text: &str, run: &str) -> Value {
    json!({"sessionKey": "main", "message": text, "idempotencyKey": run})
}

/// A model that never ends when it is asked to go on for ever.
fn model() -> ModelServer {
    ModelServer::answering(Chunking::Whole, |request| {
        let is_last = request.heard().last().is_some_and(|last| last.text().contains("for ever"));
        if is_last { endless() } else { Turn::text("done") }
    })
}

#[tokio::test]
async fn after_a_crash_every_run_has_ended_once() {
    let model = model();
    let hall = Hall::open(Tree::new(), &config(&model, json!({}))).await;
    let client = hall.operator().await;
    let mut ears = Ears::of(&client);
    let mut asked = client.ask("agent", &said("be quick", "done")).expect("a connection");
    asked.next().await.expect("accepted");
    let done = asked.next().await.expect("done");
    client.call("chat.send", said("go on for ever", "running")).await.expect("started");
    ears.until_it_speaks("running").await;
    client.call("chat.send", said("be next", "queued")).await.expect("started");

    let Hall { tree, running } = hall;
    drop(running);
    let hall = Hall::open_again(tree, Duration::from_secs(60)).await;
    let client = hall.operator().await;
    let waited = client.call("agent.wait", json!({"runId": "done", "timeoutMs": 0})).await.expect("an answer");
    assert_eq!(waited["status"], "ok");
    let again = client.call("agent", said("be quick", "done")).await.expect("the same answer");
    assert_eq!(again, done, "it is not run again");
    let waited = client.call("agent.wait", json!({"runId": "queued", "timeoutMs": 0})).await.expect("an answer");
    assert_eq!((&waited["status"], &waited["error"]), (&json!("error"), &json!(LEFT_BEHIND)));
    let Err(CallError::Refused { payload, .. }) = client.call("agent", said("be next", "queued")).await else {
        panic!("it failed, and is not run again")
    };
    assert_eq!(payload.expect("how far it came")["status"], "error");
    let mut ears = Ears::of(&client);
    client.call("chat.send", said("be quick", "after")).await.expect("started");
    ears.until_chat("after", "final").await;
    hall.end().await;
}

#[tokio::test]
async fn turns_come_to_their_end_before_the_gateway_does() {
    let (open, gate) = std::sync::mpsc::channel::<()>();
    let gate = std::sync::Mutex::new(gate);
    let model = ModelServer::answering(Chunking::Whole, move |_| {
        let _ = gate.lock().expect("no panic").recv();
        Turn::text("done")
    });
    let hall = Hall::open(Tree::new(), &config(&model, json!({}))).await;
    let client = hall.operator().await;
    let mut ears = Ears::of(&client);
    client.call("chat.send", said("go", "running")).await.expect("started");
    ears.until("the turn", |event| event.payload["data"]["phase"] == "start").await;
    let address = hall.running.address;
    assert_eq!(ask(address, "GET", "/readyz", &[], "").await.status, 200);
    let ending = tokio::spawn(hall.leave());
    // From when new turns are refused, the end has begun.
    crate::hall::until("it takes no more", || async {
        let refused = client.call("agent", json!({"sessionKey": "other", "message": "x", "idempotencyKey": "late", "timeout": 1}));
        matches!(refused.await, Err(CallError::Refused { error, .. }) if error["message"].as_str().is_some_and(|why| why.contains("is shutting down")))
    })
    .await;
    assert_eq!(ask(address, "GET", "/readyz", &[], "").await.status, 503, "others should be asked");
    assert_eq!(ask(address, "GET", "/healthz", &[], "").await.status, 200, "but it lives");
    drop(open);
    let tree = ending.await.expect("it ended");

    let hall = Hall::open_again(tree, Duration::from_secs(60)).await;
    let client = hall.operator().await;
    let waited = client.call("agent.wait", json!({"runId": "running", "timeoutMs": 0})).await.expect("an answer");
    assert_eq!(waited["status"], "ok");
    let history = client.call("chat.history", json!({"sessionKey": "main"})).await.expect("a history");
    assert_eq!(history["messages"][1]["content"][0]["text"], "done");
    hall.end().await;
}

#[tokio::test]
async fn a_turn_that_takes_too_long_is_parked() {
    let model = model();
    let tree = Tree::new().file(".openclaw/openclaw.json", config(&model, json!({})).to_string());
    let hall = Hall::open_again(tree, Duration::from_millis(50)).await;
    let client = hall.operator().await;
    let mut ears = Ears::of(&client);
    let mut asked = client.ask("agent", &said("go on for ever", "long")).expect("a connection");
    asked.next().await.expect("accepted");
    client.call("chat.send", said("be next", "queued")).await.expect("started");
    ears.until_it_speaks("long").await;
    let tree = hall.leave().await;
    match asked.next().await {
        Err(CallError::Refused { error, .. }) => assert_eq!(error["message"], LEFT_BEHIND),
        Err(_) => {}
        Ok(answer) => panic!("it was interrupted: {answer}"),
    }

    let hall = Hall::open_again(tree, Duration::from_secs(60)).await;
    let client = hall.operator().await;
    for run in ["long", "queued"] {
        let waited = client.call("agent.wait", json!({"runId": run, "timeoutMs": 0})).await.expect("an answer");
        assert_eq!((&waited["status"], &waited["error"]), (&json!("error"), &json!(LEFT_BEHIND)), "{run}");
    }
    let history = client.call("chat.history", json!({"sessionKey": "main"})).await.expect("a history");
    let kept = history["messages"][1]["content"][0]["text"].as_str().unwrap_or_default();
    assert!(kept.starts_with("word word"), "what was said is on disk: {history}");
    hall.end().await;
}

#[tokio::test]
async fn two_gateways_do_not_share_a_home() {
    let model = ModelServer::script([]);
    let hall = Hall::open(Tree::new(), &config(&model, json!({}))).await;
    let options = prowess_gateway::Options { port: Some(0), ..prowess_gateway::Options::default() };
    let second = prowess_gateway::Gateway::start(crate::room::ground(&hall.tree), options).await;
    assert!(matches!(second, Err(StartError::Journal(_))));
    hall.end().await;
}
