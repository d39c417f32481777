//! `skills info`: what is this skill?

use std::fmt::Write as _;

use prowess_host::status::{Card, Lists};
use prowess_host::{Failure, View, fix};
use prowess_skills::{Objection, Skill};

use super::{Standing, find, title};
use crate::output::{BAD, BOLD, GOOD, Report, paint, safe, short_path};

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
        Report::json(&Card::new(view, skill, &objections))
    } else {
        Ok(Report::text(human(view, skill, &objections)).wrapped())
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
    line("Slash command", yes_no(objections.is_empty() && skill.invocation.by_user));
    let needs = needs(skill, objections);
    if !needs.is_empty() {
        let _ = write!(out, "\nNeeds\n{needs}");
    }
    if !objections.is_empty() {
        out.push_str("\nWhy it is not ready\n");
        for objection in objections {
            let _ = writeln!(out, "  {}", safe(&objection.to_string()));
        }
        let _ = writeln!(out, "\nTo fix it: prowess skills explain {}", fix::quoted(skill.name.as_str()));
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
