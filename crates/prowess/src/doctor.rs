//! `prowess doctor`: what works on this machine, what does not, and why?

use std::fmt::Write as _;

use prowess_exec::exec::find_shell;
use prowess_exec::exec_tool::ExecCall;
use prowess_exec::sandbox::{Kind, Sandbox, Survey};
use prowess_exec::store::ApprovalsFile;
use prowess_exec::{Setting, exec as hands};
use prowess_host::{Context, Failure};
use prowess_policy::ExecSettings;
use prowess_policy::posture::{Ask, Posture, Security};
use prowess_policy::safe_bin::SafeBins;
use serde_json::json;

use crate::cli::Globals;
use crate::output::{BAD, BOLD, DIM, GOOD, Report, WARN, paint};

/// How one thing stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Works,
    /// It works, and the operator should know something.
    Mind,
    /// Something optional is not there.
    Missing,
    /// Commands cannot run because of it.
    Broken,
}

struct Line {
    part: &'static str,
    name: String,
    standing: Standing,
    what: String,
    advice: Option<String>,
}

pub(crate) fn run(globals: &Globals) -> Result<Report, Failure> {
    let context = globals.context()?;
    let settings = ExecSettings::read(&context.config.tree()["tools"]["exec"], &context.agent.exec);
    let mut lines = sandboxes(&settings);
    lines.extend(rules(&context, &settings));
    lines.push(shell());
    let is_broken = lines.iter().any(|line| line.standing == Standing::Broken);
    let report = if globals.json { Report::json(&shape(&lines, is_broken))? } else { Report::text(text(&lines)) };
    Ok(report.code(u8::from(is_broken)))
}

fn sandboxes(settings: &ExecSettings) -> Vec<Line> {
    let survey = Survey::default();
    let mut lines: Vec<Line> = survey
        .lines()
        .into_iter()
        .map(|(name, finding)| Line {
            part: "sandbox",
            name: name.to_owned(),
            standing: if finding.works { Standing::Works } else { Standing::Missing },
            what: finding.what.clone(),
            advice: finding.advice.clone(),
        })
        .collect();
    let chosen = hands::choice(&settings.sandbox)
        .and_then(|choice| Sandbox::choose(&choice, &survey).map_err(|why| why.to_string()));
    let (standing, what, advice) = match chosen {
        Ok(Kind::None) => (
            Standing::Mind,
            "commands run BARE: tools.exec.sandbox.kind is off".to_owned(),
            Some("set it to auto unless you mean it".to_owned()),
        ),
        Ok(kind) => (Standing::Works, format!("commands run under {kind}"), None),
        Err(why) => (Standing::Broken, why, Some("until then every command is refused".to_owned())),
    };
    lines.insert(0, Line { part: "sandbox", name: "chosen".to_owned(), standing, what, advice });
    lines
}

fn rules(context: &Context, settings: &ExecSettings) -> Vec<Line> {
    let file = ApprovalsFile::in_state_dir(&context.locations.state_dir);
    let line = |name: &str, standing, what: String, advice: Option<&str>| Line {
        part: "rules",
        name: name.to_owned(),
        standing,
        what,
        advice: advice.map(str::to_owned),
    };
    let approvals = match file.load() {
        Ok(approvals) => approvals,
        Err(error) => {
            let advice = "mend the file or move it away; until then every command is refused";
            return vec![line("approvals", Standing::Broken, error.to_string(), Some(advice))];
        }
    };
    let setting = Setting {
        agent: context.agent.id.to_string(),
        session: "doctor".to_owned(),
        workspace: context.workspace.clone(),
        home: context.user_home().to_owned(),
        settings: settings.clone(),
        host_env: Vec::new(),
        skills: Vec::new(),
        readable: Vec::new(),
        hidden: Vec::new(),
        skill_bins: Vec::new(),
    };
    let rules = hands::rules(&ExecCall::default(), &setting, &approvals);
    let count = rules.allowlist.len();
    let entries = if count == 1 { "1 entry".to_owned() } else { format!("{count} entries") };
    let Posture { security, ask, .. } = rules.posture;
    let posture = match (security, ask) {
        (Security::Deny, _) => line(
            "posture",
            Standing::Broken,
            "no command may run (security deny)".to_owned(),
            Some("set security to allowlist in tools.exec and exec-approvals.json"),
        ),
        (Security::Full, Ask::Off | Ask::OnMiss) => line(
            "posture",
            Standing::Mind,
            "EVERY command runs without asking (security full)".to_owned(),
            Some("set tools.exec.security to allowlist unless you mean it"),
        ),
        (_, Ask::Always) => line("posture", Standing::Works, "every command is asked about".to_owned(), None),
        (Security::Allowlist, Ask::OnMiss) => {
            line("posture", Standing::Works, "what no rule covers is asked about".to_owned(), None)
        }
        (Security::Allowlist, Ask::Off) => {
            line("posture", Standing::Works, "what no rule covers is refused".to_owned(), None)
        }
    };
    let (_, warnings) =
        SafeBins::new(settings.safe_bins.as_deref(), &settings.safe_bin_profiles, &settings.safe_bin_trusted_dirs);
    let warned = warnings.iter().map(|one| line("safe bins", Standing::Mind, one.to_string(), None));
    let mut lines =
        vec![line("approvals", Standing::Works, format!("{entries} in {}", file.path().display()), None), posture];
    lines.extend(warned);
    lines
}

fn shell() -> Line {
    let shell = find_shell();
    let (standing, advice) = match shell.dialect {
        prowess_policy::Dialect::Bash => (Standing::Works, None),
        prowess_policy::Dialect::Posix => {
            (Standing::Mind, Some("install bash: what only bash understands is asked about here".to_owned()))
        }
    };
    Line { part: "rules", name: "shell".to_owned(), standing, what: shell.path.display().to_string(), advice }
}

fn shape(lines: &[Line], is_broken: bool) -> serde_json::Value {
    let line = |line: &Line| {
        let works = matches!(line.standing, Standing::Works | Standing::Mind);
        json!({ "part": line.part, "name": line.name, "works": works, "what": line.what, "advice": line.advice })
    };
    json!({ "ok": !is_broken, "findings": lines.iter().map(line).collect::<Vec<_>>() })
}

fn text(lines: &[Line]) -> String {
    let width = lines.iter().map(|line| line.name.len()).max().unwrap_or_default();
    let mut text = String::new();
    let mut part = "";
    for line in lines {
        if line.part != part {
            part = line.part;
            let title = if part == "sandbox" { "What keeps commands in their place" } else { "What may run" };
            let _ = writeln!(text, "{}{}", if text.is_empty() { "" } else { "\n" }, paint(BOLD, title));
        }
        let mark = match line.standing {
            Standing::Works => paint(GOOD, "✓"),
            Standing::Mind => paint(WARN, "!"),
            Standing::Missing => paint(DIM, "–"),
            Standing::Broken => paint(BAD, "✗"),
        };
        let _ = writeln!(text, "  {mark} {:width$}  {}", line.name, line.what);
        if let Some(advice) = &line.advice {
            let _ = writeln!(text, "    {:width$}  {}", "", paint(DIM, advice));
        }
    }
    text
}
