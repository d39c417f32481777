//! The claims about what commands receive.

use std::collections::HashSet;
use std::path::Path;

use prowess_skills::env::{EnvInputs, EnvLayer, EnvPlan, EnvValue, Refusal, plan};
use prowess_skills::{Filters, Secret, Skill, Tier};
use prowess_testkit::Tree;
use serde_json::{Value, json};

use crate::conformance::{host, load, made, settings, take_for};

fn planned(skill: &Skill, section: &Value, config_env: &[(&str, &str)], host: &[&str]) -> EnvPlan {
    let config = settings(section);
    let config_env: Vec<_> = config_env.iter().map(|&(name, value)| (name.to_owned(), Secret::new(value))).collect();
    let host: HashSet<String> = host.iter().map(|&name| name.to_owned()).collect();
    plan(skill, EnvInputs { config: &config, config_env: &config_env, host: &host })
}

fn value<'a>(plan: &'a EnvPlan, name: &str) -> Option<&'a str> {
    match &plan.vars.get(name)?.value {
        EnvValue::Set(secret) => Some(secret.expose()),
        EnvValue::Inherit => Some("the host's"),
        EnvValue::Fetch(place) => Some(place),
    }
}

// M-ENV-01, M-ENV-02
#[test]
fn m_env_01_02_the_entrys_pairs_and_its_key() {
    let skill = made(Tier::Workspace, "{skillKey: k, primaryEnv: SOME_KEY}");
    let plan = planned(&skill, &json!({"entries": {"k": {"env": {"CITY": "Rome"}, "apiKey": "secret"}}}), &[], &[]);
    assert_eq!((value(&plan, "CITY"), value(&plan, "SOME_KEY")), (Some("Rome"), Some("secret")));
    assert_eq!(plan.vars.len(), 2);
}

#[test]
fn m_env_03_skill_before_configuration_before_host() {
    let skill = made(Tier::Workspace, "{requires: {env: [A, B, C]}}");
    let entry = json!({"entries": {"s": {"env": {"A": "skill"}}}});
    let shared = [("A", "config"), ("B", "config")];
    let plan = planned(&skill, &entry, &shared, &["A", "B", "C"]);
    assert_eq!(["A", "B", "C"].map(|name| value(&plan, name)), [Some("skill"), Some("config"), Some("the host's")]);
    let mut host_first = entry;
    host_first["envPrecedence"] = json!("host");
    let plan = planned(&skill, &host_first, &shared, &["A", "B"]);
    assert_eq!(["A", "B"].map(|name| plan.vars[name].layer), [EnvLayer::Host, EnvLayer::Host]);
}

// M-ENV-04, M-ENV-05, M-ENV-06, M-ENV-12
#[test]
fn m_env_04_05_06_12_a_plan_is_a_value_and_leaks_nowhere() {
    let before: Vec<_> = std::env::vars_os().collect();
    let named = |name: &str| {
        let text = format!("---\nname: {name}\ndescription: d\n---\n");
        Skill::parse(text.as_bytes(), &Path::new("/skills").join(name).join("SKILL.md"), Tier::Workspace)
            .expect("a skill")
            .0
    };
    let entries = json!({"entries": {"one": {"env": {"CITY_ONE": "1"}}, "two": {"env": {"CITY_TWO": "2"}}}});
    let [one, two] = ["one", "two"].map(|name| planned(&named(name), &entries, &[], &[]));
    assert_eq!((value(&one, "CITY_ONE"), value(&one, "CITY_TWO")), (Some("1"), None));
    assert_eq!((value(&two, "CITY_TWO"), value(&two, "CITY_ONE")), (Some("2"), None));
    assert_ne!(one.bins, two.bins);
    assert_eq!(std::env::vars_os().collect::<Vec<_>>(), before);
}

// M-ENV-07, M-ENV-08
#[test]
fn m_env_07_08_dangerous_names_and_nul_bytes_are_refused() {
    let env = json!({"OPENSSL_CONF": "x", "LD_PRELOAD": "x", "NODE_OPTIONS": "x", "PATH": "x", "FINE": "x", "NUL": "a\u{0}b"});
    let plan = planned(&made(Tier::Workspace, "{}"), &json!({"entries": {"s": {"env": env}}}), &[], &[]);
    assert_eq!(plan.vars.keys().collect::<Vec<_>>(), ["FINE"]);
    let why = |name: &str| plan.refused.iter().find(|(refused, ..)| refused == name).map(|(_, _, why)| *why);
    for name in ["OPENSSL_CONF", "LD_PRELOAD", "NODE_OPTIONS", "PATH"] {
        assert_eq!(why(name), Some(Refusal::Hijacks), "{name}");
    }
    assert_eq!(why("NUL"), Some(Refusal::Nul));
}

#[test]
fn m_env_09_the_snapshots_skills_say_what_to_inject() {
    let tree = Tree::new()
        .dir("extra")
        .skill("ws/skills/a", "A", "disable-model-invocation: true\nmetadata: {openclaw: {primaryEnv: A_KEY}}")
        .skill("ws/skills/b", "B", "metadata: {openclaw: {primaryEnv: B_KEY, requires: {bins: [absent]}}}");
    let entries = json!({"entries": {"a": {"apiKey": "1"}, "b": {"apiKey": "2"}}});
    let snapshot = take_for(&load(&tree), &host(&[]), &entries, &Filters::default());
    let plans = snapshot.skills().iter().map(|skill| planned(skill, &entries, &[], &[]));
    let given: Vec<String> = plans.flat_map(|plan| plan.vars.into_keys()).collect();
    assert_eq!(given, ["A_KEY"]);
}

#[test]
fn m_env_10_the_skills_bins_folder_goes_first() {
    let skill = made(Tier::Workspace, "{}");
    assert_eq!(planned(&skill, &Value::Null, &[], &[]).bins.as_deref(), Some(Path::new("/skills/s/bins")));
    let off = json!({"entries": {"s": {"enabled": false}}});
    assert_eq!(planned(&skill, &off, &[], &[]), EnvPlan::default());
}
