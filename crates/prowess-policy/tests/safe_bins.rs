//! Safe bins: do exactly those arguments pass that keep a program to its input?

use crate::program;
use crate::words;
use std::collections::BTreeMap;
use std::path::PathBuf;

use program::program;
use proptest::prelude::*;
use prowess_policy::safe_bin::{CustomProfile, SafeBinObjection, SafeBinWarning, SafeBins};
use prowess_policy::wrapper::Tail;
use prowess_testkit::{assert_documented, cases, check_all_but};
use words::{unknown, words};

const SWITCHES: &str = "options without a value on safe bins";

const DEVIATIONS: &[(&str, &str)] = &[
    ("head -q", SWITCHES),
    ("head --quiet", SWITCHES),
    ("cut -s -f1", SWITCHES),
    ("uniq -c", SWITCHES),
    ("tr -d x", SWITCHES),
    ("wc -l", SWITCHES),
    ("wc --lines", SWITCHES),
    ("jq .a", "`jq` as a safe bin"),
];

fn everything() -> SafeBins {
    let names = ["cut", "grep", "head", "jq", "sort", "tail", "tr", "uniq", "wc"].map(str::to_owned);
    SafeBins::new(Some(&names), &BTreeMap::new(), &[]).0
}

fn check(bins: &SafeBins, name: &str, args: &[&str]) -> Result<(), SafeBinObjection> {
    let path = format!("/usr/bin/{name}");
    bins.check(name, &program(&path, &path, true), &words(args), Tail::Closed)
}

fn compare(case: &serde_json::Value, column: &str) -> Result<(), String> {
    let args: Vec<&str> =
        case["args"].as_array().expect("a list").iter().map(|arg| arg.as_str().expect("text")).collect();
    let found = check(&everything(), case["bin"].as_str().expect("a name"), &args);
    if case[column] == found.is_ok() { Ok(()) } else { Err(format!("found {found:?}")) }
}

#[test]
fn arguments_pass_as_in_openclaw_but_for_switches_and_jq() {
    assert_documented(DEVIATIONS);
    check_all_but(DEVIATIONS, cases(include_str!("golden/safe-bins.json")), |case| compare(case, "older"));
}

#[test]
fn arguments_pass_as_in_the_newer_openclaw() {
    check_all_but(&[], cases(include_str!("golden/safe-bins.json")), |case| compare(case, "newer"));
}

#[test]
fn ordinary_uses_pass() {
    let table: &[(&str, &[&str])] = &[
        ("head", &["-n", "5"]),
        ("head", &["-qn5"]),
        ("head", &["-c", "1K", "-z"]),
        ("tail", &["-n", "+2"]),
        ("cut", &["-d.", "-f", "1,3-"]),
        ("cut", &["-d", " ", "-f2", "-s"]),
        ("cut", &["--output-del=;", "-f1"]),
        ("tr", &["a-z", "A-Z"]),
        ("tr", &["-cd", "0-9"]),
        ("tr", &["--", "-", "_"]),
        ("uniq", &["-ci"]),
        ("uniq", &["--group=append"]),
        ("wc", &["-lw"]),
        ("wc", &["--max-line"]),
        ("grep", &["-e", "foo$"]),
        ("sort", &["-t", ",", "-k2"]),
    ];
    for (name, args) in table {
        assert_eq!(check(&everything(), name, args), Ok(()), "{name} {args:?}");
    }
}

#[test]
fn arguments_that_reach_further_do_not() {
    let table: &[(&str, &[&str])] = &[
        ("head", &["-5"]),
        ("head", &["secret"]),
        ("head", &["-n", "5", "secret"]),
        ("head", &["-n"]),
        ("head", &["-n", ""]),
        ("head", &["--lines"]),
        ("head", &["--quiet=1"]),
        ("head", &["--ver"]),
        ("head", &["--", "-n", "5"]),
        ("head", &["-n", "$HOME"]),
        ("head", &["-n", "`id`"]),
        ("head", &["C:\\x"]),
        ("tail", &["--fol"]),
        ("tail", &["--follow=name"]),
        ("tail", &["-qf"]),
        ("tail", &["-n5", "-F"]),
        ("tail", &["--ret"]),
        ("tail", &["+5"]),
        ("cut", &["-d/", "-f1"]),
        ("cut", &["-f1", "secret"]),
        ("cut", &["--output-delimiter=/etc/passwd"]),
        ("uniq", &["in", "out"]),
        ("uniq", &["--group", "secret"]),
        ("uniq", &["--gr", "secret"]),
        ("wc", &["--files0=x"]),
        ("wc", &["--files0-f", "x"]),
        ("wc", &["--f=x"]),
        ("wc", &["-x"]),
        ("wc", &["--total=never"]),
        ("sort", &["--outp=x"]),
        ("sort", &["--o", "x"]),
        ("sort", &["--compress-prog=sh"]),
        ("sort", &["--comp=sh"]),
        ("sort", &["-ofile"]),
        ("sort", &["-k1", "-ofile"]),
        ("sort", &["--temp=."]),
        ("sort", &["--files=x"]),
        ("grep", &["-e", "x", "--fil=y"]),
        ("grep", &["-e", "x", "-r"]),
        ("grep", &["--recur", "-e", "x"]),
        ("grep", &["--exclude-f=x", "-e", "y"]),
        ("jq", &["."]),
    ];
    for (name, args) in table {
        assert!(check(&everything(), name, args).is_err(), "{name} {args:?}");
    }
}

#[test]
fn a_safe_bin_lies_in_a_trusted_folder_with_and_without_links() {
    let bins = SafeBins::default();
    let found = |path: &str, real: &str| bins.check("head", &program(path, real, true), &[], Tail::Closed);
    assert_eq!(found("/bin/head", "/usr/bin/head"), Ok(()));
    for (path, real) in [("/fx/head", "/fx/head"), ("/usr/bin/head", "/fx/evil"), ("/fx/head", "/usr/bin/head")] {
        assert!(matches!(found(path, real), Err(SafeBinObjection::Untrusted(_))), "{path} {real}");
    }
    assert!(matches!(found("/usr/bin/tail", "/usr/bin/tail"), Err(SafeBinObjection::NotListed(_))));
    assert!(found("/usr/bin/sub/head", "/usr/bin/sub/head").is_err());

    let dirs = [PathBuf::from("/opt/tools//bin/"), PathBuf::from("relative")];
    let (bins, warnings) = SafeBins::new(None, &BTreeMap::new(), &dirs);
    let own = program("/opt/tools/bin/wc", "/opt/tools/bin/wc", false);
    assert_eq!(bins.check("wc", &own, &words(&["-l"]), Tail::Closed), Ok(()));
    assert_eq!(warnings, [SafeBinWarning::RelativeDir(PathBuf::from("relative"))]);
}

#[test]
fn arguments_that_are_not_known_yet_do_not_pass() {
    let head = program("/usr/bin/head", "/usr/bin/head", true);
    let bins = SafeBins::default();
    assert_eq!(bins.check("head", &head, &[unknown()], Tail::Closed), Err(SafeBinObjection::OpenArguments));
    assert_eq!(bins.check("head", &head, &words(&["-n5"]), Tail::Open), Err(SafeBinObjection::OpenArguments));
}

#[test]
fn the_operator_may_add_profiles_but_not_interpreters() {
    let names = ["Mytool ", "jq", "python3.11", "bash", "other", "sort", ""].map(str::to_owned);
    let profile: CustomProfile = serde_json::from_value(serde_json::json!({
        "minPositional": -1, "maxPositional": 1.9, "allowedValueFlags": ["--level", " -l "], "deniedFlags": ["--out"],
        "allowedFlags": ["-v", "--out"]
    }))
    .unwrap();
    let sort =
        CustomProfile { max_positional: Some(0), allowed_flags: vec!["-n".to_owned()], ..CustomProfile::default() };
    let custom = BTreeMap::from([
        ("mytool".to_owned(), profile.clone()),
        ("python3.11".to_owned(), profile.clone()),
        ("jq".to_owned(), profile),
        ("sort".to_owned(), sort),
    ]);
    let (bins, warnings) = SafeBins::new(Some(&names), &custom, &[]);
    assert_eq!(bins.names().collect::<Vec<_>>(), ["mytool", "sort"]);
    let own = |name: fn(String) -> SafeBinWarning, text: &str| name(text.to_owned());
    assert_eq!(
        warnings,
        [
            own(SafeBinWarning::Interpreter, "bash"),
            own(SafeBinWarning::NeverSafe, "jq"),
            own(SafeBinWarning::NoProfile, "other"),
            own(SafeBinWarning::Interpreter, "python3.11"),
        ]
    );
    for args in [&["-v", "x"][..], &["--level", "3"], &["-l3"], &["--level=3"]] {
        assert_eq!(check(&bins, "mytool", args), Ok(()), "{args:?}");
    }
    for args in [&["x", "y"][..], &["--out"], &["--lev=3"], &["--other"], &["-x"]] {
        assert!(check(&bins, "mytool", args).is_err(), "{args:?}");
    }
    assert_eq!(check(&bins, "sort", &["-n"]), Ok(()));
    assert!(check(&bins, "sort", &["--output=x"]).is_err());
    assert!(
        check(&SafeBins::new(Some(&[]), &BTreeMap::new(), &[]).0, "head", &[]).is_err(),
        "an empty list means none"
    );
    assert!(check(&SafeBins::default(), "sort", &[]).is_err(), "not safe unless asked for");
}

proptest! {
    #[test]
    fn one_more_argument_never_helps_a_file_through(
        name in prop::sample::select(vec!["head", "tail", "wc", "uniq", "cut"]),
        before in prop::collection::vec("(--?[a-zA-Z]{0,6}(=[a-z0-9/]{0,3})?|[a-z0-9]{0,3})", 0..4),
        file in "/[a-z]{1,6}",
    ) {
        let mut args: Vec<&str> = before.iter().map(String::as_str).collect();
        args.push(&file);
        prop_assert!(check(&everything(), name, &args).is_err(), "{:?}", args);
    }

    #[test]
    fn nothing_panics(name in ".*", args in prop::collection::vec(any::<String>(), 0..5)) {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let _ = check(&everything(), &name, &args);
        for known in ["tr", "sort", "grep"] {
            let _ = check(&everything(), known, &args);
        }
    }
}
