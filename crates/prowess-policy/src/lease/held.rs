//! Leases that are held: who gave them, for how long, and to whom?

use serde::{Deserialize, Serialize};

use super::Lease;

/// A lease, with what it is bound to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HeldLease {
    /// A name for it, to revoke it by.
    pub id: String,
    /// The agent that holds it.
    pub agent: String,
    /// The skill whose own commands it is for; commands of no skill otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
    /// Where that skill comes from; another skill of the same name does not hold the lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// What it allows.
    pub lease: Lease,
    /// Who gave it.
    pub origin: Origin,
    /// How long it lasts.
    pub lifetime: Lifetime,
    /// When it was given, in milliseconds since 1970.
    pub at: u64,
}

/// Who gave a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// The skill declares it, and the operator confirmed that.
    Declared,
    /// The operator's settings.
    Settings,
    /// A person, when asked.
    Answer,
}

/// How long a lease lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lifetime {
    /// One command.
    Command,
    /// One conversation.
    Session,
    /// Until it is revoked.
    Always,
}

impl HeldLease {
    /// Whether commands of `skill`, which comes from `source`, hold it for `agent`.
    #[must_use]
    pub fn is_held_by(&self, agent: &str, skill: Option<&str>, source: Option<&str>) -> bool {
        self.agent == agent && self.skill.as_deref() == skill && (skill.is_none() || self.source.as_deref() == source)
    }
}
