//! `skills check`: is anything broken, and does everything reach the model?

use std::cmp::Reverse;
use std::fmt::Write as _;

use prowess_host::status::{self, Flags, Lists};
use prowess_host::{Failure, View};
use prowess_skills::{Objection, Problem, Severity, Skill, Snapshot};
use serde::Serialize;

use super::{Standing, over_limit, title};
use crate::output::{self, BAD, BOLD, DIM, GOOD, Report, WARN, count, paint, safe, short_path};

/// How many lines a part of the report has at most, unless all are wanted.
const MAX_LINES: usize = 12;

/// How many names stand for a group.
const MAX_EXAMPLES: usize = 4;

/// How much is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    /// A page or two: what repeats is told once, with its number.
    Grouped,
    /// Everything.
    All,
}

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
    unused_settings: Vec<UnusedShape>,
}

/// A setting that is accepted and has no effect.
#[derive(Serialize)]
struct UnusedShape {
    path: String,
    message: String,
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

pub(super) fn run(view: &View, detail: Detail, json: bool) -> Result<Report, Failure> {
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
        Report::text(human(view, &judged, &snapshot, detail)).wrapped()
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
        unused_settings: unused(view).map(|(path, message)| UnusedShape { path, message }).collect(),
    }
}

/// Settings that are accepted and have no effect, each with what to do instead.
fn unused(view: &View) -> impl Iterator<Item = (String, String)> + '_ {
    view.context.config.unused().iter().map(|one| (one.path.to_string(), one.kind.to_string()))
}

/// Neither eligible, nor switched off, nor left out of the list: something is missing or cannot be read.
fn is_missing(one: &Judged<'_>) -> bool {
    !one.flags.eligible && !one.flags.disabled && !one.flags.blocked
}

fn human(view: &View, judged: &[Judged<'_>], snapshot: &Snapshot, detail: Detail) -> String {
    let mut out = format!("{}\n\n{}", paint(BOLD, "Skills"), totals(view, judged, snapshot));
    let _ = write!(out, "\n{}\n{}", paint(BOLD, "Prompt"), prompt(view, snapshot, detail));
    let missing: Vec<&Judged<'_>> = judged.iter().filter(|one| is_missing(one)).collect();
    if !missing.is_empty() {
        let _ = writeln!(out, "\n{}", paint(BOLD, "Missing something"));
        out.push_str(&lacking(&missing, detail));
    }
    out.push_str(&shadowed(view, detail));
    if !view.problems.is_empty() {
        let _ = writeln!(out, "\n{}", paint(BOLD, "Problems"));
        out.push_str(&problems(view, detail));
    }
    if !view.context.config.unused().is_empty() {
        let _ = writeln!(out, "\n{}", paint(BOLD, "Settings without effect"));
        for (path, message) in unused(view) {
            let _ = writeln!(out, "  {} {}", paint(WARN, &safe(&path)), safe(&message));
        }
    }
    out
}

fn totals(view: &View, judged: &[Judged<'_>], snapshot: &Snapshot) -> String {
    let number = |keep: fn(&Judged<'_>) -> bool| judged.iter().filter(|one| keep(one)).count();
    let ready = number(|one| one.objections.is_empty());
    let hidden = snapshot.skills().iter().filter(|skill| !skill.invocation.by_model).count();
    let rows = [
        ("ready", ready, GOOD),
        ("hidden from the model", hidden, DIM),
        ("disabled", number(|one| one.flags.disabled), DIM),
        ("not in skills.allowBundled", number(|one| one.flags.blocked && !one.flags.disabled), DIM),
        ("not in the agent's or channel's skill list", number(|one| one.flags.eligible && one.flags.filtered), DIM),
        ("missing something", number(is_missing), WARN),
        ("replaced by another skill of the same name", view.catalog.shadowed().len(), DIM),
        ("not loaded: over a limit", over_limit(view), WARN),
        ("broken", view.catalog.broken().len() - over_limit(view), BAD),
    ];
    let shown = rows.iter().filter(|(label, number, _)| *number > 0 || *label == "ready");
    shown.fold(String::new(), |mut out, (label, number, style)| {
        let _ = writeln!(out, "  {} {label}", paint(*style, &format!("{number:>5}")));
        out
    })
}

/// Skills that lack something, one line each; when there are many, one line for each reason.
fn lacking(missing: &[&Judged<'_>], detail: Detail) -> String {
    let reasons =
        |one: &Judged<'_>| safe(&one.objections.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "));
    let mut out = String::new();
    if detail == Detail::All || missing.len() <= MAX_LINES {
        for one in missing {
            let standing = Standing::of(&one.objections).painted();
            let _ = writeln!(out, "  {standing} {}: {}", title(one.skill), reasons(one));
        }
        return out;
    }
    let groups = grouped(missing.iter().map(|one| (reasons(one), one.skill.name.to_string())));
    for (reason, names) in groups.iter().take(MAX_LINES) {
        let _ = writeln!(out, "  {:>5} {reason}: {}", names.len(), examples(names));
    }
    more(&mut out, groups.len(), "reason");
    out
}

fn shadowed(view: &View, detail: Detail) -> String {
    let (home, all) = (view.context.user_home(), view.catalog.shadowed());
    if all.is_empty() {
        return String::new();
    }
    let mut out = format!("\n{}\n", paint(BOLD, "Replaced by another skill of the same name"));
    let shown = if detail == Detail::All { all.len() } else { MAX_LINES / 2 };
    for shadowed in all.iter().take(shown) {
        let (hidden, by) = (short_path(&shadowed.skill.file, home), short_path(&shadowed.by, home));
        let _ = writeln!(out, "  {} {hidden}\n    {} {by}", shadowed.skill.name, paint(DIM, "by"));
    }
    if all.len() > shown {
        let _ = writeln!(out, "  {}", paint(DIM, &format!("… and {} more; --all lists them", all.len() - shown)));
    }
    out
}

/// Problems, the worst first; those that differ only in names and numbers are one.
fn problems(view: &View, detail: Detail) -> String {
    let home = view.context.user_home();
    let mut problems: Vec<&Problem> = view.problems.iter().collect();
    problems.sort_by_key(|problem| Reverse(problem.severity()));
    let mut out = String::new();
    if detail == Detail::All {
        for problem in problems {
            output::problem(&mut out, problem, home);
        }
        return out;
    }
    let keyed = problems.iter().map(|problem| ((Reverse(problem.severity()), pattern(&problem.reason)), *problem));
    let mut groups = grouped(keyed);
    groups.sort_by_key(|((severity, _), members)| (*severity, Reverse(members.len())));
    for (_, members) in groups.iter().take(MAX_LINES) {
        output::problem(&mut out, members[0], home);
        if members.len() > 1 {
            let names: Vec<String> = members[1..].iter().map(|problem| short_path(&problem.path, home)).collect();
            let line = format!("    and {} more: {}", members.len() - 1, examples(&names));
            let _ = writeln!(out, "{}", paint(DIM, &line));
        }
    }
    more(&mut out, groups.len(), "kind of problem");
    out
}

/// Members by key, the largest group first.
fn grouped<K: PartialEq, T>(items: impl Iterator<Item = (K, T)>) -> Vec<(K, Vec<T>)> {
    let mut groups: Vec<(K, Vec<T>)> = Vec::new();
    for (key, item) in items {
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, members)) => members.push(item),
            None => groups.push((key, vec![item])),
        }
    }
    groups.sort_by_key(|(_, members)| Reverse(members.len()));
    groups
}

/// A reason without what differs from skill to skill: what stands in quotes, and numbers.
fn pattern(reason: &str) -> String {
    let mut out = String::new();
    let mut quote = None;
    for c in reason.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if matches!(c, '`' | '"') => quote = Some(c),
            None if c.is_ascii_digit() => {
                if !out.ends_with('#') {
                    out.push('#');
                }
            }
            None => out.push(c),
        }
    }
    out
}

/// The first few of some names.
fn examples(names: &[String]) -> String {
    let shown: Vec<&str> = names.iter().take(MAX_EXAMPLES).map(String::as_str).collect();
    let rest = names.len().saturating_sub(MAX_EXAMPLES);
    let more = if rest > 0 { format!(", … ({rest} more)") } else { String::new() };
    format!("{}{more}", shown.join(", "))
}

fn more(out: &mut String, groups: usize, word: &str) {
    if groups > MAX_LINES {
        let text = format!("… and {}; --all lists everything", count(groups - MAX_LINES, &format!("other {word}")));
        let _ = writeln!(out, "  {}", paint(DIM, &text));
    }
}

fn prompt(view: &View, snapshot: &Snapshot, detail: Detail) -> String {
    let (prompt, budget) = (snapshot.prompt(), view.budget());
    let visible = snapshot.visible().count();
    let mut out = format!(
        "  {} of {} characters, about {} tokens, {} (at most {})\n",
        prompt.chars(),
        budget.chars,
        prompt.tokens(),
        count(visible - prompt.cut.dropped.len(), "skill"),
        budget.skills,
    );
    let cuts = [
        ("with a shortened description", &prompt.cut.shortened),
        ("with the name only", &prompt.cut.name_only),
        ("left out", &prompt.cut.dropped),
    ];
    for (label, names) in cuts.into_iter().filter(|(_, names)| !names.is_empty()) {
        let listed = if detail == Detail::All { names.join(", ") } else { examples(names) };
        let _ = writeln!(out, "  {} {label}: {listed}", paint(WARN, &names.len().to_string()));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_that_differ_in_names_are_one() {
        let reasons = ["`jq` at line 3 is odd", "`rg` at line 12 is odd", "another"];
        let groups = grouped(reasons.into_iter().map(|reason| (pattern(reason), reason)));
        assert_eq!(groups.iter().map(|(_, members)| members.len()).collect::<Vec<_>>(), [2, 1]);
    }

    #[test]
    fn many_names_are_a_few_and_a_number() {
        let names: Vec<String> = (0..7).map(|number| number.to_string()).collect();
        assert_eq!(examples(&names), "0, 1, 2, 3, … (3 more)");
        assert_eq!(examples(&names[..2]), "0, 1");
    }
}
