//! Listing: which sessions are there, as clients are shown them?

use std::sync::Arc;

use prowess_agent::message::now;
use prowess_agent::session::{SessionKey, Sessions};
use prowess_agent::slash::typed;
use serde_json::{Map, Value, json};

use super::history::words;

/// What of an entry is shown as it is written.
const SHOWN: &[&str] = &[
    "label",
    "displayName",
    "channel",
    "subject",
    "groupChannel",
    "space",
    "chatType",
    "origin",
    "systemSent",
    "abortedLastRun",
    "thinkingLevel",
    "verboseLevel",
    "reasoningLevel",
    "elevatedLevel",
    "sendPolicy",
    "inputTokens",
    "outputTokens",
    "responseUsage",
    "modelProvider",
    "model",
    "contextTokens",
    "deliveryContext",
    "lastChannel",
    "lastTo",
    "lastAccountId",
    "spawnedBy",
];

/// The longest title and the longest last message, in characters.
const MAX_TITLE: usize = 60;
const MAX_LAST: usize = 200;

/// A session in a list.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) key: SessionKey,
    pub(crate) updated: u64,
    /// What the index says of it.
    pub(crate) entry: Arc<Value>,
}

/// Which sessions are wanted.
#[derive(Debug, Default)]
pub(crate) struct Filter {
    pub(crate) agent: Option<String>,
    pub(crate) label: Option<String>,
    pub(crate) spawned_by: Option<String>,
    pub(crate) search: Option<String>,
    pub(crate) active_minutes: Option<u64>,
    pub(crate) limit: Option<usize>,
    /// The last row of the page before; see [`Row::cursor`].
    pub(crate) after: Option<String>,
}

/// The sessions of these agents, the last used first. How many of them are wanted is for the caller to see to.
pub(crate) fn rows(stores: &[Sessions], filter: &Filter) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for store in stores {
        // An index that cannot be read hides only its own sessions.
        for (key, entry) in store.entries().unwrap_or_default() {
            let Some(key) = SessionKey::parse(&key) else { continue };
            rows.push(Row { key, updated: entry["updatedAt"].as_u64().unwrap_or_default(), entry });
        }
    }
    rows.retain(|row| filter.wants(row));
    rows.sort_by(|a, b| (b.updated, &a.key).cmp(&(a.updated, &b.key)));
    if let Some((updated, key)) = filter.after.as_deref().and_then(|after| after.split_once(' ')) {
        let updated = updated.parse::<u64>().unwrap_or_default();
        rows.retain(|row| row.updated < updated || (row.updated == updated && row.key.to_string().as_str() > key));
    }
    rows
}

impl Filter {
    fn wants(&self, row: &Row) -> bool {
        let is = |wanted: &Option<String>, value: &Value| {
            wanted.as_deref().is_none_or(|wanted| value.as_str() == Some(wanted))
        };
        let finds = |search: &str| {
            let fields = ["displayName", "label", "subject", "sessionId"].map(|name| row.entry[name].as_str());
            let key = row.key.to_string();
            fields.into_iter().flatten().chain([key.as_str()]).any(|text| text.to_lowercase().contains(search))
        };
        let search = self.search.as_deref().map(|text| text.trim().to_lowercase()).filter(|text| !text.is_empty());
        self.agent.as_deref().is_none_or(|agent| row.key.agent() == agent)
            && is(&self.label, &row.entry["label"])
            && is(&self.spawned_by, &row.entry["spawnedBy"])
            && search.as_deref().is_none_or(finds)
            && self.active_minutes.is_none_or(|minutes| row.updated >= now().saturating_sub(minutes * 60_000))
    }
}

impl Row {
    /// As `sessions.list` shows it.
    pub(crate) fn render(&self) -> Value {
        let mut row = Map::new();
        row.insert("key".to_owned(), self.key.to_string().into());
        row.insert("kind".to_owned(), self.kind().into());
        row.insert("updatedAt".to_owned(), self.updated.into());
        row.insert("sessionId".to_owned(), self.entry["sessionId"].clone());
        for name in SHOWN {
            if let Some(value) = self.entry.get(*name) {
                row.insert((*name).to_owned(), value.clone());
            }
        }
        let total = self.entry["totalTokens"].as_u64();
        let is_fresh = total.is_some() && self.entry["totalTokensFresh"] != false;
        if let Some(total) = total.filter(|_| is_fresh) {
            row.insert("totalTokens".to_owned(), total.into());
        }
        row.insert("totalTokensFresh".to_owned(), is_fresh.into());
        Value::Object(row)
    }

    /// What names its place in a list.
    pub(crate) fn cursor(&self) -> String {
        format!("{} {}", self.updated, self.key)
    }

    /// What kind of session it is.
    pub(crate) fn kind(&self) -> &'static str {
        let rest = self.key.rest();
        if rest.contains(":group:") || rest.contains(":channel:") { "group" } else { "direct" }
    }
}

/// How a conversation began and what was said last, in short. Looks at the disk.
pub(crate) fn glimpse(store: &Sessions, key: &SessionKey) -> (Option<String>, Option<String>) {
    let Ok(stored) = store.read(&key.to_string()) else { return (None, None) };
    let said = |message: &&Value| !words(message).trim().is_empty();
    let first = stored.conversation.iter().filter(|message| message["role"] == "user").find(said);
    let last = stored.conversation.iter().rev().filter(|message| message["role"] != "toolResult").find(said);
    (first.map(|message| one_line(&words(message), MAX_TITLE)), last.map(|message| one_line(&words(message), MAX_LAST)))
}

/// The last messages of a conversation, each in a line. Looks at the disk.
pub(crate) fn preview(store: &Sessions, key: &SessionKey, limit: usize, max_chars: usize) -> Option<Vec<Value>> {
    let stored = store.read(&key.to_string()).ok()?;
    let mut items = Vec::new();
    for message in &stored.conversation {
        let role = match message["role"].as_str() {
            Some("toolResult") => "tool",
            Some(role @ ("user" | "assistant" | "system")) => role,
            _ => "other",
        };
        let text = one_line(&words(message), max_chars);
        if !text.is_empty() {
            items.push(json!({"role": role, "text": text}));
        }
    }
    let from = items.len().saturating_sub(limit);
    Some(items.split_off(from))
}

/// `text` in one line of at most `limit` characters.
fn one_line(text: &str, limit: usize) -> String {
    let words: Vec<&str> =
        typed(text).split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()).collect();
    let line = words.join(" ");
    if line.chars().count() <= limit {
        return line;
    }
    let kept: String = line.chars().take(limit.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use prowess_testkit::Tree;

    use super::*;

    #[test]
    fn sessions_are_found_by_what_is_known_of_them() {
        let now = now();
        let index = json!({
            "agent:main:main": {"sessionId": "a", "updatedAt": now, "label": "Home", "totalTokens": 5},
            "agent:main:subagent:1": {"sessionId": "b", "updatedAt": now - 120_000, "spawnedBy": "agent:main:main"},
            "agent:main:telegram:group:7": {"sessionId": "c", "updatedAt": now - 60_000_000, "totalTokens": 1, "totalTokensFresh": false},
            "broken": {"sessionId": "d"},
        });
        let tree = Tree::new().file("agents/main/sessions/sessions.json", index.to_string());
        let stores = [Sessions::new(tree.root(), "main"), Sessions::new(tree.root(), "other")];
        let keys =
            |filter: &Filter| rows(&stores, filter).iter().map(|row| row.key.rest().to_owned()).collect::<Vec<_>>();
        assert_eq!(keys(&Filter::default()), ["main", "subagent:1", "telegram:group:7"]);
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(keys(&Filter { agent: text("other"), ..Filter::default() }), [""; 0]);
        assert_eq!(keys(&Filter { label: text("Home"), ..Filter::default() }), ["main"]);
        assert_eq!(keys(&Filter { spawned_by: text("agent:main:main"), ..Filter::default() }), ["subagent:1"]);
        assert_eq!(keys(&Filter { search: text(" TELE"), ..Filter::default() }), ["telegram:group:7"]);
        assert_eq!(keys(&Filter { active_minutes: Some(5), ..Filter::default() }), ["main", "subagent:1"]);
        let rows = rows(&stores, &Filter::default());
        assert_eq!(
            keys(&Filter { after: Some(rows[0].cursor()), ..Filter::default() }),
            ["subagent:1", "telegram:group:7"]
        );
        assert_eq!((rows[0].render()["totalTokens"].clone(), rows[0].kind()), (json!(5), "direct"));
        assert_eq!((rows[2].render().get("totalTokens").cloned(), rows[2].kind()), (None, "group"));
    }

    #[test]
    fn a_line_is_a_line() {
        assert_eq!(one_line(" a\n\u{1b}[31mb ", 20), "a [31mb");
        assert_eq!(one_line("abcdef", 4), "abc…");
    }
}
