//! Parity: are the programs that really start exactly those that the judgment names?
//!
//! Commands are made from a small grammar over stubs that write down that they were started, and from the system's own
//! wrappers. Each that is allowed runs for real in the sandbox, by way of its permit.

#![cfg(target_os = "linux")]

use crate::world;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use prowess_exec::approver::Nobody;
use prowess_policy::Verdict;
use world::{World, call, path_text, write};

/// How many commands are made. About half of them are allowed.
const COMMANDS: usize = 400;

/// Stubs that are listed, and one that is not.
const STUBS: &[&str] = &["alpha", "beta", "gamma", "delta", "stranger"];

/// The system's own programs that start others. They leave no line in the log; another test looks for their traces.
const WRAPPERS: &[&str] = &["env", "env FOO=1", "nice", "nice -n 3", "timeout 20", "nohup", "stdbuf -o0"];

fn stub() -> impl Strategy<Value = String> {
    let args =
        select(&["", " a", " 'a b'", " \"$HOME\"", " *", " -x --y", " 2>/dev/null", " ''", " # beta", " '; beta'"][..]);
    let quoted = |name: &str, how: usize| match how {
        0 => format!("'{name}'"),
        1 => format!("\"{}\"{}", &name[..1], &name[1..]),
        2 => format!("\\{name}"),
        _ => name.to_owned(),
    };
    let rare = prop_oneof![9 => select(&STUBS[..4]), 1 => select(&STUBS[4..])];
    (rare, args, 0_usize..12).prop_map(move |(name, args, how)| format!("{}{args}", quoted(name, how)))
}

fn wrapped() -> impl Strategy<Value = String> {
    (prop::collection::vec(select(WRAPPERS), 0..3), stub())
        .prop_map(|(wrappers, stub)| wrappers.iter().rev().fold(stub, |inner, wrapper| format!("{wrapper} {inner}")))
}

fn piece() -> impl Strategy<Value = String> {
    let list = prop::collection::vec(stub(), 1..3).prop_map(|stubs| stubs.join("; "));
    let in_shell = list.prop_filter("single quotes would end it", |text| !text.contains('\'') && !text.contains('#'));
    prop_oneof![
        6 => wrapped(),
        2 => in_shell.prop_map(|text| format!("sh -c '{text}'")),
        1 => select(&["true", ":", "cd /", "test -n x", "echo $(beta)", "(beta)", "beta &", "eval beta", "X=1", "! beta; true",
            "beta <(alpha)", "beta > out", "`alpha`", "alpha() { beta; }", "command alpha", "time alpha"][..])
            .prop_map(str::to_owned),
    ]
}

fn command() -> impl Strategy<Value = String> {
    let joint = select(&["; ", " | ", " && ", "\n", ";", "|"][..]);
    (piece(), prop::collection::vec((joint, piece()), 0..4)).prop_map(|(first, rest)| {
        rest.into_iter().fold(first, |text, (joint, piece)| {
            // A comment would swallow what follows on its line.
            let joint = if text.contains('#') { "\n" } else { joint };
            format!("{text}{joint}{piece}")
        })
    })
}

struct Stubs {
    world: World,
    bin: PathBuf,
    log: PathBuf,
}

fn stubs() -> Stubs {
    let mut world = World::new(Arc::new(Nobody));
    let root = world.root();
    let (bin, log) = (root.join("bin"), root.join("ws/log"));
    for name in STUBS {
        // One write of one short line, so that two that run at once do not mix.
        write(&bin.join(name), &format!("#!/bin/sh\necho \"$0\" >> {}\n", path_text(&log)), 0o755);
    }
    world.setting.settings.path_prepend = vec![path_text(&bin).to_owned()];
    let listed: Vec<PathBuf> = STUBS[..4].iter().map(|name| bin.join(name)).collect();
    world.allow(&listed.iter().map(|path| path_text(path)).collect::<Vec<_>>());
    world.allow(&["/usr/bin/echo"]);
    Stubs { world, bin, log }
}

/// The stubs that were started, in the order of their names.
fn started(log: &Path) -> Vec<String> {
    let mut lines: Vec<String> = std::fs::read_to_string(log).unwrap_or_default().lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[tokio::test]
async fn the_programs_that_start_are_those_in_the_judgment() {
    let Stubs { world, bin, log } = stubs();
    let mut runner = TestRunner::deterministic();
    let (mut allowed, mut asked) = (0, 0);
    for _ in 0..COMMANDS {
        let command = command().new_tree(&mut runner).expect("a command").current();
        std::fs::remove_file(&log).ok();
        let case = world.exec.judge(&call(&command), &world.setting).expect("it is judged");
        let result = world.run(&command).await;
        if case.judgment.verdict() != Verdict::Allow {
            asked += 1;
            assert!(result.is_error && !log.exists(), "{command:?} is not allowed and ran: {:?}", started(&log));
            continue;
        }
        allowed += 1;
        let starts = case.judgment.segments().iter().flat_map(|segment| &segment.starts);
        let mut named: Vec<String> =
            starts.filter(|it| it.real.starts_with(&bin)).map(|it| path_text(&it.real).to_owned()).collect();
        named.sort();
        assert_eq!(started(&log), named, "{command:?}: {}", result.text());
    }
    assert!(allowed > COMMANDS / 4 && asked > COMMANDS / 10, "{allowed} were allowed, {asked} were not");
    assert_eq!(world.audit().len(), COMMANDS);
}

/// Wrappers are seen by what they do to whom they start: its niceness, its variables, its parent.
#[tokio::test]
async fn the_wrappers_that_start_are_those_in_the_judgment() {
    let Stubs { world, bin, log } = stubs();
    let parent = "p=$(cat /proc/$PPID/comm); [ \"$p\" = timeout ] || p=none";
    let body = format!("{parent}; echo \"$(nice) ${{FOO-no}} ${{_STDBUF_O-no}} $p\" >> {}", path_text(&log));
    write(&bin.join("alpha"), &format!("#!/bin/sh\n{body}\n"), 0o755);
    let table: &[(&str, &[&str], &str)] = &[
        ("alpha", &[], "0 no no none"),
        ("env alpha", &["env"], "0 no no none"),
        ("env FOO=1 alpha", &["env"], "0 1 no none"),
        ("nice -n 3 alpha", &["nice"], "3 no no none"),
        ("nice -n 3 env FOO=1 alpha", &["nice", "env"], "3 1 no none"),
        ("timeout 20 alpha", &["timeout"], "0 no no timeout"),
        ("nice timeout 20 env FOO=2 alpha", &["nice", "timeout", "env"], "10 2 no timeout"),
        ("stdbuf -o0 nice alpha", &["stdbuf", "nice"], "10 no 0 none"),
        ("sh -c 'alpha'", &["sh"], "0 no no none"),
    ];
    for (command, wrappers, trace) in table {
        std::fs::remove_file(&log).ok();
        let case = world.exec.judge(&call(command), &world.setting).expect("it is judged");
        let name = |path: &Path| path.file_name().expect("a name").to_string_lossy().into_owned();
        let starts = case.judgment.segments().iter().flat_map(|segment| &segment.starts);
        let starts: Vec<String> = starts.filter(|it| !it.real.starts_with(&bin)).map(|it| name(&it.path)).collect();
        assert_eq!(starts, *wrappers, "{command}");
        let result = world.run(command).await;
        assert_eq!(started(&log), [*trace], "{command}: {}", result.text());
    }
}
