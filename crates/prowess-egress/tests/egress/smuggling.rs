//! Requests that two programs could read differently, and requests in pieces.

use proptest::prelude::*;
use prowess_egress::Refusal;
use prowess_egress::parse::{HeadScan, parse_request};
use tokio::io::AsyncWriteExt;

use crate::egress::origin::Origin;
use crate::egress::proxy::{Proxy, rest, status};

/// Requests that must never reach a host, and the status that the client gets.
const REFUSED: &[(&str, u16)] = &[
    // Two ways to find the end of the body.
    (
        "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
    ),
    (
        "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        400,
    ),
    ("POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na", 400),
    ("POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: 1, 1\r\n\r\na", 400),
    ("POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: +1\r\n\r\na", 400),
    ("POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: 0x1\r\n\r\na", 400),
    ("POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: 99999999999999999999\r\n\r\na", 400),
    ("POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length:\r\n\r\na", 400),
    ("POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 400),
    ("POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 400),
    (
        "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
        400,
    ),
    ("POST http://a.example/ HTTP/1.0\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    ("POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n", 400),
    // Lines that are not lines.
    ("GET http://a.example/ HTTP/1.1\nHost: a.example\n\n", 400),
    ("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nX: a\nY: b\r\n\r\n", 400),
    ("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nX: a\rY: b\r\n\r\n", 400),
    ("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nX: a\r\n b\r\n\r\n", 400),
    ("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nX: a\r\n\tb\r\n\r\n", 400),
    ("GET http://a.example/ HTTP/1.1\r\n Host: a.example\r\n\r\n", 400),
    ("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nX Y: a\r\n\r\n", 400),
    ("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n: a\r\n\r\n", 400),
    ("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nX: a\0b\r\n\r\n", 400),
    ("\r\nGET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n", 400),
    ("GET  http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n", 400),
    ("GET http://a.example/ x HTTP/1.1\r\nHost: a.example\r\n\r\n", 400),
    ("GET http://a.example/\r\nHost: a.example\r\n\r\n", 400),
    ("GET http://a.example/ HTTP/2.0\r\nHost: a.example\r\n\r\n", 400),
    ("GET http://a.example/ HTTP/1.2\r\nHost: a.example\r\n\r\n", 400),
    ("GET http://a.example/ http/1.1\r\nHost: a.example\r\n\r\n", 400),
    ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    // Two hosts.
    ("GET http://a.example/ HTTP/1.1\r\nHost: evil.com\r\n\r\n", 400),
    ("GET http://a.example/ HTTP/1.1\r\nHost: a.example:81\r\n\r\n", 400),
    ("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nHost: evil.com\r\n\r\n", 400),
    ("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nHost: a.example\r\n\r\n", 400),
    ("GET http://a.example/ HTTP/1.1\r\n\r\n", 400),
    ("GET http://a.example@evil.com/ HTTP/1.1\r\nHost: evil.com\r\n\r\n", 400),
    ("GET http://evil.com#@a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n", 400),
    ("GET http://evil.com\\@a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n", 400),
    ("GET http://a.example:80:80/ HTTP/1.1\r\nHost: a.example\r\n\r\n", 400),
    ("GET http://a.example:0/ HTTP/1.1\r\nHost: a.example:0\r\n\r\n", 400),
    ("GET http://a.example:/ HTTP/1.1\r\nHost: a.example\r\n\r\n", 400),
    ("GET http:/a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n", 400),
    ("CONNECT a.example:443 HTTP/1.1\r\nHost: evil.com:443\r\n\r\n", 400),
    ("CONNECT a.example HTTP/1.1\r\nHost: a.example\r\n\r\n", 400),
    ("CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\nContent-Length: 3\r\n\r\nabc", 400),
    ("CONNECT http://a.example:443/ HTTP/1.1\r\nHost: a.example:443\r\n\r\n", 400),
    // Not for a proxy.
    ("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n", 501),
    ("GET https://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n", 501),
    ("GET ftp://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n", 501),
    ("GET file:///etc/passwd HTTP/1.1\r\nHost: a.example\r\n\r\n", 501),
];

#[tokio::test]
async fn ambiguous_requests_reach_no_host() {
    let (origin, noted) = Origin::noting("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    for (request, expected) in REFUSED {
        let proxy = Proxy::start(|context| {
            crate::egress::proxy::lets(context, "a.example", 80, origin.address);
            crate::egress::proxy::lets(context, "a.example", 443, origin.address);
        })
        .await;
        let answer = proxy.send(request).await;
        assert_eq!(status(&answer), *expected, "{request:?}: {answer}");
        proxy.refusal().await;
    }
    assert_eq!(noted.lock().expect("notes").escape_ascii().to_string(), "");
}

#[tokio::test]
async fn a_second_request_inside_a_body_stays_a_body() {
    let (origin, noted) = Origin::noting("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    let proxy = Proxy::to("a.example", 80, origin.address).await;
    let hidden = "GET http://evil.com/ HTTP/1.1\r\nHost: evil.com\r\n\r\n";
    let mut client = proxy.connect().await;
    let request = format!(
        "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: {}\r\n\r\n{hidden}",
        hidden.len()
    );
    client.write_all(request.as_bytes()).await.expect("sent");
    assert_eq!(status(&crate::egress::proxy::head(&mut client).await), 200);
    drop(client);
    let records = proxy.close().await;
    assert!(records.iter().all(|record| record.host == Some("a.example".parse().expect("a host"))), "{records:?}");
    assert!(noted.lock().expect("notes").ends_with(hidden.as_bytes()));
}

#[tokio::test]
async fn malformed_chunks_stop_the_request() {
    for body in
        ["3;x\r\nabc\r\n0\r\n\r\n", "3\nabc\r\n0\r\n\r\n", "3\r\nabcd\r\n0\r\n\r\n", "-1\r\n", "0\r\nX: y\r\n\r\n"]
    {
        let (origin, _) = Origin::noting("").await;
        let proxy = Proxy::to("a.example", 80, origin.address).await;
        let answer = proxy
            .send(format!(
                "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n{body}"
            ))
            .await;
        assert_eq!(status(&answer), 400, "{body:?}");
        assert_eq!(proxy.refusal().await, Refusal::Malformed("a chunk of the body"), "{body:?}");
    }
}

#[tokio::test]
async fn a_request_may_arrive_byte_by_byte() {
    let origin = Origin::http().await;
    let proxy = Proxy::to("wttr.in", 80, origin.address).await;
    let mut client = proxy.connect().await;
    for byte in b"GET http://wttr.in/hello HTTP/1.1\r\nHost: wttr.in\r\nConnection: close\r\n\r\n" {
        client.write_all(&[*byte]).await.expect("sent");
        tokio::task::yield_now().await;
    }
    assert_eq!(status(&rest(&mut client).await), 200);
}

fn parse(bytes: &[u8], cut: usize) -> Result<Option<(usize, String)>, Refusal> {
    let mut scan = HeadScan::default();
    for end in (cut..bytes.len()).step_by(cut).chain([bytes.len()]) {
        if let Some(length) = scan.end(&bytes[..end], 4096)? {
            return parse_request(&bytes[..length]).map(|head| Some((length, format!("{head:?}"))));
        }
    }
    Ok(None)
}

proptest! {
    /// However a head is cut, it means the same; and whatever was accepted has no line that is not one.
    #[test]
    fn the_cut_of_a_head_changes_nothing(
        method in "GET|POST|CONNECT|[A-Z ]{0,5}",
        target in "http://[a-z.]{1,9}(:[0-9]{1,5})?/[a-z?#@ ]{0,5}|[a-z]{1,5}\\.com:443|[ -~]{0,12}",
        fields in prop::collection::vec("(Host|Content-Length|Transfer-Encoding|Connection|[A-Za-z -]{0,6}): ?([a-z.]{1,9}|chunked|[0-9]{1,3}|close)", 0..5),
        line_end in "\r\n|\r\n|\r\n|\n|\r",
        tail in "[ -~\r\n]{0,9}",
        cut in 1_usize..7,
    ) {
        let text = format!("{method} {target} HTTP/1.1{line_end}{}{line_end}{line_end}{tail}", fields.join(&line_end));
        let whole = parse(text.as_bytes(), text.len());
        prop_assert_eq!(parse(text.as_bytes(), cut), whole.clone());
        if let Ok(Some((length, _))) = whole {
            let head = &text[..length];
            prop_assert!(!head.replace("\r\n", "").contains(['\r', '\n']), "{head:?}");
            prop_assert!(head.ends_with("\r\n\r\n"));
        }
    }

    /// Any bytes are read without a panic.
    #[test]
    fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        parse(&bytes, 7).ok();
        parse_request(&bytes).ok();
    }
}
