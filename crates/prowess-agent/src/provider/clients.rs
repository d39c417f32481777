//! Clients: what do conversations share that speak over the same kind of wire?
//!
//! Making a client reads the system's certificates, and its connections can be used again by whoever asks next.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use reqwest::{Client, Proxy, Url};

use super::http::{is_loopback, reasons, tls_config};

/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(20);

/// How long nothing may come. Local models read long prompts for minutes before their first word.
pub(super) const IDLE: Duration = Duration::from_secs(300);

/// For how long a client is given to others; after that the system may have other certificates.
const SHARED: Duration = Duration::from_secs(60 * 60);

/// Clients that are shared by all who hold this.
#[derive(Debug, Clone, Default)]
pub struct Clients {
    known: Arc<Mutex<HashMap<Way, (Instant, Client)>>>,
    proxy: Option<Url>,
}

/// All that tells clients apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Way {
    is_encrypted: bool,
    is_loopback: bool,
}

impl Clients {
    /// Clients that go through this proxy, whatever the environment says.
    #[must_use]
    pub fn through(proxy: Url) -> Self {
        Self { proxy: Some(proxy), ..Self::default() }
    }

    /// One that can speak to `url`, or why there is none.
    pub(super) fn get(&self, url: &Url) -> Result<Client, String> {
        let way = Way { is_encrypted: url.scheme() == "https", is_loopback: is_loopback(url) };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((made, client)) = known.get(&way)
            && made.elapsed() < SHARED
        {
            return Ok(client.clone());
        }
        let client = self.make(url, way)?;
        known.insert(way, (Instant::now(), client.clone()));
        Ok(client)
    }

    fn make(&self, url: &Url, way: Way) -> Result<Client, String> {
        let mut builder = Client::builder()
            .tls_backend_preconfigured(tls_config(url).map_err(|error| error.to_string())?)
            // A key must not follow a redirect to somebody else.
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT)
            .read_timeout(IDLE)
            .user_agent(concat!("prowess/", env!("CARGO_PKG_VERSION")));
        if let Some(proxy) = &self.proxy {
            builder = builder.proxy(Proxy::all(proxy.clone()).map_err(reasons)?);
        } else if way.is_loopback {
            builder = builder.no_proxy();
        }
        builder.build().map_err(reasons)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_speaks_over_the_same_kind_of_wire_shares_a_client() {
        let clients = Clients::default();
        for url in ["http://127.0.0.1:1/v1", "http://localhost:2", "http://192.0.2.1/", "http://192.0.2.2/"] {
            clients.get(&Url::parse(url).expect("a URL")).expect("a client");
        }
        let others = clients.clone();
        assert_eq!(others.known.lock().expect("nobody panicked").len(), 2, "this machine, and all others");
    }
}
