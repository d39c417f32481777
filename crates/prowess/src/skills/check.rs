//! `skills check`: is anything broken, and does everything reach the model?

use std::fmt::Write as _;

use prowess_host::status::{self, Flags, Lists};
use prowess_host::{Failure, View};
use prowess_skills::{Objection, ProblemKind, Severity, Skill, Snapshot};
use serde::Serialize;

use super::{Standing, title};
use crate::output::{self, BAD, BOLD, DIM, GOOD, Report, WARN, count, paint, safe, short_path};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CheckShape {
    agent_id: String,
    workspace_dir: String,
    managed_skills_dir: String,
    summary: Summary,
    eligible: Vec<String>,
    model_visible: Vec<String>,
    command_visible: Vec<String>,
    disabled: Vec<String>,
    blocked: Vec<String>,
    agent_filtered: Vec<String>,
    not_injected: Vec<NotInjected>,
    missing_requirements: Vec<MissingShape>,
    prompt: status::Measures,
    shadowed: Vec<status::ShadowedShape>,
    problems: Vec<status::ProblemShape>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary {
    total: usize,
    eligible: usize,
    model_visible: usize,
    command_visible: usize,
    disabled: usize,
    blocked: usize,
    agent_filtered: usize,
    not_injected: usize,
    missing_requirements: usize,
    shadowed: usize,
    over_limit: usize,
    broken: usize,
    errors: usize,
    warnings: usize,
}

#[derive(Serialize)]
struct NotInjected {
    name: String,
    reason: &'static str,
}

#[derive(Serialize)]
struct MissingShape {
    name: String,
    missing: Lists,
    install: Vec<status::InstallShape>,
    objections: Vec<status::ObjectionShape>,
}

/// Every skill with its objections and the peer's flags.
struct Judged<'a> {
    skill: &'a Skill,
    objections: Vec<Objection>,
    flags: Flags,
}

pub(super) fn run(view: &View, json: bool) -> Result<Report, Failure> {
    let gate = view.gate();
    let judged: Vec<Judged<'_>> = view
        .catalog
        .skills()
        .iter()
        .map(|skill| {
            let objections = gate.objections(skill);
            Judged { skill, flags: Flags::of(&objections), objections }
        })
        .collect();
    let snapshot = view.snapshot(&view.budget());
    let broken = view.problems.iter().any(|problem| problem.severity() == Severity::Error);
    let report = if json {
        Report::json(&shape(view, &judged, &snapshot))?
    } else {
        Report::text(human(view, &judged, &snapshot))
    };
    Ok(report.code(u8::from(broken)))
}

fn shape(view: &View, judged: &[Judged<'_>], snapshot: &Snapshot) -> CheckShape {
    let names = |keep: &dyn Fn(&Judged<'_>) -> bool| -> Vec<String> {
        judged.iter().filter(|one| keep(one)).map(|one| one.skill.name.to_string()).collect()
    };
    let missing: Vec<MissingShape> = judged
        .iter()
        .filter(|one| is_missing(one))
        .map(|one| MissingShape {
            name: one.skill.name.to_string(),
            missing: Lists::missing(&one.objections),
            install: status::install(view, one.skill),
            objections: status::objections(&one.objections),
        })
        .collect();
    let eligible = names(&|one| one.flags.eligible);
    let disabled = names(&|one| one.flags.disabled);
    let blocked = names(&|one| one.flags.blocked && !one.flags.disabled);
    let agent_filtered = names(&|one| one.flags.filtered);
    let model_visible: Vec<String> = snapshot.visible().map(|skill| skill.name.to_string()).collect();
    let hidden = snapshot.skills().iter().filter(|skill| !skill.invocation.by_model);
    let not_injected: Vec<NotInjected> =
        hidden.map(|skill| NotInjected { name: skill.name.to_string(), reason: "disable-model-invocation" }).collect();
    let commands = snapshot.skills().iter().filter(|skill| skill.invocation.by_user);
    let command_visible: Vec<String> = commands.map(|skill| skill.name.to_string()).collect();
    let of = |severity: Severity| view.problems.iter().filter(|problem| problem.severity() == severity).count();
    CheckShape {
        agent_id: view.context.agent.id.to_string(),
        workspace_dir: view.context.workspace.display().to_string(),
        managed_skills_dir: view.context.locations.managed_skills_dir.display().to_string(),
        summary: Summary {
            total: judged.len(),
            eligible: eligible.len(),
            model_visible: model_visible.len(),
            command_visible: command_visible.len(),
            disabled: disabled.len(),
            blocked: blocked.len(),
            agent_filtered: agent_filtered.len(),
            not_injected: not_injected.len(),
            missing_requirements: missing.len(),
            shadowed: view.catalog.shadowed().len(),
            over_limit: over_limit(view),
            broken: view.catalog.broken().len() - over_limit(view),
            errors: of(Severity::Error),
            warnings: of(Severity::Warning),
        },
        eligible,
        model_visible,
        command_visible,
        disabled,
        blocked,
        agent_filtered,
        not_injected,
        missing_requirements: missing,
        prompt: status::Measures::new(snapshot, &view.budget()),
        shadowed: status::shadowed(view),
        problems: status::problems(&view.problems),
    }
}

/// Skills that were not loaded because there are too many.
fn over_limit(view: &View) -> usize {
    view.catalog.broken().iter().filter(|broken| broken.problem.kind == ProblemKind::OverLimit).count()
}

/// Neither eligible, nor switched off, nor left out of the list: something is missing or cannot be read.
fn is_missing(one: &Judged<'_>) -> bool {
    !one.flags.eligible && !one.flags.disabled && !one.flags.blocked
}

fn human(view: &View, judged: &[Judged<'_>], snapshot: &Snapshot) -> String {
    let home = view.context.user_home();
    let mut out = format!("{}\n\n", paint(BOLD, "Skills"));
    let number = |keep: fn(&Judged<'_>) -> bool| judged.iter().filter(|one| keep(one)).count();
    let ready = number(|one| one.objections.is_empty());
    let hidden = snapshot.skills().iter().filter(|skill| !skill.invocation.by_model).count();
    let rows = [
        ("ready", ready, GOOD),
        ("hidden from the model", hidden, DIM),
        ("switched off", number(|one| one.flags.disabled), DIM),
        ("not in skills.allowBundled", number(|one| one.flags.blocked && !one.flags.disabled), DIM),
        ("not in a skill list", number(|one| one.flags.eligible && one.flags.filtered), DIM),
        ("missing something", number(is_missing), WARN),
        ("shadowed", view.catalog.shadowed().len(), DIM),
        ("over a limit", over_limit(view), WARN),
        ("broken", view.catalog.broken().len() - over_limit(view), BAD),
    ];
    for (label, number, style) in rows.iter().filter(|(label, number, _)| *number > 0 || *label == "ready") {
        let _ = writeln!(out, "  {} {label}", paint(*style, &format!("{number:>5}")));
    }
    let _ = write!(out, "\n{}\n{}", paint(BOLD, "Prompt"), prompt(view, snapshot));
    let missing: Vec<&Judged<'_>> = judged.iter().filter(|one| is_missing(one)).collect();
    if !missing.is_empty() {
        let _ = writeln!(out, "\n{}", paint(BOLD, "Missing something"));
        for one in missing {
            let why: Vec<String> = one.objections.iter().map(ToString::to_string).collect();
            let _ = writeln!(
                out,
                "  {} {}: {}",
                Standing::of(&one.objections).painted(),
                title(one.skill),
                safe(&why.join("; "))
            );
        }
    }
    if !view.catalog.shadowed().is_empty() {
        let _ = writeln!(out, "\n{}", paint(BOLD, "Shadowed"));
        for shadowed in view.catalog.shadowed() {
            let (hidden, by) = (short_path(&shadowed.skill.file, home), short_path(&shadowed.by, home));
            let _ = writeln!(out, "  {} {hidden}\n    {} {by}", shadowed.skill.name, paint(DIM, "by"));
        }
    }
    if !view.problems.is_empty() {
        let _ = writeln!(out, "\n{}", paint(BOLD, "Problems"));
        let mut problems: Vec<_> = view.problems.iter().collect();
        problems.sort_by_key(|problem| std::cmp::Reverse(problem.severity()));
        for problem in problems {
            output::problem(&mut out, problem, home);
        }
    }
    out
}

fn prompt(view: &View, snapshot: &Snapshot) -> String {
    let (prompt, budget) = (snapshot.prompt(), view.budget());
    let visible = snapshot.visible().count();
    let mut out = format!(
        "  {} of {} characters, about {} tokens, {} of at most {}\n",
        prompt.chars(),
        budget.chars,
        prompt.tokens(),
        count(visible - prompt.cut.dropped.len(), "skill"),
        budget.skills,
    );
    let cuts = [
        ("description shortened", &prompt.cut.shortened),
        ("shown by name only", &prompt.cut.name_only),
        ("not shown", &prompt.cut.dropped),
    ];
    for (label, names) in cuts.into_iter().filter(|(_, names)| !names.is_empty()) {
        let _ = writeln!(out, "  {} {label}: {}", paint(WARN, &names.len().to_string()), names.join(", "));
    }
    out
}
