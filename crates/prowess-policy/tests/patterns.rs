//! Patterns: does an entry of the allowlist mean the programs it means in OpenClaw?

use crate::program;
use std::path::Path;

use program::program;
use proptest::prelude::*;
use prowess_policy::Pattern;
use prowess_testkit::{assert_documented, cases, check_all_but};

const CASE: &str = "upper and lower case in a pattern";
const ONE: &str = "`?` in a pattern";

const DEVIATIONS: &[(&str, &str)] =
    &[("/usr/bin/RG /usr/bin/rg", CASE), ("/ü/* /Ü/x", CASE), ("/usr/bin?rg /usr/bin/rg", ONE)];

const HOME: &str = "/fx/home";

fn fits(pattern: &str, path: &str) -> bool {
    Pattern::parse(pattern, Path::new(HOME)).matches(&program(path, path, false), path)
}

#[test]
fn patterns_mean_what_they_mean_in_openclaw() {
    assert_documented(DEVIATIONS);
    check_all_but(DEVIATIONS, cases(include_str!("golden/allowlist-glob.json")), |case| {
        let text = |key: &str| case[key].as_str().expect("text").to_owned();
        let found = fits(&text("pattern"), &text("target"));
        if case["matches"] == found { Ok(()) } else { Err(format!("found {found}")) }
    });
}

#[test]
fn a_link_counts_as_what_it_points_to_unless_the_administrator_placed_it() {
    let pattern = |text: &str| Pattern::parse(text, Path::new(HOME));
    let (link, target) = ("/opt/bin/rg", "/opt/rg/15/rg");
    for (settled, by_link) in [(false, false), (true, true)] {
        let program = program(link, target, settled);
        assert!(pattern(target).matches(&program, "rg"));
        assert_eq!(pattern(link).matches(&program, "rg"), by_link);
        assert_eq!(pattern("/opt/bin/*").matches(&program, "rg"), by_link);
    }
}

#[test]
fn a_name_means_the_program_that_the_system_brings_along() {
    let name = Pattern::parse("rg", Path::new(HOME));
    let (system, users) = (program("/usr/bin/rg", "/usr/bin/rg", true), program("/fx/ws/rg", "/fx/ws/rg", false));
    assert!(name.matches(&system, "rg"));
    assert!(!name.matches(&users, "rg"), "an earlier folder on PATH");
    for token in ["./rg", "/usr/bin/rg", "~/rg", "..\\rg"] {
        assert!(!name.matches(&system, token), "{token}");
    }
    assert!(!Pattern::parse("r*", Path::new(HOME)).matches(&system, "rg"), "names have no wildcards");
    assert!(!Pattern::parse("g", Path::new(HOME)).matches(&system, "rg"));
}

#[test]
fn a_star_alone_means_everything_and_nothing_means_nothing() {
    let users = program("/fx/ws/x", "/fx/ws/x", false);
    assert!(Pattern::parse(" * ", Path::new(HOME)).matches(&users, "./x"));
    for pattern in ["", "  ", "~", "~/", "~x/bin"] {
        assert!(!Pattern::parse(pattern, Path::new(HOME)).matches(&users, "./x"), "{pattern:?}");
    }
}

#[test]
fn a_wildcard_in_the_name_of_the_home_is_a_letter() {
    let star = Path::new("/home/a*");
    let pattern = Pattern::parse("~/bin/x", star);
    assert!(pattern.matches(&program("/home/a*/bin/x", "/home/a*/bin/x", false), "x"));
    assert!(!pattern.matches(&program("/home/abc/bin/x", "/home/abc/bin/x", false), "x"));
    for home in ["", "home", "../home"] {
        let pattern = Pattern::parse("~/bin/x", Path::new(home));
        assert!(!pattern.matches(&program("/bin/x", "/bin/x", false), "x"), "{home:?} is no home");
    }
    assert!(Pattern::parse("~/bin/x", Path::new("/")).matches(&program("/bin/x", "/bin/x", false), "x"));
}

#[test]
fn stars_end_where_they_should() {
    let table = [
        ("/a/*/c", "/a/b/c", true),
        ("/a/*/c", "/a/b/b/c", false),
        ("/a/**/c", "/a/b/b/c", true),
        ("/a/**/*.sh", "/a/b/c/run.sh", true),
        ("/a/**/*.sh", "/a/run.sh", false),
        ("/a/***", "/a/b/c", true),
        ("/a/*b*c", "/a/xbxbxc", true),
        ("/a/*b*c", "/a/xb/xc", false),
        ("/a/**b*c/d", "/a/x/b/b1c/d", true),
        ("/a/?", "/a/é", true),
        ("/a/*", "/a/", true),
        ("/a/*", "/a", false),
        ("/a/[b]", "/a/b", false),
    ];
    for (pattern, path, expected) in table {
        assert_eq!(fits(pattern, path), expected, "{pattern} {path}");
    }
}

#[test]
fn many_stars_do_not_blow_up() {
    // A matcher that goes back at every star would try this in more ways than there are atoms.
    let pattern = format!("/{}b", "*a".repeat(200));
    assert!(!fits(&pattern, &format!("/{}", "a".repeat(4000))));
    let deep = format!("/{}b", "**/a".repeat(200));
    assert!(!fits(&deep, &"/a".repeat(2000)));
}

proptest! {
    #[test]
    fn nothing_panics(pattern in any::<String>(), path in any::<String>(), home in any::<String>()) {
        let program = program(&path, &path, true);
        let _ = Pattern::parse(&pattern, Path::new(&home)).matches(&program, &path);
    }

    #[test]
    fn a_path_without_wildcards_means_itself_alone(path in "(/[a-z .~\\\\]{1,8}){1,4}", other in "(/[a-z .]{1,8}){1,4}") {
        prop_assume!(path.trim() == path);
        prop_assert!(fits(&path, &path));
        prop_assert_eq!(fits(&path, &other), path == other);
    }

    #[test]
    fn a_wildcard_never_fits_less_than_the_letters_it_stands_for(path in "(/[a-z]{1,4}){1,4}", at in any::<prop::sample::Index>()) {
        // The first slash is what makes it a path.
        let at = 1 + at.index(path.len() - 1);
        let (before, after) = (&path[..at], &path[at + 1..]);
        let stars = if path[at..].starts_with('/') { &["**"][..] } else { &["?", "*", "**"] };
        for star in stars {
            let pattern = [before, *star, after].concat();
            prop_assert!(fits(&pattern, &path), "{} {}", pattern, path);
        }
    }
}
