//! Nodes: which other machines are connected, and what is asked of them?
//!
//! A node is known by its device, and held by its connection: a newer connection of the same node takes the place of the
//! older, and what the older one says or fails to say afterwards is nobody's business. Every request has one end: the
//! node's answer, its absence, or the deadline.

mod eligibility;
mod exec;
mod invoke;
mod known;
mod policy;
mod probe;
mod registry;
mod runs;
mod target;

pub(crate) use exec::{NodeExec, SKILL_ENV};
pub(crate) use invoke::{Invocation, InvokeError};
pub(crate) use policy::{allowed_commands, check_command};
pub(crate) use registry::{Node, Nodes, REPLACED};
pub(crate) use runs::Run;

use std::sync::Arc;

use prowess_agent::session::SessionKey;

/// Tells a conversation something that happened elsewhere: the key of its session, and the text.
pub(crate) type Wake = Arc<dyn Fn(&SessionKey, String) + Send + Sync>;
