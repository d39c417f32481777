//! The approvals file under attack: broken, writable by others, or written by many at once.

#![cfg(target_os = "linux")]

use crate::world;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::sync::Arc;

use prowess_exec::approver::Nobody;
use prowess_exec::store::{ApprovalsFile, StoreError};
use prowess_policy::approvals::Entry;
use serde_json::{Value, json};
use world::{World, always, write};

fn entry(pattern: &str) -> Entry {
    Entry { id: pattern.to_owned(), pattern: pattern.to_owned(), ..Entry::default() }
}

fn mode(file: &std::path::Path) -> u32 {
    std::fs::metadata(file).expect("it is there").mode() & 0o777
}

/// A broken file is never taken for an empty one: nothing runs, not even with a yes, and not a byte of it changes.
#[tokio::test]
async fn a_broken_file_stops_everything_and_stays_as_it_is() {
    let good = r#"{"version":1,"agents":{"main":{"allowlist":[{"pattern":"/usr/bin/ls"}]}}}"#;
    let world = World::new(Arc::new(Nobody));
    write(world.exec.approvals.path(), good, 0o600);
    assert!(!world.run("ls").await.is_error, "the control");
    for broken in [
        "",
        " ",
        "null",
        "[]",
        "{",
        "{}",
        &good[..good.len() - 1],
        &format!("{good}x"),
        r#"{"version":2,"agents":{}}"#,
        r#"{"version":"1","agents":{}}"#,
        r#"{"version":1,"agents":[]}"#,
        r#"{"version":1,"agents":{"main":"all"}}"#,
        r#"{"version":1,"agents":{"main":{"allowlist":"/usr/bin/ls"}}}"#,
        r#"{"version":1,"agents":{"main":{"security":7}}}"#,
        r#"{"version":1,"defaults":{"security":["deny"]},"agents":{}}"#,
        r#"{"version":1,"agents":{"main":{"allowlist":[{"pattern":"/usr/bin/ls","argPattern":7}]}}}"#,
        r#"{"version":1,"agents":{"main":{"allowlist":[{"pattern":"/usr/bin/ls","cwd":["/"]}]}}}"#,
        "{\"version\":1,\u{0}\"agents\":{}}",
        "version: 1",
    ] {
        let world = World::new(always());
        let path = world.exec.approvals.path().to_owned();
        write(&path, broken, 0o600);
        for command in ["ls", "touch mark"] {
            let result = world.run(command).await;
            assert!(result.is_error && result.text().contains("exec-approvals.json"), "{broken}: {}", result.text());
        }
        assert!(!world.ws("mark").exists(), "{broken}");
        assert!(world.exec.approvals.update(|approvals| approvals.grant(None, &entry("/usr/bin/ls"))).is_err());
        assert_eq!(std::fs::read(&path).expect("it is there"), broken.as_bytes(), "{broken}");
        assert_eq!(world.endings(), ["refused", "refused"]);
    }
    for bytes in [vec![0xff, 0xfe, b'{'], vec![b' '; 5 << 20]] {
        let world = World::new(always());
        std::fs::write(world.exec.approvals.path(), &bytes).expect("it is written");
        assert!(world.run("touch mark").await.is_error && !world.ws("mark").exists());
        assert_eq!(std::fs::read(world.exec.approvals.path()).expect("it is there"), bytes);
    }
}

#[tokio::test]
async fn a_file_that_others_can_write_is_not_believed() {
    for (mode, runs) in [(0o600, true), (0o644, true), (0o620, false), (0o602, false), (0o666, false)] {
        let world = World::new(Arc::new(Nobody));
        let text = json!({"version": 1, "agents": {"main": {"allowlist": [{"pattern": "/usr/bin/ls"}]}}}).to_string();
        write(world.exec.approvals.path(), &text, mode);
        let result = world.run("ls").await;
        assert_eq!(!result.is_error, runs, "{mode:o}: {}", result.text());
        if !runs {
            assert!(matches!(world.exec.approvals.load(), Err(StoreError::Unsafe(_))));
            assert_eq!(std::fs::read_to_string(world.exec.approvals.path()).expect("it is there"), text);
        }
    }
    let world = World::new(Arc::new(Nobody));
    std::fs::create_dir(world.exec.approvals.path()).expect("a folder");
    assert!(world.run("ls").await.is_error, "a folder is no file");
}

#[tokio::test]
async fn leases_that_others_can_write_are_not_believed_either() {
    for (mode, runs) in [(0o600, true), (0o644, true), (0o620, false), (0o602, false)] {
        let world = World::new(always());
        write(world.exec.leases.path(), r#"{"version": 1, "leases": []}"#, mode);
        let result = world.run("touch mark").await;
        assert_eq!((!result.is_error, world.ws("mark").exists()), (runs, runs), "{mode:o}: {}", result.text());
        assert_eq!(matches!(world.exec.leases.load(), Err(StoreError::Unsafe(_))), !runs, "{mode:o}");
    }
    for broken in ["", "[]", r#"{"version": 2, "leases": []}"#] {
        let world = World::new(always());
        write(world.exec.leases.path(), broken, 0o600);
        assert!(world.run("touch mark").await.is_error && !world.ws("mark").exists(), "{broken}");
        assert!(world.exec.leases.revoke("anything").is_err(), "{broken}");
        assert_eq!(std::fs::read_to_string(world.exec.leases.path()).expect("it is there"), broken);
    }
}

#[test]
fn what_is_written_is_for_its_owner_alone_and_nothing_is_left_beside_it() {
    let world = World::new(Arc::new(Nobody));
    let file = ApprovalsFile::in_state_dir(&world.state("deeper/still"));
    assert_eq!(file.load().expect("nothing is there").agents().count(), 0);
    file.update(|approvals| approvals.grant(Some("main"), &entry("/usr/bin/ls"))).expect("it is written");
    assert_eq!(mode(file.path()), 0o600);
    std::fs::set_permissions(file.path(), PermissionsExt::from_mode(0o644)).expect("the mode is set");
    file.update(|approvals| approvals.grant(Some("main"), &entry("/usr/bin/cat"))).expect("it is written");
    assert_eq!(mode(file.path()), 0o600, "a new file takes the place of the old one");
    let mut names: Vec<String> = std::fs::read_dir(world.state("deeper/still"))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
        .collect();
    names.sort();
    assert_eq!(names, ["exec-approvals.json", "exec-approvals.json.lock"]);
    assert_eq!(mode(&world.state("deeper/still/exec-approvals.json.lock")), 0o600);
}

/// People write rules without names.
#[tokio::test]
async fn a_rule_without_a_name_knows_its_last_use() {
    let world = World::new(Arc::new(Nobody));
    let rules =
        json!({"version": 1, "agents": {"main": {"allowlist": [{"pattern": "/none"}, {"pattern": "/usr/bin/ls"}]}}});
    write(world.exec.approvals.path(), &rules.to_string(), 0o600);
    assert_eq!(world.exec.approvals.load().expect("a file"), world.exec.approvals.load().expect("a file"));
    assert!(!world.run("ls").await.is_error);
    let text = std::fs::read_to_string(world.exec.approvals.path()).expect("a file");
    let file: Value = serde_json::from_str(&text).expect("JSON");
    let [unused, used] = [0, 1].map(|at| file["agents"]["main"]["allowlist"][at].clone());
    assert!(used["lastUsedAt"].is_u64() && used["lastUsedCommand"] == "ls", "{file}");
    assert!(unused.get("lastUsedAt").is_none() && unused["id"] != used["id"], "{file}");
}

#[test]
fn an_update_that_changes_nothing_writes_nothing() {
    let world = World::new(Arc::new(Nobody));
    let file = &world.exec.approvals;
    file.update(|approvals| approvals.grant(Some("main"), &entry("/usr/bin/ls"))).expect("it is written");
    let before = std::fs::metadata(file.path()).expect("it is there").ino();
    file.update(|approvals| approvals.grant(Some("main"), &entry("/usr/bin/ls"))).expect("it is read");
    assert_eq!(std::fs::metadata(file.path()).expect("it is there").ino(), before);
}

#[test]
fn what_we_do_not_know_survives_and_a_link_stays_a_link() {
    let world = World::new(Arc::new(Nobody));
    let real = write(
        &world.root().join("elsewhere/real.json"),
        &json!({"version": 1, "socket": {"path": "/s", "token": "t"}, "agents": {"main": {"x": [1], "allowlist": []}}})
            .to_string(),
        0o600,
    );
    symlink(&real, world.exec.approvals.path()).expect("a link");
    let granted = world.exec.approvals.update(|approvals| approvals.grant(Some("main"), &entry("/usr/bin/ls")));
    assert!(granted.expect("it is written"));
    assert!(world.exec.approvals.path().is_symlink());
    let value: Value = serde_json::from_str(&std::fs::read_to_string(&real).expect("it is there")).expect("JSON");
    assert_eq!(value["socket"]["token"], "t");
    assert_eq!(
        (&value["agents"]["main"]["x"], &value["agents"]["main"]["allowlist"][0]["pattern"]),
        (&json!([1]), &json!("/usr/bin/ls"))
    );
}

/// Many writers lose nothing, and whoever reads meanwhile always reads a whole file.
#[test]
fn many_writers_lose_nothing() {
    let world = World::new(Arc::new(Nobody));
    let dir = world.state("");
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..8)
            .map(|writer| {
                let file = ApprovalsFile::in_state_dir(&dir);
                scope.spawn(move || {
                    for number in 0..15 {
                        let entry = entry(&format!("/opt/w{writer}/n{number}"));
                        assert!(file.update(|approvals| approvals.grant(Some("main"), &entry)).expect("written"));
                    }
                })
            })
            .collect();
        let reader = ApprovalsFile::in_state_dir(&dir);
        let mut seen = 0;
        while !writers.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            let now = reader.load().expect("whoever reads reads a whole file").entries("main").len();
            assert!(now >= seen, "{now} after {seen}");
            seen = now;
        }
    });
    assert_eq!(world.exec.approvals.load().expect("it can be read").entries("main").len(), 8 * 15);
}

/// An answer that cannot be stored is no answer: what was to be allowed for good does not run once either.
#[tokio::test]
async fn an_always_that_cannot_be_stored_runs_nothing() {
    let world = World::new(always());
    // The lock cannot be made: there is a folder in its place.
    std::fs::create_dir(world.state("exec-approvals.json.lock")).expect("a folder");
    let result = world.run("touch mark").await;
    assert!(result.is_error && !world.ws("mark").exists(), "{}", result.text());
    assert_eq!(world.endings(), ["refused"]);
}

/// A pipe would be waited for without end: it is refused, and so is a folder.
#[tokio::test]
async fn what_is_no_file_is_refused() {
    for make in ["mkfifo", "mkdir"] {
        let world = World::new(always());
        let path = world.exec.approvals.path().to_owned();
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        assert!(std::process::Command::new(make).args(["-m", "700"]).arg(&path).status().expect(make).success());
        assert!(matches!(world.exec.approvals.load(), Err(StoreError::NotAFile(_))), "{make}");
        let result = world.run("ls").await;
        assert!(result.is_error && result.text().contains("is not a regular file"), "{make}: {}", result.text());
    }
    let world = World::new(always());
    let lock = world.exec.approvals.lock_path();
    std::fs::create_dir_all(lock.parent().expect("a folder")).expect("a folder");
    assert!(std::process::Command::new("mkfifo").arg(&lock).status().expect("mkfifo").success());
    assert!(world.exec.approvals.update(|_| ()).is_err());
}
