//! HTTP/1.1 as a proxy speaks it: `CONNECT`, and plain requests with a full URL.
//!
//! Each request is checked, also on a kept connection. A plain request gets a connection of its own to the host, so nothing
//! that follows it can be taken for a part of it.

use std::time::Duration;

use prowess_policy::lease::Host;
use tokio::time::timeout;

use crate::audit::{Draft, Outcome, Protocol, Refusal};
use crate::body::BodyScan;
use crate::head::{Framing, HeadScan, RequestHead, RequestTarget, ResponseHead, parse_request, parse_response};
use crate::serve::begins;
use crate::state::{CommandState, Stop};
use crate::stream::{Stream, Wire, more};
use crate::tunnel::{Direction, Meter, Tunnel};

/// What happens to the client's connection after a request.
enum Next {
    Keep,
    Close,
}

/// Serves requests until the client or the proxy closes, or until the client asks for a tunnel. `draft` is the record of
/// the first.
pub(crate) async fn serve(state: &CommandState, mut wire: Wire, mut draft: Draft) -> Option<Tunnel> {
    loop {
        draft.speaks(Protocol::Http);
        let head = match read_head(state, &mut wire).await {
            Ok(head) => head,
            Err(stop) => {
                tell(&wire, &stop, None, state).await;
                draft.end(stop.into());
                return None;
            }
        };
        match &head.target {
            RequestTarget::Tunnel(host, port) => return connect(state, wire, draft, host, *port).await,
            RequestTarget::Plain(host, port, path) => {
                let next = forward(state, &mut wire, &mut draft, &head, (host, *port, path)).await;
                let keeps = matches!(next, Ok(Next::Keep));
                draft.end(next.map_or_else(Outcome::from, |_| Outcome::Served));
                if !keeps || !begins(state, &mut wire).await {
                    return None;
                }
            }
        }
        draft = state.draft();
    }
}

/// Reads a request's head, and checks the token.
async fn read_head(state: &CommandState, wire: &mut Wire) -> Result<RequestHead, Stop> {
    let limits = &state.context.limits;
    let mut scan = HeadScan::default();
    let complete = async {
        loop {
            if let Some(end) = scan.end(&wire.kept, limits.head_bytes)? {
                return Ok(end);
            }
            if wire.more().await? == 0 {
                return Err(Stop::Refused(Refusal::Malformed("the client closed inside a request")));
            }
        }
    };
    let end = timeout(limits.head_time, complete).await.map_err(|_| Refusal::HeadTooSlow)??;
    let head = parse_request(&wire.kept[..end])?;
    wire.consume(end);
    let is_allowed =
        |token: &crate::Token| head.authorization.as_deref().is_some_and(|value| token.is_in_header(value));
    if !state.context.token.as_ref().is_none_or(is_allowed) {
        return Err(Refusal::Unauthorized.into());
    }
    Ok(head)
}

async fn connect(state: &CommandState, client: Wire, mut draft: Draft, host: &Host, port: u16) -> Option<Tunnel> {
    let opened = match state.open(host, port, Protocol::Connect, &client.stream, &mut draft).await {
        Ok(upstream) => {
            let answer = client.stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await;
            answer.map(|()| upstream).map_err(Stop::from)
        }
        Err(stop) => {
            tell(&client, &stop, Some(host), state).await;
            Err(stop)
        }
    };
    match opened {
        Ok(upstream) => Some(Tunnel { client, upstream, host: host.clone(), draft }),
        Err(stop) => {
            draft.end(stop.into());
            None
        }
    }
}

/// Forwards one request and its response.
async fn forward(
    state: &CommandState,
    wire: &mut Wire,
    draft: &mut Draft,
    head: &RequestHead,
    (host, port, path): (&Host, u16, &str),
) -> Result<Next, Stop> {
    let upstream = match state.open(host, port, Protocol::Http, &wire.stream, draft).await {
        Ok(upstream) => upstream,
        Err(stop) => {
            tell(wire, &stop, Some(host), state).await;
            return Err(stop);
        }
    };
    let meter = Meter::new(state, draft);
    let mut answered = false;
    let result =
        meter.watch(exchange(&meter, wire, upstream, head, &request_text(head, host, port, path), &mut answered)).await;
    if let Err(stop) = &result
        && !answered
    {
        tell(wire, stop, Some(host), state).await;
    }
    result
}

/// Sends the request while it reads the response: the host may answer before it has read everything.
async fn exchange(
    meter: &Meter<'_>,
    wire: &mut Wire,
    upstream: Stream,
    head: &RequestHead,
    request: &[u8],
    answered: &mut bool,
) -> Result<Next, Stop> {
    meter.count(Direction::Up, request.len())?;
    upstream.write_all(request).await?;
    let Wire { stream, kept } = wire;
    let mut upstream = Wire::new(upstream);
    let (upstream_stream, upstream_kept) = (&upstream.stream, &mut upstream.kept);
    let mut sent = false;
    let mut up = std::pin::pin!(copy_body(meter, Direction::Up, stream, kept, upstream_stream, head.framing));
    let mut down = std::pin::pin!(respond(meter, upstream_stream, upstream_kept, stream, head, answered));
    let keeps = loop {
        tokio::select! {
            result = &mut up, if !sent => {
                result?;
                sent = true;
            }
            result = &mut down => break result?,
        }
    };
    Ok(if keeps && sent { Next::Keep } else { Next::Close })
}

/// Forwards the response. Returns whether the client's connection can be used again.
async fn respond(
    meter: &Meter<'_>,
    upstream: &Stream,
    kept: &mut Vec<u8>,
    client: &Stream,
    request: &RequestHead,
    answered: &mut bool,
) -> Result<bool, Stop> {
    loop {
        let mut scan = HeadScan::default();
        let end = loop {
            if let Some(end) = scan.end(kept, meter.limits().head_bytes).map_err(|refusal| bad_response(&refusal))? {
                break end;
            }
            if more(upstream, kept).await? == 0 {
                return Err(Stop::Failed("the host closed before it answered".to_owned()));
            }
        };
        let head = parse_response(&kept[..end], &request.method).map_err(|refusal| bad_response(&refusal))?;
        kept.drain(..end);
        if head.code == 101 || (request.is_old && head.framing == Framing::Chunked) {
            return Err(Stop::Failed("the host changed the protocol".to_owned()));
        }
        let keeps = request.keep_alive && head.framing != Framing::UntilClose;
        let text = response_text(&head, keeps);
        meter.count(Direction::Down, text.len())?;
        *answered = true;
        client.write_all(&text).await?;
        // Interim responses come before the real one.
        if head.code >= 200 {
            copy_body(meter, Direction::Down, upstream, kept, client, head.framing).await?;
            return Ok(keeps);
        }
    }
}

/// A host that writes nonsense is not refused: it fails.
fn bad_response(refusal: &Refusal) -> Stop {
    Stop::Failed(format!("the host's response: {refusal}"))
}

/// Copies a body: first what was `kept`, then from the stream. What follows the body stays in `kept`.
async fn copy_body(
    meter: &Meter<'_>,
    direction: Direction,
    from: &Stream,
    kept: &mut Vec<u8>,
    to: &Stream,
    framing: Framing,
) -> Result<(), Stop> {
    let mut body = BodyScan::new(framing);
    while !body.is_done() {
        if kept.is_empty() && more(from, kept).await? == 0 {
            return if body.may_close() {
                Ok(())
            } else {
                Err(Stop::Failed("the connection closed inside a body".to_owned()))
            };
        }
        let used = body.accept(kept).map_err(|refusal| match direction {
            Direction::Up => Stop::Refused(refusal),
            Direction::Down => bad_response(&refusal),
        })?;
        meter.count(direction, used)?;
        to.write_all(&kept[..used]).await?;
        kept.drain(..used);
    }
    Ok(())
}

fn request_text(head: &RequestHead, host: &Host, port: u16, path: &str) -> Vec<u8> {
    let version = if head.is_old { "1.0" } else { "1.1" };
    let authority = if port == 80 { host.to_string() } else { host.with_port(port) };
    let mut text = format!("{} {path} HTTP/{version}\r\nHost: {authority}\r\n", head.method).into_bytes();
    write_fields(&mut text, &head.fields);
    write_framing(&mut text, head.framing);
    text.extend_from_slice(b"Connection: close\r\n\r\n");
    text
}

fn response_text(head: &ResponseHead, keeps: bool) -> Vec<u8> {
    let mut text = format!("HTTP/1.1 {} {}\r\n", head.code, head.reason).into_bytes();
    write_fields(&mut text, &head.fields);
    if head.code >= 200 {
        write_framing(&mut text, head.framing);
        text.extend_from_slice(if keeps { b"Connection: keep-alive\r\n" } else { b"Connection: close\r\n" });
    }
    text.extend_from_slice(b"\r\n");
    text
}

fn write_fields(text: &mut Vec<u8>, fields: &[(String, Vec<u8>)]) {
    for (name, value) in fields {
        text.extend_from_slice(name.as_bytes());
        text.extend_from_slice(b": ");
        text.extend_from_slice(value);
        text.extend_from_slice(b"\r\n");
    }
}

fn write_framing(text: &mut Vec<u8>, framing: Framing) {
    match framing {
        Framing::Empty | Framing::UntilClose => {}
        Framing::Length(length) => text.extend_from_slice(format!("Content-Length: {length}\r\n").as_bytes()),
        Framing::Chunked => text.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
    }
}

/// Answers a request that cannot be served.
pub(crate) async fn tell(wire: &Wire, stop: &Stop, host: Option<&Host>, state: &CommandState) {
    let page = match stop {
        Stop::Refused(refusal) => refusal_page(refusal, host, state.context.hint.as_deref()),
        Stop::Reset => page("502 Bad Gateway", "", "The host closed the connection.\n"),
        Stop::Failed(reason) => {
            let name = host.map(Host::to_string).unwrap_or_default();
            page("502 Bad Gateway", "", &format!("The proxy could not reach {name}: {reason}.\n"))
        }
    };
    // The client may be gone, or not read.
    timeout(Duration::from_secs(1), wire.stream.write_all(&page)).await.ok();
    wire.stream.shutdown_write();
}

/// The response to a request that was refused.
pub(crate) fn refusal_page(refusal: &Refusal, host: Option<&Host>, hint: Option<&str>) -> Vec<u8> {
    let (status, extra) = match refusal {
        Refusal::Malformed(_) | Refusal::BadHost(_) | Refusal::HostHeader(_) => ("400 Bad Request", ""),
        Refusal::HeadTooLong => ("431 Request Header Fields Too Large", ""),
        Refusal::HeadTooSlow => ("408 Request Timeout", ""),
        Refusal::Unauthorized => ("407 Proxy Authentication Required", "Proxy-Authenticate: Basic realm=\"proxy\"\r\n"),
        Refusal::Unsupported(_) => ("501 Not Implemented", ""),
        Refusal::TooManyConnections(_) => ("503 Service Unavailable", "Retry-After: 1\r\n"),
        _ => ("403 Forbidden", ""),
    };
    let what = host.map_or_else(|| "this request".to_owned(), |host| format!("the connection to {host}"));
    let mut body = format!("The proxy refused {what}: {refusal}.\n");
    if let Some(hint) = hint {
        body = body + hint + "\n";
    }
    page(status, extra, &body)
}

fn page(status: &str, extra: &str, body: &str) -> Vec<u8> {
    // The text can repeat what a client wrote.
    let body: String = body.chars().filter(|c| !c.is_control() || *c == '\n').collect();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n{extra}Connection: close\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}
