//! Asking a node: how does every request get exactly one end?

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use thiserror::Error;
use tokio::sync::oneshot;

use super::registry::{Nodes, Waiting};
use crate::hub::{Audience, Guest, Urgency};
use crate::metrics::Ended;
use crate::wire::Refusal;

/// How long an answer may take when nobody says otherwise.
const PATIENCE: Duration = Duration::from_secs(30);

/// The longest that anybody waits.
pub(crate) const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// How many requests may be open.
const MAX_WAITING: usize = 4096;

/// The longest answer that is taken.
const MAX_PAYLOAD: usize = 8 * 1024 * 1024;

/// What is asked of a node.
#[derive(Debug, Clone)]
pub(crate) struct Invocation {
    pub(crate) node: String,
    pub(crate) command: String,
    pub(crate) params: Value,
    pub(crate) timeout: Duration,
    /// Under which name the node does it only once.
    pub(crate) key: String,
}

impl Invocation {
    /// With the usual deadline, and a name of its own.
    pub(crate) fn new(node: &str, command: &str, params: Value) -> Self {
        Self {
            node: node.to_owned(),
            command: command.to_owned(),
            params,
            timeout: PATIENCE,
            key: uuid::Uuid::new_v4().to_string(),
        }
    }

    /// With another deadline.
    pub(crate) fn timeout(self, timeout: Duration) -> Self {
        Self { timeout: timeout.min(LONGEST), ..self }
    }

    /// With a name that was given to it.
    pub(crate) fn key(self, key: &str) -> Self {
        Self { key: key.to_owned(), ..self }
    }
}

/// What a node answered.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reply {
    pub(crate) payload: Value,
    /// As it came, if it came as text.
    pub(crate) payload_json: Option<String>,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Error)]
pub(crate) enum InvokeError {
    /// It is not here.
    #[error("node not connected")]
    NotConnected,
    /// It went away meanwhile.
    #[error("Error: node disconnected ({0})")]
    Disconnected(String),
    /// It took too long.
    #[error("TIMEOUT: node invoke timed out")]
    TimedOut,
    /// There are too many requests.
    #[error("too many requests are waiting for nodes; try again later")]
    TooMany,
    /// It said no.
    #[error("{code}: {message}")]
    Node {
        /// In one word.
        code: String,
        /// In a sentence.
        message: String,
    },
}

impl InvokeError {
    /// As it is answered.
    pub(crate) fn refusal(&self) -> Refusal {
        let refusal = Refusal::unavailable(self.to_string());
        match self {
            Self::NotConnected => refusal.details(json!({"code": "NOT_CONNECTED"})),
            Self::Node { code, message } => refusal.details(json!({"nodeError": {"code": code, "message": message}})),
            Self::TimedOut => {
                let error = json!({"code": "TIMEOUT", "message": "node invoke timed out"});
                refusal.details(json!({"nodeError": error}))
            }
            Self::Disconnected(_) | Self::TooMany => refusal,
        }
    }
}

/// Tells the node when nobody waits any more.
struct Cancel<'a> {
    nodes: &'a Nodes,
    id: String,
    node: String,
    conn: String,
}

impl Drop for Cancel<'_> {
    fn drop(&mut self) {
        // When the gateway ends, it is up to the node whether its commands go on.
        if self.nodes.stop.is_cancelled() {
            return;
        }
        if self.nodes.lock().waiting.remove(&self.id).is_none() {
            return;
        }
        let payload = json!({"id": self.id, "nodeId": self.node});
        let conn = [self.conn.clone()];
        self.nodes.hub.tell(Audience::Only(&conn), "node.invoke.cancel", &payload, Urgency::Needed);
    }
}

impl Nodes {
    /// Asks a node and waits for its answer. Whoever stops waiting takes the request back.
    pub(crate) async fn invoke(&self, invocation: Invocation) -> Result<Reply, InvokeError> {
        let node = self.get(&invocation.node).ok_or(InvokeError::NotConnected)?;
        let conn = node.guest.conn.clone();
        let began = Instant::now();
        let id = uuid::Uuid::new_v4().to_string();
        let (reply, answer) = oneshot::channel();
        {
            let mut state = self.lock();
            if state.waiting.len() >= MAX_WAITING {
                return Err(InvokeError::TooMany);
            }
            // A connection that was replaced since then has no one to end what waits for it.
            if !state.nodes.get(&node.id).is_some_and(|now| Arc::ptr_eq(now, &node)) {
                return Err(InvokeError::Disconnected(invocation.command));
            }
            let waiting = Waiting { conn: conn.clone(), command: invocation.command.clone(), reply };
            state.waiting.insert(id.clone(), waiting);
        }
        let cancel = Cancel { nodes: self, id: id.clone(), node: node.id.clone(), conn: conn.clone() };
        let params = if invocation.params.is_null() { Value::Null } else { invocation.params.to_string().into() };
        let payload = json!({
            "id": id,
            "nodeId": node.id,
            "command": invocation.command,
            "paramsJSON": params,
            "timeoutMs": u64::try_from(invocation.timeout.as_millis()).unwrap_or(u64::MAX),
            "idempotencyKey": invocation.key,
        });
        self.hub.tell(Audience::Only(&[conn]), "node.invoke.request", &payload, Urgency::Needed);
        let answered = tokio::time::timeout(invocation.timeout, answer).await;
        drop(cancel);
        let answer = match answered {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(InvokeError::Disconnected(invocation.command)),
            Err(_) => Err(InvokeError::TimedOut),
        };
        self.metrics.invoke_ended(if answer.is_ok() { Ended::Done } else { Ended::Failed }, began.elapsed());
        answer
    }

    /// Takes a node's answer. Tells whether anybody waited for it on that connection.
    pub(crate) fn answered(&self, guest: &Guest, params: &Value) -> bool {
        let Some(id) = params["id"].as_str() else { return false };
        let mut state = self.lock();
        if state.waiting.get(id).is_none_or(|waiting| waiting.conn != guest.conn) {
            return false;
        }
        let Some(waiting) = state.waiting.remove(id) else { return false };
        drop(state);
        // Who no longer waits does not mind.
        let _ = waiting.reply.send(read(params));
        true
    }
}

fn read(params: &Value) -> Result<Reply, InvokeError> {
    let failed = |code: &str, message: &str| InvokeError::Node { code: code.to_owned(), message: message.to_owned() };
    if params["ok"] != true {
        let error = &params["error"];
        let code = error["code"].as_str().unwrap_or("UNAVAILABLE");
        return Err(failed(code, error["message"].as_str().unwrap_or("node invoke failed")));
    }
    let text = params["payloadJSON"].as_str();
    if text.is_some_and(|text| text.len() > MAX_PAYLOAD) {
        return Err(failed("UNAVAILABLE", "the node's answer is too large"));
    }
    let payload = match text {
        Some(text) => serde_json::from_str(text).unwrap_or_else(|_| json!({"payloadJSON": text})),
        None => params["payload"].clone(),
    };
    Ok(Reply { payload, payload_json: text.map(str::to_owned) })
}
