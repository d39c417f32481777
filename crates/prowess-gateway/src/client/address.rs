//! Addresses: where is a gateway, and may secrets be sent there?

use std::net::IpAddr;

use axum::http::Uri;

use super::CallError;
use crate::caller::is_loopback_host;

/// Where a gateway is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) uri: Uri,
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) is_secure: bool,
}

/// Where secrets may be sent without encryption.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Trust {
    /// Within this machine.
    #[default]
    ThisMachine,
    /// Also within private networks.
    PrivateNetworks,
}

impl Address {
    pub(super) fn parse(url: &str, trust: Trust) -> Result<Self, CallError> {
        let uri: Uri = url.trim().parse().map_err(|_| no_address(url))?;
        let is_secure = match uri.scheme_str() {
            Some("ws") => false,
            Some("wss") => true,
            _ => return Err(no_address(url)),
        };
        let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(|| no_address(url))?;
        if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return Err(no_address(url));
        }
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let is_near = is_loopback_host(&host) || (trust == Trust::PrivateNetworks && is_private(&host));
        if !is_secure && !is_near {
            return Err(CallError::Insecure(host));
        }
        let port = uri.port_u16().unwrap_or(if is_secure { 443 } else { 80 });
        Ok(Self { uri, host, port, is_secure })
    }
}

fn no_address(url: &str) -> CallError {
    let shown: String = url.split('@').next_back().unwrap_or_default().chars().take(200).collect();
    CallError::Gone(format!("`{shown}` is not a gateway URL; use ws://HOST:PORT or wss://HOST"))
}

/// Whether only machines nearby have that address. A name can lead anywhere.
fn is_private(host: &str) -> bool {
    match host.parse::<IpAddr>().map(|ip| ip.to_canonical()) {
        Ok(IpAddr::V4(ip)) => {
            ip.is_private() || ip.is_link_local() || (ip.octets()[0] == 100 && ip.octets()[1] & 0xc0 == 64)
        }
        Ok(IpAddr::V6(ip)) => ip.is_unique_local() || ip.is_unicast_link_local(),
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str, trust: Trust) -> Result<(String, u16, bool), CallError> {
        Address::parse(url, trust).map(|address| (address.host, address.port, address.is_secure))
    }

    #[test]
    fn secrets_do_not_leave_this_machine_unencrypted() {
        for near in ["ws://127.0.0.1:1", "ws://localhost:1", "ws://[::1]:1/x", "ws://127.9.9.9:1"] {
            assert!(parse(near, Trust::ThisMachine).is_ok(), "{near}");
        }
        for far in ["ws://192.168.1.2:1", "ws://gateway.example:1", "ws://127.0.0.1.example:1", "ws://0.0.0.0:1"] {
            assert!(matches!(parse(far, Trust::ThisMachine), Err(CallError::Insecure(_))), "{far}");
        }
        assert_eq!(parse("wss://gateway.example", Trust::ThisMachine), Ok(("gateway.example".into(), 443, true)));
    }

    #[test]
    fn private_networks_are_trusted_when_the_operator_says_so() {
        for near in ["ws://192.168.1.2:1", "ws://10.0.0.1:1", "ws://100.64.0.1:1", "ws://[fd00::1]:1"] {
            assert!(parse(near, Trust::PrivateNetworks).is_ok(), "{near}");
        }
        for far in ["ws://8.8.8.8:1", "ws://gateway.local:1", "ws://100.128.0.1:1"] {
            assert!(matches!(parse(far, Trust::PrivateNetworks), Err(CallError::Insecure(_))), "{far}");
        }
    }

    #[test]
    fn what_is_no_address_is_told_without_secrets() {
        for odd in ["", "x", "http://127.0.0.1:1", "ws://", "ws://me:secret@127.0.0.1:1", "ws:// x"] {
            let told = parse(odd, Trust::ThisMachine).expect_err("no address").to_string();
            assert!(!told.contains("secret"), "{odd}: {told}");
        }
    }
}
