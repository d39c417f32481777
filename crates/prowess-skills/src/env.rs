//! The environment plan: which variables does a run of this skill's commands get?
//!
//! A value, never a mutation: the plan is handed to the child that needs it, so no other run, session or skill can see
//! it. Names that could hijack a process are refused here and listed, as are values that no process could be given.

mod names;

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::path::PathBuf;

pub use names::{hijacks, is_credential, is_valid_name};

use crate::secret::Secret;
use crate::settings::{ApiKey, EnvPrecedence, SkillsConfig};
use crate::skill::Skill;

/// Where a variable comes from, least first: the greater wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EnvLayer {
    /// This host's environment.
    Host,
    /// `env` of the configuration.
    Config,
    /// `apiKey` of the skill's entry.
    ApiKey,
    /// `env` of the skill's entry.
    Skill,
}

impl EnvLayer {
    /// The one word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Config => "config",
            Self::ApiKey => "apiKey",
            Self::Skill => "skill",
        }
    }
}

/// How a variable gets its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnvValue {
    /// This value.
    Set(Secret),
    /// Whatever the host has; the plan never holds the host's values.
    Inherit,
    /// Fetched from where the reference points, when the run starts.
    Fetch(String),
}

/// Who decided that a variable goes to the skill's commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnvGiver {
    /// Only the skill, which declares a variable that the host has. The operator has not agreed yet.
    Declaration,
    /// The operator, in the entry of the skill: `env`, `apiKey`, or a host variable named in `capabilities.env`.
    Entry,
    /// The operator, for all skills: `env` of the configuration.
    Config,
}

/// One variable of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvVar {
    /// Where it comes from.
    pub layer: EnvLayer,
    /// How it gets its value.
    pub value: EnvValue,
    /// Who decided that the skill gets it.
    pub given_by: EnvGiver,
}

/// Why a variable was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// It could make a child run something else, or talk to someone else.
    Hijacks,
    /// It is a credential that the skill does not declare.
    Undeclared,
    /// It is no name a process could be given.
    BadName,
    /// The value has a NUL byte.
    Nul,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hijacks => "the name could change which program runs or which servers it trusts",
            Self::Undeclared => "a credential the skill does not declare (primaryEnv or requires.env)",
            Self::BadName => "not a name of letters, digits and underscores",
            Self::Nul => "the value has a NUL byte",
        })
    }
}

/// The variables of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EnvPlan {
    /// Variables by name.
    pub vars: BTreeMap<String, EnvVar>,
    /// Variables that were refused, with their layer.
    pub refused: Vec<(String, EnvLayer, Refusal)>,
    /// The folder that goes first on `PATH`, when it exists: programs that the skill brings along.
    pub bins: Option<PathBuf>,
}

/// What a plan is made from.
#[derive(Debug, Clone, Copy)]
pub struct EnvInputs<'a> {
    /// The `skills` section.
    pub config: &'a SkillsConfig,
    /// `env` of the configuration.
    pub config_env: &'a [(String, Secret)],
    /// Names of the host's variables that have a value.
    pub host: &'a HashSet<String>,
}

/// Plans the environment for commands of `skill`. A skill that is switched off gets nothing.
#[must_use]
pub fn plan(skill: &Skill, inputs: EnvInputs<'_>) -> EnvPlan {
    let mut plan = EnvPlan::default();
    let entry = inputs.config.entry(skill.key());
    if entry.is_some_and(|entry| entry.enabled == Some(false)) {
        return plan;
    }
    plan.bins = Some(skill.dir().join("bins"));
    let primary = skill.metadata.primary_env.as_deref();
    let pinned = entry.and_then(|entry| entry.capabilities.as_ref()).map(|pinned| pinned.env.as_slice());
    let pinned = pinned.unwrap_or_default();
    let declared: Vec<&str> = skill.metadata.declared_env().chain(pinned.iter().map(String::as_str)).collect();

    for name in &declared {
        if inputs.host.contains(*name) && is_valid_name(name) && !names::is_out_of_bounds(name) {
            let is_pinned = pinned.iter().any(|pinned| pinned == name);
            let given_by = if is_pinned { EnvGiver::Entry } else { EnvGiver::Declaration };
            let var = EnvVar { layer: EnvLayer::Host, value: EnvValue::Inherit, given_by };
            plan.vars.insert((*name).to_owned(), var);
        }
    }
    let mut given: Vec<(&str, EnvLayer, EnvValue)> = Vec::new();
    for (name, value) in inputs.config_env {
        given.push((name, EnvLayer::Config, EnvValue::Set(value.clone())));
    }
    if let (Some(entry), Some(primary)) = (entry, primary) {
        match &entry.api_key {
            Some(ApiKey::Text(key)) => given.push((primary, EnvLayer::ApiKey, EnvValue::Set(key.clone()))),
            Some(ApiKey::Reference(place)) => given.push((primary, EnvLayer::ApiKey, EnvValue::Fetch(place.clone()))),
            None => {}
        }
    }
    for (name, value) in entry.map(|entry| entry.env.as_slice()).unwrap_or_default() {
        given.push((name, EnvLayer::Skill, EnvValue::Set(value.clone())));
    }
    for (name, layer, value) in given {
        if name.is_empty() || matches!(&value, EnvValue::Set(secret) if secret.expose().is_empty()) {
            continue;
        }
        // What the operator put into `env` of the whole configuration is meant for every run, declared or not.
        let is_declared = layer == EnvLayer::Config || declared.contains(&name);
        if let Some(refusal) = refusal(name, &value, is_declared) {
            plan.refused.push((name.to_owned(), layer, refusal));
            continue;
        }
        let given_by = if layer == EnvLayer::Config { EnvGiver::Config } else { EnvGiver::Entry };
        let keeps_host = inputs.config.env_precedence == EnvPrecedence::Host && inputs.host.contains(name);
        let (layer, value) = if keeps_host { (EnvLayer::Host, EnvValue::Inherit) } else { (layer, value) };
        plan.vars.insert(name.to_owned(), EnvVar { layer, value, given_by });
    }
    plan
}

fn refusal(name: &str, value: &EnvValue, is_declared: bool) -> Option<Refusal> {
    if !is_valid_name(name) {
        return Some(Refusal::BadName);
    }
    if names::is_out_of_bounds(name) {
        return Some(Refusal::Hijacks);
    }
    if is_credential(name) && !is_declared {
        return Some(Refusal::Undeclared);
    }
    matches!(value, EnvValue::Set(secret) if secret.expose().contains('\0')).then_some(Refusal::Nul)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;
    use crate::tier::Tier;

    fn skill(manifest: &str) -> Skill {
        let text = format!("---\nname: s\ndescription: d\nmetadata: {{openclaw: {manifest}}}\n---\n");
        Skill::parse(text.as_bytes(), Path::new("/skills/s/SKILL.md"), Tier::Workspace).expect("a skill").0
    }

    #[test]
    fn each_variable_knows_its_layer() {
        let section = json!({"entries": {"s": {"apiKey": "k", "env": {"OWN": "v"}}}});
        let config = SkillsConfig::read(&section, Path::new("x")).0;
        let shared = [("SHARED".to_owned(), Secret::new("v"))];
        let host = ["HOST_ONLY", "UNRELATED"].map(str::to_owned).into();
        let inputs = EnvInputs { config: &config, config_env: &shared, host: &host };
        let plan = plan(&skill("{primaryEnv: PRIMARY, requires: {env: [HOST_ONLY]}}"), inputs);
        let layers: Vec<(&str, &str)> = plan.vars.iter().map(|(name, var)| (name.as_str(), var.layer.word())).collect();
        assert_eq!(layers, [("HOST_ONLY", "host"), ("OWN", "skill"), ("PRIMARY", "apiKey"), ("SHARED", "config")]);
        assert_eq!(plan.vars["HOST_ONLY"].value, EnvValue::Inherit);
        assert_eq!(plan.bins.as_deref(), Some(Path::new("/skills/s/bins")));
    }

    #[test]
    fn a_declaration_is_not_the_operators_word() {
        let manifest = "{primaryEnv: A, requires: {env: [B]}, capabilities: {env: [C, D]}}";
        let host = ["A", "B", "C", "D", "E", "F"].map(str::to_owned).into();
        let givers = |section: serde_json::Value| -> Vec<(String, EnvGiver)> {
            let config = SkillsConfig::read(&section, Path::new("x")).0;
            let shared = [("F".to_owned(), Secret::new("v"))];
            let planned = plan(&skill(manifest), EnvInputs { config: &config, config_env: &shared, host: &host });
            planned.vars.into_iter().map(|(name, var)| (name, var.given_by)).collect()
        };
        let expect = |entry: &str, mark: EnvGiver| -> Vec<(String, EnvGiver)> {
            let all = ["A", "B", "C", "D", "E", "F"].into_iter();
            let all = all.filter(|name| entry.contains(name) || *name != "E");
            all.map(|name| {
                let giver = match name {
                    "F" => EnvGiver::Config,
                    _ if entry.contains(name) => mark,
                    _ => EnvGiver::Declaration,
                };
                (name.to_owned(), giver)
            })
            .collect()
        };
        assert_eq!(givers(json!({})), expect("", EnvGiver::Entry));
        // The operator may name a variable that the skill does not declare.
        let pinned = json!({"entries": {"s": {"capabilities": {"env": ["B", "E"]}}}});
        assert_eq!(givers(pinned), expect("BE", EnvGiver::Entry));
        let given = json!({"entries": {"s": {"apiKey": "k", "env": {"D": "v"}}}});
        assert_eq!(givers(given), expect("AD", EnvGiver::Entry));
        // With the host's value first it is still the operator who named the variable.
        let host_first = json!({"envPrecedence": "host", "entries": {"s": {"apiKey": "k"}}});
        assert_eq!(givers(host_first), expect("A", EnvGiver::Entry));
    }

    #[test]
    fn layers_are_ordered_by_who_wins() {
        assert!(
            EnvLayer::Host < EnvLayer::Config
                && EnvLayer::Config < EnvLayer::ApiKey
                && EnvLayer::ApiKey < EnvLayer::Skill
        );
    }

    #[test]
    fn the_operators_own_variables_may_be_credentials_but_not_hijackers() {
        let config_env =
            [("GH_TOKEN", "t"), ("LD_PRELOAD", "x")].map(|(name, value)| (name.to_owned(), Secret::new(value)));
        let (config, host) = (SkillsConfig::default(), HashSet::new());
        let plan = plan(&skill("{}"), EnvInputs { config: &config, config_env: &config_env, host: &host });
        assert_eq!(plan.vars.keys().collect::<Vec<_>>(), ["GH_TOKEN"]);
        assert_eq!(plan.refused, [("LD_PRELOAD".to_owned(), EnvLayer::Config, Refusal::Hijacks)]);
    }
}
