//! What happens when a conversation grows too long for its model?

use std::borrow::Cow;

use super::ask::{Asked, Listening};
use super::{Turn, TurnError};
use crate::compaction::{self, Files};
use crate::conversation::Conversation;
use crate::event::Event;
use crate::ledger::{self, Account};
use crate::message::{Message, StopReason, Usage, User};
use crate::model::{Api, Request, Thinking};
use crate::session::{Body, Summary};

/// How often one turn may do it.
const MOST: u32 = 3;

/// What a model that does not say how much it takes is believed to take, once it says that something was too much.
const UNKNOWN_WINDOW: u64 = 32_000;

/// What came of asking for a summary.
enum Summarised {
    Text(String),
    Failed,
    Stopped,
}

impl Conversation {
    /// Makes a summary of what was said long ago, if the conversation would not fit otherwise.
    pub(super) async fn make_room(&mut self, system: &str, turn: &mut Turn<'_>) -> Result<(), TurnError> {
        let Some(window) = self.agent.window() else { return Ok(()) };
        let used = compaction::estimate(&self.messages) + prowess_skills::tokens(system) as u64;
        // The provider knows better than an estimate, but only of its last call.
        let used = used.max(turn.outcome.last_usage.total_tokens);
        if compaction::needed(used, window, compaction::reserve(window)) {
            self.shrink(turn).await?;
        }
        Ok(())
    }

    /// Makes a summary of what was said long ago. Says whether that made the conversation shorter.
    pub(super) async fn shrink(&mut self, turn: &mut Turn<'_>) -> Result<bool, TurnError> {
        if turn.compactions == MOST {
            return Ok(false);
        }
        turn.compactions += 1;
        let window = self.agent.window().unwrap_or(UNKNOWN_WINDOW);
        let Some(cut) = compaction::cut(&self.messages, compaction::keep(window)) else { return Ok(false) };
        let Some(first_kept) = self.entries[cut..].iter().flatten().next().cloned() else { return Ok(false) };
        let before = compaction::estimate(&self.messages);
        // The summary of a summary is told apart from what was said.
        let old = usize::from(self.summary.is_some());
        let gone = &self.messages[old.min(cut)..cut];
        let files = Files::of(gone, self.summary.as_ref().and_then(|summary| summary.details.as_ref()));
        let previous = self.summary.as_ref().map(|summary| summary.text.clone());
        let asked = compaction::request(previous.as_deref(), gone, &files, window / 2);
        let summary = match self.summarise(&asked, turn).await? {
            Summarised::Text(summary) => summary,
            Summarised::Failed => compaction::fallback(previous.as_deref(), &self.messages[old.min(cut)..cut], &files),
            // Whoever ends a turn does not want its history cut short.
            Summarised::Stopped => return Ok(false),
        };
        let active = self.active(turn);
        let text = compaction::compose(&summary, &compaction::instructions(&self.messages, cut, &active));
        let details = Some(files.details());
        self.transcript.append(Body::Compaction {
            summary: &text,
            first_kept: &first_kept,
            tokens_before: before,
            details: details.clone(),
        })?;
        let kept = self.messages.split_off(cut);
        self.messages = compaction::rebuild(&text, &kept);
        self.entries.splice(..cut, std::iter::repeat_n(None, self.messages.len() - kept.len()));
        self.summary = Some(Summary { text, tokens_before: before, details });
        turn.outcome.last_usage = Usage::default();
        let after = compaction::estimate(&self.messages);
        turn.run.events.tell(Event::Compacted { before, after });
        Ok(after < before)
    }

    /// The skills whose instructions must not be forgotten: those of this turn, or else the one that was read last.
    fn active(&self, turn: &Turn<'_>) -> Vec<String> {
        let active = turn.uses.names();
        if !active.is_empty() {
            return active;
        }
        let last = self.messages.iter().rev().find_map(|message| match message {
            Message::ToolResult(reply) => ledger::Mark::read(reply.details.as_ref()).pop(),
            Message::User(_) | Message::Assistant(_) => None,
        });
        match (last, &self.summary) {
            (Some(mark), _) => vec![mark.skill],
            (None, Some(summary)) => compaction::carried(&summary.text),
            (None, None) => Vec::new(),
        }
    }

    /// Asks the model for the summary. Without one there is still a plain list.
    async fn summarise(&mut self, asked: &str, turn: &mut Turn<'_>) -> Result<Summarised, TurnError> {
        // The embedded planner cannot sum up; the plain list is better than what it would say.
        if self.agent.model.about().api == Api::Embedded {
            return Ok(Summarised::Failed);
        }
        let messages = [Message::User(User::says(asked))];
        let request = Request {
            system: compaction::SYSTEM,
            messages: &messages,
            tools: &[],
            max_tokens: Some(compaction::reserve(self.agent.window().unwrap_or(UNKNOWN_WINDOW)) / 5 * 4),
            thinking: Thinking::Off,
            session: self.transcript.id(),
        };
        let reply = match self.ask_any(request, turn, Listening::No).await {
            Asked::Reply(reply) => reply.message,
            Asked::Interrupted(..) => return Ok(Summarised::Stopped),
            Asked::Failed(_, partial) | Asked::Broken(_, partial) => {
                self.spend(&partial.usage, turn)?;
                return Ok(Summarised::Failed);
            }
        };
        self.spend(&reply.usage, turn)?;
        let text = reply.text().trim().to_owned();
        let is_whole = reply.stop_reason != StopReason::Error && !text.is_empty();
        Ok(if is_whole { Summarised::Text(text) } else { Summarised::Failed })
    }

    /// Books tokens that nobody in particular is the cause of.
    fn spend(&mut self, usage: &Usage, turn: &mut Turn<'_>) -> Result<(), TurnError> {
        turn.outcome.usage += *usage;
        self.note_usage(&ledger::charge(&[(Account::Other, 1)], usage, &Account::Other), turn)?;
        Ok(())
    }

    /// What the model is sent: everything, but results that would fill its window only in part.
    pub(super) fn sent(&self) -> Cow<'_, [Message]> {
        let Some(window) = self.agent.window().filter(|window| compaction::is_tight(&self.messages, *window)) else {
            return Cow::Borrowed(&self.messages);
        };
        let mut messages = self.messages.clone();
        compaction::clip(&mut messages, window);
        Cow::Owned(messages)
    }
}
