//! The claims about lists of skills.

use prowess_skills::{Filter, Filters, Tier};
use prowess_testkit::Tree;
use serde_json::{Value, json};

use crate::conformance::{host, load, made, names, objections, only, take_for};

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
