//! Aside: how is work done that takes a while, without holding others up?

use tokio::task::spawn_blocking;

use crate::wire::Refusal;

/// Does what looks at disks in a thread of its own.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Refusal> {
    spawn_blocking(work).await.map_err(|_| Refusal::unavailable("the request failed; see the gateway's log"))
}
