//! `sessions list`: which sessions are there?

use jiff::Timestamp;
use prowess_agent::session::SessionKey;
use prowess_host::Failure;
use prowess_skills::text::shorten;
use serde_json::json;

use super::told::Row;
use crate::output::{Report, safe, table};

/// The longest title in the table, in UTF-16 units.
const MAX_TITLE: usize = 60;

/// How much of an id is shown; more than enough to name it.
const SHORT_ID: usize = 8;

pub(crate) fn report(rows: &[Row], json: bool) -> Result<Report, Failure> {
    if json {
        return Report::json(&json!({"sessions": rows.iter().map(shape).collect::<Vec<_>>()}));
    }
    if rows.is_empty() {
        return Ok(Report::text("No sessions yet. Start one with: prowess run \"MESSAGE\"\n"));
    }
    // A gateway may not say how many messages there are.
    let is_counted = rows.iter().any(|row| row.messages.is_some());
    let agent = only_agent(rows);
    let cells = rows.iter().map(|row| {
        let id: String = row.id.chars().take(SHORT_ID).collect();
        let name = row.key.as_deref().map_or_else(|| format!("{id} (no name)"), |key| short_key(key, agent.as_deref()));
        let mut cells = vec![name, time(row.updated)];
        if is_counted {
            cells.push(row.messages.map_or_else(String::new, |number| number.to_string()));
        }
        cells.push(safe(row.model.as_deref().unwrap_or("")));
        cells.push(shorten(row.title.as_deref().unwrap_or(""), MAX_TITLE));
        cells
    });
    let cells = cells.collect();
    Ok(Report::text(if is_counted {
        table(&["Session", "Last used (UTC)", "Messages", "Model", "First message"], &[1, 2], cells)
    } else {
        table(&["Session", "Last used (UTC)", "Model", "First message"], &[1], cells)
    }))
}

/// The agent that all these sessions belong to; nothing when there are several.
fn only_agent(rows: &[Row]) -> Option<String> {
    let mut agents = rows.iter().filter_map(|row| row.key.as_deref().and_then(SessionKey::parse));
    let first = agents.next()?;
    agents.all(|other| other.agent() == first.agent()).then(|| first.agent().to_owned())
}

/// A key as short as it can be typed: an agent's own sessions do not need its name.
fn short_key(key: &str, agent: Option<&str>) -> String {
    match SessionKey::parse(key).filter(|parsed| Some(parsed.agent()) == agent) {
        Some(parsed) => safe(parsed.rest()),
        None => safe(key),
    }
}

fn shape(row: &Row) -> serde_json::Value {
    let mut shape = json!({"key": row.key, "sessionId": row.id, "updatedAt": row.updated});
    if let Some(messages) = row.messages {
        shape["messages"] = messages.into();
    }
    shape["model"] = json!(row.model);
    shape["title"] = json!(row.title);
    shape
}

/// A time to the minute.
pub(super) fn time(millis: u64) -> String {
    let moment = i64::try_from(millis).ok().and_then(|millis| Timestamp::from_millisecond(millis).ok());
    let text = moment.unwrap_or_default().to_string();
    text.chars().take("2026-01-31T12:34".len()).map(|c| if c == 'T' { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(key: Option<&str>, title: &str) -> Row {
        Row {
            key: key.map(str::to_owned),
            id: "0123456789abcdef".to_owned(),
            updated: 1_767_225_600_000,
            messages: Some(4),
            title: Some(title.to_owned()),
            model: None,
        }
    }

    #[test]
    fn a_conversation_is_a_row() {
        let rows = [row(Some("agent:main:main"), "check\u{1b}[2J the weather"), row(None, "old")];
        let text = report(&rows, false).expect("a report").text;
        for wanted in ["main\t", "01234567 (no name)", "2026-01-01 00:00", "check[2J the weather"] {
            assert!(text.contains(wanted), "{wanted}\n{text}");
        }
        assert!(report(&[], false).expect("a report").text.contains("No sessions yet"));
        let two = [row(Some("agent:main:main"), "x"), row(Some("agent:work:main"), "y")];
        let text = report(&two, false).expect("a report").text;
        assert!(text.contains("agent:main:main") && text.contains("agent:work:main"), "{text}");
        let json = report(&rows, true).expect("a report").text;
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(json["sessions"][0]["updatedAt"], 1_767_225_600_000_u64);
    }

    #[test]
    fn no_time_is_too_strange() {
        assert_eq!(time(u64::MAX), "1970-01-01 00:00");
    }
}
