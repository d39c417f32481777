//! Environment: does a run get the variables it gets in OpenClaw?

use crate::made;
use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use prowess_skills::env::{self, EnvInputs, EnvPlan, EnvValue};
use prowess_skills::{EnvPrecedence, Secret, SkillsConfig};
use prowess_testkit::{assert_documented, cases, check_all_but};
use serde_json::{Value, json};

const REFUSED: &str = "names that steer a process";
const PER_SKILL: &str = "two skills that set the same variable";
const KEY: &str = "the entry of a skill with a `skillKey`";
const FETCH: &str = "an `apiKey` that is a secret reference";
const NO_MUTATION: &str = "overlapping runs and their clean-up";
const ORDER: &str = "a variable that the host has too";
const EMPTY: &str = "a variable that is empty on the host";

const DEVIATIONS: &[(&str, &str)] = &[
    ("override-only-keys", REFUSED),
    ("two-skills-same-key", PER_SKILL),
    ("snapshot-skillkey", KEY),
    ("apikey-secretref", FETCH),
    ("overlap-first-ends-first", NO_MUTATION),
    ("overlap-second-ends-first", NO_MUTATION),
    ("revert-twice-after-user-set", NO_MUTATION),
];
const DEFAULT_DEVIATIONS: &[(&str, &str)] = &[
    ("already-set", ORDER),
    ("override-only-keys", REFUSED),
    ("two-skills-same-key", PER_SKILL),
    ("snapshot-skillkey", KEY),
    ("apikey-secretref", FETCH),
    ("overlap-first-ends-first", NO_MUTATION),
    ("overlap-second-ends-first", NO_MUTATION),
    ("revert-twice-after-user-set", NO_MUTATION),
];
const NEWER_DEVIATIONS: &[(&str, &str)] = &[
    ("already-set-empty", EMPTY),
    ("two-skills-same-key", PER_SKILL),
    ("apikey-secretref", FETCH),
    ("overlap-first-ends-first", NO_MUTATION),
    ("overlap-second-ends-first", NO_MUTATION),
    ("revert-twice-after-user-set", NO_MUTATION),
];

#[test]
fn with_the_host_first_variables_are_those_of_openclaw() {
    assert_documented(DEVIATIONS);
    check_all_but(DEVIATIONS, cases(include_str!("golden/env.json")), |case| check(case, EnvPrecedence::Host));
}

#[test]
fn by_default_only_the_order_of_precedence_differs() {
    assert_documented(DEFAULT_DEVIATIONS);
    check_all_but(DEFAULT_DEVIATIONS, cases(include_str!("golden/env.json")), |case| check(case, EnvPrecedence::Skill));
}

#[test]
fn with_the_host_first_variables_are_those_of_the_newer_openclaw() {
    assert_documented(NEWER_DEVIATIONS);
    check_all_but(NEWER_DEVIATIONS, cases(include_str!("golden/env.newer.json")), |case| {
        check(case, EnvPrecedence::Host)
    });
}

/// Every skill of the case must get exactly the variables that the peer puts into its own environment.
fn check(case: &Value, precedence: EnvPrecedence) -> Result<(), String> {
    let input = &case["input"];
    let wanted = case["output"]["set"].as_object().ok_or("not about which variables a run gets")?;
    let (mut config, _) = SkillsConfig::read(&unfolded(&input["config"]["skills"]), Path::new("openclaw.json"));
    config.env_precedence = precedence;
    let before = input["pre"].as_object().expect("variables").iter();
    let host: HashSet<String> = before.filter(|(_, value)| *value != "").map(|(name, _)| name.clone()).collect();
    for skill in input["skills"].as_array().expect("skills") {
        let skill = made::skill(skill["name"].as_str().expect("a name"), "d", &skill["metadata"], "");
        let plan = env::plan(&skill, EnvInputs { config: &config, config_env: &[], host: &host });
        let got = set(&plan);
        if got != wanted.iter().map(|(name, value)| (name.clone(), repeated(value))).collect() {
            return Err(format!("{}: wanted {wanted:?}, got {:?}", skill.name, got.keys()));
        }
    }
    Ok(())
}

fn set(plan: &EnvPlan) -> BTreeMap<String, String> {
    let values = plan.vars.iter().filter_map(|(name, var)| match &var.value {
        EnvValue::Set(value) => Some((name.clone(), value.expose().to_owned())),
        EnvValue::Fetch(place) => Some((name.clone(), format!("from {place}"))),
        EnvValue::Inherit => None,
    });
    values.collect()
}

/// `<N x>` stands for that many letters.
fn repeated(value: &Value) -> String {
    let text = value.as_str().expect("a value");
    let count = text.strip_prefix('<').and_then(|rest| rest.strip_suffix(" x>")).and_then(|count| count.parse().ok());
    count.map_or_else(|| text.to_owned(), |count| "x".repeat(count))
}

fn unfolded(section: &Value) -> Value {
    let mut section = section.clone();
    for entry in section["entries"].as_object_mut().expect("entries").values_mut() {
        for value in entry["env"].as_object_mut().into_iter().flat_map(|env| env.values_mut()) {
            *value = json!(repeated(value));
        }
    }
    section
}

/// Plans a run of the skill `s` and shows the plan as `NAME=value`, `NAME<` (inherited) or `NAME@place` (to fetch).
fn planned(
    manifest: &Value,
    section: &Value,
    config_env: &[(&str, &str)],
    host: &[&str],
) -> (Vec<String>, Vec<String>) {
    let (config, _) = SkillsConfig::read(section, Path::new("openclaw.json"));
    let config_env: Vec<(String, Secret)> =
        config_env.iter().map(|(name, value)| ((*name).to_owned(), Secret::new(*value))).collect();
    let host: HashSet<String> = host.iter().map(|name| (*name).to_owned()).collect();
    let skill = made::skill("s", "d", manifest, "");
    let plan = env::plan(&skill, EnvInputs { config: &config, config_env: &config_env, host: &host });
    let vars = plan.vars.iter().map(|(name, var)| match &var.value {
        EnvValue::Set(value) => format!("{name}={}", value.expose()),
        EnvValue::Inherit => format!("{name}<"),
        EnvValue::Fetch(place) => format!("{name}@{place}"),
    });
    (vars.collect(), plan.refused.iter().map(|(name, layer, why)| format!("{name} {} {why:?}", layer.word())).collect())
}

fn entry(entry: &Value) -> Value {
    json!({"entries": {"s": entry}})
}

#[test]
fn the_nearer_setting_wins() {
    let manifest = json!({"primaryEnv": "A_KEY", "requires": {"env": ["A_KEY", "B"]}});
    let vars = |section: &Value, config: &[(&str, &str)]| planned(&manifest, section, config, &["A_KEY", "B", "C"]).0;
    assert_eq!(vars(&json!({}), &[]), ["A_KEY<", "B<"]);
    assert_eq!(vars(&json!({}), &[("A_KEY", "config")]), ["A_KEY=config", "B<"]);
    assert_eq!(vars(&entry(&json!({"apiKey": "key"})), &[("A_KEY", "config")]), ["A_KEY=key", "B<"]);
    let both = entry(&json!({"apiKey": "key", "env": {"A_KEY": "skill"}}));
    assert_eq!(vars(&both, &[("A_KEY", "config")]), ["A_KEY=skill", "B<"]);
    let mut host_first = both;
    host_first["envPrecedence"] = json!("host");
    assert_eq!(vars(&host_first, &[("A_KEY", "config")]), ["A_KEY<", "B<"]);
}

#[test]
fn a_skill_that_is_switched_off_gets_nothing() {
    let section = entry(&json!({"enabled": false, "apiKey": "k", "env": {"FOO": "1"}}));
    let (vars, refused) = planned(&json!({"primaryEnv": "FOO_API_KEY"}), &section, &[("BAR", "1")], &[]);
    assert!(vars.is_empty() && refused.is_empty(), "{vars:?} {refused:?}");
}

#[test]
fn a_credential_is_for_the_skill_that_declares_it() {
    let set = |manifest: Value, name: &str| {
        let section = json!({"entries": {"s": {"env": {name: "v"}}}});
        planned(&manifest, &section, &[], &[])
    };
    for name in [
        "OPENAI_API_KEY",
        "GH_TOKEN",
        "my_token",
        "DB_PASSWORD",
        "X_PRIVATE_KEY",
        "MY_SECRET",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "LINE_CHANNEL_SECRET",
    ] {
        assert_eq!(set(json!({}), name), (vec![], vec![format!("{name} skill Undeclared")]));
        let declared = vec![format!("{name}=v")];
        assert_eq!(set(json!({"primaryEnv": name}), name), (declared.clone(), vec![]));
        assert_eq!(set(json!({"requires": {"env": [name]}}), name), (declared, vec![]));
    }
}

#[test]
fn a_name_that_steers_a_process_is_refused_even_when_declared() {
    for name in [
        "NODE_OPTIONS",
        "NODE_PATH",
        "PYTHONHOME",
        "PYTHONPATH",
        "PERL5LIB",
        "PERL5OPT",
        "RUBYLIB",
        "RUBYOPT",
        "BASH_ENV",
        "ENV",
        "GIT_EXTERNAL_DIFF",
        "SHELL",
        "SHELLOPTS",
        "PS4",
        "GCONV_PATH",
        "IFS",
        "SSLKEYLOGFILE",
        "OPENSSL_CONF",
        "DYLD_INSERT_LIBRARIES",
        "LD_PRELOAD",
        "BASH_FUNC_x",
        "ld_preload",
        "HOME",
        "PATH",
        "HTTP_PROXY",
        "https_proxy",
        "EDITOR",
        "PYTHONSTARTUP",
        "GIT_SSH_COMMAND",
        "ZDOTDIR",
        "OPENCLAW_GATEWAY_TOKEN",
    ] {
        let section = json!({"entries": {"s": {"apiKey": "k", "env": {name: "v"}}}});
        let manifest = json!({"primaryEnv": name, "requires": {"env": [name]}});
        let (vars, refused) = planned(&manifest, &section, &[(name, "v")], &[name]);
        assert_eq!(vars, [""; 0], "{name}");
        assert_eq!(refused.len(), 3, "{name}: {refused:?}");
    }
}

#[test]
fn what_no_process_could_be_given_is_refused_or_passed_over() {
    let section = entry(
        &json!({"env": {" SPACED ": "v", "": "v", "  ": "v", "EMPTY": "", "NUL": "a\0b", "A=B": "v", "1A": "v"}}),
    );
    let (vars, refused) = planned(&json!({}), &section, &[], &[]);
    assert_eq!(vars, ["SPACED=v"]);
    assert_eq!(refused, ["NUL skill Nul", "A=B skill BadName", "1A skill BadName"]);
}

#[test]
fn a_key_needs_a_primary_variable_and_may_be_a_reference() {
    let with = |manifest: Value, key: Value| planned(&manifest, &entry(&json!({"apiKey": key})), &[], &[]).0;
    assert_eq!(with(json!({}), json!("k")), [""; 0]);
    assert_eq!(with(json!({"primaryEnv": "P"}), json!(" k ")), ["P=k"]);
    assert_eq!(with(json!({"primaryEnv": "P"}), json!("  ")), [""; 0]);
    let reference = json!({"source": "env", "provider": "default", "id": "X"});
    assert_eq!(with(json!({"primaryEnv": "P"}), reference), ["P@env:default:X"]);
}

#[test]
fn secrets_do_not_print_themselves() {
    let (config, _) = SkillsConfig::read(&entry(&json!({"apiKey": "hush", "env": {"A": "hush"}})), Path::new("x"));
    let skill = made::skill("s", "d", &json!({"primaryEnv": "P"}), "");
    let plan = env::plan(&skill, EnvInputs { config: &config, config_env: &[], host: &HashSet::new() });
    assert!(!format!("{config:?}{plan:?}").contains("hush"));
}
