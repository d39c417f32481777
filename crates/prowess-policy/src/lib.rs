//! May this command run?
//!
//! A command text is read with a real shell grammar ([`Script`]) before anything else is done with it. Nothing here touches
//! a disk, a process or a clock.

pub mod script;

pub use script::{Script, quote};
