//! What does the head of a message say?
//!
//! Two programs that read one message differently can be made to see different requests in it. So whatever another
//! program could read in another way is refused: bare line feeds, folded lines, spaces around names, two lengths, a
//! length with an encoding, unusual encodings. The proxy forwards a request that it writes itself from the parsed parts.

use prowess_policy::lease::Host;

use crate::audit::Refusal;

/// The most header fields of one message.
const MAX_FIELDS: usize = 100;

/// Fields that concern only the connection to the proxy (RFC 9110, section 7.6.1), or that the proxy writes itself.
const HOP_BY_HOP: [&str; 12] = [
    "connection",
    "proxy-connection",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "content-length",
    "host",
    "proxy-authorization",
    "proxy-authenticate",
    "http2-settings",
];

/// Where the body of a message ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// There is none.
    Empty,
    /// After this many bytes.
    Length(u64),
    /// After the last chunk.
    Chunked,
    /// When the connection closes. Only for responses.
    UntilClose,
}

/// What a client asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestTarget {
    /// A tunnel to this host and port.
    Tunnel(Host, u16),
    /// This path (with its query) of this host and port, in plain HTTP.
    Plain(Host, u16, String),
}

/// The head of a request, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestHead {
    /// The method.
    pub method: String,
    /// The target.
    pub target: RequestTarget,
    /// Whether it is HTTP/1.0.
    pub is_old: bool,
    /// Fields to forward, in order.
    pub fields: Vec<(String, Vec<u8>)>,
    /// The body.
    pub framing: Framing,
    /// Whether the client wants to use the connection again.
    pub keep_alive: bool,
    /// The value of `Proxy-Authorization`.
    pub authorization: Option<Vec<u8>>,
}

/// The head of a response, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResponseHead {
    pub(crate) code: u16,
    pub(crate) reason: String,
    pub(crate) fields: Vec<(String, Vec<u8>)>,
    pub(crate) framing: Framing,
}

/// Looks for the end of a head as bytes arrive, and reads each byte once.
#[derive(Debug, Default)]
pub struct HeadScan {
    seen: usize,
}

impl HeadScan {
    /// The length of the head at the start of `bytes`, if it is complete. `bytes` only ever grows between calls.
    pub fn end(&mut self, bytes: &[u8], limit: usize) -> Result<Option<usize>, Refusal> {
        while let Some(&byte) = bytes.get(self.seen) {
            let before = &bytes[..self.seen];
            match byte {
                b'\n' if !before.ends_with(b"\r") => {
                    return Err(Refusal::Malformed("a line feed without a carriage return"));
                }
                b'\n' => {}
                _ if before.ends_with(b"\r") => {
                    return Err(Refusal::Malformed("a carriage return without a line feed"));
                }
                b' ' | b'\t' if before.is_empty() || before.ends_with(b"\n") => {
                    return Err(Refusal::Malformed("a line that begins with a space"));
                }
                b'\t' | b'\r' | b' '..=0x7e | 0x80.. => {}
                _ => return Err(Refusal::Malformed("a control character")),
            }
            self.seen += 1;
            if self.seen > limit {
                return Err(Refusal::HeadTooLong);
            }
            if bytes[..self.seen].ends_with(b"\r\n\r\n") {
                return Ok(Some(self.seen));
            }
            if &bytes[..self.seen] == b"\r\n" {
                return Err(Refusal::Malformed("an empty line before the request"));
            }
        }
        Ok(None)
    }
}

/// Reads the complete head of a request to a proxy.
pub fn parse_request(bytes: &[u8]) -> Result<RequestHead, Refusal> {
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    // httparse takes several spaces for one.
    let line = bytes.split(|&byte| byte == b'\r').next().unwrap_or_default();
    if line.split(|&byte| byte == b' ').count() != 3 || !line.is_ascii() {
        return Err(Refusal::Malformed("the request line"));
    }
    let Ok(httparse::Status::Complete(length)) = request.parse(bytes) else {
        return Err(Refusal::Malformed("the request line or a header field"));
    };
    let (Some(method), Some(path), Some(minor), true) =
        (request.method, request.path, request.version, length == bytes.len())
    else {
        return Err(Refusal::Malformed("the request line"));
    };
    let is_old = minor == 0;
    let fields = &*request.headers;
    let host = single(fields, "host")?;
    let target = if method == "CONNECT" { tunnel(path, host)? } else { plain(method, path, host, is_old)? };
    let framing = request_framing(fields, is_old)?;
    if method == "CONNECT" && framing != Framing::Empty && framing != Framing::Length(0) {
        return Err(Refusal::Malformed("CONNECT with a body"));
    }
    let expects = single(fields, "expect")?;
    if expects.is_some_and(|value| !value.eq_ignore_ascii_case(b"100-continue")) {
        return Err(Refusal::Malformed("the Expect field"));
    }
    let has = |token: &str| listed(fields, token, &["connection", "proxy-connection"]);
    Ok(RequestHead {
        method: method.to_owned(),
        target,
        is_old,
        framing,
        keep_alive: !is_old && !has("close"),
        authorization: single(fields, "proxy-authorization")?.map(<[u8]>::to_vec),
        fields: forwarded(fields),
    })
}

/// Reads the complete head of a response to `method`.
pub(crate) fn parse_response(bytes: &[u8], method: &str) -> Result<ResponseHead, Refusal> {
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut response = httparse::Response::new(&mut fields);
    let Ok(httparse::Status::Complete(_)) = response.parse(bytes) else {
        return Err(Refusal::Malformed("the head of the response"));
    };
    let code = response.code.unwrap_or_default();
    let fields = &*response.headers;
    let framing = response_framing(fields, code, method)?;
    Ok(ResponseHead {
        code,
        reason: response.reason.unwrap_or_default().to_owned(),
        framing,
        fields: forwarded(fields),
    })
}

type Fields<'a> = [httparse::Header<'a>];

fn all<'a>(fields: &'a Fields<'a>, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
    fields.iter().filter(move |field| field.name.eq_ignore_ascii_case(name)).map(|field| field.value.trim_ascii())
}

/// The value of a field that may occur once.
fn single<'a>(fields: &'a Fields<'a>, name: &'a str) -> Result<Option<&'a [u8]>, Refusal> {
    let mut values = all(fields, name);
    let first = values.next();
    if values.next().is_some() {
        return Err(Refusal::Malformed("a header field that may occur only once"));
    }
    Ok(first)
}

/// Whether `token` is in one of the comma-separated fields `names`.
fn listed(fields: &Fields<'_>, token: &str, names: &[&str]) -> bool {
    let mut values = names.iter().flat_map(|name| fields.iter().filter(|field| field.name.eq_ignore_ascii_case(name)));
    values.any(|field| {
        field.value.split(|&byte| byte == b',').any(|part| part.trim_ascii().eq_ignore_ascii_case(token.as_bytes()))
    })
}

fn forwarded(fields: &Fields<'_>) -> Vec<(String, Vec<u8>)> {
    let is_hop_by_hop = |name: &str| {
        HOP_BY_HOP.iter().any(|own| own.eq_ignore_ascii_case(name))
            || listed(fields, name, &["connection", "proxy-connection"])
    };
    fields
        .iter()
        .filter(|field| !is_hop_by_hop(field.name))
        .map(|field| (field.name.to_owned(), field.value.to_vec()))
        .collect()
}

/// Reads `host:port`, where the port may be left out if there is a default.
fn authority(text: &str, default: Option<u16>) -> Result<(Host, u16), Refusal> {
    let bad = Refusal::Malformed("the host or the port");
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    };
    // `::1:80` could be read in two ways.
    if host.contains(':') && !host.starts_with('[') {
        return Err(bad);
    }
    let port = match port {
        Some(digits) if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => digits.parse().ok(),
        Some(_) => None,
        None => default,
    };
    let port = port.filter(|port| *port != 0).ok_or(bad)?;
    Ok((Host::parse(host)?, port))
}

fn text(bytes: &[u8]) -> Result<&str, Refusal> {
    std::str::from_utf8(bytes).map_err(|_| Refusal::Malformed("the Host field"))
}

fn tunnel(path: &str, host_field: Option<&[u8]>) -> Result<RequestTarget, Refusal> {
    let (host, port) = authority(path, None)?;
    if let Some(value) = host_field {
        let value = text(value)?;
        // Some clients leave the port out here.
        let (named, named_port) = authority(value, Some(port))?;
        if (named, named_port) != (host.clone(), port) {
            return Err(Refusal::HostHeader(value.to_owned()));
        }
    }
    Ok(RequestTarget::Tunnel(host, port))
}

fn plain(method: &str, path: &str, host_field: Option<&[u8]>, is_old: bool) -> Result<RequestTarget, Refusal> {
    if path.starts_with('/') || path == "*" {
        return Err(Refusal::Unsupported("a request that names no host; this is a proxy"));
    }
    let Some((scheme, rest)) = path.split_once("://") else { return Err(Refusal::Malformed("the request's URL")) };
    if scheme.eq_ignore_ascii_case("https") {
        return Err(Refusal::Unsupported("https without CONNECT"));
    }
    if !scheme.eq_ignore_ascii_case("http") {
        return Err(Refusal::Unsupported("a URL that is neither http nor https"));
    }
    let (name, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    if name.contains('@') || path.contains('#') {
        return Err(Refusal::Malformed("the request's URL"));
    }
    let (host, port) = authority(name, Some(80))?;
    match host_field {
        Some(value) => {
            let value = text(value)?;
            if authority(value, Some(80))? != (host.clone(), port) {
                return Err(Refusal::HostHeader(value.to_owned()));
            }
        }
        None if is_old => {}
        None => return Err(Refusal::Malformed("no Host field")),
    }
    let path = match path {
        "" if method == "OPTIONS" => "*".to_owned(),
        path if path.starts_with('/') => path.to_owned(),
        path => format!("/{path}"),
    };
    Ok(RequestTarget::Plain(host, port, path))
}

fn length(value: &[u8]) -> Result<u64, Refusal> {
    let digits = text(value)?;
    if digits.is_empty() || digits.len() > 18 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Refusal::Malformed("the Content-Length field"));
    }
    digits.parse().map_err(|_| Refusal::Malformed("the Content-Length field"))
}

fn request_framing(fields: &Fields<'_>, is_old: bool) -> Result<Framing, Refusal> {
    match (single(fields, "transfer-encoding")?, single(fields, "content-length")?) {
        (Some(_), Some(_)) => Err(Refusal::Malformed("Content-Length and Transfer-Encoding together")),
        (Some(value), None) if !is_old && value.eq_ignore_ascii_case(b"chunked") => Ok(Framing::Chunked),
        (Some(_), None) => Err(Refusal::Malformed("the Transfer-Encoding field")),
        (None, Some(value)) => length(value).map(Framing::Length),
        (None, None) => Ok(Framing::Empty),
    }
}

fn response_framing(fields: &Fields<'_>, code: u16, method: &str) -> Result<Framing, Refusal> {
    if method == "HEAD" || code < 200 || code == 204 || code == 304 {
        return Ok(Framing::Empty);
    }
    match (single(fields, "transfer-encoding")?, single(fields, "content-length")?) {
        (Some(_), Some(_)) => Err(Refusal::Malformed("Content-Length and Transfer-Encoding together")),
        (Some(value), None) if value.eq_ignore_ascii_case(b"chunked") => Ok(Framing::Chunked),
        (Some(_), None) => Err(Refusal::Malformed("the Transfer-Encoding field")),
        (None, Some(value)) => length(value).map(Framing::Length),
        (None, None) => Ok(Framing::UntilClose),
    }
}
