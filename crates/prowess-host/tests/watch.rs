//! Watching: does what happens on disk reach those who take their skills from a [`Live`]?

#![cfg(unix)]

#[path = "watch/bounds.rs"]
mod bounds;
#[path = "watch/changes.rs"]
mod changes;
#[path = "watch/config.rs"]
mod config;
#[path = "watch/conformance.rs"]
mod conformance;
#[path = "watch/storms.rs"]
mod storms;
#[path = "watch/upheaval.rs"]
mod upheaval;
