//! The `skills` section of the configuration, as written and as meant.
//!
//! Reading it never fails: what cannot be used is reported as a [`Problem`] and the default stands.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use crate::capabilities::Capabilities;
use crate::install::InstallPrefs;
use crate::problem::{Problem, ProblemKind};
use crate::secret::Secret;
use crate::text::trim;

/// Bounds on what is read and shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Child folders of one root that are still an ordinary number; up to ten times as many are looked at.
    pub candidates_per_root: usize,
    /// Skills loaded from one root.
    pub skills_per_root: usize,
    /// Skills loaded from all roots together.
    pub skills: usize,
    /// Bytes of one `SKILL.md`.
    pub file_bytes: u64,
    /// Skills in a prompt.
    pub prompt_skills: usize,
    /// UTF-16 units of a skills prompt.
    pub prompt_chars: usize,
    /// Tokens of a skills prompt, when that is bounded too.
    pub prompt_tokens: Option<usize>,
}

/// Skills that load unless a setting says otherwise: more than anyone has, and few enough to read in a moment.
const MOST_SKILLS: usize = 20_000;

impl Default for Limits {
    fn default() -> Self {
        Self {
            candidates_per_root: MOST_SKILLS,
            skills_per_root: MOST_SKILLS,
            skills: MOST_SKILLS,
            file_bytes: 256_000,
            prompt_skills: 150,
            prompt_chars: 30_000,
            prompt_tokens: None,
        }
    }
}

/// Which bundled skills may be offered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum AllowBundled {
    /// All of them.
    #[default]
    All,
    /// These, by name or key.
    Only(BTreeSet<String>),
    /// None.
    Nothing,
}

/// Which value of a variable wins when a skill's entry and the host both give one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EnvPrecedence {
    /// Skill entry, then `env` of the configuration, then the host.
    #[default]
    Skill,
    /// A value the host has already stays.
    Host,
}

/// The `apiKey` of a skill's entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApiKey {
    /// The key itself.
    Text(Secret),
    /// Where the key is kept; it is fetched by whoever runs the skill.
    Reference(String),
}

/// One entry of `skills.entries`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SkillConfig {
    /// Switched on or off by the user.
    pub enabled: Option<bool>,
    /// The value of the skill's primary variable.
    pub api_key: Option<ApiKey>,
    /// Variables for its runs, in the order written.
    pub env: Vec<(String, Secret)>,
    /// What its commands may use beyond the sandbox.
    pub capabilities: Option<Capabilities>,
}

/// The `skills` section.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SkillsConfig {
    /// Which bundled skills may be offered.
    pub allow_bundled: AllowBundled,
    /// More folders to look into, as written.
    pub extra_dirs: Vec<String>,
    /// Folders that links may lead into, as written.
    pub allow_symlink_targets: Vec<String>,
    /// Bounds on what is read and shown.
    pub limits: Limits,
    /// Entries by skill key.
    pub entries: BTreeMap<String, SkillConfig>,
    /// Whose variables win.
    pub env_precedence: EnvPrecedence,
    /// What to install with.
    pub install: InstallPrefs,
}

impl SkillsConfig {
    /// Reads the section; `file` is named in what is reported.
    #[must_use]
    pub fn read(section: &Value, file: &Path) -> (Self, Vec<Problem>) {
        let mut reader = Reader { file, problems: Vec::new() };
        let mut config = Self {
            allow_bundled: reader.allow_bundled(&section["allowBundled"]),
            extra_dirs: reader.strings(&section["load"]["extraDirs"], "skills.load.extraDirs"),
            allow_symlink_targets: reader
                .strings(&section["load"]["allowSymlinkTargets"], "skills.load.allowSymlinkTargets"),
            limits: reader.limits(&section["limits"]),
            entries: reader.entries(&section["entries"]),
            ..Self::default()
        };
        match &section["envPrecedence"] {
            Value::Null => {}
            Value::String(order) if order == "skill" => {}
            Value::String(order) if order == "host" => config.env_precedence = EnvPrecedence::Host,
            _ => reader.report("skills.envPrecedence", "`skill` or `host`"),
        }
        match &section["install"]["preferBrew"] {
            Value::Null => {}
            Value::Bool(prefer) => config.install.prefer_brew = *prefer,
            _ => reader.report("skills.install.preferBrew", "true or false"),
        }
        match section["install"]["nodeManager"].as_str().map(str::to_lowercase).as_deref() {
            Some(manager @ ("npm" | "pnpm" | "yarn" | "bun")) => manager.clone_into(&mut config.install.node_manager),
            None if section["install"]["nodeManager"].is_null() => {}
            _ => reader.report("skills.install.nodeManager", "npm, pnpm, yarn or bun"),
        }
        (config, reader.problems)
    }

    /// The entry of a skill, by its key.
    #[must_use]
    pub fn entry(&self, key: &str) -> Option<&SkillConfig> {
        self.entries.get(key)
    }
}

struct Reader<'a> {
    file: &'a Path,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn report(&mut self, path: &str, wanted: &str) {
        let reason = format!("`{path}` is not {wanted}; the default is used");
        let fix = format!("set it to {wanted}, or remove it");
        self.problems.push(Problem::new(ProblemKind::Setting, self.file, reason, fix));
    }

    fn allow_bundled(&mut self, value: &Value) -> AllowBundled {
        match value {
            Value::Null | Value::Bool(true) => AllowBundled::All,
            Value::Bool(false) => AllowBundled::Nothing,
            Value::Array(_) => {
                let names: BTreeSet<String> = self.strings(value, "skills.allowBundled").into_iter().collect();
                if names.is_empty() { AllowBundled::All } else { AllowBundled::Only(names) }
            }
            _ => {
                self.report("skills.allowBundled", "a list of names, or false");
                AllowBundled::All
            }
        }
    }

    /// Strings of a list, trimmed, without blanks.
    fn strings(&mut self, value: &Value, path: &str) -> Vec<String> {
        let items = match value {
            Value::Null => return Vec::new(),
            Value::Array(items) => items,
            _ => {
                self.report(path, "a list of strings");
                return Vec::new();
            }
        };
        if items.iter().any(|item| !item.is_string()) {
            self.report(&format!("{path}[]"), "a string");
        }
        items.iter().filter_map(Value::as_str).map(trim).filter(|text| !text.is_empty()).map(str::to_owned).collect()
    }

    fn limits(&mut self, section: &Value) -> Limits {
        let defaults = Limits::default();
        let mut limit = |key: &str, least: u64| match &section[key] {
            Value::Null => None,
            value => {
                let number = value.as_u64().filter(|&number| number >= least);
                if number.is_none() {
                    self.report(&format!("skills.limits.{key}"), &format!("a whole number from {least}"));
                }
                number
            }
        };
        let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let per_root = limit("maxSkillsLoadedPerSource", 1).map(size);
        Limits {
            candidates_per_root: limit("maxCandidatesPerRoot", 1).map_or(defaults.candidates_per_root, size),
            skills_per_root: per_root.unwrap_or(defaults.skills_per_root),
            // Who asks for more from one root means to have them.
            skills: per_root.map_or(defaults.skills, |per_root| per_root.max(defaults.skills)),
            file_bytes: limit("maxSkillFileBytes", 0).unwrap_or(defaults.file_bytes),
            prompt_skills: limit("maxSkillsInPrompt", 0).map_or(defaults.prompt_skills, size),
            prompt_chars: limit("maxSkillsPromptChars", 0).map_or(defaults.prompt_chars, size),
            prompt_tokens: limit("maxSkillsPromptTokens", 0).map(size),
        }
    }

    fn entries(&mut self, section: &Value) -> BTreeMap<String, SkillConfig> {
        let Value::Object(entries) = section else {
            if !section.is_null() {
                self.report("skills.entries", "a map of entries");
            }
            return BTreeMap::new();
        };
        entries.iter().map(|(key, entry)| (key.clone(), self.entry(key, entry))).collect()
    }

    fn entry(&mut self, key: &str, entry: &Value) -> SkillConfig {
        let path = format!("skills.entries.{key}");
        if !entry.is_object() {
            self.report(&path, "a map");
        }
        let enabled = match &entry["enabled"] {
            Value::Null => None,
            Value::Bool(enabled) => Some(*enabled),
            _ => {
                // A switch that cannot be read must not leave on what someone may have meant to switch off.
                self.problems.push(Problem::new(
                    ProblemKind::Setting,
                    self.file,
                    format!("`{path}.enabled` is neither true nor false; the skill is off"),
                    "set it to true or false",
                ));
                Some(false)
            }
        };
        let api_key = match &entry["apiKey"] {
            Value::Null => None,
            Value::String(key) => Some(ApiKey::Text(Secret::new(trim(key)))),
            Value::Object(reference) => {
                let part = |name: &str| reference.get(name).and_then(Value::as_str).unwrap_or_default();
                Some(ApiKey::Reference(format!("{}:{}:{}", part("source"), part("provider"), part("id"))))
            }
            _ => {
                self.report(&format!("{path}.apiKey"), "a string or a secret reference");
                None
            }
        };
        let env = match &entry["env"] {
            Value::Null => Vec::new(),
            Value::Object(env) => {
                if env.values().any(|value| !value.is_string()) {
                    self.report(&format!("{path}.env.*"), "a string");
                }
                env.iter()
                    .filter_map(|(name, value)| value.as_str().map(|value| (trim(name).to_owned(), Secret::new(value))))
                    .collect()
            }
            _ => {
                self.report(&format!("{path}.env"), "a map of strings");
                Vec::new()
            }
        };
        let capabilities = Some(&entry["capabilities"]).filter(|value| !value.is_null()).and_then(|value| {
            let read = Capabilities::read(value);
            for part in Capabilities::unknown_parts(value) {
                let reason = format!("`{path}.capabilities.{}` {}", part.path, part.why());
                self.problems.push(Problem::new(ProblemKind::Setting, self.file, reason, "correct it, or remove it"));
            }
            if read.is_none() {
                self.report(
                    &format!("{path}.capabilities"),
                    "a map of network, filesystem, env, sockets, keepsRunning",
                );
            }
            read
        });
        SkillConfig { enabled, api_key, env, capabilities }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(section: &Value) -> (SkillsConfig, usize) {
        let (config, problems) = SkillsConfig::read(section, Path::new("openclaw.json"));
        (config, problems.len())
    }

    #[test]
    fn an_absent_section_is_the_default() {
        assert_eq!(read(&Value::Null), (SkillsConfig::default(), 0));
    }

    #[test]
    fn allow_bundled_has_three_meanings() {
        let allow = |value: Value| read(&json!({ "allowBundled": value })).0.allow_bundled;
        assert_eq!(allow(json!([])), AllowBundled::All);
        assert_eq!(allow(json!([" "])), AllowBundled::All);
        assert_eq!(allow(json!(false)), AllowBundled::Nothing);
        assert_eq!(allow(json!([" a ", "a"])), AllowBundled::Only(["a".to_owned()].into()));
    }

    #[test]
    fn a_misspelt_capability_is_reported() {
        let capabilities = |value: Value| read(&json!({"entries": {"s": {"capabilities": value}}})).1;
        assert_eq!(capabilities(json!({"network": ["a.example"], "env": ["KEY"]})), 0);
        assert_eq!(capabilities(json!({"netwrok": ["a.example"], "filesystem": {"read": ["/x"]}})), 2);
    }

    #[test]
    fn what_cannot_be_used_is_reported_and_the_default_stands() {
        let section = json!({
            "allowBundled": 3, "envPrecedence": "x", "load": {"extraDirs": "x"}, "install": {"nodeManager": "cargo"},
            "limits": {"maxSkillsInPrompt": -1, "maxCandidatesPerRoot": 0, "maxSkillFileBytes": 0},
        });
        let (config, problems) = read(&section);
        assert_eq!(problems, 6);
        assert_eq!(config.limits, Limits { file_bytes: 0, ..Limits::default() });
    }

    #[test]
    fn a_switch_that_cannot_be_read_is_off() {
        let (config, problems) = read(&json!({"entries": {"s": {"enabled": "no"}}}));
        assert_eq!((config.entries["s"].enabled, problems), (Some(false), 1));
    }
}
