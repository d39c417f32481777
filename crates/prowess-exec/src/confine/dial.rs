//! Dialling: how does the parent connect to a program that listens inside a run?
//!
//! The port is open in the network namespace of the run, which only a process with one thread can enter. So this binary is
//! started again, enters, connects, and hands the connected socket back.

use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::thread::{ThreadNameSpaceType, move_into_thread_name_spaces};

/// How long a program that listens may take to accept.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where to connect.
pub(crate) struct Dial {
    /// A process of the run.
    pub(crate) process: i32,
    /// The number of its network namespace.
    pub(crate) namespace: u64,
    /// The port.
    pub(crate) port: u16,
}

impl Dial {
    /// The arguments that bring it to a helper.
    pub(crate) fn args(&self) -> [String; 3] {
        [self.process.to_string(), self.namespace.to_string(), self.port.to_string()]
    }

    pub(super) fn parse(args: impl Iterator<Item = OsString>) -> Option<Self> {
        let words: Vec<String> = args.map(OsString::into_string).collect::<Result<_, _>>().ok()?;
        let [process, namespace, port] = words.as_slice() else { return None };
        Some(Self { process: process.parse().ok()?, namespace: namespace.parse().ok()?, port: port.parse().ok()? })
    }

    /// Enters the namespace and connects.
    pub(super) fn connect(&self) -> io::Result<TcpStream> {
        let pid = Pid::from_raw(self.process).ok_or(io::ErrorKind::InvalidInput)?;
        let process = pidfd_open(pid, PidfdFlags::empty())?;
        let mut kinds = ThreadNameSpaceType::NETWORK;
        // An ordinary user may enter a network only by way of the user namespace that it belongs to.
        if number(&format!("/proc/{}/ns/user", self.process))? != number("/proc/self/ns/user")? {
            kinds |= ThreadNameSpaceType::USER;
        }
        move_into_thread_name_spaces(process.as_fd(), kinds)?;
        // The process may have ended, and its number may be another's by now.
        if number("/proc/self/ns/net")? != self.namespace {
            return Err(io::ErrorKind::NotFound.into());
        }
        let v4 = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let v6 = SocketAddr::from((Ipv6Addr::LOCALHOST, self.port));
        TcpStream::connect_timeout(&v4, PATIENCE).or_else(|_| TcpStream::connect_timeout(&v6, PATIENCE))
    }
}

/// The number of a namespace.
fn number(link: &str) -> io::Result<u64> {
    Ok(std::fs::metadata(link)?.ino())
}
