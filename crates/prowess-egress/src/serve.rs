//! One client connection: which protocol does it speak?

use std::sync::Arc;

use tokio::time::timeout;

use crate::audit::{Outcome, Refusal};
use crate::state::CommandState;
use crate::stream::{Stream, Wire};
use crate::{http, socks};

/// Serves a connection until it ends.
pub(crate) async fn serve(state: Arc<CommandState>, stream: Stream) {
    let mut wire = Wire::new(stream);
    if !begins(&state, &mut wire).await {
        return;
    }
    let draft = state.draft();
    match wire.kept[0] {
        5 => socks::serve(&state, wire, draft).await,
        4 => draft.end(Outcome::Refused(Refusal::Unsupported("SOCKS4"))),
        0x16 => draft.end(Outcome::Refused(Refusal::Unsupported("TLS to the proxy itself"))),
        _ => http::serve(&state, wire, draft).await,
    }
}

/// Waits for the first bytes of a request. False if there are none: a client that says nothing asked for nothing, and is not
/// worth a record.
pub(crate) async fn begins(state: &CommandState, wire: &mut Wire) -> bool {
    !wire.kept.is_empty() || matches!(timeout(state.context.limits.idle_time, wire.more()).await, Ok(Ok(1..)))
}
