//! What is answered to plain HTTP?

use prowess_testkit::Tree;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::room::Room;
use crate::wire::line::PATIENCE;

/// The head and the body of the answer.
async fn ask(room: &Room, request: &str) -> (String, String) {
    let mut stream = TcpStream::connect(room.running.address).await.expect("a connection");
    let request = format!("{request} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    timeout(PATIENCE, stream.read_to_string(&mut answer)).await.expect("in time").expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    (head.to_ascii_lowercase(), body.to_owned())
}

#[tokio::test]
async fn probes_are_answered_without_a_secret() {
    let room = Room::open(Tree::new()).await;
    for (path, status) in [("/health", "live"), ("/healthz", "live"), ("/ready", "ready"), ("/readyz", "ready")] {
        let (head, body) = ask(&room, &format!("GET {path}")).await;
        assert!(head.starts_with("http/1.1 200"), "{path}: {head}");
        assert!(
            head.contains("content-type: application/json; charset=utf-8") && head.contains("cache-control: no-store")
        );
        assert_eq!(body, format!(r#"{{"ok":true,"status":"{status}"}}"#));
        let (head, body) = ask(&room, &format!("HEAD {path}")).await;
        assert!(head.starts_with("http/1.1 200") && body.is_empty(), "{path}");
        let (head, body) = ask(&room, &format!("POST {path}")).await;
        assert!(head.starts_with("http/1.1 405") && head.contains("allow: get, head"), "{path}: {head}");
        assert_eq!(body, "Method Not Allowed");
    }
    room.running.end().await;
}

#[tokio::test]
async fn what_is_not_there_is_not_found_and_every_answer_has_its_headers() {
    let room = Room::open(Tree::new()).await;
    let (head, body) = ask(&room, "GET /no/such").await;
    assert!(head.starts_with("http/1.1 404") && head.contains("content-type: text/plain; charset=utf-8"), "{head}");
    assert_eq!(body, "Not Found");
    for request in ["GET /no/such", "GET /healthz", "POST /healthz"] {
        let (head, _) = ask(&room, request).await;
        assert!(head.contains("x-content-type-options: nosniff"), "{request}: {head}");
        assert!(head.contains("referrer-policy: no-referrer"), "{request}: {head}");
    }
    room.running.end().await;
}

#[tokio::test]
async fn who_does_not_finish_a_request_is_not_waited_for() {
    let limits = prowess_gateway::Limits {
        handshake: std::time::Duration::from_millis(50),
        ..prowess_gateway::Limits::default()
    };
    let options = prowess_gateway::Options { limits, ..prowess_gateway::Options::default() };
    let room = Room::open_with(Tree::new(), options).await;
    for begun in ["", "PRI * ", "GET / HTTP/1.1\r\nHost: "] {
        let mut stream = TcpStream::connect(room.running.address).await.expect("a connection");
        // It may have hung up already.
        let _ = stream.write_all(begun.as_bytes()).await;
        let mut answer = Vec::new();
        let ended = timeout(PATIENCE, stream.read_to_end(&mut answer)).await;
        assert!(ended.is_ok(), "after {begun:?} it hangs up by itself");
    }
    room.running.end().await;
}
