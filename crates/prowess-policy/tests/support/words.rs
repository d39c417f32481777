//! Words made for a test.

use prowess_policy::script::{Expansion, Span, Value, Word};

/// Literal words.
pub(crate) fn words<S: AsRef<str>>(words: &[S]) -> Vec<Word> {
    let span = Span { start: 0, end: 0 };
    words.iter().map(|word| Word { span, value: Value::Literal(word.as_ref().to_owned()) }).collect()
}

/// A word that is not known before the command runs.
pub(crate) fn unknown() -> Word {
    let value = Value::Dynamic { prefix: String::new(), expansions: vec![Expansion::Variable], splits: true };
    Word { span: Span { start: 0, end: 0 }, value }
}
