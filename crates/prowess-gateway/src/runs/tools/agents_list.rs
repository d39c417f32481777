//! `agents_list`: which agents may work for this one?

use prowess_agent::session::agent_id;
use prowess_agent::tool::ToolSpec;
use serde_json::{Value, json};

use super::super::subagents;
use super::{Act, Here};
use crate::aside::blocking;

pub(super) const NAME: &str = "agents_list";

pub(super) fn tool() -> (ToolSpec, Act) {
    let spec = ToolSpec {
        name: NAME.to_owned(),
        description: "Lists the agents that sessions_spawn may start for you.".to_owned(),
        parameters: json!({"type": "object", "properties": {}}),
    };
    (spec, |here| Box::pin(list(here)))
}

async fn list(here: Here) -> Result<Value, String> {
    blocking(move || look(&here)).await.map_err(|refusal| refusal.message)?
}

fn look(here: &Here) -> Result<Value, String> {
    let requester = here.key.agent().to_owned();
    let home = here.gateway.agents.get(Some(&requester)).map_err(|refusal| refusal.message)?;
    let context = home.view().context.clone();
    let written = context.config.tree()["agents"]["list"].as_array().cloned().unwrap_or_default();
    let names: Vec<(String, Option<String>)> = written
        .iter()
        .filter_map(|entry| Some((agent_id(entry["id"].as_str()?), entry["name"].as_str().map(str::to_owned))))
        .collect();
    let mut allowed = subagents::allowed(&context);
    let allow_any = allowed.iter().any(|name| name == "*");
    if allow_any {
        allowed = names.iter().map(|(id, _)| id.clone()).collect();
    }
    allowed.retain(|id| *id != requester);
    allowed.sort();
    allowed.dedup();
    let agents: Vec<Value> = std::iter::once(requester.clone())
        .chain(allowed)
        .map(|id| {
            let known = names.iter().find(|(known, _)| *known == id);
            let mut row = json!({"id": id, "configured": known.is_some()});
            if let Some(name) = known.and_then(|(_, name)| name.as_deref()) {
                row["name"] = name.into();
            }
            row
        })
        .collect();
    Ok(json!({"requester": requester, "allowAny": allow_any, "agents": agents}))
}
