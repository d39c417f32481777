//! The short way: frontmatter that is mostly simple lines.
//!
//! Most frontmatter is a handful of `key: words`, `key: "words"` and one line of JSON. What such a line means in YAML
//! is certain, and it can be told many times faster than by the whole grammar. A key with more below it is given to the
//! grammar alone. Whatever is not certain is left to the grammar as a whole: this function may say "I do not know",
//! never anything else than what the grammar would say.

use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::yaml::{self, Pair};

/// Levels of JSON nesting taken here; deeper ones are left to the grammar and its limits.
const MAX_DEPTH: usize = 32;
/// Keys taken here: looking for one twice takes as many steps as there are keys.
const MAX_KEYS: usize = 64;

/// The pairs of a block that is a list of simple lines and of keys with something indented below them.
pub(super) fn mapping(text: &str) -> Option<Vec<Pair>> {
    let mut pairs: Vec<Pair> = Vec::new();
    for entry in (Entries { text, at: 0, line: 0 }) {
        let pair = match entry? {
            Entry::Simple(pair) => pair,
            Entry::Whole(lines, number) => alone(text, lines, number)?,
        };
        if pairs.len() == MAX_KEYS || pairs.iter().any(|earlier| earlier.key == pair.key) {
            return None;
        }
        pairs.push(pair);
    }
    (!pairs.is_empty()).then_some(pairs)
}

/// A key with what belongs to it.
enum Entry {
    /// Read already.
    Simple(Pair),
    /// To be read by the grammar: its bytes, and the number of its first line.
    Whole(Range<usize>, usize),
}

/// The entries of a block; an entry is `None` when it is not certain where it ends.
struct Entries<'a> {
    text: &'a str,
    at: usize,
    line: usize,
}

impl<'a> Entries<'a> {
    /// The next line without its end, and where it starts.
    fn line(&mut self) -> Option<(usize, &'a str)> {
        let start = self.at;
        let rest = self.text.get(start..).filter(|rest| !rest.is_empty())?;
        let length = memchr::memchr(b'\n', rest.as_bytes()).unwrap_or(rest.len());
        self.at = (start + length + 1).min(self.text.len());
        self.line += 1;
        Some((start, &self.text[start..start + length]))
    }

    /// Skips lines that are indented or blank, and says whether there were any with something on them.
    fn skip_below(&mut self) -> bool {
        let mut found = false;
        while let Some(rest) = self.text.get(self.at..).filter(|rest| rest.starts_with([' ', '\n'])) {
            let line = rest.lines().next().unwrap_or_default();
            found |= !line.bytes().all(|b| b == b' ');
            self.line();
        }
        found
    }
}

impl Iterator for Entries<'_> {
    type Item = Option<Entry>;

    fn next(&mut self) -> Option<Option<Entry>> {
        loop {
            let (start, line) = self.line()?;
            if !line.starts_with('#') && !line.bytes().all(|b| b == b' ') {
                let number = self.line;
                let Some(colon) = key_length(line) else { return Some(None) };
                let has_more = self.skip_below();
                let simple = if has_more { None } else { simple(line, colon, start, number) };
                return Some(Some(simple.map_or(Entry::Whole(start..self.at, number), Entry::Simple)));
            }
            if !is_printable(line) {
                return Some(None);
            }
        }
    }
}

/// A pair on one line.
fn simple(line: &str, colon: usize, start: usize, number: usize) -> Option<Pair> {
    let rest = &line[colon + 1..];
    let value = rest.trim_matches(' ');
    if !(rest.is_empty() || rest.starts_with(' ')) || !is_printable(value) {
        return None;
    }
    let after = start + colon + 1;
    let end = if value.is_empty() { after } else { after + rest.trim_end_matches(' ').len() };
    Some(Pair { key: yaml::name(&line[..colon]), value: scalar(value)?, line: number, source: after..end })
}

/// Reads one entry by the grammar. Anchors and aliases may reach across entries, so they are left to the whole.
fn alone(text: &str, lines: Range<usize>, number: usize) -> Option<Pair> {
    let snippet = &text[lines.clone()];
    if snippet.contains(['&', '*', '%', '?', '\t']) {
        return None;
    }
    if let Some(pair) = nested(snippet, lines.start, number) {
        return Some(pair);
    }
    let mut pairs = yaml::mapping(snippet).ok()?;
    let pair = pairs.pop().filter(|_| pairs.is_empty())?;
    let source = pair.source.start + lines.start..pair.source.end + lines.start;
    Some(Pair { line: pair.line + number - 1, source, ..pair })
}

/// A key with nothing but simple lines below it: maps of maps, and lists of words.
fn nested(snippet: &str, start: usize, number: usize) -> Option<Pair> {
    let (line, below) = snippet.split_once('\n')?;
    let key = line.trim_end_matches(' ').strip_suffix(':')?;
    let mut lines = Vec::new();
    for line in below.lines().filter(|line| !line.bytes().all(|b| b == b' ')) {
        let text = line.trim_start_matches(' ');
        if text.starts_with('#') || !is_printable(text) {
            return None;
        }
        lines.push(Line { indent: line.len() - text.len(), text: text.trim_end_matches(' ') });
    }
    let mut rest = lines.as_slice();
    let value = block(&mut rest, 0)?;
    let source = start + key.len() + 1..start + line.len() + 1 + below.trim_end_matches([' ', '\n']).len();
    rest.is_empty().then(|| Pair { key: yaml::name(key), value, line: number, source })
}

/// A line without its indentation.
#[derive(Clone, Copy)]
struct Line<'a> {
    indent: usize,
    text: &'a str,
}

/// The map or list that starts with the first of `lines` and ends where the indentation does.
fn block(lines: &mut &[Line<'_>], depth: usize) -> Option<Value> {
    let indent = lines.first()?.indent;
    if depth > MAX_DEPTH {
        return None;
    }
    let (mut map, mut list) = (Map::new(), Vec::new());
    while let Some((line, rest)) = lines.split_first().filter(|(line, _)| line.indent == indent) {
        *lines = rest;
        let has_more = rest.first().is_some_and(|next| next.indent > indent);
        if let Some(item) = line.text.strip_prefix("- ") {
            let item = item.trim_start_matches(' ');
            if has_more || !map.is_empty() || item.is_empty() {
                return None;
            }
            list.push(scalar(item)?);
            continue;
        }
        let colon = key_length(line.text)?;
        let (key, value) = (&line.text[..colon], &line.text[colon + 1..]);
        let value = match value.strip_prefix(' ') {
            None if value.is_empty() && has_more => block(lines, depth + 1)?,
            None if value.is_empty() => Value::Null,
            Some(value) if !has_more => scalar(value.trim_start_matches(' '))?,
            _ => return None,
        };
        // A list at the indentation of its key looks like a list in a map: both are left to the grammar.
        if !list.is_empty() || map.insert(key.to_owned(), value).is_some() {
            return None;
        }
    }
    let is_end = lines.first().is_none_or(|next| next.indent < indent);
    is_end.then(|| if list.is_empty() { Value::Object(map) } else { Value::Array(list) })
}

/// The length of a key made of letters, digits, hyphens and underscores that starts with a letter.
fn key_length(line: &str) -> Option<usize> {
    let colon = line.bytes().position(|b| b == b':')?;
    let key = &line.as_bytes()[..colon];
    let simple =
        key.first()?.is_ascii_alphabetic() && key.iter().all(|&b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    simple.then_some(colon)
}

/// Characters that mean nothing but themselves; tabs and control characters are left to the grammar.
fn is_printable(text: &str) -> bool {
    crate::text::is_plain_ascii(text)
        || text
            .chars()
            .all(|c| !c.is_control() && !matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'))
}

fn scalar(value: &str) -> Option<Value> {
    let Some(first) = value.chars().next() else { return Some(Value::Null) };
    match first {
        '"' => quoted(value, '"', |inner| !inner.contains(['"', '\\'])),
        '\'' => quoted(value, '\'', |inner| !inner.contains('\'')),
        '{' => json(value),
        '[' => words(value),
        _ if first.is_alphanumeric() && is_plain(value) => Some(yaml::plain(value)),
        _ => None,
    }
}

fn quoted(value: &str, quote: char, is_simple: fn(&str) -> bool) -> Option<Value> {
    let inner = value.strip_prefix(quote)?.strip_suffix(quote)?;
    is_simple(inner).then(|| Value::String(inner.to_owned()))
}

/// Whether nothing in the value ends it early: no comment, no second key.
fn is_plain(value: &str) -> bool {
    let bytes = value.as_bytes();
    !memchr::memchr2_iter(b':', b'#', bytes).any(|at| match bytes[at] {
        b':' => bytes.get(at + 1).is_none_or(|&next| next == b' '),
        _ => at > 0 && bytes[at - 1] == b' ',
    })
}

/// A list of bare words: `[linux, darwin]`.
fn words(value: &str) -> Option<Value> {
    let inner = value.strip_prefix('[')?.strip_suffix(']')?;
    let is_word = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_alphanumeric())
            && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./".contains(&b))
    };
    let items = inner.split(',').map(|word| word.trim_matches(' '));
    items.map(|word| is_word(word).then(|| yaml::plain(word))).collect::<Option<Vec<_>>>().map(Value::Array)
}

/// Strict JSON without escapes and without a key twice; anything else is left to the grammar.
fn json(value: &str) -> Option<Value> {
    let depth = value.bytes().filter(|b| matches!(b, b'{' | b'[')).count();
    if value.contains('\\') || depth > MAX_DEPTH {
        return None;
    }
    serde_json::from_str::<Unique>(value).ok().map(|unique| unique.0)
}

/// A JSON value in which no object has a key twice.
struct Unique(Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UniqueVisitor).map(Unique)
    }
}

struct UniqueVisitor;

impl<'de> Visitor<'de> for UniqueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Bool(flag))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Value, E> {
        Ok(Value::from(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Value, E> {
        i64::try_from(number).map(Value::from).map_err(|_| E::custom("left to the grammar"))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Value, E> {
        Err(E::custom("left to the grammar"))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        Ok(Value::String(text.to_owned()))
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Unique(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some((key, Unique(value))) = entries.next_entry::<String, _>()? {
            if map.insert(key, value).is_some() {
                return Err(A::Error::custom("left to the grammar"));
            }
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::flat;
    use super::*;

    /// What anyone can see of pairs; where a value ends may differ by a comment after it.
    fn seen(text: &str, pairs: &[Pair]) -> Vec<(String, Value, usize, String)> {
        let seen = |pair: &Pair| (pair.key.to_string(), pair.value.clone(), pair.line, flat::text(text, pair));
        pairs.iter().map(seen).collect()
    }

    #[track_caller]
    fn agree(text: &str) -> bool {
        let short = mapping(text);
        if let Some(pairs) = &short {
            let whole = yaml::mapping(text).map(|pairs| seen(text, &pairs));
            assert_eq!(whole, Ok(seen(text, pairs)), "{text:?}");
        }
        short.is_some()
    }

    #[test]
    fn simple_lines_take_the_short_way() {
        for text in [
            "name: weather\ndescription: Get weather, and more.\n",
            "a: \"x: y # z\"\nb: 'it # is'\n",
            "a: true\nb: 12\nc: 1.50\nd: null\ne:\nf: 007\n",
            "# note\n\nname: 日本語\nm: {\"openclaw\":{\"emoji\":\"🌤️\",\"requires\":{\"bins\":[\"a\"]},\"n\":3}}\n",
            "a: b  \nc: d",
            "url: https://x.y/z?a=b#c\n",
            "a: [b, c-d, 1.0, true]\nd:\n  e: f\n\n  g: h\ni: j\n",
            "a: |\n  b: c\n\n  # d\ne: >-\n  f\n  g\n",
            "a:\n  b:\n    c: [d]\n    e: {\"f\": 1}\n  g:\n    - h i\n    - \"j: k\"\n  l:\n\n  m: 1.0\nn: o\n",
            "a:\n   - b\n   - 2\nc: d\n",
            "a: b\n  c\nd: \"e\n  f\"\n",
            "m:\n  {\n    \"k\": [1],\n  }\nn: o\n",
            "m: \n  {\n    \"k\": [1, \"a b\"],\n\n    \"l\": {\"é\": null}\n  }\n\nn: o\n",
        ] {
            assert!(agree(text), "{text:?}");
        }
    }

    #[test]
    fn whatever_is_not_certain_is_left_to_the_grammar() {
        for text in [
            "a: b: c\n",
            "a: *b\n",
            "a: b\na: c\n",
            "- a\n",
            "a: \"x\" y\n",
            "a: {\"b\":1,\"b\":2}\n",
            "a:b\n",
            " a: b\n",
            "a: b\t\n",
            "",
            "a b: c\n",
            "a: &x b\nc: *x\n",
            "a: {\nb: c\n}\n",
            "a: \"b\nc: d\"\n",
            "a:\n- b\n",
            "a: [b,\n",
        ] {
            agree(text);
            assert!(mapping(text).is_none(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn it_never_differs_from_the_grammar(lines in proptest::collection::vec(
            prop_oneof![
                "[a-z-]{1,4}: [ -~é🌤\\t]{0,12}",
                "[a-zA-Z_-]{1,3}:[ ]{0,2}[\"'{}\\[\\]:#,&*!|>%@`a-z0-9. -]{0,10}",
                "[a-z]{1,3}: \\{\"[a-z]{1,2}\":[\\[\\]{}\",:a-z0-9.]{0,8}\\}",
                "[a-z]{1,3}: \\[[a-z0-9, ./_-]{0,9}\\]",
                "[a-z]{1,3}: ?\\n [ {}\"a:,1\\[\\]\\n]{0,14}",
                "[a-z]{1,3}:\\n  \\{ ?\"a\":\\n? ?[1\"\\[\\]{}, ]{0,5}\\n? \\}",
                "[a-z]{1,2}:\\n( {1,4}(- )?[a-z]{1,2}:? ?[a-z\"#{}\\[\\]1]{0,3}\\n){0,5} {0,2}",
                "[a-z]{1,2}:\\n  [a-z]:\\n(    [a-z]: [a-z1]{0,2}\\n){0,3}(  [a-z]:( [a-z])?\\n){0,2}(    - [a-z]\\n){0,2}",
                "[ #-]{0,2}[a-z: #-]{0,6}",
            ], 0..5)) {
            agree(&(lines.join("\n") + "\n"));
        }
    }
}
