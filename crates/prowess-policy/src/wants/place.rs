//! What has to be opened to a command so that it can change a file outside the sandbox, and can it be?
//!
//! Only what is there can be opened. A file or a directory that a command would make is made for it; a command that makes,
//! renames or removes the name itself needs the directory around it. A home is never opened as a whole, nor is a
//! directory with secrets of the system in it.

use std::fmt;
use std::path::{Path, PathBuf};

use super::Reader;
use super::paths::Makes;
use crate::script::quote;

/// What is opened to a command.
pub(super) struct OpenPlace {
    pub(super) open: PathBuf,
    /// What has to be made first; a directory has a `/` behind it.
    pub(super) made: Option<PathBuf>,
}

/// Something that a command needs and that no answer can give it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unleasable {
    /// What it would change, if it is that.
    pub path: Option<PathBuf>,
    /// Why it stays closed.
    pub why: &'static str,
    /// What to do instead.
    pub remedy: String,
}

impl fmt::Display for Unleasable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => write!(f, "it would change {}, and no answer can allow that: {}", path.display(), self.why),
            None => write!(f, "it cannot work here, whatever you allow: {}", self.why),
        }
    }
}

impl Unleasable {
    /// A program that cannot work in the sandbox.
    pub(super) fn new(why: &'static str, remedy: String) -> Self {
        Self { path: None, why, remedy }
    }
}

impl Reader<'_> {
    /// What has to be open for a command to change `path`, which lies outside.
    pub(super) fn place_for(&self, path: PathBuf, makes: Makes) -> Result<OpenPlace, Unleasable> {
        let parent = path.parent().unwrap_or(&path).to_owned();
        let is_there = self.lookup.exists(&path);
        if self.ground.home.starts_with(&path) {
            let why = "a home is never opened as a whole";
            return Err(Unleasable { path: Some(path), why, remedy: "name the file or directory in it".to_owned() });
        }
        let place = match makes {
            Makes::Name if !(is_there && self.lookup.is_dir(&path)) => {
                self.check_whole(&path, &parent)?;
                OpenPlace { open: self.first_there(&parent), made: None }
            }
            Makes::File if !is_there && self.lookup.exists(&parent) => {
                OpenPlace { made: Some(path.clone()), open: path.clone() }
            }
            Makes::Dir if !is_there => {
                let first = self.first_missing(&path);
                OpenPlace { made: Some(first.join("")), open: first }
            }
            Makes::Name | Makes::File | Makes::Dir | Makes::Nothing => OpenPlace { open: path.clone(), made: None },
        };
        if !self.lookup.can_change(&self.first_there(&place.open)) {
            let why = "you have no permission to change it, and a command has no more than you";
            return Err(Unleasable {
                path: Some(path),
                why,
                remedy: "run it yourself, with the permission it needs".to_owned(),
            });
        }
        Ok(place)
    }

    /// Whether `dir` can be opened as a whole, for a command that makes or replaces `path` in it.
    fn check_whole(&self, path: &Path, dir: &Path) -> Result<(), Unleasable> {
        let why = if self.ground.home.starts_with(dir) {
            "it has to change the directory around it, and a home is never opened as a whole"
        } else if self.ground.hidden.iter().any(|hidden| hidden != dir && hidden.starts_with(dir)) {
            "it has to change the directory around it, in which there are secrets"
        } else {
            return Ok(());
        };
        let program = self.segment.argv.first().map_or("", |program| super::base(program));
        let shown = quote(&path.to_string_lossy());
        let remedy = match program {
            "mkdir" => format!("use mkdir -p {shown}"),
            "mv" => "copy it with cp, which changes the file only, and remove the original".to_owned(),
            _ => format!("write it in the workspace, and copy it to {shown} with cp"),
        };
        Err(Unleasable { path: Some(path.to_owned()), why, remedy })
    }

    /// The nearest of `path` and the directories around it that is there.
    fn first_there(&self, path: &Path) -> PathBuf {
        path.ancestors().find(|dir| self.lookup.exists(dir)).unwrap_or(path).to_owned()
    }

    /// The outermost directory on the way to `path` that is not there.
    fn first_missing(&self, path: &Path) -> PathBuf {
        let missing = path.ancestors().take_while(|dir| !self.lookup.exists(dir));
        missing.last().unwrap_or(path).to_owned()
    }
}
