//! Which variables do the `.env` files and the `env` section provide?
//!
//! A `.env` in the current directory is kept apart: whoever made that directory wrote it, and it is not the operator's word.
//!
//! They never override what is already set, they are values in our hands rather than changes to the process, and names
//! that make programs load foreign code are refused.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::dotenv;
use crate::source::{self, SourceError};
use crate::substitute::substitute;
use crate::{Env, KeyPath, Secret, Warning, WarningKind};

/// Where a variable came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VariableSource {
    /// A `.env` file.
    Dotenv(PathBuf),
    /// The `env` section of the configuration.
    Config,
}

/// One provided variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// Its value.
    pub value: Secret,
    /// Where it came from.
    pub source: VariableSource,
}

/// A variable that was asked for and refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Its name.
    pub name: String,
    /// Why it was refused.
    pub reason: &'static str,
    /// Where it came from.
    pub source: VariableSource,
}

/// The variables that files provide on top of the environment.
#[derive(Debug, Clone, Default)]
pub struct ConfigEnv {
    /// Provided variables by name; those the environment already has are not among them.
    pub variables: BTreeMap<String, Variable>,
    /// What the `env` section alone says, also where the environment has another value.
    pub section: BTreeMap<String, Secret>,
    /// What `.env` in the current directory says. Nothing here reads it; it may be handed to skills that declare a name.
    pub project: BTreeMap<String, Secret>,
    /// Variables that were refused.
    pub refused: Vec<Refused>,
}

/// Names that decide which code a program loads, or how a shell reads a script.
const DANGEROUS_NAMES: [&str; 18] = [
    "BASH_ENV",
    "ENV",
    "GCONV_PATH",
    "GIT_EXTERNAL_DIFF",
    "IFS",
    "NODE_OPTIONS",
    "NODE_PATH",
    "OPENSSL_CONF",
    "PERL5LIB",
    "PERL5OPT",
    "PS4",
    "PYTHONHOME",
    "PYTHONPATH",
    "RUBYLIB",
    "RUBYOPT",
    "SHELL",
    "SHELLOPTS",
    "SSLKEYLOGFILE",
];

const DANGEROUS_PREFIXES: [&str; 3] = ["BASH_FUNC_", "DYLD_", "LD_"];

/// Why a file may not set this variable.
pub(crate) fn objection(name: &str, value: &str) -> Option<&'static str> {
    let upper = name.to_ascii_uppercase();
    let portable = !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty()
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if DANGEROUS_NAMES.contains(&upper.as_str()) || DANGEROUS_PREFIXES.iter().any(|prefix| upper.starts_with(prefix)) {
        Some("it can make programs run other code; set it in your shell if you need it")
    } else if !portable {
        Some("a name consists of letters, digits and underscores and does not start with a digit; rename it")
    } else if value.contains('\0') {
        Some("its value contains a NUL byte; remove it")
    } else {
        None
    }
}

/// Collects variables on top of an environment.
pub(crate) struct Collector {
    /// The environment with everything provided so far.
    pub(crate) env: Env,
    pub(crate) provided: ConfigEnv,
    pub(crate) warnings: Vec<Warning>,
}

impl Collector {
    pub(crate) fn new(env: &Env) -> Self {
        Self { env: env.clone(), provided: ConfigEnv::default(), warnings: Vec::new() }
    }

    /// Reads one `.env` file; that there is none is the usual case.
    pub(crate) fn read_dotenv(&mut self, file: &Path) {
        let text = match source::read_optional(file) {
            Ok(Some(text)) => text,
            Ok(None) => return,
            Err(error) => {
                let reason = match error {
                    SourceError::Read { source, .. } => source.to_string(),
                    other => other.to_string(),
                };
                return self.warn(KeyPath::root(), Some(file), WarningKind::Unreadable { reason });
            }
        };
        let found = dotenv::parse(&text);
        for (line, reason) in found.bad_lines {
            self.warn(KeyPath::root(), Some(file), WarningKind::BadLine { line, reason });
        }
        for (name, value) in found.variables {
            // Here even an empty variable counts as set, as in every `.env` reader.
            if self.env.get(&name).is_none() {
                self.provide(&KeyPath::root(), name, value, &VariableSource::Dotenv(file.to_owned()), Some(file));
            }
        }
    }

    /// Reads `.env` of the current directory. What is wrong with it is no business of ours.
    pub(crate) fn read_project(&mut self, file: &Path) {
        let Ok(Some(text)) = source::read_optional(file) else { return };
        let found = dotenv::parse(&text).variables.into_iter();
        let usable = found.filter(|(name, value)| !value.is_empty() && objection(name, value).is_none());
        self.provided.project = usable.map(|(name, value)| (name, Secret::new(value))).collect();
    }

    /// Takes in the `env` section: `vars`, then text values under other keys.
    pub(crate) fn take_section(&mut self, section: &Value, file_of: impl Fn(&KeyPath) -> Option<PathBuf>) {
        let Value::Object(section) = section else { return };
        let here = KeyPath::from_iter(["env"]);
        if section.get("shellEnv").and_then(|shell| shell.get("enabled")) == Some(&Value::Bool(true)) {
            let path = here.join("shellEnv");
            self.warn(path.clone(), file_of(&path).as_deref(), WarningKind::ShellImport);
        }
        let vars = section.get("vars").and_then(Value::as_object);
        let inner = vars.into_iter().flatten().map(|(name, value)| (here.join("vars").join(name), name, value));
        let direct = section
            .iter()
            .filter(|(name, _)| !matches!(name.as_str(), "vars" | "shellEnv"))
            .map(|(name, value)| (here.join(name), name, value));
        for (path, name, value) in inner.chain(direct) {
            let Value::String(text) = value else { continue };
            // A missing variable inside is reported when the whole tree is filled in.
            let Ok(text) = substitute(text, &self.env) else { continue };
            if objection(name.trim(), &text).is_none() && !text.is_empty() {
                self.provided.section.entry(name.trim().to_owned()).or_insert_with(|| Secret::new(text.clone()));
            }
            if self.env.text(name).is_some() {
                continue;
            }
            let file = file_of(&path);
            self.provide(&path, name.trim().to_owned(), text, &VariableSource::Config, file.as_deref());
        }
    }

    fn provide(&mut self, path: &KeyPath, name: String, value: String, source: &VariableSource, file: Option<&Path>) {
        if let Some(reason) = objection(&name, &value) {
            self.warn(path.clone(), file, WarningKind::RefusedVariable { name: name.clone(), reason });
            self.provided.refused.push(Refused { name, reason, source: source.clone() });
            return;
        }
        if value.is_empty() {
            return;
        }
        self.env.insert(name.clone(), value.clone());
        self.provided.variables.insert(name, Variable { value: Secret::new(value), source: source.clone() });
    }

    fn warn(&mut self, path: KeyPath, file: Option<&Path>, kind: WarningKind) {
        self.warnings.push(Warning { path, file: file.map(Path::to_owned), kind });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Collector, VariableSource, objection};
    use crate::{Env, WarningKind};

    #[test]
    fn refuses_names_that_load_code() {
        for name in ["LD_PRELOAD", "ld_library_path", "NODE_OPTIONS", "Bash_Env", "1A", "A-B", "A.B", ""] {
            assert!(objection(name, "x").is_some(), "{name}");
        }
        for name in ["GH_TOKEN", "_x", "Mixed9"] {
            assert_eq!(objection(name, "x"), None, "{name}");
        }
        assert!(objection("A", "x\0").is_some());
    }

    #[test]
    fn the_section_fills_gaps_only() {
        let mut all = Collector::new(&Env::from_iter([("SET", "host"), ("BLANK", " ")]));
        let section = json!({
            "vars": { "SET": "a", "BLANK": "b", "BOTH": "vars", "REF": "${SET}!", "GONE": "${NOPE}" },
            "BOTH": "direct", "DIRECT": "d", "LD_PRELOAD": "evil.so", "NUMBER": 5,
            "shellEnv": { "enabled": true },
        });
        all.take_section(&section, |_| None);
        let found: Vec<_> = all.provided.variables.iter().map(|(name, v)| (name.as_str(), v.value.expose())).collect();
        assert_eq!(found, [("BLANK", "b"), ("BOTH", "vars"), ("DIRECT", "d"), ("REF", "host!")]);
        assert_eq!(all.provided.variables["REF"].source, VariableSource::Config);
        let section: Vec<_> =
            all.provided.section.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
        assert_eq!(section, [("BLANK", "b"), ("BOTH", "vars"), ("DIRECT", "d"), ("REF", "host!"), ("SET", "a")]);
        assert_eq!(all.provided.refused[0].name, "LD_PRELOAD");
        assert!(all.warnings.iter().any(|warning| warning.kind == WarningKind::ShellImport));
        assert_eq!(all.env.get("SET"), Some("host"));
    }
}
