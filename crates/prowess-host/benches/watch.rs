//! Watching: how long after a change on disk is it in the prompt, and what does a refresh cost?
//!
//! The floor of a refresh is asking the system about each `SKILL.md` once, which is the least that can notice a change
//! nobody told of.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use prowess_config::Env;
use prowess_host::{Context, Flags, Ground, Live, View, Watching, skills};
use prowess_testkit::Tree;
use prowess_testkit::bench::ratio;

/// Skills, in groups of fifty.
const SKILLS: usize = 2_000;
/// How long it must be quiet, in milliseconds.
const QUIET: u64 = 50;
/// Changes whose way into the prompt is timed.
const CHANGES: usize = 200;

fn main() {
    let tree = Tree::new().file(
        "home/.openclaw/openclaw.json",
        format!(
            "{{skills: {{load: {{watchDebounceMs: {QUIET}}}, \
             limits: {{maxCandidatesPerRoot: 5000, maxSkillsLoadedPerSource: 5000}}}}}}"
        ),
    );
    let files: Vec<PathBuf> = (0..SKILLS).map(|skill| plant(&tree, skill, "first")).collect();
    let ground = ground(&tree);
    // What was written just now is not trusted to stay the same, and would be read again each time.
    std::thread::sleep(Duration::from_millis(2_100));

    println!("{SKILLS} skills");
    let live = Live::start(ground.clone(), Watching::OnDemand).expect("skills");
    let floor = || files.iter().filter(|file| file.symlink_metadata().is_ok()).count();
    ratio("refresh, nothing changed / ask about each file", 60, floor, || live.refresh_now());
    let mut round = 0;
    let mut change = || {
        round += 1;
        plant(&tree, 7, &format!("round {round}"));
        live.refresh_now();
    };
    ratio("refresh, one file changed / ask about each file", 60, floor, &mut change);
    let load = || View::load(Context::load(&ground).expect("a configuration"), None).map(|view| skills(&view));
    ratio("load everything / refresh, one file changed", 60, &mut change, load);
    drop(live);
    latency(&tree, Live::start(ground, Watching::Configured).expect("skills"));
}

/// Prints how long it takes from a change to the new prompt, without the quiet that is waited for.
#[expect(clippy::needless_pass_by_value, reason = "it ends here")]
fn latency(tree: &Tree, live: Arc<Live>) {
    while live.stats().watches < SKILLS || live.stats().refreshes < 2 {
        std::thread::sleep(Duration::from_millis(10));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let store = live.skills();
    let mut seen = store.watch();
    let mut times: Vec<Duration> = (0..CHANGES)
        .map(|round| {
            seen.mark_unchanged();
            let began = Instant::now();
            plant(tree, round * 7 % SKILLS, &format!("change {round}"));
            runtime.block_on(seen.changed()).expect("a new prompt");
            began.elapsed().saturating_sub(Duration::from_millis(QUIET))
        })
        .collect();
    times.sort();
    let at = |share: usize| times[(times.len() * share / 100).min(times.len() - 1)];
    println!(
        "from a change to the prompt, beyond the debounce: p50 {:.2?}, p99 {:.2?}, most {:.2?} ({CHANGES} changes)",
        at(50),
        at(99),
        at(100)
    );
}

/// Writes a skill as editors do, so that it is never half there.
fn plant(tree: &Tree, skill: usize, description: &str) -> PathBuf {
    let dir = tree.path(&format!("ws/skills/group-{}/skill-{skill:04}", skill / 50));
    fs::create_dir_all(&dir).expect("made");
    let metadata = match skill % 3 {
        0 => "metadata: {openclaw: {requires: {bins: [curl, jq]}}}\n",
        1 => "metadata: {openclaw: {requires: {bins: [git]}, os: [linux, darwin]}}\n",
        _ => "license: MIT\n",
    };
    let about = "Does one thing well and says when to use it. ".repeat(3);
    let body = "Run the command and read what it prints.\n".repeat(100);
    let (draft, file) = (dir.join("draft"), dir.join("SKILL.md"));
    fs::write(&draft, format!("---\nname: skill-{skill:04}\ndescription: {about}{description}\n{metadata}---\n{body}"))
        .expect("written");
    fs::rename(draft, &file).expect("renamed");
    file
}

fn ground(tree: &Tree) -> Ground {
    let path = std::env::var("PATH").unwrap_or_default();
    let home = tree.path("home").to_string_lossy().into_owned();
    let bundled = tree.path("none").to_string_lossy().into_owned();
    let env = [("HOME", home), ("PATH", path), ("OPENCLAW_BUNDLED_SKILLS_DIR", bundled)];
    let env: Env = env.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let flags = Flags { workspace: Some(tree.path("ws")), ..Flags::default() };
    Ground { flags, env, cwd: tree.path("home") }
}
