//! `chat.*`: a conversation as a person has it.

use std::sync::Arc;

use prowess_agent::message::Message;
use prowess_agent::session::SessionKey;
use serde_json::{Value, json};

use super::agent::{delivery, follow, hears_of_tools, message, text, thinking, with_images};
use super::{Answer, Ask, Method, method};
use crate::aside::blocking;
use crate::hub::{Audience, Urgency};
use crate::params::{
    ANY, ANY_TEXT, BOOL, Shape, TEXT, integer_from, integer_within, list, optional, required, shape, text_up_to,
};
use crate::runs::history::{HistoryQuery, MAX_IMAGES, shown};
use crate::runs::{Asked, How, Started, State, Why, Wish, means_stop};
use crate::scope::{Access, Scope};
use crate::wire::Refusal;

/// The methods of this matter.
pub(super) const METHODS: &[Method] = &[
    method!("chat.history", Access::Operator(Scope::Read), history),
    method!("chat.abort", Access::Operator(Scope::Write), abort),
    method!("chat.send", Access::Operator(Scope::Write), send),
    method!("chat.inject", Access::Operator(Scope::Admin), inject),
];

/// How many messages are shown unless somebody says.
const MESSAGES: usize = 200;

const HISTORY: Shape = shape(&[
    required("sessionKey", TEXT),
    optional("limit", integer_within(1, 1_000)),
    optional("cursor", integer_from(0)),
    optional("images", BOOL),
]);

const ABORT: Shape = shape(&[required("sessionKey", TEXT), optional("runId", TEXT)]);

const SEND: Shape = shape(&[
    required("sessionKey", TEXT),
    required("message", ANY_TEXT),
    optional("thinking", ANY_TEXT),
    optional("deliver", BOOL),
    optional("attachments", list(&ANY)),
    optional("timeoutMs", integer_from(0)),
    required("idempotencyKey", TEXT),
]);

const INJECT: Shape =
    shape(&[required("sessionKey", TEXT), required("message", TEXT), optional("label", text_up_to(100))]);

/// What was said.
async fn history(ask: Ask) -> Answer {
    HISTORY.check("chat.history", ask.params())?;
    blocking(move || {
        let params = ask.params();
        let key = ask.gateway.agents.key(params["sessionKey"].as_str().unwrap_or_default())?;
        let store = ask.gateway.agents.store(key.agent())?;
        // Before the messages are read: what ends in between is in them.
        let runs = ask.gateway.runs.open_in(&key);
        let entry = store.entry(&key).map_err(|error| Refusal::unavailable(error.to_string()))?;
        let entry = entry.unwrap_or_default();
        // One that has no transcript yet has said nothing.
        let messages = store.read(&key.to_string()).map(|stored| stored.conversation).unwrap_or_default();
        let number = |name: &str| params[name].as_u64().map(|number| usize::try_from(number).unwrap_or(usize::MAX));
        let query = HistoryQuery {
            limit: number("limit").unwrap_or(MESSAGES),
            before: number("cursor").unwrap_or(usize::MAX),
            room_for_images: if params["images"] == true { MAX_IMAGES } else { 0 },
        };
        let page = shown(messages, query);
        let mut answer = json!({
            "sessionKey": params["sessionKey"],
            "messages": page.messages,
            "thinkingLevel": entry["thinkingLevel"].as_str().unwrap_or("off"),
            "runIds": runs,
        });
        if page.before > 0 {
            answer["nextCursor"] = page.before.into();
        }
        for field in ["sessionId", "verboseLevel"] {
            if let Some(value) = entry.get(field) {
                answer[field] = value.clone();
            }
        }
        Ok(answer)
    })
    .await?
}

/// Says something. The answer comes as events.
async fn send(ask: Ask) -> Answer {
    SEND.check("chat.send", ask.params())?;
    let (mut ask, images) = with_images(ask).await?;
    let said = said(ask.params()["message"].as_str().unwrap_or_default(), images.is_empty())?;
    let (gateway, name) = (Arc::clone(&ask.gateway), text(ask.params(), "sessionKey").unwrap_or_default());
    let (key, is_blocked) = blocking(move || {
        let key = gateway.agents.key(&name)?;
        let entry = gateway.agents.store(key.agent())?.entry(&key).ok().flatten().unwrap_or_default();
        Ok::<_, Refusal>((key, entry["sendPolicy"] == "deny"))
    })
    .await??;
    if is_blocked {
        return Err(Refusal::invalid("send blocked by session policy"));
    }
    if means_stop(&said) {
        let stopped = stop(&ask, &key, Why::Said);
        return Ok(json!({"ok": true, "aborted": !stopped.is_empty(), "runIds": stopped}));
    }
    follow(&ask, &key)?;
    let (said, begin) = message(said);
    let seconds = ask.params()["timeoutMs"].as_u64().map(|millis| millis.div_ceil(1_000));
    let id = text(ask.params(), "idempotencyKey").unwrap_or_default();
    let delivery = delivery(&ask);
    let asked = Asked { thinking: thinking(ask.params())?, seconds, images, delivery, ..Asked::default() };
    let wish = Wish { id: id.clone(), key, text: said, asked, begin, conn: hears_of_tools(&ask), ear: None };
    let enqueued = ask.gateway.runs.enqueue(&ask.gateway, wish)?;
    // It has its place, so the next request may have one.
    drop(ask.slot.take());
    match enqueued.accepted().await? {
        Started::New(_) => Ok(json!({"runId": id, "status": "started"})),
        Started::Known(run) => match run.state() {
            State::Waiting | State::Running(_) => Ok(json!({"runId": id, "status": "in_flight"})),
            State::Ended(ended, _) => match &ended.how {
                How::Done | How::Stopped => Ok(json!({"runId": id, "status": "ok"})),
                How::Failed(why) => {
                    let payload = json!({"runId": id, "status": "error", "summary": why});
                    Err(Refusal::unavailable(why.clone()).payload(payload))
                }
            },
        },
    }
}

/// The message without characters that nobody types.
fn said(text: &str, is_needed: bool) -> Result<String, Refusal> {
    if text.contains('\0') {
        return Err(Refusal::invalid("message must not contain null bytes"));
    }
    let is_typed = |c: &char| matches!(c, '\t' | '\n' | '\r') || !c.is_ascii_control();
    let text: String = text.chars().filter(is_typed).collect();
    if is_needed && text.trim().is_empty() {
        return Err(Refusal::invalid("message or attachment required"));
    }
    Ok(text)
}

/// Ends what goes on in a session.
async fn abort(ask: Ask) -> Answer {
    ABORT.check("chat.abort", ask.params())?;
    let (gateway, name) = (Arc::clone(&ask.gateway), text(ask.params(), "sessionKey").unwrap_or_default());
    let key = blocking(move || gateway.agents.key(&name)).await??;
    let Some(id) = text(ask.params(), "runId") else {
        let stopped = stop(&ask, &key, Why::Asked);
        return Ok(json!({"ok": true, "aborted": !stopped.is_empty(), "runIds": stopped}));
    };
    let run = ask.gateway.runs.get(&id).filter(|run| !run.is_over());
    if run.as_ref().is_some_and(|run| run.key != key) {
        return Err(Refusal::invalid("runId does not match sessionKey"));
    }
    let mut stopped = ask.gateway.runs.stop_left(&key, Some(&id));
    if let Some(run) = run {
        run.stop(Why::Asked);
        stopped = vec![id];
    }
    Ok(json!({"ok": true, "aborted": !stopped.is_empty(), "runIds": stopped}))
}

/// Ends the runs of a session, and commands that waited longer than their runs. Says which runs that concerns.
fn stop(ask: &Ask, key: &SessionKey, why: Why) -> Vec<String> {
    let mut stopped = ask.gateway.runs.stop_session(key, why);
    let left = ask.gateway.runs.stop_left(key, None);
    stopped.extend(left.into_iter().filter(|run| !stopped.contains(run)).collect::<Vec<_>>());
    stopped
}

/// Adds something to a conversation in the model's name.
async fn inject(mut ask: Ask) -> Answer {
    INJECT.check("chat.inject", ask.params())?;
    let (gateway, name) = (Arc::clone(&ask.gateway), text(ask.params(), "sessionKey").unwrap_or_default());
    let key = blocking(move || {
        let key = gateway.agents.key(&name)?;
        let entry = gateway.agents.store(key.agent())?.entry(&key);
        match entry.map_err(|error| Refusal::unavailable(error.to_string()))? {
            Some(_) => Ok(key),
            None => Err(Refusal::invalid("session not found")),
        }
    })
    .await??;
    let said = text(ask.params(), "message").unwrap_or_default();
    let said = text(ask.params(), "label").map_or_else(|| said.clone(), |label| format!("[{label}]\n\n{said}"));
    let injected = ask.gateway.runs.inject(&ask.gateway, &key, said);
    // It has its place, so the next request may have one: perhaps it stops the turn that this waits for.
    drop(ask.slot.take());
    let (id, message) = injected.await?;
    let payload = json!({
        "runId": format!("inject-{id}"),
        "sessionKey": key.to_string(),
        "seq": 0,
        "state": "final",
        "message": spoken(&message),
    });
    ask.gateway.hub.tell(Audience::Whole, "chat", &payload, Urgency::Needed);
    ask.gateway.hub.tell(Audience::Followers(&key.to_string(), &[]), "chat", &payload, Urgency::Needed);
    Ok(json!({"ok": true, "messageId": id}))
}

fn spoken(message: &Message) -> Value {
    serde_json::to_value(message).unwrap_or_default()
}
