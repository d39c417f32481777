//! Shares: what does a skill bring to its commands?
//!
//! Its variables are looked up when it is used and not before, so that a key is in nobody's hands until it is needed. What
//! the operator did not give to this skill comes as a withheld key: commands get it only with a lease.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use prowess_config::Env;
use prowess_exec::{SkillShare, WithheldKey};
use prowess_policy::Grants;
use prowess_policy::env::is_inherited;
use prowess_policy::lease::{HostRule, Lease};
use prowess_policy::ownership::OwnCommands;
use prowess_skills::env::{EnvGiver, EnvInputs, EnvValue, plan};
use prowess_skills::{Capabilities, Secret, Skill, SkillsConfig};
use serde_json::Value;

use crate::bindings::{Bindings, EntryOwner};
use crate::context::View;
use crate::failure::Failure;
use crate::fix;
use crate::skill_text::{self, fenced};

/// What the shares of skills are made from, apart from the view they were read with.
pub struct Shares {
    settings: SkillsConfig,
    config_env: Vec<(String, Secret)>,
    /// `skills.entries` as it is written, for what commands of a skill may reach.
    entries: Value,
    env: Env,
    host: HashSet<String>,
    bindings: Bindings,
}

/// What the operator pinned for `skill`. What cannot be read is an error: it would be less than the operator meant.
fn pinned_capabilities(value: &Value, skill: &Skill) -> Result<Capabilities, Failure> {
    Capabilities::read(value).ok_or_else(|| {
        Failure::input(format!("skills.entries.{}.capabilities cannot be read", skill.key()))
            .hint("write it as { network: [{ host: \"wttr.in\" }], filesystem: { reads: [], writes: [] } }")
    })
}

/// What tells the commands of `skill`: the programs that it needs or brings, its scripts, and the commands in its text.
fn own_commands(skill: &Skill, bins: Option<&Path>) -> OwnCommands {
    let brought = bins.and_then(|dir| std::fs::read_dir(dir).ok()).into_iter().flatten().flatten();
    let needs = &skill.metadata.needs;
    let named = needs.bins.iter().chain(&needs.any_bins).cloned();
    OwnCommands {
        programs: named.chain(brought.filter_map(|entry| entry.file_name().into_string().ok())).collect(),
        dirs: std::iter::once(skill.dir().to_owned()).chain(bins.map(Path::to_owned)).collect(),
        texts: fenced(&skill_text::read(skill)).into_iter().map(|line| line.text).collect(),
    }
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
            bindings: view.bindings.clone(),
        }
    }

    /// What `skill` brings.
    pub fn share(&self, skill: &Skill) -> Result<SkillShare, Failure> {
        let inputs = EnvInputs { config: &self.settings, config_env: &self.config_env, host: &self.host };
        let planned = plan(skill, inputs);
        let is_bound = self.is_bound(skill);
        let (mut vars, mut withheld, mut keys) = (Vec::new(), Vec::new(), Vec::new());
        for (variable, planned) in planned.vars {
            let value = match planned.value {
                EnvValue::Set(secret) => secret.expose().into(),
                EnvValue::Inherit => self.env.exact(&variable).unwrap_or_default().to_owned(),
                EnvValue::Fetch(place) => match self.fetch(&place, &variable, skill.name.as_str()) {
                    Ok(value) => value,
                    // Nobody is stopped for want of a key that is not theirs.
                    Err(_) if !is_bound => continue,
                    Err(failure) => return Err(failure),
                },
            };
            if planned.given_by != EnvGiver::Config {
                keys.push(variable.clone());
            }
            match self.withheld(skill, &variable, planned.given_by) {
                None => vars.push((variable, value)),
                Some(remedy) => withheld.push(WithheldKey { name: variable, value, remedy }),
            }
        }
        let entry = if is_bound { &self.entries[skill.key()] } else { &Value::Null };
        let pinned = Some(&entry["capabilities"]).filter(|value| !value.is_null());
        let pinned = pinned.map(|value| pinned_capabilities(value, skill)).transpose()?;
        let declared = skill.metadata.capabilities.as_ref().map(|declared| self.lease(declared)).unwrap_or_default();
        let pinned = pinned.as_ref().map(|pinned| self.lease(pinned)).unwrap_or_default();
        Ok(SkillShare {
            grants: Grants::read(&entry["sandbox"]),
            name: skill.name.to_string(),
            key: skill.key().to_owned(),
            source: self.bindings.lease_source(skill),
            own: Some(own_commands(skill, planned.bins.as_deref())),
            // Nobody is asked about a key that has no value, nor about one that the operator gave.
            declared: Lease { keys, ..declared },
            pinned: Lease { keys: vars.iter().map(|(name, _)| name.clone()).collect(), ..pinned },
            vars,
            withheld,
            bins: planned.bins,
        })
    }

    /// What to type so that `skill` gets `variable`, if the operator did not say so yet.
    #[must_use]
    pub fn withheld(&self, skill: &Skill, variable: &str, given_by: EnvGiver) -> Option<String> {
        match given_by {
            EnvGiver::Config => None,
            EnvGiver::Entry if self.is_bound(skill) => None,
            EnvGiver::Entry => Some(fix::bind_skill(skill)),
            // Every command has these.
            EnvGiver::Declaration if is_inherited(variable) => None,
            EnvGiver::Declaration => {
                let set = fix::bind_variable(&self.settings, skill, variable);
                let follows = match self.bindings.owner(skill) {
                    EntryOwner::This => true,
                    EntryOwner::Unrecorded => skill.key() == skill.name.as_str(),
                    EntryOwner::Another(_) | EntryOwner::Wider(_) => false,
                };
                Some(if follows { set } else { format!("{set} && {}", fix::bind_skill(skill)) })
            }
        }
    }

    /// Whether `skill` gets what the entry with its key gives.
    fn is_bound(&self, skill: &Skill) -> bool {
        self.bindings.owner(skill) == EntryOwner::This
    }

    /// What was declared, as a lease. Hosts that cannot be read as such are left out: they could not be reached.
    fn lease(&self, declared: &Capabilities) -> Lease {
        let home = self.env.exact("HOME").map(PathBuf::from).unwrap_or_default();
        let expand =
            |path: &String| path.strip_prefix("~/").map_or_else(|| PathBuf::from(path), |rest| home.join(rest));
        let paths = |list: &[String]| list.iter().map(expand).collect();
        Lease {
            hosts: declared.network.iter().filter_map(|(host, ports)| HostRule::new(host, ports).ok()).collect(),
            reads: paths(&declared.reads),
            writes: paths(&declared.writes),
            sockets: paths(&declared.sockets),
            keys: declared.env.clone(),
            keeps_running: declared.keeps_running,
        }
    }

    /// What `skill` declares that its commands use, and the part of it that the operator pinned in the settings.
    #[must_use]
    pub fn declared(&self, skill: &Skill) -> (Lease, Lease) {
        let declared = skill.metadata.capabilities.as_ref().map(|declared| self.lease(declared)).unwrap_or_default();
        let entry = if self.is_bound(skill) { &self.entries[skill.key()]["capabilities"] } else { &Value::Null };
        let pinned = Capabilities::read(entry).map(|pinned| self.lease(&pinned)).unwrap_or_default();
        (declared, pinned)
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
