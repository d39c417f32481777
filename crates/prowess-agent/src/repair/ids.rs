//! Which id may a call have on the wire?
//!
//! Providers differ in what they take. Ids are rewritten for one request and never stored, so the conversation can go
//! on with another provider.

use std::collections::{HashMap, HashSet};

use sha2::{Digest, Sha256};

/// The longest id that any provider takes.
const MAX_ID: usize = 64;
/// The longest id under [`Rule::Strict`].
const MAX_STRICT: usize = 40;
/// The length of every id under [`Rule::Strict9`].
const NINE: usize = 9;
/// How much of a hash tells two ids apart that look alike.
const HASH: usize = 8;

/// What a provider takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rule {
    /// Anything that is not too long.
    Keep,
    /// At most forty letters and digits.
    Strict,
    /// Exactly nine letters and digits.
    Strict9,
}

/// The ids of one request.
#[derive(Debug, Clone)]
pub struct Ids {
    rule: Rule,
    now: HashMap<String, String>,
    used: HashSet<String>,
    tries: HashMap<String, u64>,
}

impl Ids {
    /// None yet.
    #[must_use]
    pub fn new(rule: Rule) -> Self {
        Self { rule, now: HashMap::new(), used: HashSet::new(), tries: HashMap::new() }
    }

    /// Begins a reply of the model: from here on an id means a new call, even if an earlier reply has used it.
    pub fn begin_reply(&mut self) {
        self.now.clear();
    }

    /// What stands for `id` on the wire: always the same within one reply and its results, and for no other id.
    pub fn rewrite(&mut self, id: &str) -> String {
        if let Some(known) = self.now.get(id) {
            return known.clone();
        }
        let made = self.fresh(id);
        self.used.insert(made.clone());
        self.now.insert(id.to_owned(), made.clone());
        made
    }

    /// An id that no call of the request has.
    fn fresh(&mut self, id: &str) -> String {
        let plain = sanitize(id, self.rule);
        let plain = cut(&plain, self.room());
        if !self.used.contains(plain) {
            return plain.to_owned();
        }
        // Goes on where it stopped for this id: one that comes in every reply must not be tried from the start.
        let mut number = self.tries.get(id).copied().unwrap_or_default();
        let made = loop {
            let made = self.numbered(id, plain, number);
            number += 1;
            if !self.used.contains(&made) {
                break made;
            }
        };
        self.tries.insert(id.to_owned(), number);
        made
    }

    fn numbered(&self, id: &str, plain: &str, number: u64) -> String {
        match self.rule {
            Rule::Strict9 => hash(&format!("{id}:{number}"), NINE),
            Rule::Keep => self.with_tail(plain, &format!("_{}", number + 2)),
            Rule::Strict if number == 0 => self.with_tail(plain, &hash(id, HASH)),
            Rule::Strict => self.with_tail(plain, &format!("{}x{}", hash(id, HASH), number + 1)),
        }
    }

    fn with_tail(&self, plain: &str, tail: &str) -> String {
        format!("{}{tail}", cut(plain, self.room() - tail.len()))
    }

    fn room(&self) -> usize {
        match self.rule {
            Rule::Keep => MAX_ID,
            Rule::Strict => MAX_STRICT,
            Rule::Strict9 => NINE,
        }
    }
}

/// `id` in the alphabet of `rule`, regardless of other ids.
#[must_use]
pub fn sanitize(id: &str, rule: Rule) -> String {
    let plain: String = id.chars().filter(char::is_ascii_alphanumeric).collect();
    match rule {
        Rule::Keep => id.to_owned(),
        Rule::Strict if id.is_empty() => "defaulttoolid".to_owned(),
        Rule::Strict if plain.is_empty() => "sanitizedtoolid".to_owned(),
        Rule::Strict => plain,
        Rule::Strict9 if id.is_empty() => "defaultid".to_owned(),
        Rule::Strict9 if plain.is_empty() => hash("sanitized", NINE),
        Rule::Strict9 if plain.len() < NINE => hash(&plain, NINE),
        Rule::Strict9 => plain[..NINE].to_owned(),
    }
}

/// As much of the beginning of `text` as fits into `room` bytes.
fn cut(text: &str, room: usize) -> &str {
    let end = (0..=room.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
    &text[..end]
}

/// The first digits of a hash.
fn hash(text: &str, digits: usize) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(digit).take(digits).collect()
}

fn digit(value: u8) -> char {
    char::from_digit(u32::from(value), 16).unwrap_or('0')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_rewritten_alike_within_a_reply() {
        let mut ids = Ids::new(Rule::Strict);
        assert_eq!([ids.rewrite("call_1"), ids.rewrite("call_1")], ["call1", "call1"]);
        ids.begin_reply();
        let again = ids.rewrite("call_1");
        assert_ne!(again, "call1");
        assert_eq!(ids.rewrite("call_1"), again);
        ids.begin_reply();
        let third = ids.rewrite("call_1");
        assert!(third != again && third != "call1");
        let mut ids = Ids::new(Rule::Keep);
        assert_eq!(ids.rewrite("a|b"), "a|b");
        let again = ["call_1"; 3].map(|id| {
            ids.begin_reply();
            ids.rewrite(id)
        });
        assert_eq!(again, ["call_1", "call_1_2", "call_1_3"]);
        let long = ids.rewrite(&"ü".repeat(100));
        assert!(long.len() <= MAX_ID && ids.rewrite(&format!("{}x", "ü".repeat(100))).len() <= MAX_ID);
    }

    #[test]
    fn long_ids_stay_within_the_limit() {
        let mut ids = Ids::new(Rule::Strict);
        let made: Vec<String> = (0..50).map(|index| ids.rewrite(&format!("{}-{index}", "y".repeat(60)))).collect();
        assert!(made.iter().all(|id| id.len() <= MAX_STRICT));
        assert_eq!(made.iter().collect::<HashSet<_>>().len(), 50);
        let mut ids = Ids::new(Rule::Strict9);
        let made: Vec<String> = (0..50).map(|index| ids.rewrite(&format!("abcdefghi{index}"))).collect();
        assert!(made.iter().all(|id| id.len() == NINE));
        assert_eq!(made.iter().collect::<HashSet<_>>().len(), 50);
    }
}
