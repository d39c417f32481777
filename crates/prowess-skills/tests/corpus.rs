//! Real skills: is every one either loaded as OpenClaw loads it, rescued, or reported?
//!
//! Runs when `PROWESS_CORPUS` names a folder with `oracle.o3.jsonl` (one JSON object a line: what OpenClaw 2026.3.2
//! makes of each skill) and `real-skills/OWNER/SLUG/SKILL.md`. With `--nocapture` it prints the table of
//! `docs/compatibility.md`.

use std::collections::BTreeMap;
use std::path::Path;

use prowess_skills::text::trim;
use prowess_skills::{BLOCKS, Needs, Problem, Skill, Tier};
use serde_json::Value;

#[test]
fn every_skill_of_the_corpus_is_accounted_for() {
    let Some(corpus) = std::env::var_os("PROWESS_CORPUS") else {
        println!("PROWESS_CORPUS is not set: nothing to compare");
        return;
    };
    let corpus = Path::new(&corpus);
    let oracle = std::fs::read_to_string(corpus.join("oracle.o3.jsonl")).expect("the oracle");
    let mut table: BTreeMap<&str, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for line in oracle.lines() {
        let peer: Value = serde_json::from_str(line).expect("JSON lines");
        let id = peer["id"].as_str().expect("an id");
        let file = corpus.join("real-skills").join(id).join("SKILL.md");
        let bytes = std::fs::read(&file).expect("a skill file");
        let ours = Skill::parse(&bytes, &file, Tier::Workspace);
        match compare(&peer, &ours, &bytes) {
            Ok(row) => *table.entry(row).or_default() += 1,
            Err(difference) => wrong.push(format!("{id}: {difference}")),
        }
    }
    for (row, count) in &table {
        println!("| {row} | {count} |");
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

fn compare(peer: &Value, ours: &Result<(Skill, Vec<Problem>), Problem>, bytes: &[u8]) -> Result<&'static str, String> {
    let loaded = peer["loaded"] == true;
    match ours {
        Ok((skill, _)) if loaded => same(peer, skill, bytes),
        Ok((_, problems)) if problems.is_empty() => Err("rescued without a word".to_owned()),
        Ok(_) => Ok("4 lost by OpenClaw, loaded and reported"),
        Err(problem) if loaded => Err(format!("lost: {problem}")),
        Err(problem) if problem.reason.is_empty() || problem.fix.is_empty() => Err("lost without a reason".to_owned()),
        Err(_) if bytes.starts_with(b"---") => Err("has a frontmatter block and was not rescued".to_owned()),
        Err(_) => Ok("5 lost by OpenClaw, has no frontmatter, reported"),
    }
}

fn same(peer: &Value, skill: &Skill, bytes: &[u8]) -> Result<&'static str, String> {
    let text = |key: &str| trim(peer[key].as_str().unwrap_or_default());
    if skill.name.as_str() != text("name") {
        return Err(format!("name {:?}, not {:?}", skill.name.as_str(), text("name")));
    }
    if skill.description != text("description") {
        return Err(format!("description {:?}, not {:?}", skill.description, text("description")));
    }
    let flags = &peer["invocation"];
    if skill.invocation.by_user != flags["userInvocable"]
        || skill.invocation.by_model == flags["disableModelInvocation"]
    {
        return Err(format!("invocation {:?}", skill.invocation));
    }
    let theirs = needs(&peer["metadata"]);
    if skill.unreadable.is_some() {
        return Ok("3 same name and description, unavailable because its metadata cannot be read");
    }
    if skill.metadata.needs == theirs {
        return Ok("1 same name, description and needs");
    }
    let text = String::from_utf8_lossy(bytes);
    let reads_more = theirs == Needs::default() && BLOCKS.iter().any(|block| text.contains(block));
    if reads_more {
        return Ok("2 same name and description, needs that OpenClaw overlooks");
    }
    Err(format!("needs {:?}, not {theirs:?}", skill.metadata.needs))
}

fn needs(metadata: &Value) -> Needs {
    let list = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let requires = &metadata["requires"];
    Needs {
        os: list(&metadata["os"]),
        bins: list(&requires["bins"]),
        any_bins: list(&requires["anyBins"]),
        env: list(&requires["env"]),
        config: list(&requires["config"]),
    }
}
