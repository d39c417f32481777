//! Sub-agents: can a session have others work for it, and only as far as it may?

use prowess_agent::news::NOTICE;
use prowess_agent::session::{Sessions, note};
use prowess_gateway::client::Event;
use prowess_testkit::{Chunking, Heard, ModelServer, RecordedRequest, Tree, Turn};
use serde_json::{Value, json};

use crate::hall::{Ears, Hall, config, words};

fn said(text: &str, run: &str) -> Value {
    json!({"sessionKey": "main", "message": text, "idempotencyKey": run})
}

fn last(request: &RecordedRequest) -> String {
    let heard = request.heard();
    let is_it = |one: &&Heard| one.text() != NOTICE;
    heard.iter().rev().find(is_it).map(|heard| heard.text().to_owned()).unwrap_or_default()
}

/// Whether a tool said so.
fn was_told(request: &RecordedRequest, text: &str) -> bool {
    request.heard().iter().any(|heard| matches!(heard, Heard::Result(told) if told.contains(text)))
}

/// A model that has a sub-agent do the task with these arguments, when it is asked to.
fn delegating(arguments: Value) -> ModelServer {
    ModelServer::answering(Chunking::Whole, move |request| match last(request) {
        text if text.contains("delegate") => Turn::call("c1", "sessions_spawn", arguments.clone()),
        text if text.contains("the task") => Turn::text("The result is 42."),
        text if text.contains("The result is 42.") => Turn::text("My sub-agent found 42."),
        text => Turn::text(&format!("So: {text}")),
    })
}

#[tokio::test]
async fn a_sub_agent_does_its_task_and_wakes_who_asked() {
    let model = delegating(json!({"task": "do the task", "label": "counter"}));
    let tree = Tree::new().file(".openclaw/workspace/HEARTBEAT.md", "A heart beats.\n");
    let hall = Hall::open(tree, &config(&model, json!({}))).await;
    let client = hall.operator().await;
    let mut ears = Ears::of(&client);
    client.call("chat.send", said("delegate it", "parent")).await.expect("started");
    let heard = ears
        .until("the news", |event| event.payload["state"] == "final" && words(event) == "My sub-agent found 42.")
        .await;
    let news = heard.last().expect("an event");
    assert_eq!(news.payload["sessionKey"], "agent:main:main");
    assert_ne!(news.payload["runId"], "parent", "it has a turn of its own");

    let requests = model.requests();
    let child = requests.iter().find(|request| last(request).contains("do the task")).expect("the sub-agent was asked");
    let system = child.system();
    assert!(system.contains("You work for the session agent:main:main"), "{system}");
    assert!(!system.contains("A heart beats") && requests[0].system().contains("A heart beats"), "its prompt is short");
    let tools: Vec<&str> = child.body["tools"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|tool| tool["function"]["name"].as_str())
        .collect();
    assert_eq!(tools, ["read", "write", "edit", "exec", "process"], "it can do its task and start no others");
    let woken = requests.iter().find(|request| last(request).starts_with("The sub-agent ")).expect("it was woken");
    assert!(last(woken).starts_with("The sub-agent counter (agent:main:subagent:"), "{}", last(woken));

    let children = client.call("sessions.list", json!({"spawnedBy": "agent:main:main"})).await.expect("a list");
    assert_eq!((&children["count"], &children["sessions"][0]["label"]), (&json!(1), &json!("counter")));
    hall.end().await;
}

#[tokio::test]
async fn a_sub_agent_has_only_the_skills_of_the_channel_that_it_works_for() {
    let skill = |name: &str| format!("---\nname: {name}\ndescription: what {name} does\n---\n");
    let place = |name: &str| format!(".openclaw/workspace/skills/{name}/SKILL.md");
    let tree = Tree::new().file(&place("alpha"), skill("alpha")).file(&place("beta"), skill("beta"));
    let model = delegating(json!({"task": "do the task"}));
    let lists = json!({"channels": {"telegram": {"groups": {"-9": {"skills": ["alpha"]}}}}});
    let hall = Hall::open(tree, &config(&model, lists)).await;
    let client = hall.operator().await;
    let mut ears = Ears::of(&client);
    for (session, expected) in [("agent:main:telegram:group:-9", &["alpha"][..]), ("main", &["alpha", "beta"])] {
        let params = json!({"sessionKey": session, "message": "delegate it", "idempotencyKey": session});
        client.call("chat.send", params).await.expect("started");
        let is_told = |event: &Event| event.payload["state"] == "final" && words(event) == "My sub-agent found 42.";
        let heard = ears.until("the news", is_told).await;
        let is_child = |key: &&str| key.contains(":subagent:");
        let key =
            heard.iter().filter_map(|event| event.payload["sessionKey"].as_str()).find(is_child).expect("a child");
        let stored = Sessions::new(&hall.tree.path(".openclaw"), "main").read(key).expect("a transcript");
        // A sub-agent is told of no skills, but it can call and read those that it has.
        let noted = stored.entries.iter().find(|entry| entry["customType"] == note::SKILLS).expect("its skills");
        let noted = noted["data"]["skills"].as_array().expect("skills");
        let has = |name: &&str| noted.iter().any(|skill| skill["name"] == *name);
        assert_eq!(["alpha", "beta"].into_iter().filter(has).collect::<Vec<_>>(), expected, "{session}");
    }
    hall.end().await;
}

#[tokio::test]
async fn other_agents_work_only_for_those_who_may_ask_them() {
    for (allowed, expected) in [(json!([]), "forbidden"), (json!(["ops"]), "accepted"), (json!(["*"]), "accepted")] {
        let model = delegating(json!({"task": "do the task", "agentId": "ops"}));
        let agents = json!([{"id": "main", "default": true, "subagents": {"allowAgents": allowed}}, {"id": "ops"}]);
        let hall = Hall::open(Tree::new(), &config(&model, json!({"agents": {"list": agents}}))).await;
        let client = hall.operator().await;
        let mut ears = Ears::of(&client);
        client.call("chat.send", said("delegate it", "parent")).await.expect("started");
        ears.until_chat("parent", "final").await;
        let results: Vec<String> = model
            .requests()
            .iter()
            .flat_map(RecordedRequest::heard)
            .filter_map(|heard| if let Heard::Result(text) = heard { Some(text) } else { None })
            .collect();
        let result: Value = serde_json::from_str(&results[0]).expect("JSON");
        assert_eq!(result["status"], expected, "{allowed}: {result}");
        if expected == "accepted" {
            ears.until("the news", |event| words(event) == "My sub-agent found 42.").await;
            let ops = client.call("sessions.list", json!({"agentId": "ops"})).await.expect("a list");
            assert_eq!(ops["count"], 1);
        }
        hall.end().await;
    }
}

#[tokio::test]
async fn a_failed_sub_agent_is_told_of_as_well() {
    let model = ModelServer::answering(Chunking::Whole, |request| match last(request) {
        text if text.contains("delegate") => {
            Turn::call("c1", "sessions_spawn", json!({"task": "do the task", "cleanup": "delete"}))
        }
        text if text.contains("do the task") => Turn::status(401, r#"{"error":{"message":"no"}}"#),
        text if text.contains("failed:") => Turn::text("It failed."),
        _ => Turn::text("I wait."),
    });
    let hall = Hall::open(Tree::new(), &config(&model, json!({}))).await;
    let client = hall.operator().await;
    let mut ears = Ears::of(&client);
    client.call("chat.send", said("delegate it", "parent")).await.expect("started");
    ears.until("the news", |event| event.payload["state"] == "final" && words(event) == "It failed.").await;
    crate::hall::until("its session is gone", || async {
        let children = client.call("sessions.list", json!({"spawnedBy": "agent:main:main"})).await.expect("a list");
        children["count"] == 0
    })
    .await;
    hall.end().await;
}

#[tokio::test]
async fn stopping_a_session_stops_those_that_work_for_it() {
    let model = ModelServer::answering(Chunking::Whole, |request| match last(request) {
        text if text.contains("delegate") => Turn::call("c1", "sessions_spawn", json!({"task": "work for ever"})),
        text if text.contains("work for ever") => crate::hall::endless(),
        _ if was_told(request, "was stopped") => Turn::text("It was stopped."),
        _ => Turn::text("I wait."),
    });
    let hall = Hall::open(Tree::new(), &config(&model, json!({}))).await;
    let client = hall.operator().await;
    let mut ears = Ears::of(&client);
    client.call("chat.send", said("delegate it", "parent")).await.expect("started");
    // Both happen, in either order.
    let (mut waits, mut speaks) = (false, false);
    while !(waits && speaks) {
        let heard = ears
            .until("both at work", |event| {
                let is_child = event.payload["sessionKey"].as_str().is_some_and(|key| key.contains(":subagent:"));
                (is_child && event.payload["stream"] == "assistant")
                    || (event.payload["runId"] == "parent" && event.payload["state"] == "final")
            })
            .await;
        let event = heard.last().expect("an event");
        let is_child = event.payload["stream"] == "assistant";
        (waits, speaks) = (waits || !is_child, speaks || is_child);
    }
    client.call("chat.send", said("stop", "never")).await.expect("an answer");
    ears.until("the child stops", |event| {
        let is_child = event.payload["sessionKey"].as_str().is_some_and(|key| key.contains(":subagent:"));
        is_child && event.payload["state"] == "aborted"
    })
    .await;
    // Nobody speaks by themselves after that; whoever is spoken to next knows of it.
    client.call("chat.send", said("how is it", "next")).await.expect("started");
    let heard = ears.until_chat("next", "final").await;
    assert_eq!(words(heard.last().expect("an event")), "It was stopped.");
    let parents = heard.iter().filter(|event| event.payload["sessionKey"] == "agent:main:main");
    assert!(parents.into_iter().all(|event| event.payload["runId"] == "next"), "{heard:?}");
    hall.end().await;
}

#[tokio::test]
async fn sessions_see_only_what_the_operator_lets_them() {
    let model = ModelServer::answering(Chunking::Whole, |request| match last(request) {
        text if text.contains("look around") => Turn::call("c1", "sessions_list", json!({})),
        text if text.contains("read the other") => Turn::call("c1", "sessions_history", json!({"sessionKey": "other"})),
        text if text.contains("tell the other") => {
            Turn::call("c1", "sessions_send", json!({"sessionKey": "other", "message": "a word from main"}))
        }
        text => Turn::text(&format!("So: {text}")),
    });
    let hall = Hall::open(Tree::new(), &config(&model, json!({}))).await;
    let client = hall.operator().await;
    let mut ears = Ears::of(&client);
    let other = json!({"sessionKey": "other", "message": "a secret", "idempotencyKey": "other"});
    client.call("chat.send", other).await.expect("started");
    ears.until_chat("other", "final").await;
    for (run, text) in [("a", "look around"), ("b", "read the other"), ("c", "tell the other")] {
        client.call("chat.send", said(text, run)).await.expect("started");
        let heard = ears.until_chat(run, "final").await;
        let answer = words(heard.last().expect("an event"));
        assert!(!answer.contains("a secret") && !answer.contains("agent:main:other\""), "{text}: {answer}");
    }
    let open = config(&model, json!({"tools": {"sessions": {"visibility": "agent"}}}));
    let Hall { tree, running } = hall;
    let tree = tree.file(".openclaw/openclaw.json", open.to_string());
    for (run, text, expected) in [
        ("d", "look around", "agent:main:other"),
        ("e", "read the other", "a secret"),
        ("f", "tell the other", "So: a word from main"),
    ] {
        client.call("chat.send", said(text, run)).await.expect("started");
        let heard = ears.until_chat(run, "final").await;
        let answer = words(heard.last().expect("an event"));
        assert!(answer.contains(expected), "{text}: {answer}");
    }
    running.end().await;
    drop(tree);
}
