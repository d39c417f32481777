//! `device.*`: which devices may come in, and who decides that?
//!
//! Nobody gives a device more than they may do themselves.

use prowess_agent::message::now;
use serde_json::{Value, json};

use super::{Answer, Ask, Method, method};
use crate::aside::blocking;
use crate::handshake::tell_pairing;
use crate::pairing::{Paired, PairingError};
use crate::params::{NOTHING, Shape, TEXT, TEXTS, optional, required, shape};
use crate::scope::{Access, Scope, covers};
use crate::wire::Refusal;

/// The methods of this matter.
pub(super) const METHODS: &[Method] = &[
    method!("device.pair.list", PAIRING, list),
    method!("device.pair.approve", PAIRING, approve),
    method!("device.pair.reject", PAIRING, reject),
    method!("device.pair.remove", PAIRING, remove),
    method!("device.token.rotate", PAIRING, rotate),
    method!("device.token.revoke", PAIRING, revoke),
];

const PAIRING: Access = Access::Operator(Scope::Pairing);

const REQUEST: Shape = shape(&[required("requestId", TEXT)]);
const DEVICE: Shape = shape(&[required("deviceId", TEXT)]);
const ROLE: Shape = shape(&[required("deviceId", TEXT), required("role", TEXT)]);
const ROTATE: Shape = shape(&[required("deviceId", TEXT), required("role", TEXT), optional("scopes", TEXTS)]);

async fn list(ask: Ask) -> Answer {
    ask.checked(&NOTHING)?;
    let (pending, paired) = blocking(move || ask.gateway.pairing.list(now())).await?.map_err(|error| refuse(&error))?;
    let pending: Vec<Value> = pending.iter().map(crate::pairing::Pending::write).collect();
    let paired: Vec<Value> = paired.iter().map(Paired::shown).collect();
    Ok(json!({"pending": pending, "paired": paired}))
}

async fn approve(ask: Ask) -> Answer {
    let request = text(ask.checked(&REQUEST)?, "requestId");
    let gateway = ask.gateway.clone();
    let may_give = own_scopes(&ask);
    let wanted = request.clone();
    let paired = blocking(move || ask.gateway.pairing.approve(&wanted, may_give, now()))
        .await?
        .map_err(|error| refuse(&error))?;
    tracing::info!(device = paired.device_id, "a device was approved");
    let resolved = json!({"requestId": request, "deviceId": paired.device_id, "decision": "approved", "ts": now()});
    tell_pairing(&gateway, "device.pair.resolved", &resolved);
    Ok(json!({"requestId": request, "device": paired.shown()}))
}

async fn reject(ask: Ask) -> Answer {
    let request = text(ask.checked(&REQUEST)?, "requestId");
    let gateway = ask.gateway.clone();
    let wanted = request.clone();
    let device = blocking(move || ask.gateway.pairing.reject(&wanted, now())).await?.map_err(|error| refuse(&error))?;
    let resolved = json!({"requestId": request, "deviceId": device, "decision": "rejected", "ts": now()});
    tell_pairing(&gateway, "device.pair.resolved", &resolved);
    Ok(json!({"requestId": request, "deviceId": device}))
}

async fn remove(ask: Ask) -> Answer {
    let device = text(ask.checked(&DEVICE)?, "deviceId").trim().to_owned();
    let gateway = ask.gateway.clone();
    let wanted = device.clone();
    let removed = blocking(move || {
        ask.gateway.pairing.remove(&wanted, now())?;
        ask.gateway.nodes.forget(&wanted);
        Ok(())
    });
    removed.await?.map_err(|error: PairingError| refuse(&error))?;
    tracing::info!(device, "a device was removed");
    // Whoever was let in with it has no business here any more, and does not get to ask for more by not listening.
    gateway.hub.cut(|guest| guest.device.as_deref() == Some(&device), 1008, "device removed");
    Ok(json!({"deviceId": device}))
}

async fn rotate(ask: Ask) -> Answer {
    let params = ask.checked(&ROTATE)?;
    let (device, role) = (text(params, "deviceId"), text(params, "role"));
    let scopes = params["scopes"]
        .as_array()
        .map(|scopes| scopes.iter().filter_map(Value::as_str).map(|scope| scope.trim().to_owned()).collect::<Vec<_>>());
    let may_give = own_scopes(&ask);
    let wanted = device.clone();
    let token = blocking(move || ask.gateway.pairing.rotate(&wanted, &role, scopes, may_give, now()))
        .await?
        .map_err(|error| refuse(&error))?;
    tracing::info!(device, role = token.role, "the token of a device was rotated");
    Ok(json!({
        "deviceId": device,
        "role": token.role,
        "token": token.token,
        "scopes": token.scopes,
        "rotatedAtMs": token.rotated_at_ms.unwrap_or(token.created_at_ms),
    }))
}

async fn revoke(ask: Ask) -> Answer {
    let params = ask.checked(&ROLE)?;
    let (device, role) = (text(params, "deviceId"), text(params, "role"));
    let gateway = ask.gateway.clone();
    let (at, wanted) = (now(), (device.clone(), role.clone()));
    blocking(move || ask.gateway.pairing.revoke(&wanted.0, &wanted.1, at)).await?.map_err(|error| refuse(&error))?;
    tracing::info!(device, role, "the token of a device was revoked");
    let is_its = |guest: &crate::hub::Guest| guest.device.as_deref() == Some(&device) && guest.role.as_str() == role;
    gateway.hub.cut(is_its, 1008, "device token revoked");
    Ok(json!({"deviceId": device, "role": role, "revokedAtMs": at}))
}

/// Which scopes whoever asks may give to others: their own. What nodes are given is no scope of operators.
fn own_scopes(ask: &Ask) -> impl Fn(&str) -> bool + Send + use<> {
    let own = ask.guest.scopes.list();
    move |wanted| !wanted.starts_with("operator.") || own.iter().any(|own| covers(own.as_str(), wanted))
}

fn text(params: &Value, name: &str) -> String {
    params[name].as_str().unwrap_or_default().to_owned()
}

fn refuse(error: &PairingError) -> Refusal {
    match error {
        PairingError::File(_) | PairingError::Random => Refusal::unavailable(error.to_string()),
        PairingError::Full
        | PairingError::UnknownRequest
        | PairingError::UnknownDevice
        | PairingError::UnknownRole
        | PairingError::Rejected
        | PairingError::BeyondOwn(_) => Refusal::invalid(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use prowess_config::Env;
    use prowess_host::{Flags, Ground};
    use prowess_testkit::Tree;

    use super::*;
    use crate::hub::tests::guest;
    use crate::hub::{Out, Urgency};
    use crate::pairing::Wish;
    use crate::pairing::tests::wish;
    use crate::scope::Role;
    use crate::wire::Request;
    use crate::{Gateway, Options};

    #[tokio::test]
    async fn who_does_not_listen_is_sent_away_at_once_when_its_device_is_gone() {
        let tree = Tree::new();
        let home = tree.root().to_string_lossy().into_owned();
        let env = Env::from_iter([("HOME", home.as_str())]);
        let ground = Ground { flags: Flags::default(), env, cwd: tree.root().to_owned() };
        let running = Gateway::start(ground, Options { port: Some(0), ..Options::default() }).await.expect("a gateway");
        let gateway = running.gateway();
        let admin = Arc::new(guest("admin").0);
        for (device, method) in [("removed", "device.pair.remove"), ("revoked", "device.token.revoke")] {
            let wish = Wish { device: device.to_owned(), ..wish(Role::Node, &[]) };
            gateway.pairing.admit(&wish, now()).expect("paired");
            assert!(gateway.pairing.is_known(device, Role::Node, now()).expect("readable"));
            let (mut node, mut mail) = guest(device);
            (node.device, node.role) = (Some(device.to_owned()), Role::Node);
            node.outbox.send("{}".into(), Urgency::Needed);
            gateway.hub.enter(&Arc::new(node));
            let is_removed = method == "device.pair.remove";
            let params =
                if is_removed { json!({"deviceId": device}) } else { json!({"deviceId": device, "role": "node"}) };
            let request = Request { id: "1".to_owned(), method: method.to_owned(), params };
            let ask = Ask { gateway: Arc::clone(gateway), guest: Arc::clone(&admin), request, slot: None };
            let answer = if is_removed { remove(ask).await } else { revoke(ask).await };
            answer.expect("it is gone");
            assert!(matches!(mail.next().await, Some(Out::Close(_))), "{method}: what waits is not waited for");
            assert!(!gateway.pairing.is_known(device, Role::Node, now()).expect("readable"), "{method}");
        }
        running.end().await;
    }
}
