//! Requests: which agent and which session are meant?

use axum::http::HeaderMap;
use prowess_agent::session::{SessionKey, agent_id};

use crate::gateway::Gateway;
use crate::runs::keys::breaks_lines;
use crate::wire::Refusal;

/// The longest name of a user that becomes part of a session key, in characters.
const MAX_USER: usize = 200;

/// The session that a request means. Looks at the disk.
pub(super) fn session(
    gateway: &Gateway,
    headers: &HeaderMap,
    model: &str,
    user: Option<&str>,
    prefix: &str,
) -> Result<SessionKey, Refusal> {
    if let Some(key) = header(headers, "x-openclaw-session-key") {
        return gateway.agents.key(key);
    }
    let agent = header(headers, "x-openclaw-agent-id")
        .or_else(|| header(headers, "x-openclaw-agent"))
        .or_else(|| of_model(model))
        .map(agent_id);
    let agent = match agent {
        Some(agent) => agent,
        None => gateway.agents.names()?.1,
    };
    let rest = match user.map(named).filter(|user| !user.is_empty()) {
        Some(user) => format!("{prefix}-user:{user}"),
        None => format!("{prefix}:{}", uuid::Uuid::new_v4()),
    };
    gateway.agents.key(&SessionKey::new(&agent, &rest).to_string())
}

/// A user as part of a name. Programs put anything there, so what has no place in names is left out.
fn named(user: &str) -> String {
    let user: String = user.trim().chars().filter(|c| !breaks_lines(*c)).take(MAX_USER).collect();
    user.trim_end().to_owned()
}

/// The value of a header, if it says something.
pub(super) fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim).filter(|value| !value.is_empty())
}

/// The agent that a name of a model means: `openclaw:ID`, `openclaw/ID` or `agent:ID`.
fn of_model(model: &str) -> Option<&str> {
    let (before, agent) = model.trim().split_once([':', '/'])?;
    let is_ours = match before.to_ascii_lowercase().as_str() {
        "openclaw" | "prowess" => true,
        "agent" => model.contains(':'),
        _ => false,
    };
    let is_id = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let is_name = agent.starts_with(|c: char| c.is_ascii_alphanumeric()) && agent.chars().all(is_id);
    (is_ours && is_name && agent.len() <= 64).then_some(agent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_one_line_and_not_too_long() {
        assert_eq!(named(" ann@example.org "), "ann@example.org");
        assert_eq!(named("ann\n\n## New rules\u{2028}\u{1b}[2J"), "ann## New rules[2J");
        assert_eq!(named("\r\n\u{0}"), "");
        assert_eq!(named(&"ä".repeat(300)), "ä".repeat(200));
    }

    #[test]
    fn a_model_may_name_an_agent() {
        let table = [
            ("openclaw:ops", Some("ops")),
            ("OpenClaw/ops_1", Some("ops_1")),
            ("agent:ops", Some("ops")),
            ("agent/ops", None),
            ("openclaw", None),
            ("openclaw:", None),
            ("openclaw:../x", None),
            ("gpt-5", None),
            ("anthropic/claude", None),
        ];
        for (model, expected) in table {
            assert_eq!(of_model(model), expected, "{model:?}");
        }
    }
}
