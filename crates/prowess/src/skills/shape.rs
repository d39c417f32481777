//! The JSON of the skills commands: every key of OpenClaw's, with its meaning, and ours beside them.

use prowess_host::View;
use prowess_skills::install::{self, InstallOption};
use prowess_skills::{Budget, Objection, Problem, Skill, Snapshot, Tier, this_system};
use serde::Serialize;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Lists {
    pub(super) bins: Vec<String>,
    pub(super) any_bins: Vec<String>,
    pub(super) env: Vec<String>,
    pub(super) config: Vec<String>,
    pub(super) os: Vec<String>,
}

impl Lists {
    pub(super) fn required(skill: &Skill) -> Self {
        let needs = skill.metadata.needs.clone();
        Self { bins: needs.bins, any_bins: needs.any_bins, env: needs.env, config: needs.config, os: needs.os }
    }

    pub(super) fn missing(objections: &[Objection]) -> Self {
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
    pub(super) fn summary(&self) -> String {
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

#[derive(Serialize)]
pub(super) struct ObjectionShape {
    id: &'static str,
    items: Vec<String>,
    message: String,
}

pub(super) fn objections(objections: &[Objection]) -> Vec<ObjectionShape> {
    let shape = |objection: &Objection| ObjectionShape {
        id: objection.id(),
        items: objection.items().to_vec(),
        message: objection.to_string(),
    };
    objections.iter().map(shape).collect()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ProblemShape {
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

pub(super) fn problems<'a>(problems: impl IntoIterator<Item = &'a Problem>) -> Vec<ProblemShape> {
    problems.into_iter().map(ProblemShape::from).collect()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ShadowedShape {
    name: String,
    source: &'static str,
    file_path: String,
    shadowed_by: String,
}

impl ShadowedShape {
    /// Whether the hidden skill has this name.
    pub(super) fn is(&self, name: &prowess_skills::SkillName) -> bool {
        self.name == name.as_str()
    }
}

pub(super) fn shadowed(view: &View) -> Vec<ShadowedShape> {
    let shape = |shadowed: &prowess_skills::Shadowed| ShadowedShape {
        name: shadowed.skill.name.to_string(),
        source: shadowed.skill.tier.label(),
        file_path: shadowed.skill.file.display().to_string(),
        shadowed_by: shadowed.by.display().to_string(),
    };
    view.catalog.shadowed().iter().map(shape).collect()
}

#[derive(Serialize)]
pub(super) struct InstallShape {
    id: String,
    kind: &'static str,
    label: String,
    bins: Vec<String>,
}

/// The install choices of a skill on this host.
pub(super) fn install_options(view: &View, skill: &Skill) -> Vec<InstallOption> {
    let here = this_system();
    let needs = &skill.metadata.needs.os;
    if !needs.is_empty() && !needs.iter().any(|os| prowess_skills::system(os) == here) {
        return Vec::new();
    }
    install::options(&skill.metadata.install, &here, view.world.has_bin("brew"), &view.settings.install)
}

pub(super) fn install(view: &View, skill: &Skill) -> Vec<InstallShape> {
    let shape = |option: InstallOption| InstallShape {
        id: option.id,
        kind: option.kind,
        label: option.label,
        bins: option.bins,
    };
    install_options(view, skill).into_iter().map(shape).collect()
}

/// One skill in `list`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "OpenClaw's JSON has these flags")]
pub(super) struct Row {
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
#[expect(clippy::struct_excessive_bools, reason = "OpenClaw's JSON has these flags")]
pub(super) struct Flags {
    pub(super) eligible: bool,
    pub(super) disabled: bool,
    pub(super) blocked: bool,
    pub(super) filtered: bool,
}

impl Flags {
    pub(super) fn of(objections: &[Objection]) -> Self {
        Self {
            eligible: objections.iter().all(Objection::is_filter),
            disabled: objections.contains(&Objection::Disabled),
            blocked: objections.contains(&Objection::NotListed),
            filtered: objections.iter().any(Objection::is_filter),
        }
    }

    /// Ready, and not kept from whoever is asking.
    pub(super) fn offered(&self) -> bool {
        self.eligible && !self.filtered
    }
}

impl Row {
    pub(super) fn new(skill: &Skill, found: &[Objection]) -> Self {
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

#[derive(Serialize)]
pub(super) struct ConfigCheck {
    pub(super) path: String,
    pub(super) satisfied: bool,
}

pub(super) fn config_checks(view: &View, skill: &Skill) -> Vec<ConfigCheck> {
    let check = |path: &String| ConfigCheck { path: path.clone(), satisfied: view.world.config_is_truthy(path) };
    skill.metadata.needs.config.iter().map(check).collect()
}

/// How large the list of skills is, how large it may be, and what was cut.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Measures {
    chars: usize,
    tokens: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_chars: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<usize>,
    max_skills: usize,
    total: usize,
    included: usize,
    shortened: Vec<String>,
    name_only: Vec<String>,
    dropped: Vec<String>,
    fingerprint: String,
}

impl Measures {
    pub(super) fn new(snapshot: &Snapshot, budget: &Budget) -> Self {
        let prompt = snapshot.prompt();
        Self {
            chars: prompt.chars(),
            tokens: prompt.tokens(),
            max_chars: Some(budget.chars).filter(|&chars| chars < usize::MAX),
            max_tokens: budget.tokens,
            max_skills: budget.skills,
            total: prompt.cut.total,
            included: prompt.cut.total - prompt.cut.dropped.len(),
            shortened: prompt.cut.shortened.clone(),
            name_only: prompt.cut.name_only.clone(),
            dropped: prompt.cut.dropped.clone(),
            fingerprint: snapshot.fingerprint().to_string(),
        }
    }
}
