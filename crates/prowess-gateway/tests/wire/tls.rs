//! TLS: is what goes over the wire encrypted, and for whom?

use prowess_gateway::client::{CallError, Client, Introduction, Node};
use prowess_gateway::{Fingerprint, Identity, Options};
use prowess_testkit::Tree;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::room::{Room, TOKEN};

async fn encrypted(tree: Tree) -> Room {
    Room::open_with(tree, Options { tls: Some(true), ..Options::default() }).await
}

fn operator() -> Introduction {
    Introduction::operator(TOKEN)
}

#[tokio::test]
async fn who_knows_the_fingerprint_is_served_and_nobody_else_trusts_it() {
    let room = encrypted(Tree::new()).await;
    let print = room.running.fingerprint().expect("a certificate");
    let client = Client::connect(&room.url(), &operator().pinned(Some(print))).await.expect("let in");
    let status = client.call("status", json!({})).await.expect("a status");
    assert_eq!(status["gateway"]["tlsFingerprint"], print.to_string());
    let node = Introduction::node(Identity::generate().expect("an identity"), Node::default()).with_token(TOKEN);
    Client::connect(&room.url(), &node.pinned(Some(print))).await.expect("a node, too");
    let unknown = Client::connect(&room.url(), &operator()).await.expect_err("nobody vouches for it");
    assert!(matches!(&unknown, CallError::Certificate { seen, .. } if *seen == print), "{unknown}");
    assert!(unknown.to_string().contains("--tls-fingerprint"), "{unknown}");
    let other = Fingerprint::parse(&"ab".repeat(32));
    let other = Client::connect(&room.url(), &operator().pinned(other)).await.expect_err("another certificate");
    assert!(other.to_string().contains("another fingerprint"), "{other}");
    let ws = room.url().replace("wss", "ws");
    let plain = Client::connect(&ws, &operator()).await.expect_err("it only speaks TLS");
    assert!(matches!(plain, CallError::Encrypted(_)), "{plain}");
    let pinned = Client::connect(&ws, &operator().pinned(Some(print))).await.expect_err("no certificate there");
    assert!(pinned.to_string().contains("wss://"), "{pinned}");
    room.running.end().await;
}

#[tokio::test]
async fn the_same_certificate_is_shown_after_a_restart() {
    let room = encrypted(Tree::new()).await;
    let print = room.running.fingerprint();
    room.running.end().await;
    let room = encrypted(room.tree).await;
    assert_eq!(room.running.fingerprint(), print);
    room.running.end().await;
}

#[tokio::test]
async fn the_certificate_of_the_operator_is_used() {
    let first = encrypted(Tree::new()).await;
    let (print, own) = (first.running.fingerprint(), first.tree.path(".openclaw/gateway/tls"));
    first.running.end().await;
    let pem = |name: &str| std::fs::read_to_string(own.join(name)).expect("a file");
    let config = "{ gateway: { tls: { enabled: true, certPath: '~/mine/c.pem', keyPath: '~/mine/k.pem' } } }";
    let tree = Tree::new().file(".openclaw/openclaw.json", config);
    let tree = tree.file("mine/c.pem", pem("gateway-cert.pem")).file("mine/k.pem", pem("gateway-key.pem"));
    let room = Room::open(tree).await;
    assert_eq!(room.running.fingerprint(), print);
    assert!(!room.tree.path(".openclaw/gateway/tls").exists(), "none was made");
    room.running.end().await;
}

#[tokio::test]
async fn who_speaks_plain_http_is_told_where_to_go_and_gets_nothing_else() {
    let room = encrypted(Tree::new()).await;
    let address = room.running.address;
    for path in ["/", "/healthz?x=1", "/v1/chat/completions"] {
        let mut stream = TcpStream::connect(address).await.expect("connected");
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 307"), "{answer}");
        assert!(answer.to_lowercase().contains(&format!("location: https://{address}{path}\r\n")), "{answer}");
        assert!(answer.contains("requires HTTPS"), "{answer}");
    }
    room.running.end().await;
}

#[tokio::test]
async fn a_page_over_tls_is_served_to_a_real_client() {
    let room = encrypted(Tree::new()).await;
    let cert = room.tree.path(".openclaw/gateway/tls/gateway-cert.pem");
    let curl = async |cacert: bool| {
        let mut command = tokio::process::Command::new("curl");
        command.args(["--silent", "--show-error", "--max-time", "30", "--noproxy", "*"]);
        if cacert {
            command.arg("--cacert").arg(&cert);
        }
        command.arg(format!("https://{}/", room.running.address)).output().await.expect("curl runs")
    };
    let trusted = curl(true).await;
    let page = String::from_utf8_lossy(&trusted.stdout).into_owned();
    assert!(page.contains("data-auth=\"token\" data-fingerprint=\""), "{page} {trusted:?}");
    assert!(page.contains(&room.running.fingerprint().expect("a certificate").to_string()));
    assert!(!curl(false).await.status.success(), "nobody vouches for it");
    room.running.end().await;
}
