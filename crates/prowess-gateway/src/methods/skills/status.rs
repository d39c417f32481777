//! `skills.status`: how does every skill stand, why, and what can be done about it?

use std::path::Path;

use prowess_host::fix::{self, Fix};
use prowess_host::status::{Card, ProblemShape, ShadowedShape, problems, shadowed};
use prowess_host::{Failure, View};
use prowess_skills::{Broken, Problem, RESERVED, Skill, Snapshot, Tier, commands};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::aside::blocking;
use crate::methods::given::given;
use crate::methods::{Answer, Ask};
use crate::params::{Shape, TEXT, optional, shape};
use crate::wire::Refusal;

const PARAMS: Shape = shape(&[optional("agentId", TEXT)]);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params {
    agent_id: Option<String>,
}

/// The peer's row, and what we add to it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    #[serde(flatten)]
    card: Card,
    tier: &'static str,
    fixes: Vec<Fix>,
    /// Whether a key is written in the configuration; never which.
    has_key: bool,
    /// Whether it was left out of the prompt because that is full.
    cut: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    workspace_dir: String,
    managed_skills_dir: String,
    skills: Vec<Row>,
    agent_id: String,
    /// What `~` stands for.
    user_home: String,
    fingerprint: String,
    shadowed: Vec<ShadowedShape>,
    broken: Vec<BrokenShape>,
    problems: Vec<ProblemShape>,
    commands: Vec<Value>,
}

/// A folder that seems meant to be a skill and is none.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BrokenShape {
    dir: String,
    tier: &'static str,
    problem: ProblemShape,
    fixes: Vec<Fix>,
}

/// How the skills of an agent stand.
pub(super) async fn status(ask: Ask) -> Answer {
    let Params { agent_id } = given(&ask, &PARAMS)?;
    blocking(move || {
        let view = ask.gateway.agents.get(agent_id.as_deref())?.view();
        serde_json::to_value(report(&view)).map_err(|error| Refusal::unavailable(Failure::ours(error).sentence()))
    })
    .await?
}

fn report(view: &View) -> Report {
    let snapshot = view.snapshot(&view.budget());
    let callable = commands(snapshot.skills().iter().map(AsRef::as_ref), RESERVED);
    let command = |command: &prowess_skills::Command| json!({"name": command.name, "skillName": command.skill.to_string(), "description": command.description});
    Report {
        workspace_dir: view.context.workspace.display().to_string(),
        managed_skills_dir: view.context.locations.managed_skills_dir.display().to_string(),
        skills: view.catalog.skills().iter().map(|skill| row(view, skill, &snapshot)).collect(),
        agent_id: view.context.agent.id.to_string(),
        user_home: view.context.user_home().display().to_string(),
        fingerprint: snapshot.fingerprint().to_string(),
        shadowed: shadowed(view),
        broken: view.catalog.broken().iter().map(broken).collect(),
        problems: problems(&view.problems),
        commands: callable.iter().map(command).collect(),
    }
}

fn row(view: &View, skill: &Skill, snapshot: &Snapshot) -> Row {
    let objections = view.gate().objections(skill);
    let cut = snapshot.prompt().cut.dropped.iter().any(|name| name == skill.name.as_str());
    let mut fixes = fix::for_skill(view, skill, &objections);
    let own = view.problems.iter().filter(|problem| is_own(view, skill, problem));
    fixes.extend(own.filter_map(fix::for_problem));
    if cut {
        fixes.push(fix::for_cut(view, snapshot));
    }
    let key = &view.context.config.tree()["skills"]["entries"][skill.key()]["apiKey"];
    let has_key = !key.is_null() && key.as_str().is_none_or(|key| !key.trim().is_empty());
    Row { card: Card::new(view, skill, &objections), tier: skill.tier.word(), fixes, has_key, cut }
}

/// Whether a problem is of this skill, and its file one that a person may change.
fn is_own(view: &View, skill: &Skill, problem: &Problem) -> bool {
    let bundled = view.roots.iter().find(|root| root.tier == Tier::Bundled).map(|root| -> &Path { &root.path });
    problem.path == skill.file && fix::is_theirs(&problem.path, bundled)
}

fn broken(broken: &Broken) -> BrokenShape {
    BrokenShape {
        dir: broken.dir.display().to_string(),
        tier: broken.tier.word(),
        problem: ProblemShape::from(&broken.problem),
        fixes: fix::for_problem(&broken.problem).into_iter().collect(),
    }
}
