//! `skills list`: which skills are there, and which are ready?

use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};

use prowess_host::status::{self, Lists, Row};
use prowess_host::{Failure, View};
use prowess_skills::{Objection, Severity, Skill, text};
use serde::Serialize;

use super::{Standing, fits, over_limit, title};
use crate::output::{BOLD, DIM, Report, WARN, count, paint, safe, table};
use crate::suggest::did_you_mean;

/// How much of a description a row shows.
const SHORT_DESCRIPTION: usize = 120;

#[derive(Debug, Clone, Default)]
pub(super) struct Options {
    /// What to look for; empty means everything.
    pub(super) words: Vec<String>,
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

pub(super) fn run(view: &View, options: &Options, json: bool) -> Result<Report, Failure> {
    let gate = view.gate();
    let fitting = view.catalog.skills().iter().filter(|skill| {
        fits(&options.words, &[skill.name.as_str(), skill.key(), &skill.description, skill.tier.word()])
    });
    let judged = fitting.map(|skill| (skill.as_ref(), gate.objections(skill)));
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

/// A line around the table. A pipe gets the table alone, and the person who reads stderr the rest.
fn aside(out: &mut String, line: &str) {
    if std::io::stdout().is_terminal() {
        let _ = writeln!(out, "{line}");
    } else {
        // Nothing is left to do when stderr has gone away.
        let _ = writeln!(anstream::stderr(), "{line}");
    }
}

fn human(view: &View, options: &Options, rows: &[(&Skill, Vec<Objection>)]) -> String {
    if rows.is_empty() {
        return nothing(view, options);
    }
    let ready = rows.iter().filter(|(_, objections)| objections.is_empty()).count();
    let mut out = String::new();
    aside(&mut out, &paint(BOLD, &format!("Skills ({ready}/{} ready)", rows.len())));
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

/// What to say instead of an empty table.
fn nothing(view: &View, options: &Options) -> String {
    let text = match (options.words.as_slice(), options.eligible) {
        ([], true) => "No skill is ready. To see what each one needs: prowess skills list -v".to_owned(),
        ([], false) => "No skills found. To see where prowess looked: prowess skills explain".to_owned(),
        (words, _) => {
            let names = view.catalog.skills().iter().map(|skill| skill.name.as_str());
            let near = did_you_mean(&words.join(" "), names).map_or_else(String::new, |near| format!("; {near}"));
            format!("No skill matches `{}`{near}", safe(&words.join(" ")))
        }
    };
    format!("{text}\n{}", footer(view))
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
    let left_out = over_limit(view);
    if left_out > 0 {
        let text = format!("{} not listed: over a limit in skills.limits", count(left_out, "more skill"));
        aside(&mut out, &paint(WARN, &text));
    }
    let unseen = view.snapshot(&view.budget()).prompt().cut.dropped.len();
    if unseen > 0 {
        let text = format!("the model is not told about {}: the prompt is full", count(unseen, "skill"));
        aside(&mut out, &paint(WARN, &text));
    }
    if !parts.is_empty() || left_out + unseen > 0 {
        let what = if parts.is_empty() { String::new() } else { format!("{}; ", parts.join(", ")) };
        aside(&mut out, &paint(WARN, &format!("{what}run prowess skills check for details")));
    }
    aside(&mut out, &paint(DIM, "To see why a skill is not ready: prowess skills explain NAME"));
    out
}
