//! `skills explain`: the whole story of one skill, or an account of every folder that could be one.
//!
//! The stages are those a skill goes through, in order, from file to prompt. The first that stops it is marked; the
//! rest is told all the same, because a skill often has more than one thing in its way.

mod account;

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use prowess_host::fix::{self, Fix};
use prowess_host::{Failure, Proposal, Shares, View, propose};
use prowess_skills::{
    Broken, Budget, Document, Objection, Problem, ProblemKind, Severity, Skill, Snapshot, Tier, env, text,
};
use serde::Serialize;

use super::{Standing, commands, info, title};
use crate::output::{self, BAD, BOLD, DIM, GOOD, Report, WARN, paint, safe, short_path};
use crate::wrap::{stdout_columns, wrap};

pub(super) use account::all;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StoryShape {
    name: String,
    outcome: &'static str,
    stages: Vec<StageShape>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    frontmatter: Option<serde_json::Map<String, serde_json::Value>>,
    fixes: Vec<Fix>,
    #[serde(skip_serializing_if = "Option::is_none")]
    proposal: Option<Proposal>,
}

#[derive(Serialize)]
struct StageShape {
    stage: &'static str,
    passed: bool,
    details: Vec<String>,
}

/// What is told of one skill.
struct Story {
    name: String,
    title: String,
    outcome: &'static str,
    stages: Vec<Stage>,
    block: Option<String>,
    frontmatter: Option<serde_json::Map<String, serde_json::Value>>,
    fixes: Vec<Fix>,
    proposal: Option<Proposal>,
}

/// One stage of the story.
struct Stage {
    name: &'static str,
    passed: bool,
    details: Vec<String>,
}

/// Where the details of a stage begin.
const INDENT: &str = "               ";

/// Tells the story of the skill with this name, key or folder.
pub(super) fn one(view: &View, name: &str, json: bool) -> Result<Report, Failure> {
    let by_folder = |dir: &Path| !name.is_empty() && dir.ends_with(name);
    let skills = view.catalog.skills();
    let found = view.catalog.find(name).or_else(|| skills.iter().find(|skill| by_folder(skill.dir())));
    if let Some(skill) = found {
        return tell(&story(view, skill), json);
    }
    let broken: Vec<&Broken> = view.catalog.broken().iter().filter(|broken| by_folder(&broken.dir)).collect();
    if broken.is_empty() {
        let hidden = view.catalog.shadowed().iter().find(|shadowed| by_folder(shadowed.skill.dir()));
        let name = hidden.map_or(name, |shadowed| shadowed.skill.name.as_str());
        let skill = super::find(view, name)?;
        return tell(&story(view, skill), json);
    }
    let home = view.context.user_home();
    let stage = |broken: &&Broken| Stage { name: "file", passed: false, details: problem_lines(&broken.problem, home) };
    let is_limit = broken.iter().all(|broken| broken.problem.kind == ProblemKind::OverLimit);
    let story = Story {
        name: name.to_owned(),
        title: name.to_owned(),
        outcome: if is_limit { "over-limit" } else { "broken" },
        stages: broken.iter().map(stage).collect(),
        block: None,
        frontmatter: None,
        fixes: broken.iter().filter_map(|broken| fix::for_problem(&broken.problem)).collect(),
        proposal: None,
    };
    tell(&story, json)
}

fn story(view: &View, skill: &Skill) -> Story {
    let objections = view.gate().objections(skill);
    let snapshot = view.snapshot(&view.budget());
    let stages = vec![
        file(view, skill),
        read(view, skill),
        merge(view, skill),
        needs(skill, &objections),
        gate(&objections),
        prompt(skill, &snapshot, &view.budget()),
        command(view, skill, &objections),
        environment(view, skill),
        capabilities(view, skill),
    ];
    let is_cut = snapshot.prompt().cut.dropped.iter().any(|name| name == skill.name.as_str());
    let outcome = match Standing::of(&objections) {
        Standing::Ready if is_cut => "cut",
        Standing::Ready if skill.invocation.by_model => "visible",
        Standing::Ready => "hidden",
        _ => "unavailable",
    };
    let mut fixes = fix::for_skill(view, skill, &objections);
    let bundled = view.roots.iter().find(|root| root.tier == Tier::Bundled).map(|root| root.path.as_path());
    let is_own = |problem: &&Problem| problem.path == skill.file && fix::is_theirs(&problem.path, bundled);
    fixes.extend(view.problems.iter().filter(is_own).filter_map(fix::for_problem));
    if is_cut {
        fixes.push(fix::for_cut(view, &snapshot));
    }
    Story {
        name: skill.name.to_string(),
        title: title(skill),
        outcome,
        stages,
        block: if outcome == "visible" { block(&snapshot, skill) } else { None },
        frontmatter: Some(frontmatter(view, skill)),
        fixes,
        proposal: propose(view, skill),
    }
}

/// The whole frontmatter, also what nothing here reads.
fn frontmatter(view: &View, skill: &Skill) -> serde_json::Map<String, serde_json::Value> {
    let mut bytes = Vec::new();
    // A file that went away since it was loaded has nothing to show.
    let read =
        File::open(&skill.file).and_then(|file| file.take(view.settings.limits.file_bytes).read_to_end(&mut bytes));
    let flat = read.ok().and_then(|_| Document::parse(&bytes).ok()).map(|document| document.flat());
    flat.unwrap_or_default().into_iter().map(|(key, value)| (key, value.into())).collect()
}

fn tell(story: &Story, json: bool) -> Result<Report, Failure> {
    if json {
        let stage = |stage: &Stage| StageShape {
            stage: stage.name,
            passed: stage.passed,
            details: stage.details.iter().map(|line| anstream::adapter::strip_str(line).to_string()).collect(),
        };
        return Report::json(&StoryShape {
            name: story.name.clone(),
            outcome: story.outcome,
            stages: story.stages.iter().map(stage).collect(),
            prompt: story.block.clone(),
            frontmatter: story.frontmatter.clone(),
            fixes: story.fixes.clone(),
            proposal: story.proposal.clone(),
        });
    }
    let mut out = format!("{} {}\n", paint(BOLD, &safe(&story.title)), paint(DIM, &story.outcome.replace('-', " ")));
    for stage in &story.stages {
        let mark = if stage.passed { paint(GOOD, "✓") } else { paint(BAD, "✗") };
        let mut details = stage.details.iter();
        let first = format!("{mark} {:<12} {}", stage.name, details.next().map_or("", String::as_str));
        for line in std::iter::once(first).chain(details.map(|line| format!("{INDENT}{line}"))) {
            let _ = writeln!(out, "{}", wrap(&line, stdout_columns(), INDENT));
        }
    }
    if let Some(block) = &story.block {
        let _ = write!(out, "\n{}\n{block}", paint(BOLD, "In the prompt"));
    }
    if !story.fixes.is_empty() {
        let _ = writeln!(out, "\n{}", paint(BOLD, "To fix it"));
        for fix in &story.fixes {
            let why = paint(DIM, &format!("# {}", safe(&fix.why)));
            let _ = writeln!(out, "  {why}\n    {}", safe(&fix.command));
        }
    }
    if let Some(proposal) = &story.proposal {
        let why = "# it declares no capabilities; going by the commands in its text, check them first:";
        let _ = writeln!(out, "\n{}\n  {}", paint(BOLD, "To allow what it seems to use"), paint(DIM, why));
        let _ = writeln!(out, "    {}", safe(&proposal.command));
    }
    Ok(Report::text(out))
}

fn file(view: &View, skill: &Skill) -> Stage {
    let home = view.context.user_home();
    let details = vec![
        short_path(&skill.file, home),
        format!("found in the {} tier ({})", skill.tier.word(), skill.tier.label()),
    ];
    Stage { name: "file", passed: true, details }
}

fn read(view: &View, skill: &Skill) -> Stage {
    let home = view.context.user_home();
    let own: Vec<&Problem> = view.problems.iter().filter(|problem| problem.path == skill.file).collect();
    let mut details = vec![if own.is_empty() {
        "no problems".to_owned()
    } else {
        format!("read, with {}", output::count(own.len(), "problem"))
    }];
    details.extend(own.iter().flat_map(|problem| problem_lines(problem, home)));
    let violations = skill.violations();
    details.extend(violations.iter().map(|rule| paint(DIM, &format!("Agent Skills standard: {rule}"))));
    Stage { name: "frontmatter", passed: own.iter().all(|problem| problem.severity() < Severity::Error), details }
}

fn problem_lines(problem: &Problem, home: &Path) -> Vec<String> {
    let place = problem
        .at
        .map_or_else(|| short_path(&problem.path, home), |at| format!("line {}, column {}", at.line, at.column));
    vec![format!("{}: {}", paint(WARN, &place), safe(&problem.reason)), format!("  fix: {}", safe(&problem.fix))]
}

fn merge(view: &View, skill: &Skill) -> Stage {
    let home = view.context.user_home();
    let hidden = view.catalog.shadowed().iter().filter(|shadowed| shadowed.skill.name == skill.name);
    let mut details: Vec<String> = hidden
        .map(|shadowed| match short_path(&shadowed.skill.file, home) {
            _ if shadowed.skill.file == skill.file => "found twice under different paths; used once".to_owned(),
            path => format!("shadows {path} ({})", shadowed.skill.tier.word()),
        })
        .collect();
    if details.is_empty() {
        details.push("no other skill has this name".to_owned());
    }
    Stage { name: "name", passed: true, details }
}

fn needs(skill: &Skill, objections: &[Objection]) -> Stage {
    let needs = info::needs(skill, objections);
    let mut details: Vec<String> = needs.lines().map(|line| line.trim().to_owned()).collect();
    if details.is_empty() {
        details.push(if skill.unreadable.is_some() { "not known" } else { "nothing" }.to_owned());
    }
    if skill.metadata.always {
        details.push("`always` is set: programs, variables and settings are not checked".to_owned());
    }
    let unmet = |objection: &Objection| !objection.items().is_empty() || matches!(objection, Objection::Unreadable(_));
    Stage { name: "needs", passed: !objections.iter().any(unmet), details }
}

fn gate(objections: &[Objection]) -> Stage {
    let mut details: Vec<String> = objections.iter().map(|objection| safe(&objection.to_string())).collect();
    if details.is_empty() {
        details.push("passed".to_owned());
    }
    Stage { name: "gate", passed: objections.is_empty(), details }
}

fn prompt(skill: &Skill, snapshot: &Snapshot, budget: &Budget) -> Stage {
    let name = skill.name.as_str();
    let passed_gate = snapshot.skills().iter().any(|passed| passed.name == skill.name);
    let cut = &snapshot.prompt().cut;
    let is_in = |names: &[String]| names.iter().any(|cut| cut == name);
    let (passed, detail) = if !passed_gate {
        (false, "not offered: it is unavailable")
    } else if !skill.invocation.by_model {
        (true, "hidden from the model by `disable-model-invocation`")
    } else if is_in(&cut.dropped) {
        (false, "left out: the prompt is full")
    } else if is_in(&cut.name_only) {
        (true, "shown by name only: the prompt is full")
    } else if is_in(&cut.shortened) {
        let is_long = text::units(&skill.description) > budget.description_limit();
        let why = if is_long { "it takes more than its share of the prompt" } else { "the prompt is full" };
        return Stage {
            name: "prompt",
            passed: true,
            details: vec![format!("shown with a shortened description: {why}")],
        };
    } else {
        (true, "shown with name, description and location")
    };
    Stage { name: "prompt", passed, details: vec![detail.to_owned()] }
}

fn command(view: &View, skill: &Skill, objections: &[Objection]) -> Stage {
    let found = commands::of(view).into_iter().find(|command| command.skill == skill.name);
    let (passed, detail) = match found {
        Some(command) => {
            let way = command.dispatch.map_or_else(
                || "through the model".to_owned(),
                |dispatch| format!("straight to the tool `{}`", safe(&dispatch.tool)),
            );
            (true, format!("/{} {way}", command.name))
        }
        None if !objections.is_empty() => (false, "none: the skill is unavailable".to_owned()),
        None => (true, "none: `user-invocable` is off".to_owned()),
    };
    Stage { name: "command", passed, details: vec![detail] }
}

fn environment(view: &View, skill: &Skill) -> Stage {
    let config_env = view.config_env();
    let inputs = env::EnvInputs { config: &view.settings, config_env: &config_env, host: &view.world.env };
    let plan = env::plan(skill, inputs);
    let (shares, leased) = (Shares::of(view), view.leased(skill).keys);
    let mut details = Vec::new();
    for (name, var) in &plan.vars {
        let line = format!("{} from {}", safe(name), var.layer.word());
        match shares.withheld(skill, name, var.given_by) {
            None => details.push(line),
            Some(_) if leased.contains(name) => details.push(format!("{line}, as you allowed")),
            Some(remedy) => {
                details.push(format!("{}: its commands ask for it", paint(WARN, &format!("{line}, withheld"))));
                details.push(format!("  to allow it for good: {}", safe(&remedy)));
            }
        }
    }
    if let Some(bins) = plan.bins.filter(|bins| bins.is_dir()) {
        details.push(format!("PATH starts with {}", short_path(&bins, view.context.user_home())));
    }
    details.extend(
        plan.refused
            .iter()
            .map(|(name, layer, why)| paint(WARN, &format!("{} from {} refused: {why}", safe(name), layer.word()))),
    );
    if details.is_empty() {
        details.push("no variables".to_owned());
    }
    Stage { name: "environment", passed: plan.refused.is_empty(), details }
}

/// What the skill declares that its commands use beyond the sandbox, and which of it they may use without a question.
fn capabilities(view: &View, skill: &Skill) -> Stage {
    let (declared, pinned) = Shares::of(view).declared(skill);
    let leased = view.leased(skill);
    let (beyond_leases, beyond_all) = (declared.beyond(&leased), declared.beyond(&leased.and(&pinned)));
    let (unleased, asked) = (beyond_leases.phrases(), beyond_all.phrases());
    let mut details: Vec<String> = Vec::new();
    for phrase in declared.phrases() {
        let standing = if asked.contains(&phrase) {
            paint(WARN, "its commands ask for it")
        } else if unleased.contains(&phrase) {
            "allowed in the settings".to_owned()
        } else {
            "allowed by a lease".to_owned()
        };
        details.push(format!("{}: {standing}", safe(&phrase)));
    }
    if details.is_empty() {
        details.push("declares nothing beyond the sandbox".to_owned());
    }
    Stage { name: "capabilities", passed: true, details }
}

/// The lines of the prompt that are about this skill.
fn block(snapshot: &Snapshot, skill: &Skill) -> Option<String> {
    let mut wanted = String::from("<name>");
    prowess_skills::text::push_escaped(&mut wanted, skill.name.as_str());
    wanted.push_str("</name>");
    let mut blocks = snapshot.prompt().text.split_inclusive("  </skill>\n");
    let block = blocks.find(|block| block.contains(&wanted))?;
    block.find("  <skill>\n").map(|start| block[start..].to_owned())
}
