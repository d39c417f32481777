//! Hello: what is a client told when it is let in?

use serde_json::{Value, json};

use crate::gateway::Gateway;
use crate::hub::{Ceiling, Guest};
use crate::methods;
use crate::pairing::DeviceToken;
use crate::wire::{MAX_FRAME, PROTOCOL};

/// The answer to `connect`.
pub(super) fn hello(gateway: &Gateway, guest: &Guest, token: Option<&DeviceToken>) -> Value {
    let millis = |duration: std::time::Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let mut hello = json!({
        "type": "hello-ok",
        "protocol": PROTOCOL,
        "server": {"version": env!("CARGO_PKG_VERSION"), "connId": guest.conn},
        "features": {"methods": methods::names(), "events": methods::EVENTS},
        "snapshot": {
            "presence": gateway.presence.list(),
            "health": gateway.presence.health(),
            "stateVersion": gateway.presence.version(),
            "uptimeMs": millis(gateway.started.elapsed()),
            "configPath": gateway.locations.config_path,
            "stateDir": gateway.locations.state_dir,
            "sessionDefaults": session_defaults(gateway),
            "authMode": gateway.guard.mode(),
        },
        "policy": {
            "maxPayload": MAX_FRAME,
            "maxBufferedBytes": gateway.limits.buffered,
            "tickIntervalMs": millis(gateway.limits.tick),
        },
    });
    if let Some(token) = token {
        hello["auth"] = auth(token);
    } else if let Ceiling::Listed(_) = guest.ceiling {
        // A proxy's user may have got less than it asked for.
        hello["auth"] = json!({"role": guest.role.as_str(), "scopes": guest.scopes.names()});
    }
    hello
}

/// The token of a device, as the device itself is told of it.
pub(crate) fn auth(token: &DeviceToken) -> Value {
    json!({
        "deviceToken": token.token,
        "role": token.role,
        "scopes": token.scopes,
        "issuedAtMs": token.rotated_at_ms.unwrap_or(token.created_at_ms),
    })
}

/// Which session is meant when none is named.
fn session_defaults(gateway: &Gateway) -> Value {
    let session = &gateway.session;
    let main_key = session["mainKey"].as_str().map(str::trim).filter(|key| !key.is_empty()).unwrap_or("main");
    let main_key = main_key.to_lowercase();
    let scope = session["scope"].as_str().unwrap_or("per-sender");
    let agent = &gateway.default_agent;
    let main = if scope == "global" { "global".to_owned() } else { format!("agent:{agent}:{main_key}") };
    json!({"defaultAgentId": agent, "mainKey": main_key, "mainSessionKey": main, "scope": scope})
}
