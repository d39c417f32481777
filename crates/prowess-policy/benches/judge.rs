//! Judging: what does it cost to say whether a command may run, compared with only parsing its text?
//!
//! What is hostile is measured at a size and at its double: a text may cost the judge no more than in proportion to its
//! length, whatever is in it.

#[path = "../tests/support/asked.rs"]
mod asked;
#[path = "../tests/support/everywhere.rs"]
mod everywhere;

use std::path::Path;

use asked::{request, rules};
use criterion::{Criterion, Throughput, criterion_group};
use everywhere::Everywhere;
use prowess_policy::disguise::{self, disguises};
use prowess_policy::reach::{Called, reach};
use prowess_policy::script::MAX_BYTES;
use prowess_policy::wrapper::Tail;
use prowess_policy::{Judgment, Rules, Script, Verdict};
use prowess_testkit::bench::ratio;

/// What an agent runs all day.
const TYPICAL: &str = "git log --oneline | head -n 5 && rg -n TODO src";

fn main() {
    benches();
    let rules = self::rules(&["/usr/bin/git", "/usr/bin/rg", "/usr/bin/head"]);
    assert_eq!(judge(&rules, TYPICAL).verdict(), Verdict::Allow);
    println!();
    let mut parser = parser();
    // Many at once, because a clock has steps.
    ratio(
        "100 judgments / parsing the same text",
        60,
        || (0..100).filter(|_| parser.parse(TYPICAL, None).is_some()).count(),
        || (0..100).filter(|_| judge(&rules, TYPICAL).verdict() == Verdict::Allow).count(),
    );
    // Long ones run into the bounds of the parser, which is why some cost no more than half of them. Beyond the longest
    // there is nothing to measure: they are refused unread.
    for size in [4 * 1024, MAX_BYTES] {
        doubled("judged", size, |text| judge(&rules, text));
    }
    doubled("looked at for disguises", disguise::MAX_BYTES, disguises);
}

/// Every hostile text of `size` bytes against half as much of it.
fn doubled<T>(what: &str, size: usize, run: impl Fn(&str) -> T) {
    println!("\n{} KiB {what} / half as much (linear is 2)", size / 1024);
    for (name, text) in HOSTILE {
        let (half, whole) = (text(size / 2), text(size));
        ratio(name, 15, || run(&half), || run(&whole));
    }
}

criterion_group!(benches, parts);

/// The parts of a judgment, to see which of them to work on.
fn parts(criterion: &mut Criterion) {
    let rules = self::rules(&["/usr/bin/git", "/usr/bin/rg", "/usr/bin/head"]);
    let mut group = criterion.benchmark_group("typical");
    group.throughput(Throughput::Bytes(TYPICAL.len() as u64));
    group.bench_function("judge", |bench| bench.iter(|| judge(&rules, TYPICAL)));
    let mut parser = parser();
    group.bench_function("tree-sitter", |bench| bench.iter(|| parser.parse(TYPICAL, None)));
    group.bench_function("brush", |bench| bench.iter(|| brush(TYPICAL)));
    group.bench_function("script", |bench| bench.iter(|| Script::parse(TYPICAL)));
    group.bench_function("disguises", |bench| bench.iter(|| disguises(TYPICAL)));
    let script = Script::parse("git log --oneline");
    let called = Called { token: "git", real: Path::new("/usr/bin/git"), text: &script.text };
    group.bench_function("reach of one", |bench| {
        bench.iter(|| reach(called, &script.segments[0].words[1..], Tail::Closed));
    });
    group.finish();

    let many: Vec<String> = (0..1_000).map(|index| format!("/opt/tools-{index}/**/tool-*")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let long = self::rules(&many);
    criterion.bench_function("typical, 1000 entries", |bench| bench.iter(|| judge(&long, TYPICAL)));
}

fn judge(rules: &Rules, command: &str) -> Judgment {
    rules.judge(request(command, Path::new("/home/me/work")), &Everywhere)
}

fn parser() -> tree_sitter::Parser {
    let mut parser = tree_sitter::Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).expect("the grammar fits the parser");
    parser
}

fn brush(text: &str) -> bool {
    brush_parser::Parser::new(text.as_bytes(), &brush_parser::ParserOptions::default()).parse_program().is_ok()
}

/// A text of the wanted length.
type Text = fn(usize) -> String;

const HOSTILE: &[(&str, Text)] = &[
    ("plain words", |length| repeat("echo", " word", "", length)),
    ("one long quoted word", |length| repeat("echo '", "x", "'", length)),
    ("one long double-quoted word", |length| repeat("echo \"", "x ", "\"", length)),
    ("quotes that open and close", |length| repeat("echo ", "'a'\"b\"", "", length)),
    ("semicolons", |length| repeat("", "ls;", "ls", length)),
    ("nothing but semicolons", |length| repeat("", ";", "", length)),
    ("variables", |length| repeat("echo", " $x", "", length)),
    ("variables without blanks", |length| repeat("echo ", "$x", "", length)),
    ("backslashes", |length| repeat("echo ", "\\\\", "", length)),
    ("escaped letters", |length| repeat("echo ", "\\a", "", length)),
    ("open brackets", |length| repeat("", "(", "", length)),
    ("brackets in a row", |length| repeat("echo", " $(a)", "", length)),
    ("open substitutions", |length| repeat("echo ", "\"$(", "", length)),
    ("backticks", |length| repeat("echo ", "`", "", length)),
    ("braces", |length| repeat("echo ", "{a,", "", length)),
    ("here-documents", |length| repeat("cat", " <<A", "", length)),
    ("here-documents with bodies", |length| repeat("", "cat <<A\nA\n", "", length)),
    ("assignments", |length| repeat("", "a=b;c=d;", "ls", length)),
    ("assignments in front", |length| repeat("", "a=b ", "ls", length)),
    ("pipes", |length| repeat("ls", " | ls", "", length)),
    ("pipes into shells", |length| repeat("ls", " |sh", "", length)),
    ("wrappers", |length| repeat("", "env ", "ls", length)),
    ("shells in shells", |length| repeat("", "bash -c \"", "", length)),
    ("redirections", |length| repeat("ls", " >a", "", length)),
    ("options of tar", |length| repeat("tar", " --to", "", length)),
    ("a script of sed", |length| repeat("sed '", "s/a/b/;", "'", length)),
    ("a script of awk", |length| repeat("awk '", "{print $1}", "'", length)),
    ("and, or", |length| repeat("ls", "&&ls||ls", "", length)),
    ("line breaks", |length| repeat("", "ls\n", "", length)),
    ("continued lines", |length| repeat("ls", " \\\n", "", length)),
    ("comments", |length| repeat("", "#\n", "ls", length)),
    ("wide characters", |length| repeat("echo ", "é", "", length)),
    ("characters that cannot be seen", |length| repeat("echo ", "a\u{200b}", "", length)),
    ("decoders", |length| repeat("", "base64 -d ", "|sh", length)),
];

/// `start`, then `part` as often as it fits into `length` bytes, then `end`.
fn repeat(start: &str, part: &str, end: &str, length: usize) -> String {
    let times = (length - start.len() - end.len()) / part.len();
    format!("{start}{}{end}", part.repeat(times))
}
