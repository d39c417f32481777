//! The operator's Git settings: how does a command change a file without changing its directory?
//!
//! Git writes a new file beside the old one and renames it, and the directory is the operator's home. So a run that may
//! change the file gets a copy in a directory of its own (`GIT_CONFIG_GLOBAL`), and when the run is over, what became of
//! the copy becomes the file.

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use prowess_files::{Draft, follow_links};
use prowess_policy::lease::Lease;
use prowess_policy::lookup::USER_GIT_FILES;
use tempfile::TempDir;

use crate::sandbox::SetAside;

/// The largest file that is copied, in bytes.
const MAX_BYTES: u64 = 1024 * 1024;

/// The name of the copy.
const COPY: &str = "gitconfig";

/// A copy of the operator's settings for one run.
#[derive(Debug)]
pub(crate) struct GitFileCopy {
    file: PathBuf,
    before: Option<Vec<u8>>,
    dir: TempDir,
    path: PathBuf,
}

impl GitFileCopy {
    /// A copy, if `lease` lets the run change the file.
    pub(crate) fn make(lease: &Lease, home: &Path) -> io::Result<Option<Self>> {
        let files = USER_GIT_FILES.iter().map(|name| home.join(name));
        let Some(file) = files.into_iter().find(|file| lease.writes.contains(file)) else { return Ok(None) };
        let before = read(&follow_links(&file)?)?;
        let private = Permissions::from_mode(0o700);
        let dir = tempfile::Builder::new().prefix("prowess-git-").permissions(private).tempdir()?;
        let path = dir.path().canonicalize()?.join(COPY);
        fs::write(&path, before.as_deref().unwrap_or_default())?;
        Ok(Some(Self { file, before, dir, path }))
    }

    /// The file that it is a copy of.
    pub(crate) fn original(&self) -> &Path {
        &self.file
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The directory that the run may change.
    pub(crate) fn dir(&self) -> &Path {
        self.path.parent().unwrap_or(self.dir.path())
    }

    /// Writes back what the run changed. If the file was changed meanwhile, that stays, and the run's version is kept
    /// beside it.
    pub(crate) fn write_back(self) -> Option<SetAside> {
        // A run can put anything in the place of the copy; a link is not followed.
        let after = match read(&self.path) {
            Ok(after) => after.unwrap_or_default(),
            Err(error) => return Some(self.failed(&error)),
        };
        if after == self.before.as_deref().unwrap_or_default() {
            return None;
        }
        let is_unchanged = follow_links(&self.file).and_then(|file| read(&file)).is_ok_and(|now| now == self.before);
        let target = if is_unchanged { self.file.clone() } else { self.file.with_extension("prowess-version") };
        match (replace(&target, &after), is_unchanged) {
            (Ok(()), true) => None,
            (Ok(()), false) => Some(SetAside {
                path: self.file.clone(),
                moved: Ok(target),
                what: "a file that was changed by somebody else meanwhile".to_owned(),
            }),
            (Err(error), _) => Some(self.failed(&error)),
        }
    }

    fn failed(&self, error: &io::Error) -> SetAside {
        let what = "a change of Git's settings that was not saved".to_owned();
        SetAside { path: self.file.clone(), moved: Err(error.to_string()), what }
    }
}

/// The content of a plain file of ordinary size, if there is one.
fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
        Ok(meta) if !meta.is_file() || meta.len() > MAX_BYTES => Err(io::Error::other("not a file of ordinary size")),
        Ok(_) => fs::read(path).map(Some),
    }
}

fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut draft = Draft::beside(path)?;
    draft.keep_mode()?;
    draft.write_all(bytes)?;
    draft.commit().map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(home: &Path, writes: &[&str]) -> Option<GitFileCopy> {
        let writes = writes.iter().map(|name| home.join(name)).collect();
        GitFileCopy::make(&Lease { writes, ..Lease::default() }, home).unwrap()
    }

    #[test]
    fn what_becomes_of_the_copy_becomes_the_file() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join(".gitconfig");
        assert!(copy(home.path(), &["notes"]).is_none(), "only with a lease for it");
        let made = copy(home.path(), &[".gitconfig"]).unwrap();
        fs::write(made.path(), "[user]\n").unwrap();
        assert_eq!(made.write_back(), None);
        assert_eq!(fs::read_to_string(&file).unwrap(), "[user]\n");
        fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        let made = copy(home.path(), &[".gitconfig"]).unwrap();
        assert_eq!(fs::read_to_string(made.path()).unwrap(), "[user]\n");
        fs::write(made.path(), "[core]\n").unwrap();
        assert_eq!(made.write_back(), None);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[test]
    fn what_others_changed_meanwhile_stays() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join(".gitconfig");
        let made = copy(home.path(), &[".gitconfig"]).unwrap();
        fs::write(made.path(), "theirs").unwrap();
        fs::write(&file, "mine").unwrap();
        let aside = made.write_back().unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
        assert_eq!(fs::read_to_string(aside.moved.unwrap()).unwrap(), "theirs");
    }

    #[test]
    fn a_link_in_the_place_of_the_copy_is_not_followed() {
        let home = tempfile::tempdir().unwrap();
        let secret = home.path().join("secret");
        fs::write(&secret, "s").unwrap();
        let made = copy(home.path(), &[".gitconfig"]).unwrap();
        fs::remove_file(made.path()).unwrap();
        std::os::unix::fs::symlink(&secret, made.path()).unwrap();
        assert!(made.write_back().unwrap().moved.is_err());
        assert!(!home.path().join(".gitconfig").exists());
    }
}
