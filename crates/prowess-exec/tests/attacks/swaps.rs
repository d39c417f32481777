//! A24: can something else stand where the approved file stood by the time it is started?

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use prowess_exec::approver::Nobody;
use prowess_exec::exec_tool::ExecCall;
use prowess_policy::{Answer, Question};
use serde_json::json;

use crate::world::{Says, World, call, path_text, write, yes};

/// Puts something that says `NEW` in the place of something in this workspace that says `old`.
type Swap = fn(&Path);

/// A workspace with scripts that say `old`, and their replacements.
fn stage() -> World {
    let world = World::new(Arc::new(Nobody));
    world.script("work/run.sh", "echo old");
    world.script("other/run.sh", "echo NEW");
    world.file("work/run.py", "print('old')\n");
    world.file("other/run.py", "print('NEW')\n");
    world.script("tools/interpreter", "echo old");
    world.script("other/interpreter", "echo NEW");
    let interpreter = world.ws("tools/interpreter");
    write(&world.ws("work/shebang"), &format!("#!{}\n", path_text(&interpreter)), 0o755);
    symlink("work", world.ws("link")).expect("a link");
    world
}

/// The same, where `swap` happens between the question and the yes.
fn swapped(swap: Swap) -> World {
    let mut world = stage();
    let workspace = world.setting.workspace.clone();
    world.exec.approver = Arc::new(Says(move |_: &Question| {
        swap(&workspace);
        Some(Answer::Once)
    }));
    world
}

fn rewrite(ws: &Path) {
    let text = std::fs::read_to_string(ws.join("work/run.sh")).expect("it is there").replace("old", "NEW");
    std::fs::write(ws.join("work/run.sh"), text).expect("it is written");
    std::fs::write(ws.join("work/run.py"), "print('NEW')\n").expect("it is written");
}

/// The same length, and the same times as before: only the content tells.
fn rewrite_with_old_times(ws: &Path) {
    for name in ["work/run.sh", "work/run.py"] {
        let modified = std::fs::metadata(ws.join(name)).and_then(|it| it.modified()).expect("it is there");
        let text = std::fs::read_to_string(ws.join(name)).expect("it is there").replace("old", "NEW");
        std::fs::write(ws.join(name), text).expect("it is written");
        let file = std::fs::File::options().write(true).open(ws.join(name)).expect("it is there");
        file.set_modified(modified).expect("the time is set");
    }
}

fn rename_over(ws: &Path) {
    for name in ["run.sh", "run.py"] {
        std::fs::rename(ws.join("other").join(name), ws.join("work").join(name)).expect("it is renamed");
    }
}

fn link_over(ws: &Path) {
    for name in ["run.sh", "run.py"] {
        std::fs::remove_file(ws.join("work").join(name)).expect("it is there");
        symlink(ws.join("other").join(name), ws.join("work").join(name)).expect("a link");
    }
}

fn replace_folder(ws: &Path) {
    std::fs::rename(ws.join("work"), ws.join("gone")).expect("it is renamed");
    std::fs::rename(ws.join("other"), ws.join("work")).expect("it is renamed");
}

fn link_folder(ws: &Path) {
    std::fs::rename(ws.join("work"), ws.join("gone")).expect("it is renamed");
    symlink("other", ws.join("work")).expect("a link");
}

fn turn_link(ws: &Path) {
    std::fs::remove_file(ws.join("link")).expect("it is there");
    symlink("other", ws.join("link")).expect("a link");
}

fn replace_interpreter(ws: &Path) {
    std::fs::rename(ws.join("other/interpreter"), ws.join("tools/interpreter")).expect("it is renamed");
}

fn nothing(_: &Path) {}

/// A24: whatever is swapped between the question and the answer, the new content never runs.
#[tokio::test]
async fn what_was_swapped_after_the_question_does_not_run() {
    let swaps: [(&str, Swap); 8] = [
        ("rewrite", rewrite),
        ("rewrite with old times", rewrite_with_old_times),
        ("rename over", rename_over),
        ("link over", link_over),
        ("replace folder", replace_folder),
        ("link folder", link_folder),
        ("turn link", turn_link),
        ("replace interpreter", replace_interpreter),
    ];
    let commands = [
        "./work/run.sh",
        "link/run.sh",
        "sh work/run.sh",
        "bash ./link/run.sh",
        "/usr/bin/python3 work/run.py",
        "env ./work/run.sh",
        "nice -n 1 ./work/run.sh",
        "echo x; ./work/run.sh",
        "echo x | ./work/run.sh",
        "sh -c './work/run.sh'",
        "(./work/run.sh)",
        "if true; then ./work/run.sh; fi",
        "(sh -c './work/run.sh')",
        "cd work && ./run.sh",
        "cd work && echo x | sh run.sh",
        "cd ./link && /usr/bin/python3 run.py",
        "sh -c 'cd work && ./run.sh'",
        "{ sh -c \"./work/run.sh\"; }",
        "echo `./work/run.sh`",
        "echo \"$(./work/run.sh)\"",
        "cat <<EOF\n$(./work/run.sh)\nEOF",
        "for i in 1; do sh work/run.sh; done",
        "echo $(./work/run.sh)",
        "/usr/bin/python3 -W ignore work/run.py",
        "/usr/bin/python3 -X dev work/run.py",
        ". ./work/run.sh",
        "bash -o errexit work/run.sh",
        "env -u X bash work/run.sh",
        "setsid bash work/run.sh",
        "cat work/run.sh | bash",
        "bash < work/run.sh",
        "./work/shebang",
    ];
    let mut failures = Vec::new();
    for command in commands {
        let control = swapped(nothing).run(command).await;
        if !control.text().contains("old") {
            failures.push(format!("the control does not run: {command}: {}", control.text()));
        }
        for (name, swap) in swaps {
            let world = swapped(swap);
            let result = world.run(command).await;
            if result.text().contains("NEW") {
                failures.push(format!("NEW CONTENT RAN: {command} after {name}"));
            }
            if world.audit().len() != 1 {
                failures.push(format!("not one line of audit: {command} after {name}"));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// A24: the folder it was to run in is another one by now.
#[tokio::test]
async fn a_folder_that_was_swapped_after_the_question_is_not_entered() {
    let swaps: [Swap; 2] = [replace_folder, link_folder];
    for swap in swaps {
        for command in ["cat run.sh", "./run.sh", "sh run.sh"] {
            let world = swapped(swap);
            let result = world.call(&ExecCall { workdir: Some("work".to_owned()), ..call(command) }).await;
            assert!(result.is_error && !result.text().contains("NEW"), "{command}: {}", result.text());
            assert_eq!(world.audit().len(), 1);
        }
        let world = swapped(nothing);
        let control = world.call(&ExecCall { workdir: Some("work".to_owned()), ..call("cat run.sh") }).await;
        assert!(control.text().contains("old"), "the control: {}", control.text());
    }
}

/// A24: where the rules alone let a script run, it still is the one they looked at. Here nobody answers, and the file
/// says that silence lets run what is listed: that leaves time for a swap without making a person's approval of it.
#[tokio::test]
async fn a_listed_script_that_drifted_does_not_run() {
    let swaps: [(Swap, bool); 4] = [(nothing, true), (rewrite, false), (rename_over, false), (replace_folder, false)];
    for (swap, runs) in swaps {
        let mut world = stage();
        let script = world.ws("work/run.sh");
        let listed = json!([{"id": "one", "pattern": path_text(&script)}]);
        let defaults = json!({"ask": "always", "askFallback": "allowlist"});
        world.approvals(&json!({"version": 1, "defaults": defaults, "agents": {"main": {"allowlist": listed}}}));
        let workspace = world.setting.workspace.clone();
        world.exec.approver = Arc::new(Says(move |_: &Question| {
            swap(&workspace);
            None
        }));
        let result = world.run("./work/run.sh").await;
        assert_eq!(!result.is_error, runs, "{}", result.text());
        assert!(!result.text().contains("NEW"), "{}", result.text());
        assert_eq!(world.endings(), [if runs { "allowed" } else { "not-started" }]);
    }
}

/// How often a race is run.
fn attempts() -> usize {
    std::env::var("PROWESS_RACES").ok().and_then(|text| text.parse().ok()).unwrap_or(300)
}

/// Swaps `path` between two contents, now faster, now slower, until told to stop.
fn swap_for_ever(path: PathBuf, stop: Arc<AtomicBool>) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        let beside = path.with_extension("next");
        for round in 0_u64.. {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            for word in ["NEW", "old"] {
                write(&beside, &format!("#!/bin/sh\necho {word}\n"), 0o755);
                std::fs::rename(&beside, &path).expect("it is renamed");
                std::thread::sleep(Duration::from_micros(round % 16 * 700));
            }
        }
    })
}

/// A24: while a thread swaps the script without pause, a person who was shown the old content says yes, and one who was
/// shown the new content says no. Only the old content ever runs.
async fn race(command: &str) {
    let mut world = stage();
    let path = world.ws("work/run.sh");
    let old = blake3::hash(b"#!/bin/sh\necho old\n").to_hex().to_string();
    world.exec.approver = Arc::new(Says(move |question: &Question| {
        // The digests of all pinned files are in what a judgment prints of itself.
        let is_old = format!("{:?}", question.judgment()).contains(&old);
        Some(if is_old { Answer::Once } else { Answer::No })
    }));
    let stop = Arc::new(AtomicBool::new(false));
    let swapper = swap_for_ever(path, Arc::clone(&stop));
    let (mut ran, mut refused) = (0, 0);
    for _ in 0..attempts() {
        let result = world.run(command).await;
        assert!(!result.text().contains("NEW"), "the new content ran: {}", result.text());
        if result.is_error { refused += 1 } else { ran += 1 }
    }
    stop.store(true, Ordering::Relaxed);
    swapper.join().expect("it swaps to the end");
    assert!(ran > 0 && refused > 0, "the race was a race: {ran} ran, {refused} were refused");
    assert_eq!(world.audit().len(), attempts());
}

#[tokio::test]
async fn a_race_for_a_program_is_never_won() {
    race("./work/run.sh").await;
}

#[tokio::test]
async fn a_race_for_the_script_of_a_shell_is_never_won() {
    race("sh work/run.sh").await;
}

#[tokio::test]
async fn a_race_for_a_program_behind_a_shell_is_never_won() {
    race("sh -c 'nice -n 1 ./work/run.sh'").await;
}

#[tokio::test]
async fn a_race_for_a_program_in_a_subshell_is_never_won() {
    race("(./work/run.sh)").await;
}

#[tokio::test]
async fn a_race_for_a_program_in_a_substitution_is_never_won() {
    race("echo \"$(sh -c './work/run.sh')\"").await;
}

/// A24: a sealed copy finds what stands beside it, and leaves nothing behind.
#[tokio::test]
async fn an_approved_script_finds_its_neighbours() {
    let world = World::new(yes());
    world.script("work/run.sh", ". \"$(dirname \"$0\")/lib.sh\"; cat \"$(dirname \"$0\")/../data/x\"");
    world.file("work/lib.sh", "echo from the library\n");
    world.file("data/x", "from the data\n");
    let result = world.run("./work/run.sh").await;
    assert_eq!(result.text(), "from the library\nfrom the data", "{result:?}");
}

/// What an approved command changes is the file itself, not a copy of it.
#[tokio::test]
async fn an_approved_command_changes_the_real_file() {
    let world = World::new(yes());
    world.file("note.sh", "echo one\n");
    let result = world.run("sed -i s/one/two/ note.sh").await;
    assert!(!result.is_error, "{}", result.text());
    assert_eq!(std::fs::read_to_string(world.ws("note.sh")).expect("it is there"), "echo two\n");
}
