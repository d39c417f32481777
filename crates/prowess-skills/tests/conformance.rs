//! The claims of `docs/conformance.md` that values alone can prove: each test names the claims it keeps.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use prowess_skills::env::{EnvInputs, EnvLayer, EnvPlan, EnvValue, Refusal, plan};
use prowess_skills::install::Package;
use prowess_skills::{
    Budget, Catalog, Document, Filter, Filters, Gate, Limits, MAX_NAME, Machine, Mode, Objection, Places, PluginPlaces,
    Problem, ProblemKind, Reach, Secret, Skill, SkillsConfig, Snapshot, Tier, World, commands, find_bundled,
    plugin_dirs, probe, render, resolve, sanitize, section, truthy_paths,
};
use prowess_testkit::Tree;
use serde_json::{Value, json};

/// The six places of a tree: `extra`, `bundled`, `managed`, `home` and `ws`.
fn places(tree: &Tree) -> Places {
    Places {
        extra: vec![tree.path("extra")],
        plugins: Vec::new(),
        bundled: Some(tree.path("bundled")),
        managed: Some(tree.path("managed")),
        home: Some(tree.path("home")),
        workspace: Some(tree.path("ws")),
    }
}

fn load_within(tree: &Tree, limits: Limits) -> Catalog {
    Catalog::load(&places(tree).roots(), &Reach { limits, ..Reach::default() })
}

fn load(tree: &Tree) -> Catalog {
    load_within(tree, Limits::default())
}

fn names<'a>(skills: impl IntoIterator<Item = &'a std::sync::Arc<Skill>>) -> Vec<&'a str> {
    skills.into_iter().map(|skill| skill.name.as_str()).collect()
}

fn kinds(problems: &[Problem]) -> Vec<ProblemKind> {
    problems.iter().map(|problem| problem.kind).collect()
}

/// The skill with this frontmatter, of the workspace tier and in a folder named `folder`.
fn read(frontmatter: &str) -> (Skill, Vec<Problem>) {
    let text = format!("---\n{frontmatter}\n---\n# body\n");
    Skill::parse(text.as_bytes(), Path::new("/skills/folder/SKILL.md"), Tier::Workspace).expect("a skill")
}

/// The skill `s` of a tier, with this manifest.
fn made(tier: Tier, manifest: &str) -> Skill {
    let text = format!("---\nname: s\ndescription: d\nmetadata: {{openclaw: {manifest}}}\n---\n");
    Skill::parse(text.as_bytes(), Path::new("/skills/s/SKILL.md"), tier).expect("a skill").0
}

fn settings(section: &Value) -> SkillsConfig {
    let (config, problems) = SkillsConfig::read(section, Path::new("openclaw.json"));
    assert_eq!(problems, [], "{section}");
    config
}

fn machine(os: &str, bins: &[&str]) -> Machine {
    Machine { os: os.to_owned(), bins: bins.iter().map(|&bin| bin.to_owned()).collect() }
}

/// A Linux host with these programs.
fn host(bins: &[&str]) -> World {
    World { machines: vec![machine("linux", bins)], ..World::default() }
}

fn objections(skill: &Skill, world: &World, section: &Value) -> Vec<Objection> {
    let (config, filters) = (settings(section), Filters::default());
    Gate { world, config: &config, filters: &filters }.objections(skill)
}

/// Whether the workspace skill `s` with this manifest passes.
fn passes(manifest: &str, world: &World, section: &Value) -> bool {
    objections(&made(Tier::Workspace, manifest), world, section).is_empty()
}

fn take_for(catalog: &Catalog, world: &World, section: &Value, filters: &Filters) -> Snapshot {
    let config = settings(section);
    let gate = Gate { world, config: &config, filters };
    Snapshot::take(catalog, &gate, None, &Budget::from(&config.limits))
}

fn take(catalog: &Catalog) -> Snapshot {
    take_for(catalog, &host(&[]), &Value::Null, &Filters::default())
}

fn only(list: &[&str]) -> Filter {
    Filter::only(list)
}

// M-DISC

#[test]
fn m_disc_01_six_tiers_from_weak_to_strong() {
    let words = Tier::ALL.map(Tier::word);
    assert_eq!(words, ["extra", "bundled", "managed", "personal", "project", "workspace"]);
    assert!(Tier::ALL.is_sorted());
    let roots = places(&Tree::new()).roots();
    assert_eq!(roots.iter().map(|root| root.tier).collect::<Vec<_>>(), Tier::ALL);
}

#[test]
fn m_disc_03_plugin_folders_load_with_the_extra_tier_and_win_in_it() {
    let manifest = r#"{"id": "p", "configSchema": {}, "skills": ["./mine"]}"#;
    let tree = Tree::new().file("plugins/p/openclaw.plugin.json", manifest).plant(
        "plugins/p/mine/both: Plugin
         extra/both: Extra
         bundled/low: Bundled
         plugins/p/mine/low: Plugin",
    );
    let (ws, dirs) = (tree.path("ws"), vec![tree.path("plugins/p")]);
    let home = PluginPlaces { configured: dirs, workspace: Some(ws), ..PluginPlaces::default() };
    let (plugins, problems) = plugin_dirs(&home, &json!({"plugins": {"entries": {"p": {"enabled": true}}}}));
    assert_eq!((plugins.len(), problems.len()), (1, 0), "{problems:?}");
    let catalog = Catalog::load(&Places { plugins, ..places(&tree) }.roots(), &Reach::default());
    let described = |name: &str| catalog.find(name).map(|skill| (skill.description.as_str(), skill.tier));
    assert_eq!(described("both"), Some(("Plugin", Tier::Extra)));
    assert_eq!(described("low"), Some(("Bundled", Tier::Bundled)));
}

#[test]
fn m_disc_04_of_the_memory_plugins_only_the_active_one_counts() {
    let manifest = |id: &str| json!({"id": id, "kind": "memory", "configSchema": {}, "skills": ["s"]}).to_string();
    let tree = Tree::new().file("a/openclaw.plugin.json", manifest("a")).file("b/openclaw.plugin.json", manifest("b"));
    let tree = tree.plant("a/s/one: A\nb/s/two: B");
    let (ws, configured) = (Some(tree.path("ws")), vec![tree.path("a"), tree.path("b")]);
    let home = PluginPlaces { configured, workspace: ws, ..PluginPlaces::default() };
    let active = |slot: &str| {
        let enabled = json!({"a": {"enabled": true}, "b": {"enabled": true}});
        let config = json!({"plugins": {"slots": {"memory": slot}, "entries": enabled}});
        plugin_dirs(&home, &config).0.into_iter().map(|(id, _)| id).collect::<Vec<_>>()
    };
    assert_eq!((active("a"), active("b")), (vec!["a".to_owned()], vec!["b".to_owned()]));
}

// M-DISC-05, M-DISC-06, M-DISC-07
#[test]
fn m_disc_05_06_07_the_variable_and_then_the_folder_beside_the_program_and_none_above_it() {
    let tree = Tree::new().exe("bin/prowess").exe("bare/prowess").dir("bin/skills").skill("skills/above", "d", "");
    let program = tree.path("bin/prowess");
    assert_eq!(find_bundled(Some("/other"), Some(&program)), Some(PathBuf::from("/other")));
    assert_eq!(find_bundled(None, Some(&program)), Some(tree.path("bin/skills")));
    assert_eq!(find_bundled(None, Some(&tree.path("bare/prowess"))), None);
}

// M-DISC-09, M-DISC-10, M-DISC-11
#[test]
fn m_disc_09_10_11_personal_project_and_workspace_folders() {
    let tree = Tree::new().plant(
        "home/.agents/skills/a: Personal
         ws/.agents/skills/b: Project
         ws/skills/c: Workspace",
    );
    let catalog = load(&tree);
    let tiers: Vec<Tier> = catalog.skills().iter().map(|skill| skill.tier).collect();
    assert_eq!(tiers, [Tier::Personal, Tier::Project, Tier::Workspace]);
    assert_eq!(Tier::ALL.iter().max(), Some(&Tier::Workspace));
}

// M-DISC-12, M-DISC-13
#[test]
fn m_disc_12_13_the_stronger_tier_replaces_the_weaker_whole() {
    let dirs = ["extra", "bundled", "managed", "home/.agents/skills", "ws/.agents/skills", "ws/skills"];
    let mut tree = Tree::new();
    for (dir, tier) in dirs.iter().zip(Tier::ALL) {
        let extra = if tier == Tier::Workspace { "" } else { "homepage: https://example.org\nemoji: X" };
        tree = tree.skill(&format!("{dir}/same"), tier.word(), extra);
        let catalog = load(&tree);
        let winner = catalog.find("same").expect("a skill");
        assert_eq!((winner.tier, winner.description.as_str()), (tier, tier.word()));
        assert_eq!(catalog.shadowed().len(), tier as usize);
    }
    let winner = load(&tree).find("same").cloned().expect("a skill");
    assert_eq!((&winner.homepage, &winner.emoji), (&None, &None));
}

// M-DISC-14, M-DISC-15
#[test]
fn m_disc_14_15_each_folder_with_the_file_is_one_skill_and_missing_roots_are_no_error() {
    let tree =
        Tree::new().plant("ws/skills/a: A\nws/skills/b: B\nws/skills/empty/\nmanaged/").file("ws/skills/x.md", "x");
    let catalog = load(&tree);
    assert_eq!(names(catalog.skills()), ["a", "b"]);
    // The extra root is configured, so its absence is worth a note; it stops nothing.
    assert_eq!(kinds(catalog.problems()), [ProblemKind::MissingRoot]);
    assert_eq!(load(&Tree::new().dir("extra")).problems(), []);
}

// M-DISC-16, M-DISC-17
#[test]
fn m_disc_16_17_flat_and_nested_layouts_work_side_by_side() {
    for root in ["extra", "bundled", "managed", "home/.agents/skills", "ws/.agents/skills", "ws/skills"] {
        let nested = Tree::new().dir("extra").skill(&format!("{root}/skills/nested"), "N", "");
        assert_eq!(names(load(&nested).skills()), ["nested"], "{root}");
        let both = nested.skill(&format!("{root}/flat"), "F", "");
        assert_eq!(names(load(&both).skills()), ["flat", "nested"], "{root}");
    }
}

#[test]
fn m_disc_18_a_root_larger_than_the_limit_is_reported_and_searched_tenfold() {
    let many =
        |count: usize| (0..count).fold(Tree::new().dir("extra"), |tree, at| tree.dir(&format!("ws/skills/{at}")));
    let reasons = |tree: &Tree, limits: Limits| -> Vec<String> {
        load_within(tree, limits).problems().iter().map(|problem| problem.reason.clone()).collect()
    };
    assert_eq!(Limits::default().candidates_per_root, 20_000);
    assert_eq!(reasons(&many(301), Limits::default()), [""; 0]);
    let peers = || Limits { candidates_per_root: 300, ..Limits::default() };
    assert_eq!(reasons(&many(300), peers()), [""; 0]);
    let told = reasons(&many(301), peers());
    assert!(told.len() == 1 && told[0].contains("301 folders") && told[0].contains("all were searched"), "{told:?}");
    // Ten times the limit, but not fewer than a thousand and not more than ten thousand.
    for (limit, looked_at) in [(5, 1_000), (100, 1_000), (150, 1_500), (2_000, 10_000)] {
        let tree = many(looked_at + 1);
        let catalog = load_within(&tree, Limits { candidates_per_root: limit, ..Limits::default() });
        let left_out = format!("1 of {} folders were not searched", looked_at + 1);
        let told = catalog.problems().iter().find(|problem| problem.reason == left_out);
        assert_eq!(told.map(|problem| &problem.path), Some(&tree.path("ws/skills")), "{limit}");
    }
    let (config, _) = SkillsConfig::read(&json!({"limits": {"maxCandidatesPerRoot": 7}}), Path::new("openclaw.json"));
    assert_eq!(config.limits.candidates_per_root, 7);
}

#[test]
fn m_disc_19_skills_of_one_root_and_of_all_roots_are_loaded_up_to_a_limit() {
    let tree = (0..203).fold(Tree::new().dir("extra"), |tree, at| tree.skill(&format!("ws/skills/s{at:03}"), "d", ""));
    let tree = tree.skill("managed/other", "d", "");
    let usual = Limits::default();
    assert_eq!((usual.skills_per_root, usual.skills), (20_000, 20_000));
    let catalog = load(&tree);
    assert_eq!((catalog.skills().len(), catalog.problems().len()), (204, 0));

    let catalog = load_within(&tree, Limits { skills: 203, ..usual.clone() });
    assert_eq!(catalog.skills().len(), 203);
    assert!(catalog.find("other").is_none(), "the lowest root gives way");
    assert_eq!(catalog.problems()[0].reason, "1 skills were not loaded: the limit is 203 skills in all");

    let catalog = load_within(&tree, Limits { skills_per_root: 200, ..usual });
    assert_eq!(catalog.skills().len(), 201);
    assert!(catalog.find("s199").is_some() && catalog.find("s200").is_none());
    assert_eq!(catalog.broken().len(), 3);
    assert!(catalog.problems().iter().any(|problem| problem.reason.starts_with("3 skills were not loaded")));
}

#[test]
fn m_disc_20_a_file_above_256000_bytes_is_not_loaded() {
    let sizes =
        json!({"extra": null, "ws/skills/fits/SKILL.md": "<256000 bytes>", "ws/skills/not/SKILL.md": "<256001 bytes>"});
    let catalog = load(&Tree::from_golden(&sizes));
    assert_eq!(names(catalog.skills()), ["fits"]);
    assert_eq!(kinds(catalog.problems()), [ProblemKind::TooLarge]);
}

// M-DISC-21, M-DISC-22
#[test]
fn m_disc_21_22_a_skill_knows_its_file_its_source_and_its_policy() {
    let extra = "disable-model-invocation: true\nmetadata: {openclaw: {emoji: E, requires: {bins: [x]}}}";
    let tree = Tree::new().dir("extra").skill("managed/one", "What it does", extra);
    let catalog = load(&tree);
    let skill = catalog.find("one").expect("a skill");
    assert_eq!((skill.name.as_str(), skill.description.as_str()), ("one", "What it does"));
    assert_eq!((skill.file.as_path(), skill.dir()), (&*tree.path("managed/one/SKILL.md"), &*tree.path("managed/one")));
    assert_eq!(skill.tier.label(), "openclaw-managed");
    assert_eq!(
        (skill.metadata.emoji.as_deref(), skill.metadata.needs.bins.as_slice()),
        (Some("E"), &["x".to_owned()][..])
    );
    assert!(skill.invocation.by_user && !skill.invocation.by_model);
}

#[test]
fn m_disc_23_loading_only_reads() {
    let tree = Tree::new().plant("extra/\nws/\nmanaged/a: A\nhome/");
    let before = everything_below(tree.root());
    assert_eq!(names(load(&tree).skills()), ["a"]);
    assert_eq!(everything_below(tree.root()), before);
    assert!(!tree.path("ws/skills").exists());
}

/// Every path below a folder, with the content of files.
fn everything_below(dir: &Path) -> BTreeSet<(PathBuf, Option<Vec<u8>>)> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(dir).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(everything_below(&path));
        }
        found.insert((path.clone(), fs::read(&path).ok()));
    }
    found
}

// M-FM

#[test]
fn m_fm_01_a_folder_with_yaml_and_then_markdown() {
    let text = "---\nname: a\ndescription: d\n---\n# Title\n\nname: not this\n---\n";
    let tree = Tree::new().dir("extra").file("ws/skills/a/SKILL.md", text).file("ws/skills/b/README.md", text);
    assert_eq!(names(load(&tree).skills()), ["a"]);
    assert_eq!(Document::parse(b"# no fence\n").expect_err("no skill").kind, ProblemKind::NoFrontmatter);
}

#[test]
fn m_fm_02_without_a_name_the_folder_names_it() {
    assert_eq!(read("name: mine\ndescription: d").0.name.as_str(), "mine");
    assert_eq!(read("description: d").0.name.as_str(), "folder");
}

#[test]
fn m_fm_03_without_a_description_it_is_no_skill() {
    let tree = Tree::new().dir("extra").file("ws/skills/a/SKILL.md", "---\nname: a\n---\n");
    let catalog = load(&tree);
    assert!(catalog.skills().is_empty());
    assert_eq!(kinds(catalog.problems()), [ProblemKind::NoDescription]);
}

// M-FM-04, M-FM-05
#[test]
fn m_fm_04_05_values_may_take_several_lines() {
    let described = |text: &str| {
        let (skill, problems) = read(text);
        assert_eq!(problems, [], "{text}");
        skill.description
    };
    assert_eq!(described("description: \"one\n  two\""), "one two");
    assert_eq!(described("description: >-\n  one\n  two"), "one two");
    assert_eq!(described("description: |\n  one\n  two"), "one\ntwo");
}

// M-FM-06, M-FM-07
#[test]
fn m_fm_06_07_metadata_is_json_or_nested_yaml() {
    for metadata in [
        r#"metadata: {"openclaw": {"requires": {"bins": ["a"]}}}"#,
        "metadata:\n  {\n    \"openclaw\": {\"requires\": {\"bins\": [\"a\",],},},\n  }",
        "metadata: '{\"openclaw\": {\"requires\": {\"bins\": [\"a\",]}}}'",
        "metadata:\n  openclaw:\n    requires:\n      bins:\n        - a",
    ] {
        let (skill, problems) = read(&format!("description: d\n{metadata}"));
        assert_eq!((skill.metadata.needs.bins.join(","), problems.len()), ("a".to_owned(), 0), "{metadata}");
    }
}

#[test]
fn m_fm_08_three_names_of_the_manifest_in_order() {
    let key = |blocks: &str| read(&format!("description: d\nmetadata: {{{blocks}}}")).0.metadata.skill_key;
    let [new, old, oldest] = ["openclaw", "clawdbot", "clawdis"].map(|name| format!("{name}: {{skillKey: {name}}}"));
    assert_eq!(key(&format!("{oldest}, {old}, {new}")).as_deref(), Some("openclaw"));
    assert_eq!(key(&format!("{oldest}, {old}")).as_deref(), Some("clawdbot"));
    assert_eq!(key(&oldest).as_deref(), Some("clawdis"));
}

#[test]
fn m_fm_09_known_damage_is_mended_and_other_damage_is_reported() {
    let (skill, problems) = read("name: a\ndescription: Use when: it rains");
    assert_eq!((skill.description.as_str(), kinds(&problems)), ("Use when: it rains", vec![ProblemKind::Mended]));
    let lost = Skill::parse(b"---\n[[[\n---\n", Path::new("/s/SKILL.md"), Tier::Workspace).expect_err("a problem");
    assert!(lost.kind == ProblemKind::BadFrontmatter && lost.at.is_some(), "{lost:?}");
}

// M-FM-10, M-FM-14
#[test]
fn m_fm_10_14_homepage_and_emoji_are_for_show() {
    let home = |text: &str| read(&format!("description: d\n{text}")).0.homepage;
    assert_eq!(home("homepage: https://top.example").as_deref(), Some("https://top.example"));
    let both = "homepage: https://top.example\nmetadata: {openclaw: {homepage: 'https://own.example'}}";
    assert_eq!(home(both).as_deref(), Some("https://own.example"));
    let skill = made(Tier::Workspace, "{emoji: 🌤️}");
    assert_eq!(skill.emoji.as_deref(), Some("🌤️"));
    assert!(!render([&skill], None, None, &Budget::from(&Limits::default())).text.contains("🌤️"));
}

// M-FM-11, M-FM-12, M-FM-13
#[test]
fn m_fm_11_12_13_who_may_call_and_where_the_command_goes() {
    let plain = read("description: d").0;
    assert!(plain.invocation.by_user && plain.invocation.by_model && plain.dispatch.is_none());
    let fields = "user-invocable: false\ndisable-model-invocation: true\ncommand-dispatch: tool\ncommand-tool: exec";
    let (skill, problems) = read(&format!("description: d\n{fields}\ncommand-arg-mode: raw"));
    assert!(!skill.invocation.by_user && !skill.invocation.by_model && problems.is_empty());
    assert_eq!(skill.dispatch.map(|dispatch| dispatch.tool).as_deref(), Some("exec"));
    let (_, problems) = read(&format!("description: d\n{fields}\ncommand-arg-mode: split"));
    assert_eq!(kinds(&problems), [ProblemKind::IgnoredMetadata]);
}

// M-FM-15, M-FM-16, M-FM-17, M-FM-18, M-FM-19
#[test]
fn m_fm_15_16_17_18_19_what_the_manifest_holds() {
    let requires = "{bins: [a], anyBins: [b], env: [C], config: [d.e]}";
    let text = format!("{{always: true, skillKey: k, primaryEnv: KEY, os: [darwin, linux], requires: {requires}}}");
    let skill = made(Tier::Workspace, &text);
    assert!(skill.metadata.always && !made(Tier::Workspace, "{always: 'true'}").metadata.always);
    assert_eq!((skill.key(), made(Tier::Workspace, "{}").key()), ("k", "s"));
    assert_eq!(skill.metadata.primary_env.as_deref(), Some("KEY"));
    let needs = &skill.metadata.needs;
    assert_eq!(needs.os, ["darwin", "linux"]);
    assert_eq!(
        [&needs.bins, &needs.any_bins, &needs.env, &needs.config].map(|list| list.join(",")),
        ["a", "b", "C", "d.e"]
    );
}

// M-FM-20, M-FM-21
#[test]
fn m_fm_20_21_five_kinds_of_install_specs_and_no_other() {
    let specs = "[{id: i, kind: brew, label: L, bins: [a, b], formula: f}, {kind: node, package: p}, \
        {kind: go, module: m.example/x}, {kind: uv, package: u}, {kind: download, url: 'https://h.example/a.tgz'}, \
        {kind: apt, package: gh}]";
    let (skill, problems) = read(&format!("description: d\nmetadata: {{openclaw: {{install: {specs}}}}}"));
    let install = &skill.metadata.install;
    let found: Vec<&str> = install.iter().map(prowess_skills::install::InstallSpec::kind).collect();
    assert_eq!(found, ["brew", "node", "go", "uv", "download"]);
    let packages: Vec<&str> = install
        .iter()
        .map(|spec| match &spec.package {
            Package::Brew(name) | Package::Node(name) | Package::Go(name) | Package::Uv(name) => name,
            Package::Download(file) => &file.url,
        })
        .map(String::as_str)
        .collect();
    assert_eq!(packages, ["f", "p", "m.example/x", "u", "https://h.example/a.tgz"], "what each kind needs");
    assert_eq!(
        (install[0].id.as_deref(), install[0].label.as_deref(), install[0].bins.as_slice()),
        (Some("i"), Some("L"), &["a".to_owned(), "b".to_owned()][..])
    );
    assert_eq!((install[1].id.as_deref(), install[1].label.as_deref(), install[1].bins.len()), (None, None, 0));
    assert_eq!(kinds(&problems), [ProblemKind::IgnoredMetadata]);
    assert!(problems[0].reason.contains("`install[5]` has the unknown kind `apt`"), "{problems:?}");
    let (skill, problems) = read("description: d\nmetadata: {openclaw: {install: [{kind: brew}, {kind: go}]}}");
    assert_eq!((skill.metadata.install.len(), problems.len()), (0, 2), "a spec without it is left out: {problems:?}");
}

#[test]
fn m_fm_22_the_document_keeps_every_pair() {
    let document = Document::parse(b"---\nname: a\nflavour: sweet\nlist: [1, 2]\n---\n").expect("a document");
    assert_eq!(document.keys().collect::<Vec<_>>(), ["name", "flavour", "list"]);
    assert!(document.flat().contains(&("flavour".to_owned(), "sweet".to_owned())));
    assert_eq!(document.get("list"), Some(&json!([1, 2])));
}

// M-FM-23, M-FM-24, M-FM-25
#[test]
fn m_fm_23_24_25_the_body_and_what_lies_beside_it_change_nothing() {
    let text = "---\nname: a\ndescription: Runs {baseDir}/x\n---\nRun {baseDir}/scripts/x\n";
    let tree = Tree::new().dir("extra").file("ws/skills/a/SKILL.md", text);
    let before = take(&load(&tree));
    assert!(before.prompt().text.contains("Runs {baseDir}/x"), "{}", before.prompt().text);
    let skill = "---\nname: inner\ndescription: d\n---\n";
    let tree = tree
        .file("ws/skills/a/_meta.json", r#"{"slug": "other", "displayName": "Other", "latest": {"version": "9"}}"#)
        .file("ws/skills/a/scripts/SKILL.md", skill)
        .file("ws/skills/a/references/SKILL.md", skill)
        .file("ws/skills/a/assets/SKILL.md", skill);
    let catalog = load(&tree);
    assert_eq!((names(catalog.skills()), catalog.problems().len()), (vec!["a"], 0));
    assert_eq!(take(&catalog).fingerprint(), before.fingerprint());
}

// M-GATE

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

// M-FILT

// M-FILT-01, M-FILT-02, M-FILT-03, M-FILT-04, M-FILT-05, M-FILT-06
#[test]
fn m_filt_01_02_03_04_05_06_the_list_of_bundled_skills() {
    let allows = |tier: Tier, list: Value| {
        let skill = made(tier, "{skillKey: k}");
        objections(&skill, &host(&[]), &json!({ "allowBundled": list })).is_empty()
    };
    assert!(allows(Tier::Bundled, Value::Null), "01: no list");
    assert!(!allows(Tier::Bundled, json!(["other"])), "02: a list without it");
    for tier in Tier::ALL.into_iter().filter(|&tier| tier != Tier::Bundled) {
        assert!(allows(tier, json!(["other"])) && allows(tier, json!(false)), "03: {tier:?}");
    }
    assert!(allows(Tier::Bundled, json!([])), "04: an empty list");
    assert!(!allows(Tier::Bundled, json!(false)), "05: none");
    assert!(allows(Tier::Bundled, json!(["s"])) && allows(Tier::Bundled, json!(["k"])), "06: name or key");
}

// M-FILT-07, M-FILT-08, M-FILT-09
#[test]
fn m_filt_07_08_09_lists_of_agents_and_channels() {
    let catalog = load(&Tree::new().plant("extra/\nws/skills/a: A\nws/skills/b: B\nws/skills/c: C"));
    let kept = |agent: Filter, channel: Filter| {
        let snapshot = take_for(&catalog, &host(&[]), &Value::Null, &Filters { agent, channel });
        names(snapshot.skills()).join(" ")
    };
    assert_eq!(kept(Filter::any(), Filter::any()), "a b c");
    assert_eq!(kept(Filter::any(), only(&["a", "b"])), "a b");
    assert_eq!(kept(only(&["b", "c"]), Filter::any()), "b c");
    assert_eq!(kept(only(&["b", "c"]), only(&["a", "b"])), "b");
    assert_eq!(kept(only(&[]), Filter::any()), "");
}

#[test]
fn m_filt_10_a_hidden_skill_passes_and_is_not_shown() {
    let tree = Tree::new().dir("extra").skill("ws/skills/h", "Hidden", "disable-model-invocation: true");
    let snapshot =
        take_for(&load(&tree), &host(&[]), &Value::Null, &Filters { agent: only(&["h"]), channel: only(&["h"]) });
    assert_eq!((names(snapshot.skills()), snapshot.visible().count()), (vec!["h"], 0));
    assert_eq!(snapshot.prompt().text, "");
}

#[test]
fn m_filt_11_all_four_have_to_agree() {
    let tree = Tree::new().dir("extra").skill("bundled/x", "X", "metadata: {openclaw: {requires: {bins: [b]}}}");
    let catalog = load(&tree);
    let passes = |enabled: bool, listed: &str, bin: &str, filter: &str| {
        let section = json!({"allowBundled": [listed], "entries": {"x": {"enabled": enabled}}});
        let filters = Filters { agent: only(&[filter]), ..Filters::default() };
        !take_for(&catalog, &host(&[bin]), &section, &filters).skills().is_empty()
    };
    assert!(passes(true, "x", "b", "x"));
    assert!(!passes(false, "x", "b", "x") && !passes(true, "o", "b", "x"));
    assert!(!passes(true, "x", "o", "x") && !passes(true, "x", "b", "o"));
}

// M-SNAP

// M-SNAP-01, M-SNAP-02, M-SNAP-03, M-SNAP-04
#[test]
fn m_snap_01_02_03_04_what_a_snapshot_holds() {
    let needs = "metadata: {openclaw: {primaryEnv: KEY, requires: {env: [KEY, MORE]}}}";
    let hidden = format!("disable-model-invocation: true\n{needs}");
    let tree = Tree::new().dir("extra").skill("ws/skills/hidden", "H", &hidden).skill("ws/skills/shown", "S", "");
    let catalog = load(&tree.skill("ws/skills/unmet", "U", "metadata: {openclaw: {requires: {bins: [x]}}}"));
    let world = World { env: ["KEY", "MORE"].map(str::to_owned).into(), ..host(&[]) };
    let snapshot = take_for(&catalog, &world, &Value::Null, &Filters::default());
    assert!(snapshot.prompt().text.starts_with("<available_skills>"));
    assert_eq!(snapshot.fingerprint().to_string().len(), 64);
    assert_eq!(names(snapshot.skills()), ["hidden", "shown"]);
    let record = &snapshot.skills()[0].metadata;
    assert_eq!((record.primary_env.as_deref(), record.needs.env.join(" ")), (Some("KEY"), "KEY MORE".to_owned()));
    assert_eq!(names(snapshot.visible()), ["shown"]);
    assert_eq!(snapshot.filter(), None);
    let filters = Filters { agent: only(&["shown"]), ..Filters::default() };
    let filtered = take_for(&catalog, &world, &Value::Null, &filters);
    assert_eq!(filtered.filter(), Some(&["shown".to_owned()][..]));
}

// M-SNAP-08, M-SNAP-09
#[test]
fn m_snap_08_09_equal_content_has_an_equal_fingerprint() {
    let tree = Tree::new().dir("extra").skill("ws/skills/a", "One", "");
    let first = take(&load(&tree)).fingerprint();
    let tree = tree.skill("ws/skills/a", "One", ""); // written anew, with the same bytes
    assert_eq!(take(&load(&tree)).fingerprint(), first);
    let tree = tree.skill("ws/skills/a", "Two", "");
    assert_ne!(take(&load(&tree)).fingerprint(), first);
}

#[test]
fn m_snap_11_remote_machines_are_part_of_a_snapshot() {
    let tree = Tree::new().dir("extra").skill("ws/skills/a", "A", "metadata: {openclaw: {requires: {bins: [remote]}}}");
    let catalog = load(&tree);
    let alone = take(&catalog);
    let note = Some("The node `mac` can run commands.".to_owned());
    let machines = vec![machine("linux", &[]), machine("darwin", &["remote"])];
    let world = World { machines, note, ..World::default() };
    let snapshot = take_for(&catalog, &world, &Value::Null, &Filters::default());
    assert_eq!((alone.skills().len(), names(snapshot.skills())), (0, vec!["a"]));
    assert!(snapshot.prompt().text.starts_with("The node `mac` can run commands.\n<available_skills>"));
    assert_ne!(snapshot.fingerprint(), alone.fingerprint());
}

// M-PROMPT

/// Skills `s000`, `s001`, … in the workspace, each with this description.
fn crowd(count: usize, description: &str) -> Vec<Skill> {
    let one = |at: usize| {
        let text = format!("---\nname: s{at:03}\ndescription: {description}\n---\nThe body stays unread.\n");
        let file = PathBuf::from(format!("/home/me/skills/s{at:03}/SKILL.md"));
        Skill::parse(text.as_bytes(), &file, Tier::Workspace).expect("a skill").0
    };
    (0..count).map(one).collect()
}

// M-PROMPT-01, M-PROMPT-02, M-PROMPT-03, M-PROMPT-04, M-PROMPT-05, M-PROMPT-22
#[test]
fn m_prompt_01_02_03_04_05_22_the_catalogue_word_for_word() {
    let budget = Budget::from(&Limits::default());
    let shown = render(&crowd(2, "Does it."), Some(Path::new("/home/me")), Some("A note."), &budget);
    let one = |name: &str| {
        format!(
            "  <skill>\n    <name>{name}</name>\n    <description>Does it.</description>\n    \
             <location>~/skills/{name}/SKILL.md</location>\n  </skill>\n"
        )
    };
    let block = format!("<available_skills>\n{}{}</available_skills>", one("s000"), one("s001"));
    assert_eq!(shown.text, format!("A note.\n{block}"));
    let elsewhere = render(&crowd(1, "Does it."), Some(Path::new("/home/you")), None, &budget);
    assert!(elsewhere.text.contains("<location>/home/me/skills/s000/SKILL.md</location>"));
}

#[test]
fn m_prompt_06_at_most_150_skills() {
    let shown = render(&crowd(153, "d"), None, None, &Budget::from(&Limits::default()));
    assert_eq!(shown.text.matches("<skill>").count(), 150);
    assert_eq!(shown.cut.dropped, ["s150", "s151", "s152"]);
}

// M-PROMPT-07, M-PROMPT-08
#[test]
fn m_prompt_07_08_descriptions_shrink_before_names_are_dropped() {
    let budget = Budget::from(&Limits::default());
    assert_eq!(budget.chars, 30_000);
    let shown = render(&crowd(100, &"words ".repeat(100)), None, None, &budget);
    assert!((25_000..=30_000).contains(&shown.chars()), "{}", shown.chars());
    assert_eq!(shown.text.matches("<skill>").count(), 100);
    assert!(shown.cut.dropped.is_empty() && !shown.cut.shortened.is_empty());
    let tight = render(&crowd(100, &"words ".repeat(100)), None, None, &Budget { chars: 3_000, ..budget });
    assert!(tight.chars() <= 3_000 && !tight.cut.dropped.is_empty() && tight.cut.shortened.is_empty());
    assert!(!tight.text.contains("<description>"));
}

#[test]
fn m_prompt_09_a_line_counts_what_was_cut() {
    let budget = Budget { skills: 4, chars: 30_000, tokens: None };
    let cut = render(&crowd(6, "d"), None, None, &budget);
    assert!(cut.text.starts_with("Note: 4 of 6 skills are listed.\n"), "{}", cut.text);
    assert!(render(&crowd(4, "d"), None, None, &budget).text.starts_with("<available_skills>"));
    let short = render(&crowd(4, &"words ".repeat(50)), None, None, &Budget { chars: 1_000, ..budget.clone() });
    let told = "Note: 4 of 4 skills are listed, 4 with a shortened description.\n";
    assert!(short.text.starts_with(told), "{}", short.text);
    let bare = render(&crowd(4, &"words ".repeat(50)), None, None, &Budget { chars: 480, ..budget });
    assert!(bare.text.starts_with("Note: 4 of 4 skills are listed, 4 by name only.\n"), "{}", bare.text);
}

// M-PROMPT-10, M-PROMPT-11, M-PROMPT-12, M-PROMPT-13, M-PROMPT-14, M-PROMPT-15, M-PROMPT-16, M-PROMPT-17
#[test]
fn m_prompt_10_11_12_13_14_15_16_17_the_rules_of_the_section() {
    let text = section("\n  <available_skills>…</available_skills>\n\n", Mode::Full, "read_file");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "## Skills (mandatory)");
    for (line, words) in [
        (1, &["Before replying", "scan", "<description>"][..]),
        (2, &["exactly one skill clearly applies", "read its SKILL.md at <location> with `read_file`", "follow it"]),
        (3, &["multiple could apply", "most specific"]),
        (4, &["none clearly apply", "do not read any"]),
        (5, &["never read more than one skill up front", "only read after selecting"]),
    ] {
        assert!(words.iter().all(|word| lines[line].contains(word)), "{line}: {}", lines[line]);
    }
    assert_eq!(lines[6..], ["", "<available_skills>…</available_skills>"]);
}

// M-PROMPT-18, M-PROMPT-19, M-PROMPT-20, M-PROMPT-21
#[test]
fn m_prompt_18_19_20_21_when_there_is_no_section() {
    assert_ne!(section("x", Mode::Full, "read"), "");
    assert_eq!(section("x", Mode::Minimal, "read"), "");
    assert_eq!(section("x", Mode::None, "read"), "");
    assert_eq!(section(" \n", Mode::Full, "read"), "");
    assert_eq!(Mode::default(), Mode::Full);
}

// M-CMD

fn called(frontmatters: &[&str]) -> Vec<(String, String)> {
    let skills: Vec<Skill> = frontmatters.iter().map(|text| read(&format!("{text}\ndescription: d")).0).collect();
    let made = commands(&skills, ["help"]).into_iter().map(|command| (command.name, command.skill.to_string()));
    made.collect()
}

// M-CMD-01, M-CMD-02, M-CMD-03
#[test]
fn m_cmd_01_02_03_who_has_a_command() {
    let tree = Tree::new()
        .dir("extra")
        .skill("ws/skills/a", "A", "")
        .skill("ws/skills/hidden", "H", "disable-model-invocation: true")
        .skill("ws/skills/closed", "C", "user-invocable: false")
        .skill("ws/skills/unmet", "U", "metadata: {openclaw: {requires: {bins: [x]}}}");
    let snapshot = take(&load(&tree));
    let made = commands(snapshot.skills().iter().map(AsRef::as_ref), [""; 0]);
    assert_eq!(made.iter().map(|command| command.name.as_str()).collect::<Vec<_>>(), ["a", "hidden"]);
    assert!(!snapshot.prompt().text.contains("hidden"));
}

// M-CMD-04, M-CMD-05, M-CMD-06, M-CMD-07
#[test]
fn m_cmd_04_05_06_07_how_a_command_is_named() {
    for (name, wanted) in [("GitHub", "github"), ("a - b.c", "a_b_c"), ("a__b", "a_b"), ("_-x9-_", "x9"), ("né", "n")]
    {
        assert_eq!(sanitize(name), wanted, "{name}");
    }
    assert_eq!((MAX_NAME, sanitize(&"x".repeat(40)).len()), (32, 32));
}

#[test]
fn m_cmd_08_names_that_collide_get_numbers() {
    let found = called(&["name: a b", "name: a-b", "name: A_B", "name: help"]);
    let found: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(found, ["a_b", "a_b_2", "a_b_3", "help_2"]);
}

// M-CMD-09, M-CMD-10, M-CMD-11, M-CMD-12, M-CMD-14
#[test]
fn m_cmd_09_10_11_12_14_what_a_message_calls() {
    let skill = read("name: gh-issues\ndescription: d").0;
    let made = commands([&skill], [""; 0]);
    assert_eq!(made[0].name, "gh_issues");
    let args = |message: &'static str| resolve(message, &made).map(|call| call.args);
    for message in ["/gh-issues", "/gh_issues", "/skill gh-issues", "/skill gh_issues", " /GH-issues "] {
        assert_eq!(args(message), Some(None), "{message}");
    }
    assert_eq!(args("/gh-issues a  \"b c\"\t--d=$E\n/f"), Some(Some("a  \"b c\"\t--d=$E\n/f")));
    assert_eq!(args("/skill gh-issues a  b"), Some(Some("a  b")));
    assert_eq!(args("  /gh-issues \t a  b \n "), Some(Some("a  b")), "without what is around them");
    for message in ["gh-issues", "please /gh-issues", "skill gh-issues", "/", "/other", "/skill other"] {
        assert_eq!(args(message), None, "{message}");
    }
}

#[test]
fn m_cmd_13_a_command_may_name_the_tool_it_goes_to() {
    let tool = |fields: &str| {
        let skill = read(&format!("description: d\n{fields}")).0;
        commands([&skill], [""; 0]).remove(0).dispatch.map(|dispatch| dispatch.tool)
    };
    assert_eq!(tool("command-dispatch: tool\ncommand-tool: exec").as_deref(), Some("exec"));
    assert_eq!(tool("command-tool: exec"), None);
    assert_eq!(tool("command-dispatch: tool"), None);
}

// M-ENV

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

// M-CONF

// M-CONF-02, M-CONF-03, M-CONF-06, M-CONF-07, M-CONF-08
#[test]
fn m_conf_02_03_06_07_08_the_section_is_read() {
    let config = settings(&json!({
        "allowBundled": ["a", "b"],
        "load": {"extraDirs": ["~/x", "y"]},
        "install": {"preferBrew": false, "nodeManager": "bun"},
        "limits": {
            "maxCandidatesPerRoot": 1, "maxSkillsLoadedPerSource": 2, "maxSkillsInPrompt": 3,
            "maxSkillsPromptChars": 4, "maxSkillFileBytes": 5,
        },
    }));
    assert_eq!(config.allow_bundled, prowess_skills::AllowBundled::Only(["a", "b"].map(str::to_owned).into()));
    assert_eq!(config.extra_dirs, ["~/x", "y"]);
    assert_eq!((config.install.prefer_brew, config.install.node_manager.as_str()), (false, "bun"));
    let Limits { candidates_per_root, skills_per_root, prompt_skills, prompt_chars, file_bytes, .. } = config.limits;
    assert_eq!((candidates_per_root, skills_per_root, prompt_skills, prompt_chars, file_bytes), (1, 2, 3, 4, 5));
    for manager in ["npm", "pnpm", "yarn", "bun"] {
        assert_eq!(settings(&json!({"install": {"nodeManager": manager}})).install.node_manager, manager);
    }
    let (_, problems) = SkillsConfig::read(&json!({"install": {"nodeManager": "cargo"}}), Path::new("openclaw.json"));
    assert_eq!(kinds(&problems), [ProblemKind::Setting]);
}
