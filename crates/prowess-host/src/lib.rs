//! This machine: from an operator's files to skills, settings and agents that are ready to work.
//!
//! The command line and the gateway both begin here, so that they cannot disagree: a [`Ground`] is what is known when a
//! program starts, a [`Context`] is what the operator asked for, a [`View`] is the skills as they are here and now, a
//! [`Live`] keeps a view up to date, and [`agent`] makes an agent of them.

mod assembly;
mod bindings;
mod bundled;
mod context;
mod conversation;
pub mod cost;
mod failure;
pub mod fix;
mod kept;
mod leftover;
mod live;
mod proposal;
mod setting;
mod share;
mod skill_env;
mod skill_text;
pub mod status;
mod watch;

pub use assembly::{Around, Parts, Reads, Wanted, agent, model_settings, name, sessions, system_prompt, tool_settings};
pub use bindings::{Bindings, EntryOwner, bind};
pub use context::{Context, Flags, Ground, View};
pub use conversation::{skills, workspace};
pub use failure::{Failure, Fault};
pub use kept::Kept;
pub use live::{Cause, Change, Live, Opened, Stats, Watching};
pub use proposal::{Proposal, propose};
pub use setting::{base, exec};
pub use share::Shares;
pub use watch::MAX_WATCHES;
