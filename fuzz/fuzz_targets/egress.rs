//! Any bytes as what a client says to the network proxy, cut anywhere: the same request or the same refusal, no line in it that
//! is not one, and a first message in a tunnel that is never forwarded for another host.

#![no_main]

use libfuzzer_sys::fuzz_target;
use prowess_egress::parse::{BodyScan, Framing, HeadScan, Inspection, Inspector, RequestTarget, parse_request};
use prowess_policy::lease::Host;

const LIMIT: usize = 4096;

fuzz_target!(|input: (u8, Vec<u8>)| {
    let (cut, bytes) = input;
    let cut = usize::from(cut).max(1);
    assert_eq!(head(&bytes, cut), head(&bytes, bytes.len().max(1)), "the cut changes the head");
    assert_eq!(body(&bytes, cut), body(&bytes, bytes.len().max(1)), "the cut changes the body");
    tunnel(&bytes, cut);
});

/// The head at the start of `bytes`, read in pieces.
fn head(bytes: &[u8], cut: usize) -> Option<(usize, String)> {
    let mut scan = HeadScan::default();
    for end in (cut..bytes.len()).step_by(cut).chain([bytes.len()]) {
        let Some(length) = scan.end(&bytes[..end], LIMIT).ok()? else { continue };
        let text = &bytes[..length];
        let head = parse_request(text).ok()?;
        assert!(length <= LIMIT && text.ends_with(b"\r\n\r\n"));
        for (i, byte) in text.iter().enumerate() {
            assert_eq!(*byte == b'\n', i > 0 && text[i - 1] == b'\r', "a bare line end");
        }
        let lengths = text.to_ascii_lowercase().windows(17).filter(|window| window == b"\r\ncontent-length:").count();
        assert!(lengths <= 1 && !(lengths == 1 && head.framing == Framing::Chunked), "two lengths");
        if let RequestTarget::Plain(_, _, path) = &head.target {
            assert!(path == "*" || path.starts_with('/'));
            assert!(path.bytes().all(|byte| byte.is_ascii_graphic()));
        }
        return Some((length, format!("{head:?}")));
    }
    None
}

/// Where a chunked body ends, read in pieces.
fn body(bytes: &[u8], cut: usize) -> Option<(usize, bool)> {
    let mut scan = BodyScan::new(Framing::Chunked);
    let mut used = 0;
    for piece in bytes.chunks(cut) {
        let count = scan.accept(piece).ok()?;
        assert!(count == piece.len() || scan.is_done());
        used += count;
        if scan.is_done() {
            break;
        }
    }
    Some((used, scan.is_done()))
}

/// A plain request that passes names the host of the tunnel.
fn tunnel(bytes: &[u8], cut: usize) {
    let Ok(host) = Host::parse("a.example") else { return };
    let mut inspector = Inspector::new(host, LIMIT);
    for end in (cut..bytes.len()).step_by(cut).chain([bytes.len()]) {
        match inspector.look(&bytes[..end]) {
            Inspection::More => {}
            Inspection::Pass => {
                let first = bytes[..end].split(|&byte| byte == b'\n').next().unwrap_or_default();
                if first.starts_with(b"GET ") && first.windows(8).any(|window| window == b" HTTP/1.") {
                    assert!(bytes[..end].to_ascii_lowercase().windows(9).any(|window| window == b"a.example"));
                }
                return;
            }
            Inspection::PassAndInspect | Inspection::Refuse(_) => return,
        }
    }
}
