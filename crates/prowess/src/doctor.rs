//! `prowess doctor`: what works on this machine, what does not, and what to type about it?

mod machine;
mod rules;

use std::fmt::Write as _;

use prowess_host::{Context, Failure, View};
use prowess_policy::ExecSettings;
use prowess_skills::{Problem, ProblemKind, Severity};
use serde_json::json;

use crate::cli::Globals;
use crate::output::{BAD, DIM, GOOD, Report, WARN, count, paint, safe, short_path};
use crate::wrap::{stdout_columns, wrap, wrap_message};

pub(crate) use rules::rules_here;

/// How one thing stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Works,
    /// It works, and the operator should know something.
    Warning,
    /// Something optional is not there.
    Missing,
    /// Something that is needed does not work.
    Broken,
}

/// One finding: what it is about, how it stands, and what to do.
struct Finding {
    part: &'static str,
    name: String,
    standing: Standing,
    what: String,
    advice: Option<String>,
}

impl Finding {
    fn new(part: &'static str, name: &str, standing: Standing, what: impl Into<String>) -> Self {
        Self { part, name: name.to_owned(), standing, what: what.into(), advice: None }
    }

    fn advice(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }
}

/// How many problems of the configuration are listed one by one.
const MAX_PROBLEMS: usize = 4;

pub(crate) fn run(globals: &Globals) -> Result<Report, Failure> {
    let findings = match globals.context() {
        Ok(context) => all(context, globals),
        // Nothing else can be looked at without it; the rest of the failure says what to do.
        Err(failure) => {
            let broken = Finding::new("configuration", "configuration", Standing::Broken, &failure.message);
            vec![failure.hints.into_iter().take(1).fold(broken, Finding::advice)]
        }
    };
    let is_broken = findings.iter().any(|finding| finding.standing == Standing::Broken);
    let report = if globals.json { Report::json(&shape(&findings, is_broken))? } else { Report::text(page(&findings)) };
    Ok(report.code(u8::from(is_broken)))
}

fn all(context: Context, globals: &Globals) -> Vec<Finding> {
    let settings = ExecSettings::read(&context.config.tree()["tools"]["exec"], &context.agent.exec);
    let (mut findings, host) = machine::model(&context);
    let home = context.user_home().to_owned();
    let config = context.locations.config_path.clone();
    let rules = rules::all(&context, &settings);
    findings.push(machine::state(&context));
    match View::load(context, None) {
        Ok(view) => {
            findings.extend(configuration(&view.problems, &config, &home));
            findings.extend(unused(&view));
            findings.push(skills(&view));
            findings.extend(unbound(&view));
        }
        Err(failure) => findings.push(Finding::new("skills", "skills", Standing::Broken, failure.sentence())),
    }
    findings.extend(machine::network(host.as_ref(), &settings));
    findings.extend(rules);
    findings.push(machine::gateway(globals));
    findings
}

/// Settings that are accepted and have no effect.
fn unused(view: &View) -> Option<Finding> {
    let unused = view.context.config.unused();
    let names: Vec<String> = unused.iter().take(MAX_PROBLEMS).map(|one| safe(&one.path.to_string())).collect();
    let more = if unused.len() > names.len() { ", …" } else { "" };
    let what = format!("{} without effect: {}{more}", count(unused.len(), "setting"), names.join(", "));
    let advice = "prowess skills check says what to do instead";
    (!unused.is_empty()).then(|| Finding::new("configuration", "configuration", Standing::Warning, what).advice(advice))
}

/// What the file says that cannot be used, or not as it was meant.
fn configuration(problems: &[Problem], config: &std::path::Path, home: &std::path::Path) -> Vec<Finding> {
    let about: Vec<&Problem> = problems.iter().filter(|problem| problem.kind == ProblemKind::Setting).collect();
    let file = short_path(config, home);
    if about.is_empty() {
        let what = if config.exists() {
            format!("{file}: no problems")
        } else {
            format!("{file} does not exist; defaults apply")
        };
        return vec![Finding::new("configuration", "configuration", Standing::Works, what)];
    }
    let mut findings: Vec<Finding> = about
        .iter()
        .take(MAX_PROBLEMS)
        .map(|problem| {
            Finding::new("configuration", "configuration", Standing::Warning, safe(&problem.reason))
                .advice(safe(&problem.fix))
        })
        .collect();
    if about.len() > MAX_PROBLEMS {
        let what = format!("{} in {file}", count(about.len() - MAX_PROBLEMS, "more problem"));
        findings.push(
            Finding::new("configuration", "configuration", Standing::Warning, what)
                .advice("prowess skills check --all"),
        );
    }
    findings
}

fn skills(view: &View) -> Finding {
    let gate = view.gate();
    let all = view.catalog.skills();
    let ready = all.iter().filter(|skill| gate.objections(skill).is_empty()).count();
    let of = |severity| {
        view.problems.iter().filter(|one| one.kind != ProblemKind::Setting && one.severity() == severity).count()
    };
    let (errors, warnings) = (of(Severity::Error), of(Severity::Warning));
    let what = format!("{ready} of {} ready", all.len());
    match (all.len(), errors, warnings) {
        (0, _, _) => {
            Finding::new("skills", "skills", Standing::Warning, "no skills found").advice("prowess skills explain")
        }
        (_, 0, 0) if ready > 0 => Finding::new("skills", "skills", Standing::Works, what),
        (_, 0, 0) => Finding::new("skills", "skills", Standing::Warning, what).advice("prowess skills list -v"),
        (_, errors, warnings) => {
            let parts = [(errors, "error"), (warnings, "warning")];
            let parts: Vec<String> =
                parts.iter().filter(|(number, _)| *number > 0).map(|(number, word)| count(*number, word)).collect();
            let what = format!("{what}; {}", parts.join(", "));
            Finding::new("skills", "skills", Standing::Warning, what).advice("prowess skills check")
        }
    }
}

/// Skills that have the key of an entry that belongs to another skill.
fn unbound(view: &View) -> Vec<Finding> {
    let unbound = view.problems.iter().filter(|problem| problem.kind == ProblemKind::Unbound);
    let home = view.context.user_home();
    let finding = |problem: &Problem| {
        let what = format!("{} {}", short_path(&problem.path, home), safe(&problem.reason));
        Finding::new("skills", "keys", Standing::Warning, what).advice(safe(&problem.fix))
    };
    unbound.take(MAX_PROBLEMS).map(finding).collect()
}

fn shape(findings: &[Finding], is_broken: bool) -> serde_json::Value {
    let line = |finding: &Finding| {
        let works = matches!(finding.standing, Standing::Works | Standing::Warning);
        let status = match finding.standing {
            Standing::Works => "ok",
            Standing::Warning => "warning",
            Standing::Missing => "missing",
            Standing::Broken => "broken",
        };
        json!({
            "part": finding.part, "name": finding.name, "works": works, "status": status, "what": finding.what,
            "advice": finding.advice,
        })
    };
    json!({ "ok": !is_broken, "findings": findings.iter().map(line).collect::<Vec<_>>() })
}

/// Each finding on a line, and below it what to do unless all is well.
fn page(findings: &[Finding]) -> String {
    let width = findings.iter().map(|finding| finding.name.chars().count()).max().unwrap_or_default();
    let indent = " ".repeat(width + 4);
    // What is not installed matters only where no sandbox works.
    let is_needless = |finding: &Finding| finding.part == "sandbox" && finding.standing == Standing::Missing;
    let is_sandboxed = findings.iter().all(|finding| finding.part != "sandbox" || finding.standing != Standing::Broken);
    let mut text = String::new();
    let mut last = "";
    for finding in findings.iter().filter(|finding| !(is_sandboxed && is_needless(finding))) {
        let mark = match finding.standing {
            Standing::Works => paint(GOOD, "✓"),
            Standing::Warning => paint(WARN, "!"),
            Standing::Missing => paint(DIM, "–"),
            Standing::Broken => paint(BAD, "✗"),
        };
        let name = if finding.name == last { "" } else { finding.name.as_str() };
        last = &finding.name;
        let line = format!("{mark} {name:width$}  {}", finding.what);
        let _ = writeln!(text, "{}", wrap(&line, stdout_columns(), &indent));
        if let Some(advice) = &finding.advice {
            let line = format!("    {}", paint(DIM, &format!("→ {advice}")));
            let _ = writeln!(text, "{}", wrap_message(&line, stdout_columns(), "      "));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_a_line_for_each_finding_and_says_what_to_type() {
        let findings = [
            Finding::new("model", "model", Standing::Works, "local/m"),
            Finding::new("configuration", "configuration", Standing::Warning, "one").advice("do this"),
            Finding::new("configuration", "configuration", Standing::Broken, "two"),
            Finding::new("gateway", "gateway", Standing::Missing, "not running"),
        ];
        let text = anstream::adapter::strip_str(&page(&findings)).to_string();
        assert_eq!(
            text,
            "✓ model          local/m\n! configuration  one\n    → do this\n✗                two\n– gateway        not running\n"
        );
        assert_eq!(shape(&findings, true)["findings"][3]["status"], "missing");
    }
}
