//! The prompt: is the block that a model sees the one OpenClaw would show it?

use crate::made;
use std::path::Path;

use prowess_skills::{
    Budget, Candidate, Catalog, Filter, Filters, Finding, Gate, Limits, Mode, Skill, SkillsConfig, Snapshot, World,
    compact, render, section,
};
use prowess_testkit::{assert_documented, cases, check_all, check_all_but};
use serde_json::{Map, Value, json};

const ONE_LINE: &str = "line breaks and invisible characters";

const DEVIATIONS: &[(&str, &str)] = &[("multiline-desc", ONE_LINE), ("trailing-newline-desc", ONE_LINE)];

#[test]
fn the_block_and_the_snapshot_are_those_of_openclaw() {
    assert_documented(DEVIATIONS);
    check_all_but(DEVIATIONS, cases(include_str!("golden/prompt.json")), |case| {
        let got = facts(&case["input"]);
        let wanted = &case["output"];
        if *wanted == got { Ok(()) } else { Err(format!("\n  wanted {wanted}\n  got    {got}")) }
    });
}

#[test]
fn paths_are_shortened_as_openclaw_does() {
    check_all(cases(include_str!("golden/path-compaction.json")), |case| {
        let got = compact(case["input"].as_str().expect("a path"), Some(Path::new("/home/alice")));
        if case["output"] == got { Ok(()) } else { Err(got) }
    });
}

fn facts(input: &Value) -> Value {
    let skills = input["skills"].as_array().expect("skills").iter().map(|skill| {
        let text = |key: &str| skill[key].as_str().expect("a text");
        let extra = if skill["disableModelInvocation"] == true { "disable-model-invocation: true\n" } else { "" };
        Skill {
            file: text("filePath").into(),
            ..made::skill(text("name"), text("description"), &skill["metadata"], extra)
        }
    });
    let snapshot = snapshot(skills.collect(), input);
    let text = &snapshot.prompt().text;
    let (note, block) = text.split_at(text.find("<available_skills>").unwrap_or(text.len()));
    let resolved: Vec<&str> = snapshot.visible().map(|skill| skill.name.as_str()).collect();
    let mut facts = json!({
        "note": note.strip_suffix('\n').unwrap_or(note),
        "block": block,
        "skills": snapshot.skills().iter().map(|skill| record(skill)).collect::<Vec<_>>(),
        "resolved": resolved,
    });
    if let Some(filter) = snapshot.filter() {
        facts["skillFilter"] = json!(filter);
    }
    facts
}

/// What a session remembers of a skill.
fn record(skill: &Skill) -> Value {
    let mut record = Map::from_iter([("name".to_owned(), json!(skill.name.as_str()))]);
    if let Some(primary) = &skill.metadata.primary_env {
        record.insert("primaryEnv".to_owned(), json!(primary));
    }
    if !skill.metadata.needs.env.is_empty() {
        record.insert("requiredEnv".to_owned(), json!(skill.metadata.needs.env));
    }
    record.into()
}

fn snapshot(skills: Vec<Skill>, input: &Value) -> Snapshot {
    let candidate =
        |skill: Skill| Candidate { dir: skill.dir().to_owned(), tier: skill.tier, outcome: Ok(skill.into()) };
    let finding = Finding { candidates: skills.into_iter().map(candidate).collect(), problems: Vec::new() };
    let catalog = Catalog::merge(vec![finding]);
    let world = World { note: input["remoteNote"].as_str().map(str::to_owned), ..World::default() };
    let (config, _) = SkillsConfig::read(&input["config"]["skills"], Path::new("openclaw.json"));
    let agent = input["skillFilter"]
        .as_array()
        .map_or_else(Filter::any, |names| Filter::only(names.iter().filter_map(Value::as_str)));
    let filters = Filters { agent, ..Filters::default() };
    let gate = Gate { world: &world, config: &config, filters: &filters };
    Snapshot::take(&catalog, &gate, Some(Path::new("/home/alice")), &Budget::from(&Limits::default()))
}

fn prompt(skills: &[Skill]) -> String {
    render(skills, Some(Path::new("/home/alice")), None, &Budget::from(&Limits::default())).text
}

#[test]
fn five_characters_are_escaped_once_and_the_ampersand_first() {
    let skill = made::skill("&lt;", "<&> \"'", &Value::Null, "");
    let text = prompt(&[Skill { file: "/a&b/'c'/SKILL.md".into(), ..skill }]);
    assert_eq!(
        text,
        "<available_skills>\n  <skill>\n    <name>&amp;lt;</name>\n    <description>&lt;&amp;&gt; &quot;&apos;</description>\n    \
         <location>/a&amp;b/&apos;c&apos;/SKILL.md</location>\n  </skill>\n</available_skills>"
    );
}

#[test]
fn nothing_to_show_is_an_empty_text() {
    assert_eq!(prompt(&[]), "");
    let budget = Budget::from(&Limits::default());
    assert_eq!(render(&[], None, Some("  \n "), &budget).text, "");
    assert_eq!(render(&[], None, Some(" A note.\n"), &budget).text, "A note.");
}

#[test]
fn a_home_is_a_prefix_of_whole_names() {
    let at = |path: &str, home: &str| compact(path, Some(Path::new(home)));
    for (path, home, wanted) in [
        ("/home/alice/x", "/home/alice", "~/x"),
        ("/home/alice/x", "/home/alice/", "~/x"),
        ("/home/alicex/x", "/home/alice", "/home/alicex/x"),
        ("/home/alice", "/home/alice", "/home/alice"),
        ("/opt/home/alice/x", "/home/alice", "/opt/home/alice/x"),
        ("/x/y", "/", "~/x/y"),
        ("/x/y", "", "/x/y"),
    ] {
        assert_eq!(at(path, home), wanted, "{path} below {home}");
    }
    assert_eq!(compact("/home/alice/x", None), "/home/alice/x");
}

#[test]
fn the_section_names_the_read_tool_and_is_for_whole_prompts_only() {
    let block = prompt(&[made::skill("a", "d", &Value::Null, "")]);
    let text = section(&format!("\n\n{block}\n"), Mode::Full, "Read");
    assert!(text.starts_with("## Skills (mandatory)\n") && text.contains("`Read`"), "{text}");
    assert!(text.ends_with(&format!("\n\n{block}\n")), "{text}");
    assert_eq!(section(&block, Mode::Minimal, "read"), "");
    assert_eq!(section(&block, Mode::None, "read"), "");
    assert_eq!(section(" \n", Mode::Full, "read"), "");
}
