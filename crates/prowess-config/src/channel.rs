//! Which skills does a channel, group or topic allow?

use serde_json::Value;

use crate::KeyPath;
use crate::tree::{lookup, names};

/// The `skills` list at `place` below `channels`, such as `telegram.groups.123`.
///
/// `None` means no restriction, because there is no such place or it has no list; an empty list allows nothing.
#[must_use]
pub fn channel_skills(tree: &Value, place: &KeyPath) -> Option<Vec<String>> {
    let entry = lookup(tree.get("channels")?, place.segments())?;
    names(entry.get("skills")?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::channel_skills;

    fn list(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn finds_the_list_of_a_place() {
        let tree = json!({ "channels": { "telegram": { "groups": {
            "-100": { "skills": [" a ", "", "b"], "topics": { "7": { "skills": [] } } },
            "2": {},
        } } } });
        let check = |place: &str| channel_skills(&tree, &place.parse().expect(place));
        assert_eq!(check("telegram.groups.-100"), Some(list(&["a", "b"])));
        assert_eq!(check("telegram.groups.-100.topics.7"), Some(vec![]));
        assert_eq!(check("telegram.groups.2"), None);
        assert_eq!(check("slack.channels.x"), None);
    }
}
