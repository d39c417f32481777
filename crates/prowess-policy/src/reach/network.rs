//! Programs that talk to other machines.

use super::Kind::{
    self, Elsewhere, InlineCode, Interactive, LoadsCode, Service, Settings, StartsProgram, UnknownOption, Writes,
};
use super::engine::{BASE, Dashes, Style, Subs, Table, sub, sub_with};

pub(super) const ALWAYS: &[(&str, Kind)] = &[
    ("ansible", Elsewhere),
    ("ansible-console", Elsewhere),
    ("ansible-playbook", Elsewhere),
    ("autossh", Elsewhere),
    ("ftp", Interactive),
    ("lftp", Interactive),
    ("mosh", Elsewhere),
    ("pdsh", Elsewhere),
    ("plink", Elsewhere),
    ("rsh", Elsewhere),
    ("sftp", Interactive),
    ("slogin", Elsewhere),
    ("ssh", Elsewhere),
    ("ssh-agent", StartsProgram),
    ("ssh-copy-id", Elsewhere),
];

pub(super) const TABLES: &[Table] = &[
    Table {
        names: &["scp"],
        short: &[
            ("-S", StartsProgram),
            ("-o", StartsProgram),
            ("-F", LoadsCode),
            ("-D", StartsProgram),
            ("-J", StartsProgram),
        ],
        flags: "346ABCOpqRrTsv",
        values: "ciPlX",
        ..BASE
    },
    Table {
        names: &["rsync"],
        long: &[
            ("--rsh", StartsProgram),
            ("--rsync-path", StartsProgram),
            ("--remote-option", StartsProgram),
            ("--config", LoadsCode),
            ("--daemon", Service),
            ("--early-input", UnknownOption),
        ],
        short: &[("-e", StartsProgram), ("-M", StartsProgram)],
        flags: "aAbcCdDgHhiIklLmnoOpPqrRsStuUvWxXyz",
        values: "BfT@",
        long_flags: &["--recursive", "--delete", "--progress", "--stats", "--dry-run", "--archive", "--compress"],
        ..BASE
    },
    Table {
        names: &["curl"],
        long: &[
            ("--config", LoadsCode),
            ("--engine", LoadsCode),
            ("--libcurl", Writes),
            ("--upload-file", Writes),
            ("--trace", Writes),
            ("--trace-ascii", Writes),
            ("--dump-header", Writes),
            ("--stderr", Writes),
            ("--unix-socket", Service),
            ("--abstract-unix-socket", Service),
        ],
        short: &[("-K", LoadsCode), ("-T", Writes), ("-D", Writes)],
        flags: "0123469aBfgGIijJklLMnNOpqRsSvVZ#",
        values: "AbcCdeEFhHmoPQrtuUwxXyYz",
        long_flags: &["--compressed", "--fail", "--location", "--silent", "--show-error", "--insecure"],
        long_values: &["--data", "--header", "--output", "--request", "--url", "--user", "--data-raw", "--max-time"],
        ..BASE
    },
    Table {
        names: &["wget", "wget2"],
        long: &[("--execute", InlineCode), ("--config", LoadsCode), ("--use-askpass", StartsProgram)],
        short: &[("-e", InlineCode)],
        flags: "bcdEFhHkKLmNnpqrSvVx46",
        values: "aABDGiIlOoPQRtTUwX",
        ..BASE
    },
    Table {
        names: &["nc", "ncat", "netcat"],
        long: &[("--exec", StartsProgram), ("--sh-exec", StartsProgram), ("--lua-exec", InlineCode)],
        short: &[("-e", StartsProgram), ("-c", StartsProgram)],
        flags: "46bdDFhklNnrSstUuvz",
        values: "IiMmOPpqTVWwXx",
        ..BASE
    },
    Table {
        names: &["socat"],
        style: Style::Words,
        contains: &[("exec", StartsProgram), ("system", StartsProgram), ("shell", StartsProgram)],
        ..BASE
    },
    Table {
        names: &["tcpdump"],
        long: &[("--postrotate-command", StartsProgram)],
        short: &[("-z", StartsProgram)],
        flags: "AbdDefhHIJKlLnNOpqStuUvxX#",
        values: "BcCEFGijmMrsTVwWyZQ",
        ..BASE
    },
    Table {
        names: &["tshark", "wireshark", "dumpcap"],
        short: &[("-X", LoadsCode)],
        flags: "DnpPlqQSVvx",
        values: "abBcCdEeFfgGHiIjJKLMNoOrRsTtuUwWyYz",
        ..BASE
    },
    Table {
        names: &["nmap"],
        style: Style::Words,
        long: &[
            ("--script", LoadsCode),
            ("--interactive", Interactive),
            ("--datadir", LoadsCode),
            ("--stylesheet", LoadsCode),
        ],
        starts: &[
            ("--sc", LoadsCode),
            ("--int", Interactive),
            ("-sC", LoadsCode),
            ("--da", LoadsCode),
            ("-A", LoadsCode),
        ],
        ..BASE
    },
    Table {
        names: &["aria2c"],
        long: &[
            ("--on-bt-download-complete", StartsProgram),
            ("--on-download-complete", StartsProgram),
            ("--on-download-error", StartsProgram),
            ("--on-download-pause", StartsProgram),
            ("--on-download-start", StartsProgram),
            ("--on-download-stop", StartsProgram),
            ("--conf-path", LoadsCode),
            ("--enable-rpc", Service),
        ],
        flags: "cDnqSVZ",
        values: "dijklMoOsTtux",
        ..BASE
    },
    Table {
        names: &["yt-dlp", "youtube-dl"],
        long: &[
            ("--exec", StartsProgram),
            ("--exec-before-download", StartsProgram),
            ("--external-downloader", StartsProgram),
            ("--downloader", StartsProgram),
            ("--netrc-cmd", StartsProgram),
            ("--ffmpeg-location", StartsProgram),
            ("--config-location", LoadsCode),
            ("--config-locations", LoadsCode),
            ("--plugin-dirs", LoadsCode),
            ("--use-postprocessor", LoadsCode),
            ("--js-runtimes", StartsProgram),
            ("--remote-components", LoadsCode),
        ],
        flags: "ciFgejJkqsUvxw",
        values: "aforNOPprRSStu",
        long_flags: &["--extract-audio"],
        ..BASE
    },
    Table {
        names: &["rclone"],
        long: &[("--password-command", StartsProgram), ("--rc", Service), ("--config", LoadsCode)],
        subs: Subs::Denied(&[
            sub("rcd", Service),
            sub("serve", Service),
            sub("config", Settings),
            sub("mount", Service),
            sub("selfupdate", Settings),
        ]),
        starts: &[(":", LoadsCode)],
        ..BASE
    },
    Table {
        names: &["restic", "borg"],
        long: &[
            ("--password-command", StartsProgram),
            ("--option", StartsProgram),
            ("--rsh", StartsProgram),
            ("--remote-path", StartsProgram),
        ],
        short: &[("-o", StartsProgram)],
        flags: "qvnph",
        ..BASE
    },
    Table {
        names: &["iptables", "ip6tables"],
        long: &[("--modprobe", StartsProgram)],
        short: &[("-M", StartsProgram)],
        flags: "nvx",
        values: "AacDdFgIijLlmNopPRsSXZEtw",
        ..BASE
    },
    Table {
        names: &["ip", "tc", "bridge"],
        style: Style::Words,
        long: &[("-batch", Settings), ("-force", Settings), ("-b", Settings)],
        long_flags: &["-br", "-brief", "-c", "-color", "-j", "-json", "-4", "-6", "-s", "-d", "-o"],
        exact: &[("exec", StartsProgram), ("xdp", LoadsCode), ("xdpgeneric", LoadsCode), ("bpf", LoadsCode)],
        dashes: Dashes::Nothing,
        subs: Subs::Denied(&[sub_with("netns", &["e", "ex", "exe"], StartsProgram)]),
        ..BASE
    },
    Table {
        names: &["openssl"],
        style: Style::Words,
        long: &[
            ("-engine", LoadsCode),
            ("-provider", LoadsCode),
            ("-provider-path", LoadsCode),
            ("-config", LoadsCode),
            ("-engine_impl", LoadsCode),
            ("-keygen_engine", LoadsCode),
            ("-ssl_client_engine", LoadsCode),
            ("-out", Writes),
            ("-keyout", Writes),
            ("-writerand", Writes),
            ("-sess_out", Writes),
            ("-keylogfile", Writes),
            ("-certsout", Writes),
        ],
        subs: Subs::Denied(&[sub("engine", LoadsCode)]),
        dashes: Dashes::Nothing,
        ..BASE
    },
    Table {
        names: &["svn"],
        long: &[
            ("--config-option", StartsProgram),
            ("--config-dir", LoadsCode),
            ("--diff-cmd", StartsProgram),
            ("--diff3-cmd", StartsProgram),
            ("--editor-cmd", StartsProgram),
        ],
        flags: "qvuN",
        values: "rmcFx",
        starts: &[("svn+", StartsProgram)],
        ..BASE
    },
    Table {
        names: &["hg", "chg", "jj", "bzr"],
        long: &[
            ("--config", InlineCode),
            ("--config-file", LoadsCode),
            ("--config-toml", InlineCode),
            ("--debugger", Interactive),
            ("--ssh", StartsProgram),
            ("--remotecmd", StartsProgram),
            ("--tool", StartsProgram),
        ],
        flags: "vqynAU",
        values: "mrRuXIlb",
        subs: Subs::Denied(&[
            sub("extdiff", StartsProgram),
            sub("debugshell", InlineCode),
            sub("serve", Service),
            sub("shell", Interactive),
            sub_with("util", &["exec"], StartsProgram),
            sub_with("config", &["set", "edit", "unset"], Settings),
        ]),
        ..BASE
    },
    Table {
        names: &["gh"],
        subs: Subs::Known(
            &[
                "api",
                "attestation",
                "auth",
                "cache",
                "completion",
                "gist",
                "gpg-key",
                "help",
                "issue",
                "label",
                "org",
                "pr",
                "project",
                "release",
                "repo",
                "ruleset",
                "run",
                "search",
                "secret",
                "ssh-key",
                "status",
                "variable",
                "version",
                "workflow",
            ],
            &[
                sub_with("alias", &["set", "import", "delete"], Settings),
                sub_with("config", &["set"], Settings),
                sub_with("extension", &["*"], StartsProgram),
                sub_with("extensions", &["*"], StartsProgram),
                sub_with("ext", &["*"], StartsProgram),
                sub_with("codespace", &["ssh", "code", "cp", "jupyter"], Elsewhere),
                sub_with("cs", &["ssh", "code", "cp", "jupyter"], Elsewhere),
                sub_with("gist", &["edit"], StartsProgram),
                sub("browse", StartsProgram),
            ],
        ),
        // What stands behind it is handed to git.
        exact: &[("--", StartsProgram)],
        long: &[("--web", StartsProgram)],
        long_values: &[
            "--repo",
            "--json",
            "--jq",
            "--template",
            "--limit",
            "--state",
            "--title",
            "--body",
            "--method",
            "--field",
            "--raw-field",
            "--header",
            "--input",
            "--body-file",
            "--branch",
            "--label",
        ],
        short: &[("-w", StartsProgram)],
        flags: "ci",
        values: "RqtLsXFfHBbl",
        ..BASE
    },
];
