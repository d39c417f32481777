//! Is this address one that anybody on the internet may reach?
//!
//! Everything else is refused unless a rule names the address, because it leads into this machine, its network or its
//! cloud provider's control plane. IPv6 addresses that carry an IPv4 address are judged by that one.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What an address is, if it is not public.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AddressKind {
    /// It means "this host" or "no host".
    Unspecified,
    /// This machine.
    Loopback,
    /// A private network.
    Private,
    /// The addresses that a provider shares between customers (100.64.0.0/10).
    SharedNat,
    /// The local link.
    LinkLocal,
    /// A cloud provider's metadata service.
    Metadata,
    /// A group of hosts.
    Multicast,
    /// Reserved for documentation, benchmarks, tunnels or the future.
    Reserved,
}

impl fmt::Display for AddressKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unspecified => "an unspecified address",
            Self::Loopback => "a loopback address",
            Self::Private => "a private address",
            Self::SharedNat => "a shared address of a provider",
            Self::LinkLocal => "a link-local address",
            Self::Metadata => "a cloud metadata address",
            Self::Multicast => "a multicast address",
            Self::Reserved => "a reserved address",
        })
    }
}

/// Metadata services: AWS, GCP, Azure and others; AWS over ECS; Alibaba; Oracle; Azure's host agent, whose address
/// looks public.
const METADATA_V4: [Ipv4Addr; 5] = [
    Ipv4Addr::new(169, 254, 169, 254),
    Ipv4Addr::new(169, 254, 170, 2),
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(192, 0, 0, 192),
    Ipv4Addr::new(168, 63, 129, 16),
];

/// AWS's metadata service.
const METADATA_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0254);

impl AddressKind {
    /// What `ip` is, or nothing if it is public.
    #[must_use]
    pub fn of(ip: IpAddr) -> Option<Self> {
        match ip.to_canonical() {
            IpAddr::V4(ip) => of_v4(ip),
            IpAddr::V6(ip) => of_v6(ip),
        }
    }
}

fn of_v4(ip: Ipv4Addr) -> Option<AddressKind> {
    if METADATA_V4.contains(&ip) {
        return Some(AddressKind::Metadata);
    }
    match ip.octets() {
        [0, ..] => Some(AddressKind::Unspecified),
        [127, ..] => Some(AddressKind::Loopback),
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Some(AddressKind::Private),
        [100, 64..=127, ..] => Some(AddressKind::SharedNat),
        [169, 254, ..] => Some(AddressKind::LinkLocal),
        [224..=239, ..] => Some(AddressKind::Multicast),
        // Protocol assignments, documentation, 6to4 relays, benchmarks, the future and broadcast.
        [192, 0, 0 | 2, _]
        | [192, 88, 99, _]
        | [198, 18 | 19, ..]
        | [198, 51, 100, _]
        | [203, 0, 113, _]
        | [240..=255, ..] => Some(AddressKind::Reserved),
        _ => None,
    }
}

fn of_v6(ip: Ipv6Addr) -> Option<AddressKind> {
    if ip == METADATA_V6 {
        return Some(AddressKind::Metadata);
    }
    let s = ip.segments();
    let embedded = |high: u16, low: u16| of_v4(Ipv4Addr::from_bits((u32::from(high) << 16) | u32::from(low)));
    match s {
        [0, 0, 0, 0, 0, 0, 0, 0] => Some(AddressKind::Unspecified),
        [0, 0, 0, 0, 0, 0, 0, 1] => Some(AddressKind::Loopback),
        // NAT64's well-known prefix and 6to4 reach the IPv4 address inside.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => embedded(high, low),
        [0xfc00..=0xfdff, ..] => Some(AddressKind::Private),
        [0xfe80..=0xfebf, ..] => Some(AddressKind::LinkLocal),
        [0xff00..=0xffff, ..] => Some(AddressKind::Multicast),
        // Teredo and other protocol assignments, documentation, and ISATAP, whose last 32 bits are an IPv4 address of the
        // local site.
        [0x2001, 0..=0x01ff | 0x0db8, ..] | [0x3fff, 0..=0x0fff, ..] | [.., 0 | 0x0200, 0x5efe, _, _] => {
            Some(AddressKind::Reserved)
        }
        // All that is assigned for global unicast.
        [0x2000..=0x3fff, ..] => None,
        _ => Some(AddressKind::Reserved),
    }
}

#[cfg(test)]
mod tests {
    use super::AddressKind::{self, *};

    #[test]
    fn addresses_that_are_not_public_are_named() {
        let table = [
            ("8.8.8.8", None),
            ("172.15.0.1", None),
            ("172.32.0.1", None),
            ("100.63.0.1", None),
            ("192.0.1.1", None),
            ("2606:4700::1111", None),
            ("64:ff9b::8.8.8.8", None),
            ("2002:808:808::1", None),
            ("0.0.0.0", Some(Unspecified)),
            ("0.1.2.3", Some(Unspecified)),
            ("127.0.0.1", Some(Loopback)),
            ("127.255.0.9", Some(Loopback)),
            ("10.1.2.3", Some(Private)),
            ("172.16.0.1", Some(Private)),
            ("172.31.255.255", Some(Private)),
            ("192.168.1.1", Some(Private)),
            ("100.64.0.1", Some(SharedNat)),
            ("169.254.1.1", Some(LinkLocal)),
            ("169.254.169.254", Some(Metadata)),
            ("100.100.100.200", Some(Metadata)),
            ("168.63.129.16", Some(Metadata)),
            ("192.0.0.192", Some(Metadata)),
            ("224.0.0.1", Some(Multicast)),
            ("255.255.255.255", Some(Reserved)),
            ("198.18.0.1", Some(Reserved)),
            ("203.0.113.7", Some(Reserved)),
            ("::", Some(Unspecified)),
            ("::1", Some(Loopback)),
            ("::ffff:127.0.0.1", Some(Loopback)),
            ("::ffff:169.254.169.254", Some(Metadata)),
            ("::127.0.0.1", Some(Reserved)),
            ("64:ff9b::127.0.0.1", Some(Loopback)),
            ("64:ff9b::169.254.169.254", Some(Metadata)),
            ("64:ff9b:1::1", Some(Reserved)),
            ("2002:7f00:1::", Some(Loopback)),
            ("2002:a00:1::1", Some(Private)),
            ("2001::1", Some(Reserved)),
            ("2001:db8::1", Some(Reserved)),
            ("2606::5efe:a00:1", Some(Reserved)),
            ("fd00:ec2::254", Some(Metadata)),
            ("fd12::1", Some(Private)),
            ("fe80::1", Some(LinkLocal)),
            ("fec0::1", Some(Reserved)),
            ("ff02::1", Some(Multicast)),
            ("4000::1", Some(Reserved)),
        ];
        for (text, expected) in table {
            assert_eq!(AddressKind::of(text.parse().expect(text)), expected, "{text}");
        }
    }
}
