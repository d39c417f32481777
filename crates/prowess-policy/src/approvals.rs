//! Approvals: what did the operator allow, for which agent?
//!
//! The value behind `exec-approvals.json`, the peer's file. Reading and writing it is somebody else's work; here it is
//! parsed, put in order, asked and changed. Keys that we do not know survive a change. A file that cannot be understood
//! is never taken for an empty one: that would drop what the operator forbade, and the next write would erase the rest.

mod arguments;
mod entry;

use serde_json::{Map, Value, json};

pub use arguments::{exact_arguments, is_exact};
pub use entry::Entry;

use crate::posture::{Ask, Posture, Security};

/// The largest file that is read, in bytes.
pub const MAX_BYTES: usize = 4 * 1024 * 1024;

/// The agent that is meant when nobody is named.
pub const MAIN: &str = "main";

/// The key under which the rules for every agent stand.
pub const EVERYONE: &str = "*";

/// The most characters of a command that are kept with the entry that allowed it.
const MAX_COMMAND: usize = 1000;

/// Why an approvals file cannot be used. The file is to be kept as it is, and nothing is to run by it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BrokenApprovals {
    /// More than [`MAX_BYTES`].
    #[error("it is larger than {MAX_BYTES} bytes")]
    TooLarge,
    /// Not JSON.
    #[error("it is not JSON: line {line}, column {column}")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
    /// A version that we do not know.
    #[error("its `version` is not 1")]
    Version,
    /// A value of the wrong kind where a restriction could be lost.
    #[error("`{}` is not {expected}", .place.escape_debug())]
    Kind {
        /// Where in the file.
        place: String,
        /// What belongs there.
        expected: &'static str,
    },
}

/// What counts where the file is silent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Overrides {
    /// What may run.
    pub security: Option<Security>,
    /// When a person is asked.
    pub ask: Option<Ask>,
    /// What may run when nobody answers.
    pub fallback: Option<Security>,
    /// Whether programs that skills declare may run.
    pub auto_allow_skills: Option<bool>,
}

/// What the file says for one agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// The rules.
    pub posture: Posture,
    /// The entries for every agent, then those for this one.
    pub allowlist: Vec<Entry>,
}

/// The content of an approvals file.
#[derive(Debug, Clone, PartialEq)]
pub struct Approvals {
    file: Map<String, Value>,
}

impl Default for Approvals {
    fn default() -> Self {
        Self::default_file()
    }
}

impl Approvals {
    /// A file that says nothing.
    #[must_use]
    pub fn default_file() -> Self {
        let mut file = Map::new();
        file.insert("version".to_owned(), json!(1));
        file.insert("defaults".to_owned(), json!({}));
        file.insert("agents".to_owned(), json!({}));
        Self { file }
    }

    /// Reads a file and puts it in order; `new_id` names entries that have no id.
    pub fn parse(text: &str, new_id: impl FnMut() -> String) -> Result<Self, BrokenApprovals> {
        if text.len() > MAX_BYTES {
            return Err(BrokenApprovals::TooLarge);
        }
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let value: Value = serde_json::from_str(text)
            .map_err(|error| BrokenApprovals::Syntax { line: error.line(), column: error.column() })?;
        Self::from_value(value, new_id)
    }

    /// The same for a file that arrives as part of a message.
    pub fn from_value(value: Value, mut new_id: impl FnMut() -> String) -> Result<Self, BrokenApprovals> {
        let Value::Object(mut file) = value else { return Err(kind("the file", "an object")) };
        if file.get("version").and_then(Value::as_f64) != Some(1.0) {
            return Err(BrokenApprovals::Version);
        }
        if let Some(defaults) = object(&file, "defaults", "defaults")? {
            check_rules(defaults, "defaults")?;
        }
        object(&file, "agents", "agents")?;
        if let Some(Value::Object(agents)) = file.get_mut("agents") {
            for (name, agent) in agents.iter_mut().filter(|(_, agent)| !agent.is_null()) {
                let place = format!("agents.{name}");
                let Value::Object(agent) = agent else { return Err(kind(&place, "an object")) };
                check_rules(agent, &place)?;
                tidy_allowlist(agent, &place, &mut new_id)?;
            }
            merge_legacy(agents);
        } else {
            file.insert("agents".to_owned(), json!({}));
        }
        Ok(Self { file })
    }

    /// The file as text.
    #[must_use]
    pub fn render(&self) -> String {
        format!("{:#}\n", Value::Object(self.file.clone()))
    }

    /// The file as a value.
    #[must_use]
    pub fn to_value(&self) -> Value {
        Value::Object(self.file.clone())
    }

    /// The rules and entries for `agent`.
    #[must_use]
    pub fn resolve(&self, agent: Option<&str>, overrides: Overrides) -> Resolved {
        let key = agent_key(agent);
        let silent = Posture {
            security: overrides.security.unwrap_or(Posture::SILENT.security),
            ask: overrides.ask.unwrap_or(Posture::SILENT.ask),
            fallback: overrides.fallback.unwrap_or(Posture::SILENT.fallback),
            auto_allow_skills: overrides.auto_allow_skills.unwrap_or(Posture::SILENT.auto_allow_skills),
        };
        let defaults = layered(&[self.file.get("defaults")], silent);
        let posture = layered(&[self.agent(key), self.agent(EVERYONE)], defaults);
        let mut allowlist = self.entries(EVERYONE);
        if key != EVERYONE {
            allowlist.extend(self.entries(key));
        }
        Resolved { posture, allowlist }
    }

    /// Whether the file leaves it to the defaults what `agent` may run: it names no mode and lists no program.
    #[must_use]
    pub fn is_silent(&self, agent: Option<&str>) -> bool {
        let agents = [EVERYONE, agent_key(agent)];
        let levels = agents.iter().filter_map(|key| self.agent(key)).chain(self.file.get("defaults"));
        let names_a_mode =
            |level: &Value| ["security", "ask"].iter().any(|key| level.get(key).is_some_and(|value| !value.is_null()));
        !levels.into_iter().any(names_a_mode) && agents.iter().all(|key| self.entries(key).is_empty())
    }

    /// The agents that have rules of their own, [`EVERYONE`] among them.
    pub fn agents(&self) -> impl Iterator<Item = &str> {
        self.file.get("agents").and_then(Value::as_object).into_iter().flat_map(Map::keys).map(String::as_str)
    }

    /// The entries of one agent alone.
    #[must_use]
    pub fn entries(&self, agent: &str) -> Vec<Entry> {
        let list = self.agent(agent).and_then(|agent| agent.get("allowlist")).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Entry::from_value).collect()
    }

    /// Adds an entry, unless there is one already that says the same. Tells whether it was added.
    pub fn grant(&mut self, agent: Option<&str>, entry: &Entry) -> bool {
        let key = agent_key(agent);
        if entry.pattern.trim().is_empty() || self.entries(key).iter().any(|there| there.says_the_same(entry)) {
            return false;
        }
        let agent = child(child(&mut self.file, "agents"), key);
        match agent.get_mut("allowlist") {
            Some(Value::Array(list)) => list.push(entry.to_value()),
            _ => drop(agent.insert("allowlist".to_owned(), Value::Array(vec![entry.to_value()]))),
        }
        true
    }

    /// Removes the entries of an agent that have this id or pattern, and tells how many there were.
    pub fn revoke(&mut self, agent: Option<&str>, id_or_pattern: &str) -> usize {
        let Some(list) = self.allowlist_mut(agent_key(agent)) else { return 0 };
        let before = list.len();
        let wanted = id_or_pattern.trim();
        list.retain(|item| !Entry::from_value(item).is_some_and(|it| it.id == wanted || it.pattern.trim() == wanted));
        before - list.len()
    }

    /// Notes that the entry `id`, of the agent or of everyone, let `used` run.
    pub fn record_use(&mut self, agent: Option<&str>, id: &str, used: Use<'_>) {
        for key in [EVERYONE, agent_key(agent)] {
            let items = self.allowlist_mut(key).into_iter().flatten();
            for item in items.filter(|item| item.get("id").and_then(Value::as_str) == Some(id)) {
                let Value::Object(item) = item else { continue };
                let command: String = used.command.chars().take(MAX_COMMAND).collect();
                item.insert("lastUsedAt".to_owned(), json!(used.at));
                item.insert("lastUsedCommand".to_owned(), json!(command));
                item.insert("lastResolvedPath".to_owned(), json!(used.resolved));
            }
        }
    }

    fn agent(&self, key: &str) -> Option<&Value> {
        self.file.get("agents")?.get(key)
    }

    fn allowlist_mut(&mut self, key: &str) -> Option<&mut Vec<Value>> {
        self.file.get_mut("agents")?.get_mut(key)?.get_mut("allowlist")?.as_array_mut()
    }
}

/// One use of an entry.
#[derive(Debug, Clone, Copy)]
pub struct Use<'a> {
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// The command that ran.
    pub command: &'a str,
    /// The program that it started.
    pub resolved: &'a str,
}

fn agent_key(agent: Option<&str>) -> &str {
    agent.map(str::trim).filter(|agent| !agent.is_empty()).unwrap_or(MAIN)
}

fn kind(place: &str, expected: &'static str) -> BrokenApprovals {
    BrokenApprovals::Kind { place: place.to_owned(), expected }
}

/// The value at `key`, when there is one; null counts as nothing.
fn present<'a>(map: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    map.get(key).filter(|value| !value.is_null())
}

fn object<'a>(
    map: &'a Map<String, Value>,
    key: &str,
    place: &str,
) -> Result<Option<&'a Map<String, Value>>, BrokenApprovals> {
    present(map, key).map(|value| value.as_object().ok_or_else(|| kind(place, "an object"))).transpose()
}

/// The object at `key`, made if it is not there.
fn child<'a>(map: &'a mut Map<String, Value>, key: &str) -> &'a mut Map<String, Value> {
    let slot = map.entry(key).or_insert(Value::Null);
    if !slot.is_object() {
        *slot = json!({});
    }
    slot.as_object_mut().expect("it was just made an object")
}

fn check_rules(rules: &Map<String, Value>, place: &str) -> Result<(), BrokenApprovals> {
    for key in ["security", "ask", "askFallback"] {
        if present(rules, key).is_some_and(|value| !value.is_string()) {
            return Err(kind(&format!("{place}.{key}"), "a word"));
        }
    }
    if present(rules, "autoAllowSkills").is_some_and(|value| !value.is_boolean()) {
        return Err(kind(&format!("{place}.autoAllowSkills"), "true or false"));
    }
    Ok(())
}

/// Makes every item of the allowlist an entry with an id; what cannot be one allows nothing and is left out.
fn tidy_allowlist(
    agent: &mut Map<String, Value>,
    place: &str,
    new_id: &mut impl FnMut() -> String,
) -> Result<(), BrokenApprovals> {
    let Some(list) = agent.get_mut("allowlist").filter(|list| !list.is_null()) else { return Ok(()) };
    let Value::Array(items) = list else { return Err(kind(&format!("{place}.allowlist"), "a list")) };
    let mut tidy = Vec::with_capacity(items.len());
    for (at, item) in std::mem::take(items).into_iter().enumerate() {
        let mut item = match item {
            Value::Object(item) => item,
            Value::String(pattern) => Map::from_iter([("pattern".to_owned(), json!(pattern.trim()))]),
            _ => continue,
        };
        let pattern = item.get("pattern").and_then(Value::as_str).unwrap_or_default();
        if pattern.trim().is_empty() {
            continue;
        }
        for key in entry::RESTRICTIONS {
            if present(&item, key).is_some_and(|value| !value.is_string()) {
                return Err(kind(&format!("{place}.allowlist[{at}].{key}"), "text"));
            }
        }
        if item.get("id").and_then(Value::as_str).is_none_or(|id| id.trim().is_empty()) {
            item.insert("id".to_owned(), json!(new_id()));
        }
        tidy.push(Value::Object(item));
    }
    *items = tidy;
    Ok(())
}

/// Moves what stands under the old name `default` to `main`, where what `main` says counts.
fn merge_legacy(agents: &mut Map<String, Value>) {
    let Some(Value::Object(legacy)) = agents.shift_remove("default") else { return };
    let main = child(agents, MAIN);
    for (key, value) in legacy {
        match (main.get_mut(&key), value) {
            (Some(Value::Array(own)), Value::Array(old)) if key == "allowlist" => {
                let known: Vec<_> = own.iter().map(entry::legacy_key).collect();
                own.extend(old.into_iter().filter(|item| !known.contains(&entry::legacy_key(item))));
            }
            (Some(own), value) if own.is_null() => *own = value,
            (Some(_), _) => {}
            (None, value) => drop(main.insert(key, value)),
        }
    }
}

/// The first of `levels` that says something, key by key; `below` where none does, or where the word is unknown.
fn layered(levels: &[Option<&Value>], below: Posture) -> Posture {
    let first = |key: &str| levels.iter().flatten().find_map(|level| level.get(key).filter(|value| !value.is_null()));
    let security = |key: &str, below: Security| match first(key).and_then(Value::as_str) {
        Some(word) => word_or(word, Security::parse(word), Security::word, below, Security::min),
        None => below,
    };
    Posture {
        security: security("security", below.security),
        ask: match first("ask").and_then(Value::as_str) {
            Some(word) => word_or(word, Ask::parse(word), Ask::word, below.ask, Ask::max),
            None => below.ask,
        },
        fallback: security("askFallback", below.fallback),
        auto_allow_skills: first("autoAllowSkills").and_then(Value::as_bool).unwrap_or(below.auto_allow_skills),
    }
}

/// What a word of the file means. One that is not spelled as the peer spells it counts only where it tightens, so that
/// both systems never read the same file with us the milder.
fn word_or<T: Copy>(
    written: &str,
    meant: Option<T>,
    spelling: fn(T) -> &'static str,
    below: T,
    stricter: fn(T, T) -> T,
) -> T {
    match meant {
        Some(meant) if spelling(meant) == written => meant,
        Some(meant) => stricter(meant, below),
        None => below,
    }
}
