//! What does every test of prowess need? Skill trees on disk, the command in a clean room, a model
//! on this machine, and golden files.
//!
//! The kit knows nothing about the crates it helps to test: it makes files, starts programs and reads JSON. So every
//! crate can use it, and a mistake in a crate cannot hide in its tests. All of it panics instead of returning errors,
//! and points at the line of the test that asked.

#![expect(clippy::missing_panics_doc, reason = "a kit for tests panics by design, as the header says")]

pub mod bench;
mod deviations;
mod dice;
mod golden;
mod model;
mod output;
mod prowess;
mod running;
mod served;
mod tree;
mod upheaval;
mod watchdog;
mod words;

pub use deviations::assert_documented;
pub use dice::Dice;
pub use golden::{cases, cases_in, check_all, check_all_but};
pub use model::{Answer, Chunking, Heard, ModelServer, RecordedRequest, Turn};
pub use output::Output;
pub use prowess::Prowess;
pub use running::{Running, eventually};
pub use served::{Served, free_port, terminate};
pub use tree::Tree;
pub use upheaval::Upheaval;
