//! What does a client cost that only listens?

use crate::room;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use prowess_testkit::Tree;
use room::{Room, TOKEN};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// As many as are promised, and some to warm up. All are told of those, which makes their first answer a long one.
const CLIENTS: usize = 1000;
const WARM_UP: usize = 200;

/// What one may cost, in bytes.
const MAX_BYTES: usize = 64 * 1024;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_idle_clients_cost_little() {
    allow_descriptors();
    let room = Room::open(Tree::new()).await;
    let address = room.running.address;
    let connect = move |count: usize, mode: &'static str| {
        tokio::task::spawn_blocking(move || (0..count).map(|_| client(address, mode)).collect::<Vec<_>>())
    };
    let mut clients = connect(WARM_UP, "backend").await.expect("clients");
    let before = resident();
    clients.extend(connect(CLIENTS, "cli").await.expect("clients"));
    let each = resident().saturating_sub(before) / CLIENTS;
    println!("{each} bytes each");
    assert!(each < MAX_BYTES, "{each} bytes for each idle client");
    drop(clients);
    room.running.end().await;
}

/// A client that was let in, without any memory of its own.
fn client(address: std::net::SocketAddr, mode: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a limit");
    let upgrade = format!(
        "GET / HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(upgrade.as_bytes()).expect("sent");
    let connect = serde_json::json!({
        "type": "req", "id": "1", "method": "connect",
        "params": {
            "minProtocol": 3, "maxProtocol": 3, "scopes": ["operator.admin"], "auth": {"token": TOKEN},
            "client": {"id": "test", "version": "1", "platform": "linux", "mode": mode},
        },
    });
    stream.write_all(&frame(connect.to_string().as_bytes())).expect("sent");
    let mut heard = Vec::new();
    let mut buffer = [0; 4096];
    while !heard.windows(8).any(|part| part == b"hello-ok") {
        let length = stream.read(&mut buffer).expect("an answer");
        assert!(length > 0, "it hung up: {}", String::from_utf8_lossy(&heard));
        heard.extend_from_slice(&buffer[..length]);
    }
    stream
}

/// A text frame as a client writes it, with a mask that changes nothing.
fn frame(text: &[u8]) -> Vec<u8> {
    let length = u16::try_from(text.len()).expect("a short text").to_be_bytes();
    let mut frame = vec![0x81, 0x80 | 0x7e, length[0], length[1], 0, 0, 0, 0];
    frame.extend_from_slice(text);
    frame
}

/// The memory of this process, in bytes.
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").expect("a count of pages");
    let pages: usize = pages.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("a number");
    pages * rustix::param::page_size()
}

/// Both ends of all connections are in this process.
fn allow_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    let wanted = 3 * (CLIENTS + WARM_UP) as u64;
    if limit.current.is_some_and(|current| current < wanted) {
        setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })
            .expect("more descriptors");
    }
}
