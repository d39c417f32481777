//! Disguises: does a command hide what it runs?
//!
//! Text that is decoded, downloaded or put together from pieces and then handed to a shell cannot be judged by reading
//! it, so a person looks at it whatever the rules say. These are signs, not proofs: they read the text as it stands,
//! quotes or not, and their job is to notice. All run side by side in time linear in the text.

use std::sync::LazyLock;

use regex::bytes::{RegexSet, RegexSetBuilder};

/// The longest text that is looked at, in bytes.
pub const MAX_BYTES: usize = 64 * 1024;

/// One sign of a disguise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Disguise {
    /// Its name; the peer's, where it has one.
    pub id: &'static str,
    /// What it means.
    pub reason: &'static str,
}

/// The text is too long to be looked at.
pub const TOO_LONG: Disguise =
    Disguise { id: "too-long", reason: "the command is too long to be checked for disguises" };

/// Every sign that `text` shows. Empty means: it looks plain.
#[must_use]
pub fn disguises(text: &str) -> Vec<Disguise> {
    if text.len() > MAX_BYTES {
        return vec![TOO_LONG];
    }
    SIGNS.matches(text.as_bytes()).into_iter().map(|at| Disguise { id: RULES[at].0, reason: RULES[at].1 }).collect()
}

/// Id, meaning, expression. In an expression, `{name}` is a shell and `{shell}` one that is started, behind wrappers
/// perhaps; `{start}` is where a word may begin, `{into}` a pipe into a shell, `{decode}` the option to decode,
/// `{decoder}` a program that turns something unreadable into text, and `{remote}` one that fetches it from elsewhere.
const RULES: [(&str, &str, &str); 15] = [
    (
        "base64-pipe-exec",
        "encoded text is decoded and piped into a shell",
        r"\bbase(?:16|32|58|64)\b.*{decode}.*{into}\b|\bbasenc\b.*{into}\b|\bopenssl\b.*\s-d\b.*{into}\b",
    ),
    (
        "hex-pipe-exec",
        "hexadecimal text is decoded and piped into a shell",
        r"\bxxd\b.*\s-[a-z]*r.*{into}\b|\bunhex\b.*{into}\b",
    ),
    (
        "printf-pipe-exec",
        "text with escape sequences is piped into a shell",
        r"\b(?:printf|echo\s+-[a-z]*e[a-z]*)\b.*\\+(?:x[0-9a-f]|[0-7]|u[0-9a-f]).*{into}\b",
    ),
    ("eval-decode", "`eval` runs text that is decoded first", r"\beval\b.*(?:{decoder}|\bdecode)"),
    (
        "base64-decode-to-shell",
        "text is piped through a decoder into a shell",
        r"\|\s*base(?:16|32|58|64)\b.*{decode}.*{into}\b",
    ),
    ("pipe-to-shell", "text is piped into a shell", r#"{into}(?:[\s;&|)<>]|$)|\|&?\s*(?:"{name}"|'{name}')"#),
    (
        "command-substitution-decode-exec",
        "a shell runs the output of a command that decodes or downloads it",
        r"{start}{shell}\b[^\n;|&]*\s-[a-z]*c\b\s*\W{0,4}(?:\$\(|`).*(?:{decoder}|{remote})",
    ),
    (
        "process-substitution-remote-exec",
        "a shell runs downloaded or decoded text",
        r"{start}{shell}\b[^\n;|&]*<\s*\(.*(?:{remote}|{decoder})",
    ),
    (
        "source-process-substitution-remote",
        "downloaded or decoded text is run as commands",
        r"{start}(?:source|\.)\s+<\s*\(.*(?:{remote}|{decoder})",
    ),
    ("shell-heredoc-exec", "a shell runs a here-document", r"{start}{shell}(?:\s[^\n;|&]*)?\s*<<"),
    ("octal-escape", "characters are written as octal numbers", r"\$'[^']*\\[0-7]{3}[^']*\\[0-7]{3}"),
    (
        "hex-escape",
        "characters are written as hexadecimal numbers",
        r"\$'[^']*\\(?:x|u)[0-9a-f]{2}[^']*\\(?:x|u)[0-9a-f]{2}",
    ),
    (
        "python-exec-encoded",
        "inline code decodes or runs other code",
        r"\b(?:python|pypy|perl|ruby)[0-9.]*\b.*\s-[a-z]{0,4}[ec]\b.*\b(?:{risky})\b",
    ),
    ("curl-pipe-shell", "a download is piped into a shell", r"{remote}.*{into}\b"),
    (
        "var-expansion-obfuscation",
        "a command is put together from variables",
        r#"(?:\b[a-z_]\w{0,2}=[^;\n]*[;\n]\s*){2}.*\$[a-z_{]|\b[a-z_]\w*=[^;\n&]*[;\n&].*[;\n&|(`]\s*["']?{both}"#,
    ),
];

const PARTS: [(&str, &str); 12] = [
    // Those that have others in them come first.
    ("{into}", r"\|&?\s*{shell}"),
    ("{shell}", r#"(?:["'\\]?{folder}{wrapper}["']?(?:\s+{option})*\s+)*["'\\]?{name}"#),
    ("{name}", r"{folder}(?:ba|z|da|k|a|c|tc|fi|mk|pdk|rba|pw)?sh"),
    ("{wrapper}", "(?:sudo|doas|env|command|builtin|exec|nohup|nice|time|timeout|stdbuf|setsid|busybox|toybox)"),
    ("{option}", r"(?:-\S+(?:\s+[\w./:+]+)?|\w+=\S*|[\d.]+[smhd]?)"),
    ("{folder}", r"(?:[\w.~+-]*/)*"),
    ("{start}", r#"(?:^|[\s;&|(){"'`])"#),
    ("{decode}", r"\s(?:-[a-z]*d|--d[a-z]*)\b"),
    (
        "{decoder}",
        r#"(?:\b(?:base(?:16|32|58|64)|basenc|xxd|printf|openssl|gunzip|zcat|uudecode|unhex)\b|\brev\s*[)|<"'`])"#,
    ),
    ("{remote}", r"\b(?:curl|wget|fetch|aria2c|lynx|httpie|nc|ncat|netcat|socat)\b"),
    (
        "{risky}",
        r"base64|\w*decode\w*|exec[lvpe]{0,3}|eval|system|popen|spawn\w*|__import__|compile|unpack|pack|fromhex|unhexlify|marshal|codecs",
    ),
    // Two variables side by side.
    ("{both}", r#"\$\{?\w+\}?["']{0,2}\$\{?\w"#),
];

static SIGNS: LazyLock<RegexSet> = LazyLock::new(|| {
    let whole = |rule: &str| PARTS.iter().fold(rule.to_owned(), |rule, (part, meaning)| rule.replace(part, meaning));
    let mut signs = RegexSetBuilder::new(RULES.iter().map(|(_, _, rule)| whole(rule)));
    signs.case_insensitive(true).dot_matches_new_line(true).unicode(false);
    signs.build().expect("the expressions are constants, and a test builds them")
});
