//! All integration tests of this crate, in one program: most of what building them costs is linking.

#[path = "support/browser.rs"]
mod browser;
#[path = "support/demo.rs"]
mod demo;
#[path = "support/feigned.rs"]
mod feigned;
#[path = "support/hall.rs"]
mod hall;
#[path = "support/machine.rs"]
mod machine;
#[path = "support/plain.rs"]
mod plain;
#[path = "support/room.rs"]
mod room;
#[path = "support/stage.rs"]
mod stage;

mod approvals;
mod idle;
mod methods;
mod node_attacks;
mod node_host;
mod nodes;
mod operator;
mod page;
mod remote;
mod runs;
mod skills;
mod watch_attacks;
mod wire;
