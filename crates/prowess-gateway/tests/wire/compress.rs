//! Do clients that ask for it get large frames compressed, and nobody else?

use std::io::Read;

use flate2::read::DeflateDecoder;
use futures_util::StreamExt;
use prowess_testkit::Tree;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::room::{Room, TOKEN};
use crate::wire::line::Line;

/// What comes back for three requests, in order: whether each came compressed, its id and its size on the way.
async fn heard(room: &Room, caps: &[&str]) -> Vec<(bool, String, usize)> {
    let mut line = Line::open(room).await;
    line.hear().await;
    let client = json!({"id": "cli", "version": "1", "platform": "linux", "mode": "cli"});
    let params = json!({"minProtocol": 3, "maxProtocol": 3, "client": client, "role": "operator", "scopes": ["operator.read"], "caps": caps, "auth": {"token": TOKEN}});
    line.say(json!({"type": "req", "id": "hello", "method": "connect", "params": params}).to_string()).await;
    line.hear().await;
    let mut found = Vec::new();
    for (id, method) in [("small", "agents.list"), ("large", "skills.status"), ("last", "agents.list")] {
        line.say(json!({"type": "req", "id": id, "method": method, "params": {}}).to_string()).await;
        loop {
            let (packed, bytes) = match line.0.next().await.expect("open").expect("a message") {
                Message::Text(text) => (false, text.as_bytes().to_vec()),
                Message::Binary(bytes) => (true, bytes.to_vec()),
                _ => continue,
            };
            let mut text = String::new();
            if packed {
                DeflateDecoder::new(&bytes[..]).read_to_string(&mut text).expect("DEFLATE");
            } else {
                text = String::from_utf8(bytes.clone()).expect("text");
            }
            let frame: Value = serde_json::from_str(&text).expect("JSON");
            if frame["id"] == id {
                assert_eq!(frame["ok"], true, "{frame}");
                found.push((packed, id.to_owned(), bytes.len()));
                break;
            }
        }
    }
    found
}

#[tokio::test]
async fn large_frames_are_compressed_for_those_who_ask() {
    let mut tree = Tree::new().file(".openclaw/openclaw.json", r#"{"skills": {"allowBundled": []}}"#);
    for number in 0..40 {
        let text = format!("---\nname: skill-{number}\ndescription: {}\n---\n", "A long description. ".repeat(20));
        tree = tree.file(&format!(".openclaw/workspace/skills/skill-{number}/SKILL.md"), text);
    }
    let room = Room::open(tree).await;
    let (plain, packed) = (heard(&room, &[]).await, heard(&room, &["deflate"]).await);
    assert_eq!(plain.iter().map(|(packed, ..)| *packed).collect::<Vec<_>>(), [false, false, false]);
    assert_eq!(packed.iter().map(|(packed, ..)| *packed).collect::<Vec<_>>(), [false, true, false]);
    assert!(packed[1].2 * 4 < plain[1].2, "{} of {}", packed[1].2, plain[1].2);
    room.running.end().await;
}
