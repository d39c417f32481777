//! How is a file replaced so that a crash leaves the old one or the new one, and who holds it?
//!
//! [`replace`] and [`Draft`] write a file durably: a temporary file in the same directory, fsync, rename, fsync of the
//! directory. [`Lock`] takes a kernel lock, waits for a bounded time and names the holder if that was not enough.
//! [`LineLog`] appends lines to a log that several programs write. Everything here blocks: async code calls it on a blocking thread.
//!
//! ```
//! use std::time::Duration;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let dir = tempfile::tempdir()?;
//! let path = dir.path().join("state.json");
//! let lock = prowess_files::Lock::acquire(&dir.path().join("state.lock"), Duration::from_secs(3))?;
//! prowess_files::replace(&path, b"{}\n")?;
//! drop(lock);
//! assert_eq!(std::fs::read(&path)?, b"{}\n");
//! # Ok(())
//! # }
//! ```

mod draft;
mod lines;
mod lock;

pub use draft::{Draft, create, create_private_dir, follow_links, replace, sync_dir};
pub use lines::{Durability, LineLog, is_torn};
pub use lock::{FileLock, Holder, Lock, LockError, poll};
