//! Agents: are they kept apart, and does each turn know what is new?

use prowess_testkit::{Chunking, ModelServer, Tree, Turn};
use serde_json::{Value, json};

use crate::hall::{Ears, Hall, config};

fn skill(name: &str) -> String {
    format!("---\nname: {name}\ndescription: About {name}.\n---\n")
}

fn said(key: &str, run: &str) -> Value {
    json!({"sessionKey": key, "message": "hi", "idempotencyKey": run})
}

fn two(model: &ModelServer) -> Value {
    let agents = json!([
        {"id": "main", "default": true, "skills": ["alpha"]},
        {"id": "ops", "name": "Operations", "tools": {"allow": ["read"]}, "identity": {"name": "Op", "emoji": "o"}},
    ]);
    config(model, json!({"agents": {"list": agents}}))
}

#[tokio::test]
async fn two_agents_have_their_own_workspace_skills_and_tools() {
    let model = ModelServer::answering(Chunking::Whole, |_| Turn::text("yes"));
    let tree = Tree::new()
        .file(".openclaw/workspace/AGENTS.md", "You are the main one.\n")
        .file(".openclaw/workspace/skills/alpha/SKILL.md", skill("alpha"))
        .file(".openclaw/workspace/skills/beta/SKILL.md", skill("beta"))
        .file(".openclaw/workspace-ops/AGENTS.md", "You are the other one.\n")
        .file(".openclaw/workspace-ops/skills/gamma/SKILL.md", skill("gamma"));
    let hall = Hall::open(tree, &two(&model)).await;
    let client = hall.operator().await;
    let mut ears = Ears::of(&client);
    for (key, run) in [("agent:main:main", "a"), ("agent:ops:main", "b")] {
        client.call("chat.send", said(key, run)).await.expect("started");
        ears.until_chat(run, "final").await;
    }
    let requests = model.requests();
    let tools = |at: usize| {
        let tools = requests[at].body["tools"].as_array().cloned().unwrap_or_default();
        tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    let (main, ops) = (requests[0].system(), requests[1].system());
    assert!(main.contains("You are the main one") && main.contains("About alpha"), "{main}");
    assert!(!main.contains("About beta") && !main.contains("About gamma"), "{main}");
    assert!(ops.contains("You are the other one") && ops.contains("About gamma"), "{ops}");
    assert!(!ops.contains("About alpha"), "{ops}");
    assert!(tools(0).contains(&"exec".to_owned()) && tools(0).contains(&"sessions_spawn".to_owned()), "{:?}", tools(0));
    assert_eq!(tools(1), ["read"]);

    let agents = client.call("agents.list", json!({})).await.expect("a list");
    let expected = json!({
        "defaultId": "main", "mainKey": "main", "scope": "per-sender",
        "agents": [{"id": "main"}, {"id": "ops", "name": "Operations", "identity": {"name": "Op", "emoji": "o"}}],
    });
    assert_eq!(agents, expected);
    let identity =
        client.call("agent.identity.get", json!({"sessionKey": "agent:ops:main"})).await.expect("an identity");
    assert_eq!(identity, json!({"agentId": "ops", "name": "Op", "avatar": "o", "emoji": "o"}));
    hall.end().await;
}

#[tokio::test]
async fn a_skill_that_was_added_is_there_in_the_next_turn() {
    let model = ModelServer::answering(Chunking::Whole, |_| Turn::text("yes"));
    let tree = Tree::new().file(".openclaw/workspace/skills/alpha/SKILL.md", skill("alpha"));
    let hall = Hall::open(tree, &config(&model, json!({}))).await;
    let client = hall.operator().await;
    let mut ears = Ears::of(&client);
    client.call("chat.send", said("main", "before")).await.expect("started");
    ears.until_chat("before", "final").await;
    let Hall { tree, running } = hall;
    let tree = tree.file(".openclaw/workspace/skills/late/SKILL.md", skill("late"));
    client.call("chat.send", said("main", "after")).await.expect("started");
    ears.until_chat("after", "final").await;
    let systems: Vec<bool> = model.requests().iter().map(|request| request.system().contains("About late")).collect();
    assert_eq!(systems, [false, true]);
    running.end().await;
    drop(tree);
}

#[tokio::test]
async fn without_watching_only_new_sessions_see_it() {
    let (open, gate) = std::sync::mpsc::channel::<()>();
    let gate = std::sync::Mutex::new(gate);
    let model = ModelServer::answering(Chunking::Whole, move |_| {
        // The first answer waits until the gate is opened, which then stays so.
        let _ = gate.lock().expect("no panic").recv();
        Turn::text("yes")
    });
    let tree = Tree::new().file(".openclaw/workspace/skills/alpha/SKILL.md", skill("alpha"));
    let hall = Hall::open(tree, &config(&model, json!({"skills": {"load": {"watch": false}}}))).await;
    let client = hall.operator().await;
    let mut ears = Ears::of(&client);
    client.call("chat.send", said("main", "before")).await.expect("started");
    ears.until("the first turn", |event| event.payload["data"]["phase"] == "start").await;
    let Hall { tree, running } = hall;
    let tree = tree.file(".openclaw/workspace/skills/late/SKILL.md", skill("late"));
    // It waits behind the first, so the session is not let go in between.
    client.call("chat.send", said("main", "after")).await.expect("started");
    drop(open);
    ears.until_chat("after", "final").await;
    client.call("chat.send", said("another", "new")).await.expect("started");
    ears.until_chat("new", "final").await;
    let systems: Vec<bool> = model.requests().iter().map(|request| request.system().contains("About late")).collect();
    assert_eq!(systems, [false, false, true]);
    running.end().await;
    drop(tree);
}

#[tokio::test]
async fn a_change_of_the_model_counts_from_the_next_turn() {
    let model = ModelServer::answering(Chunking::Whole, |request| {
        Turn::text(request.body["model"].as_str().unwrap_or_default())
    });
    let models = json!([{"id": "m"}, {"id": "n"}]);
    let more = json!({"models": {"providers": {"fake": {"models": models}}}});
    let hall = Hall::open(Tree::new(), &config(&model, more.clone())).await;
    let client = hall.operator().await;
    let mut ears = Ears::of(&client);
    let mut answers = Vec::new();
    let mut tree = hall.tree;
    for (run, primary) in [("a", "fake/m"), ("b", "fake/n")] {
        let mut changed = config(&model, more.clone());
        changed["agents"]["defaults"]["model"] = primary.into();
        tree = tree.file(".openclaw/openclaw.json", changed.to_string());
        client.call("chat.send", said("main", run)).await.expect("started");
        let heard = ears.until_chat(run, "final").await;
        answers.push(crate::hall::words(heard.last().expect("an event")).to_owned());
    }
    client.call("sessions.patch", json!({"key": "main", "model": "fake/m"})).await.expect("patched");
    client.call("chat.send", said("main", "c")).await.expect("started");
    let heard = ears.until_chat("c", "final").await;
    answers.push(crate::hall::words(heard.last().expect("an event")).to_owned());
    assert_eq!(answers, ["m", "n", "m"]);
    let heard: Vec<usize> = model.requests().iter().map(|request| request.heard().len()).collect();
    assert_eq!(heard, [1, 3, 5], "it is the same conversation");
    hall.running.end().await;
    drop(tree);
}
