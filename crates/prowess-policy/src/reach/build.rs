//! Programs that build: compilers, linkers and what drives them.

use super::Kind::{
    Dynamic, InlineCode, InputCode, LoadsCode, OpenTail, Service, Settings, StartsProgram, UnknownOption,
};
use super::engine::{BASE, Dashes, Style, Subs, Table, exact, sub, sub_with};
use super::{Call, Reach, farther};
use crate::wrapper::Tail;

/// `make` runs what a file says. Which file and with which variables must be plain from its arguments.
pub(super) fn make(call: Call<'_>) -> Option<Reach> {
    if call.tail == Tail::Open {
        return Some(farther(OpenTail, "make", "", None));
    }
    let mut words = call.args.iter().enumerate();
    while let Some((at, word)) = words.next() {
        let Some(text) = exact(word) else { return Some(farther(Dynamic, "make", "", Some(at))) };
        let names_file = text.starts_with("--f") || text.starts_with("--mak") || text.starts_with("--ma");
        let is_cluster = text.starts_with('-') && !text.starts_with("--") && text.contains('f');
        let file = match text.split_once('=') {
            Some((option, file)) if names_file && option.starts_with("--") => Some(file),
            _ if names_file || text == "-f" => words.next().and_then(|(_, file)| exact(file)),
            _ if is_cluster => None,
            Some((name, value)) if !text.starts_with('-') => {
                let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
                if !name.bytes().all(is_name) || value.contains(['$', '`', ';', '|', '&', '<', '>', '#', '(', '\n']) {
                    return Some(farther(InlineCode, "make", "NAME=value", Some(at)));
                }
                continue;
            }
            _ => continue,
        };
        if file.is_none_or(|file| file == "-" || file.starts_with('/') || file.contains("..")) {
            return Some(farther(InputCode, "make", "-f", Some(at)));
        }
    }
    None
}

pub(super) const TABLES: &[Table] = &[
    Table {
        names: &["make", "gmake", "bmake", "remake"],
        long: &[("--eval", InlineCode)],
        short: &[("-E", InlineCode)],
        flags: "bBdeikLmnpqrRsStvw",
        values: "CfIjloW",
        long_flags: &["--environment-overrides", "--silent", "--always-make", "--dry-run", "--keep-going"],
        long_values: &["--directory"],
        exact: &[("-", InputCode), ("-f-", InputCode), ("--file=-", InputCode), ("--makefile=-", InputCode)],
        starts: &[
            ("SHELL=", StartsProgram),
            ("SHELL:", StartsProgram),
            ("SHELL?", StartsProgram),
            ("SHELL+", StartsProgram),
            (".SHELLFLAGS", StartsProgram),
            ("MAKE=", StartsProgram),
            ("MAKEFLAGS", StartsProgram),
            ("MAKEFILES", LoadsCode),
            ("CC=", StartsProgram),
            ("CXX=", StartsProgram),
            ("CPP=", StartsProgram),
            ("LD=", StartsProgram),
            ("AR=", StartsProgram),
            ("AS=", StartsProgram),
            ("RM=", StartsProgram),
            ("FC=", StartsProgram),
            ("LEX=", StartsProgram),
            ("YACC=", StartsProgram),
            ("INSTALL=", StartsProgram),
            ("PYTHON=", StartsProgram),
            ("NODE=", StartsProgram),
            ("GO=", StartsProgram),
            ("CARGO=", StartsProgram),
        ],
        contains: &[
            ("$(", InlineCode),
            ("${", InlineCode),
            ("`", InlineCode),
            (";", InlineCode),
            ("|", InlineCode),
            ("&", InlineCode),
        ],
        ..BASE
    },
    Table {
        names: &["ninja", "samu"],
        flags: "nvwh",
        values: "CjklfdtP",
        exact: &[("browse", Service), ("-tbrowse", Service)],
        ..BASE
    },
    Table {
        names: &["just"],
        long: &[
            ("--command", StartsProgram),
            ("--shell", StartsProgram),
            ("--shell-command", StartsProgram),
            ("--shell-arg", StartsProgram),
            ("--set", InlineCode),
            ("--chooser", StartsProgram),
            ("--choose", StartsProgram),
            ("--edit", StartsProgram),
            ("--evaluate-expression", InlineCode),
            ("--cygpath", StartsProgram),
        ],
        short: &[("-c", StartsProgram), ("-e", StartsProgram)],
        flags: "lnqvup",
        values: "fdj",
        ..BASE
    },
    Table {
        names: &["cmake", "cmake3"],
        short: &[("-P", LoadsCode), ("-E", StartsProgram), ("-C", LoadsCode)],
        flags: "NLhW",
        values: "SBGDUATj",
        long_flags: &["--build", "--install", "--fresh", "--version"],
        long_values: &["--config", "--target", "--parallel", "--preset", "--prefix"],
        contains: &[
            ("_launcher", StartsProgram),
            ("cmake_make_program", StartsProgram),
            ("_compiler=", StartsProgram),
            ("_compiler:", StartsProgram),
            ("cmake_toolchain_file", LoadsCode),
            ("cmake_project_", LoadsCode),
            ("cmake_module_path", LoadsCode),
            ("shell=", StartsProgram),
            ("--eval", InlineCode),
        ],
        ..BASE
    },
    Table {
        names: &["gcc", "g++", "cc", "c++", "clang", "clang++", "cpp", "gfortran", "tcc"],
        style: Style::Words,
        dashes: Dashes::Nothing,
        long: &[("-wrapper", StartsProgram), ("-load", LoadsCode), ("-run", StartsProgram), ("-x", UnknownOption)],
        long_values: &["-o", "-I", "-L", "-l", "-D", "-U", "-MF", "-MT", "-include", "-isystem"],
        long_flags: &[
            "-c", "-S", "-E", "-g", "-O0", "-O1", "-O2", "-O3", "-Os", "-Wall", "-Wextra", "-Werror", "-shared",
        ],
        starts: &[
            ("@", LoadsCode),
            ("-B", StartsProgram),
            ("-fplugin", LoadsCode),
            ("-fpass-plugin", LoadsCode),
            ("-iplugindir", LoadsCode),
            ("-specs", LoadsCode),
            ("--specs", LoadsCode),
            ("-no-canonical-prefixes", StartsProgram),
            ("-fuse-ld=/", StartsProgram),
            ("--ld-path", StartsProgram),
            ("--gcc-toolchain", StartsProgram),
            ("--config", LoadsCode),
            ("--prefix", StartsProgram),
            ("-Wl,-plugin", LoadsCode),
            ("-Wl,--plugin", LoadsCode),
            ("-Wl,@", LoadsCode),
            ("-wrapper", StartsProgram),
            ("-plugin", LoadsCode),
            ("--plugin", LoadsCode),
        ],
        ..BASE
    },
    Table {
        names: &["ld", "gold", "lld", "ld.lld", "ld.bfd", "ld.gold"],
        style: Style::Words,
        dashes: Dashes::Nothing,
        long: &[("-plugin", LoadsCode), ("--plugin", LoadsCode), ("-load-pass-plugin", LoadsCode)],
        starts: &[("@", LoadsCode), ("-plugin", LoadsCode), ("--plugin", LoadsCode), ("--load-pass-plugin", LoadsCode)],
        ..BASE
    },
    Table {
        names: &["rustc", "rustdoc"],
        long: &[("--codegen", StartsProgram), ("--test-runtool", StartsProgram), ("--runtool", StartsProgram)],
        short: &[("-Z", LoadsCode)],
        flags: "gOvV",
        values: "LloAWDFC",
        long_flags: &["--crate-name", "--test"],
        contains: &[("linker=", StartsProgram), ("rustc_wrapper", StartsProgram), ("runtool", StartsProgram)],
        starts: &[("@", LoadsCode)],
        ..BASE
    },
    Table {
        names: &["cargo"],
        long: &[("--config", StartsProgram)],
        short: &[("-Z", LoadsCode)],
        flags: "qvVrl",
        values: "jpFC",
        long_flags: &[
            "--release",
            "--workspace",
            "--all",
            "--all-targets",
            "--all-features",
            "--locked",
            "--offline",
            "--lib",
        ],
        long_values: &[
            "--package",
            "--features",
            "--manifest-path",
            "--target",
            "--test",
            "--bin",
            "--example",
            "--color",
        ],
        starts: &[("+/", LoadsCode), ("+.", LoadsCode), ("+~", LoadsCode)],
        subs: Subs::Known(
            &[
                "+beta",
                "+nightly",
                "+stable",
                "add",
                "audit",
                "b",
                "bench",
                "build",
                "c",
                "check",
                "clean",
                "clippy",
                "d",
                "deny",
                "doc",
                "fetch",
                "fix",
                "fmt",
                "generate-lockfile",
                "help",
                "info",
                "init",
                "locate-project",
                "login",
                "logout",
                "machete",
                "metadata",
                "new",
                "nextest",
                "outdated",
                "owner",
                "package",
                "pkgid",
                "publish",
                "read-manifest",
                "remove",
                "report",
                "rm",
                "search",
                "t",
                "test",
                "tree",
                "update",
                "vendor",
                "verify-project",
                "version",
                "yank",
            ],
            &[
                sub("run", StartsProgram),
                sub("r", StartsProgram),
                sub("install", LoadsCode),
                sub("rustc", StartsProgram),
                sub("miri", StartsProgram),
            ],
        ),
        ..BASE
    },
    Table {
        names: &["rustup"],
        subs: Subs::Denied(&[
            sub("run", StartsProgram),
            sub("default", Settings),
            sub_with("toolchain", &["link", "install"], Settings),
            sub_with("override", &["set", "add"], Settings),
            sub_with("set", &["*"], Settings),
        ]),
        ..BASE
    },
    Table {
        names: &["go"],
        style: Style::Words,
        long: &[
            ("-toolexec", StartsProgram),
            ("-exec", StartsProgram),
            ("-vettool", StartsProgram),
            ("-overlay", LoadsCode),
            ("-modfile", LoadsCode),
            ("-compiler", StartsProgram),
            ("-u", Settings),
            ("-w", Settings),
        ],
        contains: &[("-extld", StartsProgram), ("-plugin", LoadsCode), ("-fplugin", LoadsCode)],
        long_flags: &["-v", "-x", "-n", "-a", "-race", "-short", "-cover", "-json", "-m", "-trimpath", "-i"],
        long_values: &["-o", "-tags", "-ldflags", "-run", "-bench", "-count", "-timeout", "-p", "-C", "-mod", "-f"],
        subs: Subs::Known(
            &[
                "build", "clean", "doc", "env", "fix", "fmt", "get", "help", "install", "list", "mod", "test",
                "version", "vet", "work",
            ],
            &[
                sub("run", StartsProgram),
                sub("generate", StartsProgram),
                sub("tool", StartsProgram),
                sub("bug", StartsProgram),
            ],
        ),
        ..BASE
    },
    Table {
        names: &["gradle", "gradlew"],
        long: &[("--init-script", LoadsCode), ("--include-build", LoadsCode), ("--build-file", LoadsCode)],
        short: &[("-I", LoadsCode), ("-b", LoadsCode)],
        flags: "qidsamtwS",
        values: "pxgPD",
        starts: &[("-Dorg.gradle.jvmargs", LoadsCode), ("-Dorg.gradle.java.home", StartsProgram)],
        ..BASE
    },
    Table {
        names: &["mvn", "mvnw", "mvnd"],
        short: &[("-s", LoadsCode)],
        long: &[("--settings", LoadsCode), ("--global-settings", LoadsCode)],
        flags: "BCeNoqUVX",
        values: "DPflTt",
        contains: &[
            ("exec:", StartsProgram),
            ("exec-maven", StartsProgram),
            ("antrun", StartsProgram),
            ("groovy", InlineCode),
            ("exec.", StartsProgram),
        ],
        ..BASE
    },
    Table {
        names: &["dotnet"],
        subs: Subs::Known(
            &[
                "add", "build", "clean", "format", "help", "list", "new", "nuget", "pack", "publish", "remove",
                "restore", "sln", "test",
            ],
            &[
                sub("run", StartsProgram),
                sub("exec", StartsProgram),
                sub("tool", StartsProgram),
                sub("script", StartsProgram),
                sub("fsi", InlineCode),
                sub("watch", StartsProgram),
                sub("msbuild", StartsProgram),
            ],
        ),
        starts: &[("@", LoadsCode), ("--additional", LoadsCode), ("-r:", LoadsCode)],
        ..BASE
    },
    Table {
        names: &["javac"],
        style: Style::Words,
        starts: &[
            ("-J", LoadsCode),
            ("@", LoadsCode),
            ("-processor", LoadsCode),
            ("--processor", LoadsCode),
            ("-Xplugin", LoadsCode),
        ],
        ..BASE
    },
    Table {
        names: &["tex", "latex", "pdftex", "pdflatex", "xetex", "xelatex", "luatex", "lualatex", "context"],
        style: Style::Both,
        long: &[
            ("--shell-escape", StartsProgram),
            ("--enable-write18", StartsProgram),
            ("--shell-restricted", StartsProgram),
            ("--lua", LoadsCode),
            ("--luaconly", LoadsCode),
            ("--luaonly", LoadsCode),
        ],
        contains: &[("write18", StartsProgram), ("\\input", LoadsCode), ("directlua", InlineCode)],
        dashes: Dashes::Nothing,
        ..BASE
    },
    Table {
        names: &["latexmk", "arara"],
        style: Style::Both,
        long: &[
            ("--shell-escape", StartsProgram),
            ("--latex", StartsProgram),
            ("--pdflatex", StartsProgram),
            ("--usepretex", InlineCode),
        ],
        long_flags: &["-pdf", "-lualatex", "-xelatex", "-silent", "-quiet"],
        short: &[("-e", InlineCode), ("-r", LoadsCode)],
        ..BASE
    },
    Table {
        names: &["pandoc"],
        long: &[
            ("--filter", StartsProgram),
            ("--lua-filter", LoadsCode),
            ("--pdf-engine", StartsProgram),
            ("--defaults", LoadsCode),
            ("--extract-media", UnknownOption),
        ],
        short: &[("-F", StartsProgram), ("-L", LoadsCode), ("-d", LoadsCode)],
        flags: "sNipv",
        values: "frtowVMHBAcTD",
        long_values: &["--pdf-engine-opt", "--from", "--to", "--output"],
        contains: &[(".lua", LoadsCode)],
        ..BASE
    },
    Table {
        names: &["gs", "ghostscript"],
        style: Style::Words,
        dashes: Dashes::Nothing,
        starts: &[
            ("-dNOSAFER", StartsProgram),
            ("-dDELAYSAFER", StartsProgram),
            ("-dSAFER=f", StartsProgram),
            ("-c", InlineCode),
            ("%pipe%", StartsProgram),
            ("@", LoadsCode),
        ],
        contains: &[("%pipe", StartsProgram), ("--permit", StartsProgram)],
        ..BASE
    },
    Table {
        names: &[
            "eslint",
            "prettier",
            "mocha",
            "jest",
            "vitest",
            "webpack",
            "rollup",
            "vite",
            "babel",
            "stylelint",
            "ava",
        ],
        long: &[
            ("--config", LoadsCode),
            ("--require", LoadsCode),
            ("--import", LoadsCode),
            ("--plugin", LoadsCode),
            ("--rulesdir", LoadsCode),
            ("--formatter", LoadsCode),
            ("--format", LoadsCode),
            ("--parser", LoadsCode),
            ("--resolve-plugins-relative-to", LoadsCode),
            ("--loader", LoadsCode),
            ("--node-option", LoadsCode),
            ("--resolver", LoadsCode),
            ("--runner", LoadsCode),
            ("--globalSetup", LoadsCode),
            ("--setupFiles", LoadsCode),
            ("--transform", LoadsCode),
            ("--reporter", LoadsCode),
        ],
        short: &[("-c", LoadsCode), ("-r", LoadsCode), ("-f", LoadsCode)],
        flags: "wuibt",
        ..BASE
    },
    Table {
        names: &["pytest", "py.test"],
        long: &[
            ("--config-file", LoadsCode),
            ("--override-ini", LoadsCode),
            ("--rootdir", LoadsCode),
            ("--confcutdir", LoadsCode),
            ("--pdbcls", LoadsCode),
            ("--pdb", InlineCode),
            ("--basetemp", UnknownOption),
        ],
        short: &[("-p", LoadsCode), ("-c", LoadsCode), ("-o", LoadsCode)],
        flags: "vqxslh",
        values: "kmnrW",
        ..BASE
    },
    Table {
        names: &["rake"],
        long: &[
            ("--execute", InlineCode),
            ("--execute-print", InlineCode),
            ("--execute-continue", InlineCode),
            ("--require", LoadsCode),
            ("--rakefile", LoadsCode),
            ("--libdir", LoadsCode),
            ("--rakelib", LoadsCode),
        ],
        short: &[
            ("-e", InlineCode),
            ("-E", InlineCode),
            ("-p", InlineCode),
            ("-r", LoadsCode),
            ("-f", LoadsCode),
            ("-I", LoadsCode),
            ("-R", LoadsCode),
        ],
        flags: "ANPTqsvn",
        values: "CDjWm",
        ..BASE
    },
];
