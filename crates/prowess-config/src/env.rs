//! Which environment variables are there?
//!
//! The environment is a value. Only [`Env::from_process`] looks at the real one, and nothing ever changes it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;

/// Environment variables as a value, sorted by name.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Env(BTreeMap<String, Variable>);

/// The value of a variable.
#[derive(Clone, Default, PartialEq, Eq)]
struct Variable {
    /// As text: what is not Unicode has replacement characters.
    text: String,
    /// As it is, where that is not the same.
    exact: Option<OsString>,
}

impl Variable {
    fn new(value: OsString) -> Self {
        match value.into_string() {
            Ok(text) => Self { text, exact: None },
            Err(exact) => Self { text: exact.to_string_lossy().into_owned(), exact: Some(exact) },
        }
    }
}

impl Env {
    /// An environment without variables.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The variables of this process; the one place that looks at them.
    ///
    /// A name that is not Unicode is left out. Where `HOME` is not set, the home directory the operating system knows
    /// stands in.
    #[must_use]
    pub fn from_process() -> Self {
        let mut env = Self(
            std::env::vars_os()
                .filter_map(|(name, value)| Some((name.into_string().ok()?, Variable::new(value))))
                .collect(),
        );
        if env.text("HOME").is_none()
            && env.text("USERPROFILE").is_none()
            && let Some(home) = std::env::home_dir()
        {
            env.0.insert("HOME".to_owned(), Variable::new(home.into_os_string()));
        }
        env
    }

    /// The value of a variable, even if empty. What is not Unicode in it has replacement characters; see [`Env::exact`].
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|value| value.text.as_str())
    }

    /// The value of a variable exactly as it is set, to be handed on to a child.
    #[must_use]
    pub fn exact(&self, name: &str) -> Option<&OsStr> {
        self.0.get(name).map(|value| value.exact.as_deref().unwrap_or(value.text.as_ref()))
    }

    /// The trimmed value of a variable, if anything is left of it.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name).map(str::trim).filter(|value| !value.is_empty())
    }

    /// Sets a variable in this value; the process does not notice.
    pub fn insert(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.insert(name.into(), Variable { text: value.into(), exact: None });
    }

    /// All variables, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.text.as_str()))
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
        let variable = |value: V| Variable { text: value.into(), exact: None };
        Self(pairs.into_iter().map(|(name, value)| (name.into(), variable(value))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::{Env, Variable};

    #[cfg(unix)]
    #[test]
    fn a_value_that_is_not_unicode_is_kept_as_it_is() {
        use std::os::unix::ffi::OsStringExt;
        let odd = std::ffi::OsString::from_vec(b"caf\xe9".to_vec());
        let env = Env([("A".to_owned(), Variable::new(odd.clone()))].into());
        assert_eq!((env.get("A"), env.exact("A")), (Some("caf\u{fffd}"), Some(&*odd)));
        assert_eq!(Env::from_iter([("A", "b")]).exact("A"), Some("b".as_ref()));
    }

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
