//! SOCKS5 (RFC 1928), for ssh, databases and everything else that is not HTTP. Only `CONNECT`, with or without a password
//! (RFC 1929).

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

use prowess_policy::lease::Host;
use tokio::time::timeout;

use crate::audit::{Draft, Protocol, Refusal};
use crate::state::{CommandState, Stop};
use crate::stream::{Stream, Wire};
use crate::tunnel::Tunnel;

const NO_AUTHENTICATION: u8 = 0;
const PASSWORD: u8 = 2;
const NO_METHOD: u8 = 0xff;

const SUCCEEDED: u8 = 0;
const NOT_ALLOWED: u8 = 2;
const HOST_UNREACHABLE: u8 = 4;
const UNKNOWN_COMMAND: u8 = 7;
const UNKNOWN_ADDRESS: u8 = 8;

/// Opens the tunnel that a client asks for.
pub(crate) async fn open(state: &CommandState, mut client: Wire, mut draft: Draft) -> Option<Tunnel> {
    draft.speaks(Protocol::Socks5);
    match connect(state, &mut client, &mut draft).await {
        Ok((upstream, host)) => Some(Tunnel { client, upstream, host, draft }),
        Err(stop) => {
            draft.end(stop.into());
            None
        }
    }
}

async fn connect(state: &CommandState, client: &mut Wire, draft: &mut Draft) -> Result<(Stream, Host), Stop> {
    let asked = timeout(state.context.limits.head_time, negotiate(state, client)).await;
    let (host, port) = asked.map_err(|_| Refusal::HeadTooSlow)??;
    let opened = state.open(&host, port, Protocol::Socks5, &client.stream, draft).await;
    let code = match &opened {
        Ok(_) => SUCCEEDED,
        Err(Stop::Refused(_)) => NOT_ALLOWED,
        Err(Stop::Failed(_) | Stop::Reset) => HOST_UNREACHABLE,
    };
    reply(client, code).await?;
    Ok((opened?, host))
}

/// Tells a client that it is not served. The protocol has no words for why.
pub(crate) async fn turn_away(wire: &Wire) {
    // The client may be gone.
    wire.stream.write_all(&[5, NO_METHOD]).await.ok();
}

/// Agrees on a method, checks the token, and reads the request.
async fn negotiate(state: &CommandState, wire: &mut Wire) -> Result<(Host, u16), Stop> {
    let count = usize::from(exactly(wire, 2).await?[1]);
    let methods = exactly(wire, 2 + count).await?[2..].to_vec();
    wire.consume(2 + count);
    let method = match (&state.context.token, methods.contains(&PASSWORD), methods.contains(&NO_AUTHENTICATION)) {
        (None, _, true) => NO_AUTHENTICATION,
        (_, true, _) => PASSWORD,
        (_, false, _) => NO_METHOD,
    };
    wire.stream.write_all(&[5, method]).await?;
    if method == NO_METHOD {
        return Err(Refusal::Unauthorized.into());
    }
    if method == PASSWORD {
        authenticate(state, wire).await?;
    }
    request(wire).await
}

async fn authenticate(state: &CommandState, wire: &mut Wire) -> Result<(), Stop> {
    let start = exactly(wire, 2).await?;
    if start[0] != 1 {
        return Err(Refusal::Malformed("the SOCKS password").into());
    }
    let user = usize::from(start[1]);
    let password = usize::from(exactly(wire, 3 + user).await?[2 + user]);
    let end = 3 + user + password;
    let bytes = exactly(wire, end).await?;
    // Java can only choose the name.
    let is_right = |token: &crate::Token| token.is(&bytes[3 + user..]) || token.is(&bytes[2..2 + user]);
    let is_allowed = state.context.token.as_ref().is_none_or(is_right);
    wire.consume(end);
    wire.stream.write_all(&[1, u8::from(!is_allowed)]).await?;
    if is_allowed { Ok(()) } else { Err(Refusal::Unauthorized.into()) }
}

async fn request(wire: &mut Wire) -> Result<(Host, u16), Stop> {
    let start = exactly(wire, 5).await?;
    let (version, command, kind, length) = (start[0], start[1], start[3], usize::from(start[4]));
    if version != 5 {
        return Err(Refusal::Malformed("the SOCKS request").into());
    }
    if command != 1 {
        reply(wire, UNKNOWN_COMMAND).await?;
        return Err(Refusal::Unsupported("a SOCKS command other than CONNECT").into());
    }
    let (from, to) = match kind {
        1 => (4, 8),
        3 => (5, 5 + length),
        4 => (4, 20),
        _ => {
            reply(wire, UNKNOWN_ADDRESS).await?;
            return Err(Refusal::Unsupported("a SOCKS address of an unknown kind").into());
        }
    };
    let bytes = exactly(wire, to + 2).await?;
    let port = u16::from_be_bytes([bytes[to], bytes[to + 1]]);
    let host = match <[u8; 4]>::try_from(&bytes[from..to]) {
        Ok(octets) if kind == 1 => Ok(Host::from(Ipv4Addr::from(octets))),
        _ => match <[u8; 16]>::try_from(&bytes[from..to]) {
            Ok(octets) if kind == 4 => Ok(Host::from(Ipv6Addr::from(octets))),
            _ => named(&bytes[from..to]),
        },
    };
    wire.consume(to + 2);
    match host {
        Ok(host) if port != 0 => Ok((host, port)),
        refused => {
            reply(wire, NOT_ALLOWED).await?;
            Err(refused.err().unwrap_or(Refusal::Malformed("the SOCKS port")).into())
        }
    }
}

fn named(bytes: &[u8]) -> Result<Host, Refusal> {
    let text = std::str::from_utf8(bytes).map_err(|_| Refusal::Malformed("the SOCKS host"))?;
    Ok(Host::parse(text)?)
}

async fn reply(wire: &Wire, code: u8) -> io::Result<()> {
    // The address that the proxy is bound to concerns nobody.
    wire.stream.write_all(&[5, code, 0, 1, 0, 0, 0, 0, 0, 0]).await
}

/// The first `count` bytes, read if they have not arrived yet.
async fn exactly(wire: &mut Wire, count: usize) -> Result<&[u8], Stop> {
    while wire.kept.len() < count {
        if wire.more().await? == 0 {
            return Err(Refusal::Malformed("the client closed inside the SOCKS handshake").into());
        }
    }
    Ok(&wire.kept[..count])
}
