//! Laws: what holds for every tree, every text and every budget?

use crate::made;
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::RngSeed;

use prowess_skills::env::{self, EnvInputs, Refusal};
use prowess_skills::text::{clean, push_escaped, shorten, trim, units};
use prowess_skills::{
    Budget, Candidate, Catalog, Dispatch, Document, Filters, Finding, Gate, Limits, Machine, Places, Prompt, Reach,
    SHORTEST, Secret, Skill, SkillsConfig, Snapshot, Tier, World, render, tokens,
};
use prowess_testkit::Tree;
use serde_json::{Value, json};

/// The same cases in every run: a failure on one machine is a failure on all.
fn law(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(0x05ee_d5ee),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// One folder of a random tree.
#[derive(Debug, Clone)]
enum Planted {
    Skill,
    HiddenFromModel,
    Needy,
    Unreadable,
    Mended,
    Broken,
    NearMiss,
    DeadFile,
    FileLinkOut,
    FolderLinkOut,
    FolderLinkIn,
    Nothing,
}

const ROOTS: [&str; 6] = ["extra", "bundled", "managed", "home/.agents/skills", "ws/.agents/skills", "ws/skills"];

/// A tier, a group of folders, what lies there and which name it has.
type Plot = (usize, usize, Planted, usize);

fn plots() -> impl Strategy<Value = Vec<Plot>> {
    use Planted::{
        Broken, DeadFile, FileLinkOut, FolderLinkIn, FolderLinkOut, HiddenFromModel, Mended, NearMiss, Needy, Nothing,
        Skill, Unreadable,
    };
    let planted = select(vec![
        Skill,
        Skill,
        HiddenFromModel,
        Needy,
        Unreadable,
        Mended,
        Broken,
        NearMiss,
        DeadFile,
        FileLinkOut,
        FolderLinkOut,
        FolderLinkIn,
        Nothing,
    ]);
    vec((0..ROOTS.len(), 0..3_usize, planted, 0..5_usize), 0..14)
}

/// Plants the plots and returns every folder that is, or seems meant to be, a skill.
fn plant(plots: &[Plot]) -> (Tree, Vec<PathBuf>) {
    let mut tree = Tree::new();
    let mut candidates = Vec::new();
    for (index, (tier, group, planted, name)) in plots.iter().enumerate() {
        let group = ["", "/group", "/group/deep"][*group];
        let dir = format!("{}{group}/d{index:02}", ROOTS[*tier]);
        let file = format!("{dir}/SKILL.md");
        let outside = format!("outside/o{index:02}");
        let text = |extra: &str| format!("---\nname: n{name}\ndescription: d{index}\n{extra}---\n");
        let mut found = tree.path(&dir);
        tree = match planted {
            Planted::Skill => tree.file(&file, text("")),
            Planted::HiddenFromModel => tree.file(&file, text("disable-model-invocation: true\n")),
            Planted::Needy => tree.file(&file, text("metadata: {openclaw: {requires: {bins: [absent]}}}\n")),
            Planted::Unreadable => tree.file(&file, text("metadata: {openclaw: {requires: 7}}\n")),
            Planted::Mended => tree.file(&file, text("note: a: b\n")),
            Planted::Broken => tree.file(&file, "---\nname: n\n---\n"),
            Planted::NearMiss => tree.file(&format!("{dir}/skill.md"), text("")),
            Planted::DeadFile => tree.symlink(&file, "nowhere"),
            Planted::FileLinkOut => {
                let tree = tree.file(&format!("{outside}.md"), text(""));
                let target = tree.path(&format!("{outside}.md"));
                tree.symlink(&file, target)
            }
            Planted::FolderLinkOut => {
                let tree = tree.file(&format!("{outside}/SKILL.md"), text(""));
                let target = tree.path(&outside);
                if ROOTS[*tier].contains("managed") || ROOTS[*tier].contains("home") {
                    found.clone_from(&target);
                }
                tree.symlink(&dir, target)
            }
            Planted::FolderLinkIn => {
                let real = format!("{}/.real/r{index:02}", ROOTS[*tier]);
                let tree = tree.file(&format!("{real}/SKILL.md"), text(""));
                let target = tree.path(&real);
                if ROOTS[*tier].contains("managed") || ROOTS[*tier].contains("home") {
                    found.clone_from(&target);
                }
                tree.symlink(&dir, target)
            }
            Planted::Nothing => tree.file(&format!("{dir}/README.md"), "nothing\n"),
        };
        if !matches!(planted, Planted::Nothing) {
            candidates.push(found);
        }
    }
    (tree, candidates)
}

fn load(tree: &Tree) -> (Catalog, Snapshot) {
    let places = Places {
        extra: vec![tree.path("extra")],
        bundled: Some(tree.path("bundled")),
        managed: Some(tree.path("managed")),
        home: Some(tree.path("home")),
        workspace: Some(tree.path("ws")),
        ..Places::default()
    };
    let catalog = Catalog::load(&places.roots(), &Reach::default());
    let snapshot = snapshot(&catalog, &Budget::from(&Limits::default()));
    (catalog, snapshot)
}

fn snapshot(catalog: &Catalog, budget: &Budget) -> Snapshot {
    let machine = Machine { os: "linux".to_owned(), ..Machine::default() };
    let world = World { machines: vec![machine], ..World::default() };
    let (config, filters) = (SkillsConfig::default(), Filters::default());
    Snapshot::take(catalog, &Gate { world: &world, config: &config, filters: &filters }, None, budget)
}

fn catalog_of(skills: Vec<Skill>) -> Catalog {
    let candidate =
        |skill: Skill| Candidate { dir: skill.dir().to_owned(), tier: skill.tier, outcome: Ok(skill.into()) };
    Catalog::merge(vec![Finding { candidates: skills.into_iter().map(candidate).collect(), problems: Vec::new() }])
}

proptest! {
    #![proptest_config(law(96))]

    #[test]
    fn every_candidate_ends_up_in_exactly_one_place(plots in plots()) {
        let (tree, mut planted) = plant(&plots);
        let (catalog, snapshot) = load(&tree);
        let visible: Vec<PathBuf> = snapshot.visible().map(|skill| skill.dir().to_owned()).collect();
        let hidden = snapshot.skills().iter().filter(|skill| !skill.invocation.by_model).map(|skill| skill.dir().to_owned());
        let held = snapshot.held_back().iter().map(|held| held.skill.dir().to_owned());
        let shadowed = catalog.shadowed().iter().map(|hidden| hidden.skill.dir().to_owned());
        let broken = catalog.broken().iter().map(|broken| broken.dir.clone());
        let mut found: Vec<PathBuf> =
            visible.into_iter().chain(hidden).chain(held).chain(shadowed).chain(broken).collect();
        found.sort();
        planted.sort();
        prop_assert_eq!(found, planted);
        // And each that is missing has a reason that can be shown.
        prop_assert!(catalog.broken().iter().all(|broken| !broken.problem.reason.is_empty()));
        prop_assert!(snapshot.held_back().iter().all(|held| !held.objections.is_empty()));
    }

    #[test]
    fn loading_twice_gives_the_same(plots in plots()) {
        let (tree, _) = plant(&plots);
        let ((first, one), (second, two)) = (load(&tree), load(&tree));
        let files = |catalog: &Catalog| catalog.skills().iter().map(|skill| skill.file.clone()).collect::<Vec<_>>();
        prop_assert_eq!(files(&first), files(&second));
        prop_assert_eq!(first.problems(), second.problems());
        prop_assert_eq!(one.fingerprint(), two.fingerprint());
        prop_assert_eq!(one.prompt(), two.prompt());
    }
}

/// Reads a text in every way there is; what comes of it does not matter, coming back does.
fn read_all(bytes: &[u8]) {
    if let Ok(document) = Document::parse(bytes) {
        let _ = (document.flat(), document.metadata().is_ok());
        for key in document.keys() {
            let _ = (document.text(key), document.position(key), document.get(key));
        }
        assert!(document.flaws().iter().all(|flaw| !flaw.reason.is_empty() && flaw.at.is_some_and(|at| at.line > 0)));
    }
    match Skill::parse(bytes, Path::new("/skills/x/SKILL.md"), Tier::Workspace) {
        Ok((skill, _)) => {
            assert!(!skill.name.as_str().is_empty() && !skill.description.is_empty());
            assert_eq!(clean(skill.name.as_str()), skill.name.as_str());
        }
        Err(problem) => assert!(!problem.reason.is_empty() && !problem.fix.is_empty()),
    }
}

const REAL: &str = "---\nname: github\ndescription: \"Use gh: issues, pull requests & more. Use when: asked.\"\nhomepage: \
    https://x.y\nmetadata:\n  {\n    \"openclaw\":\n      {\n        \"emoji\": \"🐙\",\n        \"requires\": { \"bins\": \
    [\"gh\"] },\n        // why\n        \"install\": [{ \"id\": \"brew\", \"kind\": \"brew\", \"formula\": \"gh\", },],\n      \
    },\n  }\nuser-invocable: true\nallowed-tools: Bash(git:*) Read\n---\n\n# GitHub\n\n| a | b |\n|---|---|\n";

const SCRAPS: &[&str] = &[
    "---",
    "\n",
    "\r\n",
    "\r",
    " ",
    "\t",
    "  ",
    ":",
    ": ",
    "name: ",
    "description: ",
    "metadata: ",
    "{",
    "}",
    "[",
    "]",
    "\"",
    "'",
    "|",
    ">",
    "|-\n  ",
    ">+\n ",
    "&a ",
    "*a",
    "!!str ",
    "!x ",
    "# ",
    "- ",
    "? ",
    "...",
    "\u{feff}",
    "\0",
    "é",
    "🌤️",
    "\u{85}",
    "\u{2028}",
    "~",
    "null",
    "0x",
    "1e400",
    "-.5",
    ".inf",
    "%YAML 1.2",
    "<<: ",
    "//",
    "/*",
    "openclaw",
    "requires",
    "<<<<<<< x",
    "=======",
    "\\",
    "\\u12",
    "@",
    "`",
    ",",
];

proptest! {
    #![proptest_config(law(1_500))]

    #[test]
    fn any_bytes_are_read_or_reported(bytes in vec(any::<u8>(), 0..300)) {
        read_all(&bytes);
        read_all(&[b"---\n", bytes.as_slice(), b"\n---\n"].concat());
    }

    #[test]
    fn any_scraps_of_frontmatter_are_read_or_reported(scraps in vec(select(SCRAPS), 0..30)) {
        read_all(scraps.concat().as_bytes());
        read_all(format!("---\ndescription: d\n{}\n---\n", scraps.concat()).as_bytes());
    }

    #[test]
    fn a_damaged_skill_is_read_or_reported(
        damage in vec((0..REAL.len(), 0..12_usize, select(SCRAPS)), 1..6),
        invalid in any::<bool>(),
    ) {
        let mut bytes = REAL.as_bytes().to_vec();
        for (at, length, scrap) in damage {
            let at = at.min(bytes.len());
            let end = (at + length).min(bytes.len());
            bytes.splice(at..end, scrap.bytes());
        }
        if invalid && !bytes.is_empty() {
            let middle = bytes.len() / 2;
            bytes[middle] = 0xff;
        }
        read_all(&bytes);
    }
}

fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        6 => "[a-z ]{0,12}",
        2 => select(vec!["<", ">", "&", "\"", "'", "&amp;", "</name>", "</available_skills>", "<skill>"]).prop_map(str::to_owned),
        1 => select(vec!["\n", "\r\n", "\t", "\u{202e}", "\u{200b}", "\u{e0041}", "\u{1b}[1m", "\u{2028}"]).prop_map(str::to_owned),
        1 => select(vec!["é", "日本語", "🌤️", "👩‍💻", "…"]).prop_map(str::to_owned),
        1 => "[a-z]{60,200}",
    ];
    vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

fn skills() -> impl Strategy<Value = Vec<Skill>> {
    let skill = (text(), text(), select(Tier::ALL.to_vec()));
    vec(skill, 0..20).prop_map(|skills| {
        let made = |(index, (name, description, tier)): (usize, (String, String, Tier))| {
            let file = PathBuf::from(format!("/home/a/{}/s{index}/SKILL.md", clean(&name)));
            // A name of its own for each, so that an account by name is an account.
            Skill { tier, file, ..made::skill(&format!("{name}#{index}"), &description, &Value::Null, "") }
        };
        skills.into_iter().enumerate().map(made).collect()
    })
}

fn budgets() -> impl Strategy<Value = Budget> {
    let tokens = prop_oneof![2 => Just(None), 1 => (0..2_000_usize).prop_map(Some)];
    (0..25_usize, 0..6_000_usize, tokens).prop_map(|(skills, chars, tokens)| Budget { skills, chars, tokens })
}

/// One skill of a block: name, description if it has one, location.
type Shown = (String, Option<String>, String);

/// Reads a block back. Panics when it is anything but a list of skills.
fn parse_block(block: &str) -> Vec<Shown> {
    let mut lines = block.lines().peekable();
    assert_eq!(lines.next(), Some("<available_skills>"));
    let mut skills = Vec::new();
    while lines.next_if_eq(&"  <skill>").is_some() {
        let mut field = |tag: &str| {
            let (open, close) = (format!("    <{tag}>"), format!("</{tag}>"));
            let line = lines.next_if(|line| line.starts_with(&open))?;
            Some(unescape(line.strip_prefix(&open)?.strip_suffix(&close)?))
        };
        let shown = (field("name").expect("a name"), field("description"), field("location").expect("a location"));
        skills.push(shown);
        assert_eq!(lines.next(), Some("  </skill>"));
    }
    assert_eq!((lines.next(), lines.next()), (Some("</available_skills>"), None));
    skills
}

fn unescape(text: &str) -> String {
    assert!(!text.contains(['<', '>', '"', '\'']), "{text}");
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&apos;", "'").replace("&amp;", "&")
}

/// What a model should be told of a skill.
fn wanted(skill: &Skill) -> (String, String, String) {
    let location = skill.file.to_string_lossy().replacen("/home/a/", "~/", 1);
    (skill.name.to_string(), trim(&clean(&skill.description)).to_owned(), location)
}

fn fits(text: &str, budget: &Budget) -> bool {
    units(text) <= budget.chars && budget.tokens.is_none_or(|limit| tokens(text) <= limit)
}

/// The prompt with every name that the number of skills allows, and no description.
fn names_alone(skills: &[Skill], prompt: &Prompt, note: Option<&str>, budget: &Budget) -> String {
    let by_number: HashSet<&String> =
        prompt.cut.dropped.iter().take(skills.len().saturating_sub(budget.skills)).collect();
    let kept: Vec<&Skill> = skills.iter().filter(|skill| !by_number.contains(&skill.name.to_string())).collect();
    let cut = prowess_skills::Cut {
        total: skills.len(),
        shortened: Vec::new(),
        name_only: vec![String::new(); kept.len()],
        dropped: vec![String::new(); by_number.len()],
    };
    let mut text: String = note.into_iter().map(str::to_owned).chain(cut.sentence()).map(|line| line + "\n").collect();
    text.push_str("<available_skills>\n");
    for skill in kept {
        let (name, _, location) = wanted(skill);
        text.push_str("  <skill>\n    <name>");
        push_escaped(&mut text, &name);
        text.push_str("</name>\n    <location>");
        push_escaped(&mut text, &location);
        text.push_str("</location>\n  </skill>\n");
    }
    text + "</available_skills>"
}

proptest! {
    #![proptest_config(law(120))]

    #[test]
    fn a_prompt_fits_and_its_account_is_exact(skills in skills(), budget in budgets(), noted in any::<bool>()) {
        let note = noted.then_some("A Mac is reachable.");
        let prompt = render(&skills, Some(Path::new("/home/a")), note, &budget);
        let at = prompt.text.find("<available_skills>").unwrap_or(prompt.text.len());
        let (head, block) = prompt.text.split_at(at);
        let shown = if block.is_empty() { Vec::new() } else { parse_block(block) };

        let sentences: Vec<String> = note.into_iter().map(str::to_owned).chain(prompt.cut.sentence()).collect();
        prop_assert_eq!(head.lines().collect::<Vec<_>>(), sentences);
        prop_assert!(block.is_empty() || fits(&prompt.text, &budget), "{} units, {:?}", prompt.chars(), budget);

        let cut = &prompt.cut;
        prop_assert_eq!(cut.total, skills.len());
        let listed = |list: &[String], skill: &Skill| list.contains(&skill.name.to_string());
        let mut lines = shown.iter();
        for skill in skills.iter().filter(|skill| !listed(&cut.dropped, skill)) {
            let (name, description, location) = wanted(skill);
            let (shown_name, shown_description, shown_location) = lines.next().expect("a skill that is not dropped is shown");
            prop_assert_eq!((shown_name, shown_location), (&name, &location));
            match shown_description {
                None => prop_assert!(listed(&cut.name_only, skill)),
                Some(shown) if listed(&cut.shortened, skill) => {
                    prop_assert!(units(shown) < units(&description));
                    prop_assert_eq!(shown, &shorten(&description, units(shown)));
                }
                Some(shown) => prop_assert_eq!(shown, &description),
            }
        }
        prop_assert!(lines.next().is_none());
        prop_assert_eq!(
            shown.len() + cut.dropped.len(),
            skills.len(),
            "each is shown or dropped"
        );
    }

    #[test]
    fn a_name_goes_only_when_names_alone_do_not_fit(skills in skills(), budget in budgets()) {
        let prompt = render(&skills, Some(Path::new("/home/a")), None, &budget);
        let too_many = skills.len().saturating_sub(budget.skills);
        prop_assert!(prompt.cut.dropped.len() >= too_many);
        if prompt.cut.dropped.len() > too_many {
            prop_assert!(!fits(&names_alone(&skills, &prompt, None, &budget), &budget));
        }
        // And a description goes only when all are as short as they get.
        let is_short = |text: &str| text.ends_with('…') && units(text) <= SHORTEST || units(text) <= SHORTEST;
        if !prompt.cut.name_only.is_empty() && prompt.text.contains("<available_skills>") {
            let block = &prompt.text[prompt.text.find("<available_skills>").expect("a block")..];
            prop_assert!(parse_block(block).iter().all(|(_, text, _)| text.as_deref().is_none_or(is_short)));
        }
    }

    #[test]
    fn what_is_cut_is_never_above_what_is_kept(skills in skills(), budget in budgets()) {
        let prompt = render(&skills, None, None, &budget);
        let tier: BTreeMap<String, Tier> = skills.iter().map(|skill| (skill.name.to_string(), skill.tier)).collect();
        let highest = prompt.cut.dropped.iter().map(|name| tier[name]).max();
        let lowest = tier.iter().filter(|(name, _)| !prompt.cut.dropped.contains(name)).map(|(_, tier)| *tier).min();
        prop_assert!(highest.zip(lowest).is_none_or(|(dropped, kept)| dropped <= kept), "{highest:?} {lowest:?}");
    }

    #[test]
    fn clean_text_stays_as_it_is(text in prop_oneof![text(), any::<String>()]) {
        let once = clean(&text).into_owned();
        prop_assert_eq!(&clean(&once), &once);
        prop_assert!(!once.chars().any(char::is_control), "{:?}", once);
        let hidden = "\u{ad}\u{200b}\u{200e}\u{202a}\u{202e}\u{2028}\u{2029}\u{2060}\u{2066}\u{2069}\u{feff}\u{e0001}\u{e007f}";
        prop_assert!(!once.contains(|c| hidden.contains(c)), "{:?}", once);
        let seen = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).collect::<String>();
        let kept: String = seen(&text).chars().filter(|c| !clean(&c.to_string()).is_empty()).collect();
        prop_assert_eq!(seen(&once), kept);
    }
}

/// A change to one field of a skill that a model or a run could notice.
type Change = (&'static str, fn(&mut Skill));

const CHANGES: [Change; 16] = [
    ("name", |skill| skill.name = prowess_skills::SkillName::new("other")),
    ("description", |skill| skill.description.push('!')),
    ("tier", |skill| skill.tier = if skill.tier == Tier::Extra { Tier::Managed } else { Tier::Extra }),
    ("file", |skill| skill.file = "/other/SKILL.md".into()),
    ("key", |skill| skill.metadata.skill_key = Some("other-key".to_owned())),
    ("primary", |skill| skill.metadata.primary_env = Some("OTHER".to_owned())),
    ("always", |skill| skill.metadata.always = !skill.metadata.always),
    ("by user", |skill| skill.invocation.by_user = !skill.invocation.by_user),
    ("by model", |skill| skill.invocation.by_model = !skill.invocation.by_model),
    ("dispatch", |skill| skill.dispatch = Some(Dispatch { tool: "other".to_owned() })),
    ("os", |skill| skill.metadata.needs.os.push("linux".to_owned())),
    ("bins", |skill| skill.metadata.needs.bins.push("x".to_owned())),
    ("any bins", |skill| skill.metadata.needs.any_bins.push("x".to_owned())),
    ("env", |skill| skill.metadata.needs.env.push("x".to_owned())),
    ("config", |skill| skill.metadata.needs.config.push("x".to_owned())),
    ("tools", |skill| skill.standard.allowed_tools.push("Bash".to_owned())),
];

proptest! {
    #![proptest_config(law(60))]

    #[test]
    fn a_fingerprint_changes_with_anything_that_matters_and_with_nothing_else(skills in skills(), at in any::<prop::sample::Index>()) {
        // Offered whatever they need, so that a changed need shows in nothing but the fingerprint.
        let skills: Vec<Skill> = skills.into_iter().map(|mut skill| {
            skill.metadata.always = true;
            skill
        }).collect();
        let budget = Budget::from(&Limits::default());
        let print = |skills: Vec<Skill>| snapshot(&catalog_of(skills), &budget).fingerprint();
        let before = print(skills.clone());
        prop_assert_eq!(before, print(skills.clone()));
        if skills.is_empty() {
            return Ok(());
        }
        let at = at.index(skills.len());
        for (what, change) in CHANGES {
            let mut changed = skills.clone();
            change(&mut changed[at]);
            if changed[at] != skills[at] {
                prop_assert_ne!(before, print(changed), "{}", what);
            }
        }
        let mut shown_only = skills.clone();
        shown_only[at].emoji = Some("x".to_owned());
        shown_only[at].homepage = Some("x".to_owned());
        prop_assert_eq!(before, print(shown_only));
        if skills.len() > 1 {
            let mut fewer = skills.clone();
            fewer.remove(at);
            prop_assert_ne!(before, print(fewer));
        }
    }

    #[test]
    fn a_plan_never_holds_a_name_that_steers_a_process(
        given in vec((0..3_u8, select(NAMES), "[a-z\\x00]{0,3}"), 0..12),
        declared in vec(select(NAMES), 0..4),
        host in vec(select(NAMES), 0..4),
        host_first in any::<bool>(),
    ) {
        let layer = |wanted: u8| given.iter().filter(move |(layer, ..)| *layer == wanted);
        let env: BTreeMap<&str, &str> = layer(0).map(|(_, name, value)| (*name, value.as_str())).collect();
        let key = layer(1).map(|(_, _, value)| value.as_str()).next();
        let section = json!({
            "envPrecedence": if host_first { "host" } else { "skill" },
            "entries": {"s": {"env": env, "apiKey": key}},
        });
        let (config, _) = SkillsConfig::read(&section, Path::new("x"));
        let config_env: Vec<(String, Secret)> =
            layer(2).map(|(_, name, value)| ((*name).to_owned(), Secret::new(value.as_str()))).collect();
        let manifest = json!({"primaryEnv": declared.first(), "requires": {"env": declared}});
        let skill = made::skill("s", "d", &manifest, "");
        let host: HashSet<String> = host.iter().map(|name| (*name).to_owned()).collect();
        let plan = env::plan(&skill, EnvInputs { config: &config, config_env: &config_env, host: &host });
        for name in plan.vars.keys() {
            let upper = name.to_uppercase();
            prop_assert!(!STEERING.contains(&upper.as_str()), "{}", name);
            prop_assert!(["LD_", "DYLD_", "BASH_FUNC_", "GIT_CONFIG_", "OPENCLAW_"].iter().all(|prefix| !upper.starts_with(prefix)));
            prop_assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') && !name.is_empty());
        }
        for (name, _, why) in &plan.refused {
            prop_assert!(matches!(why, Refusal::Undeclared | Refusal::Nul) || !plan.vars.contains_key(name), "{}", name);
        }
    }
}

const STEERING: &[&str] =
    &["PATH", "HOME", "SHELL", "NODE_OPTIONS", "PYTHONPATH", "BASH_ENV", "EDITOR", "HTTP_PROXY", "IFS", "PS4"];

const NAMES: &[&str] = &[
    "PATH",
    "path",
    "HOME",
    "SHELL",
    "NODE_OPTIONS",
    "Node_Options",
    "PYTHONPATH",
    "BASH_ENV",
    "EDITOR",
    "HTTP_PROXY",
    "http_proxy",
    "IFS",
    "PS4",
    "LD_PRELOAD",
    "ld_library_path",
    "DYLD_X",
    "BASH_FUNC_x",
    "GIT_CONFIG_COUNT",
    "OPENCLAW_X",
    "FOO",
    "BAR",
    "_x1",
    "GH_TOKEN",
    "OPENAI_API_KEY",
    "DATABASE_URL",
    "A=B",
    "1A",
    "",
    " ",
    "x y",
    "é",
    "A\0",
    " SPACED ",
];
