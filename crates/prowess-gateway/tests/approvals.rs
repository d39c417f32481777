//! Approvals: are people asked, and is what they say what happens?

use crate::machine;
use crate::room;
use std::time::Duration;

use machine::{Person, Turn, soon, until};
use prowess_exec::approver::{Change, Offer, Passage, ToolQuestion};
use prowess_gateway::client::{CallError, Client};
use prowess_policy::Answer;
use prowess_testkit::Tree;
use room::Room;
use serde_json::{Value, json};

/// The next event of that name.
async fn next(events: &mut tokio::sync::broadcast::Receiver<prowess_gateway::client::Event>, name: &str) -> Value {
    soon(name, async {
        loop {
            let event = events.recv().await.expect("an event");
            if event.name == name {
                return event.payload;
            }
        }
    })
    .await
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

fn refused(result: Result<Value, CallError>) -> (String, Value) {
    match result.expect_err("a refusal") {
        CallError::Refused { error, .. } => {
            (error["message"].as_str().unwrap_or_default().to_owned(), error["details"].clone())
        }
        other => panic!("gone: {other}"),
    }
}

async fn put(operator: &Client, id: &str, params: Value) -> prowess_gateway::client::Answers {
    let mut params = params;
    params["id"] = id.into();
    params["twoPhase"] = true.into();
    let mut answers = operator.ask("exec.approval.request", &params).expect("sent");
    let accepted = soon("the question is put", answers.next()).await.expect("accepted");
    assert_eq!((&accepted["status"], &accepted["id"]), (&json!("accepted"), &json!(id)));
    answers
}

async fn resolve(operator: &Client, id: &str, decision: &str) -> Result<Value, CallError> {
    operator.call("exec.approval.resolve", json!({"id": id, "decision": decision})).await
}

#[tokio::test]
async fn a_question_has_the_shape_of_the_peer_and_more() {
    let golden: Value = serde_json::from_str(include_str!("golden/frames-approval.json")).expect("JSON");
    let recorded = &golden["cases"][0]["payload"];
    let room = Room::open(Tree::new()).await;
    let operator = room.operator().await;
    let mut events = operator.events();
    let turn = Turn::of(&room);
    let (result, asked) = tokio::join!(turn.here("uname -a | head -n 1"), async {
        let asked = next(&mut events, "exec.approval.requested").await;
        let id = asked["id"].as_str().expect("an id").to_owned();
        let (double, _) = refused(operator.call("exec.approval.request", json!({"id": id, "command": "x"})).await);
        assert_eq!(double, "approval id already pending");
        assert_eq!(refused(resolve(&operator, &id, "maybe").await).0, "invalid decision");
        assert_eq!(resolve(&operator, &id, "allow-once").await, Ok(json!({"ok": true})));
        asked
    });
    assert!(!result.is_error, "{}", result.text());
    assert!(asked["expiresInMs"].as_u64().is_some_and(|left| left > 0), "how long it stays open, without a clock");
    let expected: Vec<&str> = keys(recorded).into_iter().chain(["expiresInMs"]).collect();
    assert_eq!(keys(&asked), expected);
    for key in keys(&recorded["request"]) {
        let (ours, theirs) = (&asked["request"][key], &recorded["request"][key]);
        assert!(asked["request"].get(key).is_some(), "{key} is missing");
        if ["command", "host", "security", "ask", "agentId", "systemRunPlan", "nodeId"].contains(&key) {
            assert_eq!(ours, theirs, "{key}");
        }
    }
    assert!(asked["request"]["objections"].as_array().is_some_and(|all| !all.is_empty()));
    assert_eq!(
        asked["expiresAtMs"].as_u64().zip(asked["createdAtMs"].as_u64()).map(|(to, from)| to - from),
        Some(120_000)
    );
    let resolved = next(&mut events, "exec.approval.resolved").await;
    let cases = golden["cases"].as_array().expect("a list");
    let theirs = cases.iter().find(|case| case["event"] == "exec.approval.resolved").expect("recorded");
    let mut expected = keys(&theirs["payload"]);
    expected.insert(3, "by");
    assert_eq!(keys(&resolved), expected);
    assert_eq!((&resolved["decision"], &resolved["request"]), (&json!("allow-once"), &asked["request"]));
    room.running.end().await;
}

#[tokio::test]
async fn the_first_answer_counts_and_all_hear_it() {
    let room = Room::open(Tree::new()).await;
    let (first, second) = (room.operator().await, room.operator().await);
    let (mut heard, mut overheard) = (first.events(), second.events());
    let mut answers = put(&first, "question-1", json!({"command": "x"})).await;
    let (one, other) = tokio::join!(resolve(&first, "question-1", "deny"), resolve(&second, "question-1", "deny"));
    assert_eq!([one.is_ok(), other.is_ok()].iter().filter(|ok| **ok).count(), 1);
    for events in [&mut heard, &mut overheard] {
        assert_eq!(next(events, "exec.approval.requested").await["id"], "question-1");
        assert_eq!(next(events, "exec.approval.resolved").await["decision"], "deny");
    }
    let decided = soon("a decision", answers.next()).await.expect("a decision");
    assert_eq!((&decided["decision"], &decided["id"]), (&json!("deny"), &json!("question-1")));
    let (message, details) = refused(resolve(&second, "question-1", "allow-once").await);
    assert_eq!((message.as_str(), &details["code"]), ("unknown approval id", &json!("ALREADY_RESOLVED")));
    let waited = second.call("exec.approval.waitDecision", json!({"id": "question-1"})).await.expect("still known");
    assert_eq!(waited["decision"], "deny");
    room.running.end().await;
}

#[tokio::test]
async fn a_question_may_be_named_by_its_beginning() {
    let room = Room::open(Tree::new()).await;
    let operator = room.operator().await;
    for id in ["abcdefgh-1", "abcdefgh-2", "zyxwvuts-1"] {
        put(&operator, id, json!({"command": "x"})).await;
    }
    let listed = operator.call("exec.approval.list", json!({})).await.expect("a list");
    assert_eq!(listed["approvals"].as_array().map(Vec::len), Some(3));
    assert_eq!(refused(resolve(&operator, "zyxwvut", "deny").await).0, "unknown approval id");
    let ambiguous = refused(resolve(&operator, "abcdefgh", "deny").await).0;
    assert_eq!(ambiguous, "ambiguous approval id prefix; use the full id");
    resolve(&operator, "zyxwvuts", "deny").await.expect("one is meant");
    resolve(&operator, "abcdefgh-2", "deny").await.expect("one is meant");
    resolve(&operator, "abcdefgh", "deny").await.expect("only one is left");
    room.running.end().await;
}

#[tokio::test]
async fn without_anybody_to_ask_nothing_waits_and_nothing_runs() {
    let room = Room::open(Tree::new()).await;
    let result = Turn::of(&room).here("touch ran").await;
    assert!(result.is_error && result.text().contains("nobody to ask"), "{}", result.text());
    assert!(!room.tree.root().join(".openclaw/workspace/ran").exists());
    room.running.end().await;
}

#[tokio::test]
async fn what_was_open_when_a_gateway_ended_is_expired_and_not_allowed() {
    let room = Room::open(Tree::new()).await;
    let operator = room.operator().await;
    put(&operator, "from-before", json!({"command": "x"})).await;
    put(&operator, "answered-before", json!({"command": "x"})).await;
    resolve(&operator, "answered-before", "allow-always").await.expect("answered");
    let journal = room.tree.root().join(".openclaw/exec-questions.json");
    until("the answer is noted", async || {
        std::fs::read_to_string(&journal).is_ok_and(|text| !text.contains("answered-before"))
    })
    .await;
    let Room { tree, running } = room;
    running.end().await;
    let room = Room::open(tree).await;
    let operator = room.operator().await;
    let (message, details) = refused(resolve(&operator, "from-before", "allow-once").await);
    assert!(message.starts_with("approval expired"), "{message}");
    assert_eq!(details["code"], "APPROVAL_EXPIRED");
    assert_eq!(refused(resolve(&operator, "answered-before", "allow-once").await).0, "unknown approval id");
    let waited = operator.call("exec.approval.waitDecision", json!({"id": "from-before"})).await;
    assert_eq!(refused(waited).0, "approval expired or not found");
    room.running.end().await;
}

#[tokio::test]
async fn a_late_answer_is_no_answer() {
    let room = Room::open(Tree::new()).await;
    let operator = room.operator().await;
    let mut answers = put(&operator, "short-lived", json!({"command": "x", "timeoutMs": 20})).await;
    let decided = soon("it expires", answers.next()).await.expect("an end");
    assert_eq!(decided["decision"], Value::Null);
    let (message, details) = refused(resolve(&operator, "short-lived", "allow-once").await);
    assert!(message.starts_with("approval expired"), "{message}");
    assert_eq!(details["code"], "APPROVAL_EXPIRED");
    room.running.end().await;
}

#[tokio::test]
async fn who_asks_no_longer_takes_the_question_back() {
    let room = Room::open(Tree::new()).await;
    let operator = room.operator().await;
    let mut events = operator.events();
    let turn = Turn::of(&room);
    let task = tokio::spawn(async move { turn.here("touch ran").await });
    let asked = next(&mut events, "exec.approval.requested").await;
    task.abort();
    let resolved = next(&mut events, "exec.approval.resolved").await;
    assert_eq!((&resolved["id"], &resolved["decision"]), (&asked["id"], &Value::Null));
    let late = resolve(&operator, asked["id"].as_str().expect("an id"), "allow-once").await;
    assert!(late.is_err());
    assert!(!room.tree.root().join(".openclaw/workspace/ran").exists());
    room.running.end().await;
}

#[tokio::test]
async fn what_is_allowed_runs_once_and_what_is_allowed_for_good_is_not_asked_again() {
    let room = Room::open(Tree::new()).await;
    let turn = Turn::of(&room);
    {
        let person = Person::who_says(&room, "allow-once").await;
        for _ in 0..2 {
            assert_eq!(turn.here("uname -s").await.text().trim(), "Linux");
        }
        assert_eq!(person.questions().len(), 2, "each time");
    }
    let person = Person::who_says(&room, "allow-always").await;
    for _ in 0..3 {
        assert_eq!(turn.here("uname -s").await.text().trim(), "Linux");
    }
    assert_eq!(person.questions().len(), 1, "once for good");
    let always = person.questions()[0]["always"].clone();
    assert!(always[0]["command"].as_str().is_some_and(|text| text == "uname -s"), "{always}");
    drop(person);
    let person = Person::who_says(&room, "deny").await;
    let denied = turn.here("uname -r").await;
    assert!(denied.is_error && denied.text().contains("the user said no"), "other arguments: {}", denied.text());
    assert_eq!(person.questions().len(), 1);
    room.running.end().await;
}

#[tokio::test]
async fn what_cannot_be_allowed_for_good_is_not_offered_and_not_taken() {
    let room = Room::open(Tree::new()).await;
    let operator = room.operator().await;
    let mut events = operator.events();
    let turn = Turn::of(&room);
    let (result, ()) = tokio::join!(turn.here("sh -c 'echo a; echo b' > out"), async {
        let asked = next(&mut events, "exec.approval.requested").await;
        assert_eq!(asked["request"]["decisions"], json!(["allow-once", "deny"]));
        let id = asked["id"].as_str().expect("an id").to_owned();
        let (message, _) = refused(resolve(&operator, &id, "allow-always").await);
        assert!(message.starts_with("this command cannot always be allowed: "), "{message}");
        resolve(&operator, &id, "deny").await.expect("still open");
    });
    assert!(result.is_error);
    room.running.end().await;
}

#[tokio::test]
async fn a25_what_is_shown_cannot_lie() {
    let room = Room::open(Tree::new()).await;
    let person = Person::who_says(&room, "deny").await;
    let turn = Turn::of(&room);
    let lies = ["echo a\u{1b}[2Kb", "echo \u{202e}txt.exe", "echo a\rrm -rf x", "echo a\u{200b}b", "ls x "];
    for lie in lies {
        turn.here(lie).await;
    }
    let questions = person.questions();
    assert_eq!(questions.len(), lies.len());
    for question in &questions {
        let shown = question["command"].as_str().expect("a text");
        let is_plain = |c: char| !c.is_control() && !matches!(c, '\u{202e}' | '\u{200b}');
        assert!(shown.chars().all(is_plain) && shown.contains("\\u{"), "{shown}");
    }
    let long = turn.here(&format!("echo {}; touch ran", "x".repeat(200_000))).await;
    assert!(long.is_error, "what cannot be shown whole cannot be approved");
    assert_eq!(person.questions().len(), lies.len(), "nobody was asked about what cannot be shown");
    let operator = room.operator().await;
    let long = operator.call("exec.approval.request", json!({"command": "x".repeat(200_000)})).await;
    assert!(refused(long).0.starts_with("the command is too long to show in full"));
    let plan = json!({"argv": ["/bin/sh", "-c", "$0", "evil"], "cwd": null, "rawCommand": "ls"});
    let mut events = operator.events();
    let lie = json!({"command": "ls", "host": "node", "nodeId": "n", "systemRunPlan": plan});
    put(&operator, "a-lie", lie).await;
    let asked = next(&mut events, "exec.approval.requested").await;
    assert_eq!(asked["request"]["command"], "/bin/sh -c $0 evil", "made from what is bound, not from what is claimed");
    room.running.end().await;
}

fn tool_question(content: &str) -> ToolQuestion {
    ToolQuestion {
        agent: "main".to_owned(),
        session: "agent:main:test".to_owned(),
        tool: "write".to_owned(),
        summary: "write /x\u{1b}[2J".to_owned(),
        why: "it is outside".to_owned(),
        content: vec![Passage { change: Change::Added, text: content.to_owned() }],
        offer: Offer::Once,
    }
}

#[tokio::test]
async fn a_call_of_another_tool_is_asked_about_too() {
    let room = Room::open(Tree::new()).await;
    let question = tool_question("evil\u{1b}[2J\n");
    let approver = room.running.gateway().approver();
    assert_eq!(soon("no answer", approver.ask_tool(&question)).await, None, "nobody is there");
    let person = Person::who_says(&room, "allow-once").await;
    assert_eq!(soon("an answer", approver.ask_tool(&question)).await, Some(Answer::Once));
    let asked = person.questions()[0].clone();
    assert_eq!(asked["command"], "write: write /x\\u{1b}[2J");
    assert_eq!((&asked["tool"], &asked["text"]), (&json!("write"), &json!("+ evil\\u{1b}[2J\n")));
    // Whoever talks in that conversation is asked, too.
    assert_eq!((&asked["agentId"], &asked["sessionKey"]), (&json!("main"), &json!("agent:main:test")));
    let long = tool_question(&"x".repeat(200_000));
    assert_eq!(soon("no answer", approver.ask_tool(&long)).await, None);
    assert_eq!(person.questions().len(), 1, "nobody was asked about what cannot be shown");
    drop(person);
    let _person = Person::who_says(&room, "deny").await;
    assert_eq!(soon("an answer", approver.ask_tool(&question)).await, Some(Answer::No));
    room.running.end().await;
}

#[tokio::test]
async fn who_answered_is_in_the_log_also_after_a_restart() {
    let room = Room::open(Tree::new()).await;
    let operator = room.operator().await;
    for (id, decision) in [("first-question", "allow-once"), ("second-question", "deny")] {
        put(&operator, id, json!({"command": format!("echo {id}"), "sessionKey": "agent:main:main"})).await;
        resolve(&operator, id, decision).await.expect("answered");
    }
    let page = async |client: &Client, params: Value| client.call("exec.approval.log", params).await.expect("a page");
    until("both are written", async || page(&operator, json!({})).await["entries"].as_array().map(Vec::len) == Some(2))
        .await;
    let Room { tree, running } = room;
    running.end().await;
    let room = Room::open(tree).await;
    let operator = room.operator().await;
    let first = page(&operator, json!({"limit": 1})).await;
    let entry = &first["entries"][0];
    assert_eq!((&entry["id"], &entry["decision"]), (&json!("second-question"), &json!("deny")));
    assert_eq!((&entry["command"], &entry["sessionKey"]), (&json!("echo second-question"), &json!("agent:main:main")));
    assert_eq!((&entry["by"]["client"], &entry["by"]["address"]), (&json!("cli"), &json!("loopback")));
    assert!(entry["by"]["connId"].is_string() && entry["at"].as_u64() >= entry["askedAt"].as_u64(), "{entry}");
    let rest = page(&operator, json!({"cursor": first["nextCursor"]})).await;
    assert_eq!((&rest["entries"][0]["id"], &rest["nextCursor"]), (&json!("first-question"), &Value::Null));
    let found = page(&operator, json!({"search": "ECHO FIRST"})).await;
    assert_eq!(found["entries"].as_array().map(Vec::len), Some(1));
    room.running.end().await;
}

#[tokio::test]
async fn the_approvals_file_is_replaced_only_by_who_knows_what_is_in_it() {
    let file = json!({"version": 1, "socket": {"path": "/s", "token": "secret-token"}, "agents": {}});
    let room = Room::open(Tree::new().file(".openclaw/exec-approvals.json", file.to_string())).await;
    let operator = room.operator().await;
    let got = operator.call("exec.approvals.get", json!({})).await.expect("the file");
    assert_eq!(keys(&got), ["path", "exists", "hash", "file"]);
    assert!(got["exists"] == true && got["file"]["socket"] == json!({"path": "/s"}), "{got}");
    let new = json!({"version": 1, "agents": {"main": {"allowlist": [{"pattern": "/usr/bin/uname"}]}}});
    let set = async |base: Value| operator.call("exec.approvals.set", json!({"file": new, "baseHash": base})).await;
    let (no_hash, _) = refused(set(Value::Null).await);
    assert_eq!(no_hash, "exec approvals base hash required; re-run exec.approvals.get and retry");
    let (other, _) = refused(set(json!("0123")).await);
    assert_eq!(other, "exec approvals changed since last load; re-run exec.approvals.get and retry");
    let replaced = set(got["hash"].clone()).await.expect("replaced");
    assert_eq!(replaced["file"]["agents"]["main"]["allowlist"][0]["pattern"], "/usr/bin/uname");
    let written = std::fs::read_to_string(room.tree.root().join(".openclaw/exec-approvals.json")).expect("a file");
    assert!(written.contains("secret-token"), "what was not sent back is kept");
    assert!(!replaced.to_string().contains("secret-token"));
    let no_file = operator.call("exec.approvals.set", json!({"baseHash": replaced["hash"]})).await;
    assert_eq!(refused(no_file).0, "exec approvals file is required");
    room.running.end().await;
}

#[tokio::test]
async fn a25_of_a_clients_plan_only_what_is_shown_is_kept() {
    let room = Room::open(Tree::new()).await;
    let operator = room.operator().await;
    let about = |plan: Value| json!({"command": "x", "host": "node", "nodeId": "n", "systemRunPlan": plan});
    let odd = about(json!({"argv": ["chmod", 777, "/x"]}));
    let (message, _) = refused(operator.call("exec.approval.request", odd).await);
    assert_eq!(message, "systemRunPlan.argv must be a list of strings");
    let mut events = operator.events();
    let mut params = about(json!({
        "argv": ["id", "-u"], "cwd": " /w ", "agentId": " main", "sessionKey": "s ", "rawCommand": "ls", "seal": "s1",
        "other": "x".repeat(10_000),
    }));
    params["env"] = json!({" A ": "1\u{202e}", "not-portable": "2", "B": 3});
    put(&operator, "a-plan", params).await;
    let asked = next(&mut events, "exec.approval.requested").await["request"].clone();
    let plan = json!({
        "argv": ["id", "-u"], "cwd": "/w", "rawCommand": "id -u", "agentId": "main", "sessionKey": "s", "seal": "s1",
    });
    assert_eq!(asked["systemRunPlan"], plan);
    assert_eq!((&asked["cwd"], &asked["commandArgv"]), (&json!("/w"), &json!(["id", "-u"])));
    assert_eq!((&asked["envKeys"], &asked["variables"]), (&json!(["A"]), &json!(["A=1\\u{202e}"])));
    room.running.end().await;
}

#[tokio::test]
async fn what_a_client_says_in_a_question_is_bounded() {
    let room = Room::open(Tree::new()).await;
    let operator = room.operator().await;
    let texts = ["cwd", "host", "agentId", "sessionKey", "security", "ask", "resolvedPath"];
    let sources = ["turnSourceChannel", "turnSourceTo", "turnSourceAccountId", "turnSourceThreadId"];
    for name in texts.into_iter().chain(sources) {
        for (value, why) in
            [(json!("x".repeat(4097)), "must NOT have more than 4096 characters"), (json!({}), "must be string")]
        {
            let (message, _) =
                refused(operator.call("exec.approval.request", json!({"command": "x", name: value})).await);
            assert_eq!(message, format!("invalid exec.approval.request params: at /{name}: {why}"));
        }
    }
    let env = json!({"command": "x", "env": {"A": "x".repeat(100_000)}});
    let (message, _) = refused(operator.call("exec.approval.request", env).await);
    assert!(message.starts_with("the variables are too long to show in full"), "{message}");
    let mut events = operator.events();
    put(&operator, "from-a-thread", json!({"command": "x", "turnSourceThreadId": 7, "resolvedPath": "/x"})).await;
    let asked = next(&mut events, "exec.approval.requested").await["request"].clone();
    assert_eq!((&asked["turnSourceThreadId"], &asked["resolvedPath"]), (&json!(7), &json!("/x")));
    room.running.end().await;
}

#[tokio::test]
async fn only_so_many_questions_are_kept() {
    let room = Room::open(Tree::new()).await;
    let mut crowd = Vec::new();
    for _ in 0..7 {
        crowd.push(room.operator().await);
    }
    let last = crowd.pop().expect("one");
    let full = async |operator: &Client| {
        let (message, _) = refused(operator.call("exec.approval.request", json!({"command": "x"})).await);
        assert!(message.starts_with("too many approvals are pending"), "{message}");
    };
    let mut open = Vec::new();
    for (who, asking) in crowd.iter().enumerate() {
        for at in 0..32 {
            let params = json!({"id": format!("q{who}-{at}"), "command": "x", "twoPhase": true});
            open.push(asking.ask("exec.approval.request", &params).expect("sent"));
        }
        for answers in &mut open[32 * who..] {
            soon("accepted", answers.next()).await.expect("accepted");
        }
        full(asking).await;
    }
    full(&last).await;
    // However much others ask, this gateway's own questions are put.
    let approver = room.running.gateway().approver();
    let question = tool_question("x");
    let mut events = last.events();
    let (consent, ()) = tokio::join!(soon("an answer", approver.ask_tool(&question)), async {
        let asked = next(&mut events, "exec.approval.requested").await;
        resolve(&last, asked["id"].as_str().expect("an id"), "allow-once").await.expect("answered");
    });
    assert_eq!(consent, Some(Answer::Once));
    tokio::time::timeout(Duration::from_secs(60), room.running.end()).await.expect("it ends with open questions");
}
