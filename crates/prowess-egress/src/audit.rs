//! What went out? One record for each connection, and for each request on a kept connection.

use std::fmt::Display;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use prowess_policy::lease::{Host, HostError};
use serde::{Serialize, Serializer};
use thiserror::Error;

use crate::address::AddressKind;

/// How a client asked for a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Protocol {
    /// A plain HTTP request.
    Http,
    /// An HTTP `CONNECT` tunnel.
    Connect,
    /// A SOCKS5 tunnel.
    Socks5,
    /// A connection to a [`Forward`](crate::Forward): the client knows of no proxy.
    Direct,
    /// The client went away, or was refused, before it said.
    Unknown,
}

/// Why a connection was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The asker said no.
    #[error("not allowed: {0}")]
    NotAllowed(String),
    /// The question got no answer in time.
    #[error("nobody answered the question in time")]
    NoAnswer,
    /// The command asked about too many different hosts.
    #[error("the command asked for too many different hosts")]
    TooManyQuestions,
    /// Too many connections wait for answers.
    #[error("too many connections already wait for an answer")]
    TooManyHeld,
    /// What the client names is no host.
    #[error(transparent)]
    BadHost(#[from] HostError),
    /// The name leads to an address that only a rule for that address opens.
    #[error("it leads to {0}, {1}, and no rule names that address")]
    Address(IpAddr, AddressKind),
    /// The TLS client hello names another host than the tunnel.
    #[error("the TLS server name is {0:?}, which is not the host of the tunnel")]
    ServerName(String),
    /// The TLS client hello names no host.
    #[error("the TLS client hello has no server name")]
    NoServerName,
    /// The client hello is too long, too slow or malformed.
    #[error("the TLS client hello is unreadable: {0}")]
    BadHello(String),
    /// The `Host` header names another host than the request or the tunnel.
    #[error("the Host header is {0:?}, which is not the host of the request")]
    HostHeader(String),
    /// The bytes are not the protocol that they begin with.
    #[error("malformed: {0}")]
    Malformed(&'static str),
    /// The head of a request is longer than allowed.
    #[error("the head of the request is too long")]
    HeadTooLong,
    /// The head of a request took longer than allowed.
    #[error("the head of the request took too long")]
    HeadTooSlow,
    /// The client did not send this run's token.
    #[error("the credentials for this proxy are missing or wrong")]
    Unauthorized,
    /// The protocol exists, but this proxy does not serve it.
    #[error("not supported: {0}")]
    Unsupported(&'static str),
    /// As many connections are open as a command may have.
    #[error("the command has {0} connections open, which is the limit; close some and try again")]
    TooManyConnections(usize),
    /// The connection or the command used up its bytes.
    #[error("more bytes than {0} may transfer")]
    TooManyBytes(&'static str),
}

impl Refusal {
    /// A short name that does not change, for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotAllowed(_) => "not-allowed",
            Self::NoAnswer => "no-answer",
            Self::TooManyQuestions => "too-many-questions",
            Self::TooManyHeld => "too-many-held",
            Self::BadHost(_) => "bad-host",
            Self::Address(..) => "address",
            Self::ServerName(_) => "server-name",
            Self::NoServerName => "no-server-name",
            Self::BadHello(_) => "bad-hello",
            Self::HostHeader(_) => "host-header",
            Self::Malformed(_) => "malformed",
            Self::HeadTooLong => "head-too-long",
            Self::HeadTooSlow => "head-too-slow",
            Self::Unauthorized => "unauthorized",
            Self::Unsupported(_) => "unsupported",
            Self::TooManyConnections(_) => "too-many-connections",
            Self::TooManyBytes(_) => "too-many-bytes",
        }
    }
}

impl Serialize for Refusal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// How a connection ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", content = "reason", rename_all = "lowercase")]
pub enum Outcome {
    /// The host was reached, and one side closed the connection.
    Served,
    /// The proxy refused it.
    Refused(Refusal),
    /// It was allowed, but did not work out.
    Failed(String),
}

impl Outcome {
    /// Why the host could not be used, if that is neither the proxy's nor the client's doing: it cannot be resolved, does
    /// not answer, or breaks off.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        match self {
            Self::Failed(reason) => {
                Some(reason.as_str()).filter(|reason| ![COMMAND_ENDED, CLIENT_LEFT].contains(reason))
            }
            Self::Served | Self::Refused(_) => None,
        }
    }
}

/// One connection through the proxy, after it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ConnectionRecord {
    /// Its number among the connections of the command.
    #[serde(skip)]
    pub number: u64,
    /// The skill that the command belongs to.
    pub skill: Option<String>,
    /// The command's id.
    pub command: String,
    /// The host, as the rules would name it. Without one, the client never named a valid host.
    #[serde(serialize_with = "as_text_or_null")]
    pub host: Option<Host>,
    /// The port.
    pub port: Option<u16>,
    /// How the client asked.
    pub protocol: Protocol,
    /// The address that the proxy connected to.
    pub address: Option<SocketAddr>,
    /// Bytes from the client to the host.
    pub up: u64,
    /// Bytes from the host to the client.
    pub down: u64,
    /// How long it took, in milliseconds.
    pub ms: u64,
    /// How it ended.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// How far a connection is that is still open.
#[derive(Debug, Default)]
pub struct Progress {
    pub(crate) up: AtomicU64,
    pub(crate) down: AtomicU64,
    is_reached: AtomicBool,
}

impl Progress {
    /// Bytes from the client to the host, so far.
    #[must_use]
    pub fn up(&self) -> u64 {
        self.up.load(Ordering::Relaxed)
    }

    /// Bytes from the host to the client, so far.
    #[must_use]
    pub fn down(&self) -> u64 {
        self.down.load(Ordering::Relaxed)
    }

    /// Whether the proxy is connected to the host. Before that, it waits for an answer, for the name or for the host.
    #[must_use]
    pub fn is_reached(&self) -> bool {
        self.is_reached.load(Ordering::Relaxed)
    }
}

/// Takes records. A function is one too. Its methods are called from the task of the connection, so they must not block.
pub trait AuditSink: Send + Sync + 'static {
    /// Takes the record of a connection that is over.
    fn record(&self, record: ConnectionRecord);

    /// A client named the host that it wants. `record` holds what is known by then; `progress` changes until the record
    /// with the same number is delivered.
    fn opened(&self, _record: &ConnectionRecord, _progress: &Arc<Progress>) {}

    /// Waits until all records are stored. [`Outlet::close`](crate::Outlet::close) calls it last.
    fn flush(&self) -> Flushing<'_> {
        Box::pin(std::future::ready(()))
    }
}

/// The future of a sink whose records are stored.
pub type Flushing<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

impl<F: Fn(ConnectionRecord) + Send + Sync + 'static> AuditSink for F {
    fn record(&self, record: ConnectionRecord) {
        self(record);
    }
}

/// The record of a connection that is still open. However the connection ends, also by the end of its task, the record
/// is delivered once.
pub(crate) struct Draft {
    record: Option<ConnectionRecord>,
    sink: Arc<dyn AuditSink>,
    start: Instant,
    pub(crate) progress: Arc<Progress>,
}

impl Draft {
    pub(crate) fn new(number: u64, skill: Option<String>, command: String, sink: Arc<dyn AuditSink>) -> Self {
        let record = ConnectionRecord {
            number,
            skill,
            command,
            host: None,
            port: None,
            protocol: Protocol::Unknown,
            address: None,
            up: 0,
            down: 0,
            ms: 0,
            outcome: ended(),
        };
        Self { record: Some(record), sink, start: Instant::now(), progress: Arc::default() }
    }

    pub(crate) fn asks_for(&mut self, host: &Host, port: u16, protocol: Protocol) {
        self.edit(|record| {
            (record.host, record.port, record.protocol) = (Some(host.clone()), Some(port), protocol);
        });
        if let Some(record) = &self.record {
            self.sink.opened(record, &self.progress);
        }
    }

    pub(crate) fn speaks(&mut self, protocol: Protocol) {
        self.edit(|record| record.protocol = protocol);
    }

    pub(crate) fn reached(&mut self, address: SocketAddr) {
        self.edit(|record| record.address = Some(address));
        self.progress.is_reached.store(true, Ordering::Relaxed);
    }

    /// Delivers the record.
    pub(crate) fn end(mut self, outcome: Outcome) {
        self.edit(|record| record.outcome = outcome);
    }

    fn edit(&mut self, change: impl FnOnce(&mut ConnectionRecord)) {
        if let Some(record) = &mut self.record {
            change(record);
        }
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some(mut record) = self.record.take() {
            (record.up, record.down) = (self.progress.up(), self.progress.down());
            // Programs end without closing their connections.
            if record.outcome == ended() && record.up + record.down > 0 {
                record.outcome = Outcome::Served;
            }
            record.ms = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
            self.sink.record(record);
        }
    }
}

/// Why a connection failed that was still open when its command ended.
const COMMAND_ENDED: &str = "the command ended";

/// Why one failed whose client did not wait for the answer to a question.
pub(crate) const CLIENT_LEFT: &str = "the client left while its question waited";

/// How a connection ends that nothing else ended.
fn ended() -> Outcome {
    Outcome::Failed(COMMAND_ENDED.to_owned())
}

pub(crate) fn as_text<S: Serializer>(value: &impl Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

#[expect(clippy::ref_option, reason = "serde passes the field by reference")]
fn as_text_or_null<S: Serializer>(value: &Option<Host>, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => serializer.collect_str(value),
        None => serializer.serialize_none(),
    }
}
