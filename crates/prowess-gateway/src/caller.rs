//! The caller: from where does a connection really come?
//!
//! A pure function of the address at the other end and of a few headers. Headers can say anything, so they only count
//! where the operator named the proxy that wrote them, and they can make a caller less trusted but never more.
//! Whoever came through a proxy is not on this machine, wherever the proxy is and whatever it says.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use axum::http::HeaderMap;
use axum::http::header::{HOST, ORIGIN};

use crate::settings::{Auth, Settings, TrustedProxy};

/// What is known of whoever connects before it has said anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Caller {
    /// Its address, if we can believe anybody about it.
    pub(crate) ip: Option<IpAddr>,
    /// The address at the other end of the wire, which may be a proxy's.
    pub(crate) peer: IpAddr,
    /// It is on this machine, with nothing in between.
    pub(crate) is_local: bool,
    /// The page it belongs to, if it is a browser.
    pub(crate) origin: Option<String>,
    /// By which name it knows us.
    pub(crate) host: String,
    /// The user that a proxy we trust has let through.
    pub(crate) user: Option<String>,
}

/// Addresses with a common beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Network {
    address: IpAddr,
    bits: u32,
}

/// Stands for all pages on this machine; nobody has that address.
const PAGES_HERE: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 18, 0, 1));

/// Headers that proxies write.
const FORWARDED: [&str; 6] =
    ["x-forwarded-for", "x-real-ip", "x-forwarded-host", "x-forwarded-proto", "forwarded", "via"];

impl Caller {
    pub(crate) fn of(peer: IpAddr, headers: &HeaderMap, settings: &Settings) -> Self {
        let peer = peer.to_canonical();
        let is_proxy = settings.proxies.iter().any(|network| network.contains(peer));
        let ip = if is_proxy { behind(headers, settings) } else { Some(peer) };
        let host = text(headers, HOST.as_str()).unwrap_or_default().to_ascii_lowercase();
        let is_forwarded = FORWARDED.iter().any(|name| headers.contains_key(*name));
        let is_local = peer.is_loopback() && !is_proxy && !is_forwarded && is_loopback_host(host_name(&host));
        let origin = text(headers, ORIGIN.as_str()).filter(|origin| !origin.is_empty()).map(str::to_owned);
        let user = match &settings.auth {
            Auth::Proxy(proxy) if is_proxy => user(headers, proxy),
            _ => None,
        };
        Self { ip, peer, is_local, origin, host, user }
    }

    /// The address that others may be told: that of this machine says nothing.
    pub(crate) fn shown_ip(&self) -> Option<String> {
        self.ip.filter(|ip| !ip.is_loopback()).map(|ip| ip.to_string())
    }

    /// The address that wrong secrets are counted for, if they are.
    ///
    /// Programs on this machine are not counted, but pages in a browser on it are: anybody can make one try. So is
    /// whoever seems to be here because a proxy is.
    pub(crate) fn counted_ip(&self) -> Option<IpAddr> {
        let ip = self.ip.unwrap_or(self.peer);
        match (self.is_local, &self.origin) {
            (true, None) => None,
            (true, Some(_)) => Some(PAGES_HERE),
            (false, _) => Some(ip),
        }
    }

    /// Whether the page it belongs to may talk to us.
    ///
    /// A name can be made to lead to this machine by whoever owns it, an address and `localhost` cannot. So our own page
    /// is one whose address is the one it reached us by; names have to be listed, and so has what other servers on this
    /// machine show.
    pub(crate) fn is_welcome_page(&self, allowed: &[String]) -> bool {
        let Some((origin, host)) = self.origin.as_deref().and_then(parse_origin) else { return false };
        if allowed.iter().any(|entry| entry == "*" || entry.trim_end_matches('/').eq_ignore_ascii_case(&origin)) {
            return true;
        }
        let name = host_name(&host);
        host == self.host && (name.parse::<IpAddr>().is_ok() || is_loopback_host(name))
    }
}

/// Who is behind a proxy that we trust: the last address that is not a proxy of ours.
fn behind(headers: &HeaderMap, settings: &Settings) -> Option<IpAddr> {
    let chain = text(headers, "x-forwarded-for").unwrap_or_default();
    let hops: Vec<IpAddr> = chain.split(',').filter_map(address).collect();
    let client = hops.iter().rev().find(|hop| !settings.proxies.iter().any(|network| network.contains(**hop)));
    client.copied().or_else(|| text(headers, "x-real-ip").filter(|_| settings.real_ip).and_then(address))
}

/// The user that the proxy names, if it is one that may come in.
fn user(headers: &HeaderMap, proxy: &TrustedProxy) -> Option<String> {
    let has = |name: &String| text(headers, name).is_some_and(|value| !value.is_empty());
    if !proxy.required_headers.iter().all(has) {
        return None;
    }
    let user = text(headers, &proxy.user_header).filter(|user| !user.is_empty())?;
    let is_allowed = proxy.allow_users.is_empty() || proxy.allow_users.iter().any(|allowed| allowed == user);
    is_allowed.then(|| user.to_owned())
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

/// An address, with or without a port.
fn address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let address = text.parse().ok().or_else(|| Some(text.parse::<SocketAddr>().ok()?.ip()));
    let address = address.or_else(|| text.strip_prefix('[')?.strip_suffix(']')?.parse().ok());
    address.map(|address: IpAddr| address.to_canonical())
}

/// The scheme and host of an origin, and the host with its port.
fn parse_origin(origin: &str) -> Option<(String, String)> {
    let origin = origin.trim().to_ascii_lowercase();
    let (scheme, host) = origin.split_once("://")?;
    let is_host = !host.is_empty() && !host.contains(['/', '@', '?', '#', ' ', '\\']);
    let host = host.to_owned();
    (is_host && matches!(scheme, "http" | "https")).then_some((origin, host))
}

/// The name in `name:port`, without brackets.
pub(crate) fn host_name(host: &str) -> &str {
    if let Some(rest) = host.strip_prefix('[') {
        return rest.split_once(']').map_or(rest, |(name, _)| name);
    }
    match host.split_once(':') {
        // More than one colon without brackets is an address of the longer kind.
        Some((_, rest)) if rest.contains(':') => host,
        Some((name, _)) => name,
        None => host,
    }
}

/// Whether that name can only be this machine.
pub(crate) fn is_loopback_host(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
}

impl Network {
    /// From `192.0.2.0/24`, or one address.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (address, bits) = match text.trim().split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u32>().ok()?)),
            None => (text.trim(), None),
        };
        let address = address.parse::<IpAddr>().ok()?.to_canonical();
        let all = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.unwrap_or(all);
        (bits <= all).then_some(Self { address, bits })
    }

    pub(crate) fn contains(self, other: IpAddr) -> bool {
        let rest = |all: u32| all - self.bits;
        match (self.address, other.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                (own.to_bits() ^ other.to_bits()).checked_shr(rest(32)).unwrap_or(0) == 0
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                (own.to_bits() ^ other.to_bits()).checked_shr(rest(128)).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use prowess_config::{Config, Env};

    use super::*;

    fn caller(peer: &str, headers: &[(&'static str, &str)], config: &str) -> Caller {
        let config = Config::parse(config, &Env::from_iter([("X", "")])).expect("a configuration");
        let settings = Settings::read(&config).expect("settings");
        let headers = headers
            .iter()
            .map(|(name, value)| (axum::http::HeaderName::from_static(name), value.parse().expect("a header")));
        Caller::of(peer.parse().expect("an address"), &headers.collect(), &settings)
    }

    const PROXY: &str = "{ gateway: { trustedProxies: ['127.0.0.1', '192.0.2.0/24'] } }";

    #[test]
    fn who_is_on_this_machine_with_nothing_in_between_is_local() {
        type Case = (&'static str, &'static [(&'static str, &'static str)], bool);
        let cases: [Case; 7] = [
            ("127.0.0.1", &[("host", "127.0.0.1:18789")], true),
            ("::1", &[("host", "[::1]:18789")], true),
            ("127.0.0.1", &[("host", "localhost")], true),
            ("127.0.0.1", &[("host", "gateway.example:18789")], false),
            ("127.0.0.1", &[], false),
            ("127.0.0.1", &[("host", "localhost"), ("x-forwarded-for", "127.0.0.1")], false),
            ("192.0.2.9", &[("host", "localhost")], false),
        ];
        for (peer, headers, is_local) in cases {
            assert_eq!(caller(peer, headers, "{}").is_local, is_local, "{peer} {headers:?}");
        }
    }

    #[test]
    fn no_proxy_makes_anybody_local_and_only_who_is_local_is_not_counted() {
        let claims = [("host", "localhost"), ("x-forwarded-for", "127.0.0.1")];
        let far = "{ gateway: { trustedProxies: ['192.0.2.0/24'] } }";
        for (peer, config) in [("192.0.2.1", far), ("127.0.0.1", PROXY), ("127.0.0.1", "{}")] {
            let proxied = caller(peer, &claims, config);
            assert!(!proxied.is_local && proxied.counted_ip().is_some(), "{proxied:?}");
        }
        let unnamed = caller("127.0.0.1", &[("host", "gateway.example")], "{}");
        assert!(unnamed.counted_ip().is_some(), "it may be a proxy that nobody told us of");
        for here in ["127.0.0.1", "::1", "::ffff:127.0.0.1"] {
            assert_eq!(caller(here, &[("host", "localhost")], "{}").counted_ip(), None, "{here}");
        }
    }

    #[test]
    fn headers_of_proxies_count_only_where_the_proxy_is_known() {
        let forwarded = [("host", "localhost"), ("x-forwarded-for", "198.51.100.7, 192.0.2.3")];
        let unknown = caller("203.0.113.1", &forwarded, PROXY);
        assert_eq!(unknown.ip.map(|ip| ip.to_string()).as_deref(), Some("203.0.113.1"));
        let known = caller("192.0.2.1", &forwarded, PROXY);
        assert_eq!(known.shown_ip().as_deref(), Some("198.51.100.7"));
        assert!(!known.is_local);
        assert_eq!(caller("192.0.2.1", &[("host", "localhost")], PROXY).ip, None);
        assert!(caller("127.0.0.1", &[("host", "localhost"), ("x-forwarded-for", "127.0.0.1")], PROXY).ip.is_none());
    }

    #[test]
    fn a_user_counts_only_when_a_known_proxy_names_it() {
        let config = "{ gateway: { trustedProxies: ['192.0.2.0/24'], auth: { mode: 'trusted-proxy', trustedProxy: \
                      { userHeader: 'x-user', requiredHeaders: ['x-proof'], allowUsers: ['ann'] } } } }";
        let user = |peer: &str, headers: &[(&'static str, &str)]| caller(peer, headers, config).user;
        assert_eq!(user("192.0.2.1", &[("x-user", "ann"), ("x-proof", "1")]).as_deref(), Some("ann"));
        assert_eq!(user("192.0.2.1", &[("x-user", "bob"), ("x-proof", "1")]), None);
        assert_eq!(user("192.0.2.1", &[("x-user", "ann")]), None);
        assert_eq!(user("203.0.113.1", &[("x-user", "ann"), ("x-proof", "1")]), None);
    }

    #[test]
    fn only_our_own_page_and_listed_ones_are_welcome() {
        let is_welcome = |peer: &str, host: &str, origin: &str, allowed: &[&str]| {
            let allowed: Vec<String> = allowed.iter().map(|&entry| entry.to_owned()).collect();
            caller(peer, &[("host", host), ("origin", origin)], "{}").is_welcome_page(&allowed)
        };
        let (near, far) = ("127.0.0.1", "192.0.2.9");
        assert!(is_welcome(near, "127.0.0.1:1", "http://127.0.0.1:1", &[]));
        assert!(is_welcome(near, "localhost:1", "http://localhost:1", &[]));
        assert!(!is_welcome(near, "localhost:1", "http://localhost:5173", &[]), "somebody else on this machine");
        assert!(is_welcome(far, "192.0.2.1:1", "http://192.0.2.1:1", &[]));
        assert!(is_welcome(far, "gw:1", "https://ui.example", &["https://UI.example/"]));
        assert!(is_welcome(far, "gw:1", "https://ui.example", &["*"]));
        assert!(!is_welcome(near, "127.0.0.1:1", "https://evil.example", &[]));
        assert!(!is_welcome(near, "evil.example:1", "http://evil.example:1", &[]), "a name that leads here");
        assert!(!is_welcome(far, "192.0.2.1:1", "http://localhost:1", &[]));
        assert!(!is_welcome(far, "192.0.2.1:1", "http://192.0.2.1:2", &[]));
        for odd in ["null", "", "file://x", "http://", "http://127.0.0.1:1@evil.example", "http://127.0.0.1/x"] {
            assert!(!is_welcome(near, "127.0.0.1:1", odd, &[]), "{odd}");
        }
    }

    #[test]
    fn networks_contain_what_begins_like_them() {
        let contains = |network: &str, ip: &str| {
            Network::parse(network).is_some_and(|network| network.contains(ip.parse().expect("an address")))
        };
        assert!(contains("10.0.0.0/8", "10.200.3.4"));
        assert!(!contains("10.0.0.0/8", "11.0.0.1"));
        assert!(contains("0.0.0.0/0", "203.0.113.4"));
        assert!(!contains("0.0.0.0/0", "::1"));
        assert!(contains("2001:db8::/32", "2001:db8:1::1"));
        assert!(contains("192.0.2.1", "::ffff:192.0.2.1"));
        assert!(!contains("10.0.0.0/33", "10.0.0.0"));
        assert!(!contains("x", "10.0.0.0"));
    }
}
