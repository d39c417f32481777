//! Names for jobs: two words that are easy to say and to tell apart.

const ADJECTIVES: [&str; 48] = [
    "able", "amber", "ample", "apt", "azure", "bold", "brisk", "candid", "chief", "civil", "clever", "cosy", "crisp",
    "deft", "eager", "early", "fabled", "fair", "fleet", "fond", "frank", "glad", "golden", "hardy", "honest",
    "humble", "ideal", "jolly", "keen", "level", "lively", "loyal", "lucid", "merry", "neat", "noble", "patient",
    "plain", "prime", "proud", "quiet", "ready", "royal", "sober", "stout", "sunny", "vivid", "witty",
];

const NOUNS: [&str; 56] = [
    "acorn", "anchor", "anvil", "apple", "barley", "basin", "beacon", "birch", "bobbin", "brook", "candle", "canyon",
    "cedar", "chisel", "clover", "compass", "copper", "delta", "ember", "falcon", "fennel", "finch", "flint", "garden",
    "ginger", "hammer", "harbor", "hazel", "heron", "island", "kettle", "lantern", "ledger", "linen", "magnet",
    "maple", "marble", "meadow", "mortar", "needle", "orchard", "otter", "paddle", "pebble", "pepper", "plover",
    "quarry", "ribbon", "saddle", "sparrow", "thimble", "timber", "trellis", "tulip", "walnut", "willow",
];

/// How many jobs may share a pair of words before the name gets a random end.
const NUMBERED: u32 = 99;

/// A name made from `random` that is not `taken`: a pair of words, numbered from two on, or with a random end.
pub(super) fn name(random: u128, taken: impl Fn(&str) -> bool) -> String {
    let base = format!("{}-{}", pick(&ADJECTIVES, random), pick(&NOUNS, random >> 32));
    let numbered = (2..=NUMBERED).map(|number| format!("{base}-{number}"));
    let ended = (0..).map(|step: u128| format!("{base}-{:x}", (random >> 64).wrapping_add(step) & 0xffff_ffff_ffff));
    std::iter::once(base.clone()).chain(numbered).chain(ended).find(|name| !taken(name)).unwrap_or(base)
}

fn pick<'a>(words: &[&'a str], random: u128) -> &'a str {
    let count = words.len() as u128;
    usize::try_from((random & 0xffff_ffff) % count).ok().and_then(|at| words.get(at)).copied().unwrap_or("job")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{ADJECTIVES, NOUNS, NUMBERED, name};

    #[test]
    fn names_are_never_given_twice() {
        let mut taken = HashSet::new();
        for _ in 0..u64::from(NUMBERED) + 20 {
            let name = name(7, |name| taken.contains(name));
            assert!(taken.insert(name));
        }
        assert!(taken.contains("cosy-apple") || taken.iter().any(|name| name.ends_with("-2")), "{taken:?}");
    }

    #[test]
    fn words_are_different_and_plain() {
        let words: HashSet<_> = ADJECTIVES.iter().chain(&NOUNS).collect();
        assert_eq!(words.len(), ADJECTIVES.len() + NOUNS.len());
        assert!(words.iter().all(|word| word.bytes().all(|byte| byte.is_ascii_lowercase())));
    }
}
