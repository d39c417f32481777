//! Which skills does a channel, group or topic allow?

use serde_json::{Map, Value};

use crate::KeyPath;
use crate::tree::{lookup, names};

/// Where the entries for one kind of conversation are, below a channel.
const SECTIONS: [(&str, &[&str]); 4] = [
    ("group", &["groups", "rooms"]),
    ("channel", &["channels", "groups", "rooms"]),
    ("direct", &["direct", "dms"]),
    ("dm", &["direct", "dms"]),
];

/// The `skills` list at `place` below `channels`, such as `telegram.groups.123`.
///
/// `None` means no restriction, because there is no such place or it has no list; an empty list allows nothing.
#[must_use]
pub fn channel_skills(tree: &Value, place: &KeyPath) -> Option<Vec<String>> {
    let entry = lookup(tree.get("channels")?, place.segments())?;
    names(entry.get("skills")?)
}

/// The list that applies to the session of a channel, by the part of its key behind the agent: `telegram:group:-100`,
/// `telegram:group:-100:topic:7`, `discord:channel:5` or, with an account, `telegram:work:direct:42`.
///
/// A topic without a list has that of its group. `*` stands for every group that is not listed.
#[must_use]
pub fn session_skills(tree: &Value, session: &str) -> Option<Vec<String>> {
    let parts: Vec<&str> = session.split(':').collect();
    let (channel, account, rest) = match parts.as_slice() {
        [channel, kind, rest @ ..] if sections(kind).is_some() => (*channel, None, (*kind, rest)),
        [channel, account, kind, rest @ ..] if sections(kind).is_some() => (*channel, Some(*account), (*kind, rest)),
        _ => return None,
    };
    let (kind, rest) = rest;
    // Ids of some channels have colons.
    let end = rest.iter().position(|part| matches!(*part, "topic" | "thread")).unwrap_or(rest.len());
    let (id, topic) = (rest[..end].join(":"), rest.get(end + 1..).map(|topic| topic.join(":")));
    if id.is_empty() {
        return None;
    }
    let channel = entry(tree.get("channels")?.as_object()?, channel)?;
    let own = account.and_then(|account| entry(channel.get("accounts")?.as_object()?, account));
    let place = [own, Some(channel)].into_iter().flatten().find_map(|base| place(base, kind, &id))?;
    let topic = topic.and_then(|topic| listed(place.get("topics")?, &topic));
    [topic, Some(place)].into_iter().flatten().find_map(|place| names(place.get("skills")?))
}

fn sections(kind: &str) -> Option<&'static [&'static str]> {
    SECTIONS.iter().find(|(name, _)| *name == kind).map(|(_, sections)| *sections)
}

/// The entry of one group, channel or person. Those of a Discord channel are inside of its guild.
fn place<'a>(base: &'a Value, kind: &str, id: &str) -> Option<&'a Value> {
    let own = sections(kind)?.iter().find_map(|section| listed(base.get(section)?, id));
    own.or_else(|| {
        let guilds = base.get("guilds").filter(|_| kind == "channel")?.as_object()?;
        let channels = || guilds.values().filter_map(|guild| guild.get("channels")?.as_object());
        channels().find_map(|channels| entry(channels, id)).or_else(|| channels().find_map(|all| all.get("*")))
    })
}

fn listed<'a>(section: &'a Value, id: &str) -> Option<&'a Value> {
    let section = section.as_object()?;
    entry(section, id).or_else(|| section.get("*"))
}

/// Session keys are in lower case, ids in the configuration may not be.
fn entry<'a>(section: &'a Map<String, Value>, id: &str) -> Option<&'a Value> {
    section.get(id).or_else(|| section.iter().find(|(name, _)| name.to_lowercase() == id).map(|(_, entry)| entry))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{channel_skills, session_skills};

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
    fn finds_the_list_of_a_session() {
        let tree = json!({ "channels": {
            "telegram": {
                "groups": {
                    "-100": { "skills": ["a"], "topics": { "7": { "skills": [] }, "8": {} } },
                    "2": {},
                    "*": { "skills": ["any"] },
                },
                "direct": { "42": { "skills": ["d"] } },
                "accounts": { "work": { "groups": { "-100": { "skills": ["w"] } } } },
            },
            "discord": { "guilds": { "1": { "channels": { "5": { "skills": ["c"] } } } } },
            "matrix": { "groups": { "!Room:example.org": { "skills": ["m"] } } },
            "slack": { "channels": { "C0A": { "skills": ["s"] } } },
        } });
        let some = |names: &[&str]| Some(list(names));
        let table = [
            ("telegram:group:-100", some(&["a"])),
            ("telegram:group:-100:topic:7", some(&[])),
            ("telegram:group:-100:topic:8", some(&["a"])),
            ("telegram:group:-100:topic:9", some(&["a"])),
            ("telegram:group:2", None),
            ("telegram:group:3", some(&["any"])),
            ("telegram:work:group:-100", some(&["w"])),
            ("telegram:work:direct:42", some(&["d"])),
            ("telegram:direct:43", None),
            ("discord:channel:5", some(&["c"])),
            ("discord:channel:6", None),
            ("slack:channel:c0a", some(&["s"])),
            ("slack:channel:c0a:thread:1.2", some(&["s"])),
            ("matrix:channel:!room:example.org", some(&["m"])),
            ("matrix:channel:!room:example.org:thread:$e:1", some(&["m"])),
            ("telegram:group", None),
            ("main", None),
            ("subagent:1", None),
            ("other:group:1", None),
        ];
        for (session, expected) in table {
            assert_eq!(session_skills(&tree, session), expected, "{session}");
        }
    }
}
