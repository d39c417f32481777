//! Programs made for a test.

use std::path::{Path, PathBuf};

use prowess_policy::lookup::{Identity, Keeper, Program};

/// A program that was found at `path` and is `real` without links; the system's own when `settled`.
pub(crate) fn program(path: impl AsRef<Path>, real: impl AsRef<Path>, settled: bool) -> Program {
    let keeper = if settled { Keeper::System } else { Keeper::Anyone };
    let identity = Identity { device: 1, inode: 1, length: 1, modified: 1, changed: 1, digest: None };
    Program { path: PathBuf::from(path.as_ref()), real: PathBuf::from(real.as_ref()), keeper, identity }
}
