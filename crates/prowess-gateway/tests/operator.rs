//! What does an operator's program hear of a gateway, and what can it change?

#[path = "operator/config.rs"]
mod config;
#[path = "operator/numbers.rs"]
mod numbers;
#[path = "operator/secrets.rs"]
mod secrets;
#[path = "operator/state.rs"]
mod state;

use crate::room;
use prowess_gateway::client::{CallError, Client, Introduction};
use room::{Room, TOKEN};
use serde_json::{Value, json};

/// What a real gateway answers.
fn golden() -> Value {
    serde_json::from_str(include_str!("golden/operator.o3.json")).expect("golden facts")
}

/// Whether `answer` has all the keys that the peer's has.
#[track_caller]
fn has_keys(answer: &Value, what: &str) {
    let golden = golden();
    let keys = golden["keys"][what].as_array().unwrap_or_else(|| panic!("no keys for {what}"));
    for key in keys.iter().filter_map(Value::as_str) {
        assert!(answer.get(key).is_some(), "{what} has no {key}: {answer}");
    }
}

/// Somebody who may only look.
async fn reader(room: &Room) -> Client {
    let mut introduction = Introduction::operator(TOKEN);
    introduction.params["scopes"] = json!(["operator.read"]);
    Client::connect(&room.url(), &introduction).await.expect("let in")
}

/// What a refusal says.
#[track_caller]
fn message(answer: Result<Value, CallError>) -> String {
    answer.expect_err("refused").to_string()
}
