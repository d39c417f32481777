//! Documents, pictures, sound, browsers and mail.

use super::Kind::{self, Deletes, InlineCode, Interactive, LoadsCode, Service, Settings, StartsProgram, Writes};
use super::engine::{BASE, Dashes, Style, Subs, Table, sub};

pub(super) const ALWAYS: &[(&str, Kind)] = &[
    ("alpine", Interactive),
    ("conjure", LoadsCode),
    ("electron", LoadsCode),
    ("mail", Interactive),
    ("mailx", Interactive),
    ("mutt", Interactive),
    ("neomutt", Interactive),
    ("pine", Interactive),
    ("rofi", StartsProgram),
    ("s-nail", Interactive),
    ("xdotool", Service),
    ("ydotool", Service),
];

pub(super) const TABLES: &[Table] = &[
    Table {
        names: &["groff", "troff", "nroff", "gtroff", "gnroff", "pic", "gpic"],
        long: &[("--unsafe", StartsProgram)],
        short: &[("-U", StartsProgram), ("-X", StartsProgram), ("-l", StartsProgram)],
        flags: "abcCeEgGikNpRsStVzZ",
        values: "dDfFIKLmMnoPrTwW",
        ..BASE
    },
    Table {
        names: &["dvips"],
        style: Style::Words,
        starts: &[
            ("-R0", StartsProgram),
            ("-o!", StartsProgram),
            ("-o|", StartsProgram),
            ("!", StartsProgram),
            ("|", StartsProgram),
        ],
        ..BASE
    },
    Table {
        names: &["mpv", "mplayer", "mencoder"],
        style: Style::Words,
        long: &[
            ("--include", LoadsCode),
            ("--config-dir", LoadsCode),
            ("--input-conf", LoadsCode),
            ("--input-commands", InlineCode),
            ("--input-ipc-server", Service),
            ("--input-ipc-client", Service),
            ("--input-file", InlineCode),
            ("-input", InlineCode),
            ("--log-file", Writes),
            ("--record-file", Writes),
            ("--stream-record", Writes),
            ("--stream-dump", Writes),
            ("-dumpfile", Writes),
            ("--dump-stats", Writes),
            ("--o", Writes),
        ],
        starts: &[
            ("--script", LoadsCode),
            ("-script", LoadsCode),
            ("--ytdl-raw-options", StartsProgram),
            ("-ytdl-raw-options", StartsProgram),
            ("--vf=vapoursynth", LoadsCode),
            ("--vf-append=vapoursynth", LoadsCode),
        ],
        long_flags: &["--no-video", "--no-audio", "--really-quiet", "--fs", "--loop"],
        ..BASE
    },
    Table {
        names: &["vlc", "cvlc", "nvlc", "rvlc"],
        long: &[
            ("--intf", Service),
            ("--extraintf", Service),
            ("--control", Service),
            ("--plugin-path", LoadsCode),
            ("--config", LoadsCode),
            ("--logfile", Writes),
            ("--sout", Writes),
            ("--lua-config", LoadsCode),
        ],
        short: &[("-I", Service)],
        ..BASE
    },
    Table {
        names: &[
            "chromium",
            "chromium-browser",
            "chrome",
            "google-chrome",
            "google-chrome-stable",
            "google-chrome-beta",
            "microsoft-edge",
            "brave-browser",
        ],
        style: Style::Words,
        long: &[
            ("--renderer-cmd-prefix", StartsProgram),
            ("--utility-cmd-prefix", StartsProgram),
            ("--zygote-cmd-prefix", StartsProgram),
            ("--nacl-loader-cmd-prefix", StartsProgram),
            ("--gpu-launcher", StartsProgram),
            ("--ppapi-plugin-launcher", StartsProgram),
            ("--plugin-launcher", StartsProgram),
            ("--browser-subprocess-path", StartsProgram),
            ("--nacl-gdb", StartsProgram),
            ("--load-extension", LoadsCode),
            ("--load-component-extension", LoadsCode),
            ("--load-and-launch-app", LoadsCode),
            ("--load-apps", LoadsCode),
            ("--register-pepper-plugins", LoadsCode),
            ("--extra-plugin-dir", LoadsCode),
            ("--user-data-dir", LoadsCode),
            ("--remote-debugging-port", Service),
            ("--remote-debugging-pipe", Service),
            ("--remote-debugging-address", Service),
            ("--repl", Interactive),
        ],
        long_flags: &["--headless", "--disable-gpu", "--no-first-run", "--incognito"],
        ..BASE
    },
    Table {
        names: &["firefox", "firefox-esr", "thunderbird"],
        style: Style::Words,
        long: &[
            ("--profile", LoadsCode),
            ("--app", LoadsCode),
            ("--remote-debugging-port", Service),
            ("--marionette", Service),
            ("--start-debugger-server", Service),
            ("--backgroundtask", LoadsCode),
        ],
        ..BASE
    },
    Table {
        names: &["code", "codium", "code-insiders", "cursor", "windsurf"],
        long: &[
            ("--install-extension", LoadsCode),
            ("--extensions-dir", LoadsCode),
            ("--extensionDevelopmentPath", LoadsCode),
            ("--extensionTestsPath", LoadsCode),
            ("--user-data-dir", LoadsCode),
            ("--remote", Service),
        ],
        long_flags: &["--list-extensions", "--reuse-window"],
        subs: Subs::Denied(&[sub("tunnel", Service), sub("serve-web", Service), sub("ext", LoadsCode)]),
        ..BASE
    },
    Table {
        names: &["lynx", "elinks", "links", "w3m"],
        style: Style::Words,
        long: &[
            ("-editor", StartsProgram),
            ("-exec", StartsProgram),
            ("-localexec", StartsProgram),
            ("-cfg", LoadsCode),
            ("-lss", LoadsCode),
            ("-cmd_script", InlineCode),
            ("-cmd_log", Writes),
            ("-eval", InlineCode),
            ("-remote", Service),
            ("-config-file", LoadsCode),
            ("-config-dir", LoadsCode),
            ("-config", LoadsCode),
            ("-o", StartsProgram),
        ],
        starts: &[("lynxexec:", StartsProgram), ("lynxprog:", StartsProgram), ("-lookup", LoadsCode)],
        long_flags: &["-dump", "-nolist", "-source", "-head", "-accept_all_cookies"],
        long_values: &["-T", "-cols", "-width", "-dump-width"],
        ..BASE
    },
    Table {
        names: &[
            "convert",
            "magick",
            "mogrify",
            "identify",
            "composite",
            "montage",
            "compare",
            "display",
            "animate",
            "import",
            "gm",
        ],
        style: Style::Words,
        dashes: Dashes::Nothing,
        long: &[("-script", LoadsCode), ("-process", LoadsCode)],
        exact: &[("conjure", LoadsCode), ("batch", LoadsCode)],
        starts: &[("|", StartsProgram), ("@", LoadsCode)],
        contains: &[
            ("ephemeral:", Deletes),
            ("msl:", LoadsCode),
            ("script:", LoadsCode),
            ("show:", StartsProgram),
            (":|", StartsProgram),
        ],
        ..BASE
    },
    Table { names: &["sox", "soxi", "play", "rec"], starts: &[("|", StartsProgram)], ..BASE },
    Table {
        names: &["soffice", "libreoffice", "lowriter", "localc"],
        style: Style::Words,
        long: &[("--accept", Service), ("--infilter", LoadsCode)],
        starts: &[
            ("macro:", LoadsCode),
            ("vnd.sun.star.script:", LoadsCode),
            ("-env:", Settings),
            ("service:", LoadsCode),
        ],
        long_values: &["--convert-to", "--outdir"],
        ..BASE
    },
    Table {
        names: &["inkscape", "gimp"],
        long: &[
            ("--shell", Interactive),
            ("--actions", InlineCode),
            ("--actions-file", InlineCode),
            ("--batch", InlineCode),
            ("--batch-interpreter", InlineCode),
            ("--gimprc", LoadsCode),
        ],
        short: &[("-b", InlineCode)],
        values: "ow",
        ..BASE
    },
    Table {
        names: &["blender"],
        style: Style::Words,
        long: &[
            ("--python", LoadsCode),
            ("--python-expr", InlineCode),
            ("--python-text", LoadsCode),
            ("--python-console", Interactive),
            ("--enable-autoexec", LoadsCode),
            ("--addons", LoadsCode),
            ("-P", LoadsCode),
            ("-y", LoadsCode),
            ("--command", LoadsCode),
        ],
        ..BASE
    },
    Table {
        names: &["asciidoctor", "asciidoctor-pdf", "jekyll", "sphinx-build"],
        long: &[
            ("--require", LoadsCode),
            ("--load-path", LoadsCode),
            ("--template-dir", LoadsCode),
            ("--template-engine", LoadsCode),
            ("--plugins", LoadsCode),
            ("--config", LoadsCode),
            ("--conf-dir", LoadsCode),
        ],
        short: &[("-r", LoadsCode), ("-I", LoadsCode), ("-T", LoadsCode), ("-c", LoadsCode)],
        flags: "qvsnWEN",
        values: "abBdoDjt",
        ..BASE
    },
    Table {
        names: &["i3-msg", "swaymsg", "hyprctl", "bspc"],
        contains: &[("exec", StartsProgram), ("bindsym", Settings), ("keyword", Settings), ("rule", Settings)],
        ..BASE
    },
    Table { names: &["dosbox"], style: Style::Words, long: &[("-c", StartsProgram), ("-conf", LoadsCode)], ..BASE },
];
