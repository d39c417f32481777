//! This machine: from an operator's files to skills, settings and agents that are ready to work.
//!
//! The command line and the gateway both begin here, so that they cannot disagree: a [`Ground`] is what is known when a
//! program starts, a [`Context`] is what the operator asked for, a [`View`] is the skills as they are here and now, and
//! [`agent`] makes an agent of them.

mod assembly;
mod bundled;
mod context;
mod conversation;
mod failure;
mod setting;
mod share;

pub use assembly::{Parts, Reads, Wanted, agent, name, sessions, system_prompt};
pub use context::{Context, Flags, Ground, View};
pub use conversation::{skills, workspace};
pub use failure::{Failure, Fault};
pub use setting::{base, exec};
pub use share::Shares;
