//! Which part of a long output is kept?
//!
//! The beginning says what a program set out to do and the end how it went, so both are kept and the middle is left
//! out, with an exact count. Limits are in UTF-16 units, as in the peer; counts that people read are in bytes.

use std::fmt::Write as _;

/// Room for the line that says what was left out.
const NOTE: usize = 64;

/// The length of `text` in UTF-16 units.
#[must_use]
pub fn units(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().map(char::len_utf16).sum() }
}

/// The longest end of `text` that has at most `limit` UTF-16 units.
#[must_use]
pub fn last_units(text: &str, limit: usize) -> &str {
    if text.len() <= limit {
        return text;
    }
    let mut room = limit;
    for (at, c) in text.char_indices().rev() {
        match room.checked_sub(c.len_utf16()) {
            Some(left) => room = left,
            None => return &text[at + c.len_utf8()..],
        }
    }
    text
}

/// What was kept of an output.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Kept {
    /// The beginning; all of it if nothing was left out.
    pub head: String,
    /// The end, if something was left out.
    pub tail: String,
    /// How much is missing between them.
    pub dropped_bytes: u64,
    /// The size of the whole, after cleaning.
    pub total_bytes: u64,
    /// Its number of lines; a last line without a line break counts.
    pub total_lines: u64,
}

impl Kept {
    /// What was kept, with a line that says how much was not.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = self.head.clone();
        if self.dropped_bytes > 0 {
            // Writing to a string does not fail.
            let _ = write!(text, "\n[… {} bytes omitted …]\n", self.dropped_bytes);
        }
        text + &self.tail
    }
}

/// Keeps the beginning and the end of a text that grows.
#[derive(Debug)]
pub struct Keeper {
    limit: usize,
    head: String,
    head_room: usize,
    tail: String,
    tail_units: usize,
    total_bytes: u64,
    total_units: u64,
    line_breaks: u64,
    in_line: bool,
}

impl Keeper {
    /// Keeps at most `limit` units, the line about what is missing included.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        let limit = limit.max(2 * NOTE);
        Self {
            limit,
            head: String::new(),
            head_room: limit / 2,
            tail: String::new(),
            tail_units: 0,
            total_bytes: 0,
            total_units: 0,
            line_breaks: 0,
            in_line: false,
        }
    }

    /// Adds to the end.
    pub fn push(&mut self, text: &str) {
        let Some(last) = text.chars().next_back() else { return };
        self.in_line = last != '\n';
        self.line_breaks += text.bytes().map(|byte| u64::from(byte == b'\n')).sum::<u64>();
        self.total_bytes += text.len() as u64;
        self.total_units += units(text) as u64;
        let rest = self.fill_head(text);
        self.tail.push_str(rest);
        self.tail_units += units(rest);
        // Cutting only at twice the size makes each character move at most once on average.
        let most = self.limit - self.limit / 2;
        if self.tail_units > 2 * most {
            let kept = last_units(&self.tail, most);
            let cut = self.tail.len() - kept.len();
            self.tail.drain(..cut);
            self.tail_units = units(&self.tail);
        }
    }

    /// What is kept so far.
    #[must_use]
    pub fn kept(&self) -> Kept {
        let (head, tail) = if self.total_units <= self.limit as u64 {
            (self.head.clone() + &self.tail, String::new())
        } else {
            (self.head.clone(), last_units(&self.tail, self.limit - self.limit / 2 - NOTE).to_owned())
        };
        Kept {
            dropped_bytes: self.total_bytes - (head.len() + tail.len()) as u64,
            head,
            tail,
            total_bytes: self.total_bytes,
            total_lines: self.line_breaks + u64::from(self.in_line),
        }
    }

    /// The last `limit` units.
    #[must_use]
    pub fn last(&self, limit: usize) -> String {
        if self.total_units > self.limit as u64 {
            return last_units(&self.tail, limit.min(self.limit - self.limit / 2)).to_owned();
        }
        let tail = last_units(&self.tail, limit);
        if tail.len() < self.tail.len() {
            return tail.to_owned();
        }
        last_units(&self.head, limit - units(tail)).to_owned() + tail
    }

    /// Puts into the head what fits, and returns what does not. Once something did not, nothing does.
    fn fill_head<'a>(&mut self, text: &'a str) -> &'a str {
        for (at, c) in text.char_indices() {
            let Some(left) = self.head_room.checked_sub(c.len_utf16()) else {
                self.head_room = 0;
                self.head.push_str(&text[..at]);
                return &text[at..];
            };
            self.head_room = left;
        }
        self.head.push_str(text);
        ""
    }
}

/// What came since somebody last asked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Drained {
    /// Its text, or the end of it.
    pub text: String,
    /// Whether the beginning is missing.
    pub truncated: bool,
}

/// Holds what nobody has asked for yet; when it gets too much, only the end.
#[derive(Debug)]
pub struct Pending {
    limit: usize,
    text: String,
    units: usize,
    truncated: bool,
}

impl Pending {
    /// Holds at most `limit` units.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { limit, text: String::new(), units: 0, truncated: false }
    }

    /// Adds to the end.
    pub fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.units += units(text);
        if self.units > 2 * self.limit {
            self.cut();
        }
    }

    /// Takes everything out.
    pub fn drain(&mut self) -> Drained {
        self.cut();
        self.units = 0;
        Drained { text: std::mem::take(&mut self.text), truncated: std::mem::take(&mut self.truncated) }
    }

    fn cut(&mut self) {
        let cut = self.text.len() - last_units(&self.text, self.limit).len();
        if cut > 0 {
            self.truncated = true;
            self.text.drain(..cut);
            self.units = units(&self.text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Keeper, Pending, last_units, units};

    #[test]
    fn a_short_output_is_kept_whole() {
        let mut keeper = Keeper::new(1_000);
        keeper.push(&"0123456789".repeat(100));
        let kept = keeper.kept();
        assert_eq!((kept.dropped_bytes, kept.total_bytes, kept.total_lines), (0, 1_000, 1));
        assert_eq!(kept.text(), "0123456789".repeat(100));
        assert_eq!(keeper.last(3), "789");
    }

    #[test]
    fn of_a_long_one_both_ends_are_kept_and_the_rest_is_counted() {
        let mut keeper = Keeper::new(1_000);
        for number in 0..10_000 {
            keeper.push(&format!("{number:05}\n"));
        }
        let kept = keeper.kept();
        assert_eq!((kept.total_bytes, kept.total_lines), (60_000, 10_000));
        assert_eq!(kept.dropped_bytes, 60_000 - (kept.head.len() + kept.tail.len()) as u64);
        assert!(kept.head.starts_with("00000\n") && kept.tail.ends_with("09999\n"), "{kept:?}");
        assert!(kept.text().contains(&format!("\n[… {} bytes omitted …]\n", kept.dropped_bytes)));
        assert!(units(&kept.text()) <= 1_000);
        assert_eq!(keeper.last(6), "09999\n");
    }

    #[test]
    fn memory_does_not_grow_with_the_output() {
        let mut keeper = Keeper::new(1_000);
        for _ in 0..10_000 {
            keeper.push("😀😀😀😀😀😀😀😀😀😀");
            assert!(keeper.tail.len() < 8_000);
        }
        assert!(keeper.kept().tail.chars().all(|c| c == '😀'));
    }

    #[test]
    fn what_is_pending_comes_once() {
        let mut pending = Pending::new(5);
        pending.push("abc");
        let first = pending.drain();
        assert_eq!((first.text.as_str(), first.truncated), ("abc", false));
        pending.push("0123456789");
        let second = pending.drain();
        assert_eq!((second.text.as_str(), second.truncated), ("56789", true));
        assert_eq!(pending.drain(), super::Drained::default());
    }

    #[test]
    fn characters_are_never_cut() {
        assert_eq!(last_units("a😀b", 2), "b");
        assert_eq!(last_units("a😀b", 3), "😀b");
        assert_eq!(last_units("ééé", 2), "éé");
        assert_eq!(last_units("abc", 0), "");
    }
}
