//! Which addresses does a name have?
//!
//! Names are looked up here and never by the command, so the address that was checked is the address that is connected
//! to.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::pin::Pin;
use std::sync::Arc;

use prowess_policy::lease::{Host, HostError};

/// The future of a lookup.
pub type LookingUp<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;

/// Looks up names. The proxy checks every address that it returns.
pub trait Lookup: Send + Sync + 'static {
    /// The addresses of `name`, a DNS name in lower case.
    fn addresses<'a>(&'a self, name: &'a str) -> LookingUp<'a>;
}

/// The system's resolver.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemLookup;

impl Lookup for SystemLookup {
    fn addresses<'a>(&'a self, name: &'a str) -> LookingUp<'a> {
        Box::pin(async move { Ok(tokio::net::lookup_host((name, 0)).await?.map(|address| address.ip()).collect()) })
    }
}

/// The future of a connection, or of nothing if there is nobody to connect to.
pub type Dialing = Pin<Box<dyn Future<Output = Option<TcpStream>> + Send>>;

/// Connects to a port of the loopback device that the command sees, or of those that it may see besides. A command with a
/// network of its own means that by `localhost`, and not the loopback device of this machine.
pub type OwnLoopback = Arc<dyn Fn(u16) -> Dialing + Send + Sync>;

/// A lookup, and stand-ins for some hosts.
#[derive(Clone)]
pub struct Names {
    lookup: Arc<dyn Lookup>,
    stand_ins: HashMap<(Host, u16), SocketAddr>,
}

impl Default for Names {
    fn default() -> Self {
        Self::new(SystemLookup)
    }
}

/// Where a host is.
pub(crate) enum Found {
    /// The embedding program said so, and may name any address.
    StandIn(SocketAddr),
    /// A lookup said so: to be checked.
    Addresses(Vec<IpAddr>),
}

impl Names {
    /// Names as `lookup` knows them.
    #[must_use]
    pub fn new(lookup: impl Lookup) -> Self {
        Self { lookup: Arc::new(lookup), stand_ins: HashMap::new() }
    }

    /// Lets connections to `port` of `host` go to `address`, so that a test can serve `wttr.in:443` from loopback. The
    /// rules still decide whether the command may reach the host; only the check of the address is left out, because the
    /// embedding program chose it.
    pub fn stand_in(mut self, host: &str, port: u16, address: SocketAddr) -> Result<Self, HostError> {
        self.stand_ins.insert((Host::parse(host)?, port), address);
        Ok(self)
    }

    pub(crate) async fn find(&self, host: &Host, port: u16) -> io::Result<Found> {
        if let Some(address) = self.stand_ins.get(&(host.clone(), port)) {
            return Ok(Found::StandIn(*address));
        }
        Ok(Found::Addresses(match host {
            Host::Ip(ip) => vec![*ip],
            Host::Name(name) => self.lookup.addresses(name).await?,
        }))
    }
}
