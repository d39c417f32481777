//! `skills.*`: which skills are there, what do they need, and how are they switched?

mod install;
mod status;
mod update;

use std::collections::BTreeSet;

use prowess_skills::declared_bins;
use serde_json::json;

use super::{Answer, Ask, Method, method};
use crate::aside::blocking;
use crate::params::NOTHING;
use crate::scope::{Access, Scope};

/// The methods of this matter.
pub(super) const METHODS: &[Method] = &[
    method!("skills.status", Access::Operator(Scope::Read), status::status),
    method!("skills.commands", Access::Operator(Scope::Read), status::commands),
    method!("skills.bins", Access::NodeOr(Scope::Read), bins),
    method!("skills.install", Access::Operator(Scope::Admin), install::install),
    method!("skills.update", Access::Operator(Scope::Admin), update::update),
];

/// The programs that the skills of all agents declare, and no others: a node may run them unasked.
async fn bins(ask: Ask) -> Answer {
    ask.checked(&NOTHING)?;
    blocking(move || {
        let agents = &ask.gateway.agents;
        let mut bins = BTreeSet::new();
        for id in agents.names()?.0 {
            let view = agents.get(Some(&id))?.view();
            bins.extend(declared_bins(&view.catalog).into_iter().map(str::to_owned));
        }
        Ok(json!({"bins": bins}))
    })
    .await?
}
