//! Which agents are there, and what did the operator decide for each of them?

use std::fmt;
use std::path::PathBuf;

use serde_json::Value;
use thiserror::Error;

use crate::tree::{names, trim};
use crate::{KeyPath, Locations, Warning, WarningKind};

/// The agent that is there when none is configured.
const MAIN: &str = "main";

const MAX_ID_CHARS: usize = 64;

/// An agent's id in its one spelling: lower case, only letters, digits, `_` and `-`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AgentId(String);

impl AgentId {
    /// The id that `text` stands for; every text stands for one.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let text = trim(text).to_lowercase();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let starts_well = text.starts_with(|c: char| c.is_ascii_alphanumeric());
        if starts_well && text.len() <= MAX_ID_CHARS && text.chars().all(is_plain) {
            return Self(text);
        }
        let mut id = String::new();
        for c in text.chars() {
            if is_plain(c) {
                id.push(c);
            } else if !id.ends_with(SEPARATOR) {
                id.push(SEPARATOR);
            }
        }
        let id: String = id.replace(SEPARATOR, "-").trim_matches('-').chars().take(MAX_ID_CHARS).collect();
        Self(if id.is_empty() { MAIN.to_owned() } else { id })
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Stands for a run of other characters until all of them are found; cannot occur in an id.
const SEPARATOR: char = ' ';

impl fmt::Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What is configured for one agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// Its id.
    pub id: AgentId,
    /// Whether it is the one to use when nobody says which.
    pub is_default: bool,
    /// The skills it may use, by name: `None` is all of them, an empty list is none of them.
    pub skills: Option<Vec<String>>,
    /// Its own limit for the skills in its prompt.
    pub max_skills_prompt_chars: Option<u64>,
    /// Its own `tools.exec` as written; `null` when it has none.
    pub exec: Value,
    /// Its own `tools` as written; `null` when it has none.
    pub tools: Value,
    /// Its workspace as written.
    workspace: Option<String>,
}

/// All agents; there is always at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agents {
    list: Vec<Agent>,
    default_workspace: Option<String>,
}

/// An agent that is not configured.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("there is no agent `{id}`; use one of: {}", show(known))]
pub struct UnknownAgent {
    /// The id that was asked for.
    pub id: AgentId,
    /// The ids there are.
    pub known: Vec<AgentId>,
}

fn show(ids: &[AgentId]) -> String {
    ids.iter().map(AgentId::as_str).collect::<Vec<_>>().join(", ")
}

impl Agents {
    /// The agents of a configuration tree, both from `agents.list` and from `agents.entries`, and what is odd.
    #[must_use]
    pub fn parse(tree: &Value) -> (Self, Vec<Warning>) {
        let section = &tree["agents"];
        let default_skills = names(&section["defaults"]["skills"]);
        let mut list: Vec<Agent> = Vec::new();
        let mut defaults = Vec::new();
        let mut warnings = Vec::new();
        for (path, id, entry) in written(section) {
            let id = AgentId::new(id);
            if list.iter().any(|agent| agent.id == id) {
                let kind = WarningKind::DuplicateAgent { id: id.to_string() };
                warnings.push(Warning { path, file: None, kind });
                continue;
            }
            if entry["default"] == true {
                defaults.push((path, id.clone()));
            }
            list.push(Agent {
                id,
                is_default: false,
                skills: names(&entry["skills"]).or_else(|| default_skills.clone()),
                max_skills_prompt_chars: entry["skillsLimits"]["maxSkillsPromptChars"].as_u64(),
                exec: entry["tools"]["exec"].clone(),
                tools: entry["tools"].clone(),
                workspace: written_path(&entry["workspace"]),
            });
        }
        if list.is_empty() {
            let id = AgentId::new(MAIN);
            list.push(Agent {
                id,
                is_default: false,
                skills: default_skills,
                max_skills_prompt_chars: None,
                exec: Value::Null,
                tools: Value::Null,
                workspace: None,
            });
        }
        let default = defaults.first().map_or_else(|| list[0].id.clone(), |(_, id)| id.clone());
        if let Some((path, _)) = defaults.get(1) {
            let kind = WarningKind::SeveralDefaults { used: default.to_string() };
            warnings.push(Warning { path: path.join("default"), file: None, kind });
        }
        for agent in &mut list {
            agent.is_default = agent.id == default;
        }
        (Self { list, default_workspace: written_path(&section["defaults"]["workspace"]) }, warnings)
    }

    /// All agents in the order they are written.
    #[must_use]
    pub fn list(&self) -> &[Agent] {
        &self.list
    }

    /// The agent to use when nobody says which.
    #[must_use]
    pub fn default_agent(&self) -> &Agent {
        self.list.iter().find(|agent| agent.is_default).unwrap_or(&self.list[0])
    }

    /// The agent with this id, in any spelling of it.
    pub fn get(&self, id: &str) -> Result<&Agent, UnknownAgent> {
        let id = AgentId::new(id);
        let found = self.list.iter().find(|agent| agent.id == id);
        found.ok_or_else(|| UnknownAgent { id, known: self.list.iter().map(|agent| agent.id.clone()).collect() })
    }

    /// The directory an agent works in.
    #[must_use]
    pub fn workspace(&self, agent: &Agent, locations: &Locations) -> PathBuf {
        if let Some(own) = &agent.workspace {
            return locations.expand(own);
        }
        match &self.default_workspace {
            _ if !agent.is_default => locations.state_dir.join(format!("workspace-{}", agent.id)),
            Some(shared) => locations.expand(shared),
            None => locations.default_workspace.clone(),
        }
    }
}

/// The entries as written: where they are, their id as written, and what they say.
fn written(section: &Value) -> Vec<(KeyPath, &str, &Value)> {
    let here = KeyPath::from_iter(["agents"]);
    let items = section["list"].as_array().into_iter().flatten().enumerate().filter(|(_, entry)| entry.is_object());
    let listed =
        items.map(|(at, entry)| (here.join("list").join(at.to_string()), entry["id"].as_str().unwrap_or(MAIN), entry));
    let entries = section["entries"].as_object().into_iter().flatten().filter(|(_, entry)| entry.is_object());
    let keyed = entries.map(|(id, entry)| (here.join("entries").join(id), id.as_str(), entry));
    listed.chain(keyed).collect()
}

fn written_path(value: &Value) -> Option<String> {
    let path = trim(value.as_str()?).replace('\0', "");
    (!path.is_empty()).then_some(path)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{AgentId, Agents};
    use crate::{KeyPath, WarningKind};

    fn agents(section: &Value) -> Agents {
        Agents::parse(&json!({ "agents": section })).0
    }

    #[test]
    fn ids_have_one_spelling() {
        for (text, expected) in [
            ("Main", "main"),
            ("  a_B-9 ", "a_b-9"),
            ("My Agent!", "my-agent"),
            ("a  !! b", "a-b"),
            ("a--b", "a--b"),
            ("a -- b", "a----b"),
            ("-x-", "x"),
            ("_x", "_x"),
            ("", "main"),
            ("日本", "main"),
            ("é1", "1"),
        ] {
            assert_eq!(AgentId::new(text).as_str(), expected, "{text}");
        }
        assert_eq!(AgentId::new(&"x".repeat(70)).as_str().len(), 64);
    }

    #[test]
    fn there_is_always_a_default() {
        for (section, expected) in [
            (json!({}), "main"),
            (json!({ "list": [] }), "main"),
            (json!({ "list": [{ "id": "a" }, { "id": "b" }] }), "a"),
            (json!({ "list": [{ "id": "a" }, { "id": "b", "default": true }] }), "b"),
            (json!({ "entries": { "x": {}, "Y": { "default": true } } }), "y"),
            (json!({ "list": [{ "id": "a" }], "entries": { "b": {} } }), "a"),
        ] {
            assert_eq!(agents(&section).default_agent().id.as_str(), expected, "{section}");
        }
    }

    #[test]
    fn odd_lists_are_reported() {
        let tree = json!({ "agents": { "list": [
            { "id": "a" }, { "id": "b", "default": true }, { "id": "c", "default": true }, { "id": "A" },
        ] } });
        let (found, warnings) = Agents::parse(&tree);
        assert_eq!(found.list().len(), 3);
        assert_eq!(found.default_agent().id.as_str(), "b");
        assert_eq!(
            warnings.iter().map(|warning| warning.kind.clone()).collect::<Vec<_>>(),
            [WarningKind::DuplicateAgent { id: "a".to_owned() }, WarningKind::SeveralDefaults { used: "b".to_owned() },]
        );
        assert_eq!(warnings[1].path, KeyPath::from_iter(["agents", "list", "2", "default"]));
    }

    #[test]
    fn skills_of_an_agent() {
        let found = agents(&json!({
            "defaults": { "skills": ["shared", " "] },
            "list": [
                { "id": "own", "skills": [" x ", "y"], "skillsLimits": { "maxSkillsPromptChars": 9 } },
                { "id": "none", "skills": [] },
                { "id": "shared" },
            ],
        }));
        let skills = |id: &str| found.get(id).expect(id).skills.clone();
        assert_eq!(skills("own"), Some(vec!["x".to_owned(), "y".to_owned()]));
        assert_eq!(skills("NONE"), Some(vec![]));
        assert_eq!(skills("shared"), Some(vec!["shared".to_owned()]));
        assert_eq!(found.get("own").expect("own").max_skills_prompt_chars, Some(9));
        assert_eq!(agents(&json!({})).default_agent().skills, None);
    }

    #[test]
    fn an_unknown_agent_names_the_known_ones() {
        let error = agents(&json!({ "list": [{ "id": "a" }, { "id": "B" }] })).get("C x").expect_err("unknown");
        assert_eq!(error.to_string(), "there is no agent `c-x`; use one of: a, b");
    }
}
