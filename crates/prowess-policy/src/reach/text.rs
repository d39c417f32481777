//! Programs that show, compare and convert text, and those that show or set what the system says.

use super::Kind::{
    self, Deletes, InlineCode, Interactive, LoadsCode, Service, Settings, StartsProgram, UnknownOption, Writes,
};
use super::engine::{BASE, Dashes, Style, Subs, Table, sub};

pub(super) const ALWAYS: &[(&str, Kind)] = &[
    ("aspell", Interactive),
    ("cowsay", LoadsCode),
    ("cowthink", LoadsCode),
    ("debugfs", Interactive),
    ("fx", InlineCode),
    ("ispell", Interactive),
    ("ldd", StartsProgram),
    ("msgexec", StartsProgram),
    ("msgfilter", StartsProgram),
    ("prename", InlineCode),
    ("rename", InlineCode),
    ("run-mailcap", StartsProgram),
    ("tdbtool", Interactive),
    ("vd", Interactive),
    ("vigr", Interactive),
    ("vipw", Interactive),
    ("visidata", Interactive),
];

pub(super) const TABLES: &[Table] = &[
    Table {
        names: &["diff3"],
        long: &[("--diff-program", StartsProgram)],
        flags: "3AaeExXimT",
        values: "L",
        long_values: &["--label"],
        ..BASE
    },
    Table {
        names: &["sdiff"],
        long: &[("--diff-program", StartsProgram), ("--output", Writes)],
        short: &[("-o", Writes)],
        flags: "abBdEHilsStWZ",
        values: "Iw",
        ..BASE
    },
    Table {
        names: &["shuf", "gshuf"],
        long: &[("--output", Writes)],
        short: &[("-o", Writes)],
        flags: "erz",
        values: "in",
        long_values: &["--input-range", "--head-count", "--random-source"],
        ..BASE
    },
    Table {
        names: &["tree"],
        short: &[("-o", Writes), ("-R", StartsProgram)],
        flags: "aAcCdDfFghiJlnNpqQrsStuUvxX",
        values: "HILPT",
        long_flags: &["--dirsfirst", "--noreport", "--gitignore", "--prune"],
        ..BASE
    },
    Table {
        names: &["uniq", "guniq"],
        flags: "cdDiuz",
        values: "fsw",
        long_flags: &["--count", "--repeated", "--unique", "--ignore-case", "--group", "--all-repeated"],
        long_values: &["--skip-fields", "--skip-chars", "--check-chars"],
        operand: Some((1, Writes)),
        ..BASE
    },
    Table {
        names: &["xxd"],
        style: Style::Words,
        long_flags: &["-a", "-b", "-d", "-E", "-e", "-i", "-p", "-ps", "-plain", "-r", "-revert", "-u"],
        long_values: &["-c", "-cols", "-g", "-l", "-len", "-n", "-o", "-s", "-seek", "-R"],
        operand: Some((1, Writes)),
        ..BASE
    },
    Table {
        names: &["iconv"],
        long: &[("--output", Writes)],
        short: &[("-o", Writes)],
        flags: "cls",
        values: "ft",
        long_values: &["--from-code", "--to-code"],
        ..BASE
    },
    Table {
        names: &["lnav"],
        short: &[("-c", InlineCode), ("-f", LoadsCode), ("-i", Settings), ("-I", LoadsCode), ("-e", StartsProgram)],
        long: &[("--exec", StartsProgram)],
        flags: "CHNnqrtuVvW",
        ..BASE
    },
    Table {
        names: &["yq", "tomlq", "xq", "jaq"],
        long: &[
            ("--inplace", Writes),
            ("--in-place", Writes),
            ("--split-exp", Writes),
            ("--from-file", UnknownOption),
            ("--security-enable-system-operator", StartsProgram),
        ],
        short: &[("-i", Writes), ("-s", Writes)],
        flags: "CMNPrneUvyYj",
        values: "Ipo",
        ..BASE
    },
    Table { names: &["xmlstarlet"], long: &[("--inplace", Writes)], short: &[("-L", Writes)], ..BASE },
    Table {
        names: &["mlr", "miller"],
        style: Style::Words,
        dashes: Dashes::Nothing,
        long: &[
            ("-I", Writes),
            ("--prepipe", StartsProgram),
            ("--prepipex", StartsProgram),
            ("--load", LoadsCode),
            ("--mload", LoadsCode),
            ("-f", LoadsCode),
            ("-s", LoadsCode),
        ],
        long_flags: &["--icsv", "--ojson", "--csv", "--json", "--c2p", "--c2j", "--tsv"],
        exact: &[("tee", Writes), ("split", Writes), ("case", UnknownOption)],
        contains: &[
            ("system", StartsProgram),
            ("exec", StartsProgram),
            ("tee ", Writes),
            ("emit >", Writes),
            ("> ", UnknownOption),
            ("| ", UnknownOption),
        ],
        ..BASE
    },
    Table {
        names: &["qsv"],
        subs: Subs::Denied(&[
            sub("luau", InlineCode),
            sub("lua", InlineCode),
            sub("py", InlineCode),
            sub("foreach", StartsProgram),
        ]),
        long: &[("--output", Writes)],
        short: &[("-o", Writes)],
        flags: "n",
        values: "ds",
        ..BASE
    },
    Table {
        names: &["date", "gdate"],
        long: &[("--set", Settings)],
        short: &[("-s", Settings)],
        flags: "uRI",
        values: "dfrvj",
        long_flags: &["--utc"],
        long_values: &["--date", "--reference"],
        ..BASE
    },
    Table {
        names: &["hostname", "domainname", "nisdomainname"],
        long: &[("--file", Settings)],
        short: &[("-F", Settings), ("-b", Settings)],
        flags: "aAdfiIsyvV",
        operand: Some((0, Settings)),
        ..BASE
    },
    Table {
        names: &["dmesg"],
        long: &[
            ("--clear", Deletes),
            ("--read-clear", Deletes),
            ("--console-off", Settings),
            ("--console-on", Settings),
            ("--console-level", Settings),
        ],
        short: &[("-C", Deletes), ("-c", Deletes), ("-D", Settings), ("-E", Settings), ("-n", Settings)],
        flags: "deHhJkLPprStTuwWx",
        values: "Ffl",
        ..BASE
    },
    Table {
        names: &["journalctl"],
        long: &[
            ("--vacuum-size", Deletes),
            ("--vacuum-time", Deletes),
            ("--vacuum-files", Deletes),
            ("--rotate", Settings),
            ("--relinquish-var", Settings),
            ("--smart-relinquish-var", Settings),
            ("--setup-keys", Settings),
            ("--update-catalog", Settings),
            ("--cursor-file", Writes),
        ],
        flags: "abefklmNqrx",
        values: "cDgMnopStuU",
        long_flags: &["--reverse", "--user", "--utc"],
        long_values: &["--unit", "--since", "--until", "--output", "--lines", "--priority", "--cursor"],
        ..BASE
    },
    Table {
        names: &["systemd-analyze"],
        subs: Subs::Denied(&[
            sub("unit-shell", StartsProgram),
            sub("log-level", Settings),
            sub("log-target", Settings),
            sub("set-log-level", Settings),
            sub("set-log-target", Settings),
            sub("service-watchdogs", Settings),
        ]),
        ..BASE
    },
    Table {
        names: &["loginctl", "hostnamectl", "timedatectl", "localectl", "resolvectl", "networkctl"],
        flags: "alq",
        values: "HMnops",
        subs: Subs::Known(
            &[
                "dns",
                "domain",
                "help",
                "list",
                "list-keymaps",
                "list-locales",
                "list-seats",
                "list-sessions",
                "list-timezones",
                "list-users",
                "lldp",
                "query",
                "seat-status",
                "session-status",
                "show",
                "show-seat",
                "show-session",
                "show-timesync",
                "show-user",
                "statistics",
                "status",
                "timesync-status",
                "user-status",
            ],
            &[
                sub("enable-linger", Settings),
                sub("set-hostname", Settings),
                sub("hostname", Settings),
                sub("set-time", Settings),
                sub("set-timezone", Settings),
                sub("set-ntp", Settings),
                sub("set-locale", Settings),
                sub("set-keymap", Settings),
                sub("edit", StartsProgram),
                sub("terminate-user", Service),
                sub("terminate-session", Service),
                sub("kill-user", Service),
                sub("kill-session", Service),
            ],
        ),
        ..BASE
    },
    Table {
        names: &["ldconfig"],
        short: &[("-C", Writes), ("-f", LoadsCode), ("-r", Settings), ("-n", Settings), ("-l", Settings)],
        flags: "NpvVX",
        ..BASE
    },
    Table { names: &["pidstat"], short: &[("-e", StartsProgram)], flags: "dDhHIlrRsuUvVw", values: "CGpTt", ..BASE },
    Table { names: &["sar"], short: &[("-o", Writes)], flags: "AbBdFhHpqrRSuvVwWyz", values: "efimnPs", ..BASE },
    Table { names: &["scrot"], short: &[("-e", StartsProgram)], long: &[("--exec", StartsProgram)], ..BASE },
    Table { names: &["service"], contains: &[("/", StartsProgram)], ..BASE },
];
