//! How does a file get its new content, so that nobody ever sees half of it, and only there where it was judged?

use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::place::real_path;

/// The most that is written into one file, in bytes.
pub(crate) const MAX_FILE_BYTES: usize = 4 * 1024 * 1024;

/// Puts `bytes` at `real`, a path without symlinks, and makes the folders above it. What was there is replaced at once or
/// not at all; `was` is what the caller knows of it, and anything else there now is left alone.
pub(crate) fn save(real: &Path, bytes: &[u8], was: Option<&Metadata>) -> io::Result<()> {
    let (Some(parent), Some(name)) = (real.parent(), real.file_name()) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "this path cannot be a file"));
    };
    let folder = open_folder(parent)?;
    let mode = match rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile => {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "it already exists and is not a file"));
        }
        Ok(stat) => Some(Mode::from_raw_mode(stat.st_mode & 0o777)),
        Err(Errno::NOENT) => None,
        Err(error) => return Err(error.into()),
    };
    let temporary = format!(".prowess-{}.tmp", uuid::Uuid::new_v4().simple());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::openat(&folder, &temporary, flags, first_mode(mode))?);
    let stored = (|| {
        file.write_all(bytes)?;
        file.sync_all()?;
        check_unchanged(real, was)?;
        if let Some(mode) = mode {
            rustix::fs::fchmod(&file, mode)?;
        }
        rustix::fs::renameat(&folder, &temporary, &folder, name)?;
        folder.sync_all()
    })();
    if stored.is_err() {
        // The error that counts is the one that brought us here.
        let _ = rustix::fs::unlinkat(&folder, &temporary, AtFlags::empty());
    }
    stored
}

/// The mode of the file until it is done. Nobody may read it there who may not read the one it replaces; a new one is
/// as open as the system makes new files.
fn first_mode(kept: Option<Mode>) -> Mode {
    Mode::from_raw_mode(if kept.is_some() { 0o600 } else { 0o666 })
}

/// The folder at `path`, which is free of links; what is missing of it is made.
fn open_folder(path: &Path) -> io::Result<File> {
    let mut missing: Vec<PathBuf> = Vec::new();
    let mut there = path;
    while there.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        let (Some(name), Some(parent)) = (there.file_name(), there.parent()) else { break };
        missing.push(name.into());
        there = parent;
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut folder = File::from(rustix::fs::open(there, flags, Mode::empty())?);
    if real_path(&folder, there)? != there {
        return Err(io::Error::other("the folder changed at the same time; try again"));
    }
    for name in missing.iter().rev() {
        match rustix::fs::mkdirat(&folder, name, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        folder = File::from(rustix::fs::openat(&folder, name, flags, Mode::empty())?);
    }
    Ok(folder)
}

fn check_unchanged(real: &Path, was: Option<&Metadata>) -> io::Result<()> {
    let Some(was) = was else { return Ok(()) };
    let now = real.symlink_metadata()?;
    let mark = |it: &Metadata| (it.dev(), it.ino(), it.len(), it.mtime(), it.mtime_nsec());
    if mark(was) == mark(&now) {
        Ok(())
    } else {
        Err(io::Error::other("the file changed since it was read; read it again"))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use rustix::fs::Mode;

    use super::{first_mode, save};

    #[test]
    fn a_file_is_replaced_with_its_mode_and_leaves_nothing_behind() {
        let root = tempfile::tempdir().expect("a folder");
        let real = root.path().canonicalize().expect("it is there");
        let file = real.join("new/deep/file");
        save(&file, b"one", None).expect("it is written");
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o751)).expect("the mode is set");
        save(&file, b"two", None).expect("it is written");
        assert_eq!(std::fs::read(&file).expect("it is there"), b"two");
        assert_eq!(file.metadata().expect("it is there").permissions().mode() & 0o7777, 0o751);
        assert_eq!(std::fs::read_dir(real.join("new/deep")).expect("it is there").count(), 1);
    }

    /// Nobody may look over the shoulder of one who changes a file of their own.
    #[test]
    fn what_is_not_done_is_not_more_open_than_what_it_replaces() {
        assert_eq!(first_mode(Some(Mode::from_raw_mode(0o640))), Mode::from_raw_mode(0o600));
        assert_eq!(first_mode(None), Mode::from_raw_mode(0o666), "a new file gets what the system gives new files");
        let root = tempfile::tempdir().expect("a folder");
        let file = root.path().canonicalize().expect("it is there").join("file");
        std::fs::write(&file, "one").expect("it is written");
        for mode in [0o600, 0o444, 0o755] {
            std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).expect("the mode is set");
            save(&file, b"two", None).expect("it is written");
            assert_eq!(file.metadata().expect("it is there").permissions().mode() & 0o7777, mode);
        }
    }

    #[test]
    fn a_folder_that_became_a_link_is_not_followed() {
        let root = tempfile::tempdir().expect("a folder");
        let real = root.path().canonicalize().expect("it is there");
        std::fs::create_dir(real.join("outside")).expect("a folder");
        symlink(real.join("outside"), real.join("inside")).expect("a link");
        assert!(save(&real.join("inside/x"), b"x", None).is_err());
        std::fs::create_dir(real.join("outside/sub")).expect("a folder");
        assert!(save(&real.join("inside/sub/x"), b"x", None).is_err());
        assert_eq!(std::fs::read_dir(real.join("outside/sub")).expect("it is there").count(), 0);
    }

    #[test]
    fn what_is_no_file_and_what_others_changed_stays() {
        let root = tempfile::tempdir().expect("a folder");
        let real = root.path().canonicalize().expect("it is there");
        std::fs::create_dir(real.join("folder")).expect("a folder");
        assert!(save(&real.join("folder"), b"x", None).is_err());
        symlink(real.join("target"), real.join("link")).expect("a link");
        assert!(save(&real.join("link"), b"x", None).is_err() && !real.join("target").exists());
        std::fs::write(real.join("file"), "one").expect("it is written");
        let was = real.join("file").metadata().expect("it is there");
        std::fs::write(real.join("file"), "other").expect("it is written");
        assert!(save(&real.join("file"), b"x", Some(&was)).is_err());
        assert_eq!(std::fs::read(real.join("file")).expect("it is there"), b"other");
        assert_eq!(std::fs::read_dir(&real).expect("it is there").count(), 3);
    }
}
