//! `skills.update`: a skill is switched, or given a key and variables.
//!
//! What is secret goes into the file and nowhere else: the answer only says that it is there.

use std::collections::BTreeMap;

use prowess_config::{Change, ConfigFile, KeyPath};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::aside::blocking;
use crate::gateway::Gateway;
use crate::methods::given::{given, invalid};
use crate::methods::{Answer, Ask};
use crate::params::{ANY_TEXT, BOOL, Shape, TEXT, map, optional, required, shape};
use crate::wire::{REDACTED, Refusal};

/// The longest value of a key or a variable, in bytes.
const MAX_VALUE: usize = 64 * 1024;

/// The most variables of one request.
const MAX_VARIABLES: usize = 256;

const PARAMS: Shape = shape(&[
    required("skillKey", TEXT),
    optional("enabled", BOOL),
    optional("apiKey", ANY_TEXT),
    optional("env", map(&ANY_TEXT)),
]);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params {
    skill_key: String,
    enabled: Option<bool>,
    api_key: Option<String>,
    env: Option<BTreeMap<String, String>>,
}

/// Changes the entry of a skill.
pub(super) async fn update(ask: Ask) -> Answer {
    let params: Params = given(&ask, &PARAMS)?;
    let variables = params.env.as_ref().map(BTreeMap::len).unwrap_or_default();
    let mut values = params.env.iter().flat_map(BTreeMap::values).chain(&params.api_key);
    if variables > MAX_VARIABLES || values.any(|value| value.len() > MAX_VALUE) {
        return Err(invalid("skills.update", "a value is too long, or there are too many"));
    }
    blocking(move || {
        let changes = changes(&params);
        let file = ConfigFile::new(&ask.gateway.agents.context()?.locations.config_path);
        file.write_all(&changes).map_err(|error| Refusal::unavailable(error.to_string()))?;
        refresh(&ask.gateway)?;
        let context = ask.gateway.agents.context()?;
        let entry = &context.config.tree()["skills"]["entries"][&params.skill_key];
        Ok(json!({"ok": true, "skillKey": params.skill_key, "config": shown(entry)}))
    })
    .await?
}

/// What is to be written, in this order. Blank values take away what was there.
fn changes(params: &Params) -> Vec<Change> {
    let path = |rest: &[&str]| -> KeyPath {
        ["skills", "entries", &params.skill_key].iter().chain(rest).map(|part| (*part).to_owned()).collect()
    };
    let text = |path: KeyPath, value: &str| match value.trim() {
        REDACTED => None,
        "" => Some(Change::Unset(path)),
        value => Some(Change::Set(path, value.into())),
    };
    let switch = params.enabled.map(|enabled| Change::Set(path(&["enabled"]), enabled.into()));
    let key = params.api_key.as_deref().and_then(|key| text(path(&["apiKey"]), key));
    let named = params.env.iter().flatten().filter(|(name, _)| !name.trim().is_empty());
    let variables = named.filter_map(|(name, value)| text(path(&["env", name.trim()]), value));
    switch.into_iter().chain(key).chain(variables).collect()
}

/// The entry with every secret covered. Which variables are set is no secret, what they hold may be.
fn shown(entry: &Value) -> Value {
    let covered = |value: &Value| if value.is_string() { REDACTED.into() } else { value.clone() };
    let mut shown = Map::new();
    for (name, value) in entry.as_object().into_iter().flatten() {
        let value = match (name.as_str(), value) {
            ("apiKey", key) => covered(key),
            ("env", Value::Object(env)) => {
                env.iter().map(|(name, value)| (name.clone(), covered(value))).collect::<Map<_, _>>().into()
            }
            // What a skill keeps for itself is not ours to judge.
            ("config", _) => continue,
            (_, other) => other.clone(),
        };
        shown.insert(name.clone(), value);
    }
    shown.into()
}

/// Lets every agent see what was written, and says so.
fn refresh(gateway: &Gateway) -> Result<(), Refusal> {
    for id in gateway.agents.names()?.0 {
        gateway.agents.get(Some(&id))?.reload().map_err(|failure| Refusal::unavailable(failure.sentence()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(json: Value) -> Params {
        serde_json::from_value(json).expect("parameters")
    }

    #[test]
    fn blank_values_take_away_and_covered_ones_change_nothing() {
        let given = params(json!({
            "skillKey": "a.b", "enabled": false, "apiKey": "  ", "env": {" X ": " 1 ", "Y": "", "Z": REDACTED, " ": "n"},
        }));
        let written: Vec<String> = changes(&given)
            .iter()
            .map(|change| match change {
                Change::Set(path, value) => format!("{path} = {value}"),
                Change::Unset(path) => format!("{path} removed"),
            })
            .collect();
        let at = |rest: &str| {
            format!("{}.{rest}", ["skills", "entries", "a.b"].into_iter().map(str::to_owned).collect::<KeyPath>())
        };
        assert_eq!(
            written,
            [
                format!("{} = false", at("enabled")),
                format!("{} removed", at("apiKey")),
                format!("{} = \"1\"", at("env.X")),
                format!("{} removed", at("env.Y")),
            ]
        );
    }

    #[test]
    fn no_secret_is_shown() {
        let entry = json!({"enabled": true, "apiKey": "s1", "env": {"A": "s2"}, "config": {"any": "s3"}});
        let shown = shown(&entry);
        assert_eq!(shown, json!({"enabled": true, "apiKey": REDACTED, "env": {"A": REDACTED}}));
        let reference = json!({"apiKey": {"source": "env", "id": "NAME"}});
        assert_eq!(super::shown(&reference), reference);
    }
}
