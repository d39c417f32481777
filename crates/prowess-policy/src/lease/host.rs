//! Which hosts and ports does a rule cover?
//!
//! A rule is a host pattern and a list of ports, written `wttr.in:443`, `*.example.com`, `10.0.0.0/8:5432,5433` or
//! `[::1]:8080`. Names are compared label by label, in lower case, without the trailing dot. A name that is not ASCII is
//! refused: programs send the punycode form, and two spellings of one name would be two rules.
//!
//! Every spelling of an IPv4 address other than four decimal numbers (`0x7f.1`, `2130706433`) is refused as well. The
//! system's resolver would accept it, so it would pass as a name here and as an address there.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

/// The ports of a rule that names none: HTTP and HTTPS, because a host without a port means "its web server".
pub const DEFAULT_PORTS: [u16; 2] = [80, 443];

/// The most ports that one rule lists.
const MAX_PORTS: usize = 64;

/// A host as a client asks for it: a name, or an address.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Host {
    /// A DNS name, in lower case and without a trailing dot.
    Name(String),
    /// An address. IPv6 addresses that only wrap an IPv4 address (`::ffff:a.b.c.d`) are that IPv4 address.
    Ip(IpAddr),
}

/// Why a text is no host or no rule.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HostError {
    /// There is no host in it.
    #[error("the host is empty")]
    Empty,
    /// It has letters beyond ASCII.
    #[error("{0:?} is not ASCII; write the name in its punycode form (xn--…)")]
    NotAscii(String),
    /// It is neither a DNS name nor an address.
    #[error("{0:?} is not a host name")]
    BadName(String),
    /// It is a number, but not an IPv4 address in its usual form.
    #[error("{0:?} is an unusual spelling of an IPv4 address; write four decimal numbers")]
    OddAddress(String),
    /// The wildcard is not the whole first label of a name.
    #[error("{0:?}: a wildcard stands for whole labels in front of a name, as in *.example.com")]
    BadWildcard(String),
    /// The block has no valid prefix length, or its address has bits beyond the prefix.
    #[error("{0:?} is not a block of addresses, as in 10.0.0.0/8")]
    BadBlock(String),
    /// A port is not a number from 1 to 65535, or there are too many.
    #[error("{0:?}: ports are numbers from 1 to 65535, separated by commas, at most 64")]
    BadPorts(String),
}

impl Host {
    /// Reads a host as it stands in a URL, a `CONNECT` request or a TLS server name. IPv6 may be in brackets.
    pub fn parse(text: &str) -> Result<Self, HostError> {
        if let Some(inner) = text.strip_prefix('[') {
            let address = inner.strip_suffix(']').and_then(|inner| inner.parse::<Ipv6Addr>().ok());
            return address.map(Self::from).ok_or_else(|| HostError::BadName(text.to_owned()));
        }
        if text.contains(':') {
            return text.parse::<Ipv6Addr>().map(Self::from).map_err(|_| HostError::BadName(text.to_owned()));
        }
        let name = text.strip_suffix('.').unwrap_or(text);
        if let Ok(address) = name.parse::<Ipv4Addr>() {
            return Ok(Self::from(address));
        }
        dns_name(name).map(Self::Name)
    }

    /// The address, if the host is one.
    #[must_use]
    pub fn ip(&self) -> Option<IpAddr> {
        match self {
            Self::Name(_) => None,
            Self::Ip(ip) => Some(*ip),
        }
    }

    /// Whether it means the machine of whoever asks: `localhost`, a loopback address, or the unspecified one.
    #[must_use]
    pub fn is_local(&self) -> bool {
        match self {
            Self::Name(name) => name == "localhost",
            Self::Ip(ip) => ip.is_loopback() || ip.is_unspecified(),
        }
    }

    /// `host:port`, with brackets around IPv6.
    #[must_use]
    pub fn with_port(&self, port: u16) -> String {
        format!("{self}:{port}")
    }
}

impl<T: Into<IpAddr>> From<T> for Host {
    fn from(address: T) -> Self {
        Self::Ip(address.into().to_canonical())
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Ip(IpAddr::V4(ip)) => ip.fmt(f),
            Self::Ip(IpAddr::V6(ip)) => write!(f, "[{ip}]"),
        }
    }
}

impl FromStr for Host {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Self, HostError> {
        Self::parse(text)
    }
}

/// Checks a name and returns it in lower case.
fn dns_name(name: &str) -> Result<String, HostError> {
    if name.is_empty() {
        return Err(HostError::Empty);
    }
    if !name.is_ascii() {
        return Err(HostError::NotAscii(name.to_owned()));
    }
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    };
    if name.len() > 253 || !name.split('.').all(is_label) {
        return Err(HostError::BadName(name.to_owned()));
    }
    if name.rsplit('.').next().is_some_and(is_number) {
        return Err(HostError::OddAddress(name.to_owned()));
    }
    Ok(name.to_ascii_lowercase())
}

/// Whether resolvers take a name with this last label for an IPv4 address.
fn is_number(label: &str) -> bool {
    let hex = label.strip_prefix("0x").or_else(|| label.strip_prefix("0X"));
    hex.map_or_else(
        || label.bytes().all(|b| b.is_ascii_digit()),
        |digits| digits.bytes().all(|b| b.is_ascii_hexdigit()),
    )
}

/// A block of addresses: all that share the first `prefix` bits of `address`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct IpBlock {
    address: IpAddr,
    prefix: u8,
}

impl IpBlock {
    fn parse(text: &str) -> Result<Self, HostError> {
        let bad = || HostError::BadBlock(text.to_owned());
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let Host::Ip(address) = Host::parse(address)? else { return Err(bad()) };
        let bits = bits_of(address);
        let prefix = match prefix {
            // `parse` alone would accept "+8" and "08".
            Some(digits) if digits != "0" && !digits.starts_with(|c: char| matches!(c, '1'..='9')) => return Err(bad()),
            Some(digits) => digits.parse().ok().filter(|prefix| *prefix <= bits).ok_or_else(bad)?,
            None => bits,
        };
        let block = Self { address, prefix };
        if block.masked(address) != value(address) {
            return Err(bad());
        }
        Ok(block)
    }

    /// Whether `ip` is in the block.
    #[must_use]
    pub fn contains(&self, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        bits_of(ip) == bits_of(self.address) && self.masked(ip) == value(self.address)
    }

    fn includes(&self, other: &Self) -> bool {
        self.prefix <= other.prefix && self.contains(other.address)
    }

    fn is_loopback(&self) -> bool {
        match self.address {
            IpAddr::V4(ip) => ip.is_loopback() && self.prefix >= 8,
            IpAddr::V6(ip) => ip.is_loopback() && self.prefix == 128,
        }
    }

    fn masked(&self, ip: IpAddr) -> u128 {
        let spare = u32::from(bits_of(ip) - self.prefix);
        value(ip).checked_shr(spare).and_then(|high| high.checked_shl(spare)).unwrap_or(0)
    }
}

fn bits_of(ip: IpAddr) -> u8 {
    if ip.is_ipv4() { 32 } else { 128 }
}

fn value(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(ip) => u128::from(ip.to_bits()),
        IpAddr::V6(ip) => ip.to_bits(),
    }
}

/// The host part of a rule.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HostPattern {
    /// Exactly this name.
    Name(String),
    /// Every name with one or more labels in front of this one; never this name itself.
    Below(String),
    /// One address, or a block of them.
    Block(IpBlock),
    /// The name `localhost`, and every loopback address.
    Localhost,
}

impl HostPattern {
    fn parse(text: &str) -> Result<Self, HostError> {
        if let Some(suffix) = text.strip_prefix("*.") {
            return match Host::parse(suffix) {
                // `*.com` would be half of the internet.
                Ok(Host::Name(name)) if name.contains('.') => Ok(Self::Below(name)),
                Ok(_) | Err(HostError::BadName(_) | HostError::Empty) => Err(HostError::BadWildcard(text.to_owned())),
                Err(error) => Err(error),
            };
        }
        if text.contains('*') {
            return Err(HostError::BadWildcard(text.to_owned()));
        }
        if text.contains('/') {
            return IpBlock::parse(text).map(Self::Block);
        }
        Ok(match Host::parse(text)? {
            Host::Name(name) if name == "localhost" => Self::Localhost,
            Host::Name(name) => Self::Name(name),
            Host::Ip(ip) => Self::Block(IpBlock { address: ip, prefix: bits_of(ip) }),
        })
    }

    /// Whether the pattern means `host`. It never resolves names: a block covers addresses that a client asks for.
    #[must_use]
    pub fn covers(&self, host: &Host) -> bool {
        match (self, host) {
            (Self::Name(own), Host::Name(name)) => own == name,
            (Self::Below(suffix), Host::Name(name)) => is_below(name, suffix),
            (Self::Block(block), Host::Ip(ip)) => block.contains(*ip),
            (Self::Localhost, Host::Name(name)) => name == "localhost",
            (Self::Localhost, Host::Ip(ip)) => ip.to_canonical().is_loopback(),
            (Self::Name(_) | Self::Below(_), Host::Ip(_)) | (Self::Block(_), Host::Name(_)) => false,
        }
    }

    /// Whether the pattern covers every host that `other` covers.
    #[must_use]
    pub fn includes(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Below(suffix), Self::Below(name)) => name == suffix || is_below(name, suffix),
            (Self::Below(suffix), Self::Name(name)) => is_below(name, suffix),
            (Self::Block(block), Self::Block(other)) => block.includes(other),
            (Self::Localhost, Self::Block(block)) => block.is_loopback(),
            _ => self == other,
        }
    }
}

fn is_below(name: &str, suffix: &str) -> bool {
    name.strip_suffix(suffix).and_then(|head| head.strip_suffix('.')).is_some_and(|head| !head.is_empty())
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Below(suffix) => write!(f, "*.{suffix}"),
            Self::Block(block) if block.prefix == bits_of(block.address) => Host::Ip(block.address).fmt(f),
            Self::Block(block) => write!(f, "{}/{}", Host::Ip(block.address), block.prefix),
            Self::Localhost => f.write_str("localhost"),
        }
    }
}

/// A host pattern and the ports that go with it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HostRule {
    host: HostPattern,
    /// Sorted, without duplicates, never empty.
    ports: Vec<u16>,
}

impl HostRule {
    /// Reads the host pattern `host` for `ports`; without ports, for [`DEFAULT_PORTS`].
    pub fn new(host: &str, ports: &[u16]) -> Result<Self, HostError> {
        let mut ports = if ports.is_empty() { DEFAULT_PORTS.to_vec() } else { ports.to_vec() };
        ports.sort_unstable();
        ports.dedup();
        if ports.len() > MAX_PORTS || ports.contains(&0) {
            return Err(HostError::BadPorts(host.to_owned()));
        }
        Ok(Self { host: HostPattern::parse(host)?, ports })
    }

    /// The rule for exactly this host and port, as an answer to a question grants it.
    #[must_use]
    pub fn exactly(host: &Host, port: u16) -> Self {
        let host = match host {
            Host::Name(name) if name == "localhost" => HostPattern::Localhost,
            Host::Name(name) => HostPattern::Name(name.clone()),
            Host::Ip(ip) => HostPattern::Block(IpBlock { address: *ip, prefix: bits_of(*ip) }),
        };
        Self { host, ports: vec![port] }
    }

    /// The host pattern.
    #[must_use]
    pub fn host(&self) -> &HostPattern {
        &self.host
    }

    /// The ports, in ascending order.
    #[must_use]
    pub fn ports(&self) -> &[u16] {
        &self.ports
    }

    /// Whether the rule allows `port` of `host`.
    #[must_use]
    pub fn covers(&self, host: &Host, port: u16) -> bool {
        self.ports.binary_search(&port).is_ok() && self.host.covers(host)
    }

    /// Whether every host that it covers is the machine of whoever asks.
    #[must_use]
    pub fn is_local(&self) -> bool {
        match &self.host {
            HostPattern::Localhost => true,
            HostPattern::Block(block) => {
                block.is_loopback() || block.prefix == bits_of(block.address) && block.address.is_unspecified()
            }
            HostPattern::Name(_) | HostPattern::Below(_) => false,
        }
    }

    /// Whether this rule covers everything that `other` covers.
    #[must_use]
    pub fn includes(&self, other: &Self) -> bool {
        self.host.includes(&other.host) && other.ports.iter().all(|port| self.ports.binary_search(port).is_ok())
    }

    /// Whether this rule covers anything that no rule in `rules` covers: a declaration that is wider than what was
    /// confirmed. Rules are compared port by port, so two narrow rules can together be as wide as one.
    #[must_use]
    pub fn is_wider_than(&self, rules: &[Self]) -> bool {
        let is_covered = |port: &u16| {
            rules.iter().any(|rule| rule.ports.binary_search(port).is_ok() && rule.host.includes(&self.host))
        };
        !self.ports.iter().all(is_covered)
    }
}

impl fmt::Display for HostRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.host.fmt(f)?;
        if self.ports == DEFAULT_PORTS {
            return Ok(());
        }
        for (i, port) in self.ports.iter().enumerate() {
            write!(f, "{}{port}", if i == 0 { ':' } else { ',' })?;
        }
        Ok(())
    }
}

impl FromStr for HostRule {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Self, HostError> {
        let text = text.trim();
        // A colon before a bracket belongs to IPv6; an address with two and no brackets has no port.
        let (host, ports) = match text.rsplit_once(':') {
            Some((host, ports))
                if !ports.contains(']') && (host.ends_with(']') || host.contains("]/") || !host.contains(':')) =>
            {
                (host, Some(ports))
            }
            _ => (text, None),
        };
        let bad = || HostError::BadPorts(text.to_owned());
        let read = |digits: &str| match digits.trim() {
            digits if digits.bytes().all(|b| b.is_ascii_digit()) => digits.parse::<u16>().map_err(|_| bad()),
            _ => Err(bad()),
        };
        let ports = ports.map_or(Ok(Vec::new()), |ports| ports.split(',').map(read).collect())?;
        Self::new(host, &ports)
    }
}

impl Serialize for HostRule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// As text, or as `{"host": "wttr.in", "ports": [443]}`, the form that skills declare.
impl<'de> Deserialize<'de> for HostRule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Text(String),
            Record {
                host: String,
                #[serde(default)]
                ports: Vec<u16>,
            },
        }
        let rule = match Written::deserialize(deserializer)? {
            Written::Text(text) => text.parse(),
            // A port inside `host` is a rule of its own, unless `ports` says something else.
            Written::Record { host, ports } if ports.is_empty() => host.parse(),
            Written::Record { host, ports } => Self::new(&host, &ports),
        };
        rule.map_err(serde::de::Error::custom)
    }
}
