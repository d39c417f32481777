//! The tree: which of the entries of a transcript are the conversation?
//!
//! Every entry names its parent, so a conversation can go on from an earlier point without losing what was said after
//! it. What counts is the path from the last entry back to the root, and of that only what the newest summary on it
//! left standing.

use std::collections::HashMap;

use serde_json::{Map, Value};
use uuid::Uuid;

use super::entry::{self, EntryId, FirstKept, Said};

/// What goes on in a conversation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Context {
    /// The messages that count, as they are stored. They may be broken; `repair` makes them whole.
    pub messages: Vec<Value>,
    /// The entry of each of them.
    pub ids: Vec<EntryId>,
    /// What was said before them, in short.
    pub summary: Option<Summary>,
    /// The last note about the session's skills.
    pub skills: Option<Value>,
    /// Who runs the model that spoke last or was chosen since, and its name.
    pub model: Option<(String, String)>,
    /// How much it was told to think.
    pub thinking: Option<String>,
}

/// What was said before, in short.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// The text.
    pub text: String,
    /// About how many tokens it stands for.
    pub tokens_before: u64,
    /// What programs noted with it.
    pub details: Option<Value>,
}

/// The entries of a transcript.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    header: Option<Map<String, Value>>,
    nodes: Vec<Node>,
    ids: HashMap<String, usize>,
    /// How many objects there were, the header among them: the first version of the format counts them.
    places: usize,
}

#[derive(Debug)]
struct Node {
    id: String,
    parent: Option<usize>,
    place: usize,
    said: Said,
}

impl Tree {
    /// Adds what a line says.
    pub(crate) fn add(&mut self, mut line: Map<String, Value>) {
        let place = self.places;
        self.places += 1;
        if is_header(&line) {
            self.header.get_or_insert(line);
            return;
        }
        let index = self.nodes.len();
        let id = match line.get("id").and_then(Value::as_str) {
            Some(id) if !id.is_empty() => id.to_owned(),
            // Made from its place, so that it is the same the next time.
            _ => format!("{place:08x}"),
        };
        let parent = match line.get("parentId") {
            Some(Value::Null) => None,
            Some(Value::String(parent)) => self.ids.get(parent).copied().or(index.checked_sub(1)),
            // A parent that is lost: the line before is the best guess, and right unless somebody branched there.
            _ => index.checked_sub(1),
        };
        let said = entry::parse(&mut line);
        self.push(Node { id, parent, place, said });
    }

    /// Adds an entry that follows the last one.
    pub(crate) fn follow(&mut self, id: &EntryId, said: Said) {
        let node = Node { id: id.0.clone(), parent: self.nodes.len().checked_sub(1), place: self.places, said };
        self.places += 1;
        self.push(node);
    }

    fn push(&mut self, node: Node) {
        self.ids.insert(node.id.clone(), self.nodes.len());
        self.nodes.push(node);
    }

    /// The first line, if it is there.
    pub(crate) fn header(&self) -> Option<&Map<String, Value>> {
        self.header.as_ref()
    }

    /// Whether there are no entries.
    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The last entry.
    pub(crate) fn last(&self) -> Option<&str> {
        self.nodes.last().map(|node| node.id.as_str())
    }

    /// The id of an entry, and of its parent.
    pub(crate) fn link(&self, index: usize) -> Option<(&str, Option<&str>)> {
        let node = self.nodes.get(index)?;
        Some((&node.id, node.parent.map(|parent| self.nodes[parent].id.as_str())))
    }

    /// The entry that stands at that place among the objects of the file.
    pub(crate) fn at_place(&self, place: usize) -> Option<&str> {
        let index = self.nodes.binary_search_by_key(&place, |node| node.place).ok()?;
        Some(&self.nodes[index].id)
    }

    /// An id that no entry has.
    pub(crate) fn fresh_id(&self) -> EntryId {
        loop {
            let (high, ..) = Uuid::new_v4().as_fields();
            let id = format!("{high:08x}");
            if !self.ids.contains_key(&id) {
                return EntryId(id);
            }
        }
    }

    /// What goes on in the conversation.
    pub(crate) fn context(&self) -> Context {
        let path = self.path();
        let mut context = Context::default();
        for index in &path {
            match &self.nodes[*index].said {
                Said::Model { provider, model } => context.model = Some((provider.clone(), model.clone())),
                Said::Thinking(level) => context.thinking = Some(level.clone()),
                Said::Skills(note) => context.skills = Some(note.clone()),
                Said::Message(message) => context.model = spoken_by(message).or(context.model),
                Said::Compaction(_) | Said::Other => {}
            }
        }
        if let Some(at) = self.newest_compaction(&path)
            && let Said::Compaction(compaction) = &self.nodes[path[at]].said
        {
            context.summary = Some(Summary {
                text: compaction.summary.clone(),
                tokens_before: compaction.tokens_before,
                details: compaction.details.clone(),
            });
        }
        for index in self.kept(&path) {
            if let Said::Message(message) = &self.nodes[index].said {
                context.messages.push(message.clone());
                context.ids.push(EntryId(self.nodes[index].id.clone()));
            }
        }
        context
    }

    /// Every message on the path, those that a summary stands for too.
    pub(crate) fn conversation(&self) -> Vec<Value> {
        let said = self.path().into_iter().map(|index| &self.nodes[index].said);
        said.filter_map(|said| if let Said::Message(message) = said { Some(message.clone()) } else { None }).collect()
    }

    /// Lets go of messages that will not be needed again, for what is appended can only follow the last entry.
    pub(crate) fn prune(&mut self) {
        let path = self.path();
        let mut needed = vec![false; self.nodes.len()];
        for index in self.kept(&path) {
            needed[index] = true;
        }
        let last = |is: fn(&Said) -> bool| path.iter().rev().find(|index| is(&self.nodes[**index].said)).copied();
        let lasting = [
            last(|said| matches!(said, Said::Model { .. })),
            last(|said| matches!(said, Said::Thinking(_))),
            last(|said| matches!(said, Said::Skills(_))),
            last(|said| matches!(said, Said::Compaction(_))),
            last(|said| matches!(said, Said::Message(message) if spoken_by(message).is_some())),
        ];
        for index in lasting.into_iter().flatten() {
            needed[index] = true;
        }
        for (node, needed) in self.nodes.iter_mut().zip(needed) {
            if !needed {
                node.said = Said::Other;
            }
        }
    }

    /// From the root to the last entry.
    fn path(&self) -> Vec<usize> {
        let mut path = Vec::new();
        let mut at = self.nodes.len().checked_sub(1);
        // A parent always stands before its child, so this ends.
        while let Some(index) = at {
            path.push(index);
            at = self.nodes[index].parent;
        }
        path.reverse();
        path
    }

    fn newest_compaction(&self, path: &[usize]) -> Option<usize> {
        path.iter().rposition(|index| matches!(self.nodes[*index].said, Said::Compaction(_)))
    }

    /// What of the path the newest summary left standing.
    fn kept(&self, path: &[usize]) -> Vec<usize> {
        let Some(at) = self.newest_compaction(path) else { return path.to_vec() };
        let Said::Compaction(compaction) = &self.nodes[path[at]].said else { return path.to_vec() };
        let first = match &compaction.first_kept {
            FirstKept::Id(id) => self.ids.get(id).copied(),
            FirstKept::Line(place) => self.nodes.binary_search_by_key(place, |node| node.place).ok(),
            FirstKept::Nothing => None,
        };
        let before = first.and_then(|first| path[..at].iter().position(|index| *index == first)).unwrap_or(at);
        path[before..at].iter().chain(&path[at + 1..]).copied().collect()
    }
}

pub(crate) fn is_header(line: &Map<String, Value>) -> bool {
    line.get("type").is_some_and(|kind| kind == "session")
}

fn spoken_by(message: &Value) -> Option<(String, String)> {
    if message.get("role")? != "assistant" {
        return None;
    }
    let text = |key: &str| message.get(key).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned);
    Some((text("provider")?, text("model")?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tree(lines: &[Value]) -> Tree {
        let mut tree = Tree::default();
        for line in lines {
            tree.add(line.as_object().expect("an object").clone());
        }
        tree
    }

    fn message(id: &str, parent: Option<&str>) -> Value {
        json!({"type": "message", "id": id, "parentId": parent, "message": {"role": "user", "content": id}})
    }

    fn said(tree: &Tree) -> Vec<String> {
        let said = |message: &Value| message["content"].as_str().expect("text").to_owned();
        tree.context().messages.iter().map(said).collect()
    }

    #[test]
    fn the_path_from_the_last_entry_is_the_conversation() {
        let tree =
            tree(&[message("a", None), message("b", Some("a")), message("c", Some("a")), message("d", Some("c"))]);
        assert_eq!(said(&tree), ["a", "c", "d"]);
        assert_eq!(tree.context().ids.iter().map(EntryId::as_str).collect::<Vec<_>>(), ["a", "c", "d"]);
    }

    #[test]
    fn parents_that_make_no_sense_are_the_line_before() {
        let table = [
            [message("a", None), message("b", Some("lost")), message("c", Some("b"))],
            // Itself, and one that comes later: both would go in circles.
            [message("a", Some("a")), message("b", Some("c")), message("c", Some("b"))],
            [
                message("a", None),
                json!({"type": "message", "message": {"role": "user", "content": "b"}}),
                message("c", Some("lost")),
            ],
            [
                message("a", None),
                json!({"type": "message", "id": 7, "parentId": 8, "message": {"role": "user", "content": "b"}}),
                message("c", Some("00000001")),
            ],
        ];
        for lines in table {
            assert_eq!(said(&tree(&lines)), ["a", "b", "c"], "{lines:?}");
        }
    }

    #[test]
    fn a_summary_stands_for_what_came_before_what_is_kept() {
        let compaction = |id: &str, parent: &str, first: &str| json!({"type": "compaction", "id": id, "parentId": parent, "summary": format!("up to {first}"), "firstKeptEntryId": first, "tokensBefore": 9});
        let mut lines =
            vec![message("a", None), message("b", Some("a")), message("c", Some("b")), compaction("d", "c", "c")];
        lines.push(message("e", Some("d")));
        let first = tree(&lines);
        assert_eq!(said(&first), ["c", "e"]);
        assert_eq!(first.context().summary.map(|one| (one.text, one.tokens_before)), Some(("up to c".to_owned(), 9)));
        assert_eq!(first.conversation().len(), 4);
        lines.push(compaction("f", "e", "e"));
        lines.push(message("g", Some("f")));
        let mut second = tree(&lines);
        assert_eq!(said(&second), ["e", "g"]);
        let before = second.context();
        second.prune();
        assert_eq!(second.context(), before);
        assert_eq!(second.conversation().len(), 2);
        lines.push(compaction("h", "g", "lost"));
        assert!(said(&tree(&lines)).is_empty());
    }

    #[test]
    fn the_first_version_is_a_chain_and_counts_lines() {
        let plain = |text: &str| json!({"type": "message", "message": {"role": "user", "content": text}});
        let header = json!({"type": "session", "id": "s"});
        let compaction = json!({"type": "compaction", "summary": "s", "firstKeptEntryIndex": 2});
        let tree = tree(&[header, plain("a"), plain("b"), compaction, plain("c")]);
        assert_eq!(said(&tree), ["b", "c"]);
    }

    #[test]
    fn what_was_chosen_last_counts() {
        let tree = tree(&[
            json!({"type": "model_change", "id": "a", "parentId": null, "provider": "p", "modelId": "old"}),
            json!({"type": "custom", "id": "b", "parentId": "a", "customType": "prowess:skills", "data": {"n": 1}}),
            json!({"type": "message", "id": "c", "parentId": "b", "message": {"role": "assistant", "provider": "q", "model": "m", "content": []}}),
            json!({"type": "thinking_level_change", "id": "d", "parentId": "c", "thinkingLevel": "low"}),
            json!({"type": "custom", "id": "e", "parentId": "d", "customType": "prowess:skills", "data": {"n": 2}}),
        ]);
        let context = tree.context();
        assert_eq!(context.model, Some(("q".to_owned(), "m".to_owned())));
        assert_eq!(context.thinking.as_deref(), Some("low"));
        assert_eq!(context.skills, Some(json!({"n": 2})));
    }
}
