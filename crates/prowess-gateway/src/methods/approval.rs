//! `exec.approval.*`: questions about commands, and their answers.

use std::time::Duration;

use prowess_policy::system_run;
use serde_json::{Value, json};

use super::{Answer, Ask, Method, method};
use crate::approvals::log::LogQuery;
use crate::approvals::{
    Asked, Decision, Draft, MAX_COMMAND, PATIENCE, Requester, env_binding, multiline, seal, shown_env, words,
};
use crate::aside::blocking;
use crate::hub::Guest;
use crate::params::{ANY_TEXT, Shape, integer_within, optional, shape};
use crate::scope::{Access, Scope};
use crate::wire::Refusal;

/// The method by which a client asks.
const METHOD: &str = "exec.approval.request";

const LOG: Shape =
    shape(&[optional("limit", integer_within(1, 500)), optional("cursor", ANY_TEXT), optional("search", ANY_TEXT)]);

const APPROVALS: Access = Access::Operator(Scope::Approvals);

/// The methods of this matter.
pub(super) const METHODS: &[Method] = &[
    method!("exec.approval.request", APPROVALS, request),
    method!("exec.approval.waitDecision", APPROVALS, wait_decision),
    method!("exec.approval.resolve", APPROVALS, resolve),
    method!("exec.approval.list", APPROVALS, list),
    method!("exec.approval.log", APPROVALS, log),
];

/// The client that a guest is, as far as approvals are bound to it.
pub(super) fn requester(guest: &Guest) -> Requester {
    Requester::Client { conn: guest.conn.clone(), device: guest.device.clone() }
}

async fn request(ask: Ask) -> Answer {
    let params = ask.params();
    let request = shown(params)?;
    let patience = params["timeoutMs"].as_u64().map_or(PATIENCE, Duration::from_millis);
    let draft = Draft {
        id: text(params, "id").map(str::to_owned),
        request,
        patience,
        requester: requester(&ask.guest),
        once_only: None,
    };
    let mut asked = ask.gateway.approvals.put(draft).await?;
    if params["twoPhase"] == true {
        let mut accepted = json!({"status": "accepted"});
        times(&asked, &mut accepted);
        ask.interim(accepted);
    }
    decided(&mut asked).await
}

async fn wait_decision(ask: Ask) -> Answer {
    let id = text(ask.params(), "id").ok_or_else(|| Refusal::invalid("id is required"))?;
    let asked = ask.gateway.approvals.listen(id);
    let mut asked = asked.ok_or_else(|| Refusal::invalid("approval expired or not found"))?;
    decided(&mut asked).await
}

async fn resolve(ask: Ask) -> Answer {
    let params = ask.params();
    let id = required(params, "exec.approval.resolve", "id")?;
    let word = required(params, "exec.approval.resolve", "decision")?;
    let decision = Decision::parse(word).ok_or_else(|| Refusal::invalid("invalid decision"))?;
    ask.gateway.approvals.resolve(id, decision, ask.guest.answerer())?;
    Ok(json!({"ok": true}))
}

async fn list(ask: Ask) -> Answer {
    let row = |record: &crate::approvals::Record| {
        json!({
            "id": record.id,
            "request": record.request,
            "createdAtMs": record.created_at,
            "expiresAtMs": record.expires_at,
            "expiresInMs": record.time_left(),
        })
    };
    let approvals: Vec<Value> = ask.gateway.approvals.list().iter().map(|record| row(record)).collect();
    Ok(json!({"approvals": approvals}))
}

/// Who answered which question, and when; the newest first, page by page.
async fn log(ask: Ask) -> Answer {
    LOG.check("exec.approval.log", ask.params())?;
    blocking(move || {
        let params = ask.params();
        let text = |name: &str| params[name].as_str().map(str::to_owned);
        let limit = params["limit"].as_u64().and_then(|limit| usize::try_from(limit).ok());
        let query = LogQuery { limit, cursor: text("cursor"), search: text("search") };
        ask.gateway.approvals.log.page(&query).map_err(|error| Refusal::unavailable(error.to_string()))
    })
    .await?
}

async fn decided(asked: &mut Asked) -> Answer {
    let decision = asked.settled().await;
    let mut answer = json!({});
    times(asked, &mut answer);
    answer["decision"] = decision.map(Decision::as_str).into();
    Ok(answer)
}

fn times(asked: &Asked, answer: &mut Value) {
    answer["id"] = asked.record.id.clone().into();
    answer["createdAtMs"] = asked.record.created_at.into();
    answer["expiresAtMs"] = asked.record.expires_at.into();
}

/// The longest text of a question besides its command, in bytes.
const MAX_TEXT: usize = 4096;

/// What people are shown of a client's question. What a node would run is shown as made from its arguments, whatever the
/// client calls it, and nothing but that is kept of the client's plan.
fn shown(params: &Value) -> Result<Value, Refusal> {
    let command = required(params, METHOD, "command")?;
    check_length(command)?;
    let host = bounded(params, "host")?;
    let mut request = json!({"command": multiline(command), "systemRunBinding": null, "systemRunPlan": null});
    let whose = |given: &Value| -> Result<[Value; 3], Refusal> {
        let texts = ["cwd", "agentId", "sessionKey"].map(|name| bounded(given, name));
        let [cwd, agent, session] = texts;
        Ok([cwd?.into(), agent?.into(), session?.into()])
    };
    let [mut cwd, mut agent, mut session] = whose(params)?;
    let variables = shown_env(&params["env"])
        .ok_or_else(|| Refusal::invalid("the variables are too long to show in full, so they cannot be approved"))?;
    let node = if host == Some("node") {
        let node = bounded(params, "nodeId")?.ok_or_else(|| Refusal::invalid("nodeId is required for host=node"))?;
        let plan = Some(&params["systemRunPlan"]).filter(|plan| plan.is_object());
        let plan = plan.ok_or_else(|| Refusal::invalid("systemRunPlan is required for host=node"))?;
        let argv =
            words(&plan["argv"]).ok_or_else(|| Refusal::invalid("systemRunPlan.argv must be a list of strings"))?;
        if argv.is_empty() {
            return Err(Refusal::invalid("commandArgv is required for host=node"));
        }
        [cwd, agent, session] = whose(plan)?;
        let run = system_run::resolve(&argv, None).map_err(|error| Refusal::invalid(error.to_string()))?;
        check_length(&run.display)?;
        let (keys, hash) = env_binding(&params["env"]);
        request["command"] = multiline(&run.display).into();
        request["commandArgv"] = argv.clone().into();
        if !keys.is_empty() {
            request["envKeys"] = keys.into();
        }
        request["systemRunBinding"] =
            json!({"argv": argv, "cwd": cwd, "agentId": agent, "sessionKey": session, "envHash": hash});
        // The text of a plan is that of its arguments, or the run would be refused for the difference.
        request["systemRunPlan"] =
            json!({"argv": argv, "cwd": cwd, "rawCommand": run.display, "agentId": agent, "sessionKey": session});
        if let Some(seal) = seal(plan) {
            request["systemRunPlan"]["seal"] = seal.into();
        }
        Some(node)
    } else {
        None
    };
    request["nodeId"] = node.into();
    request["host"] = host.into();
    for (name, value) in [("cwd", cwd), ("agentId", agent), ("sessionKey", session)] {
        request[name] = value;
    }
    if !variables.is_empty() {
        request["variables"] = variables.into();
    }
    for name in ["security", "ask", "resolvedPath", "turnSourceChannel", "turnSourceTo", "turnSourceAccountId"] {
        request[name] = bounded(params, name)?.into();
    }
    let thread = &params["turnSourceThreadId"];
    request["turnSourceThreadId"] =
        if thread.is_number() { thread.clone() } else { bounded(params, "turnSourceThreadId")?.into() };
    Ok(request)
}

/// A text that may be there, without blanks around it, if it is not too long to be kept and told to everybody.
fn bounded<'a>(given: &'a Value, name: &str) -> Result<Option<&'a str>, Refusal> {
    let refuse = |why: &str| Refusal::invalid(format!("invalid {METHOD} params: at /{name}: {why}"));
    match &given[name] {
        Value::Null => Ok(None),
        Value::String(text) if text.len() > MAX_TEXT => {
            Err(refuse(&format!("must NOT have more than {MAX_TEXT} characters")))
        }
        Value::String(text) => Ok(Some(text.trim()).filter(|text| !text.is_empty())),
        _ => Err(refuse("must be string")),
    }
}

/// What cannot be shown whole cannot be approved.
fn check_length(command: &str) -> Result<(), Refusal> {
    if command.len() <= MAX_COMMAND {
        return Ok(());
    }
    Err(Refusal::invalid(format!(
        "the command is too long to show in full ({} bytes; the limit is {MAX_COMMAND}), so it cannot be approved; put it into a script",
        command.len()
    )))
}

fn text<'a>(params: &'a Value, name: &str) -> Option<&'a str> {
    params[name].as_str().map(str::trim).filter(|text| !text.is_empty())
}

fn required<'a>(params: &'a Value, method: &str, name: &str) -> Result<&'a str, Refusal> {
    match &params[name] {
        Value::Null => Err(Refusal::invalid(format!("invalid {method} params: must have required property '{name}'"))),
        Value::String(text) if text.is_empty() => {
            Err(Refusal::invalid(format!("invalid {method} params: at /{name}: must NOT have fewer than 1 characters")))
        }
        Value::String(text) => Ok(text),
        _ => Err(Refusal::invalid(format!("invalid {method} params: at /{name}: must be string"))),
    }
}
