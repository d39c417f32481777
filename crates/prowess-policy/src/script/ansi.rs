//! `$'…'`: what do the escapes between the quotes stand for?

/// What a `$'…'` holds.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AnsiC {
    /// Exactly this text.
    Text(String),
    /// Bytes that are no text, a NUL that ends it early, or an escape whose meaning depends on locale or version.
    Opaque,
}

/// Decodes `inner`, the text between `$'` and the closing quote.
pub(super) fn decode(inner: &str) -> AnsiC {
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first != b'\\' {
            bytes.push(first);
        } else if let Some(after) = escape(after, &mut bytes) {
            rest = after;
        } else {
            return AnsiC::Opaque;
        }
    }
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => AnsiC::Text(text),
        _ => AnsiC::Opaque,
    }
}

/// Decodes the escape at the start of `text`, its backslash already taken, and returns what follows it. Nothing when
/// its meaning is not certain.
fn escape<'t>(text: &'t [u8], bytes: &mut Vec<u8>) -> Option<&'t [u8]> {
    let (&letter, after) = text.split_first()?;
    let plain = match letter {
        b'a' => 0x07,
        b'b' => 0x08,
        b'e' | b'E' => 0x1B,
        b'f' => 0x0C,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 0x0B,
        b'\\' | b'\'' | b'"' | b'?' => letter,
        b'0'..=b'7' => {
            let (value, after) = number(text, 8, 3)?;
            // Three octal digits may exceed a byte; the shell keeps the low eight bits.
            bytes.push((value & 0xFF) as u8);
            return Some(after);
        }
        b'x' => {
            let (value, after) = number(after, 16, 2)?;
            bytes.push(u8::try_from(value).ok()?);
            return Some(after);
        }
        b'u' | b'U' => {
            let (value, after) = number(after, 16, if letter == b'u' { 4 } else { 8 })?;
            // What a character beyond ASCII becomes depends on the locale.
            bytes.push(u8::try_from(value).ok().filter(u8::is_ascii)?);
            return Some(after);
        }
        b'c' => {
            let (&control, after) = after.split_first()?;
            bytes.push(Some(control).filter(u8::is_ascii_alphabetic)? & 0x1F);
            return Some(after);
        }
        other => {
            bytes.push(b'\\');
            other
        }
    };
    bytes.push(plain);
    Some(after)
}

/// One to `most` digits at the start of `text`. Nothing without a digit: shells differ there.
fn number(text: &[u8], radix: u32, most: usize) -> Option<(u32, &[u8])> {
    let digits = text.iter().take(most).take_while(|byte| char::from(**byte).is_digit(radix)).count();
    let (digits, after) = text.split_at(digits);
    let value = u32::from_str_radix(std::str::from_utf8(digits).ok()?, radix).ok()?;
    Some((value, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_those_of_bash() {
        let table = [
            ("plain é", "plain é"),
            (r"\x69\x64", "id"),
            (r"\151\144\60", "id0"),
            (r"\1511", "i1"),
            (r"\u0069\U00000064", "id"),
            (r"\xc3\xa9", "é"),
            (r"\a\b\e\E\f\n\r\t\v", "\u{7}\u{8}\u{1b}\u{1b}\u{c}\n\r\t\u{b}"),
            (r#"\\\'\"\?"#, r#"\'"?"#),
            (r"\q\z\é", r"\q\z\é"),
            (r"\ca\cZ", "\u{1}\u{1a}"),
            (r"\x6g", "\u{6}g"),
            (r"\551", "i"),
        ];
        for (inner, expected) in table {
            assert_eq!(decode(inner), AnsiC::Text(expected.to_owned()), "{inner}");
        }
    }

    #[test]
    fn what_is_not_certain_is_opaque() {
        for inner in
            [r"a\0b", r"\x00", r"\xff", r"\u00e9", r"\U0001F600", r"\x", r"\xg", r"\x{69}", r"\u", r"\c1", r"\c"]
        {
            assert_eq!(decode(inner), AnsiC::Opaque, "{inner}");
        }
    }
}
