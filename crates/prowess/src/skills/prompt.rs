//! `skills prompt`: what exactly is the model told?

use prowess_host::status::Measures;
use prowess_host::{Failure, View};
use prowess_skills::{Budget, Snapshot, section};
use serde::Serialize;

use crate::cli::{BudgetFlag, Mode};
use crate::output::Report;

/// OpenClaw's snapshot, and ours beside it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PromptShape {
    section: String,
    prompt: String,
    #[serde(flatten)]
    measures: Measures,
    skills: Vec<SkillShape>,
    #[serde(skip_serializing_if = "Option::is_none")]
    skill_filter: Option<Vec<String>>,
    resolved_skills: Vec<ResolvedShape>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SkillShape {
    name: String,
    skill_key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    primary_env: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    required_env: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResolvedShape {
    name: String,
    description: String,
    file_path: String,
    base_dir: String,
    source: &'static str,
    disable_model_invocation: bool,
}

pub(super) fn run(
    view: &View,
    mode: Mode,
    budget: Option<BudgetFlag>,
    read_tool: &str,
    json: bool,
) -> Result<Report, Failure> {
    let budget = match (budget, view.budget()) {
        (None, set) => set,
        (Some(BudgetFlag::Chars(chars)), set) => Budget { chars, ..set },
        (Some(BudgetFlag::Tokens(tokens)), set) => Budget { tokens: Some(tokens), chars: usize::MAX, ..set },
    };
    let snapshot = view.snapshot(&budget);
    let text = section(&snapshot.prompt().text, mode.into(), read_tool);
    if json { Report::json(&shape(&snapshot, &budget, text)) } else { Ok(Report::text(text)) }
}

fn shape(snapshot: &Snapshot, budget: &Budget, section: String) -> PromptShape {
    let skills = snapshot.skills().iter().map(|skill| SkillShape {
        name: skill.name.to_string(),
        skill_key: skill.key().to_owned(),
        primary_env: skill.metadata.primary_env.clone(),
        required_env: skill.metadata.needs.env.clone(),
    });
    let resolved = snapshot.visible().map(|skill| ResolvedShape {
        name: skill.name.to_string(),
        description: skill.description.clone(),
        file_path: skill.file.display().to_string(),
        base_dir: skill.dir().display().to_string(),
        source: skill.tier.label(),
        disable_model_invocation: !skill.invocation.by_model,
    });
    PromptShape {
        section,
        prompt: snapshot.prompt().text.clone(),
        measures: Measures::new(snapshot, budget),
        skills: skills.collect(),
        skill_filter: snapshot.filter().map(<[String]>::to_vec),
        resolved_skills: resolved.collect(),
    }
}
