//! All integration tests of this crate, in one program: most of what building them costs is linking.

#[path = "../../prowess-gateway/tests/support/browser.rs"]
mod browser;
#[path = "support/desk.rs"]
mod desk;
#[path = "support/stage.rs"]
mod stage;

mod bundled;
mod chat;
mod cli;
mod conformance;
mod demo;
mod exec;
mod faults;
mod flow;
mod gateway;
mod gateway_kills;
mod gateway_misuse;
mod gateway_talk;
mod page;
mod recorded;
mod remote;
mod skills;
mod small_model;
mod talk;
