//! `sessions_list`, `sessions_history`, `sessions_send` and `session_status`: what goes on in other sessions?

use std::sync::Arc;
use std::time::Duration;

use prowess_agent::session::{SessionKey, Sessions};
use prowess_agent::tool::ToolSpec;
use serde_json::{Value, json};

use super::visibility::may_see;
use super::{Act, Here};
use crate::aside::blocking;
use crate::runs::history::{HistoryQuery, shown};
use crate::runs::listing::{Filter, Row, rows};
use crate::runs::{Asked, Begin, How, Wish};

pub(super) const LIST: &str = "sessions_list";
pub(super) const HISTORY: &str = "sessions_history";
pub(super) const SEND: &str = "sessions_send";
pub(super) const STATUS: &str = "session_status";

/// How many sessions and messages are shown, and how many at most.
const SESSIONS: (u64, u64) = (20, 200);
const MESSAGES: (u64, u64) = (20, 200);

/// How many seconds an answer is waited for, and how many at most.
const SECONDS: (u64, u64) = (30, 600);

pub(super) fn list_tool() -> (ToolSpec, Act) {
    let parameters = json!({
        "type": "object",
        "properties": {
            "limit": {"type": "number", "minimum": 1},
            "activeMinutes": {"type": "number", "minimum": 1},
        },
    });
    (spec(LIST, "Lists the sessions that you may look at, the last used first.", parameters), |here| {
        Box::pin(aside(here, list))
    })
}

pub(super) fn history_tool() -> (ToolSpec, Act) {
    let parameters = json!({
        "type": "object",
        "required": ["sessionKey"],
        "properties": {
            "sessionKey": {"type": "string"},
            "limit": {"type": "number", "minimum": 1},
            "includeTools": {"type": "boolean"},
        },
    });
    (spec(HISTORY, "Shows the last messages of a session.", parameters), |here| Box::pin(aside(here, history)))
}

pub(super) fn send_tool() -> (ToolSpec, Act) {
    let parameters = json!({
        "type": "object",
        "required": ["sessionKey", "message"],
        "properties": {
            "sessionKey": {"type": "string"},
            "message": {"type": "string"},
            "timeoutSeconds": {"type": "number", "minimum": 0, "description": "0 does not wait for the answer."},
        },
    });
    (spec(SEND, "Says something in another session, and waits for its answer.", parameters), |here| {
        Box::pin(send(here))
    })
}

pub(super) fn status_tool() -> (ToolSpec, Act) {
    let parameters = json!({
        "type": "object",
        "properties": {"sessionKey": {"type": "string", "description": "This one, unless you name another."}},
    });
    (spec(STATUS, "Tells the model, the tokens and the age of a session.", parameters), |here| {
        Box::pin(aside(here, status))
    })
}

fn spec(name: &str, description: &str, parameters: Value) -> ToolSpec {
    ToolSpec { name: name.to_owned(), description: description.to_owned(), parameters }
}

async fn aside(here: Here, look: fn(&Here) -> Result<Value, String>) -> Result<Value, String> {
    blocking(move || look(&here)).await.map_err(|refusal| refusal.message)?
}

/// The sessions that may be seen from here.
fn visible(here: &Here, filter: &Filter) -> Result<Vec<Row>, String> {
    let told = |refusal: crate::wire::Refusal| refusal.message;
    let config = here.gateway.agents.context().map_err(told)?.config.tree().clone();
    let stores = here.gateway.agents.stores().map_err(told)?;
    let mut rows = rows(&stores, filter);
    rows.retain(|row| may_see(&here.key, &row.key, &row.entry, &config));
    Ok(rows)
}

fn list(here: &Here) -> Result<Value, String> {
    let filter = Filter { active_minutes: here.number("activeMinutes"), ..Filter::default() };
    let mut rows = visible(here, &filter)?;
    let limit = here.number("limit").unwrap_or(SESSIONS.0).clamp(1, SESSIONS.1);
    rows.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    let sessions: Vec<Value> = rows.iter().map(Row::render).collect();
    Ok(json!({"count": sessions.len(), "sessions": sessions}))
}

/// The session that is meant, if it may be seen.
fn find(here: &Here) -> Result<(Row, Sessions), String> {
    let told = |refusal: crate::wire::Refusal| refusal.message;
    let Some(name) = here.text("sessionKey") else { return Err("sessionKey is required".to_owned()) };
    let key = here.gateway.agents.key(&name).map_err(told)?;
    let found = visible(here, &Filter::default())?.into_iter().find(|row| row.key == key);
    // Whether it is there at all is not for everybody to know.
    let row = found.ok_or_else(|| format!("you may not see a session {key}; {LIST} lists the sessions you may see"))?;
    let store = here.gateway.agents.store(key.agent()).map_err(told)?;
    Ok((row, store))
}

fn history(here: &Here) -> Result<Value, String> {
    let (row, store) = find(here)?;
    let stored = store.read(&row.key.to_string()).map_err(|error| error.to_string())?;
    let mut messages = stored.conversation;
    if here.arguments.get("includeTools") != Some(&Value::Bool(true)) {
        messages.retain(|message| message["role"] != "toolResult");
    }
    let limit = here.number("limit").unwrap_or(MESSAGES.0).clamp(1, MESSAGES.1);
    let query =
        HistoryQuery { limit: usize::try_from(limit).unwrap_or(usize::MAX), before: usize::MAX, room_for_images: 0 };
    let messages = shown(messages, query).messages;
    Ok(json!({"sessionKey": row.key.to_string(), "messages": messages}))
}

fn status(here: &Here) -> Result<Value, String> {
    let row = if here.text("sessionKey").is_some() {
        find(here)?.0
    } else {
        let own = visible(here, &Filter::default())?.into_iter().find(|row| row.key == here.key);
        own.ok_or("this session is not in the index yet")?
    };
    let shown = |name: &str| row.entry[name].as_str().unwrap_or("unknown").to_owned();
    let used = row.entry["totalTokens"].as_u64().unwrap_or_default();
    let window = row.entry["contextTokens"].as_u64().map_or_else(|| "?".to_owned(), |window| window.to_string());
    let text = format!(
        "prowess {}\nsession {}\nmodel {}/{}\ncontext {used}/{window} tokens",
        env!("CARGO_PKG_VERSION"),
        row.key,
        shown("modelProvider"),
        shown("model"),
    );
    Ok(json!({"ok": true, "sessionKey": row.key.to_string(), "statusText": text}))
}

async fn send(here: Here) -> Result<Value, String> {
    let message = here.text("message").ok_or("message is required")?;
    let seconds = here.number("timeoutSeconds").unwrap_or(SECONDS.0).min(SECONDS.1);
    let gateway = Arc::clone(&here.gateway);
    let me = here.key.clone();
    let (row, _) = blocking(move || find(&here)).await.map_err(|refusal| refusal.message)??;
    if row.key == me {
        return Err("a session cannot send to itself; say it in your answer".to_owned());
    }
    let started =
        gateway.runs.start(&gateway, wish(&row.key, &me, &message)).await.map_err(|refusal| refusal.message)?;
    let run = Arc::clone(started.run());
    let answer = |status: &str| json!({"runId": run.id, "status": status, "sessionKey": row.key.to_string()});
    if seconds == 0 {
        return Ok(answer("accepted"));
    }
    let Ok(ended) = tokio::time::timeout(Duration::from_secs(seconds), run.over()).await else {
        return Ok(answer("timeout"));
    };
    let mut told = answer(if ended.how == How::Done { "ok" } else { "error" });
    match &ended.how {
        How::Done => told["reply"] = super::super::answer_text(&ended).into(),
        How::Stopped => told["error"] = "the run was stopped".into(),
        How::Failed(why) => told["error"] = why.as_str().into(),
    }
    Ok(told)
}

fn wish(key: &SessionKey, from: &SessionKey, message: &str) -> Wish {
    Wish {
        id: uuid::Uuid::new_v4().to_string(),
        key: key.clone(),
        text: message.to_owned(),
        asked: Asked { extra: Some(format!("This message comes from the session {from}.")), ..Asked::default() },
        begin: Begin::GoOn,
        conn: None,
        ear: None,
    }
}
