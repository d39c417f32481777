//! The Agent Skills standard: does this skill travel well?
//!
//! OpenClaw loads skills that break these rules, and so do we; other runtimes may not. So each broken rule can be shown.

use std::fmt;

/// The longest name the standard allows, in characters.
pub const MAX_NAME: usize = 64;
/// The longest description the standard allows, in characters.
pub const MAX_DESCRIPTION: usize = 1024;

/// A rule of the standard that a skill breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Violation {
    /// The name is not the name of its folder.
    NameIsNotFolder,
    /// The name is too long.
    LongName,
    /// The name has characters other than a–z, 0–9 and the hyphen.
    NameCharacters,
    /// The name starts or ends with a hyphen.
    HyphenAtEnd,
    /// The name has two hyphens in a row.
    DoubleHyphen,
    /// The description is too long.
    LongDescription,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NameIsNotFolder => "the name differs from its folder's name",
            Self::LongName => "the name has more than 64 characters",
            Self::NameCharacters => "the name has characters other than a-z, 0-9 and -",
            Self::HyphenAtEnd => "the name starts or ends with a hyphen",
            Self::DoubleHyphen => "the name has two hyphens in a row",
            Self::LongDescription => "the description has more than 1024 characters",
        })
    }
}

/// The rules that a skill called `name` in the folder `folder` breaks.
#[must_use]
pub fn violations(name: &str, folder: &str, description: &str) -> Vec<Violation> {
    let rules = [
        (name != folder, Violation::NameIsNotFolder),
        (crate::text::units(name) > MAX_NAME, Violation::LongName),
        (!name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'), Violation::NameCharacters),
        (name.starts_with('-') || name.ends_with('-'), Violation::HyphenAtEnd),
        (name.contains("--"), Violation::DoubleHyphen),
        (crate::text::units(description) > MAX_DESCRIPTION, Violation::LongDescription),
    ];
    rules.into_iter().filter_map(|(broken, rule)| broken.then_some(rule)).collect()
}
