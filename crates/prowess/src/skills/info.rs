//! `skills info`: what is this skill?

use std::fmt::Write as _;

use prowess_host::{Failure, View};
use prowess_skills::{Objection, Skill, Tier};
use serde::Serialize;

use super::shape::{self, Flags, Lists};
use super::{Standing, find, title};
use crate::output::{BAD, BOLD, GOOD, Report, paint, safe, short_path};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "OpenClaw's JSON has these flags")]
struct InfoShape {
    name: String,
    description: String,
    source: &'static str,
    bundled: bool,
    file_path: String,
    base_dir: String,
    skill_key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    primary_env: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    emoji: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    homepage: Option<String>,
    always: bool,
    disabled: bool,
    blocked_by_allowlist: bool,
    blocked_by_agent_filter: bool,
    eligible: bool,
    platform_incompatible: bool,
    model_visible: bool,
    user_invocable: bool,
    command_visible: bool,
    requirements: Lists,
    missing: Lists,
    config_checks: Vec<shape::ConfigCheck>,
    install: Vec<shape::InstallShape>,
    objections: Vec<shape::ObjectionShape>,
    #[serde(skip_serializing_if = "Option::is_none")]
    license: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    compatibility: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    allowed_tools: Vec<String>,
    shadowed: Vec<shape::ShadowedShape>,
    problems: Vec<shape::ProblemShape>,
}

pub(super) fn run(view: &View, name: &str, json: bool) -> Result<Report, Failure> {
    let skill = match find(view, name) {
        Ok(skill) => skill,
        Err(_) if json => {
            let missing = serde_json::json!({"error": "not found", "skill": name});
            return Ok(Report::json(&missing)?.code(1));
        }
        Err(failure) => return Err(failure),
    };
    let objections = view.gate().objections(skill);
    if json {
        Report::json(&shape(view, skill, &objections))
    } else {
        Ok(Report::text(human(view, skill, &objections)))
    }
}

fn shape(view: &View, skill: &Skill, found: &[Objection]) -> InfoShape {
    let flags = Flags::of(found);
    let shadowed = shape::shadowed(view);
    InfoShape {
        name: skill.name.to_string(),
        description: skill.description.clone(),
        source: skill.tier.label(),
        bundled: skill.tier == Tier::Bundled,
        file_path: skill.file.display().to_string(),
        base_dir: skill.dir().display().to_string(),
        skill_key: skill.key().to_owned(),
        primary_env: skill.metadata.primary_env.clone(),
        emoji: skill.emoji.clone(),
        homepage: skill.homepage.clone(),
        always: skill.metadata.always,
        disabled: flags.disabled,
        blocked_by_allowlist: flags.blocked,
        blocked_by_agent_filter: flags.filtered,
        eligible: flags.eligible,
        platform_incompatible: found.iter().any(|objection| matches!(objection, Objection::WrongOs(_))),
        model_visible: flags.offered() && skill.invocation.by_model,
        user_invocable: skill.invocation.by_user,
        command_visible: flags.offered() && skill.invocation.by_user,
        requirements: Lists::required(skill),
        missing: Lists::missing(found),
        config_checks: shape::config_checks(view, skill),
        install: shape::install(view, skill),
        objections: shape::objections(found),
        license: skill.standard.license.clone(),
        compatibility: skill.standard.compatibility.clone(),
        allowed_tools: skill.standard.allowed_tools.clone(),
        shadowed: shadowed.into_iter().filter(|other| other.is(&skill.name)).collect(),
        problems: shape::problems(view.problems.iter().filter(|problem| problem.path == skill.file)),
    }
}

fn human(view: &View, skill: &Skill, objections: &[Objection]) -> String {
    let home = view.context.user_home();
    let mut out = format!("{} {}\n\n", paint(BOLD, &title(skill)), Standing::of(objections).painted());
    let _ = writeln!(out, "{}\n", safe(&skill.description));
    let mut line = |label: &str, value: &str| {
        let _ = writeln!(out, "  {label:<14} {}", safe(value));
    };
    line("Source", skill.tier.word());
    line("File", &short_path(&skill.file, home));
    if let Some(homepage) = &skill.homepage {
        line("Homepage", homepage);
    }
    if skill.key() != skill.name.as_str() {
        line("Settings", &format!("skills.entries.{}", skill.key()));
    }
    if let Some(primary) = &skill.metadata.primary_env {
        line("API key as", primary);
    }
    if let Some(license) = &skill.standard.license {
        line("License", license);
    }
    if let Some(compatibility) = &skill.standard.compatibility {
        line("Compatibility", compatibility);
    }
    if !skill.standard.allowed_tools.is_empty() {
        line("Allowed tools", &skill.standard.allowed_tools.join(" "));
    }
    let yes_no = |yes: bool| if yes { "yes" } else { "no" };
    let snapshot = view.snapshot(&view.budget());
    let is_cut = snapshot.prompt().cut.dropped.iter().any(|name| name == skill.name.as_str());
    line("Model sees it", yes_no(objections.is_empty() && skill.invocation.by_model && !is_cut));
    line("As a command", yes_no(objections.is_empty() && skill.invocation.by_user));
    let needs = needs(skill, objections);
    if !needs.is_empty() {
        let _ = write!(out, "\nNeeds\n{needs}");
    }
    if !objections.is_empty() {
        out.push_str("\nWhy not\n");
        for objection in objections {
            let _ = writeln!(out, "  {}", safe(&objection.to_string()));
        }
        let _ = writeln!(out, "\nWhat to do: prowess skills explain {}", super::fix::quoted(skill.name.as_str()));
    }
    out
}

/// Each need with a mark for whether it is met.
pub(super) fn needs(skill: &Skill, objections: &[Objection]) -> String {
    let required = Lists::required(skill);
    let missing = Lists::missing(objections);
    let groups = [
        ("Programs", &required.bins, &missing.bins),
        ("One of", &required.any_bins, &missing.any_bins),
        ("Variables", &required.env, &missing.env),
        ("Settings", &required.config, &missing.config),
        ("Systems", &required.os, &missing.os),
    ];
    let mut out = String::new();
    for (label, required, missing) in groups.into_iter().filter(|(_, required, _)| !required.is_empty()) {
        let marked = required.iter().map(|item| {
            let mark = if missing.contains(item) { paint(BAD, "✗") } else { paint(GOOD, "✓") };
            format!("{mark} {}", safe(item))
        });
        let _ = writeln!(out, "  {label:<14} {}", marked.collect::<Vec<_>>().join(", "));
    }
    out
}
