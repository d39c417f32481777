//! One word: where does it end, and what does the shell make of it?
//!
//! Everything is decided here by the quoting rules of bash, character by character, and not taken from a grammar: the
//! grammars say where a word lies, and this reader must come to the same end. What is [`Value::Literal`] is so whatever
//! the variables, files and settings of the moment are.

use super::ansi::{self, AnsiC};
use super::{Doubt, DoubtKind, Expansion, MAX_DEPTH, Span, Value};

/// Where a word stands. It decides which expansions the shell performs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// A program, an argument or the target of a redirection.
    Argument,
    /// The value of an assignment: no globs, no braces, one word whatever it holds.
    Assignment,
    /// The delimiter of a here-document: quotes are removed and nothing is expanded.
    Delimiter,
}

/// What was read.
#[derive(Debug)]
pub(super) struct Reading {
    /// What the word becomes.
    pub(super) value: Value,
    /// One past its last byte.
    pub(super) end: usize,
    /// What is doubtful in it.
    pub(super) doubts: Vec<Doubt>,
}

impl Reading {
    /// Whether the output of another command is in it.
    pub(super) fn substitutes(&self) -> bool {
        let kinds = [DoubtKind::Substitution, DoubtKind::ProcessSubstitution];
        self.doubts.iter().any(|doubt| kinds.contains(&doubt.kind))
    }
}

/// A word in the form of an assignment.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AssignmentForm<'t> {
    /// The name, with its subscript if it has one.
    pub(super) name: &'t str,
    /// Where the value begins, from the start of the word.
    pub(super) value: usize,
    /// Whether it is more than `NAME=`: a subscript or `+=`.
    pub(super) unusual: bool,
}

/// Splits `word` if it begins with `NAME=`, `NAME+=`, `NAME[…]=` or `NAME[…]+=`.
pub(super) fn assignment(word: &str) -> Option<AssignmentForm<'_>> {
    let length = name_length(word)?;
    let subscript = match word[length..].strip_prefix('[') {
        Some(inner) => 1 + inner.find("]=").or_else(|| inner.find("]+="))? + 1,
        None => 0,
    };
    let (name, rest) = word.split_at(length + subscript);
    let operator = if rest.starts_with("+=") { 2 } else { usize::from(rest.starts_with('=')) };
    (operator > 0).then(|| AssignmentForm {
        name,
        value: name.len() + operator,
        unusual: subscript > 0 || operator == 2,
    })
}

/// Whether `word` begins with `NAME[` and leaves open, by our simple means, where the subscript ends. Where bash expects
/// an assignment it reads on to the `]`, over blanks, operators and lines.
pub(super) fn opens_subscript(word: &str) -> bool {
    let Some(inner) = name_length(word).map(|length| &word[length..]).filter(|rest| rest.starts_with('[')) else {
        return false;
    };
    inner.matches('[').count() != inner.matches(']').count() || inner.contains(['\'', '"', '\\', '`', '$'])
}

fn name_length(text: &str) -> Option<usize> {
    let starts = text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    starts.then(|| text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(text.len()))
}

/// Reads the word that begins at `start`. Nothing when a quote or a bracket in it is never closed.
pub(super) fn read(text: &str, start: usize, place: Place) -> Option<Reading> {
    let mut reader = Reader::new(text, start, place);
    reader.unquoted()?;
    Some(reader.finish())
}

/// Whether a word ends before `rest`, the text behind it.
pub(super) fn ends_before(rest: &str) -> bool {
    let is_substitution = rest.starts_with("<(") || rest.starts_with(">(");
    !is_substitution && rest.chars().next().is_none_or(ends_word)
}

fn ends_word(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')')
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quotes {
    None,
    Double,
}

/// An expansion, and how much of the literal text came before it.
#[derive(Debug, Clone, Copy)]
struct Found {
    at: usize,
    certain: usize,
    expansion: Expansion,
}

/// An unquoted opening bracket, which a closing one may make an expansion.
#[derive(Debug, Clone, Copy)]
struct Opened {
    at: usize,
    certain: usize,
}

struct Reader<'t> {
    text: &'t str,
    start: usize,
    at: usize,
    place: Place,
    depth: usize,
    /// The text without quotes; meaningful up to the first expansion.
    literal: String,
    found: Vec<Found>,
    splits: bool,
    /// How much of the literal came before something that cannot be decoded.
    opaque: Option<usize>,
    doubts: Vec<Doubt>,
    /// The first `[`.
    bracket: Option<Opened>,
    /// The first `{`.
    brace: Option<Opened>,
    /// Whether a `,` or `..` came after it.
    is_list: bool,
    /// The character just read, if it was not quoted.
    before: Option<char>,
    /// Whether tildes after `=` and `:` are expanded.
    is_assignment: bool,
}

impl<'t> Reader<'t> {
    fn new(text: &'t str, start: usize, place: Place) -> Self {
        let is_assignment = match place {
            Place::Argument => name_length(&text[start..])
                .is_some_and(|name| ["=", "+=", "["].iter().any(|sign| text[start + name..].starts_with(sign))),
            Place::Assignment => true,
            Place::Delimiter => false,
        };
        Self {
            text,
            start,
            at: start,
            place,
            depth: 0,
            literal: String::new(),
            found: Vec::new(),
            splits: false,
            opaque: None,
            doubts: Vec::new(),
            bracket: None,
            brace: None,
            is_list: false,
            before: None,
            is_assignment,
        }
    }

    fn finish(mut self) -> Reading {
        let certain = self.found.iter().map(|found| found.certain).chain(self.opaque).min();
        let value = match certain {
            None => Value::Literal(self.literal),
            Some(certain) => {
                self.literal.truncate(certain);
                self.found.sort_by_key(|found| found.at);
                let mut expansions = Vec::new();
                for found in &self.found {
                    if !expansions.contains(&found.expansion) {
                        expansions.push(found.expansion);
                    }
                }
                let splits = self.splits && self.place != Place::Assignment;
                Value::Dynamic { prefix: self.literal, expansions, splits }
            }
        };
        Reading { value, end: self.at, doubts: self.doubts }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.at += character.len_utf8();
        Some(character)
    }

    fn push_quoted(&mut self, text: &str) {
        self.literal.push_str(text);
        self.before = None;
    }

    fn note(&mut self, at: usize, expansion: Expansion) {
        self.found.push(Found { at, certain: self.literal.len(), expansion });
    }

    fn doubt(&mut self, start: usize, kind: DoubtKind) {
        self.doubts.push(Doubt { span: Span { start, end: self.at }, kind });
    }

    /// Reads to the end of the word.
    fn unquoted(&mut self) -> Option<()> {
        while let Some(character) = self.peek() {
            match character {
                '<' | '>' if self.rest()[1..].starts_with('(') && self.place != Place::Delimiter => self.process()?,
                _ if ends_word(character) => break,
                '\'' => self.single()?,
                '"' => self.double()?,
                '\\' => self.escaped()?,
                '$' if self.place != Place::Delimiter => self.dollar(Quotes::None)?,
                '`' if self.place != Place::Delimiter => self.backticks(Quotes::None)?,
                _ => self.plain(character),
            }
        }
        Some(())
    }

    /// A character that is neither a quote nor the start of an expansion with `$`.
    fn plain(&mut self, character: char) {
        let (at, certain) = (self.at, self.literal.len());
        match self.place {
            Place::Argument => self.watch_pattern(character),
            Place::Assignment | Place::Delimiter => {}
        }
        let begins = at == self.start || (self.is_assignment && matches!(self.before, Some('=' | ':')));
        if character == '~' && begins && self.place != Place::Delimiter {
            self.found.push(Found { at, certain, expansion: Expansion::Tilde });
        }
        self.literal.push(character);
        self.before = Some(character);
        self.at += character.len_utf8();
    }

    /// Globs and braces. Whether a bracket opens one is known when it is closed; how brackets pair up is not asked, for
    /// bash has its own view of that in words like `{}\{a,b}`.
    fn watch_pattern(&mut self, character: char) {
        let here = Opened { at: self.at, certain: self.literal.len() };
        let (opened, expansion) = match character {
            '*' | '?' => (Some(here), Expansion::Glob),
            '[' => {
                self.bracket.get_or_insert(here);
                return;
            }
            ']' => (self.bracket, Expansion::Glob),
            '{' => {
                self.brace.get_or_insert(here);
                return;
            }
            ',' | '.' => {
                self.is_list |= self.brace.is_some() && (character == ',' || self.before == Some('.'));
                return;
            }
            '}' => (self.brace.filter(|_| self.is_list), Expansion::Brace),
            _ => return,
        };
        if let Some(Opened { at, certain }) = opened {
            self.found.push(Found { at, certain, expansion });
            self.splits = true;
        }
    }

    fn single(&mut self) -> Option<()> {
        let inner = &self.rest()[1..];
        let length = inner.find('\'')?;
        self.push_quoted(&inner[..length]);
        self.at += length + 2;
        Some(())
    }

    fn double(&mut self) -> Option<()> {
        self.at += 1;
        loop {
            match self.peek()? {
                '"' => break,
                '\\' => {
                    let after = self.rest()[1..].chars().next()?;
                    match after {
                        '\n' => {}
                        '$' | '`' | '"' | '\\' => self.literal.push(after),
                        _ => self.literal.extend(['\\', after]),
                    }
                    self.at += 1 + after.len_utf8();
                }
                '$' if self.place != Place::Delimiter => self.dollar(Quotes::Double)?,
                '`' if self.place != Place::Delimiter => self.backticks(Quotes::Double)?,
                other => {
                    self.literal.push(other);
                    self.at += other.len_utf8();
                }
            }
        }
        self.at += 1;
        self.before = None;
        Some(())
    }

    fn escaped(&mut self) -> Option<()> {
        self.at += 1;
        match self.next()? {
            // The two vanish, and what is before and after them is one word.
            '\n' => {}
            character => self.push_quoted(character.encode_utf8(&mut [0; 4])),
        }
        Some(())
    }

    fn dollar(&mut self, quotes: Quotes) -> Option<()> {
        let after = &self.rest()[1..];
        match (after.chars().next(), quotes) {
            (Some('('), _) => self.parenthesis(quotes)?,
            (Some('{'), _) => self.parameter(quotes)?,
            (Some('['), _) => {
                let start = self.at;
                self.expand(Expansion::Arithmetic, quotes);
                self.at += 2;
                self.nested(Some('['), ']', quotes)?;
                self.doubt(start, DoubtKind::Unusual);
            }
            (Some('\''), Quotes::None) => self.ansi_c()?,
            (Some('"'), Quotes::None) => {
                let start = self.at;
                self.at += 1;
                self.double()?;
                self.doubt(start, DoubtKind::Unusual);
            }
            (Some(special @ ('@' | '*' | '#' | '?' | '-' | '$' | '!' | '0'..='9')), _) => {
                self.expand(Expansion::Variable, quotes);
                self.splits |= special == '@';
                self.at += 2;
            }
            _ => {
                let name = name_length(after);
                match name {
                    Some(_) => self.expand(Expansion::Variable, quotes),
                    None => self.push_quoted("$"),
                }
                self.at += 1 + name.unwrap_or_default();
            }
        }
        self.before = None;
        Some(())
    }

    /// Notes an expansion that begins here.
    fn expand(&mut self, expansion: Expansion, quotes: Quotes) {
        self.note(self.at, expansion);
        self.splits |= quotes == Quotes::None;
    }

    /// `$'…'`
    fn ansi_c(&mut self) -> Option<()> {
        let inner = &self.rest()[2..];
        let mut is_escaped = false;
        let length = inner.find(|character| {
            let ends = character == '\'' && !is_escaped;
            is_escaped = character == '\\' && !is_escaped;
            ends
        })?;
        let start = self.at;
        self.at += length + 3;
        match ansi::decode(&inner[..length]) {
            AnsiC::Text(text) => self.push_quoted(&text),
            AnsiC::Opaque => {
                self.opaque.get_or_insert(self.literal.len());
                self.doubt(start, DoubtKind::Unusual);
            }
        }
        Some(())
    }

    /// `$(…)` or `$((…))`
    fn parenthesis(&mut self, quotes: Quotes) -> Option<()> {
        let start = self.at;
        let is_double = self.rest().starts_with("$((");
        let place = self.found.len();
        self.expand(Expansion::Arithmetic, quotes);
        let splits = self.splits;
        self.at += if is_double { 3 } else { 2 };
        self.nested(Some('('), ')', Quotes::None)?;
        let is_arithmetic = is_double && self.rest().starts_with(')');
        if is_arithmetic {
            self.at += 1;
        } else {
            if is_double {
                // It was `$( (…) … )`.
                self.nested(Some('('), ')', Quotes::None)?;
            }
            self.command(start, place, Expansion::Substitution, DoubtKind::Substitution);
        }
        self.splits = splits;
        Some(())
    }

    /// Makes one expansion of all since `place`: what is expanded inside a command is the affair of that command.
    fn command(&mut self, start: usize, place: usize, expansion: Expansion, kind: DoubtKind) {
        self.found.truncate(place + 1);
        if let Some(found) = self.found.last_mut() {
            found.expansion = expansion;
        }
        self.doubt(start, kind);
    }

    /// `<(…)` or `>(…)`
    fn process(&mut self) -> Option<()> {
        let (start, place) = (self.at, self.found.len());
        self.note(start, Expansion::Process);
        let splits = self.splits;
        self.at += 2;
        self.nested(Some('('), ')', Quotes::None)?;
        self.command(start, place, Expansion::Process, DoubtKind::ProcessSubstitution);
        self.splits = splits;
        self.before = None;
        Some(())
    }

    fn backticks(&mut self, quotes: Quotes) -> Option<()> {
        let start = self.at;
        self.expand(Expansion::Substitution, quotes);
        self.at += 1;
        loop {
            match self.next()? {
                '`' => break,
                '\\' => {
                    self.next()?;
                }
                _ => {}
            }
        }
        self.doubt(start, DoubtKind::Substitution);
        self.before = None;
        Some(())
    }

    /// `${…}`
    fn parameter(&mut self, quotes: Quotes) -> Option<()> {
        let inner = &self.rest()[2..];
        let simple = name_length(inner)
            .or_else(|| inner.find(|c: char| !c.is_ascii_digit()).filter(|digits| *digits > 0))
            .or_else(|| inner.starts_with(['@', '*', '#', '?', '-', '$', '!']).then_some(1))
            .filter(|length| inner[*length..].starts_with('}'));
        if let Some(length) = simple {
            self.expand(Expansion::Variable, quotes);
            self.splits |= inner.starts_with('@');
            self.at += length + 3;
            return Some(());
        }
        let start = self.at;
        self.expand(Expansion::Parameter, quotes);
        self.at += 2;
        self.nested(None, '}', quotes)?;
        // `"${a[@]}"`, `"${!a@}"` and `"${@:1}"` are several arguments even in quotes.
        self.splits |= self.text[start..self.at].contains('@');
        Some(())
    }

    /// Skips to the `close` that belongs to an opening bracket already taken, noting what is expanded on the way.
    fn nested(&mut self, open: Option<char>, close: char, quotes: Quotes) -> Option<()> {
        // The first look counts brackets without regard to quotes, and closing ones in quotes can mislead it.
        if self.depth > 2 * MAX_DEPTH {
            return None;
        }
        self.depth += 1;
        let mut level = 0_usize;
        loop {
            match self.peek()? {
                character if character == close && level == 0 => break,
                character if character == close => {
                    level -= 1;
                    self.at += 1;
                }
                character if Some(character) == open => {
                    level += 1;
                    self.at += 1;
                }
                '\\' => {
                    self.at += 1;
                    self.next()?;
                }
                '\'' if quotes == Quotes::None => self.single()?,
                '\'' => {
                    // Whether this quotes depends on the operator before it.
                    self.at += 1;
                    self.doubt(self.at - 1, DoubtKind::Unusual);
                }
                '"' => self.double()?,
                '$' => self.dollar(quotes)?,
                '`' => self.backticks(quotes)?,
                other => self.at += other.len_utf8(),
            }
        }
        self.at += 1;
        self.depth -= 1;
        Some(())
    }
}
