//! Files that are made for a command, because only what is there can be opened to it.
//!
//! A file that the command did not touch is removed when the run is over. It is known by its time, which is that of no file
//! that anybody has written.

use std::fs::{self, File, FileTimes, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Files that were made for one run.
#[derive(Debug, Default)]
pub(crate) struct MadeFiles(Vec<PathBuf>);

/// Why a file could not be made.
#[derive(Debug, thiserror::Error)]
#[error("{} cannot be made: {error}", path.display())]
pub(crate) struct NotMade {
    path: PathBuf,
    error: io::Error,
}

impl MadeFiles {
    /// Makes what of `paths` is not there: files, and directories where the path ends with `/`.
    pub(crate) fn make(paths: &[PathBuf]) -> Result<Self, NotMade> {
        let mut made = Self::default();
        for path in paths {
            let is_dir = path.as_os_str().as_bytes().ends_with(b"/");
            let result = if is_dir { fs::create_dir(path) } else { make_file(path) };
            match result {
                Ok(()) if is_dir => {}
                Ok(()) => made.0.push(path.clone()),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(NotMade { path: path.clone(), error }),
            }
        }
        Ok(made)
    }
}

impl Drop for MadeFiles {
    fn drop(&mut self) {
        for path in self.0.iter().filter(|path| is_untouched(path)) {
            // What cannot be removed is an empty file.
            let _ = fs::remove_file(path);
        }
    }
}

fn make_file(path: &Path) -> io::Result<()> {
    let file: File = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.set_times(FileTimes::new().set_modified(SystemTime::UNIX_EPOCH))
}

fn is_untouched(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| {
        meta.is_file() && meta.len() == 0 && meta.modified().is_ok_and(|time| time == SystemTime::UNIX_EPOCH)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_run_does_not_touch_is_gone_afterwards() {
        let scratch = tempfile::tempdir().unwrap();
        let path = |name: &str| scratch.path().join(name);
        fs::write(path("old"), "").unwrap();
        let made =
            MadeFiles::make(&[path("left"), path("touched"), path("written"), path("old"), path("dir/")]).unwrap();
        assert!(path("left").is_file() && path("dir").is_dir());
        File::open(path("touched")).unwrap().set_times(FileTimes::new().set_modified(SystemTime::now())).unwrap();
        fs::write(path("written"), "x").unwrap();
        drop(made);
        let is_there = ["left", "touched", "written", "old", "dir"].map(|name| path(name).exists());
        assert_eq!(is_there, [false, true, true, true, true]);
        assert!(MadeFiles::make(&[path("no/such/dir")]).is_err());
    }
}
