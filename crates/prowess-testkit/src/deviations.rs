//! Deviations are promises to the reader of `docs/compatibility.md`: every listed case must have its row there.

const TABLES: &str = include_str!("../../../docs/compatibility.md");

/// Panics unless each deviation's reason is the first cell of a row that also names the case.
#[track_caller]
pub fn assert_documented(deviations: &[(&str, &str)]) {
    for (id, reason) in deviations {
        let row = TABLES.lines().find(|line| line.starts_with(&format!("| {reason} |")));
        let row = row.unwrap_or_else(|| panic!("docs/compatibility.md has no row `{reason}`"));
        assert!(row.contains(&format!("`{id}`")), "the row `{reason}` does not name `{id}`");
    }
}
