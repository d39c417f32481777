//! What went wrong without stopping us: a [`Problem`] says where, why, and what to do about it.

use std::fmt;
use std::path::{Path, PathBuf};

/// How much a problem matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing; nothing was lost.
    Note,
    /// Something was mended, ignored or left out that its author would want to see.
    Warning,
    /// A skill is lost or held back.
    Error,
}

impl Severity {
    /// The word used in reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// What sort of thing a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ProblemKind {
    /// The frontmatter was broken in a known way and has been mended.
    Mended,
    /// There is no frontmatter.
    NoFrontmatter,
    /// There is no description, so a model could not choose the skill.
    NoDescription,
    /// The frontmatter cannot be read.
    BadFrontmatter,
    /// The `metadata` block cannot be read, so the skill's needs are unknown.
    BadMetadata,
    /// A part of the metadata has no meaning here and was ignored.
    IgnoredMetadata,
    /// The file is larger than the limit.
    TooLarge,
    /// More skills, folders or levels than a limit allows.
    OverLimit,
    /// A link leads out of the folder it belongs to.
    Escapes,
    /// The file has more than one hard link.
    HardLinked,
    /// A link leads nowhere, or in a circle.
    DeadLink,
    /// The file or folder cannot be read.
    Unreadable,
    /// `SKILL.md` is not a regular file.
    NotAFile,
    /// The path cannot be shown to a model so that it could read it.
    UnsafePath,
    /// A file that only looks like `SKILL.md`.
    NearMiss,
    /// Skills below a folder that is itself a skill are not looked at.
    Swallowed,
    /// A folder the configuration names is not there.
    MissingRoot,
    /// A plugin's manifest or one of its skill folders cannot be used.
    Plugin,
    /// A setting cannot be used as written.
    Setting,
    /// A skill has the key of an entry that belongs to another one.
    Unbound,
    /// The name could be taken for that of another skill.
    Lookalike,
    /// The name is a path; another one is used.
    UnsafeName,
    /// The description takes more than its share of the prompt, and is cut there.
    LongDescription,
}

impl ProblemKind {
    /// A stable identifier for machines.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mended => "mended",
            Self::NoFrontmatter => "no-frontmatter",
            Self::NoDescription => "no-description",
            Self::BadFrontmatter => "bad-frontmatter",
            Self::BadMetadata => "bad-metadata",
            Self::IgnoredMetadata => "ignored-metadata",
            Self::TooLarge => "too-large",
            Self::OverLimit => "over-limit",
            Self::Escapes => "escapes",
            Self::HardLinked => "hard-linked",
            Self::DeadLink => "dead-link",
            Self::Unreadable => "unreadable",
            Self::NotAFile => "not-a-file",
            Self::UnsafePath => "unsafe-path",
            Self::NearMiss => "near-miss",
            Self::Swallowed => "swallowed",
            Self::MissingRoot => "missing-root",
            Self::Plugin => "plugin",
            Self::Setting => "setting",
            Self::Unbound => "unbound",
            Self::Lookalike => "lookalike",
            Self::UnsafeName => "unsafe-name",
            Self::LongDescription => "long-description",
        }
    }

    /// How much a problem of this kind matters.
    #[must_use]
    pub fn severity(self) -> Severity {
        match self {
            Self::MissingRoot | Self::DeadLink => Severity::Note,
            Self::Mended
            | Self::IgnoredMetadata
            | Self::Swallowed
            | Self::Plugin
            | Self::Setting
            | Self::Unbound
            | Self::Lookalike
            | Self::UnsafeName
            | Self::LongDescription
            | Self::OverLimit => Severity::Warning,
            Self::NoFrontmatter
            | Self::NoDescription
            | Self::BadFrontmatter
            | Self::BadMetadata
            | Self::TooLarge
            | Self::Escapes
            | Self::HardLinked
            | Self::Unreadable
            | Self::NotAFile
            | Self::NearMiss
            | Self::UnsafePath => Severity::Error,
        }
    }
}

/// A place in a file. Lines and columns start at 1; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
}

/// Something wrong with a file, a folder or a setting, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What sort of thing it is.
    pub kind: ProblemKind,
    /// The file or folder.
    pub path: PathBuf,
    /// Where in the file, when that is known.
    pub at: Option<Position>,
    /// What is wrong.
    pub reason: String,
    /// What would mend it.
    pub fix: String,
}

impl Problem {
    /// A problem with `path` as a whole.
    #[must_use]
    pub fn new(kind: ProblemKind, path: &Path, reason: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { kind, path: path.to_owned(), at: None, reason: reason.into(), fix: fix.into() }
    }

    /// The same problem at a place in the file.
    #[must_use]
    pub fn at(mut self, at: Option<Position>) -> Self {
        self.at = at;
        self
    }

    /// How much it matters.
    #[must_use]
    pub fn severity(&self) -> Severity {
        self.kind.severity()
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let Some(at) = self.at {
            write!(f, ":{}:{}", at.line, at.column)?;
        }
        write!(f, ": {} ({})", self.reason, self.fix)
    }
}
