//! `awk`: does the program in the argument only read and print?
//!
//! Only as much of the language is read as that takes. Where a slash may be a division or begin a pattern, the program
//! must have no `|` and no `>` at all, so that nothing depends on which it is.

use super::Kind::{Dynamic, LoadsCode, StartsProgram, UnknownOption, Unreadable, Writes};
use super::engine::{Seen, is_single, seen};
use super::{Call, Kind, Reach, farther};
use crate::wrapper::Tail;

/// Options without a value that change only how numbers and patterns are read.
const FLAGS: &str = "bcnNOPrsSt";

pub(super) fn reach(call: Call<'_>) -> Reach {
    let deny = |kind, part, at| farther(kind, "awk", part, Some(at));
    let mut at = 0;
    let program = loop {
        let Some(word) = call.args.get(at) else {
            return if call.args.is_empty() && call.tail == Tail::Closed {
                Reach::Plain
            } else {
                farther(Dynamic, "awk", "", None)
            };
        };
        match seen(word) {
            Seen::Exact("--version" | "-V" | "--help") if call.args.len() == 1 => return Reach::Plain,
            Seen::Exact("--") => {
                at += 1;
                match call.args.get(at).map(seen) {
                    Some(Seen::Exact(text)) => break text,
                    _ => return deny(Dynamic, "", at - 1),
                }
            }
            Seen::Exact(text) if text.len() > 1 && text.starts_with('-') => match option(text) {
                Ok(Takes::Nothing) => at += 1,
                Ok(Takes::Next) => match call.args.get(at + 1) {
                    Some(value) if is_single(value) => at += 2,
                    _ => return deny(Dynamic, "", at),
                },
                Err((kind, part)) => return deny(kind, part, at),
            },
            // `-F"$x"` and `-vx="$y"`
            Seen::Begins(text) if text.starts_with("-F") || text.starts_with("-v") => at += 1,
            Seen::Exact(text) => break text,
            Seen::Begins(_) | Seen::One | Seen::Anything => return deny(Dynamic, "", at),
        }
    };
    if let Some((kind, part)) = examine(program) {
        return deny(kind, part, at);
    }
    // Behind the program stand files; but not every awk stops looking for options there.
    let option = call.args[at + 1..].iter().position(
        |word| matches!(seen(word), Seen::Exact(text) | Seen::Begins(text) if text.len() > 1 && text.starts_with('-')),
    );
    option.map_or(Reach::Plain, |place| deny(UnknownOption, "", at + 1 + place))
}

enum Takes {
    Nothing,
    Next,
}

fn option(text: &str) -> Result<Takes, (Kind, &'static str)> {
    match text {
        "--field-separator" | "--assign" => return Ok(Takes::Next),
        "--traditional" | "--posix" | "--re-interval" | "--sandbox" | "--csv" | "-k" => return Ok(Takes::Nothing),
        _ => {}
    }
    if let Some(long) = text.strip_prefix("--") {
        let known = long.starts_with("field-separator=") || long.starts_with("assign=");
        return if known { Ok(Takes::Nothing) } else { Err((UnknownOption, "")) };
    }
    for (at, letter) in text.char_indices().skip(1) {
        match letter {
            'F' | 'v' if at + 1 == text.len() => return Ok(Takes::Next),
            'F' | 'v' => return Ok(Takes::Nothing),
            'f' | 'E' => return Err((LoadsCode, "-f")),
            'i' | 'l' => return Err((LoadsCode, "-i")),
            letter if FLAGS.contains(letter) => {}
            _ => return Err((UnknownOption, "")),
        }
    }
    Ok(Takes::Nothing)
}

/// What a slash would be after this.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// A pattern begins.
    Operator,
    /// It divides, or a pattern begins.
    Operand,
}

/// Why the program may do more than read and print.
fn examine(program: &str) -> Option<(Kind, &'static str)> {
    // These words are looked for everywhere, in texts and patterns too, so that no reading can hide them.
    for (word, kind) in [("system", StartsProgram), ("getline", StartsProgram), ("@", LoadsCode)] {
        if program.contains(word) {
            return Some((kind, word));
        }
    }
    let mut scan = Scan { rest: program, before: Before::Operator, unsure: false, printing: false, depth: 0 };
    let mut found = None;
    while let Some(c) = scan.next() {
        found = found.or(scan.step(c));
    }
    // A bracket may close a set or be part of it; where that matters to what follows, we are not sure.
    let has_odd_set = ["[]", "[^]", "[["].iter().any(|start| program.contains(start));
    if (scan.unsure || has_odd_set) && program.contains(['|', '>']) {
        return Some((Unreadable, ""));
    }
    found
}

struct Scan<'a> {
    rest: &'a str,
    before: Before,
    unsure: bool,
    /// Whether a `print` has begun, in which `>` means a file.
    printing: bool,
    /// Open brackets since then.
    depth: usize,
}

impl Scan<'_> {
    fn next(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    fn step(&mut self, c: char) -> Option<(Kind, &'static str)> {
        let next = self.rest.chars().next();
        match c {
            '"' => {
                self.text();
                self.before = Before::Operand;
            }
            '/' if self.before == Before::Operator => {
                self.pattern();
                self.before = Before::Operand;
            }
            '/' => self.unsure = true,
            '#' => self.rest = self.rest.find('\n').map_or("", |end| &self.rest[end..]),
            '\\' => {
                // Only the end of a line can follow.
                self.unsure |= self.next() != Some('\n');
            }
            '|' if next == Some('|') => {
                self.next();
                self.before = Before::Operator;
            }
            '|' => return Some((StartsProgram, "|")),
            '>' if self.printing && self.depth == 0 => return Some((Writes, ">")),
            '(' | '[' => {
                self.depth += 1;
                self.before = Before::Operator;
            }
            ')' | ']' => {
                self.depth = self.depth.saturating_sub(1);
                self.before = Before::Operand;
            }
            // After a comma the statement goes on, so that a `print` goes on, too.
            '\n' => self.before = Before::Operator,
            ';' | '{' | '}' => {
                self.printing = false;
                self.depth = 0;
                self.before = Before::Operator;
            }
            c if c.is_alphanumeric() || matches!(c, '_' | '$' | '.') => self.name(c),
            // `a++ / b` and `! /x/` alike: after two signs it is not clear.
            '+' | '-' => self.before = Before::Operand,
            c if c.is_whitespace() => {}
            _ => self.before = Before::Operator,
        }
        None
    }

    fn name(&mut self, first: char) {
        let end = self.rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        let is_print = matches!((first, &self.rest[..end]), ('p', "rint" | "rintf"));
        self.rest = &self.rest[end..];
        if is_print {
            self.printing = true;
            self.depth = 0;
        }
        self.before = Before::Operand;
    }

    fn text(&mut self) {
        while let Some(c) = self.next() {
            match c {
                '"' => return,
                '\\' => {
                    self.next();
                }
                '\n' => break,
                _ => {}
            }
        }
        self.unsure = true;
    }

    fn pattern(&mut self) {
        // `/=` may be an operator, and a slash between brackets ends the pattern for some.
        self.unsure |= self.rest.starts_with('=');
        let mut bracket = false;
        while let Some(c) = self.next() {
            match c {
                '/' if bracket => self.unsure = true,
                '/' => return,
                '\\' => {
                    self.next();
                }
                '[' => bracket = true,
                ']' => bracket = false,
                '\n' => break,
                _ => {}
            }
        }
        self.unsure = true;
    }
}
