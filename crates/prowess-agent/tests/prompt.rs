//! The system prompt: is everything in it that should be, in its order and within its limits?

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use prowess_agent::prompt::bootstrap::{self, BootstrapFile, Limits, NAMES, fit, load};
use prowess_agent::prompt::{PromptInputs, Runtime, SystemPrompt, assemble};
use prowess_agent::tool::ToolSpec;
use prowess_skills::Mode;
use prowess_skills::text::units;
use prowess_testkit::{Tree, assert_documented, cases, check_all, check_all_but};
use serde_json::{Value, json};

const SHARES: &str = "how a long workspace file is cut";
const TOTAL: &str = "how much of all workspace files is shown";

/// Where 2026.9.6 counts otherwise and we do as 2026.3.2.
const NEWER: &[(&str, &str)] = &[("over-20000", SHARES), ("tiny-max", SHARES), ("total", TOTAL)];

#[test]
fn files_are_cut_as_in_openclaw() {
    assert_documented(NEWER);
    check_all(cases(include_str!("golden/bootstrap-files.json")), same_files);
    check_all_but(NEWER, cases(include_str!("golden/bootstrap-files.newer.json")), same_files);
}

fn same_files(case: &Value) -> Result<(), String> {
    let given: Vec<(String, Option<usize>)> = serde_json::from_value(case["files"].clone()).expect("files");
    let files: Vec<BootstrapFile> =
        given.iter().map(|(name, length)| file(name, length.map(|n| "x".repeat(n)))).collect();
    let limits = Limits::default();
    let per_file = case["perFile"].as_u64().map_or(limits.per_file, |limit| usize::try_from(limit).expect("a size"));
    let (made, warnings) = fit(&files, per_file, limits.total);
    let runs =
        |text: &str| -> Vec<usize> { text.split(|c| c != 'x').map(str::len).filter(|length| *length > 0).collect() };
    let output: Vec<Value> = made
        .iter()
        .map(|file| json!({"path": file.path, "length": units(&file.text), "kept": runs(&file.text)}))
        .collect();
    let got = json!({"output": output, "warnings": warnings.len()});
    let wanted = json!({"output": case["output"], "warnings": case["warnings"]});
    if got == wanted { Ok(()) } else { Err(format!("found {got}")) }
}

fn file(name: &str, text: Option<String>) -> BootstrapFile {
    BootstrapFile { name: name.to_owned(), path: PathBuf::from("/ws").join(name), text, problem: None }
}

#[test]
fn a_cut_file_says_where_the_rest_is() {
    let text = format!("{}{}", "a".repeat(80), "🌤".repeat(60));
    let (made, warnings) = fit(&[file("AGENTS.md", Some(text))], 101, 1_000);
    // 70 of the first half; of the last 20 units, ten whole characters.
    assert!(made[0].text.starts_with(&format!("{}\n\n", "a".repeat(70))));
    assert!(made[0].text.ends_with(&format!("\n\n{}", "🌤".repeat(10))));
    assert!(made[0].text.contains("read AGENTS.md"));
    assert!(warnings[0].contains("AGENTS.md has 200 characters"), "{warnings:?}");
}

#[test]
fn what_does_not_fit_any_more_is_named() {
    let files = [
        file("A.md", Some("a".repeat(90))),
        file("B.md", None),
        file("EMPTY.md", Some(" \n".to_owned())),
        file("C.md", Some("c".to_owned())),
        file("D.md", Some("d".to_owned())),
    ];
    let (made, warnings) = fit(&files, 100, 100);
    let shown: Vec<(&str, &str)> = made.iter().map(|file| (file.name.as_str(), file.text.as_str())).collect();
    assert_eq!(shown[1..], [("B.md", "[missing]…")]);
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].starts_with("EMPTY.md and what follows it"), "{warnings:?}");
}

#[test]
fn files_are_read_in_their_order() {
    let tree = Tree::new().file("ws/USER.md", "u").file("ws/AGENTS.md", "a").file("ws/memory.md", "m");
    let files = load(&tree.path("ws"), &NAMES);
    let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
    let always = ["AGENTS.md", "SOUL.md", "TOOLS.md", "IDENTITY.md", "USER.md", "HEARTBEAT.md", "BOOTSTRAP.md"];
    assert_eq!(names[..7], always);
    assert_eq!(names[7..], ["memory.md"]);
    let texts: Vec<&str> = files.iter().filter_map(|file| file.text.as_deref()).collect();
    assert_eq!(texts, ["a", "u", "m"]);
    assert!(load(&tree.path("nowhere"), &NAMES).iter().all(|file| file.text.is_none()));
}

#[cfg(unix)]
#[test]
fn nothing_outside_the_workspace_is_read() {
    let tree = Tree::new()
        .file("secret", "s")
        .file("ws/notes.md", "n")
        .dir("ws/TOOLS.md")
        .symlink("ws/AGENTS.md", "../secret")
        .symlink("ws/SOUL.md", "notes.md")
        .symlink("ws/USER.md", "USER.md");
    let text = |name: &str| load(&tree.path("ws"), &[name])[0].text.clone();
    assert_eq!(text("AGENTS.md"), None, "it leads out of the workspace");
    assert_eq!(text("SOUL.md").as_deref(), Some("n"));
    assert_eq!(text("TOOLS.md"), None, "it is a folder");
    assert_eq!(text("USER.md"), None, "it leads nowhere");
    assert_eq!(text("../secret"), None, "it is no name");
    assert_eq!(text("IDENTITY.md"), None);
}

#[cfg(unix)]
#[test]
fn two_names_of_one_memory_count_once() {
    let tree = Tree::new().file("ws/MEMORY.md", "m").symlink("ws/memory.md", "MEMORY.md");
    let found = load(&tree.path("ws"), &["MEMORY.md", "memory.md"]);
    assert_eq!(found.iter().map(|file| file.name.as_str()).collect::<Vec<_>>(), ["MEMORY.md"]);
    let tree = Tree::new().file("outside", "o").symlink("ws/MEMORY.md", "../outside");
    let found = load(&tree.path("ws"), &["MEMORY.md", "memory.md"]);
    assert_eq!(
        found.iter().map(|file| (file.name.as_str(), file.text.is_some())).collect::<Vec<_>>(),
        [("MEMORY.md", false)]
    );
}

#[cfg(unix)]
#[test]
fn a_file_that_is_not_read_says_why() {
    let tree = Tree::new()
        .file("secret", "s")
        .dir("ws/TOOLS.md")
        .file("ws/USER.md", "x".repeat(2 * 1024 * 1024 + 1))
        .symlink("ws/AGENTS.md", "../secret")
        .symlink("ws/SOUL.md", "nowhere")
        .symlink("ws/HEARTBEAT.md", "HEARTBEAT.md");
    let pipe = tree.path("ws/IDENTITY.md");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    let told = |name: &str| fit(&load(&tree.path("ws"), &[name]), 1_000, 1_000).0[0].text.clone();
    for (name, why) in [
        ("AGENTS.md", "a link that leads out of the workspace"),
        ("SOUL.md", "a link that leads nowhere"),
        ("TOOLS.md", "not a regular file"),
        ("IDENTITY.md", "not a regular file"),
        ("USER.md", "larger than 2097152 bytes"),
        ("HEARTBEAT.md", "symbolic links"),
    ] {
        let told = told(name);
        assert!(told.starts_with("[not read: ") && told.contains(why) && told.contains(name), "{told}");
    }
    assert!(told("BOOTSTRAP.md").starts_with("[missing] should be at "), "{}", told("BOOTSTRAP.md"));
}

#[test]
fn files_have_a_largest_size() {
    let tree = Tree::new()
        .file("ws/AGENTS.md", "x".repeat(2 * 1024 * 1024))
        .file("ws/SOUL.md", "x".repeat(2 * 1024 * 1024 + 1));
    let found = load(&tree.path("ws"), &["AGENTS.md", "SOUL.md"]);
    assert_eq!(found.iter().map(|file| file.text.is_some()).collect::<Vec<_>>(), [true, false]);
}

const CATALOGUE: &str = "<available_skills>\n  <skill>\n    <name>weather</name>\n    <location>~/w/SKILL.md</location>\n  </skill>\n</available_skills>";

fn prompt(mode: Mode, change: impl FnOnce(&mut PromptInputs<'_>)) -> SystemPrompt {
    let files = [
        file("AGENTS.md", Some("Be kind.\n\n\n".to_owned())),
        file("SOUL.md", Some("Calm.".to_owned())),
        file("HEARTBEAT.md", Some("Tick.".to_owned())),
        file("MEMORY.md", Some("Remembered.".to_owned())),
    ];
    prompt_with(&files, mode, change)
}

fn prompt_with(files: &[BootstrapFile], mode: Mode, change: impl FnOnce(&mut PromptInputs<'_>)) -> SystemPrompt {
    let tool = |name: &str, description: &str| ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: json!({}),
    };
    let tools = [tool("Read", "Reads a file.\nMore about it."), tool("exec", "Runs a command.")];
    let runtime = Runtime {
        agent: "main".to_owned(),
        host: None,
        os: "linux (x86_64)".to_owned(),
        model: "anthropic/m\u{202e}".to_owned(),
        shell: Some("bash".to_owned()),
        time_zone: Some("Asia/Shanghai".to_owned()),
    };
    let mut inputs = PromptInputs {
        mode,
        tools: &tools,
        skills: CATALOGUE,
        workspace: Path::new("/ws"),
        files,
        limits: Limits::default(),
        runtime: &runtime,
        extra: Some("A group of three."),
    };
    change(&mut inputs);
    assemble(&inputs)
}

fn names(prompt: &SystemPrompt) -> Vec<&str> {
    prompt.parts.iter().map(|part| part.name).collect()
}

#[test]
fn parts_come_in_their_order() {
    let all = ["identity", "tools", "style", "safety", "skills", "workspace", "extra", "context", "runtime"];
    assert_eq!(names(&prompt(Mode::Full, |_| {})), all);
    let some = ["identity", "tools", "safety", "workspace", "extra", "context", "runtime"];
    assert_eq!(names(&prompt(Mode::Minimal, |_| {})), some);
    assert_eq!(names(&prompt(Mode::None, |_| {})), ["identity"]);
}

#[test]
fn parts_that_say_nothing_are_left_out() {
    let made = prompt(Mode::Full, |inputs| {
        inputs.skills = " \n";
        inputs.files = &[];
        inputs.extra = Some("  ");
        inputs.tools = &[];
    });
    assert_eq!(names(&made), ["identity", "tools", "style", "safety", "workspace", "runtime"]);
    assert!(made.text().contains("There are no tools"));
}

#[test]
fn a_full_prompt_says_what_a_model_needs() {
    let made = prompt(Mode::Full, |_| {});
    let text = made.text();
    for needed in [
        "\n- Read: Reads a file.\n- exec: Runs a command.",
        "## Skills (mandatory)",
        "with `Read`",
        "<name>weather</name>",
        "read it again when a later message needs it",
        "Your folder is /ws.",
        "## Conversation Context\nA group of three.",
        "# Project Context",
        "SOUL.md describes who you are",
        "\n\n## /ws/AGENTS.md\n\nBe kind.\n\n## /ws/SOUL.md\n\nCalm.\n\n",
        "Remembered.",
        "agent=main | os=linux (x86_64) | model=anthropic/m | shell=bash | time zone=Asia/Shanghai",
    ] {
        assert!(text.contains(needed), "{needed:?} is not in\n{text}");
    }
    assert!(!text.contains("\n\n\n"), "{text}");
    assert_eq!(text, prompt(Mode::Full, |_| {}).text(), "the same every time");
    assert_eq!(made.parts.iter().map(|part| part.chars() + 2).sum::<usize>(), units(&text) + 2);
}

#[test]
fn a_helper_gets_less() {
    let text = prompt(Mode::Minimal, |_| {}).text();
    for missing in ["weather", "Tick.", "Remembered.", "## Conversation Context"] {
        assert!(!text.contains(missing), "{missing:?} is in\n{text}");
    }
    for needed in ["## Subagent Context\nA group of three.", "Be kind.", "Calm."] {
        assert!(text.contains(needed), "{needed:?} is not in\n{text}");
    }
    assert!(bootstrap::is_for("AGENTS.md", Mode::Minimal) && !bootstrap::is_for("AGENTS.md", Mode::None));
}

#[test]
fn a_soul_that_is_not_there_is_not_spoken_of() {
    let files = [file("SOUL.md", None)];
    let text = prompt_with(&files, Mode::Full, |_| {}).text();
    assert!(text.contains("[missing] should be at /ws/SOUL.md") && !text.contains("describes who you are"));
}

#[test]
fn what_was_cut_is_told() {
    let made = prompt(Mode::Full, |inputs| inputs.limits = Limits { per_file: 5, total: 1_000 });
    assert!(made.warnings.iter().any(|warning| warning.contains("AGENTS.md has 8 characters")), "{:?}", made.warnings);
}

proptest! {
    #[test]
    fn files_never_take_more_than_all_of_them_may(
        texts in prop::collection::vec(prop::option::of("[a-z🌤 \n]{0,300}"), 0..6),
        per_file in 0_usize..400,
        total in 0_usize..900,
    ) {
        let files: Vec<BootstrapFile> = texts.into_iter().map(|text| file("A.md", text)).collect();
        let (made, _) = fit(&files, per_file, total);
        prop_assert!(made.iter().map(|file| units(&file.text)).sum::<usize>() <= total);
        prop_assert!(made.len() <= files.len() && made.iter().all(|file| !file.text.is_empty()));
    }
}
