//! Which environment variables are there?
//!
//! The environment is a value. Only [`Env::from_process`] looks at the real one, and nothing ever changes it.

use std::collections::BTreeMap;
use std::fmt;

/// Environment variables as a value, sorted by name.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Env(BTreeMap<String, String>);

impl Env {
    /// An environment without variables.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The variables of this process; the one place that looks at them.
    ///
    /// A value that is not Unicode is kept with replacement characters, a name that is not is left out. Where `HOME`
    /// is not set, the home directory the operating system knows stands in.
    #[must_use]
    pub fn from_process() -> Self {
        let mut env: Self = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.to_string_lossy().into_owned())))
            .collect();
        if env.text("HOME").is_none()
            && env.text("USERPROFILE").is_none()
            && let Some(home) = std::env::home_dir()
        {
            env.insert("HOME", home.to_string_lossy());
        }
        env
    }

    /// The value of a variable exactly as it is set, even if empty.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The trimmed value of a variable, if anything is left of it.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name).map(str::trim).filter(|value| !value.is_empty())
    }

    /// Sets a variable in this value; the process does not notice.
    pub fn insert(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.insert(name.into(), value.into());
    }

    /// All variables, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// Names only: an environment is full of secrets.
impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Env").field(&self.0.keys().collect::<Vec<_>>()).finish()
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Env {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        Self(pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::Env;

    #[test]
    fn blank_is_not_text() {
        let env = Env::from_iter([("A", "  "), ("B", " b ")]);
        assert_eq!((env.get("A"), env.text("A")), (Some("  "), None));
        assert_eq!((env.get("B"), env.text("B"), env.get("C")), (Some(" b "), Some("b"), None));
    }

    #[test]
    fn debug_shows_no_values() {
        let env = Env::from_iter([("TOKEN", "hunter2")]);
        assert_eq!(format!("{env:?}"), r#"Env(["TOKEN"])"#);
    }
}
