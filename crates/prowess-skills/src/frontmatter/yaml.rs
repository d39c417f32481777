//! YAML 1.2 core: what do these lines say?
//!
//! The only file that knows the YAML crate. Events become JSON values: that is what the rest of the system reads, and
//! what the peer turns nested frontmatter into. Everything an author could use to make us work is bounded: depth by
//! the parser's options, alias bombs by [`MAX_COST`].

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use granit_parser::{Event, Parser, ScalarStyle, Span, Tag};
use serde_json::{Map, Value};

/// Levels of nesting a frontmatter may have.
const MAX_DEPTH: usize = 48;
/// Nodes plus bytes of text that a frontmatter may unfold to, aliases included.
const MAX_COST: usize = 1 << 20;

/// Top-level keys a frontmatter may have: looking for one twice takes as many steps as there are keys.
const MAX_KEYS: usize = 1_000;

/// A top-level `key: value` and where it was written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pair {
    pub(crate) key: Cow<'static, str>,
    pub(crate) value: Value,
    /// The line of the key, from 1.
    pub(crate) line: usize,
    /// The bytes of the value, from after the colon to the end of the value.
    pub(crate) source: Range<usize>,
}

/// Why a text is not a YAML mapping, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct YamlError {
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) reason: String,
    pub(crate) fault: Fault,
}

/// What sort of error it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Not YAML.
    Syntax,
    /// The same key twice in one mapping.
    DuplicateKey,
    /// The top level is a list or a scalar.
    NotAMapping,
    /// Nested too deeply or unfolding to too much.
    TooMuch,
}

/// Reads a block as a mapping, keeping the order of its keys.
pub(crate) fn mapping(text: &str) -> Result<Vec<Pair>, YamlError> {
    part(text, &mut 0)
}

/// The same for a part of a block whose other parts unfold to `spent` already, so that the whole is bounded.
pub(crate) fn part(text: &str, spent: &mut usize) -> Result<Vec<Pair>, YamlError> {
    guarded(|| compose(text, spent))
}

/// What `read` finds. A panic in the YAML crate is the fault of one file, and must not take the others along.
fn guarded<T>(read: impl FnOnce() -> Result<T, YamlError>) -> Result<T, YamlError> {
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| {
        let reason = "the YAML parser failed on this text; write it more simply".to_owned();
        Err(YamlError { line: 1, column: 1, reason, fault: Fault::Syntax })
    })
}

fn compose(text: &str, spent: &mut usize) -> Result<Vec<Pair>, YamlError> {
    let options = granit_parser::options! { flow_nesting_limit: MAX_DEPTH, block_nesting_limit: MAX_DEPTH };
    let mut composer =
        Composer { parser: Parser::new_from_str_with_options(text, options), anchors: HashMap::new(), cost: *spent };
    let pairs = composer.document(text)?;
    *spent = composer.cost;
    loop {
        match composer.next()? {
            (Event::StreamEnd, _) => return Ok(pairs),
            (Event::DocumentStart(..), span) => {
                return Err(error(&span, Fault::Syntax, "a second document starts here"));
            }
            _ => {}
        }
    }
}

struct Composer<'a> {
    parser: Parser<'a, granit_parser::StrInput<'a>>,
    anchors: HashMap<usize, (Value, usize)>,
    cost: usize,
}

/// A value with what it took to make it and where it ends.
struct Node {
    value: Value,
    cost: usize,
    end: usize,
}

impl<'a> Composer<'a> {
    fn next(&mut self) -> Result<(Event<'a>, Span), YamlError> {
        match self.parser.next_event() {
            Some(Ok(next)) => Ok(next),
            Some(Err(found)) => Err(YamlError {
                line: found.marker().line(),
                column: found.marker().col() + 1,
                reason: found.info(),
                fault: Fault::Syntax,
            }),
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn document(&mut self, text: &str) -> Result<Vec<Pair>, YamlError> {
        let not_a_mapping =
            |span: &Span| error(span, Fault::NotAMapping, "the frontmatter is not a list of `key: value` lines");
        loop {
            match self.next()? {
                (Event::StreamStart | Event::DocumentStart(..), _) => {}
                (Event::MappingStart(..), span) => {
                    let start = offset(&span.start);
                    return self.pairs(text, start);
                }
                (_, span) => return Err(not_a_mapping(&span)),
            }
        }
    }

    /// The top-level pairs, each with the place of its value in `text`.
    fn pairs(&mut self, text: &str, start: usize) -> Result<Vec<Pair>, YamlError> {
        let mut pairs: Vec<Pair> = Vec::new();
        let mut end = start;
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::MappingEnd) {
                return Ok(pairs);
            }
            let line = span.start.line();
            let key_node = self.node(event, &span, 1)?;
            let key = name(&self.key(&key_node, &span)?);
            if pairs.iter().any(|pair| pair.key == key) {
                return Err(duplicate(&span, &key));
            }
            if pairs.len() == MAX_KEYS {
                return Err(error(&span, Fault::TooMuch, "it has more than a thousand keys"));
            }
            end = end.max(key_node.end);
            let colon = text[end..].find(':').map_or(end, |at| end + at + 1);
            let (event, span) = self.next()?;
            let node = self.node(event, &span, 1)?;
            end = node.end.max(colon);
            pairs.push(Pair { key, value: node.value, line, source: colon..end.min(text.len()) });
        }
    }

    fn node(&mut self, event: Event<'a>, span: &Span, depth: usize) -> Result<Node, YamlError> {
        let (value, cost, end, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let cost = 1 + text.len();
                (scalar(&text, style, tag.as_deref()), cost, offset(&span.end), anchor)
            }
            Event::SequenceStart(_, anchor, _) => {
                let (items, cost, end) = self.sequence(depth + 1)?;
                (Value::Array(items), cost, end, anchor)
            }
            Event::MappingStart(_, anchor, _) => {
                let (map, cost, end) = self.map(depth + 1)?;
                (Value::Object(map), cost, end, anchor)
            }
            Event::Alias(id) => {
                let Some((value, cost)) = self.anchors.get(&id).cloned() else {
                    return Err(error(span, Fault::Syntax, "an alias to a value that is not complete yet"));
                };
                (value, cost, offset(&span.end), 0)
            }
            _ => return Err(error(span, Fault::Syntax, "a value is missing here")),
        };
        self.spend(cost, span)?;
        if depth > MAX_DEPTH {
            return Err(error(span, Fault::TooMuch, "it is nested more than 48 levels deep"));
        }
        if anchor > 0 {
            self.anchors.insert(anchor, (value.clone(), cost));
        }
        Ok(Node { value, cost, end })
    }

    /// The text of a key. One that is itself a map goes by its JSON, in which every level doubles the escapes of the
    /// level below; so the text counts, and a nest of such keys ends at the limit.
    fn key(&mut self, node: &Node, span: &Span) -> Result<String, YamlError> {
        let text = key_text(&node.value);
        self.spend(text.len(), span)?;
        Ok(text)
    }

    fn spend(&mut self, cost: usize, span: &Span) -> Result<(), YamlError> {
        self.cost += cost;
        if self.cost > MAX_COST {
            return Err(error(span, Fault::TooMuch, "it unfolds to more than one mebibyte"));
        }
        Ok(())
    }

    fn sequence(&mut self, depth: usize) -> Result<(Vec<Value>, usize, usize), YamlError> {
        let (mut items, mut cost) = (Vec::new(), 1);
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::SequenceEnd) {
                return Ok((items, cost, offset(&span.end)));
            }
            let node = self.node(event, &span, depth)?;
            cost += node.cost;
            items.push(node.value);
        }
    }

    fn map(&mut self, depth: usize) -> Result<(Map<String, Value>, usize, usize), YamlError> {
        let (mut map, mut cost) = (Map::new(), 1);
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::MappingEnd) {
                return Ok((map, cost, offset(&span.end)));
            }
            let key = self.node(event, &span, depth)?;
            let name = self.key(&key, &span)?;
            let (event, value_span) = self.next()?;
            let value = self.node(event, &value_span, depth)?;
            cost += key.cost + name.len() + value.cost;
            if map.insert(name.clone(), value.value).is_some() {
                return Err(duplicate(&span, &name));
            }
        }
    }
}

fn offset(marker: &granit_parser::Marker) -> usize {
    marker.byte_offset().unwrap_or_else(|| marker.index())
}

fn error(span: &Span, fault: Fault, reason: &str) -> YamlError {
    YamlError { line: span.start.line(), column: span.start.col() + 1, reason: reason.to_owned(), fault }
}

fn duplicate(span: &Span, key: &str) -> YamlError {
    error(span, Fault::DuplicateKey, &format!("the key `{key}` appears twice"))
}

/// A key, without a copy when it is one of those that skills have.
pub(crate) fn name(key: &str) -> Cow<'static, str> {
    const KNOWN: [&str; 16] = [
        "name",
        "description",
        "metadata",
        "homepage",
        "version",
        "author",
        "license",
        "user-invocable",
        "allowed-tools",
        "disable-model-invocation",
        "command-dispatch",
        "command-tool",
        "command-arg-mode",
        "compatibility",
        "tags",
        "emoji",
    ];
    KNOWN.into_iter().find(|known| *known == key).map_or_else(|| Cow::Owned(key.to_owned()), Cow::Borrowed)
}

fn key_text(value: &Value) -> String {
    plain_text(value).unwrap_or_else(|| value.to_string())
}

/// The text of a scalar as the peer prints it; `None` for null, lists and maps.
pub(crate) fn plain_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Number(number) => Some(number_text(number)),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Value {
    match tag.and_then(Tag::core_suffix) {
        Some("str") => return Value::String(text.to_owned()),
        Some("null") => return Value::Null,
        Some(_) => return plain(text),
        // Unknown tags do not fail; the scalar's text is used.
        None if tag.is_some() => return Value::String(text.to_owned()),
        None => {}
    }
    if matches!(style, ScalarStyle::Plain) { plain(text) } else { Value::String(text.to_owned()) }
}

/// The core schema: null, booleans, integers in three bases and floats; `yes`, `on` and dates stay text.
pub(crate) fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => number(text).unwrap_or_else(|| Value::String(text.to_owned())),
    }
}

fn number(text: &str) -> Option<Value> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    if let Some(hex) = text.strip_prefix("0x") {
        return u64::from_str_radix(hex, 16).ok().map(Value::from);
    }
    if let Some(octal) = text.strip_prefix("0o") {
        return u64::from_str_radix(octal, 8).ok().map(Value::from);
    }
    if !digits.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-')) {
        return None;
    }
    let number: f64 = text.parse().ok()?;
    Some(whole(number).map_or_else(|| Value::from(number), Value::from))
}

/// The integer that `number` is, when JavaScript would print it as one.
fn whole(number: f64) -> Option<i64> {
    const SAFE: f64 = 9_007_199_254_740_992.0;
    #[expect(clippy::cast_possible_truncation, reason = "checked to be whole and within 2^53")]
    (number.fract() == 0.0 && number.abs() <= SAFE).then_some(number as i64)
}

/// A number printed as JavaScript prints it.
fn number_text(number: &serde_json::Number) -> String {
    let Some(float) = number.as_f64().filter(|_| number.is_f64()) else {
        return number.to_string();
    };
    if float != 0.0 && !(1e-6..1e21).contains(&float.abs()) {
        let text = format!("{float:e}");
        return if text.contains("e-") { text } else { text.replace('e', "e+") };
    }
    float.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
        let pairs = mapping(text).expect("valid");
        pairs.into_iter().map(|pair| (pair.key.into_owned(), pair.value)).collect::<Map<_, _>>().into()
    }

    #[test]
    fn a_panic_of_the_parser_is_an_error_of_the_text() {
        let failed = guarded(|| -> Result<(), YamlError> { panic!("on purpose") });
        assert_eq!(failed.map_err(|error| error.fault), Err(Fault::Syntax));
    }

    #[test]
    fn core_schema_scalars() {
        let cases = [
            ("yes", "\"yes\""),
            ("on", "\"on\""),
            ("true", "true"),
            ("2024-01-02", "\"2024-01-02\""),
            ("1.0", "1"),
            ("1e3", "1000"),
            ("007", "7"),
            ("0x10", "16"),
            ("0o17", "15"),
            ("1.2.3", "\"1.2.3\""),
            ("-.5", "-0.5"),
            (".", "\".\""),
            ("~", "null"),
            ("!!str 1", "\"1\""),
            ("!custom d", "\"d\""),
            ("\"3\"", "\"3\""),
        ];
        for (yaml, json) in cases {
            assert_eq!(value(&format!("k: {yaml}\n"))["k"].to_string(), json, "{yaml}");
        }
    }

    #[test]
    fn numbers_print_as_in_javascript() {
        for (yaml, text) in [("1e21", "1e+21"), ("123456789012345678901", "123456789012345680000"), ("1.50", "1.5")] {
            assert_eq!(plain_text(&value(&format!("k: {yaml}\n"))["k"]).as_deref(), Some(text));
        }
    }

    #[test]
    fn aliases_work_and_merge_keys_are_ordinary() {
        assert_eq!(
            value("base: &b {k: v}\nextra:\n  <<: *b\n").to_string(),
            r#"{"base":{"k":"v"},"extra":{"<<":{"k":"v"}}}"#
        );
    }

    #[test]
    fn duplicate_keys_are_an_error_at_any_depth() {
        for text in ["a: 1\na: 2\n", "a: {b: 1, b: 2}\n"] {
            assert_eq!(mapping(text).map_err(|found| found.fault), Err(Fault::DuplicateKey));
        }
    }

    #[test]
    fn alias_bombs_and_depth_are_refused() {
        let level = |level: usize| {
            let last = format!("*a{}", level - 1);
            format!("a{level}: &a{level} [{}]\n", [last.as_str(); 9].join(","))
        };
        let bomb = format!("a0: &a0 [xxxxxxxxxx]\n{}", (1..30).map(level).collect::<String>());
        assert_eq!(mapping(&bomb).map_err(|found| found.fault), Err(Fault::TooMuch));
        let deep = format!("a: {}{}\n", "[".repeat(10_000), "]".repeat(10_000));
        assert!(mapping(&deep).is_err());
    }

    #[test]
    fn the_source_of_a_value_is_remembered() {
        let text = "a: x\nm: {\"k\": [1,\n  2]}\nb:\n  c: d\n";
        let pairs = mapping(text).expect("valid");
        let sources: Vec<&str> = pairs.iter().map(|pair| text[pair.source.clone()].trim()).collect();
        assert_eq!(sources, ["x", "{\"k\": [1,\n  2]}", "c: d"]);
        assert_eq!(pairs.iter().map(|pair| pair.line).collect::<Vec<_>>(), [1, 2, 4]);
    }
}
