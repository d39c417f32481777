//! The manifest inside `metadata`: what does a skill need, and how is it shown?
//!
//! The block is looked for under `openclaw`, then `clawdbot`, then `clawdis`, the names the format has had. What the
//! skill needs is read strictly: a need that is written in a way we cannot read is reported and holds the skill back,
//! because "cannot read" must never turn into "needs nothing".

use serde_json::{Map, Value};

use crate::capabilities::Capabilities;
use crate::frontmatter::yaml::plain_text;
use crate::install::InstallSpec;
use crate::text::trim;

/// The names of the manifest block, best first.
pub const BLOCKS: [&str; 3] = ["openclaw", "clawdbot", "clawdis"];

/// What has to be there before a skill can be used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    /// Systems it runs on, as written; empty means any.
    pub os: Vec<String>,
    /// Programs that must all be there.
    pub bins: Vec<String>,
    /// Programs of which one must be there.
    pub any_bins: Vec<String>,
    /// Environment variables that must all be set.
    pub env: Vec<String>,
    /// Configuration paths that must all be truthy.
    pub config: Vec<String>,
}

/// The manifest of a skill.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Metadata {
    /// Offer the skill even when its needs are not met.
    pub always: bool,
    /// A picture for lists.
    pub emoji: Option<String>,
    /// Where to read more.
    pub homepage: Option<String>,
    /// The name of its configuration entry, when it is not the skill's name.
    pub skill_key: Option<String>,
    /// The variable that `apiKey` of its configuration entry is given as.
    pub primary_env: Option<String>,
    /// What it needs.
    pub needs: Needs,
    /// How to get what it needs.
    pub install: Vec<InstallSpec>,
    /// What its commands use beyond the sandbox, if it says so.
    pub capabilities: Option<Capabilities>,
}

/// A manifest and what could not be read of it.
#[derive(Debug, Default)]
pub(crate) struct Manifest {
    pub(crate) metadata: Metadata,
    /// Parts that were ignored.
    pub(crate) ignored: Vec<String>,
    /// Why the needs are not known for certain.
    pub(crate) unreadable: Option<String>,
}

/// Reads the manifest block of a `metadata` object.
pub(crate) fn read(metadata: &Value) -> Manifest {
    let mut manifest = Manifest::default();
    let block = BLOCKS.iter().find_map(|name| metadata.get(name).filter(|block| block.is_object() || block.is_array()));
    let Some(Value::Object(block)) = block else {
        return manifest;
    };
    let text = |key: &str| block.get(key).and_then(Value::as_str).map(str::to_owned);
    manifest.metadata = Metadata {
        always: block.get("always") == Some(&Value::Bool(true)),
        emoji: text("emoji"),
        homepage: text("homepage"),
        skill_key: text("skillKey").filter(|key| !key.is_empty()),
        primary_env: text("primaryEnv"),
        needs: Needs { os: manifest.list(block, "os", "os"), ..manifest.requires(block) },
        install: manifest.install(block),
        capabilities: manifest.capabilities(block),
    };
    manifest
}

impl Metadata {
    /// The variables that the skill declares: `primaryEnv`, `requires.env` and `capabilities.env`.
    pub fn declared_env(&self) -> impl Iterator<Item = &str> {
        let declared = self.capabilities.iter().flat_map(|declared| &declared.env);
        self.primary_env.iter().chain(&self.needs.env).chain(declared).map(String::as_str)
    }
}

impl Manifest {
    fn requires(&mut self, block: &Map<String, Value>) -> Needs {
        let requires = match block.get("requires") {
            None | Some(Value::Null) => return Needs::default(),
            Some(Value::Object(requires)) => requires,
            Some(_) => {
                self.held("`requires` is not a map of `bins`, `anyBins`, `env` and `config`");
                return Needs::default();
            }
        };
        for key in requires.keys().filter(|key| !["bins", "anyBins", "env", "config"].contains(&key.as_str())) {
            self.ignored.push(format!("`requires.{key}` is unknown"));
        }
        Needs {
            os: Vec::new(),
            bins: self.list(requires, "bins", "requires.bins"),
            any_bins: self.list(requires, "anyBins", "requires.anyBins"),
            env: self.list(requires, "env", "requires.env"),
            config: self.list(requires, "config", "requires.config"),
        }
    }

    fn capabilities(&mut self, block: &Map<String, Value>) -> Option<Capabilities> {
        let declared = block.get("capabilities").filter(|value| !value.is_null())?;
        let read = Capabilities::read(declared);
        let unknown = Capabilities::unknown_parts(declared);
        self.ignored.extend(unknown.iter().map(|part| format!("`capabilities.{}` {}", part.path, part.why())));
        if read.is_none() {
            self.ignored.push(
                "`capabilities` is not a map of `network`, `filesystem`, `env`, `sockets` and `keepsRunning`"
                    .to_owned(),
            );
        }
        read
    }

    fn list(&mut self, map: &Map<String, Value>, key: &str, path: &str) -> Vec<String> {
        strings(map.get(key)).unwrap_or_else(|| {
            self.held(&format!("`{path}` is not a list of strings"));
            Vec::new()
        })
    }

    fn install(&mut self, block: &Map<String, Value>) -> Vec<InstallSpec> {
        let specs = match block.get("install") {
            Some(Value::Array(specs)) => specs.as_slice(),
            None | Some(Value::Null) => &[],
            Some(_) => {
                self.ignored.push("`install` is not a list".to_owned());
                &[]
            }
        };
        let mut read = Vec::new();
        for (index, spec) in specs.iter().enumerate() {
            match InstallSpec::read(spec) {
                Ok(spec) => read.push(spec),
                Err(reason) => self.ignored.push(format!("`install[{index}]` {reason}")),
            }
        }
        read
    }

    fn held(&mut self, reason: &str) {
        self.unreadable.get_or_insert_with(|| reason.to_owned());
    }
}

/// A list of words: an array of scalars, or one string with commas. `None` when it is neither.
pub(crate) fn strings(value: Option<&Value>) -> Option<Vec<String>> {
    let words = |word: &str| Some(trim(word).to_owned()).filter(|word| !word.is_empty());
    match value {
        None | Some(Value::Null) => Some(Vec::new()),
        Some(Value::String(text)) => Some(text.split(',').filter_map(words).collect()),
        Some(Value::Array(items)) => {
            let texts: Option<Vec<String>> = items.iter().map(plain_text).collect();
            texts.map(|texts| texts.iter().filter_map(|text| words(text)).collect())
        }
        Some(Value::Bool(_) | Value::Number(_) | Value::Object(_)) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_block_that_is_a_block_counts() {
        let emoji = |value: Value| read(&value).metadata.emoji;
        assert_eq!(emoji(json!({"clawdis": {"emoji": "s"}})).as_deref(), Some("s"));
        assert_eq!(emoji(json!({"clawdis": {"emoji": "s"}, "clawdbot": {"emoji": "b"}})).as_deref(), Some("b"));
        assert_eq!(emoji(json!({"openclaw": "text", "clawdbot": {"emoji": "b"}})).as_deref(), Some("b"));
        assert_eq!(emoji(json!({"openclaw": [1], "clawdbot": {"emoji": "b"}})), None);
        assert_eq!(emoji(json!({"other": {"emoji": "o"}})), None);
    }

    #[test]
    fn lists_are_lenient_about_form_and_strict_about_meaning() {
        let manifest =
            read(&json!({"openclaw": {"os": "darwin, linux", "requires": {"bins": "a, b,,c", "env": [1, " X ", ""]}}}));
        assert_eq!(manifest.metadata.needs.os, ["darwin", "linux"]);
        assert_eq!(manifest.metadata.needs.bins, ["a", "b", "c"]);
        assert_eq!(manifest.metadata.needs.env, ["1", "X"]);
        assert_eq!(manifest.unreadable, None);
        for unreadable in [
            json!({"requires": "curl"}),
            json!({"requires": ["x"]}),
            json!({"requires": {"bins": 7}}),
            json!({"requires": {"bins": [{"name": "x"}]}}),
            json!({"os": {"linux": true}}),
        ] {
            assert!(read(&json!({"openclaw": unreadable})).unreadable.is_some(), "{unreadable}");
        }
    }

    #[test]
    fn types_are_not_coerced() {
        let metadata = read(&json!({"openclaw": {"always": "true", "emoji": 7, "skillKey": ""}})).metadata;
        assert_eq!(metadata, Metadata::default());
    }
}
