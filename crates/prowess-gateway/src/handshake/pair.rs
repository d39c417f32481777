//! Pairing at the handshake: is the device approved for what it asks, or who has to approve it?

use std::sync::Arc;

use prowess_agent::message::now;
use serde_json::json;

use super::connect::Connect;
use super::{Recognised, tell_pairing};
use crate::aside::blocking;
use crate::auth;
use crate::caller::Caller;
use crate::gateway::Gateway;
use crate::hub::Ceiling;
use crate::pairing::{Admission, Approval, DeviceToken, PairingError, Wish};
use crate::scope::Role;
use crate::wire::{Code, Refusal};

/// Lets a device in that was approved, or asks for it to be. Returns its token, and what it can be given later.
pub(super) async fn pair(
    gateway: &Arc<Gateway>,
    caller: &Caller,
    connect: &Connect,
    role: Role,
    known: Recognised,
) -> Result<(Option<DeviceToken>, Ceiling), Refusal> {
    let unpaired = match gateway.settings.proxy_scopes(caller).filter(|_| known.method == auth::Method::Proxy) {
        Some(scopes) => Ceiling::Listed(scopes.iter().copied().collect()),
        None => Ceiling::Any,
    };
    let (Some(device), Some(public_key)) = (&connect.device, known.key) else { return Ok((None, unpaired)) };
    let is_own = connect.is_backend() && caller.is_local && caller.origin.is_none() && known.is_shared;
    let is_own_page = connect.is_page() && known.is_shared && gateway.settings.pages_without_device;
    let by_proxy = connect.is_page() && known.method == auth::Method::Proxy;
    if is_own || is_own_page || by_proxy {
        return Ok((None, unpaired));
    }
    let is_foreign_page = caller.origin.is_some() && !connect.is_page() && !connect.is_webchat();
    let is_silent = caller.is_local && !is_foreign_page;
    let wish = Wish {
        device: device.id.clone(),
        public_key,
        role,
        scopes: connect.scopes.clone(),
        display_name: connect.about.display_name.clone(),
        platform: connect.about.platform.clone(),
        family: connect.about.device_family.clone(),
        client: connect.about.id.clone(),
        mode: connect.about.mode.clone(),
        remote_ip: caller.shown_ip().filter(|_| !caller.is_local),
        approval: if is_silent { Approval::Silent } else { Approval::Asked },
    };
    let token = admit(gateway, &wish).await?;
    let ceiling = if known.method == auth::Method::Proxy { unpaired } else { Ceiling::Device(Box::new(wish)) };
    Ok((Some(token), ceiling))
}

/// The token of a device that is approved for what it wants; a refusal that names the request otherwise.
pub(crate) async fn admit(gateway: &Arc<Gateway>, wish: &Wish) -> Result<DeviceToken, Refusal> {
    let (pairing, wanted, device) = (Arc::clone(&gateway.pairing), wish.clone(), wish.device.clone());
    let admission = blocking(move || pairing.admit(&wanted, now())).await?;
    let refused = |error: PairingError| match error {
        PairingError::Rejected => Refusal::new(Code::NotPaired, "pairing required: the request was refused")
            .details(json!({"code": "PAIRING_REQUIRED", "reason": "rejected"})),
        error => Refusal::unavailable(error.to_string()),
    };
    match admission.map_err(refused)? {
        Admission::Known(token) => Ok(token),
        Admission::Approved { token, request } => {
            tracing::info!(device, "paired a device on this machine");
            let resolved = json!({"requestId": request, "deviceId": device, "decision": "approved", "ts": now()});
            tell_pairing(gateway, "device.pair.resolved", &resolved);
            Ok(token)
        }
        Admission::Asked { pending, reason, is_new } => {
            if is_new {
                tracing::warn!(device, reason = reason.as_str(), "a device is waiting for approval");
                tell_pairing(gateway, "device.pair.requested", &pending.write());
            }
            let details = json!({
                "code": "PAIRING_REQUIRED",
                "requestId": pending.request_id,
                "reason": reason.as_str(),
            });
            Err(Refusal::new(Code::NotPaired, "pairing required").details(details))
        }
    }
}
