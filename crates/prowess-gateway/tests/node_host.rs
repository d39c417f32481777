//! The node host: does a machine run what it may, for whom it may, and nothing else?

#[path = "node_host/lone.rs"]
mod lone;

use crate::machine;
use crate::room;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use machine::{Machine, Person, Turn, allowing, call, demo_room, home, invoke, real, soon, unique, until};
use prowess_exec::exec_tool::ExecCall;
use prowess_gateway::client::CallError;
use prowess_gateway::node_host::WhenLost;
use prowess_policy::Host;
use prowess_testkit::Tree;
use room::Room;
use serde_json::{Value, json};

fn message(result: Result<Value, CallError>) -> String {
    result.expect_err("a refusal").to_string()
}

fn shell(text: &str) -> Value {
    json!({"command": ["/bin/sh", "-lc", text], "rawCommand": text})
}

#[tokio::test]
async fn a_command_through_a_shell_obeys_the_same_rules_as_any_other() {
    let room = demo_room().await;
    let tree = home(&allowing(&[&real("uname")]), &[("demo-bin", "echo demo $1"), ("other", "echo other")]);
    let machine = Machine::join(&room, tree).await;
    let operator = room.operator().await;
    let said = async |text: &str| {
        invoke(&operator, &machine.id, "system.run", shell(text)).await.map(|payload| payload["stdout"].clone())
    };
    assert_eq!(said("uname -s").await, Ok(json!("Linux\n")), "the allowlist");
    assert_eq!(said("uname -s | head -n 1 | tr a-z A-Z").await, Ok(json!("LINUX\n")), "safe programs");
    assert_eq!(said("demo-bin hello").await, Ok(json!("demo hello\n")), "programs of skills");
    for text in ["other", "uname -s; other", "uname $(other)", "./demo-bin", "uname > out"] {
        assert_eq!(message(said(text).await), "UNAVAILABLE: SYSTEM_RUN_DENIED: approval required", "{text}");
    }
    assert!(!machine.path(".openclaw/workspace/out").exists());
    machine.end().await;
    room.running.end().await;
}

/// M-NODE-06
#[tokio::test]
async fn programs_of_skills_run_unasked_only_where_the_machine_says_so() {
    let room = demo_room().await;
    let programs = [("demo-bin", "echo demo"), ("other-bin", "echo other")];
    for (auto, is_listed, runs) in [(true, false, true), (false, false, false), (false, true, true)] {
        let mut rules = allowing(&[]);
        rules["defaults"]["autoAllowSkills"] = auto.into();
        let tree = home(&rules, &programs);
        if is_listed {
            let path = tree.root().canonicalize().expect("it is there").join("bin/demo-bin");
            rules["agents"]["*"]["allowlist"] = json!([{"pattern": path}]);
            std::fs::write(tree.root().join(".openclaw/exec-approvals.json"), rules.to_string()).expect("written");
        }
        let machine = Machine::join(&room, tree).await;
        let operator = room.operator().await;
        let said = async |program: &str| invoke(&operator, &machine.id, "system.run", shell(program)).await;
        let denied = "UNAVAILABLE: SYSTEM_RUN_DENIED: approval required";
        if runs {
            assert_eq!(said("demo-bin").await.expect("it runs")["stdout"], "demo\n", "{auto} {is_listed}");
        } else {
            assert_eq!(message(said("demo-bin").await), denied, "{auto} {is_listed}");
        }
        assert_eq!(message(said("other-bin").await), denied, "no skill declares it: {auto} {is_listed}");
        machine.end().await;
    }
    room.running.end().await;
}

#[tokio::test]
async fn a_rule_knows_when_it_was_used_last_and_for_what() {
    let room = demo_room().await;
    let mut rules = allowing(&[&real("uname")]);
    // As a person writes it: without a name.
    rules["agents"]["main"] = json!({"allowlist": [{"pattern": real("id")}, {"pattern": real("who")}]});
    let machine = Machine::join(&room, home(&rules, &[])).await;
    let operator = room.operator().await;
    for text in ["id -u", "uname -s"] {
        invoke(&operator, &machine.id, "system.run", shell(text)).await.expect("it may run");
    }
    let file = machine.approvals();
    for (place, command, program) in
        [("/agents/*/allowlist/0", "uname -s", "uname"), ("/agents/main/allowlist/0", "id -u", "id")]
    {
        let rule = file.pointer(place).expect("a rule");
        assert_eq!((&rule["lastUsedCommand"], &rule["lastResolvedPath"]), (&json!(command), &json!(real(program))));
        assert!(rule["lastUsedAt"].as_u64().is_some_and(|at| at > 0), "{rule}");
    }
    assert!(file["agents"]["main"]["allowlist"][1].get("lastUsedAt").is_none(), "{file}");
    machine.end().await;
    room.running.end().await;
}

#[tokio::test]
async fn the_machines_own_word_is_the_last() {
    let room = demo_room().await;
    for (rules, expected) in [
        (json!({"security": "deny"}), "UNAVAILABLE: SYSTEM_RUN_DISABLED: security=deny"),
        (json!({"security": "allowlist", "ask": "off"}), "UNAVAILABLE: SYSTEM_RUN_DENIED: allowlist miss"),
        (json!({"security": "full", "ask": "always"}), "UNAVAILABLE: SYSTEM_RUN_DENIED: approval required"),
    ] {
        let machine = Machine::join(&room, home(&json!({"version": 1, "defaults": rules}), &[])).await;
        let operator = room.operator().await;
        assert_eq!(message(invoke(&operator, &machine.id, "system.run", shell("touch ran")).await), expected);
        assert!(!machine.path(".openclaw/workspace/ran").exists(), "decided before anything ran");
        machine.end().await;
        until("it is gone", async || machine::connected(&operator).await.is_empty()).await;
    }
    let broken = Tree::new().file(".openclaw/exec-approvals.json", "{\"version\": 1,}");
    let machine = Machine::join(&room, broken).await;
    let operator = room.operator().await;
    let told = message(invoke(&operator, &machine.id, "system.run", shell("uname")).await);
    assert!(told.contains("is not JSON"), "what cannot be read allows nothing: {told}");
    machine.end().await;
    room.running.end().await;
}

/// Without rules the sandbox decides, as on the gateway's own machine.
#[tokio::test]
async fn a_machine_without_rules_runs_what_stays_in_its_sandbox() {
    let survey = prowess_exec::sandbox::Survey::with_helper(machine::helper());
    if !survey.network().works || !survey.view().works {
        eprintln!("skipped: {}, {}", survey.network().what, survey.view().what);
        return;
    }
    let room = demo_room().await;
    let machine = Machine::join(&room, Tree::new().dir(".openclaw/workspace")).await;
    let operator = room.operator().await;
    let said = async |text: &str| invoke(&operator, &machine.id, "system.run", shell(text)).await;
    let made = said("for i in 1 2; do echo line $i; done > made; cat made").await.expect("it stays inside");
    assert_eq!(made["stdout"], "line 1\nline 2\n");
    assert!(machine.path(".openclaw/workspace/made").exists());
    for text in ["curl -sS http://weather.test/", "cat ~/.openclaw/openclaw.json", "git push https://git.test/x"] {
        let told = message(said(text).await);
        assert_eq!(told, "UNAVAILABLE: SYSTEM_RUN_DENIED: approval required", "{text}");
    }
    let plan = invoke(&operator, &machine.id, "system.run.prepare", shell("curl http://weather.test/")).await;
    let objections = plan.expect("a plan")["judgment"]["objections"].to_string();
    assert!(objections.contains("weather.test"), "the question names the host: {objections}");
    machine.end().await;
    room.running.end().await;
}

#[tokio::test]
async fn programs_and_approvals_of_the_machine_can_be_asked_for() {
    let room = demo_room().await;
    let machine = Machine::join(&room, home(&allowing(&[]), &[("demo-bin", "")])).await;
    let operator = room.operator().await;
    let bins = json!({"bins": ["demo-bin", "uname", "no-such-program", "/bin/ls", "../bin/demo-bin", ""]});
    let found = invoke(&operator, &machine.id, "system.which", bins).await.expect("an answer");
    let names: Vec<&String> = found["bins"].as_object().expect("an object").keys().collect();
    assert_eq!(names, ["demo-bin", "uname"]);
    assert_eq!(
        message(invoke(&operator, &machine.id, "system.which", json!({})).await),
        "INVALID_REQUEST: INVALID_REQUEST: bins required"
    );
    let got = operator.call("exec.approvals.node.get", json!({"nodeId": machine.id})).await.expect("the file");
    let file = json!({"version": 1, "agents": {"*": {"allowlist": [{"pattern": real("uname")}]}}});
    let set = async |base: Value| {
        operator.call("exec.approvals.node.set", json!({"nodeId": machine.id, "file": file, "baseHash": base})).await
    };
    assert!(message(set(Value::Null).await).contains("exec approvals base hash required; reload and retry"));
    assert!(message(set(json!("00")).await).contains("exec approvals changed; reload and retry"));
    set(got["hash"].clone()).await.expect("replaced");
    invoke(&operator, &machine.id, "system.run", shell("uname")).await.expect("allowed now");
    machine.end().await;
    room.running.end().await;
}

#[tokio::test]
async fn a_turn_asks_here_for_what_runs_there_and_always_means_always() {
    let room = demo_room().await;
    let machine = Machine::join(&room, home(&allowing(&[]), &[("tool", "echo did $1")])).await;
    let turn = Turn::of(&room);
    let nobody = turn.there("tool a").await;
    assert!(nobody.is_error && nobody.text().contains("nobody to ask"), "{}", nobody.text());
    {
        let person = Person::who_says(&room, "deny").await;
        let denied = turn.there("tool a").await;
        assert!(denied.is_error && denied.text().contains("the user said no"), "{}", denied.text());
        let question = &person.questions()[0];
        assert_eq!((&question["command"], &question["host"]), (&json!("tool a"), &json!("node")));
        assert_eq!(question["commandArgv"], json!(["/bin/sh", "-lc", "tool a"]));
        assert_eq!(question["nodeId"], machine.id.as_str());
        assert!(question["objections"].as_array().is_some_and(|all| !all.is_empty()), "{question}");
    }
    {
        let person = Person::who_says(&room, "allow-once").await;
        for _ in 0..2 {
            assert_eq!(turn.there("tool a").await.text(), "did a");
        }
        assert_eq!(person.questions().len(), 2);
    }
    let person = Person::who_says(&room, "allow-always").await;
    for _ in 0..3 {
        let result = turn.there("tool a").await;
        assert_eq!((result.text().as_str(), &result.details["host"]), ("did a", &json!("node")));
    }
    assert_eq!(person.questions().len(), 1, "the machine remembers: {}", machine.approvals());
    turn.there("tool b").await;
    assert_eq!(person.questions().len(), 2, "other arguments are another command");
    machine.end().await;
    room.running.end().await;
}

#[tokio::test]
async fn a_turn_finds_the_node_that_it_means() {
    let room = demo_room().await;
    let turn = Turn::of(&room);
    let none = turn.there("uname").await;
    assert!(none.text().starts_with("exec host=node requires a paired node (none available)"), "{}", none.text());
    let rules = json!({"version": 1, "defaults": {"security": "full", "ask": "off"}});
    let attic = Machine::join_with(&room, home(&rules, &[("where", "echo attic")]), |options| {
        options.display_name = Some("The Attic".to_owned());
    })
    .await;
    assert_eq!(turn.there("where").await.text(), "attic", "the only one");
    let cellar = Machine::join_with(&room, home(&rules, &[("where", "echo cellar")]), |options| {
        options.display_name = Some("Cellar".to_owned());
    })
    .await;
    let many = turn.there("where").await;
    assert!(many.text().contains("requires a node id when multiple nodes are available"), "{}", many.text());
    let on = async |node: &str, bound: Option<&str>| {
        let mut setting = turn.setting.clone();
        setting.settings.node = bound.map(str::to_owned);
        let call = ExecCall { host: Some(Host::Node), node: Some(node.to_owned()), ..call("where") };
        soon("an answer", Box::pin(turn.exec.run(&call, &setting))).await.text()
    };
    assert_eq!(on("the attic", None).await, "attic");
    assert_eq!(on(&cellar.id, None).await, "cellar");
    assert_eq!(on(&cellar.id[..8], None).await, "cellar");
    assert_eq!(on("cellar", Some("Cellar")).await, "cellar");
    assert_eq!(on("the-attic", Some("Cellar")).await, "exec node not allowed (bound to Cellar)");
    assert!(on("loft", None).await.starts_with("unknown node: loft"));
    attic.end().await;
    cellar.end().await;
    room.running.end().await;
}

/// Rules under which everything runs.
fn everything() -> Value {
    json!({"version": 1, "defaults": {"security": "full", "ask": "off"}})
}

fn lines(path: &std::path::Path) -> usize {
    std::fs::read_to_string(path).map_or(0, |text| text.lines().count())
}

#[tokio::test]
async fn the_same_request_is_done_once() {
    let room = demo_room().await;
    let machine = Machine::join(&room, home(&everything(), &[])).await;
    let operator = room.operator().await;
    let key = unique();
    let ask = async |text: &str| {
        let params = json!({
            "nodeId": machine.id, "command": "system.run", "timeoutMs": 60_000, "idempotencyKey": key,
            "params": {"command": ["/bin/sh", "-c", text]},
        });
        soon("an answer", operator.call("node.invoke", params)).await
    };
    let text = "echo ran >> runs; sleep 0.2; wc -l < runs";
    let (one, other) = tokio::join!(ask(text), ask(text));
    let again = ask(text).await;
    for answer in [one, other, again] {
        assert_eq!(answer.expect("an answer")["payload"]["stdout"].as_str().map(str::trim), Some("1"));
    }
    assert_eq!(lines(&machine.path(".openclaw/workspace/runs")), 1);
    let refused = message(ask("echo other").await);
    assert!(refused.contains("idempotencyKey was used for another request"), "{refused}");
    machine.end().await;
    room.running.end().await;
}

#[tokio::test]
async fn a_deadline_ends_all_that_a_run_started() {
    let room = demo_room().await;
    let machine = Machine::join(&room, home(&everything(), &[])).await;
    let operator = room.operator().await;
    let text = "(while :; do echo tick >> ticks; sleep 0.02; done) & echo started; wait";
    let params = json!({"command": ["/bin/sh", "-c", text], "timeoutMs": 2000});
    let reply = invoke(&operator, &machine.id, "system.run", params).await.expect("an end");
    assert_eq!((&reply["timedOut"], &reply["success"]), (&json!(true), &json!(false)));
    assert!(reply.get("exitCode").is_none());
    let ticks = machine.path(".openclaw/workspace/ticks");
    let before = lines(&ticks);
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(lines(&ticks), before, "what it started is gone, too");
    machine.end().await;
    room.running.end().await;
}

#[tokio::test]
async fn a_turn_that_is_given_up_ends_its_run() {
    let room = demo_room().await;
    let machine = Machine::join(&room, home(&everything(), &[])).await;
    let turn = Turn::of(&room);
    let text = "trap 'echo over > over; exit' TERM; echo begun > begun; while :; do sleep 0.05; done";
    let running = tokio::spawn(async move { turn.there(text).await });
    until("it runs", async || machine.path(".openclaw/workspace/begun").exists()).await;
    running.abort();
    until("it was ended", async || machine.path(".openclaw/workspace/over").exists()).await;
    machine.end().await;
    room.running.end().await;
}

#[tokio::test]
async fn output_is_told_while_it_comes_and_has_an_end() {
    let room = demo_room().await;
    let machine = Machine::join(&room, home(&everything(), &[])).await;
    let turn = Turn::of(&room);
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&told);
    let go = machine.path(".openclaw/workspace/go");
    let progress = move |tail: String| {
        if tail.contains("first") {
            std::fs::write(&go, "").expect("written");
        }
        heard.lock().expect("no panic").push(tail);
    };
    // It ends only when its output was heard.
    let asked =
        ExecCall { host: Some(Host::Node), ..call("echo first; while ! test -e go; do sleep 0.05; done; echo last") };
    let remote = room.running.gateway().remote();
    let result =
        soon("it ends", remote.run(&asked, &turn.setting, &*room.running.gateway().approver(), &progress)).await;
    assert_eq!(result.text(), "first\nlast");
    assert!(told.lock().expect("no panic").iter().any(|tail| tail.contains("first")));
    let operator = room.operator().await;
    let params = json!({"command": ["/bin/sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x"]});
    let reply = invoke(&operator, &machine.id, "system.run", params).await.expect("an end");
    let said = reply["stdout"].as_str().expect("a text");
    assert!(said.len() <= 200_000 && reply["truncated"] == true, "{} bytes", said.len());
    assert!(said.contains("bytes omitted") || said.ends_with("(truncated)"));
    machine.end().await;
    room.running.end().await;
}

#[tokio::test]
async fn a_node_comes_back_to_a_gateway_that_was_away() {
    let room = demo_room().await;
    let address = room.running.address;
    let mut machine = Machine::join_with(&room, home(&everything(), &[]), |options| {
        options.when_lost = WhenLost::GoOn;
    })
    .await;
    let operator = room.operator().await;
    let params = json!({"command": ["/bin/sh", "-c", "echo begun > begun; while ! test -e go; do sleep 0.02; done; echo end > end"]});
    let node = machine.id.clone();
    let asking = tokio::spawn(async move { invoke(&operator, &node, "system.run", params).await });
    until("it runs", async || machine.path(".openclaw/workspace/begun").exists()).await;
    let Room { tree, running } = room;
    running.end().await;
    assert!(soon("the caller hears of it", asking).await.expect("no panic").is_err());
    // The port may be taken meanwhile by somebody else; then there is nothing to come back to.
    let Some(room) = machine::reopen(tree, address.port()).await else { return };
    let operator = room.operator().await;
    until("the node is back", async || machine::connected(&operator).await == [machine.id.clone()]).await;
    std::fs::write(machine.path(".openclaw/workspace/go"), "").expect("written");
    until("the run went on", async || machine.path(".openclaw/workspace/end").exists()).await;
    assert_eq!(
        invoke(&operator, &machine.id, "system.run", shell("echo again")).await.expect("it works")["stdout"],
        "again\n"
    );
    let id = std::mem::take(&mut machine.id);
    machine.end().await;
    until("it is gone", async || !machine::connected(&operator).await.contains(&id)).await;
    room.running.end().await;
}

#[tokio::test]
async fn what_nobody_waits_for_is_ended_when_the_gateway_is_lost() {
    let room = demo_room().await;
    let machine = Machine::join(&room, home(&everything(), &[])).await;
    let operator = room.operator().await;
    let node = machine.id.clone();
    let params =
        json!({"command": ["/bin/sh", "-c", "echo begun > begun; while :; do echo tick >> ticks; sleep 0.02; done"]});
    let asking = tokio::spawn(async move { invoke(&operator, &node, "system.run", params).await });
    until("it runs", async || machine.path(".openclaw/workspace/begun").exists()).await;
    room.running.end().await;
    assert!(soon("the caller hears of it", asking).await.expect("no panic").is_err());
    let ticks = machine.path(".openclaw/workspace/ticks");
    let mut before = usize::MAX;
    until("nothing runs any more", async || {
        let now = lines(&ticks);
        let is_same = now == std::mem::replace(&mut before, now);
        tokio::time::sleep(Duration::from_millis(200)).await;
        is_same
    })
    .await;
    machine.end().await;
}

#[tokio::test]
async fn a_node_keeps_its_name_and_a_wrong_token_is_told() {
    let room = demo_room().await;
    let machine = Machine::join_with(&room, home(&everything(), &[]), |options| {
        options.display_name = Some("Attic".to_owned());
    })
    .await;
    let file: Value =
        serde_json::from_str(&std::fs::read_to_string(machine.path(".openclaw/node.json")).expect("a file"))
            .expect("JSON");
    assert_eq!((&file["version"], &file["displayName"]), (&json!(1), &json!("Attic")));
    assert_eq!(file["gateway"]["port"], room.running.address.port());
    assert!(!file.to_string().contains(room::TOKEN));
    let tree = machine.into_tree().await;
    let mut options =
        prowess_gateway::node_host::Options::new(machine::machine_ground(&tree), room.url()).expect("here");
    options.token = Some(prowess_config::Secret::new("wrong"));
    let stop = tokio_util::sync::CancellationToken::new();
    let refused =
        soon("an end", prowess_gateway::node_host::NodeHost::run(options, stop)).await.expect_err("not let in");
    assert!(refused.to_string().starts_with("the gateway refused this node: "), "{refused}");
    room.running.end().await;
}

#[tokio::test]
async fn every_run_has_one_end_whatever_happens_to_the_node() {
    let room = demo_room().await;
    let operator = room.operator().await;
    let mut machine = Machine::join(&room, home(&everything(), &[])).await;
    let mut done = 0;
    for round in 0..5_u64 {
        let node = machine.id.clone();
        let runs = (0..8_u64).map(|at| {
            let (operator, node) = (operator.clone(), node.clone());
            let text = format!("echo run-{round}-{at} >> runs; sleep 0.0{at}; echo done-{round}-{at}");
            tokio::spawn(async move { (at, invoke(&operator, &node, "system.run", shell(&text)).await) })
        });
        let runs: Vec<_> = runs.collect();
        until("some have begun", async || {
            lines(&machine.path(".openclaw/workspace/runs")) > usize::try_from(round).unwrap_or(0)
        })
        .await;
        tokio::time::sleep(Duration::from_millis(40 * round)).await;
        let tree = machine.into_tree().await;
        for run in runs {
            match soon("every run has an end", run).await.expect("no panic") {
                (at, Ok(payload)) if payload["exitCode"] == 0 => {
                    assert_eq!(payload["stdout"], format!("done-{round}-{at}\n"));
                    done += 1;
                }
                (_, Ok(payload)) => assert_eq!(payload["error"], "cancelled"),
                (_, Err(CallError::Refused { error, .. })) => {
                    let why = error["message"].as_str().unwrap_or_default();
                    assert!(why.contains("node disconnected") || why == "node not connected", "{why}");
                }
                (_, Err(error)) => panic!("the gateway is there: {error}"),
            }
        }
        machine = Machine::join(&room, tree).await;
    }
    let text = std::fs::read_to_string(machine.path(".openclaw/workspace/runs")).unwrap_or_default();
    let mut ran: Vec<&str> = text.lines().collect();
    let count = ran.len();
    ran.sort_unstable();
    ran.dedup();
    assert_eq!(ran.len(), count, "none ran twice");
    assert!(done <= count, "what is done has run");
    machine.end().await;
    room.running.end().await;
}
