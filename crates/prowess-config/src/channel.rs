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

/// The skills that both the channel and the agent allow, in the channel's order; `None` restricts nothing.
#[must_use]
pub fn intersect(channel: Option<&[String]>, agent: Option<&[String]>) -> Option<Vec<String>> {
    match (channel, agent) {
        (None, None) => None,
        (Some(only), None) | (None, Some(only)) => Some(only.to_vec()),
        (Some(channel), Some(agent)) => Some(channel.iter().filter(|name| agent.contains(name)).cloned().collect()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{channel_skills, intersect};

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

    #[test]
    fn both_must_allow() {
        let (ab, ba, none) = (list(&["a", "b", "c"]), list(&["c", "a"]), list(&[]));
        assert_eq!(intersect(None, None), None);
        assert_eq!(intersect(Some(&ab), None), Some(ab.clone()));
        assert_eq!(intersect(None, Some(&ba)), Some(ba.clone()));
        assert_eq!(intersect(Some(&ab), Some(&ba)), Some(list(&["a", "c"])));
        assert_eq!(intersect(Some(&none), Some(&ba)), Some(vec![]));
        assert_eq!(intersect(Some(&ab), Some(&none)), Some(vec![]));
    }
}
