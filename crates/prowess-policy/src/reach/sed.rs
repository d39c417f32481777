//! `sed`: does the script in the arguments only edit what flows through?

use super::Kind::{Dynamic, LoadsCode, OpenTail, StartsProgram, UnknownOption, Unreadable, Writes};
use super::engine::{Seen, seen};
use super::{Call, Kind, Reach, farther};
use crate::wrapper::Tail;

const LONG_FLAGS: &[&str] = &[
    "--debug",
    "--null-data",
    "--posix",
    "--quiet",
    "--regexp-extended",
    "--sandbox",
    "--separate",
    "--silent",
    "--unbuffered",
];

pub(super) fn reach(call: Call<'_>) -> Reach {
    let deny = |kind, part, at| farther(kind, "sed", part, Some(at));
    let mut scripts: Vec<(usize, &str)> = Vec::new();
    let mut first_operand = None;
    let mut ended = false;
    let mut at = 0;
    while let Some(word) = call.args.get(at) {
        match seen(word) {
            Seen::Exact("--version" | "--help") if call.args.len() == 1 => return Reach::Plain,
            Seen::Exact("--") if !ended => ended = true,
            Seen::Exact(text) if !ended && text.len() > 1 && text.starts_with('-') => match option(text) {
                Ok(Given::Nothing) => {}
                Ok(Given::Script(script)) => scripts.push((at, script)),
                Ok(Given::NextIsScript | Given::NextIsNumber) => {
                    let is_script = matches!(option(text), Ok(Given::NextIsScript));
                    at += 1;
                    match call.args.get(at).map(seen) {
                        Some(Seen::Exact(script)) if is_script => scripts.push((at, script)),
                        Some(Seen::Exact(_)) => {}
                        _ => return deny(Dynamic, "", at - 1),
                    }
                }
                Err((kind, part)) => return deny(kind, part, at),
            },
            Seen::Exact(text) => first_operand = first_operand.or(Some((at, Some(text)))),
            Seen::Begins(text) if ended || !text.starts_with('-') => first_operand = first_operand.or(Some((at, None))),
            Seen::One | Seen::Anything if ended => first_operand = first_operand.or(Some((at, None))),
            Seen::Begins(_) | Seen::One | Seen::Anything => return deny(Dynamic, "", at),
        }
        at += 1;
    }
    if scripts.is_empty() {
        match first_operand {
            Some((at, Some(text))) => scripts.push((at, text)),
            Some((at, None)) => return deny(Dynamic, "", at),
            None if call.args.is_empty() && call.tail == Tail::Closed => return Reach::Plain,
            None => return farther(Dynamic, "sed", "", None),
        }
    }
    let text: Vec<&str> = scripts.iter().map(|(_, script)| *script).collect();
    if let Err((kind, part)) = Script::new(&text.join("\n")).check() {
        return deny(kind, part, scripts[0].0);
    }
    if call.tail == Tail::Open && !ended {
        return farther(OpenTail, "sed", "", None);
    }
    Reach::Plain
}

enum Given<'a> {
    Nothing,
    Script(&'a str),
    NextIsScript,
    NextIsNumber,
}

fn option(text: &str) -> Result<Given<'_>, (Kind, &'static str)> {
    if text.starts_with("--") {
        return match text.split_once('=') {
            Some(("--expression", script)) => Ok(Given::Script(script)),
            Some(("--line-length", _)) => Ok(Given::Nothing),
            None if text == "--expression" => Ok(Given::NextIsScript),
            None if LONG_FLAGS.contains(&text) => Ok(Given::Nothing),
            _ if text.starts_with("--i") => Err((Writes, "--in-place")),
            _ if text.starts_with("--f") => Err((LoadsCode, "--file")),
            _ => Err((UnknownOption, "")),
        };
    }
    for (at, letter) in text.char_indices().skip(1) {
        let rest = &text[at + letter.len_utf8()..];
        match letter {
            'n' | 'E' | 'r' | 's' | 'z' | 'u' | 'a' => {}
            'e' if rest.is_empty() => return Ok(Given::NextIsScript),
            'e' => return Ok(Given::Script(rest)),
            'l' if rest.is_empty() => return Ok(Given::NextIsNumber),
            'l' if rest.bytes().all(|byte| byte.is_ascii_digit()) => return Ok(Given::Nothing),
            'i' | 'I' => return Err((Writes, "-i")),
            'f' => return Err((LoadsCode, "-f")),
            _ => return Err((UnknownOption, "")),
        }
    }
    Ok(Given::Nothing)
}

const UNSURE: (Kind, &str) = (Unreadable, "");

/// A reader of scripts that stops at whatever it does not know.
struct Script<'a> {
    rest: &'a str,
}

impl<'a> Script<'a> {
    fn new(text: &'a str) -> Self {
        Self { rest: text }
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    fn skip(&mut self, of: impl Fn(char) -> bool) {
        self.rest = self.rest.trim_start_matches(of);
    }

    fn check(mut self) -> Result<(), (Kind, &'static str)> {
        loop {
            self.skip(|c| matches!(c, ' ' | '\t' | '\n' | ';'));
            if self.rest.is_empty() {
                return Ok(());
            }
            self.addresses()?;
            self.command()?;
        }
    }

    fn addresses(&mut self) -> Result<(), (Kind, &'static str)> {
        if self.address()? {
            self.skip(|c| c == ' ');
            if self.peek() == Some(',') {
                self.next();
                self.skip(|c| matches!(c, ' ' | '+' | '~'));
                if !self.address()? {
                    return Err(UNSURE);
                }
            }
        }
        self.skip(|c| matches!(c, ' ' | '\t' | '!'));
        Ok(())
    }

    fn address(&mut self) -> Result<bool, (Kind, &'static str)> {
        match self.peek() {
            Some('0'..='9') => {
                self.skip(|c| c.is_ascii_digit() || c == '~');
                Ok(true)
            }
            Some('$') => {
                self.next();
                Ok(true)
            }
            Some('/') => {
                self.next();
                self.pattern('/')?;
                self.skip(|c| matches!(c, 'I' | 'M'));
                Ok(true)
            }
            Some('\\') => {
                self.next();
                let delimiter = self.delimiter()?;
                self.pattern(delimiter)?;
                self.skip(|c| matches!(c, 'I' | 'M'));
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn delimiter(&mut self) -> Result<char, (Kind, &'static str)> {
        self.next().filter(|c| c.is_ascii_punctuation() && *c != '\\' && *c != '[').ok_or(UNSURE)
    }

    /// A pattern up to its end.
    fn pattern(&mut self, delimiter: char) -> Result<(), (Kind, &'static str)> {
        while let Some(c) = self.next() {
            match c {
                c if c == delimiter => return Ok(()),
                '\\' => {
                    self.next().ok_or(UNSURE)?;
                }
                '[' => self.bracket(delimiter)?,
                '\n' => return Err(UNSURE),
                _ => {}
            }
        }
        Err(UNSURE)
    }

    /// `[…]`, in which a delimiter is nothing special. Whatever implementations read differently is left to a person.
    fn bracket(&mut self, delimiter: char) -> Result<(), (Kind, &'static str)> {
        if self.peek() == Some('^') {
            self.next();
        }
        if self.peek() == Some(']') {
            return Err(UNSURE);
        }
        while let Some(c) = self.next() {
            match c {
                ']' => return Ok(()),
                '[' if self.peek() == Some(':') => {
                    let end = self.rest.find(":]").ok_or(UNSURE)?;
                    if !self.rest[1..end.max(1)].bytes().all(|byte| byte.is_ascii_alphabetic()) {
                        return Err(UNSURE);
                    }
                    self.rest = &self.rest[end + 2..];
                }
                '[' | '\n' => return Err(UNSURE),
                '\\' if self.peek().is_none_or(|next| next == delimiter || matches!(next, '[' | ']' | '\\')) => {
                    return Err(UNSURE);
                }
                _ => {}
            }
        }
        Err(UNSURE)
    }

    /// A replacement up to its end.
    fn replacement(&mut self, delimiter: char) -> Result<(), (Kind, &'static str)> {
        while let Some(c) = self.next() {
            match c {
                c if c == delimiter => return Ok(()),
                '\\' => {
                    self.next().ok_or(UNSURE)?;
                }
                '\n' => return Err(UNSURE),
                _ => {}
            }
        }
        Err(UNSURE)
    }

    fn command(&mut self) -> Result<(), (Kind, &'static str)> {
        match self.next().ok_or(UNSURE)? {
            '{' => Ok(()),
            '#' => {
                self.rest = self.rest.find('\n').map_or("", |end| &self.rest[end..]);
                Ok(())
            }
            '}' | '=' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x' | 'z' => self.end(),
            'q' | 'Q' | 'l' => {
                self.skip(|c| c == ' ' || c.is_ascii_digit());
                self.end()
            }
            's' => {
                let delimiter = self.delimiter()?;
                self.pattern(delimiter)?;
                self.replacement(delimiter)?;
                self.flags()
            }
            'y' => {
                let delimiter = self.delimiter()?;
                self.replacement(delimiter)?;
                self.replacement(delimiter)?;
                self.end()
            }
            ':' | 'b' | 't' | 'T' => {
                self.skip(|c| c == ' ');
                self.skip(|c| c.is_ascii_alphanumeric() || c == '_');
                self.end()
            }
            'w' | 'W' => Err((Writes, "w")),
            'e' => Err((StartsProgram, "e")),
            'a' | 'i' | 'c' => self.line(),
            _ => Err(UNSURE),
        }
    }

    /// Text for the output, on this line only.
    fn line(&mut self) -> Result<(), (Kind, &'static str)> {
        while let Some(c) = self.next() {
            match c {
                '\n' => break,
                '\\' if self.next().is_none_or(|next| next == '\n') => return Err(UNSURE),
                _ => {}
            }
        }
        Ok(())
    }

    fn flags(&mut self) -> Result<(), (Kind, &'static str)> {
        loop {
            match self.peek() {
                Some('g' | 'p' | 'i' | 'I' | 'm' | 'M' | '0'..='9') => {
                    self.next();
                }
                Some('e') => return Err((StartsProgram, "s///e")),
                Some('w') => return Err((Writes, "s///w")),
                _ => return self.end(),
            }
        }
    }

    /// Nothing more may belong to the command.
    fn end(&mut self) -> Result<(), (Kind, &'static str)> {
        self.skip(|c| matches!(c, ' ' | '\t'));
        match self.peek() {
            None | Some(';' | '\n' | '}' | '#') => Ok(()),
            Some(_) => Err(UNSURE),
        }
    }
}
