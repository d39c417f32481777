//! Cleaning up: what was made for a run and must not outlive it?

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::cgroup;
use super::protected::{ProtectedGuard, SetAside};
use crate::git_file::GitFileCopy;
use crate::made_files::MadeFiles;

/// How often a control group is tried again while the last of its processes end.
const ROUNDS: usize = 50;

/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(2);

/// The folders of a run. Letting go of it ends what is still in the run's control group and removes the folders.
#[derive(Debug, Default)]
pub struct Cleanup {
    cgroup: Option<PathBuf>,
    temp: Option<PathBuf>,
    kept: Vec<tempfile::TempDir>,
    shared: Option<Arc<tempfile::TempDir>>,
    guard: Option<Arc<ProtectedGuard>>,
    copy: Option<GitFileCopy>,
    not_written: Option<SetAside>,
    made: Option<MadeFiles>,
}

impl Cleanup {
    /// Cleans up now, as dropping it would, and returns the protected files that the run left behind.
    #[expect(clippy::must_use_candidate, reason = "who only wants to clean up needs no list")]
    pub fn finish(mut self) -> Vec<SetAside> {
        self.end();
        let mut set_aside = self.guard.take().map(|guard| guard.set_aside_files()).unwrap_or_default();
        set_aside.extend(self.not_written.take());
        set_aside
    }

    /// Leaves the processes of the run alone that are still there, with the limits of their control group.
    pub(crate) fn leave_processes(&mut self) {
        if let Some(group) = self.cgroup.take() {
            // It can be removed only if nobody is left in it, and then it should be.
            let _ = fs::remove_dir(group);
        }
    }

    /// Looks after protected files until the run is over.
    pub fn guard(&mut self, guard: ProtectedGuard) {
        self.guard = Some(Arc::new(guard));
    }

    /// Checks the protected files after the run.
    pub(crate) fn guarded_by(&self) -> Option<Arc<ProtectedGuard>> {
        self.guard.clone()
    }

    fn end(&mut self) {
        if let Some(group) = self.cgroup.take() {
            remove_group(&group);
        }
        // No process of the run is left to create more.
        if let Some(guard) = &self.guard {
            guard.check();
        }
        if let Some(copy) = self.copy.take() {
            self.not_written = copy.write_back();
        }
        drop(self.made.take());
        if let Some(temp) = self.temp.take() {
            // Nothing to tell anyone: what is left is a private folder among temporary files.
            let _ = fs::remove_dir_all(temp);
        }
    }

    /// Keeps `folder` until the run is over.
    pub(crate) fn keep(&mut self, folder: tempfile::TempDir) {
        self.kept.push(folder);
    }

    /// Keeps a directory that others use too.
    pub(crate) fn keep_shared(&mut self, dir: Option<Arc<tempfile::TempDir>>) {
        self.shared = dir;
    }

    /// Writes `copy` back when the run is over.
    pub(crate) fn write_back(&mut self, copy: Option<GitFileCopy>) {
        self.copy = copy;
    }

    /// Keeps the files that were made for the run, which removes those that it did not touch.
    pub(crate) fn made(&mut self, made: MadeFiles) {
        self.made = Some(made);
    }

    /// Makes a control group for at most `processes`, where that is possible.
    pub(super) fn make_cgroup(&mut self, processes: u64) -> Option<PathBuf> {
        let name = format!("prowess-{}", uuid::Uuid::new_v4().simple());
        self.cgroup = cgroup::make(&cgroup::place()?, &name, processes).ok();
        self.cgroup.clone()
    }

    /// Makes the folder for temporary files. It must be new: a folder that somebody else made is not private.
    pub(super) fn make_temp(&mut self, path: &Path) -> std::io::Result<()> {
        fs::DirBuilder::new().mode(0o700).create(path)?;
        self.temp = Some(path.to_owned());
        Ok(())
    }
}

impl Drop for Cleanup {
    fn drop(&mut self) {
        self.end();
    }
}

fn remove_group(group: &Path) {
    for round in 0..ROUNDS {
        if round > 0 {
            std::thread::sleep(PAUSE);
        }
        if fs::remove_dir(group).is_ok() || !group.exists() {
            return;
        }
        cgroup::empty(group);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_for_temporary_files_is_new_private_and_gone_afterwards() {
        use std::os::unix::fs::PermissionsExt;
        let scratch = tempfile::tempdir().unwrap();
        let temp = scratch.path().join("run");
        let mut cleanup = Cleanup::default();
        cleanup.make_temp(&temp).unwrap();
        assert_eq!(fs::metadata(&temp).unwrap().permissions().mode() & 0o777, 0o700);
        assert!(Cleanup::default().make_temp(&temp).is_err(), "it exists");
        assert!(temp.exists(), "a failed attempt removes nothing");
        fs::write(temp.join("file"), "x").unwrap();
        cleanup.finish();
        assert!(!temp.exists());
    }
}
