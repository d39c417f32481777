//! Nodes: is everything that is asked of one answered once, and by the right one?

use crate::machine;
use crate::room;
use machine::{
    Machine, Puppet, Turn, allowing, connected, demo_room, home, invoke, puppet_introduction, real, soon, unique, until,
};
use prowess_gateway::client::{CallError, Client};
use prowess_testkit::{Tree, cases, check_all_but};
use room::Room;
use serde_json::{Value, json};

fn refused(result: Result<Value, CallError>) -> (String, Value) {
    match result.expect_err("a refusal") {
        CallError::Refused { error, .. } => {
            (error["message"].as_str().unwrap_or_default().to_owned(), error["details"].clone())
        }
        other => panic!("gone: {other}"),
    }
}

/// Where two answers differ, apart from what is different each time.
fn difference(at: &str, theirs: &Value, ours: &Value) -> Option<String> {
    let is_masked = |name: &str| {
        [
            "ts",
            "connectedAtMs",
            "createdAtMs",
            "expiresAtMs",
            "hash",
            "lastUsedAt",
            "version",
            "pathEnv",
            "displayName",
            "id",
            "caps",
        ]
        .iter()
        .any(|masked| name.ends_with(&format!("/{masked}")))
    };
    if is_masked(at) || (at.ends_with("/payloadJSON") && ours.is_string()) {
        return None;
    }
    match (theirs, ours) {
        // More is no difference.
        (Value::Object(theirs), Value::Object(ours)) => theirs.iter().find_map(|(name, value)| {
            difference(&format!("{at}/{name}"), value, ours.get(name).unwrap_or(&Value::Null))
        }),
        (Value::Array(theirs), Value::Array(ours)) if theirs.len() == ours.len() => theirs
            .iter()
            .zip(ours)
            .enumerate()
            .find_map(|(place, (one, other))| difference(&format!("{at}/{place}"), one, other)),
        (theirs, ours) => (theirs != ours).then(|| format!("{at}: {theirs} and not {ours}")),
    }
}

#[tokio::test]
async fn recorded_requests_get_recorded_answers() {
    let room = demo_room().await;
    let body = r#"echo "demo-bin $1 HOME=$HOME FOO=$FOO""#;
    let machine = Machine::join(&room, home(&allowing(&[&real("uname")]), &[("demo-bin", body)])).await;
    let operator = room.operator().await;
    let base = machine.tree.root().to_string_lossy().into_owned();
    let mut answered = Vec::new();
    for (id, case) in cases(include_str!("golden/frames-node.json")) {
        let text = case["params"].to_string().replace("NODE", &machine.id).replace("HOME/", &format!("{base}/"));
        let params: Value = serde_json::from_str(&text).expect("JSON");
        let mut answers = operator.ask(case["method"].as_str().expect("a method"), &params).expect("sent");
        let first = soon("an answer", answers.next()).await;
        answered.push((id, case, first));
    }
    let deviations = [
        ("op-5", "the name of a JavaScript class is no part of a message"),
        ("op-11", "a shell with a text is judged by the text, so what is allowed runs"),
        ("op-16", "the text of a plan is that of its arguments"),
        ("op-19", "an approved run is run"),
        ("op-21", "the file is another one"),
    ];
    let mut ours = answered.iter().map(|(_, _, first)| first.clone());
    check_all_but(&deviations, answered.iter().map(|(id, case, _)| (id.clone(), case.clone())), |case| {
        let found = match ours.next().expect("an answer for each") {
            Ok(payload) => json!({"ok": true, "payload": payload}),
            Err(CallError::Refused { error, .. }) => json!({"ok": false, "error": error}),
            Err(error) => return Err(error.to_string()),
        };
        let masked = found
            .to_string()
            .replace(&machine.id, "NODE")
            .replace(&format!("{base}/bin"), "BIN")
            .replace(&base, "HOME");
        let found: Value = serde_json::from_str(&masked).expect("JSON");
        difference("", &case["answers"][0], &found).map_or(Ok(()), Err)
    });
    let answer = |name: &str| {
        let (_, _, first) = answered.iter().find(|(id, _, _)| id == name).expect("recorded");
        first.clone().expect("an answer")
    };
    assert_eq!(answer("op-11")["payload"]["stdout"], "Linux\n");
    assert_eq!(answer("op-16")["payload"]["plan"]["rawCommand"], answer("op-16")["payload"]["plan"]["argv"][0]);
    assert!(answer("op-19")["payload"]["stdout"].as_str().is_some_and(|text| text.starts_with("uid=")));
    let file = answer("op-21");
    assert!(
        file["exists"] == true
            && file["file"]["version"] == 1
            && file["hash"].as_str().is_some_and(|hash| hash.len() == 64)
    );
    machine.end().await;
    room.running.end().await;
}

#[tokio::test]
async fn a_newer_connection_takes_the_place_of_the_older_and_keeps_it() {
    let room = Room::open(Tree::new()).await;
    let operator = room.operator().await;
    let older = Puppet::join(&room, "one", &json!({}), |_, _| None).await;
    let waiting = tokio::spawn({
        let (operator, id) = (operator.clone(), older.id.clone());
        async move { invoke(&operator, &id, "system.which", json!({"bins": ["a"]})).await }
    });
    until("the older is asked", async || older.count("node.invoke.request") >= 1).await;
    let newer = Client::connect(&room.url(), &puppet_introduction("one", &json!({}))).await.expect("let in");
    let (message, _) = refused(soon("the older is gone", waiting).await.expect("no panic"));
    assert_eq!(message, "Error: node disconnected (system.which)");
    soon("the older is closed", older.client.ended()).await;
    // What the older one's end would have taken away.
    let id = older.id.clone();
    drop(older);
    for _ in 0..20 {
        assert_eq!(connected(&operator).await, std::slice::from_ref(&id));
        tokio::task::yield_now().await;
    }
    drop(newer);
    until("the newer is gone, too", async || connected(&operator).await.is_empty()).await;
    let described = operator.call("node.describe", json!({"nodeId": id})).await.expect("still known");
    assert_eq!((&described["connected"], &described["paired"]), (&json!(false), &json!(true)));
    let (message, _) = refused(operator.call("node.describe", json!({"nodeId": "two"})).await);
    assert_eq!(message, "unknown nodeId");
    room.running.end().await;
}

#[tokio::test]
async fn late_and_foreign_answers_are_ignored() {
    let room = Room::open(Tree::new()).await;
    let operator = room.operator().await;
    let node = Puppet::join(&room, "one", &json!({}), |_, _| None).await;
    let other = Puppet::join(&room, "two", &json!({}), |_, _| None).await;
    let params = json!({
        "nodeId": node.id, "command": "system.which", "params": {"bins": ["a"]}, "timeoutMs": 50, "idempotencyKey": unique(),
    });
    let (message, details) = refused(operator.call("node.invoke", params).await);
    assert_eq!(message, "TIMEOUT: node invoke timed out");
    assert_eq!(details["nodeError"]["code"], "TIMEOUT");
    until("the node hears that nobody waits", async || node.count("node.invoke.cancel") >= 1).await;
    let heard = node.heard.lock().expect("no panic").clone();
    let (_, request) =
        heard.iter().find(|(name, p)| name == "node.invoke.request" && p["timeoutMs"] == 50).expect("asked");
    let answer = json!({"id": request["id"], "nodeId": node.id, "ok": true, "payloadJSON": "{}"});
    let late = node.client.call("node.invoke.result", answer.clone()).await.expect("an answer");
    assert_eq!(late, json!({"ok": true, "ignored": true}));
    let (message, _) = refused(other.client.call("node.invoke.result", answer).await);
    assert_eq!(message, "nodeId mismatch");

    let asking = tokio::spawn({
        let (operator, id) = (operator.clone(), node.id.clone());
        async move { invoke(&operator, &id, "system.which", json!({"bins": ["b"]})).await }
    });
    let mut id = Value::Null;
    until("the node is asked", async || {
        let heard = node.heard.lock().expect("no panic");
        let asked = heard.iter().rev().find(|(name, p)| name == "node.invoke.request" && p["timeoutMs"] == 60_000);
        id = asked.map(|(_, payload)| payload["id"].clone()).unwrap_or_default();
        id.is_string()
    })
    .await;
    let forged = json!({"id": id, "nodeId": other.id, "ok": true, "payloadJSON": "\"forged\""});
    assert_eq!(other.client.call("node.invoke.result", forged).await.expect("an answer")["ignored"], true);
    let own = json!({"id": id, "nodeId": node.id, "ok": true, "payloadJSON": "\"own\""});
    assert_eq!(node.client.call("node.invoke.result", own.clone()).await.expect("an answer"), json!({"ok": true}));
    assert_eq!(node.client.call("node.invoke.result", own).await.expect("an answer")["ignored"], true, "only once");
    assert_eq!(soon("an answer", asking).await.expect("no panic").expect("the node's"), json!("own"));
    room.running.end().await;
}

#[tokio::test]
async fn who_hangs_up_calls_the_node_off() {
    let room = Room::open(Tree::new()).await;
    let node = Puppet::join(&room, "one", &json!({}), |_, _| None).await;
    let caller = room.operator().await;
    let params = json!({
        "nodeId": node.id, "command": "system.which", "params": {"bins": ["marked"]}, "idempotencyKey": unique(),
    });
    let asked = caller.ask("node.invoke", &params).expect("sent");
    let mut id = Value::Null;
    until("the node is asked", async || {
        let heard = node.heard.lock().expect("no panic");
        let own = heard
            .iter()
            .find(|(_, payload)| payload["paramsJSON"].as_str().is_some_and(|text| text.contains("marked")));
        id = own.map(|(_, payload)| payload["id"].clone()).unwrap_or_default();
        id.is_string()
    })
    .await;
    drop((asked, caller));
    until("the node is called off", async || {
        let heard = node.heard.lock().expect("no panic");
        heard.iter().any(|(name, payload)| name == "node.invoke.cancel" && payload["id"] == id)
    })
    .await;
    room.running.end().await;
}

#[tokio::test]
async fn a_node_gets_only_what_its_kind_may_get() {
    let config = json!({"gateway": {"nodes": {"allowCommands": ["camera.snap"], "denyCommands": ["system.which"]}}});
    let room = Room::open(Tree::new().file(".openclaw/openclaw.json", config.to_string())).await;
    let operator = room.operator().await;
    let commands =
        json!({"commands": ["system.run", "system.which", "camera.snap", "system.execApprovals.get", "x.y"]});
    let node = Puppet::join(&room, "one", &commands, |_, _| Some(Ok(json!({})))).await;
    let described = operator.call("node.describe", json!({"nodeId": node.id})).await.expect("known");
    assert_eq!(described["commands"], json!(["camera.snap", "system.run"]));
    invoke(&operator, &node.id, "camera.snap", json!({})).await.expect("added by the operator");
    for (command, reason) in [("system.which", "command not allowlisted"), ("x.y", "command not allowlisted")] {
        let (_, details) = refused(invoke(&operator, &node.id, command, json!({})).await);
        assert_eq!(details, json!({"reason": reason, "command": command}));
    }
    let (message, _) = refused(invoke(&operator, &node.id, "system.notify", json!({})).await);
    assert_eq!(message, "node command not allowed: the node (platform: linux) does not support \"system.notify\"");
    let (message, details) = refused(invoke(&operator, "nobody", "system.run", json!({"command": ["id"]})).await);
    assert_eq!((message.as_str(), details), ("node not connected", json!({"code": "NOT_CONNECTED"})));
    room.running.end().await;
}

#[tokio::test]
async fn a_node_has_the_name_that_it_was_given() {
    let room = Room::open(Tree::new()).await;
    let operator = room.operator().await;
    let node = Puppet::join(&room, "one", &json!({}), |_, _| None).await;
    let renamed = operator.call("node.rename", json!({"nodeId": node.id, "displayName": " Attic "})).await;
    assert_eq!(renamed.expect("renamed"), json!({"nodeId": node.id, "displayName": "Attic"}));
    let list = operator.call("node.list", json!({})).await.expect("a list");
    assert_eq!(list["nodes"][0]["displayName"], "Attic");
    let paired = operator.call("node.pair.list", json!({})).await.expect("a list");
    assert_eq!((&paired["pending"], &paired["paired"][0]["displayName"]), (&json!([]), &json!("Attic")));
    let (message, _) = refused(operator.call("node.rename", json!({"nodeId": "x", "displayName": "y"})).await);
    assert_eq!(message, "unknown nodeId");
    let Room { tree, running } = room;
    drop(node);
    running.end().await;
    let room = Room::open(tree).await;
    let list = room.operator().await.call("node.list", json!({})).await.expect("a list");
    assert_eq!((&list["nodes"][0]["displayName"], &list["nodes"][0]["connected"]), (&json!("Attic"), &json!(false)));
    room.running.end().await;
}

/// Tells the gateway of a run, in the name of a node.
async fn tell(node: &Puppet, event: &str, payload: Value) {
    let params = json!({"event": event, "payloadJSON": payload.to_string()});
    assert_eq!(node.client.call("node.event", params).await.expect("taken"), json!({"ok": true}));
}

/// What was said in a session.
async fn history(operator: &Client, session: &str) -> String {
    let history = operator.call("chat.history", json!({"sessionKey": session})).await.expect("a history");
    history["messages"].to_string()
}

async fn make_session(operator: &Client, key: &str) {
    operator.call("sessions.patch", json!({"key": key, "label": key})).await.expect("made");
}

/// Sends a run for a session, which the node answers at once; its end is told later.
async fn send_run(operator: &Client, node: &Puppet, session: &str, run: &str) {
    let params = json!({"command": ["id"], "sessionKey": session, "runId": run});
    invoke(operator, &node.id, "system.run", params).await.expect("an answer");
}

fn finished(run: &str, output: &str) -> Value {
    json!({"runId": run, "exitCode": 3, "command": "id", "output": output})
}

#[tokio::test]
async fn who_called_a_run_off_is_not_told_of_its_end() {
    let room = Room::open(Tree::new()).await;
    let operator = room.operator().await;
    let act = |_: &str, params: &Value| (params["runId"] == "other").then(|| Ok(json!({"exitCode": 3})));
    let node = Puppet::join(&room, "one", &json!({}), act).await;
    make_session(&operator, "agent:main:test").await;
    let turn = Turn::of(&room);
    let running = tokio::spawn(async move { turn.there("sleep 600").await });
    let mut run = Value::Null;
    until("the node is asked", async || {
        let heard = node.heard.lock().expect("no panic");
        let asked = heard.iter().find(|(_, payload)| payload["command"] == "system.run");
        let params = asked.and_then(|(_, payload)| serde_json::from_str::<Value>(payload["paramsJSON"].as_str()?).ok());
        run = params.map(|params| params["runId"].clone()).unwrap_or_default();
        run.is_string()
    })
    .await;
    running.abort();
    until("it is called off", async || node.count("node.invoke.cancel") >= 1).await;
    tell(&node, "exec.finished", finished(run.as_str().expect("a name"), "called off")).await;
    send_run(&operator, &node, "agent:main:test", "other").await;
    tell(&node, "exec.finished", finished("other", "went on")).await;
    until("the other is told", async || history(&operator, "agent:main:test").await.contains("went on")).await;
    let said = history(&operator, "agent:main:test").await;
    assert!(!said.contains("called off"), "{said}");
    room.running.end().await;
}

#[tokio::test]
async fn a_session_that_is_gone_does_not_come_back_for_news() {
    let room = Room::open(Tree::new()).await;
    let operator = room.operator().await;
    let node = Puppet::join(&room, "one", &json!({}), |_, _| Some(Ok(json!({"exitCode": 3})))).await;
    for key in ["agent:main:gone", "agent:main:anew", "agent:main:here"] {
        make_session(&operator, key).await;
        send_run(&operator, &node, key, key).await;
    }
    send_run(&operator, &node, "agent:main:never", "agent:main:never").await;
    operator.call("sessions.delete", json!({"key": "agent:main:gone"})).await.expect("removed");
    operator.call("sessions.reset", json!({"key": "agent:main:anew"})).await.expect("begun anew");
    for key in ["agent:main:gone", "agent:main:never", "agent:main:anew", "agent:main:here"] {
        tell(&node, "exec.finished", finished(key, "some news")).await;
    }
    until("who is there hears it", async || history(&operator, "agent:main:here").await.contains("some news")).await;
    let list = operator.call("sessions.list", json!({})).await.expect("a list");
    let mut keys: Vec<&str> =
        list["sessions"].as_array().expect("a list").iter().filter_map(|session| session["key"].as_str()).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["agent:main:anew", "agent:main:here"]);
    assert!(!history(&operator, "agent:main:anew").await.contains("some news"));
    room.running.end().await;
}

#[tokio::test]
async fn a_node_speaks_only_of_runs_that_it_was_sent_and_only_to_their_session() {
    let room = Room::open(Tree::new()).await;
    let operator = room.operator().await;
    let node = Puppet::join(&room, "one", &json!({}), |_, _| Some(Ok(json!({"exitCode": 0})))).await;
    let other = Puppet::join(&room, "two", &json!({}), |_, _| None).await;
    make_session(&operator, "agent:main:mine").await;
    let params = json!({"command": ["id"], "sessionKey": "agent:main:mine", "runId": "run-1"});
    invoke(&operator, &node.id, "system.run", params).await.expect("an answer");
    let finished = |run: &str, output: &str| json!({"runId": run, "sessionKey": "agent:main:other", "exitCode": 3, "command": "id", "output": output});
    tell(&node, "exec.finished", finished("no-such-run", "x")).await;
    tell(&other, "exec.finished", finished("run-1", "x")).await;
    tell(&node, "exec.finished", finished("run-1", "all\nwell\u{1b}[2J")).await;
    tell(&node, "exec.finished", finished("run-1", "twice")).await;
    let history = async |session: &str| history(&operator, session).await;
    let told = format!("Exec finished (node={} id=run-1, code 3)", node.id);
    until("its session hears it", async || history("agent:main:mine").await.contains(&told)).await;
    let params = json!({"command": ["id"], "sessionKey": "agent:main:mine", "runId": "run-2"});
    invoke(&operator, &node.id, "system.run", params).await.expect("an answer");
    tell(&node, "exec.denied", json!({"runId": "run-2", "command": "id", "reason": "allowlist-miss"})).await;
    let denied = format!("Exec denied (node={} id=run-2, allowlist-miss): id", node.id);
    until("and the refusal", async || history("agent:main:mine").await.contains(&denied)).await;
    let heard = history("agent:main:mine").await;
    assert_eq!(
        heard.matches(r#""toolName":"exec","content":[{"type":"text","text":"Exec finished"#).count(),
        1,
        "{heard}"
    );
    assert!(heard.contains("all well") && !heard.contains("\\u001b") && !heard.contains("twice"), "{heard}");
    assert!(!history("agent:main:other").await.contains("Exec"));
    room.running.end().await;
}

/// An approved question for a run on `node`, and the parameters that it is for.
async fn approved(operator: &Client, node: &str, id: &str, decision: &str) -> Value {
    let plan = json!({
        "argv": ["/bin/sh", "-lc", "id"], "cwd": "/tmp", "rawCommand": "id", "agentId": "main", "sessionKey": "agent:main:x",
    });
    let request = json!({
        "id": id, "command": "id", "systemRunPlan": plan, "env": {"A": "1"}, "nodeId": node, "host": "node",
        "twoPhase": true, "timeoutMs": 60_000,
    });
    let mut answers = operator.ask("exec.approval.request", &request).expect("sent");
    soon("accepted", answers.next()).await.expect("accepted");
    operator.call("exec.approval.resolve", json!({"id": id, "decision": decision})).await.expect("answered");
    json!({
        "command": ["/bin/sh", "-lc", "id"], "rawCommand": "id", "cwd": "/tmp", "agentId": "main",
        "sessionKey": "agent:main:x", "env": {"A": "1"}, "approved": true, "approvalDecision": "allow-once", "runId": id,
    })
}

#[tokio::test]
async fn a23_an_approval_is_for_one_run_and_for_that_run_only() {
    let room = Room::open(Tree::new()).await;
    let operator = room.operator().await;
    let stranger = room.operator().await;
    let node = Puppet::join(&room, "one", &json!({}), |_, params| Some(Ok(params.clone()))).await;
    let other = Puppet::join(&room, "two", &json!({}), |_, params| Some(Ok(params.clone()))).await;
    let run = approved(&operator, &node.id, "approval-1", "allow-once").await;
    let code = async |who: &Client, to: &str, params: &Value| {
        refused(invoke(who, to, "system.run", params.clone()).await).1["code"].as_str().unwrap_or_default().to_owned()
    };
    let with = |name: &str, value: Value| {
        let mut other = run.clone();
        other[name] = value;
        other
    };
    assert_eq!(code(&operator, &other.id, &run).await, "APPROVAL_NODE_MISMATCH");
    assert_eq!(code(&stranger, &node.id, &run).await, "APPROVAL_CLIENT_MISMATCH");
    let others = [
        ("command", json!(["/bin/sh", "-lc", "id; evil"]), "APPROVAL_REQUEST_MISMATCH"),
        ("cwd", json!("/"), "APPROVAL_REQUEST_MISMATCH"),
        ("cwd", Value::Null, "APPROVAL_REQUEST_MISMATCH"),
        ("agentId", json!("other"), "APPROVAL_REQUEST_MISMATCH"),
        ("sessionKey", json!("agent:main:y"), "APPROVAL_REQUEST_MISMATCH"),
        ("env", json!({"A": "2"}), "APPROVAL_ENV_MISMATCH"),
        ("env", json!({"A": "1", "B": "2"}), "APPROVAL_ENV_MISMATCH"),
        ("env", json!({}), "APPROVAL_ENV_MISMATCH"),
        ("runId", json!("no-such"), "UNKNOWN_APPROVAL_ID"),
        ("runId", Value::Null, "MISSING_RUN_ID"),
    ];
    for (name, value, expected) in others {
        assert_eq!(code(&operator, &node.id, &with(name, value.clone())).await, expected, "{name} {value}");
    }
    let runs: Vec<_> = (0..8).map(|_| invoke(&operator, &node.id, "system.run", run.clone())).collect();
    let ran = futures_util::future::join_all(runs).await;
    let (done, again): (Vec<_>, Vec<_>) = ran.into_iter().partition(Result::is_ok);
    assert_eq!((done.len(), again.len()), (1, 7), "once, whoever comes first");
    let sent = done.into_iter().next().expect("one").expect("it ran");
    assert_eq!((&sent["approved"], &sent["approvalDecision"]), (&json!(true), &json!("allow-once")));
    for again in again {
        assert_eq!(refused(again).1["code"], "APPROVAL_REQUIRED");
    }
    let denied = approved(&operator, &node.id, "approval-2", "deny").await;
    assert_eq!(code(&operator, &node.id, &denied).await, "APPROVAL_REQUIRED", "a denied one is none");
    let mut forged = run.clone();
    forged["approved"] = Value::Null;
    forged["approvalDecision"] = "sudo".into();
    let plain = invoke(&operator, &node.id, "system.run", forged).await.expect("forwarded without it");
    assert!(plain["approved"].is_null() && plain["approvalDecision"].is_null(), "{plain}");
    let always = approved(&operator, &node.id, "approval-3", "allow-always").await;
    for _ in 0..2 {
        let sent = invoke(&operator, &node.id, "system.run", always.clone()).await.expect("while it is known");
        assert_eq!(sent["approvalDecision"], "allow-always");
    }
    room.running.end().await;
}

#[tokio::test]
async fn a25_only_what_was_shown_goes_on_to_a_node() {
    let room = Room::open(Tree::new()).await;
    let operator = room.operator().await;
    let node = Puppet::join(&room, "one", &json!({}), |_, params| Some(Ok(params.clone()))).await;
    let mut run = approved(&operator, &node.id, "approval-1", "allow-once").await;
    run["env"] = json!({" A ": "1", "not-portable": "evil", "B": ["evil"]});
    run["cwd"] = " /tmp".into();
    let sent = invoke(&operator, &node.id, "system.run", run).await.expect("it ran");
    assert_eq!((&sent["env"], &sent["cwd"]), (&json!({"A": "1"}), &json!("/tmp")), "{sent}");
    room.running.end().await;
}

#[tokio::test]
async fn an_approval_without_variables_is_not_for_a_run_with_some() {
    let room = Room::open(Tree::new()).await;
    let operator = room.operator().await;
    let node = Puppet::join(&room, "one", &json!({}), |_, params| Some(Ok(params.clone()))).await;
    let plan = json!({"argv": ["id"], "cwd": null, "rawCommand": "id", "agentId": null, "sessionKey": null});
    let request = json!({"id": "plain", "command": "id", "systemRunPlan": plan, "nodeId": node.id, "host": "node", "twoPhase": true});
    let mut answers = operator.ask("exec.approval.request", &request).expect("sent");
    soon("accepted", answers.next()).await.expect("accepted");
    let run = json!({"command": ["id"], "approved": true, "runId": "plain"});
    let (_, details) = refused(invoke(&operator, &node.id, "system.run", run.clone()).await);
    assert_eq!(details["code"], "APPROVAL_REQUIRED", "nobody has answered yet");
    operator.call("exec.approval.resolve", json!({"id": "plain", "decision": "allow-once"})).await.expect("answered");
    let mut with = run.clone();
    with["env"] = json!({"LD_AUDIT": "x"});
    let (_, details) = refused(invoke(&operator, &node.id, "system.run", with).await);
    assert_eq!(details["code"], "APPROVAL_ENV_BINDING_MISSING");
    assert_eq!(details["envKeys"], json!(["LD_AUDIT"]));
    invoke(&operator, &node.id, "system.run", run).await.expect("this one");
    room.running.end().await;
}

#[tokio::test]
async fn what_is_no_parameter_does_not_go_on() {
    let room = Room::open(Tree::new()).await;
    let operator = room.operator().await;
    let node = Puppet::join(&room, "one", &json!({}), |_, params| Some(Ok(params.clone()))).await;
    let params = json!({"command": ["id"], "skillEnv": {"K": "v"}, "seal": "x", "evil": true, "timeoutMs": 5});
    let sent = invoke(&operator, &node.id, "system.run", params).await.expect("an answer");
    let mut names: Vec<&str> = sent.as_object().expect("an object").keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["command", "runId", "timeoutMs"]);
    room.running.end().await;
}
