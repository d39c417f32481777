//! What does this file say?
//!
//! Strict JSON first, because it is fast and exact, then JSON5. Both readers recurse, so size and nesting are bounded
//! before either of them sees the text.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde_json::Value;
use thiserror::Error;

use crate::tree::type_name;

/// The largest file we read, in bytes.
pub const MAX_BYTES: u64 = 2 * 1024 * 1024;

/// How deep lists and sections may nest in one file.
pub const MAX_DEPTH: usize = 128;

/// Why a file could not be taken as configuration.
#[derive(Debug, Error)]
pub enum SourceError {
    /// The system would not let us read it.
    #[error("cannot read {}: {source}; check that it exists and that you may read it", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// It is a directory, a pipe or a device.
    #[error("{} is not a regular file; point to the configuration file itself", file.display())]
    NotAFile {
        /// The file.
        file: PathBuf,
    },
    /// It is larger than [`MAX_BYTES`].
    #[error("{} is larger than the {MAX_BYTES} bytes a configuration may have; split it with $include", file.display())]
    TooLarge {
        /// The file.
        file: PathBuf,
    },
    /// It is not UTF-8.
    #[error("{} is not UTF-8 text (first bad byte at offset {offset}); save it as UTF-8", file.display())]
    NotText {
        /// The file.
        file: PathBuf,
        /// Where the text ends, in bytes.
        offset: usize,
    },
    /// It nests deeper than [`MAX_DEPTH`].
    #[error("{}:{line}:{column}: nested deeper than {MAX_DEPTH} levels; flatten it or split it with $include", file.display())]
    TooDeep {
        /// The file.
        file: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The column in characters, counted from 1.
        column: usize,
    },
    /// It is neither JSON nor JSON5.
    #[error("{}:{line}:{column}: {reason}; {fix}", file.display())]
    Syntax {
        /// The file.
        file: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The column in characters, counted from 1.
        column: usize,
        /// What the reader stumbled over.
        reason: String,
        /// What to do about it.
        fix: &'static str,
    },
    /// It is valid, but its outermost value is not a section.
    #[error("{} holds {found} where a section is needed; wrap its settings in {{ }}", file.display())]
    NotASection {
        /// The file.
        file: PathBuf,
        /// What is there.
        found: &'static str,
    },
}

/// The text of the file at `path`; `None` when there is no such file.
pub(crate) fn read_optional(path: &Path) -> Result<Option<String>, SourceError> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        _ => read(path).map(Some),
    }
}

/// The text of the file at `path`, within [`MAX_BYTES`].
pub(crate) fn read(path: &Path) -> Result<String, SourceError> {
    let failed = |source| SourceError::Read { file: path.to_owned(), source };
    // Asked before opening, because opening a pipe would wait for its other end.
    if !fs::metadata(path).map_err(failed)?.is_file() {
        return Err(SourceError::NotAFile { file: path.to_owned() });
    }
    read_open(File::open(path).map_err(failed)?, path)
}

/// The text of an open file, within [`MAX_BYTES`]; `path` is for messages.
pub(crate) fn read_open(file: File, path: &Path) -> Result<String, SourceError> {
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|source| SourceError::Read { file: path.to_owned(), source })?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(SourceError::TooLarge { file: path.to_owned() });
    }
    String::from_utf8(bytes)
        .map_err(|error| SourceError::NotText { file: path.to_owned(), offset: error.utf8_error().valid_up_to() })
}

/// The value that a user typed as JSON or JSON5, within the bounds of a configuration file.
pub fn parse_value(text: &str) -> Result<Value, SourceError> {
    parse(text, Path::new("value"))
}

/// The value that `text` describes; `path` is for messages.
pub(crate) fn parse(text: &str, path: &Path) -> Result<Value, SourceError> {
    if text.len() as u64 > MAX_BYTES {
        return Err(SourceError::TooLarge { file: path.to_owned() });
    }
    if let Some(offset) = too_deep(text) {
        let (line, column) = line_and_column(text, offset);
        return Err(SourceError::TooDeep { file: path.to_owned(), line, column });
    }
    if let Ok(value) = serde_json::from_str(text) {
        return Ok(value);
    }
    json5::from_str(text).map_err(|error| syntax_error(text, path, &error))
}

/// Like [`parse`], and the outermost value must be a section.
pub(crate) fn parse_section(text: &str, path: &Path) -> Result<Value, SourceError> {
    match parse(text, path)? {
        value @ Value::Object(_) => Ok(value),
        other => Err(SourceError::NotASection { file: path.to_owned(), found: type_name(&other) }),
    }
}

fn syntax_error(text: &str, path: &Path, error: &json5::Error) -> SourceError {
    use json5::ErrorCode as Code;

    let (line, column) = match error.position() {
        Some(position) => (position.line + 1, position.column + 1),
        None => line_and_column(text, text.len()),
    };
    let (reason, fix) = match error.code() {
        Some(Code::EofParsingArray | Code::EofParsingObject | Code::EofParsingString | Code::EofParsingComment) => {
            ("what opens here is never closed".to_owned(), "close the bracket, brace, quote or comment")
        }
        Some(Code::ExpectedComma) => ("a comma is missing".to_owned(), "put one between the two entries"),
        Some(Code::ExpectedColon) => ("a colon is missing".to_owned(), "put one between the key and its value"),
        Some(Code::TrailingCharacters) => {
            ("there is more after the end".to_owned(), "remove it, or the brace that closes too early")
        }
        Some(Code::LineTerminatorInString) => {
            ("a text runs past the end of its line".to_owned(), "close the quote, or write \\n for a line break")
        }
        Some(Code::InvalidEscapeSequence) => {
            ("a backslash sequence is not valid".to_owned(), "write \\\\ for a backslash")
        }
        Some(Code::ExpectedIdentifier | Code::InvalidKey) => ("this is not a key".to_owned(), "put the key in quotes"),
        Some(code) => (code.to_string(), "look at this place and just before it"),
        None => (error.to_string(), "look at this place and just before it"),
    };
    SourceError::Syntax { file: path.to_owned(), line, column, reason, fix }
}

fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = &text[..offset];
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

/// Where the text nests too deep, reading strings and comments the way the JSON5 reader does.
fn too_deep(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut chars = text.char_indices().peekable();
    while let Some((offset, c)) = chars.next() {
        match c {
            '[' | '{' => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return Some(offset);
                }
            }
            ']' | '}' => depth = depth.saturating_sub(1),
            '"' | '\'' => {
                while let Some((_, inner)) = chars.next() {
                    if inner == '\\' {
                        chars.next();
                    } else if inner == c {
                        break;
                    }
                }
            }
            '/' => match chars.next() {
                Some((_, '/')) => {
                    // These four end a line comment; stopping at fewer would let brackets hide.
                    chars.by_ref().find(|(_, c)| matches!(c, '\n' | '\r' | '\u{2028}' | '\u{2029}'));
                }
                Some((_, '*')) => {
                    while let Some((_, inner)) = chars.next() {
                        if inner == '*' && chars.next_if(|&(_, c)| c == '/').is_some() {
                            break;
                        }
                    }
                }
                _ => {}
            },
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::{Value, json};

    use super::{SourceError, parse, parse_section};

    fn check(text: &str) -> Result<Value, SourceError> {
        parse(text, Path::new("openclaw.json"))
    }

    #[test]
    fn reads_json_and_json5() {
        let value = json!({ "a": 1, "b": [true, null], "c": "x" });
        for text in [
            r#"{"a":1,"b":[true,null],"c":"x"}"#,
            "// hello\n{a: 0x1, 'b': [true, null,], \"c\": 'x', /* end */}",
            "\u{feff}{a:+1,b:[true,null],c:'\\x78'}",
        ] {
            assert_eq!(check(text).expect(text), value, "{text}");
        }
    }

    #[test]
    fn the_last_of_two_equal_keys_counts() {
        assert_eq!(check("{a:1,b:2,a:3}").expect("valid"), json!({ "a": 3, "b": 2 }));
    }

    #[test]
    fn a_syntax_error_has_a_place_and_a_fix() {
        for (text, line, column) in [("{\n  a: 1\n  b: 2\n}", 3, 3), ("{a: [1", 1, 5), ("{a 1}", 1, 4), ("{} x", 1, 4)]
        {
            match check(text) {
                Err(SourceError::Syntax { line: l, column: c, fix, .. }) => {
                    assert_eq!((l, c), (line, column), "{text}");
                    assert!(!fix.is_empty());
                }
                other => panic!("{text}: {other:?}"),
            }
        }
    }

    #[test]
    fn nesting_is_bounded_before_the_reader_recurses() {
        let nested = |depth: usize| format!("{{a:{}{}}}", "[".repeat(depth), "]".repeat(depth));
        assert!(check(&nested(127)).is_ok());
        for text in [nested(128), nested(500_000), format!("// \u{2028}{}", nested(500_000))] {
            assert!(matches!(check(&text), Err(SourceError::TooDeep { .. })));
        }
        let in_text = format!("{{a:'{}', /*{}*/ b:\"\\\"{}\"}}", "[".repeat(500), "{".repeat(500), "[".repeat(500));
        assert!(check(&in_text).is_ok());
    }

    #[test]
    fn the_whole_must_be_a_section() {
        let error = parse_section("[1]", Path::new("c.json")).expect_err("a list");
        assert_eq!(error.to_string(), "c.json holds a list where a section is needed; wrap its settings in { }");
    }
}
