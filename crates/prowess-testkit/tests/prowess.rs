//! Does the harness give the child a clean room and tell the truth about it? The shell stands in for the command.
#![cfg(unix)]

use std::fs;
use std::time::{Duration, Instant};

use prowess_testkit::Prowess;
use serde_json::json;

fn shell() -> Prowess {
    Prowess::new("/bin/sh")
}

#[test]
fn the_child_sees_only_what_the_test_gave_it() {
    let env = shell().env("TOKEN", "t").env("DIR", "$HOME/d").script("show", "exec /usr/bin/env").run("-c show").ok();
    let mut lines: Vec<&str> = env.stdout().lines().filter(|line| !line.starts_with("_=")).collect();
    lines.sort_unstable();
    // The shell adds PWD to what it passes on.
    assert_eq!(lines, ["DIR=$HOME/d", "HOME=$HOME", "LANG=C.UTF-8", "NO_COLOR=1", "PATH=$BIN", "PWD=$HOME", "TOKEN=t"]);
}

#[test]
fn programs_are_found_only_where_the_test_put_them() {
    shell().run("-c 'gh'").code(127);
    shell().bin("gh").run("-c 'gh && command -v gh'").ok().out_has("$BIN/gh");
}

#[test]
fn files_skills_and_config_are_in_the_home() {
    let world = shell()
        .skill("weather", "Get weather", "")
        .skill("elsewhere/notes", "Take notes", "always: true")
        .file("a.txt", "a")
        .config(r#"{ skills: { load: { extraDirs: ["$HOME/elsewhere"] } } }"#);
    let home = world.home();
    for path in [".openclaw/workspace/skills/weather/SKILL.md", "elsewhere/notes/SKILL.md", "a.txt"] {
        assert!(home.join(path).is_file(), "{path}");
    }
    let config = fs::read_to_string(world.path(".openclaw/openclaw.json")).expect("the config");
    assert!(config.contains(&*home.to_string_lossy()), "{config}");
}

#[test]
fn a_tree_is_planted_below_the_home() {
    let world = shell().tree(
        "
        skills/weather: Get weather
        skills/w -> weather
        copy.md => skills/weather/SKILL.md
        project/
        ",
    );
    world
        .run("-c 'read a <copy.md && echo $a && cd project && cd ../skills/w && pwd -P'")
        .ok()
        .out_has("$HOME/skills/weather");
}

#[test]
fn the_child_starts_where_it_is_told() {
    assert_eq!(shell().run("-c pwd").ok().stdout(), "$HOME\n");
    assert_eq!(shell().cwd("deep/er").run("-c pwd").ok().stdout(), "$HOME/deep/er\n");
}

#[test]
fn a_run_is_a_sentence() {
    let world = shell();
    let out = world.run("-c 'echo out; echo err >&2; exit 3'").code(3).out_has("out").err_has("err").lacks("neither");
    assert_eq!((out.stdout(), out.stderr()), ("out\n", "err\n"));
    assert_eq!(world.run(r#"-c "echo '{\"home\": \"$HOME\"}'""#).ok().json(), json!({ "home": "$HOME" }));
}

#[test]
fn nothing_comes_from_stdin() {
    assert_eq!(shell().run("-c 'read line; echo \"$?:$line\"'").ok().stdout(), "1:\n");
}

#[test]
fn much_output_on_both_sides_does_not_block() {
    let flood = "i=0; while [ $i -lt 20000 ]; do echo 0123456789; echo 0123456789 >&2; i=$((i+1)); done";
    let out = shell().script("flood", flood).run("-c flood").ok();
    assert_eq!((out.stdout().len(), out.stderr().len()), (220_000, 220_000));
}

#[test]
#[should_panic(
    expected = "expected exit code 0\n$ -c 'echo said; echo why >&2; exit 2'\nexit status: 2\n--- stdout\nsaid\n\n--- stderr\nwhy\n"
)]
fn a_check_that_fails_shows_everything() {
    shell().run("-c 'echo said; echo why >&2; exit 2'").ok();
}

#[test]
#[should_panic(expected = "expected nowhere: secret")]
fn lacks_looks_at_stderr_too() {
    shell().run("-c 'echo secret >&2'").lacks("secret");
}

#[test]
#[should_panic(expected = "stdout is not JSON")]
fn text_is_not_json() {
    let _ = shell().run("-c 'echo hello'").json();
}

#[test]
fn a_child_that_hangs_is_killed_and_its_words_are_kept() {
    let start = Instant::now();
    let world = shell().limit(Duration::from_millis(300));
    let hang = std::panic::AssertUnwindSafe(|| world.run("-c 'echo before; while :; do :; done'"));
    let panic = std::panic::catch_unwind(hang).expect_err("the watchdog");
    let message = panic.downcast_ref::<String>().expect("a message");
    assert!(message.contains("did not end within 300ms") && message.contains("before"), "{message}");
    assert!(start.elapsed() < Duration::from_secs(20));
}
