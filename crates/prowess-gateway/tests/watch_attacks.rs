//! A13 and A14: is a gateway still of use when its skills' folders are huge, or never at rest?

use crate::room;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Instant, SystemTime};

use prowess_gateway::client::Client;
use prowess_testkit::Tree;
use room::Room;
use serde_json::{Value, json};

/// Where the skills of the only agent are.
const SKILLS: &str = ".openclaw/workspace/skills";

/// How long it has to be quiet before somebody looks, in milliseconds.
const QUIET: u64 = 100;

fn skill(description: &str) -> String {
    format!("---\nname: told\ndescription: {description}\n---\n")
}

fn home() -> Tree {
    let config = json!({"skills": {"load": {"watchDebounceMs": QUIET}}});
    Tree::new()
        .file(".openclaw/openclaw.json", config.to_string())
        .file(&format!("{SKILLS}/told/SKILL.md"), skill("one"))
}

async fn status(operator: &Client) -> Value {
    operator.call("skills.status", json!({})).await.expect("a status")
}

/// What the next turn of the agent would be told of the skill.
async fn description(operator: &Client) -> String {
    let skills = status(operator).await["skills"].as_array().cloned().unwrap_or_default();
    let told = skills.iter().find(|skill| skill["name"] == "told");
    told.and_then(|skill| skill["description"].as_str()).unwrap_or_default().to_owned()
}

/// Descriptors of this process, its gateway included.
fn descriptors() -> usize {
    Path::new("/proc/self/fd").read_dir().map_or(0, Iterator::count)
}

/// Makes `count` empty files below `dir`, a thousand in each folder.
fn fill(dir: &Path, count: usize) {
    for file in 0..count {
        let folder = dir.join(format!("f{}", file / 1_000));
        if file % 1_000 == 0 {
            fs::create_dir_all(&folder).expect("made");
        }
        File::create(folder.join(file.to_string())).expect("made");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a13_huge_folders_are_served_within_bounds_and_what_is_left_out_is_told() {
    let tree = home().file(&format!("{SKILLS}/fat/SKILL.md"), skill(&"x".repeat(300_000)));
    let skills = tree.root().join(SKILLS);
    fill(&skills.join("told/assets"), 10_000);
    fill(&skills.join("no-skill"), 5_000);
    for folder in 0..1_000 {
        fs::create_dir_all(skills.join(format!("candidate-{folder}"))).expect("made");
    }
    let before = descriptors();
    let room = Room::open(tree).await;
    let operator = room.operator().await;
    let mut events = operator.events();
    let told = status(&operator).await;
    let open = descriptors().saturating_sub(before);
    assert!(open <= 256, "{open} descriptors");
    let problems = told["problems"].to_string();
    assert!(problems.contains("fat/SKILL.md"), "the file that is too large is not told: {problems}");
    assert!(problems.contains("candidate") || problems.contains("300"), "the cut is not told: {problems}");

    fs::write(skills.join("told/SKILL.md"), skill("two")).expect("written");
    while events.recv().await.expect("an event").name != "skills.changed" {}
    assert_eq!(description(&operator).await, "two");
    room.running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a14_a_storm_is_one_change_for_those_who_are_connected() {
    let tree = home();
    let skills = tree.root().join(SKILLS);
    symlink("..", skills.join("up")).expect("linked");
    symlink("round", skills.join("round")).expect("linked");
    let room = Room::open(tree).await;
    let operator = room.operator().await;
    assert_eq!(description(&operator).await, "one");
    let mut events = operator.events();

    let began = Instant::now();
    let file = skills.join("told/SKILL.md");
    let storm = tokio::task::spawn_blocking(move || {
        for round in 0..10_000 {
            let touched = File::options().write(true).open(&file).and_then(|file| file.set_modified(SystemTime::now()));
            touched.expect("touched");
            if round % 100 == 0 {
                fs::rename(skills.join("told"), skills.join("moved")).expect("moved");
                fs::rename(skills.join("moved"), skills.join("told")).expect("moved back");
            }
        }
        fs::write(&file, skill("two")).expect("written");
    });
    // Whoever asks meanwhile is answered.
    while !storm.is_finished() {
        status(&operator).await;
    }
    storm.await.expect("a storm");
    let mut told = 0;
    while description(&operator).await != "two" || told == 0 {
        if events.recv().await.expect("an event").name == "skills.changed" {
            told += 1;
        }
    }
    // Between two looks it was quiet for a while, or somebody asked: a touch is no news, so there is little to tell.
    let most = began.elapsed().as_millis() / u128::from(QUIET) + 2;
    assert!(told <= most, "told {told} times in {:?}", began.elapsed());
    room.running.end().await;
}
