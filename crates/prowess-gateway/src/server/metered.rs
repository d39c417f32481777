//! A metered stream: how much may somebody send who is not let in yet?

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::door::Ticket;

/// Nobody counts.
const FREE: usize = usize::MAX;

/// How much may still be read from a connection, and its ticket.
#[derive(Debug)]
pub(crate) struct Meter {
    left: AtomicUsize,
    ticket: Ticket,
}

impl Meter {
    pub(crate) fn new(ticket: Ticket) -> Self {
        Self { left: AtomicUsize::new(FREE), ticket }
    }

    /// From now on, at most so many bytes are read.
    pub(crate) fn limit(&self, bytes: usize) {
        self.left.store(bytes, Ordering::Relaxed);
    }

    /// Whoever it is was let in.
    pub(crate) fn known(&self) {
        self.left.store(FREE, Ordering::Relaxed);
        self.ticket.known();
    }

    /// Whether so many bytes may be read.
    fn count(&self, bytes: usize) -> bool {
        let take = |left: usize| match left {
            FREE => Some(FREE),
            left => left.checked_sub(bytes),
        };
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }
}

/// A stream that ends with an error when its meter runs out.
#[derive(Debug)]
pub(super) struct Metered<S> {
    stream: S,
    meter: Arc<Meter>,
}

impl<S> Metered<S> {
    pub(super) fn new(stream: S, meter: Arc<Meter>) -> Self {
        Self { stream, meter }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        std::task::ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        if self.meter.count(buffer.filled().len() - before) {
            return Poll::Ready(Ok(()));
        }
        buffer.set_filled(before);
        Poll::Ready(Err(io::Error::new(io::ErrorKind::QuotaExceeded, "too much data before authentication")))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;
    use crate::door::Door;

    #[tokio::test]
    async fn a_meter_runs_out_unless_whoever_it_is_was_let_in() {
        let ticket = || Door::new(1, 1, &[]).open(std::net::Ipv4Addr::LOCALHOST.into()).expect("a place");
        let sent = vec![0; 100];
        let free = Arc::new(Meter::new(ticket()));
        let read = Metered::new(sent.as_slice(), Arc::clone(&free)).read_to_end(&mut Vec::new()).await;
        assert_eq!(read.expect("nobody counts"), 100);
        let limited = Arc::new(Meter::new(ticket()));
        limited.limit(99);
        let read = Metered::new(sent.as_slice(), Arc::clone(&limited)).read_to_end(&mut Vec::new()).await;
        assert_eq!(read.expect_err("too much").kind(), io::ErrorKind::QuotaExceeded);
        limited.known();
        let read = Metered::new(sent.as_slice(), limited).read_to_end(&mut Vec::new()).await;
        assert_eq!(read.expect("let in"), 100);
    }
}
