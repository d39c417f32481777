//! Laws of the judge: what holds for every command, every allowlist and every text?

use crate::fixture;
use fixture::{Stage, judge, rules};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use prowess_policy::approvals::Entry;
use prowess_policy::lookup::Lookup;
use prowess_policy::posture::{Ask, Security};
use prowess_policy::script::{DoubtKind, Segment, Value, Word};
use prowess_policy::{Rules, Script, Verdict};

const NAMES: &[&str] = &[
    "ls", "echo", "git", "find", "tar", "head", "wc", "cut", "tr", "cat", "id", "env", "nice", "nohup", "timeout",
    "sh", "bash", "python3", "awk", "sed", "xargs", "touch",
];

const ARGS: &[&str] = &[
    "-l",
    "a",
    "'a b'",
    "\"a b\"",
    "--",
    "-n",
    "5",
    "*",
    "$HOME",
    "\"$HOME\"",
    "${X:-y}",
    "a\\ b",
    "''",
    "~",
    "{a,b}",
    "-exec",
    "';'",
    "-c",
    "'id; ls'",
    "FOO=1",
    "--help",
    "status",
    "$'x'",
    "a=b",
    "?",
    "[ab]",
    "2>/dev/null",
    ">&2",
    "< /dev/null",
    "'{print $1}'",
    "\u{e9}",
    "-5",
    "\"$(id)\"",
    "`id`",
    "> out",
    "# end",
];

/// Pieces that a parser could stumble over, whole commands or not.
const NASTY: &[&str] = &[
    "$(id)",
    "`id`",
    "(id)",
    "{ id; }",
    "id &",
    "cd x",
    "cd ..",
    "X=1",
    "X=1 ls",
    "PATH=. ls",
    "if true; then id; fi",
    "for i in 1; do ls; done",
    "ls() { id; }",
    "eval id",
    "exec ls",
    "trap id EXIT",
    "cat <<EOF\nx\nEOF",
    "cat <<< x",
    "ls <(id)",
    "sh -c 'ls; id'",
    "sh -c ls",
    "bash -c 'ls | wc -l'",
    "env -S 'id'",
    "env ls",
    "nice -n 5 ls",
    "timeout 5 sh -c id",
    "./x",
    "/usr/bin/ls",
    "! ls",
    "time ls",
    "ls;",
    "ls #c",
    "ls \\",
    "echo 'a",
    "echo \"a",
    "&&",
    "|",
    ";",
    "",
    " ",
    "\t",
    "[[ -n x ]]",
    "((1))",
    "test -n x",
    "[ -n x ]",
    ":",
    "true",
    "exit",
    "exit 1",
    "alias a=b",
    "ls\u{202e}",
    "ls\u{a0}",
    "ls\r",
    "\u{0}",
    "$'\\x69d'",
    "i\\d",
    "\"i\"d",
    "coproc ls",
    "case x in x) ls;; esac",
    "command ls",
    "builtin echo",
    ". x",
    "source x",
    "find . -exec id \\;",
    "echo $((1+1))",
    "ls >| x",
    "ls &> x",
    "while true; do ls; done",
    "function f { ls; }",
    "echo \u{1f980}",
    "head -n 5",
    "head secret",
    "wc --files0=x",
];

/// What hands a command more arguments than were written.
const CARRIERS: &[&str] = &[
    "echo x | xargs COMMAND",
    "echo x | xargs -0 -n 1 -- COMMAND",
    "echo x | nice xargs -r COMMAND",
    "echo x | parallel COMMAND",
    "find . -exec COMMAND {} +",
    "find . -execdir COMMAND {} ';'",
];

const JOINTS: &[&str] = &["; ", " | ", " && ", " || ", "\n", " |& ", ";", "|", "&&"];

fn stage() -> Stage {
    Stage::usual(NAMES)
}

fn plain() -> impl Strategy<Value = String> {
    (select(NAMES), prop::collection::vec(select(ARGS), 0..4)).prop_map(|(name, args)| {
        let words: Vec<&str> = std::iter::once(name).chain(args).collect();
        words.join(" ")
    })
}

fn piece() -> impl Strategy<Value = String> {
    prop_oneof![3 => plain(), 2 => select(NASTY).prop_map(str::to_owned)]
}

fn command() -> impl Strategy<Value = String> {
    (piece(), prop::collection::vec((select(JOINTS), piece()), 0..3))
        .prop_map(|(first, rest)| rest.into_iter().fold(first, |text, (joint, piece)| format!("{text}{joint}{piece}")))
}

/// Rules in short.
#[derive(Debug, Clone)]
struct Terms {
    listed: Vec<&'static str>,
    security: Security,
    ask: Ask,
}

impl Terms {
    fn rules(&self) -> Rules {
        let paths: Vec<String> = self.listed.iter().map(|name| format!("/usr/bin/{name}")).collect();
        let mut rules = rules(&paths.iter().map(String::as_str).collect::<Vec<_>>());
        rules.posture.security = self.security;
        rules.posture.ask = self.ask;
        rules
    }
}

/// Rules of any strictness, with any of the programs listed.
fn any_terms() -> impl Strategy<Value = Terms> {
    let security = select(&[Security::Deny, Security::Allowlist, Security::Allowlist, Security::Full][..]);
    let ask = select(&[Ask::Off, Ask::OnMiss, Ask::Always][..]);
    (subsequence(NAMES.to_vec(), 0..=NAMES.len()), security, ask).prop_map(|(listed, security, ask)| Terms {
        listed,
        security,
        ask,
    })
}

/// The usual rules, under which there is something to be lost.
fn usual_terms() -> impl Strategy<Value = Terms> {
    any_terms().prop_map(|terms| Terms { security: Security::Allowlist, ask: Ask::OnMiss, ..terms })
}

/// Whether `text` is a whole command, so that something can be added to it: what is open at its end would swallow it.
fn is_whole(text: &str) -> bool {
    let is_open = |kind: DoubtKind| {
        matches!(kind, DoubtKind::Syntax | DoubtKind::Empty | DoubtKind::Disagreement | DoubtKind::HereDocument)
    };
    !text.ends_with('\\') && !Script::parse(text).doubts.iter().any(|doubt| is_open(doubt.kind))
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 4 * ProptestConfig::default().cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// A18: another segment never makes the verdict milder, neither behind a command nor in front of it.
    #[test]
    fn adding_a_segment_never_makes_the_verdict_milder(
        first in command(), joint in select(JOINTS), second in command(), terms in any_terms(),
    ) {
        if !is_whole(&first) {
            return Ok(());
        }
        let (stage, rules) = (stage(), terms.rules());
        let verdict = |text: &str| judge(text, &rules, &stage).verdict();
        let both = format!("{first}{joint}{second}");
        prop_assert!(verdict(&both) >= verdict(&first), "{both:?} is milder than {first:?}");
        // A comment swallows what is behind it; then it is not a segment.
        if !first.contains('#') && is_whole(&second) {
            prop_assert!(verdict(&both) >= verdict(&second), "{both:?} is milder than {second:?}");
        }
    }

    /// Arguments that come from the input never make the verdict milder, whatever was answered with "always".
    #[test]
    fn an_open_tail_never_makes_the_verdict_milder(one in plain(), carrier in select(CARRIERS), terms in usual_terms()) {
        let (stage, mut rules) = (stage(), terms.rules());
        let before = judge(&one, &rules, &stage);
        let grants = before.grants().unwrap_or_default();
        let carried = carrier.replace("COMMAND", &one);
        let carried_before = judge(&carried, &rules, &stage).verdict();
        prop_assert!(carried_before >= before.verdict(), "{carried:?} is milder than {one:?}");
        rules.allowlist.extend(grants.iter().map(|grant| Entry::granted("always".to_owned(), grant, 0)));
        prop_assert_eq!(judge(&carried, &rules, &stage).verdict(), carried_before, "an answer covers {}", carried);
    }

    /// What is allowed is free of doubt, and a rule covers every part of it.
    #[test]
    fn what_is_allowed_is_covered_in_every_part(text in command(), terms in usual_terms()) {
        let judgment = judge(&text, &terms.rules(), &stage());
        if judgment.verdict() == Verdict::Allow {
            let script = Script::parse(&text);
            prop_assert!(script.doubts.is_empty(), "{:?}", script.doubts);
            prop_assert!(judgment.objections().is_empty() && judgment.all_objections().next().is_none());
            prop_assert!(!judgment.segments().is_empty());
            prop_assert!(judgment.segments().iter().all(|segment| segment.standing.is_ok()));
            prop_assert!(judgment.segments().len() >= script.segments.len());
            prop_assert_eq!(judgment.grants(), Ok(Vec::new()), "nothing needs to be stored");
        } else {
            prop_assert!(judgment.all_objections().next().is_some(), "a reason is given");
        }
    }

    /// What runs is what was judged: the same words, with the programs by their paths.
    #[test]
    fn a_permit_says_the_same_words(text in command(), terms in usual_terms()) {
        let stage = stage();
        let Ok(permit) = judge(&text, &terms.rules(), &stage).permit() else { return Ok(()) };
        let executed = permit.text();
        same(&Script::parse(&text), &Script::parse(&executed), &stage)
            .map_err(|why| TestCaseError::fail(format!("{text:?} became {executed:?}: {why}")))?;
    }

    /// Each further entry, and each stricter word, moves the verdict one way only.
    #[test]
    fn stricter_rules_are_never_milder(text in command(), terms in any_terms(), left in 0..NAMES.len()) {
        let (stage, rules) = (stage(), terms.rules());
        let verdict = judge(&text, &rules, &stage).verdict();
        let mut fewer = rules.clone();
        fewer.allowlist.truncate(left);
        prop_assert!(judge(&text, &fewer, &stage).verdict() >= verdict, "fewer entries");
        for security in [Security::Deny, Security::Allowlist, Security::Full] {
            let mut tight = rules.clone();
            tight.posture = tight.posture.tighten(Some(security), None);
            prop_assert!(judge(&text, &tight, &stage).verdict() >= verdict, "{security}");
        }
        let mut asking = rules.clone();
        asking.posture = asking.posture.tighten(None, Some(Ask::Always));
        prop_assert!(judge(&text, &asking, &stage).verdict() != Verdict::Allow);
    }

    /// A25: an answer runs the text that was shown, and "always" stores nothing but what was shown.
    #[test]
    fn always_stores_only_exact_invocations(text in command(), terms in usual_terms()) {
        let judgment = judge(&text, &terms.rules(), &stage());
        let Ok(grants) = judgment.grants() else { return Ok(()) };
        for grant in grants {
            prop_assert!(grant.program.is_absolute() && grant.rule.starts_with("sha256:cwd-argv:v1:"), "{grant:?}");
            let name = grant.program.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
            let never = ["sh", "bash", "python3", "env", "nice", "nohup", "timeout"];
            prop_assert!(!never.contains(&name.as_str()), "{name} is stored for {text:?}");
        }
    }

    /// Nothing panics, whatever the text is.
    #[test]
    fn any_text_is_judged(text in any::<String>(), terms in any_terms()) {
        let _ = judge(&text, &terms.rules(), &stage()).remedies();
    }

    /// Nor does it on a soup of what shells know.
    #[test]
    fn any_soup_is_judged(
        soup in prop::collection::vec(prop_oneof![
            select(NASTY), select(ARGS), select(NAMES), select(JOINTS),
            select(&["(", ")", "{", "}", "<<", "<<-E\n", "E\n", "$(", "${", "$((", "'", "\"", "`", "\\", "\n", "&", "$", "<", ">"][..]),
        ], 0..40).prop_map(|parts| parts.concat()),
        terms in any_terms(),
    ) {
        let judgment = judge(&soup, &terms.rules(), &stage());
        let verdict = judgment.verdict();
        prop_assert_eq!(judgment.permit().map(|permit| permit.text()).is_ok(), verdict == Verdict::Allow);
    }
}

/// Whether `run` says what `judged` says, but for programs by their paths.
fn same(judged: &Script, run: &Script, stage: &Stage) -> Result<(), String> {
    if judged.segments.len() != run.segments.len() {
        return Err(format!("{} segments became {}", judged.segments.len(), run.segments.len()));
    }
    if !run.doubts.is_empty() {
        return Err(format!("there are doubts: {:?}", run.doubts));
    }
    judged.segments.iter().zip(&run.segments).try_for_each(|(judged, run)| same_segment(judged, run, stage))
}

fn same_segment(judged: &Segment, run: &Segment, stage: &Stage) -> Result<(), String> {
    let shape = |it: &Segment| (it.joint, it.words.len(), it.redirects.len(), it.assignments.len());
    if shape(judged) != shape(run) {
        return Err(format!("{:?} became {:?}", shape(judged), shape(run)));
    }
    judged.words.iter().zip(&run.words).try_for_each(|(judged, run)| same_word(judged, run, stage))
}

fn same_word(judged: &Word, run: &Word, stage: &Stage) -> Result<(), String> {
    match (&judged.value, &run.value) {
        (Value::Literal(judged), Value::Literal(run)) if judged == run => Ok(()),
        (Value::Literal(judged), Value::Literal(run)) if run.starts_with('/') && !run.contains(' ') => {
            let path = stage.program(judged).map(|program| program.path);
            if path.as_deref() == Some(run.as_ref()) { Ok(()) } else { Err(format!("{judged} became {run}")) }
        }
        // A script for a shell inside: its programs have become paths too.
        (Value::Literal(judged), Value::Literal(run)) => same(&Script::parse(judged), &Script::parse(run), stage),
        (Value::Dynamic { expansions: judged, .. }, Value::Dynamic { expansions: run, .. }) if judged == run => Ok(()),
        (judged, run) => Err(format!("{judged:?} became {run:?}")),
    }
}

#[test]
fn an_answer_for_certain_arguments_does_not_cover_more_of_them() {
    let stage = Stage::usual(&["rm", "xargs", "echo"]);
    let mut rules = rules(&["/usr/bin/xargs"]);
    let granted = "rm -rf build";
    let grants = judge(granted, &rules, &stage).grants().expect("it can be remembered");
    rules.allowlist.extend(grants.iter().map(|grant| Entry::granted("always".to_owned(), grant, 0)));
    assert_eq!(judge(granted, &rules, &stage).verdict(), Verdict::Allow);
    for more in ["echo keep.txt | xargs rm -rf build", "xargs -a list rm -rf build", "xargs -n 1 rm -rf build"] {
        assert_eq!(judge(more, &rules, &stage).verdict(), Verdict::Ask, "{more}");
    }
}
