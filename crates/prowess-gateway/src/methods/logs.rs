//! `logs.tail`: what was written down lately?

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use serde_json::{Value, json};

use super::{Answer, Ask, Method, method};
use crate::aside::blocking;
use crate::log;
use crate::scope::{Access, Scope};
use crate::wire::Refusal;

/// The methods of this matter.
pub(super) const METHODS: &[Method] = &[method!("logs.tail", Access::Operator(Scope::Read), tail)];

/// How many lines are given at most, and when nothing is said.
const LINES: (u64, u64) = (5_000, 500);

/// The same for bytes.
const BYTES: (u64, u64) = (1_000_000, 250_000);

/// A part of a file.
#[derive(Debug, PartialEq, Eq)]
struct Slice {
    /// Where to go on from.
    cursor: u64,
    size: u64,
    lines: Vec<String>,
    /// Whether more bytes were there than were asked for.
    truncated: bool,
    /// Whether it is not what follows the cursor that was given.
    reset: bool,
}

/// What part of a file is wanted.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    cursor: Option<u64>,
    lines: u64,
    bytes: u64,
}

async fn tail(ask: Ask) -> Answer {
    let wanted = read(ask.params())?;
    blocking(move || {
        let context = ask.gateway.agents.context()?;
        let file = log::file_of(&context.config, &context.locations, "gateway");
        let slice = slice(&file, wanted)
            .map_err(|error| Refusal::unavailable(format!("the log {} cannot be read: {error}", file.display())))?;
        Ok(json!({
            "file": file,
            "cursor": slice.cursor,
            "size": slice.size,
            "lines": slice.lines,
            "truncated": slice.truncated,
            "reset": slice.reset,
        }))
    })
    .await?
}

fn read(params: &Value) -> Result<Wanted, Refusal> {
    let refuse = |why: String| Refusal::invalid(format!("invalid logs.tail params: {why}"));
    if let Some(other) = params
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, _)| key)
        .find(|key| !matches!(key.as_str(), "cursor" | "limit" | "maxBytes"))
    {
        return Err(refuse(format!("at root: unexpected property '{other}'")));
    }
    let number = |name: &str, (most, otherwise): (u64, u64), least: u64| match &params[name] {
        Value::Null => Ok(otherwise),
        value => match value.as_i64() {
            None => Err(refuse(format!("at /{name}: must be integer"))),
            Some(number) => match u64::try_from(number) {
                Ok(number) if number >= least && number <= most => Ok(number),
                Ok(number) if number > most => Err(refuse(format!("at /{name}: must be <= {most}"))),
                _ => Err(refuse(format!("at /{name}: must be >= {least}"))),
            },
        },
    };
    let cursor = number("cursor", (u64::MAX, 0), 0)?;
    let cursor = if params["cursor"].is_null() { None } else { Some(cursor) };
    Ok(Wanted { cursor, lines: number("limit", LINES, 1)?, bytes: number("maxBytes", BYTES, 1)? })
}

/// The wanted part of a file. One that is not there is empty.
fn slice(path: &Path, wanted: Wanted) -> io::Result<Slice> {
    let mut file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let reset = wanted.cursor.is_some_and(|cursor| cursor > 0);
            return Ok(Slice { cursor: 0, size: 0, lines: Vec::new(), truncated: false, reset });
        }
        opened => opened?,
    };
    let size = file.metadata()?.len();
    let newest = size.saturating_sub(wanted.bytes);
    let (start, reset) = match wanted.cursor {
        // The file has begun anew, or more was written than is asked for at once.
        Some(cursor) if cursor > size || size - cursor > wanted.bytes => (newest, true),
        Some(cursor) => (cursor, false),
        None => (newest, false),
    };
    let is_cut = start > 0 && wanted.cursor != Some(start);
    // One byte more tells whether the part begins with a whole line.
    let from = if is_cut { start - 1 } else { start };
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(size - from).read_to_end(&mut bytes)?;
    let begin =
        if is_cut { bytes.iter().position(|&byte| byte == b'\n').map_or(bytes.len(), |end| end + 1) } else { 0 };
    // A line that is still being written is left for the next time.
    let end = bytes.iter().rposition(|&byte| byte == b'\n').map_or(begin, |end| end + 1).max(begin);
    let text = String::from_utf8_lossy(&bytes[begin..end]);
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let excess = lines.len().saturating_sub(usize::try_from(wanted.lines).unwrap_or(usize::MAX));
    lines.drain(..excess);
    let cursor = from + u64::try_from(end).unwrap_or(u64::MAX);
    Ok(Slice { cursor, size, lines, truncated: is_cut, reset })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(text: &str, cursor: Option<u64>, lines: u64, bytes: u64) -> Slice {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("log");
        std::fs::write(&path, text).expect("written");
        slice(&path, Wanted { cursor, lines, bytes }).expect("read")
    }

    #[test]
    fn the_newest_whole_lines_are_given() {
        let all = part("a\nb\nc\n", None, 10, 100);
        assert_eq!((all.lines, all.cursor, all.truncated), (vec!["a".into(), "b".into(), "c".into()], 6, false));
        let few = part("a\nb\nc\n", None, 2, 100);
        assert_eq!((few.lines, few.truncated), (vec!["b".into(), "c".into()], false));
        // Bytes cut in the middle of a line, and at its beginning.
        assert_eq!(part("aaa\nbbb\n", None, 10, 6).lines, ["bbb"]);
        assert_eq!(part("aaa\nbbb\n", None, 10, 4).lines, ["bbb"]);
    }

    #[test]
    fn a_cursor_goes_on_where_it_was() {
        let more = part("a\nb\nc\n", Some(2), 10, 100);
        assert_eq!((more.lines, more.cursor, more.reset), (vec!["b".into(), "c".into()], 6, false));
        assert_eq!(part("a\n", Some(2), 10, 100).lines, [""; 0]);
        // What is half written comes next time.
        let half = part("a\nb\nc", Some(2), 10, 100);
        assert_eq!((half.lines, half.cursor), (vec!["b".into()], 4));
    }

    #[test]
    fn a_file_that_began_anew_or_ran_ahead_is_told() {
        let anew = part("a\n", Some(100), 10, 100);
        assert_eq!((anew.lines, anew.reset), (vec!["a".into()], true));
        let ahead = part("aaaa\nbbbb\n", Some(1), 10, 5);
        assert_eq!((ahead.lines, ahead.reset, ahead.truncated), (vec!["bbbb".into()], true, true));
        let gone = slice(Path::new("/nonexistent/log"), Wanted { cursor: Some(3), lines: 1, bytes: 1 }).expect("empty");
        assert!(gone.reset && gone.lines.is_empty());
    }

    #[test]
    fn parameters_are_those_of_openclaw() {
        for (params, message) in [
            (json!({"limit": "x"}), "invalid logs.tail params: at /limit: must be integer"),
            (json!({"limit": 0}), "invalid logs.tail params: at /limit: must be >= 1"),
            (json!({"maxBytes": 2_000_000}), "invalid logs.tail params: at /maxBytes: must be <= 1000000"),
            (json!({"x": 1}), "invalid logs.tail params: at root: unexpected property 'x'"),
        ] {
            assert_eq!(read(&params).expect_err("refused").message, message);
        }
    }
}
