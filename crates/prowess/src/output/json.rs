//! JSON for stdout: what a terminal would obey or hide is written as `\u…`, which means the same.
//!
//! The escapes are written while the value is serialised, so that text without such characters costs one look per byte
//! and nothing is copied twice.

use std::io::{self, Write};

use prowess_exec::output::is_hidden;
use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter};

/// `value` on lines with two spaces of indent, without a final newline.
pub(crate) fn pretty(value: &impl Serialize) -> serde_json::Result<String> {
    write(value, PrettyFormatter::new())
}

/// `value` on one line, without a final newline.
pub(crate) fn line(value: &impl Serialize) -> serde_json::Result<String> {
    write(value, CompactFormatter)
}

/// Writes `value` on one line, newline included, and flushes it.
pub(crate) fn write_line(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    let line = line(value)? + "\n";
    out.write_all(line.as_bytes())?;
    out.flush()
}

fn write(value: &impl Serialize, formatter: impl Formatter) -> serde_json::Result<String> {
    let mut out = Vec::with_capacity(4096);
    value.serialize(&mut serde_json::Serializer::with_formatter(&mut out, Visible(formatter)))?;
    String::from_utf8(out).map_err(serde::ser::Error::custom)
}

/// A formatter that lets no hidden character through.
struct Visible<F>(F);

/// Hands a method of [`Formatter`] to the one inside.
macro_rules! hand_on {
    ($($method:ident($($name:ident: $type:ty),*)),* $(,)?) => {
        $(fn $method<W: ?Sized + Write>(&mut self, writer: &mut W, $($name: $type),*) -> io::Result<()> {
            self.0.$method(writer, $($name),*)
        })*
    };
}

impl<F: Formatter> Formatter for Visible<F> {
    hand_on!(
        begin_array(), end_array(), begin_array_value(first: bool), end_array_value(), begin_object(), end_object(),
        begin_object_key(first: bool), end_object_key(), begin_object_value(), end_object_value(),
    );

    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        // What is below a blank was escaped before it came here.
        if fragment.is_ascii() && !fragment.contains('\x7f') {
            return writer.write_all(fragment.as_bytes());
        }
        let mut written = 0;
        for (at, c) in fragment.char_indices().filter(|&(_, c)| c.is_control() || is_hidden(c)) {
            writer.write_all(&fragment.as_bytes()[written..at])?;
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(writer, "\\u{unit:04x}")?;
            }
            written = at + c.len_utf8();
        }
        writer.write_all(&fragment.as_bytes()[written..])
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const HIDDEN: &str = "a\u{1b}[2J\u{7f}\u{9b}2J\u{202e}b\u{e0041}é\n\"\\";

    #[test]
    fn what_a_terminal_would_hide_is_shown() {
        let wanted = r#""a\u001b[2J\u007f\u009b2J\u202eb\udb40\udc41é\n\"\\""#;
        assert_eq!(line(&HIDDEN).expect("JSON"), wanted);
        assert_eq!(serde_json::from_str::<String>(wanted).expect("JSON"), HIDDEN);
    }

    #[test]
    fn only_the_escapes_differ_from_what_the_library_writes() {
        let value = json!({"a": [1, -2.5, null, true, {"é": {}}, []], "b": {"c": "plain"}, "": "日本"});
        assert_eq!(pretty(&value).expect("JSON"), serde_json::to_string_pretty(&value).expect("JSON"));
        assert_eq!(line(&value).expect("JSON"), value.to_string());
    }

    #[test]
    fn a_key_is_shown_like_any_text() {
        let value = json!({HIDDEN: [HIDDEN]});
        let text = pretty(&value).expect("JSON");
        assert!(text.chars().all(|c| c == '\n' || !(c.is_control() || is_hidden(c))), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), value);
    }
}
