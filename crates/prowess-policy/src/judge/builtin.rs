//! Builtins: what does the shell itself do with this command?

use crate::script::{Value, Word};
use crate::wrapper::{is_harmless_builtin, steers_shell};

/// How a command stands in the shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Builtin {
    /// It starts nothing and changes nothing.
    Harmless,
    /// It starts nothing, but the commands behind it run in another folder.
    Moves,
    /// We do not let it through.
    Other,
}

/// Builtins that are programs, too. A rule for the program covers the builtin, which does no more: it starts nothing and
/// knows the jobs and the variables of the shell.
const PROGRAMS_TOO: &[&str] = &["echo", "kill", "printf"];

/// Whether the shell does by itself what the program `token` does.
pub(super) fn stands_in_for_program(token: &str) -> bool {
    PROGRAMS_TOO.contains(&token)
}

/// Further builtins that no program stands behind.
#[rustfmt::skip]
const BARE: &[&str] = &[
    "bg", "break", "command", "continue", "dirs", "exec", "exit", "fg", "help", "history", "jobs", "logout", "return",
    "suspend", "times", "type", "ulimit", "wait",
];

/// What the shell makes of `words`, if it is a command of its own that matters here.
pub(super) fn builtin(token: &str, words: &[Word]) -> Option<Builtin> {
    match token {
        "exit" if exits(&words[1..]) => Some(Builtin::Harmless),
        "cd" if is_harmless_builtin(words) => Some(Builtin::Moves),
        _ if is_harmless_builtin(words) => Some(Builtin::Harmless),
        "cd" | "test" | "[" | ":" => Some(Builtin::Other),
        _ => (steers_shell(token) || BARE.contains(&token)).then_some(Builtin::Other),
    }
}

fn exits(args: &[Word]) -> bool {
    match args {
        [] => true,
        [code] => matches!(&code.value, Value::Literal(code) if code.bytes().all(|byte| byte.is_ascii_digit())),
        _ => false,
    }
}
