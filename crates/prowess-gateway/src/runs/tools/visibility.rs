//! Visibility: which sessions may a session look at and speak to?
//!
//! `tools.sessions.visibility`: only itself, also those it started (which is usual), all of its agent, or all; for those
//! of other agents `tools.agentToAgent` has to allow it as well.

use prowess_agent::session::{SessionKey, agent_id};
use serde_json::Value;

/// Whether `me` may see `other`, of which the index says `entry`.
pub(super) fn may_see(me: &SessionKey, other: &SessionKey, entry: &Value, config: &Value) -> bool {
    if me == other {
        return true;
    }
    let is_child = entry["spawnedBy"].as_str() == Some(&me.to_string());
    let is_own = me.agent() == other.agent();
    match config["tools"]["sessions"]["visibility"].as_str() {
        None | Some("tree") => is_child,
        Some("agent") => is_own || is_child,
        Some("all") => is_own || is_child || agents_may_meet(me, other, &config["tools"]["agentToAgent"]),
        // What is no word we know shows as little as it can.
        Some(_) => false,
    }
}

/// Whether the operator lets both agents speak to each other.
fn agents_may_meet(me: &SessionKey, other: &SessionKey, section: &Value) -> bool {
    if section["enabled"] != true {
        return false;
    }
    let Some(list) = section["allow"].as_array() else { return true };
    let names =
        |agent: &str| list.iter().filter_map(Value::as_str).any(|name| name.trim() == "*" || agent_id(name) == agent);
    names(me.agent()) && names(other.agent())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_session_sees_what_the_operator_lets_it() {
        let me = SessionKey::new("main", "main");
        let child = (SessionKey::new("ops", "subagent:1"), json!({"spawnedBy": "agent:main:main"}));
        let own = (SessionKey::new("main", "work"), json!({}));
        let other = (SessionKey::new("ops", "main"), json!({}));
        let tools = |visibility: Value, meet: Value| json!({"tools": {"sessions": {"visibility": visibility}, "agentToAgent": meet}});
        let table = [
            (json!({}), [true, false, false]),
            (tools(json!("tree"), json!({})), [true, false, false]),
            (tools(json!("self"), json!({})), [false, false, false]),
            (tools(json!("agent"), json!({})), [true, true, false]),
            (tools(json!("all"), json!({})), [true, true, false]),
            (tools(json!("all"), json!({"enabled": true})), [true, true, true]),
            (tools(json!("all"), json!({"enabled": true, "allow": ["main"]})), [true, true, false]),
            (tools(json!("all"), json!({"enabled": true, "allow": ["main", "Ops"]})), [true, true, true]),
            (tools(json!("everything"), json!({"enabled": true})), [false, false, false]),
        ];
        for (config, expected) in table {
            assert!(may_see(&me, &me, &json!({}), &config));
            let seen = [&child, &own, &other].map(|(key, entry)| may_see(&me, key, entry, &config));
            assert_eq!(seen, expected, "{config}");
        }
    }
}
