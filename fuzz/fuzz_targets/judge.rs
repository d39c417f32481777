//! Any text before the judge: what it allows is free of doubt, covered part by part, and still the same once the paths
//! of its programs are written into it.

#![no_main]

#[path = "../../crates/prowess-policy/tests/support/asked.rs"]
mod asked;
#[path = "../../crates/prowess-policy/tests/support/everywhere.rs"]
mod everywhere;

use std::path::{Path, PathBuf};

use asked::{request, rules};
use everywhere::Everywhere;
use libfuzzer_sys::fuzz_target;
use prowess_policy::script::MAX_BYTES;
use prowess_policy::{Cover, Judgment, Rules, Script, Verdict};

/// Among them interpreters and programs whose options reach far; by their paths, so that a path in the place of a name
/// is covered as well.
const LISTED: [&str; 8] = [
    "/usr/bin/git",
    "/usr/bin/rg",
    "/usr/bin/ls",
    "/usr/bin/find",
    "/usr/bin/sed",
    "/usr/bin/awk",
    "/usr/bin/tar",
    "/usr/bin/python*",
];

fuzz_target!(|text: &str| {
    if text.len() > MAX_BYTES + 8 {
        return;
    }
    let rules = self::rules(&LISTED);
    let judgment = judge(&rules, text);
    for objection in judgment.all_objections() {
        assert!(!objection.to_string().is_empty() && !objection.code().is_empty());
        assert!(objection.span().is_none_or(|span| text.get(span.range()).is_some()));
    }
    match judgment.verdict() {
        Verdict::Allow => allowed(&rules, text, judgment),
        Verdict::Ask | Verdict::Deny => assert!(judgment.all_objections().next().is_some()),
    }
});

fn allowed(rules: &Rules, text: &str, judgment: Judgment) {
    assert_eq!(Script::parse(text).doubts, []);
    assert!(judgment.objections().is_empty() && judgment.segments().iter().all(|segment| segment.standing.is_ok()));
    assert_eq!(judgment.grants(), Ok(Vec::new()), "what is covered needs nothing stored");
    let programs = started(&judgment);
    let is_listed = judgment.segments().iter().all(|segment| matches!(segment.standing, Ok(Cover::Allowlist { .. })));
    let is_bare = judgment.segments().iter().all(|segment| segment.wrappers.is_empty());
    let Ok(permit) = judgment.permit() else { panic!("allowed without a permit") };
    let pinned = permit.text();
    // With paths for names it may have become longer than a text may be.
    if pinned.len() > MAX_BYTES {
        return;
    }
    assert_eq!(Script::parse(&pinned).doubts, [], "{pinned}");
    // Shells and safe programs count only by their names.
    if is_bare {
        let again = judge(rules, &pinned);
        assert_eq!(started(&again), programs, "{pinned}");
        assert!(!is_listed || again.verdict() == Verdict::Allow, "{pinned}");
    }
}

fn started(judgment: &Judgment) -> Vec<PathBuf> {
    let programs = judgment.segments().iter().flat_map(|segment| &segment.starts);
    programs.map(|program| program.real.clone()).collect()
}

fn judge(rules: &Rules, command: &str) -> Judgment {
    rules.judge(request(command, Path::new("/home/me/work")), &Everywhere)
}
