//! Everything that speaks on a socket: a gateway that stays up, its client, the node host and the page.
//!
//! A gateway serves OpenClaw's WebSocket protocol in version 3 and a few HTTP paths, for as many agents as the
//! configuration names. What it knows is in one [`Gateway`]; a request is answered by a function that gets
//! an `Ask` and returns an answer or a [`Refusal`](wire::Refusal).

mod agents;
mod approvals;
mod aside;
mod auth;
mod caller;
pub mod client;
mod compress;
mod connection;
mod device;
mod door;
mod files;
mod gateway;
mod handshake;
mod http;
mod hub;
mod identity;
mod limits;
pub mod log;
mod methods;
mod metrics;
pub mod node_host;
mod nodes;
mod page;
mod pairing;
pub mod params;
mod presence;
mod pulse;
mod runs;
mod scope;
mod sequence;
mod server;
pub mod settings;
mod skill_report;
mod socket;
mod telemetry;
mod throttle;
pub mod tls;
pub mod wire;

pub use approvals::log::{ApprovalLog, LogQuery};
pub use files::FileError;
pub use gateway::{Gateway, Options, Running, StartError};
pub use identity::{Identity, IdentityError};
pub use limits::Limits;
pub use runs::{JournalError, is_running_in};
pub use tls::Fingerprint;
