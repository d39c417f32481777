//! What may be shown of a configuration?

use std::borrow::Cow;

use serde_json::Value;

use crate::KeyPath;
use crate::schema::{self, Kind};
use crate::tree::lookup_mut;

/// Stands in for a secret value.
pub const REDACTED: &str = "__REDACTED__";

/// A copy of `tree` in which secrets are replaced by [`REDACTED`].
pub(crate) fn redact(tree: &Value) -> Value {
    redact_with(tree, REDACTED)
}

/// A copy of `tree` in which secrets are replaced by `mark`. References to where a secret is kept stay.
#[must_use]
pub fn redact_with(tree: &Value, mark: &str) -> Value {
    let mut shown = tree.clone();
    for path in secrets(tree) {
        if let Some(place) = lookup_mut(&mut shown, path.segments()) {
            *place = mark.into();
        }
    }
    shown
}

/// Where in `tree` secrets are written in clear.
#[must_use]
pub fn secrets(tree: &Value) -> Vec<KeyPath> {
    let mut found = Vec::new();
    collect(tree, Cover::Open, &mut Vec::new(), &mut found);
    found
}

/// A mark that stands for nothing: there is no secret to put in its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` has the mark of a hidden secret, and there is none at that place; write the value itself")]
pub struct NothingHidden(pub KeyPath);

/// `shown` with the secrets of `tree` where it still has `mark`, as [`redact_with`] put it there.
///
/// Sections in a list are told apart by their `id`, where they have one, and else by their position.
pub fn unredact(shown: &Value, tree: &Value, mark: &str) -> Result<Value, NothingHidden> {
    restore(shown, Some(tree), mark, &mut Vec::new())
}

fn restore(shown: &Value, real: Option<&Value>, mark: &str, path: &mut Vec<String>) -> Result<Value, NothingHidden> {
    match shown {
        Value::String(text) if text == mark => {
            let is_hidden = |real: &&Value| secrets_at(real, path);
            real.filter(is_hidden).cloned().ok_or_else(|| NothingHidden(path.iter().collect()))
        }
        Value::Object(map) => {
            let mut whole = serde_json::Map::new();
            for (key, value) in map {
                path.push(key.clone());
                whole.insert(key.clone(), restore(value, real.and_then(|real| real.get(key)), mark, path)?);
                path.pop();
            }
            Ok(Value::Object(whole))
        }
        Value::Array(items) => {
            let mut whole = Vec::with_capacity(items.len());
            for (position, item) in items.iter().enumerate() {
                path.push(position.to_string());
                whole.push(restore(item, counterpart(item, position, real), mark, path)?);
                path.pop();
            }
            Ok(Value::Array(whole))
        }
        other => Ok(other.clone()),
    }
}

/// The item of a list that `item` was before.
fn counterpart<'a>(item: &Value, position: usize, list: Option<&'a Value>) -> Option<&'a Value> {
    let items = list?.as_array()?;
    match item.get("id").and_then(Value::as_str) {
        Some(id) => items.iter().find(|other| other["id"] == id),
        None => items.get(position),
    }
}

/// Whether the value at `path` is one that is hidden.
fn secrets_at(value: &Value, path: &[String]) -> bool {
    let parts: Vec<&str> = path.iter().map(String::as_str).collect();
    let is_covered = (1..=parts.len()).any(|end| is_secret(&parts[..end]));
    (is_covered && is_told(value)) || has_credentials(value)
}

/// Whether what is below has to be hidden.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cover {
    Open,
    Hidden,
}

fn collect<'a>(value: &'a Value, cover: Cover, path: &mut Vec<Cow<'a, str>>, found: &mut Vec<KeyPath>) {
    let below = |key: Cow<'a, str>, value, path: &mut Vec<_>, found: &mut Vec<KeyPath>| {
        path.push(key);
        let parts: Vec<&str> = path.iter().map(AsRef::as_ref).collect();
        let next = if cover == Cover::Hidden || is_secret(&parts) { Cover::Hidden } else { Cover::Open };
        collect(value, next, path, found);
        path.pop();
    };
    match value {
        // A reference says where a secret is kept, which is no secret.
        Value::Object(map) if cover == Cover::Hidden && map.contains_key("source") && map.contains_key("id") => {}
        Value::Object(map) => {
            for (key, value) in map {
                below(key.into(), value, path, found);
            }
        }
        Value::Array(items) => {
            for (position, item) in items.iter().enumerate() {
                below(position.to_string().into(), item, path, found);
            }
        }
        value if (cover == Cover::Hidden && is_told(value)) || has_credentials(value) => {
            found.push(path.iter().map(AsRef::as_ref).collect::<KeyPath>());
        }
        _ => {}
    }
}

/// Whether a value at a secret's place tells the secret: a switch does not, nor does the name of a variable.
fn is_told(value: &Value) -> bool {
    match value {
        Value::Number(_) => true,
        Value::String(text) => !text.is_empty() && !is_reference(text),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => false,
    }
}

/// Whether a text is the name of a variable and nothing else, as in `${NAME}`.
fn is_reference(text: &str) -> bool {
    let name = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    name.is_some_and(|name| {
        name.starts_with(|c: char| c.is_ascii_uppercase() || c == '_')
            && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
    })
}

/// Whether a text is an address with a user's password in it.
fn has_credentials(value: &Value) -> bool {
    let Some((_, rest)) = value.as_str().and_then(|text| text.split_once("://")) else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
}

fn is_secret(path: &[&str]) -> bool {
    let Some((name, parents)) = path.split_last() else { return false };
    // Whatever sits directly in an `env` map is a variable; `env.vars` is one such map and `shellEnv` is settings.
    let in_env = match parents {
        ["env"] => !matches!(*name, "vars" | "shellEnv"),
        ["env", "vars"] | [.., "env"] => true,
        _ => false,
    };
    let in_headers = matches!(parents, [.., "headers"]);
    let is_known = || {
        let path: Vec<String> = path.iter().map(|&part| part.to_owned()).collect();
        schema::find(&path).is_some_and(|key| key.kind == Kind::Secret)
    };
    in_env || in_headers || is_secret_name(name) || is_known()
}

/// Names that end like those of secrets and are none.
const PLAIN: [&str; 4] = ["mainkey", "sessionkey", "skillkey", "publickey"];

fn is_secret_name(name: &str) -> bool {
    let name: String = name.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
    !PLAIN.contains(&name.as_str())
        && ["key", "token", "secret", "password", "passphrase"].iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{redact, redact_with, secrets, unredact};

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

    #[test]
    fn what_only_names_a_secret_is_shown() {
        let tree = json!({
            "gateway": { "auth": { "token": "${GATEWAY_TOKEN}" } },
            "session": { "mainKey": "main" },
            "models": { "providers": { "p": { "headers": { "X-Team": "t" }, "baseUrl": "http://u:pw@host/v1" } } },
        });
        let paths: Vec<String> = secrets(&tree).iter().map(ToString::to_string).collect();
        assert_eq!(paths, ["models.providers.p.headers.X-Team", "models.providers.p.baseUrl"]);
    }

    #[test]
    fn what_was_hidden_comes_back_where_it_was() {
        let tree = json!({
            "agents": { "list": [{ "id": "a", "apiKey": "one" }, { "id": "b", "apiKey": "two" }] },
            "gateway": { "auth": { "token": "t", "mode": "token" } },
        });
        let mut shown = redact_with(&tree, "*");
        assert_eq!(unredact(&shown, &tree, "*"), Ok(tree.clone()));
        // Moved, added to, and changed.
        shown["agents"]["list"].as_array_mut().expect("a list").reverse();
        shown["gateway"]["auth"]["token"] = "new".into();
        let back = unredact(&shown, &tree, "*").expect("all is known");
        assert_eq!(back["agents"]["list"], json!([{ "id": "b", "apiKey": "two" }, { "id": "a", "apiKey": "one" }]));
        assert_eq!(back["gateway"]["auth"]["token"], "new");
    }

    #[test]
    fn a_mark_without_a_secret_is_refused() {
        let tree = json!({ "gateway": { "auth": { "token": "t", "mode": "token" } } });
        for shown in [json!({ "talk": { "apiKey": "*" } }), json!({ "gateway": { "auth": { "mode": "*" } } })] {
            assert!(unredact(&shown, &tree, "*").is_err(), "{shown}");
        }
    }
}
