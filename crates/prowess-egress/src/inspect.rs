//! Is the first message in a tunnel for the host that the tunnel was opened for?
//!
//! A server behind one address can serve many names, so a tunnel to an allowed name could carry a request for another.
//! TLS names the host in its client hello, and plain HTTP in its `Host` field; both must be the tunnel's host. Other
//! protocols name no host, and pass.

use prowess_policy::lease::Host;
use rustls::server::Acceptor;

use crate::audit::Refusal;
use crate::head::HeadScan;

/// What to do with the first bytes of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inspection {
    /// Keep them, and wait for more.
    More,
    /// Forward them, and everything after.
    Pass,
    /// Forward them, and inspect what follows: the client asked for TLS in the middle of its protocol.
    PassAndInspect,
    /// Forward nothing.
    Refuse(Refusal),
}

/// Postgres clients ask for TLS with these eight bytes before they send a client hello.
const POSTGRES_TLS: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];

/// The preface of HTTP/2 without TLS.
const HTTP2: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Reads the first message of one tunnel.
pub struct Inspector {
    host: Host,
    limit: usize,
    scan: HeadScan,
    hello: Option<Hello>,
}

struct Hello {
    acceptor: Box<Acceptor>,
    fed: usize,
}

impl Inspector {
    /// For a tunnel to `host`, whose first message may have `limit` bytes.
    #[must_use]
    pub fn new(host: Host, limit: usize) -> Self {
        Self { host, limit, scan: HeadScan::default(), hello: None }
    }

    /// Looks at `bytes`, everything that the client sent so far.
    pub fn look(&mut self, bytes: &[u8]) -> Inspection {
        match bytes {
            [] => Inspection::More,
            [0x16, ..] => self.tls(bytes).unwrap_or_else(Inspection::Refuse),
            _ if POSTGRES_TLS.starts_with(bytes) || bytes.starts_with(&POSTGRES_TLS) => match bytes.len() {
                ..8 => Inspection::More,
                8 => Inspection::PassAndInspect,
                _ => Inspection::Refuse(Refusal::Malformed("bytes behind a request for TLS")),
            },
            _ if HTTP2.starts_with(bytes) || bytes.starts_with(HTTP2) => self.http2(bytes),
            _ => self.http(bytes).unwrap_or_else(Inspection::Refuse),
        }
    }

    fn tls(&mut self, bytes: &[u8]) -> Result<Inspection, Refusal> {
        let hello = self.hello.get_or_insert_with(|| Hello { acceptor: Box::default(), fed: 0 });
        while hello.fed < bytes.len() {
            let read = hello
                .acceptor
                .read_tls(&mut &bytes[hello.fed..])
                .map_err(|error| Refusal::BadHello(error.to_string()))?;
            hello.fed += read;
            let accepted = hello.acceptor.accept().map_err(|(error, _)| Refusal::BadHello(error.to_string()))?;
            if let Some(accepted) = accepted {
                self.hello = None;
                return self.named(accepted.client_hello().server_name()).map(|()| Inspection::Pass);
            }
        }
        if bytes.len() > self.limit {
            return Err(Refusal::BadHello("it is too long".to_owned()));
        }
        Ok(Inspection::More)
    }

    /// Compares the server name of a client hello. Clients send none for an address.
    fn named(&self, name: Option<&str>) -> Result<(), Refusal> {
        match (name, &self.host) {
            (None, Host::Ip(_)) => Ok(()),
            (None, Host::Name(_)) => Err(Refusal::NoServerName),
            (Some(name), host) if Host::parse(name).as_ref() == Ok(host) => Ok(()),
            (Some(name), _) => Err(Refusal::ServerName(name.to_owned())),
        }
    }

    /// HTTP/2 compresses the name of the host, and only names can differ from the tunnel's.
    fn http2(&self, bytes: &[u8]) -> Inspection {
        match &self.host {
            Host::Ip(_) => Inspection::Pass,
            Host::Name(name) if name == "localhost" => Inspection::Pass,
            Host::Name(_) if bytes.len() < HTTP2.len() => Inspection::More,
            Host::Name(_) => Inspection::Refuse(Refusal::Unsupported("HTTP/2 without TLS")),
        }
    }

    fn http(&mut self, bytes: &[u8]) -> Result<Inspection, Refusal> {
        let method = bytes.iter().take_while(|byte| byte.is_ascii_uppercase() || **byte == b'-').count();
        let is_request_line = |line: &[u8]| line.windows(8).any(|window| window.starts_with(b" HTTP/1."));
        match bytes.get(method) {
            None if method <= 20 => return Ok(Inspection::More),
            Some(b' ') if (1..=20).contains(&method) => {}
            _ => return Ok(Inspection::Pass),
        }
        match bytes.iter().position(|&byte| byte == b'\n') {
            Some(end) if !is_request_line(&bytes[..end]) => return Ok(Inspection::Pass),
            Some(_) => {}
            None if bytes.len() > self.limit => return Err(Refusal::HeadTooLong),
            None => return Ok(Inspection::More),
        }
        let Some(end) = self.scan.end(bytes, self.limit)? else { return Ok(Inspection::More) };
        self.compare_host_field(&bytes[..end]).map(|()| Inspection::Pass)
    }

    fn compare_host_field(&self, head: &[u8]) -> Result<(), Refusal> {
        let malformed = || Refusal::Malformed("the head of a request in the tunnel");
        let mut fields = [httparse::EMPTY_HEADER; 100];
        let mut request = httparse::Request::new(&mut fields);
        let Ok(httparse::Status::Complete(_)) = request.parse(head) else { return Err(malformed()) };
        // A URL instead of a path would make a server ignore the Host field.
        if !request.path.is_some_and(|path| path.starts_with('/') || path == "*") {
            return Err(malformed());
        }
        let mut hosts = request.headers.iter().filter(|field| field.name.eq_ignore_ascii_case("host"));
        let (Some(field), None) = (hosts.next(), hosts.next()) else { return Err(malformed()) };
        let value = std::str::from_utf8(field.value).map_err(|_| malformed())?.trim();
        let name = match value.rsplit_once(':') {
            Some((name, port)) if !port.ends_with(']') => name,
            _ => value,
        };
        match Host::parse(name) {
            Ok(host) if host == self.host => Ok(()),
            _ => Err(Refusal::HostHeader(value.to_owned())),
        }
    }
}
