//! The world: what do the machines a skill could run on have?
//!
//! A machine is a value. This host, a remote node and a test all hand the gate the same thing, so the gate never looks
//! at a disk, an environment or a socket itself.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};

use serde_json::Value;

use crate::catalog::Catalog;

/// A machine that commands can run on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Machine {
    /// Its system: `linux`, `darwin`, `win32`, …
    pub os: String,
    /// The programs it has, of those that were asked for.
    pub bins: HashSet<String>,
}

/// All reachable machines, and what the operator has set.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct World {
    /// This host first, then the remote machines.
    pub machines: Vec<Machine>,
    /// Names of environment variables that have a value; never the values.
    pub env: HashSet<String>,
    /// Paths of the configuration that lead to something that counts as yes, of those that skills ask for; never values.
    pub config: HashSet<String>,
    /// A sentence for the model about remote machines.
    pub note: Option<String>,
}

impl World {
    /// Whether some machine runs the system that a skill calls `os`.
    #[must_use]
    pub fn runs(&self, os: &str) -> bool {
        self.machines.iter().any(|machine| system(&machine.os) == system(os))
    }

    /// Whether some machine has the program.
    #[must_use]
    pub fn has_bin(&self, name: &str) -> bool {
        self.machines.iter().any(|machine| machine.bins.contains(name))
    }

    /// Whether the variable has a value on this host.
    #[must_use]
    pub fn has_env(&self, name: &str) -> bool {
        self.env.contains(name)
    }

    /// Whether a configuration path such as `channels.slack` leads to something that counts as yes.
    #[must_use]
    pub fn config_is_truthy(&self, path: &str) -> bool {
        self.config.contains(path)
    }
}

/// Those of `paths` that lead to something in `config` that counts as yes.
pub fn truthy_paths<'a>(config: &Value, paths: impl IntoIterator<Item = &'a str>) -> HashSet<String> {
    paths.into_iter().filter(|path| is_truthy(config, path)).map(str::to_owned).collect()
}

/// The configuration paths that some skill of the catalogue needs.
#[must_use]
pub fn wanted_config(catalog: &Catalog) -> BTreeSet<&str> {
    catalog.skills().iter().flat_map(|skill| &skill.metadata.needs.config).map(String::as_str).collect()
}

fn is_truthy(config: &Value, path: &str) -> bool {
    let mut steps = path.split('.').filter(|step| !step.is_empty());
    let found = steps.try_fold(config, |value, step| match value {
        Value::Object(map) => map.get(step),
        // `00` and `+1` read as numbers and are no places in a list.
        Value::Array(items) => {
            step.parse().ok().filter(|index: &usize| index.to_string() == step).and_then(|index| items.get(index))
        }
        _ => None,
    });
    match found {
        // OpenClaw has two settings that are on unless they are switched off.
        None => matches!(path, "browser.enabled" | "browser.evaluateEnabled"),
        Some(Value::Null) => path.split('.').all(str::is_empty),
        Some(Value::Bool(flag)) => *flag,
        Some(Value::Number(number)) => number.as_f64() != Some(0.0),
        Some(Value::String(text)) => !crate::text::trim(text).is_empty(),
        Some(Value::Array(_) | Value::Object(_)) => true,
    }
}

/// The one word for a system, whatever it is called.
#[must_use]
pub fn system(name: &str) -> Cow<'_, str> {
    match name {
        "linux" | "darwin" | "win32" => Cow::Borrowed(name),
        _ => match name.to_lowercase().as_str() {
            "macos" | "mac" | "osx" | "darwin" => Cow::Borrowed("darwin"),
            "windows" | "win" | "win32" => Cow::Borrowed("win32"),
            other => Cow::Owned(other.to_owned()),
        },
    }
}

/// The system this program runs on.
#[must_use]
pub fn this_system() -> Cow<'static, str> {
    system(std::env::consts::OS)
}
