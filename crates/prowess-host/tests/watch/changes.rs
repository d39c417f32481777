//! One change at a time: what people and editors do.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use prowess_host::{Cause, Live};
use prowess_testkit::eventually;

use crate::stage::{Stage, settle, text, told};

/// Waits until models are told of exactly these.
#[track_caller]
fn expect(live: &Live, skills: &[&str]) {
    eventually(&format!("{skills:?} instead of {:?}", told(live)), || told(live) == skills);
}

#[test]
fn an_edit_is_seen() {
    let stage = Stage::quick();
    stage.skill("ws/skills/a", "one");
    let live = stage.live();
    settle(&live);
    stage.skill("ws/skills/a", "two");
    expect(&live, &["a: two"]);
    // Skills are there before anybody is told.
    eventually("somebody tells", || live.changes().borrow().number > 0);
    let change = live.changes().borrow().clone();
    assert_eq!((change.cause, change.is_prompt), (Cause::Disk, true));
    assert!(change.paths.contains(&stage.tree.path("ws/skills/a/SKILL.md")));
}

#[test]
fn skills_come_and_go() {
    let stage = Stage::quick();
    stage.skill("ws/skills/a", "d");
    let live = stage.live();
    stage.skill("ws/skills/b", "d");
    expect(&live, &["a: d", "b: d"]);
    fs::remove_dir_all(stage.tree.path("ws/skills/a")).expect("removed");
    expect(&live, &["b: d"]);
    fs::rename(stage.tree.path("ws/skills/b"), stage.tree.path("ws/skills/c")).expect("renamed");
    eventually("the new place", || live.view().catalog.skills()[0].dir() == stage.tree.path("ws/skills/c"));
    stage.skill("ws/skills/c", "edited after it was renamed");
    expect(&live, &["c: edited after it was renamed"]);
    fs::remove_file(stage.tree.path("ws/skills/c/SKILL.md")).expect("removed");
    expect(&live, &[]);
    stage.skill("ws/skills/c", "back");
    expect(&live, &["c: back"]);
}

#[test]
fn a_root_that_is_made_late_is_seen() {
    let stage = Stage::quick();
    let live = stage.live();
    expect(&live, &[]);
    stage.skill("home/.agents/skills/personal", "d");
    expect(&live, &["personal: d"]);
    stage.skill("home/.openclaw/skills/managed", "d");
    expect(&live, &["managed: d", "personal: d"]);
    stage.skill("ws/.agents/skills/project", "d");
    expect(&live, &["managed: d", "personal: d", "project: d"]);
    stage.skill("ws/skills/deep/deeper/workspace", "d");
    expect(&live, &["managed: d", "personal: d", "project: d", "workspace: d"]);
    stage.skill("ws/skills/deep/deeper/workspace", "edited");
    expect(&live, &["managed: d", "personal: d", "project: d", "workspace: edited"]);
}

#[test]
fn editors_save_in_their_own_ways() {
    let stage = Stage::quick();
    stage.skill("ws/skills/a", "0");
    let live = stage.live();
    let file = stage.tree.path("ws/skills/a/SKILL.md");
    let beside = |name: &str| file.with_file_name(name);
    // A draft that is renamed over the file, twice, because the second file is another one again.
    for round in ["1", "2"] {
        fs::write(beside(".SKILL.md.swp"), text("a", round)).expect("written");
        fs::rename(beside(".SKILL.md.swp"), &file).expect("renamed");
        expect(&live, &[&format!("a: {round}")]);
    }
    // The old file is a backup, and the new one is a new one.
    fs::rename(&file, beside("SKILL.md~")).expect("renamed");
    fs::write(&file, text("a", "3")).expect("written");
    expect(&live, &["a: 3"]);
    // Gone and made again.
    fs::remove_file(&file).expect("removed");
    fs::write(&file, text("a", "4")).expect("written");
    expect(&live, &["a: 4"]);
    // In place, with the length and the time of before.
    let time = fs::metadata(&file).and_then(|metadata| metadata.modified()).expect("a time");
    fs::write(&file, text("a", "5")).expect("written");
    fs::File::options().write(true).open(&file).and_then(|file| file.set_modified(time)).expect("set back");
    expect(&live, &["a: 5"]);
}

#[test]
fn a_link_that_is_turned_leads_elsewhere() {
    let stage = Stage::quick();
    stage.skill("one/a", "d");
    stage.skill("two/b", "d");
    let link = stage.tree.path("ws/skills");
    symlink("../one", &link).expect("linked");
    let live = stage.live();
    expect(&live, &["a: d"]);
    stage.skill("one/a", "edited behind the link");
    expect(&live, &["a: edited behind the link"]);
    fs::remove_file(&link).expect("removed");
    symlink("../two", &link).expect("linked");
    expect(&live, &["b: d"]);
    stage.skill("two/b", "edited behind the other");
    expect(&live, &["b: edited behind the other"]);
    fs::rename(stage.tree.path("two"), stage.tree.path("three")).expect("renamed");
    expect(&live, &[]);
    stage.skill("two/c", "d");
    expect(&live, &["c: d"]);
}

#[test]
fn a_skill_behind_a_link_is_seen() {
    let stage = Stage::quick();
    stage.skill("elsewhere/a", "one");
    fs::create_dir_all(stage.tree.path("home/.openclaw/skills")).expect("made");
    symlink(stage.tree.path("elsewhere/a"), stage.tree.path("home/.openclaw/skills/a")).expect("linked");
    let live = stage.live();
    expect(&live, &["a: one"]);
    stage.skill("elsewhere/a", "two");
    expect(&live, &["a: two"]);
    fs::remove_dir_all(stage.tree.path("elsewhere")).expect("removed");
    expect(&live, &[]);
    stage.skill("elsewhere/a", "three");
    expect(&live, &["a: three"]);
}

#[test]
fn a_root_that_goes_and_comes_back_is_seen() {
    let stage = Stage::quick();
    stage.skill("ws/skills/a", "0");
    let live = stage.live();
    for round in 1..4 {
        fs::remove_dir_all(stage.tree.path("ws/skills")).expect("removed");
        expect(&live, &[]);
        stage.skill("ws/skills/a", &round.to_string());
        expect(&live, &[&format!("a: {round}")]);
    }
    // The folder above it as well.
    fs::rename(stage.tree.path("ws"), stage.tree.path("away")).expect("renamed");
    expect(&live, &[]);
    stage.skill("ws/skills/b", "new");
    expect(&live, &["b: new"]);
    stage.skill("ws/skills/b", "newer");
    expect(&live, &["b: newer"]);
}

#[test]
fn folders_that_are_made_and_filled_in_one_go_are_seen() {
    let stage = Stage::quick();
    let live = stage.live();
    let mut all = Vec::new();
    for round in 10..30 {
        stage.skill(&format!("ws/skills/g{round}/h/i/s{round}"), "d");
        all.push(format!("s{round}: d"));
        expect(&live, &all.iter().map(String::as_str).collect::<Vec<_>>());
    }
}

#[test]
fn the_same_bytes_are_no_change() {
    let stage = Stage::quick();
    stage.skill("ws/skills/a", "d");
    let live = stage.live();
    live.refresh_now();
    let (print, number) = (live.skills().current().snapshot.fingerprint(), live.changes().borrow().number);
    let before = live.stats().refreshes;
    stage.skill("ws/skills/a", "d");
    eventually("somebody looks", || live.stats().refreshes > before);
    live.refresh_now();
    assert_eq!(live.skills().current().snapshot.fingerprint(), print);
    assert_eq!(live.changes().borrow().number, number);
}

#[test]
fn a_body_is_no_change_for_models_either() {
    let stage = Stage::quick();
    stage.skill("ws/skills/a", "d");
    let live = stage.live();
    let print = live.skills().current().snapshot.fingerprint();
    let before = live.stats().refreshes;
    stage.write("ws/skills/a/SKILL.md", &(text("a", "d") + "another body\n"));
    eventually("somebody looks", || live.stats().refreshes > before);
    live.refresh_now();
    assert_eq!(live.skills().current().snapshot.fingerprint(), print);
    assert_eq!(live.changes().borrow().number, 0);
}

#[test]
fn what_only_a_person_sees_is_a_change_for_people() {
    let stage = Stage::quick();
    stage.skill("ws/skills/a", "d");
    let live = stage.live();
    stage.write("ws/skills/b/SKILL.md", "no frontmatter");
    eventually("the broken one", || live.view().catalog.broken().len() == 1);
    eventually("somebody tells", || live.changes().borrow().number > 0);
    assert!(!live.changes().borrow().is_prompt);
    assert_eq!(live.view().problems.len(), 1);
}

#[test]
fn a_program_that_is_installed_is_seen() {
    let stage = Stage::quick();
    let needs = "---\nname: a\ndescription: d\nmetadata: {openclaw: {requires: {bins: [tool]}}}\n---\n";
    stage.write("ws/skills/a/SKILL.md", needs);
    let live = stage.live();
    expect(&live, &[]);
    stage.write("bin/tool", "#!/bin/sh\n");
    fs::set_permissions(stage.tree.path("bin/tool"), fs::Permissions::from_mode(0o755)).expect("set");
    expect(&live, &["a: d"]);
    fs::remove_file(stage.tree.path("bin/tool")).expect("removed");
    expect(&live, &[]);
}

#[test]
fn a_plugin_that_is_installed_is_seen() {
    let stage = Stage::quick();
    let live = stage.live();
    stage.skill("home/.openclaw/extensions/p/things/a", "d");
    stage.write(
        "home/.openclaw/extensions/p/openclaw.plugin.json",
        r#"{"id": "p", "configSchema": {}, "skills": ["things"]}"#,
    );
    expect(&live, &["a: d"]);
    stage.write("home/.openclaw/extensions/p/openclaw.plugin.json", r#"{"id": "p", "configSchema": {}}"#);
    expect(&live, &[]);
}

#[test]
fn skills_in_folders_that_are_not_watched_are_seen_when_they_are_there() {
    let stage = Stage::quick();
    stage.skill("ws/skills/build/a", "one");
    let live = stage.live();
    expect(&live, &["a: one"]);
    stage.skill("ws/skills/build/a", "two");
    expect(&live, &["a: two"]);
    stage.skill("ws/skills/dist/b", "d");
    // Nobody tells of it, and a turn looks for itself.
    live.refresh_now();
    assert_eq!(told(&live), ["a: two", "b: d"]);
}

#[test]
fn polling_sees_the_same() {
    let stage = Stage::quick().var("CHOKIDAR_USEPOLLING", "true").var("CHOKIDAR_INTERVAL", "10");
    stage.skill("ws/skills/a", "one");
    let live = stage.live();
    eventually("it polls", || live.stats().is_polling);
    assert_eq!(live.stats().watches, 0);
    stage.skill("ws/skills/a", "two");
    expect(&live, &["a: two"]);
    stage.skill("home/.agents/skills/b", "late");
    expect(&live, &["b: late", "a: two"]);
    fs::remove_dir_all(stage.tree.path("ws/skills")).expect("removed");
    expect(&live, &["b: late"]);
}
