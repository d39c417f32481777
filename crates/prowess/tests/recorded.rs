//! Recorded frames of OpenClaw's gateway, played against ours: what comes back must have the same shape.
//!
//! A recording says what clients sent, and the shapes of what they heard. Every difference is declared in
//! `golden/frames/differences.json` with its reason, and a declared difference that does not show is an error too. So
//! the list is what it says.

#[path = "recorded/player.rs"]
mod player;
#[path = "recorded/shape.rs"]
mod shape;
#[path = "recorded/stage.rs"]
mod stage;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;
use stage::{Skills, Stage};

#[tokio::test]
async fn handshakes_and_skills_go_as_recorded() {
    play("handshake-and-skills", &Stage::set("{}")).await;
}

#[tokio::test]
async fn turns_go_as_recorded() {
    play("agent-chat", &Stage::set(r#"{"tools": {"exec": {"security": "full", "ask": "off"}}}"#)).await;
}

#[tokio::test]
async fn questions_go_as_recorded() {
    let stage = Stage::set(r#"{"tools": {"exec": {"host": "gateway", "security": "allowlist", "ask": "on-miss"}}}"#);
    play("exec-approval", &stage).await;
}

#[tokio::test]
async fn a_node_goes_as_recorded() {
    play("node", &Stage::set("{}").with_node(Skills::Run)).await;
}

#[tokio::test]
async fn commands_on_a_node_go_as_recorded() {
    let stage = Stage::set(r#"{"tools": {"exec": {"host": "node", "security": "allowlist", "ask": "on-miss"}}}"#);
    play("node-exec-tool", &stage.with_node(Skills::Asked)).await;
}

#[tokio::test]
async fn slash_commands_go_as_recorded() {
    play("slash-commands", &Stage::set(r#"{"tools": {"exec": {"security": "full", "ask": "off"}}}"#)).await;
}

/// Plays a recording, and compares the differences that were seen with those that are declared.
async fn play(name: &str, stage: &Stage) {
    let recording = read(&folder().join(format!("{name}.json")));
    let seen = player::play(&recording, stage).await;
    let declared = read(&folder().join("differences.json"));
    let rows = declared[name].as_array().map(Vec::as_slice).unwrap_or_default();
    let declared: BTreeSet<&str> = rows.iter().filter_map(|row| row["difference"].as_str()).collect();
    let undeclared: Vec<&String> = seen.iter().filter(|seen| !declared.contains(seen.as_str())).collect();
    let unseen: Vec<&&str> = declared.iter().filter(|row| !seen.contains(**row)).collect();
    assert!(
        undeclared.is_empty() && unseen.is_empty(),
        "not declared: {undeclared:#?}\ndeclared and not seen: {unseen:#?}\n{}",
        stage.log()
    );
    let reasons: BTreeSet<&str> = rows.iter().filter_map(|row| row["why"].as_str()).collect();
    let reasons: Vec<(&str, &str)> = reasons.into_iter().map(|why| (name, why)).collect();
    prowess_testkit::assert_documented(&reasons);
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/frames")
}

fn read(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
