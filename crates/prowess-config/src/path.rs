//! How does one name a place in the configuration?
//!
//! `a.b.0.c` for plain keys and list positions; a key with a dot in it is quoted, `skills.entries."my.skill".enabled`,
//! or put in brackets, `skills.entries['my.skill']`.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// Deeper than any file we accept can be, so a longer path cannot name anything.
const MAX_SEGMENTS: usize = 128;

/// A place in the configuration: the keys and list positions that lead there. Empty means the whole.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyPath(Vec<String>);

/// Why a text is not a [`KeyPath`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PathError {
    /// There is nothing in it.
    #[error("the config path is empty: name a key, such as skills.load.watch")]
    Empty,
    /// Two separators follow each other, or one stands at an end.
    #[error("the config path `{path}` has an empty part at character {at}: remove the extra dot, or quote the key")]
    EmptyPart {
        /// The path as given.
        path: String,
        /// Where, counted in characters from 1.
        at: usize,
    },
    /// A quote or bracket is never closed.
    #[error("the config path `{path}` opens a {what} at character {at} and never closes it: add the closing one")]
    Unclosed {
        /// The path as given.
        path: String,
        /// Which sign is open.
        what: &'static str,
        /// Where, counted in characters from 1.
        at: usize,
    },
    /// After a quoted part or bracket something other than a separator follows.
    #[error("the config path `{path}` needs a dot or bracket at character {at}: separate the two parts")]
    NoSeparator {
        /// The path as given.
        path: String,
        /// Where, counted in characters from 1.
        at: usize,
    },
    /// It has more parts than a file may be deep.
    #[error("the config path has {found} parts, more than the {MAX_SEGMENTS} a file can hold: shorten it")]
    TooLong {
        /// How many parts it has.
        found: usize,
    },
}

impl KeyPath {
    /// The path to the whole configuration.
    #[must_use]
    pub fn root() -> Self {
        Self::default()
    }

    /// The keys and positions, outermost first.
    #[must_use]
    pub fn segments(&self) -> &[String] {
        &self.0
    }

    /// The place `key` below this one.
    #[must_use]
    pub fn join(&self, key: impl Into<String>) -> Self {
        let mut segments = self.0.clone();
        segments.push(key.into());
        Self(segments)
    }

    /// Whether this place is `other` or lies below it.
    #[must_use]
    pub fn starts_with(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }
}

impl<S: Into<String>> FromIterator<S> for KeyPath {
    fn from_iter<I: IntoIterator<Item = S>>(segments: I) -> Self {
        Self(segments.into_iter().map(Into::into).collect())
    }
}

impl fmt::Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, segment) in self.0.iter().enumerate() {
            if position > 0 {
                f.write_str(".")?;
            }
            if is_bare(segment) {
                f.write_str(segment)?;
            } else {
                write!(f, "\"{}\"", segment.replace('\\', "\\\\").replace('"', "\\\""))?;
            }
        }
        Ok(())
    }
}

fn is_bare(segment: &str) -> bool {
    !segment.is_empty()
        && segment.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '$' | '@' | '/' | ':'))
}

impl FromStr for KeyPath {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        Reader { text, chars: text.chars().collect(), at: 0 }.path()
    }
}

struct Reader<'a> {
    text: &'a str,
    chars: Vec<char>,
    at: usize,
}

impl Reader<'_> {
    fn path(mut self) -> Result<KeyPath, PathError> {
        if self.chars.is_empty() {
            return Err(PathError::Empty);
        }
        let mut segments = Vec::new();
        loop {
            segments.push(match self.peek() {
                Some('[') => self.bracket()?,
                Some(quote @ ('"' | '\'')) => self.quoted(quote)?,
                _ => self.bare()?,
            });
            match self.peek() {
                None => break,
                Some('.') => self.at += 1,
                Some('[') => {}
                Some(_) => return Err(PathError::NoSeparator { path: self.text.to_owned(), at: self.at + 1 }),
            }
        }
        if segments.len() > MAX_SEGMENTS {
            return Err(PathError::TooLong { found: segments.len() });
        }
        Ok(KeyPath(segments))
    }

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn bare(&mut self) -> Result<String, PathError> {
        let start = self.at;
        while self.peek().is_some_and(|c| !matches!(c, '.' | '[')) {
            self.at += 1;
        }
        if self.at == start {
            return Err(PathError::EmptyPart { path: self.text.to_owned(), at: start + 1 });
        }
        Ok(self.chars[start..self.at].iter().collect())
    }

    fn quoted(&mut self, quote: char) -> Result<String, PathError> {
        let start = self.at;
        let mut key = String::new();
        self.at += 1;
        while let Some(c) = self.peek() {
            self.at += 1;
            match c {
                '\\' => match self.peek() {
                    Some(next) => {
                        key.push(next);
                        self.at += 1;
                    }
                    None => break,
                },
                c if c == quote => return Ok(key),
                c => key.push(c),
            }
        }
        Err(PathError::Unclosed { path: self.text.to_owned(), what: "quote", at: start + 1 })
    }

    fn bracket(&mut self) -> Result<String, PathError> {
        let start = self.at;
        self.at += 1;
        let key = if let Some(quote @ ('"' | '\'')) = self.peek() {
            self.quoted(quote)?
        } else {
            let inner = self.at;
            while self.peek().is_some_and(|c| c != ']') {
                self.at += 1;
            }
            self.chars[inner..self.at].iter().collect()
        };
        if self.peek() != Some(']') {
            return Err(PathError::Unclosed { path: self.text.to_owned(), what: "bracket", at: start + 1 });
        }
        self.at += 1;
        Ok(key)
    }
}

#[cfg(test)]
mod tests {
    use super::{KeyPath, PathError};

    fn check(text: &str) -> Result<Vec<String>, PathError> {
        text.parse::<KeyPath>().map(|path| path.segments().to_vec())
    }

    #[test]
    fn reads_every_spelling() {
        for (text, expected) in [
            ("a", vec!["a"]),
            ("a.b.0.c", vec!["a", "b", "0", "c"]),
            ("a[0].b", vec!["a", "0", "b"]),
            (r#"skills.entries."my.skill".enabled"#, vec!["skills", "entries", "my.skill", "enabled"]),
            ("skills.entries['my.skill']", vec!["skills", "entries", "my.skill"]),
            (r#"a."x\"y\\z""#, vec!["a", r#"x"y\z"#]),
            ("a.''", vec!["a", ""]),
            ("channels.telegram.groups.-100", vec!["channels", "telegram", "groups", "-100"]),
            ("a.my skill.b", vec!["a", "my skill", "b"]),
        ] {
            let path: KeyPath = text.parse().expect(text);
            assert_eq!(path.segments(), expected, "{text}");
            assert_eq!(path.to_string().parse(), Ok(path), "shown and read again: {text}");
        }
    }

    #[test]
    fn says_what_is_wrong() {
        let at = |text: &str| text.to_owned();
        assert_eq!(check(""), Err(PathError::Empty));
        assert_eq!(check("a..b"), Err(PathError::EmptyPart { path: at("a..b"), at: 3 }));
        assert_eq!(check("a."), Err(PathError::EmptyPart { path: at("a."), at: 3 }));
        assert_eq!(check("a.\"b"), Err(PathError::Unclosed { path: at("a.\"b"), what: "quote", at: 3 }));
        assert_eq!(check("a[0"), Err(PathError::Unclosed { path: at("a[0"), what: "bracket", at: 2 }));
        assert_eq!(check("a.'b'c"), Err(PathError::NoSeparator { path: at("a.'b'c"), at: 6 }));
        assert_eq!(check(&"a.".repeat(200)[..399]), Err(PathError::TooLong { found: 200 }));
    }
}
