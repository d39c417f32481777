//! Parameters: is what a client sent of the shape that a method takes?
//!
//! A method says what it takes as a table, and everything else is refused before the method sees it: unknown names,
//! missing ones, wrong kinds. What is wrong is told the way OpenClaw's gateway tells it, all of it at once.
//!
//! ```
//! use prowess_gateway::params::{Shape, TEXT, integer_from, optional, required, shape};
//! use serde_json::json;
//!
//! const SHAPE: Shape = shape(&[required("nodeId", TEXT), optional("timeoutMs", integer_from(1000))]);
//! let refusal = SHAPE.check("node.wake", &json!({"timeoutMs": 1, "x": 1})).expect_err("three things are wrong");
//! assert_eq!(
//!     refusal.message,
//!     "invalid node.wake params: must have required property 'nodeId'; at root: unexpected property 'x'; \
//!      at /timeoutMs: must be >= 1000"
//! );
//! ```

use std::fmt::Write;

use serde_json::{Map, Value};

use crate::wire::Refusal;

/// How many complaints are told; who makes more mistakes finds the rest later.
const MAX_COMPLAINTS: usize = 16;

/// How many characters of a name that came from outside are repeated.
const MAX_NAME: usize = 100;

/// The fields of an object. Others are refused.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    fields: &'static [Field],
}

/// One field of an object.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    name: &'static str,
    kind: Kind,
    need: Need,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    Required,
    Optional,
}

/// What a value has to be.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// Whatever it is.
    Any,
    /// A text of so many UTF-16 units.
    Text {
        /// At least.
        min: usize,
        /// At most.
        max: usize,
    },
    /// A whole number.
    Integer {
        /// At least.
        min: i64,
        /// At most.
        max: i64,
    },
    /// Any number from here on.
    Number {
        /// At least.
        min: f64,
    },
    /// `true` or `false`.
    Bool,
    /// `null`.
    Null,
    /// This text.
    Constant(&'static str),
    /// One of these texts.
    Choice(&'static [&'static str]),
    /// One of these kinds.
    Either(&'static [Kind]),
    /// An array of at least so many.
    List {
        /// What each of them is.
        of: &'static Kind,
        /// At least.
        min: usize,
    },
    /// An object with any names.
    Map(&'static Kind),
    /// An object with these fields.
    Object(Shape),
}

/// A text that is not empty.
pub const TEXT: Kind = Kind::Text { min: 1, max: usize::MAX };

/// A text that may be empty.
pub const ANY_TEXT: Kind = Kind::Text { min: 0, max: usize::MAX };

/// `true` or `false`.
pub const BOOL: Kind = Kind::Bool;

/// Whatever it is.
pub const ANY: Kind = Kind::Any;

/// A whole number.
pub const INTEGER: Kind = Kind::Integer { min: i64::MIN, max: i64::MAX };

/// Texts that are not empty.
pub const TEXTS: Kind = list(&TEXT);

/// A method that takes nothing.
pub const NOTHING: Shape = shape(&[]);

/// An object with these fields and no others.
#[must_use]
pub const fn shape(fields: &'static [Field]) -> Shape {
    Shape { fields }
}

/// A field that has to be there.
#[must_use]
pub const fn required(name: &'static str, kind: Kind) -> Field {
    Field { name, kind, need: Need::Required }
}

/// A field that may be left out.
#[must_use]
pub const fn optional(name: &'static str, kind: Kind) -> Field {
    Field { name, kind, need: Need::Optional }
}

/// A whole number of at least `min`.
#[must_use]
pub const fn integer_from(min: i64) -> Kind {
    Kind::Integer { min, max: i64::MAX }
}

/// A whole number between both, which are allowed.
#[must_use]
pub const fn integer_within(min: i64, max: i64) -> Kind {
    Kind::Integer { min, max }
}

/// A text of at most `max` UTF-16 units.
#[must_use]
pub const fn text_up_to(max: usize) -> Kind {
    Kind::Text { min: 0, max }
}

/// One of these texts.
#[must_use]
pub const fn choice(of: &'static [&'static str]) -> Kind {
    Kind::Choice(of)
}

/// Any number of these.
#[must_use]
pub const fn list(of: &'static Kind) -> Kind {
    Kind::List { of, min: 0 }
}

/// An object with these fields.
#[must_use]
pub const fn object(fields: &'static [Field]) -> Kind {
    Kind::Object(shape(fields))
}

/// An object with any names.
#[must_use]
pub const fn map(of: &'static Kind) -> Kind {
    Kind::Map(of)
}

impl Shape {
    /// Refuses `params` unless they are what `method` takes. No parameters are the same as none of the fields.
    pub fn check(&self, method: &str, params: &Value) -> Result<(), Refusal> {
        let complaints = match params {
            Value::Null => self.complaints(&Value::Object(Map::new())),
            given => self.complaints(given),
        };
        if complaints.is_empty() {
            return Ok(());
        }
        Err(Refusal::invalid(format!("invalid {method} params: {}", complaints.join("; "))))
    }

    /// Everything that is wrong with `value`, each thing once.
    #[must_use]
    pub fn complaints(&self, value: &Value) -> Vec<String> {
        let mut found = Complaints::default();
        self.look(value, &mut found);
        found.told
    }

    fn look(&self, value: &Value, found: &mut Complaints) {
        let Value::Object(object) = value else { return found.tell("must be object") };
        for field in self.fields {
            if field.need == Need::Required && !object.contains_key(field.name) {
                found.tell(&format!("must have required property '{}'", field.name));
            }
        }
        for name in object.keys().filter(|name| self.fields.iter().all(|field| field.name != name.as_str())) {
            found.tell_unexpected(name);
        }
        for field in self.fields {
            if let Some(value) = object.get(field.name) {
                found.inside(field.name, |found| field.kind.look(value, found));
            }
        }
    }
}

impl Kind {
    fn look(&self, value: &Value, found: &mut Complaints) {
        match *self {
            Self::Any => {}
            Self::Text { min, max } => look_at_text(value, min, max, found),
            Self::Integer { min, max } => look_at_integer(value, min, max, found),
            Self::Number { min } => match value.as_f64() {
                None => found.tell("must be number"),
                Some(number) if number < min => found.tell(&format!("must be >= {min}")),
                Some(_) => {}
            },
            Self::Bool => found.tell_unless(value.is_boolean(), "must be boolean"),
            Self::Null => found.tell_unless(value.is_null(), "must be null"),
            Self::Constant(text) => found.tell_unless(value.as_str() == Some(text), "must be equal to constant"),
            Self::Choice(of) => {
                if !value.as_str().is_some_and(|text| of.contains(&text)) {
                    found.tell("must be equal to constant");
                    found.tell("must match a schema in anyOf");
                }
            }
            Self::Either(kinds) => look_at_either(value, kinds, found),
            Self::List { of, min } => look_at_list(value, of, min, found),
            Self::Map(of) => match value {
                Value::Object(object) => {
                    for (name, value) in object {
                        found.inside(name, |found| of.look(value, found));
                    }
                }
                _ => found.tell("must be object"),
            },
            Self::Object(shape) => shape.look(value, found),
        }
    }
}

fn look_at_text(value: &Value, min: usize, max: usize, found: &mut Complaints) {
    let Some(text) = value.as_str() else { return found.tell("must be string") };
    // Characters are counted as JavaScript counts them, and only where it matters.
    if min > 0 && text.len() < min.saturating_mul(3) && text.encode_utf16().count() < min {
        found.tell(&format!("must NOT have fewer than {min} characters"));
    }
    if text.len() > max && text.encode_utf16().count() > max {
        found.tell(&format!("must NOT have more than {max} characters"));
    }
}

fn look_at_integer(value: &Value, min: i64, max: i64, found: &mut Complaints) {
    // 3.0 is a whole number to JavaScript.
    let Some(number) = value.as_f64().filter(|number| number.fract() == 0.0) else {
        return found.tell("must be integer");
    };
    #[expect(clippy::cast_precision_loss, reason = "bounds are small, and JavaScript compares doubles")]
    let (low, high) = (min as f64, max as f64);
    if number < low {
        found.tell(&format!("must be >= {min}"));
    }
    if number > high {
        found.tell(&format!("must be <= {max}"));
    }
}

fn look_at_either(value: &Value, kinds: &[Kind], found: &mut Complaints) {
    let mut all = Vec::new();
    for kind in kinds {
        let mut each = Complaints { path: found.path.clone(), told: Vec::new() };
        kind.look(value, &mut each);
        if each.told.is_empty() {
            return;
        }
        all.append(&mut each.told);
    }
    for complaint in all {
        found.add(complaint);
    }
    found.tell("must match a schema in anyOf");
}

fn look_at_list(value: &Value, of: &Kind, min: usize, found: &mut Complaints) {
    let Value::Array(items) = value else { return found.tell("must be array") };
    if items.len() < min {
        found.tell(&format!("must NOT have fewer than {min} items"));
    }
    for (index, item) in items.iter().enumerate() {
        found.inside(&index.to_string(), |found| of.look(item, found));
    }
}

/// What is wrong so far, and where we are.
#[derive(Default)]
struct Complaints {
    path: String,
    told: Vec<String>,
}

impl Complaints {
    fn tell(&mut self, what: &str) {
        let complaint = if self.path.is_empty() { what.to_owned() } else { format!("at {}: {what}", self.path) };
        self.add(complaint);
    }

    fn tell_unless(&mut self, is_right: bool, what: &str) {
        if !is_right {
            self.tell(what);
        }
    }

    fn tell_unexpected(&mut self, name: &str) {
        let place = if self.path.is_empty() { "root" } else { &self.path };
        let name: String = name.chars().take(MAX_NAME).collect();
        self.add(format!("at {place}: unexpected property '{name}'"));
    }

    fn add(&mut self, complaint: String) {
        if self.told.len() < MAX_COMPLAINTS && !self.told.contains(&complaint) {
            self.told.push(complaint);
        }
    }

    /// Looks at something below, unless enough was found already.
    fn inside(&mut self, name: &str, look: impl FnOnce(&mut Self)) {
        if self.told.len() >= MAX_COMPLAINTS {
            return;
        }
        let length = self.path.len();
        self.path.push('/');
        for char in name.chars().take(MAX_NAME) {
            // As in a JSON pointer.
            let written = match char {
                '~' => self.path.write_str("~0"),
                '/' => self.path.write_str("~1"),
                other => self.path.write_char(other),
            };
            debug_assert!(written.is_ok(), "a string takes everything");
        }
        look(self);
        self.path.truncate(length);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const SAMPLE: Shape = shape(&[
        required("name", TEXT),
        required("mode", choice(&["a", "b"])),
        optional("note", text_up_to(3)),
        optional("count", integer_within(1, 10)),
        optional("ratio", Kind::Number { min: 0.5 }),
        optional("on", BOOL),
        optional("tags", TEXTS),
        optional("flags", map(&BOOL)),
        optional("inner", object(&[required("id", TEXT), optional("x", ANY)])),
        optional("maybe", Kind::Either(&[TEXT, Kind::Null])),
        optional("many", Kind::List { of: &INTEGER, min: 1 }),
    ]);

    fn complaints(value: &Value) -> String {
        SAMPLE.complaints(value).join("; ")
    }

    #[test]
    fn each_kind_has_its_complaint() {
        let with = |name: &str, value: Value| {
            let mut params = json!({"name": "n", "mode": "a"});
            params[name] = value;
            complaints(&params)
        };
        let cases = [
            ("name", json!(""), "at /name: must NOT have fewer than 1 characters"),
            ("name", json!(1), "at /name: must be string"),
            ("mode", json!("c"), "at /mode: must be equal to constant; at /mode: must match a schema in anyOf"),
            ("note", json!("👍👍"), "at /note: must NOT have more than 3 characters"),
            ("note", json!("äöü"), ""),
            ("count", json!(0), "at /count: must be >= 1"),
            ("count", json!(11), "at /count: must be <= 10"),
            ("count", json!(1.5), "at /count: must be integer"),
            ("count", json!(3.0), ""),
            ("ratio", json!(0.25), "at /ratio: must be >= 0.5"),
            ("ratio", json!("1"), "at /ratio: must be number"),
            ("on", json!("yes"), "at /on: must be boolean"),
            ("tags", json!({}), "at /tags: must be array"),
            ("tags", json!(["x", ""]), "at /tags/1: must NOT have fewer than 1 characters"),
            ("flags", json!({"a/b~c": 1}), "at /flags/a~1b~0c: must be boolean"),
            ("inner", json!([]), "at /inner: must be object"),
            (
                "inner",
                json!({"x": 1, "y": 2}),
                "at /inner: must have required property 'id'; at /inner: unexpected property 'y'",
            ),
            ("maybe", json!(null), ""),
            (
                "maybe",
                json!(1),
                "at /maybe: must be string; at /maybe: must be null; at /maybe: must match a schema in anyOf",
            ),
            ("many", json!([]), "at /many: must NOT have fewer than 1 items"),
        ];
        for (name, value, expected) in cases {
            assert_eq!(with(name, value.clone()), expected, "{name}: {value}");
        }
    }

    #[test]
    fn what_is_missing_comes_before_what_is_too_much_and_that_before_what_is_wrong() {
        let told = complaints(&json!({"zzz": 1, "on": 1}));
        assert_eq!(
            told,
            "must have required property 'name'; must have required property 'mode'; at root: unexpected property \
             'zzz'; at /on: must be boolean"
        );
    }

    #[test]
    fn nothing_is_the_same_as_no_fields() {
        assert!(NOTHING.check("m", &Value::Null).is_ok());
        let refusal = NOTHING.check("skills.status", &json!({"x": 1})).expect_err("it takes nothing");
        assert_eq!(refusal.message, "invalid skills.status params: at root: unexpected property 'x'");
        assert_eq!(NOTHING.check("m", &json!([])).expect_err("no object").message, "invalid m params: must be object");
    }

    #[test]
    fn complaints_are_bounded_whatever_is_sent() {
        let names: Map<String, Value> = (0..10_000).map(|index| (format!("{index:0<500}"), Value::Null)).collect();
        let told = SAMPLE.complaints(&Value::Object(names));
        assert_eq!(told.len(), MAX_COMPLAINTS);
        assert!(told.iter().all(|complaint| complaint.len() < 2 * MAX_NAME + 50));
    }

    proptest! {
        #[test]
        fn whatever_is_sent_is_judged(text in "\\PC*") {
            let value = serde_json::from_str(&text).unwrap_or(Value::String(text));
            prop_assert!(!SAMPLE.complaints(&value).is_empty());
        }
    }
}
