//! Which hosts may a command reach? The proxy that enforces the answer.
//!
//! A sandboxed command has no network but one socket, and this proxy listens on it. An [`Outlet`] serves exactly one
//! command. It speaks HTTP, `CONNECT` and SOCKS5 on the same port, looks names up itself, and opens a connection only if
//!
//! 1. a [`HostRule`](prowess_policy::lease::HostRule) covers the host and the port, or the [`Asker`] allows them,
//! 2. no address of the host is private, loopback, link-local or otherwise not public, unless a rule names that address,
//! 3. the server name of TLS, or the `Host` field of plain HTTP, is the host that the client asked for.
//!
//! For each connection the [`AuditSink`] gets one [`ConnectionRecord`]; on a kept HTTP connection, for each request.
//! [`environment`] returns the variables that make usual programs use the proxy. All bounds are in [`Limits`].
//!
//! ```
//! use std::net::Ipv4Addr;
//!
//! use prowess_egress::{CommandContext, ConnectionRecord, Outlet, environment};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//! use tokio::net::{TcpListener, TcpStream};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
//! let proxy = listener.local_addr()?;
//!
//! let (records, mut audit) = tokio::sync::mpsc::unbounded_channel();
//! let mut context = CommandContext::new("run-1", move |record: ConnectionRecord| {
//!     records.send(record).ok();
//! });
//! context.skill = Some("weather".to_owned());
//! context.rules = vec!["wttr.in:443".parse()?];
//! let outlet = Outlet::serve(listener, context);
//!
//! // What the child would get.
//! assert!(environment(proxy, None).contains(&("https_proxy".to_owned(), format!("http://{proxy}"))));
//!
//! // A host without a rule, and nobody to ask.
//! let mut client = TcpStream::connect(proxy).await?;
//! client.write_all(b"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n").await?;
//! let mut answer = String::new();
//! client.read_to_string(&mut answer).await?;
//! assert!(answer.starts_with("HTTP/1.1 403 Forbidden"));
//!
//! outlet.close().await;
//! let record = audit.recv().await.expect("one record");
//! assert_eq!(serde_json::to_value(&record)?["outcome"], "refused");
//! # Ok(())
//! # }
//! ```

mod address;
mod ask;
mod audit;
mod body;
mod buffers;
mod environment;
mod head;
mod http;
mod inspect;
mod limits;
mod names;
mod outlet;
mod serve;
mod socks;
mod state;
mod stream;
mod token;
mod tunnel;

pub use address::AddressKind;
pub use ask::{Answer, Answering, AskNobody, Asker, HostQuestion, Lifetime};
pub use audit::{AuditSink, ConnectionRecord, Flushing, Outcome, Progress, Protocol, Refusal};
pub use environment::environment;
pub use limits::Limits;
pub use names::{Dialing, LookingUp, Lookup, Names, OwnLoopback, SystemLookup};
pub use outlet::{CommandContext, Forward, Outlet, ProxyListener};
pub use token::Token;

/// The parsers, for tests and fuzzing. They change without notice.
#[doc(hidden)]
pub mod parse {
    pub use crate::body::BodyScan;
    pub use crate::head::{Framing, HeadScan, RequestHead, RequestTarget, parse_request};
    pub use crate::inspect::{Inspection, Inspector};
}
