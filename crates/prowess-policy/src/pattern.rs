//! Patterns of the allowlist: is this the program that an entry means?
//!
//! A pattern is a path, possibly with wildcards: `*` is anything within one folder, `**` anything at all, `?` one
//! character; everything else stands for itself, and the whole path has to fit. It is compared with the program without
//! links, since a link can be pointed elsewhere; with the path as found only where the administrator alone could do
//! that. A pattern without a slash is a name, and means the program of that name that the system brings along.
//!
//! Matching walks all possibilities side by side, so its time is at most pattern times path, whatever the pattern.

use std::borrow::Cow;
use std::path::Path;

use crate::lookup::Program;

/// One pattern, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(Kind);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Nothing,
    Anything,
    Name(String),
    /// Letters up to the first wildcard, and what follows. Most patterns fail at the first, so the rest is read when it
    /// is needed.
    Path {
        start: String,
        rest: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece {
    Char(char),
    /// `?`
    One,
    /// `*`
    Within,
    /// `**`
    Across,
}

impl Pattern {
    /// Reads a pattern. `home` stands for a leading `~`. Never fails: what makes no sense matches nothing.
    #[must_use]
    pub fn parse(text: &str, home: &Path) -> Self {
        let text = text.trim();
        Self(match text {
            "" => Kind::Nothing,
            "*" => Kind::Anything,
            _ if !names_a_path(text) => Kind::Name(fold(text).into_owned()),
            _ => path(text, home),
        })
    }

    /// Whether the pattern means `program`, which `token` started.
    #[must_use]
    pub fn matches(&self, program: &Program, token: &str) -> bool {
        match &self.0 {
            Kind::Nothing => false,
            Kind::Anything => true,
            Kind::Name(name) => {
                let found = program.path.file_name().and_then(|found| found.to_str());
                program.is_trusted() && !names_a_path(token) && found.is_some_and(|found| fold(found) == *name)
            }
            Kind::Path { start, rest } => {
                fits(start, rest, &program.real) || (program.is_trusted() && fits(start, rest, &program.path))
            }
        }
    }

    /// Whether it means every program there is.
    #[must_use]
    pub fn is_any(&self) -> bool {
        self.0 == Kind::Anything
    }
}

/// Whether `text` speaks of a place rather than of a name.
fn names_a_path(text: &str) -> bool {
    text.contains(['/', '\\', '~'])
}

fn path(text: &str, home: &Path) -> Kind {
    let (home, tail) = match text.strip_prefix('~') {
        Some(tail) if tail.is_empty() || tail.starts_with(['/', '\\']) => {
            let Some(home) = home.to_str().filter(|_| home.is_absolute()) else { return Kind::Nothing };
            (home.trim_end_matches('/'), tail)
        }
        _ => ("", text),
    };
    let tail = fold(tail);
    let (letters, rest) = tail.split_at(tail.find(['*', '?']).unwrap_or(tail.len()));
    // The home is taken letter by letter: a wildcard in its name is not one of the pattern's.
    Kind::Path { start: format!("{}{letters}", fold(home)), rest: rest.to_owned() }
}

fn wildcards(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::with_capacity(text.len());
    for c in text.chars() {
        match (c, pieces.last()) {
            ('*', Some(Piece::Within | Piece::Across)) => {
                pieces.pop();
                pieces.push(Piece::Across);
            }
            ('*', _) => pieces.push(Piece::Within),
            ('?', _) => pieces.push(Piece::One),
            _ => pieces.push(Piece::Char(c)),
        }
    }
    pieces
}

fn fits(start: &str, rest: &str, path: &Path) -> bool {
    let Some(path) = path.to_str() else { return false };
    let path = fold(path);
    path.strip_prefix(start)
        .is_some_and(|tail| if rest.is_empty() { tail.is_empty() } else { walk(&wildcards(rest), tail) })
}

/// Whether `pieces` fit all of `text`. `here[i]` says that the first `i` pieces can fit what was read so far.
fn walk(pieces: &[Piece], text: &str) -> bool {
    let mut here = vec![false; pieces.len() + 1];
    let mut next = here.clone();
    here[0] = true;
    skip_stars(pieces, &mut here);
    for c in text.chars() {
        next.fill(false);
        for (i, piece) in pieces.iter().enumerate().filter(|(i, _)| here[*i]) {
            match piece {
                Piece::Char(own) => next[i + 1] |= *own == c,
                Piece::One => next[i + 1] |= c != '/',
                Piece::Within => next[i] |= c != '/',
                Piece::Across => next[i] = true,
            }
        }
        skip_stars(pieces, &mut next);
        std::mem::swap(&mut here, &mut next);
    }
    here[pieces.len()]
}

/// A star may stand for nothing at all.
fn skip_stars(pieces: &[Piece], here: &mut [bool]) {
    for (i, piece) in pieces.iter().enumerate() {
        if here[i] && matches!(piece, Piece::Within | Piece::Across) {
            here[i + 1] = true;
        }
    }
}

/// Paths as they are compared: as written, except where the system itself does not tell case and slashes apart.
fn fold(text: &str) -> Cow<'_, str> {
    if cfg!(windows) { Cow::Owned(text.to_lowercase().replace('\\', "/")) } else { Cow::Borrowed(text) }
}
