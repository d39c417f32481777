//! Argument rules: with which arguments may an allowed program run?

use std::fmt::Write as _;
use std::path::{Component, Path};

use regex::RegexBuilder;
use sha2::{Digest, Sha256};

use crate::script::{Value, Word};

/// The rule is a hash of the working directory and the arguments, made as the peer makes it.
const EXACT: &str = "sha256:cwd-argv:v1:";

/// Any hash, ours or not; nothing that starts like this is a regular expression.
const HASHED: &str = "sha256:";

/// The longest regular expression that is read, in bytes, and the memory that its program may take.
const MAX_EXPRESSION: usize = 4096;
const MAX_PROGRAM: usize = 1 << 20;

/// Whether a rule means one invocation only.
#[must_use]
pub fn is_exact(rule: &str) -> bool {
    rule.starts_with(EXACT)
}

/// The rule for exactly these arguments in this working directory. None when the arguments are not certain, or the
/// directory is not written in the one way that counts.
#[must_use]
pub fn exact_arguments(args: &[Word], cwd: &Path) -> Option<String> {
    let cwd = plain(cwd)?;
    let args = literals(args)?;
    let sized = |part: &str| format!("{}\0{part}\0", part.len());
    let mut hash = Sha256::new();
    hash.update(sized(&cwd));
    hash.update(format!("{}\0", args.len()));
    for arg in args {
        hash.update(sized(arg));
    }
    let mut rule = EXACT.to_owned();
    for byte in hash.finalize() {
        write!(rule, "{byte:02x}").expect("writing to a string does not fail");
    }
    Some(rule)
}

/// Whether `rule` allows these arguments. A rule that cannot be understood allows none.
pub(super) fn covers_arguments(rule: &str, args: &[Word], cwd: &Path) -> bool {
    if is_exact(rule) {
        return exact_arguments(args, cwd).is_some_and(|exact| exact == rule);
    }
    if rule.starts_with(HASHED) {
        return false;
    }
    literals(args).is_some_and(|args| expression_covers(rule, &args))
}

/// Whether a regular expression fits the arguments, joined by spaces; or each ended by NUL when it has one in it.
fn expression_covers(rule: &str, args: &[&str]) -> bool {
    let subject = match (rule.contains('\0'), args) {
        (false, _) => args.join(" "),
        (true, []) => "\0\0".to_owned(),
        (true, _) => args.iter().flat_map(|arg| [*arg, "\0"]).collect(),
    };
    // Classes like `\w` take in letters of all scripts here and only Latin ones there, and so on.
    let is_foreign = !subject.is_ascii() && (rule.contains('\\') || subject.contains(['\u{2028}', '\u{2029}']));
    if rule.len() > MAX_EXPRESSION || !reads_alike(rule) || is_foreign {
        return false;
    }
    let regex = RegexBuilder::new(rule).crlf(true).size_limit(MAX_PROGRAM).build();
    regex.is_ok_and(|regex| regex.is_match(&subject))
}

/// Whether an expression says the same in the peer's dialect and in ours. What only one of them has, or both have with
/// different meanings, is refused: set operations, POSIX classes, inline flags, anchors like `\A`, repeated repetition.
fn reads_alike(rule: &str) -> bool {
    let mut rest = rule.chars().peekable();
    let mut in_class = false;
    // The characters before, `^` standing for every anchor, and a space for whatever takes no part in what follows.
    let (mut earlier, mut before) = (' ', ' ');
    while let Some(c) = rest.next() {
        let next = rest.peek().copied().unwrap_or(' ');
        let mut seen = c;
        match c {
            '\\' => {
                let is_shared = "dDwWsSbBnrtfv".contains(next) || (next.is_ascii_punctuation() && !"<>".contains(next));
                let is_anchor = "bB".contains(next);
                if !is_shared || (in_class && is_anchor) {
                    return false;
                }
                rest.next();
                seen = if is_anchor { '^' } else { ' ' };
            }
            '[' if in_class => return false,
            '[' => {
                in_class = true;
                rest.next_if_eq(&'^');
                if rest.peek() == Some(&']') {
                    return false;
                }
            }
            ']' if in_class => (in_class, seen) = (false, ' '),
            '&' | '~' | '-' if in_class && before == c => return false,
            _ if in_class => {}
            '(' if next == '?' => {
                rest.next();
                if rest.peek() != Some(&':') {
                    return false;
                }
            }
            '{' if next == ',' => return false,
            '*' | '+' | '{' if "*+?}^$".contains(before) => return false,
            '?' if "^$".contains(before) || (before == '?' && "*+?}".contains(earlier)) => return false,
            _ => {}
        }
        (earlier, before) = (before, seen);
    }
    true
}

fn literals(args: &[Word]) -> Option<Vec<&str>> {
    args.iter()
        .map(|word| match &word.value {
            Value::Literal(text) => Some(text.as_str()),
            Value::Dynamic { .. } => None,
        })
        .collect()
}

/// An absolute directory without detours. One with a backslash in its name is not taken, because the peer's hash does
/// not tell that from a slash.
fn plain(cwd: &Path) -> Option<String> {
    let is_plain = cwd.is_absolute() && !cwd.components().any(|part| part == Component::ParentDir);
    let text = cwd.components().collect::<std::path::PathBuf>().into_os_string().into_string().ok()?;
    (is_plain && !text.contains('\\')).then_some(text)
}
