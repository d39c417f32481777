//! Keys: which bytes does a terminal send when somebody presses them?
//!
//! Keys are named as in tmux: `Enter`, `Up`, `C-c`, `M-x`, `S-Tab`, `C-M-Left`, `^D`. With a modifier, keys that send
//! a sequence send the one xterm does.

/// What to send, and what was odd about the names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Typed {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Names nobody knows. They are sent as they stand.
    pub warnings: Vec<String>,
}

/// Which modifiers are held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Held {
    shift: bool,
    alt: bool,
    control: bool,
}

impl Held {
    fn is_none(self) -> bool {
        self == Self::default()
    }

    /// The number xterm puts into a sequence.
    fn code(self) -> u8 {
        1 + u8::from(self.shift) + 2 * u8::from(self.alt) + 4 * u8::from(self.control)
    }
}

/// A key that has a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    /// It sends this byte.
    Byte(u8),
    /// It sends `ESC [ letter`.
    Cursor(char),
    /// It sends `ESC O letter`, but like a cursor key with a modifier.
    Function(char),
    /// It sends `ESC [ number ~`.
    Editing(u8),
}

/// What `literal` text, then `hex` bytes, then the named `keys` send.
#[must_use]
pub fn encode(literal: Option<&str>, hex: &[String], keys: &[String]) -> Typed {
    let mut typed = Typed { bytes: literal.unwrap_or_default().as_bytes().to_vec(), warnings: Vec::new() };
    for byte in hex {
        match parse_hex(byte) {
            Some(byte) => typed.bytes.push(byte),
            None => typed.warnings.push(format!("`{byte}` is not a hexadecimal byte; it was ignored")),
        }
    }
    for key in keys {
        let bytes = press(key).unwrap_or_else(|| {
            typed.warnings.push(format!("`{key}` is not a known key; it was sent as text"));
            key.clone().into_bytes()
        });
        typed.bytes.extend(bytes);
    }
    typed
}

/// What a terminal sends when `text` is pasted, marked as such if the program can tell pasting from typing.
#[must_use]
pub fn paste(text: &str, bracketed: Bracketed) -> Vec<u8> {
    match bracketed {
        Bracketed::No => text.as_bytes().to_vec(),
        // An end mark inside the text would let the rest of it pass for typing.
        Bracketed::Yes => format!("\x1b[200~{}\x1b[201~", text.replace("\x1b[201~", "")).into_bytes(),
    }
}

/// Whether pasted text is marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bracketed {
    /// It is.
    Yes,
    /// It looks as if it were typed.
    No,
}

fn parse_hex(text: &str) -> Option<u8> {
    let text = text.trim();
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    let plain = matches!(digits.len(), 1 | 2) && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u8::from_str_radix(digits, 16).ok().filter(|_| plain)
}

/// What one key sends.
fn press(token: &str) -> Option<Vec<u8>> {
    let token = token.trim();
    if let Some(letter) = token.strip_prefix('^').and_then(only_char) {
        return control(letter).map(|byte| vec![byte]);
    }
    let (held, name) = modifiers(token);
    if let Some(key) = named(&name.to_ascii_lowercase()) {
        return Some(send(key, held));
    }
    let letter = only_char(name)?;
    // A letter by itself is text, which has its own parameter; it is a key all the same.
    let plain = if held.shift { letter.to_uppercase().collect() } else { letter.to_string() };
    let bytes = if held.control { vec![control(letter)?] } else { plain.into_bytes() };
    Some(with_alt(held, bytes))
}

fn only_char(text: &str) -> Option<char> {
    let mut chars = text.chars();
    chars.next().filter(|_| chars.next().is_none())
}

/// `C-`, `M-` and `S-` in front of a name.
fn modifiers(token: &str) -> (Held, &str) {
    let mut held = Held::default();
    let mut rest = token;
    // `C--` is control with a minus: something has to be left.
    while let Some((first, name)) = rest.split_once('-').filter(|(_, name)| !name.is_empty()) {
        match first {
            "C" | "c" => held.control = true,
            "M" | "m" => held.alt = true,
            "S" | "s" => held.shift = true,
            _ => break,
        }
        rest = name;
    }
    (held, rest)
}

fn control(letter: char) -> Option<u8> {
    match letter.to_ascii_uppercase() {
        upper @ '@'..='_' => u8::try_from(upper).ok().map(|byte| byte & 0x1f),
        ' ' => Some(0),
        '?' => Some(0x7f),
        _ => None,
    }
}

fn named(name: &str) -> Option<Key> {
    let key = match name {
        "enter" | "return" | "cr" => Key::Byte(b'\r'),
        "lf" | "linefeed" => Key::Byte(b'\n'),
        "tab" => Key::Byte(b'\t'),
        "escape" | "esc" => Key::Byte(0x1b),
        "space" => Key::Byte(b' '),
        "bspace" | "backspace" => Key::Byte(0x7f),
        "up" => Key::Cursor('A'),
        "down" => Key::Cursor('B'),
        "right" => Key::Cursor('C'),
        "left" => Key::Cursor('D'),
        "end" => Key::Cursor('F'),
        "home" => Key::Cursor('H'),
        "btab" | "backtab" => Key::Cursor('Z'),
        "ic" | "insert" => Key::Editing(2),
        "dc" | "delete" | "del" => Key::Editing(3),
        "ppage" | "pageup" | "pgup" => Key::Editing(5),
        "npage" | "pagedown" | "pgdn" => Key::Editing(6),
        "f1" => Key::Function('P'),
        "f2" => Key::Function('Q'),
        "f3" => Key::Function('R'),
        "f4" => Key::Function('S'),
        "f5" => Key::Editing(15),
        "f6" => Key::Editing(17),
        "f7" => Key::Editing(18),
        "f8" => Key::Editing(19),
        "f9" => Key::Editing(20),
        "f10" => Key::Editing(21),
        "f11" => Key::Editing(23),
        "f12" => Key::Editing(24),
        _ => return None,
    };
    Some(key)
}

fn send(key: Key, held: Held) -> Vec<u8> {
    let code = held.code();
    match key {
        Key::Byte(b'\t') if held.shift => with_alt(held, b"\x1b[Z".to_vec()),
        Key::Byte(b' ') if held.control => with_alt(held, vec![0]),
        Key::Byte(byte) => with_alt(held, vec![byte]),
        Key::Cursor(letter) if held.is_none() || letter == 'Z' => format!("\x1b[{letter}").into_bytes(),
        Key::Function(letter) if held.is_none() => format!("\x1bO{letter}").into_bytes(),
        Key::Cursor(letter) | Key::Function(letter) => format!("\x1b[1;{code}{letter}").into_bytes(),
        Key::Editing(number) if held.is_none() => format!("\x1b[{number}~").into_bytes(),
        Key::Editing(number) => format!("\x1b[{number};{code}~").into_bytes(),
    }
}

fn with_alt(held: Held, mut bytes: Vec<u8>) -> Vec<u8> {
    if held.alt {
        bytes.insert(0, 0x1b);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::{Bracketed, encode, paste};

    #[test]
    fn keys_send_what_xterm_sends() {
        let table: [(&str, &[u8]); 34] = [
            ("Enter", b"\r"),
            ("Tab", b"\t"),
            ("Escape", b"\x1b"),
            ("Space", b" "),
            ("BSpace", b"\x7f"),
            ("Up", b"\x1b[A"),
            ("left", b"\x1b[D"),
            ("Home", b"\x1b[H"),
            ("End", b"\x1b[F"),
            ("DC", b"\x1b[3~"),
            ("PageUp", b"\x1b[5~"),
            ("NPage", b"\x1b[6~"),
            ("F1", b"\x1bOP"),
            ("F5", b"\x1b[15~"),
            ("F12", b"\x1b[24~"),
            ("BTab", b"\x1b[Z"),
            ("S-Tab", b"\x1b[Z"),
            ("^C", b"\x03"),
            ("^[", b"\x1b"),
            ("^?", b"\x7f"),
            ("C-c", b"\x03"),
            ("c-C", b"\x03"),
            ("C-Space", b"\x00"),
            ("C-@", b"\x00"),
            ("C-_", b"\x1f"),
            ("M-x", b"\x1bx"),
            ("C-M-a", b"\x1b\x01"),
            ("S-a", b"A"),
            ("M--", b"\x1b-"),
            ("C-Left", b"\x1b[1;5D"),
            ("M-Up", b"\x1b[1;3A"),
            ("C-S-Delete", b"\x1b[3;6~"),
            ("S-F1", b"\x1b[1;2P"),
            ("M-Enter", b"\x1b\r"),
        ];
        for (key, expected) in table {
            let typed = encode(None, &[], &[key.to_owned()]);
            assert_eq!((typed.bytes.as_slice(), typed.warnings.len()), (expected, 0), "{key}");
        }
    }

    #[test]
    fn what_is_no_key_is_sent_with_a_warning() {
        let typed = encode(Some("é"), &["1b".into(), "0x5B".into(), "zz".into(), "+1".into()], &["NoKey".into()]);
        assert_eq!(typed.bytes, "é\x1b[NoKey".as_bytes());
        assert_eq!(typed.warnings.len(), 3, "{:?}", typed.warnings);
    }

    #[test]
    fn pasted_text_cannot_end_the_paste() {
        assert_eq!(paste("a\nb", Bracketed::Yes), b"\x1b[200~a\nb\x1b[201~");
        assert_eq!(paste("a\x1b[201~rm", Bracketed::Yes), b"\x1b[200~arm\x1b[201~");
        assert_eq!(paste("a", Bracketed::No), b"a");
    }
}
