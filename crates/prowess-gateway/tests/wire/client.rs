//! The client: what does it make of gateways that are slow, silent or gone?

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use prowess_gateway::client::{CallError, Client, Introduction};
use prowess_testkit::Tree;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use crate::room::Room;
use crate::wire::line::PATIENCE;

/// A gateway that lets everybody in and then does what `then` says.
async fn gateway<F>(tick: u64, then: impl FnOnce(WebSocketStream<TcpStream>) -> F + Send + 'static) -> String
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address: SocketAddr = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.expect("a client");
        let mut socket = tokio_tungstenite::accept_async(stream).await.expect("a socket");
        let challenge = json!({"type": "event", "event": "connect.challenge", "payload": {"nonce": "n", "ts": 1}});
        socket.send(Message::text(challenge.to_string())).await.expect("sent");
        let connect: Value = match socket.next().await {
            Some(Ok(Message::Text(text))) => serde_json::from_str(&text).expect("JSON"),
            other => panic!("no connect but {other:?}"),
        };
        let hello = json!({"type": "hello-ok", "policy": {"tickIntervalMs": tick}});
        let answer = json!({"type": "res", "id": connect["id"], "ok": true, "payload": hello});
        socket.send(Message::text(answer.to_string())).await.expect("sent");
        then(socket).await;
    });
    format!("ws://{address}")
}

async fn connect(url: &str) -> Client {
    Client::connect(url, &Introduction::operator("t")).await.expect("let in")
}

/// Listens and says nothing.
async fn silent(mut socket: WebSocketStream<TcpStream>) {
    while socket.next().await.is_some() {}
}

#[tokio::test]
async fn an_answer_that_does_not_come_in_time_is_an_error() {
    let client = connect(&gateway(60_000, silent).await).await;
    let late = client.call_within("health", json!({}), Duration::from_millis(20)).await.expect_err("no answer");
    assert!(matches!(late, CallError::Late { .. }), "{late}");
}

#[tokio::test]
async fn a_gateway_without_a_sign_of_life_is_left() {
    let client = connect(&gateway(20, silent).await).await;
    let why = timeout(PATIENCE, client.ended()).await.expect("in time");
    assert!(why.contains("stopped responding"), "{why}");
    let gone = client.call("health", json!({})).await.expect_err("it is gone");
    assert!(gone.to_string().contains("stopped responding"), "{gone}");
}

#[tokio::test]
async fn why_a_gateway_hung_up_is_told_to_those_who_wait() {
    let url = gateway(60_000, |mut socket| async move {
        let _ = socket.next().await;
        let frame = tokio_tungstenite::tungstenite::protocol::CloseFrame {
            code: 1012.into(),
            reason: "service restart".into(),
        };
        socket.close(Some(frame)).await.expect("closed");
        silent(socket).await;
    });
    let client = connect(&url.await).await;
    let gone = client.call("health", json!({})).await.expect_err("it closed the connection");
    assert!(gone.to_string().contains("(1012): service restart"), "{gone}");
}

#[tokio::test]
async fn what_is_told_right_after_the_welcome_is_heard() {
    let url = gateway(60_000, |mut socket| async move {
        let event = json!({"type": "event", "event": "node.invoke.request", "payload": {"id": "1"}});
        socket.send(Message::text(event.to_string())).await.expect("sent");
        socket.close(None).await.expect("closed");
        silent(socket).await;
    });
    let (client, mut events) = Client::join(&url.await, &Introduction::operator("t")).await.expect("let in");
    timeout(PATIENCE, client.ended()).await.expect("in time");
    assert_eq!(events.try_recv().expect("an event").name, "node.invoke.request");
}

#[tokio::test]
async fn the_final_answer_is_waited_for() {
    let url = gateway(60_000, |mut socket| async move {
        let Some(Ok(Message::Text(text))) = socket.next().await else { panic!("no request") };
        let id = serde_json::from_str::<Value>(&text).expect("JSON")["id"].clone();
        for status in ["accepted", "ok"] {
            let answer = json!({"type": "res", "id": id, "ok": true, "payload": {"status": status}});
            socket.send(Message::text(answer.to_string())).await.expect("sent");
        }
        silent(socket).await;
    });
    let client = connect(&url.await).await;
    let answer = client.finish("agent", json!({}), PATIENCE).await.expect("an answer");
    assert_eq!(answer["status"], "ok");
}

#[tokio::test]
async fn a_refusal_says_why() {
    let room = Room::open(Tree::new()).await;
    let refused = Client::connect(&room.url(), &Introduction::operator("wrong")).await.expect_err("a wrong token");
    assert_eq!((refused.code(), &refused.details()["code"]), (Some("INVALID_REQUEST"), &json!("AUTH_TOKEN_MISMATCH")));
    assert!(!format!("{refused:?} {:?}", Introduction::operator("s3cret")).contains("s3cret"));
    room.running.end().await;
}
