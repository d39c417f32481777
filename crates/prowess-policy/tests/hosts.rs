//! Rules for hosts: what they cover, how they are written, and which is wider.

use proptest::prelude::*;
use prowess_policy::lease::{Host, HostError, HostRule};

fn rule(text: &str) -> HostRule {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn host(text: &str) -> Host {
    Host::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn a_rule_covers_whole_labels_and_listed_ports() {
    let table = [
        ("wttr.in:443", "wttr.in", 443, true),
        ("wttr.in:443", "WTTR.in.", 443, true),
        ("wttr.in:443", "wttr.in", 80, false),
        ("wttr.in", "wttr.in", 80, true),
        ("wttr.in", "wttr.in", 443, true),
        ("wttr.in", "wttr.in", 22, false),
        ("wttr.in:443", "a.wttr.in", 443, false),
        ("wttr.in:443", "evilwttr.in", 443, false),
        ("wttr.in:443", "wttr.in.evil.com", 443, false),
        ("*.example.com:443", "a.example.com", 443, true),
        ("*.example.com:443", "a.b.EXAMPLE.com.", 443, true),
        ("*.example.com:443", "example.com", 443, false),
        ("*.example.com:443", "evil-example.com", 443, false),
        ("*.example.com:443", "evilexample.com", 443, false),
        ("*.example.com:443", "a.example.com.evil.com", 443, false),
        ("localhost:8080", "localhost", 8080, true),
        ("localhost:8080", "127.0.0.1", 8080, true),
        ("localhost:8080", "127.9.9.9", 8080, true),
        ("localhost:8080", "[::1]", 8080, true),
        ("localhost:8080", "::ffff:127.0.0.1", 8080, true),
        ("localhost:8080", "a.localhost", 8080, false),
        ("localhost:8080", "0.0.0.0", 8080, false),
        ("127.0.0.1:80", "localhost", 80, false),
        ("10.0.0.0/8:5432", "10.200.1.2", 5432, true),
        ("10.0.0.0/8:5432", "::ffff:10.200.1.2", 5432, true),
        ("10.0.0.0/8:5432", "11.0.0.1", 5432, false),
        ("10.0.0.0/8:5432", "ten.example.com", 5432, false),
        ("0.0.0.0/0:22", "8.8.8.8", 22, true),
        ("0.0.0.0/0:22", "::1", 22, false),
        ("[fd00::]/8:22", "fd12::1", 22, true),
        ("[fd00::]/8:22", "fe80::1", 22, false),
        ("[::1]:80,81", "::1", 81, true),
        ("::1", "::1", 443, true),
    ];
    for (text, asked, port, expected) in table {
        assert_eq!(rule(text).covers(&host(asked), port), expected, "{text} and {asked}:{port}");
    }
}

#[test]
fn unusual_addresses_and_names_are_refused() {
    type Check = fn(&HostError) -> bool;
    let table: &[(&str, Check)] = &[
        ("0x7f.1", |e| matches!(e, HostError::OddAddress(_))),
        ("0x7f000001", |e| matches!(e, HostError::OddAddress(_))),
        ("017700000001", |e| matches!(e, HostError::OddAddress(_))),
        ("2130706433", |e| matches!(e, HostError::OddAddress(_))),
        ("127.1", |e| matches!(e, HostError::OddAddress(_))),
        ("127.0.0.01", |e| matches!(e, HostError::OddAddress(_))),
        ("1.2.3.4.5", |e| matches!(e, HostError::OddAddress(_))),
        ("evil.com.0x1", |e| matches!(e, HostError::OddAddress(_))),
        ("a.0x", |e| matches!(e, HostError::OddAddress(_))),
        ("", |e| matches!(e, HostError::Empty)),
        (".", |e| matches!(e, HostError::Empty)),
        ("example.com..", |e| matches!(e, HostError::BadName(_))),
        ("a..b", |e| matches!(e, HostError::BadName(_))),
        ("-a.com", |e| matches!(e, HostError::BadName(_))),
        ("a b.com", |e| matches!(e, HostError::BadName(_))),
        ("a@b.com", |e| matches!(e, HostError::BadName(_))),
        ("a%2eb.com", |e| matches!(e, HostError::BadName(_))),
        ("a\0.com", |e| matches!(e, HostError::BadName(_))),
        ("fe80::1%eth0", |e| matches!(e, HostError::BadName(_))),
        ("[::1", |e| matches!(e, HostError::BadName(_))),
        ("[127.0.0.1]", |e| matches!(e, HostError::BadName(_))),
        ("ex\u{e4}mple.com", |e| matches!(e, HostError::NotAscii(_))),
        ("example\u{3002}com", |e| matches!(e, HostError::NotAscii(_))),
    ];
    for (text, is_expected) in table {
        let error = Host::parse(text).expect_err(text);
        assert!(is_expected(&error), "{text}: {error:?}");
    }
    assert_eq!(host("127.0.0.1."), host("127.0.0.1"));
    assert_eq!(host("::ffff:1.2.3.4"), host("1.2.3.4"));
}

#[test]
fn rules_that_mean_nothing_are_refused() {
    for text in [
        "*",
        "*.com",
        "a.*.com",
        "*example.com",
        "*.1.2.3",
        "*.10.0.0.1",
        "10.0.0.1/8",
        "10.0.0.0/33",
        "10.0.0.0/+8",
        "10.0.0.0/08",
        "example.com/8",
        "10.0.0.0/",
        "a.com:",
        "a.com:0",
        "a.com:65536",
        "a.com:+80",
        "a.com:http",
        "a.com:80,",
        "https://a.com",
        "a.com/path",
        "",
        ":443",
        "[::1]:x",
        "::ffff:10.0.0.0/104",
    ] {
        assert!(text.parse::<HostRule>().is_err(), "{text} was accepted");
    }
}

#[test]
fn a_rule_is_written_as_it_is_read() {
    let table = [
        ("wttr.in:443", "wttr.in:443"),
        ("WTTR.in.:443", "wttr.in:443"),
        ("wttr.in:443,80", "wttr.in"),
        ("wttr.in:443, 22,22", "wttr.in:22,443"),
        ("*.Example.com", "*.example.com"),
        ("::1", "[::1]"),
        ("[::1]:80", "[::1]:80"),
        ("fd00::/8", "[fd00::]/8"),
        ("10.0.0.0/8:22", "10.0.0.0/8:22"),
        ("10.0.0.1/32:22", "10.0.0.1:22"),
        ("localhost:1", "localhost:1"),
    ];
    for (text, expected) in table {
        assert_eq!(rule(text).to_string(), expected, "{text}");
        assert_eq!(rule(expected), rule(text));
    }
}

#[test]
fn json_is_a_text_or_what_a_skill_declares() {
    let read = |json: &str| serde_json::from_str::<HostRule>(json);
    assert_eq!(read(r#""wttr.in:443""#).expect("a text"), rule("wttr.in:443"));
    assert_eq!(read(r#"{"host": "wttr.in"}"#).expect("no ports"), rule("wttr.in"));
    assert_eq!(read(r#"{"host": "wttr.in", "ports": [443]}"#).expect("ports"), rule("wttr.in:443"));
    assert_eq!(read(r#"{"host": "wttr.in:22"}"#).expect("a port with the host"), rule("wttr.in:22"));
    assert!(read(r#"{"host": "wttr.in:22", "ports": [443]}"#).is_err());
    assert!(read(r#"{"host": "0x7f.1"}"#).is_err());
    assert_eq!(serde_json::to_string(&rule("wttr.in:443")).expect("written"), r#""wttr.in:443""#);
}

#[test]
fn a_wider_declaration_is_noticed() {
    let table: &[(&str, &[&str], bool)] = &[
        ("wttr.in:443", &["wttr.in:443"], false),
        ("wttr.in", &["wttr.in:443"], true),
        ("wttr.in", &["wttr.in:443", "wttr.in:80"], false),
        ("*.example.com:443", &["a.example.com:443"], true),
        ("a.example.com:443", &["*.example.com:443"], false),
        ("*.b.example.com:443", &["*.example.com:443"], false),
        ("*.example.com:443", &["*.b.example.com:443"], true),
        ("example.com:443", &["*.example.com:443"], true),
        ("10.1.0.0/16:22", &["10.0.0.0/8:22"], false),
        ("10.0.0.0/8:22", &["10.1.0.0/16:22"], true),
        ("127.0.0.1:22", &["localhost:22"], false),
        ("126.0.0.0/7:22", &["localhost:22"], true),
        ("localhost:22", &["127.0.0.0/8:22"], true),
        ("other.com:443", &["wttr.in:443"], true),
    ];
    for (declared, confirmed, expected) in table {
        let declared = rule(declared);
        let confirmed: Vec<HostRule> = confirmed.iter().map(|text| rule(text)).collect();
        assert_eq!(declared.is_wider_than(&confirmed), *expected, "{declared} against {confirmed:?}");
    }
}

/// Few letters and few labels, so that rules and hosts meet often.
fn pattern() -> impl Strategy<Value = String> {
    prop_oneof![
        "(\\*\\.)?([ab]\\.){0,2}(x\\.com|yx\\.com)",
        "(10|11|127)\\.[01]\\.0\\.0/(16|24|32)",
        Just("localhost".to_owned()),
    ]
}

fn asked() -> impl Strategy<Value = String> {
    prop_oneof![
        "([ab]\\.){0,3}(x\\.com|yx\\.com)\\.?",
        "(10|11|127)\\.[01]\\.[01]\\.[01]",
        Just("localhost".to_owned())
    ]
}

fn ports() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), Just(":80".to_owned()), Just(":443".to_owned()), Just(":22,443".to_owned())]
}

proptest! {
    /// If a rule is no wider than others, whatever it covers is covered by them.
    #[test]
    fn what_is_not_wider_covers_no_more(
        (one, one_ports) in (pattern(), ports()),
        others in prop::collection::vec((pattern(), ports()), 0..4),
        name in asked(),
        port in prop_oneof![Just(22_u16), Just(80), Just(443)],
    ) {
        let one = rule(&format!("{one}{one_ports}"));
        let others: Vec<HostRule> = others.iter().map(|(host, ports)| rule(&format!("{host}{ports}"))).collect();
        let host = host(&name);
        if !one.is_wider_than(&others) && one.covers(&host, port) {
            prop_assert!(others.iter().any(|other| other.covers(&host, port)), "{one} covers {host}:{port}");
        }
        prop_assert!(!one.is_wider_than(std::slice::from_ref(&one)));
        prop_assert_eq!(one.to_string().parse::<HostRule>(), Ok(one));
    }

    /// Any text is a host or an error, and a host reads back as itself.
    #[test]
    fn any_text_is_read_without_panic(text in "\\PC{0,40}|[0-9a-fx:.\\[\\]*/,-]{0,30}") {
        if let Ok(host) = Host::parse(&text) {
            prop_assert_eq!(Host::parse(&host.to_string()), Ok(host));
        }
        if let Ok(rule) = text.parse::<HostRule>() {
            prop_assert_eq!(rule.to_string().parse::<HostRule>(), Ok(rule));
        }
    }
}
