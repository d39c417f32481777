//! `usage.session` and `usage.skills`: what did a session cost, or each skill, and how often was it used?
//!
//! Transcripts tell it: every call of a model has a note of what its tokens were spent on, and every use of a skill has
//! one too. The newest are read first, as many as a request may take.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{Timestamp, ToSpan};
use prowess_agent::ledger::{Ledger, SkillCost, spent};
use prowess_agent::session::{Listed, Sessions, note};
use prowess_host::sessions;
use serde::Deserialize;
use serde_json::{Value, json};

use super::given::given;
use super::{Answer, Ask, Method, method};
use crate::aside::blocking;
use crate::params::{Shape, TEXT, integer_within, optional, required, shape};
use crate::scope::{Access, Scope};
use crate::wire::Refusal;

/// The methods of this matter.
pub(super) const METHODS: &[Method] = &[
    method!("usage.session", Access::Operator(Scope::Read), session),
    method!("usage.skills", Access::Operator(Scope::Read), skills),
];

/// How many days are looked at when none are named.
const USUAL_DAYS: u64 = 30;

/// The most days that can be asked for.
const MAX_DAYS: i64 = 3650;

/// The most conversations that one request reads.
const MAX_SESSIONS: usize = 1000;

/// The most bytes of conversations that one request reads.
const MAX_BYTES: u64 = 256 * 1024 * 1024;

const SESSION: Shape = shape(&[required("sessionKey", TEXT)]);

const PARAMS: Shape = shape(&[optional("agentId", TEXT), optional("days", integer_within(1, MAX_DAYS))]);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params {
    agent_id: Option<String>,
    days: Option<u64>,
}

/// What was found so far.
#[derive(Default)]
struct Sum {
    ledger: Ledger,
    calls: BTreeMap<String, u64>,
    days: BTreeMap<String, u64>,
    sessions: usize,
    /// Conversations that were left out, because there are too many or they cannot be read.
    skipped: usize,
}

/// All tokens of one session, those of its summaries included.
async fn session(ask: Ask) -> Answer {
    SESSION.check("usage.session", ask.params())?;
    blocking(move || {
        let key = ask.gateway.agents.key(ask.params()["sessionKey"].as_str().unwrap_or_default())?;
        // One that has no transcript yet has cost nothing.
        let entries = ask.gateway.agents.store(key.agent())?.read(&key.to_string()).map(|stored| stored.entries);
        Ok(json!({"sessionKey": key.to_string(), "usage": spent(&entries.unwrap_or_default())}))
    })
    .await?
}

/// Tokens and uses by skill.
async fn skills(ask: Ask) -> Answer {
    let params: Params = given(&ask, &PARAMS)?;
    let days = params.days.unwrap_or(USUAL_DAYS);
    blocking(move || {
        let view = ask.gateway.agents.get(params.agent_id.as_deref())?.view();
        let hours = i64::try_from(days * 24).unwrap_or(i64::MAX);
        let now = Timestamp::now();
        let since = now.checked_sub(hours.hours()).unwrap_or(Timestamp::UNIX_EPOCH);
        let sum = sum(&sessions(&view.context), since)?;
        let mut json = render(&sum);
        json["agentId"] = view.context.agent.id.as_str().into();
        json["days"] = days.into();
        json["since"] = since.as_millisecond().into();
        Ok(json)
    })
    .await?
}

fn sum(sessions: &Sessions, since: Timestamp) -> Result<Sum, Refusal> {
    let listed = sessions.list().map_err(|error| Refusal::unavailable(error.to_string()))?;
    let start = u64::try_from(since.as_millisecond()).unwrap_or_default();
    let mut sum = Sum::default();
    let mut bytes = 0_u64;
    for one in listed.iter().filter(|one| one.updated >= start) {
        let size = one.path.metadata().map(|metadata| metadata.len()).unwrap_or_default();
        if sum.sessions >= MAX_SESSIONS || bytes.saturating_add(size) > MAX_BYTES {
            sum.skipped += 1;
            continue;
        }
        bytes += size;
        match entries(sessions, one) {
            Some(entries) => sum.add(&entries, since),
            None => sum.skipped += 1,
        }
    }
    Ok(sum)
}

fn entries(sessions: &Sessions, one: &Listed) -> Option<Vec<Value>> {
    sessions.read(&one.id).ok().map(|stored| stored.entries)
}

impl Sum {
    /// Adds what the notes of one conversation say.
    fn add(&mut self, entries: &[Value], since: Timestamp) {
        self.sessions += 1;
        for entry in entries {
            let when = entry["timestamp"].as_str().and_then(|text| text.parse::<Timestamp>().ok());
            if when.is_some_and(|when| when < since) {
                continue;
            }
            match entry["customType"].as_str() {
                Some(note::USAGE) => {
                    let ledger = Ledger::parse(&entry["data"]);
                    if let Some(day) = when.map(|when| when.to_string().chars().take(10).collect::<String>()) {
                        let tokens = self.days.entry(day).or_default();
                        *tokens = tokens.saturating_add(ledger.total().total());
                    }
                    self.ledger += &ledger;
                }
                Some(note::USE) => {
                    if let Some(skill) = entry["data"]["skill"].as_str() {
                        *self.calls.entry(skill.to_owned()).or_default() += 1;
                    }
                }
                _ => {}
            }
        }
    }
}

fn render(sum: &Sum) -> Value {
    let costs = sum.ledger.skills();
    let names: BTreeSet<&String> = costs.keys().chain(sum.calls.keys()).collect();
    let mut rows: Vec<(u64, Value)> = names
        .into_iter()
        .map(|name| {
            let cost = costs.get(name).copied().unwrap_or_default();
            let SkillCost { catalog, body, output } = cost;
            let tokens = catalog.saturating_add(body).saturating_add(output);
            let calls = sum.calls.get(name).copied().unwrap_or_default();
            let row = json!({
                "skill": name, "calls": calls, "tokens": tokens, "catalog": catalog, "body": body, "output": output,
            });
            (tokens, row)
        })
        .collect();
    rows.sort_by_key(|(tokens, _)| std::cmp::Reverse(*tokens));
    let days = sum.days.iter().map(|(day, tokens)| json!({"date": day, "tokens": tokens}));
    json!({
        "skills": rows.into_iter().map(|(_, row)| row).collect::<Vec<_>>(),
        "byDay": days.collect::<Vec<_>>(),
        "total": sum.ledger.total().total(),
        "sessions": sum.sessions,
        "skipped": sum.skipped,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_of_a_conversation_are_summed_by_skill() {
        let usage = |when: &str, tokens: u64| {
            let accounts = json!({"body:weather": {"input": tokens}, "catalog:git": {"input": 1}});
            json!({"customType": note::USAGE, "timestamp": when, "data": {"accounts": accounts}})
        };
        let used = json!({"customType": note::USE, "timestamp": "2026-01-03T00:00:00Z", "data": {"skill": "weather"}});
        let since = "2026-01-02T00:00:00Z".parse().expect("a time");
        let mut sum = Sum::default();
        let old = usage("2026-01-01T00:00:00Z", 500);
        sum.add(&[old, usage("2026-01-02T10:00:00Z", 20), usage("2026-01-03T10:00:00Z", 30), used, json!(7)], since);
        let json = render(&sum);
        assert_eq!(json["total"], 52);
        assert_eq!(
            json["skills"][0],
            json!({"skill": "weather", "calls": 1, "tokens": 50, "catalog": 0, "body": 50, "output": 0})
        );
        assert_eq!(json["skills"][1]["skill"], "git");
        assert_eq!(json["byDay"], json!([{"date": "2026-01-02", "tokens": 21}, {"date": "2026-01-03", "tokens": 31}]));
    }
}
