//! A conversation as it is shown: messages, what they brought, and what it cost.

use prowess_agent::embedded::PROVIDER;
use prowess_agent::message::{Assistant, Block, Message, StopReason, ToolCall, Usage, User};
use prowess_agent::slash;
use prowess_exec::ToolResult;
use prowess_exec::tool::Content;
use serde_json::Value;

/// A conversation in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    /// None for one that was set aside.
    pub(crate) key: Option<String>,
    pub(crate) id: String,
    /// In milliseconds since 1970.
    pub(crate) updated: u64,
    /// None where that is not known.
    pub(crate) messages: Option<u64>,
    pub(crate) title: Option<String>,
    pub(crate) model: Option<String>,
}

/// A whole conversation.
#[derive(Debug, Clone, Default)]
pub(crate) struct Told {
    pub(crate) key: Option<String>,
    pub(crate) id: String,
    pub(crate) path: std::path::PathBuf,
    pub(crate) lines: Vec<Line>,
    pub(crate) costs: Costs,
    /// What was wrong with the file.
    pub(crate) problems: Vec<String>,
    pub(crate) source: Source,
}

/// Who tells a conversation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Source {
    /// Its file, which has all of it.
    #[default]
    File,
    /// A gateway, which says neither what it cost nor where it is kept.
    Gateway,
}

/// One message, and the skills whose instructions it brought.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Line {
    pub(crate) message: Message,
    pub(crate) reads: Vec<String>,
}

/// Tokens of a conversation, by what they were spent on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Costs {
    pub(crate) skills: Vec<SkillCost>,
    /// What was spent on no skill: the account and its tokens.
    pub(crate) others: Vec<(String, u64)>,
    pub(crate) total: u64,
}

/// Tokens of one skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SkillCost {
    pub(crate) skill: String,
    pub(crate) catalog: u64,
    pub(crate) body: u64,
    pub(crate) output: u64,
}

/// What a user typed, without what was put before it for the model.
pub(crate) fn typed(user: &User) -> String {
    let words: Vec<&str> = user.content.iter().filter_map(Block::as_text).collect();
    slash::typed(&words.join("\n")).to_owned()
}

impl Costs {
    /// The tokens of `skill`, to add to.
    pub(crate) fn of(&mut self, skill: &str) -> &mut SkillCost {
        let at = self.skills.iter().position(|cost| cost.skill == skill).unwrap_or_else(|| {
            self.skills.push(SkillCost { skill: skill.to_owned(), catalog: 0, body: 0, output: 0 });
            self.skills.len() - 1
        });
        &mut self.skills[at]
    }
}

impl SkillCost {
    pub(crate) fn total(&self) -> u64 {
        self.catalog.saturating_add(self.body).saturating_add(self.output)
    }
}

impl Told {
    /// Whether it is known what it cost.
    pub(crate) fn is_counted(&self) -> bool {
        self.source == Source::File || self.usage().total_tokens > 0
    }

    /// Tokens as the providers counted them.
    pub(crate) fn usage(&self) -> Usage {
        let mut sum = Usage::default();
        for line in &self.lines {
            if let Message::Assistant(assistant) = &line.message {
                sum += assistant.usage;
            }
        }
        sum
    }

    /// Whether its tokens are only what a model would have taken: none of its replies came from one.
    pub(crate) fn is_estimated(&self) -> bool {
        let mut replies = self.lines.iter().filter_map(|line| match &line.message {
            Message::Assistant(reply) => Some(reply),
            Message::User(_) | Message::ToolResult(_) => None,
        });
        self.usage().total_tokens > 0 && replies.all(|reply| reply.provider == PROVIDER)
    }

    /// The skills that were read, each once, in their order.
    pub(crate) fn skills(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for name in self.lines.iter().flat_map(|line| &line.reads) {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        names
    }

    /// The call that a result answers: the last one of its id before it.
    pub(crate) fn call(&self, result: usize) -> Option<&ToolCall> {
        let Message::ToolResult(reply) = &self.lines.get(result)?.message else { return None };
        self.lines[..result].iter().rev().find_map(|line| match &line.message {
            Message::Assistant(assistant) => assistant.calls().find(|call| call.id == reply.tool_call_id),
            Message::User(_) | Message::ToolResult(_) => None,
        })
    }
}

/// What kept a reply from its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Broken {
    /// The model ran out of room.
    Cut,
    /// Somebody stopped it.
    Stopped,
    /// The model failed.
    Failed,
}

/// What kept a reply from its end, and in words; nothing for one that is whole.
pub(crate) fn ending(reply: &Assistant) -> Option<(Broken, &str)> {
    match reply.stop_reason {
        StopReason::Length => Some((Broken::Cut, "cut off at its length limit")),
        StopReason::Aborted => Some((Broken::Stopped, "stopped")),
        StopReason::Error => Some((Broken::Failed, reply.error_message.as_deref().unwrap_or("the model failed"))),
        StopReason::Stop | StopReason::ToolUse => None,
    }
}

/// A stored result as the tool gave it.
pub(crate) fn result(reply: &prowess_agent::message::ToolReply) -> ToolResult {
    ToolResult {
        content: vec![Content::Text { text: reply.text() }],
        details: reply.details.clone().unwrap_or(Value::Null),
        is_error: reply.is_error,
    }
}
