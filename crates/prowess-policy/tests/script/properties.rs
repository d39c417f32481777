//! What holds for every text, with bash as a witness where there is one.

use std::process::{Command, Stdio};

use proptest::prelude::*;
use prowess_policy::script::{Doubt, DoubtKind, Joint, Script, Segment, Value, Word, quote};

use super::segment_outline;

/// Texts that look like commands: quotes, operators and expansions in any order.
fn shell_like() -> impl Strategy<Value = String> {
    let atoms = prop::sample::select(vec![
        "a",
        "b",
        "a",
        " ",
        " ",
        "  ",
        "\t",
        "\n",
        ";",
        "&",
        "|",
        "<",
        ">",
        "(",
        ")",
        "'",
        "\"",
        "\\",
        "$",
        "`",
        "~",
        "{",
        "}",
        "[",
        "]",
        "*",
        "?",
        "#",
        "!",
        ",",
        ".",
        ":",
        "=",
        "-",
        "1",
        "&&",
        "||",
        "|&",
        ">&",
        "&>",
        ">&-",
        "2>&1",
        "$'",
        "'a'",
        "\"b\"",
        "a=b",
        "{a,b}",
        "..",
        "${a}",
        "$a",
        "${a:-b}",
        "$(a)",
        "$((1))",
        "<<a",
        "<<<a",
        "\na\n",
        "é",
        "if ",
        "then ",
        "time ",
        "coproc ",
        "function ",
        "[[ ",
        " ]]",
        "f() ",
        "\\\n",
        "\r",
        "\u{200b}",
        "a+=",
        "a[1]=",
        "$\"",
        "<(",
        "12345678901>",
        "export ",
        "\\'",
        "''",
        "case a in ",
        "esac",
    ]);
    prop::collection::vec(atoms, 0..24).prop_map(|atoms| atoms.concat())
}

/// The same, but only what we are certain about.
fn certain() -> impl Strategy<Value = String> {
    shell_like().prop_filter("a doubt", |text| Script::parse(text).doubts.is_empty())
}

/// A word as somebody might write it: plain, quoted and escaped pieces side by side.
fn written_word() -> impl Strategy<Value = String> {
    let character =
        prop::sample::select("abcxyz019 _-+=:,./@%^~*?[]{}#!$`\"'\\;&|<>()é漢\n\t".chars().collect::<Vec<_>>());
    let text = prop::collection::vec(character.clone(), 0..6).prop_map(String::from_iter);
    let single = text.clone().prop_map(|text| format!("'{}'", text.replace('\'', "")));
    let double = text.clone().prop_map(|text| format!("\"{}\"", text.replace(['$', '`', '"', '\\'], "")));
    let escaped_double = character.clone().prop_map(|c| format!("\"\\{c}\""));
    let escaped = character.prop_map(|c| format!("\\{c}"));
    let plain = prop::sample::select("abxyz019_-+=:,./@%^~{}#![]é".chars().collect::<Vec<_>>()).prop_map(String::from);
    let ansi = prop::sample::select(vec![
        r"$'\x41'",
        r"$'\101'",
        r"$'\n'",
        r"$'a\'b'",
        r"$'\\'",
        r"$'\q'",
        r"$'\u0042'",
        r"$'\e\a\b\f\v\t\r'",
        r"$'\cA'",
        r"$'\x6g'",
        r"$'\1234'",
        r#"$'\"\?'"#,
        r"$'\xc3\xa9'",
    ])
    .prop_map(str::to_owned);
    let piece = prop_oneof![4 => plain, 1 => single, 1 => double, 1 => escaped_double, 1 => escaped, 1 => ansi];
    prop::collection::vec(piece, 1..8).prop_map(|pieces| pieces.concat())
}

fn literals(segment: &Segment) -> Option<Vec<&str>> {
    fn literal(word: &Word) -> Option<&str> {
        match &word.value {
            Value::Literal(text) => Some(text),
            Value::Dynamic { .. } => None,
        }
    }
    segment.words.iter().map(literal).collect()
}

/// Scripts that run nothing but `p`, whatever their form, and all of them.
fn runnable() -> impl Strategy<Value = String> {
    let is_p = |segment: &Segment| {
        segment.redirects.is_empty()
            && segment.joint != Joint::Or
            && literals(segment).is_some_and(|words| words.first().is_none_or(|first| *first == "p"))
    };
    let lines = prop::collection::vec(shell_like(), 1..3).prop_map(|parts| format!("p {}", parts.join(" p ")));
    lines.prop_filter("more than `p`", move |text| {
        let script = Script::parse(text);
        script.doubts.is_empty() && !text.contains('!') && script.segments.iter().all(is_p)
    })
}

/// A segment without its place.
fn content(segment: &Segment) -> String {
    segment_outline(&Segment { joint: Joint::First, ..segment.clone() })
}

fn has_bash() -> bool {
    Command::new("bash").args(["-c", ":"]).stdin(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// What the program `p` receives in each of its runs, when bash runs `text`.
fn runs(text: &str) -> Vec<Vec<String>> {
    // `p` is the only thing there is to run, and it says so on a descriptor that the text does not know.
    let script = "p() { printf '%s\\0' \"$#\" \"$@\" >&9; }\neval -- \"$1\"";
    let output = Command::new("bash")
        .args([
            "--norc",
            "--noprofile",
            "-c",
            &format!("exec 9>&1 >/dev/null 2>&1\nPATH=/nonexistent\n{script}"),
            "bash",
            text,
        ])
        .env_remove("BASH_ENV")
        .env("HOME", "/home")
        .env("LC_ALL", "C.UTF-8")
        .current_dir("/")
        .stdin(Stdio::null())
        .output()
        .expect("bash runs");
    let mut parts = output.stdout.split(|byte| *byte == 0).map(|part| String::from_utf8_lossy(part).into_owned());
    let mut found = Vec::new();
    while let Some(count) = parts.next().and_then(|count| count.parse().ok()) {
        found.push(parts.by_ref().take(count).collect());
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig { max_local_rejects: 1_000_000, ..ProptestConfig::default() })]

    #[test]
    fn nothing_panics_and_spans_hold(text in prop_oneof![shell_like(), any::<String>()]) {
        let script = Script::parse(&text);
        prop_assert_eq!(&script.text, &text);
        for Doubt { span, .. } in &script.doubts {
            prop_assert!(text.get(span.range()).is_some());
        }
        for segment in &script.segments {
            let words = segment.words.iter().map(|word| word.span);
            let parts = segment.assignments.iter().map(|part| part.span).chain(words).collect::<Vec<_>>();
            prop_assert!(parts.iter().all(|span| text.get(span.range()).is_some_and(|part| !part.is_empty())));
            prop_assert!(parts.is_sorted_by(|a, b| a.end <= b.start));
            prop_assert!(text.get(segment.span.range()).is_some_and(|part| !part.is_empty()));
            prop_assert!(segment.redirects.iter().all(|redirect| text.get(redirect.span.range()).is_some()));
        }
        if script.doubts.is_empty() {
            prop_assert!(!script.segments.is_empty());
            prop_assert!(script.segments.is_sorted_by(|a, b| a.span.end <= b.span.start));
            prop_assert!(script.segments.iter().all(|segment| !segment.nested));
        }
    }

    #[test]
    fn a_quoted_word_is_that_word(words in prop::collection::vec("[ -~éß漢\n\t]{0,12}", 1..4)) {
        // Letters right behind a brace are a doubt wherever they stand.
        let is_read = |word: &String| word.split('{').skip(1).all(|rest| !rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').starts_with(|c: char| !c.is_ascii()));
        prop_assume!(words.iter().all(is_read));
        let text = words.iter().fold("p".to_owned(), |text, word| text + " " + &quote(word));
        let script = Script::parse(&text);
        prop_assert!(script.doubts.is_empty(), "{text}: {:?}", script.doubts);
        prop_assert_eq!(script.segments.len(), 1);
        let found = literals(&script.segments[0]).unwrap_or_default();
        prop_assert_eq!(&found[1..], &words[..]);
    }

    #[test]
    fn a_list_is_its_parts(one in certain(), other in certain()) {
        let (first, second) = (Script::parse(&one), Script::parse(&other));
        // A line break, for the first may end in a comment or a `;`. The grammar has its moods at the start of a line,
        // and then we are not certain any more.
        let both = Script::parse(&format!("{one}\n{other}"));
        if both.doubts.is_empty() {
            let parts: Vec<_> = first.segments.iter().chain(&second.segments).map(content).collect();
            prop_assert_eq!(both.segments.iter().map(content).collect::<Vec<_>>(), parts);
        }
    }

    #[test]
    fn a_doubt_stays_a_doubt_in_a_list(text in shell_like()) {
        let doubts = Script::parse(&text).doubts;
        // A last backslash would take the `;` for itself.
        if doubts.iter().any(|doubt| doubt.kind != DoubtKind::Empty) && !text.ends_with('\\') {
            let lists = [format!("{text}; ls"), format!("ls; {text}")];
            prop_assert!(lists.iter().all(|list| !Script::parse(list).doubts.is_empty()));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, max_local_rejects: 1_000_000, ..ProptestConfig::default() })]

    #[test]
    fn bash_sees_the_same_words(words in prop::collection::vec(written_word(), 1..5)) {
        let text = format!("p {}", words.join(" "));
        let script = Script::parse(&text);
        if let ([segment], true, true) = (&script.segments[..], script.doubts.is_empty(), has_bash())
            && let Some(words) = literals(segment)
        {
            prop_assert_eq!(runs(&text), [words[1..].to_vec()], "{}", text);
        }
    }

    #[test]
    fn bash_runs_the_same_commands(text in runnable()) {
        let script = Script::parse(&text);
        let words = script.segments.iter().filter_map(literals).filter(|words| !words.is_empty());
        let mut expected: Vec<_> = words.map(|words| words[1..].to_vec()).collect();
        let mut found = if has_bash() { runs(&text) } else { return Ok(()) };
        // The commands of a pipeline run side by side.
        expected.sort();
        found.sort();
        prop_assert_eq!(found, expected, "{}", text);
    }
}
