//! One client connection: which protocol does it speak?

use std::sync::Arc;
use std::time::Duration;

use prowess_policy::lease::Host;
use tokio::time::timeout;

use crate::audit::{Outcome, Protocol, Refusal};
use crate::state::{CommandState, Stop};
use crate::stream::{Stream, Wire};
use crate::tunnel::{Linger, Tunnel};
use crate::{http, socks};

/// How long a client that is one too many may take to ask, and to read the answer.
const TURN_AWAY_TIME: Duration = Duration::from_secs(1);

/// How much of what it sends is read meanwhile.
const TURN_AWAY_BYTES: usize = 64 * 1024;

/// Serves a connection until it ends.
pub(crate) async fn serve(state: Arc<CommandState>, stream: Stream) {
    // Most of a connection's state is over with its handshake. A tunnel, of which there may be thousands, keeps nothing of it.
    let tunnel = Linger::handshake(&state, begin(&state, stream)).await;
    if let Some(tunnel) = tunnel {
        tunnel.run(&state).await;
    }
}

/// Serves plain requests, and opens the tunnel that a client asks for.
async fn begin(state: &CommandState, stream: Stream) -> Option<Tunnel> {
    let mut wire = Wire::new(stream);
    if !begins(state, &mut wire).await {
        return None;
    }
    let draft = state.draft();
    match wire.kept[0] {
        5 => return socks::open(state, wire, draft).await,
        4 => draft.end(Outcome::Refused(Refusal::Unsupported("SOCKS4"))),
        0x16 => draft.end(Outcome::Refused(Refusal::Unsupported("TLS to the proxy itself"))),
        _ => return http::serve(state, wire, draft).await,
    }
    None
}

/// Serves a client that means `port` of `host` and knows of no proxy. Where it is refused, the connection just ends.
pub(crate) async fn direct(state: Arc<CommandState>, stream: Stream, host: Host, port: u16) {
    let client = Wire::new(stream);
    let mut draft = state.draft();
    let open = Linger::handshake(&state, state.open(&host, port, Protocol::Direct, &client.stream, &mut draft)).await;
    match open {
        Ok(upstream) => Tunnel { client, upstream, host, draft }.run(&state).await,
        Err(stop) => draft.end(stop.into()),
    }
}

/// Tells a client that too many others are connected.
pub(crate) async fn turn_away(state: Arc<CommandState>, stream: Stream) {
    let mut wire = Wire::new(stream);
    if !matches!(timeout(TURN_AWAY_TIME, wire.more()).await, Ok(Ok(1..))) {
        return;
    }
    let draft = state.draft();
    let stop = Stop::Refused(Refusal::TooManyConnections(state.context.limits.connections));
    match wire.kept[0] {
        4 | 0x16 => {}
        5 => socks::turn_away(&wire).await,
        _ => http::tell(&wire, &stop, None, &state).await,
    }
    draft.end(stop.into());
    wire.stream.shutdown_write();
    // Closing while bytes of the client are unread would reset the connection, and the client would not see the answer.
    let mut read = 0;
    let rest = async {
        while let Ok(count @ 1..) = wire.more().await {
            wire.kept.clear();
            read += count;
            if read > TURN_AWAY_BYTES {
                return;
            }
        }
    };
    timeout(TURN_AWAY_TIME, rest).await.ok();
}

/// Waits for the first bytes of a request. False if there are none: a client that says nothing asked for nothing, and is not
/// worth a record.
pub(crate) async fn begins(state: &CommandState, wire: &mut Wire) -> bool {
    !wire.kept.is_empty() || matches!(timeout(state.context.limits.idle_time, wire.more()).await, Ok(Ok(1..)))
}
