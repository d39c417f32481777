//! Presence: who is around, and since when?
//!
//! Also how often that, and how we are, has changed: clients keep copies and want to know whether theirs are old.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use prowess_agent::message::now;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::hub::Guest;
use crate::wire::StateVersion;

/// How long somebody who left is still told of, in milliseconds.
const TTL: u64 = 300_000;

/// How many are told of at most, the newest first.
const MAX_SHOWN: usize = 200;

/// Who is around, and how we are.
#[derive(Debug)]
pub(crate) struct Presence {
    own: Value,
    around: Mutex<Around>,
    /// Rings when somebody comes or goes.
    pub(crate) changed: Notify,
    /// Whether somebody finds out how we are.
    is_looking: AtomicBool,
}

/// Somebody finds out how we are, until this is dropped.
#[derive(Debug)]
pub(crate) struct Looking<'a>(&'a AtomicBool);

impl Drop for Looking<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

#[derive(Debug)]
struct Around {
    entries: HashMap<String, Entry>,
    version: StateVersion,
    health: Value,
}

#[derive(Debug)]
struct Entry {
    shown: Value,
    /// How many connections it has.
    connections: usize,
    ts: u64,
}

impl Presence {
    pub(crate) fn new() -> Self {
        let around =
            Around { entries: HashMap::new(), version: StateVersion { presence: 1, health: 1 }, health: json!({}) };
        Self { own: own(), around: Mutex::new(around), changed: Notify::new(), is_looking: AtomicBool::new(false) }
    }

    /// Somebody came.
    pub(crate) fn enter(&self, guest: &Guest) {
        let Some(key) = key(guest) else { return };
        let mut around = self.lock();
        let connections = around.entries.get(&key).map_or(0, |entry| entry.connections) + 1;
        around.entries.insert(key, Entry { shown: shown(guest), connections, ts: guest.connected_at });
        around.version.presence += 1;
        self.changed.notify_one();
    }

    /// Somebody went.
    pub(crate) fn leave(&self, guest: &Guest) {
        let Some(key) = key(guest) else { return };
        let mut around = self.lock();
        let Some(entry) = around.entries.get_mut(&key) else { return };
        entry.connections = entry.connections.saturating_sub(1);
        if entry.connections == 0 {
            entry.ts = now();
            entry.shown["ts"] = entry.ts.into();
            entry.shown["reason"] = "disconnect".into();
        }
        around.version.presence += 1;
        self.changed.notify_one();
    }

    /// Everybody who is told of, beginning with ourselves.
    pub(crate) fn list(&self) -> Value {
        let now = now();
        let mut around = self.lock();
        around.entries.retain(|_, entry| entry.connections > 0 || now.saturating_sub(entry.ts) <= TTL);
        let mut entries: Vec<&Entry> = around.entries.values().collect();
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.ts));
        let mut own = self.own.clone();
        own["ts"] = now.into();
        let others = entries.into_iter().take(MAX_SHOWN - 1).map(|entry| entry.shown.clone());
        std::iter::once(own).chain(others).collect()
    }

    /// How often both have changed.
    pub(crate) fn version(&self) -> StateVersion {
        self.lock().version
    }

    /// How we are, as it was found out last.
    pub(crate) fn health(&self) -> Value {
        self.lock().health.clone()
    }

    /// Says that somebody finds out how we are, unless somebody does already.
    pub(crate) fn look(&self) -> Option<Looking<'_>> {
        let is_free = self.is_looking.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok();
        is_free.then(|| Looking(&self.is_looking))
    }

    /// Notes how we are.
    pub(crate) fn set_health(&self, health: Value) -> StateVersion {
        let mut around = self.lock();
        around.version.health += 1;
        around.health = health;
        around.version
    }

    fn lock(&self) -> MutexGuard<'_, Around> {
        self.around.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Under what somebody is told of; commands that come and go are not.
fn key(guest: &Guest) -> Option<String> {
    if guest.about.mode == "cli" {
        return None;
    }
    let key = guest.device.as_ref().or(guest.about.instance_id.as_ref()).unwrap_or(&guest.conn);
    Some(key.trim().to_lowercase())
}

fn shown(guest: &Guest) -> Value {
    let about = &guest.about;
    let mut shown = json!({"host": guest.name()});
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            shown[name] = value;
        }
    };
    put("ip", guest.remote_ip.clone().map(Value::from));
    put("version", Some(about.version.clone().into()));
    put("platform", Some(about.platform.clone().into()));
    put("deviceFamily", about.device_family.clone().map(Value::from));
    put("modelIdentifier", about.model_identifier.clone().map(Value::from));
    put("mode", Some(about.mode.clone().into()));
    put("deviceId", guest.device.clone().map(Value::from));
    put("roles", Some(json!([guest.role.as_str()])));
    let scopes = guest.scopes.names();
    put("scopes", (!scopes.is_empty()).then(|| scopes.into()));
    put("instanceId", guest.device.clone().or_else(|| about.instance_id.clone()).map(Value::from));
    put("reason", Some("connect".into()));
    put("ts", Some(guest.connected_at.into()));
    put("text", Some(format!("Node: {} · mode {}", guest.name(), about.mode).into()));
    shown
}

/// What is told of ourselves.
fn own() -> Value {
    let system = rustix::system::uname();
    let host = system.nodename().to_string_lossy().into_owned();
    let version = env!("CARGO_PKG_VERSION");
    let family = match std::env::consts::OS {
        "linux" => "Linux",
        "macos" => "Mac",
        "windows" => "Windows",
        other => other,
    };
    json!({
        "host": host,
        "version": version,
        "platform": format!("{} {}", std::env::consts::OS, system.release().to_string_lossy()),
        "deviceFamily": family,
        "modelIdentifier": match std::env::consts::ARCH { "x86_64" => "x64", "aarch64" => "arm64", other => other },
        "mode": "gateway",
        "reason": "self",
        "text": format!("Gateway: {host} · app {version} · mode gateway · reason self"),
    })
}

/// The name of this machine.
pub(crate) fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::tests::guest;

    fn modes(presence: &Presence) -> Vec<(String, String)> {
        let list = presence.list();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        list.as_array().into_iter().flatten().map(|entry| (text(&entry["mode"]), text(&entry["reason"]))).collect()
    }

    #[test]
    fn whoever_stays_is_told_of_and_whoever_left_for_a_while() {
        let presence = Presence::new();
        let mut node = guest("a").0;
        node.about.mode = "node".into();
        presence.enter(&node);
        assert_eq!(presence.version().presence, 2);
        let own = ("gateway".to_owned(), "self".to_owned());
        assert_eq!(modes(&presence), [own.clone(), ("node".into(), "connect".into())]);
        presence.leave(&node);
        assert_eq!(modes(&presence), [own, ("node".into(), "disconnect".into())]);
        assert_eq!(presence.version().presence, 3);
    }

    #[test]
    fn commands_that_come_and_go_are_not_told_of() {
        let presence = Presence::new();
        let mut command = guest("a").0;
        command.about.mode = "cli".into();
        presence.enter(&command);
        assert_eq!(modes(&presence).len(), 1);
    }

    #[test]
    fn somebody_with_two_connections_is_there_until_both_are_gone() {
        let presence = Presence::new();
        let (mut one, mut other) = (guest("a").0, guest("b").0);
        for guest in [&mut one, &mut other] {
            guest.about.mode = "ui".into();
            guest.device = Some("d".into());
            presence.enter(guest);
        }
        presence.leave(&one);
        assert_eq!(modes(&presence)[1].1, "connect");
        presence.leave(&other);
        assert_eq!(modes(&presence)[1].1, "disconnect");
    }

    #[test]
    fn only_so_many_are_told_of() {
        let presence = Presence::new();
        for index in 0..2 * MAX_SHOWN {
            let mut guest = guest(&index.to_string()).0;
            guest.about.mode = "ui".into();
            presence.enter(&guest);
        }
        assert_eq!(modes(&presence).len(), MAX_SHOWN);
    }
}
