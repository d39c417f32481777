//! Mending: what did the author of a broken frontmatter mean?
//!
//! The block is taken apart into its top-level entries, and each is read alone: one bad line costs one entry, not the
//! skill. An entry that does not read is mended by the cheapest rule that makes it read. `metadata` is never turned
//! into text: it decides what a skill needs, so it is either read for certain or reported as unreadable.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use serde_json::Value;

use super::yaml::{self, Fault, Pair};
use super::{Flaw, fence};
use crate::json;
use crate::problem::{Position, ProblemKind};
use crate::text::trim;

/// What could be read of a broken block.
#[derive(Debug, Default)]
pub(super) struct Mended {
    pub(super) pairs: Vec<Pair>,
    pub(super) flaws: Vec<Flaw>,
    pub(super) metadata_flaw: Option<Flaw>,
}

/// One top-level key with the lines that belong to it.
struct Entry {
    key: String,
    /// Its line in the header, from 1.
    line: usize,
    range: Range<usize>,
    /// Lines at column 1 that only make sense as more of this entry's text.
    strays: bool,
}

/// Remarks about one file that are worth reading; the rest is counted.
const MAX_FLAWS: usize = 20;

/// Reads a block entry by entry.
pub(super) fn entries(header: &str, first_line: usize) -> Mended {
    let mut mended = Mended::default();
    let mut places: HashMap<Cow<'static, str>, usize> = HashMap::new();
    let mut spent = 0;
    for entry in split(header, first_line, &mut mended.flaws) {
        let at = Position { line: first_line + entry.line - 1, column: 1 };
        let pair = match read(header, &entry, at, &mut spent, &mut mended.flaws) {
            Ok(pair) => pair,
            Err(flaw) => {
                mended.metadata_flaw = Some(flaw);
                continue;
            }
        };
        let Some(&place) = places.get(&pair.key) else {
            places.insert(pair.key.clone(), mended.pairs.len());
            mended.pairs.push(pair);
            continue;
        };
        let first = &mut mended.pairs[place];
        let reason = format!("the key `{}` appears twice", pair.key);
        if pair.key == "metadata" && first.value != pair.value {
            mended.metadata_flaw = Some(unreadable(at, &reason));
        } else {
            mended.flaws.push(Flaw::mended(at, &format!("{reason}; the last one counts"), "remove the others"));
        }
        *first = pair;
    }
    let more = mended.flaws.len().saturating_sub(MAX_FLAWS);
    if more > 0 {
        mended.flaws.truncate(MAX_FLAWS);
        let at = mended.flaws.last().and_then(|flaw| flaw.at).unwrap_or(Position { line: first_line, column: 1 });
        mended.flaws.push(Flaw::mended(at, &format!("and {more} more like these"), "check the whole frontmatter"));
    }
    mended
}

/// Takes the block apart, ending it early where a Markdown heading shows that the body has begun.
fn split(header: &str, first_line: usize, flaws: &mut Vec<Flaw>) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    let (mut offset, mut after_blank) = (0, false);
    for (number, line) in header.split_inclusive('\n').enumerate() {
        let (start, end) = (offset, offset + line.len());
        offset = end;
        let line = line.trim_end_matches('\n');
        let at = Position { line: first_line + number, column: 1 };
        let blank = line.trim().is_empty();
        if fence::is_key_line(line.as_bytes(), &[]) {
            let key = line.split(':').next().unwrap_or_default().to_owned();
            entries.push(Entry { key, line: number + 1, range: start..end, strays: false });
        } else if after_blank && !entries.is_empty() && is_heading(line) {
            flaws.push(Flaw::mended(at, "the body begins before the closing `---`", "put `---` before this line"));
            break;
        } else if is_conflict_marker(line) {
            flaws.push(Flaw::mended(at, "a merge conflict marker was left in the file", "resolve the conflict"));
        } else if let Some(entry) = entries.last_mut().filter(|_| !line.starts_with('#')) {
            let belongs =
                blank || line.starts_with([' ', '\t', '{', '}', '[', ']', '"', '\'']) || line.starts_with("- ");
            entry.strays |= !belongs;
            entry.range.end = end;
        }
        after_blank = blank;
    }
    entries
}

fn is_heading(line: &str) -> bool {
    let text = line.trim_start_matches('#');
    let level = line.len() - text.len();
    (1..=6).contains(&level) && text.starts_with(' ')
}

fn is_conflict_marker(line: &str) -> bool {
    ["<<<<<<<", "=======", ">>>>>>>", "|||||||"].iter().any(|marker| line.starts_with(marker))
}

/// Reads one entry, mended if need be; `spent` is what the entries before it unfolded to. The error is for `metadata`
/// alone.
fn read(header: &str, entry: &Entry, at: Position, spent: &mut usize, flaws: &mut Vec<Flaw>) -> Result<Pair, Flaw> {
    let snippet = &header[entry.range.clone()];
    let value_start = entry.range.start + snippet.find(':').map_or(0, |colon| colon + 1);
    let source = value_start..entry.range.end;
    let pair = |value: Value| Pair { key: yaml::name(&entry.key), value, line: entry.line, source: source.clone() };
    let error = match alone(snippet, spent) {
        Ok(value) if !entry.strays => return Ok(pair(value)),
        Ok(_) => None,
        Err(error) => Some(error),
    };
    if let Some(value) = untabbed(snippet, spent) {
        flaws.push(Flaw::mended(at, &format!("`{}` is indented with tabs", entry.key), "indent it with spaces"));
        return Ok(pair(value));
    }
    let raw = &header[source.clone()];
    if entry.key != "metadata" {
        let (text, reason) = as_text(raw);
        flaws.push(Flaw::mended(at, &format!("the value of `{}` {reason}", entry.key), "put it in double quotes"));
        return Ok(pair(Value::String(text)));
    }
    match error {
        Some(error) if error.fault == Fault::DuplicateKey => Err(unreadable(at, &error.reason)),
        error => match without_surplus(raw, spent) {
            Some(value) => {
                flaws.push(Flaw::mended(at, "`metadata` has too many closing brackets", "remove the extra ones"));
                Ok(pair(value))
            }
            None => Err(unreadable(at, &error.map_or_else(|| "text follows it".to_owned(), |error| error.reason))),
        },
    }
}

fn unreadable(at: Position, reason: &str) -> Flaw {
    Flaw {
        kind: ProblemKind::BadMetadata,
        at: Some(at),
        reason: format!("`metadata` cannot be read: {reason}"),
        fix: "write it as JSON or as nested YAML".to_owned(),
    }
}

/// The value of a snippet that holds one pair.
fn alone(snippet: &str, spent: &mut usize) -> Result<Value, yaml::YamlError> {
    yaml::part(snippet, spent).map(|pairs| pairs.into_iter().next().map_or(Value::Null, |pair| pair.value))
}

fn untabbed(snippet: &str, spent: &mut usize) -> Option<Value> {
    let mut tabs = false;
    let spaced: Vec<String> = snippet
        .lines()
        .map(|line| {
            let text = line.trim_start_matches([' ', '\t']);
            let indent = &line[..line.len() - text.len()];
            tabs |= indent.contains('\t');
            format!("{}{text}", indent.replace('\t', "  "))
        })
        .collect();
    if tabs { alone(&format!("{}\n", spaced.join("\n")), spent).ok() } else { None }
}

/// The raw text of a value, and what was wrong with it.
fn as_text(raw: &str) -> (String, &'static str) {
    let mut lines = raw.lines();
    let inline = trim(lines.next().unwrap_or_default());
    let rest: Vec<&str> = lines.collect();
    let block_indicator = matches!(inline.trim_end_matches(['-', '+']), "|" | ">");
    if inline.is_empty() || block_indicator {
        return (trim(&rest.join("\n")).to_owned(), "is not indented, or not valid YAML");
    }
    let whole = std::iter::once(inline).chain(rest.into_iter().map(trim)).filter(|line| !line.is_empty());
    let whole = whole.collect::<Vec<_>>().join(" ");
    (unquoted(&whole).to_owned(), cause(&whole))
}

/// `text` without the one pair of quotes around it; quotes that enclose only parts of it stay.
fn unquoted(text: &str) -> &str {
    ['"', '\'']
        .iter()
        .find_map(|&quote| text.strip_prefix(quote)?.strip_suffix(quote).filter(|inner| !inner.contains(quote)))
        .unwrap_or(text)
}

fn cause(text: &str) -> &'static str {
    match text.chars().next() {
        Some('"' | '\'') => "opens a quote that does not end with the value",
        Some('[' | '{') => "starts with a bracket that does not end with the value",
        Some('@' | '`' | '%' | '*' | '&' | '!' | '|' | '>' | '-' | '?' | ',' | '}' | ']') => {
            "starts with a character that has another meaning in YAML"
        }
        _ if text.contains(": ") || text.ends_with(':') => "contains a colon and is not quoted",
        _ => "is not valid YAML",
    }
}

/// Reads JSON, JSON5 or a YAML flow map that has too many closing brackets at its end. One that has too few was cut off:
/// nobody knows what else it said.
fn without_surplus(raw: &str, spent: &mut usize) -> Option<Value> {
    let text = trim(raw);
    let text = text.strip_prefix(['\'', '"']).map_or(text, trim);
    if !text.starts_with(['{', '[']) {
        return None;
    }
    let mut text = text.trim_end_matches(['\'', '"', ' ']).to_owned();
    let mut open = Vec::new();
    let (mut quote, mut escaped) = (None, false);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            _ if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(mark), _) => quote = quote.filter(|_| c != mark),
            (None, '"' | '\'') => quote = Some(c),
            (None, '{') => open.push('}'),
            (None, '[') => open.push(']'),
            (None, '}' | ']') if open.last() == Some(&c) => {
                open.pop();
            }
            (None, '}' | ']') if open.is_empty() && text[at..].chars().all(|c| matches!(c, '}' | ']' | ' ' | '\n')) => {
                text.truncate(at);
                break;
            }
            (None, '}' | ']') => return None,
            _ => {}
        }
    }
    if quote.is_some() || !open.is_empty() {
        return None;
    }
    let value = json::parse(&text).ok().or_else(|| alone(&format!("metadata: {text}\n"), spent).ok())?;
    value.is_object().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::super::Document;

    #[track_caller]
    fn check(header: &str, wanted: &[(&str, &str)], flaws: usize) {
        let text = format!("---\n{header}---\n");
        let document = Document::parse(text.as_bytes()).expect("rescued");
        let flat = document.flat();
        let got: Vec<(&str, &str)> = flat.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        assert_eq!(got, wanted);
        assert_eq!(document.flaws().len(), flaws, "{:?}", document.flaws());
    }

    #[test]
    fn free_text_keeps_its_words() {
        for text in [
            "Use when: asked about x",
            "[beta] does x",
            "*bold* text",
            "@mention stuff",
            "`code` stuff",
            "- dash first",
            "%TAG thing",
            "\"abc",
            "\"a\" and \"b\"",
            ", it might",
            "| inline after pipe",
        ] {
            check(&format!("name: foo\ndescription: {text}\n"), &[("name", "foo"), ("description", text)], 1);
        }
    }

    #[test]
    fn one_bad_line_costs_one_entry() {
        check(
            "name: foo\ndescription: d\nother: a: b\n",
            &[("name", "foo"), ("description", "d"), ("other", "a: b")],
            1,
        );
        check(
            "name: foo\nhint: [a] [b]\ndescription: d\n",
            &[("name", "foo"), ("hint", "[a] [b]"), ("description", "d")],
            1,
        );
        check("name: a\nname: b\ndescription: d\n", &[("name", "b"), ("description", "d")], 1);
    }

    #[test]
    fn unindented_text_belongs_to_the_key_above() {
        check("name: a\ndescription: one\ntwo three\n", &[("name", "a"), ("description", "one two three")], 1);
        check("name: a\ndescription: |\nText here.\n", &[("name", "a"), ("description", "Text here.")], 1);
        check("description:\n  Use when: x\n  and: [y\n", &[("description", "Use when: x\n  and: [y")], 1);
    }

    #[test]
    fn conflict_markers_and_an_early_body_are_left_out() {
        check(
            "name: a\ndescription: d\n<<<<<<< ours\nlicense: MIT\n=======\n>>>>>>> theirs\n",
            &[("name", "a"), ("description", "d"), ("license", "MIT")],
            3,
        );
        check("description: d\n\n# Title\n\n| a | b |\n", &[("description", "d")], 1);
    }

    #[test]
    fn metadata_that_is_cut_off_is_unreadable() {
        let read = |metadata: &str| {
            let text = format!("---\nname: a\ndescription: d\nmetadata: {metadata}\n---\n");
            let document = Document::parse(text.as_bytes()).expect("rescued");
            document.metadata().map(|found| found.map(|value| value.to_string())).map_err(|flaw| flaw.reason)
        };
        let fine = Ok(Some(r#"{"openclaw":{"requires":{"bins":["x"]}}}"#.to_owned()));
        assert!(read(r#"{"openclaw":{"requires":{"bins":["x"]}}"#).is_err());
        assert_eq!(read(r#"{"openclaw":{"requires":{"bins":["x"]}}}}"#), fine);
        for cut in ["{", r#"{"openclaw": {"#, r#"{"openclaw": {"requires":"#, r#"{"openclaw": {"emoji": "x","#] {
            assert!(read(cut).is_err(), "{cut}");
        }
        assert_eq!(read("{\n\t\"openclaw\": {\"requires\": {\"bins\": [\"x\"]}}}"), fine);
        assert_eq!(read("{\n  // why\n  \"openclaw\": {\"requires\": {\"bins\": [\"x\"]}}}"), fine);
        assert!(read(r#"{"openclaw":{"always":true,"always":false}}"#).is_err());
        assert!(read(r#"{"openclaw": "requires" {"bins":["x"]}"#).is_err());
        assert!(read("\"{openclaw: {\"").is_err());
        assert_eq!(read("just words"), Ok(None));
    }
}
