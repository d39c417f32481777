//! A21, A22, A23: what does a yes cover, for how long, and who can say it?

use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use prowess_exec::SkillShare;
use prowess_exec::approver::{Approver, Nobody};
use prowess_exec::exec_tool::ExecCall;
use prowess_exec::launch::{EnvDrift, Warrant};
use prowess_policy::env::{EnvInputs, compose};
use prowess_policy::posture::{Ask, Security};
use prowess_policy::{Answer, Question, SkillBin, Verdict};
use serde_json::json;

use crate::attacks::target;
use crate::world::{Says, World, always, call, path_text, write, yes};

/// A21: `autoAllowSkills` lets the recorded program run by its bare name, and nothing that only looks like it.
#[tokio::test]
async fn a_skills_program_is_the_recorded_one() {
    let mut world = World::new(Arc::new(Nobody));
    let root = world.root();
    let real = write(&root.join("skills/s/bins/skill-bin"), "#!/bin/sh\necho genuine\n", 0o755);
    write(&root.join("first/skill-bin"), "#!/bin/sh\necho impostor\n", 0o755);
    world.script("skill-bin", "echo impostor");
    world.approvals(&json!({"version": 1, "defaults": {"autoAllowSkills": true}, "agents": {}}));
    world.setting.skill_bins = vec![SkillBin { name: "skill-bin".to_owned(), real: real.clone() }];
    let bins = |world: &mut World, dirs: &[&Path]| {
        world.setting.settings.path_prepend = dirs.iter().map(|dir| path_text(dir).to_owned()).collect();
    };
    bins(&mut world, &[&root.join("skills/s/bins")]);
    let result = world.run("skill-bin").await;
    assert_eq!((result.text().as_str(), result.is_error), ("genuine", false), "the control");
    for command in [
        "./skill-bin",
        path_text(&real),
        "../skills/s/bins/skill-bin",
        "env ./skill-bin",
        "skill-bin; ./skill-bin",
        "skill-bin $(./skill-bin)",
    ] {
        let result = world.run(command).await;
        assert!(result.is_error && !result.text().contains("impostor"), "{command}: {}", result.text());
    }
    bins(&mut world, &[&root.join("first"), &root.join("skills/s/bins")]);
    assert!(world.run("skill-bin").await.is_error, "another folder comes first on PATH");
    // The recorded name now leads somewhere else.
    bins(&mut world, &[&root.join("links")]);
    std::fs::create_dir(root.join("links")).expect("a folder");
    symlink(root.join("first/skill-bin"), root.join("links/skill-bin")).expect("a link");
    assert!(world.run("skill-bin").await.is_error, "the link leads to another program");
    std::fs::remove_file(root.join("links/skill-bin")).expect("it was there");
    symlink(&real, root.join("links/skill-bin")).expect("a link");
    assert_eq!(world.run("skill-bin").await.text(), "genuine", "a link to the recorded path is that path");
    // Without the operator's word the recorded program is like any other.
    world.approvals(&json!({"version": 1, "defaults": {"autoAllowSkills": false}, "agents": {}}));
    bins(&mut world, &[&root.join("skills/s/bins")]);
    assert!(world.run("skill-bin").await.is_error);
}

/// The entries that answers have made.
fn stored(world: &World) -> Vec<prowess_policy::approvals::Entry> {
    world.exec.approvals.load().expect("it can be read").entries("main")
}

/// A22: shells, interpreters and what starts other programs are never stored, whatever a person answers.
#[tokio::test]
async fn always_is_not_to_be_had_for_what_runs_other_code() {
    for command in [
        "sh -c 'sh -c \"touch mark\"'",
        "bash -c 'touch mark; touch $0'",
        "bash -lc 'touch mark'",
        "/bin/sh -c 'touch mark'",
        "sh rc",
        "bash ./rc",
        "./evil/sh -c 'touch mark'",
        "python3 -c 'open(\"mark\", \"w\")'",
        "python3 rc",
        "perl -e 'open(F, \">mark\")'",
        "node -e 'require(\"fs\").writeFileSync(\"mark\", \"\")'",
        "awk 'BEGIN{print 1 > \"mark\"}'",
        "find . -maxdepth 0 -exec touch mark ;",
        "find . -maxdepth 0 -exec touch mark \\;",
        "echo mark | xargs touch",
        "env sh -c 'touch mark'",
        "nice sh -c 'touch mark'",
        "timeout 5 bash -c 'touch mark'",
        "eval touch mark",
        "(touch mark)",
        "touch mark*",
        "touch $HOME/mark",
        "touch mark > out",
        "touch mark &",
        "X=1; touch mark",
        "PATH=evil:$PATH ls",
        "busybox sh -c 'touch mark'",
        "nothing-of-this-name",
        "touch $(echo mark)",
        "env",
        "sudo touch mark",
        "ssh host touch mark",
    ] {
        let world = World::new(always());
        world.script("evil/ls", "touch mark");
        symlink("/bin/sh", world.ws("evil/sh")).expect("a link");
        world.file("rc", "touch mark\n");
        let result = world.run(command).await;
        // `env` alone starts nothing, and may be stored as it was shown.
        if command != "env" && !command.starts_with("ssh") {
            assert!(result.is_error && !world.ws("mark").exists(), "{command}: {}", result.text());
            assert!(stored(&world).is_empty(), "{command}: {:?}", stored(&world));
        }
        assert_eq!(world.audit().len(), 1, "{command}");
    }
}

/// A22: of a shell with a plain text, the inner programs are stored, each as it was shown.
#[tokio::test]
async fn what_always_stores_is_what_was_shown() {
    for (command, programs) in [
        ("touch mark", vec!["/usr/bin/touch"]),
        ("touch mark && stat mark", vec!["/usr/bin/touch", "/usr/bin/stat"]),
        ("nice -n 5 touch mark", vec!["/usr/bin/touch"]),
        ("env FOO=1 touch mark", vec!["/usr/bin/touch"]),
        ("touch mark; echo x | head -n1", vec!["/usr/bin/touch"]),
        ("sh -c 'touch mark'", vec!["/usr/bin/touch"]),
    ] {
        let shown = Arc::new(std::sync::Mutex::new(Vec::new()));
        let seen = Arc::clone(&shown);
        let world = World::new(Arc::new(Says(move |question: &Question| {
            *seen.lock().expect("no panic") = question.judgment().grants().expect("it can be had");
            Some(Answer::Always)
        })));
        let result = world.run(command).await;
        assert!(!result.is_error && world.ws("mark").exists(), "{command}: {}", result.text());
        let grants = shown.lock().expect("no panic").clone();
        let entries = stored(&world);
        let facts: Vec<_> =
            entries.iter().map(|it| (it.pattern.clone(), it.arg_pattern.clone(), it.cwd.clone())).collect();
        let expected: Vec<_> = grants
            .iter()
            .map(|it| (path_text(&it.program).to_owned(), Some(it.rule.clone()), Some(path_text(&it.cwd).to_owned())))
            .collect();
        assert_eq!(facts, expected, "{command}");
        let real: Vec<_> = programs.iter().map(|path| Path::new(path).canonicalize().expect("it is there")).collect();
        assert!(real.iter().all(|path| grants.iter().any(|grant| grant.program == *path)), "{command}: {grants:?}");
        assert!(entries.iter().all(|entry| entry.source.as_deref() == Some("allow-always")));
    }
}

/// A22: a grant covers one program, these arguments, this folder; and a second question is not asked for those.
#[tokio::test]
async fn a_stored_grant_covers_nothing_else() {
    let mut world = World::new(always());
    world.file("other/x", "");
    world.script("touch", "echo impostor");
    let first = world.run("touch mark").await;
    assert!(!first.is_error, "{}", first.text());
    world.exec.approver = Arc::new(Nobody);
    assert!(!world.run("touch mark").await.is_error, "the control: the same again");
    assert!(!world.run("/usr/bin/touch mark").await.is_error, "the same program by its path");
    assert!(!world.run("touch 'mark'").await.is_error, "the same words, quoted otherwise");
    for command in [
        "touch mark other",
        "touch other",
        "touch",
        "touch -- mark",
        "touch mark ''",
        "touch mark*",
        "touch $X mark",
        "touch 'mark other'",
        "./touch mark",
        "touch mark; touch other",
        "touch mark | sh",
        "touch mark > other/y",
        "sh -c 'touch other'",
        "cp mark other",
        "X=1 touch mark other",
        "cd other && touch mark",
        "env -C other touch mark",
        "env PATH=. touch mark",
    ] {
        let result = world.run(command).await;
        assert!(result.is_error && !result.text().contains("impostor"), "{command}: {}", result.text());
    }
    let elsewhere = ExecCall { workdir: Some("other".to_owned()), ..call("touch mark") };
    assert!(world.call(&elsewhere).await.is_error, "another folder");
    world.setting.agent = "someone-else".to_owned();
    assert!(world.run("touch mark").await.is_error, "another agent");
    world.setting.agent = "main".to_owned();
    world.setting.settings.path_prepend = vec![path_text(&world.setting.workspace).to_owned()];
    assert!(world.run("touch mark").await.is_error, "the name leads to another program now");
    assert!(!world.ws("other/mark").exists() && !world.ws("other/y").exists());
}

/// A23: one answer starts one command once.
///
/// That the answer to one question cannot start another command is a matter of types: a `Question` owns its judgment,
/// `Question::answer` consumes it, a `Permit` owns the judged text and cannot be cloned, and `Warrant::new` consumes the
/// permit. What is left to test is that every run asks anew.
#[tokio::test]
async fn an_answer_is_used_once() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let world = World::new(Arc::new(Says(move |_: &Question| {
        (count.fetch_add(1, Ordering::SeqCst) == 0).then_some(Answer::Once)
    })));
    assert!(!world.run("touch mark").await.is_error);
    std::fs::remove_file(world.ws("mark")).expect("it was made");
    for _ in 0..3 {
        assert!(world.run("touch mark").await.is_error && !world.ws("mark").exists());
    }
    assert_eq!(asked.load(Ordering::SeqCst), 4);
    assert_eq!(world.endings(), ["approved", "refused", "refused", "refused"]);
    assert!(stored(&world).is_empty());
}

/// A23: an answer is for this command, folder, environment, agent and session.
#[tokio::test]
async fn an_answer_is_bound_to_everything_that_was_asked() {
    let seen = Arc::new(std::sync::Mutex::new(std::collections::BTreeSet::new()));
    let digests = Arc::clone(&seen);
    let mut world = World::new(Arc::new(Says(move |question: &Question| {
        digests.lock().expect("no panic").insert(question.judgment().request().binding.digest());
        Some(Answer::No)
    })));
    world.file("sub/x", "");
    let mut ask = 0;
    let mut next = async |world: &World, call: ExecCall| {
        assert!(world.call(&call).await.is_error);
        ask += 1;
        assert_eq!(seen.lock().expect("no panic").len(), ask, "{call:?}");
    };
    next(&world, call("touch mark")).await;
    next(&world, call("touch  mark")).await;
    next(&world, ExecCall { workdir: Some("sub".to_owned()), ..call("touch mark") }).await;
    next(&world, ExecCall { env: vec![("A".to_owned(), "1".to_owned())], ..call("touch mark") }).await;
    next(&world, ExecCall { env: vec![("A".to_owned(), "2".to_owned())], ..call("touch mark") }).await;
    world.setting.agent = "other".to_owned();
    next(&world, call("touch mark")).await;
    world.setting.session = "other".to_owned();
    next(&world, call("touch mark")).await;
    world.setting.skills = vec![SkillShare { vars: vec![("KEY".to_owned(), "1".into())], ..SkillShare::default() }];
    next(&world, call("touch mark")).await;
    std::fs::rename(world.ws("sub"), world.ws("gone")).expect("it is moved");
    std::fs::create_dir(world.ws("sub")).expect("a folder");
    next(&world, ExecCall { workdir: Some("sub".to_owned()), ..call("touch mark") }).await;
}

/// A23: the environment that runs is the one that was judged.
#[tokio::test]
async fn a_permit_for_another_environment_starts_nothing() {
    let world = target(Arc::new(Nobody));
    let case = world.exec.judge(&call("ls"), &world.setting).expect("it is judged");
    assert_eq!(case.judgment.verdict(), Verdict::Allow);
    let more = [("PAYLOAD".to_owned(), "1".to_owned())];
    let drifted = compose(EnvInputs { host: &world.setting.host_env, caller: &more, ..EnvInputs::default() });
    let drifted = drifted.expect("an environment");
    let permit = case.judgment.permit().expect("it is allowed");
    assert_eq!(Warrant::new(permit, drifted).map(|_| ()), Err(EnvDrift));
    let case = world.exec.judge(&call("ls"), &world.setting).expect("it is judged");
    let permit = case.judgment.permit().expect("it is allowed");
    assert!(Warrant::new(permit, case.env).is_ok(), "the control");
}

/// Somebody who is asked and never answers.
struct Silent;

impl Approver for Silent {
    fn ask<'a>(
        &'a self,
        _question: &'a Question,
    ) -> std::pin::Pin<Box<dyn Future<Output = Option<Answer>> + Send + 'a>> {
        Box::pin(std::future::pending())
    }
}

/// A23: whoever stops waiting for an answer has started nothing, and nothing starts later.
#[tokio::test]
async fn a_run_that_is_given_up_while_it_is_asked_about_does_not_happen() {
    let world = World::new(Arc::new(Silent));
    let asked = call("touch mark");
    let given_up = tokio::time::timeout(Duration::from_millis(50), world.exec.run(&asked, &world.setting)).await;
    assert!(given_up.is_err() && !world.ws("mark").exists());
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!world.ws("mark").exists() && stored(&world).is_empty());
}

/// A23: no answer is no, also where the file says that silence lets everything run.
#[tokio::test]
async fn silence_runs_only_what_the_rules_cover_anyway() {
    for fallback in ["deny", "allowlist", "full"] {
        let world = target(Arc::new(Nobody));
        let listed = json!([{"id": "ls", "pattern": "/usr/bin/ls"}]);
        let defaults = json!({"ask": "always", "askFallback": fallback});
        world.approvals(&json!({"version": 1, "defaults": defaults, "agents": {"main": {"allowlist": listed}}}));
        assert!(world.run("touch mark").await.is_error && !world.ws("mark").exists(), "{fallback}");
        let listed = world.run("ls").await;
        assert_eq!(listed.is_error, fallback == "deny", "{fallback}: {}", listed.text());
    }
}

/// A caller can tighten the rules for a call, never loosen them.
#[tokio::test]
async fn a_caller_cannot_loosen_the_rules() {
    let loose = ExecCall { security: Some(Security::Full), ask: Some(Ask::Off), ..call("touch mark") };
    let world = World::new(Arc::new(Nobody));
    assert!(world.call(&loose).await.is_error && !world.ws("mark").exists());
    let mut world = World::new(yes());
    world.setting.settings.security = Some(Security::Deny);
    assert!(world.call(&loose).await.is_error && !world.ws("mark").exists());
    let world = World::new(yes());
    world.approvals(&json!({"version": 1, "agents": {"main": {"security": "deny"}}}));
    assert!(world.call(&loose).await.is_error && !world.ws("mark").exists());
    let mut world = World::new(Arc::new(Nobody));
    world.setting.settings.security = Some(Security::Full);
    world.setting.settings.ask = Some(Ask::Off);
    world.approvals(&json!({"version": 1, "agents": {"main": {"security": "full"}}}));
    let tight = ExecCall { security: Some(Security::Deny), ..call("touch mark") };
    assert!(world.call(&tight).await.is_error && !world.ws("mark").exists());
    assert!(!world.run("touch mark").await.is_error, "the control: the operator said full, in both places");
}

/// Whatever stops a command, before or after the question, leaves one line; and nothing that a file is makes us wait.
#[tokio::test]
async fn every_refusal_leaves_one_line() {
    let mut world = World::new(yes());
    world.file("bad.py", "print($HOME_DIR)\n");
    let made = std::process::Command::new("mkfifo").arg(world.ws("pipe.py")).status().expect("it starts");
    assert!(made.success());
    let plain = call("touch mark");
    let calls = [
        (ExecCall { workdir: Some("nowhere".to_owned()), ..plain.clone() }, "refused"),
        (ExecCall { elevated: true, ..plain.clone() }, "refused"),
        (ExecCall { env: vec![("LD_PRELOAD".to_owned(), "x".to_owned())], ..plain.clone() }, "refused"),
        (ExecCall { security: Some(Security::Deny), ..plain.clone() }, "refused"),
        (call("python3 bad.py"), "refused"),
        (ExecCall { timeout: Some(0.5), ..call("python3 pipe.py") }, "approved"),
    ];
    for (at, (call, ending)) in calls.iter().enumerate() {
        let result = world.call(call).await;
        assert!(result.is_error && !world.ws("mark").exists(), "{call:?}: {}", result.text());
        assert_eq!((world.audit().len(), world.endings()[at].as_str()), (at + 1, *ending), "{call:?}");
    }
    world.setting.settings.sandbox = prowess_policy::SandboxChoice::Unknown("chroot".to_owned());
    assert!(world.call(&plain).await.is_error && !world.ws("mark").exists());
    assert_eq!(world.endings().last().map(String::as_str), Some("refused"));
    assert_eq!(world.audit().len(), calls.len() + 1);
}
