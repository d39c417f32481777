//! Names in the network of a run: how do programs that know no proxy find the hosts that the run may reach?
//!
//! Each such host gets an address of the loopback device, which is the run's own, and a line in the run's `/etc/hosts`. The
//! proxy listens there on the host's ports, and decides about each connection as about any other.

use std::net::Ipv4Addr;

use prowess_policy::lease::{HostPattern, HostRule};
use serde::{Deserialize, Serialize};

/// Where the system keeps names of hosts.
pub(crate) const HOSTS_FILE: &str = "/etc/hosts";

/// The most sockets besides the proxy's own. All of them are handed over at once.
pub(crate) const MAX_SOCKETS: usize = 64;

/// A host that a run finds by its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedHost {
    /// Its name.
    pub name: String,
    /// The address of it in the network of the run.
    pub address: Ipv4Addr,
    /// The ports that are served there.
    pub ports: Vec<u16>,
}

impl NamedHost {
    /// The hosts that `rules` name, with their ports, as far as there are sockets for them. A rule for all names below
    /// another, or for an address, names none.
    #[must_use]
    pub fn all(rules: &[HostRule]) -> Vec<Self> {
        let mut hosts: Vec<Self> = Vec::new();
        let mut sockets = 0;
        for rule in rules {
            let HostPattern::Name(name) = rule.host() else { continue };
            for &port in rule.ports() {
                let known = hosts.iter_mut().find(|host| host.name == *name);
                if known.as_ref().is_some_and(|host| host.ports.contains(&port)) || sockets == MAX_SOCKETS {
                    continue;
                }
                sockets += 1;
                if let Some(host) = known {
                    host.ports.push(port);
                    continue;
                }
                let last = u8::try_from(hosts.len() + 1).unwrap_or(u8::MAX);
                let address = Ipv4Addr::new(127, 77, 0, last);
                hosts.push(Self { name: name.clone(), address, ports: vec![port] });
            }
        }
        hosts
    }

    /// Each address and port, with the name, in the order in which sockets are handed over.
    pub(crate) fn sockets(hosts: &[Self]) -> impl Iterator<Item = (&str, Ipv4Addr, u16)> {
        hosts.iter().flat_map(|host| host.ports.iter().map(|&port| (host.name.as_str(), host.address, port)))
    }

    /// The text of a hosts file in which `hosts` come before what `system` says.
    pub(crate) fn render(hosts: &[Self], system: &str) -> String {
        let lines = hosts.iter().map(|host| format!("{} {}\n", host.address, host.name));
        lines.chain([system.to_owned()]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_that_name_a_host_give_it_an_address() {
        let rules: Vec<HostRule> = ["db.example:5432", "*.example.com:443", "10.0.0.1:22", "localhost:80", "wttr.in"]
            .map(|rule| rule.parse().expect("a rule"))
            .into_iter()
            .chain([HostRule::new("db.example", &[5432, 5433]).expect("a rule")])
            .collect();
        let hosts = NamedHost::all(&rules);
        let sockets: Vec<String> =
            NamedHost::sockets(&hosts).map(|(name, address, port)| format!("{name} {address}:{port}")).collect();
        let expected = [
            "db.example 127.77.0.1:5432",
            "db.example 127.77.0.1:5433",
            "wttr.in 127.77.0.2:80",
            "wttr.in 127.77.0.2:443",
        ];
        assert_eq!(sockets, expected);
        assert_eq!(
            NamedHost::render(&hosts, "127.0.0.1 localhost\n"),
            "127.77.0.1 db.example\n127.77.0.2 wttr.in\n127.0.0.1 localhost\n"
        );
    }

    #[test]
    fn there_are_only_so_many() {
        let rules: Vec<HostRule> =
            (0..200).map(|number| format!("h{number}.example").parse().expect("a rule")).collect();
        let hosts = NamedHost::all(&rules);
        assert_eq!((hosts.len(), NamedHost::sockets(&hosts).count()), (MAX_SOCKETS / 2, MAX_SOCKETS));
    }
}
