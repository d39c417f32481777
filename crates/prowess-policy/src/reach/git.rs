//! `git`: a program of a hundred programs, some of which start others.

use super::Kind::{self, LoadsCode, Settings, StartsProgram, UnknownOption, UnknownSubcommand, Writes};
use super::engine::{BASE, Seen, Table, exact, is_single, seen};
use super::{Call, Reach, farther};
use crate::script::Word;
use crate::wrapper::Tail;

/// Options in front of the subcommand that stand alone.
const FLAGS: &[&str] = &[
    "--bare",
    "--glob-pathspecs",
    "--icase-pathspecs",
    "--literal-pathspecs",
    "--no-advice",
    "--no-lazy-fetch",
    "--no-optional-locks",
    "--no-pager",
    "--no-replace-objects",
    "--noglob-pathspecs",
    "-P",
];

/// Options in front of the subcommand that take a folder or a name.
const VALUES: &[&str] = &["--git-dir", "--namespace", "--super-prefix", "-C"];

/// Subcommands none of whose options starts anything or writes a file of the caller's choice.
const FREE: &[&str] = &[
    "add",
    "am",
    "apply",
    "branch",
    "check-attr",
    "check-ignore",
    "check-ref-format",
    "checkout",
    "checkout-index",
    "cherry",
    "clean",
    "column",
    "commit",
    "commit-graph",
    "commit-tree",
    "count-objects",
    "describe",
    "for-each-ref",
    "fsck",
    "gc",
    "hash-object",
    "help",
    "ls-files",
    "ls-tree",
    "merge-base",
    "mktag",
    "mktree",
    "multi-pack-index",
    "mv",
    "name-rev",
    "pack-refs",
    "prune",
    "read-tree",
    "repack",
    "rerere",
    "reset",
    "restore",
    "rev-parse",
    "rm",
    "show-index",
    "show-ref",
    "sparse-checkout",
    "status",
    "stripspace",
    "switch",
    "symbolic-ref",
    "tag",
    "update-index",
    "update-ref",
    "var",
    "verify-commit",
    "verify-pack",
    "verify-tag",
    "version",
    "worktree",
    "write-tree",
];

const COMMON: &[(&str, Kind)] = &[
    ("--ext-diff", StartsProgram),
    ("--textconv", StartsProgram),
    ("--filters", StartsProgram),
    ("--output", Writes),
    ("--exec", StartsProgram),
    ("--upload-pack", StartsProgram),
    ("--receive-pack", StartsProgram),
    ("--template", LoadsCode),
    ("--config", StartsProgram),
    ("--open-files-in-pager", StartsProgram),
];

const COMMON_FLAGS: &[&str] = &[
    "--all",
    "--cached",
    "--follow",
    "--graph",
    "--name-only",
    "--name-status",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--numstat",
    "--oneline",
    "--patch",
    "--shortstat",
    "--staged",
    "--stat",
    "--tags",
    "--text",
];

const SHOWING: Table = Table {
    names: &[
        "annotate",
        "blame",
        "cat-file",
        "diff",
        "diff-files",
        "diff-index",
        "diff-tree",
        "fast-export",
        "format-patch",
        "log",
        "merge-tree",
        "notes",
        "range-diff",
        "reflog",
        "rev-list",
        "shortlog",
        "show",
        "show-branch",
        "stash",
        "whatchanged",
    ],
    long: COMMON,
    long_flags: COMMON_FLAGS,
    flags: "puswbRzMDitcav",
    values: "SGnL",
    ..BASE
};

const MERGING: Table = Table {
    names: &["merge", "rebase", "pull", "cherry-pick", "revert"],
    long: &[
        ("--exec", StartsProgram),
        ("--strategy", StartsProgram),
        ("--upload-pack", StartsProgram),
        ("--interactive", StartsProgram),
    ],
    long_flags: &[
        "--abort",
        "--continue",
        "--skip",
        "--quit",
        "--no-ff",
        "--ff-only",
        "--no-edit",
        "--rebase",
        "--squash",
        "--tags",
        "--no-commit",
        "--autostash",
        "--all",
        "--edit",
        "--prune",
    ],
    long_values: &["--strategy-option", "--onto"],
    flags: "qvnaep",
    values: "mX",
    ..BASE
};

const NETWORK: Table = Table {
    names: &["archive", "clone", "fetch", "init", "ls-remote", "push", "remote", "bundle"],
    long: &[
        ("--upload-pack", StartsProgram),
        ("--receive-pack", StartsProgram),
        ("--exec", StartsProgram),
        ("--config", StartsProgram),
        ("--template", LoadsCode),
        ("--output", Writes),
        ("--remote", StartsProgram),
        ("--server-option", UnknownOption),
    ],
    long_flags: COMMON_FLAGS,
    long_values: &["--depth", "--branch", "--origin"],
    flags: "4afFnpqtuv6d",
    values: "bj",
    ..BASE
};

const GREP: Table = Table { names: &["grep"], values: "eABCfm", flags: "acEFGhHiIlLnopPqrvwWz", ..SHOWING };

/// Subcommands that have dangerous letters besides; the first table that knows a name counts.
const LETTERED: &[Table] = &[
    Table {
        names: &["clone"],
        short: &[("-u", StartsProgram), ("-c", StartsProgram)],
        flags: "lnqsv46",
        values: "boj",
        ..NETWORK
    },
    Table { names: &["archive"], short: &[("-o", Writes)], ..NETWORK },
    Table { short: &[("-O", StartsProgram)], ..GREP },
    Table { names: &["merge", "pull"], short: &[("-s", StartsProgram)], ..MERGING },
    Table {
        names: &["rebase"],
        short: &[("-s", StartsProgram), ("-x", StartsProgram), ("-i", StartsProgram)],
        flags: "qvnpfkr",
        values: "XC",
        ..MERGING
    },
];

/// Ways to reach a repository that git knows itself; for others it starts `git-remote-NAME`.
const SCHEMES: &[&str] = &["file", "ftp", "ftps", "git", "git+ssh", "http", "https", "ssh", "ssh+git"];

pub(super) fn reach(call: Call<'_>) -> Reach {
    let mut at = 0;
    let sub = loop {
        let Some(word) = call.args.get(at) else { return bare(call) };
        let text = match seen(word) {
            Seen::Exact(text) => text,
            Seen::Begins(text) if is_single(word) && VALUES.iter().any(|option| is_given(text, option)) => {
                at += 1;
                continue;
            }
            Seen::Begins(_) | Seen::One | Seen::Anything => return farther(Kind::Dynamic, "git", "", Some(at)),
        };
        if !text.starts_with('-') {
            break text;
        }
        match text {
            "--version" | "-v" | "--help" | "-h" | "--html-path" | "--man-path" | "--info-path" | "--exec-path" => {}
            "-p" | "--paginate" => return farther(StartsProgram, "git", "--paginate", Some(at)),
            text if FLAGS.contains(&text) || VALUES.iter().any(|option| is_given(text, option)) => {}
            text if VALUES.contains(&text) => match call.args.get(at + 1) {
                Some(value) if is_single(value) => at += 1,
                _ => return farther(Kind::Dynamic, "git", "", Some(at)),
            },
            text if text.starts_with("--exec-path=") => return farther(StartsProgram, "git", "--exec-path", Some(at)),
            text if text.starts_with("--config-env") => return farther(StartsProgram, "git", "--config-env", Some(at)),
            text if text.starts_with("-c") => return farther(StartsProgram, "git", "-c", Some(at)),
            _ => return farther(UnknownOption, "git", "", Some(at)),
        }
        at += 1;
    };
    let rest = Call { args: &call.args[at + 1..], ..call };
    match writes(sub, rest).unwrap_or_else(|| subcommand(sub, rest)) {
        // Places count from the first word behind `git`.
        Reach::Farther(mut found) => {
            found.at = Some(found.at.map_or(at, |place| place + at + 1));
            Reach::Farther(found)
        }
        Reach::Script(_) | Reach::Plain => Reach::Plain,
    }
}

/// Options with which a subcommand writes a file of the caller's choice, perhaps into the repository's own settings.
fn writes(sub: &str, call: Call<'_>) -> Option<Reach> {
    const WRITING: &[(&str, &str, &str)] = &[
        ("apply", "--unsafe", "--unsafe-paths"),
        ("am", "--unsafe", "--unsafe-paths"),
        ("checkout-index", "--pre", "--prefix"),
        ("read-tree", "--index-o", "--index-output"),
        ("fast-export", "--export-", "--export-marks"),
        ("fast-import", "--export-", "--export-marks"),
        ("bundle", "create", "create"),
    ];
    let found = call.args.iter().enumerate().find_map(|(at, word)| {
        let text = exact(word)?;
        let option = WRITING.iter().find(|(of, start, _)| *of == sub && text.starts_with(start))?;
        Some((at, option.2))
    });
    found.map(|(at, option)| farther(Writes, "git", option, Some(at)))
}

fn is_given(text: &str, option: &str) -> bool {
    option.starts_with("--") && text.strip_prefix(option).is_some_and(|rest| rest.starts_with('='))
}

/// `git` without a subcommand says how it is used; what `xargs` adds would be one.
fn bare(call: Call<'_>) -> Reach {
    match call.tail {
        Tail::Closed => Reach::Plain,
        Tail::Open => farther(Kind::OpenTail, "git", "", None),
    }
}

fn subcommand(sub: &str, call: Call<'_>) -> Reach {
    if FREE.contains(&sub) {
        return Reach::Plain;
    }
    match sub {
        "config" => return config(call),
        "bisect" => return words(call, &["run", "view", "visualize"], "bisect"),
        "submodule" => return words(call, &["foreach", "update"], "submodule"),
        "lfs" => return words(call, &["install", "ext", "update", "standalone-file", "migrate"], "lfs"),
        _ => {}
    }
    let tables = LETTERED.iter().chain([&SHOWING, &MERGING, &NETWORK]);
    let Some((table, name)) =
        tables.into_iter().find_map(|table| table.names.iter().find(|name| **name == sub).map(|name| (table, *name)))
    else {
        return farther(UnknownSubcommand, "git", "", None);
    };
    let is_remote = ["archive", "clone", "fetch", "ls-remote", "pull", "push", "remote"].contains(&name);
    if is_remote && let Some(at) = call.args.iter().position(starts_helper) {
        return farther(StartsProgram, "git", "with a custom transport", Some(at));
    }
    match table.check("git", call) {
        Some(found) => Reach::Farther(found),
        None => Reach::Plain,
    }
}

/// Whether a word is an address that git hands to another program: `ext::…`, `helper://…`.
fn starts_helper(word: &Word) -> bool {
    let text = match seen(word) {
        Seen::Exact(text) | Seen::Begins(text) => text,
        // Before `--` the table asks about it; behind it, it may be an address.
        Seen::One | Seen::Anything => return true,
    };
    let is_name =
        |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-._".contains(&b));
    let is_helper = |address: &str| address.split_once("::").is_some_and(|(name, _)| is_name(name));
    let is_strange = |address: &str| {
        address.split_once("://").is_some_and(|(scheme, rest)| {
            rest.starts_with('-') || is_name(scheme) && !SCHEMES.contains(&scheme.to_ascii_lowercase().as_str())
        })
    };
    let value = text.split_once('=').map_or(text, |(_, value)| value);
    [text, value].into_iter().any(|address| is_helper(address) || is_strange(address))
}

/// A subcommand with subcommands of its own, of which these start programs.
fn words(call: Call<'_>, denied: &[&str], sub: &'static str) -> Reach {
    if call.tail == Tail::Open {
        return farther(Kind::OpenTail, "git", sub, None);
    }
    for (at, word) in call.args.iter().enumerate() {
        match exact(word) {
            None => return farther(Kind::Dynamic, "git", "", Some(at)),
            Some(text) if denied.contains(&text) => return farther(StartsProgram, "git", sub, Some(at)),
            Some(_) => {}
        }
    }
    Reach::Plain
}

/// Reading a setting is fine; writing one may name a program that git starts later.
fn config(call: Call<'_>) -> Reach {
    const READING: &[&str] = &["--get", "--get-all", "--get-regexp", "--get-urlmatch", "--list", "-l", "get", "list"];
    const SCOPES: &[&str] = &[
        "--bool",
        "--global",
        "--includes",
        "--int",
        "--local",
        "--name-only",
        "--null",
        "--path",
        "--show-origin",
        "--show-scope",
        "--system",
        "--worktree",
        "-z",
        "--all",
        "--regexp",
    ];
    let mut operands = 0;
    let mut reads = false;
    for (at, word) in call.args.iter().enumerate() {
        match exact(word) {
            None if reads && matches!(seen(word), Seen::Begins(text) if !text.starts_with('-')) => operands += 1,
            None => return farther(Kind::Dynamic, "git", "", Some(at)),
            Some(text) if READING.contains(&text) && operands == 0 => reads = true,
            Some(text) if SCOPES.contains(&text) => {}
            Some(text) if text.starts_with('-') => return farther(Settings, "git", "config", Some(at)),
            Some(_) => operands += 1,
        }
    }
    // `git config NAME` shows it, `git config NAME VALUE` sets it.
    let shows = reads || operands == 1;
    if shows && call.tail == Tail::Closed { Reach::Plain } else { farther(Settings, "git", "config", None) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::{Span, Value};

    #[test]
    fn every_denied_option_of_every_subcommand_is_caught_however_short() {
        let tables = || LETTERED.iter().chain([&SHOWING, &MERGING, &NETWORK]);
        for sub in tables().flat_map(|table| table.names) {
            let table = tables().find(|table| table.names.contains(sub)).expect("it has the name");
            let long = table.long.iter().flat_map(|(option, _)| (3..=option.len()).map(|end| &option[..end]));
            let short = table.short.iter().map(|(option, _)| *option);
            for option in long.chain(short) {
                if table.long_flags.contains(&option) || table.long_values.contains(&option) {
                    continue;
                }
                let args = [*sub, option, "x"]
                    .map(|text| Word { span: Span { start: 0, end: 0 }, value: Value::Literal(text.to_owned()) });
                let found = reach(Call { args: &args, tail: Tail::Closed, text: "" });
                assert!(matches!(found, Reach::Farther(_)), "git {sub} {option}: {found:?}");
            }
        }
    }
}
