//! HTTP, as plain as it gets: a request over a socket, and everything that comes back.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

impl Answer {
    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// The data of all events in the body.
    pub(crate) fn events(&self) -> Vec<Value> {
        let data = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        data.filter(|data| *data != "[DONE]").map(|data| serde_json::from_str(data).expect("JSON")).collect()
    }
}

/// Sends a request and leaves the connection open.
pub(crate) async fn send(at: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> TcpStream {
    let mut socket = TcpStream::connect(at).await.expect("a connection");
    let named: Vec<String> = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let head =
        format!("{method} {path} HTTP/1.1\r\nhost: {at}\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
    socket.write_all(format!("{head}{}\r\n{body}", named.concat()).as_bytes()).await.expect("it listens");
    socket
}

/// Sends a request and reads the whole answer.
pub(crate) async fn ask(at: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let mut socket = send(at, method, path, headers, body).await;
    let mut bytes = Vec::new();
    socket.read_to_end(&mut bytes).await.expect("an answer");
    read(&bytes)
}

/// Says how long a body will be, sends nothing of it, and reads the whole answer.
pub(crate) async fn announce(at: SocketAddr, path: &str, authorization: &str, length: usize) -> Answer {
    let mut socket = TcpStream::connect(at).await.expect("a connection");
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {at}\r\nconnection: close\r\nauthorization: {authorization}\r\n\
         content-length: {length}\r\n\r\n"
    );
    socket.write_all(head.as_bytes()).await.expect("it listens");
    let mut bytes = Vec::new();
    socket.read_to_end(&mut bytes).await.expect("an answer");
    read(&bytes)
}

fn read(bytes: &[u8]) -> Answer {
    let text = String::from_utf8_lossy(bytes);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|code| code.parse().ok());
    let headers: BTreeMap<String, String> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()))
        .collect();
    let is_chunked = headers.get("transfer-encoding").is_some_and(|value| value == "chunked");
    let body = if is_chunked { unchunked(body) } else { body.to_owned() };
    Answer { status: status.expect("a status"), headers, body }
}

fn unchunked(mut rest: &str) -> String {
    let mut body = String::new();
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).expect("a size");
        if size == 0 {
            break;
        }
        body.push_str(&after[..size]);
        rest = after[size..].trim_start_matches("\r\n");
    }
    body
}
