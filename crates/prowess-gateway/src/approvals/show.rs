//! Showing: what does a person see of what they decide about?
//!
//! Everything is made from what the answer is bound to, and nothing in it can hide or turn letters. A command that is
//! too long to be shown whole is not put to anybody.

use prowess_exec::approver::ToolQuestion;
use prowess_policy::{Judgment, Objection, quote, shown, system_run};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::device::hex;

/// The longest command that is shown, and so the longest that can be approved.
pub(crate) const MAX_COMMAND: usize = prowess_policy::script::MAX_BYTES;

/// What can be answered.
pub(crate) const DECISIONS: &[&str] = &["allow-once", "allow-always", "deny"];

/// The same where nothing can be allowed for good.
pub(crate) const ONCE_ONLY: &[&str] = &["allow-once", "deny"];

/// `text` as a person may safely see it, line by line.
pub(crate) fn multiline(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(|line| shown(line).to_string()).collect();
    lines.join("\n")
}

/// What is shown of a judged command; nothing if it cannot be shown whole.
pub(super) fn request(judgment: &Judgment) -> Option<Value> {
    let bound = judgment.request();
    let binding = &bound.binding;
    if binding.command.len() > MAX_COMMAND {
        return None;
    }
    let posture = judgment.posture();
    let first = judgment.segments().first().and_then(|segment| segment.program.as_ref());
    let mut objections: Vec<String> = Vec::new();
    for objection in judgment.all_objections().map(Objection::to_string).map(|text| shown(&text).to_string()) {
        if !objections.contains(&objection) {
            objections.push(objection);
        }
    }
    let grants = judgment.grants();
    let always: Vec<Value> = grants
        .as_deref()
        .unwrap_or_default()
        .iter()
        .map(|grant| {
            let argv = grant.argv.iter().map(|arg| quote(arg)).collect::<Vec<_>>().join(" ");
            json!({
                "program": shown(&grant.program.to_string_lossy()).to_string(),
                "command": shown(&argv).to_string(),
                "cwd": shown(&grant.cwd.to_string_lossy()).to_string(),
            })
        })
        .collect();
    let variables = bound.variables.iter().map(|(name, value)| shown(&format!("{name}={value}")).to_string());
    Some(json!({
        "command": multiline(&binding.command),
        "systemRunBinding": null,
        "systemRunPlan": null,
        "cwd": shown(&binding.cwd.path.to_string_lossy()).to_string(),
        "nodeId": null,
        "host": "gateway",
        "security": posture.security.word(),
        "ask": posture.ask.word(),
        "agentId": binding.agent,
        "resolvedPath": first.map(|program| program.real.to_string_lossy().into_owned()),
        "sessionKey": binding.session,
        "turnSourceChannel": null,
        "turnSourceTo": null,
        "turnSourceAccountId": null,
        "turnSourceThreadId": null,
        "binding": binding.digest(),
        "variables": variables.collect::<Vec<_>>(),
        "objections": objections,
        "always": always,
        "decisions": if grants.is_ok() { DECISIONS } else { ONCE_ONLY },
    }))
}

/// What is shown of a call of another tool.
pub(super) fn tool_request(question: &ToolQuestion) -> Value {
    json!({
        "command": multiline(&format!("{}: {}", question.tool, question.summary)),
        "systemRunBinding": null,
        "systemRunPlan": null,
        "cwd": null,
        "nodeId": null,
        "host": "gateway",
        "security": null,
        "ask": null,
        "agentId": null,
        "resolvedPath": null,
        "sessionKey": null,
        "turnSourceChannel": null,
        "turnSourceTo": null,
        "turnSourceAccountId": null,
        "turnSourceThreadId": null,
        "tool": shown(&question.tool).to_string(),
        "text": question.text(),
        "objections": [shown(&question.why).to_string()],
        "always": [],
        "decisions": ONCE_ONLY,
    })
}

/// The names of the variables that a run is given, and a fingerprint of names and values; none when there are none.
pub(crate) fn env_binding(env: &Value) -> (Vec<String>, Option<String>) {
    let vars = env.as_object().into_iter().flatten();
    let is_portable = |name: &str| {
        let first = name.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
        first && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let texts = vars.filter_map(|(name, value)| Some((name.trim(), value.as_str()?)));
    let mut pairs: Vec<(&str, &str)> = texts.filter(|(name, _)| is_portable(name)).collect();
    if pairs.is_empty() {
        return (Vec::new(), None);
    }
    pairs.sort_unstable();
    let text = json!(pairs).to_string();
    let hash = hex(&Sha256::digest(text.as_bytes()));
    (pairs.into_iter().map(|(name, _)| name.to_owned()).collect(), Some(hash))
}

/// How much of what a node says about a command is shown: how many lines, and how many characters of each.
const NODE_WORDS: (usize, usize) = (20, 500);

/// The longest seal of a node.
const MAX_SEAL: usize = 128;

/// What is shown of a command for a node, and why it is for once only, if it is. `prepared` is what the node made of it,
/// `sent` what it was sent, and the rest the node's id and name, and the words of the rules.
pub(crate) fn node_request(
    prepared: &Value,
    sent: &Value,
    (node, name): (&str, &str),
    (security, ask): (&str, &str),
) -> Result<(Value, Option<String>), String> {
    let plan = &prepared["plan"];
    let argv = if plan["argv"].is_array() { &plan["argv"] } else { &sent["command"] };
    let words: Vec<String> =
        argv.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    let run = system_run::resolve(&words, None).map_err(|error| format!("exec denied: {error}"))?;
    if run.display.len() > MAX_COMMAND {
        return Err("exec denied: what the node would run is too long to be shown whole".to_owned());
    }
    let cwd = if plan.is_object() { &plan["cwd"] } else { &sent["cwd"] };
    let (keys, hash) = env_binding(&sent["env"]);
    let judged = &prepared["judgment"];
    let lines = |value: &Value| -> Vec<String> {
        let lines = value.as_array().into_iter().flatten().filter_map(Value::as_str).take(NODE_WORDS.0);
        lines.map(|line| shown(&line.chars().take(NODE_WORDS.1).collect::<String>()).to_string()).collect()
    };
    let once_only = judged["onceOnly"].as_str().map(|why| shown(why).to_string());
    let mut planned = json!({
        "argv": words, "cwd": cwd, "rawCommand": run.display, "agentId": sent["agentId"], "sessionKey": sent["sessionKey"],
    });
    if let Some(seal) = plan["seal"].as_str().filter(|seal| seal.len() <= MAX_SEAL) {
        planned["seal"] = seal.into();
    }
    let mut request = json!({
        "command": multiline(&run.display),
        "commandArgv": words,
        "systemRunBinding": {
            "argv": words, "cwd": cwd, "agentId": sent["agentId"], "sessionKey": sent["sessionKey"], "envHash": hash,
        },
        "systemRunPlan": planned,
        "cwd": cwd,
        "nodeId": node,
        "host": "node",
        "security": security,
        "ask": ask,
        "agentId": sent["agentId"],
        "resolvedPath": null,
        "sessionKey": sent["sessionKey"],
        "turnSourceChannel": null,
        "turnSourceTo": null,
        "turnSourceAccountId": null,
        "turnSourceThreadId": null,
        "nodeName": shown(name).to_string(),
        "variables": sent["env"].as_object().into_iter().flatten()
            .map(|(name, value)| shown(&format!("{name}={}", value.as_str().unwrap_or_default())).to_string())
            .collect::<Vec<_>>(),
        "objections": lines(&judged["objections"]),
        "always": lines(&judged["always"]),
        "decisions": if once_only.is_some() { ONCE_ONLY } else { DECISIONS },
    });
    if !keys.is_empty() {
        request["envKeys"] = keys.into();
    }
    Ok((request, once_only))
}
