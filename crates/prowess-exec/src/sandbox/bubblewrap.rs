//! Bubblewrap: which arguments make a confinement?
//!
//! Everything that is not named does not exist inside: other processes, the network, the rest of the disk. The helper
//! then does inside what it does everywhere: it checks the pins, sets limits and filters system calls.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::confinement::{Confinement, TMP, real};
use super::hosts::HOSTS_FILE;

/// Folders that are new and empty inside, and end with the run.
pub(super) const PRIVATE: &[&str] = &["/tmp", "/dev/shm", "/dev/pts"];

/// What arguments are made from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wrap<'a> {
    /// What the run may touch. It must be settled.
    pub(super) confinement: &'a Confinement,
    /// The helper.
    pub(super) helper: &'a Path,
    /// Where to run.
    pub(super) cwd: &'a Path,
}

/// The arguments for `bwrap`, up to and including the helper's own.
pub(super) fn argv(wrap: Wrap<'_>) -> Vec<OsString> {
    let Wrap { confinement, helper, cwd } = wrap;
    let mut args = Args::default();
    args.add(&["--unshare-all"]);
    if confinement.network {
        args.add(&["--share-net"]);
    }
    args.add(&["--die-with-parent", "--cap-drop", "ALL", "--tmpfs", TMP]);

    // What is granted by name although it is hidden lies on top of what hides it.
    let (named, plain): (Vec<_>, Vec<_>) = confinement.read.iter().partition(|path| confinement.hides(path));
    for path in plain.iter().filter(|path| !provided(path)) {
        args.bind("--ro-bind-try", path);
    }
    args.add(&["--proc", "/proc", "--dev", "/dev"]);
    let mut covers = args.mask(&masks(&plain, &confinement.hidden));
    for path in &named {
        args.bind("--ro-bind-try", path);
    }
    covers.extend(args.mask(&masks(&named, &confinement.hidden)));
    if let Some(file) = &confinement.hosts_file {
        args.add(&["--ro-bind"]).path(file).add(&[HOSTS_FILE]);
    }
    args.bind("--ro-bind", helper);
    let changeable: Vec<PathBuf> = confinement.changeable().map(Path::to_owned).collect();
    for path in changeable.iter().filter(|path| !provided(path) && confinement.needs_mount(path, &changeable)) {
        args.bind("--bind-try", path);
    }
    for path in &confinement.sockets {
        args.bind("--bind-try", path);
    }
    // A mount point can be neither renamed nor removed.
    for path in &confinement.pinned {
        args.bind("--bind-try", path);
    }
    for path in &confinement.protected {
        args.bind("--ro-bind-try", path);
    }
    // Only now: there may be places below them to mount at.
    for path in &covers {
        args.add(&["--remount-ro"]).path(path);
    }
    args.add(&["--chdir"]).path(cwd).add(&["--"]).path(helper).add(&[crate::confine::VERB]);
    args.0
}

/// Something that must be covered.
#[derive(Debug, PartialEq, Eq)]
enum Mask {
    File(PathBuf),
    Folder(PathBuf),
}

/// What must be covered when `reads` are mounted: everything hidden that is there, at each name it is then seen by.
fn masks(reads: &[&PathBuf], hidden: &[PathBuf]) -> Vec<Mask> {
    let mut seen: Vec<PathBuf> = Vec::new();
    for read in reads {
        let root = real(read);
        for secret in hidden.iter().filter(|secret| ***secret != root) {
            seen.extend(secret.strip_prefix(&root).map(|rest| read.join(rest)));
        }
    }
    seen.sort();
    seen.dedup();
    let mut masks: Vec<Mask> = Vec::new();
    for path in seen {
        let below = masks.iter().any(|mask| matches!(mask, Mask::Folder(above) if path.starts_with(above)));
        // A link is not followed: where it leads is hidden by its own name.
        match fs::symlink_metadata(&path) {
            Ok(meta) if meta.is_dir() && !below => masks.push(Mask::Folder(path)),
            Ok(meta) if !meta.is_symlink() && !below => masks.push(Mask::File(path)),
            Ok(_) | Err(_) => {}
        }
    }
    masks
}

/// Whether `--proc` and `--dev` bring it.
fn provided(path: &Path) -> bool {
    path.starts_with("/proc") || path.starts_with("/dev")
}

#[derive(Default)]
struct Args(Vec<OsString>);

impl Args {
    fn add(&mut self, words: &[&str]) -> &mut Self {
        self.0.extend(words.iter().map(OsString::from));
        self
    }

    fn path(&mut self, path: &Path) -> &mut Self {
        self.0.push(path.into());
        self
    }

    /// Covers each, and says which covers are still to be made read-only.
    fn mask(&mut self, masks: &[Mask]) -> Vec<PathBuf> {
        let mut folders = Vec::new();
        for mask in masks {
            match mask {
                Mask::File(path) => {
                    self.add(&["--ro-bind", "/dev/null"]).path(path);
                }
                Mask::Folder(path) => {
                    self.add(&["--tmpfs"]).path(path);
                    folders.push(path.clone());
                }
            }
        }
        folders
    }

    fn bind(&mut self, how: &str, path: &Path) {
        self.add(&[how]).path(path).path(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(confinement: &Confinement) -> String {
        let wrap = Wrap { confinement, helper: Path::new("/opt/prowess/prowess"), cwd: Path::new("/home/u/w/sub") };
        argv(wrap).iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_confinement_as_arguments() {
        let scratch = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(scratch.path()).unwrap();
        fs::create_dir_all(root.join("etc/private/mine/inner")).unwrap();
        fs::write(root.join("etc/shadow"), "x").unwrap();
        std::os::unix::fs::symlink("etc", root.join("alias")).unwrap();
        let confinement = Confinement {
            read: vec![
                "/usr".into(),
                root.join("etc"),
                root.join("alias"),
                root.join("etc/private/mine"),
                "/proc".into(),
            ],
            write: ["/home/u/w", "/dev/null"].iter().map(PathBuf::from).collect(),
            hidden: ["shadow", "private", "private/mine/inner", "missing"]
                .map(|name| root.join("etc").join(name))
                .into(),
            pinned: vec!["/home/u/w/.git".into()],
            protected: vec!["/home/u/w/.git/config".into()],
            temp: Some("/tmp/run-1".into()),
            ..Confinement::default()
        };
        let root = root.display();
        assert_eq!(
            words(&confinement.settle()),
            format!(
                "--unshare-all --die-with-parent --cap-drop ALL --tmpfs /tmp \
                 --ro-bind-try /usr /usr --ro-bind-try {root}/etc {root}/etc --ro-bind-try {root}/alias {root}/alias \
                 --proc /proc --dev /dev \
                 --tmpfs {root}/alias/private --ro-bind /dev/null {root}/alias/shadow \
                 --tmpfs {root}/etc/private --ro-bind /dev/null {root}/etc/shadow \
                 --ro-bind-try {root}/etc/private/mine {root}/etc/private/mine \
                 --tmpfs {root}/etc/private/mine/inner \
                 --ro-bind /opt/prowess/prowess /opt/prowess/prowess \
                 --bind-try /home/u/w /home/u/w --bind-try /tmp/run-1 /tmp/run-1 \
                 --bind-try /home/u/w/.git /home/u/w/.git \
                 --ro-bind-try /home/u/w/.git/config /home/u/w/.git/config \
                 --remount-ro {root}/alias/private --remount-ro {root}/etc/private \
                 --remount-ro {root}/etc/private/mine/inner \
                 --chdir /home/u/w/sub -- /opt/prowess/prowess __confine"
            )
        );
    }

    #[test]
    fn the_network_is_shared_only_when_granted() {
        assert!(!words(&Confinement::default()).contains("--share-net"));
        let network = Confinement { network: true, ..Confinement::default() };
        assert!(words(&network).starts_with("--unshare-all --share-net "));
    }
}
