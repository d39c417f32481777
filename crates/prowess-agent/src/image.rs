//! Images: which may be shown to a model, and how are they stored?
//!
//! An image is known by its first bytes, never by its name or by what a client claims. It is stored as OpenClaw stores
//! it: base64 with a MIME type, inside the message it belongs to.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The largest image, in bytes: what the strictest of the large providers takes.
pub const MAX_BYTES: usize = 5_000_000;

/// How many images one message may have.
pub const MAX_COUNT: usize = 20;

/// How many bytes the images of one message may have together.
pub const MAX_TOTAL: usize = 20_000_000;

/// How many bytes it takes to tell what kind of image a file is.
pub const HEAD: usize = 12;

/// An image, as transcripts keep it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// Its bytes in base64.
    pub data: String,
    /// Its kind, for example `image/png`.
    pub mime_type: String,
}

/// Why an image cannot be shown to a model.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ImageError {
    /// It is none of the kinds that models take.
    #[error("unsupported image format; use PNG, JPEG, GIF or WebP")]
    Kind,
    /// It is too large.
    #[error("the image has {bytes} bytes; the limit is {MAX_BYTES}; make it smaller")]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// It is not base64.
    #[error("the image is not valid base64")]
    Encoding,
    /// There are too many of them.
    #[error("the message has {count} images; the limit is {MAX_COUNT}; send them in several messages")]
    TooMany {
        /// How many.
        count: usize,
    },
    /// Together they are too large.
    #[error("the images have {bytes} bytes in total; the limit is {MAX_TOTAL}; send them in several messages")]
    TooMuch {
        /// Their size.
        bytes: usize,
    },
}

impl Image {
    /// The image that `bytes` are.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ImageError> {
        let mime_type = kind(bytes).ok_or(ImageError::Kind)?.to_owned();
        if bytes.len() > MAX_BYTES {
            return Err(ImageError::TooLarge { bytes: bytes.len() });
        }
        Ok(Self { data: STANDARD.encode(bytes), mime_type })
    }

    /// The image in `text`: base64, also as a `data:` URL.
    pub fn from_base64(text: &str) -> Result<Self, ImageError> {
        let text = text.trim();
        let text = match text.strip_prefix("data:") {
            Some(url) => url.split_once(";base64,").ok_or(ImageError::Encoding)?.1,
            None => text,
        };
        // Four characters are three bytes; what is far too long is not decoded.
        if text.len() / 4 * 3 > MAX_BYTES + 3 {
            return Err(ImageError::TooLarge { bytes: text.len() / 4 * 3 });
        }
        Self::from_bytes(&STANDARD.decode(text).map_err(|_| ImageError::Encoding)?)
    }

    /// How many bytes it has.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let padding = self.data.bytes().rev().take_while(|byte| *byte == b'=').count();
        (self.data.len() / 4 * 3).saturating_sub(padding)
    }
}

/// Whether one message may have all of these.
pub fn check(images: &[Image]) -> Result<(), ImageError> {
    if images.len() > MAX_COUNT {
        return Err(ImageError::TooMany { count: images.len() });
    }
    match images.iter().map(Image::bytes).sum() {
        bytes if bytes > MAX_TOTAL => Err(ImageError::TooMuch { bytes }),
        _ => Ok(()),
    }
}

/// The kind of image that begins like this.
#[must_use]
pub fn kind(head: &[u8]) -> Option<&'static str> {
    let is_webp = head.starts_with(b"RIFF") && head.get(8..12) == Some(b"WEBP");
    match head {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        _ if is_webp => Some("image/webp"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_known_by_how_they_begin() {
        assert_eq!(kind(b"\x89PNG\r\n\x1a\n"), Some("image/png"));
        assert_eq!(kind(b"\xff\xd8\xff\xe0"), Some("image/jpeg"));
        assert_eq!(kind(b"GIF89a"), Some("image/gif"));
        assert_eq!(kind(b"RIFF\x00\x00\x00\x00WEBPVP8 "), Some("image/webp"));
        assert_eq!(kind(b"RIFF\x00\x00\x00\x00WAVE"), None);
        assert_eq!(kind(b""), None);
    }

    #[test]
    fn base64_comes_plain_or_as_a_url() {
        let image = Image::from_bytes(b"GIF89a").expect("an image");
        assert_eq!((image.data.as_str(), image.bytes()), ("R0lGODlh", 6));
        // What the URL claims does not count.
        assert_eq!(Image::from_base64("data:image/png;base64,R0lGODlh"), Ok(image.clone()));
        assert_eq!(Image::from_base64(" R0lGODlh\n"), Ok(image));
        assert_eq!(Image::from_base64("R0lG!"), Err(ImageError::Encoding));
        assert_eq!(Image::from_base64("data:text/plain,hi"), Err(ImageError::Encoding));
        assert_eq!(Image::from_base64("aGVsbG8="), Err(ImageError::Kind));
    }

    #[test]
    fn there_are_bounds() {
        let mut bytes = b"GIF89a".to_vec();
        bytes.resize(MAX_BYTES, 0);
        let large = Image::from_bytes(&bytes).expect("just small enough");
        assert_eq!(large.bytes(), MAX_BYTES);
        bytes.push(0);
        assert_eq!(Image::from_bytes(&bytes), Err(ImageError::TooLarge { bytes: MAX_BYTES + 1 }));
        assert!(matches!(Image::from_base64(&"A".repeat(8_000_000)), Err(ImageError::TooLarge { .. })));
        assert!(matches!(check(&vec![large; 5]), Err(ImageError::TooMuch { .. })));
        let small = Image::from_bytes(b"GIF89a").expect("an image");
        assert_eq!(check(&vec![small.clone(); MAX_COUNT]), Ok(()));
        assert_eq!(check(&vec![small; MAX_COUNT + 1]), Err(ImageError::TooMany { count: MAX_COUNT + 1 }));
    }
}
