//! Who is not let in, whatever they know?

use std::time::{Duration, Instant};

use prowess_gateway::client::{Client, Introduction};
use prowess_gateway::{Limits, Options};
use prowess_testkit::Tree;
use serde_json::{Value, json};

use crate::room::{Room, TOKEN};
use crate::wire::line::{Heard, Line, PATIENCE, connect};

/// Tries to come in from a page, and returns the error of the answer.
async fn from_page(room: &Room, headers: &[(&'static str, &str)]) -> Value {
    let mut line = Line::open_from(room, headers).await;
    line.nonce().await;
    line.ask("connect", connect(TOKEN)).await["error"].clone()
}

#[tokio::test]
async fn a_strange_page_is_refused_even_with_the_right_token() {
    let room = Room::open(Tree::new()).await;
    let own = format!("http://{}", room.running.address);
    for (name, origin, is_welcome) in [
        ("its own page", own.as_str(), true),
        ("a page of somebody else on this machine", "http://localhost:5173", false),
        ("another page", "https://evil.example", false),
        ("a file", "null", false),
    ] {
        let error = from_page(&room, &[("origin", origin)]).await;
        assert_eq!(error.is_null(), is_welcome, "{name}: {error}");
    }
    // A name that somebody made to lead here.
    let rebound = from_page(&room, &[("host", "evil.example"), ("origin", "http://evil.example")]).await;
    assert!(rebound["message"].as_str().is_some_and(|message| message.starts_with("origin not allowed")), "{rebound}");
    room.running.end().await;
}

#[tokio::test]
async fn a_listed_page_is_let_in() {
    let config = r#"{ gateway: { controlUi: { allowedOrigins: ["https://ui.example"] } } }"#;
    let room = Room::open(Tree::new().file(".openclaw/openclaw.json", config)).await;
    assert!(from_page(&room, &[("origin", "https://ui.example")]).await.is_null());
    assert!(!from_page(&room, &[("origin", "https://ui.example.evil")]).await.is_null());
    room.running.end().await;
}

#[tokio::test]
async fn a_token_is_no_password() {
    let config = "{ gateway: { auth: { mode: 'password', password: 'p' } } }";
    let tree = Tree::new().file(".openclaw/openclaw.json", config);
    let room = Room::open(tree).await;
    let mut line = Line::open(&room).await;
    line.nonce().await;
    let refused = line.ask("connect", connect(TOKEN)).await;
    assert_eq!(refused["error"]["details"]["code"], "AUTH_PASSWORD_MISSING");
    room.running.end().await;
}

#[tokio::test]
async fn where_nothing_is_asked_for_operators_on_this_machine_are_let_in_and_nobody_else() {
    let tree = Tree::new().file(".openclaw/openclaw.json", "{ gateway: { auth: { mode: 'none' } } }");
    let room = Room::open(tree).await;
    let operator = Client::connect(&room.url(), &Introduction::operator("")).await.expect("let in");
    assert!(operator.call("device.pair.list", json!({})).await.is_ok(), "it may do what it asked for");
    let own = format!("http://{}", room.running.address);
    assert!(from_page(&room, &[("origin", &own)]).await.is_null(), "the page may");
    let strange = from_page(&room, &[("origin", "https://evil.example")]).await;
    assert!(strange["message"].as_str().is_some_and(|message| message.starts_with("origin not allowed")), "{strange}");
    for elsewhere in [("x-forwarded-for", "127.0.0.1"), ("host", "gateway.example")] {
        let refused = from_page(&room, &[elsewhere]).await;
        assert_eq!(refused["details"]["code"], "DEVICE_IDENTITY_REQUIRED", "{elsewhere:?}");
    }
    room.running.end().await;
}

#[tokio::test]
async fn a_node_may_not_do_what_operators_do_and_is_sent_away_if_it_insists() {
    let room = Room::open(Tree::new()).await;
    let node = crate::wire::devices::node(&room).await;
    for _ in 0..10 {
        let error = node.call("system-presence", json!({})).await.expect_err("not for nodes");
        assert_eq!(error.to_string(), "unauthorized role: node");
    }
    assert!(node.call("skills.bins", json!({})).await.is_ok(), "that is for nodes");
    for _ in 0..11 {
        // The last answer may be overtaken by the end.
        let _ = node.call("system-presence", json!({})).await;
    }
    assert!(node.ended().await.contains("repeated unauthorized calls"));
    room.running.end().await;
}

#[tokio::test]
async fn an_operator_without_a_scope_is_told_which_one_is_missing() {
    let room = Room::open(Tree::new()).await;
    let reader = Introduction::operator(TOKEN).with_scopes(&["operator.read"]);
    let reader = Client::connect(&room.url(), &reader).await.expect("let in");
    assert!(reader.call("system-presence", json!({})).await.is_ok());
    let error = reader.call("device.pair.list", json!({})).await.expect_err("no scope");
    assert_eq!(error.to_string(), "missing scope: operator.pairing");
    room.running.end().await;
}

#[tokio::test]
async fn parameters_of_another_shape_are_refused() {
    let room = Room::open(Tree::new()).await;
    let operator = room.operator().await;
    let error = operator.call("device.pair.approve", json!({"x": 1})).await.expect_err("no such shape");
    assert_eq!(
        error.to_string(),
        "invalid device.pair.approve params: must have required property 'requestId'; at root: unexpected property 'x'"
    );
    room.running.end().await;
}

#[tokio::test]
async fn only_so_many_connections_are_open_at_once() {
    let limits = Limits { connections: 2, ..Limits::default() };
    let options = Options { limits, ..Options::default() };
    let room = Room::open_with(Tree::new(), options).await;
    let mut first = Line::open(&room).await;
    let mut second = Line::open(&room).await;
    first.nonce().await;
    second.nonce().await;
    let third = tokio_tungstenite::connect_async(room.url()).await;
    assert!(third.is_err(), "there is no place for a third");
    drop(first);
    until(|| async { tokio_tungstenite::connect_async(room.url()).await.is_ok() }).await;
    drop(second);
    room.running.end().await;
}

#[tokio::test]
async fn who_says_nothing_is_sent_away() {
    let limits = Limits { handshake: Duration::from_secs(3), ..Limits::default() };
    let options = Options { limits, ..Options::default() };
    let room = Room::open_with(Tree::new(), options).await;
    let mut line = Line::open(&room).await;
    assert_eq!(line.last_word().await, Heard::Closed(1000, String::new()));
    room.running.end().await;
}

/// Waits for what others do.
async fn until<F: Future<Output = bool>>(mut is: impl FnMut() -> F) {
    let start = Instant::now();
    while !is().await {
        assert!(start.elapsed() < PATIENCE, "waited in vain");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
