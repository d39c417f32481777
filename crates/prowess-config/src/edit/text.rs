//! What does the file's text look like after a change?
//!
//! A pure function from text to text, over a syntax tree that keeps everything a person wrote.

use std::path::Path;

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstObjectProp, CstRootNode};
use serde_json::Value;

use super::{Change, EditError};
use crate::config::new_container;
use crate::source;
use crate::tree::{assign, empty, lookup, position, remove, trim};
use crate::{FlagError, KeyPath};

const BYTE_ORDER_MARK: char = '\u{feff}';

/// What a blank or missing file starts as.
const BLANK: &str = "{}\n";

/// `text` with the change made; the same text when it already says so.
pub(crate) fn rewrite(text: &str, change: &Change, file: &Path) -> Result<String, EditError> {
    let (mark, body) = match text.strip_prefix(BYTE_ORDER_MARK) {
        Some(body) => (&text[..BYTE_ORDER_MARK.len_utf8()], body),
        None => ("", text),
    };
    let is_blank = trim(body).is_empty();
    let before = if is_blank { empty() } else { source::parse_section(body, file)? };
    let after = expected(&before, change)?;
    if same(&before, &after) {
        return Ok(text.to_owned());
    }
    let body = if is_blank { BLANK } else { body };
    let root = parse(body, file)?;
    let unfaithful = || EditError::Unfaithful { path: change.path().clone(), file: file.to_owned() };
    perform(&root, change, &after).ok_or_else(unfaithful)?;
    let new = format!("{mark}{root}");
    // The syntax tree and our reader are two readers; only what both agree on is written.
    let is_faithful = same(&source::parse_section(&new, file)?, &after);
    if is_faithful { Ok(new) } else { Err(unfaithful()) }
}

/// The tree the changed text must have.
fn expected(before: &Value, change: &Change) -> Result<Value, EditError> {
    let mut after = before.clone();
    match change {
        Change::Set(path, value) => {
            assign(&mut after, path.segments(), value.clone(), new_container).map_err(|obstacle| {
                let way: KeyPath = path.segments()[..obstacle.depth].iter().collect();
                FlagError::Blocked { path: path.clone(), obstacle: way, found: obstacle.found }
            })?;
        }
        Change::Unset(path) => drop(remove(&mut after, path.segments())),
    }
    Ok(after)
}

fn parse(text: &str, file: &Path) -> Result<CstRootNode, EditError> {
    let options = ParseOptions { allow_missing_commas: false, ..ParseOptions::default() };
    CstRootNode::parse(text, &options).map_err(|error| EditError::Notation {
        file: file.to_owned(),
        line: error.line_display(),
        column: error.column_display(),
        reason: error.kind().to_string(),
    })
}

/// Changes the syntax tree; `None` when it does not have the shape that the values have.
fn perform(root: &CstRootNode, change: &Change, after: &Value) -> Option<()> {
    let mut here: CstNode = root.object_value()?.into();
    let segments = change.path().segments();
    for (depth, segment) in segments.iter().enumerate() {
        let is_last = depth + 1 == segments.len();
        let next = child(&here, segment)?;
        match (change, next) {
            (Change::Unset(_), next) if is_last => return next.remove(),
            (Change::Set(..), next) if is_last || !next.exists() => {
                // What is missing on the way is made together with the value.
                return next.put(input(lookup(after, &segments[..=depth])?));
            }
            (_, next) => here = next.value()?,
        }
    }
    None
}

/// A place in a section or list.
enum Place {
    /// All properties of this name; our reader takes the last of them.
    Key(CstObject, String, Vec<CstObjectProp>),
    Item(CstArray, usize),
}

fn child(container: &CstNode, segment: &str) -> Option<Place> {
    if let Some(object) = container.as_object() {
        let named = |property: &CstObjectProp| property.decoded_name().as_deref() == Some(segment);
        let properties = object.properties().into_iter().filter(named).collect();
        return Some(Place::Key(object, segment.to_owned(), properties));
    }
    Some(Place::Item(container.as_array()?, position(segment)?))
}

impl Place {
    fn exists(&self) -> bool {
        match self {
            Self::Key(_, _, properties) => !properties.is_empty(),
            Self::Item(array, at) => *at < array.elements().len(),
        }
    }

    fn value(&self) -> Option<CstNode> {
        match self {
            Self::Key(_, _, properties) => properties.last()?.value(),
            Self::Item(array, at) => array.elements().get(*at).cloned(),
        }
    }

    fn remove(self) -> Option<()> {
        match self {
            Self::Key(_, _, properties) => properties.into_iter().for_each(CstObjectProp::remove),
            Self::Item(array, at) => array.elements().get(at).cloned()?.remove(),
        }
        Some(())
    }

    fn put(self, value: CstInputValue) -> Option<()> {
        match self {
            Self::Key(object, name, properties) => match properties.last() {
                Some(property) => property.set_value(value),
                None => drop(object.append(&name, value)),
            },
            Self::Item(array, at) if at < array.elements().len() => {
                array.elements().get(at).cloned()?.remove();
                array.insert(at, value);
            }
            Self::Item(array, _) => drop(array.append(value)),
        }
        Some(())
    }
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(on) => CstInputValue::Bool(*on),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(map) => {
            CstInputValue::Object(map.iter().map(|(key, value)| (key.clone(), input(value))).collect())
        }
    }
}

/// Equality, except that two readers may round the last digit of a fraction differently.
pub(crate) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Number(x), Value::Number(y)) if x.is_f64() && y.is_f64() => match (x.as_f64(), y.as_f64()) {
            (Some(x), Some(y)) => (x - y).abs() <= x.abs() * 4.0 * f64::EPSILON,
            _ => false,
        },
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::{Value, json};

    use super::rewrite;
    use crate::FlagError;
    use crate::edit::{Change, EditError};

    fn change(text: &str, change: &Change) -> Result<String, EditError> {
        rewrite(text, change, Path::new("c.json"))
    }

    fn set(text: &str, path: &str, value: Value) -> String {
        change(text, &Change::Set(path.parse().expect(path), value)).expect(text)
    }

    fn unset(text: &str, path: &str) -> String {
        change(text, &Change::Unset(path.parse().expect(path))).expect(text)
    }

    const COMMENTED: &str = "\
// my settings
{
  skills: {
    load: { watch: true }, // live
    'entries': {
      // the weather
      weather: { enabled: false, apiKey: '${WEATHER_KEY}', },
    },
  },
  limit: 0x10, /* hex */
}
";

    #[test]
    fn keeps_everything_else() {
        assert_eq!(set(COMMENTED, "skills.load.watch", json!(false)), COMMENTED.replace("watch: true", "watch: false"));
        assert_eq!(set(COMMENTED, "limit", json!(3)), COMMENTED.replace("0x10", "3"));
        assert_eq!(
            set(COMMENTED, "skills.entries.weather.enabled", json!(true)),
            COMMENTED.replace("enabled: false", "enabled: true")
        );
        assert_eq!(unset(COMMENTED, "skills.entries.weather.enabled"), COMMENTED.replace("enabled: false, ", ""));
        let more = set(COMMENTED, "skills.entries.'my.skill'.env.CITY", json!("Rome"));
        assert!(more.starts_with("// my settings\n{\n  skills: {\n    load: { watch: true }, // live\n"), "{more}");
        assert!(more.contains("apiKey: '${WEATHER_KEY}', },\n      \"my.skill\": {\n"), "{more}");
        assert_eq!(set(COMMENTED, "limit", json!(16)), COMMENTED, "nothing to do");
        assert_eq!(unset(COMMENTED, "no.such"), COMMENTED, "nothing to do");
    }

    #[test]
    fn starts_from_nothing() {
        for blank in ["", " \n", "{}\n"] {
            assert_eq!(set(blank, "a.b", json!([1])), "{\n  \"a\": {\n    \"b\": [1]\n  }\n}\n", "{blank:?}");
        }
        assert_eq!(
            set("", "agents.list.0.id", json!("x")).replace([' ', '\n'], ""),
            r#"{"agents":{"list":[{"id":"x"}]}}"#
        );
        assert_eq!(set("\u{feff}{a:1}", "a", json!(2)), "\u{feff}{a:2}");
    }

    #[test]
    fn lists_by_position() {
        assert_eq!(set("{a:[1,2]}", "a.1", json!(5)), "{a:[1, 5]}");
        assert_eq!(set("{a:[1]}", "a[1]", json!(5)), "{a:[1, 5]}");
        assert_eq!(unset("{a:[1, 2, 3]}", "a.1"), "{a:[1, 3]}");
    }

    #[test]
    fn the_last_of_two_equal_keys_is_the_one() {
        assert_eq!(set("{a:1,a:2}", "a", json!(3)), "{a:1,a:3}");
        assert_eq!(unset("{a:1,b:0,a:2}", "a").replace(' ', ""), "{b:0}");
    }

    #[test]
    fn refuses_what_it_cannot_do() {
        let error = change("{a:1}", &Change::Set("a.b".parse().expect("path"), json!(1))).expect_err("blocked");
        assert_eq!(error.to_string(), "`a.b` cannot be set, because `a` is a number; change that first");
        let error = change("{a:[]}", &Change::Set("a.1".parse().expect("path"), json!(1))).expect_err("blocked");
        assert!(matches!(error, EditError::Value(FlagError::Blocked { .. })));
        let error =
            change("{\\u0061: 1}", &Change::Set("a".parse().expect("path"), json!(2))).expect_err("escaped key");
        assert!(matches!(error, EditError::Notation { line: 1, .. }), "{error}");
        let error = change("{a:", &Change::Unset("a".parse().expect("path"))).expect_err("broken");
        assert!(matches!(error, EditError::Source(_)));
    }
}
