//! Which tools did the operator allow?
//!
//! The common section and the agent's own both have their say: a tool is there when neither denies it and each that
//! names tools at all names it. What should restrict and cannot be read restricts as far as it can.

use serde_json::Value;

use super::place::Outside;

/// Names that stand for several tools.
const GROUPS: &[(&str, &[&str])] = &[
    ("group:fs", &["read", "write", "edit", "apply_patch"]),
    ("group:runtime", &["exec", "process"]),
    (
        "group:sessions",
        &["sessions_list", "sessions_history", "sessions_send", "sessions_spawn", "subagents", "session_status"],
    ),
];

/// Ready-made lists of tools, as the peer names them. Of what they allow there, only what exists here is listed.
const PROFILES: &[(&str, &[&str])] = &[
    ("minimal", &["session_status"]),
    ("coding", &["group:fs", "group:runtime", "group:sessions"]),
    ("messaging", &["message", "sessions_list", "sessions_history", "sessions_send", "session_status"]),
    ("full", &["*"]),
];

/// What the operator wrote under `tools`, for one agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolSettings {
    /// A tool must be in each of these lists.
    allow: Vec<Vec<String>>,
    /// And in none of these.
    deny: Vec<String>,
    /// Whether `tools.fs.workspaceOnly` is set.
    workspace_only: bool,
}

impl ToolSettings {
    /// Reads the common `tools` section and the agent's own.
    #[must_use]
    pub fn read(common: &Value, agent: &Value) -> Self {
        let own_first = |key: &str| if agent[key].is_null() { &common[key] } else { &agent[key] };
        let also = names(own_first("alsoAllow")).unwrap_or_default();
        let mut allow = Vec::new();
        if let Some(mut profile) = profile(own_first("profile")) {
            profile.extend(also.iter().cloned());
            allow.push(profile);
        }
        for section in [common, agent] {
            let mut listed = names(&section["allow"]).unwrap_or_else(|| vec![String::new()]);
            if !listed.is_empty() {
                listed.extend(also.iter().cloned());
                allow.push(listed);
            }
        }
        let all = || vec!["*".to_owned()];
        let deny =
            [common, agent].into_iter().flat_map(|section| names(&section["deny"]).unwrap_or_else(all)).collect();
        let only = [&agent["fs"]["workspaceOnly"], &common["fs"]["workspaceOnly"]];
        let only = only.into_iter().find(|value| !value.is_null());
        Self { allow, deny, workspace_only: only.is_some_and(|value| *value != Value::Bool(false)) }
    }

    /// Narrowed by one more section, which can take tools away and give none.
    #[must_use]
    pub fn narrowed(mut self, section: &Value) -> Self {
        let listed = names(&section["allow"]).unwrap_or_else(|| vec![String::new()]);
        if !listed.is_empty() {
            self.allow.push(listed);
        }
        self.deny.extend(names(&section["deny"]).unwrap_or_else(|| vec!["*".to_owned()]));
        self
    }

    /// Whether the tool called `name` may be used.
    #[must_use]
    pub fn allows(&self, name: &str) -> bool {
        let is_in = |list: &[String]| list.iter().any(|entry| names_tool(entry, name));
        !is_in(&self.deny) && self.allow.iter().all(|list| is_in(list))
    }

    pub(crate) fn outside(&self) -> Outside {
        if self.workspace_only { Outside::Refuse } else { Outside::Ask }
    }
}

/// The list behind a profile; a word that is none is the strictest.
fn profile(value: &Value) -> Option<Vec<String>> {
    if value.is_null() {
        return None;
    }
    let word = value.as_str().unwrap_or_default().trim().to_lowercase();
    let list = PROFILES.iter().find(|(name, _)| *name == word).map_or(PROFILES[0].1, |(_, list)| *list);
    Some(list.iter().map(|&name| name.to_owned()).collect())
}

/// The names in a list, or nothing if it is none. What is in it and is no text names no tool.
fn names(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::Null => Some(Vec::new()),
        Value::String(name) => Some(vec![name.clone()]),
        Value::Array(items) => Some(items.iter().map(|item| item.as_str().unwrap_or_default().to_owned()).collect()),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

/// Whether `entry` of a list means the tool called `name`.
fn names_tool(entry: &str, name: &str) -> bool {
    let entry = entry.trim().to_lowercase();
    let name = alias(&name.trim().to_lowercase()).to_owned();
    match GROUPS.iter().find(|(group, _)| *group == entry) {
        Some((_, members)) => members.contains(&name.as_str()),
        None => matches(alias(&entry), &name),
    }
}

/// The tool that another name stands for.
pub(crate) fn alias(name: &str) -> &str {
    match name {
        "bash" => "exec",
        "apply-patch" => "apply_patch",
        _ => name,
    }
}

/// Whether `name` is what `pattern` says, in which `*` stands for anything.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut left) = name.strip_prefix(first) else { return false };
    let mut pieces: Vec<&str> = rest.split('*').collect();
    let last = pieces.pop().unwrap_or_default();
    for piece in pieces {
        match left.find(piece) {
            Some(at) => left = &left[at + piece.len()..],
            None => return false,
        }
    }
    left.ends_with(last)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{ToolSettings, matches};

    const TOOLS: [&str; 5] = ["read", "write", "edit", "exec", "process"];

    fn allowed(common: &serde_json::Value, agent: &serde_json::Value) -> Vec<&'static str> {
        let settings = ToolSettings::read(common, agent);
        TOOLS.into_iter().filter(|name| settings.allows(name)).collect()
    }

    #[test]
    fn both_sections_have_their_say() {
        let none = json!(null);
        let table = [
            (json!(null), TOOLS.to_vec()),
            (json!({"allow": []}), TOOLS.to_vec()),
            (json!({"allow": ["read"]}), vec!["read"]),
            (json!({"allow": [" READ ", "Bash"]}), vec!["read", "exec"]),
            (json!({"allow": ["group:fs"]}), vec!["read", "write", "edit"]),
            (json!({"allow": ["*"], "deny": ["group:runtime"]}), vec!["read", "write", "edit"]),
            (json!({"allow": ["exec"], "deny": ["exec"]}), vec![]),
            (json!({"deny": ["*e*"]}), vec![]),
            (json!({"deny": ["*it*"]}), vec!["read", "exec", "process"]),
            (json!({"deny": "exec"}), vec!["read", "write", "edit", "process"]),
            (json!({"allow": ["read"], "alsoAllow": ["edit"]}), vec!["read", "edit"]),
            (json!({"alsoAllow": ["edit"]}), TOOLS.to_vec()),
            (json!({"profile": "coding"}), TOOLS.to_vec()),
            (json!({"profile": "coding", "deny": ["exec"]}), vec!["read", "write", "edit", "process"]),
            (json!({"profile": "minimal"}), vec![]),
            (json!({"profile": "minimal", "alsoAllow": ["read"]}), vec!["read"]),
            (json!({"profile": "codign"}), vec![]),
            (json!({"profile": "full"}), TOOLS.to_vec()),
            (json!({"allow": 5}), vec![]),
            (json!({"allow": [5]}), vec![]),
            (json!({"deny": 5}), vec![]),
            (json!({"deny": [5, "read"]}), vec!["write", "edit", "exec", "process"]),
        ];
        for (section, expected) in table {
            assert_eq!(allowed(&section, &none), expected, "common {section}");
            assert_eq!(allowed(&none, &section), expected, "agent {section}");
        }
        assert_eq!(allowed(&json!({"allow": ["read", "exec"]}), &json!({"allow": ["exec", "edit"]})), ["exec"]);
        assert_eq!(allowed(&json!({"deny": ["read"]}), &json!({"deny": ["exec"]})), ["write", "edit", "process"]);
        assert_eq!(allowed(&json!({"profile": "minimal"}), &json!({"profile": "coding"})), TOOLS);
    }

    #[test]
    fn a_section_more_only_takes_away() {
        let narrowed = |section: serde_json::Value| {
            let settings = ToolSettings::read(&json!({"deny": ["exec"]}), &json!(null)).narrowed(&section);
            TOOLS.into_iter().filter(|name| settings.allows(name)).collect::<Vec<_>>()
        };
        assert_eq!(narrowed(json!(null)), ["read", "write", "edit", "process"]);
        assert_eq!(narrowed(json!({"allow": ["read", "exec"]})), ["read"]);
        assert_eq!(narrowed(json!({"deny": ["group:fs"]})), ["process"]);
        assert_eq!(narrowed(json!({"allow": 5})), [""; 0]);
    }

    #[test]
    fn a_star_stands_for_anything() {
        let table = [
            ("*", "", true),
            ("a*", "abc", true),
            ("*c", "abc", true),
            ("a*c", "abc", true),
            ("a*b*c", "a-b-c", true),
            ("ab*ba", "aba", false),
            ("a*b*b", "ab", false),
            ("a", "ab", false),
            ("mcp__*__read", "mcp__files__read", true),
        ];
        for (pattern, name, expected) in table {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
