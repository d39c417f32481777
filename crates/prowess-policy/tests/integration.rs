//! All integration tests of this crate, in one program: most of what building them costs is linking.

#[path = "support/asked.rs"]
mod asked;
#[path = "support/commands.rs"]
mod commands;
#[path = "support/everywhere.rs"]
mod everywhere;
#[path = "support/fixture.rs"]
mod fixture;
#[path = "support/program.rs"]
mod program;
#[path = "support/parsed.rs"]
mod support;
#[path = "support/words.rs"]
mod words;

mod approvals;
mod contained;
mod disguises;
mod env_names;
mod hosts;
mod judge;
mod laws;
mod patterns;
mod posture;
mod reach;
mod safe_bins;
mod script;
mod system_run;
mod wrapper;
