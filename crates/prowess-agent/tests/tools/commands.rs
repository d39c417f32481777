//! Commands, their secrets, and what is seen of them.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use prowess_agent::event::Event;
use prowess_agent::tool::finished_since;
use prowess_exec::approver::{Approver, ReadOnly};
use prowess_policy::Answer;
use prowess_policy::posture::{Ask, Security};
use rustix::process::{Pid, test_kill_process};
use serde_json::{Value, json};

use crate::workshop::{Person, Turn, Workshop};

const SKILLS: [(&str, &str, &str); 2] = [("alpha", "", "x"), ("beta", "", "x")];

/// A command that shows every secret it can see.
const SHOW: &str = "printenv | grep ^SECRET_OF_ || echo none";

#[tokio::test]
async fn a_secret_reaches_a_command_only_once_its_skill_was_read() {
    let shop = Workshop::with(&Value::Null, &SKILLS);
    let turn = Turn::new("test");
    let before = shop.call(&turn, "exec", json!({"command": SHOW})).await;
    assert_eq!((before.text().as_str(), before.details.get("skill")), ("none", None));
    shop.call(&turn, "read", json!({"path": shop.manual("alpha")})).await;
    let after = shop.call(&turn, "exec", json!({"command": SHOW})).await;
    assert_eq!(after.text(), "SECRET_OF_ALPHA=secret-of-alpha");
    assert_eq!(after.details["skill"], json!({"name": "alpha", "file": false}));
    let next = Turn::new("test");
    assert_eq!(shop.call(&next, "exec", json!({"command": SHOW})).await.text(), "none", "the next turn");
    assert!(std::env::vars().all(|(name, _)| !name.starts_with("SECRET_OF_")), "our own environment stays as it is");
}

#[tokio::test]
async fn conversations_side_by_side_see_their_own_secrets_only() {
    let shop = Arc::new(Workshop::with(&Value::Null, &SKILLS));
    let one = |skill: &'static str, number: usize| {
        let shop = Arc::clone(&shop);
        async move {
            let turn = Turn::new(&format!("session-{skill}-{number}"));
            shop.call(&turn, "read", json!({"path": shop.manual(skill)})).await;
            shop.call(&turn, "exec", json!({"command": format!("sleep 0.05; {SHOW}")})).await.text()
        }
    };
    let mut runs = tokio::task::JoinSet::new();
    for number in 0..10 {
        for (skill, expected) in
            [("alpha", "SECRET_OF_ALPHA=secret-of-alpha"), ("beta", "SECRET_OF_BETA=secret-of-beta")]
        {
            let run = one(skill, number);
            runs.spawn(async move { (run.await, expected) });
        }
    }
    while let Some(run) = runs.join_next().await {
        let (seen, expected) = run.expect("no panic");
        assert_eq!(seen, expected);
    }
}

#[tokio::test]
async fn a_key_that_cannot_be_had_stops_the_command_and_says_so() {
    let shop = Workshop::with(&Value::Null, &[("keyless", "", "x")]);
    let turn = Turn::new("test");
    shop.take_up(&turn, "keyless");
    let result = shop.call(&turn, "exec", json!({"command": "touch mark"})).await;
    let text = result.text();
    assert!(
        result.is_error && text.contains("the skill `keyless`") && text.contains("skills.entries.keyless"),
        "{text}"
    );
    assert!(!shop.ws("mark").exists());
}

#[tokio::test]
async fn what_a_command_says_is_seen_while_it_runs() {
    let shop = Workshop::new();
    let turn = Turn::new("test");
    // It goes on only once its first words were seen, so the update cannot be missed.
    let waits = "echo first; until test -e seen; do sleep 0.01; done; echo last";
    let call = shop.call(&turn, "exec", json!({"command": waits}));
    let look = async {
        loop {
            if turn.seen().iter().any(|event| matches!(event, Event::CallUpdate { tail, .. } if tail.contains("first")))
            {
                shop.file("seen", "");
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let (result, ()) = tokio::join!(call, look);
    assert_eq!(result.text(), "first\nlast");
    let updates = turn.seen();
    let is_right =
        |event: &Event| matches!(event, Event::CallUpdate { id, tool, .. } if id == "call_1" && tool == "exec");
    assert!(!updates.is_empty() && updates.iter().all(is_right), "{updates:?}");
}

#[tokio::test]
async fn a_call_that_is_given_up_ends_its_command() {
    let shop = Workshop::new();
    let turn = Turn::new("test");
    let call = shop.call(&turn, "exec", json!({"command": "echo $$ > pid; while :; do sleep 0.01; done"}));
    let begun = async {
        loop {
            let pid = std::fs::read_to_string(shop.ws("pid")).unwrap_or_default();
            if let Some(pid) = pid.strip_suffix('\n') {
                return Pid::from_raw(pid.parse().expect("a number")).expect("a process");
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let pid = tokio::select! { result = call => panic!("{}", result.text()), pid = begun => pid };
    while test_kill_process(pid).is_ok() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn commands_in_the_background_belong_to_their_conversation() {
    let shop = Workshop::new();
    let (mine, other) = (Turn::new("mine"), Turn::new("other"));
    let started = shop.call(&mine, "exec", json!({"command": "echo \"well  done\"", "background": true})).await;
    let id = started.details["sessionId"].as_str().expect("it runs").to_owned();
    let poll = json!({"action": "poll", "sessionId": id, "timeout": 60_000});
    assert!(shop.call(&mine, "process", poll.clone()).await.text().contains("Process exited with code 0."));
    assert!(shop.call(&other, "process", poll).await.is_error);
    let short: String = id.chars().take(8).collect();
    let mut announced = HashSet::new();
    let lines = finished_since(&shop.exec.runner, "mine", &mut announced, &shop.tools);
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0].text, format!("Exec completed ({short}, code 0) :: well done"));
    assert!(finished_since(&shop.exec.runner, "mine", &mut announced, &shop.tools).is_empty());
    assert!(finished_since(&shop.exec.runner, "other", &mut HashSet::new(), &shop.tools).is_empty());
    for (command, expected) in [("true", None), ("exit 3", Some("completed")), ("kill -9 $$", Some("failed"))] {
        let started = shop.call(&mine, "exec", json!({"command": command, "background": true})).await;
        let poll = json!({"action": "poll", "sessionId": started.details["sessionId"], "timeout": 60_000});
        shop.call(&mine, "process", poll).await;
        let lines = finished_since(&shop.exec.runner, "mine", &mut announced, &shop.tools);
        assert_eq!(
            lines.first().map(|news| news.text.split(' ').nth(1).unwrap_or_default()),
            expected,
            "{command}: {lines:?}"
        );
    }
}

#[tokio::test]
async fn without_process_nothing_goes_on_in_the_background() {
    let shop = Workshop::with(&json!({"deny": ["process"]}), &[]);
    let turn = Turn::new("test");
    let result = shop.call(&turn, "exec", json!({"command": "echo hi", "background": true})).await;
    assert_eq!(result.text(), "Warning: background execution is disabled; running synchronously.\n\nhi");
    let spec = shop.tools.find("exec").expect("it is there").spec().clone();
    assert!(spec.parameters["properties"].get("background").is_none());
}

#[tokio::test]
async fn the_person_of_the_turn_is_asked_about_commands() {
    let asks = |settings: &mut prowess_policy::ExecSettings| {
        settings.security = Some(Security::Allowlist);
        settings.ask = Some(Ask::OnMiss);
    };
    let shop = Workshop::new().exec_settings(asks);
    let willing = Turn::with(Person::willing());
    assert!(!shop.call(&willing, "exec", json!({"command": "touch yes"})).await.is_error && shop.ws("yes").exists());
    let unwilling = Turn::with(Person::unwilling());
    let result = shop.call(&unwilling, "exec", json!({"command": "touch no"})).await;
    assert!(result.is_error && !shop.ws("no").exists(), "{}", result.text());
    assert_eq!(*unwilling.person.commands.lock().expect("no panic"), ["touch no"]);
}

#[tokio::test]
async fn read_only_commands_need_no_person() {
    let shop = Workshop::new().exec_settings(|settings| {
        settings.security = Some(Security::Allowlist);
        settings.ask = Some(Ask::OnMiss);
    });
    let approver = ReadOnly(Arc::new(Person::unwilling()));
    let ask = async |command: &str| {
        let call = prowess_exec::exec_tool::ExecCall { command: command.to_owned(), ..Default::default() };
        let case = shop.exec.judge(&call, &shop.setting).expect("it is judged");
        let question = case.judgment.question().expect("it is asked about");
        approver.ask(&question).await
    };
    for command in ["ls -la", "find . -name x", "cat a | sort | uniq -c"] {
        assert_eq!(ask(command).await, Some(Answer::Once), "{command}");
    }
    for command in [
        "git status",
        "echo $HOME",
        "cat /proc/self/environ",
        "jq -n env",
        "touch x",
        "find . -delete",
        "sort -o x a",
        "cat a > b",
        "date -s now",
        "ls | tee x",
    ] {
        assert_eq!(ask(command).await, Some(Answer::No), "{command}");
    }
}

/// In a sandbox, a command can read what skills bring, and still nothing else of the operator's.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_folders_of_skills_can_be_read_in_a_sandbox() {
    let skills = Workshop::with(&Value::Null, &SKILLS);
    let shop = skills.exec_settings(|settings| settings.sandbox = prowess_policy::SandboxChoice::Auto);
    let notes = crate::workshop::write(&shop.root().join("home/notes"), "private");
    let turn = Turn::new("test");
    let manual = shop.call(&turn, "exec", json!({"command": format!("cat '{}'", shop.manual("beta").display())})).await;
    assert!(manual.text().contains("about beta"), "{}", manual.text());
    let private = shop.call(&turn, "exec", json!({"command": format!("cat '{}'", notes.display())})).await;
    assert!(!private.text().contains("private"), "{}", private.text());
    let before = std::fs::read(shop.manual("beta")).expect("it is there");
    shop.call(&turn, "exec", json!({"command": format!("echo x >> '{}'", shop.manual("beta").display())})).await;
    assert_eq!(std::fs::read(shop.manual("beta")).expect("it is there"), before, "reading is all");
}

/// With very many skills a command can read the one in use, and nothing beside the folders of skills.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn with_very_many_skills_the_one_in_use_can_be_read() {
    let names: Vec<String> = (0..600).map(|number| format!("s{number:03}")).collect();
    let all: Vec<(&str, &str, &str)> = names.iter().map(|name| (name.as_str(), "", "x")).collect();
    let shop = Workshop::with(&Value::Null, &all)
        .exec_settings(|settings| settings.sandbox = prowess_policy::SandboxChoice::Auto);
    let beside = crate::workshop::write(&shop.root().join("skills/private/notes"), "for nobody");
    let last = shop.skills.snapshot.skills().last().expect("there are some").name.to_string();
    let turn = Turn::new("test");
    shop.take_up(&turn, &last);
    let manual = shop.call(&turn, "exec", json!({"command": format!("cat '{}'", shop.manual(&last).display())})).await;
    assert!(manual.text().contains(&format!("about {last}")), "{}", manual.text());
    let private = shop.call(&turn, "exec", json!({"command": format!("cat '{}'", beside.display())})).await;
    assert!(!private.text().contains("for nobody"), "{}", private.text());
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_command_without_network_is_told_which_setting_gives_it_one() {
    let skills = Workshop::with(&Value::Null, &SKILLS);
    let shop = skills.exec_settings(|settings| settings.sandbox = prowess_policy::SandboxChoice::Auto);
    let fails = json!({"command": "echo 'curl: (6) Could not resolve host: example.org' >&2; exit 6"});
    let turn = Turn::new("test");
    let text = shop.call(&turn, "exec", fails.clone()).await.text();
    assert!(
        text.contains("The sandbox has no direct network") && text.contains("tools.exec.sandbox.network"),
        "{text}"
    );
    shop.take_up(&turn, "alpha");
    let text = shop.call(&turn, "exec", fails.clone()).await.text();
    assert!(text.contains("skills.entries.alpha.sandbox.network") && !text.contains("tools.exec.sandbox"), "{text}");
    let real = json!({"command": "exec 3<>/dev/tcp/127.0.0.1/9"});
    let text = shop.call(&turn, "exec", real).await.text();
    assert!(text.contains("sandbox.network"), "{text}");
    for command in ["echo could not resolve host", "echo no; exit 1"] {
        let text = shop.call(&turn, "exec", json!({"command": command})).await.text();
        assert!(!text.contains("sandbox"), "{text}");
    }
    let granted = shop.exec_settings(|settings| settings.grants.network = true);
    assert!(!granted.call(&turn, "exec", fails.clone()).await.text().contains("sandbox"));
    let open = granted.exec_settings(|settings| {
        settings.grants.network = false;
        settings.sandbox = prowess_policy::SandboxChoice::Off;
    });
    assert!(!open.call(&turn, "exec", fails).await.text().contains("sandbox"));
}
