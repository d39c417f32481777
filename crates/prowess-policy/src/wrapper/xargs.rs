//! `xargs`: which command does it start, and where do the words from its input go?

use super::{Layer, Peel, Reason, Tail, literal};
use crate::script::{Expansion, Value, Word};

/// Options without a value.
const FLAGS: &str = "0rtx";
/// Options with one.
const VALUES: &str = "nPLsdEI";
const LONG_FLAGS: &[&str] = &["--null", "--no-run-if-empty", "--verbose", "--exit"];
const LONG_VALUES: &[&str] = &["--max-args", "--max-procs", "--max-chars", "--delimiter"];

pub(super) fn peel(words: &[Word]) -> Peel {
    match parse(words) {
        Ok(layer) => Peel::Inner(layer),
        // Without a command it prints its input; so it is a command itself.
        Err(Reason::MissingCommand) => Peel::Command,
        Err(reason) => Peel::Opaque(reason),
    }
}

/// Whether these arguments name no command, so that `xargs` only prints.
pub(crate) fn is_bare(args: &[Word]) -> bool {
    // The first word is the program itself and is not looked at.
    let Some(first) = args.first() else { return true };
    let words: Vec<Word> = std::iter::once(first).chain(args).cloned().collect();
    matches!(parse(&words), Err(Reason::MissingCommand))
}

fn parse(words: &[Word]) -> Result<Layer, Reason> {
    let mut layer = Layer { tail: Tail::Open, ..Layer::program(1) };
    let mut limited = false;
    loop {
        let word = words.get(layer.skip).ok_or(Reason::MissingCommand)?;
        let text = literal(word).ok_or(Reason::Dynamic)?;
        if text == "--" {
            layer.skip += 1;
            words.get(layer.skip).ok_or(Reason::MissingCommand)?;
            break;
        }
        if !text.starts_with('-') || text == "-" {
            break;
        }
        layer.skip += 1;
        if let Some((letter, attached)) = option(text)? {
            let value = if let Some(value) = attached {
                value
            } else {
                let value = words.get(layer.skip).ok_or(Reason::MissingCommand)?;
                layer.skip += 1;
                literal(value).ok_or(Reason::Dynamic)?
            };
            match letter {
                'I' if value.is_empty() => return Err(Reason::UnknownOption),
                'I' => layer.replaced = Some(value.to_owned()),
                'n' | 'L' => limited = true,
                _ => {}
            }
        }
    }
    // Which of `-I` and `-n` wins depends on the implementation; so both are believed.
    if layer.replaced.is_some() && !limited {
        layer.tail = Tail::Closed;
    }
    Ok(layer)
}

/// The letter of an option with a value, and the value if it is attached.
fn option(text: &str) -> Result<Option<(char, Option<&str>)>, Reason> {
    if text.starts_with("--") {
        return match text.split_once('=') {
            Some((name, _)) if LONG_VALUES.contains(&name) => Ok(None),
            None if LONG_FLAGS.contains(&text) => Ok(None),
            _ => Err(Reason::UnknownOption),
        };
    }
    for (at, letter) in text.char_indices().skip(1) {
        if VALUES.contains(letter) {
            let attached = &text[at + letter.len_utf8()..];
            return Ok(Some((letter, (!attached.is_empty()).then_some(attached))));
        }
        if !FLAGS.contains(letter) {
            return Err(Reason::UnknownOption);
        }
    }
    Ok(None)
}

/// Makes `word` what it is before `xargs -I` has put its input in place of `replaced`.
pub(super) fn replace(word: &mut Word, replaced: &str) {
    let (prefix, expansions, splits) = match &word.value {
        Value::Literal(text) => match text.split_once(replaced) {
            Some((prefix, _)) => (prefix.to_owned(), vec![Expansion::Variable], false),
            None => return,
        },
        // What is replaced may come out of the expansion.
        Value::Dynamic { expansions, splits, .. } => (String::new(), expansions.clone(), *splits),
    };
    // A tilde alone would promise that the word begins with a folder.
    let expansions = if expansions == [Expansion::Tilde] { vec![Expansion::Variable] } else { expansions };
    word.value = Value::Dynamic { prefix, expansions, splits };
}
