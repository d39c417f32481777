//! Programs that look for, show, sort and copy files.

use super::Kind::{self, Deletes, Interactive, LoadsCode, Settings, StartsProgram, StartupFile, UnknownOption, Writes};
use super::engine::{BASE, Dashes, Style, Table, exact};
use super::{Call, Reach, farther};

/// Files that shells and other programs read when they start, as parts of a path.
const STARTUP: &[&str] = &[
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".config/autostart",
    ".config/fish",
    ".config/git",
    ".config/systemd",
    ".cshrc",
    ".emacs",
    ".git/config",
    ".git/hooks",
    ".gitconfig",
    ".inputrc",
    ".kshrc",
    ".local/bin/",
    ".login",
    ".npmrc",
    ".openclaw",
    ".pam_environment",
    ".profile",
    ".ssh",
    ".tcshrc",
    ".vimrc",
    ".xinitrc",
    ".xprofile",
    ".xsession",
    ".zlogin",
    ".zlogout",
    ".zprofile",
    ".zshenv",
    ".zshrc",
    "/etc/cron",
    "/etc/ld.so",
    "/etc/pam.d",
    "/etc/profile",
    "/etc/sudoers",
    "/etc/systemd",
    "/var/spool/cron",
    "authorized_keys",
    "exec-approvals.json",
    "launchagents",
    "launchdaemons",
    "sitecustomize.py",
    "usercustomize.py",
];

/// Whether `text`, a word as it becomes or as it is written, names a file that is read at start-up.
fn names_startup_file(text: &str) -> bool {
    let text: String =
        text.chars().filter(|c| !matches!(c, '"' | '\'' | '\\')).map(|c| c.to_ascii_lowercase()).collect();
    let mut plain = text.replace("/./", "/");
    while plain.contains("//") {
        plain = plain.replace("//", "/");
    }
    STARTUP.iter().any(|part| text.contains(part) || plain.contains(part))
}

/// Programs that write where their arguments say.
const WRITERS: &[&str] = &[
    "cp", "curl", "dd", "gcp", "ginstall", "gln", "gmv", "gtee", "install", "ln", "mv", "rsync", "scp", "sponge",
    "tee", "touch", "truncate", "wget",
];

/// The argument of a program that writes which names a file read at start-up.
pub(super) fn startup(name: &str, call: Call<'_>) -> Option<Reach> {
    let program = WRITERS.iter().find(|writer| **writer == name)?;
    let at = call.args.iter().position(|word| {
        let written = call.text.get(word.span.range()).unwrap_or_default();
        names_startup_file(written) || exact(word).is_some_and(names_startup_file)
    })?;
    Some(farther(StartupFile, program, "", Some(at)))
}

pub(super) const ALWAYS: &[(&str, Kind)] = &[
    ("dc", Interactive),
    ("ed", Interactive),
    ("emacs", Interactive),
    ("emacsclient", Interactive),
    ("ex", Interactive),
    ("gvim", Interactive),
    ("helix", Interactive),
    ("hx", Interactive),
    ("ifne", StartsProgram),
    ("joe", Interactive),
    ("kak", Interactive),
    ("lf", Interactive),
    ("mcedit", Interactive),
    ("micro", Interactive),
    ("mispipe", StartsProgram),
    ("nano", Interactive),
    ("nnn", Interactive),
    ("nvim", Interactive),
    ("open", StartsProgram),
    ("pee", StartsProgram),
    ("pico", Interactive),
    ("ranger", Interactive),
    ("red", Interactive),
    ("rview", Interactive),
    ("rvim", Interactive),
    ("vi", Interactive),
    ("view", Interactive),
    ("vidir", Interactive),
    ("vifm", Interactive),
    ("vim", Interactive),
    ("vimdiff", Interactive),
    ("vipe", Interactive),
    ("xdg-open", StartsProgram),
];

pub(super) const TABLES: &[Table] = &[
    Table {
        names: &["find", "gfind", "bfs"],
        style: Style::Words,
        dashes: Dashes::Nothing,
        long: &[
            ("-exec", StartsProgram),
            ("-execdir", StartsProgram),
            ("-ok", StartsProgram),
            ("-okdir", StartsProgram),
            ("-delete", Deletes),
            ("-rm", Deletes),
            ("-fprint", Writes),
            ("-fprint0", Writes),
            ("-fprintf", Writes),
            ("-fls", Writes),
            ("-files0-from", UnknownOption),
        ],
        long_flags: &[
            "-print", "-print0", "-prune", "-empty", "-not", "-o", "-a", "-or", "-and", "-ls", "-quit", "-xdev",
        ],
        long_values: &[
            "-name",
            "-iname",
            "-path",
            "-ipath",
            "-wholename",
            "-regex",
            "-iregex",
            "-type",
            "-size",
            "-mtime",
            "-mmin",
            "-ctime",
            "-cmin",
            "-atime",
            "-amin",
            "-newer",
            "-user",
            "-group",
            "-perm",
            "-maxdepth",
            "-mindepth",
            "-printf",
        ],
        ..BASE
    },
    Table {
        names: &["fd", "fdfind"],
        long: &[("--exec", StartsProgram), ("--exec-batch", StartsProgram)],
        short: &[("-x", StartsProgram), ("-X", StartsProgram)],
        flags: "HIuslapL0FqgiU1",
        values: "tedESocj",
        long_flags: &["--exclude"],
        ..BASE
    },
    Table {
        names: &["rg", "ripgrep"],
        long: &[("--pre", StartsProgram), ("--hostname-bin", StartsProgram), ("--search-zip", StartsProgram)],
        short: &[("-z", StartsProgram)],
        flags: "abcFhHiIlLnNopPqsSuUvwx0.V",
        values: "eABCdfgjmMrtTE",
        long_flags: &["--hidden", "--files", "--json", "--no-ignore", "--pretty", "--stats"],
        long_values: &["--pre-glob", "--glob", "--type", "--regexp", "--max-count", "--context"],
        ..BASE
    },
    Table {
        names: &["ag", "ack", "ack-grep"],
        long: &[("--pager", StartsProgram), ("--ackrc", LoadsCode), ("--output", LoadsCode)],
        flags: "ilnwvcHhQ",
        values: "ABCGgm",
        ..BASE
    },
    Table {
        names: &["sort", "gsort"],
        long: &[("--compress-program", StartsProgram), ("--output", Writes)],
        short: &[("-o", Writes)],
        flags: "bdfghiMnRrVcCmsuz",
        values: "kStT",
        ..BASE
    },
    Table {
        names: &["split", "gsplit"],
        long: &[("--filter", StartsProgram)],
        flags: "deux",
        values: "abClntx",
        ..BASE
    },
    Table {
        names: &["less", "more", "most", "pg"],
        long: &[
            ("--log-file", Writes),
            ("--LOG-FILE", Writes),
            ("--lesskey-file", LoadsCode),
            ("--lesskey-src", LoadsCode),
            ("--lesskey-content", LoadsCode),
        ],
        short: &[("-o", Writes), ("-O", Writes), ("-k", LoadsCode)],
        starts: &[("+", StartsProgram)],
        flags: "aceEfFgGiIJKLmMnNqQrRsSuUVwWX~",
        values: "bhjpPtTxyz",
        ..BASE
    },
    Table {
        names: &["bat", "batcat", "delta", "glow"],
        long: &[("--pager", StartsProgram), ("--config-file", LoadsCode)],
        flags: "pnAPf",
        values: "lrHm",
        ..BASE
    },
    Table {
        names: &["man", "gman"],
        long: &[
            ("--pager", StartsProgram),
            ("--html", StartsProgram),
            ("--config-file", LoadsCode),
            ("--preprocessor", StartsProgram),
        ],
        short: &[("-P", StartsProgram), ("-H", StartsProgram), ("-C", LoadsCode), ("-p", StartsProgram)],
        flags: "kfawWKt",
        values: "MSsLmer",
        ..BASE
    },
    Table {
        names: &["fzf", "sk"],
        long: &[
            ("--preview", StartsProgram),
            ("--bind", StartsProgram),
            ("--with-shell", StartsProgram),
            ("--listen", StartsProgram),
            ("--listen-unsafe", StartsProgram),
        ],
        flags: "eim0x1",
        values: "fqdn",
        long_values: &["--preview-window"],
        ..BASE
    },
    Table { names: &["dd"], starts: &[("of=", Writes)], ..BASE },
    Table {
        names: &["install", "ginstall"],
        long: &[("--strip-program", StartsProgram)],
        flags: "bcCdDpsTv",
        values: "gmoSt",
        ..BASE
    },
    Table {
        names: &["ssh-keygen", "ssh-add"],
        short: &[("-D", LoadsCode), ("-s", LoadsCode), ("-w", LoadsCode)],
        flags: "lqvyLRdexpi",
        values: "bCfFmNtPEOY",
        ..BASE
    },
    Table { names: &["update-alternatives"], long: &[("--install", Settings), ("--set", Settings)], ..BASE },
];
