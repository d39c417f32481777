//! Bytes from and to a client or a host, without a buffer for a connection that is silent.

use std::io::{self, Read};
use std::net::Shutdown;

use socket2::SockRef;
use tokio::io::Interest;
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;

/// A connected socket. Reading and writing share it.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(UnixStream),
}

macro_rules! each {
    ($self:expr, $stream:ident => $call:expr) => {
        match $self {
            Stream::Tcp($stream) => $call,
            #[cfg(unix)]
            Stream::Unix($stream) => $call,
        }
    };
}

/// A stream between two runtimes.
pub(crate) enum Moved {
    Tcp(std::net::TcpStream),
    #[cfg(unix)]
    Unix(std::os::unix::net::UnixStream),
}

impl Moved {
    /// Takes it over, in the runtime that this is called in.
    pub(crate) fn arrive(self) -> io::Result<Stream> {
        Ok(match self {
            Self::Tcp(stream) => Stream::Tcp(TcpStream::from_std(stream)?),
            #[cfg(unix)]
            Self::Unix(stream) => Stream::Unix(UnixStream::from_std(stream)?),
        })
    }
}

impl Stream {
    /// Leaves the runtime that it belongs to.
    pub(crate) fn hand_over(self) -> io::Result<Moved> {
        Ok(match self {
            Self::Tcp(stream) => Moved::Tcp(stream.into_std()?),
            #[cfg(unix)]
            Self::Unix(stream) => Moved::Unix(stream.into_std()?),
        })
    }

    pub(crate) async fn readable(&self) -> io::Result<()> {
        each!(self, stream => stream.readable().await)
    }

    /// Reads what is there. If that is less than `buffer` holds, nothing more is, and the next
    /// [`readable`](Self::readable) waits: that saves a read which would only say so.
    pub(crate) fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let room = buffer.len();
        let mut short = None;
        let read = each!(self, stream => stream.try_io(Interest::READABLE, || {
            match (&*SockRef::from(stream)).read(buffer) {
                Ok(count) if count > 0 && count < room => {
                    short = Some(count);
                    Err(io::ErrorKind::WouldBlock.into())
                }
                read => read,
            }
        }));
        short.map_or(read, Ok)
    }

    pub(crate) async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match each!(self, stream => stream.try_write(bytes)) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    each!(self, stream => stream.writable().await)?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Tells the other side that nothing follows. It may be gone already.
    pub(crate) fn shutdown_write(&self) {
        each!(self, stream => SockRef::from(stream).shutdown(Shutdown::Write)).ok();
    }

    /// Waits until the other side has closed its half. Bytes that arrive meanwhile stay where they are.
    pub(crate) async fn closed(&self) {
        loop {
            let ready = each!(self, stream => stream.ready(Interest::READABLE).await);
            if ready.is_ok_and(tokio::io::Ready::is_read_closed) {
                return;
            }
            // Readiness for data stays set until somebody reads, so this cannot wait for the next event.
            tokio::time::sleep(std::time::Duration::from_millis(250)).await;
        }
    }
}

/// A stream, and what was read from it but not used yet.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) stream: Stream,
    pub(crate) kept: Vec<u8>,
}

/// How much is read at once while a head is collected.
const PIECE: usize = 4096;

impl Wire {
    pub(crate) fn new(stream: Stream) -> Self {
        Self { stream, kept: Vec::new() }
    }

    /// Reads more behind what is kept. Returns how much; nothing means that the other side closed.
    pub(crate) async fn more(&mut self) -> io::Result<usize> {
        more(&self.stream, &mut self.kept).await
    }

    /// Takes the first `count` kept bytes off.
    pub(crate) fn consume(&mut self, count: usize) {
        self.kept.drain(..count);
        if self.kept.is_empty() {
            // A kept connection that is silent costs no memory.
            self.kept = Vec::new();
        }
    }
}

pub(crate) async fn more(stream: &Stream, kept: &mut Vec<u8>) -> io::Result<usize> {
    loop {
        stream.readable().await?;
        let old = kept.len();
        kept.resize(old + PIECE, 0);
        let read = stream.try_read(&mut kept[old..]);
        kept.truncate(old + read.as_ref().map_or(0, |count| *count));
        match read {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            read => return read,
        }
    }
}
