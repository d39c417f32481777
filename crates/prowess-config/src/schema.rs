//! Which settings do we know, of what type, and what do they mean?
//!
//! One table, and a check that compares a tree with it. Unknown keys stay in the tree and are reported; values of the
//! wrong type are reported and taken out, so that the default applies.

mod check;
mod lookup;
mod table;

use std::fmt;

use serde_json::Value;

pub(crate) use check::{check_flag, plan_check};
pub use lookup::find;
pub use table::KEYS;

/// One known setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// Its place: `<…>` stands for any one key or list position, `**` for any number of them.
    pub path: &'static str,
    /// What may be there.
    pub kind: Kind,
    /// What applies when nothing is there, as JSON.
    pub default: Option<&'static str>,
    /// What it is for.
    pub meaning: &'static str,
    /// For a setting that has no effect here: what to do instead.
    pub instead: Option<&'static str>,
}

/// What may be at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A section whose keys are all in the table.
    Section,
    /// A section in which OpenClaw has more settings than we use; those are reported as settings without effect.
    Open,
    /// A section with keys that we do not name: a record, or something that others read.
    Free,
    /// A list of sections.
    List,
    /// Anything at all; it is not looked into.
    Anything,
    /// On or off.
    Switch,
    /// On, off, or one of these words.
    SwitchOr(&'static [&'static str]),
    /// One of these words.
    Choice(&'static [&'static str]),
    /// One of these words, or an IP address.
    ChoiceOrAddress(&'static [&'static str]),
    /// A whole number within these bounds.
    Count {
        /// The smallest allowed.
        min: u64,
        /// The largest allowed.
        max: u64,
    },
    /// A text.
    Text,
    /// A text, or a section whose keys are all in the table.
    TextOrSection,
    /// A text that is not shown, or a reference to where it is kept.
    Secret,
    /// A list of texts.
    TextList,
    /// A list of texts, or `false` for none at all.
    TextListOrFalse,
}

/// What would be right there, in words.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = |words: &[&str]| words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ");
        match self {
            Self::Section | Self::Open | Self::Free => f.write_str("an object { … }"),
            Self::List => f.write_str("a list of objects [ { … } ]"),
            Self::Anything => f.write_str("anything"),
            Self::Switch => f.write_str("true or false"),
            Self::SwitchOr(choices) => write!(f, "true, false or {}", words(choices)),
            Self::Choice(choices) => write!(f, "one of {}", words(choices)),
            Self::ChoiceOrAddress([]) => f.write_str("an IP address"),
            Self::ChoiceOrAddress(choices) => write!(f, "one of {}, or an IP address", words(choices)),
            Self::Count { min, max: u64::MAX } => write!(f, "a whole number, at least {min}"),
            Self::Count { min, max } => write!(f, "a whole number from {min} to {max}"),
            Self::Text => f.write_str("text"),
            Self::TextOrSection => f.write_str("text or an object { … }"),
            Self::Secret => f.write_str("text, or a secret reference { source, provider, id }"),
            Self::TextList => f.write_str("a list of strings"),
            Self::TextListOrFalse => f.write_str("a list of strings, or false"),
        }
    }
}

impl Key {
    /// The value that applies when nothing is there.
    #[must_use]
    pub fn default_value(&self) -> Option<Value> {
        serde_json::from_str(self.default?).ok()
    }

    /// For a setting that restricts: the value that a wrong one is taken for, which restricts the most. What someone
    /// may have meant to switch off is not left on by a slip.
    fn strict(&self) -> Option<Value> {
        match self.path {
            "skills.allowBundled"
            | "skills.entries.<key>.enabled"
            | "plugins.enabled"
            | "plugins.entries.<id>.enabled" => Some(Value::Bool(false)),
            path if path.ends_with("tools.exec.security") => Some("deny".into()),
            path if path.ends_with("tools.exec.ask") => Some("always".into()),
            path if path.ends_with(".skills") || path.ends_with("tools.exec.safeBins") => {
                Some(Value::Array(Vec::new()))
            }
            _ => None,
        }
    }

    /// Whether a wrong value stays, because the gateway refuses to start with it. Where it listens and who may connect is
    /// nothing to guess.
    fn is_refused_later(&self) -> bool {
        matches!(
            self.path,
            "gateway.port"
                | "gateway.bind"
                | "gateway.customBindHost"
                | "gateway.auth.mode"
                | "gateway.auth.token"
                | "gateway.auth.password"
        )
    }
}

/// Whether a list belongs at this place.
pub(crate) fn is_list(path: &[String]) -> bool {
    find(path).is_some_and(|key| matches!(key.kind, Kind::List | Kind::TextList | Kind::TextListOrFalse))
}

/// Second names of settings, and the first name of each.
pub(crate) const ALIASES: [(&[&str], &[&str]); 1] =
    [(&["skills", "load", "debounceMs"], &["skills", "load", "watchDebounceMs"])];

/// The first name of the setting at `path`.
pub(crate) fn canonical(path: &[String]) -> Vec<String> {
    let alias = ALIASES.iter().find(|(alias, _)| path == *alias);
    alias.map_or_else(|| path.to_vec(), |(_, first)| first.iter().map(|&segment| segment.to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::{KEYS, Kind, find};

    fn check(path: &str) -> Option<&'static str> {
        find(&path.split('.').map(str::to_owned).collect::<Vec<_>>()).map(|key| key.path)
    }

    fn has_rows_below(kind: Kind) -> bool {
        matches!(kind, Kind::Section | Kind::Open | Kind::List | Kind::TextOrSection)
    }

    #[test]
    fn the_most_literal_row_wins() {
        assert_eq!(check("skills.entries.x.env"), Some("skills.entries.<key>.env"));
        assert_eq!(check("env.vars"), Some("env.vars"));
        assert_eq!(check("env.FOO"), Some("env.<NAME>"));
        assert_eq!(check("channels.telegram.groups.1.skills"), Some("channels.**.skills"));
        assert_eq!(check("channels.telegram.groups"), None);
        assert_eq!(check("agents.list.0.skills"), Some("agents.list.<n>.skills"));
    }

    #[test]
    fn the_table_is_sound() {
        for (position, key) in KEYS.iter().enumerate() {
            assert!(KEYS[..position].iter().all(|other| other.path != key.path), "twice: {}", key.path);
            assert_eq!(key.default.is_some(), key.default_value().is_some(), "default of {}", key.path);
            for text in [Some(key.meaning), key.instead].into_iter().flatten() {
                assert!(!text.is_empty() && !text.ends_with('.'), "text of {}", key.path);
            }
            let parent: Vec<_> = key.path.split('.').collect();
            for depth in 1..parent.len() {
                let above = parent[..depth].join(".");
                let row = KEYS.iter().find(|other| other.path == above);
                assert!(above.contains("**") || row.is_some(), "{} has no row for {above}", key.path);
                assert!(row.is_none_or(|row| has_rows_below(row.kind)), "{above}");
            }
        }
    }
}
