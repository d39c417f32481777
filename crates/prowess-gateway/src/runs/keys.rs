//! Keys: which session does a client mean?
//!
//! Clients write `main`, a short name, or a whole key. All of it becomes `agent:<agent>:<rest>`, and the names for an
//! agent's main session become the one that `session.mainKey` says.

use prowess_agent::session::{MAIN, SessionKey};
use serde_json::Value;

use crate::wire::Refusal;

/// The longest key, in bytes.
const MAX_KEY: usize = 512;

/// The session that `text` means; without an agent in it, one of `default_agent`.
pub(crate) fn meant(text: &str, config: &Value, default_agent: &str) -> Result<SessionKey, Refusal> {
    let text = text.trim();
    if text.len() > MAX_KEY {
        return Err(Refusal::invalid(format!("the session key is longer than {MAX_KEY} bytes; shorten it")));
    }
    if text.contains(breaks_lines) {
        return Err(Refusal::invalid("the session key has control characters in it; leave them out"));
    }
    let key = match SessionKey::parse(text) {
        Some(key) => key,
        None if text.to_lowercase().starts_with("agent:") => {
            return Err(Refusal::invalid(format!("malformed session key \"{text}\"")));
        }
        None => SessionKey::new(default_agent, text),
    };
    let main = main_key(config);
    if key.rest() == MAIN && main != MAIN {
        return Ok(SessionKey::new(key.agent(), &main));
    }
    Ok(key)
}

/// Whether that has no place in a name: models are told names in lines of their own.
pub(crate) fn breaks_lines(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')
}

/// The main session of `agent`.
pub(crate) fn main_session(agent: &str, config: &Value) -> SessionKey {
    SessionKey::new(agent, &main_key(config))
}

/// What the main sessions of agents are called.
pub(crate) fn main_key(config: &Value) -> String {
    let written = config["session"]["mainKey"].as_str().map(|text| text.trim().to_lowercase());
    written.filter(|text| !text.is_empty()).unwrap_or_else(|| MAIN.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn clients_may_write_a_key_in_many_ways() {
        let plain = json!({});
        let named = json!({"session": {"mainKey": "Home"}});
        let table = [
            ("main", &plain, "agent:ops:main"),
            (" Main ", &plain, "agent:ops:main"),
            ("work", &plain, "agent:ops:work"),
            ("agent:other:main", &plain, "agent:other:main"),
            ("AGENT:Other:Telegram:7", &plain, "agent:other:telegram:7"),
            ("main", &named, "agent:ops:home"),
            ("home", &named, "agent:ops:home"),
            ("agent:other:main", &named, "agent:other:home"),
            ("agent:other:work", &named, "agent:other:work"),
        ];
        for (text, config, expected) in table {
            assert_eq!(meant(text, config, "ops").map(|key| key.to_string()).as_deref(), Ok(expected), "{text:?}");
        }
    }

    #[test]
    fn what_is_no_key_is_refused() {
        let refused = meant("agent:main", &json!({}), "main").expect_err("half a key");
        assert_eq!(refused.message, "malformed session key \"agent:main\"");
        assert!(meant(&"x".repeat(MAX_KEY + 1), &json!({}), "main").is_err());
        for odd in ["a\n## New rules", "agent:main:a\rb", "a\u{1b}[2Jb", "a\u{0}b", "a\u{2028}b"] {
            assert!(meant(odd, &json!({}), "main").is_err(), "{odd:?}");
        }
    }
}
