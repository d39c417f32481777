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
    let draft = state.draft();
    match timeout(state.context.limits.idle_time, wire.more()).await {
        // A client that says nothing asked for nothing.
        Err(_) | Ok(Err(_) | Ok(0)) => return draft.forget(),
        Ok(Ok(_)) => {}
    }
    match wire.kept[0] {
        5 => socks::serve(&state, wire, draft).await,
        4 => draft.end(Outcome::Refused(Refusal::Unsupported("SOCKS4"))),
        0x16 => draft.end(Outcome::Refused(Refusal::Unsupported("TLS to the proxy itself"))),
        _ => http::serve(&state, wire, draft).await,
    }
}
