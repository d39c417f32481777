//! Secrets: which values must not be seen in what commands say?
//!
//! A skill's key is given to its commands, not to the model. But commands are careless with it: an error message, a
//! trace or a dump of variables shows it. So whatever leaves the tools of an agent is searched for the values that they
//! handed out, also long afterwards: a command can go on in the background for many turns. A command that wants to give
//! a key away can write it in another form; that is for the policy and the sandbox.

use std::sync::{Mutex, PoisonError};

use prowess_exec::tool::Content;
use prowess_exec::{SkillShare, ToolResult};
use prowess_policy::env::is_credential;
use serde_json::Value;

/// Shorter values are no secrets, or would take ordinary words out of a text.
const MIN_BYTES: usize = 8;

/// How many values are remembered; of more, the oldest are forgotten.
const MAX_VALUES: usize = 4_096;

/// The secrets that the tools of one agent handed out.
#[derive(Default)]
pub(crate) struct Secrets(Mutex<Vec<Secret>>);

struct Secret {
    name: String,
    value: String,
}

impl Secrets {
    /// Remembers the secrets of `share`: its credentials, those included that a person may still allow, and `primary`, the
    /// variable that holds the key of its skill.
    pub(crate) fn note(&self, share: &SkillShare, primary: Option<&str>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let withheld = share.withheld.iter().map(|key| (&key.name, &key.value));
        for (name, value) in share.vars.iter().map(|(name, value)| (name, value)).chain(withheld) {
            if !is_credential(name) && primary != Some(name) {
                continue;
            }
            // Of a key with several lines, each is shown by itself.
            for line in value.to_string_lossy().lines().map(str::trim).filter(|line| line.len() >= MIN_BYTES) {
                if !known.iter().any(|secret| secret.value == line) {
                    known.push(Secret { name: name.clone(), value: line.to_owned() });
                }
            }
        }
        let surplus = known.len().saturating_sub(MAX_VALUES);
        known.drain(..surplus);
    }

    /// Puts the names of variables in place of their secret values.
    pub(crate) fn conceal(&self, text: &mut String) {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        conceal(&by_length(&known), text);
    }

    /// `result` without secrets, in its text and in its details.
    pub(crate) fn redact(&self, mut result: ToolResult) -> ToolResult {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_empty() {
            return result;
        }
        let secrets = by_length(&known);
        for one in &mut result.content {
            let Content::Text { text } = one else { continue };
            conceal(&secrets, text);
        }
        conceal_in(&secrets, &mut result.details);
        result
    }
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secrets")
    }
}

/// The longest first: what is part of another one must not break it up.
fn by_length(known: &[Secret]) -> Vec<&Secret> {
    let mut secrets: Vec<&Secret> = known.iter().collect();
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.value.len()));
    secrets
}

fn conceal(secrets: &[&Secret], text: &mut String) {
    for secret in secrets {
        if text.contains(&secret.value) {
            *text = text.replace(&secret.value, &format!("[{}]", secret.name));
        }
    }
}

fn conceal_in(secrets: &[&Secret], value: &mut Value) {
    match value {
        Value::String(text) => conceal(secrets, text),
        Value::Array(items) => items.iter_mut().for_each(|item| conceal_in(secrets, item)),
        Value::Object(fields) => fields.values_mut().for_each(|field| conceal_in(secrets, field)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use prowess_exec::{SkillShare, ToolResult};
    use serde_json::json;

    use super::Secrets;

    fn secrets(vars: &[(&str, &str)], primary: Option<&str>) -> Secrets {
        let vars = vars.iter().map(|(name, value)| ((*name).to_owned(), value.into())).collect();
        let secrets = Secrets::default();
        secrets.note(&SkillShare { vars, ..SkillShare::default() }, primary);
        secrets
    }

    #[test]
    fn values_of_credentials_are_replaced_by_their_names() {
        let vars = [
            ("A_TOKEN", "abcdefgh"),
            ("LONG_TOKEN", "xx-abcdefgh-xx"),
            ("MAIN", "main-value"),
            ("PLACE", "/usr/share"),
            ("PIN_TOKEN", "1234567"),
            ("PRIVATE_KEY", "-----BEGIN-----\n  c2VjcmV0c2VjcmV0\n"),
        ];
        let secrets = secrets(&vars, Some("MAIN"));
        let table = [
            ("a abcdefgh b abcdefghabcdefgh", "a [A_TOKEN] b [A_TOKEN][A_TOKEN]"),
            ("xx-abcdefgh-xx", "[LONG_TOKEN]"),
            ("main-value /usr/share 1234567", "[MAIN] /usr/share 1234567"),
            ("c2VjcmV0c2VjcmV0", "[PRIVATE_KEY]"),
        ];
        for (text, expected) in table {
            let mut concealed = text.to_owned();
            secrets.conceal(&mut concealed);
            assert_eq!(concealed, expected);
        }
        let result = ToolResult::done("abcdefgh", json!({"a": ["main-value", 1, null], "b": {"c": "xabcdefghx"}}));
        let result = secrets.redact(result);
        assert_eq!(result.text(), "[A_TOKEN]");
        assert_eq!(result.details, json!({"a": ["[MAIN]", 1, null], "b": {"c": "x[A_TOKEN]x"}}));
    }
}
