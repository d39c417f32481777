//! The channel: how does the helper hear its order, and how does it refuse?
//!
//! The one file with `unsafe`: only this can turn the number of an inherited descriptor into something owned.

use std::io::{Read, Write};
#[cfg(target_os = "linux")]
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use command_fds::inherited::{init_inherited_fds, take_fd_ownership};

use crate::sandbox::{LISTENER, MAX_ORDER, MAX_SOCKETS, ORDER_FD, Order, Refused, render_report};

/// How long the parent may take to write an order.
const PATIENCE: Duration = Duration::from_secs(30);

/// The socket to the parent.
pub(super) struct Channel(UnixStream);

impl Channel {
    /// Takes over the socket, and closes it and every other inherited descriptor when the program starts: what a parent
    /// left open by mistake must not reach the run.
    #[expect(unsafe_code, reason = "inherited descriptors have no owner yet, and no safe function gives them one")]
    pub(super) fn take() -> Result<Self, Refused> {
        // SAFETY: the helper runs before anything else in `main` and has opened nothing, so nobody else owns these.
        unsafe { init_inherited_fds() }
            .map_err(|error| Refused::new("order", format!("inherited files cannot be listed: {error}")))?;
        let fd = take_fd_ownership(ORDER_FD).map_err(|_| {
            Refused::new(
                "order",
                format!("this command is for internal use: it expects a socket at descriptor {ORDER_FD}"),
            )
        })?;
        let socket = UnixStream::from(fd);
        socket
            .set_read_timeout(Some(PATIENCE))
            .map_err(|error| Refused::new("order", format!("descriptor {ORDER_FD} is not a socket: {error}")))?;
        Ok(Self(socket))
    }

    /// Reads the order.
    pub(super) fn read_order(&mut self) -> Result<Order, Refused> {
        let short = |error: std::io::Error| Refused::new("order", format!("the order did not arrive: {error}"));
        let mut length = [0; 4];
        self.0.read_exact(&mut length).map_err(short)?;
        let length = u32::from_le_bytes(length) as usize;
        if length > MAX_ORDER {
            return Err(Refused::new("order", format!("the order has {length} bytes; at most {MAX_ORDER} are read")));
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).map_err(short)?;
        Order::parse(&body).map_err(|error| Refused::new("order", error.to_string()))
    }

    /// Gives the parent the sockets at which the run will look for a proxy.
    #[cfg(target_os = "linux")]
    pub(super) fn hand_over(&self, sockets: &super::network::Sockets) -> Result<(), Refused> {
        let forwards = &sockets.forwards;
        let fds: Vec<_> =
            [sockets.proxy.as_fd()].into_iter().chain(forwards.iter().map(|(_, socket)| socket.as_fd())).collect();
        let count = u8::try_from(forwards.len()).unwrap_or(u8::MAX);
        let mut words = vec![LISTENER];
        words.extend(sockets.namespace.to_le_bytes());
        words.push(count);
        words.extend(forwards.iter().map(|(place, _)| *place));
        self.send(&words, &fds)
            .map_err(|error| Refused::new("sandbox", format!("the proxy's socket cannot be handed over: {error}")))
    }

    /// Sends descriptors, at most [`MAX_SOCKETS`] and one, with some bytes.
    #[cfg(target_os = "linux")]
    pub(super) fn send(&self, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> rustix::io::Result<()> {
        use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_SOCKETS + 1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        ancillary.push(SendAncillaryMessage::ScmRights(fds));
        sendmsg(&self.0, &[std::io::IoSlice::new(bytes)], &mut ancillary, SendFlags::empty()).map(drop)
    }

    /// Tells the parent why nothing was started.
    pub(super) fn report(mut self, refused: &Refused) {
        if self.0.write_all(&render_report(refused)).is_err() {
            eprintln!("prowess: {refused}");
        }
    }
}
