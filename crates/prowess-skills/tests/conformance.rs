//! The claims of `docs/conformance.md` that values alone can prove: each test names the claims it keeps.

#[path = "conformance/command.rs"]
mod command;
#[path = "conformance/config.rs"]
mod config;
#[path = "conformance/discovery.rs"]
mod discovery;
#[path = "conformance/env.rs"]
mod env;
#[path = "conformance/filter.rs"]
mod filter;
#[path = "conformance/frontmatter.rs"]
mod frontmatter;
#[path = "conformance/gate.rs"]
mod gate;
#[path = "conformance/prompt.rs"]
mod prompt;
#[path = "conformance/snapshot.rs"]
mod snapshot;

use std::path::Path;

use prowess_skills::{
    Budget, Catalog, Filter, Filters, Gate, Limits, Machine, Objection, Places, Problem, ProblemKind, Reach, Skill,
    SkillsConfig, Snapshot, Tier, World,
};
use prowess_testkit::Tree;
use serde_json::Value;

/// The six places of a tree: `extra`, `bundled`, `managed`, `home` and `ws`.
fn places(tree: &Tree) -> Places {
    Places {
        extra: vec![tree.path("extra")],
        plugins: Vec::new(),
        bundled: Some(tree.path("bundled")),
        managed: Some(tree.path("managed")),
        home: Some(tree.path("home")),
        workspace: Some(tree.path("ws")),
    }
}

fn load_within(tree: &Tree, limits: Limits) -> Catalog {
    Catalog::load(&places(tree).roots(), &Reach { limits, ..Reach::default() })
}

fn load(tree: &Tree) -> Catalog {
    load_within(tree, Limits::default())
}

fn names<'a>(skills: impl IntoIterator<Item = &'a std::sync::Arc<Skill>>) -> Vec<&'a str> {
    skills.into_iter().map(|skill| skill.name.as_str()).collect()
}

fn kinds(problems: &[Problem]) -> Vec<ProblemKind> {
    problems.iter().map(|problem| problem.kind).collect()
}

/// The skill with this frontmatter, of the workspace tier and in a folder named `folder`.
fn read(frontmatter: &str) -> (Skill, Vec<Problem>) {
    let text = format!("---\n{frontmatter}\n---\n# body\n");
    Skill::parse(text.as_bytes(), Path::new("/skills/folder/SKILL.md"), Tier::Workspace).expect("a skill")
}

/// The skill `s` of a tier, with this manifest.
fn made(tier: Tier, manifest: &str) -> Skill {
    let text = format!("---\nname: s\ndescription: d\nmetadata: {{openclaw: {manifest}}}\n---\n");
    Skill::parse(text.as_bytes(), Path::new("/skills/s/SKILL.md"), tier).expect("a skill").0
}

fn settings(section: &Value) -> SkillsConfig {
    let (config, problems) = SkillsConfig::read(section, Path::new("openclaw.json"));
    assert_eq!(problems, [], "{section}");
    config
}

fn machine(os: &str, bins: &[&str]) -> Machine {
    Machine { os: os.to_owned(), bins: bins.iter().map(|&bin| bin.to_owned()).collect() }
}

/// A Linux host with these programs.
fn host(bins: &[&str]) -> World {
    World { machines: vec![machine("linux", bins)], ..World::default() }
}

fn objections(skill: &Skill, world: &World, section: &Value) -> Vec<Objection> {
    let (config, filters) = (settings(section), Filters::default());
    Gate { world, config: &config, filters: &filters }.objections(skill)
}

/// Whether the workspace skill `s` with this manifest passes.
fn passes(manifest: &str, world: &World, section: &Value) -> bool {
    objections(&made(Tier::Workspace, manifest), world, section).is_empty()
}

fn take_for(catalog: &Catalog, world: &World, section: &Value, filters: &Filters) -> Snapshot {
    let config = settings(section);
    let gate = Gate { world, config: &config, filters };
    Snapshot::take(catalog, &gate, None, &Budget::from(&config.limits))
}

fn take(catalog: &Catalog) -> Snapshot {
    take_for(catalog, &host(&[]), &Value::Null, &Filters::default())
}

fn only(list: &[&str]) -> Filter {
    Filter::only(list)
}
