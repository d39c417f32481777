//! The claims of `docs/conformance.md` about watching files.

use std::fs;

use prowess_host::Cause;
use prowess_testkit::eventually;

use crate::stage::{Stage, settle, told};

#[test]
fn m_watch_01_a_skill_is_noticed_in_a_root_and_in_its_folders() {
    let stage = Stage::quick();
    stage.skill("ws/skills/direct", "d");
    stage.skill("ws/skills/skills/nested", "d");
    stage.skill("ws/skills/group/grouped", "d");
    let live = stage.live();
    for dir in ["direct", "skills/nested", "group/grouped"] {
        stage.skill(&format!("ws/skills/{dir}"), "changed");
        let name = dir.rsplit('/').next().expect("a name");
        eventually(dir, || told(&live).contains(&format!("{name}: changed")));
    }
    fs::remove_dir_all(stage.tree.path("ws/skills")).expect("removed");
    stage.write("ws/skills/SKILL.md", "---\nname: root\ndescription: a root that is a skill\n---\n");
    eventually("the root itself", || told(&live) == ["root: a root that is a skill"]);
}

#[test]
fn m_watch_02_changes_that_come_together_count_as_one() {
    // As configured when nobody says otherwise: a quarter of a second.
    let stage = Stage::new("{}");
    stage.skill("ws/skills/a", "d");
    let live = stage.live();
    settle(&live);
    let (before, number) = (live.stats().refreshes, live.changes().borrow().number);
    let began = std::time::Instant::now();
    for change in 0..50 {
        fs::write(stage.tree.path("ws/skills/a/draft"), crate::stage::text("a", &change.to_string())).expect("written");
        fs::rename(stage.tree.path("ws/skills/a/draft"), stage.tree.path("ws/skills/a/SKILL.md")).expect("renamed");
    }
    eventually("the last of them", || told(&live) == ["a: 49"] && live.changes().borrow().number > number);
    // One, unless this machine stood still between two of them.
    let most = began.elapsed().as_millis() / 250;
    assert!(u128::from(live.stats().refreshes - before) <= most);
    assert!(u128::from(live.changes().borrow().number - number) <= most);
}

#[test]
fn m_watch_03_a_change_is_told_and_the_same_bytes_are_none() {
    let stage = Stage::quick();
    stage.skill("ws/skills/a", "d");
    let live = stage.live();
    settle(&live);
    let mut changes = live.changes();
    let print = live.skills().current().snapshot.fingerprint();
    let before = live.stats().refreshes;
    fs::write(stage.tree.path("draft"), crate::stage::text("a", "d")).expect("written");
    fs::rename(stage.tree.path("draft"), stage.tree.path("ws/skills/a/SKILL.md")).expect("renamed");
    eventually("somebody looks", || live.stats().refreshes > before);
    live.refresh_now();
    assert!(!changes.has_changed().expect("it lives"));
    stage.skill("ws/skills/a", "another");
    eventually("it is told", || changes.has_changed().expect("it lives") && told(&live) == ["a: another"]);
    let change = changes.borrow_and_update().clone();
    assert!(change.is_prompt && change.cause == Cause::Disk);
    assert_ne!(live.skills().current().snapshot.fingerprint(), print);
}

#[test]
fn m_watch_04_a_running_session_sees_a_change_on_its_next_turn() {
    let stage = Stage::new("{}");
    stage.skill("ws/skills/a", "one");
    let live = stage.live();
    let session = live.open();
    assert!(session.skills.current().snapshot.prompt().text.contains("one"));
    stage.skill("ws/skills/a", "two");
    // What a turn begins with; nobody has to wait for the watcher.
    live.refresh_now();
    assert!(session.skills.current().snapshot.prompt().text.contains("two"));
}

#[test]
fn m_watch_05_without_watching_only_a_new_session_sees_a_change() {
    let stage = Stage::new("{skills: {load: {watch: false}}}");
    stage.skill("ws/skills/a", "one");
    let live = stage.live();
    let old = live.open();
    stage.skill("ws/skills/a", "two");
    live.refresh_now();
    let new = live.open();
    let prompt = |session: &prowess_host::Opened| session.skills.current().snapshot.prompt().text.clone();
    assert!(prompt(&old).contains("one") && prompt(&new).contains("two"));
}

#[test]
fn m_watch_06_nothing_holds_a_reload_back_for_half_a_minute() {
    let stage = Stage::new("{}");
    let live = stage.live();
    stage.skill("ws/skills/a", "one");
    // The patience of a test ends before those thirty seconds.
    eventually("the skill", || told(&live) == ["a: one"]);
    stage.skill("ws/skills/a", "two");
    eventually("the change", || told(&live) == ["a: two"]);
}
