//! What does each part of a system prompt take of it?

use prowess_skills::text::units;
use prowess_skills::tokens;
use serde_json::{Value, json};

/// A part of a prompt and its measures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measured {
    /// What it is called.
    pub name: String,
    /// As the peer counts them.
    pub chars: usize,
    /// About how many.
    pub tokens: usize,
    /// Of all tokens, in tenths of a percent.
    pub share: usize,
}

/// Measures parts, given as name and text.
pub fn measure<'a>(parts: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<Measured> {
    let mut measured: Vec<Measured> = parts
        .into_iter()
        .map(|(name, text)| Measured { name: name.to_owned(), chars: units(text), tokens: tokens(text), share: 0 })
        .collect();
    let all = measured.iter().map(|part| part.tokens).sum::<usize>().max(1);
    for part in &mut measured {
        part.share = part.tokens.saturating_mul(1000) / all;
    }
    measured
}

/// For machines.
#[must_use]
pub fn shape(parts: &[Measured]) -> Value {
    let (chars, tokens) = sums(parts);
    let part = |part: &Measured| json!({"name": part.name, "chars": part.chars, "tokens": part.tokens, "permille": part.share});
    json!({"parts": parts.iter().map(part).collect::<Vec<_>>(), "chars": chars, "tokens": tokens})
}

/// All characters, and all tokens.
#[must_use]
pub fn sums(parts: &[Measured]) -> (usize, usize) {
    (parts.iter().map(|part| part.chars).sum(), parts.iter().map(|part| part.tokens).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_all_tokens() {
        let (long, short) = ("word ".repeat(30), "word ".repeat(10));
        let parts = measure([("skills", long.as_str()), ("identity", short.as_str())]);
        assert!(parts[0].share > 700 && parts[1].share < 300, "{parts:?}");
        let shape = shape(&parts);
        assert_eq!((&shape["chars"], &shape["parts"][0]["name"]), (&json!(200), &json!("skills")));
        assert_eq!(measure([]), []);
        assert_eq!(measure([("empty", "")])[0].share, 0);
    }
}
