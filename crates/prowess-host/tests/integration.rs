//! All integration tests of this crate, in one program: most of what building them costs is linking.

#[path = "support/stage.rs"]
mod stage;

mod bindings;
mod loading;
mod watch;
