//! What may a command use beyond the sandbox?

mod host;

pub use host::{DEFAULT_PORTS, Host, HostError, HostPattern, HostRule, IpBlock};
