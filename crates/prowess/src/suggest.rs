//! Suggestions: which known name did the user probably mean?

use strsim::damerau_levenshtein;

/// How many names are suggested.
const MAX_NAMES: usize = 3;

/// The known names that are close to `wanted`, the closest first: a few letters off, or written with other separators, or
/// beginning the same way.
pub(crate) fn nearest<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let wanted = plain(wanted);
    if wanted.is_empty() {
        return Vec::new();
    }
    let mut near: Vec<(usize, &str)> =
        known.into_iter().filter_map(|name| Some((distance(&wanted, name)?, name))).collect();
    near.sort_unstable();
    near.dedup();
    near.into_iter().take(MAX_NAMES).map(|(_, name)| name).collect()
}

/// `did you mean …?`, or nothing when no known name is close.
pub(crate) fn did_you_mean<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let near: Vec<String> =
        nearest(wanted, known).iter().map(|name| format!("`{}`", crate::output::safe(name))).collect();
    (!near.is_empty()).then(|| format!("did you mean {}?", near.join(" or ")))
}

/// How far apart two names are; nothing when they have little in common.
fn distance(wanted: &str, name: &str) -> Option<usize> {
    let name = plain(name);
    let shorter = wanted.chars().count().min(name.chars().count());
    let edits = damerau_levenshtein(wanted, &name);
    if edits <= (shorter / 3).max(1) && shorter > 1 {
        return Some(edits);
    }
    let begins = shorter > 2 && (name.starts_with(wanted) || wanted.starts_with(&name));
    begins.then_some(edits)
}

fn plain(name: &str) -> String {
    name.to_lowercase().replace([' ', '_', '-', '/'], "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_finds_the_name_that_was_meant() {
        let known = ["weather", "github", "skill-creator", "session-logs", "tmux"];
        let table: [(&str, &[&str]); 8] = [
            ("wether", &["weather"]),
            ("Weahter", &["weather"]),
            ("git-hub", &["github"]),
            ("skill_creator", &["skill-creator"]),
            ("skill", &["skill-creator"]),
            ("tmxu", &["tmux"]),
            ("banana", &[]),
            ("", &[]),
        ];
        for (wanted, expected) in table {
            assert_eq!(nearest(wanted, known), expected, "{wanted}");
        }
        assert_eq!(did_you_mean("wether", known).as_deref(), Some("did you mean `weather`?"));
    }
}
