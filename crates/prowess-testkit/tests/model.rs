//! Does the model on this machine speak the formats, and does it end when its test does?

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use prowess_testkit::{Chunking, ModelServer, Turn};
use serde_json::{Value, json};

/// What comes back for `body` at `path`: all of it, head included.
fn said(server: &ModelServer, path: &str, body: &str) -> String {
    let mut socket = TcpStream::connect(server.url().trim_start_matches("http://")).expect("a connection");
    let method = if body.is_empty() { "GET" } else { "POST" };
    let head = format!("{method} {path} HTTP/1.0\r\nx-test: yes\r\ncontent-length: {}\r\n\r\n", body.len());
    socket.write_all((head + body).as_bytes()).expect("sent");
    let mut text = String::new();
    socket.read_to_string(&mut text).expect("text");
    text
}

#[test]
fn each_path_has_its_format() {
    let turns = (0..3).map(|_| Turn::call("c1", "read", json!({"path": "x"})));
    let server = ModelServer::chunked(Chunking::Random(5), turns);
    let table = [
        ("/v1/messages", "event: content_block_start"),
        ("/v1/chat/completions", "data: [DONE]"),
        ("/v1/responses", "event: response.completed"),
    ];
    for (path, sign) in table {
        let text = said(&server, path, r#"{"model":"m"}"#);
        assert!(text.starts_with("HTTP/1.0 200") && text.contains(sign) && text.contains("c1"), "{text}");
    }
    assert!(said(&server, "/v1/messages", "{}").starts_with("HTTP/1.0 400"), "the script is at its end");
    assert!(said(&server, "/v1/models", "").contains("test-model"));
    assert!(said(&server, "/elsewhere", "").starts_with("HTTP/1.0 404"));
    let requests = server.requests();
    assert_eq!(requests.len(), 6);
    assert_eq!((requests[0].header("x-test"), &requests[0].body), (Some("yes"), &json!({"model": "m"})));
    assert_eq!(requests[4].body, Value::Null);
}

#[test]
fn an_answer_can_depend_on_the_request() {
    let server = ModelServer::answering(Chunking::Whole, |request| Turn::Text(request.texts().join("+")));
    assert!(said(&server, "/v1/messages", r#"{"a":["one",{"b":"two"}]}"#).contains("one+two"));
}

#[test]
fn it_ends_with_its_test() {
    let server = ModelServer::script([Turn::Endless { first: Vec::new(), then: b": on and on\n".to_vec() }]);
    let address = server.url().trim_start_matches("http://").to_owned();
    let mut socket = TcpStream::connect(&address).expect("a connection");
    socket.write_all(b"POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}").expect("sent");
    let mut some = [0; 100];
    socket.read_exact(&mut some).expect("a beginning");
    drop(server);
    assert!(TcpStream::connect(&address).is_err(), "nobody listens any more");
}
