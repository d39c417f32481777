//! Much at once, and for long.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant, SystemTime};

use prowess_testkit::eventually;

use crate::stage::{Stage, are_same, settle, told};

#[test]
fn ten_thousand_touches_are_one_refresh() {
    const QUIET: u64 = 400;
    let stage = Stage::new(&format!("{{skills: {{load: {{watchDebounceMs: {QUIET}}}}}}}"));
    for skill in 0..100 {
        stage.skill(&format!("ws/skills/s{skill}"), "d");
    }
    let live = stage.live();
    settle(&live);
    let (before, number) = (live.stats().refreshes, live.changes().borrow().number);

    let began = Instant::now();
    for touch in 0..10_000 {
        let file = stage.tree.path(&format!("ws/skills/s{}/SKILL.md", touch % 100));
        File::options().write(true).open(file).and_then(|file| file.set_modified(SystemTime::now())).expect("touched");
    }
    eventually("somebody looks", || live.stats().refreshes > before);
    assert_eq!(live.changes().borrow().number, number);
    stage.skill("ws/skills/s0", "changed");
    eventually("the change", || told(&live).contains(&"s0: changed".to_owned()));
    // Between two refreshes it was quiet for a while, so on a machine that stands still there may be more than two.
    let most = began.elapsed().as_millis() / u128::from(QUIET);
    let refreshes = u128::from(live.stats().refreshes - before);
    assert!(refreshes <= most, "{refreshes} refreshes in {:?}", began.elapsed());
}

#[test]
fn a_storm_that_does_not_end_is_seen_all_the_same() {
    let stage = Stage::new("{skills: {load: {watchDebounceMs: 250}}}");
    stage.skill("ws/skills/a", "d");
    stage.skill("ws/skills/b", "d");
    let live = stage.live();
    settle(&live);
    stage.skill("ws/skills/b", "changed");
    let began = Instant::now();
    while !told(&live).contains(&"b: changed".to_owned()) {
        assert!(began.elapsed() < Duration::from_secs(60), "the storm hides it");
        stage.skill("ws/skills/a", "d");
        std::thread::yield_now();
    }
}

#[test]
fn roots_that_are_renamed_all_the_time_end_where_they_are() {
    let stage = Stage::quick();
    stage.skill("ws/skills/a", "d");
    stage.skill("ws/skills/group/b", "d");
    symlink("..", stage.tree.path("ws/skills/group/up")).expect("linked");
    symlink("self", stage.tree.path("ws/skills/self")).expect("linked");
    symlink("skills", stage.tree.path("ws/.agents")).expect("linked");
    let live = stage.live();
    let (root, away, group) =
        (stage.tree.path("ws/skills"), stage.tree.path("ws/away"), stage.tree.path("ws/away/group"));
    for round in 0..300 {
        fs::rename(&root, &away).expect("away");
        fs::rename(&group, away.join("other")).expect("renamed");
        fs::rename(away.join("other"), &group).expect("back");
        fs::rename(&away, &root).expect("back");
        if round % 50 == 0 {
            eventually("it is as it is", || are_same(&live.view(), &stage.fresh()));
        }
    }
    stage.skill("ws/skills/group/b", "changed");
    eventually("the change", || told(&live) == ["a: d", "b: changed"]);
    assert!(are_same(&live.view(), &stage.fresh()));
}

#[test]
fn a_flood_of_new_folders_is_seen_to_the_last() {
    let stage = Stage::quick();
    let live = stage.live();
    for skill in 0..1_000 {
        stage.skill(&format!("ws/skills/g{}/s{skill:04}", skill % 20), "d");
    }
    eventually("all of it", || are_same(&live.view(), &stage.fresh()));
    for group in 0..20 {
        fs::remove_dir_all(stage.tree.path(&format!("ws/skills/g{group}"))).expect("removed");
    }
    eventually("nothing is left", || told(&live).is_empty() && are_same(&live.view(), &stage.fresh()));
}
