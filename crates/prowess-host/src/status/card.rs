//! Everything about one skill.

use prowess_skills::{Objection, Shadowed, Skill, Tier};
use serde::Serialize;

use super::{ConfigCheck, Flags, InstallShape, Lists, ObjectionShape, ProblemShape, ShadowedShape};
use crate::context::View;

/// A skill, in full: a row of OpenClaw's `skills.status`, and what we add to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "OpenClaw's JSON has these flags")]
pub struct Card {
    name: String,
    description: String,
    source: &'static str,
    bundled: bool,
    file_path: String,
    base_dir: String,
    skill_key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    primary_env: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    emoji: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    homepage: Option<String>,
    always: bool,
    disabled: bool,
    blocked_by_allowlist: bool,
    blocked_by_agent_filter: bool,
    eligible: bool,
    platform_incompatible: bool,
    model_visible: bool,
    user_invocable: bool,
    command_visible: bool,
    requirements: Lists,
    missing: Lists,
    config_checks: Vec<ConfigCheck>,
    install: Vec<InstallShape>,
    objections: Vec<ObjectionShape>,
    #[serde(skip_serializing_if = "Option::is_none")]
    license: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    compatibility: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    allowed_tools: Vec<String>,
    shadowed: Vec<ShadowedShape>,
    problems: Vec<ProblemShape>,
}

impl Card {
    /// Of `skill`, against which `found` speaks.
    #[must_use]
    pub fn new(view: &View, skill: &Skill, found: &[Objection]) -> Self {
        let flags = Flags::of(found);
        let hidden = |other: &&Shadowed| other.skill.name == skill.name;
        Self {
            name: skill.name.to_string(),
            description: skill.description.clone(),
            source: skill.tier.label(),
            bundled: skill.tier == Tier::Bundled,
            file_path: skill.file.display().to_string(),
            base_dir: skill.dir().display().to_string(),
            skill_key: skill.key().to_owned(),
            primary_env: skill.metadata.primary_env.clone(),
            emoji: skill.emoji.clone(),
            homepage: skill.homepage.clone(),
            always: skill.metadata.always,
            disabled: flags.disabled,
            blocked_by_allowlist: flags.blocked,
            blocked_by_agent_filter: flags.filtered,
            eligible: flags.eligible,
            platform_incompatible: found.iter().any(|objection| matches!(objection, Objection::WrongOs(_))),
            model_visible: flags.offered() && skill.invocation.by_model,
            user_invocable: skill.invocation.by_user,
            command_visible: flags.offered() && skill.invocation.by_user,
            requirements: Lists::required(skill),
            missing: Lists::missing(found),
            config_checks: super::config_checks(view, skill),
            install: super::install(view, skill),
            objections: super::objections(found),
            license: skill.standard.license.clone(),
            compatibility: skill.standard.compatibility.clone(),
            allowed_tools: skill.standard.allowed_tools.clone(),
            shadowed: view.catalog.shadowed().iter().filter(hidden).map(ShadowedShape::from).collect(),
            problems: super::problems(view.problems.iter().filter(|problem| problem.path == skill.file)),
        }
    }
}
