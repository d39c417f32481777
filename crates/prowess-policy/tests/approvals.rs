//! Approvals: is the peer's file read, asked and changed without losing anything?

use crate::program;
use crate::words;
use std::path::Path;

use program::program;
use proptest::prelude::*;
use prowess_policy::approvals::{Approvals, BrokenApprovals, Entry, Overrides, Use, exact_arguments};
use prowess_policy::posture::{Ask, Posture, Security};
use prowess_testkit::{cases, check_all};
use serde_json::{Value, json};
use words::{unknown, words};

fn ids() -> impl FnMut() -> String {
    let mut next = 0;
    move || {
        next += 1;
        format!("id-{next}")
    }
}

fn parse(file: &Value) -> Result<Approvals, BrokenApprovals> {
    Approvals::parse(&file.to_string(), ids())
}

fn with_agents(agents: &Value) -> Approvals {
    parse(&json!({ "version": 1, "agents": agents })).expect("a file in order")
}

fn entry(pattern: &str, arg_pattern: Option<&str>) -> Entry {
    let arg_pattern = arg_pattern.map(str::to_owned);
    Entry { id: "e".to_owned(), pattern: pattern.to_owned(), arg_pattern, ..Entry::default() }
}

#[test]
fn rules_resolve_as_in_openclaw() {
    check_all(cases(include_str!("golden/approvals-resolve.json")), |case| {
        let word = |key: &str| case["overrides"][key].as_str();
        let overrides = Overrides {
            security: word("security").and_then(Security::parse),
            ask: word("ask").and_then(Ask::parse),
            fallback: word("askFallback").and_then(Security::parse),
            auto_allow_skills: case["overrides"]["autoAllowSkills"].as_bool(),
        };
        let approvals = parse(&case["file"]).map_err(|error| error.to_string())?;
        let resolved = approvals.resolve(case["agent"].as_str(), overrides);
        let patterns: Vec<_> = resolved.allowlist.iter().map(|entry| entry.pattern.as_str()).collect();
        let mut agents = approvals.to_value()["agents"].take();
        for agent in agents.as_object_mut().expect("an object").values_mut() {
            for item in agent["allowlist"].as_array_mut().into_iter().flatten() {
                item["id"] = json!("<uuid>");
            }
            // Asking a value for a missing key leaves a null behind.
            agent.as_object_mut().expect("an object").retain(|_, value| !value.is_null());
        }
        let found = json!({ "posture": resolved.posture, "allowlist": patterns, "agents": agents });
        let same = found.as_object().expect("an object").iter().all(|(key, value)| case[key] == *value);
        if same { Ok(()) } else { Err(format!("found {found}")) }
    });
}

#[test]
fn an_exact_grant_is_the_peers() {
    let golden: Value = serde_json::from_str(include_str!("golden/exact-grants.json")).unwrap();
    let cwd = Path::new(golden["cwd"].as_str().unwrap());
    check_all(cases(include_str!("golden/exact-grants.json")), |case| {
        let args: Vec<&str> =
            case["args"].as_array().expect("a list").iter().map(|arg| arg.as_str().expect("text")).collect();
        let found = exact_arguments(&words(&args), cwd);
        if case["rule"] == json!(found) { Ok(()) } else { Err(format!("found {found:?}")) }
    });
}

#[test]
fn a_file_that_cannot_be_understood_is_broken_not_empty() {
    let broken = |text: &str| Approvals::parse(text, ids()).unwrap_err();
    assert!(matches!(broken(r#"{"version": 1, "agents": {},}"#), BrokenApprovals::Syntax { line: 1, .. }));
    for text in ["", "null", "[]", "{}", r#"{"version": 2}"#, r#"{"version": "1"}"#, "\0"] {
        assert!(Approvals::parse(text, ids()).is_err(), "{text:?}");
    }
    for (place, file) in [
        ("defaults", json!({ "defaults": [] })),
        ("defaults.security", json!({ "defaults": { "security": 0 } })),
        ("agents", json!({ "agents": [] })),
        ("agents.main", json!({ "agents": { "main": "deny" } })),
        ("agents.main.ask", json!({ "agents": { "main": { "ask": ["always"] } } })),
        ("agents.*.askFallback", json!({ "agents": { "*": { "askFallback": false } } })),
        ("agents.main.autoAllowSkills", json!({ "agents": { "main": { "autoAllowSkills": "no" } } })),
        ("agents.main.allowlist", json!({ "agents": { "main": { "allowlist": {} } } })),
        (
            "agents.main.allowlist[1].argPattern",
            json!({ "agents": { "main": { "allowlist": ["/a", { "pattern": "/b", "argPattern": 5 }] } } }),
        ),
        (
            "agents.main.allowlist[0].cwd",
            json!({ "agents": { "main": { "allowlist": [{ "pattern": "/b", "cwd": [] }] } } }),
        ),
        (
            "agents.main.allowlist[0].source",
            json!({ "agents": { "main": { "allowlist": [{ "pattern": "/b", "source": 1 }] } } }),
        ),
    ] {
        let mut file = file;
        file["version"] = json!(1);
        match parse(&file) {
            Err(BrokenApprovals::Kind { place: found, .. }) => assert_eq!(found, place),
            other => panic!("{place}: {other:?}"),
        }
    }
    assert_eq!(broken(&" ".repeat(5 * 1024 * 1024)), BrokenApprovals::TooLarge);
}

#[test]
fn an_error_does_not_repeat_what_is_in_the_file() {
    let secret = "canary-token";
    let text = format!(r#"{{"version": 1, "socket": {{"token": "{secret}"}}, oops"#);
    assert!(!Approvals::parse(&text, ids()).unwrap_err().to_string().contains(secret));
}

#[test]
fn nothing_is_lost_between_reading_and_writing() {
    let file = json!({
        "version": 1,
        "socket": { "path": "/run/x.sock", "token": "t", "more": 1 },
        "defaults": { "security": "allowlist", "later": { "a": [1] } },
        "agents": {
            "*": { "security": "odd", "mcpTools": [{ "server": "s", "tool": "t" }] },
            "work": { "ask": "always", "allowlist": [
                { "id": "1", "pattern": " /usr/bin/rg ", "lastUsedAt": 5, "commandText": "rg", "note": "mine", "source": "allow-always" }
            ] }
        },
        "future": true
    });
    let approvals = parse(&file).unwrap();
    assert_eq!(approvals.to_value(), file);
    let text = approvals.render();
    assert!(text.starts_with("{\n  \"version\": 1,\n  \"socket\": {\n    \"path\"") && text.ends_with("}\n"), "{text}");
    assert_eq!(Approvals::parse(&text, ids()).unwrap(), approvals);
    assert_eq!(Approvals::default_file().render(), "{\n  \"version\": 1,\n  \"defaults\": {},\n  \"agents\": {}\n}\n");
}

#[test]
fn a_word_spelled_otherwise_counts_only_where_it_tightens() {
    let resolve = |defaults: Value, agent: Value| {
        let file = json!({ "version": 1, "defaults": defaults, "agents": { "main": agent } });
        parse(&file).unwrap().resolve(None, Overrides::default()).posture
    };
    let full = json!({ "security": "full", "ask": "off", "askFallback": "full" });
    let posture = resolve(full.clone(), json!({ "security": " DENY ", "ask": "Always", "askFallback": "Deny" }));
    assert_eq!((posture.security, posture.ask, posture.fallback), (Security::Deny, Ask::Always, Security::Deny));
    let posture = resolve(json!({}), json!({ "security": "Full", "ask": "OFF", "askFallback": "FULL" }));
    assert_eq!(posture, Posture::SILENT);
    assert_eq!(resolve(full, json!({ "security": null })).security, Security::Full, "null says nothing");
}

#[test]
fn an_empty_file_lets_nothing_run() {
    let resolved = Approvals::default_file().resolve(Some(" "), Overrides::default());
    assert_eq!((resolved.posture, resolved.allowlist), (Posture::SILENT, vec![]));
}

#[test]
fn grants_are_kept_once_and_can_be_taken_back() {
    let mut approvals = with_agents(&json!({ "work": { "ask": "always", "allowlist": null } }));
    let rg = program("/usr/bin/rg", "/usr/bin/rg", true);
    let exact = Entry::exact("1".to_owned(), &rg, &words(&["x"]), Path::new("/ws")).unwrap();
    let any = Entry::any_arguments("2".to_owned(), &rg).unwrap();
    assert!(approvals.grant(Some("work"), &exact) && approvals.grant(Some("work"), &any));
    assert!(!approvals.grant(Some("work"), &Entry { id: "3".to_owned(), ..exact.clone() }), "it is there already");
    assert!(!approvals.grant(Some("work"), &entry("  ", None)), "it means nothing");
    assert!(approvals.grant(None, &any), "another agent");
    assert_eq!(approvals.entries("work"), [exact.clone(), any.clone()]);
    assert_eq!(approvals.to_value()["agents"]["work"]["ask"], "always");
    assert_eq!(Approvals::parse(&approvals.render(), ids()).unwrap(), approvals);

    assert_eq!(approvals.revoke(Some("work"), "1"), 1);
    assert_eq!(approvals.revoke(Some("work"), "1"), 0);
    assert_eq!(approvals.entries("work"), std::slice::from_ref(&any));
    assert!(approvals.grant(Some("work"), &exact));
    assert_eq!(approvals.revoke(Some("work"), "/usr/bin/rg"), 2);
    assert_eq!((approvals.entries("work"), approvals.entries("main")), (vec![], vec![any]));
    assert_eq!(approvals.agents().collect::<Vec<_>>(), ["work", "main"]);
}

#[test]
fn uses_are_noted_with_the_entry_that_allowed_them() {
    let list = |pattern: &str, id: &str| json!({ "allowlist": [{ "id": id, "pattern": pattern, "note": 1 }] });
    let mut approvals =
        with_agents(&json!({ "*": list("/a", "1"), "main": list("/b", "2"), "other": list("/c", "1") }));
    approvals.record_use(None, "1", Use { at: 7, command: &"x".repeat(5000), resolved: "/a" });
    let used = &approvals.entries("*")[0];
    assert_eq!((used.last_used_at, used.last_resolved_path.as_deref()), (Some(7), Some("/a")));
    assert_eq!(used.last_used_command.as_ref().map(String::len), Some(1000));
    assert_eq!(used.extra.get("note"), Some(&json!(1)));
    assert_eq!((approvals.entries("main")[0].last_used_at, approvals.entries("other")[0].last_used_at), (None, None));
}

#[test]
fn an_exact_grant_covers_one_invocation_and_no_other() {
    let zsh = program("/usr/bin/tool", "/usr/bin/tool", true);
    let home = Path::new("/home/u");
    let args = words(&["a b", "c"]);
    let grant = Entry::exact("1".to_owned(), &zsh, &args, Path::new("/ws")).unwrap();
    let covers = |args: &[_], cwd: &str| grant.covers(&zsh, "tool", args, Path::new(cwd), home);
    assert!(covers(&args, "/ws") && covers(&args, "/ws/"));
    for other in [&["a b"][..], &["a", "b", "c"], &["a b", "c", ""], &["a b c"], &["c", "a b"], &[]] {
        assert!(!covers(&words(other), "/ws"), "{other:?}");
    }
    assert!(!covers(&[unknown(), unknown()], "/ws"));
    for cwd in ["/", "/ws/sub", "/ws/../ws", "ws", ""] {
        assert!(!covers(&args, cwd), "{cwd}");
    }
    let copy = program("/tmp/tool", "/tmp/tool", false);
    assert!(!grant.covers(&copy, "./tool", &args, Path::new("/ws"), home), "another file of the same name");
    assert!(Entry::exact("1".to_owned(), &zsh, &[unknown()], Path::new("/ws")).is_none());
}

#[test]
fn a_grant_is_never_wider_than_the_path_it_was_given_for() {
    for path in ["/opt/a*/x", "/opt/a?", "/opt/x ", "relative", "/opt/x\n"] {
        let odd = program(path, path, false);
        assert_eq!(Entry::any_arguments("1".to_owned(), &odd), None, "{path:?}");
        assert_eq!(Entry::exact("1".to_owned(), &odd, &[], Path::new("/ws")), None, "{path:?}");
    }
    let fine = program("/opt/x", "/opt/x", false);
    for cwd in ["ws", "/ws/../x", "/w\\s"] {
        assert_eq!(Entry::exact("1".to_owned(), &fine, &[], Path::new(cwd)), None, "{cwd:?}");
    }
}

#[test]
fn an_answer_without_its_invocation_covers_nothing() {
    let rg = program("/usr/bin/rg", "/usr/bin/rg", true);
    let covers = |entry: &Entry| entry.covers(&rg, "rg", &words(&["x"]), Path::new("/ws"), Path::new("/home/u"));
    let answered = |rule| Entry { source: Some("allow-always".to_owned()), ..entry("/usr/bin/rg", rule) };
    assert!(covers(&entry("/usr/bin/rg", None)) && covers(&entry("/usr/bin/rg", Some(""))));
    for rule in [None, Some(""), Some("^x$"), Some("sha256:cwd-argv:v1:00")] {
        assert!(!covers(&answered(rule)), "{rule:?}");
    }
    assert!(
        !covers(&entry("/usr/bin/rg", Some("sha256:argv:00"))) && !covers(&entry("/usr/bin/rg", Some("sha256:.*")))
    );
    assert!(covers(&entry("*", None)) && !covers(&entry("*", Some("x"))));
    assert!(!covers(&Entry { cwd: Some("/other".to_owned()), ..entry("/usr/bin/rg", None) }));
}

#[test]
fn an_expression_is_read_as_the_peer_reads_it_or_not_at_all() {
    let rg = program("/usr/bin/rg", "/usr/bin/rg", true);
    let covers = |rule: &str, args: &[&str]| {
        entry("/usr/bin/rg", Some(rule)).covers(&rg, "rg", &words(args), Path::new("/ws"), Path::new("/home/u"))
    };
    let table: &[(&str, &[&str], bool)] = &[
        ("^status$", &["status"], true),
        ("^status$", &["status", "x"], false),
        ("status", &["--x", "status"], true),
        ("^(?:log|show) .*$", &["log", "-5"], true),
        ("^log .*$", &["log", "a\nb"], false),
        ("^log .*$", &["log", "a\rb"], false),
        (r"^\d+$", &["12"], true),
        (r"^\d+$", &["١٢"], false),
        ("^.é$", &["xé"], true),
        ("^a\0b\0$", &["a", "b"], true),
        ("^a\0b\0$", &["a b"], false),
        ("^\0\0$", &[], true),
        ("^\0$", &[""], true),
        ("^\0$", &[], false),
        ("^[a-c]+?$", &["abc"], true),
        // Only one of the two dialects has these, or they mean different things.
        ("^(?i)x$", &["X"], false),
        (r"\Ax\z", &["x"], false),
        ("^[^a&&b]$", &["a"], false),
        ("^[[:alpha:]]$", &["a"], false),
        ("^[^]$", &["a"], false),
        (r"^\p{L}$", &["a"], false),
        ("^*x", &["yx"], false),
        (r"\b*x", &["x"], false),
        ("a**", &["a"], false),
        ("a+??", &["a"], false),
        ("a{,3}", &["a"], false),
        ("^(?=x)x$", &["x"], false),
        ("(", &["("], false),
    ];
    for (rule, args, expected) in table {
        assert_eq!(covers(rule, args), *expected, "{rule:?} {args:?}");
    }
    let any = entry("/usr/bin/rg", Some(".*"));
    assert!(!any.covers(&rg, "rg", &[unknown()], Path::new("/ws"), Path::new("/home/u")));
    assert!(!covers(&"a?".repeat(5000), &["a"]), "too long to be read");
}

proptest! {
    #[test]
    fn no_file_panics_and_what_is_read_is_read_again_alike(text in "[\\[\\]{}:,\"a-z0-9*/ ]{0,60}", agent in any::<String>()) {
        for text in [text.clone(), format!(r#"{{"version":1,"agents":{{"main":{text}}}}}"#)] {
            if let Ok(approvals) = Approvals::parse(&text, ids()) {
                let _ = approvals.resolve(Some(&agent), Overrides::default());
                prop_assert_eq!(Approvals::parse(&approvals.render(), ids()).unwrap(), approvals);
            }
        }
    }

    #[test]
    fn no_rule_panics(rule in any::<String>(), args in prop::collection::vec(any::<String>(), 0..3)) {
        let rg = program("/usr/bin/rg", "/usr/bin/rg", true);
        let _ = entry("/usr/bin/rg", Some(&rule)).covers(&rg, "rg", &words(&args), Path::new("/ws"), Path::new("/home/u"));
    }
}
