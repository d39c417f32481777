//! Ears: how does the system tell that something changed?

#[cfg(any(test, not(target_os = "linux")))]
mod deaf;
#[cfg(target_os = "linux")]
mod inotify;
mod remote;

#[cfg(not(target_os = "linux"))]
pub(crate) use deaf::{Bell, Ears};
#[cfg(target_os = "linux")]
pub(crate) use inotify::{Bell, Ears};
pub(crate) use remote::is_remote;

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// The bell or a change.
    Anything,
    /// The bell alone: changes may pile up meanwhile.
    Rung,
}

/// What came of following a plan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Armed {
    /// Folders that were not watched before: what happened in them until now went unheard.
    pub(crate) new: usize,
    /// Folders that are watched.
    pub(crate) watches: usize,
    /// Whether there are folders that cannot be watched, or where watching tells too little.
    pub(crate) is_partial: bool,
}
