//! The guard: what of a `system.run` request may go on to a node, and is its approval a real one?
//!
//! Only known parameters go on. That somebody approved a run is not taken from whoever asks for it: it takes the id of
//! an answered question that was put by the same client, for the same node, the same arguments, folder, agent, session
//! and variables. An approval for once is used up here.

use prowess_agent::message::now;
use prowess_policy::system_run::{SystemRunError, resolve};
use serde_json::{Map, Value, json};

use super::board::Board;
use super::record::{Decision, Record, Requester};
use super::show::{env_binding, portable};
use crate::wire::Refusal;

/// The parameters of `system.run` that go on to a node.
const FORWARDED: [&str; 9] =
    ["command", "rawCommand", "cwd", "env", "timeoutMs", "needsScreenRecording", "agentId", "sessionKey", "runId"];

/// The parameters of `system.run` that go on to `node`, of those that `requester` wants to send there.
pub(crate) fn forward(board: &Board, node: &str, requester: &Requester, given: &Value) -> Result<Value, Refusal> {
    let Value::Object(given) = given else { return Ok(given.clone()) };
    let mut params: Map<String, Value> = given
        .iter()
        .filter(|(name, _)| FORWARDED.contains(&name.as_str()))
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect();
    let claims = given.get("approved") == Some(&Value::Bool(true))
        || given.get("approvalDecision").and_then(Value::as_str).and_then(Decision::parse).is_some();
    if !claims {
        let raw = given.get("rawCommand").and_then(Value::as_str);
        resolve(&argv(given.get("command")), raw).map_err(|error| mismatch(&error))?;
        return Ok(Value::Object(params));
    }
    let decision = claim(board, node, requester, given, &mut params)?;
    params.insert("approved".to_owned(), true.into());
    params.insert("approvalDecision".to_owned(), decision.as_str().into());
    Ok(Value::Object(params))
}

/// The decision that a request rests on, used up if it was for once; what was approved takes the place of what is asked.
fn claim(
    board: &Board,
    node: &str,
    requester: &Requester,
    given: &Map<String, Value>,
    params: &mut Map<String, Value>,
) -> Result<Decision, Refusal> {
    let run = text(given.get("runId"))
        .ok_or_else(|| refuse("MISSING_RUN_ID", "approval override requires params.runId", None))?;
    let refuse = |code: &str, message: &str| refuse(code, message, Some(run));
    let (record, settled) =
        board.look(run).ok_or_else(|| refuse("UNKNOWN_APPROVAL_ID", "unknown or expired approval id"))?;
    if now() > record.expires_at {
        return Err(refuse("APPROVAL_EXPIRED", "approval expired"));
    }
    match text(record.request.get("nodeId")) {
        None => return Err(refuse("APPROVAL_NODE_BINDING_MISSING", "approval id missing node binding")),
        Some(bound) if bound != node => {
            return Err(refuse("APPROVAL_NODE_MISMATCH", "approval id not valid for this node"));
        }
        Some(_) => {}
    }
    check_requester(&record, requester).map_err(|(code, message)| refuse(code, message))?;
    check_binding(&record.request["systemRunBinding"], given).map_err(|(code, message, env)| {
        let refusal = refuse(code, message);
        let mut details = refusal.details.clone().unwrap_or_default();
        if let Some(keys) = env {
            details["envKeys"] = keys.into();
        }
        refusal.details(*details)
    })?;
    let required = || refuse("APPROVAL_REQUIRED", "approval required");
    let decision = match settled.and_then(|settled| settled.decision) {
        Some(Decision::Once | Decision::Session) if board.spend(run) => Decision::Once,
        Some(Decision::Always) => Decision::Always,
        Some(Decision::Once | Decision::Session | Decision::Deny) | None => return Err(required()),
    };
    let plan = &record.request["systemRunPlan"];
    for (name, planned) in [("command", "argv"), ("rawCommand", "rawCommand"), ("cwd", "cwd")] {
        replace(params, name, &plan[planned]);
    }
    for name in ["agentId", "sessionKey", "seal"] {
        replace(params, name, &plan[name]);
    }
    // Of the variables only those are bound that were shown.
    if let Some(env) = given.get("env") {
        replace(params, "env", &json!(portable(env)));
    }
    Ok(decision)
}

fn check_requester(record: &Record, requester: &Requester) -> Result<(), (&'static str, &'static str)> {
    let is_same = match (&record.requester, requester) {
        (Requester::Gateway, Requester::Gateway) => true,
        (Requester::Client { device: Some(bound), .. }, Requester::Client { device, .. }) => {
            if device.as_ref() != Some(bound) {
                return Err(("APPROVAL_DEVICE_MISMATCH", "approval id not valid for this device"));
            }
            true
        }
        (Requester::Client { conn: bound, device: None }, Requester::Client { conn, .. }) => bound == conn,
        (Requester::Gateway, Requester::Client { .. }) | (Requester::Client { .. }, Requester::Gateway) => false,
    };
    if is_same { Ok(()) } else { Err(("APPROVAL_CLIENT_MISMATCH", "approval id not valid for this client")) }
}

type Mismatch = (&'static str, &'static str, Option<Vec<String>>);

/// Whether the run is the one that was approved, in all that it is bound to.
fn check_binding(bound: &Value, given: &Map<String, Value>) -> Result<(), Mismatch> {
    let other = ("APPROVAL_REQUEST_MISMATCH", "approval id does not match request", None);
    let is_same = |name: &str| text(bound.get(name)) == text(given.get(name));
    if argv(bound.get("argv")) != argv(given.get("command")) || argv(bound.get("argv")).is_empty() {
        return Err(other);
    }
    if !["cwd", "agentId", "sessionKey"].into_iter().all(is_same) {
        return Err(other);
    }
    let (keys, hash) = env_binding(given.get("env").unwrap_or(&Value::Null));
    match (text(bound.get("envHash")), hash.as_deref()) {
        (None, Some(_)) => Err((
            "APPROVAL_ENV_BINDING_MISSING",
            "approval id missing env binding for requested env overrides",
            Some(keys),
        )),
        (expected, actual) if expected != actual => {
            Err(("APPROVAL_ENV_MISMATCH", "approval id env binding mismatch", Some(keys)))
        }
        _ => Ok(()),
    }
}

fn replace(params: &mut Map<String, Value>, name: &str, value: &Value) {
    if value.is_null() {
        params.remove(name);
    } else {
        params.insert(name.to_owned(), value.clone());
    }
}

fn refuse(code: &str, message: &str, run: Option<&str>) -> Refusal {
    let mut details = json!({"code": code});
    if let Some(run) = run {
        details["runId"] = run.into();
    }
    Refusal::invalid(message).details(details)
}

fn mismatch(error: &SystemRunError) -> Refusal {
    let mut details = json!({"code": error.code()});
    if let SystemRunError::RawMismatch { raw, inferred } = error {
        details["rawCommand"] = raw.clone().into();
        details["inferred"] = inferred.clone().into();
    }
    Refusal::invalid(error.to_string()).details(details)
}

fn argv(value: Option<&Value>) -> Vec<String> {
    let items = value.and_then(Value::as_array).into_iter().flatten();
    items.map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned)).collect()
}

fn text(value: Option<&Value>) -> Option<&str> {
    value.and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty())
}
