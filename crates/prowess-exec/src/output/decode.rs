//! Which characters do these bytes spell?

/// UTF-8, piece by piece. What is not UTF-8 becomes U+FFFD; a character cut in two is put together again.
#[derive(Debug, Default)]
pub struct Decoder {
    /// The beginning of a character whose end has not come, at most three bytes.
    begun: Vec<u8>,
}

impl Decoder {
    /// The text of everything up to the last whole character.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        let mut joined = std::mem::take(&mut self.begun);
        joined.extend_from_slice(bytes);
        let mut text = String::with_capacity(joined.len());
        let mut rest = joined.as_slice();
        loop {
            let error = match str::from_utf8(rest) {
                Ok(valid) => {
                    text.push_str(valid);
                    return text;
                }
                Err(error) => error,
            };
            let (valid, broken) = rest.split_at(error.valid_up_to());
            text.push_str(&String::from_utf8_lossy(valid));
            let Some(length) = error.error_len() else {
                self.begun = broken.to_vec();
                return text;
            };
            text.push(char::REPLACEMENT_CHARACTER);
            rest = &broken[length..];
        }
    }

    /// What a character that was never finished becomes.
    pub fn finish(&mut self) -> String {
        if std::mem::take(&mut self.begun).is_empty() { String::new() } else { char::REPLACEMENT_CHARACTER.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::Decoder;

    #[test]
    fn a_character_may_come_in_pieces() {
        let mut decoder = Decoder::default();
        let text: String = "a€😀".bytes().map(|byte| decoder.push(&[byte])).collect();
        assert_eq!(text + &decoder.finish(), "a€😀");
    }

    #[test]
    fn what_is_no_character_is_marked() {
        let table: [(&[u8], &str); 5] = [
            (b"a\xffb", "a\u{fffd}b"),
            (b"\xe2\x82", "\u{fffd}"),
            (b"\xe2\x82x", "\u{fffd}x"),
            (b"\xc0\xaf", "\u{fffd}\u{fffd}"),
            (b"\xed\xa0\x80", "\u{fffd}\u{fffd}\u{fffd}"),
        ];
        for (bytes, expected) in table {
            let mut decoder = Decoder::default();
            let text = decoder.push(bytes);
            assert_eq!(text + &decoder.finish(), expected, "{bytes:?}");
        }
    }
}
