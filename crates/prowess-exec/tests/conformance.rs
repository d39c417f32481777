//! The claims of `docs/conformance.md` about running commands.

#![cfg(target_os = "linux")]

use crate::world;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use prowess_exec::approver::{Approver, Nobody};
use prowess_exec::exec_tool::ExecCall;
use prowess_exec::remote::Remote;
use prowess_exec::sandbox::container::{Engine, Terminal, exec_argv};
use prowess_exec::{Setting, SkillShare, ToolResult, process_tool};
use prowess_policy::posture::Security;
use prowess_policy::{Answer, Cover, ExecSettings, Question, SkillBin};
use serde_json::{Value, json};
use world::{Says, World, answering, path_text, write, yes};

/// Nobody to ask, and these patterns in the stored approvals.
fn listing(patterns: &[&str]) -> World {
    let world = World::new(Arc::new(Nobody));
    world.approvals(&json!({"version": 1, "agents": {"main": {"allowlist": patterns}}}));
    world
}

/// The same with this `tools.exec`.
fn configured(mut world: World, section: &Value) -> World {
    world.setting.settings = ExecSettings::read(section, &Value::Null);
    world.setting.settings.security.get_or_insert(Security::Allowlist);
    world
}

async fn call(world: &World, args: Value) -> ToolResult {
    world.call(&ExecCall::parse(&args).expect("a call")).await
}

#[tokio::test]
async fn m_exec_01_sandbox_gateway_or_node() {
    for host in ["sandbox", "gateway"] {
        let world = configured(listing(&["/usr/bin/echo"]), &json!({ "host": host }));
        let result = call(&world, json!({"command": "echo here", "host": host})).await;
        assert_eq!((result.text().as_str(), result.is_error), ("here", false), "{host}");
        // Both are this machine, and the same sandbox around a child of ours.
        let world = configured(World::new(yes()), &json!({ "host": host }));
        assert_eq!(world.run("echo $PPID").await.text(), std::process::id().to_string(), "{host}");
        let outside = world.root().join("outside");
        let result = world.run(&format!("to={}; echo x > $to", path_text(&outside))).await;
        assert!(!outside.exists(), "what was not asked about cannot be changed: {host}: {}", result.text());
    }
    let world = configured(listing(&["/usr/bin/echo"]), &json!({ "host": "gateway" }));
    let other = call(&world, json!({"command": "echo here", "host": "sandbox"})).await;
    assert!(other.is_error && other.text().contains("configure tools.exec.host=sandbox"), "{}", other.text());
    let mut world = configured(listing(&["/usr/bin/echo"]), &json!({ "host": "node" }));
    let node = world.run("echo here").await;
    assert!(node.is_error && node.text().contains("requires a paired node"), "{}", node.text());
    world.exec = world.exec.clone().with_remote(Arc::new(There));
    assert_eq!(world.run("echo here").await.text(), "`echo here` ran there");
}

/// Another machine.
struct There;

impl Remote for There {
    fn run<'a>(
        &'a self,
        call: &'a ExecCall,
        _setting: &'a Setting,
        _approver: &'a dyn Approver,
        _progress: &'a (dyn Fn(String) + Send + Sync),
    ) -> Pin<Box<dyn Future<Output = ToolResult> + Send + 'a>> {
        Box::pin(async move { ToolResult::done(format!("`{}` ran there", call.command), json!({})) })
    }
}

// M-EXEC-02, M-EXEC-05
#[tokio::test]
async fn m_exec_02_05_the_decision_falls_before_anything_runs() {
    for answer in [Answer::No, Answer::Once] {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let world = World::new(Arc::new(Says(move |_: &Question| {
            count.fetch_add(1, Ordering::Relaxed);
            Some(answer)
        })));
        let result = world.run("touch made").await;
        assert_eq!(asked.load(Ordering::Relaxed), 1);
        assert_eq!((world.ws("made").exists(), result.is_error), (answer == Answer::Once, answer == Answer::No));
    }
    let refused = configured(World::new(yes()), &json!({ "ask": "off" }));
    let result = refused.run("touch made").await;
    assert!(result.is_error && !refused.ws("made").exists(), "nobody may be asked: {}", result.text());
}

// M-EXEC-03, M-EXEC-06, M-EXEC-07
#[tokio::test]
async fn m_exec_03_06_07_the_allowlist_and_the_safe_programs_decide_for_each_segment() {
    for host in ["sandbox", "gateway"] {
        let world = configured(listing(&["/usr/bin/echo"]), &json!({ "host": host }));
        assert_eq!(world.run("echo one two | wc -w").await.text(), "2", "{host}");
        assert!(world.run("echo one | sort").await.is_error, "{host}: one segment is not covered");
        let safe = configured(listing(&["/usr/bin/echo"]), &json!({ "host": host, "safeBins": ["sort"] }));
        assert_eq!(safe.run("echo one | sort").await.text(), "one", "{host}");
        assert!(safe.run("echo one | wc -w").await.is_error, "{host}: the configured list takes the usual one's place");
        let none = configured(listing(&[]), &json!({ "host": host }));
        assert!(none.run("echo one").await.is_error, "{host}: only what the stored approvals list");
    }
}

// M-EXEC-03, M-EXEC-05, M-EXEC-06
#[tokio::test]
async fn m_exec_03_05_06_with_nothing_set_the_sandbox_decides_and_what_leaves_it_is_asked_about() {
    let (approver, asked) = answering(&[Answer::No]);
    let mut world = World::new(approver);
    world.setting.settings = ExecSettings::default();
    let judged = |world: &World, command: &str| {
        let call = ExecCall { command: command.to_owned(), ..ExecCall::default() };
        world.exec.judge(&call, &world.setting).expect("judged").judgment
    };
    if judged(&world, "ls").posture().security != Security::Contained {
        eprintln!("skipped: the sandbox does not hold here");
        return;
    }
    // No rule covers any of these programs, and the loop is in no allowlist.
    let result = world.run("for name in a b; do touch $name; done; ls").await;
    assert_eq!((result.text().as_str(), result.is_error), ("a\nb", false));
    assert!(judged(&world, "touch a | sort").segments().iter().all(|one| one.standing == Ok(Cover::Sandbox)));
    assert!(asked.lock().expect("a list").is_empty());
    let refused = world.run("touch made; curl -s http://x.test/").await;
    assert!(refused.is_error && !world.ws("made").exists(), "{}", refused.text());
    assert_eq!(*asked.lock().expect("a list"), [["reach x.test"]]);
    // An operator who lists a program wants the list to decide.
    world.approvals(&json!({"version": 1, "agents": {"main": {"allowlist": ["/usr/bin/ls"]}}}));
    assert_eq!(judged(&world, "touch a").posture().security, Security::Allowlist);
    assert!(world.run("touch a").await.is_error && !world.run("ls").await.is_error);
}

// M-EXEC-04, M-EXEC-06
#[tokio::test]
async fn m_exec_04_06_on_the_gateway_a_skills_program_is_not_allowed_by_being_declared() {
    let mut world = World::new(Arc::new(Nobody));
    let path = world.setting.workspace.join("bin/clawhub");
    write(&path, "#!/bin/sh\necho ran\n", 0o755);
    world.setting.settings.path_prepend = vec![path_text(path.parent().expect("a folder")).to_owned()];
    world.approvals(&json!({"version": 1, "defaults": {"autoAllowSkills": true}}));
    for host in ["sandbox", "gateway"] {
        let result = call(&world, json!({"command": "clawhub", "host": host})).await;
        assert!(result.is_error && result.text().contains("exec denied"), "{host}: {}", result.text());
    }
    // A node, which is told about the programs of skills, does allow it, where that is enabled.
    world.setting.skill_bins = vec![SkillBin { name: "clawhub".to_owned(), real: path }];
    assert_eq!(world.run("clawhub").await.text(), "ran");
    world.approvals(&json!({"version": 1, "defaults": {"autoAllowSkills": false}}));
    assert!(world.run("clawhub").await.is_error);
}

#[tokio::test]
async fn m_exec_08_a_command_is_a_child_of_ours_or_runs_in_a_container() {
    let world = World::new(yes());
    assert_eq!(world.run("echo $PPID").await.text(), std::process::id().to_string(), "the shell is a child of ours");
    let outside = world.run("to=/etc/prowess-was-here; echo x > $to").await;
    assert!(!Path::new("/etc/prowess-was-here").exists(), "{outside:?}");
    let argv = exec_argv(Engine::Docker, "box", Path::new("/w"), ["KEY"].into_iter(), Terminal::No, "echo x");
    assert_eq!(argv.expect("a command"), ["exec", "-i", "-w", "/w", "-e", "KEY", "box", "/bin/sh", "-c", "echo x"]);
}

// M-EXEC-09, M-EXEC-10
#[tokio::test]
async fn m_exec_09_10_the_result_is_one_text_with_details() {
    let world = World::new(yes());
    let result = world.run("echo out; echo err >&2; exit 3").await;
    assert_eq!(result.text(), "out\nerr\n\n(Command exited with code 3)");
    let details = &result.details;
    assert_eq!((&details["status"], &details["exitCode"]), (&json!("completed"), &json!(3)));
    assert_eq!(details["aggregated"], result.text());
    assert_eq!(details["cwd"], world.setting.workspace.display().to_string());
    assert!(details["durationMs"].is_u64());
    assert_eq!(world.run("true").await.text(), "(no output)");
}

#[tokio::test]
async fn m_exec_11_a_terminal_the_background_and_a_working_directory() {
    let world = World::new(yes());
    assert_eq!(call(&world, json!({"command": "test -t 0 && echo terminal", "pty": true})).await.text(), "terminal");
    std::fs::create_dir(world.setting.workspace.join("sub")).expect("a folder");
    assert!(call(&world, json!({"command": "pwd", "workdir": "sub"})).await.text().ends_with("/ws/sub"));
    let started = call(&world, json!({"command": "cat", "pty": true, "background": true})).await;
    assert_eq!(started.details["status"], "running");
    let id = started.details["sessionId"].as_str().expect("a name");
    let ended = process_tool::run(&world.exec.runner, "test", &json!({"action": "kill", "sessionId": id})).await;
    assert!(!ended.is_error, "{}", ended.text());
}

// M-EXEC-12, M-ENV-04, M-ENV-05, M-ENV-06, M-ENV-10, M-ENV-11, M-ENV-12
#[tokio::test]
async fn m_exec_12_m_env_04_05_06_10_11_12_a_skills_run_has_its_variables_and_its_programs() {
    let mut world = World::new(yes());
    let bins = world.root().join("skill/bins");
    write(&bins.join("greet"), "#!/bin/sh\necho \"hello $GREET_KEY\"\n", 0o755);
    // The folder of a second skill, with a program of the same name and one that the system has as well.
    let others = world.root().join("other/bins");
    write(&others.join("greet"), "#!/bin/sh\necho \"bye $GREET_KEY\"\n", 0o755);
    write(&others.join("uname"), "#!/bin/sh\necho mine\n", 0o755);
    world.setting.host_env.push(("LC_MOOD".to_owned(), "the host's".into()));
    let before: Vec<_> = std::env::vars_os().collect();
    assert!(world.run("greet").await.is_error, "without the skill there is no such program");
    world.setting.readable = vec![world.root().join("skill"), world.root().join("other")];
    let share = |key: &str, bins: &Path| {
        let vars = vec![("GREET_KEY".to_owned(), key.into()), ("LC_MOOD".to_owned(), "mine".into())];
        SkillShare { vars, bins: Some(bins.to_owned()), ..SkillShare::default() }
    };
    let [one, two] = [share("k-1", &bins), share("k-2", &others)].map(|share| {
        let mut setting = world.setting.clone();
        setting.skills = vec![share];
        setting
    });
    // Two runs that are there at the same time: each waits for a file that the other makes.
    let meet = |mine: &str, other: &str| {
        world::call(&format!("touch {mine}; while ! test -e {other}; do sleep 0.02; done; greet; echo $LC_MOOD $PATH"))
    };
    let (call_one, call_two) = (meet("one", "two"), meet("two", "one"));
    let (first, second) = tokio::join!(world.exec.run(&call_one, &one), world.exec.run(&call_two, &two));
    let told = |greeting: &str, bins: &Path| format!("{greeting}\nmine {}:/usr/bin:/bin", path_text(bins));
    assert_eq!((first.text(), second.text()), (told("hello k-1", &bins), told("bye k-2", &others)));
    assert_eq!(world.exec.run(&world::call("uname"), &two).await.text(), "mine", "the skill's folder goes first");
    let after = world.run("echo \"[$GREET_KEY] $LC_MOOD $PATH\"; uname").await;
    assert_eq!(after.text(), "[] the host's /usr/bin:/bin\nLinux", "the next run has none of it");
    assert!(world.run("greet").await.is_error);
    assert_eq!(std::env::vars_os().collect::<Vec<_>>(), before, "and our own environment never had");
}
