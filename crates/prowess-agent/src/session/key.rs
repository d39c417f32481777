//! Session keys: under which name is a conversation found again?
//!
//! `agent:<agent>:<rest>`, in lower case as OpenClaw keeps them. A key is only ever a name in the index; files are named
//! after session ids.

use std::fmt;

/// The rest of the key of an agent's main conversation.
pub const MAIN: &str = "main";

/// The longest agent id, in characters.
const MAX_AGENT: usize = 64;

/// The name of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionKey {
    agent: String,
    rest: String,
}

impl SessionKey {
    /// The conversation `rest` of `agent`; without a name it is the main one.
    #[must_use]
    pub fn new(agent: &str, rest: &str) -> Self {
        let rest = rest.trim().to_lowercase();
        let rest = if rest.is_empty() { MAIN.to_owned() } else { rest };
        Self { agent: agent_id(agent), rest }
    }

    /// Reads a whole key; nothing when it is not one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let lower = text.trim().to_lowercase();
        // Empty pieces do not count, as in OpenClaw.
        let mut pieces = lower.split(':').filter(|piece| !piece.is_empty());
        if pieces.next() != Some("agent") {
            return None;
        }
        let agent = pieces.next()?;
        let rest: Vec<&str> = pieces.collect();
        (!rest.is_empty()).then(|| Self::new(agent, &rest.join(":")))
    }

    /// What a person means by `text`: a whole key, or the name of one of `agent`'s conversations.
    #[must_use]
    pub fn meant(text: &str, agent: &str) -> Self {
        Self::parse(text).unwrap_or_else(|| Self::new(agent, text))
    }

    /// The agent.
    #[must_use]
    pub fn agent(&self) -> &str {
        &self.agent
    }

    /// What comes after the agent.
    #[must_use]
    pub fn rest(&self) -> &str {
        &self.rest
    }

    /// Whether it is the conversation of a sub-agent.
    #[must_use]
    pub fn is_subagent(&self) -> bool {
        self.rest.starts_with("subagent:")
    }
}

impl fmt::Display for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "agent:{}:{}", self.agent, self.rest)
    }
}

/// An agent's id as it is written in keys and folders: lower case, and nothing that means something in a path.
#[must_use]
pub fn agent_id(text: &str) -> String {
    let lower = text.trim().to_lowercase();
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let mut id = String::new();
    for c in lower.chars() {
        if allowed(c) {
            id.push(c);
        } else if !id.ends_with('-') {
            id.push('-');
        }
    }
    let id: String = id.trim_matches('-').chars().take(MAX_AGENT).collect();
    if id.is_empty() { MAIN.to_owned() } else { id }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_as_openclaw_reads_them() {
        let table = [
            ("agent:main:main", Some("agent:main:main")),
            (" Agent:Main:Telegram:Group:42 ", Some("agent:main:telegram:group:42")),
            ("agent::main::x", Some("agent:main:x")),
            ("agent:main", None),
            ("agent:main:", None),
            ("main", None),
            ("agents:main:main", None),
            ("", None),
        ];
        for (text, expected) in table {
            assert_eq!(SessionKey::parse(text).map(|key| key.to_string()).as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn a_person_may_give_the_short_name() {
        assert_eq!(SessionKey::meant("Work", "main").to_string(), "agent:main:work");
        assert_eq!(SessionKey::meant("agent:ops:work", "main").to_string(), "agent:ops:work");
        assert_eq!(SessionKey::meant(" ", "main").to_string(), "agent:main:main");
    }

    #[test]
    fn sub_agents_are_told_apart() {
        assert!(SessionKey::new("main", "subagent:1").is_subagent());
        assert!(!SessionKey::new("main", "subagents").is_subagent());
    }

    #[test]
    fn an_agent_id_never_leads_anywhere() {
        let table = [
            ("Main", "main"),
            ("../../etc", "etc"),
            ("a/b\0c", "a-b-c"),
            ("..", "main"),
            ("", "main"),
            ("ops_1", "ops_1"),
            ("Größe", "gr-e"),
        ];
        for (text, expected) in table {
            assert_eq!(agent_id(text), expected, "{text:?}");
        }
        assert_eq!(agent_id(&"x".repeat(1_000)).len(), MAX_AGENT);
    }
}
