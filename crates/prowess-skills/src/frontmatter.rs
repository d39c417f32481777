//! Frontmatter: what does the head of a `SKILL.md` say?
//!
//! One reader for every field, so nothing is read twice with different results. A file that is broken in a known way
//! is mended and the mend is reported as a [`Flaw`]; a `metadata` block that cannot be read is remembered as such and
//! never taken for an absent one.

mod fence;
mod flat;
mod mend;
mod plain;
pub(crate) mod yaml;

use std::borrow::Cow;
use std::path::Path;

use serde_json::Value;

use crate::json;
use crate::problem::{Position, Problem, ProblemKind};
use yaml::{Fault, Pair};

/// A problem in a text whose file is not known here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flaw {
    /// What sort of thing it is.
    pub kind: ProblemKind,
    /// Where in the file.
    pub at: Option<Position>,
    /// What is wrong.
    pub reason: String,
    /// What would mend it.
    pub fix: String,
}

impl Flaw {
    fn mended(at: Position, reason: &str, fix: &str) -> Self {
        Self { kind: ProblemKind::Mended, at: Some(at), reason: reason.to_owned(), fix: fix.to_owned() }
    }

    /// The same as a problem of the file at `path`.
    #[must_use]
    pub fn in_file(self, path: &Path) -> Problem {
        Problem::new(self.kind, path, self.reason, self.fix).at(self.at)
    }
}

/// The frontmatter of one file.
///
/// ```
/// use prowess_skills::Document;
///
/// let document = Document::parse(b"---\nname: weather\ndescription: Use when: it rains\n---\n# Weather\n").unwrap();
/// assert_eq!(document.text("description").as_deref(), Some("Use when: it rains"));
/// assert_eq!(document.flaws().len(), 1); // the unquoted colon was mended
/// ```
#[derive(Debug, Clone)]
pub struct Document<'a> {
    header: Cow<'a, str>,
    pairs: Vec<Pair>,
    first_line: usize,
    flaws: Vec<Flaw>,
    metadata_flaw: Option<Flaw>,
}

impl<'a> Document<'a> {
    /// Reads the frontmatter at the head of `bytes`, mending it where the intent is clear.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Flaw> {
        let block = fence::find(bytes)?;
        let mut document = Self {
            header: block.header,
            pairs: Vec::new(),
            first_line: block.line,
            flaws: block.flaws,
            metadata_flaw: None,
        };
        if document.header.trim().is_empty() {
            return Ok(document);
        }
        if let Some(pairs) = plain::mapping(&document.header) {
            document.pairs = pairs;
            return Ok(document);
        }
        match yaml::mapping(&document.header) {
            Ok(pairs) => document.pairs = pairs,
            Err(found) => document.mend(&found)?,
        }
        Ok(document)
    }

    fn mend(&mut self, found: &yaml::YamlError) -> Result<(), Flaw> {
        let at = Position { line: self.first_line + found.line.max(1) - 1, column: found.column };
        if found.fault == Fault::TooMuch {
            return Err(bad(at, &found.reason, "write less, or without aliases"));
        }
        let mended = mend::entries(&self.header, self.first_line);
        if mended.pairs.is_empty() && mended.metadata_flaw.is_none() {
            return Err(bad(at, &found.reason, "write one `key: value` per line"));
        }
        self.pairs = mended.pairs;
        self.flaws.extend(mended.flaws);
        self.metadata_flaw = mended.metadata_flaw;
        Ok(())
    }

    /// What was mended, in the order of the file.
    #[must_use]
    pub fn flaws(&self) -> &[Flaw] {
        &self.flaws
    }

    /// The value of a top-level key; null counts as absent.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.pair(key).map(|pair| &pair.value).filter(|value| !value.is_null())
    }

    /// The value of a top-level key as text: strings as they are, numbers and booleans as the peer prints them, lists
    /// and maps as their source or JSON.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<String> {
        self.pair(key).filter(|pair| !pair.value.is_null()).map(|pair| flat::text(&self.header, pair))
    }

    /// The text of a top-level key, taken out of the document when that saves a copy.
    pub(crate) fn take_text(&mut self, key: &str) -> Option<String> {
        match self.pairs.iter_mut().find(|pair| pair.key == key).map(|pair| &mut pair.value) {
            Some(Value::String(text)) => Some(std::mem::take(text)),
            _ => self.text(key),
        }
    }

    /// All top-level keys and their text, as OpenClaw's flat frontmatter map has them.
    #[must_use]
    pub fn flat(&self) -> Vec<(String, String)> {
        flat::map(&self.header, &self.pairs)
    }

    /// Where a key stands in the file.
    #[must_use]
    pub fn position(&self, key: &str) -> Option<Position> {
        self.pair(key).map(|pair| Position { line: self.first_line + pair.line - 1, column: 1 })
    }

    /// The top-level keys in the order of the file.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.pairs.iter().map(|pair| pair.key.as_ref())
    }

    /// The `metadata` value as an object: written as YAML, as JSON or JSON5 in flow, or as text that holds either.
    ///
    /// `Ok(None)` means there is none. An error means there is one that cannot be read, so what the skill needs is
    /// not known.
    pub fn metadata(&self) -> Result<Option<Cow<'_, Value>>, Flaw> {
        if let Some(flaw) = &self.metadata_flaw {
            return Err(flaw.clone());
        }
        let Some(pair) = self.pair("metadata") else { return Ok(None) };
        let unreadable = |reason: &str| Flaw {
            kind: ProblemKind::BadMetadata,
            at: self.position("metadata"),
            reason: format!("`metadata` cannot be read: {reason}"),
            fix: "write it as JSON or as nested YAML".to_owned(),
        };
        match &pair.value {
            Value::Object(map) if map.keys().any(|key| key.starts_with("//") || key.starts_with("/*")) => {
                // A JavaScript comment in a flow map: YAML takes it for a part of the next key, JSON5 does not.
                let source = crate::text::trim(&self.header[pair.source.clone()]);
                json::parse(source).map(|value| Some(Cow::Owned(value))).map_err(|reason| unreadable(&reason))
            }
            value @ (Value::Object(_) | Value::Array(_)) => Ok(Some(Cow::Borrowed(value))),
            Value::String(text) => match json::parse(text) {
                Ok(value @ Value::Object(_)) => Ok(Some(Cow::Owned(value))),
                Err(reason) if names_a_manifest(text) => Err(unreadable(&reason)),
                Ok(_) | Err(_) => Ok(None),
            },
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(None),
        }
    }

    fn pair(&self, key: &str) -> Option<&Pair> {
        self.pairs.iter().find(|pair| pair.key == key)
    }
}

/// Whether an unreadable text was meant to say what the skill needs.
fn names_a_manifest(text: &str) -> bool {
    text.contains(['{', '[']) || ["openclaw", "clawdbot", "clawdis", "requires"].iter().any(|word| text.contains(word))
}

fn bad(at: Position, reason: &str, fix: &str) -> Flaw {
    Flaw {
        kind: ProblemKind::BadFrontmatter,
        at: Some(at),
        reason: format!("the frontmatter cannot be read: {reason}"),
        fix: fix.to_owned(),
    }
}
