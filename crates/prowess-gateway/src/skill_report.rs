//! The report on an agent's skills: how does every skill stand, why, and what can be done about it?
//!
//! With thousands of skills the report takes a while and is megabytes long. So it is made once for each view, and clients
//! can ask for a part: short rows for a list, one skill for a page, or only the names that can be called with a slash.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use prowess_host::View;
use prowess_host::fix::{self, Fix};
use prowess_host::status::{Card, ProblemShape, ShadowedShape, problems, shadowed};
use prowess_skills::{Broken, Problem, ProblemKind, RESERVED, Severity, Skill, Snapshot, Tier, commands};
use serde::Serialize;
use serde_json::{Value, json};

/// How many characters of a description a short row has; lists show less.
const MAX_SHORT: usize = 300;

/// All that is known about an agent's skills.
pub(crate) struct SkillReport {
    agent: String,
    workspace_dir: String,
    managed_skills_dir: String,
    user_home: String,
    fingerprint: String,
    rows: Vec<SkillRow>,
    shadowed: Vec<ShadowedShape>,
    broken: Vec<BrokenShape>,
    left_out: Vec<BrokenShape>,
    problems: Vec<ProblemShape>,
    /// How many of the problems are more than a note.
    serious: usize,
    commands: Vec<Value>,
}

/// One skill, whole and short.
struct SkillRow {
    full: Value,
    short: Value,
    /// What a search looks at, in lower case.
    text: String,
}

/// OpenClaw's row, and what we add to it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FullRow {
    #[serde(flatten)]
    card: Card,
    tier: &'static str,
    fixes: Vec<Fix>,
    /// Whether a key is written in the configuration; never which.
    has_key: bool,
    /// Whether it was left out of the prompt because that is full.
    cut: bool,
}

/// The fields of a short row.
const SHORT: [&str; 10] = [
    "name",
    "skillKey",
    "description",
    "emoji",
    "tier",
    "eligible",
    "disabled",
    "blockedByAllowlist",
    "blockedByAgentFilter",
    "cut",
];

/// A directory that seems meant to be a skill and was not loaded.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BrokenShape {
    dir: String,
    tier: &'static str,
    problem: ProblemShape,
    fixes: Vec<Fix>,
}

/// Which skills a client wants to see.
#[derive(Debug, Default)]
pub(crate) struct SkillQuery {
    /// Only this one, by its name or key.
    pub(crate) skill: Option<String>,
    /// Only those with all of these words in their name, description or tier.
    pub(crate) search: Option<String>,
    /// At most so many, after the first `skip` that match.
    pub(crate) limit: Option<usize>,
    pub(crate) skip: usize,
}

/// A part of the rows, and where the next part begins.
struct SkillPage<'a> {
    rows: Vec<&'a SkillRow>,
    matching: usize,
    next: Option<usize>,
}

impl SkillReport {
    /// The report on `view`.
    pub(crate) fn new(view: &View) -> Self {
        let snapshot = view.snapshot(&view.budget());
        let callable = commands(snapshot.skills().iter().map(AsRef::as_ref), RESERVED);
        let command = |command: &prowess_skills::Command| json!({"name": command.name, "skillName": command.skill.to_string(), "description": command.description});
        let (left_out, broken) =
            view.catalog.broken().iter().partition(|one| one.problem.kind == ProblemKind::OverLimit);
        let shape = |list: Vec<&Broken>| list.into_iter().map(broken_shape).collect();
        Self {
            agent: view.context.agent.id.to_string(),
            workspace_dir: view.context.workspace.display().to_string(),
            managed_skills_dir: view.context.locations.managed_skills_dir.display().to_string(),
            user_home: view.context.user_home().display().to_string(),
            fingerprint: snapshot.fingerprint().to_string(),
            rows: rows(view, &snapshot),
            shadowed: shadowed(view),
            broken: shape(broken),
            left_out: shape(left_out),
            problems: problems(&view.problems),
            serious: view.problems.iter().filter(|problem| problem.severity() != Severity::Note).count(),
            commands: callable.iter().map(command).collect(),
        }
    }

    /// The names that can be called with a slash.
    pub(crate) fn commands(&self) -> Value {
        json!({"agentId": self.agent, "commands": self.commands})
    }

    /// Everything, in the shape of OpenClaw's `skills.status`.
    pub(crate) fn full(&self, query: &SkillQuery) -> Value {
        let page = self.page(query);
        let mut report = json!({
            "workspaceDir": self.workspace_dir,
            "managedSkillsDir": self.managed_skills_dir,
            "skills": page.rows.iter().map(|row| &row.full).collect::<Vec<_>>(),
            "agentId": self.agent,
            "userHome": self.user_home,
            "fingerprint": self.fingerprint,
        });
        if query.skill.is_none() {
            report["shadowed"] = json!(self.shadowed);
            report["broken"] = json!(self.broken);
            report["leftOut"] = json!(self.left_out);
            report["problems"] = json!(self.problems);
            report["commands"] = json!(self.commands);
        } else {
            let shown: HashSet<&str> = page.rows.iter().filter_map(|row| row.full["name"].as_str()).collect();
            let is_shown = |one: &&Value| one["skillName"].as_str().is_some_and(|name| shown.contains(name));
            report["commands"] = json!(self.commands.iter().filter(is_shown).collect::<Vec<_>>());
        }
        with_cursor(report, &page)
    }

    /// Short rows, and how many there are of everything.
    pub(crate) fn summary(&self, query: &SkillQuery) -> Value {
        let page = self.page(query);
        let report = json!({
            "agentId": self.agent,
            "userHome": self.user_home,
            "fingerprint": self.fingerprint,
            "skills": page.rows.iter().map(|row| &row.short).collect::<Vec<_>>(),
            "matching": page.matching,
            "counts": {
                "skills": self.rows.len(),
                "broken": self.broken.len(),
                "leftOut": self.left_out.len(),
                "problems": self.serious,
            },
        });
        with_cursor(report, &page)
    }

    /// What is wrong with files.
    pub(crate) fn troubles(&self) -> Value {
        json!({
            "agentId": self.agent,
            "userHome": self.user_home,
            "fingerprint": self.fingerprint,
            "broken": self.broken,
            "leftOut": self.left_out,
            "problems": self.problems,
        })
    }

    fn page(&self, query: &SkillQuery) -> SkillPage<'_> {
        let search = query.search.as_deref().unwrap_or_default().to_lowercase();
        let words: Vec<&str> = search.split_whitespace().collect();
        let named = |row: &SkillRow, name: &str| row.full["name"] == name || row.full["skillKey"] == name;
        let wanted = |row: &&SkillRow| {
            query.skill.as_deref().is_none_or(|name| named(row, name))
                && words.iter().all(|word| row.text.contains(word))
        };
        let all: Vec<&SkillRow> = self.rows.iter().filter(wanted).collect();
        let matching = all.len();
        let rows: Vec<&SkillRow> = all.into_iter().skip(query.skip).take(query.limit.unwrap_or(usize::MAX)).collect();
        let end = query.skip.saturating_add(rows.len());
        SkillPage { next: (end < matching && !rows.is_empty()).then_some(end), rows, matching }
    }
}

fn with_cursor(mut report: Value, page: &SkillPage<'_>) -> Value {
    if let Some(next) = page.next {
        report["cursor"] = next.to_string().into();
    }
    report
}

fn rows(view: &View, snapshot: &Snapshot) -> Vec<SkillRow> {
    let cut: HashSet<&str> = snapshot.prompt().cut.dropped.iter().map(AsRef::as_ref).collect();
    let mut own: HashMap<&Path, Vec<&Problem>> = HashMap::new();
    for problem in &view.problems {
        own.entry(&problem.path).or_default().push(problem);
    }
    let row = |skill: &Skill| {
        let problems = own.get(skill.file.as_path()).map(Vec::as_slice).unwrap_or_default();
        let full = full_row(view, skill, snapshot, cut.contains(skill.name.as_str()), problems);
        let full = serde_json::to_value(full).unwrap_or_default();
        let mut short: Value = SHORT.iter().map(|name| ((*name).to_owned(), full[*name].clone())).collect();
        let about: String = full["description"].as_str().unwrap_or_default().chars().take(MAX_SHORT).collect();
        short["description"] = about.into();
        let word = |name: &str| full[name].as_str().unwrap_or_default().to_lowercase();
        let text = format!("{}\n{}\n{}", word("name"), word("description"), word("tier"));
        SkillRow { full, short, text }
    };
    view.catalog.skills().iter().map(|skill| row(skill)).collect()
}

fn full_row(view: &View, skill: &Skill, snapshot: &Snapshot, cut: bool, problems: &[&Problem]) -> FullRow {
    let objections = view.gate().objections(skill);
    let mut fixes = fix::for_skill(view, skill, &objections);
    // Nobody is told to change a file that came with the program.
    let bundled = view.roots.iter().find(|root| root.tier == Tier::Bundled).map(|root| -> &Path { &root.path });
    fixes.extend(
        problems.iter().filter(|one| fix::is_theirs(&one.path, bundled)).filter_map(|one| fix::for_problem(one)),
    );
    if cut {
        fixes.push(fix::for_cut(view, snapshot));
    }
    let key = &view.context.config.tree()["skills"]["entries"][skill.key()]["apiKey"];
    let has_key = !key.is_null() && key.as_str().is_none_or(|key| !key.trim().is_empty());
    FullRow { card: Card::new(view, skill, &objections), tier: skill.tier.word(), fixes, has_key, cut }
}

fn broken_shape(broken: &Broken) -> BrokenShape {
    BrokenShape {
        dir: broken.dir.display().to_string(),
        tier: broken.tier.word(),
        problem: ProblemShape::from(&broken.problem),
        fixes: fix::for_problem(&broken.problem).into_iter().collect(),
    }
}
