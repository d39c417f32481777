//! May this connection be made, and to which address? What all connections of one command share.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use prowess_policy::lease::{Host, HostRule};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use crate::address::AddressKind;
use crate::ask::{HostQuestion, Questions};
use crate::audit::{CLIENT_LEFT, Draft, Outcome, Protocol, Refusal};
use crate::buffers::Buffers;
use crate::names::Found;
use crate::outlet::CommandContext;
use crate::stream::Stream;

/// The most addresses of one name that are tried.
const MAX_ADDRESSES: usize = 8;

/// Why a connection ends before both sides are done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stop {
    Refused(Refusal),
    Failed(String),
    /// One side went away without closing.
    Reset,
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe | io::ErrorKind::NotConnected => Self::Reset,
            _ => Self::Failed(error.to_string()),
        }
    }
}

impl From<Stop> for Outcome {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Refused(refusal) => Self::Refused(refusal),
            Stop::Failed(reason) => Self::Failed(reason),
            Stop::Reset => Self::Failed("the connection was reset".to_owned()),
        }
    }
}

impl From<Result<(), Stop>> for Outcome {
    fn from(result: Result<(), Stop>) -> Self {
        result.map_or_else(Self::from, |()| Self::Served)
    }
}

/// One command's rules, questions and counters.
pub(crate) struct CommandState {
    pub(crate) context: CommandContext,
    pub(crate) buffers: Buffers,
    /// Bytes of all connections.
    pub(crate) bytes: AtomicU64,
    /// Whether one of its connections stays awake for the next message.
    pub(crate) is_lingering: AtomicBool,
    /// Whether its last connection was made in a moment.
    pub(crate) is_near: AtomicBool,
    /// How many records were begun.
    begun: AtomicU64,
    questions: Questions,
}

impl CommandState {
    pub(crate) fn new(context: CommandContext) -> Self {
        let questions = Questions::new(context.asker.clone(), &context.limits);
        Self {
            context,
            questions,
            buffers: Buffers::default(),
            bytes: AtomicU64::new(0),
            is_lingering: AtomicBool::new(false),
            is_near: AtomicBool::new(false),
            begun: AtomicU64::new(0),
        }
    }

    pub(crate) fn draft(&self) -> Draft {
        let number = self.begun.fetch_add(1, Ordering::Relaxed) + 1;
        Draft::new(number, self.context.skill.clone(), self.context.command.clone(), self.context.audit.clone())
    }

    /// Connects to `port` of `host`, if the rules or an answer allow it and every address of the host may be reached.
    /// `client` waits; if it leaves, so does the connection.
    pub(crate) async fn open(
        &self,
        host: &Host,
        port: u16,
        protocol: Protocol,
        client: &Stream,
        draft: &mut Draft,
    ) -> Result<Stream, Stop> {
        draft.asks_for(host, port, protocol);
        if self.bytes.load(Ordering::Relaxed) >= self.context.limits.command_bytes {
            return Err(Refusal::TooManyBytes("the command").into());
        }
        let is_covered = self.is_covered(host, port);
        if !is_covered && let Some(stream) = self.own(host, port).await {
            return reach(stream, draft);
        }
        let answered = if is_covered {
            None
        } else {
            tokio::select! {
                answer = self.questions.ask(self.question(host, port, protocol)) => answer?,
                () = client.closed() => return Err(Stop::Failed(CLIENT_LEFT.to_owned())),
            }
            Some(HostRule::exactly(host, port))
        };
        let deadline = Instant::now() + self.context.limits.connect_time;
        let too_slow = |_| Stop::Failed(format!("cannot resolve {host}: no answer in time"));
        let found = timeout_at(deadline, self.context.names.find(host, port)).await.map_err(too_slow)?;
        let addresses = match found.map_err(|error| Stop::Failed(unresolved(host, &error)))? {
            Found::StandIn(address) => vec![address],
            Found::Addresses(ips) => self.checked(&ips, port, answered.as_ref())?,
        };
        match connect(&addresses, deadline).await {
            Ok(stream) => reach(stream, draft),
            // A rule for `localhost` means this machine. If nobody listens here, the command may mean itself.
            Err(stop) => reach(self.own(host, port).await.ok_or(stop)?, draft),
        }
    }

    /// The command's own loopback device, if `host` can mean it and somebody listens there.
    async fn own(&self, host: &Host, port: u16) -> Option<TcpStream> {
        let dial = self.context.own_loopback.as_ref().filter(|_| host.is_local())?;
        let stream = dial(port).await?;
        stream.set_nonblocking(true).ok()?;
        TcpStream::from_std(stream).ok()
    }

    fn is_covered(&self, host: &Host, port: u16) -> bool {
        self.context.rules.iter().any(|rule| rule.covers(host, port))
    }

    fn question(&self, host: &Host, port: u16, protocol: Protocol) -> HostQuestion {
        let CommandContext { skill, command, .. } = &self.context;
        HostQuestion { host: host.clone(), port, protocol, skill: skill.clone(), command: command.clone() }
    }

    /// The addresses to connect to. One that may not be reached spoils them all: a name that leads inside and outside at
    /// once is an attack, or needs a rule.
    fn checked(&self, ips: &[IpAddr], port: u16, answered: Option<&HostRule>) -> Result<Vec<SocketAddr>, Refusal> {
        let mut addresses: Vec<SocketAddr> = Vec::new();
        for ip in ips.iter().map(IpAddr::to_canonical) {
            let host = Host::Ip(ip);
            if let Some(kind) = AddressKind::of(ip)
                && !self.is_covered(&host, port)
                && !answered.is_some_and(|rule| rule.covers(&host, port))
            {
                return Err(Refusal::Address(ip, kind));
            }
            let address = SocketAddr::new(ip, port);
            if !addresses.contains(&address) && addresses.len() < MAX_ADDRESSES {
                addresses.push(address);
            }
        }
        Ok(addresses)
    }
}

/// Takes a connection over, and writes down where it leads.
fn reach(stream: TcpStream, draft: &mut Draft) -> Result<Stream, Stop> {
    stream.set_nodelay(true)?;
    draft.reached(stream.peer_addr()?);
    Ok(Stream::Tcp(stream))
}

/// Connects to the first address that answers. Each gets an equal share of the time that is left.
async fn connect(addresses: &[SocketAddr], deadline: Instant) -> Result<TcpStream, Stop> {
    let mut last = Stop::Failed("the host has no address".to_owned());
    for (i, address) in addresses.iter().enumerate() {
        let others = u32::try_from(addresses.len() - i).unwrap_or(1);
        let share = deadline.saturating_duration_since(Instant::now()) / others;
        match tokio::time::timeout(share, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => last = Stop::Failed(unconnected(*address, &error)),
            Err(_) => last = Stop::Failed(format!("no answer from {address} in time")),
        }
    }
    Err(last)
}

/// Why the name of `host` led nowhere, without what every such error begins with.
fn unresolved(host: &Host, error: &io::Error) -> String {
    let error = error.to_string();
    format!("cannot resolve {host}: {}", error.strip_prefix("failed to lookup address information: ").unwrap_or(&error))
}

/// Why there is no connection to `address`.
fn unconnected(address: SocketAddr, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => format!("connection refused by {address}"),
        io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => format!("no route to {address}"),
        _ => format!("cannot connect to {address}: {error}"),
    }
}
