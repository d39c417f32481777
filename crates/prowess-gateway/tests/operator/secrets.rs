//! No method tells a secret.

use prowess_testkit::Tree;
use serde_json::{Value, json};

use super::room::{Room, TOKEN};

const SECRETS: [&str; 6] =
    ["gate-secret-1", "skill-secret-2", "variable-secret-3", "provider-secret-4", "header-secret-5", "url-secret-6"];

#[tokio::test]
async fn no_method_tells_a_secret() {
    let config = json!({
        "gateway": {"auth": {"token": "gate-secret-1"}},
        "skills": {"entries": {"demo": {"apiKey": "skill-secret-2", "env": {"A_KEY": "variable-secret-3"}}}},
        "models": {"providers": {"p": {
            "apiKey": "provider-secret-4", "headers": {"Authorization": "header-secret-5"},
            "baseUrl": "http://me:url-secret-6@127.0.0.1:1/v1", "models": [{"id": "m"}],
        }}},
    });
    let tree = Tree::new().file(".openclaw/openclaw.json", config.to_string()).file(
        ".openclaw/workspace/skills/demo/SKILL.md",
        "---\nname: demo\ndescription: d\nmetadata: {openclaw: {primaryEnv: A_KEY, requires: {env: [A_KEY]}}}\n---\n",
    );
    let room = Room::open(tree).await;
    let client = room.operator().await;
    let methods: Vec<String> = client.hello()["features"]["methods"]
        .as_array()
        .expect("methods")
        .iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    assert!(methods.iter().any(|name| name == "config.get"), "{methods:?}");
    for method in methods {
        // Whatever it says, refusals included.
        let said = match client.call(&method, json!({})).await {
            Ok(answer) => answer.to_string(),
            Err(error) => format!("{error:?}"),
        };
        for secret in SECRETS.iter().chain([&TOKEN]) {
            assert!(!said.contains(secret), "{method} tells {secret}: {said}");
        }
    }
    room.running.end().await;
}
