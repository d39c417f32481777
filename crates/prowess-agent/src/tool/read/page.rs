//! A page: which lines of a file are shown, and how does one read on?

use std::io::{self, BufRead, BufReader, Read};

/// The most that is shown of one line, in bytes.
pub(super) const MAX_LINE_BYTES: usize = 10_000;

/// The most that is looked at to find a line or count the rest.
const MAX_SCAN_BYTES: u64 = 64 * 1024 * 1024;

/// Which lines are wanted, and how much of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    /// The first line, from 1.
    pub(super) first: usize,
    pub(super) lines: usize,
    pub(super) bytes: usize,
    pub(super) line_bytes: usize,
}

/// Lines of a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) text: String,
    /// The first line that is shown.
    pub(super) first: usize,
    /// The last one; before the first when there is none.
    pub(super) last: usize,
    /// How many lines the file has, unless it is too long to tell.
    pub(super) total: Option<usize>,
    /// Lines of which only the beginning is shown, with their length.
    clipped: Vec<(usize, usize)>,
}

impl Page {
    /// The line to read on with.
    pub(super) fn next(&self) -> Option<usize> {
        let has_more = self.total.is_none_or(|total| total > self.last);
        has_more.then_some(self.last + 1)
    }

    /// Whether the file ends before `window` begins. An empty file does not: it has a beginning.
    pub(super) fn is_beyond(&self, window: Window) -> bool {
        self.last < self.first && window.first > 1 && self.total.is_some_and(|total| window.first > total)
    }

    /// What the model has to know besides the text.
    pub(super) fn note(&self) -> Option<String> {
        let mut notes = Vec::new();
        if let Some((line, bytes)) = self.clipped.first() {
            let others = if self.clipped.len() > 1 { ", and others," } else { "" };
            notes.push(format!("line {line}{others} is cut: it has {bytes} bytes"));
        }
        if let Some(next) = self.next() {
            let total = self.total.map_or_else(|| "many".to_owned(), |total| total.to_string());
            notes.push(format!("lines {}-{} of {total}; read on with offset={next}", self.first, self.last));
        }
        (!notes.is_empty()).then(|| notes.join("; "))
    }
}

/// The lines of `window`.
pub(super) fn page(file: impl Read, window: Window) -> io::Result<Page> {
    let mut reader = BufReader::new(file.take(MAX_SCAN_BYTES));
    let mut page = Page { first: window.first, last: window.first - 1, ..Page::default() };
    let mut is_full = false;
    let mut number = 0;
    let mut line = Vec::new();
    while let Some(length) = next_line(&mut reader, window.line_bytes, &mut line)? {
        number += 1;
        if number < window.first || is_full {
            continue;
        }
        let text = text(&line, length);
        let separator = usize::from(page.last >= page.first);
        let is_first = separator == 0;
        let fits = page.text.len() + separator + text.len() <= window.bytes;
        if number - window.first >= window.lines || !(fits || is_first) {
            is_full = true;
            continue;
        }
        if !is_first {
            page.text.push('\n');
        }
        page.text.push_str(&text);
        if length > line.len() {
            page.clipped.push((number, length));
        }
        page.last = number;
    }
    page.total = (reader.into_inner().limit() > 0).then_some(number);
    Ok(page)
}

/// Takes the next line into `line`, as far as `keep` bytes, and tells how long it is.
fn next_line(reader: &mut impl BufRead, keep: usize, line: &mut Vec<u8>) -> io::Result<Option<usize>> {
    line.clear();
    let mut length = 0;
    let mut is_there = false;
    loop {
        let bytes = reader.fill_buf()?;
        if bytes.is_empty() {
            return Ok(is_there.then_some(length));
        }
        is_there = true;
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let part = &bytes[..end.unwrap_or(bytes.len())];
        line.extend_from_slice(&part[..part.len().min(keep.saturating_sub(line.len()))]);
        length += part.len();
        let used = part.len() + usize::from(end.is_some());
        reader.consume(used);
        if end.is_some() {
            return Ok(Some(length));
        }
    }
}

/// What is kept of a line as text, without half a character at a cut.
fn text(line: &[u8], length: usize) -> String {
    let whole = match std::str::from_utf8(line) {
        Err(error) if length > line.len() && error.error_len().is_none() => &line[..error.valid_up_to()],
        _ => line,
    };
    String::from_utf8_lossy(whole).into_owned()
}

#[cfg(test)]
mod tests {
    use super::{Page, Window, page};

    const WINDOW: Window = Window { first: 1, lines: 3, bytes: 20, line_bytes: 8 };

    fn read(text: &str, window: Window) -> Page {
        page(text.as_bytes(), window).expect("it can be read")
    }

    #[test]
    fn a_page_ends_at_its_lines_or_its_bytes() {
        let table = [
            ("", 1, "", (1, 0), None),
            ("a", 1, "a", (1, 1), None),
            ("a\nb\n", 1, "a\nb", (1, 2), None),
            ("a\n\nb", 1, "a\n\nb", (1, 3), None),
            ("a\r\nb", 1, "a\r\nb", (1, 2), None),
            ("1\n2\n3\n4\n5", 1, "1\n2\n3", (1, 3), Some("lines 1-3 of 5; read on with offset=4")),
            ("1\n2\n3\n4\n5", 4, "4\n5", (4, 5), None),
            ("\n2", 1, "\n2", (1, 2), None),
            (
                "12345678\n12345678\n12345678",
                1,
                "12345678\n12345678",
                (1, 2),
                Some("lines 1-2 of 3; read on with offset=3"),
            ),
            ("123456789\nb", 1, "12345678\nb", (1, 2), Some("line 1 is cut: it has 9 bytes")),
            ("1234567ä", 1, "1234567", (1, 1), Some("line 1 is cut: it has 9 bytes")),
        ];
        for (text, first, shown, lines, note) in table {
            let window = Window { first, ..WINDOW };
            let page = read(text, window);
            assert_eq!((page.text.as_str(), (page.first, page.last)), (shown, lines), "{text:?}");
            assert_eq!(page.note().as_deref(), note, "{text:?}");
            assert!(!page.is_beyond(window), "{text:?}");
        }
        let window = Window { first: 3, ..WINDOW };
        assert!(read("a\nb", window).is_beyond(window));
    }

    #[test]
    fn pages_put_together_are_the_file() {
        let lines: Vec<String> = (0..50).map(|number| "x".repeat(number % 8)).collect();
        let text = lines.join("\n");
        let mut together = Vec::new();
        let mut first = 1;
        loop {
            let page = read(&text, Window { first, ..WINDOW });
            together.push(page.text.clone());
            match page.next() {
                Some(next) => first = next,
                None => break,
            }
        }
        assert_eq!(together.join("\n"), text);
    }

    #[test]
    fn a_line_without_end_is_not_kept_in_memory_whole() {
        let endless = std::io::Read::take(std::io::repeat(b'x'), 10 * 1024 * 1024);
        let page = page(endless, WINDOW).expect("it can be read");
        assert_eq!((page.text.len(), page.clipped.as_slice()), (8, &[(1, 10 * 1024 * 1024)][..]));
    }
}
