//! A17: a thousand runs at once, each with a secret of its own: does any of them see another's?

#![cfg(target_os = "linux")]

use crate::world;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use prowess_exec::approver::Nobody;
use prowess_exec::{Setting, SkillShare};
use prowess_policy::SandboxChoice;
use prowess_policy::posture::{Ask, Security};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use world::{World, call};

/// Leaves the run's secret in its folders, then looks for secrets in every process and every folder beside its own. The
/// secret is nobody's argument here: arguments are for all to see, in this sandbox as elsewhere.
const PROBE: &str = "printenv CANARY > mine; printenv CANARY > \"${TMPDIR:-.}/mine\"; sleep 0.05; \
    grep -aohs 'canary-[0-9][0-9]*' /proc/[0-9]*/environ /proc/[0-9]*/cmdline \"${TMPDIR:-.}\"/../*/mine ../*/mine; \
    printenv CANARY | sed 's/^/own /'";

fn world() -> World {
    let mut world = World::new(Arc::new(Nobody));
    world.setting.settings.security = Some(Security::Full);
    world.setting.settings.ask = Some(Ask::Off);
    world
}

/// The setting of one run: its own secret, its own folder.
fn setting(world: &World, number: usize) -> Setting {
    let workspace = world.ws(&format!("of-{number}"));
    std::fs::create_dir(&workspace).expect("a folder");
    let vars = vec![("CANARY".to_owned(), canary(number).into())];
    let skills = vec![SkillShare { vars, ..SkillShare::default() }];
    Setting { workspace, skills, session: format!("session-{number}"), ..world.setting.clone() }
}

fn canary(number: usize) -> String {
    format!("canary-{}", 7_000_000 + number)
}

/// Runs the probe `count` times, `at_once` at a time, and gives what each run found besides its own secret.
async fn strangers(world: World, count: usize, at_once: usize) -> (Arc<World>, Vec<Vec<String>>) {
    let world = Arc::new(world);
    let places = Arc::new(Semaphore::new(at_once));
    let mut runs = JoinSet::new();
    for number in 0..count {
        let (world, places) = (Arc::clone(&world), Arc::clone(&places));
        runs.spawn(async move {
            let _place = places.acquire().await.expect("it stays open");
            let result = world.exec.run(&call(PROBE), &setting(&world, number)).await;
            let text = result.text();
            let own = canary(number);
            assert!(!result.is_error && text.ends_with(&format!("own {own}")), "run {number}: {text}");
            // It finds itself at least in its own processes, or it would find nobody else either.
            let found: BTreeSet<&str> = text.lines().filter(|line| line.starts_with("canary-")).collect();
            assert!(found.contains(own.as_str()), "run {number} does not even see itself: {text}");
            found.into_iter().filter(|one| *one != own).map(str::to_owned).collect::<Vec<_>>()
        });
    }
    let found = runs.join_all().await;
    (world, found)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_a_thousand_runs_none_sees_the_secret_of_another() {
    let (world, found) = strangers(world(), 1000, 64).await;
    let seen: Vec<&String> = found.iter().flatten().collect();
    assert_eq!(found.len(), 1000);
    assert!(seen.is_empty(), "{} secrets were seen, such as {:?}", seen.len(), seen.first());
    let trail = std::fs::read_to_string(world.exec.audit.path()).expect("a trail");
    assert_eq!(trail.lines().count(), 1000, "one line for each");
    assert!(!trail.contains("canary-7"), "no secret in the trail");
    let approvals = std::fs::read_to_string(world.exec.approvals.path()).unwrap_or_default();
    assert!(!approvals.contains("canary-7"), "no secret among the approvals");
}

/// The control: with the sandbox off, the same probe does find the others.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn without_a_sandbox_they_would() {
    let mut world = world();
    world.setting.settings.sandbox = SandboxChoice::Off;
    let (_, found) = strangers(world, 24, 12).await;
    assert!(found.iter().any(|others| !others.is_empty()), "the probe finds nothing");
}

/// The audit trail is locked by another process. The command that waits for it must not hold up anything else on the
/// one thread there is, or the lock would never be released in time.
#[tokio::test]
async fn locks_are_waited_for_off_the_async_threads() {
    let world = world();
    let path = world.exec.audit.path().with_extension("jsonl.lock");
    let lock = prowess_files::Lock::acquire(&path, Duration::ZERO).expect("it is free");
    let release = async move {
        tokio::time::sleep(Duration::from_millis(50)).await;
        drop(lock);
    };
    let (result, ()) = tokio::join!(world.run("true"), release);
    assert!(!result.is_error, "{}", result.text());
    assert_eq!(world.endings(), ["allowed"]);
}
