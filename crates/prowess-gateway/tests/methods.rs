//! What can be asked of a gateway?

use crate::room;
use prowess_testkit::Tree;
use room::Room;
use serde_json::json;

#[tokio::test]
async fn programs_that_skills_need_are_told_to_operators_too() {
    let tree = Tree::new().file(
        ".openclaw/workspace/skills/demo/SKILL.md",
        "---\nname: demo\ndescription: d\nmetadata: {openclaw: {requires: {bins: [demo-bin]}}}\n---\n",
    );
    let room = Room::open(tree).await;
    let bins = room.operator().await.call("skills.bins", json!({})).await.expect("an answer");
    assert!(bins["bins"].as_array().is_some_and(|bins| bins.contains(&json!("demo-bin"))), "{bins}");
    room.running.end().await;
}

#[tokio::test]
async fn what_is_unknown_is_refused() {
    let room = Room::open(Tree::new()).await;
    let refused = room.operator().await.call("no.such", json!({})).await.expect_err("no such method");
    assert_eq!(refused.to_string(), "unknown method: no.such");
}
