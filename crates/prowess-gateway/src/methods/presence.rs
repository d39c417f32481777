//! `system-presence`: who is around?

use super::{Answer, Ask, Method, method};
use crate::scope::{Access, Scope};

/// The methods of this matter.
pub(super) const METHODS: &[Method] = &[method!("system-presence", Access::Operator(Scope::Read), list)];

async fn list(ask: Ask) -> Answer {
    Ok(ask.gateway.presence.list())
}
