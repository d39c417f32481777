//! Showing: what does a person see of what they decide about?
//!
//! Everything is made from what the answer is bound to, and nothing in it can hide or turn letters. What is too long to
//! be shown whole is not put to anybody.

use std::collections::BTreeMap;

use prowess_exec::approver::{MAX_SHOWN, Offer, ToolQuestion};
use prowess_policy::{Judgment, Objection, quote, shown, system_run};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::device::hex;

/// The longest command that is shown, and so the longest that can be approved.
pub(crate) const MAX_COMMAND: usize = prowess_policy::script::MAX_BYTES;

/// What can be answered.
pub(crate) const DECISIONS: &[&str] = &["allow-once", "allow-always", "deny"];

/// The same about something beyond the sandbox.
pub(crate) const LEASE: &[&str] = &["allow-once", "allow-session", "allow-always", "deny"];

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
    let lacks: Vec<String> = judgment.requests().iter().map(|phrase| shown(phrase).to_string()).collect();
    let decisions = match (&grants, lacks.is_empty()) {
        (Err(_), _) => ONCE_ONLY,
        (Ok(_), true) => DECISIONS,
        (Ok(_), false) => LEASE,
    };
    let mut always: Vec<Value> = grants
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
    if grants.is_ok() {
        always.extend(lacks.iter().map(|phrase| json!(phrase)));
    }
    let variables = variables(bound.variables.iter().map(|(name, value)| (name.as_str(), value.as_str())))?;
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
        "resolvedPath": first.map(|program| shown(&program.real.to_string_lossy()).to_string()),
        "sessionKey": binding.session,
        "turnSourceChannel": null,
        "turnSourceTo": null,
        "turnSourceAccountId": null,
        "turnSourceThreadId": null,
        "binding": binding.digest(),
        "variables": variables,
        "objections": objections,
        "always": always,
        "wants": judgment.lacks(),
        "decisions": decisions,
    }))
}

/// What is shown of a call of another tool; nothing if it cannot be shown whole.
pub(super) fn tool_request(question: &ToolQuestion) -> Option<Value> {
    question.text()?;
    let (decisions, always) = match question.offer {
        Offer::Nothing | Offer::Once => (ONCE_ONLY, vec![]),
        Offer::Always => (DECISIONS, vec![shown(&question.summary).to_string()]),
        Offer::Session => (LEASE, vec![shown(&question.summary).to_string()]),
    };
    Some(json!({
        "command": multiline(&format!("{}: {}", question.tool, question.summary)),
        "systemRunBinding": null,
        "systemRunPlan": null,
        "cwd": null,
        "nodeId": null,
        "host": "gateway",
        "security": null,
        "ask": null,
        "agentId": question.agent,
        "resolvedPath": null,
        "sessionKey": question.session,
        "turnSourceChannel": null,
        "turnSourceTo": null,
        "turnSourceAccountId": null,
        "turnSourceThreadId": null,
        "tool": shown(&question.tool).to_string(),
        "text": question.changes().filter(|changes| !changes.is_empty()),
        "variables": [],
        "objections": [shown(&question.why).to_string()],
        "always": always,
        "decisions": decisions,
    }))
}

/// Variables as a person may safely see them; nothing if they cannot be shown whole.
fn variables<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Option<Vec<String>> {
    let mut room = MAX_SHOWN;
    let mut rows = Vec::new();
    for (name, value) in pairs {
        room = room.checked_sub(name.len() + value.len())?;
        rows.push(shown(&format!("{name}={value}")).to_string());
    }
    Some(rows)
}

/// The variables of `env` that a run is given: texts under names that every system knows.
pub(crate) fn portable(env: &Value) -> BTreeMap<&str, &str> {
    let is_portable = |name: &str| {
        let first = name.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
        first && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let vars = env.as_object().into_iter().flatten();
    let texts = vars.filter_map(|(name, value)| Some((name.trim(), value.as_str()?)));
    texts.filter(|(name, _)| is_portable(name)).collect()
}

/// What is shown of variables that somebody sent, if they can be shown whole.
pub(crate) fn shown_env(env: &Value) -> Option<Vec<String>> {
    variables(portable(env).into_iter())
}

/// The names of the variables that a run is given, and a fingerprint of names and values; none when there are none.
pub(crate) fn env_binding(env: &Value) -> (Vec<String>, Option<String>) {
    let pairs = portable(env);
    if pairs.is_empty() {
        return (Vec::new(), None);
    }
    let text = json!(pairs.iter().collect::<Vec<_>>()).to_string();
    let hash = hex(&Sha256::digest(text.as_bytes()));
    (pairs.into_keys().map(str::to_owned).collect(), Some(hash))
}

/// A list that holds texts and nothing else: what is shown of anything else would not be what is run.
pub(crate) fn words(value: &Value) -> Option<Vec<String>> {
    let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
    items.iter().map(|item| item.as_str().map(str::to_owned)).collect()
}

/// The seal of a plan, if it has one.
pub(crate) fn seal(plan: &Value) -> Option<&str> {
    plan["seal"].as_str().filter(|seal| seal.len() <= MAX_SEAL)
}

/// How much of what a node says about a command is shown: how many lines, and how many characters of each.
const NODE_WORDS: (usize, usize) = (20, 500);

/// The longest seal of a node.
const MAX_SEAL: usize = 128;

/// The longest path of a folder.
const MAX_FOLDER: usize = 4096;

/// What a node says, as a person may safely see it, and whether that is all of it.
fn node_words(value: &Value) -> (Vec<String>, bool) {
    let lines = value.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut is_whole = lines.len() <= NODE_WORDS.0;
    let mut seen = Vec::new();
    for line in lines.iter().take(NODE_WORDS.0) {
        let line = line.as_str().unwrap_or_else(|| {
            is_whole = false;
            ""
        });
        let end = line.char_indices().nth(NODE_WORDS.1).map(|(end, _)| end);
        is_whole &= end.is_none();
        seen.push(shown(&line[..end.unwrap_or(line.len())]).to_string());
    }
    (seen, is_whole)
}

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
    let words = words(argv).ok_or("exec denied: the node's command is not a list of strings")?;
    let run = system_run::resolve(&words, None).map_err(|error| format!("exec denied: {error}"))?;
    if run.display.len() > MAX_COMMAND {
        return Err("exec denied: the node's command is too long to show in full".to_owned());
    }
    let cwd = if plan.is_object() { &plan["cwd"] } else { &sent["cwd"] };
    let folder = match cwd {
        Value::Null => None,
        Value::String(cwd) if cwd.len() <= MAX_FOLDER => Some(shown(cwd).to_string()),
        _ => return Err("exec denied: the node's folder cannot be shown".to_owned()),
    };
    let (keys, hash) = env_binding(&sent["env"]);
    let variables = shown_env(&sent["env"]).ok_or("exec denied: the variables are too long to show in full")?;
    let judged = &prepared["judgment"];
    let (objections, _) = node_words(&judged["objections"]);
    let (always, is_whole) = node_words(&judged["always"]);
    let mut once_only = judged["onceOnly"].as_str().map(|why| shown(why).to_string());
    if !is_whole {
        once_only.get_or_insert_with(|| "the rule is too long to show in full".to_owned());
    }
    let mut planned = json!({
        "argv": words, "cwd": cwd, "rawCommand": run.display, "agentId": sent["agentId"], "sessionKey": sent["sessionKey"],
    });
    if let Some(seal) = seal(plan) {
        planned["seal"] = seal.into();
    }
    let mut request = json!({
        "command": multiline(&run.display),
        "commandArgv": words,
        "systemRunBinding": {
            "argv": words, "cwd": cwd, "agentId": sent["agentId"], "sessionKey": sent["sessionKey"], "envHash": hash,
        },
        "systemRunPlan": planned,
        "cwd": folder,
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
        "variables": variables,
        "objections": objections,
        "always": always,
        "decisions": if once_only.is_some() { ONCE_ONLY } else { DECISIONS },
    });
    if !keys.is_empty() {
        request["envKeys"] = keys.into();
    }
    Ok((request, once_only))
}
