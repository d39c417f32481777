//! One entry of an allowlist.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::arguments::{covers_arguments, exact_arguments, is_exact};
use crate::judge::Grant;
use crate::lookup::Program;
use crate::pattern::Pattern;
use crate::script::{Word, quote};

/// Keys that narrow an entry: with a value of the wrong kind the entry would allow more than was meant.
pub(super) const RESTRICTIONS: [&str; 3] = ["argPattern", "cwd", "source"];

/// The source of an entry that a person made by answering "always".
const ALLOW_ALWAYS: &str = "allow-always";

/// A program that may run, perhaps with certain arguments in a certain folder only.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Entry {
    /// Its name in the file.
    pub id: String,
    /// Which program, see [`Pattern`].
    pub pattern: String,
    /// When it was last used, in milliseconds since 1970.
    pub last_used_at: Option<u64>,
    /// The command that used it last.
    pub last_used_command: Option<String>,
    /// The program that was started then.
    pub last_resolved_path: Option<String>,
    /// Where it comes from; `allow-always` for an answer to a question, nothing for what an operator wrote.
    pub source: Option<String>,
    /// Which arguments: nothing for any, a hash of one invocation, or a regular expression.
    pub arg_pattern: Option<String>,
    /// The only working directory in which it counts. Ours; the peer ignores it.
    pub cwd: Option<String>,
    /// What else stands in the file.
    pub extra: Map<String, Value>,
}

impl Entry {
    /// An entry for this very invocation: the program by its real path, these arguments, this working directory. None
    /// where the entry would cover more than that, or where the arguments are not certain.
    #[must_use]
    pub fn exact(id: String, program: &Program, args: &[Word], cwd: &Path) -> Option<Self> {
        let arg_pattern = Some(exact_arguments(args, cwd)?);
        let cwd = Some(cwd.to_str()?.to_owned());
        Some(Self {
            id,
            pattern: literal(&program.real)?,
            source: Some(ALLOW_ALWAYS.to_owned()),
            arg_pattern,
            cwd,
            ..Self::default()
        })
    }

    /// The entry that a person made by answering "always" at `at`, in milliseconds since 1970.
    #[must_use]
    pub fn granted(id: String, grant: &Grant, at: u64) -> Self {
        let command: Vec<String> = grant.argv.iter().map(|arg| quote(arg)).collect();
        Self {
            id,
            pattern: grant.program.to_string_lossy().into_owned(),
            source: Some(ALLOW_ALWAYS.to_owned()),
            arg_pattern: Some(grant.rule.clone()),
            cwd: Some(grant.cwd.to_string_lossy().into_owned()),
            last_used_at: Some(at),
            last_used_command: Some(command.join(" ")),
            ..Self::default()
        }
    }

    /// An entry for the program with any arguments, anywhere. None where the path cannot be written as a pattern.
    #[must_use]
    pub fn any_arguments(id: String, program: &Program) -> Option<Self> {
        Some(Self { id, pattern: literal(&program.real)?, ..Self::default() })
    }

    /// Whether the entry allows `token`, which starts `program`, to run with `args` in `cwd`.
    #[must_use]
    pub fn covers(&self, program: &Program, token: &str, args: &[Word], cwd: &Path, home: &Path) -> bool {
        let rule = self.arg_pattern.as_deref().filter(|rule| !rule.is_empty());
        // An answer was given for one invocation; older versions of the peer stored it without saying which.
        if self.source.as_deref() == Some(ALLOW_ALWAYS) && !rule.is_some_and(is_exact) {
            return false;
        }
        if self.cwd.as_ref().is_some_and(|only| Path::new(only) != cwd) {
            return false;
        }
        let pattern = Pattern::parse(&self.pattern, home);
        if !pattern.matches(program, token) {
            return false;
        }
        match rule {
            None => true,
            Some(_) if pattern.is_any() => false,
            Some(rule) => covers_arguments(rule, args, cwd),
        }
    }

    /// Whether the entry counts in one working directory only.
    pub(crate) fn is_bound_to_a_folder(&self) -> bool {
        self.cwd.is_some() || self.arg_pattern.as_deref().is_some_and(is_exact)
    }

    /// Whether the entry counts for certain arguments only.
    pub(crate) fn is_bound_to_arguments(&self) -> bool {
        self.arg_pattern.as_deref().is_some_and(|rule| !rule.is_empty())
    }

    /// Whether `other` allows the same.
    pub(super) fn says_the_same(&self, other: &Self) -> bool {
        let rule = |entry: &Self| entry.arg_pattern.clone().filter(|rule| !rule.is_empty());
        let is_answer = |entry: &Self| entry.source.as_deref() == Some(ALLOW_ALWAYS);
        self.pattern.trim() == other.pattern.trim()
            && rule(self) == rule(other)
            && self.cwd == other.cwd
            && is_answer(self) == is_answer(other)
    }

    /// Reads an item of an allowlist.
    pub(super) fn from_value(value: &Value) -> Option<Self> {
        let mut extra = value.as_object()?.clone();
        let mut text = |key: &str| match extra.shift_remove(key) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        };
        let pattern = text("pattern").filter(|pattern| !pattern.trim().is_empty())?;
        Some(Self {
            id: text("id").unwrap_or_default(),
            pattern,
            last_used_command: text("lastUsedCommand"),
            last_resolved_path: text("lastResolvedPath"),
            source: text("source"),
            arg_pattern: text("argPattern"),
            cwd: text("cwd"),
            last_used_at: extra.shift_remove("lastUsedAt").and_then(|at| at.as_u64()),
            extra,
        })
    }

    /// Writes it as an item of an allowlist.
    pub(super) fn to_value(&self) -> Value {
        let mut item = Map::new();
        item.insert("id".to_owned(), json!(self.id));
        item.insert("pattern".to_owned(), json!(self.pattern));
        let texts = [("source", &self.source), ("argPattern", &self.arg_pattern), ("cwd", &self.cwd)];
        let uses = [("lastUsedCommand", &self.last_used_command), ("lastResolvedPath", &self.last_resolved_path)];
        let mut put = |pairs: &[(&str, &Option<String>)]| {
            for (key, value) in pairs {
                if let Some(value) = value {
                    item.insert((*key).to_owned(), json!(value));
                }
            }
        };
        put(&texts);
        put(&uses);
        if let Some(at) = self.last_used_at {
            item.insert("lastUsedAt".to_owned(), json!(at));
        }
        item.extend(self.extra.clone());
        Value::Object(item)
    }
}

/// What makes two items one when an old list is merged: the pattern, whatever its case, and what narrows it.
pub(super) fn legacy_key(item: &Value) -> (String, Vec<Option<Value>>) {
    let pattern = item.get("pattern").and_then(Value::as_str).unwrap_or_default();
    (pattern.to_lowercase(), RESTRICTIONS.iter().map(|key| item.get(*key).cloned()).collect())
}

/// A pattern that means exactly this path. Patterns have no way to write a star that is not a wildcard.
fn literal(path: &Path) -> Option<String> {
    let text = path.to_str().filter(|_| path.is_absolute())?;
    (!text.contains(['*', '?']) && text.trim() == text).then(|| text.to_owned())
}
