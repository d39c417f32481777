//! The configuration, seen and changed from afar.

use prowess_gateway::client::{CallError, Client};
use prowess_testkit::Tree;
use serde_json::{Value, json};

use super::room::Room;
use super::{golden, has_keys, message, reader};

const FILE: &str = ".openclaw/openclaw.json";

const TEXT: &str = r#"{
  // who may come in
  gateway: { auth: { mode: "token", token: "t0k-secret" }, port: 4711 },
  skills: {
    entries: { weather: { apiKey: "k-secret-123", env: { CITY: "Rome" } } }, // the weather
  },
  models: { providers: { local: { apiKey: "${MODEL_KEY}", baseUrl: "http://127.0.0.1:1/v1" } } },
}
"#;

async fn room() -> Room {
    Room::open(Tree::new().file(FILE, TEXT)).await
}

fn text(room: &Room) -> String {
    std::fs::read_to_string(room.tree.path(FILE)).expect("a configuration")
}

async fn get(client: &Client) -> Value {
    client.call("config.get", json!({})).await.expect("an answer")
}

async fn write(client: &Client, method: &str, raw: &str) -> Result<Value, CallError> {
    let base = get(client).await["hash"].clone();
    client.call(method, json!({"raw": raw, "baseHash": base})).await
}

#[tokio::test]
async fn it_is_shown_with_marks_for_secrets() {
    let room = room().await;
    let shown = get(&room.operator().await).await;
    has_keys(&shown, "config.get");
    assert_eq!((&shown["exists"], &shown["valid"]), (&json!(true), &json!(true)));
    let raw = shown["raw"].as_str().expect("text");
    for kept in ["// who may come in", "// the weather", "port: 4711", "${MODEL_KEY}"] {
        assert!(raw.contains(kept), "{kept}: {raw}");
    }
    for tree in ["parsed", "config", "resolved"] {
        assert_eq!(shown[tree]["gateway"]["auth"]["token"], "__OPENCLAW_REDACTED__", "{tree}");
        assert_eq!(shown[tree]["skills"]["entries"]["weather"]["env"]["CITY"], "__OPENCLAW_REDACTED__", "{tree}");
    }
    room.running.end().await;
}

#[tokio::test]
async fn what_was_shown_can_be_sent_back() {
    let room = room().await;
    let client = room.operator().await;
    let shown = get(&client).await;
    let raws =
        [shown["raw"].as_str().expect("text").to_owned(), shown["parsed"].to_string(), shown["config"].to_string()];
    for raw in raws {
        let answer = write(&client, "config.set", &raw).await.expect("written");
        has_keys(&answer, "config.set");
        assert_eq!(text(&room), TEXT);
    }
    room.running.end().await;
}

#[tokio::test]
async fn a_patch_changes_what_it_names_and_keeps_comments() {
    let room = room().await;
    let client = room.operator().await;
    let raw = "{ skills: { entries: { weather: { enabled: false, env: null } } }, gateway: { port: 4712 } }";
    let answer = write(&client, "config.patch", raw).await.expect("patched");
    has_keys(&answer, "config.patch");
    assert_eq!(answer["restart"]["waiting"], json!(["gateway.port"]));
    assert_eq!(answer["config"]["skills"]["entries"]["weather"]["apiKey"], "__OPENCLAW_REDACTED__");
    let text = text(&room);
    for kept in ["// who may come in", "k-secret-123", "t0k-secret", "${MODEL_KEY}", "4712"] {
        assert!(text.contains(kept), "{kept}: {text}");
    }
    assert!(!text.contains("CITY") && !text.contains("4711"), "{text}");
    room.running.end().await;
}

#[tokio::test]
async fn a_secret_can_be_replaced_and_is_not_echoed() {
    let room = room().await;
    let client = room.operator().await;
    let raw = r#"{ skills: { entries: { weather: { apiKey: "brand-new-key" } } } }"#;
    let answer = write(&client, "config.patch", raw).await.expect("patched");
    assert!(!answer.to_string().contains("brand-new-key"), "{answer}");
    assert!(text(&room).contains("brand-new-key"));
    room.running.end().await;
}

#[tokio::test]
async fn what_is_broken_is_refused_with_its_reason_and_changes_nothing() {
    let room = room().await;
    let client = room.operator().await;
    let not_json = message(write(&client, "config.set", "{").await);
    assert!(not_json.starts_with("raw:1:1: what opens here is never closed"), "{not_json}");
    let error = write(&client, "config.set", r#"{skills: {load: {watch: "perhaps"}}}"#).await.expect_err("refused");
    let CallError::Refused { error, .. } = error else { panic!("{error}") };
    assert_eq!(error["message"], "invalid config");
    assert_eq!(error["details"]["issues"][0]["path"], "skills.load.watch");
    let mark = r#"{skills: {entries: {other: {apiKey: "__OPENCLAW_REDACTED__"}}}}"#;
    assert!(message(write(&client, "config.set", mark).await).contains("skills.entries.other.apiKey"));
    assert_eq!(message(write(&client, "config.patch", "[]").await), "config.patch raw must be an object");
    assert_eq!(text(&room), TEXT);
    room.running.end().await;
}

#[tokio::test]
async fn refusals_are_those_of_openclaw() {
    let room = room().await;
    let client = room.operator().await;
    for case in golden()["refused"].as_array().expect("cases") {
        let method = case["method"].as_str().expect("a method");
        assert_eq!(message(client.call(method, case["params"].clone()).await), case["message"], "{case}");
    }
    room.running.end().await;
}

#[tokio::test]
async fn who_may_only_look_changes_nothing() {
    let room = room().await;
    let client = reader(&room).await;
    let hash = get(&client).await["hash"].clone();
    for method in ["config.set", "config.patch", "config.apply", "config.schema"] {
        let refused = message(client.call(method, json!({"raw": "{}", "baseHash": hash})).await);
        assert_eq!(refused, "missing scope: operator.admin", "{method}");
    }
    room.running.end().await;
}

#[tokio::test]
async fn a_fourth_patch_within_a_minute_has_to_wait() {
    let room = room().await;
    let client = room.operator().await;
    for port in 1..=3 {
        write(&client, "config.patch", &format!("{{gateway: {{port: {port}}}}}")).await.expect("patched");
    }
    let error = write(&client, "config.patch", "{gateway: {port: 4}}").await.expect_err("refused");
    let CallError::Refused { error, .. } = error else { panic!("{error}") };
    assert_eq!((&error["code"], &error["retryable"]), (&json!("UNAVAILABLE"), &json!(true)));
    assert!(text(&room).contains("port: 3"));
    room.running.end().await;
}

#[tokio::test]
async fn a_file_that_is_not_there_is_made_and_one_that_is_broken_is_replaced() {
    let room = Room::open(Tree::new()).await;
    let client = room.operator().await;
    let shown = get(&client).await;
    assert_eq!((&shown["exists"], &shown["raw"], &shown["valid"]), (&json!(false), &json!(null), &json!(true)));
    client.call("config.set", json!({"raw": "{ ui: {} }"})).await.expect("made");
    assert_eq!(text(&room), "{ ui: {} }");
    std::fs::write(room.tree.path(FILE), "{ token: 'abc-secret-9', ").expect("broken");
    let shown = get(&client).await;
    assert_eq!((&shown["valid"], &shown["raw"], &shown["config"]), (&json!(false), &json!(null), &json!({})));
    assert!(!shown.to_string().contains("abc-secret-9"), "{shown}");
    let patched = write(&client, "config.patch", "{}").await;
    assert_eq!(message(patched), "invalid config; fix before patching");
    write(&client, "config.set", "{ ui: {} } // mended").await.expect("mended");
    assert_eq!(text(&room), "{ ui: {} } // mended");
    room.running.end().await;
}

#[tokio::test]
async fn the_schema_says_what_can_be_set() {
    let room = room().await;
    let schema = room.operator().await.call("config.schema", json!({})).await.expect("a schema");
    has_keys(&schema, "config.schema");
    assert_eq!(schema["schema"]["properties"]["skills"]["type"], "object");
    room.running.end().await;
}
