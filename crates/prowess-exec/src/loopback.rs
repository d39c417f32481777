//! The loopback device of a session: which of its runs listens at a port?
//!
//! Each run has a network of its own, so a server that one command leaves in the background is out of reach for the next
//! one. The proxy of a run therefore leads `localhost` to whichever run of the same session listens at that port, its own
//! included. Runs of another session are never looked at, and neither is this machine's loopback device.

use std::collections::{HashMap, HashSet};
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use command_fds::{CommandFdExt, FdMapping};
use prowess_egress::OwnLoopback;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

use crate::confine::{DIAL_VERB, Dial};
use crate::job::{network_of, process_numbers};
use crate::sandbox::{ORDER_FD, PROXY_PORT};

/// How long a helper may take to connect.
const PATIENCE: Duration = Duration::from_secs(15);

/// The network namespaces of running commands, by session.
#[derive(Debug, Clone, Default)]
pub(crate) struct SessionNetworks(Arc<Mutex<HashMap<String, HashSet<u64>>>>);

/// The networks of one session.
#[derive(Debug, Clone)]
pub(crate) struct SessionNetwork {
    session: String,
    all: SessionNetworks,
    helper: PathBuf,
}

/// A running command's network, in the list for as long as this is kept.
#[derive(Debug)]
pub(crate) struct Listed {
    namespace: u64,
    network: SessionNetwork,
}

impl SessionNetworks {
    /// Those of `session`, which `helper` enters.
    pub(crate) fn of(&self, session: &str, helper: &Path) -> SessionNetwork {
        SessionNetwork { session: session.to_owned(), all: self.clone(), helper: helper.to_owned() }
    }
}

impl SessionNetwork {
    /// Lists the network of a command that was started.
    pub(crate) fn list(&self, namespace: u64) -> Listed {
        let mut all = self.all.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(self.session.clone()).or_default().insert(namespace);
        Listed { namespace, network: self.clone() }
    }

    /// The ports at which the session's commands listen.
    pub(crate) fn ports(&self) -> Vec<u16> {
        self.members().into_iter().flat_map(|(process, _)| listening(process)).collect()
    }

    /// Leads to them, for a proxy.
    pub(crate) fn loopback(&self) -> OwnLoopback {
        let network = self.clone();
        Arc::new(move |port| {
            let network = network.clone();
            // It looks at processes and waits for a helper.
            let dialed = tokio::task::spawn_blocking(move || network.dial(port));
            Box::pin(async move { dialed.await.ok().flatten() })
        })
    }

    fn dial(&self, port: u16) -> Option<TcpStream> {
        let members = self.members().into_iter().filter(|(process, _)| listening(*process).contains(&port));
        members.map(|(process, namespace)| Dial { process, namespace, port }).find_map(|dial| self.connect(&dial).ok())
    }

    /// Has the helper connect, and takes the socket over.
    fn connect(&self, dial: &Dial) -> io::Result<TcpStream> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_read_timeout(Some(PATIENCE))?;
        let mut command = Command::new(&self.helper);
        command.arg(DIAL_VERB).args(dial.args()).env_clear();
        let mapping = FdMapping { parent_fd: theirs.into(), child_fd: ORDER_FD };
        command.fd_mappings(vec![mapping]).map_err(io::Error::other)?;
        let mut child = command.spawn()?;
        // Our copy of its end: as long as it is open, its silence is no end.
        drop(command);
        let socket = receive(&ours);
        // It is done, or too late.
        child.kill()?;
        child.wait()?;
        socket
    }

    /// A process in each of the session's networks.
    fn members(&self) -> Vec<(i32, u64)> {
        let mut wanted = {
            let all = self.all.0.lock().unwrap_or_else(PoisonError::into_inner);
            all.get(&self.session).cloned().unwrap_or_default()
        };
        if wanted.is_empty() {
            return Vec::new();
        }
        let mut found = Vec::new();
        for process in process_numbers() {
            if let Some(namespace) = network_of(process)
                && wanted.remove(&namespace)
            {
                found.push((process, namespace));
            }
        }
        found
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        let mut all = self.network.all.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(namespaces) = all.get_mut(&self.network.session) {
            namespaces.remove(&self.namespace);
            if namespaces.is_empty() {
                all.remove(&self.network.session);
            }
        }
    }
}

/// The socket that comes in at `channel`.
fn receive(channel: &UnixStream) -> io::Result<TcpStream> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    recvmsg(channel, &mut [IoSliceMut::new(&mut [0])], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let mut messages = ancillary.drain();
    let socket = messages.find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    socket.map(TcpStream::from).ok_or_else(|| io::ErrorKind::ConnectionRefused.into())
}

/// The ports of the loopback device at which somebody listens in the network of `process`, without those of our proxy.
fn listening(process: i32) -> Vec<u16> {
    let read = |table: &str| std::fs::read_to_string(format!("/proc/{process}/net/{table}")).unwrap_or_default();
    let tables = [read("tcp"), read("tcp6")];
    tables
        .iter()
        .flat_map(|table| table.lines().skip(1).filter_map(listener))
        .filter(|&port| port != PROXY_PORT)
        .collect()
}

/// The port of a line of the kernel's table, if it is of a socket that listens where a client of `localhost` connects.
/// Elsewhere on the loopback device are the sockets with which the proxy stands in for hosts.
fn listener(line: &str) -> Option<u16> {
    const LISTENS: &str = "0A";
    let mut fields = line.split_whitespace().skip(1);
    let (address, port) = fields.next()?.split_once(':')?;
    let address = address_of(address)?;
    let is_local =
        address.is_unspecified() || [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()].contains(&address);
    (is_local && fields.nth(1)? == LISTENS).then(|| u16::from_str_radix(port, 16).ok())?
}

/// An address as the kernel writes it: in numbers of four bytes, each in the order of this machine.
fn address_of(text: &str) -> Option<IpAddr> {
    let number = |four: &[u8]| u32::from_str_radix(std::str::from_utf8(four).ok()?, 16).ok();
    let numbers = text.as_bytes().chunks(8).map(number).collect::<Option<Vec<u32>>>()?;
    let bytes: Vec<u8> = numbers.into_iter().flat_map(u32::to_ne_bytes).collect();
    match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from),
        _ => <[u8; 16]>::try_from(bytes).ok().map(|bytes| IpAddr::from(bytes).to_canonical()),
    }
}

#[cfg(test)]
mod tests {
    use super::listener;

    #[test]
    fn only_what_a_client_of_localhost_finds_is_listed() {
        let line = |address: &str, state: &str| {
            format!("   0: {address} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000     0        0 7 1")
        };
        for (address, state, expected) in [
            ("0100007F:1F90", "0A", Some(8080)),
            ("00000000:0016", "0A", Some(22)),
            ("00000000000000000000000001000000:1F90", "0A", Some(8080)),
            ("00000000000000000000000000000000:1F90", "0A", Some(8080)),
            // Connected, not listening.
            ("0100007F:1F90", "01", None),
            // Where the proxy stands in for a host.
            ("01004D7F:01BB", "0A", None),
            ("nonsense", "0A", None),
        ] {
            // The kernel of a machine with the other byte order writes the bytes the other way round.
            let expected = expected.filter(|_| cfg!(target_endian = "little"));
            assert_eq!(listener(&line(address, state)), expected, "{address} {state}");
        }
        assert_eq!(listener("  sl  local_address rem_address   st"), None);
    }
}
