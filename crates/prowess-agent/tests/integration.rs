//! All integration tests of this crate, in one program: most of what building them costs is linking.

#[path = "support/stage.rs"]
mod stage;
#[path = "support/workshop.rs"]
mod workshop;

mod conformance;
mod embedded;
mod frames;
mod kills;
mod prompt;
mod recordings;
mod repair;
mod routing;
mod slash;
mod tools;
mod transcript;
mod turns;
mod wire;
