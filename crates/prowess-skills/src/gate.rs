//! The gate: may this skill be offered, here and now?
//!
//! A pure function over values. Looking at disks, the search path and nodes happens before, once per snapshot, and
//! arrives as a [`World`]; so one gate serves this host, a remote node, every report and a test. It names *every*
//! objection, because its other reader is a person asking why a skill is missing.

use std::fmt;

use crate::filter::Filters;
use crate::settings::{AllowBundled, ApiKey, SkillConfig, SkillsConfig};
use crate::skill::Skill;
use crate::text::trim;
use crate::tier::Tier;
use crate::world::World;

/// One reason to keep a skill back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Objection {
    /// The user switched it off.
    Disabled,
    /// It is bundled, and the user's list of bundled skills leaves it out.
    NotListed,
    /// What it needs is not known, because its metadata cannot be read.
    Unreadable(String),
    /// No reachable machine runs a system it supports.
    WrongOs(Vec<String>),
    /// These programs are on no reachable machine.
    NoBins(Vec<String>),
    /// None of these programs is on a reachable machine.
    NoAnyBins(Vec<String>),
    /// These variables have no value.
    NoEnv(Vec<String>),
    /// These configuration paths are not truthy.
    NoConfig(Vec<String>),
    /// The agent's list of skills leaves it out.
    NotForAgent,
    /// The channel's list of skills leaves it out.
    NotForChannel,
}

impl Objection {
    /// A stable identifier for machines.
    #[must_use]
    pub fn id(&self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::NotListed => "not-listed",
            Self::Unreadable(_) => "unreadable",
            Self::WrongOs(_) => "os",
            Self::NoBins(_) => "bins",
            Self::NoAnyBins(_) => "anyBins",
            Self::NoEnv(_) => "env",
            Self::NoConfig(_) => "config",
            Self::NotForAgent => "agent",
            Self::NotForChannel => "channel",
        }
    }

    /// Whether it is about who is asking, not about the skill on this machine.
    #[must_use]
    pub fn is_filter(&self) -> bool {
        matches!(self, Self::NotForAgent | Self::NotForChannel)
    }

    /// The things it is about.
    #[must_use]
    pub fn items(&self) -> &[String] {
        match self {
            Self::WrongOs(items)
            | Self::NoBins(items)
            | Self::NoAnyBins(items)
            | Self::NoEnv(items)
            | Self::NoConfig(items) => items,
            Self::Disabled | Self::NotListed | Self::Unreadable(_) | Self::NotForAgent | Self::NotForChannel => &[],
        }
    }
}

impl fmt::Display for Objection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let items = self.items().join(", ");
        match self {
            Self::Disabled => f.write_str("disabled in the configuration"),
            Self::NotListed => f.write_str("not in the list of bundled skills (skills.allowBundled)"),
            Self::Unreadable(reason) => write!(f, "its requirements cannot be read: {reason}"),
            Self::WrongOs(_) => write!(f, "runs only on {items}"),
            Self::NoBins(_) => write!(f, "programs not found: {items}"),
            Self::NoAnyBins(_) => write!(f, "none of these programs found: {items}"),
            Self::NoEnv(_) => write!(f, "variables not set: {items}"),
            Self::NoConfig(_) => write!(f, "settings missing or off: {items}"),
            Self::NotForAgent => f.write_str("not in the agent's list of skills"),
            Self::NotForChannel => f.write_str("not in the channel's list of skills"),
        }
    }
}

/// What the gate looks at besides the skill.
#[derive(Debug, Clone, Copy)]
pub struct Gate<'a> {
    /// What the machines have.
    pub world: &'a World,
    /// What the operator has set.
    pub config: &'a SkillsConfig,
    /// Who is asking.
    pub filters: &'a Filters,
}

impl Gate<'_> {
    /// Everything that speaks against offering `skill`. Empty means: let it through.
    #[must_use]
    pub fn objections(&self, skill: &Skill) -> Vec<Objection> {
        let entry = self.config.entry(skill.key());
        let mut found = Vec::new();
        if entry.is_some_and(|entry| entry.enabled == Some(false)) {
            found.push(Objection::Disabled);
        }
        if skill.tier == Tier::Bundled && !lists(&self.config.allow_bundled, skill) {
            found.push(Objection::NotListed);
        }
        if let Some(reason) = &skill.unreadable {
            found.push(Objection::Unreadable(reason.clone()));
        }
        let needs = &skill.metadata.needs;
        if !needs.os.is_empty() && !needs.os.iter().any(|os| self.world.runs(os)) {
            found.push(Objection::WrongOs(needs.os.clone()));
        }
        // `always` waives needs, never the user's own switches or the wrong system.
        if !skill.metadata.always {
            self.unmet_needs(skill, entry, &mut found);
        }
        if !self.filters.agent.allows(skill.name.as_str()) {
            found.push(Objection::NotForAgent);
        }
        if !self.filters.channel.allows(skill.name.as_str()) {
            found.push(Objection::NotForChannel);
        }
        found
    }

    fn unmet_needs(&self, skill: &Skill, entry: Option<&SkillConfig>, found: &mut Vec<Objection>) {
        let needs = &skill.metadata.needs;
        let missing = |items: &[String], has: &dyn Fn(&str) -> bool| -> Vec<String> {
            items.iter().filter(|item| !has(item)).cloned().collect()
        };
        let bins = missing(&needs.bins, &|bin| self.world.has_bin(bin));
        if !bins.is_empty() {
            found.push(Objection::NoBins(bins));
        }
        if !needs.any_bins.is_empty() && !needs.any_bins.iter().any(|bin| self.world.has_bin(bin)) {
            found.push(Objection::NoAnyBins(needs.any_bins.clone()));
        }
        let primary = skill.metadata.primary_env.as_deref();
        let env = missing(&needs.env, &|name| self.world.has_env(name) || gives(entry, name, primary));
        if !env.is_empty() {
            found.push(Objection::NoEnv(env));
        }
        let config = missing(&needs.config, &|path| self.world.config_is_truthy(path));
        if !config.is_empty() {
            found.push(Objection::NoConfig(config));
        }
    }
}

fn lists(allow: &AllowBundled, skill: &Skill) -> bool {
    match allow {
        AllowBundled::All => true,
        AllowBundled::Nothing => false,
        AllowBundled::Only(names) => names.contains(skill.key()) || names.contains(skill.name.as_str()),
    }
}

/// Whether a skill's entry gives the variable a value that is not blank.
fn gives(entry: Option<&SkillConfig>, name: &str, primary: Option<&str>) -> bool {
    let Some(entry) = entry else { return false };
    let in_env = entry.env.iter().any(|(key, value)| key == name && !trim(value.expose()).is_empty());
    let by_key = primary == Some(name)
        && match &entry.api_key {
            Some(ApiKey::Text(key)) => !trim(key.expose()).is_empty(),
            Some(ApiKey::Reference(_)) => true,
            None => false,
        };
    in_env || by_key
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;
    use crate::filter::Filter;
    use crate::world::{Machine, truthy_paths};

    fn skill(manifest: &str) -> Skill {
        let text = format!("---\nname: s\ndescription: d\nmetadata: {{openclaw: {manifest}}}\n---\n");
        Skill::parse(text.as_bytes(), Path::new("/s/SKILL.md"), Tier::Bundled).expect("a skill").0
    }

    #[test]
    fn every_objection_is_named_at_once() {
        let skill =
            skill("{os: [darwin], requires: {bins: [a, here, b], anyBins: [c, d], env: [E, SET], config: [x.y, on]}}");
        let here = Machine { os: "linux".to_owned(), bins: ["here".to_owned()].into() };
        let config = truthy_paths(&json!({"on": true}), ["x.y", "on"]);
        let world = World { machines: vec![here], env: ["SET".to_owned()].into(), config, note: None };
        let section = json!({"allowBundled": ["x"], "entries": {"s": {"enabled": false}}});
        let config = SkillsConfig::read(&section, Path::new("x")).0;
        let filters = Filters { agent: Filter::only(["x"]), channel: Filter::only(["y"]) };
        let found = Gate { world: &world, config: &config, filters: &filters }.objections(&skill);
        let list = |items: &[&str]| items.iter().map(|item| (*item).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            found,
            [
                Objection::Disabled,
                Objection::NotListed,
                Objection::WrongOs(list(&["darwin"])),
                Objection::NoBins(list(&["a", "b"])),
                Objection::NoAnyBins(list(&["c", "d"])),
                Objection::NoEnv(list(&["E"])),
                Objection::NoConfig(list(&["x.y"])),
                Objection::NotForAgent,
                Objection::NotForChannel,
            ]
        );
        assert_eq!(found.iter().filter(|objection| objection.is_filter()).count(), 2);
    }

    #[test]
    fn needs_may_be_met_on_different_machines() {
        let machine = |os: &str, bin: &str| Machine { os: os.to_owned(), bins: [bin.to_owned()].into() };
        let world = World { machines: vec![machine("linux", "a"), machine("darwin", "b")], ..World::default() };
        let (config, filters) = (SkillsConfig::default(), Filters::default());
        let gate = Gate { world: &world, config: &config, filters: &filters };
        assert_eq!(gate.objections(&skill("{os: [macos], requires: {bins: [a, b]}}")), []);
        assert_eq!(gate.objections(&skill("{os: [win32]}")), [Objection::WrongOs(vec!["win32".to_owned()])]);
    }

    #[test]
    fn unknown_needs_hold_a_skill_back_even_with_always() {
        let (world, config, filters) = (World::default(), SkillsConfig::default(), Filters::default());
        let gate = Gate { world: &world, config: &config, filters: &filters };
        let found = gate.objections(&skill("{always: true, requires: {bins: 7}}"));
        assert_eq!(found.iter().map(Objection::id).collect::<Vec<_>>(), ["unreadable"]);
    }
}
