//! `operator.scopes.request`: may a client that is connected do more than it asked for at first?
//!
//! A page asks for little when it connects, and for more when an action needs it. Nobody gets more this way than by
//! connecting anew.

use serde_json::{Value, json};

use super::{Answer, Ask, Method, method};
use crate::handshake::{admit_device, told_token};
use crate::hub::Ceiling;
use crate::pairing::Wish;
use crate::params::{Shape, TEXTS, required, shape};
use crate::scope::{Access, Role, Scope};
use crate::wire::Refusal;

/// The methods of this matter.
pub(super) const METHODS: &[Method] = &[method!("operator.scopes.request", Access::Anybody, request)];

const SCOPES: Shape = shape(&[required("scopes", TEXTS)]);

async fn request(ask: Ask) -> Answer {
    let params = ask.checked(&SCOPES)?;
    let guest = &ask.guest;
    if guest.role != Role::Operator {
        return Err(Refusal::invalid(format!("unauthorized role: {}", guest.role.as_str())));
    }
    let mut wanted = Vec::new();
    for name in params["scopes"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        let scope = Scope::parse(name.trim());
        wanted.push(scope.ok_or_else(|| Refusal::invalid("invalid operator.scopes.request params: unknown scope"))?);
    }
    let mut answer = json!({});
    match &guest.ceiling {
        Ceiling::Any => {}
        Ceiling::Listed(allowed) => {
            if let Some(beyond) = wanted.iter().find(|scope| !allowed.cover(**scope)) {
                let refusal = Refusal::invalid(format!("missing scope: {}", beyond.as_str()));
                return Err(refusal.details(json!({"code": "SCOPE_NOT_GRANTED", "scope": beyond.as_str()})));
            }
        }
        Ceiling::Device(wish) => {
            let mut scopes = guest.scopes.list();
            scopes.extend(wanted.iter().filter(|scope| !guest.scopes.list().contains(scope)));
            let scopes = scopes.into_iter().map(|scope| scope.as_str().to_owned()).collect();
            let wish = Wish { scopes, ..(**wish).clone() };
            answer["auth"] = told_token(&admit_device(&ask.gateway, &wish).await?);
        }
    }
    for scope in wanted {
        guest.scopes.grant(scope);
    }
    answer["scopes"] = guest.scopes.names().into();
    tracing::info!(conn = guest.conn, scopes = ?guest.scopes.names(), "a client may do more");
    Ok(answer)
}
