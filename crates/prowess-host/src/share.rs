//! Shares: what does a skill bring to its commands?
//!
//! Its variables are looked up when it is used and not before, so that a key is in nobody's hands until it is needed.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};

use prowess_config::Env;
use prowess_exec::SkillShare;
use prowess_policy::Grants;
use prowess_skills::env::{EnvInputs, EnvValue, plan};
use prowess_skills::{Secret, Skill, SkillsConfig};
use serde_json::Value;

use crate::context::View;
use crate::failure::Failure;

/// What the shares of skills are made from, apart from the view they were read with.
pub struct Shares {
    settings: SkillsConfig,
    config_env: Vec<(String, Secret)>,
    /// `skills.entries` as it is written, for what commands of a skill may reach.
    entries: Value,
    env: Env,
    host: HashSet<String>,
}

impl Shares {
    /// From the configuration of `view` and the variables that it has for skills.
    #[must_use]
    pub fn of(view: &View) -> Self {
        let env = view.skill_env.clone();
        let host = env.iter().filter(|(_, value)| !value.is_empty()).map(|(name, _)| name.to_owned()).collect();
        Self {
            settings: view.settings.clone(),
            config_env: view.config_env(),
            entries: view.context.config.tree()["skills"]["entries"].clone(),
            env,
            host,
        }
    }

    /// What `skill` brings.
    pub fn share(&self, skill: &Skill) -> Result<SkillShare, Failure> {
        let inputs = EnvInputs { config: &self.settings, config_env: &self.config_env, host: &self.host };
        let planned = plan(skill, inputs);
        let mut vars = Vec::new();
        for (variable, planned) in planned.vars {
            let value = match planned.value {
                EnvValue::Set(secret) => secret.expose().into(),
                EnvValue::Inherit => self.env.exact(&variable).unwrap_or_default().to_owned(),
                EnvValue::Fetch(place) => self.fetch(&place, &variable, skill.name.as_str())?,
            };
            vars.push((variable, value));
        }
        let grants = Grants::read(&self.entries[skill.key()]["sandbox"]);
        Ok(SkillShare { vars, bins: planned.bins, grants })
    }

    /// The secret that a reference leads to. Only variables can be read here.
    fn fetch(&self, place: &str, variable: &str, skill: &str) -> Result<OsString, Failure> {
        let name = place.strip_prefix("env:").and_then(|rest| rest.rsplit(':').next());
        name.and_then(|name| self.env.exact(name)).map(OsStr::to_owned).ok_or_else(|| {
            Failure::input(format!("the key of skill `{skill}` is kept in {place}, which cannot be read here"))
                .hint(format!("set {variable} in the environment, or use a reference with source `env`"))
        })
    }
}
