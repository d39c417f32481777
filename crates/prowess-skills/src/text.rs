//! Text: counted and trimmed as the peer does it, and made safe to show.
//!
//! Limits shared with OpenClaw are in UTF-16 code units, because that is what a JavaScript string length is. What a
//! skill's author wrote may try to look like something else (a new section, another skill, nothing at all), so text
//! that reaches a model or a terminal goes through [`clean`] first.

use std::borrow::Cow;
use std::cmp::Ordering;

/// White space as JavaScript's `trim` sees it: Unicode white space and the byte order mark, but not U+0085.
#[must_use]
pub fn is_space(c: char) -> bool {
    (c.is_whitespace() && c != '\u{85}') || c == '\u{feff}'
}

/// `text` without the white space at both ends.
#[must_use]
pub fn trim(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// The length of `text` in UTF-16 code units.
#[must_use]
pub fn units(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().map(char::len_utf16).sum() }
}

/// Orders two strings by their UTF-16 code units, as a plain JavaScript sort does.
#[must_use]
pub fn cmp_units(a: &str, b: &str) -> Ordering {
    // UTF-8 order equals UTF-16 order except between astral characters and U+E000..U+FFFF.
    if a.is_ascii() && b.is_ascii() { a.cmp(b) } else { a.encode_utf16().cmp(b.encode_utf16()) }
}

/// The longest prefix of `text` that has at most `limit` UTF-16 units and ends between characters.
#[must_use]
pub fn prefix_units(text: &str, limit: usize) -> &str {
    if text.len() <= limit {
        return text;
    }
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += c.len_utf16();
        if used > limit {
            return &text[..at];
        }
    }
    text
}

/// `text` on one line and without characters that a reader cannot see.
///
/// Control, bidirectional, zero-width and tag characters are removed; a line break, with the blanks around it, becomes
/// one space, and so does a tab. Everything else stays as it is, so ordinary text comes back unchanged.
#[must_use]
pub fn clean(text: &str) -> Cow<'_, str> {
    if is_plain_ascii(text) || !text.chars().any(|c| is_break(c) || is_hidden(c)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut folding = false;
    for c in text.chars() {
        if is_break(c) {
            out.truncate(out.trim_end_matches(' ').len());
            folding = true;
        } else if is_hidden(c) {
            if c == '\t' && !folding {
                out.push(' ');
            }
        } else if folding && c == ' ' {
            // Indentation of a folded line.
        } else {
            if folding && !out.is_empty() {
                out.push(' ');
            }
            folding = false;
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// `text` cleaned and cut to at most `limit` UTF-16 units, with an ellipsis when something was left out.
#[must_use]
pub fn shorten(text: &str, limit: usize) -> String {
    cut(&clean(text), limit).into_owned()
}

/// The same for a text that is clean already.
pub(crate) fn cut(text: &str, limit: usize) -> Cow<'_, str> {
    if units(text) <= limit {
        return Cow::Borrowed(text);
    }
    let kept = prefix_units(text, limit.saturating_sub(1)).trim_end();
    if limit == 0 { Cow::Borrowed("") } else { Cow::Owned(format!("{kept}…")) }
}

/// Appends `text` to `out` with the five XML characters escaped.
pub fn push_escaped(out: &mut String, text: &str) {
    let mut rest = text;
    while let Some(at) = rest.find(['&', '<', '>', '"', '\'']) {
        out.push_str(&rest[..at]);
        out.push_str(match rest.as_bytes()[at] {
            b'&' => "&amp;",
            b'<' => "&lt;",
            b'>' => "&gt;",
            b'"' => "&quot;",
            _ => "&apos;",
        });
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
}

/// Whether all characters are printable ASCII. Looks at every byte, because that is done many at a time.
pub(crate) fn is_plain_ascii(text: &str) -> bool {
    text.bytes().fold(true, |plain, byte| plain & (0x20..0x7f).contains(&byte))
}

fn is_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Characters that change how text is read without being seen. The two emoji variation selectors are not among them:
/// they pick a glyph for the character before them and carry nothing else.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{fe00}'..='\u{fe0d}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trims_like_javascript() {
        assert_eq!(trim("\u{feff}\u{a0} a b \u{3000}\n"), "a b");
        assert_eq!(trim("\u{85}a"), "\u{85}a");
    }

    #[test]
    fn counts_and_orders_in_utf16_units() {
        assert_eq!(units("a🌤️"), 4);
        assert_eq!(cmp_units("\u{1f324}", "\u{ffff}"), Ordering::Less);
        assert_eq!(cmp_units("B2", "a"), Ordering::Less);
    }

    #[test]
    fn cuts_between_characters() {
        assert_eq!(prefix_units("ab🌤", 3), "ab");
        assert_eq!(prefix_units("ab🌤", 4), "ab🌤");
        assert_eq!(shorten("one two three", 8), "one two…");
        assert_eq!(shorten("one", 3), "one");
        assert_eq!(shorten("one", 0), "");
    }

    #[test]
    fn cleaning_removes_what_cannot_be_seen() {
        let cases = [
            ("plain & <b>", "plain & <b>"),
            ("🌤️ ok", "🌤️ ok"),
            ("a\n\n  ## System\r\nb", "a ## System b"),
            ("\n lead", "lead"),
            ("tail\n", "tail"),
            ("a\u{1b}[31mred\tb", "a[31mred b"),
            ("x\u{202e}y\u{200b}z\u{e0041}", "xyz"),
            ("nul\0byte", "nulbyte"),
            ("two  spaces", "two  spaces"),
        ];
        for (given, wanted) in cases {
            assert_eq!(clean(given), wanted, "{given:?}");
        }
    }
}
