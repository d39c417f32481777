//! How does one walk and change a tree of values, and remember which file each part came from?

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::KeyPath;

/// Which file a value came from: an index into the list of files, and where parts of it differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) file: usize,
    parts: Parts,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Parts {
    /// Everything below is from the same file.
    Same,
    Keys(BTreeMap<String, Origin>),
    Items(Vec<Origin>),
}

impl Origin {
    pub(crate) fn new(file: usize) -> Self {
        Self { file, parts: Parts::Same }
    }

    pub(crate) fn of_keys(file: usize, keys: BTreeMap<String, Origin>) -> Self {
        let mixed = keys.values().any(|key| !key.is_only(file));
        Self { file, parts: if mixed { Parts::Keys(keys) } else { Parts::Same } }
    }

    pub(crate) fn of_items(file: usize, items: Vec<Origin>) -> Self {
        let mixed = items.iter().any(|item| !item.is_only(file));
        Self { file, parts: if mixed { Parts::Items(items) } else { Parts::Same } }
    }

    fn is_only(&self, file: usize) -> bool {
        self.file == file && self.parts == Parts::Same
    }

    pub(crate) fn key(&self, key: &str) -> Self {
        match &self.parts {
            Parts::Keys(keys) => keys.get(key).cloned().unwrap_or_else(|| Self::new(self.file)),
            Parts::Same | Parts::Items(_) => Self::new(self.file),
        }
    }

    pub(crate) fn item(&self, position: usize) -> Self {
        match &self.parts {
            Parts::Items(items) => items.get(position).cloned().unwrap_or_else(|| Self::new(self.file)),
            Parts::Same | Parts::Keys(_) => Self::new(self.file),
        }
    }

    /// The file of the value at `path`.
    pub(crate) fn file_of(&self, path: &[String]) -> usize {
        let mut here = self;
        for segment in path {
            let next = match &here.parts {
                Parts::Same => None,
                Parts::Keys(keys) => keys.get(segment),
                Parts::Items(items) => position(segment).and_then(|at| items.get(at)),
            };
            match next {
                Some(next) => here = next,
                None => break,
            }
        }
        here.file
    }

    /// The first file other than the configuration itself that has a part in the value at `path`.
    pub(crate) fn foreign(&self, path: &[String]) -> Option<usize> {
        match path.split_first() {
            Some((segment, rest)) => {
                let next = match &self.parts {
                    Parts::Same => Self::new(self.file),
                    Parts::Keys(_) => self.key(segment),
                    Parts::Items(_) => self.item(position(segment)?),
                };
                next.foreign(rest)
            }
            None if self.file != 0 => Some(self.file),
            None => match &self.parts {
                Parts::Same => None,
                Parts::Keys(keys) => keys.values().find_map(|key| key.foreign(&[])),
                Parts::Items(items) => items.iter().find_map(|item| item.foreign(&[])),
            },
        }
    }

    /// Says that the value at `to`, a key in the same section as `from`, came from where `from` came from.
    pub(crate) fn copy(&mut self, from: &[String], to: &[String]) {
        let Some((first, rest)) = to.split_first() else { return };
        let Parts::Keys(keys) = &mut self.parts else { return };
        if rest.is_empty() {
            if let Some(origin) = from.first().and_then(|from| keys.get(from)).cloned() {
                keys.insert(first.clone(), origin);
            }
        } else if let (Some(next), Some(from)) = (keys.get_mut(first), from.get(1..)) {
            next.copy(from, rest);
        }
    }

    /// Forgets the item or key at `path`, so that what follows it in a list moves up.
    fn forget(&mut self, path: &[String]) {
        let Some((first, rest)) = path.split_first() else { return };
        match &mut self.parts {
            Parts::Same => {}
            Parts::Keys(keys) if rest.is_empty() => drop(keys.remove(first)),
            Parts::Keys(keys) => {
                if let Some(next) = keys.get_mut(first) {
                    next.forget(rest);
                }
            }
            Parts::Items(items) => {
                let Some(at) = position(first).filter(|&at| at < items.len()) else { return };
                if rest.is_empty() {
                    items.remove(at);
                } else {
                    items[at].forget(rest);
                }
            }
        }
    }
}

/// The way from the root to a value, as a chain on the stack: most values are looked at without anybody asking for their path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trail<'a> {
    above: Option<&'a Trail<'a>>,
    name: &'a str,
    is_item: bool,
}

impl<'a> Trail<'a> {
    pub(crate) const ROOT: Self = Self { above: None, name: "", is_item: false };

    pub(crate) fn key(&'a self, name: &'a str) -> Self {
        Self { above: Some(self), name, is_item: false }
    }

    pub(crate) fn item(&'a self, position: &'a str) -> Self {
        Self { above: Some(self), name: position, is_item: true }
    }

    pub(crate) fn name(&self) -> &'a str {
        self.name
    }

    /// Whether it is a position in a list.
    pub(crate) fn is_item(&self) -> bool {
        self.is_item
    }

    pub(crate) fn path(&self) -> KeyPath {
        let mut names: Vec<&str> = std::iter::successors(Some(self), |trail| trail.above).map(|one| one.name).collect();
        // The root has no name.
        names.pop();
        names.into_iter().rev().collect()
    }
}

/// A tree of values together with where they came from.
#[derive(Debug, Clone)]
pub(crate) struct Tree {
    pub(crate) value: Value,
    pub(crate) origin: Origin,
}

/// One correction of a tree. A list of them is applied from the last to the first, so positions stay right.
#[derive(Debug)]
pub(crate) struct Fix {
    pub(crate) path: KeyPath,
    /// `None` removes the value.
    pub(crate) value: Option<Value>,
}

impl Tree {
    pub(crate) fn apply(&mut self, fixes: Vec<Fix>) {
        for fix in fixes.into_iter().rev() {
            let path = fix.path.segments();
            match fix.value {
                Some(value) => {
                    if let Some(place) = lookup_mut(&mut self.value, path) {
                        *place = value;
                    }
                }
                None => {
                    if remove(&mut self.value, path) {
                        self.origin.forget(path);
                    }
                }
            }
        }
    }
}

/// A list position: decimal digits without extra zeros.
pub(crate) fn position(segment: &str) -> Option<usize> {
    let plain = segment == "0" || !segment.starts_with('0');
    if plain && segment.bytes().all(|b| b.is_ascii_digit()) { segment.parse().ok() } else { None }
}

pub(crate) fn lookup<'a>(value: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(value, |here, segment| match here {
        Value::Object(map) => map.get(segment),
        Value::Array(items) => items.get(position(segment)?),
        _ => None,
    })
}

pub(crate) fn lookup_mut<'a>(value: &'a mut Value, path: &[String]) -> Option<&'a mut Value> {
    path.iter().try_fold(value, |here, segment| match here {
        Value::Object(map) => map.get_mut(segment),
        Value::Array(items) => items.get_mut(position(segment)?),
        _ => None,
    })
}

/// Removes the value at `path`; says whether there was one.
pub(crate) fn remove(value: &mut Value, path: &[String]) -> bool {
    let Some((last, parents)) = path.split_last() else { return false };
    match lookup_mut(value, parents) {
        Some(Value::Object(map)) => map.shift_remove(last).is_some(),
        Some(Value::Array(items)) => match position(last).filter(|&at| at < items.len()) {
            Some(at) => {
                items.remove(at);
                true
            }
            None => false,
        },
        _ => false,
    }
}

/// Why a value cannot be put at a path: how many segments lead to the obstacle, and what it is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Obstacle {
    pub(crate) depth: usize,
    pub(crate) found: &'static str,
}

/// Puts `new` at `path`; `new_container` makes what is missing on the way there.
pub(crate) fn assign(
    value: &mut Value,
    path: &[String],
    new: Value,
    new_container: impl Fn(&[String]) -> Value,
) -> Result<(), Obstacle> {
    let mut here = value;
    for depth in 0..path.len() {
        let segment = &path[depth];
        let found = type_name(here);
        let missing = || if depth + 1 == path.len() { Value::Null } else { new_container(&path[..=depth]) };
        here = match here {
            Value::Object(map) => map.entry(segment.as_str()).or_insert_with(missing),
            Value::Array(items) => {
                let at = position(segment).filter(|&at| at <= items.len()).ok_or(Obstacle { depth, found })?;
                if at == items.len() {
                    items.push(missing());
                }
                &mut items[at]
            }
            _ => return Err(Obstacle { depth, found }),
        };
    }
    *here = new;
    Ok(())
}

/// What a person would call the type of this value.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a switch",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a section",
    }
}

pub(crate) fn empty() -> Value {
    Value::Object(Map::new())
}

/// Strips white space the way the peer does, which counts the byte order mark as such.
pub(crate) fn trim(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}')
}

/// A list of names: trimmed, without blanks. `None` when it is not a list.
pub(crate) fn names(value: &Value) -> Option<Vec<String>> {
    let items = value.as_array()?.iter().filter_map(Value::as_str).map(trim);
    Some(items.filter(|name| !name.is_empty()).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Fix, Obstacle, Origin, Tree, assign, empty, position};

    #[test]
    fn positions_are_plain_numbers() {
        assert_eq!(
            ["0", "12", "01", "-1", "", "x", "1e3"].map(position),
            [Some(0), Some(12), None, None, None, None, None]
        );
    }

    #[test]
    fn removing_a_list_item_moves_origins_up() {
        let items = vec![Origin::new(0), Origin::new(1), Origin::new(2)];
        let mut tree = Tree { value: json!([1, 2, 3]), origin: Origin::of_items(2, items) };
        tree.apply(vec![Fix { path: ["1"].into_iter().collect(), value: None }]);
        assert_eq!(tree.value, json!([1, 3]));
        assert_eq!(tree.origin.file_of(&["1".to_owned()]), 2);
    }

    #[test]
    fn assign_makes_what_is_missing_and_stops_at_scalars() {
        let path = |text: &str| text.split('.').map(str::to_owned).collect::<Vec<_>>();
        let mut value = json!({ "a": 1, "l": [0] });
        assert_eq!(assign(&mut value, &path("b.c"), json!(2), |_| empty()), Ok(()));
        assert_eq!(assign(&mut value, &path("l.1"), json!(3), |_| empty()), Ok(()));
        assert_eq!(value, json!({ "a": 1, "l": [0, 3], "b": { "c": 2 } }));
        let obstacle = Obstacle { depth: 1, found: "a number" };
        assert_eq!(assign(&mut value, &path("a.x"), json!(2), |_| empty()), Err(obstacle));
        let obstacle = Obstacle { depth: 1, found: "a list" };
        assert_eq!(assign(&mut value, &path("l.9"), json!(2), |_| empty()), Err(obstacle));
    }
}
