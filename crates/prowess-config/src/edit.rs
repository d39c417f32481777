//! How is one setting in the file changed, without harm to the rest of it?
//!
//! The change is planned on the text, keeping comments, order and layout; the new text is read again and must say
//! exactly the old plus the change; then it replaces the file in one step. If anything is in doubt, nothing is written.

mod text;
mod write;

use std::io;
use std::path::{Path, PathBuf};

use prowess_files::Holder;
use serde_json::Value;
use thiserror::Error;

use crate::include::{Expanded, INCLUDE, IncludeError, load_includes};
use crate::schema::{canonical, check_flag};
use crate::source::{self, SourceError};
use crate::tree::lookup;
use crate::{FlagError, KeyPath, PathError};

/// One change of a configuration file.
#[derive(Clone, PartialEq)]
pub enum Change {
    /// Put this value at this place, making the sections that lead there.
    Set(KeyPath, Value),
    /// Remove what is at this place.
    Unset(KeyPath),
}

/// Without the value, which may be a secret.
impl std::fmt::Debug for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Set(path, _) => write!(f, "Set({path})"),
            Self::Unset(path) => write!(f, "Unset({path})"),
        }
    }
}

impl Change {
    /// The place that changes.
    #[must_use]
    pub fn path(&self) -> &KeyPath {
        match self {
            Self::Set(path, _) | Self::Unset(path) => path,
        }
    }
}

/// What a change did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edited {
    /// The file that was written, or would have been.
    pub file: PathBuf,
    /// Whether it differs from before.
    pub changed: bool,
    /// After a removal: the included file whose value applies now.
    pub revealed: Option<PathBuf>,
}

/// Why a change was not made. The file is as it was.
#[derive(Debug, Error)]
pub enum EditError {
    /// The path makes no sense.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The file, or the file after the change, cannot be read as a configuration.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// After the change, an include would fail.
    #[error(transparent)]
    Include(#[from] IncludeError),
    /// The value does not belong there, or its place cannot be reached.
    #[error(transparent)]
    Value(#[from] FlagError),
    /// An included file provides the value, and nothing in this file can take it away.
    #[error("`{path}` comes from {}, which this file includes; change it there", include.display())]
    FromInclude {
        /// The place.
        path: KeyPath,
        /// The file that provides the value.
        include: PathBuf,
    },
    /// The file uses a notation that we can read but not change.
    #[error("{}:{line}:{column}: this notation can be read but not edited ({reason}); change the file by hand", file.display())]
    Notation {
        /// The file.
        file: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The column, counted from 1.
        column: usize,
        /// What the editor stumbled over.
        reason: String,
    },
    /// The changed text would not say what was asked for.
    #[error("`{path}` cannot be changed in {} without changing something else; change the file by hand", file.display())]
    Unfaithful {
        /// The place.
        path: KeyPath,
        /// The file.
        file: PathBuf,
    },
    /// Someone else is changing the file and does not finish.
    #[error("{} is being changed by {holder}, which holds {}; try again when it is done", file.display(), lock.display())]
    Busy {
        /// The file.
        file: PathBuf,
        /// The lock it holds.
        lock: PathBuf,
        /// Who holds it.
        holder: Holder,
    },
    /// Someone else changed the file each time we were about to.
    #[error("{} keeps changing while it is being edited; close the other program and try again", file.display())]
    Changing {
        /// The file.
        file: PathBuf,
    },
    /// The system would not let us write.
    #[error("cannot write {}: {source}; check that you may write to its directory", file.display())]
    Write {
        /// The file.
        file: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// A configuration file that can be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFile {
    path: PathBuf,
}

/// How often to start over when the file changes under our hands.
const MAX_TRIES: usize = 5;

impl ConfigFile {
    /// The file at `path`, whether it exists or not.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Where the file is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Puts `value` at a place such as `skills.load.watch`.
    ///
    /// A text that reads as what belongs there is taken as that, so `"true"` becomes `true` for a switch. A text with
    /// `${NAME}` in it is written as it is.
    pub fn set(&self, path: &str, value: Value) -> Result<Edited, EditError> {
        let path: KeyPath = canonical(path.parse::<KeyPath>()?.segments()).into_iter().collect();
        let is_reference = value.as_str().is_some_and(|text| text.contains("${"));
        let value = if is_reference {
            value
        } else {
            check_flag(path.segments(), value)
                .map_err(|expected| FlagError::WrongValue { path: path.clone(), expected })?
        };
        self.write(&Change::Set(path, value))
    }

    /// Removes what is at a place such as `skills.load.watch`.
    pub fn unset(&self, path: &str) -> Result<Edited, EditError> {
        self.write(&Change::Unset(path.parse()?))
    }

    /// Makes one change. Several of these at the same time wait for each other.
    pub fn write(&self, change: &Change) -> Result<Edited, EditError> {
        self.write_all(std::slice::from_ref(change))
    }

    /// Makes several changes in one step: all of them, or none.
    pub fn write_all(&self, changes: &[Change]) -> Result<Edited, EditError> {
        let target = write::follow_links(&self.path)?;
        let removes = changes.iter().all(|change| matches!(change, Change::Unset(_)));
        if removes && write::read_bytes(&target)?.is_none() {
            return Ok(Edited { file: target, changed: false, revealed: None });
        }
        let _lock = write::lock(&target)?;
        for _ in 0..MAX_TRIES {
            let before = write::read_bytes(&target)?;
            let old = before.as_deref().unwrap_or_default();
            let old = std::str::from_utf8(old)
                .map_err(|error| SourceError::NotText { file: target.clone(), offset: error.valid_up_to() })?;
            let mut revealed = None;
            let new = changes.iter().try_fold(old.to_owned(), |text, change| {
                let (text, seen) = self.probe(&text, change)?;
                revealed = revealed.take().or(seen);
                Ok::<_, EditError>(text)
            })?;
            let is_other = new != old;
            if !is_other || write::replace(&target, before.as_deref(), &new)? {
                return Ok(Edited { file: target, changed: is_other, revealed });
            }
        }
        Err(EditError::Changing { file: target })
    }

    /// What the file says now; nothing when there is none.
    pub fn read(&self) -> Result<Option<String>, EditError> {
        let target = write::follow_links(&self.path)?;
        let Some(bytes) = write::read_bytes(&target)? else { return Ok(None) };
        let text = String::from_utf8(bytes);
        text.map(Some)
            .map_err(|error| SourceError::NotText { file: target, offset: error.utf8_error().valid_up_to() }.into())
    }

    /// The value that `text` has, as it is written: without includes, and with variables by their names.
    pub fn parse(&self, text: &str) -> Result<Value, EditError> {
        if crate::tree::trim(text).is_empty() {
            return Ok(crate::tree::empty());
        }
        Ok(source::parse_section(text, &self.path)?)
    }

    /// What `text` would say after these changes, with all else in it as it is. Nothing is written.
    pub fn preview(&self, text: &str, changes: &[Change]) -> Result<String, EditError> {
        changes.iter().try_fold(text.to_owned(), |text, change| Ok(self.probe(&text, change)?.0))
    }

    /// Puts `text` in the place of `before`, if that is what the file still says.
    pub fn exchange(&self, before: Option<&str>, text: &str) -> Result<Edited, EditError> {
        source::parse_section(text, &self.path)?;
        let target = write::follow_links(&self.path)?;
        let _lock = write::lock(&target)?;
        if write::read_bytes(&target)?.as_deref() != before.map(str::as_bytes) {
            return Err(EditError::Changing { file: target });
        }
        let changed = before != Some(text);
        if !changed || write::replace(&target, before.map(str::as_bytes), text)? {
            return Ok(Edited { file: target, changed, revealed: None });
        }
        Err(EditError::Changing { file: target })
    }

    /// The text after the change, and the included file whose value appears by it.
    fn probe(&self, old: &str, change: &Change) -> Result<(String, Option<PathBuf>), EditError> {
        let new = text::rewrite(old, change, &self.path)?;
        // The common case: nothing is included, so what the file says is what applies.
        if !new.contains(INCLUDE) {
            return Ok((new, None));
        }
        let raw = source::parse_section(&new, &self.path)?;
        let merged = load_includes(raw.clone(), Some(&self.path))?;
        let path = change.path();
        refuse_mixed_lists(&raw, &merged, path)?;
        let found = lookup(&merged.tree.value, path.segments());
        match change {
            Change::Set(_, value) => {
                let is_include = path.segments().last().is_some_and(|key| key == INCLUDE);
                if is_include || found.is_some_and(|found| covers(found, value)) {
                    return Ok((new, None));
                }
                Err(from_include(&merged, path, &self.path))
            }
            Change::Unset(_) if found.is_none() => Ok((new, None)),
            Change::Unset(_) if new == old => Err(from_include(&merged, path, &self.path)),
            Change::Unset(_) => Ok((new, foreign_file(&merged, path))),
        }
    }
}

/// Refuses paths through a list that an include adds to: its positions are not those in the file.
fn refuse_mixed_lists(raw: &Value, merged: &Expanded, path: &KeyPath) -> Result<(), EditError> {
    let segments = path.segments();
    for depth in 1..segments.len() {
        let here = &segments[..depth];
        let lengths =
            (lookup(raw, here).and_then(Value::as_array), lookup(&merged.tree.value, here).and_then(Value::as_array));
        if let (Some(raw), Some(merged_list)) = lengths
            && raw.len() != merged_list.len()
        {
            let list: KeyPath = here.iter().collect();
            let include = foreign_file(merged, &list).unwrap_or_default();
            return Err(EditError::FromInclude { path: path.clone(), include });
        }
    }
    Ok(())
}

fn from_include(merged: &Expanded, path: &KeyPath, file: &Path) -> EditError {
    match foreign_file(merged, path) {
        Some(include) => EditError::FromInclude { path: path.clone(), include },
        None => EditError::Unfaithful { path: path.clone(), file: file.to_owned() },
    }
}

fn foreign_file(merged: &Expanded, path: &KeyPath) -> Option<PathBuf> {
    merged.tree.origin.foreign(path.segments()).and_then(|file| merged.files.get(file).cloned())
}

/// Whether `found` says at least what `wanted` says. An include may add keys to a section, but nothing to a list.
fn covers(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => {
            wanted.iter().all(|(key, wanted)| found.get(key).is_some_and(|found| covers(found, wanted)))
        }
        (found, wanted) => text::same(found, wanted),
    }
}
