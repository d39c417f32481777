//! How is a secret kept out of logs?

use std::fmt;

/// A text that does not print itself; ask for it with [`Secret::expose`].
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a text.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the one place that needs it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

#[cfg(test)]
mod tests {
    use super::Secret;

    #[test]
    fn does_not_print_itself() {
        let secret = Secret::new("hunter2");
        assert_eq!(format!("{secret} {secret:?}"), "… Secret(…)");
        assert_eq!(secret.expose(), "hunter2");
    }
}
