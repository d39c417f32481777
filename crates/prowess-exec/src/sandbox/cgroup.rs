//! Control groups: how are the processes of a run counted when it runs as root?
//!
//! The kernel does not apply its per-user process limit to root, so a run gets a group of its own with `pids.max`.
//! The parent makes the group and removes it; the helper only joins it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};

const MOUNT: &str = "/sys/fs/cgroup";

/// The folder in which groups of runs can be made, if this machine has one.
pub(crate) fn place() -> Option<PathBuf> {
    let membership = fs::read_to_string("/proc/self/cgroup").ok()?;
    let (first, second) = places(&membership);
    first.filter(|dir| dir.is_dir()).or_else(|| second.and_then(|(root, dir)| counted(&root, &dir)))
}

/// Makes a group in `place` that holds at most `processes`.
pub(crate) fn make(place: &Path, name: &str, processes: u64) -> io::Result<PathBuf> {
    let group = place.join(name);
    fs::create_dir(&group)?;
    if let Err(error) = fs::write(group.join("pids.max"), processes.to_string()) {
        fs::remove_dir(&group)?;
        return Err(error);
    }
    Ok(group)
}

/// Moves the calling process, which must have one thread, into `group`.
pub(crate) fn join(group: &Path) -> io::Result<()> {
    fs::write(door(group), "0")
}

/// The file through which a process enters `group`.
pub(super) fn door(group: &Path) -> PathBuf {
    // Version 1 moves a single thread without waiting for every processor of the machine; version 2 has no such way.
    let tasks = group.join("tasks");
    if tasks.exists() { tasks } else { group.join("cgroup.procs") }
}

/// Ends whoever is still in `group`. Says whether it is empty now.
pub(crate) fn empty(group: &Path) -> bool {
    if fs::write(group.join("cgroup.kill"), "1").is_err() {
        for pid in members(group) {
            let _ = Pid::from_raw(pid).map(|pid| kill_process(pid, Signal::KILL));
        }
    }
    members(group).is_empty()
}

fn members(group: &Path) -> Vec<i32> {
    let text = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

/// Our folder in the version 1 hierarchy that counts processes, and root and folder of the version 2 hierarchy.
fn places(membership: &str) -> (Option<PathBuf>, Option<(PathBuf, PathBuf)>) {
    let (mut first, mut second) = (None, None);
    for line in membership.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let below = path.trim_start_matches('/');
        if controllers.split(',').any(|controller| controller == "pids") {
            first = Some(Path::new(MOUNT).join("pids").join(below));
        } else if controllers.is_empty() {
            let root = PathBuf::from(MOUNT);
            second = Some((root.clone(), root.join(below)));
        }
    }
    (first, second)
}

/// The nearest folder from `dir` up whose groups are counted. A group with processes of its own cannot have any.
fn counted(root: &Path, dir: &Path) -> Option<PathBuf> {
    dir.ancestors().take_while(|dir| dir.starts_with(root)).find_map(|dir| {
        let controllers = fs::read_to_string(dir.join("cgroup.subtree_control")).ok()?;
        controllers.split_ascii_whitespace().any(|controller| controller == "pids").then(|| dir.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_read() {
        let (first, second) = places("8:pids:/a/b\n3:cpu,cpuacct:/\n0::/user.slice\n");
        assert_eq!(first, Some(PathBuf::from("/sys/fs/cgroup/pids/a/b")));
        assert_eq!(second, Some((PathBuf::from("/sys/fs/cgroup"), PathBuf::from("/sys/fs/cgroup/user.slice"))));
        assert_eq!(places("nonsense\n1:name=systemd:/\n"), (None, None));
    }

    #[test]
    fn the_nearest_counted_folder_is_taken() {
        let root = tempfile::tempdir().unwrap();
        let deep = root.path().join("slice/service");
        fs::create_dir_all(&deep).unwrap();
        fs::write(root.path().join("cgroup.subtree_control"), "cpu pids\n").unwrap();
        fs::write(deep.join("cgroup.subtree_control"), "\n").unwrap();
        assert_eq!(counted(root.path(), &deep), Some(root.path().to_owned()));
        fs::write(root.path().join("slice/cgroup.subtree_control"), "memory pids\n").unwrap();
        assert_eq!(counted(root.path(), &deep), Some(root.path().join("slice")));
    }
}
