//! The order of requests: which of one connection's requests wait for the one before?
//!
//! Requests are answered side by side. Those that put something into a session's queue enter it in the order in which
//! the client sent them: each waits until the one before has its place there.

use tokio::sync::oneshot;

/// The requests of one connection that keep their order.
#[derive(Debug, Default)]
pub(crate) struct Sequence {
    last: Option<oneshot::Receiver<()>>,
}

/// The place of one request in that order. The next request goes on when this is dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    before: Option<oneshot::Receiver<()>>,
    _done: oneshot::Sender<()>,
}

impl Sequence {
    /// The place behind all that were given out before.
    pub(crate) fn next(&mut self) -> Slot {
        let (done, after) = oneshot::channel();
        Slot { before: self.last.replace(after), _done: done }
    }
}

impl Slot {
    /// Waits until every request before this one has its place.
    pub(crate) async fn reached(&mut self) {
        if let Some(before) = self.before.take() {
            // The other end is dropped, never used.
            let _ = before.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_waits_for_the_one_before_whoever_is_polled_first() {
        let mut sequence = Sequence::default();
        let (mut first, mut second, mut third) = (sequence.next(), sequence.next(), sequence.next());
        let is_ready = |slot: &mut Slot| {
            slot.before
                .as_mut()
                .is_none_or(|before| before.try_recv().is_err_and(|e| e == oneshot::error::TryRecvError::Closed))
        };
        assert!(is_ready(&mut first) && !is_ready(&mut second) && !is_ready(&mut third));
        first.reached().await;
        drop(first);
        second.reached().await;
        assert!(!is_ready(&mut third), "the second still has its place");
        drop(second);
        third.reached().await;
    }
}
