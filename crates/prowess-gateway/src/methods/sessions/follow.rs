//! `sessions.subscribe` and `sessions.unsubscribe`: of which sessions does a client hear?

use std::collections::HashSet;
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
    if !follow_all(&ask, &keys) {
        return Err(Refusal::invalid(format!("a connection can follow at most {MAX_FOLLOWED} sessions")));
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
    follow_all(ask, &[key.to_owned()])
}

/// The same for several. The runs that are under way are looked at once, however many sessions there are.
fn follow_all(ask: &Ask, keys: &[String]) -> bool {
    let before = running(ask, keys);
    let hub = &ask.gateway.hub;
    if !before.iter().all(|(key, teller)| teller.catch_up(&ask.guest, key))
        || !keys.iter().all(|key| hub.follow(&ask.guest, key))
    {
        return false;
    }
    // A run may have begun in between.
    let known: HashSet<*const Teller> = before.iter().map(|(_, teller)| Arc::as_ptr(teller)).collect();
    let is_new = |(_, teller): &&(String, Arc<Teller>)| !known.contains(&Arc::as_ptr(teller));
    running(ask, keys).iter().filter(is_new).all(|(key, teller)| teller.catch_up(&ask.guest, key))
}

/// Who tells of the runs that are under way in these sessions, each with the name under which its session is followed.
fn running(ask: &Ask, keys: &[String]) -> Vec<(String, Arc<Teller>)> {
    let wanted: HashSet<&str> = keys.iter().map(String::as_str).collect();
    let follows_everything = wanted.contains(EVERY_SESSION);
    let named = |(key, teller): (String, Arc<Teller>)| {
        if wanted.contains(key.as_str()) {
            return Some((key, teller));
        }
        follows_everything.then(|| (EVERY_SESSION.to_owned(), teller))
    };
    ask.gateway.runs.running().into_iter().filter_map(named).collect()
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
