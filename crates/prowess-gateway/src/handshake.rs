//! The handshake: who is it, and may they come in?
//!
//! The order of the checks is part of the protocol: what is asked, which version, as what, from which page, with which
//! secret, on which device, and whether that device was approved.

mod connect;
mod hello;
mod pair;

use std::sync::Arc;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use prowess_agent::message::now;
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;

use crate::aside::blocking;
use crate::auth::{self, Denied};
use crate::caller::Caller;
use crate::connection::Link;
use crate::device::{Claim, Statement};
use crate::gateway::Gateway;
use crate::hub::{Audience, Ceiling, Conduct, Farewell, Guest, Mail, Outbox, Urgency};
use crate::pairing::DeviceToken;
use crate::scope::{Role, Scope};
use crate::wire::{self, Code, Malformed, PROTOCOL, Refusal, Request};
use connect::{Candidate, Connect, Device};
pub(crate) use hello::auth as told_token;
pub(crate) use pair::admit as admit_device;
use pair::pair;

/// A client that is let in.
pub(crate) struct Entered {
    pub(crate) guest: Arc<Guest>,
    /// What waits to be written to it.
    pub(crate) mail: Mail,
    request: String,
    token: Option<DeviceToken>,
}

impl Entered {
    /// Its device, if it was let in because that is paired.
    pub(crate) fn paired(&self) -> Option<&str> {
        self.token.as_ref()?;
        self.guest.device.as_deref()
    }

    /// What it is told first.
    pub(crate) fn welcome(&self, gateway: &Gateway) -> String {
        wire::answer(&self.request, &Ok(hello::hello(gateway, &self.guest, self.token.as_ref())))
    }
}

/// A client that is not let in: the answer to it, and the last word.
struct Turned {
    refusal: Refusal,
    code: u16,
}

impl From<Refusal> for Turned {
    fn from(refusal: Refusal) -> Self {
        Self { refusal, code: 1008 }
    }
}

/// Challenges, listens, and lets in or sends away.
pub(crate) async fn greet(
    gateway: &Arc<Gateway>,
    caller: &Caller,
    writer: &mut SplitSink<Link, Message>,
    reader: &mut SplitStream<Link>,
) -> Result<Entered, Farewell> {
    let gone = |_| Farewell::new(1000, "");
    let nonce = uuid::Uuid::new_v4().to_string();
    let challenge = wire::event("connect.challenge", &json!({"nonce": nonce, "ts": now()}), None);
    writer.send(Message::Text(challenge.into())).await.map_err(gone)?;
    let request = listen(caller, reader).await?;
    match admit(gateway, caller, &nonce, &request).await {
        Ok((guest, mail, token)) => Ok(Entered { guest, mail, request: request.id, token }),
        Err(Turned { refusal, code }) => {
            log(caller, &refusal.message);
            let farewell = Farewell::new(code, &refusal.message);
            writer.send(Message::Text(wire::answer(&request.id, &Err(refusal)).into())).await.map_err(gone)?;
            Err(farewell)
        }
    }
}

/// The first thing that a client says.
async fn listen(caller: &Caller, reader: &mut SplitStream<Link>) -> Result<Request, Farewell> {
    loop {
        let text = match reader.next().await {
            Some(Ok(Message::Text(text))) => text,
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => continue,
            Some(Ok(Message::Binary(_))) => {
                log(caller, "a binary message");
                return Err(Farewell::new(1003, "text expected"));
            }
            Some(Err(_)) => {
                log(caller, "a message that is too large or broken");
                return Err(Farewell::new(1009, "message too big"));
            }
            Some(Ok(Message::Close(_))) | None => return Err(Farewell::new(1000, "")),
        };
        return wire::parse(&text).map_err(|malformed| {
            log(caller, malformed.as_str());
            match malformed {
                Malformed::NotJson | Malformed::TooDeep => Farewell::new(1000, ""),
                Malformed::Refused { .. } => Farewell::new(1008, "invalid request frame"),
            }
        });
    }
}

/// One line for each client that is sent away. The secrets that it showed are not repeated.
fn log(caller: &Caller, why: &str) {
    tracing::warn!(from = %caller.peer, "connection refused: {why}");
}

type Admitted = (Arc<Guest>, Mail, Option<DeviceToken>);

async fn admit(gateway: &Arc<Gateway>, caller: &Caller, nonce: &str, request: &Request) -> Result<Admitted, Turned> {
    if request.method != "connect" {
        return Err(Refusal::invalid("invalid handshake: first request must be connect").into());
    }
    let mut connect = Connect::read(&request.params)?;
    if connect.protocols.0 > PROTOCOL || connect.protocols.1 < PROTOCOL {
        let refusal = Refusal::invalid("protocol mismatch").details(json!({"expectedProtocol": PROTOCOL}));
        return Err(Turned { refusal, code: 1002 });
    }
    let role = Role::parse(&connect.role).ok_or_else(|| Refusal::invalid("invalid role"))?;
    check_page(gateway, caller, &connect)?;
    let method = recognise(gateway, caller, &connect, role, nonce).await?;
    // What was signed is what was said; what others see is one line each.
    connect.about.tidy();
    if let Some(allowed) = gateway.settings.proxy_scopes(caller).filter(|_| method.method == auth::Method::Proxy) {
        connect.keep_scopes(allowed);
    }
    let (token, ceiling) = pair(gateway, caller, &connect, role, method).await?;
    let (guest, mail) = enter(gateway, caller, connect, role, ceiling);
    Ok((guest, mail, token))
}

/// Pages in a browser are only listened to if they are ours or were listed, whatever they know.
fn check_page(gateway: &Gateway, caller: &Caller, connect: &Connect) -> Result<(), Refusal> {
    let is_page = caller.origin.is_some() || connect.is_page() || connect.is_webchat();
    if !is_page || caller.is_welcome_page(&gateway.settings.allowed_origins) {
        return Ok(());
    }
    Err(Refusal::invalid(
        "origin not allowed (open the page that the gateway serves, or list the page in gateway.controlUi.allowedOrigins)",
    ))
}

/// How somebody was recognised.
struct Recognised {
    method: auth::Method,
    /// It showed the gateway's own secret.
    is_shared: bool,
    /// The public key of its device.
    key: Option<String>,
}

/// Finds out whether it knows a secret and has the device that it shows.
async fn recognise(
    gateway: &Arc<Gateway>,
    caller: &Caller,
    connect: &Connect,
    role: Role,
    nonce: &str,
) -> Result<Recognised, Refusal> {
    let now = now();
    let guard = &gateway.guard;
    // Either of both first looks whether it may be tried at all.
    let checked = match connect.candidate() {
        Some(_) => guard.compare(connect.shown(), caller, now),
        None => guard.check(connect.shown(), caller, now),
    };
    let is_shared = matches!(checked, Ok(auth::Method::Token | auth::Method::Password | auth::Method::Proxy));
    let Some(device) = &connect.device else {
        check_without_device(gateway, caller, connect, role, checked)?;
        let method = checked.map_err(|denied| refuse(denied, connect))?;
        return Ok(Recognised { method, is_shared, key: None });
    };
    let key = prove(connect, device, role, nonce, now)?;
    let method = match (checked, connect.candidate()) {
        (Ok(method), _) => method,
        (Err(denied), None) => return Err(refuse(denied, connect)),
        (Err(denied), Some(candidate)) => {
            let known = by_device_token(gateway, caller, connect, role, denied, &candidate).await;
            // Only what turned out to be the device's own token was no guess at the gateway's secret.
            let was_its_own = denied == Denied::TokenMismatch && connect.shows_as_token(&candidate);
            if known.is_err() || !was_its_own {
                guard.guessed(denied, caller, now);
            }
            known?;
            auth::Method::DeviceToken
        }
    };
    Ok(Recognised { method, is_shared, key: Some(key) })
}

fn refuse(denied: Denied, connect: &Connect) -> Refusal {
    tracing::debug!(client = connect.about.id, reason = denied.reason(), "not recognised");
    denied.refusal(connect.asker())
}

/// Only operators who know the gateway's secret may come without a device; where there is none to know, those on this
/// machine.
fn check_without_device(
    gateway: &Gateway,
    caller: &Caller,
    connect: &Connect,
    role: Role,
    checked: Result<auth::Method, Denied>,
) -> Result<(), Refusal> {
    let may_page = caller.is_local || gateway.settings.pages_without_device || checked == Ok(auth::Method::Proxy);
    if connect.is_page() && !may_page {
        return Err(Refusal::invalid(
            "control ui requires device identity (without one, open the page on the gateway's machine, or through a \
             tunnel: ssh -N -L PORT:127.0.0.1:PORT HOST)",
        )
        .details(json!({"code": "CONTROL_UI_DEVICE_IDENTITY_REQUIRED"})));
    }
    let is_shared = matches!(checked, Ok(auth::Method::Token | auth::Method::Password | auth::Method::Proxy));
    let is_open_here = checked == Ok(auth::Method::None) && caller.is_local;
    if role == Role::Operator && (is_shared || is_open_here) {
        return Ok(());
    }
    if let Err(denied) = checked
        && connect.has_shared_secret()
    {
        return Err(refuse(denied, connect));
    }
    let refusal = Refusal::new(Code::NotPaired, "device identity required");
    Err(refusal.details(json!({"code": "DEVICE_IDENTITY_REQUIRED"})))
}

fn prove(connect: &Connect, device: &Device, role: Role, nonce: &str, now: u64) -> Result<String, Refusal> {
    let about = &connect.about;
    let statement = Statement {
        device: &device.id,
        client: &about.id,
        mode: &about.mode,
        role: role.as_str(),
        scopes: &connect.scopes,
        signed_at: device.signed_at,
        token: connect.signed_token(),
        nonce: &device.nonce,
        platform: &about.platform,
        family: about.device_family.as_deref().unwrap_or_default(),
    };
    let claim = Claim { public_key: &device.public_key, signature: &device.signature };
    statement.prove(claim, nonce, now).map_err(crate::device::Unproven::refusal)
}

/// The gateway's secret was wrong or missing, but there is a token that may be the device's.
async fn by_device_token(
    gateway: &Arc<Gateway>,
    caller: &Caller,
    connect: &Connect,
    role: Role,
    denied: Denied,
    candidate: &Candidate<'_>,
) -> Result<(), Refusal> {
    let now = now();
    let (token, denied) = match candidate {
        Candidate::Named(token) => ((*token).to_owned(), Denied::DeviceTokenMismatch),
        Candidate::Perhaps(token) => ((*token).to_owned(), denied),
    };
    gateway.guard.may_try_device(caller, now).map_err(|denied| refuse(denied, connect))?;
    let device = connect.device.as_ref().map(|device| device.id.clone()).unwrap_or_default();
    let (pairing, scopes) = (Arc::clone(&gateway.pairing), connect.scopes.clone());
    let known = blocking(move || pairing.knows_token(&device, role, &scopes, &token, now)).await?;
    let known = known.map_err(|error| Refusal::unavailable(error.to_string()))?;
    let outcome = if known { Ok(()) } else { Err(denied) };
    gateway.guard.tried_device(outcome, caller, now);
    outcome.map_err(|denied| refuse(denied, connect))
}

/// Tells those who may let devices in.
pub(crate) fn tell_pairing(gateway: &Gateway, name: &str, payload: &serde_json::Value) {
    gateway.hub.tell(Audience::With(Scope::Pairing), name, payload, Urgency::Droppable);
}

fn enter(gateway: &Gateway, caller: &Caller, connect: Connect, role: Role, ceiling: Ceiling) -> (Arc<Guest>, Mail) {
    let (outbox, mail) = Outbox::new(gateway.limits.buffered);
    let trimmed = connect.commands.iter().map(|command| command.trim()).filter(|command| !command.is_empty());
    let guest = Guest {
        conn: uuid::Uuid::new_v4().to_string(),
        role,
        scopes: connect.scopes.iter().filter_map(|name| Scope::parse(name.trim())).collect(),
        ceiling,
        device: connect.device.map(|device| device.id),
        user: caller.user.clone(),
        caps: connect.caps,
        commands: if role == Role::Node { trimmed.map(str::to_owned).collect() } else { Vec::new() },
        path_env: connect.path_env,
        permissions: connect.permissions,
        remote_ip: caller.shown_ip().filter(|_| !caller.is_local),
        connected_at: now(),
        about: connect.about,
        outbox,
        conduct: Conduct::default(),
    };
    (Arc::new(guest), mail)
}
