//! Numbers and traces.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::routing::post;
use prowess_testkit::Tree;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::room::{Room, TOKEN};

/// The answer to `GET /metrics`, as text.
async fn metrics(room: &Room, headers: &str) -> String {
    let mut socket = TcpStream::connect(room.running.address).await.expect("a connection");
    let request = format!("GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n");
    socket.write_all(request.as_bytes()).await.expect("asked");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.expect("an answer");
    answer
}

fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}\r\n")
}

#[tokio::test]
async fn requests_and_connections_are_counted() {
    let room = Room::open(Tree::new()).await;
    let client = room.operator().await;
    client.call("health", json!({})).await.expect("an answer");
    client.call("no.such", json!({})).await.expect_err("refused");
    let page = metrics(&room, &bearer(TOKEN)).await;
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("text/plain; version=0.0.4"), "{page}");
    for line in [
        "prowess_requests_total{method=\"health\",outcome=\"ok\"} 1",
        "prowess_requests_total{method=\"other\",outcome=\"refused\"} 1",
        "prowess_request_seconds_count{method=\"health\"} 1",
        "prowess_connections{role=\"operator\"} 1",
    ] {
        assert!(page.contains(line), "{line}\n{page}");
    }
    room.running.end().await;
}

#[tokio::test]
async fn numbers_are_for_who_knows_the_token() {
    let room = Room::open(Tree::new()).await;
    for headers in [String::new(), bearer("wrong"), bearer("")] {
        assert!(metrics(&room, &headers).await.starts_with("HTTP/1.1 401"), "{headers}");
    }
    room.running.end().await;
}

#[tokio::test]
async fn numbers_are_for_this_machine_where_the_operator_says_so() {
    let open = r#"{gateway: {http: {endpoints: {metrics: {auth: "loopback"}}}}}"#;
    let room = Room::open(Tree::new().file(".openclaw/openclaw.json", open)).await;
    assert!(metrics(&room, "").await.starts_with("HTTP/1.1 200"));
    // Behind a proxy everybody is on this machine.
    assert!(metrics(&room, "X-Forwarded-For: 192.0.2.1\r\n").await.starts_with("HTTP/1.1 401"));
    room.running.end().await;
    let off = "{gateway: {http: {endpoints: {metrics: {enabled: false}}}}}";
    let room = Room::open(Tree::new().file(".openclaw/openclaw.json", off)).await;
    assert!(metrics(&room, &bearer(TOKEN)).await.starts_with("HTTP/1.1 404"));
    room.running.end().await;
}

type Heard = Arc<Mutex<Vec<(HeaderMap, Value)>>>;

async fn hear(State(heard): State<Heard>, headers: HeaderMap, body: String) -> &'static str {
    let body = serde_json::from_str(&body).expect("JSON");
    heard.lock().expect("a lock").push((headers, body));
    "{}"
}

#[tokio::test]
async fn a_request_becomes_a_span_at_the_collector() {
    let socket = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = socket.local_addr().expect("an address");
    let heard = Heard::default();
    let router = Router::new().route("/v1/traces", post(hear)).with_state(Arc::clone(&heard));
    let collector = tokio::spawn(async move { axum::serve(socket, router).await });
    let config = json!({"diagnostics": {"enabled": true, "otel": {
        "enabled": true, "endpoint": format!("http://{address}"), "serviceName": "test", "flushIntervalMs": 1,
        "headers": {"X-Tenant": "me"},
    }}});
    let room = Room::open(Tree::new().file(".openclaw/openclaw.json", config.to_string())).await;
    room.operator().await.call("health", json!({})).await.expect("an answer");
    // What still waits is sent before the gateway has ended.
    room.running.end().await;
    collector.abort();
    let heard = heard.lock().expect("a lock");
    let (headers, body) = heard.first().expect("spans");
    assert_eq!(headers["x-tenant"], "me");
    let resource = &body["resourceSpans"][0];
    assert_eq!(resource["resource"]["attributes"][0]["value"]["stringValue"], "test");
    let span = &resource["scopeSpans"][0]["spans"][0];
    assert_eq!(span["name"], "rpc");
    let attributes = span["attributes"].as_array().expect("attributes");
    let method = json!({"key": "rpc.method", "value": {"stringValue": "health"}});
    assert!(attributes.contains(&method), "{span}");
}

#[tokio::test]
async fn a_collector_that_is_away_holds_up_nothing() {
    let config = json!({"diagnostics": {"enabled": true, "otel": {
        "enabled": true, "endpoint": "http://127.0.0.1:1", "flushIntervalMs": 1,
    }}});
    let room = Room::open(Tree::new().file(".openclaw/openclaw.json", config.to_string())).await;
    let client = room.operator().await;
    for _ in 0..50 {
        client.call("health", json!({})).await.expect("an answer");
    }
    room.running.end().await;
}
