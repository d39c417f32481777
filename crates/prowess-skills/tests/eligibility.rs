//! Eligibility: is a skill offered, and what is missing, where OpenClaw says so?

use crate::made;
use std::collections::HashSet;
use std::path::Path;

use prowess_skills::install::{InstallPrefs, options};
use prowess_skills::{
    Filter, Filters, Gate, Machine, Objection, Skill, SkillsConfig, Tier, World, probe, truthy_paths,
};
use prowess_testkit::{Tree, assert_documented, cases, check_all_but};
use serde_json::{Map, Value, json};

const PROGRAMS: &str = "what counts as a program";
const BLANK: &str = "blank values of variables";
const ALWAYS: &str = "`always` on the wrong system, in reports";
const SYSTEMS: &str = "other names of systems";
const PROTO: &str = "the path `__proto__`";

const DEVIATIONS: &[(&str, &str)] = &[
    ("bin-is-directory", PROGRAMS),
    ("bin-with-slash", PROGRAMS),
    ("env-via-entry-env-blank", BLANK),
    ("env-via-apikey-blank", BLANK),
    ("always-wrong-os", ALWAYS),
    ("os-uppercase", SYSTEMS),
    ("config-proto", PROTO),
];
const NEWER_DEVIATIONS: &[(&str, &str)] =
    &[("bin-is-directory", PROGRAMS), ("bin-with-slash", PROGRAMS), ("os-uppercase", SYSTEMS)];

#[test]
fn the_gate_decides_as_openclaw_does() {
    assert_documented(DEVIATIONS);
    let file = include_str!("golden/eligibility.json");
    let host = Host::new(file);
    check_all_but(DEVIATIONS, cases(file), |case| host.check(case));
}

#[test]
fn the_gate_decides_as_the_newer_openclaw_does() {
    assert_documented(NEWER_DEVIATIONS);
    let file = include_str!("golden/eligibility.newer.json");
    let host = Host::new(file);
    check_all_but(NEWER_DEVIATIONS, cases(file), |case| host.check(case));
}

/// The machine that the cases were recorded on: Linux, one folder of programs, a few variables.
struct Host {
    tree: Tree,
    env: HashSet<String>,
}

impl Host {
    fn new(golden: &str) -> Self {
        let tree = Tree::new()
            .exe("bins/exebin")
            .file("bins/noexec", "")
            .dir("bins/dirbin")
            .symlink("bins/linkbin", "exebin")
            .symlink("bins/broken", "nowhere")
            .exe("bins/sub/inner");
        let golden: Value = serde_json::from_str(golden).expect("a golden file");
        let vars = golden["env"].as_object().expect("variables").iter();
        // A variable counts when its value is not blank; whoever fills a `World` decides that.
        let env = vars.filter(|(_, value)| value.as_str().is_some_and(|value| !value.trim().is_empty()));
        Self { env: env.map(|(name, _)| name.clone()).collect(), tree }
    }

    fn check(&self, case: &Value) -> Result<(), String> {
        let got = self.facts(&case["input"]);
        let wanted = &case["output"];
        if *wanted == got { Ok(()) } else { Err(format!("\n  wanted {wanted}\n  got    {got}")) }
    }

    fn facts(&self, input: &Value) -> Value {
        let tier = if input["source"] == "openclaw-bundled" { Tier::Bundled } else { Tier::Workspace };
        let skill = Skill { tier, ..made::skill("s", "d", &input["metadata"], "") };
        let world = self.world(&skill, input);
        let (config, _) = SkillsConfig::read(&input["config"]["skills"], Path::new("openclaw.json"));
        let agent = input["skillFilter"]
            .as_array()
            .map_or_else(Filter::any, |names| Filter::only(names.iter().filter_map(Value::as_str)));
        let filters = Filters { agent, ..Filters::default() };
        let objections = Gate { world: &world, config: &config, filters: &filters }.objections(&skill);

        let missing: Map<String, Value> = objections
            .iter()
            .filter(|objection| !objection.items().is_empty())
            .map(|objection| (objection.id().to_owned(), json!(objection.items())))
            .collect();
        let check = |path: &String| json!({"path": path, "satisfied": world.config_is_truthy(path)});
        json!({
            "included": objections.is_empty(),
            "eligible": objections.iter().all(Objection::is_filter),
            "disabled": objections.contains(&Objection::Disabled),
            "blockedByAllowlist": objections.contains(&Objection::NotListed),
            "missing": missing,
            "configChecks": skill.metadata.needs.config.iter().map(check).collect::<Vec<_>>(),
        })
    }

    fn world(&self, skill: &Skill, input: &Value) -> World {
        let needs = &skill.metadata.needs;
        let wanted = needs.bins.iter().chain(&needs.any_bins).map(String::as_str).collect();
        let bins = probe(&wanted, self.tree.path("bins").as_os_str(), None);
        let mut machines = vec![Machine { os: "linux".to_owned(), bins }];
        let strings = |list: &Value| -> Vec<String> {
            list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        for os in strings(&input["remote"]["platforms"]) {
            machines.push(Machine { os, bins: strings(&input["remote"]["bins"]).into_iter().collect() });
        }
        let config = truthy_paths(&input["config"], needs.config.iter().map(String::as_str));
        World { machines, env: self.env.clone(), config, note: None }
    }
}

#[track_caller]
fn included(input: &Value) -> bool {
    let host = Host::new(include_str!("golden/eligibility.json"));
    host.facts(input)["included"].as_bool().expect("a verdict")
}

fn needs(key: &str, items: &Value) -> Value {
    json!({"metadata": {"requires": {key: items}}})
}

#[test]
fn a_program_is_an_executable_file_by_its_bare_name() {
    for (bins, wanted) in [
        (json!(["exebin"]), true),
        (json!(["linkbin", "exebin"]), true),
        (json!(["noexec"]), false),
        (json!(["dirbin"]), false),
        (json!(["broken"]), false),
        (json!(["sub/inner"]), false),
        (json!(["../bins/exebin"]), false),
        (json!(["./exebin"]), false),
        (json!(["/bin/sh"]), false),
        (json!(["."]), false),
        (json!([""]), true),
        (json!("exebin, linkbin"), true),
    ] {
        assert_eq!(included(&needs("bins", &bins)), wanted, "{bins}");
    }
    assert!(included(&needs("anyBins", &json!(["nope", "linkbin"]))));
    assert!(included(&needs("anyBins", &json!([]))));
    assert!(!included(&needs("anyBins", &json!(["nope"]))));
}

#[test]
fn a_variable_counts_when_it_has_a_value_somewhere() {
    let entry = |entry: Value, primary: &str| {
        json!({
            "metadata": {"primaryEnv": primary, "requires": {"env": ["UNSET_ENV"]}},
            "config": {"skills": {"entries": {"s": entry}}},
        })
    };
    for (name, wanted) in [("SET_ENV", true), ("BLANK_ENV", false), ("EMPTY_ENV", false), ("UNSET_ENV", false)] {
        assert_eq!(included(&needs("env", &json!([name]))), wanted, "{name}");
    }
    assert!(included(&entry(json!({"env": {"UNSET_ENV": "v"}}), "")));
    assert!(!included(&entry(json!({"env": {"UNSET_ENV": " "}}), "")));
    assert!(included(&entry(json!({"apiKey": "k"}), "UNSET_ENV")));
    assert!(!included(&entry(json!({"apiKey": "k"}), "OTHER")));
    assert!(!included(&entry(json!({"apiKey": " "}), "UNSET_ENV")));
    assert!(included(&entry(json!({"apiKey": {"source": "env", "id": "X"}}), "UNSET_ENV")));
    // Having a primary variable is no need.
    assert!(included(&json!({"metadata": {"primaryEnv": "UNSET_ENV"}})));
}

#[test]
fn configuration_paths_are_truthy_as_in_javascript() {
    let config = json!({
        "yes": true, "no": false, "zero": 0, "one": 1, "minus": -1, "blank": " ", "text": "x", "nothing": null,
        "map": {}, "list": [], "deep": [{"x": 1}, {"x": 0}], "browser": {},
    });
    for (path, wanted) in [
        ("yes", true),
        ("no", false),
        ("zero", false),
        ("one", true),
        ("minus", true),
        ("blank", false),
        ("text", true),
        ("nothing", false),
        ("nothing.x", false),
        ("map", true),
        ("list", true),
        ("list.0", false),
        ("deep.0.x", true),
        ("deep.1.x", false),
        ("deep.2.x", false),
        ("deep.00.x", false),
        ("deep.+0.x", false),
        ("deep.-1.x", false),
        ("text.length", false),
        ("text.0", false),
        ("yes.x", false),
        ("..yes..", true),
        (".", true),
        ("...", true),
        ("absent", false),
        ("Yes", false),
        ("browser.enabled", true),
        ("browser.evaluateEnabled", true),
        ("browser..enabled", false),
        (".browser.enabled", false),
        ("browser.other", false),
        ("__proto__", false),
        ("constructor", false),
    ] {
        let mut input = needs("config", &json!([path]));
        input["config"] = config.clone();
        assert_eq!(included(&input), wanted, "{path}");
    }
}

#[test]
fn systems_are_known_by_their_other_names() {
    for (os, wanted) in [
        (json!(["linux"]), true),
        (json!(["Linux"]), true),
        (json!(["darwin", "linux"]), true),
        (json!(["darwin"]), false),
        (json!(["macos"]), false),
        (json!(["windows"]), false),
        (json!("LINUX, darwin"), true),
        (json!([]), true),
    ] {
        assert_eq!(included(&json!({"metadata": {"os": os}})), wanted, "{os}");
    }
    for os in ["darwin", "macos", "MacOS", "mac"] {
        let remote = json!({"metadata": {"os": [os]}, "remote": {"platforms": ["darwin"], "bins": []}});
        assert!(included(&remote), "{os}");
    }
}

#[test]
fn always_waives_needs_and_nothing_else() {
    let with = |rest: Value| {
        let mut input = json!({"metadata": {"always": true, "requires": {"bins": ["nope"], "env": ["UNSET_ENV"]}}});
        for (key, value) in rest.as_object().expect("a map") {
            match key.as_str() {
                "os" => input["metadata"]["os"] = value.clone(),
                _ => input[key] = value.clone(),
            }
        }
        included(&input)
    };
    assert!(with(json!({})));
    assert!(!with(json!({"os": ["win32"]})));
    assert!(!with(json!({"config": {"skills": {"entries": {"s": {"enabled": false}}}}})));
    assert!(!with(json!({"source": "openclaw-bundled", "config": {"skills": {"allowBundled": ["x"]}}})));
    assert!(!with(json!({"skillFilter": ["x"]})));
}

#[test]
fn always_does_not_open_a_gate_that_cannot_be_read() {
    assert!(!included(&json!({"metadata": {"always": true, "requires": "curl"}})));
}

#[test]
fn switching_on_forces_nothing_and_the_entry_is_found_by_key() {
    let entries = |entries: Value, manifest: Value| {
        included(&json!({"metadata": manifest, "config": {"skills": {"entries": entries}}}))
    };
    assert!(!entries(json!({"s": {"enabled": true}}), json!({"requires": {"bins": ["nope"]}})));
    assert!(!entries(json!({"k": {"enabled": false}}), json!({"skillKey": "k"})));
    assert!(entries(json!({"s": {"enabled": false}}), json!({"skillKey": "k"})));
    assert!(entries(json!({"S": {"enabled": false}}), json!({})));
}

#[test]
fn the_list_of_bundled_skills_names_names_or_keys() {
    let allowed = |list: Value, key: &str| {
        included(&json!({
            "source": "openclaw-bundled",
            "metadata": {"skillKey": key},
            "config": {"skills": {"allowBundled": list}},
        }))
    };
    assert!(allowed(json!(["s"]), "k") && allowed(json!([" k "]), "k") && allowed(json!(["x", "s"]), ""));
    assert!(allowed(json!([]), "k") && allowed(json!([" "]), "k") && allowed(json!(null), "k"));
    assert!(!allowed(json!(["x"]), "k") && !allowed(json!(["S"]), "k") && !allowed(json!(["K"]), "k"));
    assert!(!allowed(json!(false), "k"));
    assert!(included(&json!({"config": {"skills": {"allowBundled": false}}})));
}

#[test]
fn lists_of_skills_go_by_name_and_both_must_agree() {
    let allows = |filters: &Filters| {
        let (world, config) = (World::default(), SkillsConfig::default());
        let skill = made::skill("s", "d", &json!({"skillKey": "k"}), "");
        Gate { world: &world, config: &config, filters }.objections(&skill).is_empty()
    };
    let (some, other, any) = (|| Filter::only([" s "]), || Filter::only(["x"]), Filter::any);
    for (agent, channel, wanted) in [
        (any(), any(), true),
        (some(), any(), true),
        (any(), some(), true),
        (some(), some(), true),
        (some(), other(), false),
        (other(), some(), false),
        (Filter::only(["k"]), any(), false),
        (Filter::only(["S"]), any(), false),
        (Filter::only([" "]), any(), false),
        (any(), Filter::only([""; 0]), false),
    ] {
        let filters = Filters { agent, channel };
        assert_eq!(allows(&filters), wanted, "{filters:?}");
    }
    let both = Filters { agent: Filter::only(["b", "a", "c"]), channel: Filter::only(["a", "x", "b"]) };
    assert_eq!(both.names(), Some(vec!["a".to_owned(), "b".to_owned()]));
}

#[test]
fn install_specs_know_systems_by_their_other_names_too() {
    let specs =
        json!([{"kind": "go", "module": "x.y/z", "os": ["MacOS"]}, {"kind": "uv", "package": "p", "os": ["linux"]}]);
    let skill = made::skill("s", "d", &json!({"install": specs}), "");
    let kinds = |os: &str| -> Vec<&str> {
        options(&skill.metadata.install, os, false, &InstallPrefs::default()).iter().map(|option| option.kind).collect()
    };
    assert_eq!((kinds("darwin"), kinds("linux"), kinds("win32")), (vec!["go"], vec!["uv"], vec![]));
}
