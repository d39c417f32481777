//! What may be shown of a configuration?

use serde_json::Value;

/// Stands in for a secret value.
pub const REDACTED: &str = "__REDACTED__";

/// A copy of `tree` in which secrets are replaced by [`REDACTED`].
pub(crate) fn redact(tree: &Value) -> Value {
    redact_below(tree, &mut Vec::new())
}

fn redact_below<'a>(value: &'a Value, path: &mut Vec<&'a str>) -> Value {
    match value {
        Value::Object(map) => {
            let shown = map.iter().map(|(key, value)| {
                path.push(key);
                let shown = if is_secret(path) { cover(value) } else { redact_below(value, path) };
                path.pop();
                (key.clone(), shown)
            });
            Value::Object(shown.collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(|item| redact_below(item, path)).collect()),
        other => other.clone(),
    }
}

/// Covers a secret. A reference to one says where it is kept, which is no secret, so its shape stays.
fn cover(value: &Value) -> Value {
    match value {
        Value::Null | Value::Bool(_) => value.clone(),
        Value::Object(map) if map.contains_key("source") && map.contains_key("id") => value.clone(),
        Value::Object(map) => Value::Object(map.iter().map(|(key, value)| (key.clone(), cover(value))).collect()),
        Value::Array(items) => Value::Array(items.iter().map(cover).collect()),
        Value::Number(_) | Value::String(_) => REDACTED.into(),
    }
}

fn is_secret(path: &[&str]) -> bool {
    let Some((name, parents)) = path.split_last() else { return false };
    // Whatever sits directly in an `env` map is a variable; `env.vars` is one such map and `shellEnv` is settings.
    let in_env = match parents {
        ["env"] => !matches!(*name, "vars" | "shellEnv"),
        ["env", "vars"] | [.., "env"] => true,
        _ => false,
    };
    in_env || is_secret_name(name)
}

fn is_secret_name(name: &str) -> bool {
    let name: String = name.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
    ["key", "token", "secret", "password", "passphrase"].iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::redact;

    #[test]
    fn covers_secrets_and_nothing_else() {
        let tree = json!({
            "env": { "vars": { "A": "x" }, "B": "y", "shellEnv": { "enabled": true } },
            "skills": { "entries": { "w": {
                "enabled": true, "apiKey": "k", "env": { "CITY": "Rome" }, "config": { "unit": "c", "api_token": "t" },
            }, "ref": { "apiKey": { "source": "env", "provider": "default", "id": "K" } } },
            "limits": { "maxSkillsPromptTokens": 5 } },
            "gateway": { "auth": { "token": "t", "mode": "token", "password": ["p", 1] } },
        });
        assert_eq!(
            redact(&tree),
            json!({
                "env": { "vars": { "A": "__REDACTED__" }, "B": "__REDACTED__", "shellEnv": { "enabled": true } },
                "skills": { "entries": { "w": {
                    "enabled": true, "apiKey": "__REDACTED__", "env": { "CITY": "__REDACTED__" },
                    "config": { "unit": "c", "api_token": "__REDACTED__" },
                }, "ref": { "apiKey": { "source": "env", "provider": "default", "id": "K" } } },
                "limits": { "maxSkillsPromptTokens": 5 } },
                "gateway": { "auth": {
                    "token": "__REDACTED__", "mode": "token", "password": ["__REDACTED__", "__REDACTED__"],
                } },
            })
        );
    }
}
