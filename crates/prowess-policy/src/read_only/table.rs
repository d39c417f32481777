//! Which programs only look, and with which arguments?

use std::path::Path;

use super::paths;
use crate::script::Word;

/// Programs that change nothing whatever they are given.
#[rustfmt::skip]
const FREE: &[&str] = &[
    "arch", "b2sum", "basename", "cat", "cksum", "cmp", "comm", "cut", "df", "dirname", "du", "echo", "egrep", "expand",
    "expr", "false", "fgrep", "fold", "getconf", "grep", "groups", "head", "id", "join", "ls", "lsblk", "lscpu",
    "md5sum", "nl", "nproc", "numfmt", "od", "paste", "printf", "pwd", "readlink", "realpath", "rev", "seq", "sha1sum",
    "sha224sum", "sha256sum", "sha384sum", "sha512sum", "stat", "strings", "tac", "tail", "tr", "true", "tty", "uname",
    "unexpand", "uptime", "wc", "which", "whoami",
];

/// The options with which a program that can do more only reads. Options that are not listed, shortened ones among
/// them, count as doing more.
struct Options {
    name: &'static str,
    /// Letters without a value.
    flags: &'static str,
    /// Letters with one.
    values: &'static str,
    /// Words without a value, or with one behind `=`.
    long: &'static [&'static str],
    /// Words whose value may be the next word.
    long_values: &'static [&'static str],
    operands: Operands,
}

/// What may stand beside the options.
#[derive(Clone, Copy)]
enum Operands {
    /// Anything.
    Any,
    /// One file at most: a second would be written.
    One,
    /// Formats only: anything else would set the clock.
    Format,
    /// Nothing: it would be set.
    None,
}

const LIMITED: &[Options] = &[
    Options {
        name: "sort",
        flags: "bdfghiMnRrVcCmsuz",
        values: "kSt",
        long: &[
            "--ignore-leading-blanks",
            "--dictionary-order",
            "--ignore-case",
            "--general-numeric-sort",
            "--human-numeric-sort",
            "--month-sort",
            "--numeric-sort",
            "--random-sort",
            "--reverse",
            "--version-sort",
            "--stable",
            "--unique",
            "--zero-terminated",
            "--check",
        ],
        long_values: &["--key", "--field-separator"],
        operands: Operands::Any,
    },
    Options {
        name: "uniq",
        flags: "cdDiuz",
        values: "fsw",
        long: &["--count", "--repeated", "--unique", "--ignore-case", "--all-repeated", "--group"],
        long_values: &["--skip-fields", "--skip-chars", "--check-chars"],
        operands: Operands::One,
    },
    Options {
        name: "date",
        flags: "uR",
        values: "d",
        long: &["--utc", "--universal", "--rfc-email", "--rfc-3339", "--iso-8601"],
        long_values: &["--date"],
        operands: Operands::Format,
    },
    Options { name: "hostname", flags: "fsdiI", values: "", long: &[], long_values: &[], operands: Operands::None },
    Options {
        name: "file",
        flags: "bhiLNnkrs0",
        values: "F",
        long: &["--brief", "--mime", "--mime-type", "--mime-encoding", "--dereference", "--no-dereference", "--raw"],
        long_values: &[],
        operands: Operands::Any,
    },
    Options {
        name: "tree",
        flags: "aAcCdDfFghiJlnNpqQrsStuUvxX",
        values: "ILP",
        long: &["--dirsfirst", "--noreport", "--gitignore", "--prune", "--du", "--sort"],
        long_values: &["--filelimit"],
        operands: Operands::Any,
    },
    Options {
        name: "rg",
        flags: "abcFhHiIlLnNopPqsSuUvwx0.V",
        values: "eABCdfgjmMrtTE",
        long: &[
            "--hidden",
            "--files",
            "--json",
            "--no-ignore",
            "--pretty",
            "--stats",
            "--color",
            "--colors",
            "--count",
            "--count-matches",
            "--files-with-matches",
            "--files-without-match",
            "--fixed-strings",
            "--heading",
            "--no-heading",
            "--ignore-case",
            "--invert-match",
            "--line-number",
            "--no-line-number",
            "--multiline",
            "--no-config",
            "--no-messages",
            "--only-matching",
            "--smart-case",
            "--type-list",
            "--vimgrep",
            "--word-regexp",
        ],
        long_values: &[
            "--after-context",
            "--before-context",
            "--context",
            "--glob",
            "--iglob",
            "--max-count",
            "--max-depth",
            "--max-filesize",
            "--regexp",
            "--sort",
            "--sortr",
            "--type",
            "--type-not",
        ],
        operands: Operands::Any,
    },
];

/// Tests and actions of `find` that only look.
#[rustfmt::skip]
const FIND: &[&str] = &[
    "-a", "-amin", "-and", "-anewer", "-atime", "-cmin", "-cnewer", "-ctime", "-daystart", "-depth", "-empty",
    "-executable", "-false", "-follow", "-group", "-gid", "-H", "-ilname", "-iname", "-inum", "-ipath", "-iregex", "-L",
    "-links", "-lname", "-ls", "-maxdepth", "-mindepth", "-mmin", "-mount", "-mtime", "-name", "-newer", "-newermt",
    "-nogroup", "-not", "-nouser", "-o", "-or", "-P", "-path", "-perm", "-print", "-print0", "-printf", "-prune",
    "-quit", "-readable", "-regex", "-regextype", "-samefile", "-size", "-true", "-type", "-uid", "-user",
    "-wholename", "-writable", "-xdev", "-xtype",
];

/// Programs that show the content of every file below a folder.
const SEARCHES: &[&str] = &["egrep", "fgrep", "grep", "rg"];

/// Options of `jq` without a value, and those with one or two. With others it reads filters from files.
#[rustfmt::skip]
const JQ: (&str, &[&str], &[(&str, usize)]) = (
    "nrjacCMsSeR",
    &[
        "--ascii-output", "--color-output", "--compact-output", "--exit-status", "--join-output", "--monochrome-output",
        "--null-input", "--raw-input", "--raw-output", "--slurp", "--sort-keys", "--tab",
    ],
    &[("--arg", 2), ("--argjson", 2), ("--indent", 1)],
);

/// What stands in a filter of `jq` that looks at variables, or takes in another file of filters.
const JQ_WORDS: &[&str] = &["env", "import", "include"];

/// Whether the program called `name` only reads with these arguments, which lead nowhere they should not.
pub(super) fn only_reads(name: &str, args: &[Word], cwd: &Path) -> bool {
    let known: Option<Vec<&str>> = args.iter().map(Word::literal).collect();
    // Below the root are the folders that nobody should look into.
    if SEARCHES.contains(&name) && args.iter().filter_map(Word::literal).any(|arg| paths::is_root(arg, cwd)) {
        return false;
    }
    if FREE.contains(&name) {
        return true;
    }
    // A word that is known only while it runs could become any option.
    let Some(args) = known else { return false };
    match name {
        "find" => args.iter().all(|arg| find(arg)),
        "jq" => jq(&args),
        _ => LIMITED.iter().any(|options| options.name == name && options.cover(&args)),
    }
}

fn find(arg: &str) -> bool {
    // `-mtime -1`, `-size -5M` and `-perm -u+w` have values that begin with a hyphen.
    let is_number = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    let is_mode = |rest: &str| rest.contains(['+', '=']) && rest.bytes().all(|byte| b"ugoarwxXst+=,-".contains(&byte));
    match arg.strip_prefix('-') {
        None | Some("") => true,
        Some(rest) => FIND.contains(&arg) || is_number(rest) || is_mode(rest),
    }
}

fn jq(args: &[&str]) -> bool {
    let (flags, long, values) = JQ;
    let mut given = args.iter();
    while let Some(arg) = given.next() {
        let Some(rest) = arg.strip_prefix('-').filter(|rest| !rest.is_empty()) else { continue };
        if let Some((_, count)) = values.iter().find(|(name, _)| name == arg) {
            given.nth(count - 1);
        } else if !long.contains(arg) && !rest.chars().all(|letter| flags.contains(letter)) {
            return false;
        }
    }
    !args.iter().any(|arg| JQ_WORDS.iter().any(|word| arg.to_lowercase().contains(word)))
}

impl Options {
    fn cover(&self, args: &[&str]) -> bool {
        let mut args = args.iter();
        let mut operands = Vec::new();
        while let Some(arg) = args.next() {
            if *arg == "--" {
                operands.extend(args.by_ref());
            } else if let Some(word) = arg.strip_prefix("--") {
                let name = word.split_once('=').map_or(*arg, |(name, _)| &arg[..name.len() + 2]);
                let takes_next = self.long_values.contains(&name) && name == *arg;
                if !(self.long.contains(&name) || self.long_values.contains(&name)) {
                    return false;
                }
                if takes_next && args.next().is_none() {
                    return false;
                }
            } else if let Some(letters) = arg.strip_prefix('-').filter(|letters| !letters.is_empty()) {
                match self.cluster(letters) {
                    Cluster::Closed => {}
                    Cluster::TakesNext if args.next().is_some() => {}
                    Cluster::TakesNext | Cluster::Unknown => return false,
                }
            } else {
                operands.push(arg);
            }
        }
        match self.operands {
            Operands::Any => true,
            Operands::One => operands.len() <= 1,
            Operands::Format => operands.iter().all(|operand| operand.starts_with('+')),
            Operands::None => operands.is_empty(),
        }
    }

    fn cluster(&self, letters: &str) -> Cluster {
        let mut letters = letters.chars();
        while let Some(letter) = letters.next() {
            if self.values.contains(letter) {
                return if letters.as_str().is_empty() { Cluster::TakesNext } else { Cluster::Closed };
            }
            if !self.flags.contains(letter) {
                return Cluster::Unknown;
            }
        }
        Cluster::Closed
    }
}

/// How a word of short options ends.
enum Cluster {
    Closed,
    TakesNext,
    Unknown,
}
