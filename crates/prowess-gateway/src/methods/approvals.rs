//! `exec.approvals.*`: what may run for good, here and on nodes.

use prowess_exec::store::ApprovalsFile;
use serde_json::{Value, json};

use super::{Answer, Ask, Method, method};
use crate::approvals::file::{self, SetError};
use crate::aside::blocking;
use crate::nodes::Invocation;
use crate::scope::{Access, Scope};
use crate::wire::Refusal;

const ADMIN: Access = Access::Operator(Scope::Admin);

/// The methods of this matter.
pub(super) const METHODS: &[Method] = &[
    method!("exec.approvals.get", ADMIN, get),
    method!("exec.approvals.set", ADMIN, set),
    method!("exec.approvals.node.get", ADMIN, node_get),
    method!("exec.approvals.node.set", ADMIN, node_set),
];

async fn get(ask: Ask) -> Answer {
    blocking(move || file::get(&approvals(&ask)?).map_err(|error| refused(&error))).await?
}

async fn set(ask: Ask) -> Answer {
    blocking(move || file::set(&approvals(&ask)?, ask.params()).map_err(|error| refused(&error))).await?
}

async fn node_get(ask: Ask) -> Answer {
    forward(&ask, "system.execApprovals.get", json!({})).await
}

async fn node_set(ask: Ask) -> Answer {
    let params = ask.params();
    let params = json!({"file": params["file"], "baseHash": params["baseHash"]});
    forward(&ask, "system.execApprovals.set", params).await
}

async fn forward(ask: &Ask, command: &str, params: Value) -> Answer {
    let node = ask.params()["nodeId"].as_str().map(str::trim).filter(|id| !id.is_empty());
    let node = node.ok_or_else(|| Refusal::invalid("nodeId required"))?;
    let reply = ask.gateway.nodes.invoke(Invocation::new(node, command, params)).await;
    Ok(reply.map_err(|error| error.refusal())?.payload)
}

fn approvals(ask: &Ask) -> Result<ApprovalsFile, Refusal> {
    Ok(ApprovalsFile::in_state_dir(&ask.gateway.agents.context()?.locations.state_dir))
}

fn refused(error: &SetError) -> Refusal {
    let again = "re-run exec.approvals.get and retry";
    match error {
        SetError::NoHash => Refusal::invalid(format!("exec approvals base hash required; {again}")),
        SetError::Changed => Refusal::invalid(format!("exec approvals changed since last load; {again}")),
        SetError::NoFile => Refusal::invalid(error.to_string()),
        SetError::Unusable(_) => Refusal::unavailable(error.to_string()),
    }
}
