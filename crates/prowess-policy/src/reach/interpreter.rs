//! Interpreters: is it a script file, or code from somewhere else?

use super::Kind::{self, Dynamic, InlineCode, InputCode, LoadsCode, StartsProgram, UnknownOption};
use super::engine::{Seen, exact, is_single, seen};
use super::{Call, Reach, farther};
use crate::wrapper::Tail;

/// How an interpreter is called.
struct Interpreter {
    names: &'static [&'static str],
    /// Letters whose argument is code.
    inline: &'static str,
    /// Letters that load other code.
    loads: &'static str,
    /// Letters that read code from the input.
    input: &'static str,
    /// Harmless letters.
    flags: &'static str,
    /// Harmless letters that take the rest of their word.
    attached: &'static str,
    /// Long options whose argument is code.
    long_inline: &'static [&'static str],
    /// Long options that load other code.
    long_loads: &'static [&'static str],
    /// Harmless long options; those ending in `=` carry their value.
    long_flags: &'static [&'static str],
    /// Arguments that, alone, only say something about the program.
    asking: &'static [&'static str],
}

const BASE: Interpreter = Interpreter {
    names: &[],
    inline: "",
    loads: "",
    input: "",
    flags: "",
    attached: "",
    long_inline: &[],
    long_loads: &[],
    long_flags: &[],
    asking: &["--version", "--help", "-h"],
};

const INTERPRETERS: &[Interpreter] = &[
    Interpreter {
        names: &[
            "python",
            "python2",
            "python3",
            "pypy",
            "pypy3",
            "pythonw",
            "py",
            "ipython",
            "ipython3",
            "micropython",
        ],
        inline: "c",
        loads: "mWX",
        input: "i",
        flags: "bBdEIOPqRsSuvx",
        asking: &["--version", "--help", "-h", "-V", "-VV"],
        ..BASE
    },
    Interpreter {
        names: &["node", "nodejs", "iojs"],
        inline: "ep",
        loads: "r",
        input: "i",
        flags: "c",
        long_inline: &["--eval", "--print"],
        long_loads: &[
            "--require",
            "--import",
            "--loader",
            "--experimental-loader",
            "--env-file",
            "--inspect",
            "--inspect-brk",
            "--run",
            "--test",
            "--watch",
            "--build-snapshot",
            "--snapshot-blob",
            "--openssl-config",
        ],
        long_flags: &[
            "--check",
            "--enable-source-maps",
            "--expose-gc",
            "--max-old-space-size=",
            "--no-deprecation",
            "--no-warnings",
            "--preserve-symlinks",
            "--stack-trace-limit=",
            "--throw-deprecation",
            "--trace-deprecation",
            "--trace-uncaught",
            "--trace-warnings",
            "--unhandled-rejections=",
        ],
        asking: &["--version", "--help", "-h", "-v", "--v8-options"],
        ..BASE
    },
    Interpreter {
        names: &["perl", "perl5"],
        inline: "eE",
        loads: "MmIdDxC",
        flags: "acflnpsStTuUwWX01234567",
        attached: "Fi",
        asking: &["--version", "--help", "-h", "-v", "-V"],
        ..BASE
    },
    Interpreter {
        names: &["ruby", "jruby", "truffleruby", "mruby"],
        inline: "e",
        loads: "rICxSX",
        flags: "acdlnpsvwUyW01234567",
        attached: "Fi",
        long_loads: &["--enable", "--disable", "--jit", "--external-encoding"],
        asking: &["--version", "--help", "-h", "-v"],
        ..BASE
    },
    Interpreter {
        names: &["php", "php-cli", "php-cgi", "hhvm"],
        inline: "rBREF",
        loads: "dzcSt",
        input: "a",
        flags: "nqlswCH",
        long_inline: &["--run", "--process-begin", "--process-code", "--process-end"],
        long_loads: &["--define", "--zend-extension", "--php-ini", "--server", "--docroot"],
        asking: &["--version", "--help", "-h", "-v", "-m", "-i", "--ini", "--modules", "--info"],
        ..BASE
    },
    Interpreter {
        names: &["lua", "luajit", "luau", "texlua"],
        inline: "e",
        loads: "lj",
        input: "i",
        flags: "EW",
        attached: "O",
        asking: &["-v", "--version"],
        ..BASE
    },
    Interpreter {
        names: &["rscript", "r", "littler"],
        inline: "e",
        loads: "lg",
        long_inline: &["--eval"],
        long_loads: &["--default-packages", "--file", "--gui", "--debugger"],
        long_flags: &["--vanilla", "--no-save", "--quiet", "--no-restore", "--slave", "--no-echo", "--verbose"],
        ..BASE
    },
    Interpreter {
        names: &["julia"],
        inline: "eE",
        loads: "LJCHmP",
        input: "i",
        flags: "qO0123",
        long_inline: &["--eval", "--print"],
        long_loads: &["--load", "--sysimage", "--project", "--machine-file", "--module"],
        asking: &["--version", "--help", "-h", "-v"],
        ..BASE
    },
    Interpreter {
        names: &[
            "bb",
            "bsh",
            "cling",
            "clisp",
            "clj",
            "clojure",
            "coffee",
            "crystal",
            "d8",
            "ecl",
            "elixir",
            "erl",
            "escript",
            "expect",
            "fennel",
            "gforth",
            "ghci",
            "gjs",
            "gnuplot",
            "groovy",
            "groovysh",
            "guile",
            "iex",
            "irb",
            "janet",
            "jjs",
            "jrunscript",
            "jshell",
            "kotlin",
            "kotlinc",
            "maxima",
            "mongo",
            "mongosh",
            "nashorn",
            "newlisp",
            "nickle",
            "ocaml",
            "octave",
            "osascript",
            "phantomjs",
            "picolisp",
            "pry",
            "qjs",
            "racket",
            "raku",
            "rdmd",
            "runghc",
            "runhaskell",
            "sbcl",
            "scala",
            "scala-cli",
            "scheme",
            "swipl",
            "tclsh",
            "ts-node",
            "tsx",
            "txr",
            "utop",
            "wasmtime",
            "wish",
            "wolframscript",
            "xst",
        ],
        inline: "ecEpr",
        loads: "lmIif",
        long_inline: &["--eval", "--execute", "--code", "--print"],
        long_loads: &["--load", "--require", "--init", "--classpath", "--file"],
        ..BASE
    },
];

pub(super) fn reach(name: &str, call: Call<'_>) -> Option<Reach> {
    match name {
        "java" | "javaw" => return Some(java(call)),
        "deno" => return Some(deno(call)),
        "bun" => return Some(bun(call)),
        _ => {}
    }
    INTERPRETERS.iter().find_map(|interpreter| {
        let program = interpreter.names.iter().find(|known| **known == name)?;
        Some(interpreter.reach(program, call))
    })
}

fn asks(call: Call<'_>, asking: &[&str]) -> bool {
    let [only] = call.args else { return false };
    call.tail == Tail::Closed && exact(only).is_some_and(|text| asking.contains(&text))
}

impl Interpreter {
    fn reach(&self, program: &'static str, call: Call<'_>) -> Reach {
        if asks(call, self.asking) {
            return Reach::Plain;
        }
        for (at, word) in call.args.iter().enumerate() {
            let text = match seen(word) {
                Seen::Exact("-") => return farther(InputCode, program, "-", Some(at)),
                Seen::Exact("--") => return script(program, call, at + 1),
                Seen::Exact(text) if text.starts_with('-') => text,
                Seen::Exact(_) | Seen::Begins(_) | Seen::One | Seen::Anything => return script(program, call, at),
            };
            if let Err((kind, part)) = self.option(text) {
                return farther(kind, program, part, Some(at));
            }
        }
        farther(InputCode, program, "", None)
    }

    fn option(&self, text: &str) -> Result<(), (Kind, &'static str)> {
        if text.starts_with("--") {
            let name = text.split('=').next().unwrap_or(text);
            let found = |list: &'static [&'static str]| list.iter().find(|option| option.starts_with(name)).copied();
            let is_flag = self.long_flags.iter().any(|flag| match flag.strip_suffix('=') {
                Some(valued) => valued == name && text.len() > name.len() + 1,
                None => *flag == text,
            });
            return match (found(self.long_inline), found(self.long_loads)) {
                _ if is_flag => Ok(()),
                (Some(option), _) => Err((InlineCode, option)),
                (None, Some(option)) => Err((LoadsCode, option)),
                (None, None) => Err((UnknownOption, "")),
            };
        }
        for letter in text[1..].chars() {
            if self.attached.contains(letter) {
                return Ok(());
            }
            let kind = if self.inline.contains(letter) {
                InlineCode
            } else if self.loads.contains(letter) {
                LoadsCode
            } else if self.input.contains(letter) {
                InputCode
            } else if self.flags.contains(letter) {
                continue;
            } else {
                UnknownOption
            };
            return Err((kind, dashed(letter)));
        }
        Ok(())
    }
}

/// The option of this letter, to speak of.
fn dashed(letter: char) -> &'static str {
    const OPTIONS: &[&str] =
        &["-c", "-e", "-E", "-p", "-r", "-m", "-i", "-M", "-I", "-B", "-R", "-F", "-l", "-d", "-X", "-W"];
    OPTIONS.iter().find(|option| option.ends_with(letter)).copied().unwrap_or_default()
}

/// The script file at `at`, or what stands there instead.
fn script(program: &'static str, call: Call<'_>, at: usize) -> Reach {
    match call.args.get(at).map(seen) {
        None => farther(InputCode, program, "", None),
        Some(Seen::Exact(text)) if is_file(text) => Reach::Script(at),
        // Not a file, but a way to hand over code without one.
        Some(Seen::Exact(_)) => farther(InputCode, program, "", Some(at)),
        Some(Seen::Begins(_) | Seen::One | Seen::Anything) => farther(Dynamic, program, "", Some(at)),
    }
}

fn is_file(text: &str) -> bool {
    !text.is_empty()
        && text != "-"
        && !text.starts_with("/dev/")
        && !text.starts_with("/proc/")
        && !text.contains("://")
}

fn java(call: Call<'_>) -> Reach {
    if asks(call, &["-version", "--version", "-help", "--help", "-showversion"]) {
        return Reach::Plain;
    }
    match call.args.first().and_then(exact) {
        Some("-jar") => script("java", call, 1),
        Some(text) if !text.starts_with('-') && text.contains(".java") => script("java", call, 0),
        _ => farther(LoadsCode, "java", "", None),
    }
}

fn deno(call: Call<'_>) -> Reach {
    const HARMLESS: &[&str] =
        &["check", "doc", "fmt", "info", "lint", "task", "test", "types", "outdated", "help", "cache"];
    if asks(call, &["--version", "-V", "--help", "-h"]) {
        return Reach::Plain;
    }
    match call.args.first().and_then(exact) {
        Some("eval") => farther(InlineCode, "deno", "eval", Some(0)),
        Some("repl") | None => farther(InputCode, "deno", "", None),
        Some("run") => {
            let at = 1 + call.args[1..].iter().take_while(|word| exact(word).is_some_and(is_deno_flag)).count();
            match call.args.get(at).and_then(exact) {
                Some(text) if text.starts_with('-') => farther(LoadsCode, "deno", "run", Some(at)),
                _ => script("deno", call, at),
            }
        }
        Some(sub) if HARMLESS.contains(&sub) => {
            let loads =
                ["--config", "--import-map", "--preload", "--require", "--eval", "--env-file", "--allow-run", "-A"];
            only_without(call, "deno", &loads)
        }
        Some(_) => farther(Kind::UnknownSubcommand, "deno", "", Some(0)),
    }
}

fn is_deno_flag(text: &str) -> bool {
    let harmless =
        ["--allow-net", "--allow-read", "--allow-env", "--quiet", "--no-check", "--cached-only", "-q", "--no-prompt"];
    harmless.iter().any(|flag| text == *flag || text.strip_prefix(flag).is_some_and(|rest| rest.starts_with('=')))
}

fn bun(call: Call<'_>) -> Reach {
    const HARMLESS: &[&str] = &[
        "a", "add", "audit", "build", "i", "install", "link", "outdated", "pm", "publish", "remove", "rm", "run",
        "test", "unlink", "update", "why",
    ];
    if asks(call, &["--version", "-v", "--help", "-h", "--revision"]) {
        return Reach::Plain;
    }
    let loads = [
        "--preload",
        "-r",
        "--require",
        "--import",
        "-e",
        "--eval",
        "-p",
        "--print",
        "--config",
        "-c",
        "--define",
        "--shell",
    ];
    match call.args.first().and_then(exact) {
        Some("x" | "create" | "c" | "exec" | "repl" | "init") => farther(StartsProgram, "bun", "x", Some(0)),
        // The name of a script in the package; with a dot or a slash it may be a file.
        Some("run") => match call.args.get(1).and_then(exact) {
            Some(name) if !name.starts_with('-') && !name.contains(['.', '/']) => only_without(call, "bun", &loads),
            Some(name) if !name.starts_with('-') => script("bun", call, 1),
            _ => farther(InputCode, "bun", "run", Some(0)),
        },
        Some(sub) if HARMLESS.contains(&sub) => only_without(call, "bun", &loads),
        Some(text) if text.starts_with('-') => farther(InlineCode, "bun", "", Some(0)),
        Some(text) if text.contains(['.', '/']) => script("bun", call, 0),
        Some(_) => farther(Kind::UnknownSubcommand, "bun", "", Some(0)),
        None => farther(InputCode, "bun", "", None),
    }
}

/// Plain unless one of these options is, or may be, among the arguments.
fn only_without(call: Call<'_>, program: &'static str, denied: &[&'static str]) -> Reach {
    for (at, word) in call.args.iter().enumerate() {
        let found = match seen(word) {
            Seen::Exact(text) => denied.iter().find(|option| text.starts_with(**option)),
            Seen::Begins(text) if is_single(word) && !text.starts_with('-') => None,
            Seen::Begins(_) | Seen::One | Seen::Anything => return farther(Dynamic, program, "", Some(at)),
        };
        if let Some(option) = found {
            return farther(LoadsCode, program, option, Some(at));
        }
    }
    match call.tail {
        Tail::Closed => Reach::Plain,
        Tail::Open => farther(Kind::OpenTail, program, "", None),
    }
}
