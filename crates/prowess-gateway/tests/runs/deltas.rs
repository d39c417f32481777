//! Order and deltas: in which order do messages run, and what does a client hear that follows sessions?

use prowess_gateway::client::{Client, Event, Introduction};
use prowess_testkit::{Chunking, Heard, ModelServer, Tree, Turn};
use serde_json::{Value, json};

use crate::hall::{Ears, Hall, config, endless, words};
use crate::room::TOKEN;

/// How many times four messages are sent at once.
const BATCHES: usize = 24;

fn said(key: &str, text: &str, run: &str) -> Value {
    json!({"sessionKey": key, "message": text, "idempotencyKey": run})
}

/// A model that repeats the last message, many times and in small pieces.
fn parrot() -> ModelServer {
    ModelServer::answering(Chunking::Bytes(700), |request| {
        let heard = request.heard();
        let last = heard.iter().rev().find(|one| matches!(one, Heard::Person(_))).map(Heard::text).unwrap_or_default();
        Turn::text(&format!("{last} ").repeat(400))
    })
}

async fn follower(hall: &Hall) -> Client {
    hall.visitor(&Introduction::operator(TOKEN).with_deltas()).await
}

/// The text of a run as a client that follows its session puts it together.
fn put_together(events: &[Event], run: &str) -> String {
    let own = events.iter().filter(|event| event.name == "agent" && event.payload["runId"] == run);
    own.filter(|event| event.payload["stream"] == "assistant").fold(String::new(), |text, event| {
        let data = &event.payload["data"];
        match data["text"].as_str() {
            Some(whole) => whole.to_owned(),
            None => text + data["delta"].as_str().expect("a piece"),
        }
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_of_one_client_run_in_the_order_they_were_sent() {
    let model = ModelServer::answering(Chunking::Whole, |_| Turn::text("ok"));
    let hall = Hall::open(Tree::new(), &config(&model, json!({}))).await;
    let client = hall.operator().await;
    for batch in 0..BATCHES {
        let (key, run) = (format!("s{batch}"), |number: usize| format!("{batch}-{number}"));
        let sent: Vec<_> = (0..4)
            .map(|number| client.ask("chat.send", &said(&key, &run(number), &run(number))).expect("a connection"))
            .collect();
        for mut answers in sent {
            assert_eq!(answers.next().await.expect("an answer")["status"], "started");
        }
    }
    for batch in 0..BATCHES {
        let waited = client.call("agent.wait", json!({"runId": format!("{batch}-3"), "timeoutMs": 120_000})).await;
        assert_eq!(waited.expect("an answer")["status"], "ok");
    }
    // The last message of each request is the one that it answers.
    let requests = model.requests();
    let ran: Vec<String> =
        requests.iter().map(|request| request.heard().last().expect("one").text().to_owned()).collect();
    for batch in 0..BATCHES {
        let own: Vec<String> = ran.iter().filter(|text| text.starts_with(&format!("{batch}-"))).cloned().collect();
        assert_eq!(own, (0..4).map(|number| format!("{batch}-{number}")).collect::<Vec<_>>());
    }
    hall.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_hears_each_piece_once_and_only_of_its_sessions() {
    let model = parrot();
    let hall = Hall::open(Tree::new(), &config(&model, json!({}))).await;
    let (whole, own, other) = (hall.operator().await, follower(&hall).await, follower(&hall).await);
    let (mut whole_ears, mut own_ears, mut other_ears) = (Ears::of(&whole), Ears::of(&own), Ears::of(&other));
    let followed = other.call("sessions.subscribe", json!({"keys": ["theirs", "mine"]})).await.expect("taken");
    assert_eq!(followed, json!({"ok": true, "keys": ["agent:main:theirs", "agent:main:mine"]}));
    other.call("sessions.unsubscribe", json!({"keys": ["mine"]})).await.expect("taken");
    own.call("chat.send", said("mine", "mine", "one")).await.expect("who sends follows");
    own.call("chat.send", said("mine", "again", "two")).await.expect("started");
    let heard = own_ears.until_chat("two", "final").await;
    let finals = whole_ears.until_chat("two", "final").await;
    let text = words(finals.iter().find(|event| event.payload["state"] == "final").expect("an end")).to_owned();
    assert_eq!(put_together(&heard, "one"), text);
    assert!(heard.iter().all(|event| event.payload["message"].is_null() && event.seq.is_none()), "{heard:?}");
    let of_two: Vec<&Event> = heard.iter().filter(|event| event.payload["runId"] == "two").collect();
    let bytes: usize = of_two.iter().map(|event| event.payload.to_string().len() + 60).sum();
    let told = put_together(&heard, "two").len();
    assert!(2 * bytes <= 3 * told, "{bytes} bytes in {} frames for a text of {told}", of_two.len());

    whole.call("chat.send", said("theirs", "theirs", "three")).await.expect("started");
    let heard = other_ears.until_chat("three", "final").await;
    let runs = heard.iter().filter_map(|event| event.payload["runId"].as_str());
    assert!(runs.into_iter().all(|run| run == "three"), "{heard:?}");
    assert!(put_together(&heard, "three").starts_with("theirs theirs"));
    assert!(own_ears.rest().iter().all(|event| event.payload["runId"] != "three"));
    let refused = whole.call("sessions.subscribe", json!({"keys": ["mine"]})).await.expect_err("it hears of all");
    assert!(refused.to_string().contains("event-deltas"), "{refused}");
    hall.end().await;
}

#[tokio::test]
async fn who_follows_a_session_later_gets_what_was_said_so_far() {
    let model = ModelServer::answering(Chunking::Whole, |_| endless());
    let hall = Hall::open(Tree::new(), &config(&model, json!({}))).await;
    let speaker = hall.operator().await;
    let mut ears = Ears::of(&speaker);
    speaker.call("chat.send", said("main", "go", "long")).await.expect("started");
    let heard = ears.until("words", |event| event.payload["stream"] == "assistant").await;
    let so_far = heard.last().expect("words").payload["data"]["text"].as_str().expect("a text").to_owned();
    for keys in [json!(["main"]), json!(["*"])] {
        let late = follower(&hall).await;
        let mut late_ears = Ears::of(&late);
        late.call("sessions.subscribe", json!({"keys": keys})).await.expect("taken");
        let heard = late_ears.until("words", |event| event.payload["stream"] == "assistant").await;
        let data = &heard.last().expect("words").payload["data"];
        assert!(data["text"].as_str().is_some_and(|text| text.starts_with(&so_far)), "{data}");
    }
    speaker.call("chat.abort", json!({"sessionKey": "main"})).await.expect("aborted");
    hall.end().await;
}
