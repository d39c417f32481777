//! Methods: what can be asked for, and by whom?
//!
//! Each file below has the methods of one matter, as a table of names, who may call them, and the function that answers.

mod agent;
mod agents;
mod approval;
mod approvals;
mod chat;
pub(crate) mod config;
mod device;
mod egress;
mod given;
pub(crate) mod health;
mod logs;
mod models;
mod node;
mod presence;
mod prompt;
mod scopes;
mod sessions;
mod skills;
mod tools;
mod usage;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Utf8Bytes;

use crate::gateway::Gateway;
use crate::hub::{Guest, Urgency};
use crate::metrics::Outcome;
use crate::params::Shape;
use crate::scope::{Access, Role};
use crate::sequence::Slot;
use crate::telemetry::{Kind, Span};
use crate::throttle::Verdict;
use crate::wire::{self, Refusal, Request};

/// One request, and all that is needed to answer it.
pub(crate) struct Ask {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) guest: Arc<Guest>,
    pub(crate) request: Request,
    /// Its place among the requests of its connection, if those keep their order. A handler drops it as soon as the next
    /// one may go on.
    pub(crate) slot: Option<Slot>,
}

impl Ask {
    /// Tells how far it is; the answer itself comes later, under the same id.
    pub(crate) fn interim(&self, payload: Value) {
        let text = Utf8Bytes::from(wire::answer(&self.request.id, &Ok(payload)));
        self.guest.outbox.send(text, Urgency::Needed);
    }

    /// What was given.
    pub(crate) fn params(&self) -> &Value {
        &self.request.params
    }

    /// What was given, if it is of that shape.
    pub(crate) fn checked(&self, shape: &Shape) -> Result<&Value, Refusal> {
        shape.check(&self.request.method, &self.request.params)?;
        Ok(&self.request.params)
    }
}

/// What comes of a request.
pub(crate) type Answer = Result<Value, Refusal>;

/// Answers a request.
pub(crate) type Handle = fn(Ask) -> Pin<Box<dyn Future<Output = Answer> + Send>>;

/// One thing that can be asked for.
pub(crate) struct Method {
    pub(crate) name: &'static str,
    pub(crate) access: Access,
    pub(crate) handle: Handle,
}

/// A row of a table of methods: its name, who may call it, and the async function that answers.
macro_rules! method {
    ($name:literal, $access:expr, $handle:path) => {
        crate::methods::Method { name: $name, access: $access, handle: |ask| Box::pin($handle(ask)) }
    };
}
pub(crate) use method;

/// All methods, in the order in which clients are told of them.
const TABLES: &[&[Method]] = &[
    health::METHODS,
    logs::METHODS,
    config::METHODS,
    skills::METHODS,
    agent::METHODS,
    agents::METHODS,
    approval::METHODS,
    approvals::METHODS,
    chat::METHODS,
    device::METHODS,
    egress::METHODS,
    models::METHODS,
    node::METHODS,
    presence::METHODS,
    prompt::METHODS,
    scopes::METHODS,
    sessions::METHODS,
    tools::METHODS,
    usage::METHODS,
];

/// The events that clients may hear.
pub(crate) const EVENTS: &[&str] = &[
    "connect.challenge",
    "agent",
    "chat",
    "presence",
    "tick",
    "shutdown",
    "health",
    "heartbeat",
    "node.pair.requested",
    "node.pair.resolved",
    "node.invoke.request",
    "node.invoke.cancel",
    "device.pair.requested",
    "device.pair.resolved",
    "exec.approval.requested",
    "exec.approval.resolved",
    "egress.traffic",
    "skills.changed",
];

/// The names of all methods.
pub(crate) fn names() -> Vec<&'static str> {
    TABLES.iter().copied().flatten().map(|method| method.name).collect()
}

/// Methods that change how the gateway works; a client may call them only now and then.
const CHANGES: &[&str] = &["config.apply", "config.patch", "update.run"];

/// Methods whose requests take effect in the order in which a client sent them.
const ORDERED: &[&str] = &[
    "agent",
    "chat.abort",
    "chat.inject",
    "chat.send",
    "sessions.delete",
    "sessions.patch",
    "sessions.reset",
    "sessions.subscribe",
    "sessions.unsubscribe",
];

/// Whether requests of `method` keep the order in which a client sent them.
pub(crate) fn keeps_order(method: &str) -> bool {
    ORDERED.contains(&method)
}

/// Answers one request, whatever comes of it.
pub(crate) async fn answer(ask: Ask) {
    let (gateway, guest, id) = (Arc::clone(&ask.gateway), Arc::clone(&ask.guest), ask.request.id.clone());
    let account = Account::open(&ask);
    let result = match find(&ask).and_then(|handle| within_allowance(&ask).map(|()| handle)) {
        Ok(handle) => tokio::select! {
            result = in_order(handle, ask) => result,
            () = ending(&gateway) => Err(Refusal::unavailable("the gateway is shutting down").retry_after(1000)),
        },
        Err(refusal) => Err(refusal),
    };
    account.close(&result);
    guest.outbox.send(Utf8Bytes::from(wire::answer(&id, &result)), Urgency::Needed);
}

/// Handles a request when the ones before it have their places.
async fn in_order(handle: Handle, mut ask: Ask) -> Answer {
    if let Some(slot) = &mut ask.slot {
        slot.reached().await;
    }
    handle(ask).await
}

/// When the gateway ends, whatever is under way has a moment to come to its own end.
async fn ending(gateway: &Gateway) {
    gateway.stop.cancelled().await;
    tokio::time::sleep(gateway.limits.grace).await;
}

/// One request in the numbers and traces.
struct Account {
    gateway: Arc<Gateway>,
    /// The method, if it is one of ours: what clients call theirs stays out of traces.
    method: &'static str,
    began: Instant,
    span: Option<Span>,
}

impl Account {
    fn open(ask: &Ask) -> Self {
        let known = TABLES.iter().copied().flatten().find(|method| method.name == ask.request.method);
        let method = known.map_or("other", |method| method.name);
        let span = ask.gateway.telemetry.span("rpc", Kind::Server);
        let span = span.map(|span| {
            span.attribute("rpc.system", "openclaw")
                .attribute("rpc.method", method)
                .attribute("client.role", ask.guest.role.as_str())
        });
        Self { gateway: Arc::clone(&ask.gateway), method, began: Instant::now(), span }
    }

    fn close(self, result: &Answer) {
        let outcome = Outcome::of(result);
        self.gateway.metrics.request_ended(self.method, outcome, self.began);
        let span = self.span.map(|span| match result {
            Ok(_) => span,
            Err(refusal) => span.failed(refusal.code.as_str()),
        });
        self.gateway.telemetry.ended(span);
        tracing::debug!(method = self.method, outcome = outcome.word(), "answered");
    }
}

fn find(ask: &Ask) -> Result<Handle, Refusal> {
    let name = &ask.request.method;
    let method = TABLES.iter().copied().flatten().find(|method| method.name == name);
    let role = ask.guest.role;
    let is_unauthorized = match method.map(|method| method.access) {
        None | Some(Access::Operator(_)) => role == Role::Node,
        Some(Access::Node) => role == Role::Operator,
        Some(Access::Anybody | Access::NodeOr(_)) => false,
    };
    if is_unauthorized {
        ask.guest.strike();
        return Err(Refusal::invalid(format!("unauthorized role: {}", role.as_str())));
    }
    ask.guest.behaved();
    let method = method.ok_or_else(|| Refusal::invalid(format!("unknown method: {}", clipped(name))))?;
    let scope = match method.access {
        Access::Operator(scope) | Access::NodeOr(scope) if role == Role::Operator => scope,
        Access::Anybody | Access::Node | Access::NodeOr(_) | Access::Operator(_) => return Ok(method.handle),
    };
    if ask.guest.may(scope) {
        return Ok(method.handle);
    }
    Err(Refusal::invalid(format!("missing scope: {}", scope.as_str())))
}

fn within_allowance(ask: &Ask) -> Result<(), Refusal> {
    let method = ask.request.method.as_str();
    if !CHANGES.contains(&method) {
        return Ok(());
    }
    let guest = &ask.guest;
    let caller = match (&guest.device, &guest.remote_ip) {
        (None, None) => format!("conn={}", guest.conn),
        (device, ip) => format!("{}|{}", device.as_deref().unwrap_or_default(), ip.as_deref().unwrap_or_default()),
    };
    match ask.gateway.changes.take(&caller, prowess_agent::message::now()) {
        Verdict::Go => Ok(()),
        Verdict::Wait(millis) => {
            let seconds = millis.div_ceil(1000);
            let refusal = Refusal::unavailable(format!("rate limit exceeded for {method}; retry after {seconds}s"));
            Err(refusal.retry_after(millis).details(json!({"method": method, "limit": "3 per 60s"})))
        }
    }
}

/// As much of a name from outside as is worth repeating.
fn clipped(name: &str) -> String {
    name.chars().take(100).collect()
}

/// Somebody was let in.
pub(crate) fn joined(gateway: &Arc<Gateway>, guest: &Arc<Guest>) {
    if guest.role == Role::Node {
        gateway.nodes.join(guest, &gateway.settings.section["nodes"]);
    }
    tracing::debug!(conn = guest.conn, role = guest.role.as_str(), "connected");
}

/// Somebody is gone.
pub(crate) fn left(gateway: &Arc<Gateway>, guest: &Arc<Guest>) {
    if guest.role == Role::Node {
        gateway.nodes.leave(guest);
    }
    tracing::debug!(conn = guest.conn, "disconnected");
}
