//! Prose: how is a list written for people?

/// `a`, `a and b`, `a, b and c`.
///
/// ```
/// assert_eq!(prowess_policy::listed(&["read", "write", "run"]), "read, write and run");
/// ```
#[must_use]
pub fn listed(items: &[impl AsRef<str>]) -> String {
    let texts: Vec<&str> = items.iter().map(AsRef::as_ref).collect();
    match texts.as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [many @ .., last] => format!("{} and {last}", many.join(", ")),
    }
}
