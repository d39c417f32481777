//! An account of every folder that is, or seems meant to be, a skill.

use std::fmt::Write as _;

use prowess_host::{Failure, View};
use prowess_skills::{Objection, ProblemKind};
use serde::Serialize;

use crate::output::{BAD, BOLD, DIM, GOOD, Report, WARN, count, paint, safe, short_path};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AccountShape {
    roots: Vec<RootShape>,
    candidates: Vec<Candidate>,
    totals: Totals,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RootShape {
    tier: &'static str,
    path: String,
    exists: bool,
    candidates: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Candidate {
    dir: String,
    tier: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    outcome: Outcome,
    reason: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Outcome {
    Visible,
    Cut,
    Hidden,
    Unavailable,
    Shadowed,
    OverLimit,
    Broken,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Totals {
    candidates: usize,
    visible: usize,
    cut: usize,
    hidden: usize,
    unavailable: usize,
    shadowed: usize,
    over_limit: usize,
    broken: usize,
}

/// Accounts for every candidate folder.
pub(in crate::skills) fn all(view: &View, json: bool) -> Result<Report, Failure> {
    let candidates = candidates(view);
    let of = |outcome: Outcome| candidates.iter().filter(|one| one.outcome == outcome).count();
    let totals = Totals {
        candidates: candidates.len(),
        visible: of(Outcome::Visible),
        cut: of(Outcome::Cut),
        hidden: of(Outcome::Hidden),
        unavailable: of(Outcome::Unavailable),
        shadowed: of(Outcome::Shadowed),
        over_limit: of(Outcome::OverLimit),
        broken: of(Outcome::Broken),
    };
    let roots = view.roots.iter().map(|root| {
        let path = root.path.display().to_string();
        let inside =
            |one: &&Candidate| one.tier == root.tier.word() && std::path::Path::new(&one.dir).starts_with(&root.path);
        let found = candidates.iter().filter(inside).count();
        RootShape { tier: root.tier.word(), exists: root.path.is_dir(), candidates: found, path }
    });
    let shape = AccountShape { roots: roots.collect(), totals, candidates };
    if json { Report::json(&shape) } else { Ok(Report::text(human(view, &shape)).wrapped()) }
}

fn candidates(view: &View) -> Vec<Candidate> {
    let gate = view.gate();
    let home = view.context.user_home();
    let snapshot = view.snapshot(&view.budget());
    let cut = &snapshot.prompt().cut.dropped;
    let mut all = Vec::new();
    for skill in view.catalog.skills() {
        let objections = gate.objections(skill);
        let (outcome, reason) = if !objections.is_empty() {
            let reasons: Vec<String> = objections.iter().map(Objection::to_string).collect();
            (Outcome::Unavailable, reasons.join("; "))
        } else if skill.invocation.by_model && cut.iter().any(|name| name == skill.name.as_str()) {
            (Outcome::Cut, "left out: the prompt is full".to_owned())
        } else if skill.invocation.by_model {
            (Outcome::Visible, "offered to the model".to_owned())
        } else {
            (Outcome::Hidden, "hidden from the model".to_owned())
        };
        all.push(Candidate {
            dir: skill.dir().display().to_string(),
            tier: skill.tier.word(),
            name: Some(skill.name.to_string()),
            outcome,
            reason,
        });
    }
    for shadowed in view.catalog.shadowed() {
        all.push(Candidate {
            dir: shadowed.skill.dir().display().to_string(),
            tier: shadowed.skill.tier.word(),
            name: Some(shadowed.skill.name.to_string()),
            outcome: Outcome::Shadowed,
            reason: format!("by {}", short_path(&shadowed.by, home)),
        });
    }
    for broken in view.catalog.broken() {
        all.push(Candidate {
            dir: broken.dir.display().to_string(),
            tier: broken.tier.word(),
            name: None,
            outcome: if broken.problem.kind == ProblemKind::OverLimit { Outcome::OverLimit } else { Outcome::Broken },
            reason: broken.problem.reason.clone(),
        });
    }
    all
}

fn human(view: &View, account: &AccountShape) -> String {
    let home = view.context.user_home();
    let mut out = format!("{}\n", paint(BOLD, "Looked in"));
    for root in &account.roots {
        let found = if root.exists { format!("{} found", root.candidates) } else { "does not exist".to_owned() };
        let _ = writeln!(out, "  {:<10} {} {}", root.tier, short_path(root.path.as_ref(), home), paint(DIM, &found));
    }
    let groups = [
        (Outcome::Visible, "Offered to the model", GOOD),
        (Outcome::Cut, "Cut from the prompt", WARN),
        (Outcome::Hidden, "Hidden from the model", GOOD),
        (Outcome::Unavailable, "Unavailable", WARN),
        (Outcome::Shadowed, "Shadowed", DIM),
        (Outcome::OverLimit, "Over a limit", WARN),
        (Outcome::Broken, "Broken", BAD),
    ];
    for (outcome, heading, style) in groups {
        let members: Vec<&Candidate> = account.candidates.iter().filter(|one| one.outcome == outcome).collect();
        if members.is_empty() {
            continue;
        }
        let _ = writeln!(out, "\n{}", paint(BOLD, &format!("{heading} ({})", members.len())));
        for one in members {
            let dir = short_path(one.dir.as_ref(), home);
            let _ =
                writeln!(out, "  {} {}", paint(style, one.name.as_deref().map_or("?", |name| name)), paint(DIM, &dir));
            if !matches!(outcome, Outcome::Visible | Outcome::Hidden) {
                let _ = writeln!(out, "    {}", safe(&one.reason));
            }
        }
    }
    let totals = &account.totals;
    let parts = [
        (totals.visible, "offered"),
        (totals.cut, "cut"),
        (totals.hidden, "hidden"),
        (totals.unavailable, "unavailable"),
        (totals.shadowed, "shadowed"),
        (totals.over_limit, "over a limit"),
        (totals.broken, "broken"),
    ];
    let parts: Vec<String> =
        parts.iter().filter(|(number, _)| *number > 0).map(|(number, what)| format!("{number} {what}")).collect();
    let _ = writeln!(out, "\n{} = {}", count(totals.candidates, "candidate"), parts.join(" + "));
    out
}
