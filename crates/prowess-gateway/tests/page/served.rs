//! What comes over the wire before a browser does anything with it?

use std::net::SocketAddr;

use prowess_testkit::Tree;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::room::{Room, TOKEN};

/// The whole answer to a request, as text.
async fn ask(address: SocketAddr, method: &str, path: &str, more: &str) -> String {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    let request = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{more}\r\n");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("text");
    answer
}

#[tokio::test]
async fn the_page_is_strict_about_what_it_may_do() {
    let room = Room::open(Tree::new()).await;
    let address = room.running.address;
    for (path, kind) in [
        ("/", "text/html; charset=utf-8"),
        ("/assets/app.js", "text/javascript; charset=utf-8"),
        ("/assets/style.css", "text/css; charset=utf-8"),
        ("/assets/icon.svg", "image/svg+xml"),
    ] {
        let answer = ask(address, "GET", path, "").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
        for line in [
            &format!("content-type: {kind}"),
            "x-content-type-options: nosniff",
            "referrer-policy: no-referrer",
            "x-frame-options: DENY",
            "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
             img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        ] {
            assert!(answer.contains(line), "{path} lacks {line}\n{answer}");
        }
        assert!(!answer.contains(TOKEN), "{path}");
    }
    room.running.end().await;
}

#[tokio::test]
async fn what_the_browser_has_is_not_sent_again() {
    let room = Room::open(Tree::new()).await;
    let address = room.running.address;
    let answer = ask(address, "GET", "/assets/app.js", "").await;
    let etag = answer.lines().find_map(|line| line.strip_prefix("etag: ")).expect("a mark");
    let again = ask(address, "GET", "/assets/app.js", &format!("If-None-Match: {etag}\r\n")).await;
    assert!(again.starts_with("HTTP/1.1 304"), "{again}");
    room.running.end().await;
}

#[tokio::test]
async fn files_are_compressed_for_browsers_that_unpack_them() {
    let room = Room::open(Tree::new()).await;
    let address = room.running.address;
    let plain = bytes(address, "/assets/app.js", "").await;
    let zipped = bytes(address, "/assets/app.js", "Accept-Encoding: br, gzip\r\n").await;
    let head = String::from_utf8_lossy(&zipped).into_owned();
    assert!(head.contains("content-encoding: gzip") && head.contains("vary: accept-encoding"), "{head}");
    assert!(zipped.len() * 2 < plain.len(), "{} of {}", zipped.len(), plain.len());
    let etag = head.lines().find_map(|line| line.strip_prefix("etag: ")).expect("a mark").to_owned();
    let more = format!("Accept-Encoding: gzip\r\nIf-None-Match: {etag}\r\n");
    assert!(bytes(address, "/assets/app.js", &more).await.starts_with(b"HTTP/1.1 304"));
    let refused = bytes(address, "/assets/app.js", "Accept-Encoding: gzip;q=0\r\n").await;
    assert!(!String::from_utf8_lossy(&refused).contains("content-encoding"));
    room.running.end().await;
}

/// The whole answer to a request for a file.
async fn bytes(address: SocketAddr, path: &str, more: &str) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{more}\r\n");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.expect("an answer");
    answer
}

#[tokio::test]
async fn there_is_no_other_file_and_no_other_way_to_ask() {
    let room = Room::open(Tree::new()).await;
    let address = room.running.address;
    for path in ["/assets/page.rs", "/assets/..%2f..%2flib.rs", "/assets/", "/assets/assets.rs"] {
        let answer = ask(address, "GET", path, "").await;
        assert!(answer.starts_with("HTTP/1.1 404"), "{path}: {answer}");
    }
    let posted = ask(address, "POST", "/", "Content-Length: 0\r\n").await;
    assert!(posted.starts_with("HTTP/1.1 404"), "{posted}");
    room.running.end().await;
}

#[tokio::test]
async fn an_operator_can_do_without_the_page() {
    let tree = Tree::new().file(".openclaw/openclaw.json", r#"{"gateway": {"controlUi": {"enabled": false}}}"#);
    let room = Room::open(tree).await;
    for path in ["/", "/assets/app.js"] {
        let answer = ask(room.running.address, "GET", path, "").await;
        assert!(answer.starts_with("HTTP/1.1 404"), "{path}: {answer}");
    }
    room.operator().await;
    room.running.end().await;
}
