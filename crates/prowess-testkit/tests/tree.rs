//! Does a tree become the files it describes?
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use prowess_testkit::Tree;
use serde_json::json;

fn read(tree: &Tree, path: &str) -> String {
    fs::read_to_string(tree.path(path)).expect("a readable file")
}

fn meta(tree: &Tree, path: &str) -> fs::Metadata {
    fs::metadata(tree.path(path)).expect("an existing entry")
}

fn target(tree: &Tree, path: &str) -> PathBuf {
    fs::read_link(tree.path(path)).expect("a symbolic link")
}

#[test]
fn a_skill_is_named_after_its_folder() {
    let tree = Tree::new().skill("ws/skills/weather", "Get weather", "");
    assert_eq!(
        read(&tree, "ws/skills/weather/SKILL.md"),
        "---\nname: weather\ndescription: Get weather\n---\n# weather\n"
    );
}

#[test]
fn extra_frontmatter_is_kept_word_for_word() {
    let tree = Tree::new().skill("a", "d", "user-invocable: false\nmetadata: {\"openclaw\":{}}\n");
    let text = read(&tree, "a/SKILL.md");
    assert_eq!(text, "---\nname: a\ndescription: d\nuser-invocable: false\nmetadata: {\"openclaw\":{}}\n---\n# a\n");
}

#[test]
fn what_yaml_would_misread_is_quoted() {
    let tree = Tree::new().skill("1", "Use when: asked", "").skill("no", "# not a comment", "").skill("e", "", "");
    assert!(read(&tree, "1/SKILL.md").starts_with("---\nname: \"1\"\ndescription: \"Use when: asked\"\n"));
    assert!(read(&tree, "no/SKILL.md").starts_with("---\nname: \"no\"\ndescription: \"# not a comment\"\n"));
    assert!(read(&tree, "e/SKILL.md").contains("description: \"\"\n"));
}

#[test]
fn links_executables_and_modes_are_real() {
    let tree = Tree::new()
        .file("a.txt", "a")
        .symlink("deep/link", "../a.txt")
        .symlink("broken", "nowhere")
        .hardlink("other/b.txt", "a.txt")
        .exe("bin/gh")
        .mode("a.txt", 0o600)
        .dir("empty");
    assert_eq!(read(&tree, "deep/link"), "a");
    assert_eq!(target(&tree, "broken"), Path::new("nowhere"));
    assert_eq!(meta(&tree, "other/b.txt").nlink(), 2);
    assert_eq!(meta(&tree, "bin/gh").permissions().mode() & 0o777, 0o755);
    assert_eq!(meta(&tree, "a.txt").permissions().mode() & 0o777, 0o600);
    assert!(tree.path("empty").is_dir());
}

#[test]
fn a_tree_is_gone_when_dropped() {
    let tree = Tree::new().file("a", "");
    let root = tree.root().to_owned();
    assert!(root.is_dir());
    drop(tree);
    assert!(!root.exists());
}

#[test]
fn the_golden_notation_is_understood() {
    let tree = Tree::from_golden(&json!({
        "ws/skills/linked": { "symlink": "../../outside/linked" },
        "ws/skills/h/SKILL.md": { "hard": "outside/h.md" },
        "ws/skills/absolute": { "symlink": "$ROOT/outside" },
        "ws/skills/a/SKILL.md": null,
        "ws/skills/big/SKILL.md": "<256001 bytes>",
        "outside/h.md": "hard",
        "outside/linked/SKILL.md": "<b>not a size</b>",
    }));
    assert!(tree.path("ws/skills/a/SKILL.md").is_dir());
    let big = read(&tree, "ws/skills/big/SKILL.md");
    assert_eq!(big.len(), 256_001);
    assert!(big.starts_with("---\nname: big\ndescription: d\n---\nx"));
    assert_eq!(meta(&tree, "outside/h.md").nlink(), 2);
    assert_eq!(read(&tree, "ws/skills/linked/SKILL.md"), "<b>not a size</b>");
    assert_eq!(target(&tree, "ws/skills/absolute"), tree.path("outside"));
}

#[test]
fn a_golden_link_may_take_the_place_of_a_root() {
    let tree = Tree::from_golden(&json!({ "ws/skills": { "symlink": "../outside/sk" }, "outside/sk/r/SKILL.md": "r" }));
    assert_eq!(read(&tree, "ws/skills/r/SKILL.md"), "r");
}

#[test]
fn expand_and_mask_are_inverse() {
    let tree = Tree::new();
    let text = " $ROOT/extra and $ROOT";
    let expanded = tree.expand(text);
    assert!(expanded.contains(&*tree.root().to_string_lossy()));
    assert_eq!(tree.mask(&expanded), text);
}

#[test]
#[should_panic(expected = "leaves the tree")]
fn a_path_that_leaves_the_tree_is_refused() {
    let _ = Tree::new().file("../escape", "");
}

#[test]
#[should_panic(expected = "leaves the tree")]
fn an_absolute_path_is_refused() {
    let _ = Tree::new().file("/escape", "");
}

#[test]
#[should_panic(expected = "not an entry of a tree: `what`")]
fn an_entry_that_says_nothing_is_refused() {
    let _ = Tree::new().plant("a: fine\n what");
}
