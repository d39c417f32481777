//! The environment guard: which variables does a command get?
//!
//! A value, never a mutation, and an allowlist: of the host only what a program cannot do without, then what the run's
//! skills declare, then what the caller asks for. Names that could hijack the child are refused whoever brings them,
//! and a refusal stops the run instead of changing it silently. Values never show up in messages.

mod code_paths;
mod names;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

pub use code_paths::{git_config_env, git_overrides, quiet_variables};
pub use names::{is_inherited, is_shell_safe};
pub use prowess_skills::env::{hijacks, is_credential, is_valid_name};

/// The search path of a host that has none.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The longest value of a variable, in bytes; the kernel takes no more than 128 KiB with the name.
const MAX_VALUE: usize = 120 * 1024;

/// What an environment is made from, least first: what comes later replaces what came before.
#[derive(Clone, Copy, Default)]
pub struct EnvInputs<'a> {
    /// The host's variables; only those of [`is_inherited`] count.
    pub host: &'a [(String, OsString)],
    /// Variables of the skills of this run, credentials they declare included.
    pub skill: &'a [(String, OsString)],
    /// What the caller asks for.
    pub caller: &'a [(String, String)],
    /// What we say ourselves, such as `OPENCLAW_SHELL=exec`.
    pub fixed: &'a [(&'a str, &'a str)],
    /// Folders that go first on `PATH`: programs of skills, then those of the operator.
    pub path_prepend: &'a [PathBuf],
}

impl fmt::Debug for EnvInputs<'_> {
    /// Of the variables only the names.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn names<V>(vars: &[(String, V)]) -> Vec<&str> {
            vars.iter().map(|(name, _)| name.as_str()).collect()
        }
        let Self { host, skill, caller, fixed, path_prepend } = self;
        f.debug_struct("EnvInputs")
            .field("host", &names(host))
            .field("skill", &names(skill))
            .field("caller", &names(caller))
            .field("fixed", fixed)
            .field("path_prepend", path_prepend)
            .finish()
    }
}

/// Who wanted the variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnvSource {
    /// The settings of a skill.
    Skill,
    /// The caller of the tool.
    Caller,
}

/// Why no environment could be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnvRefusal {
    /// A caller wants a search path of its own.
    #[error("Security Violation: Custom 'PATH' variable is forbidden during host execution.")]
    Path,
    /// A caller wants a name that steers the child, or that is the operator's to give.
    #[error("Security Violation: Environment variable '{}' is forbidden during host execution.", .0.escape_debug())]
    Forbidden(String),
    /// A skill wants a name that steers the child.
    #[error("the skill sets `{}`, which could change which program runs or which servers it trusts", .0.escape_debug())]
    Hijacks(String),
    /// No name that a process could be given.
    #[error("`{}` is not a valid variable name: use letters, digits and underscores, and do not start with a digit", .0.escape_debug())]
    BadName(String),
    /// A value that no process could be given, or that could pass for more than one.
    #[error("the value of `{0}` has a NUL byte or a line break, or is longer than {MAX_VALUE} bytes")]
    BadValue(String),
    /// A folder that cannot stand in a search path.
    #[error("`{}` cannot be on PATH: it is not absolute, or has a colon or a line break in it", .0.escape_debug())]
    BadFolder(String),
}

/// The environment of one run. Values need not be UTF-8: the host's are handed on as they are.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct RunEnv(BTreeMap<String, OsString>);

impl RunEnv {
    /// The variables by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &OsStr)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_os_str()))
    }

    /// One variable.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.get(name).map(OsString::as_os_str)
    }

    /// Adds a key that a person allowed after the environment was judged. A variable that is there already stays.
    pub fn add_key(&mut self, name: &str, value: &OsStr) -> Result<(), EnvRefusal> {
        refusal(name, value, EnvSource::Skill).map_or(Ok(()), Err)?;
        self.0.entry(name.to_owned()).or_insert_with(|| value.to_owned());
        Ok(())
    }

    /// Has git keep the operator's settings in `file`, which a person let the run change.
    pub fn use_git_file(&mut self, file: &Path) {
        self.0.insert("GIT_CONFIG_GLOBAL".to_owned(), file.as_os_str().to_owned());
    }

    /// The folders of the search path, in order.
    pub fn path(&self) -> impl Iterator<Item = PathBuf> {
        std::env::split_paths(self.get("PATH").unwrap_or(DEFAULT_PATH.as_ref()))
    }

    /// A fingerprint of all names and values, to tell whether an approval was given for this environment.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut hash = blake3::Hasher::new();
        for bytes in self.iter().flat_map(|(name, value)| [name.as_bytes(), value.as_encoded_bytes()]) {
            hash.update(&(bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        }
        hash.finalize().to_hex().to_string()
    }
}

impl fmt::Debug for RunEnv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Makes the environment of a run, or says what stands against it: the first thing, in the order given.
pub fn compose(inputs: EnvInputs<'_>) -> Result<RunEnv, EnvRefusal> {
    let mut vars = BTreeMap::new();
    for (name, value) in inputs.host.iter().filter(|(name, value)| is_inherited(name) && is_plain(value)) {
        vars.insert(name.clone(), value.clone());
    }
    let skill = inputs.skill.iter().map(|(name, value)| (EnvSource::Skill, name, value.as_os_str()));
    let caller = inputs.caller.iter().map(|(name, value)| (EnvSource::Caller, name, value.as_ref()));
    for (source, name, value) in skill.chain(caller) {
        let name = name.trim();
        refusal(name, value, source).map_or(Ok(()), Err)?;
        vars.insert(name.to_owned(), value.to_owned());
    }
    for (name, value) in inputs.fixed {
        vars.insert((*name).to_owned(), OsString::from(value));
    }
    let path = search_path(vars.get("PATH").map(OsString::as_os_str), inputs.path_prepend)?;
    vars.insert("PATH".to_owned(), path);
    Ok(RunEnv(vars))
}

/// What stands against a variable.
#[must_use]
pub fn refusal(name: &str, value: impl AsRef<OsStr>, source: EnvSource) -> Option<EnvRefusal> {
    let value = value.as_ref();
    let named = name.to_owned();
    match source {
        EnvSource::Caller if name.eq_ignore_ascii_case("PATH") => Some(EnvRefusal::Path),
        EnvSource::Caller if hijacks(name) || names::is_named_credential(name) => Some(EnvRefusal::Forbidden(named)),
        EnvSource::Skill if hijacks(name) => Some(EnvRefusal::Hijacks(named)),
        EnvSource::Caller | EnvSource::Skill if !is_valid_name(name) => Some(EnvRefusal::BadName(named)),
        EnvSource::Caller | EnvSource::Skill if !is_plain(value) => Some(EnvRefusal::BadValue(named)),
        EnvSource::Caller | EnvSource::Skill => None,
    }
}

fn is_plain(value: &OsStr) -> bool {
    value.len() <= MAX_VALUE && !value.as_encoded_bytes().iter().any(|byte| b"\0\n\r".contains(byte))
}

/// The search path: `first`, then what the host has. An entry that is empty or relative would mean the working
/// directory, where anyone may have put a program, so it is left out.
fn search_path(host: Option<&OsStr>, first: &[PathBuf]) -> Result<OsString, EnvRefusal> {
    let mut entries: Vec<PathBuf> = Vec::new();
    for folder in first {
        let text = folder.to_str().filter(|text| text.starts_with('/') && !text.contains([':', '\0', '\n', '\r']));
        entries.push(text.ok_or_else(|| EnvRefusal::BadFolder(folder.to_string_lossy().into_owned()))?.into());
    }
    let before = entries.len();
    entries.extend(std::env::split_paths(host.unwrap_or_default()).filter(|entry| entry.has_root()));
    if entries.len() == before {
        entries.extend(std::env::split_paths(DEFAULT_PATH));
    }
    let mut seen = Vec::with_capacity(entries.len());
    for entry in entries {
        if !seen.contains(&entry) {
            seen.push(entry);
        }
    }
    // No entry has the separator in it: they were split at it, or have no colon.
    std::env::join_paths(&seen).map_err(|error| EnvRefusal::BadFolder(error.to_string()))
}
