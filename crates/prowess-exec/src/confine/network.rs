//! The network of a run: how does it get a way out that only the proxy serves?
//!
//! The run gets a network namespace of its own, with a loopback device and nothing else. In it the helper opens a socket
//! that listens, and hands it to the parent. A socket belongs to the namespace in which it was made, so the parent
//! accepts connections from inside although it stays outside. The run itself reaches nothing else, whatever it tries.
//!
//! No process of a run can leave this namespace, and no other can enter it. Its number tells the parent which processes
//! belong to the run, whatever session they have moved to.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::MetadataExt;

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, recv, sendto, socket};
use rustix::thread::UnshareFlags;

use crate::sandbox::{Confinement, MAX_SOCKETS, NamedHost, PROXY_PORT, Proxy, Refused};

/// The sockets of the proxy in the network of a run.
pub(super) struct Sockets {
    /// The number of the network namespace.
    pub(super) namespace: u64,
    /// Where programs look for the proxy.
    pub(super) proxy: TcpListener,
    /// Where programs that know no proxy look for their hosts, each with its place among those that were asked for.
    pub(super) forwards: Vec<(u8, TcpListener)>,
}

/// Gives this process a network in which nothing but the returned sockets listens.
pub(super) fn separate(confinement: &Confinement) -> Result<Option<Sockets>, Refused> {
    let refused = |what: &str, error: &dyn std::fmt::Display| Refused::new("sandbox", format!("{what}: {error}"));
    match confinement.proxy {
        Proxy::None => return Ok(None),
        Proxy::Inside => {}
        Proxy::Separate => {
            own_network().map_err(|error| refused("the run cannot have a network namespace of its own", &error))?;
            raise_loopback().map_err(|error| refused("the loopback device cannot be started", &error))?;
        }
    }
    let namespace = std::fs::metadata("/proc/self/ns/net")
        .map_err(|error| refused("the network namespace of the run cannot be identified", &error))?
        .ino();
    let proxy = TcpListener::bind((Ipv4Addr::LOCALHOST, PROXY_PORT))
        .map_err(|error| refused("the socket for the proxy cannot be opened", &error))?;
    // Inside bubblewrap, low ports cannot be opened. Programs that know the proxy need none of these.
    let forwards = NamedHost::sockets(&confinement.hosts)
        .take(MAX_SOCKETS)
        .zip(0..)
        .filter_map(|((_, address, port), place)| Some((place, TcpListener::bind((address, port)).ok()?)));
    Ok(Some(Sockets { namespace, proxy, forwards: forwards.collect() }))
}

/// Whether this thread can have a network of its own. It has one afterwards.
pub(super) fn can_separate() -> bool {
    own_network().is_ok()
}

#[expect(deprecated, reason = "what makes the call unsound is a flag about open files, which is not used here")]
fn own_network() -> rustix::io::Result<()> {
    rustix::thread::unshare(UnshareFlags::NEWNET)
}

/// Asks the kernel to start the loopback device, which is the first in every namespace.
fn raise_loopback() -> io::Result<()> {
    const NEW_LINK: u16 = 16;
    const REQUEST_WITH_ANSWER: u16 = 1 | 4;
    const LENGTH: u32 = 32;
    const UP: u32 = 1;
    const LOOPBACK: i32 = 1;
    let mut message = Vec::with_capacity(32);
    message.extend(LENGTH.to_ne_bytes());
    message.extend(NEW_LINK.to_ne_bytes());
    message.extend(REQUEST_WITH_ANSWER.to_ne_bytes());
    message.extend([0; 8]); // sequence and sender
    message.extend([0; 4]); // family and type of the device
    message.extend(LOOPBACK.to_ne_bytes());
    message.extend(UP.to_ne_bytes());
    message.extend(UP.to_ne_bytes()); // which of the flags are meant
    let route = socket(AddressFamily::NETLINK, SocketType::RAW, None)?;
    sendto(&route, &message, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    let mut answer = [0; 64];
    let (length, _) = recv(&route, &mut answer, RecvFlags::empty())?;
    // A header of sixteen bytes, and the number of the error, which is zero where there was none.
    let code = answer.get(16..20).filter(|_| length >= 20).and_then(|bytes| bytes.try_into().ok());
    match code.map(i32::from_ne_bytes) {
        Some(0) => Ok(()),
        Some(error) => Err(io::Error::from_raw_os_error(-error)),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}
