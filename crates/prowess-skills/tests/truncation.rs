//! Truncation: what is left of the catalogue when it is too large?

use crate::made;
use std::path::Path;

use prowess_skills::text::units;
use prowess_skills::{Budget, Limits, Prompt, Skill, SkillsConfig, Tier, render};
use prowess_testkit::{assert_documented, cases, check_all, check_all_but};
use serde_json::{Value, json};

const BUDGET: &str = "more than fits the budget";

const DEVIATIONS: &[(&str, &str)] = &[
    ("60x500", BUDGET),
    ("300x1000", BUDGET),
    ("limit-chars-300", BUDGET),
    ("limit-chars-400", BUDGET),
    ("limit-chars-525", BUDGET),
    ("limit-chars-600", BUDGET),
    ("limit-chars-800", BUDGET),
    ("limit-chars-1000", BUDGET),
    ("limit-chars-1500", BUDGET),
    ("limit-chars-2500", BUDGET),
    ("limit-chars-2000-200desc", BUDGET),
    ("limit-both", BUDGET),
];

#[test]
fn as_many_skills_are_shown_as_openclaw_shows() {
    assert_documented(DEVIATIONS);
    check_all_but(DEVIATIONS, cases(include_str!("golden/truncation.json")), |case| {
        let (prompt, _) = rendered(case);
        let got = facts(&prompt.text);
        let wanted = &case["output"];
        let same = ["included", "lastIncluded", "descriptionLens"].iter().all(|key| wanted[key] == got[key]);
        if same { Ok(()) } else { Err(format!("\n  wanted {wanted}\n  got    {got}")) }
    });
}

#[test]
fn never_fewer_skills_than_openclaw_and_never_over_the_limit() {
    check_all(cases(include_str!("golden/truncation.json")), |case| {
        let (prompt, limits) = rendered(case);
        let got = facts(&prompt.text);
        if got["included"].as_u64() < case["output"]["included"].as_u64() {
            return Err(format!("only {got}"));
        }
        let only_the_sentence = prompt.cut.sentence().is_some_and(|sentence| sentence == prompt.text);
        if units(&prompt.text) > limits.prompt_chars && !only_the_sentence {
            return Err(format!("{} units for a limit of {}", units(&prompt.text), limits.prompt_chars));
        }
        Ok(())
    });
}

fn rendered(case: &Value) -> (Prompt, Limits) {
    let number = |key: &str| usize::try_from(case[key].as_u64().expect("a number")).expect("a size");
    let length = number("descriptionLength");
    let skills: Vec<Skill> = (0..number("count"))
        .map(|index| {
            let description = if length <= 8 { format!("desc {index}") } else { "x".repeat(length) };
            made::skill(&format!("skill-{index:03}"), &description, &Value::Null, "")
        })
        .collect();
    let (config, _) = SkillsConfig::read(&json!({"limits": case["limits"]}), Path::new("openclaw.json"));
    let prompt = render(&skills, Some(Path::new("/home/alice")), None, &Budget::from(&config.limits));
    (prompt, config.limits)
}

fn facts(text: &str) -> Value {
    let between = |tag: &str| -> Vec<&str> {
        let (open, close) = (format!("    <{tag}>"), format!("</{tag}>"));
        text.lines().filter_map(|line| line.strip_prefix(&open)?.strip_suffix(&close)).collect()
    };
    let lengths: Vec<usize> = between("description").iter().map(|text| units(text)).collect();
    let (names, range) = (between("name"), [lengths.iter().min(), lengths.iter().max()]);
    let range: Vec<usize> = range.into_iter().flatten().copied().collect();
    json!({"included": names.len(), "lastIncluded": names.last(), "descriptionLens": range})
}

fn budget(skills: usize, chars: usize) -> Budget {
    Budget { skills, chars, tokens: None }
}

fn tiered(name: &str, tier: Tier, description: &str) -> Skill {
    Skill { tier, ..made::skill(name, description, &Value::Null, "") }
}

#[test]
fn a_limit_on_the_number_keeps_the_workspace() {
    let skills = [
        tiered("extra", Tier::Extra, "d"),
        tiered("bundled", Tier::Bundled, "d"),
        tiered("ws-1", Tier::Workspace, "d"),
        tiered("ws-2", Tier::Workspace, "d"),
    ];
    let cut = |limit: usize| render(&skills, None, None, &budget(limit, 30_000)).cut.dropped;
    assert_eq!(cut(4), [""; 0]);
    assert_eq!(cut(3), ["extra"]);
    assert_eq!(cut(2), ["extra", "bundled"]);
    assert_eq!(cut(1), ["extra", "bundled", "ws-2"]);
    assert_eq!(cut(0).len(), 4);
}

#[test]
fn descriptions_of_the_lowest_tier_shrink_first() {
    let long = "word ".repeat(60);
    let skills: Vec<Skill> = Tier::ALL.into_iter().map(|tier| tiered(tier.word(), tier, &long)).collect();
    let whole = render(&skills, None, None, &budget(150, 30_000));
    assert!(whole.cut.is_empty());
    let mut seen = Vec::new();
    for less in (0..whole.chars()).step_by(40) {
        let prompt = render(&skills, None, None, &budget(150, whole.chars() - less));
        let step = (prompt.cut.dropped.len(), prompt.cut.name_only.len(), prompt.cut.shortened.clone());
        if seen.last() != Some(&step) {
            seen.push(step);
        }
    }
    let words = |count: usize| Tier::ALL[..count].iter().map(|tier| tier.word().to_owned()).collect::<Vec<_>>();
    let shortened: Vec<Vec<String>> =
        seen.iter().filter(|step| step.0 + step.1 == 0).map(|step| step.2.clone()).collect();
    assert_eq!(shortened, (0..=6).map(words).collect::<Vec<_>>());
    // Nobody loses a name while another still has a description.
    assert!(seen.iter().all(|(dropped, name_only, _)| *dropped == 0 || dropped + name_only == 6), "{seen:?}");
    assert_eq!(seen.last().map(|step| step.0), Some(6));
}

#[test]
fn the_sentence_and_the_note_count_as_well() {
    let skills: Vec<Skill> =
        (0..40).map(|index| tiered(&format!("s{index}"), Tier::Managed, "some words here")).collect();
    for chars in (120..6_000).step_by(97) {
        let prompt = render(&skills, None, Some("A Mac is reachable."), &budget(150, chars));
        let bare = prompt.cut.dropped.len() == 40;
        assert!(bare || prompt.chars() <= chars, "{} of {chars}", prompt.chars());
        assert!(prompt.text.starts_with("A Mac is reachable.\n"), "{}", prompt.text);
        assert_eq!(prompt.cut.is_empty(), !prompt.text.contains("of 40 skills are listed"));
    }
}

#[test]
fn tokens_are_a_limit_of_their_own() {
    let skills: Vec<Skill> =
        (0..20).map(|index| tiered(&format!("s{index}"), Tier::Managed, &"説明".repeat(50))).collect();
    let prompt = render(&skills, None, None, &Budget { skills: 150, chars: 30_000, tokens: Some(1_500) });
    assert!(prompt.tokens() <= 1_500 && !prompt.cut.shortened.is_empty());
    assert!(prompt.cut.dropped.is_empty());
}

#[test]
fn a_description_beyond_the_standard_is_cut_before_any_other() {
    let skills = [tiered("long", Tier::Workspace, &"x".repeat(5_000)), tiered("short", Tier::Extra, &"y".repeat(900))];
    let prompt = render(&skills, None, None, &budget(150, 3_000));
    assert_eq!(prompt.cut.shortened, ["long"]);
    assert!(prompt.text.contains(&"y".repeat(900)));
    // Within the budget nothing is cut, whatever the standard says, unless one description takes more than a tenth of it.
    assert!(render(&skills, None, None, &budget(150, 60_000)).cut.is_empty());
    assert_eq!(render(&skills, None, None, &budget(150, 30_000)).cut.shortened, ["long"]);
}
