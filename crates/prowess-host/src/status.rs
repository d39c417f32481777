//! The JSON of skills: every key of OpenClaw's, with its meaning, and ours beside them.
//!
//! The command line prints these and a gateway sends them, so that they cannot disagree.

mod card;
mod measures;

use prowess_skills::install::{self, InstallOption};
use prowess_skills::{Objection, Problem, Shadowed, Skill, Tier, this_system};
use serde::Serialize;

use crate::context::View;

pub use card::Card;
pub use measures::Measures;

/// What a skill asks for, or lacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Lists {
    /// Programs, all of them.
    pub bins: Vec<String>,
    /// Programs, one of them.
    pub any_bins: Vec<String>,
    /// Variables.
    pub env: Vec<String>,
    /// Settings.
    pub config: Vec<String>,
    /// Systems, one of them.
    pub os: Vec<String>,
}

impl Lists {
    /// What `skill` asks for.
    #[must_use]
    pub fn required(skill: &Skill) -> Self {
        let needs = skill.metadata.needs.clone();
        Self { bins: needs.bins, any_bins: needs.any_bins, env: needs.env, config: needs.config, os: needs.os }
    }

    /// What is not there of it.
    #[must_use]
    pub fn missing(objections: &[Objection]) -> Self {
        let items = |id: &str| {
            let found = objections.iter().find(|objection| objection.id() == id);
            found.map(|objection| objection.items().to_vec()).unwrap_or_default()
        };
        Self {
            bins: items("bins"),
            any_bins: items("anyBins"),
            env: items("env"),
            config: items("config"),
            os: items("os"),
        }
    }

    /// The groups that are not empty, on one line.
    #[must_use]
    pub fn summary(&self) -> String {
        let groups = [
            ("bins", &self.bins),
            ("anyBins", &self.any_bins),
            ("env", &self.env),
            ("config", &self.config),
            ("os", &self.os),
        ];
        let shown = groups.iter().filter(|(_, items)| !items.is_empty());
        shown.map(|(name, items)| format!("{name}: {}", items.join(", "))).collect::<Vec<_>>().join("; ")
    }
}

/// One reason against a skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ObjectionShape {
    id: &'static str,
    items: Vec<String>,
    message: String,
}

/// Every reason against a skill.
#[must_use]
pub fn objections(objections: &[Objection]) -> Vec<ObjectionShape> {
    let shape = |objection: &Objection| ObjectionShape {
        id: objection.id(),
        items: objection.items().to_vec(),
        message: objection.to_string(),
    };
    objections.iter().map(shape).collect()
}

/// Something wrong with a file, and how it is put right.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProblemShape {
    kind: &'static str,
    severity: &'static str,
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
    reason: String,
    fix: String,
}

impl From<&Problem> for ProblemShape {
    fn from(problem: &Problem) -> Self {
        Self {
            kind: problem.kind.as_str(),
            severity: problem.severity().as_str(),
            path: problem.path.display().to_string(),
            line: problem.at.map(|at| at.line),
            column: problem.at.map(|at| at.column),
            reason: problem.reason.clone(),
            fix: problem.fix.clone(),
        }
    }
}

/// All of `problems`.
pub fn problems<'a>(problems: impl IntoIterator<Item = &'a Problem>) -> Vec<ProblemShape> {
    problems.into_iter().map(ProblemShape::from).collect()
}

/// A skill that another of the same name hides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShadowedShape {
    name: String,
    source: &'static str,
    file_path: String,
    shadowed_by: String,
}

impl From<&Shadowed> for ShadowedShape {
    fn from(shadowed: &Shadowed) -> Self {
        Self {
            name: shadowed.skill.name.to_string(),
            source: shadowed.skill.tier.label(),
            file_path: shadowed.skill.file.display().to_string(),
            shadowed_by: shadowed.by.display().to_string(),
        }
    }
}

/// All hidden skills.
#[must_use]
pub fn shadowed(view: &View) -> Vec<ShadowedShape> {
    view.catalog.shadowed().iter().map(ShadowedShape::from).collect()
}

/// One way to get what a skill needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InstallShape {
    id: String,
    kind: &'static str,
    label: String,
    bins: Vec<String>,
}

impl From<InstallOption> for InstallShape {
    fn from(option: InstallOption) -> Self {
        Self { id: option.id, kind: option.kind, label: option.label, bins: option.bins }
    }
}

/// The install choices of a skill on this host.
#[must_use]
pub fn install(view: &View, skill: &Skill) -> Vec<InstallShape> {
    let here = this_system();
    let needs = &skill.metadata.needs.os;
    if !needs.is_empty() && !needs.iter().any(|os| prowess_skills::system(os) == here) {
        return Vec::new();
    }
    let options = install::options(&skill.metadata.install, &here, view.world.has_bin("brew"), &view.settings.install);
    options.into_iter().map(InstallShape::from).collect()
}

/// One skill in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "OpenClaw's JSON has these flags")]
pub struct Row {
    name: String,
    description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    emoji: Option<String>,
    eligible: bool,
    disabled: bool,
    blocked_by_allowlist: bool,
    blocked_by_agent_filter: bool,
    model_visible: bool,
    user_invocable: bool,
    command_visible: bool,
    source: &'static str,
    bundled: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    primary_env: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    homepage: Option<String>,
    missing: Lists,
    objections: Vec<ObjectionShape>,
}

/// What the peer's flags are, read off the objections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "OpenClaw's JSON has these flags")]
pub struct Flags {
    /// Nothing speaks against it but a list of skills.
    pub eligible: bool,
    /// Somebody switched it off.
    pub disabled: bool,
    /// The list of bundled skills leaves it out.
    pub blocked: bool,
    /// The list of an agent or a channel leaves it out.
    pub filtered: bool,
}

impl Flags {
    /// Of a skill with these objections.
    #[must_use]
    pub fn of(objections: &[Objection]) -> Self {
        Self {
            eligible: objections.iter().all(Objection::is_filter),
            disabled: objections.contains(&Objection::Disabled),
            blocked: objections.contains(&Objection::NotListed),
            filtered: objections.iter().any(Objection::is_filter),
        }
    }

    /// Ready, and not kept from whoever is asking.
    #[must_use]
    pub fn offered(&self) -> bool {
        self.eligible && !self.filtered
    }
}

impl Row {
    /// Of `skill`, against which `found` speaks.
    #[must_use]
    pub fn new(skill: &Skill, found: &[Objection]) -> Self {
        let flags = Flags::of(found);
        Self {
            name: skill.name.to_string(),
            description: skill.description.clone(),
            emoji: skill.emoji.clone(),
            eligible: flags.eligible,
            disabled: flags.disabled,
            blocked_by_allowlist: flags.blocked,
            blocked_by_agent_filter: flags.filtered,
            model_visible: flags.offered() && skill.invocation.by_model,
            user_invocable: skill.invocation.by_user,
            command_visible: flags.offered() && skill.invocation.by_user,
            source: skill.tier.label(),
            bundled: skill.tier == Tier::Bundled,
            primary_env: skill.metadata.primary_env.clone(),
            homepage: skill.homepage.clone(),
            missing: Lists::missing(found),
            objections: objections(found),
        }
    }
}

/// Whether a setting that a skill asks for is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConfigCheck {
    path: String,
    satisfied: bool,
}

/// Every setting that a skill asks for.
#[must_use]
pub fn config_checks(view: &View, skill: &Skill) -> Vec<ConfigCheck> {
    let check = |path: &String| ConfigCheck { path: path.clone(), satisfied: view.world.config_is_truthy(path) };
    skill.metadata.needs.config.iter().map(check).collect()
}
