//! The configuration of a gateway, which shows no secrets and takes new ones.

use prowess_config::{Change, ConfigFile, KeyPath};
use prowess_gateway::client::Client;
use prowess_host::Failure;
use serde_json::{Value, json};

use super::call;
use crate::config::Asked;
use crate::output::{Report, safe};

/// What is set?
pub(super) async fn get(client: &Client, path: Option<&str>, json: bool) -> Result<Report, Failure> {
    let answer = call(client, "config.get", json!({})).await?;
    let config = &answer["config"];
    let Some(path) = path else { return Report::json(config) };
    let place: KeyPath = path.parse().map_err(Failure::input)?;
    let found = place.segments().iter().try_fold(config, |value, step| match value {
        Value::Array(items) => step.parse::<usize>().ok().and_then(|index| items.get(index)),
        _ => value.get(step),
    });
    let Some(value) = found else {
        return Err(Failure::input(format!("`{place}` is not set on the gateway"))
            .hint("prowess config get --gateway URL shows what is set"));
    };
    if json {
        return Report::json(&json!({"path": path, "value": value, "layer": "gateway", "origin": answer["path"]}));
    }
    match value {
        Value::String(text) => Ok(Report::text(format!("{}\n", safe(text)))),
        other => Report::json(other),
    }
}

/// Changes one value.
pub(super) async fn set(client: &Client, asked: Asked, json: bool) -> Result<Report, Failure> {
    let Asked { path: place, value, .. } = asked;
    let path = place.to_string();
    if value.is_null() {
        return Err(Failure::usage("null would remove the value").hint("config set needs a value"));
    }
    let base = call(client, "config.get", json!({})).await?["hash"].clone();
    // The same rules as in a file decide what a path means.
    let edit = ConfigFile::new("patch").preview("{}", &[Change::Set(place, value)]).map_err(Failure::input)?;
    let answer = call(client, "config.patch", json!({"raw": edit, "baseHash": base})).await?;
    if json {
        return Report::json(&json!({"ok": true, "path": path, "file": answer["path"], "changed": true}));
    }
    let file = safe(answer["path"].as_str().unwrap_or("the gateway's file"));
    let mut text = format!("changed {path} in {file}\n");
    let waiting = answer["restart"]["waiting"].as_array().is_some_and(|waiting| !waiting.is_empty());
    if waiting {
        text.push_str("it takes effect when you restart the gateway\n");
    }
    Ok(Report::text(text))
}
