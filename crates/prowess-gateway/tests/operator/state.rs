//! How the gateway is, and what it wrote down.

use prowess_testkit::Tree;
use serde_json::json;

use super::room::Room;
use super::{has_keys, reader};

#[tokio::test]
async fn health_and_status_have_what_openclaws_programs_read() {
    let index = json!({
        "agent:main:main": {"sessionId": "s1", "updatedAt": 1_794_808_640_000_u64, "totalTokens": 50, "contextTokens": 200},
        "agent:main:old": {"sessionId": "s2", "updatedAt": 1_794_000_000_000_u64},
    });
    let room = Room::open(Tree::new().file(".openclaw/agents/main/sessions/sessions.json", index.to_string())).await;
    let client = room.operator().await;
    let health = client.call("health", json!({})).await.expect("an answer");
    has_keys(&health, "health");
    has_keys(&health["agents"][0], "health.agents");
    has_keys(&health["agents"][0]["heartbeat"], "health.agents.heartbeat");
    has_keys(&health["sessions"], "health.sessions");
    assert_eq!((&health["ok"], &health["sessions"]["count"]), (&json!(true), &json!(2)));
    assert_eq!(health["sessions"]["recent"][0]["key"], "agent:main:main");

    let status = client.call("status", json!({})).await.expect("an answer");
    has_keys(&status, "status");
    has_keys(&status["sessions"], "status.sessions");
    has_keys(&status["heartbeat"], "status.heartbeat");
    assert_eq!(status["sessions"]["recent"][0]["percentUsed"], 25);
    assert_eq!(status["gateway"]["connections"], json!({"node": 0, "operator": 1}));

    let channels = client.call("channels.status", json!({"probe": false})).await.expect("an answer");
    has_keys(&channels, "channels.status");
    assert_eq!(client.call("last-heartbeat", json!({})).await.expect("an answer"), json!(null));
    room.running.end().await;
}

#[tokio::test]
async fn health_is_told_as_it_is_known_unless_somebody_wants_to_wait() {
    let room = Room::open(Tree::new()).await;
    let client = room.operator().await;
    let index = room.tree.path(".openclaw/agents/main/sessions/sessions.json");
    std::fs::create_dir_all(index.parent().expect("a folder")).expect("made");
    std::fs::write(index, r#"{"agent:main:main": {"sessionId": "s1", "updatedAt": 5}}"#).expect("written");
    let known = client.call("health", json!({})).await.expect("what was known before");
    has_keys(&known, "health");
    assert_eq!(known["sessions"]["count"], 0);
    let now = client.call("health", json!({"probe": true})).await.expect("what is there now");
    assert_eq!(now["sessions"]["count"], 1);
    room.running.end().await;
}

#[tokio::test]
async fn a_configuration_that_cannot_be_read_leaves_the_old_one_in_place() {
    let config = r#"{ agents: { list: [{ id: "main", default: true }, { id: "work" }] } }"#;
    let room = Room::open(Tree::new().file(".openclaw/openclaw.json", config)).await;
    let client = room.operator().await;
    client.call("skills.status", json!({})).await.expect("the agent is in use");
    std::fs::write(room.tree.path(".openclaw/openclaw.json"), "{ broken").expect("written");
    for method in ["sessions.list", "skills.status", "agents.list", "models.list", "status"] {
        client.call(method, json!({})).await.unwrap_or_else(|error| panic!("{method}: {error}"));
    }
    let agents = client.call("agents.list", json!({})).await.expect("a list");
    assert_eq!(agents["agents"].as_array().map(Vec::len), Some(2), "{agents}");
    room.running.end().await;
}

#[tokio::test]
async fn who_may_only_look_is_not_told_about_conversations() {
    let index = json!({"agent:main:main": {"sessionId": "s1", "updatedAt": 5}});
    let room = Room::open(Tree::new().file(".openclaw/agents/main/sessions/sessions.json", index.to_string())).await;
    let status = reader(&room).await.call("status", json!({})).await.expect("an answer");
    assert_eq!((&status["sessions"]["recent"], &status["sessions"]["paths"]), (&json!([]), &json!([])));
    assert_eq!(status["sessions"]["byAgent"][0]["path"], "[redacted]");
    assert_eq!(status["sessions"]["count"], 1);
    room.running.end().await;
}

#[tokio::test]
async fn the_log_is_read_from_where_it_was_left() {
    let room = Room::open(Tree::new()).await;
    let client = room.operator().await;
    let empty = client.call("logs.tail", json!({})).await.expect("an answer");
    has_keys(&empty, "logs.tail");
    assert_eq!((&empty["lines"], &empty["cursor"]), (&json!([]), &json!(0)));
    let path = room.tree.path(".openclaw/logs/gateway.log");
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
    std::fs::write(&path, "{\"0\":\"one\"}\n{\"0\":\"two\"}\n").expect("written");
    let first = client.call("logs.tail", json!({"limit": 1})).await.expect("an answer");
    assert_eq!((&first["lines"], &first["truncated"]), (&json!(["{\"0\":\"two\"}"]), &json!(false)));
    std::fs::write(&path, "{\"0\":\"one\"}\n{\"0\":\"two\"}\n{\"0\":\"three\"}\n").expect("written");
    let next = client.call("logs.tail", json!({"cursor": first["cursor"]})).await.expect("an answer");
    assert_eq!(next["lines"], json!(["{\"0\":\"three\"}"]));
    room.running.end().await;
}
