//! Lines: what can be read from a file that somebody may have been killed over?
//!
//! One JSON object a line. A line that is none is mended if that is possible without guessing, and else stepped over and
//! reported; nothing in a file stops the reading.

use std::io::BufRead;

use serde_json::{Map, Value};

/// The longest line. Longer ones are never written, and not read.
pub(crate) const MAX_LINE: usize = 64 * 1_024 * 1_024;

/// How many reports are kept; the rest is counted.
const MAX_REPORTS: usize = 20;

/// How many objects are looked for in a line that several programs wrote into.
const MAX_STARTS: usize = 64;

/// How an object of a transcript begins.
const START: &[u8] = b"{\"type\":\"";

/// What was wrong, and is right now.
#[derive(Debug, Default)]
pub(crate) struct Mended {
    reports: Vec<String>,
    more: usize,
}

impl Mended {
    /// Reports something.
    pub(crate) fn note(&mut self, report: String) {
        if self.reports.len() < MAX_REPORTS {
            self.reports.push(report);
        } else {
            self.more += 1;
        }
    }

    /// All reports.
    pub(crate) fn finish(mut self) -> Vec<String> {
        if self.more > 0 {
            self.reports.push(format!("{} more problems are not shown", self.more));
        }
        self.reports
    }
}

/// Hands every object to `take`, in order. Says whether the last line lacks its end.
pub(crate) fn each(
    mut from: impl BufRead,
    mended: &mut Mended,
    mut take: impl FnMut(Map<String, Value>),
) -> std::io::Result<bool> {
    let mut line = Vec::new();
    let mut number = 0_u64;
    let mut is_torn = false;
    while next(&mut from, &mut line)? {
        number += 1;
        is_torn = line.last() != Some(&b'\n');
        if line.len() > MAX_LINE {
            is_torn = is_torn && !skip_line(&mut from)?;
            mended.note(format!("line {number} is longer than {MAX_LINE} bytes and was skipped"));
            continue;
        }
        match object(&line) {
            Ok(Found::Whole(object)) => take(object),
            Ok(Found::Mended(objects, how)) => {
                objects.into_iter().for_each(&mut take);
                mended.note(format!("line {number} {how}"));
            }
            Ok(Found::Blank) => {}
            Err(why) => mended.note(format!("line {number} {why} and was skipped")),
        }
    }
    Ok(is_torn)
}

/// Reads the next line with its end, but not much more than [`MAX_LINE`]. Says whether there was one.
pub(crate) fn next(from: &mut impl BufRead, line: &mut Vec<u8>) -> std::io::Result<bool> {
    line.clear();
    // What one huge line needed is not kept for all the others.
    line.shrink_to(1 << 20);
    let limit = MAX_LINE as u64 + 1;
    Ok(std::io::Read::take(from, limit).read_until(b'\n', line)? > 0)
}

/// Goes on to the end of the line. Says whether it has one.
fn skip_line(from: &mut impl BufRead) -> std::io::Result<bool> {
    loop {
        let chunk = from.fill_buf()?;
        if chunk.is_empty() {
            return Ok(false);
        }
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let used = end.map_or(chunk.len(), |end| end + 1);
        from.consume(used);
        if end.is_some() {
            return Ok(true);
        }
    }
}

/// What is in a line.
enum Found {
    Whole(Map<String, Value>),
    Mended(Vec<Map<String, Value>>, &'static str),
    Blank,
}

fn object(line: &[u8]) -> Result<Found, &'static str> {
    // A disk that lost its power may leave a run of zeros where a line should have been.
    let padding = |byte: &u8| *byte == 0 || byte.is_ascii_whitespace();
    let Some(start) = line.iter().position(|byte| !padding(byte)) else {
        return if line.contains(&0) { Err("has only zeros") } else { Ok(Found::Blank) };
    };
    let end = line.iter().rposition(|byte| !padding(byte)).map_or(start, |last| last + 1);
    let text = &line[start..end];
    match serde_json::from_slice(text) {
        Ok(Value::Object(object)) if line.contains(&0) => {
            return Ok(Found::Mended(vec![object], "had zeros around it"));
        }
        Ok(Value::Object(object)) => return Ok(Found::Whole(object)),
        Ok(_) => return Err("is not an object"),
        Err(_) => {}
    }
    let objects = glued(text);
    if !objects.is_empty() {
        return Ok(Found::Mended(objects, "contained pieces of other lines"));
    }
    if std::str::from_utf8(text).is_err()
        && let Ok(Value::Object(object)) = serde_json::from_str(&String::from_utf8_lossy(text))
    {
        return Ok(Found::Mended(vec![object], "was not UTF-8"));
    }
    Err("is not JSON")
}

/// The whole entries in a line that also has pieces of others: somebody wrote on after a torn line.
///
/// Blocks of messages look alike but are no entries, so only what has a place in the tree counts.
fn glued(text: &[u8]) -> Vec<Map<String, Value>> {
    let mut found = Vec::new();
    let (mut at, mut attempts) = (0, 0);
    while attempts < MAX_STARTS {
        let Some(start) = text[at..].windows(START.len()).position(|window| window == START) else { break };
        at += start;
        if !may_be_entry(&text[at + START.len()..]) {
            at += START.len();
            continue;
        }
        attempts += 1;
        let mut values = serde_json::Deserializer::from_slice(&text[at..]).into_iter::<Value>();
        match values.next() {
            Some(Ok(Value::Object(object))) if is_entry(&object) => {
                at += values.byte_offset();
                found.push(object);
            }
            _ => at += START.len(),
        }
    }
    found
}

/// Whether it is worth reading on: after its kind, an entry has its id, and a header its version.
fn may_be_entry(rest: &[u8]) -> bool {
    let Some(end) = rest.iter().take(64).position(|byte| *byte == b'"') else { return false };
    let rest = &rest[end + 1..];
    rest.starts_with(b",\"id\":") || rest.starts_with(b",\"version\":")
}

fn is_entry(object: &Map<String, Value>) -> bool {
    let has_text = |key: &str| object.get(key).is_some_and(Value::is_string);
    let is_header = object.get("type").is_some_and(|kind| kind == "session") && object.contains_key("cwd");
    has_text("id") && has_text("timestamp") && (object.contains_key("parentId") || is_header)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8]) -> (Vec<String>, Vec<String>, bool) {
        let (mut mended, mut ids) = (Mended::default(), Vec::new());
        let is_torn = each(text, &mut mended, |object| {
            ids.push(object.get("id").and_then(Value::as_str).unwrap_or_default().to_owned());
        });
        (ids, mended.finish(), is_torn.expect("memory can be read"))
    }

    const A: &str = r#"{"type":"message","id":"a","parentId":null,"timestamp":"t","message":{"content":[{"type":"text","text":"ü"}]}}"#;
    const B: &str = r#"{"type":"custom","id":"b","parentId":"a","timestamp":"t"}"#;

    #[test]
    fn every_kind_of_damage_is_survived() {
        let half = &A[..A.len() - 3];
        let umlaut = A.find('ü').expect("it is there");
        let mut wrong = A.as_bytes().to_vec();
        wrong[umlaut] = 0xff;
        let table: Vec<(Vec<u8>, &[&str], usize, bool)> = vec![
            (format!("{A}\n{B}\n").into_bytes(), &["a", "b"], 0, false),
            (format!("{A}\r\n\n  \n{B}").into_bytes(), &["a", "b"], 0, true),
            (format!("{A}\n{half}").into_bytes(), &["a"], 1, true),
            (format!("{half}\n{B}\n").into_bytes(), &["b"], 1, false),
            (format!("{half}{B}\n").into_bytes(), &["b"], 1, false),
            (format!("{A}{B}\n").into_bytes(), &["a", "b"], 1, false),
            (format!("{half}{A}{B}").into_bytes(), &["a", "b"], 1, true),
            (format!("\0\0\0\0{A}\n\0\0\0").into_bytes(), &["a"], 2, true),
            ([wrong.as_slice(), b"\n"].concat(), &["a"], 1, false),
            (A.as_bytes()[..=umlaut].to_vec(), &[], 1, true),
            (b"[1]\nnull\n\"x\"\n".to_vec(), &[], 3, false),
            ("[".repeat(10_000).into_bytes(), &[], 1, true),
            (Vec::new(), &[], 0, false),
        ];
        for (text, expected, reports, torn) in table {
            let (ids, mended, is_torn) = read(&text);
            let shown = String::from_utf8_lossy(&text);
            assert_eq!(ids, expected, "{shown}");
            assert_eq!((mended.len(), is_torn), (reports, torn), "{shown}: {mended:?}");
        }
    }

    #[test]
    fn a_line_without_end_does_not_fill_the_memory() {
        struct Endless(usize);
        impl std::io::Read for Endless {
            fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
                let count = buffer.len().min(self.0);
                buffer[..count].fill(b'x');
                self.0 -= count;
                Ok(count)
            }
        }
        let text = format!("\n{A}\n");
        let from = std::io::BufReader::new(std::io::Read::chain(Endless(3 * MAX_LINE), text.as_bytes()));
        let (mut mended, mut count) = (Mended::default(), 0);
        let is_torn = each(from, &mut mended, |_| count += 1).expect("memory can be read");
        assert_eq!((count, is_torn, mended.finish().len()), (1, false, 1));
    }

    #[test]
    fn reports_are_bounded() {
        let (_, mended, _) = read("x\n".repeat(1_000).as_bytes());
        assert_eq!(mended.len(), MAX_REPORTS + 1);
    }
}
