//! Attacks on a node: does anything run that nobody allowed, or with what it should not have?

use crate::machine;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use machine::{Machine, Person, Turn, allowing, call, demo_room, home, invoke, program, soon, unique};
use prowess_exec::exec_tool::ExecCall;
use prowess_exec::leases::Holder;
use prowess_exec::{SkillShare, WithheldKey};
use prowess_gateway::client::{CallError, Client};
use prowess_policy::Host;
use prowess_policy::lease::{Lease, Lifetime, Origin};
use prowess_policy::ownership::OwnCommands;
use serde_json::{Value, json};

fn message(result: Result<Value, CallError>) -> String {
    result.expect_err("a refusal").to_string()
}

#[tokio::test]
async fn a_node_gets_a_key_only_with_a_command_of_its_skill_and_a_lease() {
    let room = demo_room().await;
    let say = "echo \"key=$DEMO_API_KEY host=$VAULT_TOKEN\"";
    let machine = Machine::join(&room, home(&allowing(&[]), &[("demo-bin", say), ("other-bin", say)])).await;
    let mut turn = Turn::of(&room);
    let _person = Person::who_says(&room, "allow-once").await;
    turn.setting.skills.push(SkillShare {
        name: "demo".to_owned(),
        source: "managed:demo".to_owned(),
        vars: vec![("DEMO_API_KEY".to_owned(), "key-1234".into())],
        own: Some(OwnCommands { programs: vec!["demo-bin".to_owned()], ..OwnCommands::default() }),
        withheld: vec![WithheldKey {
            name: "VAULT_TOKEN".to_owned(),
            value: "vault-1234".into(),
            remedy: String::new(),
        }],
        ..SkillShare::default()
    });
    assert_eq!(turn.there("demo-bin").await.text(), "key=key-1234 host=");
    assert_eq!(turn.there("other-bin").await.text(), "key= host=");
    let skill = Some(("demo".to_owned(), "managed:demo".to_owned()));
    let holder = Holder { agent: turn.setting.agent.clone(), session: "any".to_owned(), skill };
    let lease = Lease { keys: vec!["VAULT_TOKEN".to_owned()], ..Lease::default() };
    turn.exec.leases.keep(&holder, lease, (Origin::Answer, Lifetime::Always)).expect("kept");
    assert_eq!(turn.there("demo-bin").await.text(), "key=key-1234 host=vault-1234");
    assert_eq!(turn.there("other-bin").await.text(), "key= host=");
    drop(machine);
}

#[tokio::test]
async fn a17_keys_of_skills_reach_their_commands_and_nobody_else() {
    const KEY: &str = "key-of-the-skill-1234";
    let room = demo_room().await;
    let operator = room.operator().await;
    let mut events = operator.events();
    let tree = home(
        &allowing(&[]),
        &[("demo-bin", "echo \"key=$DEMO_API_KEY\"; cat /proc/self/environ > env 2>/dev/null || true")],
    );
    let machine = Machine::join(&room, tree).await;
    let mut turn = Turn::of(&room);
    assert_eq!(turn.there("demo-bin").await.text(), "key=", "without the skill there is no key");
    let share = SkillShare { vars: vec![("DEMO_API_KEY".to_owned(), KEY.into())], ..SkillShare::default() };
    turn.setting.skills.push(share);
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&told);
    let remote = room.running.gateway().remote();
    let asked = ExecCall { host: Some(Host::Node), ..call("demo-bin") };
    let progress = move |tail: String| heard.lock().expect("no panic").push(tail);
    let result =
        soon("it ends", remote.run(&asked, &turn.setting, &*room.running.gateway().approver(), &progress)).await;
    assert_eq!(
        result.text(),
        format!("key={KEY}"),
        "its own command has it; the tool takes it out of what a model reads"
    );
    assert!(!told.lock().expect("no panic").concat().contains(KEY));
    let person = Person::who_says(&room, "allow-once").await;
    let asked = ExecCall { host: Some(Host::Node), ..call("uname; demo-bin") };
    soon("it ends", turn.exec.run(&asked, &turn.setting)).await;
    assert!(
        !person.questions().is_empty() && person.questions().iter().all(|question| !question.to_string().contains(KEY))
    );
    turn.setting.skills.clear();
    assert_eq!(turn.there("demo-bin").await.text(), "key=", "afterwards it is gone");
    drop(person);
    while let Ok(event) = events.try_recv() {
        assert!(!event.payload.to_string().contains(KEY), "{}", event.name);
    }
    for file in [".openclaw/exec-approvals.json", ".openclaw/audit/exec.jsonl", ".openclaw/node.json"] {
        let text = std::fs::read_to_string(machine.path(file)).unwrap_or_default();
        assert!(!text.contains(KEY), "{file}");
    }
    machine.end().await;
    room.running.end().await;
}

#[tokio::test]
async fn a21_a_program_of_a_skill_is_the_one_that_was_recorded() {
    let room = demo_room().await;
    let tree = home(&allowing(&[]), &[]);
    program(&tree, "second/demo-bin", "echo the right one");
    let base = tree.root().to_string_lossy().into_owned();
    let machine = Machine::join_with(&room, tree, |options| {
        let path = format!("{base}/first:{base}/second:/usr/bin:/bin");
        options.ground.env = prowess_config::Env::from_iter([("HOME", base.as_str()), ("PATH", &path)]);
    })
    .await;
    let operator = room.operator().await;
    let run = async |argv: &[&str]| {
        let reply = invoke(&operator, &machine.id, "system.run", json!({"command": argv})).await;
        reply.map(|payload| payload["stdout"].as_str().unwrap_or_default().trim().to_owned())
    };
    assert_eq!(run(&["demo-bin"]).await.expect("a program of a skill"), "the right one");
    let by_path = format!("{base}/second/demo-bin");
    let planted = program(&machine.tree, ".openclaw/workspace/demo-bin", "echo planted");
    for argv in [&[by_path.as_str()][..], &["./demo-bin"], &[planted.to_str().expect("a path")]] {
        assert_eq!(
            message(run(argv).await.map(Value::from)),
            "UNAVAILABLE: SYSTEM_RUN_DENIED: approval required",
            "{argv:?}"
        );
    }
    program(&machine.tree, "first/demo-bin", "echo planted; touch ran");
    assert!(run(&["demo-bin"]).await.is_err(), "one that comes first later is another program");
    std::fs::remove_file(machine.path("first/demo-bin")).expect("it was there");
    assert_eq!(run(&["demo-bin"]).await.expect("the recorded one"), "the right one");
    machine.end().await;
    room.running.end().await;
}

#[tokio::test]
async fn a22_always_for_a_shell_is_never_for_another_text() {
    let room = demo_room().await;
    let machine = Machine::join(&room, home(&allowing(&[]), &[])).await;
    let turn = Turn::of(&room);
    let person = Person::who_says(&room, "allow-always").await;
    for text in ["bash -c 'uname -s'", "env uname -s", "busybox sh -c uname", "python3 -c 'print(1)'"] {
        turn.there(text).await;
    }
    drop(person);
    let person = Person::who_says(&room, "deny").await;
    for text in
        ["bash -c 'touch ran'", "bash -c 'uname -r'", "env touch ran", "python3 -c 'open(\"ran\", \"w\")'", "sh -c id"]
    {
        let denied = turn.there(text).await;
        assert!(denied.is_error, "{text}: {}", denied.text());
    }
    let shells = ["bash", "sh", "dash", "busybox", "env", "python"];
    let stored = machine.approvals()["agents"].to_string();
    assert!(shells.iter().all(|shell| !stored.contains(&format!("/{shell}\""))), "{stored}");
    assert!(!machine.path(".openclaw/workspace/ran").exists());
    drop(person);
    machine.end().await;
    room.running.end().await;
}

/// Has a script in the workspace prepared and approved, lets `meanwhile` happen, and runs it: what it said, if it ran.
async fn approved_script(
    machine: &Machine,
    operator: &Client,
    text: &str,
    meanwhile: impl FnOnce() + Send + 'static,
) -> Option<Value> {
    let id = unique();
    let given = json!({"command": ["/bin/sh", "-lc", text], "agentId": "main", "sessionKey": "s"});
    let prepared = invoke(operator, &machine.id, "system.run.prepare", given).await.expect("a plan");
    let request = json!({
        "id": id, "command": text, "systemRunPlan": prepared["plan"], "nodeId": machine.id, "host": "node", "twoPhase": true,
    });
    let mut answers = operator.ask("exec.approval.request", &request).expect("sent");
    soon("accepted", answers.next()).await.expect("accepted");
    operator.call("exec.approval.resolve", json!({"id": id, "decision": "allow-once"})).await.expect("approved");
    let run = json!({
        "command": prepared["plan"]["argv"], "agentId": "main", "sessionKey": "s", "approved": true, "runId": id,
    });
    let swapping = tokio::task::spawn_blocking(meanwhile);
    let result = invoke(operator, &machine.id, "system.run", run).await;
    swapping.await.expect("no panic");
    result.ok().map(|payload| payload["stdout"].clone())
}

/// Swaps a script at another moment each time, four scripts at once.
async fn swaps(tries: u64, starter: &str) {
    let room = demo_room().await;
    let machine = Machine::join(&room, home(&allowing(&[]), &[])).await;
    let operator = room.operator().await;
    let lane = async |lane: u64| {
        let name = format!("job-{lane}.sh");
        let (path, text) = (format!(".openclaw/workspace/{name}"), format!("{starter}./{name}"));
        program(&machine.tree, &path, "echo good");
        let said = approved_script(&machine, &operator, &text, || {}).await;
        assert_eq!(said, Some(json!("good\n")), "what nobody touched runs");
        for attempt in 0..tries / 4 {
            program(&machine.tree, &path, "echo good");
            let base = machine.tree.root().to_owned();
            let (target, draft) = (base.join(&path), base.join(format!(".openclaw/workspace/evil-{lane}")));
            let swap = move || {
                std::thread::sleep(Duration::from_micros(attempt * 1000));
                std::fs::write(&draft, "#!/bin/sh\necho evil\ntouch evil-ran\n").expect("written");
                std::fs::set_permissions(&draft, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("mode");
                std::fs::rename(&draft, &target).expect("swapped");
            };
            if let Some(said) = approved_script(&machine, &operator, &text, swap).await {
                assert_eq!(said, "good\n", "what was approved, or nothing");
            }
            assert!(!machine.path(".openclaw/workspace/evil-ran").exists(), "try {attempt}");
        }
    };
    tokio::join!(lane(0), lane(1), lane(2), lane(3));
    machine.end().await;
    room.running.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a24_a_program_that_was_swapped_after_it_was_shown_does_not_run() {
    swaps(120, "").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a24_a_script_that_was_swapped_after_it_was_shown_does_not_run() {
    swaps(120, "sh ").await;
}

#[tokio::test]
async fn a24_a_folder_that_became_another_is_another() {
    let room = demo_room().await;
    let machine = Machine::join(&room, home(&allowing(&[]), &[])).await;
    let operator = room.operator().await;
    let folder = machine.path(".openclaw/workspace/here");
    std::fs::create_dir_all(&folder).expect("a folder");
    let given = json!({"command": ["/bin/sh", "-lc", "id -u"], "cwd": folder});
    let prepared = invoke(&operator, &machine.id, "system.run.prepare", given).await.expect("a plan");
    let request = json!({
        "id": "approval", "command": "x", "systemRunPlan": prepared["plan"], "nodeId": machine.id, "host": "node", "twoPhase": true,
    });
    let mut answers = operator.ask("exec.approval.request", &request).expect("sent");
    soon("accepted", answers.next()).await.expect("accepted");
    operator
        .call("exec.approval.resolve", json!({"id": "approval", "decision": "allow-once"}))
        .await
        .expect("approved");
    std::fs::rename(&folder, machine.path(".openclaw/workspace/there")).expect("moved");
    std::fs::create_dir_all(&folder).expect("another folder");
    let run = json!({"command": prepared["plan"]["argv"], "cwd": prepared["plan"]["cwd"], "approved": true, "runId": "approval"});
    let refused = message(invoke(&operator, &machine.id, "system.run", run).await);
    assert!(refused.contains("SYSTEM_RUN_DENIED"), "{refused}");
    let missing = json!({"command": ["id"], "cwd": machine.path("nowhere")});
    let refused = message(invoke(&operator, &machine.id, "system.run.prepare", missing).await);
    assert!(refused.contains("SYSTEM_RUN_DENIED: approval requires an existing canonical cwd"), "{refused}");
    let missing = json!({"command": ["no-such-program"]});
    let refused = message(invoke(&operator, &machine.id, "system.run.prepare", missing).await);
    assert!(refused.contains("SYSTEM_RUN_DENIED: approval requires a stable executable path"), "{refused}");
    machine.end().await;
    room.running.end().await;
}
