//! `agent`, `agent.wait` and `agent.identity.get`: a turn of an agent, and who it is.

use std::sync::Arc;
use std::time::Duration;

use prowess_agent::Delivery;
use prowess_agent::image::{self, Image};
use prowess_agent::model::Thinking;
use prowess_agent::session::{SessionKey, agent_id};
use serde_json::{Value, json};

use super::{Answer, Ask, Method, method};
use crate::aside::blocking;
use crate::gateway::Gateway;
use crate::hub::{MAX_FOLLOWED, WHOLE_REPLIES};
use crate::params::{
    ANY, ANY_TEXT, BOOL, Shape, TEXT, choice, integer_from, list, object, optional, required, shape, text_up_to,
};
use crate::runs::keys::{main_session, meant};
use crate::runs::{Asked, Begin, How, TOOL_EVENTS, Wish};
use crate::scope::{Access, Scope};
use crate::wire::Refusal;

/// The methods of this matter.
pub(super) const METHODS: &[Method] = &[
    method!("agent", Access::Operator(Scope::Write), agent),
    method!("agent.identity.get", Access::Operator(Scope::Read), identity),
    method!("agent.wait", Access::Operator(Scope::Write), wait),
];

/// How long `agent.wait` waits unless it is told, and how long at most.
const PATIENCE: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(24 * 60 * 60));

/// Where a message may come from.
const PROVENANCE: &[&str] = &["external_user", "inter_session", "internal_system"];

const AGENT: Shape = shape(&[
    required("message", TEXT),
    optional("agentId", TEXT),
    optional("to", ANY_TEXT),
    optional("replyTo", ANY_TEXT),
    optional("sessionId", ANY_TEXT),
    optional("sessionKey", ANY_TEXT),
    optional("thinking", ANY_TEXT),
    optional("deliver", BOOL),
    optional("attachments", list(&ANY)),
    optional("channel", ANY_TEXT),
    optional("replyChannel", ANY_TEXT),
    optional("accountId", ANY_TEXT),
    optional("replyAccountId", ANY_TEXT),
    optional("threadId", ANY_TEXT),
    optional("groupId", ANY_TEXT),
    optional("groupChannel", ANY_TEXT),
    optional("groupSpace", ANY_TEXT),
    optional("timeout", integer_from(0)),
    optional("bestEffortDeliver", BOOL),
    optional("lane", ANY_TEXT),
    optional("extraSystemPrompt", ANY_TEXT),
    optional("internalEvents", list(&ANY)),
    optional(
        "inputProvenance",
        object(&[
            required("kind", choice(PROVENANCE)),
            optional("sourceSessionKey", ANY_TEXT),
            optional("sourceChannel", ANY_TEXT),
            optional("sourceTool", ANY_TEXT),
        ]),
    ),
    required("idempotencyKey", TEXT),
    optional("label", text_up_to(64)),
    optional("spawnedBy", ANY_TEXT),
]);

const IDENTITY: Shape = shape(&[optional("agentId", TEXT), optional("sessionKey", ANY_TEXT)]);

const WAIT: Shape = shape(&[required("runId", TEXT), optional("timeoutMs", integer_from(0))]);

/// Runs a turn. Says that it was accepted, and what came of it when it is over.
async fn agent(ask: Ask) -> Answer {
    AGENT.check("agent", ask.params())?;
    refuse_delivery(ask.params())?;
    let (mut ask, images) = with_images(ask).await?;
    let id = text(ask.params(), "idempotencyKey").unwrap_or_default();
    let conn = hears_of_tools(&ask);
    let run = if let Some(known) = ask.gateway.runs.get(&id) {
        if let Some(conn) = &conn {
            known.join(conn);
        }
        known
    } else {
        let (gateway, params) = (Arc::clone(&ask.gateway), ask.params().clone());
        let key = blocking(move || session(&gateway, &params)).await??;
        follow(&ask, &key)?;
        let params = ask.params();
        let (message, begin) = message(text(params, "message").unwrap_or_default());
        let asked = Asked {
            model: None,
            thinking: thinking(params)?,
            seconds: params["timeout"].as_u64(),
            extra: text(params, "extraSystemPrompt"),
            images,
            delivery: delivery(&ask),
        };
        let wish = Wish { id, key, text: message, asked, begin, conn, ear: None };
        let enqueued = ask.gateway.runs.enqueue(&ask.gateway, wish)?;
        // It has its place, so the next request may have one.
        drop(ask.slot.take());
        Arc::clone(enqueued.accepted().await?.run())
    };
    drop(ask.slot.take());
    if !run.is_over() {
        let mut accepted = json!({"runId": run.id, "status": "accepted", "acceptedAt": run.accepted});
        let ignored = without_effect(ask.params());
        if !ignored.is_empty() {
            accepted["ignored"] = ignored.into();
        }
        ask.interim(accepted);
    }
    run.over().await.answer()
}

/// The session that the parameters mean. Looks at the disk.
fn session(gateway: &Gateway, params: &Value) -> Result<SessionKey, Refusal> {
    let told = |refusal: Refusal| Refusal { message: format!("invalid agent params: {}", refusal.message), ..refusal };
    let agent = text(params, "agentId");
    if let Some(agent) = &agent {
        gateway.agents.get(Some(&agent_id(agent))).map_err(told)?;
    }
    let context = gateway.agents.context()?;
    let default = context.config.agents().default_agent().id.to_string();
    let Some(name) = text(params, "sessionKey") else {
        if let (Some(id), None) = (text(params, "sessionId"), &agent) {
            let new = || meant(&format!("explicit:{id}"), context.config.tree(), &default).map_err(told);
            return by_id(gateway, &id)?.map_or_else(new, Ok);
        }
        return Ok(main_session(&agent.as_deref().map_or(default, agent_id), context.config.tree()));
    };
    let key = meant(&name, context.config.tree(), &agent.as_deref().map_or(default, agent_id)).map_err(told)?;
    if let Some(agent) = agent.filter(|agent| agent_id(agent) != key.agent()) {
        let why = format!("agent \"{agent}\" does not match session key agent \"{}\"", key.agent());
        return Err(told(Refusal::invalid(why)));
    }
    gateway.agents.key(&key.to_string()).map_err(told)
}

/// The session of that id, if there is one. Clients may make ids up, and go on with them later.
fn by_id(gateway: &Gateway, id: &str) -> Result<Option<SessionKey>, Refusal> {
    for store in gateway.agents.stores()? {
        let entries = store.entries().unwrap_or_default();
        if let Some((key, _)) = entries.iter().find(|(_, entry)| entry["sessionId"].as_str() == Some(id)) {
            return gateway.agents.key(key).map(Some);
        }
    }
    Ok(None)
}

/// How a run ended, or that it has not yet.
async fn wait(ask: Ask) -> Answer {
    WAIT.check("agent.wait", ask.params())?;
    let id = text(ask.params(), "runId").unwrap_or_default();
    let patience = ask.params()["timeoutMs"].as_u64().map_or(PATIENCE.0, Duration::from_millis).min(PATIENCE.1);
    let not_yet = json!({"runId": id, "status": "timeout"});
    let Some(run) = ask.gateway.runs.get(&id) else { return Ok(not_yet) };
    let Ok(ended) = tokio::time::timeout(patience, run.over()).await else { return Ok(not_yet) };
    let (status, error) = match &ended.how {
        How::Done => ("ok", None),
        How::Stopped => ("error", Some("the run was stopped")),
        How::Failed(why) => ("error", Some(why.as_str())),
    };
    let mut answer = json!({"runId": id, "status": status, "endedAt": ended.at});
    if let Some(started) = ended.started {
        answer["startedAt"] = started.into();
    }
    if let Some(error) = error {
        answer["error"] = error.into();
    }
    Ok(answer)
}

/// Who an agent is, as far as the operator said.
async fn identity(ask: Ask) -> Answer {
    IDENTITY.check("agent.identity.get", ask.params())?;
    blocking(move || {
        let told = |why: String| Refusal::invalid(format!("invalid agent.identity.get params: {why}"));
        let context = ask.gateway.agents.context()?;
        let default = context.config.agents().default_agent().id.to_string();
        let mut agent = text(ask.params(), "agentId").map(|id| agent_id(&id));
        if let Some(name) = text(ask.params(), "sessionKey") {
            let key = meant(&name, context.config.tree(), &default).map_err(|refusal| told(refusal.message))?;
            if let Some(agent) = agent.filter(|agent| agent != key.agent()) {
                return Err(told(format!("agent \"{agent}\" does not match session key agent \"{}\"", key.agent())));
            }
            agent = Some(key.agent().to_owned());
        }
        let agent = agent.unwrap_or(default);
        let section = crate::agents::section(context.config.tree(), &agent);
        let ui = &context.config.tree()["ui"]["assistant"];
        let own = &section["identity"];
        let first = |values: [&Value; 2]| {
            values.into_iter().filter_map(Value::as_str).map(str::trim).find(|text| !text.is_empty()).map(str::to_owned)
        };
        let emoji = first([&own["emoji"], &Value::Null]);
        let mut identity = json!({
            "agentId": agent,
            "name": first([&ui["name"], &own["name"]]).unwrap_or_else(|| "Assistant".to_owned()),
            "avatar": first([&ui["avatar"], &own["avatar"]]).or_else(|| emoji.clone()).unwrap_or_else(|| "A".to_owned()),
        });
        if let Some(emoji) = emoji {
            identity["emoji"] = emoji.into();
        }
        Ok(identity)
    })
    .await?
}

/// A text that is not empty, if it was given.
pub(super) fn text(params: &Value, name: &str) -> Option<String> {
    params[name].as_str().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
}

/// What is said, and whether it begins a new session: `/new` and `/reset` do, whatever follows them.
pub(super) fn message(text: String) -> (String, Begin) {
    let trimmed = text.trim();
    let (command, rest) = trimmed.split_once(char::is_whitespace).unwrap_or((trimmed, ""));
    if command.eq_ignore_ascii_case("/new") || command.eq_ignore_ascii_case("/reset") {
        return (rest.trim().to_owned(), Begin::Anew);
    }
    (text, Begin::GoOn)
}

/// How much the model should think, if that was said.
pub(super) fn thinking(params: &Value) -> Result<Option<Thinking>, Refusal> {
    let Some(word) = text(params, "thinking") else { return Ok(None) };
    let known = Thinking::parse(&word.to_lowercase());
    known.map(Some).ok_or_else(|| {
        let word: String = word.chars().take(40).collect();
        Refusal::invalid(format!("invalid thinking level \"{word}\"; use off, minimal, low, medium, high or xhigh"))
    })
}

/// The images among the attachments of a request. They are decoded on a thread of their own.
pub(super) async fn with_images(ask: Ask) -> Result<(Ask, Arc<Vec<Image>>), Refusal> {
    if ask.params()["attachments"].as_array().is_none_or(Vec::is_empty) {
        return Ok((ask, Arc::default()));
    }
    blocking(move || images(ask.params()).map(|images| (ask, Arc::new(images)))).await?
}

/// The images among the attachments. What is no image is refused, so that nothing is left out in silence.
fn images(params: &Value) -> Result<Vec<Image>, Refusal> {
    let mut images = Vec::new();
    for (place, attachment) in params["attachments"].as_array().into_iter().flatten().enumerate() {
        let name = text(attachment, "fileName").unwrap_or_else(|| format!("attachment {}", place + 1));
        let refuse = |why: String| Refusal::invalid(format!("{}: {why}", name.chars().take(100).collect::<String>()));
        let content = attachment["content"].as_str().or_else(|| attachment["source"]["data"].as_str());
        let content = content.ok_or_else(|| refuse("content must be base64".to_owned()))?;
        images.push(Image::from_base64(content).map_err(|error| refuse(error.to_string()))?);
        image::check(&images).map_err(|error| Refusal::invalid(error.to_string()))?;
    }
    Ok(images)
}

/// Refuses what would go to a channel: this gateway has none, and the answer would not arrive.
fn refuse_delivery(params: &Value) -> Result<(), Refusal> {
    if params["deliver"] == true && params["bestEffortDeliver"] != true {
        return Err(Refusal::invalid(
            "deliver: this gateway has no channels to deliver to; leave it out and read the answer from the result",
        ));
    }
    if params["internalEvents"].as_array().is_some_and(|events| !events.is_empty()) {
        return Err(Refusal::invalid("internalEvents are not supported; put the information into message"));
    }
    Ok(())
}

/// The parameters that were given and have no effect here.
fn without_effect(params: &Value) -> Vec<&'static str> {
    let names = ["to", "replyTo", "channel", "replyChannel", "accountId", "replyAccountId", "threadId", "lane"];
    names.into_iter().filter(|name| text(params, name).is_some()).collect()
}

/// The connection, if it can show what tools do and does not hear of that by following the session.
pub(super) fn hears_of_tools(ask: &Ask) -> Option<String> {
    (ask.guest.has(TOOL_EVENTS) && !ask.guest.wants_deltas()).then(|| ask.guest.conn.clone())
}

/// When the client is told of a reply.
pub(super) fn delivery(ask: &Ask) -> Delivery {
    if ask.guest.has(WHOLE_REPLIES) { Delivery::Whole } else { Delivery::Live }
}

/// A client that starts a run follows its session, if the client follows sessions at all.
pub(super) fn follow(ask: &Ask, key: &SessionKey) -> Result<(), Refusal> {
    let (hub, key) = (&ask.gateway.hub, key.to_string());
    if !ask.guest.wants_deltas() || hub.follows(&ask.guest, &key) || super::sessions::follow::follow(ask, &key) {
        return Ok(());
    }
    Err(Refusal::invalid(format!(
        "this connection already follows {MAX_FOLLOWED} sessions; unsubscribe from some with sessions.unsubscribe"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attachments_are_images_or_refused() {
        let png = "iVBORw0KGgo=";
        let given = |one: Value| json!({"attachments": [one]});
        let table = [
            given(json!({"type": "image", "mimeType": "image/png", "fileName": "a.png", "content": png})),
            given(json!({"content": format!("data:image/png;base64,{png}")})),
            given(json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": png}})),
        ];
        for params in table {
            let images = images(&params).expect("an image");
            assert_eq!((images.len(), images[0].mime_type.as_str()), (1, "image/png"), "{params}");
        }
        for wrong in [json!({"fileName": "a.pdf", "content": "JVBERi0xLjQ="}), json!({"fileName": "a.pdf"}), json!(1)] {
            let refused = images(&given(wrong.clone())).expect_err("no image");
            assert!(wrong.is_number() || refused.message.starts_with("a.pdf: "), "{refused:?}");
        }
        assert_eq!(images(&json!({})), Ok(Vec::new()));
    }

    #[test]
    fn what_would_not_be_delivered_is_refused() {
        assert!(refuse_delivery(&json!({"deliver": true, "channel": "telegram"})).is_err());
        assert!(refuse_delivery(&json!({"internalEvents": [{}]})).is_err());
        assert_eq!(refuse_delivery(&json!({"deliver": false, "internalEvents": []})), Ok(()));
        assert_eq!(without_effect(&json!({"channel": "x", "lane": "y", "to": " "})), ["channel", "lane"]);
    }

    #[test]
    fn a_new_session_is_asked_for_by_a_word() {
        let table = [
            ("/new", "", Begin::Anew),
            (" /Reset  go on ", "go on", Begin::Anew),
            ("/newer", "/newer", Begin::GoOn),
            ("say /new", "say /new", Begin::GoOn),
        ];
        for (given, said, begin) in table {
            assert_eq!(message(given.to_owned()), (said.to_owned(), begin), "{given:?}");
        }
    }
}
