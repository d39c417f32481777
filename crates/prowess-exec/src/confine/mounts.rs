//! Mounts: how are files outside kept from changes that Landlock does not cover?
//!
//! Landlock guards contents and names. Modes, owners and times it does not, so root in a sandbox could still make any
//! file of root's readable to all, or set-user-id. Where this process may, it gives itself a view of the file systems
//! in which everything but the confinement's own places is read-only.
//!
//! All of this is best effort, and on top of Landlock, which is what the sandbox promises and rests on: a step that
//! fails leaves a run with what Landlock allows, and never with more. So it is for each mount that cannot be made
//! read-only, and for the list of processes, which shows those of the run only where the kernel can do that. What
//! comes of it on a machine is found out by trying ([`left_open`]), and the survey reports that.

use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::StatVfsMountFlags;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_bind_recursive, mount_change, mount_remount};
use rustix::thread::{CapabilitySet, UnshareFlags, capabilities};

use crate::sandbox::Confinement;

/// New terminals are files that somebody has to make.
const TERMINALS: &str = "/dev/pts";

/// Names the view that a thread has.
const VIEW: &str = "/proc/thread-self/ns/mnt";

/// Whether this process may change its view of the file systems.
fn permitted() -> bool {
    capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_ADMIN))
}

/// Mounts everything read-only but what the confinement lets a run change. Does what it can: the rules about files are
/// what the sandbox rests on.
pub(super) fn protect(confinement: &Confinement) {
    if !permitted() || !own_view() {
        return;
    }
    // From here on, nothing we mount is seen by anyone else.
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    if mount_change("/", private).is_err() {
        return;
    }
    // Arguments of other runs may hold secrets; only processes of this run are to be seen.
    let only_files = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    let _ = mount("proc", "/proc", "proc", only_files, c"hidepid=ptraceable");
    let mut open: Vec<PathBuf> = confinement
        .changeable()
        .filter(|path| !path.starts_with("/dev"))
        .filter_map(|path| fs::canonicalize(path).ok())
        .collect();
    open.sort();
    open.dedup();
    if open.iter().any(|path| mount_bind_recursive(path, path).is_err()) {
        return;
    }
    for (point, flags) in mounts(&table()) {
        let stays = open.iter().any(|path| point.starts_with(path));
        if !stays && point != Path::new(TERMINALS) {
            let _ = mount_remount(&point, flags | MountFlags::BIND | MountFlags::RDONLY, c"");
        }
    }
}

/// What [`protect`] does not make read-only here although it should, or nothing if it does nothing at all. It is tried,
/// by a thread that gets a view of its own and ends with it.
pub(super) fn left_open() -> Option<Vec<PathBuf>> {
    let attempt = || {
        let before = fs::read_link(VIEW).ok()?;
        protect(&Confinement::default());
        if fs::read_link(VIEW).ok()? == before {
            return None;
        }
        let writable = |point: &Path| {
            rustix::fs::statvfs(point).is_ok_and(|stat| !stat.f_flag.contains(StatVfsMountFlags::RDONLY))
        };
        // Of mounts at the same point, and of those below another, only some can be reached.
        let mut open: Vec<PathBuf> = mounts(&table())
            .into_iter()
            .filter(|(point, flags)| !flags.contains(MountFlags::RDONLY) && point != Path::new(TERMINALS))
            .map(|(point, _)| point)
            .filter(|point| writable(point))
            .collect();
        open.dedup();
        Some(open)
    };
    std::thread::spawn(attempt).join().ok()?
}

fn table() -> Vec<u8> {
    fs::read("/proc/thread-self/mountinfo").unwrap_or_default()
}

/// Parts from the view that other processes have.
#[expect(deprecated, reason = "what makes the call unsound is a flag about open files, which is not used here")]
fn own_view() -> bool {
    rustix::thread::unshare(UnshareFlags::NEWNS).is_ok()
}

/// Mount points with their flags, from the kernel's table.
fn mounts(table: &[u8]) -> Vec<(PathBuf, MountFlags)> {
    table
        .split(|&byte| byte == b'\n')
        .filter_map(|line| {
            let mut fields = line.split(|&byte| byte == b' ').skip(4);
            let point = PathBuf::from(std::ffi::OsString::from_vec(unescape(fields.next()?)));
            Some((point, flags(std::str::from_utf8(fields.next()?).ok()?)))
        })
        .collect()
}

fn flags(options: &str) -> MountFlags {
    options.split(',').fold(MountFlags::empty(), |flags, option| {
        flags
            | match option {
                "ro" => MountFlags::RDONLY,
                "nosuid" => MountFlags::NOSUID,
                "nodev" => MountFlags::NODEV,
                "noexec" => MountFlags::NOEXEC,
                "noatime" => MountFlags::NOATIME,
                "nodiratime" => MountFlags::NODIRATIME,
                "relatime" => MountFlags::RELATIME,
                _ => MountFlags::empty(),
            }
    })
}

/// The table writes blanks and backslashes as `\` and three octal digits.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, tail)) = rest.split_first() {
        let digits = tail.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) if first == b'\\' => {
                bytes.push(byte);
                rest = &tail[3..];
            }
            _ => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trying_it_changes_nothing_here() {
        let here = || {
            let mut mounts = mounts(&fs::read("/proc/self/mountinfo").unwrap());
            mounts.retain(|(point, _)| point == Path::new("/") || point == Path::new("/proc"));
            (fs::read_link("/proc/self/ns/mnt").unwrap(), mounts)
        };
        let before = here();
        let left = left_open();
        assert!(permitted() || left.is_none(), "nobody can without the privilege");
        assert_eq!(here(), before);
    }

    #[test]
    fn the_kernels_table_is_read() {
        let table = b"22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n\
            23 22 0:5 / /mnt/a\\040b\\134c ro,nosuid,noexec - tmpfs x rw\n\nbroken\n";
        assert_eq!(
            mounts(table),
            [
                (PathBuf::from("/"), MountFlags::RELATIME),
                (PathBuf::from("/mnt/a b\\c"), MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NOEXEC),
            ]
        );
    }
}
