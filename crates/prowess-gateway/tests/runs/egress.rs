//! Egress: do clients see which hosts commands reach?

use prowess_testkit::{Chunking, Heard, ModelServer, Tree, Turn};
use serde_json::{Value, json};

use crate::hall::{Ears, Hall, config};

/// A log of three connections.
fn log() -> String {
    let line = |number: u64, host: &str, outcome: &str| {
        json!({"id": format!("c{number}"), "at": number, "skill": "weather", "command": "curl x", "host": host,
            "port": 443, "up": 1, "down": 2, "outcome": outcome})
    };
    let lines = [line(1, "a.example", "served"), line(2, "b.example", "refused"), line(3, "api.a.example", "failed")];
    lines.iter().flat_map(|line| [line.to_string(), "\n".to_owned()]).collect()
}

#[tokio::test]
async fn the_log_of_connections_is_read_page_by_page() {
    let model = ModelServer::script([]);
    let tree = Tree::new().file(".openclaw/audit/egress.jsonl", log());
    let hall = Hall::open(tree, &config(&model, json!({}))).await;
    let client = hall.operator().await;
    let page = async |params: Value| client.call("egress.log", params).await.expect("a page");
    let ids = |page: &Value| -> Vec<Value> {
        page["entries"].as_array().into_iter().flatten().map(|entry| entry["id"].clone()).collect()
    };
    let first = page(json!({"limit": 2})).await;
    assert_eq!((ids(&first), &first["open"]), (vec![json!("c3"), json!("c2")], &json!([])));
    let rest = page(json!({"cursor": first["nextCursor"]})).await;
    assert_eq!((ids(&rest), &rest["nextCursor"], &rest["open"]), (vec![json!("c1")], &Value::Null, &Value::Null));
    assert_eq!(ids(&page(json!({"host": "a.example"})).await), ["c3", "c1"]);
    assert_eq!(ids(&page(json!({"outcome": "refused", "skill": "weather"})).await), ["c2"]);
    let refused = client.call("egress.log", json!({"limit": 0})).await.expect_err("refused").to_string();
    assert!(refused.contains("invalid egress.log params: at /limit"), "{refused}");
    hall.end().await;
}

#[tokio::test]
async fn a_connection_of_a_command_is_told_as_it_happens() {
    let model = ModelServer::answering(Chunking::Whole, |request| {
        if let Some(Heard::Result(text)) = request.heard().last() {
            return Turn::text(&format!("So: {text}"));
        }
        // No lease covers this address, so the proxy asks, and the person refuses.
        let get = "import urllib.request as u\ntry: u.urlopen('http://127.0.0.1:9/')\nexcept OSError as e: print(e)";
        Turn::call("c1", "exec", json!({"command": format!("python3 -c \"{get}\"")}))
    });
    let hall = Hall::open(Tree::new(), &config(&model, json!({}))).await;
    let client = hall.operator().await;
    let mut ears = Ears::of(&client);
    let run = json!({"sessionKey": "main", "message": "go", "idempotencyKey": "run-1"});
    client.call("chat.send", run).await.expect("started");
    let heard = ears
        .until("a question or the end", |event| {
            event.name == "exec.approval.requested" || event.payload["state"] == "final"
        })
        .await;
    let question = heard.last().expect("an event");
    if question.name != "exec.approval.requested" {
        eprintln!("skipped: commands have no network of their own here: {}", question.payload);
        return;
    }
    let open = ears.until("an open connection", |event| event.payload["openCount"] == 1).await;
    let open = open.last().expect("an event").payload["open"][0].clone();
    assert_eq!((&open["host"], &open["port"], &open["outcome"]), (&json!("127.0.0.1"), &json!(9), &json!("waiting")));
    let deny = json!({"id": question.payload["id"], "decision": "deny"});
    client.call("exec.approval.resolve", deny).await.expect("taken");
    let ended = ears.until("its end", |event| event.name == "egress.traffic" && event.payload["openCount"] == 0).await;
    let ended = &ended.last().expect("an event").payload["ended"][0];
    assert_eq!((&ended["id"], &ended["outcome"]), (&open["id"], &json!("refused")));
    assert_eq!(ended["reason"], "not allowed: the user said no");
    hall.end().await;
}
