//! `node.*`: other machines, and what is asked of them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use prowess_agent::message::now;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::approval::requester;
use super::{Answer, Ask, Method, method};
use crate::approvals::forward;
use crate::aside::blocking;
use crate::hub::one_line;
use crate::nodes::{Invocation, Node, Nodes, Run, allowed_commands, check_command};
use crate::scope::{Access, Scope};
use crate::wire::Refusal;

const READ: Access = Access::Operator(Scope::Read);
const PAIRING: Access = Access::Operator(Scope::Pairing);

/// How much longer than a run its answer is waited for, in milliseconds.
const GRACE: u64 = 10_000;

/// The largest event of a node, in bytes.
const MAX_EVENT: usize = 512 * 1024;

/// The methods of this matter.
pub(super) const METHODS: &[Method] = &[
    method!("node.list", READ, list),
    method!("node.describe", READ, describe),
    method!("node.invoke", Access::Operator(Scope::Write), invoke),
    method!("node.invoke.result", Access::Node, invoke_result),
    method!("node.event", Access::Node, event),
    method!("node.rename", PAIRING, rename),
    method!("node.pair.list", PAIRING, pair_list),
    method!("node.pair.approve", PAIRING, pair_unknown),
    method!("node.pair.reject", PAIRING, pair_unknown),
];

async fn list(ask: Ask) -> Answer {
    Ok(json!({"ts": now(), "nodes": ask.gateway.nodes.rows()}))
}

async fn describe(ask: Ask) -> Answer {
    let id = node_id(&ask)?;
    let mut row = ask.gateway.nodes.describe(id).ok_or_else(|| Refusal::invalid("unknown nodeId"))?;
    row["ts"] = now().into();
    Ok(row)
}

async fn invoke(ask: Ask) -> Answer {
    let params = ask.params();
    let text = |name: &str| params[name].as_str().map(str::trim).filter(|text| !text.is_empty());
    let (Some(id), Some(command)) = (text("nodeId"), text("command")) else {
        return Err(Refusal::invalid("nodeId and command required"));
    };
    let key = text("idempotencyKey")
        .ok_or_else(|| Refusal::invalid("invalid node.invoke params: must have required property 'idempotencyKey'"))?;
    if matches!(command, "system.execApprovals.get" | "system.execApprovals.set") {
        let why = "node.invoke does not allow system.execApprovals.*; use exec.approvals.node.*";
        return Err(Refusal::invalid(why).details(json!({"command": command})));
    }
    let nodes = &ask.gateway.nodes;
    let node = nodes
        .get(id)
        .ok_or_else(|| Refusal::unavailable("node not connected").details(json!({"code": "NOT_CONNECTED"})))?;
    check(&ask, &node, command)?;
    let mut forwarded = params["params"].clone();
    if command == "system.run" {
        forwarded = forward(&ask.gateway.approvals, id, &requester(&ask.guest), &forwarded)?;
        expect(&ask, (id, key), &mut forwarded).await?;
    }
    let mut invocation = Invocation::new(id, command, forwarded).key(key);
    // A run that may take longer than the usual deadline is waited for.
    let run_time = invocation.params["timeoutMs"].as_u64().map(|millis| millis.saturating_add(GRACE));
    if let Some(millis) = params["timeoutMs"].as_u64().or(run_time) {
        invocation = invocation.timeout(Duration::from_millis(millis));
    }
    let reply = tokio::select! {
        reply = nodes.invoke(invocation) => reply,
        () = ask.guest.outbox.closed() => Err(crate::nodes::InvokeError::Disconnected(command.to_owned())),
    };
    let reply = reply.map_err(|error| error.refusal())?;
    Ok(json!({
        "ok": true,
        "nodeId": id,
        "command": command,
        "payload": reply.payload,
        "payloadJSON": reply.payload_json,
    }))
}

/// Whether the command may be sent to that node.
fn check(ask: &Ask, node: &Node, command: &str) -> Result<(), Refusal> {
    let about = &node.guest.about;
    let allowed = allowed_commands(&ask.gateway.settings.section["nodes"], about);
    check_command(command, &node.commands, &allowed).map_err(|denial| {
        Refusal::invalid(denial.message(command, &about.platform))
            .details(json!({"reason": denial.reason(), "command": command}))
    })
}

/// Remembers a run that is about to be sent, so that its session may hear of it.
async fn expect(ask: &Ask, (node, key): (&str, &str), params: &mut Value) -> Result<(), Refusal> {
    if !params.is_object() {
        return Ok(());
    }
    let given = |name: &str| params[name].as_str().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
    let id = given("runId").unwrap_or_else(|| run_id(node, key));
    let session = given("sessionKey");
    params["runId"] = id.clone().into();
    let Some(session) = session else { return Ok(()) };
    let gateway = Arc::clone(&ask.gateway);
    let session = match blocking(move || gateway.agents.key(&session)).await? {
        Ok(session) => Some(session),
        Err(refusal) => {
            tracing::warn!(node, "no session for a run: {}", refusal.message);
            None
        }
    };
    // Its session is not who waits for it.
    let run = Run {
        node: node.to_owned(),
        session,
        progress: None,
        is_awaited: false,
        secrets: Vec::new(),
        since: Instant::now(),
    };
    ask.gateway.nodes.expect(&id, run);
    Ok(())
}

/// The name of a run that was given none: whoever asks for the same once more means the same run.
fn run_id(node: &str, key: &str) -> String {
    let digest: [u8; 32] = Sha256::digest(json!([node, key]).to_string()).into();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
}

async fn invoke_result(ask: Ask) -> Answer {
    let params = ask.params();
    if params["nodeId"].as_str() != Some(Nodes::id_of(&ask.guest)) {
        return Err(Refusal::invalid("nodeId mismatch"));
    }
    if ask.gateway.nodes.answered(&ask.guest, params) {
        return Ok(json!({"ok": true}));
    }
    Ok(json!({"ok": true, "ignored": true}))
}

async fn event(ask: Ask) -> Answer {
    let params = ask.params();
    let name = params["event"].as_str().filter(|name| !name.is_empty());
    let name =
        name.ok_or_else(|| Refusal::invalid("invalid node.event params: must have required property 'event'"))?;
    let payload = match &params["payloadJSON"] {
        Value::String(text) if text.len() > MAX_EVENT => {
            return Err(Refusal::invalid(format!("the event is larger than {MAX_EVENT} bytes")));
        }
        Value::String(text) => serde_json::from_str(text).unwrap_or_default(),
        _ => params["payload"].clone(),
    };
    ask.gateway.nodes.heard(&ask.guest, name, &payload);
    Ok(json!({"ok": true}))
}

async fn rename(ask: Ask) -> Answer {
    let id = node_id(&ask)?.to_owned();
    let name = ask.params()["displayName"].as_str().map(one_line).filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| Refusal::invalid("displayName required"))?;
    let gateway = ask.gateway;
    let (node, given) = (id.clone(), name);
    let renamed = blocking(move || gateway.nodes.rename(&node, &given)).await?;
    let renamed = renamed.ok_or_else(|| Refusal::invalid("unknown nodeId"))?;
    Ok(json!({"nodeId": id, "displayName": renamed}))
}

/// Nodes are let in as devices are; so nothing waits here, and all that were let in are paired.
async fn pair_list(ask: Ask) -> Answer {
    Ok(json!({"pending": [], "paired": ask.gateway.nodes.paired()}))
}

async fn pair_unknown(_: Ask) -> Answer {
    Err(Refusal::invalid("unknown requestId: nodes are approved as devices; see device.pair.list"))
}

fn node_id(ask: &Ask) -> Result<&str, Refusal> {
    let id = ask.params()["nodeId"].as_str().map(str::trim).filter(|id| !id.is_empty());
    id.ok_or_else(|| Refusal::invalid("nodeId required"))
}
