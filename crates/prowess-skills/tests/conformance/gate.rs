//! The claims about which skills may be offered.

use std::ffi::OsStr;

use prowess_skills::{Filters, Gate, Machine, Objection, SkillsConfig, Tier, World, probe, truthy_paths};
use prowess_testkit::Tree;
use serde_json::{Value, json};

use crate::conformance::{host, load, machine, made, objections, only, passes, take};

// M-GATE-01, M-GATE-02
#[test]
fn m_gate_01_02_an_entry_switches_off_by_key() {
    let off = |key: &str| json!({"entries": {key: {"enabled": false}}});
    let keyed = made(Tier::Workspace, "{skillKey: k}");
    assert_eq!(objections(&keyed, &host(&[]), &off("k")), [Objection::Disabled]);
    assert_eq!(objections(&keyed, &host(&[]), &off("s")), []);
    assert_eq!(objections(&made(Tier::Workspace, "{}"), &host(&[]), &off("s")), [Objection::Disabled]);
}

// M-GATE-03, M-GATE-14
#[test]
fn m_gate_03_14_some_reachable_system_must_be_listed() {
    for os in ["darwin", "linux", "win32"] {
        let world = |os: &str| World { machines: vec![machine(os, &[])], ..World::default() };
        assert!(passes(&format!("{{os: [{os}]}}"), &world(os), &Value::Null), "{os}");
        assert!(!passes(&format!("{{os: [{os}]}}"), &world("other"), &Value::Null), "{os}");
    }
    let with_node = World { machines: vec![machine("linux", &[]), machine("darwin", &[])], ..World::default() };
    assert!(passes("{os: [darwin]}", &with_node, &Value::Null));
}

// M-GATE-04, M-GATE-05
#[test]
fn m_gate_04_05_all_programs_or_one_of_them_on_the_path() {
    let tree = Tree::new().exe("bin/here").file("bin/plain", "not a program");
    let found = probe(&["here", "plain", "absent"].into(), tree.path("bin").as_os_str(), None);
    let world = World { machines: vec![Machine { os: "linux".to_owned(), bins: found }], ..World::default() };
    for (needs, passed) in [
        ("{bins: [here]}", true),
        ("{bins: [here, absent]}", false),
        ("{bins: [plain]}", cfg!(windows)),
        ("{anyBins: [absent, here]}", true),
        ("{anyBins: [absent]}", false),
    ] {
        assert_eq!(passes(&format!("{{requires: {needs}}}"), &world, &Value::Null), passed, "{needs}");
    }
    assert!(probe(&["here"].into(), OsStr::new(""), None).is_empty());
}

// M-GATE-06, M-GATE-07, M-GATE-08
#[test]
fn m_gate_06_07_08_a_variable_is_set_by_the_host_the_entry_or_the_key() {
    let world = World { env: ["HOST".to_owned()].into(), ..host(&[]) };
    let needs = |names: &str| format!("{{primaryEnv: KEY, requires: {{env: [{names}]}}}}");
    assert!(passes(&needs("HOST"), &world, &Value::Null));
    assert!(!passes(&needs("HOST, OWN"), &world, &Value::Null));
    assert!(passes(&needs("HOST, OWN"), &world, &json!({"entries": {"s": {"env": {"OWN": "v"}}}})));
    let key = json!({"entries": {"s": {"apiKey": "k"}}});
    assert!(passes(&needs("KEY"), &world, &key));
    assert!(!passes(&needs("OTHER"), &world, &key));
}

#[test]
fn m_gate_09_every_configuration_path_must_be_truthy() {
    let config = json!({"channels": {"slack": {"on": true}}, "off": false, "zero": 0});
    let needs = |paths: &str| {
        let world = World { config: truthy_paths(&config, paths.split(", ")), ..host(&[]) };
        passes(&format!("{{requires: {{config: [{paths}]}}}}"), &world, &Value::Null)
    };
    assert!(needs("channels.slack") && needs("channels.slack.on"));
    assert!(!needs("channels.slack, off") && !needs("zero") && !needs("absent.path"));
}

// M-GATE-10, M-GATE-11
#[test]
fn m_gate_10_11_always_waives_needs_and_nothing_else() {
    let all = "{always: true, requires: {bins: [x], anyBins: [y], env: [Z], config: [w]}}";
    assert!(passes(all, &host(&[]), &Value::Null));
    assert!(!passes("{always: true, os: [darwin]}", &host(&[]), &Value::Null));
    assert!(!passes(all, &host(&[]), &json!({"entries": {"s": {"enabled": false}}})));
    let listed = objections(&made(Tier::Bundled, all), &host(&[]), &json!({"allowBundled": ["other"]}));
    assert_eq!(listed, [Objection::NotListed]);
    let (world, config) = (host(&[]), SkillsConfig::default());
    let filters = Filters { agent: only(&["other"]), channel: only(&[]) };
    let filtered = Gate { world: &world, config: &config, filters: &filters }.objections(&made(Tier::Workspace, all));
    assert_eq!(filtered, [Objection::NotForAgent, Objection::NotForChannel]);
}

#[test]
fn m_gate_12_no_needs_no_objection() {
    assert!(passes("{}", &World::default(), &Value::Null));
    assert!(!passes("{requires: {bins: [x]}}", &World::default(), &Value::Null));
}

// M-GATE-13, M-GATE-15
#[test]
fn m_gate_13_15_programs_of_host_and_node_count_together() {
    let world = World { machines: vec![machine("linux", &["a"]), machine("darwin", &["b"])], ..World::default() };
    assert!(passes("{requires: {bins: [a, b]}}", &world, &Value::Null));
    assert!(passes("{requires: {anyBins: [absent, b]}}", &world, &Value::Null));
    assert!(!passes("{requires: {bins: [a, c]}}", &world, &Value::Null));
}

// M-GATE-16, M-GATE-17
#[test]
fn m_gate_16_17_what_is_held_back_is_not_in_the_prompt_and_every_reason_is_kept() {
    let extra = "metadata: {openclaw: {os: [darwin], requires: {bins: [x], env: [Y]}}}";
    let tree =
        Tree::new().dir("extra").skill("ws/skills/out", "Nowhere to be seen", extra).skill("ws/skills/in", "I", "");
    let snapshot = take(&load(&tree));
    assert!(snapshot.prompt().text.contains("<name>in</name>"));
    assert!(!snapshot.prompt().text.contains("out") && !snapshot.prompt().text.contains("Nowhere"));
    let held = snapshot.held_back();
    assert_eq!(held.iter().map(|held| held.skill.name.as_str()).collect::<Vec<_>>(), ["out"]);
    assert_eq!(held[0].objections.iter().map(Objection::id).collect::<Vec<_>>(), ["os", "bins", "env"]);
}
