//! What went less than well, without stopping us?

use std::fmt;
use std::path::PathBuf;

use crate::KeyPath;

/// Something in the configuration that the operator should know about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// Where in the configuration; the root when it is about a whole file.
    pub path: KeyPath,
    /// In which file, if it is in one.
    pub file: Option<PathBuf>,
    /// What it is.
    pub kind: WarningKind,
}

/// What a [`Warning`] is about. Values are never part of it: they may be secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum WarningKind {
    /// We do not know this key; it is kept and does nothing here.
    UnknownKey {
        /// A known key with a similar name.
        suggestion: Option<String>,
    },
    /// The value has the wrong type; the default is used.
    WrongType {
        /// What would be right.
        expected: String,
        /// The type that is there.
        found: &'static str,
    },
    /// The value of a setting that restricts cannot be used; it is taken for the strictest one.
    Restricted {
        /// What would be right.
        expected: String,
        /// The type that is there.
        found: &'static str,
    },
    /// The value has the right type but is not allowed; the default is used.
    NotAllowed {
        /// What would be right.
        expected: String,
    },
    /// The value cannot be used, and the gateway does not start with it.
    Refused {
        /// What would be right.
        expected: String,
    },
    /// The value has the wrong type but reads as the right one, so it is taken.
    Converted {
        /// What would be right.
        expected: String,
        /// The type that is there.
        found: &'static str,
    },
    /// `${NAME}` names a variable that is missing or empty, so the value is unavailable.
    Unavailable {
        /// The variable.
        variable: String,
    },
    /// A second name for a setting, which also appears under its first name; the first name wins.
    AliasIgnored {
        /// The name that is used.
        used: String,
    },
    /// A variable that a configuration must not set.
    RefusedVariable {
        /// The variable.
        name: String,
        /// Why not.
        reason: &'static str,
    },
    /// The login shell's variables are asked for; they are never imported.
    ShellImport,
    /// Several agents say they are the default; the first one is.
    SeveralDefaults {
        /// The agent that is used.
        used: String,
    },
    /// Two agents have the same id; the first one counts.
    DuplicateAgent {
        /// The id.
        id: String,
    },
    /// A key with a meaning of its own to the peer's runtime, which no merge carries over.
    SkippedKey {
        /// The key.
        key: String,
    },
    /// A line of a `.env` file that is not `NAME=value`.
    BadLine {
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A `.env` file that is there but cannot be read.
    Unreadable {
        /// The cause.
        reason: String,
    },
    /// A setting of OpenClaw's that is accepted and has no effect here.
    NoEffect {
        /// What to do instead.
        instead: &'static str,
    },
    /// A setting that OpenClaw may know, and that has no effect here.
    NotUsed,
    /// The configuration file is blank, which counts as an empty configuration.
    BlankFile,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.segments().is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        write!(f, "{}", self.kind)?;
        match &self.file {
            Some(file) => write!(f, " (in {})", file.display()),
            None => Ok(()),
        }
    }
}

impl fmt::Display for WarningKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownKey { suggestion: Some(near) } => write!(f, "unknown key, ignored; did you mean `{near}`?"),
            Self::UnknownKey { suggestion: None } => f.write_str("unknown key, ignored"),
            Self::WrongType { expected, found } => {
                write!(f, "expected {expected}, found {found}; the default is used instead")
            }
            Self::Restricted { expected, found } => {
                write!(f, "expected {expected}, found {found}; the strictest value is used instead")
            }
            Self::NotAllowed { expected } => write!(f, "expected {expected}; the default is used instead"),
            Self::Refused { expected } => write!(f, "expected {expected}; the gateway does not start with this value"),
            Self::Converted { expected, found } => write!(f, "read {found} as {expected}; write it as {expected}"),
            Self::Unavailable { variable } => {
                write!(f, "the variable {variable} is missing or empty, so this value is not set; set {variable}")
            }
            Self::AliasIgnored { used } => write!(f, "ignored, because `{used}` is set too; remove one of them"),
            Self::RefusedVariable { name, reason } => write!(f, "ignored the variable {name:?}: {reason}"),
            Self::ShellImport => {
                f.write_str("prowess does not import variables from the login shell; list them in env.vars or in .env in the state directory")
            }
            Self::SeveralDefaults { used } => {
                write!(f, "several agents are marked as the default, and `{used}` is used; mark only one")
            }
            Self::DuplicateAgent { id } => {
                write!(f, "the agent id `{id}` appears more than once and only the first counts; rename the other")
            }
            Self::SkippedKey { key } => write!(f, "ignored the key `{key}` of an include; rename it"),
            Self::BadLine { line, reason } => write!(f, "ignored line {line}: {reason}"),
            Self::Unreadable { reason } => write!(f, "cannot be read, and is ignored: {reason}"),
            Self::NoEffect { instead } => write!(f, "has no effect in prowess; {instead}"),
            Self::NotUsed => f.write_str("has no effect in prowess; remove it, or check its spelling with prowess config keys"),
            Self::BlankFile => f.write_str("the file is empty; write {} to it, or remove it"),
        }
    }
}
