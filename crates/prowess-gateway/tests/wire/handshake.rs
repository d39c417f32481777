//! Recorded handshakes, replayed.

use prowess_config::Secret;
use prowess_gateway::Options;
use prowess_testkit::Tree;
use serde_json::Value;

use crate::room::Room;
use crate::wire::line::{Heard, Line};

const GOLDEN: &str = include_str!("../golden/handshake.json");

fn golden() -> Value {
    serde_json::from_str(GOLDEN).expect("JSON")
}

async fn room() -> Room {
    let options = Options { token: Some(Secret::new("t0k")), ..Options::default() };
    Room::open_with(Tree::new(), options).await
}

/// Compares what was heard with what was recorded; what a recorded message begins with is enough, because hints are ours.
fn is_like(heard: &Value, recorded: &Value) -> bool {
    let message = |frame: &Value| frame["error"]["message"].as_str().unwrap_or_default().to_owned();
    let mut same = heard.clone();
    same["error"]["message"] = recorded["error"]["message"].clone();
    same == *recorded && message(heard).starts_with(&message(recorded))
}

#[tokio::test]
async fn whoever_was_sent_away_is_sent_away_with_the_same_words() {
    let room = room().await;
    for case in golden()["refused"].as_array().expect("cases") {
        let mut line = Line::open(&room).await;
        line.nonce().await;
        line.say(case["say"].as_str().expect("a text")).await;
        if !case["answer"].is_null() {
            let heard = line.answer().await;
            assert!(is_like(&heard, &case["answer"]), "{}: {heard}", case["name"]);
        }
        let Heard::Closed(code, reason) = line.hear().await else { panic!("{} is not closed", case["name"]) };
        assert_eq!(case["close"]["code"], code, "{}", case["name"]);
        assert!(reason.starts_with(case["close"]["reason"].as_str().expect("a reason")), "{}: {reason}", case["name"]);
    }
    room.running.end().await;
}

#[tokio::test]
async fn whoever_is_let_in_is_told_what_was_recorded() {
    let room = room().await;
    let mut line = Line::open(&room).await;
    line.nonce().await;
    line.say(golden()["connect"].to_string()).await;
    let hello = line.answer().await;
    assert_eq!(shape(&hello["payload"]), golden()["hello"]);
    let payload = &hello["payload"];
    assert_eq!(payload["policy"]["maxPayload"], 26_214_400);
    assert_eq!(payload["policy"]["maxBufferedBytes"], 52_428_800);
    assert_eq!(payload["policy"]["tickIntervalMs"], 30_000);
    assert_eq!(payload["snapshot"]["sessionDefaults"]["mainSessionKey"], "agent:main:main");
    for case in golden()["after"].as_array().expect("cases") {
        line.say(case["say"].as_str().expect("a text")).await;
        assert_eq!(line.answer().await, case["answer"]);
    }
    room.running.end().await;
}

/// Kinds instead of values; of a list only the first, and of our health nothing, because it comes later.
fn shape(value: &Value) -> Value {
    match value {
        Value::Null => "null".into(),
        Value::Bool(_) => "bool".into(),
        Value::Number(_) => "number".into(),
        Value::String(_) => "text".into(),
        Value::Array(items) => items.iter().take(1).map(shape).collect(),
        Value::Object(fields) => {
            let shaped = fields.iter().map(|(name, value)| {
                let value = if name == "health" && value.is_object() {
                    Value::Object(serde_json::Map::new())
                } else {
                    shape(value)
                };
                (name.clone(), value)
            });
            Value::Object(shaped.collect())
        }
    }
}
