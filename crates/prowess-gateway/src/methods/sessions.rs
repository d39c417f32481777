//! `sessions.*`: which conversations are there, and what is kept of each?

pub(super) mod follow;
mod patch;

use std::path::Path;

use prowess_agent::message::now;
use prowess_agent::session::{OpenError, SessionKey, Transcripts, agent_id};
use prowess_agent::settings::{Choice, choose};
use prowess_host::{Context, model_settings};
use serde_json::{Value, json};

use super::agent::text;
use super::{Answer, Ask, Method, method};
use crate::aside::blocking;
use crate::gateway::Gateway;
use crate::params::{ANY_TEXT, BOOL, Kind, Shape, TEXT, choice, integer_from, optional, required, shape};
use crate::runs::keys::main_session;
use crate::runs::listing::{Filter, Row, glimpse, preview, rows};
use crate::scope::{Access, Scope};
use crate::wire::Refusal;

/// The methods of this matter.
pub(super) const METHODS: &[Method] = &[
    method!("sessions.list", Access::Operator(Scope::Read), list),
    method!("sessions.preview", Access::Operator(Scope::Read), previews),
    method!("sessions.resolve", Access::Operator(Scope::Read), resolve),
    method!("sessions.patch", Access::Operator(Scope::Admin), change),
    method!("sessions.reset", Access::Operator(Scope::Admin), reset),
    method!("sessions.delete", Access::Operator(Scope::Admin), delete),
    method!("sessions.compact", Access::Operator(Scope::Admin), compact),
    method!("sessions.subscribe", Access::Operator(Scope::Read), follow::subscribe),
    method!("sessions.unsubscribe", Access::Operator(Scope::Read), follow::unsubscribe),
];

/// The longest label.
const MAX_LABEL: usize = 64;

/// Of how many sessions of a list the words are shown: all that was said in each is read for that.
const GLIMPSES: usize = 100;

/// How many sessions one preview shows, and how many messages of each at most.
const PREVIEWS: usize = 64;
const PREVIEW_ITEMS: u64 = 50;
const PREVIEW_CHARS: u64 = 2_000;

const LABEL: Kind = Kind::Text { min: 1, max: MAX_LABEL };

const LIST: Shape = shape(&[
    optional("limit", integer_from(1)),
    optional("cursor", ANY_TEXT),
    optional("activeMinutes", integer_from(1)),
    optional("includeGlobal", BOOL),
    optional("includeUnknown", BOOL),
    optional("includeDerivedTitles", BOOL),
    optional("includeLastMessage", BOOL),
    optional("label", LABEL),
    optional("spawnedBy", TEXT),
    optional("agentId", TEXT),
    optional("search", ANY_TEXT),
]);

const PREVIEW: Shape = shape(&[
    required("keys", Kind::List { of: &TEXT, min: 1 }),
    optional("limit", integer_from(1)),
    optional("maxChars", integer_from(20)),
]);

const RESOLVE: Shape = shape(&[
    optional("key", TEXT),
    optional("sessionId", TEXT),
    optional("label", LABEL),
    optional("agentId", TEXT),
    optional("spawnedBy", TEXT),
    optional("includeGlobal", BOOL),
    optional("includeUnknown", BOOL),
]);

const RESET: Shape = shape(&[required("key", TEXT), optional("reason", choice(&["new", "reset"]))]);

const DELETE: Shape =
    shape(&[required("key", TEXT), optional("deleteTranscript", BOOL), optional("emitLifecycleHooks", BOOL)]);

const COMPACT: Shape = shape(&[required("key", TEXT), optional("maxLines", integer_from(1))]);

async fn list(ask: Ask) -> Answer {
    LIST.check("sessions.list", ask.params())?;
    blocking(move || {
        let params = ask.params();
        let context = ask.gateway.agents.context()?;
        let stores = ask.gateway.agents.stores()?;
        let filter = filter(params);
        let wants = |name: &str| params[name] == true;
        let glimpses = if wants("includeDerivedTitles") || wants("includeLastMessage") { GLIMPSES } else { 0 };
        let mut sessions = Vec::new();
        let rows = rows(&stores, &filter);
        let (total, limit) = (rows.len(), filter.limit.unwrap_or(usize::MAX));
        let next = (total > limit).then(|| rows.get(limit.saturating_sub(1)).map(Row::cursor)).flatten();
        for (place, row) in rows.into_iter().take(limit).enumerate() {
            let mut shown = row.render();
            if place < glimpses {
                let store = ask.gateway.agents.store(row.key.agent())?;
                let (title, last) = glimpse(&store, &row.key);
                let wanted = [
                    ("includeDerivedTitles", "derivedTitle", title),
                    ("includeLastMessage", "lastMessagePreview", last),
                ];
                for (asked, field, text) in wanted {
                    if let Some(text) = text.filter(|_| wants(asked)) {
                        shown[field] = text.into();
                    }
                }
            }
            sessions.push(shown);
        }
        let mut answer = json!({
            "ts": now(),
            "path": index_path(&context, &filter),
            "count": sessions.len(),
            "defaults": defaults(&context),
            "sessions": sessions,
        });
        if let Some(next) = next {
            answer["nextCursor"] = next.into();
            answer["left"] = (total - limit).into();
        }
        Ok(answer)
    })
    .await?
}

fn filter(params: &Value) -> Filter {
    Filter {
        agent: text(params, "agentId").map(|id| agent_id(&id)),
        label: text(params, "label"),
        spawned_by: text(params, "spawnedBy"),
        search: text(params, "search"),
        active_minutes: params["activeMinutes"].as_u64(),
        limit: params["limit"].as_u64().and_then(|limit| usize::try_from(limit).ok()),
        after: text(params, "cursor"),
    }
}

/// Where the sessions of a list are kept; of several agents there is no one place.
fn index_path(context: &Context, filter: &Filter) -> String {
    let agents = context.config.agents();
    match (&filter.agent, agents.list()) {
        (Some(agent), _) => path(&context.locations.state_dir, agent),
        (None, [only]) => path(&context.locations.state_dir, only.id.as_str()),
        (None, _) => "(multiple)".to_owned(),
    }
}

fn path(state_dir: &Path, agent: &str) -> String {
    state_dir.join("agents").join(agent).join("sessions/sessions.json").to_string_lossy().into_owned()
}

/// The model of a session for which nobody chose another.
fn defaults(context: &Context) -> Value {
    match choose(&model_settings(context), None) {
        Ok(Choice::Wire { first, .. }) => {
            json!({"modelProvider": first.provider, "model": first.model, "contextTokens": first.context_window})
        }
        Ok(Choice::Embedded | Choice::Scripted(_)) | Err(_) => {
            json!({"modelProvider": "prowess", "model": "embedded", "contextTokens": null})
        }
    }
}

async fn previews(ask: Ask) -> Answer {
    PREVIEW.check("sessions.preview", ask.params())?;
    blocking(move || {
        let params = ask.params();
        let number = |name: &str, usual: u64, most: u64| {
            usize::try_from(params[name].as_u64().unwrap_or(usual).min(most)).unwrap_or(usize::MAX)
        };
        let (limit, max_chars) = (number("limit", 12, PREVIEW_ITEMS), number("maxChars", 240, PREVIEW_CHARS));
        let keys = params["keys"].as_array().into_iter().flatten().filter_map(Value::as_str).take(PREVIEWS);
        let previews: Vec<Value> = keys.map(|name| one_preview(&ask.gateway, name, limit, max_chars)).collect();
        Ok(json!({"ts": now(), "previews": previews}))
    })
    .await?
}

fn one_preview(gateway: &Gateway, name: &str, limit: usize, max_chars: usize) -> Value {
    let found = gateway.agents.key(name).and_then(|key| Ok((gateway.agents.store(key.agent())?, key)));
    let Ok((store, key)) = found else { return json!({"key": name, "status": "error", "items": []}) };
    let Ok(Some(_)) = store.entry(&key) else { return json!({"key": name, "status": "missing", "items": []}) };
    let items = preview(&store, &key, limit, max_chars).unwrap_or_default();
    let status = if items.is_empty() { "empty" } else { "ok" };
    json!({"key": name, "status": status, "items": items})
}

async fn resolve(ask: Ask) -> Answer {
    RESOLVE.check("sessions.resolve", ask.params())?;
    blocking(move || {
        let params = ask.params();
        let (key, id, label) = (text(params, "key"), text(params, "sessionId"), text(params, "label"));
        let filter = Filter { label: label.clone(), search: None, limit: None, ..filter(params) };
        let (name, found) = match (key, id, label) {
            (Some(name), None, None) => {
                let key = ask.gateway.agents.key(&name)?;
                let found = ask.gateway.agents.store(key.agent())?.entry(&key);
                let found = found.map_err(|error| Refusal::unavailable(error.to_string()))?;
                (name, found.map(|_| key).into_iter().collect::<Vec<_>>())
            }
            (None, Some(id), None) => {
                let rows = rows(&ask.gateway.agents.stores()?, &filter).into_iter();
                let is_it = |row: &Row| row.entry["sessionId"].as_str() == Some(&id) || row.key.to_string() == id;
                let found = rows.filter(is_it).map(|row| row.key).collect();
                (id, found)
            }
            (None, None, Some(label)) => {
                let found = rows(&ask.gateway.agents.stores()?, &filter).into_iter().map(|row| row.key).collect();
                (label, found)
            }
            (None, None, None) => return Err(Refusal::invalid("Either key, sessionId, or label is required")),
            _ => return Err(Refusal::invalid("Provide either key, sessionId, or label (not multiple)")),
        };
        match found.as_slice() {
            [] => Err(Refusal::invalid(format!("No session found: {name}"))),
            [key] => Ok(json!({"ok": true, "key": key.to_string()})),
            several => {
                let keys: Vec<String> = several.iter().map(SessionKey::to_string).collect();
                Err(Refusal::invalid(format!("Multiple sessions found: {name} ({})", keys.join(", "))))
            }
        }
    })
    .await?
}

async fn change(ask: Ask) -> Answer {
    patch::SHAPE.check("sessions.patch", ask.params())?;
    blocking(move || {
        let key = ask.gateway.agents.key(&text(ask.params(), "key").unwrap_or_default())?;
        let home = ask.gateway.agents.get(Some(key.agent()))?;
        let context = home.refresh().context.clone();
        let store = ask.gateway.agents.store(key.agent())?;
        let others = rows(&ask.gateway.agents.stores()?, &Filter::default());
        let patch = patch::Patch { params: ask.params(), key: &key, models: model_settings(&context), others: &others };
        let entry = store.amend(&key, |entry| patch.apply(entry)).map_err(|error| unavailable(&error))??;
        let resolved = patch.resolved(&entry);
        Ok(json!({
            "ok": true,
            "path": path(&context.locations.state_dir, key.agent()),
            "key": key.to_string(),
            "entry": entry,
            "resolved": resolved,
        }))
    })
    .await?
}

async fn reset(ask: Ask) -> Answer {
    RESET.check("sessions.reset", ask.params())?;
    let key = key(&ask).await?;
    ask.gateway.runs.renew(&ask.gateway, &key).await?;
    blocking(move || {
        let entry = ask.gateway.agents.store(key.agent())?.entry(&key);
        let entry = entry.map_err(|error| Refusal::unavailable(error.to_string()))?;
        Ok(json!({"ok": true, "key": key.to_string(), "entry": entry}))
    })
    .await?
}

async fn delete(ask: Ask) -> Answer {
    DELETE.check("sessions.delete", ask.params())?;
    let key = key(&ask).await?;
    let gateway = std::sync::Arc::clone(&ask.gateway);
    let main = blocking(move || {
        let context = gateway.agents.context()?;
        Ok(main_session(context.config.agents().default_agent().id.as_str(), context.config.tree()))
    })
    .await??;
    if key == main {
        return Err(Refusal::invalid(format!("Cannot delete the main session ({main}).")));
    }
    let transcripts = if ask.params()["deleteTranscript"] == false { Transcripts::Keep } else { Transcripts::SetAside };
    let removed = ask.gateway.runs.remove(&ask.gateway, &key, transcripts).await?;
    Ok(json!({
        "ok": true,
        "key": key.to_string(),
        "deleted": removed.was_there,
        "archived": removed.set_aside,
    }))
}

/// Says that there is nothing to do: a transcript is only appended to, and what a model no longer fits into its window is
/// summed up when a turn needs the room.
async fn compact(ask: Ask) -> Answer {
    COMPACT.check("sessions.compact", ask.params())?;
    blocking(move || {
        let key = ask.gateway.agents.key(&text(ask.params(), "key").unwrap_or_default())?;
        let store = ask.gateway.agents.store(key.agent())?;
        let mut answer = json!({"ok": true, "key": key.to_string(), "compacted": false});
        match store.entry(&key).map_err(|error| Refusal::unavailable(error.to_string()))? {
            None => answer["reason"] = "no sessionId".into(),
            Some(_) => match store.read(&key.to_string()) {
                Ok(stored) => answer["kept"] = (stored.entries.len() + 1).into(),
                Err(_) => answer["reason"] = "no transcript".into(),
            },
        }
        Ok(answer)
    })
    .await?
}

async fn key(ask: &Ask) -> Result<SessionKey, Refusal> {
    let (gateway, name) = (std::sync::Arc::clone(&ask.gateway), text(ask.params(), "key").unwrap_or_default());
    blocking(move || gateway.agents.key(&name)).await?
}

fn unavailable(error: &OpenError) -> Refusal {
    Refusal::unavailable(error.to_string())
}
