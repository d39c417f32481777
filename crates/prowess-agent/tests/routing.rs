//! How often does the embedded planner pick the right skill?
//!
//! Runs when `PROWESS_ROUTING` names a folder with `skills.jsonl` (id, name, description, body) and `queries.jsonl` (query,
//! relevant: the ids that answer it, none for small talk). With `--nocapture` it prints what it found.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::StreamExt;
use prowess_agent::embedded::{Act, Embedded};
use prowess_agent::message::{Assistant, Block, Message, User};
use prowess_agent::model::{Draft, Model, Request, Thinking};
use prowess_agent::skills::{SkillSet, SkillStore};
use prowess_agent::tool::ToolSpec;
use prowess_exec::SkillShare;
use prowess_skills::{
    Budget, Candidate, Catalog, Filters, Finding, Gate, Limits, Skill, SkillsConfig, Snapshot, Tier, World,
};
use serde_json::{Value, json};

/// How many other skills stand beside those that answer.
const OTHERS: usize = 40;

#[test]
fn skills_are_picked_for_real_requests() {
    let Some(folder) = std::env::var_os("PROWESS_ROUTING") else {
        println!("PROWESS_ROUTING is not set: nothing to measure");
        return;
    };
    let folder = PathBuf::from(folder);
    let (skills, queries) = (rows(&folder.join("skills.jsonl")), rows(&folder.join("queries.jsonl")));
    let (mut right, mut wrong, mut missed, mut quiet, mut loud) = (0, 0, 0, 0, 0);
    for (number, query) in queries.iter().enumerate() {
        let answers: HashSet<&str> =
            query["relevant"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let is_answer = |skill: &Value| skill["id"].as_str().is_some_and(|id| answers.contains(id));
        let mut some: Vec<&Value> = skills.iter().filter(|skill| is_answer(skill)).collect();
        let others = (0..OTHERS).map(|step| &skills[(number * 7_919 + step * 104_729) % skills.len()]);
        some.extend(others.filter(|skill| !is_answer(skill)));
        let names: HashSet<&str> =
            some.iter().filter(|skill| is_answer(skill)).filter_map(|skill| skill["name"].as_str()).collect();
        let picked = picked(&some, query["query"].as_str().unwrap_or_default());
        match (answers.is_empty(), picked) {
            (true, None) => quiet += 1,
            (true, Some(_)) => loud += 1,
            (false, None) => missed += 1,
            (false, Some(name)) if names.contains(name.trim()) => right += 1,
            (false, Some(_)) => wrong += 1,
        }
    }
    println!("of {} requests with an answer: {right} right, {wrong} wrong, {missed} none", right + wrong + missed);
    println!("of {} requests without one: {quiet} none, {loud} picked", quiet + loud);
    assert!(right * 100 >= 70 * (right + wrong + missed), "too few right");
    assert!(wrong * 100 <= 8 * (right + wrong + missed), "too many wrong");
    assert!(quiet * 100 >= 85 * (quiet + loud), "too many picked for small talk");
}

#[test]
fn real_bodies_are_taken_apart() {
    let Some(folder) = std::env::var_os("PROWESS_ROUTING") else {
        println!("PROWESS_ROUTING is not set: nothing to take apart");
        return;
    };
    let skills = rows(&PathBuf::from(folder).join("skills.jsonl"));
    let (mut shown, mut with_commands) = (0, 0);
    for skill in skills.iter().step_by(10) {
        let request = format!("/{}", prowess_skills::sanitize(skill["name"].as_str().unwrap_or_default()));
        let call = json!({"type": "toolCall", "id": "c", "name": "read", "arguments": {"path": "/skills/0/SKILL.md"}});
        let messages: Vec<Message> = [
            json!({"role": "user", "content": request}),
            json!({"role": "assistant", "content": [call], "stopReason": "toolUse"}),
            json!({"role": "toolResult", "toolCallId": "c", "toolName": "read", "content": skill["body"]}),
        ]
        .into_iter()
        .map(|message| serde_json::from_value(message).expect("a message"))
        .collect();
        let reply = answer(&Embedded::new(store(&[skill]), Act::Show), &messages);
        assert_eq!(reply.calls().count(), 0, "{request}");
        assert!(reply.text().contains("not a language model") && reply.text().len() < 32 * 1024, "{request}");
        shown += 1;
        with_commands += usize::from(reply.text().contains("```bash"));
    }
    println!("{shown} bodies, {with_commands} with commands");
    assert!(with_commands * 2 > shown, "too few with commands");
}

fn rows(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).expect("a file of JSON lines");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn store(skills: &[&Value]) -> SkillStore {
    let candidate = |(place, row): (usize, &&Value)| {
        let file = PathBuf::from(format!("/skills/{place}/SKILL.md"));
        let text = format!("---\nname: {}\ndescription: {}\n---\n", row["name"], row["description"]);
        let (skill, _) = Skill::parse(text.as_bytes(), &file, Tier::Extra).ok()?;
        Some(Candidate { dir: skill.dir().to_owned(), tier: skill.tier, outcome: Ok(skill.into()) })
    };
    let candidates = skills.iter().enumerate().filter_map(candidate).collect();
    let catalog = Catalog::merge(vec![Finding { candidates, problems: Vec::new() }]);
    let (world, config, filters) = (World::default(), SkillsConfig::default(), Filters::default());
    let gate = Gate { world: &world, config: &config, filters: &filters };
    let snapshot = Snapshot::take(&catalog, &gate, None, &Budget::from(&Limits::default()));
    SkillStore::new(SkillSet::new(snapshot, Vec::new(), Arc::new(|_| Ok(SkillShare::default()))))
}

fn answer(model: &Embedded, messages: &[Message]) -> Assistant {
    let tools = [ToolSpec { name: "read".to_owned(), description: String::new(), parameters: json!({}) }];
    let thinking = Thinking::Off;
    let request = Request { system: "", messages, tools: &tools, max_tokens: None, thinking, session: "s" };
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let mut draft = Draft::new(model.about());
    for delta in runtime.block_on(model.stream(request).collect::<Vec<_>>()) {
        draft.apply(&delta.expect("no error"));
    }
    draft.finish().message
}

fn picked(skills: &[&Value], query: &str) -> Option<String> {
    let store = store(skills);
    let messages = [Message::User(User { content: vec![Block::text(query)], timestamp: 0 })];
    let reply = answer(&Embedded::new(store.clone(), Act::Show), &messages);
    let path = reply.calls().next()?.arguments["path"].as_str()?.to_owned();
    let skills = store.current();
    let skill = skills.snapshot.skills().iter().find(|skill| skill.file == Path::new(&path));
    skill.map(|skill| skill.name.to_string())
}
