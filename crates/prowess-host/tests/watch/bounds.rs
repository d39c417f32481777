//! Bounds: what does it cost to watch a great many files, and what is left of it in the end?

use std::fs;
use std::path::Path;

use prowess_host::MAX_WATCHES;
use prowess_testkit::eventually;

use crate::stage::{Stage, told};

/// Files below the roots; `PROWESS_FILES=300000` is the attack itself.
fn files() -> usize {
    std::env::var("PROWESS_FILES").ok().and_then(|count| count.parse().ok()).unwrap_or(30_000)
}

/// Makes `count` files in folders of a thousand.
fn fill(dir: &Path, count: usize) {
    for file in 0..count {
        let folder = dir.join(format!("f{}", file / 1_000));
        if file % 1_000 == 0 {
            fs::create_dir_all(&folder).expect("made");
        }
        fs::File::create(folder.join(file.to_string())).expect("made");
    }
}

/// Entries of a folder of the kernel about this process whose link or text holds `what`.
#[cfg(target_os = "linux")]
fn own(folder: &str, read: impl Fn(&Path) -> String, what: &str) -> usize {
    let entries = Path::new("/proc/self").join(folder).read_dir().expect("a folder of the kernel");
    entries.flatten().filter(|entry| read(&entry.path()).contains(what)).count()
}

#[cfg(target_os = "linux")]
fn descriptors(what: &str) -> usize {
    let target = |path: &Path| fs::read_link(path).map(|to| to.to_string_lossy().into_owned()).unwrap_or_default();
    own("fd", target, what)
}

#[cfg(target_os = "linux")]
#[test]
fn a_great_many_files_cost_two_descriptors() {
    let stage = Stage::quick();
    let count = files();
    stage.skill("ws/skills/big", "one");
    fill(&stage.tree.path("ws/skills/big/assets"), count / 2);
    fill(&stage.tree.path("ws/skills/no-skill"), count / 2);
    let before = descriptors("");
    let live = stage.live();
    eventually("it watches", || live.stats().watches > 0);
    let open = descriptors("").saturating_sub(before);
    assert!(open <= 256, "{open} descriptors");
    // The folders without a skill, those on the way to them, and not one inside the skill.
    let folders = count / 2_000 + 64;
    assert!(live.stats().watches <= folders, "{} watches", live.stats().watches);
    stage.skill("ws/skills/big", "two");
    eventually("the change", || told(&live) == ["big: two"]);
}

#[test]
fn beyond_the_bound_the_disk_is_asked() {
    let stage = Stage::quick().var("CHOKIDAR_INTERVAL", "10");
    for group in 0..100 {
        for folder in 0..90 {
            fs::create_dir_all(stage.tree.path(&format!("ws/skills/g{group:02}/f{folder:02}"))).expect("made");
        }
    }
    let live = stage.live();
    eventually("it watches and polls", || live.stats().watches > 0 && live.stats().is_polling);
    assert!(live.stats().watches <= MAX_WATCHES);
    stage.skill("ws/skills/g99/f89", "found");
    eventually("the skill", || told(&live) == ["f89: found"]);
    fs::remove_dir_all(stage.tree.path("ws/skills")).expect("removed");
    eventually("it watches all again", || !live.stats().is_polling);
}

#[cfg(target_os = "linux")]
#[test]
fn nothing_is_left() {
    let threads = || own("task", |task| fs::read_to_string(task.join("comm")).unwrap_or_default(), "prowess-watch");
    let before = (threads(), descriptors("inotify"), descriptors("eventfd"));
    let stage = Stage::quick();
    stage.skill("ws/skills/a", "d");
    let many: Vec<_> = (0..10).map(|_| stage.live()).collect();
    eventually("they watch", || many.iter().all(|live| live.stats().watches > 0));
    assert!(threads() >= 10);
    let skills = many[0].skills();
    drop(many);
    // Other tests may run in this process.
    eventually("all is gone", || {
        threads() <= before.0 && descriptors("inotify") <= before.1 && descriptors("eventfd") <= before.2
    });
    assert_eq!(skills.current().snapshot.skills().len(), 1);
}
