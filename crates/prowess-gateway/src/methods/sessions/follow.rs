//! `sessions.subscribe` and `sessions.unsubscribe`: of which sessions does a client hear?

use std::sync::Arc;

use serde_json::{Value, json};

use crate::aside::blocking;
use crate::hub::{EVERY_SESSION, MAX_FOLLOWED};
use crate::methods::{Answer, Ask};
use crate::params::{Kind, Shape, TEXT, required, shape};
use crate::runs::Teller;
use crate::wire::Refusal;

const KEYS: Shape = shape(&[required("keys", Kind::List { of: &TEXT, min: 1 })]);

/// The client hears of these sessions from now on. What a run under way there has said so far is sent at once.
pub(super) async fn subscribe(ask: Ask) -> Answer {
    let ask = with_deltas(ask)?;
    let keys = keys(&ask).await?;
    for key in &keys {
        if !follow(&ask, key) {
            return Err(Refusal::invalid(format!("a connection can follow at most {MAX_FOLLOWED} sessions")));
        }
    }
    Ok(json!({"ok": true, "keys": keys}))
}

/// The client no longer hears of these sessions.
pub(super) async fn unsubscribe(ask: Ask) -> Answer {
    let ask = with_deltas(ask)?;
    let keys = keys(&ask).await?;
    for key in &keys {
        ask.gateway.hub.unfollow(&ask.guest, key);
    }
    Ok(json!({"ok": true, "keys": keys}))
}

/// The client follows the session, or all of them, and is sent what it missed. Says whether there is room for that.
pub(in crate::methods) fn follow(ask: &Ask, key: &str) -> bool {
    let running = || ask.gateway.runs.running(Some(key).filter(|key| *key != EVERY_SESSION));
    let before = running();
    if !before.iter().all(|teller| teller.catch_up(&ask.guest, key)) || !ask.gateway.hub.follow(&ask.guest, key) {
        return false;
    }
    // A run may have begun in between.
    let is_new = |teller: &&Arc<Teller>| !before.iter().any(|known| Arc::ptr_eq(known, teller));
    running().iter().filter(is_new).all(|teller| teller.catch_up(&ask.guest, key))
}

fn with_deltas(ask: Ask) -> Result<Ask, Refusal> {
    KEYS.check(&ask.request.method, ask.params())?;
    if ask.guest.wants_deltas() {
        return Ok(ask);
    }
    Err(Refusal::invalid(
        "this client already receives every session; connect with the capability \"event-deltas\" to choose sessions",
    ))
}

/// The sessions that are meant, by their whole keys.
async fn keys(ask: &Ask) -> Result<Vec<String>, Refusal> {
    let (gateway, params) = (Arc::clone(&ask.gateway), ask.params().clone());
    blocking(move || {
        let names = params["keys"].as_array().into_iter().flatten().filter_map(Value::as_str).take(MAX_FOLLOWED);
        let meant = |name: &str| match name.trim() {
            EVERY_SESSION => Ok(EVERY_SESSION.to_owned()),
            name => gateway.agents.key(name).map(|key| key.to_string()),
        };
        names.map(meant).collect()
    })
    .await?
}
