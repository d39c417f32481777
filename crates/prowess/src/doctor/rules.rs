//! The rules for commands: which sandbox, which approvals, which shell?

use prowess_exec::exec::find_shell;
use prowess_exec::exec_tool::ExecCall;
use prowess_exec::leases::Leases;
use prowess_exec::rules::rules;
use prowess_exec::sandbox::{Kind, Sandbox, Survey};
use prowess_exec::store::ApprovalsFile;
use prowess_exec::{Setting, exec as hands};
use prowess_host::Context;
use prowess_policy::approvals::Approvals;
use prowess_policy::posture::{Ask, Posture, Security};
use prowess_policy::safe_bin::SafeBins;
use prowess_policy::{ExecSettings, Rules};

use super::{Finding, Standing};
use crate::output::short_path;

pub(super) fn all(context: &Context, settings: &ExecSettings) -> Vec<Finding> {
    let mut findings = sandboxes(settings);
    findings.extend(approvals(context, settings));
    findings.push(shell());
    findings
}

fn sandboxes(settings: &ExecSettings) -> Vec<Finding> {
    let survey = Survey::default();
    let chosen = hands::choice(&settings.sandbox)
        .and_then(|choice| Sandbox::choose(&choice, &survey).map_err(|why| why.to_string()));
    let first = match &chosen {
        Ok(Kind::None) => {
            Finding::new("sandbox", "sandbox", Standing::Warning, "off: commands can do everything that you can")
                .advice("prowess config set tools.exec.sandbox.kind auto")
        }
        Ok(kind) => Finding::new("sandbox", "sandbox", Standing::Works, format!("commands run under {kind}")),
        Err(why) => Finding::new("sandbox", "sandbox", Standing::Broken, why.clone())
            .advice("every command is refused until this works"),
    };
    let works = chosen.is_ok();
    // What is not used is told only where something is missing.
    let others = survey.lines().into_iter().map(|(name, finding)| {
        let standing = if finding.works { Standing::Works } else { Standing::Missing };
        let line = Finding::new("sandbox", name, standing, finding.what.clone());
        finding.advice.iter().filter(|_| !works).fold(line, |line, advice| line.advice(advice.clone()))
    });
    std::iter::once(first).chain(others).collect()
}

fn approvals(context: &Context, settings: &ExecSettings) -> Vec<Finding> {
    let file = ApprovalsFile::in_state_dir(&context.locations.state_dir);
    let finding = |name: &str, standing, what: String| Finding::new("rules", name, standing, what);
    let approvals = match file.load() {
        Ok(approvals) => approvals,
        Err(error) => {
            let advice = "fix the file or move it elsewhere; until then every command is refused";
            return vec![finding("approvals", Standing::Broken, error.to_string()).advice(advice)];
        }
    };
    if let Err(error) = Leases::in_state_dir(&context.locations.state_dir).load() {
        let advice = "fix the file or move it elsewhere; until then every command is refused";
        return vec![finding("leases", Standing::Broken, error.to_string()).advice(advice)];
    }
    let rules = rules_here(context, settings, &approvals);
    let count = rules.allowlist.len();
    let entries = match count {
        0 => "no rules yet".to_owned(),
        1 => "1 rule".to_owned(),
        _ => format!("{count} rules"),
    };
    let path = short_path(file.path(), context.user_home());
    let Posture { security, ask, .. } = rules.posture;
    let decided = match (security, ask) {
        (Security::Deny, _) => {
            finding("commands", Standing::Broken, "every command is refused (security is deny)".to_owned())
                .advice("set `security` to contained in tools.exec and in exec-approvals.json")
        }
        (Security::Full, Ask::Off | Ask::OnMiss) => {
            finding("commands", Standing::Warning, "EVERY command runs without asking (security is full)".to_owned())
                .advice("prowess config set tools.exec.security contained")
        }
        (_, Ask::Always) => finding("commands", Standing::Works, "every command needs your approval".to_owned()),
        (Security::Contained, _) => finding(
            "commands",
            Standing::Works,
            "commands run in the sandbox without asking; what leaves it needs your approval".to_owned(),
        ),
        (Security::Allowlist, Ask::OnMiss) => {
            finding("commands", Standing::Works, "commands that no rule covers need your approval".to_owned())
        }
        (Security::Allowlist, Ask::Off) => {
            finding("commands", Standing::Works, "commands that no rule covers are refused".to_owned())
        }
    };
    let (_, warnings) =
        SafeBins::new(settings.safe_bins.as_deref(), &settings.safe_bin_profiles, &settings.safe_bin_trusted_dirs);
    let warned = warnings.iter().map(|one| finding("safe bins", Standing::Warning, one.to_string()));
    let mut findings = vec![finding("approvals", Standing::Works, format!("{entries} in {path}")), decided];
    findings.extend(warned);
    findings
}

/// The rules that commands of the agent are judged by on this machine.
pub(crate) fn rules_here(context: &Context, settings: &ExecSettings, approvals: &Approvals) -> Rules {
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
    let survey = Survey::default();
    let kind = hands::choice(&settings.sandbox).ok().and_then(|choice| Sandbox::choose(&choice, &survey).ok());
    let can_contain = kind.is_some_and(|kind| survey.contains(&kind));
    rules(&ExecCall::default(), &setting, approvals, can_contain)
}

fn shell() -> Finding {
    let shell = find_shell();
    let path = shell.path.display().to_string();
    match shell.dialect {
        prowess_policy::Dialect::Bash => Finding::new("rules", "shell", Standing::Works, path),
        prowess_policy::Dialect::Posix => Finding::new("rules", "shell", Standing::Warning, path)
            .advice("install bash: without it, commands in bash syntax always need your approval"),
    }
}
