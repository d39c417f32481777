//! Which row of the table is for this place?
//!
//! The rows are put into a tree once, one level for each part of a path, so that a look-up costs what the path is long
//! and not what the table is.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::{KEYS, Key};

static TREE: LazyLock<Node> = LazyLock::new(|| {
    let mut root = Node::default();
    for key in KEYS {
        let parts = key.path.split('.');
        parts.fold(&mut root, Node::child).key = Some(key);
    }
    root
});

/// One part of the paths that begin alike.
#[derive(Default)]
struct Node {
    named: HashMap<&'static str, Node>,
    /// `<…>`: any one part.
    any: Option<Box<Node>>,
    /// `**`: one part or more.
    deep: Option<Box<Node>>,
    key: Option<&'static Key>,
}

impl Node {
    fn child(&mut self, part: &'static str) -> &mut Self {
        match part {
            "**" => self.deep.get_or_insert_default(),
            _ if part.starts_with('<') => self.any.get_or_insert_default(),
            _ => self.named.entry(part).or_default(),
        }
    }
}

/// Where a path leads in the tree. Wildcards let it lead to several places at once.
#[derive(Clone)]
pub(crate) struct Spot(Vec<Place>);

#[derive(Clone, Copy)]
struct Place {
    node: &'static Node,
    /// How many parts of the path a wildcard stood for.
    wild: usize,
    /// Whether the node is a `**`, which takes in the next part too.
    is_deep: bool,
}

impl Spot {
    pub(crate) fn root() -> Self {
        Self(vec![Place { node: &TREE, wild: 0, is_deep: false }])
    }

    /// One part further.
    pub(crate) fn step(&self, part: &str) -> Self {
        let mut places = Vec::with_capacity(self.0.len());
        for &Place { node, wild, is_deep } in &self.0 {
            let named = node.named.get(part).map(|node| Place { node, wild, is_deep: false });
            let any = node.any.as_deref().map(|node| Place { node, wild: wild + 1, is_deep: false });
            let deep = node.deep.as_deref().map(|node| Place { node, wild: wild + 1, is_deep: true });
            let same = is_deep.then_some(Place { node, wild: wild + 1, is_deep });
            places.extend([named, any, deep, same].into_iter().flatten());
        }
        Self(places)
    }

    /// The row for this place, the most literal one if several fit.
    pub(crate) fn key(&self) -> Option<&'static Key> {
        let rows = self.0.iter().filter_map(|place| Some((place.wild, place.node.key?)));
        rows.min_by_key(|(wild, _)| *wild).map(|(_, key)| key)
    }

    /// The names that the table knows directly below this place.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        let mut names: Vec<&str> = self.0.iter().flat_map(|place| place.node.named.keys().copied()).collect();
        names.sort_unstable();
        names
    }
}

/// The row of the table for this place, the most literal one if several fit.
#[must_use]
pub fn find(path: &[String]) -> Option<&'static Key> {
    path.iter().fold(Spot::root(), |spot, part| spot.step(part)).key()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How a row fits a path, read off the row itself.
    fn fits(pattern: &[&str], path: &[String]) -> Option<usize> {
        match (pattern.split_first(), path.split_first()) {
            (None, None) => Some(0),
            (Some((&"**", rest)), Some((_, below))) => {
                [fits(pattern, below), fits(rest, below)].into_iter().flatten().min().map(|wild| wild + 1)
            }
            (Some((part, rest)), Some((_, below))) if part.starts_with('<') => fits(rest, below).map(|wild| wild + 1),
            (Some((part, rest)), Some((key, below))) if part == key => fits(rest, below),
            _ => None,
        }
    }

    #[test]
    fn the_tree_finds_what_a_search_of_the_table_finds() {
        let parts = ["skills", "entries", "env", "agents", "list", "0", "channels", "tools", "exec", "vars", "x"];
        let parts = parts.map(str::to_owned);
        let mut paths: Vec<Vec<String>> =
            KEYS.iter().map(|key| key.path.split('.').map(str::to_owned).collect()).collect();
        for a in &parts {
            for b in &parts {
                for c in &parts {
                    paths.push(vec![a.clone(), b.clone(), c.clone()]);
                    paths.push(vec![a.clone(), b.clone(), c.clone(), "skills".to_owned()]);
                }
            }
        }
        for path in paths {
            let rows =
                KEYS.iter().filter_map(|key| Some((fits(&key.path.split('.').collect::<Vec<_>>(), &path)?, key)));
            let least = rows.clone().map(|(wild, _)| wild).min();
            let wanted: Vec<&str> = rows.filter(|(wild, _)| Some(*wild) == least).map(|(_, key)| key.path).collect();
            let found = find(&path).map(|key| key.path);
            assert!(found.map_or(wanted.is_empty(), |found| wanted.contains(&found)), "{path:?}: {found:?} {wanted:?}");
        }
    }
}
