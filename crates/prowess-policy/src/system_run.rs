//! `system.run` on a node: which command is this, and how is it shown?
//!
//! A request carries an argument list and perhaps a text that claims to be the same. What is shown to a person is
//! always made from the argument list. A shell with inline text is shown as that text, but only when the text is all
//! there is to it: no variables set before it, no arguments behind it, no option that makes the shell read something
//! else, and the system's own shell. A claim that differs from what is shown is refused.

use std::iter::Peekable;
use std::slice::Iter;

/// The most wrappers that are looked through.
const MAX_DEPTH: usize = 4;

/// Folders whose shells are taken for what their names say.
const SHELL_DIRS: &[&str] =
    &["", "/bin/", "/usr/bin/", "/usr/local/bin/", "/sbin/", "/usr/sbin/", "c:/windows/system32/"];

/// A command for a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemRun {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The text that a shell runs, or all of the command where the text alone would not tell; none without a shell.
    pub shell_text: Option<String>,
    /// What a person is shown.
    pub display: String,
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SystemRunError {
    /// A text without an argument list.
    #[error("rawCommand requires params.command")]
    MissingCommand,
    /// The text is not what the argument list says.
    #[error("INVALID_REQUEST: rawCommand does not match command")]
    RawMismatch {
        /// The text of the request.
        raw: String,
        /// What it should be.
        inferred: String,
    },
}

impl SystemRunError {
    /// The code on the wire.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::MissingCommand => "MISSING_COMMAND",
            Self::RawMismatch { .. } => "RAW_COMMAND_MISMATCH",
        }
    }
}

/// Reads a request; `raw` is the text that claims to be the command.
pub fn resolve(command: &[String], raw: Option<&str>) -> Result<SystemRun, SystemRunError> {
    let raw = raw.map(str::trim).filter(|raw| !raw.is_empty());
    if command.is_empty() && raw.is_some() {
        return Err(SystemRunError::MissingCommand);
    }
    let (display, shell_text) = match inline(command, 0) {
        Inline::None => (render(command), None),
        Inline::Whole(text) => (text.clone(), Some(text)),
        Inline::Part => (render(command), Some(render(command))),
    };
    match raw {
        Some(raw) if raw != display.trim() => {
            Err(SystemRunError::RawMismatch { raw: raw.to_owned(), inferred: display })
        }
        _ => Ok(SystemRun { argv: command.to_vec(), shell_text, display }),
    }
}

/// An argument list as one line, quoted as the peer does.
#[must_use]
pub fn render(argv: &[String]) -> String {
    let quoted = argv.iter().map(|arg| {
        let is_plain = !arg.is_empty() && !arg.contains(|c: char| c.is_whitespace() || c == '"');
        if is_plain { arg.clone() } else { format!("\"{}\"", arg.replace('"', "\\\"")) }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

/// The text that a command gives to a shell.
enum Inline {
    /// There is no shell, or none with inline text.
    None,
    /// The shell runs exactly this.
    Whole(String),
    /// The shell runs a text, but that is not the whole truth.
    Part,
}

impl Inline {
    fn part_if(self, is_part: bool) -> Self {
        match self {
            Self::Whole(_) if is_part => Self::Part,
            other => other,
        }
    }
}

fn inline(command: &[String], depth: usize) -> Inline {
    let Some((program, args)) = command.split_first() else { return Inline::None };
    let (dir, name) = split(program);
    let found = match name.as_str() {
        "ash" | "bash" | "dash" | "fish" | "hush" | "ksh" | "sh" | "zsh" => posix_text(args),
        "powershell" | "pwsh" => powershell_text(args),
        "cmd" => cmd_text(args),
        // Whatever is behind so many wrappers, nobody has looked at it.
        "busybox" | "env" | "nice" | "nohup" | "stdbuf" | "timeout" | "toybox" if depth == MAX_DEPTH => Inline::Part,
        "busybox" | "toybox" => {
            let applet = if args.first().is_some_and(|arg| arg == "--") { &args[1..] } else { args };
            let is_shell = applet.first().is_some_and(|name| matches!(name.as_str(), "ash" | "bash" | "hush" | "sh"));
            if is_shell { inline(applet, depth + 1) } else { Inline::None }
        }
        "env" | "nice" | "nohup" | "stdbuf" | "timeout" => match wrapped(&name, args) {
            Some((rest, changes)) => inline(rest, depth + 1).part_if(changes),
            None => Inline::None,
        },
        _ => Inline::None,
    };
    found.part_if(!SHELL_DIRS.contains(&dir.as_str()))
}

/// The folder and the name of a program, as far as they say which shell or wrapper it is.
fn split(program: &str) -> (String, String) {
    let program = program.to_lowercase().replace('\\', "/");
    let at = program.rfind('/').map_or(0, |slash| slash + 1);
    let name = program[at..].strip_suffix(".exe").unwrap_or(&program[at..]).to_owned();
    (program[..at].to_owned(), name)
}

/// The command behind a wrapper, and whether the wrapper changes more than how it runs.
fn wrapped<'a>(name: &str, args: &'a [String]) -> Option<(&'a [String], bool)> {
    let (alone, with_value): (&[&str], &[&str]) = match name {
        "env" => (&["-i", "--ignore-environment", "-0", "--null"], &["-u", "--unset", "-C", "--chdir"]),
        "nice" => (&[], &["-n", "--adjustment"]),
        "stdbuf" => (&[], &["-i", "-o", "-e", "--input", "--output", "--error"]),
        "timeout" => {
            (&["--foreground", "--preserve-status", "-v", "--verbose"], &["-k", "--kill-after", "-s", "--signal"])
        }
        _ => (&[], &[]),
    };
    let mut at = 0;
    let mut changes = false;
    while let Some(arg) = args.get(at).map(String::as_str) {
        let flag = arg.split_once('=').map_or(arg, |(flag, _)| flag);
        if arg == "--" {
            at += 1;
            break;
        } else if name == "env" && !arg.starts_with('-') && flag != arg {
            changes = true;
            at += 1;
        } else if !arg.starts_with('-') {
            break;
        } else if with_value.contains(&flag) {
            changes |= name == "env";
            at += if flag == arg { 2 } else { 1 };
        } else if alone.contains(&arg) || arg == "-" {
            changes |= name == "env";
            at += 1;
        } else if (name == "nice" && is_niceness(arg))
            || (name == "stdbuf" && arg.len() > 2 && alone_or_value(with_value, arg))
        {
            at += 1;
        } else {
            return None;
        }
    }
    if name == "env" {
        while args.get(at).is_some_and(|arg| arg.contains('=') && !arg.starts_with('-')) {
            changes = true;
            at += 1;
        }
    }
    if name == "timeout" {
        at += 1;
    }
    args.get(at..).filter(|rest| !rest.is_empty()).map(|rest| (rest, changes))
}

fn is_niceness(arg: &str) -> bool {
    let number = arg.strip_prefix("-n").or_else(|| arg.strip_prefix('-')).unwrap_or(arg);
    let digits = number.strip_prefix(['-', '+']).unwrap_or(number);
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

/// Whether `arg` is one of the short options with its value attached.
fn alone_or_value(with_value: &[&str], arg: &str) -> bool {
    !arg.starts_with("--") && arg.get(..2).is_some_and(|flag| with_value.contains(&flag))
}

/// The text of `sh -c TEXT`.
fn posix_text(args: &[String]) -> Inline {
    let mut rest = args.iter().peekable();
    let mut plain = true;
    while let Some(arg) = rest.next() {
        match (arg.strip_prefix("--"), arg.strip_prefix('-')) {
            (Some(""), _) => return Inline::None,
            // A script, or the value of an option such as `-o`: what comes behind may still be read as `-c`.
            (None, None) => plain = false,
            (Some("command"), _) => return text_or_next("", &mut rest).part_if(!plain),
            (Some(long), _) => plain &= matches!(long, "login" | "noediting" | "noprofile" | "norc" | "posix"),
            (None, Some(letters)) => match letters.split_once('c') {
                Some((before, behind)) => {
                    plain &= before.bytes().all(is_plain_letter);
                    return text_or_next(behind, &mut rest).part_if(!plain);
                }
                None => plain &= !letters.is_empty() && letters.bytes().all(is_plain_letter),
            },
        }
    }
    Inline::None
}

/// Options of a shell that change how it runs a text, not which text.
fn is_plain_letter(letter: u8) -> bool {
    b"efilnpuvx".contains(&letter)
}

fn text_or_next(behind: &str, rest: &mut Peekable<Iter<'_, String>>) -> Inline {
    let text = if behind.is_empty() { rest.next().cloned() } else { Some(behind.to_owned()) };
    let Some(text) = text.filter(|text| !text.trim().is_empty()) else { return Inline::None };
    Inline::Whole(text).part_if(rest.peek().is_some())
}

/// The text of `powershell -Command TEXT`.
fn powershell_text(args: &[String]) -> Inline {
    let mut rest = args.iter().peekable();
    let mut plain = true;
    while let Some(arg) = rest.next() {
        match arg.to_lowercase().as_str() {
            "-c" | "-command" | "--command" => return text_or_next("", &mut rest).part_if(!plain),
            "-noprofile" | "-noninteractive" | "-nologo" => {}
            _ => plain = false,
        }
    }
    Inline::None
}

/// The text of `cmd /c TEXT…`.
fn cmd_text(args: &[String]) -> Inline {
    let at = args.iter().position(|arg| matches!(arg.to_lowercase().as_str(), "/c" | "/k"));
    let Some((before, text)) = at.map(|at| (&args[..at], args[at + 1..].join(" "))) else { return Inline::None };
    if text.trim().is_empty() {
        return Inline::None;
    }
    let plain = before.iter().all(|arg| matches!(arg.to_lowercase().as_str(), "/d" | "/s" | "/q"));
    Inline::Whole(text.trim().to_owned()).part_if(!plain)
}
