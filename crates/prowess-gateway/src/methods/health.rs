//! `health`, `status` and their kind: is the gateway well, and what goes on in it?

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use prowess_agent::message::now;
use prowess_exec::sandbox::{Kind, Sandbox, Survey};
use prowess_host::Context;
use prowess_policy::ExecSettings;
use serde_json::{Value, json};

use super::{Answer, Ask, Method, method};
use crate::aside::blocking;
use crate::gateway::Gateway;
use crate::hub::{Audience, Guest, Urgency};
use crate::scope::{Access, Scope};
use crate::wire::Refusal;

/// The methods of this matter.
pub(super) const METHODS: &[Method] = &[
    method!("health", Access::Anybody, health),
    method!("status", Access::Operator(Scope::Read), status),
    method!("channels.status", Access::Operator(Scope::Read), channels),
    method!("last-heartbeat", Access::Operator(Scope::Read), last_heartbeat),
    method!("set-heartbeats", Access::Operator(Scope::Admin), set_heartbeats),
];

/// How often everybody is told how the gateway is.
const EVERY: Duration = Duration::from_secs(60);

/// After how many milliseconds what is known is found out again while it is told.
const YOUNG: u64 = 1_000;

/// How many sessions are named.
const RECENT: usize = 5;
const RECENT_IN_STATUS: usize = 10;

/// How the gateway is, as far as it is known; what is known is found out again beside that. Who wants to wait for what is
/// true now says so.
async fn health(ask: Ask) -> Answer {
    let gateway = ask.gateway;
    let known = gateway.presence.health();
    let age = known["ts"].as_u64().and_then(|at| age(at, now()));
    let is_told = age.is_some_and(|age| u128::from(age) < EVERY.as_millis()) && ask.request.params["probe"] != true;
    if !is_told {
        return renew(&gateway).await;
    }
    if age.is_some_and(|age| age >= YOUNG) {
        let again = Arc::clone(&gateway);
        gateway.tasks.spawn(async move {
            if let Some(_looking) = again.presence.look() {
                look(&again).await;
            }
        });
    }
    Ok(known)
}

/// How old something from `then` is, in milliseconds; nothing if the clock was set back since, so that it is not known.
fn age(then: u64, now: u64) -> Option<u64> {
    now.checked_sub(then)
}

/// Tells operators every minute how the gateway is, and brings the indexes of sessions up to date on disk, until it ends.
pub(crate) async fn keep_telling(gateway: Arc<Gateway>) {
    loop {
        tokio::select! {
            () = gateway.stop.cancelled() => return,
            () = tokio::time::sleep(EVERY) => {}
        }
        let settling = Arc::clone(&gateway);
        // It reports what it cannot write itself.
        let _ = blocking(move || settling.agents.settle()).await;
        if let Some(health) = look(&gateway).await {
            gateway.hub.tell(Audience::Operators, "health", &health, Urgency::Droppable);
        }
    }
}

/// Finds out how the gateway is, and keeps that for whoever connects.
pub(crate) async fn look(gateway: &Arc<Gateway>) -> Option<Value> {
    renew(gateway).await.ok()
}

async fn renew(gateway: &Arc<Gateway>) -> Answer {
    let asked = Arc::clone(gateway);
    let health = blocking(move || snapshot(&asked)).await??;
    gateway.presence.set_health(health.clone());
    Ok(health)
}

/// How the gateway is. Looks at the disk.
pub(crate) fn snapshot(gateway: &Gateway) -> Result<Value, Refusal> {
    let began = Instant::now();
    let context = gateway.agents.context()?;
    let (names, default) = names(&context);
    let mut agents = Vec::new();
    let mut of_default = Value::Null;
    for id in names {
        let (path, index) = index(gateway, &id)?;
        let sessions = json!({"path": path, "count": index.len(), "recent": recent(&index)});
        if id == default {
            of_default = sessions.clone();
        }
        agents.push(
            json!({"agentId": id, "isDefault": id == default, "heartbeat": no_heartbeat(), "sessions": sessions}),
        );
    }
    Ok(json!({
        "ok": true,
        "ts": now(),
        "durationMs": u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        "channels": {},
        "channelOrder": [],
        "channelLabels": {},
        "heartbeatSeconds": 0,
        "defaultAgentId": default,
        "agents": agents,
        "sessions": of_default,
    }))
}

/// The names of all agents, and which of them is meant when none is named.
fn names(context: &Context) -> (Vec<String>, String) {
    let agents = context.config.agents();
    (agents.list().iter().map(|agent| agent.id.to_string()).collect(), agents.default_agent().id.to_string())
}

/// There are no heartbeats here, in the words for an agent that has them switched off.
fn no_heartbeat() -> Value {
    json!({"enabled": false, "every": "disabled", "everyMs": null, "prompt": "", "target": "none", "ackMaxChars": 0})
}

/// What is noted about sessions, by key.
type Noted = Vec<(String, Arc<Value>)>;

/// Where the sessions of an agent are, and what is noted about each, the last used first. What cannot be read is empty.
fn index(gateway: &Gateway, agent: &str) -> Result<(PathBuf, Noted), Refusal> {
    let store = gateway.agents.store(agent)?;
    let path = store.folder().join("sessions.json");
    let mut sessions = store.entries().unwrap_or_default();
    sessions.retain(|(key, _)| key != "global" && key != "unknown");
    sessions.sort_by_key(|(_, entry)| std::cmp::Reverse(entry["updatedAt"].as_u64().unwrap_or(0)));
    Ok((path, sessions))
}

fn recent(index: &[(String, Arc<Value>)]) -> Vec<Value> {
    let row = |(key, entry): &(String, Arc<Value>)| {
        let (updated, age) = times(entry);
        json!({"key": key, "updatedAt": updated, "age": age})
    };
    index.iter().take(RECENT).map(row).collect()
}

/// When a session was used last, and how long ago that is, in milliseconds.
fn times(entry: &Value) -> (Option<u64>, Option<u64>) {
    let updated = entry["updatedAt"].as_u64().filter(|&updated| updated > 0);
    (updated, updated.map(|updated| now().saturating_sub(updated)))
}

/// What is noted about a session and may be told.
const TOLD: [&str; 12] = [
    "sessionId",
    "thinkingLevel",
    "verboseLevel",
    "reasoningLevel",
    "elevatedLevel",
    "systemSent",
    "abortedLastRun",
    "inputTokens",
    "outputTokens",
    "cacheRead",
    "cacheWrite",
    "model",
];

fn row(agent: &str, (key, entry): &(String, Arc<Value>)) -> Value {
    let (updated, age) = times(entry);
    let total = entry["totalTokens"].as_u64();
    let context = entry["contextTokens"].as_u64().filter(|&tokens| tokens > 0);
    let left = context.zip(total).map(|(context, total)| context.saturating_sub(total));
    let percent = context.zip(total).map(|(context, total)| (total.saturating_mul(100) / context).min(999));
    let mut row = json!({
        "agentId": agent,
        "key": key,
        "kind": if entry["chatType"] == "group" { "group" } else { "direct" },
        "updatedAt": updated,
        "age": age,
        "totalTokens": total,
        "totalTokensFresh": total.is_some() && entry["totalTokensFresh"] != false,
        "remainingTokens": left,
        "percentUsed": percent,
        "model": null,
        "contextTokens": context,
        "flags": [],
    });
    for name in TOLD {
        if let Some(value) = entry.get(name) {
            row[name] = value.clone();
        }
    }
    row
}

async fn status(ask: Ask) -> Answer {
    blocking(move || {
        let status = summary(&ask.gateway)?;
        // Paths and what people talk about are for who may do everything.
        Ok(if ask.guest.may(Scope::Admin) { status } else { without_private(status) })
    })
    .await?
}

fn summary(gateway: &Gateway) -> Result<Value, Refusal> {
    let context = gateway.agents.context()?;
    let (names, default) = names(&context);
    let (mut paths, mut by_agent, mut all, mut heartbeats) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for id in &names {
        let (path, index) = index(gateway, id)?;
        let rows: Vec<Value> = index.iter().map(|one| row(id, one)).collect();
        let recent: Vec<&Value> = rows.iter().take(RECENT_IN_STATUS).collect();
        by_agent.push(json!({"agentId": id, "path": path, "count": rows.len(), "recent": recent}));
        heartbeats.push(json!({"agentId": id, "enabled": false, "every": "disabled", "everyMs": null}));
        paths.push(path);
        all.extend(rows);
    }
    all.sort_by_key(|row| std::cmp::Reverse(row["updatedAt"].as_u64().unwrap_or(0)));
    let count = all.len();
    all.truncate(RECENT_IN_STATUS);
    let model = &context.config.tree()["agents"]["defaults"]["model"];
    let model = model.as_str().or_else(|| model["primary"].as_str());
    Ok(json!({
        "heartbeat": {"defaultAgentId": default, "agents": heartbeats},
        "channelSummary": [],
        "queuedSystemEvents": [],
        "sessions": {
            "paths": paths,
            "count": count,
            "defaults": {"model": model, "contextTokens": null},
            "recent": all,
            "byAgent": by_agent,
        },
        "gateway": about(gateway, &context),
    }))
}

/// The gateway itself: what it is, how long it runs, and who is connected.
fn about(gateway: &Gateway, context: &Context) -> Value {
    let mut roles: BTreeMap<&str, usize> = [("operator", 0), ("node", 0)].into();
    let mut clients: Vec<Arc<Guest>> = gateway.hub.guests();
    clients.sort_by_key(|guest| guest.connected_at);
    for guest in &clients {
        *roles.entry(guest.role.as_str()).or_default() += 1;
    }
    let told = clients.iter().take(MAX_CLIENTS).map(|guest| {
        json!({
            "role": guest.role.as_str(),
            "name": guest.name(),
            "mode": guest.about.mode,
            "version": guest.about.version,
            "platform": guest.about.platform,
            "ip": guest.remote_ip,
            "connectedAtMs": guest.connected_at,
        })
    });
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "pid": std::process::id(),
        "address": gateway.address,
        "tlsFingerprint": gateway.tls.as_ref().map(|tls| tls.fingerprint.to_string()),
        "uptimeMs": u64::try_from(gateway.started.elapsed().as_millis()).unwrap_or(u64::MAX),
        "connections": roles,
        "clients": told.collect::<Vec<_>>(),
        "spansDropped": gateway.telemetry.dropped(),
        "sandbox": sandbox(context),
    })
}

/// What keeps the commands of the default agent in their place. Looks at the system.
fn sandbox(context: &Context) -> Value {
    let settings = ExecSettings::read(&context.config.tree()["tools"]["exec"], &context.agent.exec);
    let chosen = prowess_exec::exec::choice(&settings.sandbox)
        .and_then(|choice| Sandbox::choose(&choice, &Survey::default()).map_err(|why| why.to_string()));
    match chosen {
        Ok(Kind::None) => json!({"works": false, "off": true, "what": "Commands run without a sandbox."}),
        Ok(kind) => json!({"works": true, "what": format!("Commands run under {kind}.")}),
        Err(why) => json!({"works": false, "what": format!("Every command is refused: {why}")}),
    }
}

/// How many clients are named; the numbers are of all.
const MAX_CLIENTS: usize = 200;

fn without_private(mut status: Value) -> Value {
    let sessions = &mut status["sessions"];
    sessions["paths"] = json!([]);
    sessions["recent"] = json!([]);
    sessions["defaults"] = json!({"model": null, "contextTokens": null});
    for agent in sessions["byAgent"].as_array_mut().into_iter().flatten() {
        agent["path"] = "[redacted]".into();
        agent["recent"] = json!([]);
    }
    status["gateway"]["clients"] = json!([]);
    status
}

/// There are no channels here, in the shape of a gateway that has none configured.
async fn channels(_ask: Ask) -> Answer {
    Ok(json!({
        "ts": now(),
        "channelOrder": [],
        "channelLabels": {},
        "channelDetailLabels": {},
        "channelSystemImages": {},
        "channelMeta": [],
        "channels": {},
        "channelAccounts": {},
        "channelDefaultAccountId": {},
    }))
}

async fn last_heartbeat(_ask: Ask) -> Answer {
    Ok(Value::Null)
}

async fn set_heartbeats(ask: Ask) -> Answer {
    match ask.params()["enabled"].as_bool() {
        None => Err(Refusal::invalid("invalid set-heartbeats params: enabled (boolean) required")),
        Some(false) => Ok(json!({"ok": true, "enabled": false})),
        Some(true) => Err(Refusal::unavailable("this gateway has no heartbeats; a system timer can call `agent`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_seems_to_come_from_the_future_has_no_age() {
        assert_eq!((age(5, 7), age(7, 7), age(8, 7)), (Some(2), Some(0), None));
    }
}
