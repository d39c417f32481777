//! The configuration, other machines, and watching that is switched off.

use prowess_host::{Cause, Live, Watching};
use prowess_skills::{Machine, Problem};
use prowess_testkit::eventually;

use crate::stage::{Stage, told};

const CONFIG: &str = "home/.openclaw/openclaw.json";

#[test]
fn a_changed_configuration_counts() {
    let stage = Stage::quick();
    stage.skill("ws/skills/a", "d");
    stage.skill("more/b", "d");
    let live = stage.live();
    let more = stage.tree.path("more");
    let load = format!("load: {{watchDebounceMs: 5, extraDirs: ['{}']}}", more.display());
    stage.write(CONFIG, &format!("{{skills: {{{load}}}}}"));
    eventually("another folder", || told(&live) == ["b: d", "a: d"]);
    stage.write(CONFIG, &format!("{{skills: {{{load}, entries: {{a: {{enabled: false}}}}}}}}"));
    eventually("a switch", || told(&live) == ["b: d"]);
}

#[test]
fn an_included_file_counts() {
    let stage = Stage::new("{skills: {$include: './skills.json5'}}");
    stage.write("home/.openclaw/skills.json5", "{load: {watchDebounceMs: 5}}");
    stage.skill("ws/skills/a", "d");
    let live = stage.live();
    assert_eq!(told(&live), ["a: d"]);
    stage.write("home/.openclaw/skills.json5", "{load: {watchDebounceMs: 5}, entries: {a: {enabled: false}}}");
    eventually("a switch", || told(&live).is_empty());
}

#[test]
fn a_broken_configuration_is_told_once_and_changes_nothing() {
    let stage = Stage::new("{skills: {load: {watchDebounceMs: 5}, entries: {a: {enabled: false}}}}");
    stage.skill("ws/skills/a", "d");
    stage.skill("ws/skills/b", "d");
    let live = stage.live();
    stage.write(CONFIG, "{skills: ");
    let is_complaint = |problem: &Problem| problem.fix.contains("until then") && !problem.reason.contains("empty");
    eventually("a complaint", || live.view().problems.iter().any(is_complaint));
    live.refresh_now();
    let number = live.changes().borrow().number;
    live.refresh_now();
    assert_eq!(live.view().problems.len(), 1);
    assert_eq!((told(&live), live.changes().borrow().number), (vec!["b: d".to_owned()], number));
    assert!(live.reload_config().is_err());
    stage.skill("ws/skills/c", "d");
    eventually("skills go on", || told(&live) == ["b: d", "c: d"]);
    stage.write(CONFIG, "{skills: {load: {watchDebounceMs: 5}}}");
    eventually("it is mended", || live.view().problems.is_empty() && told(&live).len() == 3);
}

#[test]
fn an_empty_file_is_one_that_is_being_written() {
    let stage = Stage::new("{skills: {load: {watchDebounceMs: 5}, entries: {a: {enabled: false}}}}");
    stage.skill("ws/skills/a", "d");
    let live = stage.live();
    stage.write(CONFIG, "");
    live.refresh_now();
    assert!(told(&live).is_empty());
    assert_eq!(live.view().problems.len(), 1);
}

#[test]
fn a_key_that_is_replaced_counts_without_a_new_prompt() {
    let config =
        |key: &str| format!("{{skills: {{load: {{watchDebounceMs: 5}}, entries: {{a: {{apiKey: '{key}'}}}}}}}}");
    let stage = Stage::new(&config("first"));
    stage.write(
        "ws/skills/a/SKILL.md",
        "---\nname: a\ndescription: d\nmetadata: {openclaw: {primaryEnv: A_KEY, requires: {env: [A_KEY]}}}\n---\n",
    );
    let live = stage.live();
    let skills = live.skills().current();
    let key = || skills.share(&skills.snapshot.skills()[0]).expect("a share").vars;
    assert_eq!(key(), [("A_KEY".to_owned(), "first".into())]);
    stage.write(CONFIG, &config("second"));
    live.reload_config().expect("a configuration");
    assert_eq!(key(), [("A_KEY".to_owned(), "second".into())]);
    assert_eq!(live.skills().current().snapshot.fingerprint(), skills.snapshot.fingerprint());
}

#[test]
fn other_machines_open_the_gate() {
    let stage = Stage::quick();
    let needs = "---\nname: a\ndescription: d\nmetadata: {openclaw: {requires: {bins: [far]}}}\n---\n";
    stage.write("ws/skills/a/SKILL.md", needs);
    let live = Live::start(stage.ground(), Watching::OnDemand).expect("skills");
    assert!(told(&live).is_empty());
    let before = live.stats().refreshes;
    let machine = Machine { os: "darwin".to_owned(), bins: ["far".to_owned()].into() };
    live.set_remote(vec![machine], Some("A machine far away.".to_owned()));
    assert_eq!(told(&live), ["a: d"]);
    assert!(live.skills().current().snapshot.prompt().text.contains("A machine far away."));
    assert_eq!(live.changes().borrow().cause, Cause::Remote);
    assert_eq!(live.stats().refreshes, before);
    // It stays so when the disk is looked at.
    stage.skill("ws/skills/b", "d");
    live.refresh_now();
    assert_eq!(told(&live), ["a: d", "b: d"]);
    live.set_remote(Vec::new(), None);
    assert_eq!(told(&live), ["b: d"]);
}

#[test]
fn without_watching_only_new_sessions_see_a_change() {
    let stage = Stage::new("{skills: {load: {watch: false}}}");
    stage.skill("ws/skills/a", "one");
    let live = stage.live();
    stage.skill("ws/skills/a", "two");
    live.refresh_now();
    assert_eq!((told(&live), live.stats().watches), (vec!["a: one".to_owned()], 0));
    let new = live.open();
    assert_eq!(new.view.catalog.skills()[0].description, "two");
    // Who switches it on sees it.
    stage.write(CONFIG, "{}");
    live.reload_config().expect("a configuration");
    assert_eq!(told(&live), ["a: two"]);
    eventually("it watches", || live.stats().watches > 0);
}

#[test]
fn on_demand_nothing_runs_between_turns() {
    let stage = Stage::quick();
    stage.skill("ws/skills/a", "one");
    let live = Live::start(stage.ground(), Watching::OnDemand).expect("skills");
    stage.skill("ws/skills/a", "two");
    assert_eq!(told(&live), ["a: one"]);
    live.refresh_now();
    assert_eq!((told(&live), live.stats().watches), (vec!["a: two".to_owned()], 0));
}

#[test]
fn a_broken_configuration_keeps_a_program_from_starting() {
    let stage = Stage::new("{skills: ");
    assert!(Live::start(stage.ground(), Watching::Configured).is_err());
}

#[test]
fn the_very_next_turn_sees_a_change() {
    // A debounce that never ends: only who asks sees anything.
    let stage = Stage::new("{skills: {load: {watchDebounceMs: 600000}}}");
    let live = stage.live();
    for round in 0..50 {
        stage.skill("ws/skills/a", &round.to_string());
        live.refresh_now();
        assert_eq!(told(&live), [format!("a: {round}")]);
    }
}

#[test]
fn many_who_ask_at_once_share_one_look() {
    let stage = Stage::new("{skills: {load: {watchDebounceMs: 600000}}}");
    let live = stage.live();
    std::thread::scope(|scope| {
        for turn in 0..8 {
            let (live, stage) = (&live, &stage);
            scope.spawn(move || {
                for round in 0..10 {
                    let (dir, text) = (format!("ws/skills/s{turn}"), format!("{turn}-{round}"));
                    stage.skill(&dir, &text);
                    live.refresh_now();
                    assert!(told(live).contains(&format!("s{turn}: {text}")));
                }
            });
        }
    });
    assert_eq!(told(&live).len(), 8);
}
