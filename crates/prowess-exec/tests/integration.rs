//! All integration tests of this crate, in one program: most of what building them costs is linking.

#[path = "support/processes.rs"]
mod processes;
#[path = "support/bash.rs"]
mod support;
#[path = "support/world.rs"]
mod world;

mod approvals_file;
mod approver;
mod attacks;
mod concurrency;
mod conformance;
mod connections;
mod container;
mod escape;
mod exec_tool_live;
mod foreseen;
mod leases;
mod loopback;
mod named_hosts;
mod output;
mod parity;
mod process_tool;
mod runtime;
mod withheld;
