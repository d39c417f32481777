//! Fixes: which commands would let a skill through?

use std::path::Path;

use prowess_skills::install::Package;
use prowess_skills::{Objection, Problem, ProblemKind, Severity, Skill, SkillsConfig, Snapshot, text, this_system};
use serde::Serialize;

use crate::context::View;

/// A thing to do: a command line, or a sentence where no command would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fix {
    /// What it is good for.
    pub why: String,
    /// What to type or to do.
    pub command: String,
}

/// What would answer each objection, in order.
#[must_use]
pub fn for_skill(view: &View, skill: &Skill, objections: &[Objection]) -> Vec<Fix> {
    objections.iter().flat_map(|objection| answer(view, skill, objection)).collect()
}

/// What would mend a file, or make room for it.
#[must_use]
pub fn for_problem(problem: &Problem) -> Option<Fix> {
    let limit = |key: &str| format!("prowess config set skills.limits.{key} NUMBER");
    let place = problem.at.map_or_else(String::new, |at| format!(":{}", at.line));
    let command = match problem.kind {
        _ if problem.severity() == Severity::Note => return None,
        ProblemKind::OverLimit => limit("maxSkillsLoadedPerSource"),
        ProblemKind::TooLarge => limit("maxSkillFileBytes"),
        ProblemKind::Unbound => {
            let command = problem.fix.split_once("run: ").map_or(problem.fix.as_str(), |(_, command)| command);
            return Some(Fix { why: problem.reason.clone(), command: command.to_owned() });
        }
        _ => format!("edit {}{place}", quoted(&problem.path.to_string_lossy())),
    };
    Some(Fix { why: format!("{}: {}", problem.reason, problem.fix), command })
}

/// What would make room in a full prompt.
#[must_use]
pub fn for_cut(view: &View, snapshot: &Snapshot) -> Fix {
    let too_many = snapshot.visible().count() > view.budget().skills;
    let key = if too_many { "maxSkillsInPrompt" } else { "maxSkillsPromptChars" };
    Fix { why: "the prompt is full".to_owned(), command: format!("prowess config set skills.limits.{key} NUMBER") }
}

fn answer(view: &View, skill: &Skill, objection: &Objection) -> Vec<Fix> {
    let fix = |why: &str, command: String| Fix { why: why.to_owned(), command };
    let entry = |field: &str| format!("{}.{field}", entry_path(skill.key()));
    match objection {
        Objection::Disabled => {
            vec![fix("it is disabled", format!("prowess config set {} true", quoted(&entry("enabled"))))]
        }
        Objection::NotListed => vec![fix(
            "the list of bundled skills leaves it out",
            format!("prowess config set skills.allowBundled {}", quoted(&allowed_with(view, skill))),
        )],
        Objection::Unreadable(_) => {
            vec![fix("its requirements cannot be read", format!("edit {}", quoted(&skill.file.to_string_lossy())))]
        }
        Objection::WrongOs(systems) => {
            let here = this_system();
            vec![fix(
                &format!("this machine runs {here}, it runs on {}", systems.join(", ")),
                "connect a machine that runs one of these systems".to_owned(),
            )]
        }
        Objection::NoBins(bins) => bins.iter().map(|bin| program(view, skill, bin)).collect(),
        Objection::NoAnyBins(bins) => {
            let known = bins.iter().find(|bin| !installers(view, skill, bin).is_empty()).or(bins.first());
            known.map(|bin| program(view, skill, bin)).into_iter().collect()
        }
        Objection::NoEnv(names) => names.iter().map(|name| variable(skill, name)).collect(),
        Objection::NoConfig(paths) => paths
            .iter()
            .map(|path| fix("the setting is missing or off", format!("prowess config set {} VALUE", quoted(path))))
            .collect(),
        Objection::NotForAgent => vec![fix(
            "the agent's list of skills leaves it out",
            format!("add {} to `skills` of the agent {}", quoted(skill.name.as_str()), view.context.agent.id),
        )],
        Objection::NotForChannel => vec![fix(
            "the channel's list of skills leaves it out",
            format!("add {} to `skills` of the channel", quoted(skill.name.as_str())),
        )],
    }
}

fn program(view: &View, skill: &Skill, bin: &str) -> Fix {
    let command = installers(view, skill, bin).into_iter().next();
    let needs_brew =
        !view.world.has_bin("brew") && command.as_ref().is_some_and(|command| command.starts_with("brew "));
    let other = if needs_brew { "; Homebrew is not installed, but your package manager may have it" } else { "" };
    Fix {
        why: format!("{bin} is not on PATH{other}"),
        command: command.unwrap_or_else(|| format!("install {} with your package manager", quoted(bin))),
    }
}

/// Command lines that bring a program, the preferred one first.
fn installers(view: &View, skill: &Skill, bin: &str) -> Vec<String> {
    let here = this_system();
    let brings = |bins: &[String]| bins.is_empty() || bins.iter().any(|brought| brought == bin);
    let specs = skill.metadata.install.iter().filter(|spec| spec.fits(&here) && brings(&spec.bins));
    let has_brew = view.world.has_bin("brew");
    let mut specs: Vec<_> = specs.collect();
    // Homebrew where it is, and at the end where it would have to be installed first.
    specs.sort_by_key(|spec| match spec.package {
        Package::Brew(_) if has_brew && view.settings.install.prefer_brew => 0,
        Package::Brew(_) if !has_brew => 2,
        _ => 1,
    });
    specs.iter().map(|spec| command(&spec.package, &view.settings.install.node_manager)).collect()
}

/// The command line that installs a package.
#[must_use]
pub fn command(package: &Package, node_manager: &str) -> String {
    match package {
        Package::Brew(formula) => format!("brew install {}", quoted(formula)),
        Package::Node(package) => {
            let add = match node_manager {
                "pnpm" => "pnpm add -g --ignore-scripts",
                "yarn" => "yarn global add --ignore-scripts",
                "bun" => "bun add -g --ignore-scripts",
                _ => "npm install -g --ignore-scripts",
            };
            format!("{add} {}", quoted(package))
        }
        Package::Go(module) => format!("go install {}", quoted(module)),
        Package::Uv(package) => format!("uv tool install {}", quoted(package)),
        Package::Download(file) => format!("curl -LO {}", quoted(&file.url)),
    }
}

fn variable(skill: &Skill, name: &str) -> Fix {
    let primary = skill.metadata.primary_env.as_deref() == Some(name);
    let field = if primary { "apiKey".to_owned() } else { format!("env.{name}") };
    let path = format!("{}.{field}", entry_path(skill.key()));
    // Without a value the command asks for it, so that a key does not end in the history of a shell.
    Fix { why: format!("{name} is not set"), command: format!("prowess config set {}", quoted(&path)) }
}

/// The command that gives a skill what the entry with its key gives.
#[must_use]
pub fn bind_skill(skill: &Skill) -> String {
    format!("prowess skills bind {}", quoted(skill.name.as_str()))
}

/// The command that gives a variable of the host to a skill for good, beside those that it was given before.
#[must_use]
pub fn bind_variable(settings: &SkillsConfig, skill: &Skill, variable: &str) -> String {
    let pinned = settings.entry(skill.key()).and_then(|entry| entry.capabilities.as_ref());
    let pinned = pinned.map(|pinned| pinned.env.as_slice()).unwrap_or_default();
    let mut names: Vec<&str> = pinned.iter().map(String::as_str).filter(|name| *name != variable).collect();
    names.push(variable);
    let path = format!("{}.capabilities.env", entry_path(skill.key()));
    format!("prowess config set {} {}", quoted(&path), quoted(&serde_json::json!(names).to_string()))
}

/// The list of bundled skills with this one added.
fn allowed_with(view: &View, skill: &Skill) -> String {
    let mut names: Vec<String> = match &view.settings.allow_bundled {
        prowess_skills::AllowBundled::Only(names) => names.iter().cloned().collect(),
        prowess_skills::AllowBundled::All | prowess_skills::AllowBundled::Nothing => Vec::new(),
    };
    names.push(skill.name.to_string());
    serde_json::json!(names).to_string()
}

/// `skills.entries.KEY`, with the key in quotes when it is not a plain word.
pub(crate) fn entry_path(key: &str) -> String {
    let path: prowess_config::KeyPath = ["skills", "entries", key].into_iter().map(str::to_owned).collect();
    path.to_string()
}

/// `text` as one word of a shell command line.
#[must_use]
pub fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./~:@+=,%".contains(c);
    let text = text::clean(text).trim().to_owned();
    if !text.is_empty() && text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// Whether a file belongs to a folder that a person may change.
#[must_use]
pub fn is_theirs(path: &Path, bundled: Option<&Path>) -> bool {
    bundled.is_none_or(|bundled| !path.starts_with(bundled))
}
