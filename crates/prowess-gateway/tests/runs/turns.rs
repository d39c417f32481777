//! Turns: what happens to messages that are sent to a session?

use prowess_gateway::client::{CallError, Introduction};
use prowess_testkit::{Chunking, Heard, ModelServer, Tree, Turn};
use serde_json::{Value, json};

use crate::hall::{Ears, Hall, config, endless, until, words};
use crate::room::TOKEN;

fn said(key: &str, text: &str, run: &str) -> Value {
    json!({"sessionKey": key, "message": text, "idempotencyKey": run})
}

/// The last thing that a person said, with the answer to it.
fn echo() -> ModelServer {
    ModelServer::answering(Chunking::Whole, |request| {
        let heard = request.heard();
        let last = heard.iter().rev().find(|one| matches!(one, Heard::Person(_)));
        Turn::text(&format!("You said {}", last.map(Heard::text).unwrap_or_default()))
    })
}

#[tokio::test]
async fn asking_twice_runs_once() {
    let model = echo();
    let hall = Hall::open(Tree::new(), &config(&model, json!({}))).await;
    let client = hall.operator().await;
    let params = said("main", "hello", "one");
    let mut first = client.ask("agent", &params).expect("a connection");
    assert_eq!(first.next().await.expect("accepted")["status"], "accepted");
    let done = first.next().await.expect("done");
    assert_eq!(done["status"], "ok");
    assert_eq!(done["result"]["payloads"][0]["text"], "You said hello");
    let again = client.call("agent", said("main", "something else", "one")).await.expect("the same answer");
    assert_eq!(again, done, "at once and only once");
    let cached = client.call("chat.send", said("main", "hello", "one")).await.expect("known");
    assert_eq!(cached, json!({"runId": "one", "status": "ok"}));
    assert_eq!(model.requests().len(), 1);
    hall.end().await;
}

#[tokio::test]
async fn an_id_that_a_client_made_up_is_a_session() {
    let model = echo();
    let hall = Hall::open(Tree::new(), &config(&model, json!({}))).await;
    let client = hall.operator().await;
    let mut ids = Vec::new();
    for run in ["one", "two"] {
        let params = json!({"sessionId": "made-up", "message": run, "idempotencyKey": run});
        let done = client.finish("agent", params, crate::hall::PATIENCE).await.expect("done");
        ids.push(done["result"]["meta"]["agentMeta"]["sessionId"].clone());
    }
    assert_eq!(ids[0], ids[1], "it goes on there");
    let known = json!({"sessionId": ids[0], "message": "three", "idempotencyKey": "three"});
    let done = client.finish("agent", known, crate::hall::PATIENCE).await.expect("done");
    assert_eq!(done["result"]["meta"]["agentMeta"]["sessionId"], ids[0]);
    let listed = client.call("sessions.list", json!({})).await.expect("a list");
    assert_eq!((&listed["count"], &listed["sessions"][0]["key"]), (&json!(1), &json!("agent:main:explicit:made-up")));
    hall.end().await;
}

#[tokio::test]
async fn messages_for_one_session_are_answered_in_order() {
    let model = echo();
    let hall = Hall::open(Tree::new(), &config(&model, json!({}))).await;
    let client = hall.operator().await;
    let mut ears = Ears::of(&client);
    for number in 0..8 {
        let started = client.call("chat.send", said("main", &format!("number {number}"), &format!("r{number}"))).await;
        assert_eq!(started.expect("started")["status"], "started");
    }
    let mut finals = Vec::new();
    for number in 0..8 {
        let heard = ears.until_chat(&format!("r{number}"), "final").await;
        finals.extend(
            heard.iter().filter(|event| event.payload["state"] == "final").map(|event| words(event).to_owned()),
        );
    }
    let expected: Vec<String> = (0..8).map(|number| format!("You said number {number}")).collect();
    assert_eq!(finals, expected);
    let seen: Vec<usize> = model.requests().iter().map(|request| request.heard().len()).collect();
    assert_eq!(seen, [1, 3, 5, 7, 9, 11, 13, 15], "each turn knew of all before it");
    hall.end().await;
}

#[tokio::test]
async fn sessions_do_not_wait_for_each_other() {
    let model = ModelServer::answering(Chunking::Whole, |request| {
        let is_slow = request.texts().iter().any(|text| text.contains("take your time"));
        if is_slow { endless() } else { Turn::text("quick") }
    });
    let hall = Hall::open(Tree::new(), &config(&model, json!({}))).await;
    let client = hall.operator().await;
    let mut ears = Ears::of(&client);
    client.call("chat.send", said("slow", "take your time", "slow")).await.expect("started");
    ears.until_it_speaks("slow").await;
    for number in 0..20 {
        let run = format!("quick-{number}");
        client.call("chat.send", said(&format!("quick-{number}"), "go", &run)).await.expect("started");
    }
    for number in 0..20 {
        let waited = client.call("agent.wait", json!({"runId": format!("quick-{number}"), "timeoutMs": 120_000})).await;
        assert_eq!(waited.expect("an answer")["status"], "ok");
    }
    let slow = client.call("agent.wait", json!({"runId": "slow", "timeoutMs": 0})).await.expect("an answer");
    assert_eq!(slow, json!({"runId": "slow", "status": "timeout"}));
    let in_flight = client.call("chat.send", said("slow", "take your time", "slow")).await.expect("known");
    assert_eq!(in_flight, json!({"runId": "slow", "status": "in_flight"}));
    client.call("chat.abort", json!({"sessionKey": "slow"})).await.expect("aborted");
    hall.end().await;
}

#[tokio::test]
async fn a_run_that_is_stopped_keeps_what_was_said() {
    let model = ModelServer::script([endless(), Turn::text("here again")]);
    let hall = Hall::open(Tree::new(), &config(&model, json!({}))).await;
    let client = hall.operator().await;
    let mut ears = Ears::of(&client);
    let mut asked = client.ask("agent", &said("main", "go", "long")).expect("a connection");
    asked.next().await.expect("accepted");
    client.call("chat.send", said("main", "and then", "queued")).await.expect("started");
    ears.until_it_speaks("long").await;
    let history = client.call("chat.history", json!({"sessionKey": "main"})).await.expect("a history");
    assert_eq!(history["runIds"], json!(["long", "queued"]), "whoever opens the session sees that it is at work");

    let wrong = client.call("chat.abort", json!({"sessionKey": "other", "runId": "long"})).await;
    assert_eq!(wrong.expect_err("another session's").to_string(), "runId does not match sessionKey");
    let stopped = client.call("chat.send", said("main", " Stop! ", "never")).await.expect("an answer");
    assert_eq!(stopped, json!({"ok": true, "aborted": true, "runIds": ["long", "queued"]}));
    let heard = ears.until_chat("long", "aborted").await;
    let aborted = heard.last().expect("an event");
    assert!(words(aborted).starts_with("word word"), "{aborted:?}");
    assert_eq!(aborted.payload["stopReason"], "stop");
    ears.until_chat("queued", "aborted").await;
    let answer = asked.next().await.expect("an answer");
    assert_eq!((&answer["summary"], &answer["result"]["meta"]["aborted"]), (&json!("aborted"), &json!(true)));
    for run in ["long", "queued"] {
        let waited = client.call("agent.wait", json!({"runId": run})).await.expect("an answer");
        assert_eq!((&waited["status"], &waited["error"]), (&json!("error"), &json!("the run was stopped")));
    }

    let history = client.call("chat.history", json!({"sessionKey": "main"})).await.expect("a history");
    assert_eq!(history["runIds"], json!([]));
    let kept = &history["messages"][1];
    assert!(kept["content"][0]["text"].as_str().is_some_and(|text| text.starts_with("word word")), "{history}");
    client.call("chat.send", said("main", "are you there?", "next")).await.expect("started");
    let heard = ears.until_chat("next", "final").await;
    assert_eq!(words(heard.last().expect("an event")), "here again");
    let nothing = client.call("chat.abort", json!({"sessionKey": "main", "runId": "next"})).await.expect("an answer");
    assert_eq!(nothing, json!({"ok": true, "aborted": false, "runIds": []}));
    hall.end().await;
}

/// What is put into a conversation waits for the turn before it. The request that stops that turn does not wait for it.
#[tokio::test]
async fn a_turn_is_stopped_behind_something_that_waits_for_it() {
    let model = ModelServer::script([Turn::text("one"), endless()]);
    let hall = Hall::open(Tree::new(), &config(&model, json!({}))).await;
    let client = hall.operator().await;
    let mut ears = Ears::of(&client);
    client.call("chat.send", said("main", "first", "first")).await.expect("started");
    ears.until_chat("first", "final").await;
    client.call("chat.send", said("main", "go on", "long")).await.expect("started");
    ears.until_it_speaks("long").await;
    let mut injected = client.ask("chat.inject", &json!({"sessionKey": "main", "message": "a note"})).expect("sent");
    let stopped = client.call("chat.abort", json!({"sessionKey": "main"})).await.expect("stopped");
    assert_eq!(stopped["aborted"], true);
    assert_eq!(injected.next().await.expect("an answer")["ok"], true);
    hall.end().await;
}

#[tokio::test]
async fn a_run_that_fails_says_so() {
    let model = ModelServer::script([Turn::status(401, r#"{"error":{"message":"no such key"}}"#)]);
    let hall = Hall::open(Tree::new(), &config(&model, json!({}))).await;
    let client = hall.operator().await;
    let mut ears = Ears::of(&client);
    let mut asked = client.ask("agent", &said("main", "hi", "bad")).expect("a connection");
    asked.next().await.expect("accepted");
    let Err(CallError::Refused { error, payload }) = asked.next().await else { panic!("it failed") };
    assert_eq!(error["code"], "UNAVAILABLE");
    let payload = payload.expect("how far it came");
    assert_eq!((&payload["runId"], &payload["status"]), (&json!("bad"), &json!("error")));
    assert_eq!(payload["summary"], error["message"]);
    let heard = ears.until_chat("bad", "error").await;
    assert_eq!(heard.last().expect("an event").payload["errorMessage"], error["message"]);
    let waited = client.call("agent.wait", json!({"runId": "bad"})).await.expect("an answer");
    assert_eq!((&waited["status"], &waited["error"]), (&json!("error"), &error["message"]));
    let shown = format!("{error} {payload}");
    assert!(!shown.contains("sk-canary"), "{shown}");
    hall.end().await;
}

#[tokio::test]
async fn tools_are_told_only_to_those_who_can_show_them() {
    let model = ModelServer::script([Turn::call("c1", "read", json!({"path": "note.txt"})), Turn::text("read it")]);
    let tree = Tree::new().file(".openclaw/workspace/note.txt", "a note\n");
    let hall = Hall::open(tree, &config(&model, json!({}))).await;
    let asks = hall.operator().await;
    let mut plain = Introduction::operator(TOKEN);
    plain.params["caps"] = json!([]);
    let watches = hall.visitor(&plain).await;
    let mut approves = Introduction::operator(TOKEN);
    approves.params["scopes"] = json!(["operator.approvals"]);
    let approves = hall.visitor(&approves).await;
    let (mut asking, mut watching, mut approving) = (Ears::of(&asks), Ears::of(&watches), Ears::of(&approves));
    asks.call("chat.send", said("main", "read the note", "r")).await.expect("started");
    let heard = asking.until_chat("r", "final").await;
    let tools: Vec<&Value> =
        heard.iter().filter(|event| event.payload["stream"] == "tool").map(|event| &event.payload["data"]).collect();
    assert_eq!(tools.iter().map(|data| &data["phase"]).collect::<Vec<_>>(), ["start", "result"]);
    assert!(tools[1].get("result").is_none(), "what it gave back is not for everybody: {tools:?}");
    let heard = watching.until_chat("r", "final").await;
    assert!(heard.iter().all(|event| event.payload["stream"] != "tool"), "{heard:?}");
    assert!(heard.iter().all(|event| event.seq.is_some()), "{heard:?}");
    // Whoever hears nothing has heard nothing by the time that another question is answered.
    approves.call("exec.no.such", json!({})).await.expect_err("no such method");
    let told = approving.rest();
    assert!(told.iter().all(|event| !matches!(event.name.as_str(), "agent" | "chat")), "{told:?}");
    hall.end().await;
}

#[tokio::test]
async fn results_are_told_where_the_session_wants_all_of_it() {
    let model = ModelServer::script([Turn::call("c1", "read", json!({"path": "note.txt"})), Turn::text("read it")]);
    let tree = Tree::new().file(".openclaw/workspace/note.txt", "a note\n");
    let hall = Hall::open(tree, &config(&model, json!({}))).await;
    let client = hall.operator().await;
    let mut ears = Ears::of(&client);
    client.call("sessions.patch", json!({"key": "main", "verboseLevel": "full"})).await.expect("patched");
    client.call("chat.send", said("main", "read the note", "r")).await.expect("started");
    let heard = ears.until_chat("r", "final").await;
    let result = heard.iter().find(|event| event.payload["data"]["phase"] == "result").expect("a result");
    assert!(
        result.payload["data"]["result"]["content"][0]["text"].as_str().is_some_and(|text| text.contains("a note"))
    );
    hall.end().await;
}

#[tokio::test]
async fn slash_commands_work_over_the_wire() {
    let model = echo();
    let dispatch = "---\nname: peek\ndescription: d\ncommand-dispatch: tool\ncommand-tool: exec\n---\n";
    let plain = "---\nname: demo-four\ndescription: d\n---\n";
    let tree = Tree::new()
        .file(".openclaw/workspace/skills/peek/SKILL.md", dispatch)
        .file(".openclaw/workspace/skills/demo-four/SKILL.md", plain);
    let hall = Hall::open(tree, &config(&model, json!({}))).await;
    let client = hall.operator().await;
    let mut ears = Ears::of(&client);
    client.call("chat.send", said("main", "/peek echo from-the-tool", "tool")).await.expect("started");
    let heard = ears.until_chat("tool", "final").await;
    assert_eq!(words(heard.last().expect("an event")), "from-the-tool");
    assert_eq!(model.requests().len(), 0, "the model has no part in it");
    for (number, text) in ["/demo_four do it", "/demo-four do it", "/skill demo-four do it"].into_iter().enumerate() {
        let run = format!("s{number}");
        client.call("chat.send", said("other", text, &run)).await.expect("started");
        let heard = ears.until_chat(&run, "final").await;
        let used = heard.iter().find(|event| event.payload["stream"] == "skill");
        assert_eq!(used.map(|event| &event.payload["data"]["name"]), Some(&json!("demo-four")), "{text}");
        let request = model.requests().pop().expect("a request");
        let told = request.heard().last().map(|heard| heard.text().to_owned()).unwrap_or_default();
        assert!(told.contains("demo-four") && told.contains("SKILL.md") && told.ends_with(text), "{told}");
    }
    client.call("chat.send", said("other", "/nosuch x", "none")).await.expect("started");
    let heard = ears.until_chat("none", "final").await;
    assert_eq!(words(heard.last().expect("an event")), "You said /nosuch x");
    hall.end().await;
}

#[tokio::test]
async fn what_a_channel_hands_over_goes_to_the_session_of_its_chat() {
    let model = echo();
    let hall = Hall::open(Tree::new(), &config(&model, json!({}))).await;
    let client = hall.operator().await;
    let mut ears = Ears::of(&client);
    let keys = ["agent:main:telegram:direct:7", "agent:main:whatsapp:group:9"];
    for key in keys {
        client.call("chat.send", said(key, &format!("hello from {key}"), key)).await.expect("started");
        let heard = ears.until_chat(key, "final").await;
        let last = heard.last().expect("an event");
        assert_eq!(words(last), format!("You said hello from {key}"));
        assert_eq!(last.payload["sessionKey"], key);
    }
    let listed = client.call("sessions.list", json!({})).await.expect("sessions");
    let listed: Vec<&str> =
        listed["sessions"].as_array().into_iter().flatten().filter_map(|row| row["key"].as_str()).collect();
    assert!(keys.iter().all(|key| listed.contains(key)), "{listed:?}");
    hall.end().await;
}

#[tokio::test]
async fn a_topic_offers_only_the_skills_on_its_list() {
    let skill = |name: &str| format!("---\nname: {name}\ndescription: what {name} does\n---\n");
    let place = |name: &str| format!(".openclaw/workspace/skills/{name}/SKILL.md");
    let tree = Tree::new().file(&place("alpha"), skill("alpha")).file(&place("beta"), skill("beta"));
    let model = echo();
    let lists = json!({"channels": {"telegram": {"groups": {"-9": {"skills": ["alpha", "gamma"], "topics": {"7": {"skills": []}}}}}}});
    let hall = Hall::open(tree, &config(&model, lists)).await;
    let client = hall.operator().await;
    let mut ears = Ears::of(&client);
    let group = "agent:main:telegram:group:-9";
    let mut number = 0;
    let mut offered = async |key: &str| {
        number += 1;
        let run = format!("r{number}");
        client.call("chat.send", said(key, "hello", &run)).await.expect("started");
        ears.until_chat(&run, "final").await;
        let system = model.requests().pop().expect("a request").system();
        ["alpha", "beta", "gamma"]
            .into_iter()
            .filter(|name| system.contains(&format!("what {name} does")))
            .collect::<Vec<_>>()
    };
    assert_eq!(offered("main").await, ["alpha", "beta"]);
    assert_eq!(offered(group).await, ["alpha"]);
    assert_eq!(offered(&format!("{group}:topic:7")).await, [""; 0]);
    assert_eq!(offered("agent:main:telegram:group:-8").await, ["alpha", "beta"]);
    // A skill that is added later is seen in the session that is open, if it is on the list.
    for name in ["gamma", "delta"] {
        let file = hall.tree.path(&place(name));
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("made");
        std::fs::write(file, skill(name)).expect("written");
    }
    assert_eq!(offered(group).await, ["alpha", "gamma"]);
    client.call("chat.send", said(group, "/beta do it", "not-listed")).await.expect("started");
    let heard = ears.until_chat("not-listed", "final").await;
    assert!(!heard.iter().any(|event| event.payload["stream"] == "skill"), "not by its command either: {heard:?}");
    hall.end().await;
}

#[tokio::test]
async fn a_new_session_begins_with_a_word() {
    let model = echo();
    let hall = Hall::open(Tree::new(), &config(&model, json!({}))).await;
    let client = hall.operator().await;
    let mut ids = Vec::new();
    for (number, text) in ["first", "/new second", "third", "/reset"].into_iter().enumerate() {
        let mut asked = client.ask("agent", &said("main", text, &format!("r{number}"))).expect("a connection");
        asked.next().await.expect("accepted");
        let done = asked.next().await.expect("done");
        ids.push(done["result"]["meta"]["agentMeta"]["sessionId"].clone());
    }
    assert!(ids[0] != ids[1] && ids[1] == ids[2] && ids[2] != ids[3], "{ids:?}");
    let heard: Vec<usize> = model.requests().iter().map(|request| request.heard().len()).collect();
    assert_eq!(heard, [1, 1, 3, 1]);
    hall.end().await;
}

#[tokio::test]
async fn what_makes_no_sense_is_refused() {
    let model = ModelServer::script([]);
    let hall = Hall::open(Tree::new(), &config(&model, json!({}))).await;
    let client = hall.operator().await;
    for (method, params, expected) in [
        ("agent", json!({"message": "hi"}), "invalid agent params: must have required property 'idempotencyKey'"),
        (
            "agent",
            json!({"message": "hi", "idempotencyKey": "a", "agentId": "nobody"}),
            "invalid agent params: unknown agent id \"nobody\"",
        ),
        (
            "agent",
            json!({"message": "hi", "idempotencyKey": "a", "sessionKey": "agent:main"}),
            "invalid agent params: malformed session key \"agent:main\"",
        ),
        (
            "agent",
            json!({"message": "hi", "idempotencyKey": "a", "agentId": "main", "sessionKey": "agent:ops:main"}),
            "invalid agent params: agent \"main\" does not match session key agent \"ops\"",
        ),
        (
            "agent",
            json!({"message": "hi", "idempotencyKey": "a", "attachments": [{"type": "image"}]}),
            "attachment 1: content must be base64",
        ),
        ("chat.send", said("main", " ", "a"), "message or attachment required"),
        ("chat.send", said("main", "a\0b", "a"), "message must not contain null bytes"),
        ("chat.send", said("agent:ops:main", "hi", "a"), "unknown agent id \"ops\""),
        (
            "chat.history",
            json!({"sessionKey": "main", "limit": 1_001}),
            "invalid chat.history params: at /limit: must be <= 1000",
        ),
    ] {
        let refused = client.call(method, params).await.expect_err(expected);
        assert_eq!(refused.to_string(), expected);
    }
    let nobody = client.call("agent.wait", json!({"runId": "nobody's", "timeoutMs": 0})).await.expect("an answer");
    assert_eq!(nobody["status"], "timeout");
    assert_eq!(model.requests().len(), 0);
    hall.end().await;
}

#[tokio::test]
async fn only_so_much_waits_for_a_session() {
    let model = ModelServer::answering(Chunking::Whole, |_| endless());
    let hall = Hall::open(Tree::new(), &config(&model, json!({}))).await;
    let client = hall.operator().await;
    let mut ears = Ears::of(&client);
    client.call("chat.send", said("main", "go", "first")).await.expect("started");
    ears.until_it_speaks("first").await;
    for number in 0..32 {
        client.call("chat.send", said("main", "go", &format!("r{number}"))).await.expect("there is room");
    }
    let refused = client.call("chat.send", said("main", "go", "too many")).await.expect_err("no room");
    let CallError::Refused { error, .. } = refused else { panic!("refused: {refused}") };
    assert_eq!((&error["code"], &error["retryable"]), (&json!("UNAVAILABLE"), &json!(true)));
    let stopped = client.call("chat.abort", json!({"sessionKey": "main"})).await.expect("aborted");
    assert_eq!(stopped["runIds"].as_array().map(Vec::len), Some(33));
    let waited = client.call("agent.wait", json!({"runId": "r31"})).await.expect("an answer");
    assert_eq!(waited["status"], "error");
    client.call("chat.send", said("main", "go", "too many")).await.expect("it may be sent again");
    client.call("chat.abort", json!({"sessionKey": "main"})).await.expect("aborted");
    hall.end().await;
}

#[tokio::test]
async fn a_session_where_nothing_happens_is_let_go() {
    let model = echo();
    let hall = Hall::open(Tree::new(), &config(&model, json!({}))).await;
    let client = hall.operator().await;
    let mut ears = Ears::of(&client);
    client.call("chat.send", said("main", "hi", "r")).await.expect("started");
    ears.until_chat("r", "final").await;
    let state = hall.tree.path(".openclaw");
    let sessions = prowess_agent::session::Sessions::new(&state, "main");
    let key = prowess_agent::session::SessionKey::new("main", "main");
    until("another program can have it", || async { sessions.open(&key, &state).is_ok() }).await;
    hall.end().await;
}
