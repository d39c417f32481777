//! Sessions on disk, and what is shown of them.

use prowess_agent::ledger::{Account, Ledger, Mark, Marked};
use prowess_agent::message::Message;
use prowess_agent::session::{Listed, ReadError, SessionKey, Sessions, Stored, note};
use prowess_host::Failure;
use serde_json::Value;

use super::told::{Costs, Line, Row, SkillCost, Source, Told};
use super::{export, list, replay, show};
use crate::cli::{self, Format, Globals};
use crate::output::{Report, count, safe};
use crate::show::{Detail, Printer};
use crate::suggest::did_you_mean;
use crate::talk::{last, settle_index};

/// Runs one of the sessions commands.
pub(crate) fn run(command: &cli::Sessions, globals: &Globals) -> Result<Report, Failure> {
    let context = globals.context()?;
    let sessions = Sessions::new(&context.locations.state_dir, context.agent.id.as_str());
    let read = |key: Option<&str>| {
        let key = key.map_or_else(|| last(&sessions), |key| Ok(key.to_owned()))?;
        sessions.read(&key).map(told).map_err(|error| unread(&sessions, &key, &error))
    };
    match command {
        cli::Sessions::List => {
            let rows: Vec<Row> = sessions.list().map_err(Failure::input)?.into_iter().map(row).collect();
            list::report(&rows, globals.json)
        }
        cli::Sessions::Show { key } => show::report(&read(key.as_deref())?, context.user_home(), globals.json),
        cli::Sessions::Replay { key, verbose } => {
            let told = read(key.as_deref())?;
            if globals.json {
                return replay::report(&told);
            }
            let detail = if *verbose { Detail::Verbose } else { Detail::Normal };
            replay::play(&told, &Printer::new(detail, context.user_home()));
            Ok(Report::text(""))
        }
        cli::Sessions::Export { key, format, output } => {
            let told = read(key.as_deref())?;
            let format = format.unwrap_or(if globals.json { Format::Json } else { Format::Markdown });
            let text = export::render(&told, format)?;
            match output {
                None => Ok(Report::text(text)),
                Some(path) => export::save(&text, path).map(|()| export::done(&told, path)),
            }
        }
        cli::Sessions::Reset { key } => {
            let key = SessionKey::meant(key, context.agent.id.as_str());
            if !sessions.has(&key).map_err(Failure::input)? {
                let error = ReadError::Unknown(key.to_string());
                return Err(unread(&sessions, &key.to_string(), &error));
            }
            let begun = sessions.reset(&key).map_err(Failure::input)?;
            settle_index(globals);
            if let Some(notice) = &begun.mended {
                crate::chat::tell(&format!("warning: {}", safe(notice)));
            }
            if globals.json {
                return Report::json(&serde_json::json!({"key": key.to_string(), "sessionId": begun.id}));
            }
            Ok(Report::text(format!("started {key} over; its old messages are kept as a session without a name\n")))
        }
    }
}

/// Why a session cannot be shown, with the keys that are close to what was asked for.
fn unread(sessions: &Sessions, wanted: &str, error: &ReadError) -> Failure {
    let ReadError::Unknown(_) = error else { return Failure::input(error) };
    let failure = Failure::input(format!("there is no session `{}`", safe(wanted)));
    let keys: Vec<String> = sessions.list().into_iter().flatten().filter_map(|listed| listed.key).collect();
    let name = |key: &str| SessionKey::parse(key).map_or_else(|| key.to_owned(), |key| key.rest().to_owned());
    let names: Vec<String> = keys.iter().map(|key| name(key)).collect();
    let near = did_you_mean(&name(wanted), names.iter().map(String::as_str));
    near.into_iter().fold(failure, Failure::hint).hint("prowess sessions list shows all of them")
}

fn row(listed: Listed) -> Row {
    let Listed { key, id, updated, messages, title, model, path: _ } = listed;
    Row { key, id, updated, messages: Some(messages), title, model }
}

fn told(stored: Stored) -> Told {
    let mut unreadable = 0;
    let mut lines = Vec::new();
    // What was only said to the model is not part of what people said.
    for message in stored.conversation.iter().filter(|message| message["display"] != false) {
        match serde_json::from_value::<Message>(message.clone()) {
            Ok(message) => {
                let reads = reads(&message);
                lines.push(Line { message, reads });
            }
            Err(_) => unreadable += 1,
        }
    }
    let mut problems = stored.mended;
    if unreadable > 0 {
        problems.push(format!("{} could not be read", count(unreadable, "message")));
    }
    let costs = costs(&stored.entries);
    Told { key: stored.key, id: stored.id, path: stored.path, lines, costs, problems, source: Source::File }
}

/// The skills whose instructions a message brought.
fn reads(message: &Message) -> Vec<String> {
    let Message::ToolResult(reply) = message else { return Vec::new() };
    let marks = Mark::read(reply.details.as_ref()).into_iter();
    marks.filter(|mark| mark.what == Marked::File).map(|mark| mark.skill).collect()
}

/// What the calls of a conversation cost together: the sum of its notes.
fn costs(entries: &[Value]) -> Costs {
    let mut costs = Costs::default();
    let mut others = std::collections::BTreeMap::<String, u64>::new();
    let notes = entries.iter().filter(|entry| entry["customType"] == note::USAGE);
    let ledgers = notes.map(|entry| Ledger::parse(&entry["data"]));
    for ledger in ledgers {
        costs.total = costs.total.saturating_add(ledger.total().total());
        for (account, share) in ledger.shares() {
            let tokens = share.total();
            let mut add = |skill: &str, to: fn(&mut SkillCost) -> &mut u64| {
                let sum = to(costs.of(skill));
                *sum = sum.saturating_add(tokens);
            };
            match account {
                Account::Catalog(skill) => add(skill, |cost| &mut cost.catalog),
                Account::Body(skill) => add(skill, |cost| &mut cost.body),
                Account::Output(skill) => add(skill, |cost| &mut cost.output),
                Account::System | Account::Tools | Account::Person | Account::Model | Account::Other => {
                    let sum = others.entry(account.to_string()).or_default();
                    *sum = sum.saturating_add(tokens);
                }
            }
        }
    }
    costs.others = others.into_iter().collect();
    costs
}
