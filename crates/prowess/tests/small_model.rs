//! A real model, small enough for any machine, drives the loop over the OpenAI wire: it streams, calls tools, and goes on
//! with their results. What it says is not judged.

#![cfg(target_os = "linux")]

use std::time::Duration;

use prowess_testkit::Prowess;
use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_prowess");

/// A home whose agent talks to the small model, in a session without a terminal.
fn home() -> Prowess {
    let address = std::env::var("PROWESS_SMALL_MODEL").expect("cargo xtask test --with-model says where the model is");
    let config = json!({
        "models": {"providers": {"small": {
            "baseUrl": address,
            "api": "openai-completions",
            "models": [{"id": "smollm2", "contextWindow": 8192, "maxTokens": 96}],
        }}},
        "agents": {"defaults": {"model": "small/smollm2"}},
        // Little to read: it is slow.
        "skills": {"allowBundled": ["weather"]},
        "tools": {"allow": ["read"]},
    });
    Prowess::new("/usr/bin/setsid")
        .env("PATH", "/usr/bin:/bin")
        .config(&config.to_string())
        .limit(Duration::from_secs(500))
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("an event")).collect()
}

#[test]
#[ignore = "needs a model: cargo xtask test --with-model"]
fn it_streams_calls_tools_and_goes_on() {
    let home = home();
    let output = home.run(&format!("-w {PROGRAM} run --events 'check the weather in Shanghai'")).ok();
    let events = lines(output.stdout());
    let of = |stream: &str, phase: &str| {
        events.iter().filter(|event| event["stream"] == stream && event["data"]["phase"] == phase).count()
    };
    assert_eq!((of("lifecycle", "start"), of("lifecycle", "end")), (1, 1), "{output}");
    assert!(of("tool", "start") > 0, "it called a tool\n{output}");
    assert_eq!(of("tool", "start"), of("tool", "result"), "every call was answered\n{output}");
    let said = events.iter().filter(|event| event["stream"] == "assistant").count();
    assert!(said > 1, "its answer came in pieces\n{output}");
}

#[test]
#[ignore = "needs a model: cargo xtask test --with-model"]
fn its_tokens_are_accounted_for() {
    let home = home();
    let result = home.run(&format!("-w {PROGRAM} run --json 'what can you do?'")).ok().json();
    let meta = &result["result"]["meta"];
    let usage = &meta["agentMeta"]["usage"];
    assert!(usage["input"].as_u64() > Some(0) && usage["output"].as_u64() > Some(0), "{result}");
    assert_eq!(meta["ledger"]["total"], usage["total"], "{result}");
    home.run(&format!("-w {PROGRAM} sessions show")).ok().out_has("what can you do?");
}
