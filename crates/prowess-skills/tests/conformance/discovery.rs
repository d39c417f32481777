//! The claims about finding skills.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use prowess_skills::{
    Catalog, Limits, Places, PluginPlaces, ProblemKind, Reach, SkillsConfig, Tier, find_bundled, plugin_dirs,
};
use prowess_testkit::Tree;
use serde_json::json;

use crate::conformance::{kinds, load, load_within, names, places};

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
