//! The proxy against real servers and real clients on loopback.
#[path = "egress/addresses.rs"]
mod addresses;
#[path = "egress/bounds.rs"]
mod bounds;
#[path = "egress/clients.rs"]
mod clients;
#[path = "egress/origin.rs"]
mod origin;
#[path = "egress/proxy.rs"]
pub(crate) mod proxy;
#[path = "egress/questions.rs"]
mod questions;
#[path = "egress/requests.rs"]
mod requests;
#[path = "egress/sites.rs"]
mod sites;
#[path = "egress/smuggling.rs"]
mod smuggling;
#[path = "egress/tunnels.rs"]
mod tunnels;
