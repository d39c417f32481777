//! Memory: is a catalogue that was loaded with one ever different from a fresh one?

#![cfg(unix)]

use std::time::Duration;

use prowess_skills::{Catalog, Memory, Origin, Reach, Root, Tier};
use prowess_testkit::{Tree, Upheaval};

/// More than the grain of the clock that files are stamped with, and short enough that most files have settled.
const SETTLED: Duration = Duration::from_millis(25);

fn roots(tree: &Tree) -> Vec<Root> {
    let root = |tier, path: &str| Root { tier, path: tree.path(path), origin: Origin::Configured };
    // One folder is a root of two tiers, and one is reached by a link.
    vec![
        root(Tier::Extra, "one"),
        root(Tier::Managed, "link"),
        root(Tier::Personal, "two"),
        root(Tier::Workspace, "one"),
    ]
}

#[test]
fn ten_thousand_changes_and_the_memory_is_right_after_each() {
    // On one thread: the folders are few, and handing them over would be most of the work.
    let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
    alone.install(ten_thousand_changes);
}

fn ten_thousand_changes() {
    let tree = Tree::new().dir("one").dir("two").dir("three").symlink("link", "three");
    let roots = roots(&tree);
    let mut upheaval = Upheaval::new(&tree, &["one", "two", "three"], 0x5eed);
    let mut memory = Memory::settling_after(SETTLED);
    let reach = Reach::default();
    let (mut read, mut loaded) = (0, 0);
    for round in 0..10_000 {
        let done = upheaval.step();
        let live = Catalog::load_with(&roots, &reach, &mut memory);
        let fresh = Catalog::load(&roots, &reach);
        assert!(live == fresh, "after step {round}, {done}:\n{live:#?}\nis not\n{fresh:#?}");
        read += memory.read();
        loaded += live.skills().len() + live.shadowed().len() + live.broken().len();
    }
    // Without this the test could pass by remembering nothing.
    assert!(read < loaded / 2, "{read} files were read for {loaded} skills");
}
