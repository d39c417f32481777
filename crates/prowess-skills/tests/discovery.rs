//! Discovery: are the same skills found, and the same ones win, as in OpenClaw?

use std::path::{Path, PathBuf};

use prowess_skills::{Catalog, Places, ProblemKind, Reach, SkillsConfig};
use prowess_testkit::{Tree, assert_documented, cases, check_all_but};
use serde_json::{Value, json};

const NESTED: &str = "a `skills` folder beside other skills";
const ONE: &str = "what else lies in a skill's folder";
const IGNORED: &str = "`.gitignore` inside a skill";
const SLOTS: &str = "folders without a `SKILL.md`";
const REAL: &str = "the location of a linked skill";
const ESCAPES: &str = "links that lead out of a root";
const CANDIDATES: &str = "more folders than `maxCandidatesPerRoot`";

const DEVIATIONS: &[(&str, &str)] = &[
    ("workspace-skills-skills", NESTED),
    ("root-is-skill", ONE),
    ("sub-skill-in-skill-dir", ONE),
    ("gitignore", IGNORED),
    ("limit-per-source", SLOTS),
    ("symlink-dir-escape-managed", REAL),
    ("symlink-dir-escape-bundled", ESCAPES),
    ("symlink-file-escape-managed", ESCAPES),
    ("hardlink-workspace", ESCAPES),
];
const NEWER_DEVIATIONS: &[(&str, &str)] = &[("limit-candidates", CANDIDATES)];

#[test]
fn trees_load_as_openclaw_loads_them() {
    assert_documented(DEVIATIONS);
    check_all_but(DEVIATIONS, cases(include_str!("golden/discovery.json")), |case| {
        let tree = Tree::from_golden(&case["tree"]);
        same(&case["output"], &facts(&tree, &load(&tree, &case["config"])))
    });
}

#[test]
fn trees_load_as_the_newer_openclaw_loads_them() {
    assert_documented(NEWER_DEVIATIONS);
    check_all_but(NEWER_DEVIATIONS, cases(include_str!("golden/discovery.newer.json")), |case| {
        let tree = Tree::from_golden(&case["tree"]);
        // It sorts by name and language; which skills there are is what we follow, not their order.
        let by_name = |facts: &Value| {
            let mut facts = facts.as_array().cloned().unwrap_or_default();
            facts.sort_by_key(|fact| fact["name"].to_string());
            Value::from(facts)
        };
        same(&by_name(&case["output"]), &by_name(&facts(&tree, &load(&tree, &case["config"]))))
    });
}

/// Loads a tree laid out as the recorded ones are.
fn load(tree: &Tree, config: &Value) -> Catalog {
    let (config, _) = SkillsConfig::read(&config["skills"], Path::new("openclaw.json"));
    let absolute = |path: &String| match path.strip_prefix("~/") {
        Some(below) => tree.path("home").join(below),
        None => PathBuf::from(tree.expand(path)),
    };
    let places = Places {
        extra: config.extra_dirs.iter().map(absolute).collect(),
        bundled: Some(tree.path("bundled")),
        managed: Some(tree.path("managed")),
        home: Some(tree.path("home")),
        workspace: Some(tree.path("ws")),
        ..Places::default()
    };
    let link_targets = config.allow_symlink_targets.iter().map(absolute).collect();
    Catalog::load(&places.roots(), &Reach { limits: config.limits, link_targets })
}

fn facts(tree: &Tree, catalog: &Catalog) -> Value {
    let fact = |skill: &std::sync::Arc<prowess_skills::Skill>| {
        json!({
            "name": skill.name.as_str(),
            "description": skill.description,
            "source": skill.tier.label(),
            "filePath": tree.mask(&skill.file.to_string_lossy()),
        })
    };
    catalog.skills().iter().map(fact).collect::<Vec<_>>().into()
}

fn same(wanted: &Value, got: &Value) -> Result<(), String> {
    if wanted == got { Ok(()) } else { Err(format!("\n  wanted {wanted}\n  got    {got}")) }
}

/// The names that load, in order, each with the word for its tier.
fn names(tree: &Tree, config: &Value) -> Vec<String> {
    let catalog = load(tree, config);
    catalog.skills().iter().map(|skill| format!("{}@{}", skill.name, skill.tier.word())).collect()
}

fn extra() -> Value {
    json!({"skills": {"load": {"extraDirs": ["$ROOT/extra"]}}})
}

#[test]
fn the_higher_tier_wins_and_takes_the_place_of_the_lower() {
    let all = "extra/x: extra
        bundled/x: bundled
        bundled/y: bundled
        managed/x: managed
        home/.agents/skills/x: personal
        ws/.agents/skills/x: project
        ws/skills/x: workspace
        ws/skills/a: workspace";
    let tree = Tree::new().plant(all);
    assert_eq!(names(&tree, &extra()), ["x@workspace", "y@bundled", "a@workspace"]);
    let catalog = load(&tree, &extra());
    let hidden: Vec<&str> = catalog.shadowed().iter().map(|hidden| hidden.skill.tier.word()).collect();
    assert_eq!(hidden, ["extra", "bundled", "managed", "personal", "project"]);
    assert!(catalog.shadowed().iter().all(|hidden| hidden.by == tree.path("ws/skills/x/SKILL.md")));
}

#[test]
fn within_a_tier_the_later_wins() {
    let tree = Tree::new()
        .file("ws/skills/a/SKILL.md", "---\nname: dup\ndescription: first\n---\n")
        .file("ws/skills/b/SKILL.md", "---\nname: dup\ndescription: second\n---\n")
        .plant("one/x: first\ntwo/x: second\nplugin/x: third");
    let catalog = load(&tree, &json!({"skills": {"load": {"extraDirs": ["$ROOT/one", "$ROOT/two"]}}}));
    let described: Vec<&str> = catalog.skills().iter().map(|skill| skill.description.as_str()).collect();
    assert_eq!(described, ["second", "second"]);

    let places = Places {
        extra: vec![tree.path("one"), tree.path("two")],
        plugins: vec![("p".to_owned(), tree.path("plugin"))],
        ..Places::default()
    };
    let catalog = Catalog::load(&places.roots(), &Reach::default());
    assert_eq!(catalog.find("x").expect("x").description, "third");
}

#[test]
fn names_differ_by_case_and_merge_after_trimming() {
    let tree = Tree::new()
        .file("bundled/a/SKILL.md", "---\nname: '  Tool '\ndescription: padded\n---\n")
        .file("ws/skills/b/SKILL.md", "---\nname: Tool\ndescription: plain\n---\n")
        .file("ws/skills/c/SKILL.md", "---\nname: tool\ndescription: lower\n---\n");
    assert_eq!(names(&tree, &json!({})), ["Tool@workspace", "tool@workspace"]);
}

#[test]
fn a_broken_skill_hides_nothing() {
    let tree = Tree::new()
        .plant("managed/x: fine\nws/skills/ok: fine")
        .file("ws/skills/x/SKILL.md", "no frontmatter\n")
        .file("ws/skills/y/SKILL.md", "---\nname: y\n---\n");
    assert_eq!(names(&tree, &json!({})), ["x@managed", "ok@workspace"]);
    let broken: Vec<ProblemKind> = load(&tree, &json!({})).broken().iter().map(|broken| broken.problem.kind).collect();
    assert_eq!(broken, [ProblemKind::NoFrontmatter, ProblemKind::NoDescription]);
}

#[test]
fn a_skills_folder_loads_beside_its_siblings() {
    for (plant, wanted) in [
        ("extra/skills/n1: d\nextra/skills/n2: d\nextra/top: d", &["n1@extra", "n2@extra", "top@extra"][..]),
        ("extra/skills/n1: d", &["n1@extra"]),
        ("extra/skills/nothing/\nextra/top: d", &["top@extra"]),
        ("extra/skills/group/n1: d\nextra/a: d", &["a@extra", "n1@extra"]),
    ] {
        assert_eq!(names(&Tree::new().plant(plant), &extra()), wanted, "{plant}");
    }
}

#[test]
fn a_root_that_is_a_skill_is_that_one_skill() {
    let tree = Tree::new()
        .file("extra/SKILL.md", "---\nname: rootskill\ndescription: d\n---\n")
        .plant("extra/skills/n1: d\nextra/child: d");
    assert_eq!(names(&tree, &extra()), ["rootskill@extra"]);
    assert!(load(&tree, &extra()).problems().iter().any(|problem| problem.kind == ProblemKind::Swallowed));
}

#[test]
fn a_folder_with_a_skill_is_not_looked_into() {
    let tree = Tree::new()
        .plant("ws/skills/a: d\nws/skills/a/sub: d\nws/skills/a/skills/deep: d")
        .file("ws/skills/a/ref.md", "---\nname: ref\ndescription: d\n---\n")
        .file("ws/skills/loose.md", "---\nname: loose\ndescription: d\n---\n");
    assert_eq!(names(&tree, &json!({})), ["a@workspace"]);
}

#[test]
fn grouped_skills_are_found_six_levels_deep_in_every_tier() {
    let tree = Tree::new().plant(
        "ws/skills/g/one: d
         ws/skills/g/h/two: d
         ws/skills/1/2/3/4/5/six: d
         ws/skills/1/2/3/4/5/6/seven: d
         extra/1/2/3/4/5/extra-six: d
         extra/skills/1/2/3/4/5/nested-six: d",
    );
    assert_eq!(
        names(&tree, &extra()),
        ["extra-six@extra", "nested-six@extra", "six@workspace", "two@workspace", "one@workspace"]
    );
    let over: Vec<String> = load(&tree, &extra())
        .problems()
        .iter()
        .filter(|problem| problem.kind == ProblemKind::OverLimit)
        .map(|problem| tree.mask(&problem.path.to_string_lossy()))
        .collect();
    assert_eq!(over, ["$ROOT/ws/skills/1/2/3/4/5/6"]);
}

#[test]
fn hidden_folders_and_node_modules_are_passed_over() {
    let tree = Tree::new().plant(
        "ws/skills/.hidden: d
         ws/skills/node_modules/x: d
         ws/skills/.git/hooks/y: d
         ws/skills/g/node_modules/z: d
         ws/skills/ok: d",
    );
    assert_eq!(names(&tree, &json!({})), ["ok@workspace"]);
}

#[test]
fn only_the_exact_file_name_counts_and_near_misses_are_reported() {
    let tree = Tree::new()
        .file("ws/skills/a/skill.md", "---\nname: a\ndescription: d\n---\n")
        .file("ws/skills/b/Skill.md", "---\nname: b\ndescription: d\n---\n")
        .dir("ws/skills/c/SKILL.md")
        .plant("ws/skills/ok: d");
    assert_eq!(names(&tree, &json!({})), ["ok@workspace"]);
    let kinds: Vec<ProblemKind> = load(&tree, &json!({})).broken().iter().map(|broken| broken.problem.kind).collect();
    assert_eq!(kinds, [ProblemKind::NearMiss, ProblemKind::NearMiss, ProblemKind::NotAFile]);
}

#[test]
fn roots_that_are_missing_or_files_contribute_nothing() {
    let tree = Tree::new().file("extra", "a file").file("ws/skills", "a file").plant("managed/");
    assert!(names(&tree, &extra()).is_empty());
    let catalog = load(&tree, &json!({"skills": {"load": {"extraDirs": ["$ROOT/extra", "$ROOT/nope"]}}}));
    let problems: Vec<ProblemKind> = catalog.problems().iter().map(|problem| problem.kind).collect();
    // The two that the configuration names; nobody misses a folder that has its place by convention.
    assert_eq!(problems, [ProblemKind::MissingRoot, ProblemKind::MissingRoot]);
}

#[test]
fn only_skills_that_load_use_places_of_the_limit() {
    let tree = Tree::new()
        .plant("ws/skills/0empty/\nws/skills/b: d\nws/skills/c: d\nws/skills/d: d")
        .file("ws/skills/a/SKILL.md", "broken\n");
    let config = json!({"skills": {"limits": {"maxSkillsLoadedPerSource": 2}}});
    assert_eq!(names(&tree, &config), ["b@workspace", "c@workspace"]);
    let catalog = load(&tree, &config);
    let over = catalog.broken().iter().filter(|broken| broken.problem.kind == ProblemKind::OverLimit);
    assert_eq!(over.map(|broken| broken.dir.clone()).collect::<Vec<_>>(), [tree.path("ws/skills/d")]);
}

#[test]
fn links_stay_inside_their_root_except_where_the_user_owns_the_tier() {
    let outside = "outside/esc: d\n";
    for (link, config, wanted) in [
        ("ws/skills/real: d\nws/skills/alias -> real", json!({}), &["real@workspace"][..]),
        ("ws/skills/g/in -> ../real\nws/skills/real: d", json!({}), &["real@workspace"]),
        ("ws/skills/esc -> ../../outside/esc", json!({}), &[]),
        ("ws/.agents/skills/esc -> ../../../outside/esc", json!({}), &[]),
        ("extra/esc -> ../outside/esc", extra(), &[]),
        ("bundled/esc -> ../outside/esc", json!({}), &[]),
        ("managed/esc -> ../outside/esc", json!({}), &["esc@managed"]),
        ("home/.agents/skills/esc -> ../../../outside/esc", json!({}), &["esc@personal"]),
        ("ws/skills/f/SKILL.md -> ../../../outside/esc/SKILL.md", json!({}), &[]),
        ("managed/f/SKILL.md -> ../../outside/esc/SKILL.md", json!({}), &[]),
        ("ws/skills/h/SKILL.md => outside/esc/SKILL.md", json!({}), &[]),
        ("managed/h/SKILL.md => outside/esc/SKILL.md", json!({}), &[]),
        ("bundled/h/SKILL.md => outside/esc/SKILL.md", json!({}), &["esc@bundled"]),
    ] {
        let tree = Tree::new().plant(&format!("{outside}{link}"));
        assert_eq!(names(&tree, &config), wanted, "{link}");
    }
    let inside = Tree::new()
        .file("ws/skills/fin/real.md", "---\nname: fin\ndescription: d\n---\n")
        .symlink("ws/skills/fin/SKILL.md", "real.md");
    assert_eq!(names(&inside, &json!({})), ["fin@workspace"]);
}

#[test]
fn listed_targets_are_for_extra_project_and_workspace() {
    let config = json!({"skills": {"load": {"extraDirs": ["$ROOT/extra"], "allowSymlinkTargets": ["$ROOT/common"]}}});
    let tree = Tree::new().plant(
        "common/a: d
         common/b: d
         common/c: d
         common/d: d
         common-not/e: d
         extra/a -> ../common/a
         ws/.agents/skills/b -> ../../../common/b
         ws/skills/c -> ../../common/c
         ws/skills/e -> ../../common-not/e
         bundled/d -> ../common/d",
    );
    assert_eq!(names(&tree, &config), ["a@extra", "b@project", "c@workspace"]);
}

#[test]
fn a_linked_skill_of_the_user_is_shown_where_it_really_is() {
    let tree =
        Tree::new().plant("outside/real: d\nmanaged/alias -> ../outside/real\nws/skills/here: d\nws/skills/l -> here");
    let files: Vec<PathBuf> = load(&tree, &json!({})).skills().iter().map(|skill| skill.file.clone()).collect();
    // Within a root the link's own path is as good as the other; both lead to the same skill.
    assert_eq!(files, [tree.path("outside/real/SKILL.md"), tree.path("ws/skills/l/SKILL.md")]);
}
