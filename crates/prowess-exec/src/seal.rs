//! Seals: run what was approved, whatever happens to the file meanwhile.
//!
//! A person approved a script as it was. Checking it again and then starting it by its path leaves a moment in which it
//! can be swapped, so a sealed file is copied to a folder of ours, the copy is compared with what was approved, and the
//! copy runs. Around it stand links to its neighbours, two levels up, so that a script that looks for files beside
//! itself finds them.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use prowess_policy::Pin;
use rustix::fs::OFlags;

use crate::lookup::identity;

/// The most neighbours that are linked; a larger folder is not linked at all.
const MAX_NEIGHBOURS: usize = 4096;

/// A file is not what it was when it was judged.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SealError {
    /// It is another file, or has other content.
    #[error("{} changed after it was approved", .0.display())]
    Drift(PathBuf),
    /// It cannot be read or copied.
    #[error("cannot make a copy of {}: {source}", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

/// Copies the file behind `pin` below `into`, an empty folder of ours, and gives the path of the copy.
pub(crate) fn seal(pin: &Pin, into: &Path) -> Result<PathBuf, SealError> {
    let io = |source| SealError::Io { path: pin.path.clone(), source };
    let content = read_approved(pin)?;
    let parent = pin.path.parent().unwrap_or(Path::new("/"));
    let name = pin.path.file_name().ok_or_else(|| SealError::Drift(pin.path.clone()))?;
    let folder = into.join(parent.file_name().unwrap_or_else(|| "files".as_ref()));
    DirBuilder::new().mode(0o700).create(&folder).map_err(io)?;
    let copy = folder.join(name);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o700).open(&copy).map_err(io)?;
    file.write_all(&content).map_err(io)?;
    drop(file);
    std::fs::set_permissions(&copy, Permissions::from_mode(0o500)).map_err(io)?;
    link_neighbours(parent, &folder);
    if let Some(above) = parent.parent() {
        link_neighbours(above, into);
    }
    Ok(copy)
}

fn read_approved(pin: &Pin) -> Result<Vec<u8>, SealError> {
    let io = |source| SealError::Io { path: pin.path.clone(), source };
    let drift = || SealError::Drift(pin.path.clone());
    // The real path has no links; if it has one now, somebody put it there.
    let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).unwrap_or(0);
    let file: File = OpenOptions::new().read(true).custom_flags(flags).open(&pin.real).map_err(io)?;
    let found = identity(&file.metadata().map_err(io)?);
    if (found.device, found.inode, found.length) != (pin.identity.device, pin.identity.inode, pin.identity.length) {
        return Err(drift());
    }
    let mut content = Vec::new();
    file.take(pin.identity.length + 1).read_to_end(&mut content).map_err(io)?;
    let digest = blake3::hash(&content).to_hex();
    if pin.identity.digest.as_deref() == Some(digest.as_str()) { Ok(content) } else { Err(drift()) }
}

/// Links everything in `from` into `to` that is not there yet. Neighbours are a convenience: one that cannot be linked
/// is not there, and the script says so itself.
fn link_neighbours(from: &Path, to: &Path) {
    let Ok(entries) = std::fs::read_dir(from) else { return };
    let entries: Vec<_> = entries.take(MAX_NEIGHBOURS + 1).filter_map(Result::ok).collect();
    if entries.len() > MAX_NEIGHBOURS {
        return;
    }
    for entry in entries {
        let _ = symlink(entry.path(), to.join(entry.file_name()));
    }
}
