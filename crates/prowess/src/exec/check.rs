//! `prowess exec check`: may this command run, and why?

use std::fmt::Write as _;

use prowess_exec::Case;
use prowess_host::Failure;
use prowess_policy::{Cover, Judged, Judgment, Objection, Verdict, shown};
use serde_json::{Value, json};

use crate::output::{BAD, BOLD, DIM, GOOD, Report, WARN, paint};

pub(crate) fn report(case: &Case, json: bool) -> Result<Report, Failure> {
    let (judgment, remedies) = (&case.judgment, case.remedies());
    if json { Report::json(&shape(judgment, &remedies)) } else { Ok(Report::text(text(judgment, &remedies))) }
}

/// The judgment for machines.
fn shape(judgment: &Judgment, remedies: &[String]) -> Value {
    let grants = judgment.grants();
    json!({
        "verdict": judgment.verdict(),
        "command": judgment.request().binding.command,
        "cwd": judgment.request().binding.cwd.path,
        "agent": judgment.request().binding.agent,
        "posture": judgment.posture(),
        "wants": judgment.wants(),
        "segments": judgment.segments().iter().map(segment).collect::<Vec<_>>(),
        "objections": judgment.objections().iter().map(objection).collect::<Vec<_>>(),
        "remedies": remedies,
        "always": match &grants {
            Ok(grants) => json!({ "available": judgment.verdict() == Verdict::Ask, "stores": grants }),
            Err(why) => json!({ "available": false, "reason": why.to_string() }),
        },
    })
}

fn segment(judged: &Judged) -> Value {
    json!({
        "text": judged.text,
        "span": judged.span,
        "joint": judged.joint,
        "wrappers": judged.wrappers,
        "argv": judged.argv,
        "path": judged.program.as_ref().map(|program| &program.path),
        "realPath": judged.program.as_ref().map(|program| &program.real),
        "starts": judged.starts.iter().map(|program| &program.path).collect::<Vec<_>>(),
        "verdict": if judged.standing.is_ok() { "allow" } else { "ask" },
        "cover": judged.standing.as_ref().ok(),
        "objections": judged.standing.as_ref().err().into_iter().flatten().map(objection).collect::<Vec<_>>(),
    })
}

fn objection(objection: &Objection) -> Value {
    json!({ "code": objection.code(), "message": objection.to_string(), "span": objection.span() })
}

fn text(judgment: &Judgment, remedies: &[String]) -> String {
    let (style, word, meaning) = match judgment.verdict() {
        Verdict::Allow => (GOOD, "allow", "it would run without asking"),
        Verdict::Ask => (WARN, "ask", "it needs your approval"),
        Verdict::Deny => (BAD, "deny", "it would be refused"),
    };
    let mut text = format!("{}  {}\n", paint(style, word), paint(DIM, meaning));
    for objection in judgment.objections() {
        let _ = writeln!(text, "  {} {}", paint(WARN, "!"), shown(&objection.to_string()));
    }
    if judgment.verdict() == Verdict::Allow && judgment.segments().iter().any(|segment| segment.standing.is_err()) {
        let _ = writeln!(text, "  {} every command may run: security is full", paint(WARN, "!"));
    }
    for segment in judgment.segments() {
        let _ = writeln!(text, "\n  {}", paint(BOLD, &shown(&segment.text).to_string()));
        for program in &segment.starts {
            let _ = writeln!(text, "    starts   {}", shown(&program.path.to_string_lossy()));
        }
        match &segment.standing {
            Ok(cover) => {
                let _ = writeln!(text, "    {}  {}", paint(GOOD, "allowed"), covered(cover));
            }
            Err(objections) => {
                for objection in objections {
                    let _ = writeln!(text, "    {}  {}", paint(WARN, "because"), shown(&objection.to_string()));
                }
            }
        }
    }
    if !remedies.is_empty() {
        text.push_str("\nTo change this:\n");
    }
    for remedy in remedies {
        let _ = writeln!(text, "  {}", shown(remedy));
    }
    text
}

fn covered(cover: &Cover) -> String {
    match cover {
        Cover::Allowlist { pattern, .. } => format!("by the rule {}", shown(pattern)),
        Cover::SafeBin => "as a safe program that only filters its input".to_owned(),
        Cover::SkillBin => "as a program that a skill needs".to_owned(),
        Cover::Builtin => "as a harmless shell builtin".to_owned(),
        Cover::Sandbox => "inside the sandbox".to_owned(),
    }
}
