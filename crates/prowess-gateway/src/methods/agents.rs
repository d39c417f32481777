//! `agents.list`: which agents are there?

use serde_json::{Map, Value, json};

use super::{Answer, Ask, Method, method};
use crate::agents::section;
use crate::aside::blocking;
use crate::params::NOTHING;
use crate::runs::keys::main_key;
use crate::scope::{Access, Scope};

/// The methods of this matter.
pub(super) const METHODS: &[Method] = &[method!("agents.list", Access::Operator(Scope::Read), list)];

async fn list(ask: Ask) -> Answer {
    NOTHING.check("agents.list", ask.params())?;
    blocking(move || {
        let context = ask.gateway.agents.context()?;
        let tree = context.config.tree();
        let agents = context.config.agents();
        let default = agents.default_agent().id.as_str();
        // The one that is meant when none is named comes first.
        let mut ids: Vec<&str> = agents.list().iter().map(|agent| agent.id.as_str()).collect();
        ids.sort_by_key(|id| *id != default);
        let rows: Vec<Value> = ids.into_iter().map(|id| row(id, &section(tree, id))).collect();
        Ok(json!({
            "defaultId": default,
            "mainKey": main_key(tree),
            "scope": tree["session"]["scope"].as_str().unwrap_or("per-sender"),
            "agents": rows,
        }))
    })
    .await?
}

fn row(id: &str, section: &Value) -> Value {
    let mut row = json!({"id": id});
    if let Some(name) = section["name"].as_str().map(str::trim).filter(|name| !name.is_empty()) {
        row["name"] = name.into();
    }
    let identity: Map<String, Value> = ["name", "theme", "emoji", "avatar"]
        .into_iter()
        .filter_map(|field| Some((field.to_owned(), section["identity"][field].as_str()?.trim().into())))
        .filter(|(_, value)| *value != "")
        .collect();
    if section["identity"].is_object() {
        row["identity"] = Value::Object(identity);
    }
    row
}
