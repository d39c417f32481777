//! What may a command use beyond the sandbox?
//!
//! A [`Lease`] names it: hosts, directories, sockets, keys. The judge reads from a command's text what it wants, compares
//! that with the leases that are held, and a person is asked about the difference only.

mod held;
mod host;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use held::{HeldLease, Lifetime, Origin};
pub use host::{DEFAULT_PORTS, Host, HostError, HostPattern, HostRule, IpBlock};

/// What a command may use, or wants to use, beyond the sandbox.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Lease {
    /// Hosts and ports to connect to.
    pub hosts: Vec<HostRule>,
    /// Files and directories to read.
    pub reads: Vec<PathBuf>,
    /// Files and directories to change.
    pub writes: Vec<PathBuf>,
    /// Unix sockets of services on this machine.
    pub sockets: Vec<PathBuf>,
    /// Names of variables whose values are secrets.
    pub keys: Vec<String>,
    /// Whether something goes on running after the command has ended.
    pub keeps_running: bool,
}

impl Lease {
    /// A lease for these hosts and nothing else.
    #[must_use]
    pub fn for_hosts(hosts: Vec<HostRule>) -> Self {
        Self { hosts, ..Self::default() }
    }

    /// Whether it allows nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Both together, without repetition.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        extend(&mut self.hosts, &other.hosts);
        extend(&mut self.reads, &other.reads);
        extend(&mut self.writes, &other.writes);
        extend(&mut self.sockets, &other.sockets);
        extend(&mut self.keys, &other.keys);
        self.keeps_running |= other.keeps_running;
        self
    }

    /// The same, with what `other` has of each kind of which it has nothing itself.
    #[must_use]
    pub fn or(mut self, other: &Self) -> Self {
        fill(&mut self.hosts, &other.hosts);
        fill(&mut self.reads, &other.reads);
        fill(&mut self.writes, &other.writes);
        fill(&mut self.sockets, &other.sockets);
        fill(&mut self.keys, &other.keys);
        self.keeps_running |= other.keeps_running;
        self
    }

    /// The part of it that `held` does not cover.
    #[must_use]
    pub fn beyond(&self, held: &Self) -> Self {
        let is_below = |path: &PathBuf, above: &[PathBuf]| above.iter().any(|above| path.starts_with(above));
        let mut rest = self.clone();
        rest.hosts.retain(|rule| rule.is_wider_than(&held.hosts));
        rest.reads.retain(|path| !is_below(path, &held.reads) && !is_below(path, &held.writes));
        rest.writes.retain(|path| !is_below(path, &held.writes));
        rest.sockets.retain(|socket| !held.sockets.contains(socket));
        rest.keys.retain(|key| !held.keys.contains(key));
        rest.keeps_running &= !held.keeps_running;
        rest
    }

    /// The same with relative paths seen from `workspace`.
    #[must_use]
    pub fn seen_from(mut self, workspace: &Path) -> Self {
        for path in self.reads.iter_mut().chain(&mut self.writes).chain(&mut self.sockets) {
            *path = workspace.join(&*path);
        }
        self
    }

    /// Whether it allows anything that `held` does not.
    #[must_use]
    pub fn is_wider_than(&self, held: &Self) -> bool {
        !self.beyond(held).is_empty()
    }

    /// Each part of it in words, as a person is asked about it: `reach wttr.in:443`.
    #[must_use]
    pub fn phrases(&self) -> Vec<String> {
        let path = |verb: &str, path: &Path| format!("{verb} {}", path.display());
        let hosts = self.hosts.iter().map(|rule| format!("reach {rule}"));
        let reads = self.reads.iter().map(|one| path("read", one));
        let writes = self.writes.iter().map(|one| path("change", one));
        let is_dir = |one: &Path| one.extension().is_none() && one.components().count() <= 2;
        let verb = |one: &Path| if is_dir(one) { "use Unix sockets in" } else { "connect to the socket" };
        let sockets = self.sockets.iter().map(|one| path(verb(one), one));
        let keys = self.keys.iter().map(|name| format!("use the key {name}"));
        let keeps = self.keeps_running.then(|| "keep running in the background".to_owned());
        hosts.chain(reads).chain(writes).chain(sockets).chain(keys).chain(keeps).collect()
    }
}

impl Lease {
    /// The same as arguments of a command line: `--host wttr.in:443`.
    #[must_use]
    pub fn flags(&self) -> Vec<String> {
        let path = |path: &PathBuf| path.display().to_string();
        let hosts = self.hosts.iter().map(|rule| ("--host", rule.to_string()));
        let reads = self.reads.iter().map(|one| ("--read", path(one)));
        let writes = self.writes.iter().map(|one| ("--write", path(one)));
        let sockets = self.sockets.iter().map(|one| ("--socket", path(one)));
        let keys = self.keys.iter().map(|name| ("--key", name.clone()));
        let pairs = hosts.chain(reads).chain(writes).chain(sockets).chain(keys);
        let mut flags: Vec<String> = pairs.flat_map(|(flag, value)| [flag.to_owned(), value]).collect();
        flags.extend(self.keeps_running.then(|| "--keeps-running".to_owned()));
        flags
    }
}

fn fill<T: Clone>(list: &mut Vec<T>, others: &[T]) {
    if list.is_empty() {
        list.extend_from_slice(others);
    }
}

fn extend<T: Clone + PartialEq>(list: &mut Vec<T>, more: &[T]) {
    for one in more {
        if !list.contains(one) {
            list.push(one.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(hosts: &[&str], reads: &[&str], writes: &[&str]) -> Lease {
        let paths = |list: &[&str]| list.iter().map(PathBuf::from).collect();
        let hosts = hosts.iter().map(|host| host.parse().unwrap()).collect();
        Lease { hosts, reads: paths(reads), writes: paths(writes), ..Lease::default() }
    }

    #[test]
    fn only_what_no_lease_covers_is_asked_about() {
        let wanted = lease(&["wttr.in:443", "evil.example:443"], &["/srv/a/x", "/etc/y"], &["/srv/b"]);
        let held = lease(&["wttr.in"], &["/srv/a"], &["/etc"]);
        let rest = wanted.beyond(&held);
        assert_eq!(rest, lease(&["evil.example:443"], &[], &["/srv/b"]));
        assert_eq!(rest.phrases(), ["reach evil.example:443", "change /srv/b"]);
        assert!(wanted.is_wider_than(&held) && !wanted.is_wider_than(&wanted));
        assert!(!held.clone().and(&wanted).is_empty() && !wanted.is_wider_than(&held.and(&wanted)));
    }

    #[test]
    fn a_lease_is_stored_and_read_back() {
        let lease = Lease { keys: vec!["GH_TOKEN".to_owned()], ..lease(&["*.example.com:443"], &["/a"], &[]) };
        let text = serde_json::to_string(&lease).unwrap();
        assert!(text.contains("\"keepsRunning\":false"), "{text}");
        assert_eq!(serde_json::from_str::<Lease>(&text).unwrap(), lease);
    }
}
