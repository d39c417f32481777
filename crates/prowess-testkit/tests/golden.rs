//! Are golden files read whole, and is every failure reported?

use prowess_testkit::{cases, cases_in, check_all, check_all_but};
use serde_json::Value;

const FILE: &str = r#"{
    "peer": "someone",
    "cases": [
        { "id": "one", "input": 1, "output": 1 },
        { "input": { "id": "two" }, "output": 2 },
        { "input": 3, "output": 3 }
    ],
    "singles": [{ "id": "s" }]
}"#;

fn same(case: &Value) -> Result<(), String> {
    if case["input"] == case["output"] { Ok(()) } else { Err(format!("{} is not {}", case["input"], case["output"])) }
}

fn message(check: impl FnOnce() + std::panic::UnwindSafe) -> String {
    let panic = std::panic::catch_unwind(check).expect_err("a failed check");
    *panic.downcast::<String>().expect("a message")
}

#[test]
fn every_case_has_an_id() {
    let ids = |cases: &mut dyn Iterator<Item = (String, Value)>| cases.map(|(id, _)| id).collect::<Vec<_>>();
    assert_eq!(ids(&mut cases(FILE)), ["one", "two", "#2"]);
    assert_eq!(ids(&mut cases(r#"{ "vectors": [{}] }"#)), ["#0"]);
    assert_eq!(ids(&mut cases(r#"{ "cases": [{ "id": "a" }, { "id": "a" }] }"#)), ["a", "a#1"]);
    assert_eq!(ids(&mut cases_in(FILE, "singles")), ["s"]);
}

#[test]
fn all_failures_are_listed_and_panics_are_failures() {
    let all = message(|| {
        check_all(cases(FILE), |case| {
            assert!(case["output"] != 3, "three");
            Err(format!("not {}", case["output"]))
        });
    });
    assert_eq!(all, "3 of 3 cases failed:\none: not 1\ntwo: not 2\n#2: panicked: three");
}

#[test]
fn cases_that_hold_pass() {
    check_all(cases(FILE).filter(|(id, _)| id != "two"), same);
}

#[test]
fn a_deviation_must_exist_and_must_deviate() {
    check_all_but(&[("two", "we count otherwise")], cases(FILE), same);
    let stale = message(|| check_all_but(&[("two", ""), ("one", "of habit"), ("gone", "")], cases(FILE), same));
    assert!(stale.contains("one: passes, though we deviate because of habit"), "{stale}");
    assert!(stale.contains("gone: a deviation without a case"), "{stale}");
    assert!(!stale.contains("two"), "{stale}");
}

#[test]
#[should_panic(expected = "nothing was checked")]
fn no_cases_is_a_failure() {
    check_all(cases(r#"{ "cases": [] }"#), same);
}
