//! Any bytes as a configuration: the file as a whole, and each section as its crate reads it.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use prowess_config::{Config, Env};
use prowess_skills::{Filters, Gate, PluginPlaces, Skill, SkillsConfig, Tier, World, plugin_dirs};
use serde_json::Value;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(value) = serde_json::from_slice::<Value>(bytes) {
        section(&value);
        section(&value["skills"]);
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let env = Env::from_iter([("SET", "value"), ("EMPTY", "")]);
    if let Ok(config) = Config::parse(text, &env) {
        let shown = config.redacted();
        assert!(shown.is_object());
        for warning in config.warnings() {
            assert!(!warning.to_string().is_empty());
        }
        let _ = (config.agents(), config.get("skills.load.watch"), config.get("skills.entries"));
        section(&config.tree()["skills"]);
        let _ = plugin_dirs(&PluginPlaces::default(), config.tree());
        world(config.tree());
    }
});

fn section(value: &Value) {
    let (config, problems) = SkillsConfig::read(value, Path::new("openclaw.json"));
    assert!(problems.iter().all(|problem| !problem.reason.is_empty() && !problem.fix.is_empty()));
    for (key, entry) in &config.entries {
        assert_eq!(config.entry(key), Some(entry));
    }
}

fn world(config: &Value) {
    let text =
        b"---\ndescription: d\nmetadata: {openclaw: {requires: {config: [a.b, a.0.b, browser.enabled, .]}}}\n---\n";
    let (skill, _) = Skill::parse(text, Path::new("/s/x/SKILL.md"), Tier::Bundled).expect("a skill");
    let world = World { config: config.clone(), ..World::default() };
    let (skills, _) = SkillsConfig::read(&config["skills"], Path::new("openclaw.json"));
    let _ = Gate { world: &world, config: &skills, filters: &Filters::default() }.objections(&skill);
}
