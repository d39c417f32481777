//! The wish of somebody that what runs ends: how is it heard?
//!
//! A command or a turn must not outlive the program that shows it, so the program listens and ends it in good order.

use std::future::poll_fn;
use std::task::{Context, Poll, Waker};

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Signals that ask for an end.
pub(crate) struct Wish(Vec<Signal>);

impl Wish {
    /// Listens for everything that ends a program; what comes from now on is heard.
    pub(crate) fn listen() -> std::io::Result<Self> {
        Self::to([SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()])
    }

    /// Listens for what ends the program itself, whatever it does.
    pub(crate) fn end() -> std::io::Result<Self> {
        Self::to([SignalKind::terminate(), SignalKind::hangup()])
    }

    fn to<const N: usize>(kinds: [SignalKind; N]) -> std::io::Result<Self> {
        kinds.into_iter().map(signal).collect::<std::io::Result<Vec<_>>>().map(Self)
    }

    /// Waits for the next of them. Waiting can be given up at any time.
    pub(crate) async fn comes(&mut self) {
        poll_fn(|cx| {
            let came = self.0.iter_mut().any(|signal| signal.poll_recv(cx).is_ready());
            if came { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// Forgets what came while nobody waited.
    pub(crate) fn forget(&mut self) {
        let mut cx = Context::from_waker(Waker::noop());
        for signal in &mut self.0 {
            while signal.poll_recv(&mut cx).is_ready() {}
        }
    }
}
