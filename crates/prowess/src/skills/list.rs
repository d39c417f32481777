//! `skills list`: which skills are there, and which are ready?

use std::fmt::Write as _;

use prowess_host::status::{self, Lists, Row};
use prowess_host::{Failure, View};
use prowess_skills::{Objection, Severity, Skill, text};
use serde::Serialize;

use super::{Standing, title};
use crate::output::{BOLD, DIM, Report, WARN, count, paint, safe, table};

/// How much of a description a row shows.
const SHORT_DESCRIPTION: usize = 120;

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Options {
    pub(super) eligible: bool,
    pub(super) verbose: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListShape {
    workspace_dir: String,
    managed_skills_dir: String,
    skills: Vec<Row>,
    shadowed: Vec<status::ShadowedShape>,
    problems: Vec<status::ProblemShape>,
}

pub(super) fn run(view: &View, options: Options, json: bool) -> Result<Report, Failure> {
    let gate = view.gate();
    let judged = view.catalog.skills().iter().map(|skill| (skill.as_ref(), gate.objections(skill)));
    let rows: Vec<(&Skill, Vec<Objection>)> =
        judged.filter(|(_, objections)| !options.eligible || objections.is_empty()).collect();
    if json {
        return Report::json(&ListShape {
            workspace_dir: view.context.workspace.display().to_string(),
            managed_skills_dir: view.context.locations.managed_skills_dir.display().to_string(),
            skills: rows.iter().map(|(skill, objections)| Row::new(skill, objections)).collect(),
            shadowed: status::shadowed(view),
            problems: status::problems(&view.problems),
        });
    }
    Ok(Report::text(human(view, options, &rows)))
}

fn human(view: &View, options: Options, rows: &[(&Skill, Vec<Objection>)]) -> String {
    if rows.is_empty() {
        let text = if options.eligible { "No skill is ready; see: prowess skills list" } else { "No skills found." };
        return format!("{text}\n{}", footer(view));
    }
    let ready = rows.iter().filter(|(_, objections)| objections.is_empty()).count();
    let mut out = format!("{}\n", paint(BOLD, &format!("Skills ({ready}/{} ready)", rows.len())));
    let mut header = vec!["Status", "Skill", "Description", "Source"];
    if options.verbose {
        header.push("Missing");
    }
    let cells = rows.iter().map(|(skill, objections)| {
        let description = if options.verbose { safe(&skill.description) } else { brief(&skill.description) };
        let mut row = vec![Standing::of(objections).painted(), title(skill), description, skill.tier.word().to_owned()];
        if options.verbose {
            let summary = Lists::missing(objections).summary();
            let told: Vec<String> = objections.iter().map(ToString::to_string).collect();
            row.push(if summary.is_empty() { safe(&told.join("; ")) } else { safe(&summary) });
        }
        row
    });
    out.push_str(&table(&header, &[0, 3], cells.collect()));
    out.push_str(&footer(view));
    out
}

/// The beginning of a description, ended after a word.
fn brief(description: &str) -> String {
    let short = text::shorten(description, SHORT_DESCRIPTION);
    let Some(cut) = short.strip_suffix('…') else { return short };
    let end = cut.rfind(' ').filter(|&end| end > cut.len() / 2).unwrap_or(cut.len());
    format!("{} …", cut[..end].trim_end_matches([' ', ',', ':', ';']))
}

/// What a list alone would not show.
fn footer(view: &View) -> String {
    let of = |severity: Severity| view.problems.iter().filter(|problem| problem.severity() == severity).count();
    let (errors, warnings, shadowed) = (of(Severity::Error), of(Severity::Warning), view.catalog.shadowed().len());
    let mut parts = Vec::new();
    for (number, word) in [(errors, "error"), (warnings, "warning")] {
        if number > 0 {
            parts.push(count(number, word));
        }
    }
    if shadowed > 0 {
        parts.push(format!("{shadowed} shadowed"));
    }
    let mut out = String::new();
    if !parts.is_empty() {
        let _ = writeln!(out, "{}", paint(WARN, &format!("{}: prowess skills check tells more", parts.join(", "))));
    }
    let _ = writeln!(out, "{}", paint(DIM, "Why is one missing? prowess skills explain NAME"));
    out
}
