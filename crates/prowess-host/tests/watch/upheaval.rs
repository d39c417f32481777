//! No lost update: ten thousand random changes, and the live skills against fresh ones.

use prowess_skills::{Catalog, Reach};
use prowess_testkit::{Upheaval, eventually};

use crate::stage::{Stage, are_same};

/// Roots of several tiers, one of them behind a link and one of them twice.
fn stage(quiet: u64) -> Stage {
    let stage = Stage::new("");
    let extra = stage.tree.path("ws/skills");
    let load = format!("watchDebounceMs: {quiet}, extraDirs: ['{}']", extra.display());
    stage.write("home/.openclaw/openclaw.json", &format!("{{skills: {{load: {{{load}}}}}}}"));
    std::os::unix::fs::symlink("../../managed", stage.tree.path("home/.openclaw/skills")).expect("linked");
    stage
}

fn upheaval(stage: &Stage, seed: u64) -> Upheaval {
    Upheaval::new(&stage.tree, &["ws/skills", "managed", "home/.agents/skills"], seed)
}

#[test]
fn ten_thousand_changes_and_each_is_seen_by_who_asks() {
    // On one thread: the folders are few, and handing them over would be most of the work.
    let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
    alone.install(each_is_seen_by_who_asks);
}

fn each_is_seen_by_who_asks() {
    let stage = stage(250);
    let live = stage.live();
    let mut upheaval = upheaval(&stage, 0xca11);
    for round in 0..10_000 {
        let done = upheaval.step();
        live.refresh_now();
        let view = live.view();
        let fresh = Catalog::load(&view.roots, &Reach::default());
        assert!(view.catalog == fresh, "after step {round}, {done}:\n{:#?}\nis not\n{fresh:#?}", view.catalog);
    }
    assert!(are_same(&live.view(), &stage.fresh()));
}

#[test]
fn ten_thousand_changes_and_each_burst_is_seen_by_itself() {
    let stage = stage(3);
    let live = stage.live();
    let mut upheaval = upheaval(&stage, 0xbea7);
    let (mut done, mut burst) = (0, 1);
    while done < 10_000 {
        for _ in 0..burst {
            upheaval.step();
        }
        done += burst;
        eventually("what is there", || are_same(&live.view(), &stage.fresh()));
        // Bursts of every length from one to sixty.
        burst = burst * 7 % 61;
    }
}
