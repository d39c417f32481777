//! How does a gateway behave towards whoever connects, friend or not?

mod client;
mod compress;
mod devices;
mod faults;
mod handshake;
mod http;
mod line;
mod refused;
mod scopes;
mod start;
mod tls;
