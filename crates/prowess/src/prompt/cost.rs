//! The cost of a system prompt, by part, for people.

use prowess_host::cost::{Measured, sums};

use crate::output::{safe, table};

/// For people.
pub(crate) fn page(parts: &[Measured]) -> String {
    let percent = |share: usize| format!("{}.{} %", share / 10, share % 10);
    let mut rows: Vec<Vec<String>> = parts
        .iter()
        .map(|part| vec![safe(&part.name), part.chars.to_string(), part.tokens.to_string(), percent(part.share)])
        .collect();
    let (chars, tokens) = sums(parts);
    rows.push(vec!["total".to_owned(), chars.to_string(), tokens.to_string(), String::new()]);
    table(&["Part", "Characters", "Tokens", "Share"], &[1, 2, 3], rows)
}

#[cfg(test)]
mod tests {
    use prowess_host::cost::measure;

    use super::page;

    #[test]
    fn the_sum_is_told_too() {
        assert!(page(&measure([("skills", "word word")])).contains("total"));
    }
}
