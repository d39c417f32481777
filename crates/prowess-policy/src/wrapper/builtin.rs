//! Built-ins of the shell: which start a command, change what later ones mean, or do no harm?

use super::{Layer, Peel, Reason, WrapperKind, literal};
use crate::script::{Value, Word};

/// Built-ins that run words or files as shell code.
const EVALUATING: &[&str] = &[".", "coproc", "eval", "fc", "source", "trap"];

/// Built-ins that change the shell in which later commands run.
const CHANGING: &[&str] = &[
    "alias",
    "bind",
    "builtin",
    "caller",
    "compgen",
    "complete",
    "compopt",
    "declare",
    "disown",
    "enable",
    "export",
    "getopts",
    "hash",
    "let",
    "local",
    "mapfile",
    "popd",
    "pushd",
    "read",
    "readarray",
    "readonly",
    "set",
    "shift",
    "shopt",
    "typeset",
    "umask",
    "unalias",
    "unset",
];

pub(super) fn peel(token: &str, words: &[Word]) -> Option<Peel> {
    match token {
        "command" => Some(command(words)),
        "exec" => Some(starts(words)),
        token if EVALUATING.contains(&token) => Some(Peel::Opaque(Reason::Evaluates)),
        token if CHANGING.contains(&token) => Some(Peel::Opaque(Reason::ShellState)),
        // `printf -v` and `jobs -x` are the harmful faces of harmless built-ins.
        "printf" if assigns(words) => Some(Peel::Opaque(Reason::ShellState)),
        "jobs" if words.len() > 1 => Some(Peel::Opaque(Reason::UnknownOption)),
        _ => None,
    }
}

/// Whether it is a built-in that runs words as shell code, or changes what later commands mean.
pub(crate) fn steers_shell(token: &str) -> bool {
    EVALUATING.contains(&token) || CHANGING.contains(&token)
}

fn command(words: &[Word]) -> Peel {
    match words.get(1).and_then(literal) {
        Some("-v" | "-V") => Peel::Query,
        _ => starts(words),
    }
}

/// `exec NAME …` and `command NAME …`, without options.
fn starts(words: &[Word]) -> Peel {
    let Some(next) = words.get(1) else { return Peel::Opaque(Reason::MissingCommand) };
    match literal(next) {
        None => Peel::Opaque(Reason::Dynamic),
        Some(text) if text.starts_with('-') => Peel::Opaque(Reason::UnknownOption),
        Some(_) => Peel::Inner(Layer { kind: WrapperKind::Shell, ..Layer::program(1) }),
    }
}

fn assigns(words: &[Word]) -> bool {
    // The name given to `-v` may have a subscript, and a subscript may have a command in it.
    words.get(1).is_some_and(|word| match &word.value {
        Value::Literal(text) => text.starts_with("-v"),
        Value::Dynamic { prefix, .. } => prefix.is_empty() || prefix.starts_with('-'),
    })
}

/// Whether these words are a built-in that starts nothing and changes nothing but the working directory.
///
/// Only a word the shell itself reads can be one; behind `env` or `timeout` the same name is a program.
#[must_use]
pub fn is_harmless_builtin(words: &[Word]) -> bool {
    let Some((first, args)) = words.split_first() else { return false };
    match literal(first) {
        Some(":" | "true" | "false") => true,
        Some("pwd") => args.iter().all(|word| matches!(literal(word), Some("-L" | "-P"))),
        Some("cd") => is_plain_cd(args),
        Some("test") => is_plain_test(args),
        Some("[") => args.split_last().is_some_and(|(last, args)| literal(last) == Some("]") && is_plain_test(args)),
        _ => false,
    }
}

fn is_plain_cd(args: &[Word]) -> bool {
    match args {
        [] => true,
        [folder] => match &folder.value {
            Value::Literal(text) => !text.starts_with('-') || text == "-",
            Value::Dynamic { .. } => true,
        },
        [dashes, folder] => literal(dashes) == Some("--") && literal(folder).is_some(),
        _ => false,
    }
}

/// `test` evaluates the subscript of a name given to `-v`; so no word may be that option, or become it.
fn is_plain_test(args: &[Word]) -> bool {
    if args.iter().any(|word| matches!(literal(word), Some("-v" | "-R"))) {
        return false;
    }
    let known: Vec<Option<&str>> = args.iter().map(literal).collect();
    let one_each = args.iter().all(|word| !matches!(word.value, Value::Dynamic { splits: true, .. }));
    if known.iter().all(Option::is_some) {
        return true;
    }
    let negated = known.first() == Some(&Some("!"));
    match &known[usize::from(negated)..] {
        _ if !one_each => false,
        [_] | [Some(_), _] | [_, Some(_), _] => true,
        _ => false,
    }
}
