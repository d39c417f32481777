//! Repair: what of a stored conversation can be shown to a model?
//!
//! A transcript may have been cut off, written by another program, or edited by hand, and providers refuse a
//! conversation in which a call and its result are not side by side. So everything here takes messages as JSON, as they
//! are stored, and gives back what can be used. Nothing here fails, and all of it is linear in the number of messages.

mod clip;
pub mod ids;
mod inputs;
mod names;
mod pairing;
mod settle;

use serde_json::Value;

pub(crate) use clip::clip_texts;
pub use clip::{MAX_RESULT, clip_result};
pub use inputs::{Inputs, inputs};
pub use names::{call_ids, tool_name};
pub use pairing::{Pairing, pairing};

use crate::message::{Assistant, Block, Message, StopReason, ToolCall, ToolReply};
use inputs::Sieve;
use pairing::{Place, Seen, Whole, plan};

/// What had to be done to a conversation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mended {
    /// Calls that nobody could carry out.
    pub dropped_calls: usize,
    /// Messages that nobody could read, or in which nothing was left.
    pub dropped_messages: usize,
    /// Results that were missing, and now say so.
    pub added: usize,
    /// Second results of one call.
    pub dropped_duplicates: usize,
    /// Results without a call.
    pub dropped_orphans: usize,
    /// Whether a result is missing, was added, or stands elsewhere than before.
    pub moved: bool,
}

impl Mended {
    /// What was done, in one sentence; `None` when everything was in order.
    #[must_use]
    pub fn sentence(&self) -> Option<String> {
        let counted = [
            (self.dropped_calls, "removed invalid calls"),
            (self.dropped_messages, "removed unreadable messages"),
            (self.added, "marked missing results"),
            (self.dropped_duplicates, "removed duplicate results"),
            (self.dropped_orphans, "removed results without a call"),
        ];
        let mut done: Vec<String> =
            counted.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{what} ({count})")).collect();
        if done.is_empty() && self.moved {
            done.push("moved results after their calls".to_owned());
        }
        (!done.is_empty()).then(|| format!("The stored conversation was repaired: {}.", done.join(", ")))
    }
}

/// A conversation that can be used.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// The messages, each call followed at once by its one result.
    pub messages: Vec<Message>,
    /// Which of the stored messages each of them was; none for a result that was lost.
    pub sources: Vec<Option<usize>>,
    /// What had to be done.
    pub mended: Mended,
}

/// The messages that can be used, each call followed at once by its one result.
///
/// `known` are the tools there are; calls of others are left out. `None`, or none at all, keeps calls of any tool.
#[must_use]
pub fn load(messages: Vec<Value>, known: Option<&[String]>) -> Loaded {
    let given = messages.len();
    let sieve = Sieve::new(known);
    let mut mended = Mended::default();
    let (mut at, mut typed) = (Vec::with_capacity(given), Vec::with_capacity(given));
    for (place, value) in messages.into_iter().enumerate() {
        let passed = sieve.pass(value, &mut mended.dropped_calls);
        let Some(message) = passed.and_then(|value| settle::message(value, &mut mended.dropped_calls)) else {
            continue;
        };
        at.push(place);
        typed.push(message);
    }
    mended.dropped_messages = given - typed.len();
    let paired = pair(typed, &mut mended);
    let sources = paired.iter().map(|(source, _)| source.map(|source| at[source])).collect();
    Loaded { messages: paired.into_iter().map(|(_, message)| message).collect(), sources, mended }
}

/// A message, and which of those before it was.
type Sourced<T> = (Option<usize>, T);

/// Brings calls and results together, then makes the ids within each reply unique.
fn pair(messages: Vec<Message>, mended: &mut Mended) -> Vec<Sourced<Message>> {
    let plan = plan(messages.iter().map(look));
    mended.added = plan.added;
    mended.dropped_duplicates = plan.duplicates;
    mended.dropped_orphans = plan.orphans;
    mended.moved = plan.changed;
    let mut out = Vec::with_capacity(plan.places.len());
    let mut stock: Vec<Option<Message>> = messages.into_iter().map(Some).collect();
    let mut batch = Batch::default();
    for place in plan.places {
        match place {
            Place::Keep { at } => {
                batch.close(&mut out, mended);
                match stock[at].take() {
                    Some(Message::Assistant(reply)) => batch.reply = Some((Some(at), reply)),
                    other => out.extend(other.map(|message| (Some(at), message))),
                }
            }
            Place::Answer { at, call } => {
                if let Some(Message::ToolResult(result)) = stock[at].take() {
                    batch.results.push((call, Some((Some(at), result))));
                }
            }
            Place::Missing { call } => batch.results.push((call, None)),
        }
    }
    batch.close(&mut out, mended);
    out
}

/// What the plan sees of a message.
fn look(message: &Message) -> Seen<'_> {
    match message {
        Message::User(_) => Seen::Other,
        Message::ToolResult(result) => {
            let id = result.tool_call_id.as_str();
            Seen::Answer { id: (!id.is_empty()).then_some(id) }
        }
        Message::Assistant(reply) => {
            let whole = match reply.stop_reason {
                StopReason::Error | StopReason::Aborted => Whole::No,
                StopReason::Stop | StopReason::Length | StopReason::ToolUse => Whole::Yes,
            };
            Seen::reply(reply.calls().map(|call| call.id.as_str()).collect(), whole)
        }
    }
}

/// One reply, and the results of its calls by their numbers; `None` for one that is lost.
#[derive(Default)]
struct Batch {
    reply: Option<Sourced<Assistant>>,
    results: Vec<(usize, Option<Sourced<ToolReply>>)>,
}

impl Batch {
    /// Writes the reply and its results. A call that has none belongs to a reply that was broken off; it goes, for
    /// nobody knows whether it is whole.
    fn close(&mut self, out: &mut Vec<Sourced<Message>>, mended: &mut Mended) {
        let Some((source, mut reply)) = self.reply.take() else { return };
        let mut results = std::mem::take(&mut self.results).into_iter().peekable();
        let (before, timestamp, mut number) = (reply.content.len(), reply.timestamp, 0);
        let mut given = Vec::new();
        reply.content.retain(|block| {
            let Block::ToolCall(call) = block else { return true };
            number += 1;
            let Some((_, result)) = results.next_if(|(call, _)| call + 1 == number) else { return false };
            given.push(match result {
                Some((source, result)) => (source, named(result, call)),
                None => (None, pairing::lost_reply(call, timestamp)),
            });
            true
        });
        mended.dropped_calls += before - reply.content.len();
        if before > 0 && reply.content.is_empty() {
            mended.dropped_messages += 1;
            return;
        }
        let calls = reply.content.iter_mut().filter_map(|block| match block {
            Block::ToolCall(call) => Some(&mut call.id),
            Block::Text { .. } | Block::Thinking { .. } | Block::Image(_) | Block::Other(_) => None,
        });
        let mut ids: Vec<&mut String> = calls.collect();
        names::settle_ids(&mut ids);
        for ((_, result), id) in given.iter_mut().zip(ids) {
            result.tool_call_id.clone_from(id);
        }
        out.push((source, Message::Assistant(reply)));
        out.extend(given.into_iter().map(|(source, result)| (source, Message::ToolResult(result))));
    }
}

/// A result under its tool's name.
fn named(result: ToolReply, call: &ToolCall) -> ToolReply {
    let own = result.tool_name.trim();
    let tool_name = if own.is_empty() { call.name.clone() } else { own.to_owned() };
    ToolReply { tool_name, ..result }
}
