//! Pins: are the files still those that were judged?
//!
//! Each is opened, compared by what it is and, where others could write to it, by its content; and looked at once more
//! in the last moment before the program starts.

use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, Stat};

use crate::sandbox::{Pin, Refused};

/// How a file is opened to look at it.
#[cfg(target_os = "linux")]
pub(super) const LOOK: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
pub(super) const LOOK: OFlags = OFlags::RDONLY;

/// Files that were what they should be.
pub(super) struct Pinned(Vec<Checked>);

struct Checked {
    path: PathBuf,
    file: File,
    stat: Stat,
    /// Whether it is a program that others could change, so that it is started from the open file and not by name.
    program: bool,
}

/// Compares each file with its pin.
pub(super) fn verify(pins: &[Pin]) -> Result<Pinned, Refused> {
    pins.iter().map(verify_one).collect::<Result<_, _>>().map(Pinned)
}

impl Pinned {
    /// Looks again at each name: is the same file, unchanged, still behind it?
    pub(super) fn verify_again(&self) -> Result<(), Refused> {
        for Checked { path, stat, .. } in &self.0 {
            let now = rustix::fs::stat(path).map_err(|error| drift(path, &error.to_string()))?;
            if marks(&now) != marks(stat) {
                return Err(drift(path, "it changed while the run was being prepared"));
            }
        }
        Ok(())
    }

    /// The open file behind `path`, if it is a program that others could replace.
    pub(super) fn door(&self, path: &Path) -> Option<PathBuf> {
        let checked = self.0.iter().find(|checked| checked.program && checked.path == path)?;
        Some(PathBuf::from(format!("/proc/self/fd/{}", checked.file.as_raw_fd())))
    }
}

/// A number of the kernel, whose types differ between systems, as pins have it.
pub(super) fn number<T: TryInto<u64>>(value: T) -> u64 {
    value.try_into().unwrap_or(u64::MAX)
}

fn verify_one(pin: &Pin) -> Result<Checked, Refused> {
    let path = &pin.path;
    // A pipe or a device that took the file's place must not make us wait.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    // A program can be executable without being readable; then there is nothing to compare but what it is.
    let opened = rustix::fs::open(path, flags, Mode::empty()).or_else(|error| match pin.identity.digest {
        None => rustix::fs::open(path, LOOK | OFlags::CLOEXEC, Mode::empty()),
        Some(_) => Err(error),
    });
    let mut file = File::from(opened.map_err(|error| drift(path, &error.to_string()))?);
    let stat = rustix::fs::fstat(&file).map_err(|error| drift(path, &error.to_string()))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(drift(path, "it is no longer a file"));
    }
    let identity = &pin.identity;
    let same = number(stat.st_dev) == identity.device
        && number(stat.st_ino) == identity.inode
        && number(stat.st_size) == identity.length
        && modified(&stat) == identity.modified
        && changed(&stat) == identity.changed;
    if !same {
        return Err(drift(path, "it was replaced or changed"));
    }
    let program = match &identity.digest {
        Some(digest) => {
            let content = read(&mut file, identity.length).map_err(|error| drift(path, &error.to_string()))?;
            if blake3::hash(&content).to_hex().as_str() != digest {
                return Err(drift(path, "its content changed"));
            }
            content.starts_with(b"\x7fELF")
        }
        None => false,
    };
    Ok(Checked { path: path.clone(), file, stat, program })
}

/// The content, and at most one byte more than there should be.
fn read(file: &mut File, length: u64) -> std::io::Result<Vec<u8>> {
    let mut content = Vec::with_capacity(usize::try_from(length).unwrap_or_default().min(1 << 20));
    file.take(length.saturating_add(1)).read_to_end(&mut content)?;
    Ok(content)
}

fn modified(stat: &Stat) -> i128 {
    i128::from(stat.st_mtime) * 1_000_000_000 + i128::from(stat.st_mtime_nsec)
}

fn changed(stat: &Stat) -> i128 {
    i128::from(stat.st_ctime) * 1_000_000_000 + i128::from(stat.st_ctime_nsec)
}

/// What cannot stay the same when a file is replaced or written to.
fn marks(stat: &Stat) -> (u64, u64, u64, i128, i128) {
    (number(stat.st_dev), number(stat.st_ino), number(stat.st_size), modified(stat), changed(stat))
}

fn drift(path: &Path, why: &str) -> Refused {
    Refused::new("drift", format!("{} is not the file that was judged: {why}; judge the command again", path.display()))
}
