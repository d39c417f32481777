//! One reader of options for all tables: is there a dangerous one among these arguments, or could there be?

use super::{Call, Farther, Kind};
use crate::script::{Expansion, Value, Word};
use crate::wrapper::Tail;

/// What is known about the arguments of a program.
#[derive(Debug, Clone, Copy)]
pub(super) struct Table {
    /// The names of the program.
    pub names: &'static [&'static str],
    /// How it writes its options.
    pub style: Style,
    /// Dangerous long options, with their dashes.
    pub long: &'static [(&'static str, Kind)],
    /// Dangerous short options, with their dash.
    pub short: &'static [(&'static str, Kind)],
    /// Harmless short options without a value.
    pub flags: &'static str,
    /// Harmless short options with a value.
    pub values: &'static str,
    /// Harmless long options without a value.
    pub long_flags: &'static [&'static str],
    /// Harmless long options with a value in the next word.
    pub long_values: &'static [&'static str],
    /// Words that are dangerous as a whole.
    pub exact: &'static [(&'static str, Kind)],
    /// Words that are dangerous when they begin like this, options or not.
    pub starts: &'static [(&'static str, Kind)],
    /// Words that are dangerous when this is in them, in any case.
    pub contains: &'static [(&'static str, Kind)],
    /// The place among the words that are no options from which on they are dangerous, as the name of an output is.
    pub operand: Option<(usize, Kind)>,
    /// Its subcommands.
    pub subs: Subs,
    /// Whether `--` ends the options.
    pub dashes: Dashes,
}

/// How options are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// `--long`, which may be shortened, and clusters of letters.
    Gnu,
    /// `-word` or `--word`, written out.
    Words,
    /// Both: `-word` may be shortened, too, and may be a cluster.
    Both,
}

/// What `--` means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dashes {
    /// No options behind it.
    End,
    /// Nothing that helps.
    Nothing,
}

/// Subcommands.
#[derive(Debug, Clone, Copy)]
pub(super) enum Subs {
    /// It has none.
    None,
    /// These are dangerous.
    Denied(&'static [Sub]),
    /// Only these are known; those in the second list are dangerous.
    Known(&'static [&'static str], &'static [Sub]),
}

/// A dangerous subcommand.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sub {
    pub name: &'static str,
    /// Dangerous only with one of these words behind it; `*` is any word. Empty: always.
    pub then: &'static [&'static str],
    pub kind: Kind,
}

/// A table that knows nothing, to build others on.
pub(super) const BASE: Table = Table {
    names: &[],
    style: Style::Gnu,
    long: &[],
    short: &[],
    flags: "",
    values: "",
    long_flags: &[],
    long_values: &[],
    exact: &[],
    starts: &[],
    contains: &[],
    operand: None,
    subs: Subs::None,
    dashes: Dashes::End,
};

/// A subcommand that is always dangerous.
pub(super) const fn sub(name: &'static str, kind: Kind) -> Sub {
    Sub { name, then: &[], kind }
}

/// A subcommand that is dangerous with certain words.
pub(super) const fn sub_with(name: &'static str, then: &'static [&'static str], kind: Kind) -> Sub {
    Sub { name, then, kind }
}

/// What is certain about the argument, or the arguments, that a word becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen<'a> {
    /// Exactly this.
    Exact(&'a str),
    /// Each begins with this, which is not empty.
    Begins(&'a str),
    /// One argument that may be anything.
    One,
    /// Anything.
    Anything,
}

/// What a word may become.
pub(super) fn seen(word: &Word) -> Seen<'_> {
    let (prefix, expansions, splits) = match &word.value {
        Value::Literal(text) => return Seen::Exact(text),
        Value::Dynamic { prefix, expansions, splits } => (prefix.as_str(), expansions, *splits),
    };
    let keeps_beginning =
        expansions.iter().all(|expansion| matches!(expansion, Expansion::Glob | Expansion::Brace | Expansion::Tilde));
    if splits && !keeps_beginning {
        return Seen::Anything;
    }
    match prefix {
        // A home folder begins with a slash, and the name of one that does not exist with the tilde.
        "" if expansions.first() == Some(&Expansion::Tilde) => Seen::Begins("~"),
        "" if splits => Seen::Anything,
        "" => Seen::One,
        prefix => Seen::Begins(prefix),
    }
}

/// Whether a word becomes exactly one argument.
pub(super) fn is_single(word: &Word) -> bool {
    !matches!(word.value, Value::Dynamic { splits: true, .. })
}

/// The text of a word that is known.
pub(super) fn exact(word: &Word) -> Option<&str> {
    match seen(word) {
        Seen::Exact(text) => Some(text),
        Seen::Begins(_) | Seen::One | Seen::Anything => None,
    }
}

/// How many of the next words may be values of the option before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pending {
    None,
    /// Exactly one.
    One,
    /// Up to so many; nobody knows.
    Maybe(u8),
}

/// An unknown option takes at most so many values.
const UNKNOWN: Pending = Pending::Maybe(2);

/// A word that is no option.
#[derive(Clone, Copy)]
struct Operand<'a> {
    at: usize,
    /// The text, if it is known.
    text: Option<&'a str>,
    /// Whether it may be the value of an option instead.
    doubtful: bool,
    /// Whether it may become more words than one.
    several: bool,
}

impl Table {
    /// The first argument that reaches farther.
    pub(super) fn check(&self, program: &'static str, call: Call<'_>) -> Option<Farther> {
        let farther = |kind, part, at| Some(Farther { kind, program, part, at });
        let mut pending = Pending::None;
        let mut ended = false;
        let mut operands = Vec::new();
        for (at, word) in call.args.iter().enumerate() {
            let seen = seen(word);
            if let Some((kind, part)) = self.word(seen) {
                return farther(kind, part, Some(at));
            }
            let doubtful = pending != Pending::None;
            let several = !is_single(word);
            match seen {
                _ if ended => {
                    operands.push(Operand { at, text: exact(word), doubtful: false, several });
                }
                Seen::One if pending == Pending::One => pending = Pending::None,
                Seen::One | Seen::Anything => return farther(Kind::Dynamic, "", Some(at)),
                Seen::Exact("--") if self.dashes == Dashes::End => match pending {
                    Pending::None => ended = true,
                    Pending::One => pending = Pending::None,
                    Pending::Maybe(count) => pending = fewer(count),
                },
                Seen::Exact(text) if is_option(text) => match self.option(text) {
                    Ok(next) => pending = if doubtful { UNKNOWN } else { next },
                    Err((kind, part)) => return farther(kind, part, Some(at)),
                },
                Seen::Begins(text) if text.starts_with('-') => match self.begun(text) {
                    Ok(()) => pending = if doubtful { UNKNOWN } else { Pending::None },
                    Err((kind, part)) => return farther(kind, part, Some(at)),
                },
                Seen::Exact(_) | Seen::Begins(_) => {
                    if pending != Pending::One || several {
                        operands.push(Operand { at, text: exact(word), doubtful, several });
                    }
                    pending = match pending {
                        Pending::Maybe(count) => fewer(count),
                        Pending::None | Pending::One => Pending::None,
                    };
                }
            }
        }
        if let Some((kind, part, at)) = self.subcommand(&operands) {
            return farther(kind, part, Some(at));
        }
        if let Some((kind, at)) = self.far_operand(&operands) {
            return farther(kind, "with this argument", Some(at));
        }
        if call.tail == Tail::Open && (!ended || self.operand.is_some()) {
            return farther(Kind::OpenTail, "", None);
        }
        None
    }

    /// Words that are dangerous wherever they stand.
    fn word(&self, seen: Seen<'_>) -> Option<(Kind, &'static str)> {
        let first = |list: &'static [(&'static str, Kind)], is: &dyn Fn(&str) -> bool| {
            list.iter().find(|(needle, _)| is(needle)).map(|(needle, kind)| (*kind, *needle))
        };
        match seen {
            Seen::Exact(text) => first(self.exact, &|needle| text == needle)
                .or_else(|| first(self.starts, &|needle| text.starts_with(needle)))
                .or_else(|| {
                    if self.contains.is_empty() {
                        return None;
                    }
                    let text = text.to_ascii_lowercase();
                    first(self.contains, &|needle| text.contains(needle))
                }),
            _ if !self.contains.is_empty() => Some((Kind::Dynamic, "")),
            Seen::Begins(text) => first(self.starts, &|needle| needle.starts_with(text) || text.starts_with(needle)),
            Seen::One | Seen::Anything => (!self.starts.is_empty()).then_some((Kind::Dynamic, "")),
        }
    }

    /// What an option that is written out leaves to the next words.
    fn option(&self, text: &str) -> Result<Pending, (Kind, &'static str)> {
        let (name, attached) = match text.split_once('=') {
            Some((name, _)) => (name, true),
            None => (text, false),
        };
        let known = if self.long_flags.contains(&name) {
            Some(Pending::None)
        } else if self.long_values.contains(&name) {
            Some(Pending::One)
        } else {
            None
        };
        let (stem, is_long) = match name.strip_prefix("--") {
            Some(stem) => (stem, true),
            None => (&name[1..], self.style != Style::Gnu),
        };
        if known.is_none() && is_long {
            let shortened = self.style != Style::Words && !stem.is_empty();
            let denied = self.long.iter().find(|(option, _)| {
                let option = option.trim_start_matches('-');
                option == stem || (shortened && (stem.len() > 1 || name.starts_with("--")) && option.starts_with(stem))
            });
            if let Some((option, kind)) = denied {
                return Err((*kind, option));
            }
        }
        match known {
            Some(_) if attached => Ok(Pending::None),
            Some(pending) => Ok(pending),
            None if name.starts_with("--") || self.style == Style::Words => {
                Ok(if attached { Pending::None } else { UNKNOWN })
            }
            None => self.cluster(&text[1..]),
        }
    }

    /// Letters behind one dash.
    fn cluster(&self, letters: &str) -> Result<Pending, (Kind, &'static str)> {
        let mut pending = Pending::None;
        for (at, letter) in letters.char_indices() {
            if let Some((option, kind)) = self.short.iter().find(|(option, _)| option[1..].starts_with(letter)) {
                return Err((*kind, option));
            }
            if self.values.contains(letter) && pending == Pending::None {
                let attached = at + letter.len_utf8() < letters.len();
                return Ok(if attached { Pending::None } else { Pending::One });
            }
            if !self.flags.contains(letter) && !letter.is_ascii_digit() {
                // It may take the rest as its value, or not.
                pending = UNKNOWN;
            }
        }
        Ok(pending)
    }

    /// An option of which only the beginning is known.
    fn begun(&self, text: &str) -> Result<(), (Kind, &'static str)> {
        if text.contains('=') && (text.starts_with("--") || self.style != Style::Gnu) {
            return self.option(text).map(|_| ());
        }
        let letter =
            text[1..].chars().next().filter(|letter| self.style == Style::Gnu && self.values.contains(*letter));
        letter.map(|_| ()).ok_or((Kind::Dynamic, ""))
    }

    /// The word that stands where an output is named; `-` there is the output that every program has.
    fn far_operand(&self, operands: &[Operand<'_>]) -> Option<(Kind, usize)> {
        let (place, kind) = self.operand?;
        let far = |(count, operand): &(usize, &Operand<'_>)| {
            operand.several || *count >= place && !(place > 0 && operand.text == Some("-"))
        };
        operands.iter().enumerate().find(far).map(|(_, operand)| (kind, operand.at))
    }

    fn subcommand(&self, operands: &[Operand<'_>]) -> Option<(Kind, &'static str, usize)> {
        let (known, denied) = match self.subs {
            Subs::None => return None,
            Subs::Denied(denied) => (None, denied),
            Subs::Known(known, denied) => (Some(known), denied),
        };
        for (place, operand) in operands.iter().enumerate() {
            let Some(text) = operand.text else { return Some((Kind::Dynamic, "", operand.at)) };
            let later = &operands[place + 1..];
            for sub in denied.iter().filter(|sub| sub.name == text) {
                if sub.then.is_empty() {
                    return Some((sub.kind, sub.name, operand.at));
                }
                let matching = later.iter().find(|later| match later.text {
                    Some(text) => sub.then.iter().any(|then| *then == "*" || *then == text),
                    None => true,
                });
                if let Some(later) = matching {
                    return Some((sub.kind, sub.name, later.at));
                }
            }
            if known.is_some_and(|known| !known.contains(&text)) && !denied.iter().any(|sub| sub.name == text) {
                return Some((Kind::UnknownSubcommand, "", operand.at));
            }
            // From here on they are arguments of the subcommand.
            if !operand.doubtful {
                break;
            }
        }
        None
    }
}

fn is_option(text: &str) -> bool {
    text.len() > 1 && text.starts_with('-')
}

fn fewer(count: u8) -> Pending {
    match count {
        0 | 1 => Pending::None,
        more => Pending::Maybe(more - 1),
    }
}
