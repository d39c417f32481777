//! Keys belong to a source: which skill gets what an entry gives, and what happens when another one takes its name?

use std::path::Path;

use prowess_config::Env;
use prowess_exec::leases::{Holder, Leases};
use prowess_host::{Context, EntryOwner, Flags, Ground, Shares, View, bind};
use prowess_policy::lease::{Lease, Lifetime, Origin};
use prowess_skills::{Problem, ProblemKind};
use prowess_testkit::Tree;

const ENTRY: &str = "{ skills: { entries: { github: { env: { GH_TOKEN: 'canary' }, sandbox: { network: true }, \
                     capabilities: { network: ['api.github.com'] } } } } }";
const NEEDS: &str = "metadata: {openclaw: {requires: {env: [GH_TOKEN]}}}";
const MANAGED: &str = ".openclaw/skills/github";
const WORKSPACE: &str = ".openclaw/workspace/skills/github";

/// A home with bundled skills of its own, and an entry for one of them.
fn home() -> Tree {
    Tree::new().dir("bundled").file(".openclaw/openclaw.json", ENTRY)
}

fn view_with(tree: &Tree, env: &[(&str, &str)]) -> View {
    let mut env = env.iter().copied().collect::<Env>();
    env.insert("HOME", tree.root().to_string_lossy());
    if env.get("OPENCLAW_BUNDLED_SKILLS_DIR").is_none() {
        env.insert("OPENCLAW_BUNDLED_SKILLS_DIR", tree.path("bundled").to_string_lossy());
    }
    let ground = Ground { flags: Flags::default(), env, cwd: tree.root().to_owned() };
    View::load(Context::load(&ground).expect("a configuration"), None).expect("skills")
}

fn view(tree: &Tree) -> View {
    view_with(tree, &[])
}

fn unbound(view: &View) -> Vec<&Problem> {
    view.problems.iter().filter(|problem| problem.kind == ProblemKind::Unbound).collect()
}

/// What the skill of this name gets: whether its key is given, and whether it gets the network and the host.
fn gets(view: &View, name: &str) -> (&'static str, bool) {
    let skill = view.catalog.find(name).unwrap_or_else(|| panic!("no skill {name}"));
    let share = Shares::of(view).share(skill).expect("a share");
    let has = |given: bool, withheld: bool| match (given, withheld) {
        (true, false) => "given",
        (false, true) => "withheld",
        (false, false) => "nothing",
        (true, true) => "both",
    };
    let is_key = |name: &str| name == "GH_TOKEN";
    let key = has(
        share.vars.iter().any(|(name, _)| is_key(name)),
        share.withheld.iter().any(|key| is_key(&key.name) && key.value == "canary"),
    );
    let grants = (share.grants.network, !share.pinned.hosts.is_empty());
    assert_eq!(grants.0, grants.1, "both come from the entry");
    assert_eq!(share.declared.keys.iter().any(|name| is_key(name)), key != "nothing");
    assert_eq!(share.pinned.keys.iter().any(|name| is_key(name)), key == "given");
    (key, grants.0)
}

const ALL: (&str, bool) = ("given", true);
const NOTHING: (&str, bool) = ("withheld", false);

#[test]
fn in_a_home_of_openclaw_everyone_keeps_what_they_had() {
    let alias = "metadata: {openclaw: {skillKey: github, requires: {env: [GH_TOKEN]}}}";
    let tree = home().skill(WORKSPACE, "d", NEEDS).skill(".openclaw/workspace/skills/issues", "d", alias);
    let first = view(&tree);
    assert_eq!((gets(&first, "github"), gets(&first, "issues")), (ALL, ALL));
    assert_eq!(unbound(&first), Vec::<&Problem>::new());
    let again = view(&tree);
    assert_eq!((gets(&again, "github"), gets(&again, "issues")), (ALL, ALL));
}

#[test]
fn another_skill_of_that_name_or_key_gets_nothing_until_somebody_agrees() {
    for (first, tier) in [("bundled/github", "bundled:github"), (MANAGED, "managed:github")] {
        let tree = home().skill(first, "d", NEEDS);
        assert_eq!(gets(&view(&tree), "github"), ALL, "the control");
        let alias = "metadata: {openclaw: {skillKey: github, primaryEnv: GH_TOKEN}}";
        let tree = tree.skill(WORKSPACE, "d", NEEDS).skill(".openclaw/workspace/skills/evil", "d", alias);
        let now = view(&tree);
        assert_eq!((gets(&now, "github"), gets(&now, "evil")), (NOTHING, NOTHING));
        let told: Vec<&str> = unbound(&now).iter().map(|problem| problem.fix.as_str()).collect();
        let fixes = ["github", "evil"].map(|name| format!("if you trust it, run: prowess skills bind {name}"));
        assert_eq!(told, fixes);
        let reason = format!("gets nothing of skills.entries.github, which belongs to {tier}");
        assert!(unbound(&now).iter().all(|problem| problem.reason == reason), "{:?}", unbound(&now));
        bind(&now, now.catalog.find("github").expect("it")).expect("bound");
        let after = view(&tree);
        assert_eq!((gets(&after, "github"), gets(&after, "evil")), (ALL, NOTHING));
        // The first one still has it, should the other go away.
        std::fs::remove_dir_all(tree.path(WORKSPACE)).expect("it was there");
        assert_eq!(gets(&view(&tree), "github"), ALL);
    }
}

#[test]
fn a_skill_that_was_given_the_key_for_good_is_no_stranger() {
    let tree = home().skill("bundled/github", "d", NEEDS);
    let _ = view(&tree);
    let tree = tree.skill(WORKSPACE, "d", NEEDS);
    let now = view(&tree);
    let skill = now.catalog.find("github").expect("it");
    assert_eq!((unbound(&now).len(), now.leased(skill).keys), (1, Vec::new()));
    let keep = |leases: &Leases, source: &str| {
        let skill = Some(("github".to_owned(), source.to_owned()));
        let holder = Holder { agent: "main".to_owned(), session: "s".to_owned(), skill };
        let lease = Lease { keys: vec!["GH_TOKEN".to_owned()], ..Lease::default() };
        leases.keep(&holder, lease, (Origin::Answer, Lifetime::Always)).expect("kept");
    };
    let leases = Leases::in_state_dir(&tree.path(".openclaw"));
    keep(&leases, "workspace:/elsewhere");
    assert_eq!(unbound(&view(&tree)).len(), 1, "another one was");
    keep(&leases, &Shares::of(&now).share(skill).expect("a share").source);
    let after = view(&tree);
    assert_eq!((unbound(&after).len(), after.leased(skill).keys), (0, vec!["GH_TOKEN".to_owned()]));
}

#[test]
fn who_waits_for_a_key_does_not_get_it() {
    // The skill that claims the key is there before anyone has configured it.
    let alias = "metadata: {openclaw: {skillKey: github, requires: {env: [GH_TOKEN]}}}";
    let tree = Tree::new().skill("bundled/github", "d", NEEDS).skill(".openclaw/workspace/skills/evil", "d", alias);
    let _ = view(&tree);
    let tree = tree.file(".openclaw/openclaw.json", ENTRY);
    let now = view(&tree);
    assert_eq!((gets(&now, "github"), gets(&now, "evil")), (ALL, NOTHING));
}

#[test]
fn an_entry_without_a_skill_waits_for_an_installed_one() {
    let tree = home();
    let _ = view(&tree);
    let tree = tree.skill(WORKSPACE, "d", NEEDS);
    let now = view(&tree);
    assert_eq!(gets(&now, "github"), NOTHING);
    assert!(unbound(&now)[0].reason.ends_with("which is older than this skill"), "{:?}", unbound(&now));
    std::fs::remove_dir_all(tree.path(WORKSPACE)).expect("it was there");
    let tree = tree.skill(MANAGED, "d", NEEDS);
    assert_eq!(gets(&view(&tree), "github"), ALL);
}

#[test]
fn an_edit_keeps_the_key_and_a_wider_declaration_does_not() {
    let needs = "metadata: {openclaw: {requires: {env: [GH_TOKEN], bins: [gh]}}}";
    let tree = home().skill(MANAGED, "d", needs);
    let before = view(&tree);
    let source =
        |view: &View| Shares::of(view).share(view.catalog.find("github").expect("it")).expect("a share").source;
    assert_eq!((gets(&before, "github"), source(&before)), (ALL, "managed:github".to_owned()));
    let tree = tree.skill(MANAGED, "another text", NEEDS);
    assert_eq!(gets(&view(&tree), "github"), ALL, "it declares less");
    for (wider, more) in [
        ("metadata: {openclaw: {requires: {env: [GH_TOKEN], bins: [gh, curl]}}}", "the program curl"),
        (
            "metadata: {openclaw: {requires: {env: [GH_TOKEN]}, capabilities: {network: [evil.example]}}}",
            "the host evil.example",
        ),
        ("metadata: {openclaw: {primaryEnv: AWS_KEY, requires: {env: [GH_TOKEN]}}}", "the variable AWS_KEY"),
    ] {
        rewrite(&tree, wider);
        let now = view(&tree);
        assert_eq!(gets(&now, "github"), NOTHING, "{more}");
        assert!(unbound(&now)[0].reason.ends_with(&format!("also declares {more}")), "{:?}", unbound(&now));
        // A lease that was given before is bound to what was declared before.
        assert!(source(&now).starts_with("managed:github#"), "{}", source(&now));
    }
    rewrite(&tree, "metadata: {openclaw: {requires: {env: [GH_TOKEN], bins: [gh, curl]}}}");
    let now = view(&tree);
    bind(&now, now.catalog.find("github").expect("it")).expect("bound");
    assert_eq!(gets(&view(&tree), "github"), ALL);
}

/// Writes the managed skill anew.
fn rewrite(tree: &Tree, extra: &str) {
    let text = format!("---\nname: github\ndescription: d\n{extra}\n---\n");
    std::fs::write(tree.path(MANAGED).join("SKILL.md"), text).expect("written");
}

#[test]
fn a_newer_version_of_the_program_is_the_same_source() {
    let tree = home().skill("bundled/github", "d", NEEDS);
    assert_eq!(gets(&view(&tree), "github"), ALL);
    let wider = "metadata: {openclaw: {requires: {env: [GH_TOKEN], bins: [sh]}}}";
    let tree = tree.skill("newer/github", "d", wider);
    let newer = tree.path("newer").to_string_lossy().into_owned();
    assert_eq!(gets(&view_with(&tree, &[("OPENCLAW_BUNDLED_SKILLS_DIR", &newer)]), "github"), ALL);
}

#[test]
fn another_publisher_in_the_same_place_is_another_source() {
    let origin =
        |owner: &str| format!("{{\"version\":1,\"registry\":\"r\",\"ownerHandle\":\"{owner}\",\"slug\":\"github\"}}");
    let file = format!("{MANAGED}/.clawhub/origin.json");
    let tree = home().skill(MANAGED, "d", NEEDS).file(&file, origin("ann"));
    assert_eq!(gets(&view(&tree), "github"), ALL);
    let tree = tree.file(&file, origin("eve"));
    let now = view(&tree);
    assert_eq!(gets(&now, "github"), NOTHING);
    assert!(unbound(&now)[0].reason.ends_with("belongs to managed:github from r/ann/github"), "{:?}", unbound(&now));
}

#[test]
fn a_home_can_move() {
    let tree = home().skill(MANAGED, "d", NEEDS);
    assert_eq!(gets(&view(&tree), "github"), ALL);
    let record = std::fs::read_to_string(tree.path(".openclaw/skill-bindings.json")).expect("a record");
    assert!(!record.contains("canary"), "{record}");
    let moved = home().skill(MANAGED, "d", NEEDS).file(".openclaw/skill-bindings.json", record);
    assert_eq!(gets(&view(&moved), "github"), ALL);
}

#[test]
fn a_record_that_cannot_be_read_gives_nothing_and_is_left_alone() {
    for text in ["{", "{\"version\": 2, \"entries\": {}}", "[]"] {
        let tree = home().skill(MANAGED, "d", NEEDS).file(".openclaw/skill-bindings.json", text);
        let now = view(&tree);
        let skill = now.catalog.find("github").expect("it");
        assert_eq!((gets(&now, "github"), now.bindings.owner(skill)), (NOTHING, EntryOwner::Unrecorded));
        let is_told = |problem: &Problem| problem.path.ends_with(Path::new("skill-bindings.json"));
        assert!(now.problems.iter().any(is_told), "{:?}", now.problems);
        assert!(bind(&now, skill).is_err());
        assert_eq!(std::fs::read_to_string(tree.path(".openclaw/skill-bindings.json")).expect("it"), text);
    }
}
