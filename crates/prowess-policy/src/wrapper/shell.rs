//! Shells: does this one run a text that we can read, a file, or whatever comes?

use super::{Peel, Reason, Tail, literal};
use crate::script::Word;

/// Shells whose language is the one that scripts are read in.
const POSIX: &[&str] = &["ash", "bash", "dash", "rbash", "sh"];

/// Shells with a language of their own.
const OTHERS: &[&str] = &[
    "cmd",
    "csh",
    "elvish",
    "fish",
    "ion",
    "ksh",
    "ksh93",
    "mksh",
    "nu",
    "oksh",
    "osh",
    "pdksh",
    "powershell",
    "pwsh",
    "rc",
    "scsh",
    "tcsh",
    "xonsh",
    "yash",
    "zsh",
];

/// Whether a program of this name is a shell.
pub(crate) fn is_shell(name: &str) -> bool {
    POSIX.contains(&name) || OTHERS.contains(&name)
}

/// Whether a program of this name is many programs in one, chosen by its first argument.
pub(crate) fn is_multiplexer(name: &str) -> bool {
    matches!(name, "busybox" | "toybox")
}

pub(super) fn peel(name: &str, words: &[Word], tail: Tail) -> Peel {
    if OTHERS.contains(&name) {
        return other(words);
    }
    let mut inline = false;
    let mut at = 1;
    while let Some(word) = words.get(at) {
        let Some(text) = literal(word) else {
            return if inline { Peel::Opaque(Reason::Dynamic) } else { Peel::Command };
        };
        match text {
            "--" => {
                at += 1;
                break;
            }
            "-" => return Peel::Opaque(Reason::ReadsInput),
            "--norc" | "--noprofile" => {}
            "--version" | "--help" if words.len() == 2 => return Peel::Command,
            text if text.starts_with("--") => return Peel::Opaque(long_option(text)),
            text if text.starts_with('-') => match cluster(&text[1..]) {
                Ok(found) => inline |= found,
                Err(reason) => return Peel::Opaque(reason),
            },
            text if text.starts_with('+') => return Peel::Opaque(Reason::UnknownOption),
            _ => break,
        }
        at += 1;
    }
    match (inline, words.get(at)) {
        (false, None) => Peel::Opaque(Reason::ReadsInput),
        // A script file: the caller sees a shell with an operand and decides.
        (false, Some(_)) => Peel::Command,
        (true, None) => Peel::Opaque(Reason::MissingCommand),
        (true, Some(_)) if tail == Tail::Open || at + 1 < words.len() => Peel::Opaque(Reason::ExtraOperands),
        (true, Some(_)) => Peel::Script(at),
    }
}

/// Whether `-c` is among these letters, if all of them are understood.
fn cluster(letters: &str) -> Result<bool, Reason> {
    let mut inline = false;
    for letter in letters.chars() {
        match letter {
            'c' => inline = true,
            'e' | 'u' | 'f' | 'x' | 'n' => {}
            'l' | 'i' => return Err(Reason::StartupFiles),
            's' => return Err(Reason::ReadsInput),
            _ => return Err(Reason::UnknownOption),
        }
    }
    Ok(inline)
}

fn long_option(text: &str) -> Reason {
    let name = text.split('=').next().unwrap_or(text);
    match name {
        "--login" | "--rcfile" | "--init-file" => Reason::StartupFiles,
        _ => Reason::UnknownOption,
    }
}

/// For a shell that we cannot read, only the question which reason is best.
fn other(words: &[Word]) -> Peel {
    let options = words[1..].iter().map_while(literal).take_while(|text| text.starts_with(['-', '/', '+']));
    let is_inline = |text: &str| {
        let letters = text.trim_start_matches(['-', '/']);
        !text.starts_with("--") && letters.contains(['c', 'C']) || matches!(letters, "command" | "commands" | "k" | "K")
    };
    let mut count = 0;
    for text in options {
        if is_inline(text) {
            return Peel::Opaque(Reason::OtherLanguage);
        }
        count += 1;
    }
    match words.get(count + 1) {
        Some(_) => Peel::Command,
        None if matches!(words.get(1).and_then(literal), Some("--version" | "--help")) && count == 1 => Peel::Command,
        None => Peel::Opaque(Reason::ReadsInput),
    }
}
