//! The words of a command, as the grammar reads it.

use prowess_policy::Script;
use prowess_policy::script::Word;

/// All words of `text`; one simple command has no others.
pub(crate) fn words(text: &str) -> Vec<Word> {
    Script::parse(text).segments.into_iter().flat_map(|segment| segment.words).collect()
}
