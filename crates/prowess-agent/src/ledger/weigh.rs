//! Weights: how much of a request is on whose account?

use std::collections::BTreeMap;

use prowess_skills::tokens;
use serde_json::{Value, json};

use super::{Account, split};
use crate::compaction::{self, Piece};
use crate::message::Message;
use crate::tool::ToolSpec;

/// The key in a tool result's `details` under which it says for which skill it was: one mark, or a list of them.
pub const MARK: &str = "skill";
/// In a mark: the skill's name.
pub const MARK_NAME: &str = "name";
/// In a mark: whether the result is the skill's `SKILL.md` itself.
pub const MARK_FILE: &str = "file";

/// Around the list of skills in a system prompt.
const CATALOG: (&str, &str) = ("<available_skills>", "</available_skills>");
/// Around one of them.
const SKILL: (&str, &str) = ("<skill>", "</skill>");
/// Around its name.
const NAME: (&str, &str) = ("<name>", "</name>");

/// For which skill a tool's result is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// The skill.
    pub skill: String,
    /// What of it.
    pub what: Marked,
}

/// What of a skill a tool's result is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marked {
    /// Its `SKILL.md`.
    File,
    /// What a command that ran for it gave back.
    Output,
}

impl Mark {
    /// As JSON, for `details` under [`MARK`].
    #[must_use]
    pub fn render(&self) -> Value {
        json!({MARK_NAME: self.skill, MARK_FILE: self.what == Marked::File})
    }

    /// The marks in the `details` of a result.
    #[must_use]
    pub fn read(details: Option<&Value>) -> Vec<Self> {
        let Some(mark) = details.and_then(|details| details.get(MARK)) else { return Vec::new() };
        let one = |mark: &Value| {
            let skill = mark.get(MARK_NAME)?.as_str()?.to_owned();
            let is_file = mark.get(MARK_FILE).and_then(Value::as_bool).unwrap_or_default();
            Some(Self { skill, what: if is_file { Marked::File } else { Marked::Output } })
        };
        match mark {
            Value::Array(marks) => marks.iter().filter_map(one).collect(),
            mark => one(mark).into_iter().collect(),
        }
    }
}

/// Weighs a request: how much of it is on whose account?
///
/// `system` are the parts of the system prompt with their names. The list of skills is found in them by its tags.
#[must_use]
pub fn weigh(system: &[(&str, &str)], tools: &[ToolSpec], messages: &[Message]) -> Vec<(Account, u64)> {
    let mut weights = Weights::default();
    for (_, text) in system {
        weights.system(text);
    }
    for tool in tools {
        weights.text(Account::Tools, &tool.name);
        weights.text(Account::Tools, &tool.description);
        weights.text(Account::Tools, &tool.parameters.to_string());
    }
    for message in messages {
        weights.message(message);
    }
    weights.0.into_iter().collect()
}

#[derive(Default)]
struct Weights(BTreeMap<Account, u64>);

impl Weights {
    fn add(&mut self, account: Account, weight: u64) {
        *self.0.entry(account).or_default() += weight;
    }

    fn text(&mut self, account: Account, text: &str) {
        self.add(account, tokens(text) as u64);
    }

    fn system(&mut self, text: &str) {
        let Some((before, list, after)) = between(text, CATALOG) else { return self.text(Account::System, text) };
        self.text(Account::System, before);
        self.text(Account::System, after);
        let mut rest = list;
        while let Some((_, skill, after)) = between(rest, SKILL) {
            rest = after;
            match between(skill, NAME) {
                Some((_, name, _)) => self.text(Account::Catalog(unescape(name)), skill),
                None => self.text(Account::System, skill),
            }
        }
    }

    fn message(&mut self, message: &Message) {
        match message {
            Message::User(user) => {
                for block in &user.content {
                    let Some(text) = block.as_text() else {
                        self.add(Account::Person, compaction::weight(block));
                        continue;
                    };
                    for piece in compaction::pieces(text) {
                        match piece {
                            Piece::Text(text) => self.text(Account::Person, text),
                            Piece::Instructions { skill, text } => self.text(Account::Body(skill), text),
                        }
                    }
                }
            }
            Message::Assistant(said) => {
                self.add(Account::Model, said.content.iter().map(compaction::weight).sum());
            }
            Message::ToolResult(reply) => {
                let weight: u64 = reply.content.iter().map(compaction::weight).sum();
                let accounts: Vec<Account> = Mark::read(reply.details.as_ref()).into_iter().map(account).collect();
                if accounts.is_empty() {
                    return self.add(Account::Other, weight);
                }
                let shares = split(weight, &vec![1; accounts.len()]);
                for (account, share) in accounts.into_iter().zip(shares) {
                    self.add(account, share);
                }
            }
        }
    }
}

fn account(mark: Mark) -> Account {
    match mark.what {
        Marked::File => Account::Body(mark.skill),
        Marked::Output => Account::Output(mark.skill),
    }
}

/// What is before, between and after a pair of tags.
fn between<'a>(text: &'a str, (open, close): (&str, &str)) -> Option<(&'a str, &'a str, &'a str)> {
    let (before, rest) = text.split_once(open)?;
    let (inside, after) = rest.split_once(close)?;
    Some((before, inside, after))
}

fn unescape(text: &str) -> String {
    let entities = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")];
    entities.iter().fold(text.to_owned(), |text, (entity, plain)| text.replace(entity, plain))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Assistant, Block, ToolReply, Usage, User};

    fn reply(details: Value, text: &str) -> Message {
        Message::ToolResult(ToolReply {
            tool_call_id: "c".to_owned(),
            tool_name: "read".to_owned(),
            content: vec![Block::text(text)],
            details: Some(details),
            is_error: false,
            timestamp: 0,
        })
    }

    fn skill(name: &str) -> Account {
        Account::Output(name.to_owned())
    }

    #[test]
    fn a_request_is_weighed_by_whose_it_is() {
        let catalog = "Rules.\n<available_skills>\n  <skill>\n    <name>a&amp;b</name>\n  </skill>\n  <skill>\n    <name>weather</name>\n    <description>Forecasts for everywhere.</description>\n  </skill>\n</available_skills>\nMore.";
        let call =
            serde_json::from_value(json!({"type": "toolCall", "id": "c", "name": "read", "arguments": {"path": "x"}}));
        let said = Assistant {
            content: vec![Block::text("I will look."), call.expect("a call")],
            api: String::new(),
            provider: String::new(),
            model: String::new(),
            usage: Usage::default(),
            stop_reason: crate::message::StopReason::ToolUse,
            error_message: None,
            provider_data: serde_json::Map::new(),
            timestamp: 0,
        };
        let mark = |what| json!({MARK: Mark { skill: "weather".to_owned(), what }.render()});
        let messages = [
            Message::User(User::says("What is the weather?")),
            Message::Assistant(said),
            reply(mark(Marked::File), &"body ".repeat(100)),
            reply(mark(Marked::Output), &"out ".repeat(50)),
            reply(json!({}), "plain"),
            reply(json!({MARK: [{"name": "a"}, {"name": "b", "file": false}]}), &"x".repeat(12)),
        ];
        let weights: BTreeMap<Account, u64> =
            weigh(&[("identity", "You are."), ("skills", catalog)], &[], &messages).into_iter().collect();
        assert_eq!(weights[&Account::Body("weather".to_owned())], 125);
        assert_eq!(weights[&skill("weather")], 50);
        assert_eq!(weights[&Account::Other], 2);
        assert_eq!((weights[&skill("a")], weights[&skill("b")]), (2, 1));
        assert!(weights[&Account::Catalog("weather".to_owned())] > weights[&Account::Catalog("a&b".to_owned())]);
        for account in [Account::System, Account::Person, Account::Model] {
            assert!(weights[&account] > 0, "{account}");
        }
    }
}
