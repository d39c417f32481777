//! The confinement: which files, and which of the network, may a run touch?
//!
//! Policy as data. It names what is allowed and nothing else is; a mechanism (Landlock, bubblewrap) turns it into rules.
//! The baseline is enough for ordinary programs to work on the workspace. The home folder is never part of it, nor are
//! the system's own secrets. Only the operator adds to it.

use std::fs;
use std::path::{Component, Path, PathBuf};

use prowess_policy::Grants;
use serde::{Deserialize, Serialize};

use super::hosts::NamedHost;

/// What a run may touch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Confinement {
    /// Files and folders that may be read and executed.
    pub read: Vec<PathBuf>,
    /// Files and folders that may be read, executed and changed.
    pub write: Vec<PathBuf>,
    /// Files and folders that stay unreadable although a folder above them is in `read`.
    pub hidden: Vec<PathBuf>,
    /// Whether it may use the internet protocols.
    pub network: bool,
    /// Whether it has a network of its own, in which it reaches nothing but a proxy of ours.
    #[serde(default)]
    pub proxy: Proxy,
    /// Hosts that it finds by name in that network.
    #[serde(default)]
    pub hosts: Vec<NamedHost>,
    /// The file that stands in for `/etc/hosts`, made by [`Sandbox::prepare`](super::Sandbox::prepare).
    #[serde(default)]
    pub hosts_file: Option<PathBuf>,
    /// Whether it may talk to local services over their sockets.
    pub unix_sockets: bool,
    /// The sockets that it may connect to, where not to all.
    #[serde(default)]
    pub sockets: Vec<PathBuf>,
    /// Files and folders that stay read-only although a folder above them may be changed. Needs a view of its own.
    #[serde(default)]
    pub protected: Vec<PathBuf>,
    /// Folders that cannot be renamed or removed although they may be changed. Needs a view of its own.
    #[serde(default)]
    pub pinned: Vec<PathBuf>,
    /// A folder of its own for temporary files: made for the run and removed after it.
    pub temp: Option<PathBuf>,
    /// A directory that takes the place of `/tmp`. Needs a view of its own.
    #[serde(default)]
    pub private_tmp: Option<PathBuf>,
    /// Whether it gets terminals of its own, for programs that it starts in one. Needs a view of its own.
    #[serde(default)]
    pub own_terminals: bool,
    /// Whether it gets a view of the file systems of its own.
    #[serde(default)]
    pub view: OwnView,
}

/// Whether a run gets mounts of its own, in which everything that it may not change is read-only, and System V shared
/// memory of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum OwnView {
    /// It does, or it does not start. For machines that are known to allow it; see
    /// [`Survey::view`](super::Survey::view).
    Required,
    /// It does where the kernel allows it.
    #[default]
    WherePossible,
    /// It does not: somebody else has done it, or the kernel cannot.
    No,
}

/// The directory for temporary files of the whole system.
pub(crate) const TMP: &str = "/tmp";

/// The port at which a run finds the proxy. The network is the run's own, so the port is always free.
pub const PROXY_PORT: u16 = 3128;

/// How a run gets to the proxy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Proxy {
    /// Not at all.
    #[default]
    None,
    /// In a network namespace that the helper makes.
    Separate,
    /// In the network namespace in which the helper already is.
    Inside,
}

/// Where systems keep programs, libraries and public settings.
const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/etc",
    "/nix",
    "/gnu",
    "/snap",
    "/home/linuxbrew/.linuxbrew",
    "/run/current-system",
    // `/etc/resolv.conf` is often a link to one of these.
    "/run/systemd/resolve",
    "/run/resolvconf",
    "/run/NetworkManager/resolv.conf",
    // A process outside the sandbox keeps its variables, memory and files to itself: the kernel asks whether the reader
    // may trace it.
    "/proc",
    "/sys/devices/system/cpu",
    "/dev/random",
    "/dev/urandom",
];

/// Devices without memory, and the run's own terminal. Not `/dev/pts`: other people's terminals are there.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/ptmx"];

/// Secrets below [`SYSTEM`]. Most are unreadable anyway, but not to root, which owns them.
const SECRETS: &[&str] = &[
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/security/opasswd",
    "/etc/ssh/ssh_host_dsa_key",
    "/etc/ssh/ssh_host_ecdsa_key",
    "/etc/ssh/ssh_host_ed25519_key",
    "/etc/ssh/ssh_host_rsa_key",
    "/etc/ssl/private",
    "/etc/pki/tls/private",
    "/etc/letsencrypt",
    "/etc/krb5.keytab",
    "/etc/NetworkManager/system-connections",
    "/etc/netplan",
    "/etc/wpa_supplicant",
    "/etc/wireguard",
    "/etc/openvpn",
    "/etc/ipsec.secrets",
    "/etc/ppp/chap-secrets",
    "/etc/ppp/pap-secrets",
    "/etc/kubernetes",
    "/etc/rancher",
    "/etc/docker/key.json",
];

/// Folders beside a `bin` that its programs load code and settings from.
const BESIDE_BIN: &[&str] = &["lib", "lib64", "libexec", "include"];

impl Confinement {
    /// What every run gets: the system to read, `workspace` to change, and the programs of `path_dirs`; never `home`.
    #[must_use]
    pub fn baseline(workspace: &Path, path_dirs: &[PathBuf], home: Option<&Path>) -> Self {
        let mut read: Vec<PathBuf> = SYSTEM.iter().map(PathBuf::from).collect();
        for dir in path_dirs {
            let holds_home = home.is_some_and(|home| home.starts_with(dir));
            if !dir.is_absolute() || dir.parent().is_none() || holds_home || covers(&read, dir) {
                continue;
            }
            read.push(dir.clone());
            if dir.file_name().is_some_and(|name| name == "bin" || name == "sbin") {
                read.extend(BESIDE_BIN.iter().map(|name| dir.with_file_name(name)));
            }
        }
        let mut write = vec![workspace.to_owned()];
        write.extend(DEVICES.iter().map(PathBuf::from));
        Self { read, write, hidden: SECRETS.iter().map(PathBuf::from).collect(), ..Self::default() }
    }

    /// The same with what the operator adds. A grant never takes anything away, and hides nothing less: a secret is
    /// readable only when it, or something in it, is granted by name.
    #[must_use]
    pub fn merge(mut self, grants: &Grants) -> Self {
        add(&mut self.read, &grants.read);
        add(&mut self.write, &grants.write);
        self.network |= grants.network;
        self.unix_sockets |= grants.unix_sockets;
        self
    }

    /// The same with every place under its real name too, so that no link hides that two of them are one. What is not
    /// there yet is placed where it would be made. The given names stay: inside a sandbox they must lead somewhere.
    #[must_use]
    pub fn settle(mut self) -> Self {
        follow(&mut self.hidden, <[PathBuf]>::contains);
        let hidden = std::mem::take(&mut self.hidden);
        let named = |real: &PathBuf| hidden.iter().any(|hidden| real.starts_with(hidden));
        follow(&mut self.read, |list, real| list.contains(real) || covers(list, real) && !named(real));
        follow(&mut self.write, |list, real| covers(list, real));
        self.hidden = hidden;
        let temp = self.temp.as_deref().map(real);
        self.write.extend(temp.filter(|temp| !self.changeable().any(|known| known == temp)));
        self
    }

    /// Whether `path`, one of those that are `open` to changes, has to be a mount point to be changed. A file that is one
    /// cannot be replaced, so there should be no more of them than needed.
    pub(crate) fn needs_mount(&self, path: &Path, open: &[PathBuf]) -> bool {
        let is_inside = open.iter().any(|one| one != path && path.starts_with(one));
        !is_inside || self.protected.iter().any(|one| path.starts_with(one))
    }

    /// Whether a run in `cwd` works in the system's `/tmp` itself, so that it cannot have another in its place.
    pub(crate) fn uses_tmp(&self, cwd: &Path) -> bool {
        let mut usable = self.read.iter().chain(&self.write);
        let is_granted = usable.clone().any(|path| Path::new(TMP).starts_with(path));
        let is_in_it = cwd.starts_with(TMP) && cwd != Path::new(TMP);
        is_granted || is_in_it && !usable.any(|path| cwd.starts_with(path))
    }

    /// Whether it may use Unix sockets at all.
    pub(crate) fn has_unix_sockets(&self) -> bool {
        self.unix_sockets || !self.sockets.is_empty()
    }

    /// The same as seen by a run that has its own `/tmp`: it may change all of it, and nothing hidden is left in it.
    #[must_use]
    pub(crate) fn with_private_tmp(mut self) -> Self {
        if self.private_tmp.take().is_some() {
            self.hidden.retain(|hidden| !hidden.starts_with(TMP));
            self.write.push(TMP.into());
        }
        self
    }

    /// The first folder that may be changed although something below it is to stay hidden. No mechanism can do both.
    #[must_use]
    pub fn conflict(&self) -> Option<(&Path, &Path)> {
        self.changeable().find_map(|open| {
            let hidden = self.hidden.iter().find(|hidden| hidden.as_path() != open && hidden.starts_with(open))?;
            Some((open, hidden.as_path()))
        })
    }

    /// Everything that may be changed.
    pub fn changeable(&self) -> impl Iterator<Item = &Path> {
        self.write.iter().chain(&self.temp).map(PathBuf::as_path)
    }

    /// Whether `path` is one of the secrets or inside one, so that only a grant by name can have put it in a list.
    #[must_use]
    pub fn hides(&self, path: &Path) -> bool {
        self.hidden.iter().any(|hidden| path.starts_with(hidden))
    }
}

/// Where a path leads when all links are followed, the last one too. What is not there keeps its name.
pub(crate) fn real(path: &Path) -> PathBuf {
    /// As many links as the kernel follows.
    const LINKS: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        match step(&path) {
            Ok(found) => return found,
            Err(next) => path = next,
        }
    }
    path
}

/// The real path, or, where a link leads to nothing, the path to go on with in its place.
fn step(path: &Path) -> Result<PathBuf, PathBuf> {
    let mut missing = Vec::new();
    let mut at = path;
    loop {
        if let Ok(found) = fs::canonicalize(at) {
            return Ok(append(found, &missing));
        }
        let Some(parent) = at.parent() else { return Ok(path.to_owned()) };
        if let Ok(target) = fs::read_link(at) {
            return Err(append(parent.join(target), &missing));
        }
        missing.extend(at.components().next_back());
        at = parent;
    }
}

fn append(mut path: PathBuf, missing: &[Component<'_>]) -> PathBuf {
    for component in missing.iter().rev() {
        match component {
            Component::ParentDir => {
                path.pop();
            }
            other => path.push(other),
        }
    }
    path
}

/// Adds the real names of what is in the list, unless it has them already.
fn follow(list: &mut Vec<PathBuf>, has: impl Fn(&[PathBuf], &PathBuf) -> bool) {
    for at in 0..list.len() {
        let real = real(&list[at]);
        if !has(list, &real) {
            list.push(real);
        }
    }
}

fn covers(list: &[PathBuf], path: &Path) -> bool {
    list.iter().any(|known| path.starts_with(known))
}

fn add(list: &mut Vec<PathBuf>, more: &[PathBuf]) {
    for path in more.iter().filter(|path| path.is_absolute()) {
        if !list.contains(path) {
            list.push(path.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(list: &[&str]) -> Vec<PathBuf> {
        list.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn the_baseline_reads_the_system_and_changes_the_workspace() {
        let baseline = Confinement::baseline(Path::new("/home/u/w"), &[], Some(Path::new("/home/u")));
        assert!(!baseline.network && !baseline.unix_sockets);
        assert!(baseline.read.contains(&PathBuf::from("/usr")));
        assert_eq!(baseline.write[0], Path::new("/home/u/w"));
        assert!(baseline.write[1..].iter().all(|path| path.starts_with("/dev")), "{:?}", baseline.write);
        for secret in ["/etc/shadow", "/etc/ssl/private/key.pem"] {
            assert!(baseline.hides(Path::new(secret)), "{secret}");
        }
    }

    #[test]
    fn nothing_of_the_baseline_holds_the_home_or_the_root() {
        let home = Path::new("/home/u");
        let dirs = paths(&["/", "/home", "/home/u", ".", "rel/bin", "/home/u/.local/bin", "/srv/tool/bin", "/usr/bin"]);
        let baseline = Confinement::baseline(Path::new("/w"), &dirs, Some(home));
        assert!(!baseline.read.iter().any(|path| home.starts_with(path)), "{:?}", baseline.read);
        let added: Vec<&PathBuf> = baseline.read.iter().skip(SYSTEM.len()).collect();
        assert_eq!(
            added,
            [
                "/home/u/.local/bin",
                "/home/u/.local/lib",
                "/home/u/.local/lib64",
                "/home/u/.local/libexec",
                "/home/u/.local/include",
                "/srv/tool/bin",
                "/srv/tool/lib",
                "/srv/tool/lib64",
                "/srv/tool/libexec",
                "/srv/tool/include"
            ]
            .iter()
            .map(PathBuf::from)
            .collect::<Vec<_>>()
            .iter()
            .collect::<Vec<_>>()
        );
    }

    #[test]
    fn grants_only_add() {
        let base = Confinement::baseline(Path::new("/w"), &[], None);
        let grants = Grants { read: paths(&["/data", "rel", "/usr"]), network: true, ..Grants::default() };
        let merged = base.clone().merge(&grants);
        assert!(merged.network && !merged.unix_sockets);
        assert_eq!(merged.read.len(), base.read.len() + 1, "relative paths and known ones add nothing");
        assert_eq!(merged.hidden, base.hidden);
        assert_eq!(merged.clone().merge(&Grants::default()), merged);
    }

    #[test]
    fn a_folder_with_a_secret_below_it_cannot_be_changed() {
        let base = Confinement::baseline(Path::new("/"), &[], None);
        assert_eq!(base.conflict(), Some((Path::new("/"), Path::new("/etc/shadow"))));
        let named = Confinement::baseline(Path::new("/w"), &[], None)
            .merge(&Grants { write: paths(&["/etc/netplan"]), ..Grants::default() });
        assert_eq!(named.conflict(), None, "granted by name");
    }

    #[test]
    fn a_link_does_not_make_two_places_of_one() {
        let scratch = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(scratch.path()).unwrap();
        fs::create_dir_all(root.join("disk/u/w")).unwrap();
        std::os::unix::fs::symlink(root.join("disk"), root.join("home")).unwrap();
        let confinement = |open: &str, hidden: &str| {
            let hidden = vec![root.join(hidden)];
            Confinement { write: vec![root.join(open)], hidden, ..Confinement::default() }
        };
        // The secret need not be there yet.
        for (open, hidden) in [("home/u", "disk/u/.ssh/id"), ("disk/u", "home/u/.ssh/id")] {
            assert_eq!(confinement(open, hidden).conflict(), None, "by their names they have nothing in common");
            assert!(confinement(open, hidden).settle().conflict().is_some(), "{open} {hidden}");
        }
        for (open, hidden) in [("home/u/w", "disk/u/.ssh"), ("disk/u/w", "home/u/.ssh"), ("home/u", "disk/u")] {
            assert_eq!(confinement(open, hidden).settle().conflict(), None, "{open} {hidden}");
        }
        let settled = confinement("home/u/w", "home/u/.ssh").settle();
        assert_eq!(settled.write, [root.join("home/u/w"), root.join("disk/u/w")]);
        assert_eq!(settled.hidden, [root.join("home/u/.ssh"), root.join("disk/u/.ssh")]);
        assert_eq!(settled.clone().settle(), settled);
    }

    #[test]
    fn links_to_nothing_are_followed_too() {
        let scratch = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(scratch.path()).unwrap();
        std::os::unix::fs::symlink("away/secret", root.join("relative")).unwrap();
        std::os::unix::fs::symlink(root.join("relative"), root.join("twice")).unwrap();
        std::os::unix::fs::symlink("round", root.join("round")).unwrap();
        assert_eq!(real(&root.join("twice")), root.join("away/secret"));
        assert_eq!(real(&root.join("relative/below")), root.join("away/secret/below"));
        assert_eq!(real(&root.join("missing/../there")), root.join("there"));
        assert_eq!(real(&root.join("round")), root.join("round"));
        assert_eq!(real(Path::new("/")), Path::new("/"));
    }
}
