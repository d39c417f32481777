//! Watching: how are changes on disk noticed without asking all the time?
//!
//! The parts are values: a [`Plan`] says which folders are watched and what matters in each, a [`Coalescer`] says when a
//! burst of changes is over, [`Heard`] is what has come to our ears. Only [`Ears`] deal with the system. On Linux they
//! are an inotify queue, used directly: a watch belongs to a folder and not to a path, so planning anew after every
//! refresh and asking for all watches again puts right whatever renaming, replacing and removing has done to them, and
//! no more than two descriptors are ever open. Elsewhere, and where watches cannot be had, the disk is asked now and
//! then; with a memory that costs little more than one question for each skill.

mod coalescer;
mod ears;
mod heard;
mod plan;
mod settings;
mod way;

pub(crate) use coalescer::Coalescer;
pub(crate) use ears::{Armed, Bell, Ears, Until};
pub(crate) use heard::Heard;
pub use plan::MAX_WATCHES;
pub(crate) use plan::{Plan, SKILL, config_files};
pub(crate) use settings::{Means, Settings};
