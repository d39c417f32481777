//! The claims about the file of a skill.

use std::path::Path;

use prowess_skills::install::Package;
use prowess_skills::{Budget, Document, Limits, ProblemKind, Skill, Tier, render};
use prowess_testkit::Tree;
use serde_json::json;

use crate::conformance::{kinds, load, made, names, read, take};

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
