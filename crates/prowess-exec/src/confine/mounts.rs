//! Mounts: how are files outside kept from changes that Landlock does not cover?
//!
//! Landlock guards contents and names. Modes, owners and times it does not, so a run could still make any file of its
//! user readable to all, or set-user-id. Where it can, the helper gives the run a view of the file systems in which
//! everything but the confinement's own places is read-only.
//!
//! That is on top of Landlock, which is what the sandbox promises and rests on: a mount that cannot be made read-only
//! leaves a run with what Landlock allows, and never with more. The list of processes shows those of the run only where
//! the kernel can do that. What comes of it on a machine is found out by trying ([`left_open`]), and the survey reports
//! that.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, StatVfsMountFlags};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount, mount_bind, mount_bind_recursive,
    mount_change, mount_remount, move_mount, open_tree,
};

use super::files;
use super::namespaces::Entered;
use crate::confine::{SHARED_MEMORY, TERMINALS};
use crate::sandbox::{Confinement, HOSTS_FILE, TMP};

/// Settings that `ssh` refuses to include when their owner is neither root nor its user.
const SSH_SETTINGS: &str = "/etc/ssh/ssh_config.d";

/// Mounts everything read-only but what the confinement lets a run change. This process must have a view of its own.
pub(super) fn protect(confinement: &Confinement, entered: Entered) -> io::Result<()> {
    // From here on, nothing we mount is seen by anyone else.
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    // Arguments of other runs may hold secrets; only processes of this run are to be seen. In a user namespace the
    // kernel does not allow it.
    let only_files = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    let _ = mount("proc", "/proc", "proc", only_files, c"hidepid=ptraceable");
    if entered.user {
        hide_foreign_settings();
    }
    if let Some(file) = &confinement.hosts_file {
        // Without it, programs that know no proxy say that they do not find the host.
        let _ = mount_bind(file, HOSTS_FILE);
    }
    let mut open: Vec<PathBuf> = confinement
        .changeable()
        .filter(|path| !path.starts_with("/dev"))
        .filter_map(|path| fs::canonicalize(path).ok())
        .collect();
    open.sort();
    open.dedup();
    for path in open.iter().filter(|path| confinement.needs_mount(path, &open)) {
        mount_bind_recursive(path, path)?;
    }
    mount_on_itself(&confinement.pinned)?;
    mount_on_itself(&confinement.protected)?;
    let mut closed = Vec::new();
    if let Some(own) = &confinement.private_tmp {
        closed = replace_tmp(own, confinement)?;
        open.push(TMP.into());
    }
    if !confinement.sockets.is_empty() && !confinement.unix_sockets {
        cover_other_sockets(&confinement.sockets, &open)?;
    }
    let depth = |point: &Path, places: &[PathBuf]| {
        places.iter().filter(|place| point.starts_with(place)).map(|place| place.components().count()).max()
    };
    for (point, flags) in mounts(&table()) {
        let stays = depth(&point, &open) > depth(&point, &closed);
        let read_only = flags | MountFlags::BIND | MountFlags::RDONLY;
        if stays && confinement.protected.iter().any(|path| point.starts_with(path)) {
            // Unlike the rest, nothing else guards these.
            mount_remount(&point, read_only, c"")?;
        } else if !stays && closed.iter().any(|path| point.starts_with(path)) {
            // Landlock counts these as a part of `/tmp`.
            mount_remount(&point, read_only, c"")?;
        } else if !stays && point != Path::new(TERMINALS) {
            let _ = mount_remount(&point, read_only, c"");
        }
    }
    // Another run can rename directories meanwhile, and a mount point moves with them.
    for path in confinement.protected.iter().chain(&closed) {
        if !rustix::fs::statvfs(path)?.f_flag.contains(StatVfsMountFlags::RDONLY) {
            let why = format!("{} was moved while the command was started; run it again", path.display());
            return Err(io::Error::other(why));
        }
    }
    Ok(())
}

/// Gives the run terminals of its own, with those of others out of sight.
pub(super) fn separate_terminals() -> io::Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    mount("devpts", TERMINALS, "devpts", flags, c"newinstance,ptmxmode=0666,mode=0600")?;
    Ok(mount_bind("/dev/pts/ptmx", "/dev/ptmx")?)
}

/// Gives the run a directory of its own for memory that its processes share.
pub(super) fn separate_memory() -> io::Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    Ok(mount("tmpfs", SHARED_MEMORY, "tmpfs", flags, c"mode=1777,size=256m")?)
}

/// Hides the sockets of this machine's services, except the `allowed` ones and those where the run may change files.
/// Kernels before Landlock's ninth step do not look at them.
fn cover_other_sockets(allowed: &[PathBuf], open: &[PathBuf]) -> io::Result<()> {
    let table = fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let paths = table.lines().filter_map(|line| line.find(" /").map(|at| Path::new(&line[at + 1..])));
    for path in paths.filter(|path| !open.iter().any(|open| path.starts_with(open))) {
        let Ok(real) = fs::canonicalize(path) else { continue };
        if allowed.iter().any(|one| fs::canonicalize(one).is_ok_and(|one| one == real)) {
            continue;
        }
        match mount_bind("/dev/null", &real) {
            Err(error) if error != Errno::NOENT => return Err(error.into()),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

/// Mounts `own` at `/tmp`, and in it what the run may use below the old one, at its old place. Returns what of that it
/// may only read.
fn replace_tmp(own: &Path, confinement: &Confinement) -> io::Result<Vec<PathBuf>> {
    let usable = files::usable_below(Path::new(TMP), confinement).map_err(io::Error::other)?;
    let tree = |path: &Path| {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE;
        open_tree(CWD, path, flags)
    };
    let trees: Vec<OwnedFd> = usable.iter().map(|(path, _)| tree(path)).collect::<Result<_, _>>()?;
    move_mount(tree(own)?, "", CWD, TMP, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
    let tmp = rustix::fs::open(TMP, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    for ((path, _), tree) in usable.iter().zip(&trees) {
        let is_dir = rustix::fs::fstat(tree).is_ok_and(|it| FileType::from_raw_mode(it.st_mode) == FileType::Directory);
        let inside = path.strip_prefix(TMP).map_err(io::Error::other)?;
        let point = make_mount_point(&tmp, inside, is_dir)?;
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
        move_mount(tree, "", &point, "", flags)?;
    }
    Ok(usable.into_iter().filter(|(_, writable)| !writable).map(|(path, _)| path).collect())
}

/// Makes a directory or file to mount at, `inside` a directory that earlier runs could change: a symlink that one of
/// them left in the way is removed, never followed.
fn make_mount_point(root: &OwnedFd, inside: &Path, is_dir: bool) -> io::Result<OwnedFd> {
    let mut at = root.try_clone()?;
    let mut names = inside.components().peekable();
    while let Some(name) = names.next() {
        let name = name.as_os_str();
        let wants_dir = is_dir || names.peek().is_some();
        let make = || {
            if wants_dir {
                return rustix::fs::mkdirat(&at, name, Mode::RWXU);
            }
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
            rustix::fs::openat(&at, name, flags, Mode::RUSR | Mode::WUSR).map(drop)
        };
        let look = || {
            let fd = rustix::fs::openat(&at, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
            let kind = FileType::from_raw_mode(rustix::fs::fstat(&fd)?.st_mode);
            Ok::<_, Errno>((fd, kind))
        };
        let wanted = if wants_dir { FileType::Directory } else { FileType::RegularFile };
        let found = match look() {
            Ok((fd, kind)) if kind == wanted => fd,
            Ok((_, FileType::Directory)) => return Err(Errno::ISDIR.into()),
            Ok(_) => {
                rustix::fs::unlinkat(&at, name, AtFlags::empty())?;
                make()?;
                look()?.0
            }
            Err(_) => {
                make()?;
                look()?.0
            }
        };
        at = found;
    }
    Ok(at)
}

/// Makes mount points of what is at `paths`. What is not there any more needs none, and a link that has taken its place
/// is not followed.
fn mount_on_itself(paths: &[PathBuf]) -> io::Result<()> {
    for path in paths {
        match fs::canonicalize(path) {
            Ok(real) if real == *path => mount_bind_recursive(path, path)?,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// What [`protect`] did not make read-only although it should, for a confinement without places to change.
pub(super) fn left_open() -> Vec<PathBuf> {
    let writable =
        |point: &Path| rustix::fs::statvfs(point).is_ok_and(|stat| !stat.f_flag.contains(StatVfsMountFlags::RDONLY));
    // Of mounts at the same point, and of those below another, only some can be reached.
    let mut open: Vec<PathBuf> = mounts(&table())
        .into_iter()
        .filter(|(point, flags)| !flags.contains(MountFlags::RDONLY) && point != Path::new(TERMINALS))
        .map(|(point, _)| point)
        .filter(|point| writable(point))
        .collect();
    open.dedup();
    open
}

/// In a user namespace root's files belong to nobody, and `ssh` stops at the first such file that it includes.
fn hide_foreign_settings() {
    let is_foreign = |file: fs::DirEntry| file.metadata().is_ok_and(|meta| meta.uid() != 0);
    if fs::read_dir(SSH_SETTINGS).is_ok_and(|mut files| files.any(|file| file.is_ok_and(is_foreign))) {
        // Without it `ssh` fails and says why.
        let _ = mount("tmpfs", SSH_SETTINGS, "tmpfs", MountFlags::RDONLY, c"mode=755");
    }
}

fn table() -> Vec<u8> {
    fs::read("/proc/thread-self/mountinfo").unwrap_or_default()
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
