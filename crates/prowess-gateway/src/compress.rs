//! Compression: how do large texts get to clients in fewer bytes?
//!
//! A client that lists `deflate` among its `caps` gets every large frame as a binary message: the same JSON, compressed on
//! its own as raw DEFLATE (RFC 1951), in its place among the other frames. Everybody else gets text, as OpenClaw sends it.

use std::io::Write;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder};

/// What a client calls it among its `caps`.
pub(crate) const CAP: &str = "deflate";

/// Frames from this size on are compressed: below it, time is worth more than bytes.
pub(crate) const LARGE: usize = 16 * 1024;

/// A text as raw DEFLATE. Takes a while for a large text: not for an async thread.
pub(crate) fn deflate(text: &[u8]) -> Bytes {
    let mut encoder = DeflateEncoder::new(Vec::with_capacity(text.len() / 4), Compression::fast());
    written(encoder.write_all(text).and_then(|()| encoder.finish()))
}

/// A text as gzip, as small as it gets: it is done once and sent often.
pub(crate) fn gzip(text: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::with_capacity(text.len() / 3), Compression::best());
    written(encoder.write_all(text).and_then(|()| encoder.finish()))
}

/// Writing to memory does not fail.
fn written(result: std::io::Result<Vec<u8>>) -> Bytes {
    result.unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::{DeflateDecoder, GzDecoder};

    use super::*;

    #[test]
    fn what_is_unpacked_is_what_was_packed_and_smaller_on_the_way() {
        let text = r#"{"name":"weather","description":"Say what the weather is"}"#.repeat(1000);
        let (packed, zipped) = (deflate(text.as_bytes()), gzip(text.as_bytes()));
        assert!(packed.len() < text.len() / 10 && zipped.len() < text.len() / 10);
        let (mut one, mut other) = (String::new(), String::new());
        DeflateDecoder::new(&packed[..]).read_to_string(&mut one).expect("DEFLATE");
        GzDecoder::new(&zipped[..]).read_to_string(&mut other).expect("gzip");
        assert_eq!((one.as_str(), other.as_str()), (text.as_str(), text.as_str()));
    }
}
