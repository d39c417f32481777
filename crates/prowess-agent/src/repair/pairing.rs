//! Which result belongs to which call?
//!
//! An id means the newest call that has it, so providers that begin at `call_1` again in every reply are understood.
//! The plan knows nothing of how messages are stored; it is made from what can be seen of them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use serde_json::{Value, json};

use super::inputs::is_call;
use crate::message::{Block, ToolCall, ToolReply};

/// The name of a tool whose name is lost too.
const UNKNOWN: &str = "unknown";

/// Messages in which the results of a reply follow it at once, in the order of its calls.
#[derive(Debug, Clone, PartialEq)]
pub struct Pairing {
    /// The messages.
    pub messages: Vec<Value>,
    /// How many results were missing, and now say so.
    pub added: usize,
    /// How many second results of one call were left out.
    pub dropped_duplicates: usize,
    /// How many results without a call were left out.
    pub dropped_orphans: usize,
    /// Whether anything is not as it was.
    pub moved: bool,
}

/// Puts results behind their calls, leaves out those that belong to none, and says so where one is missing.
///
/// A reply that failed or was interrupted keeps the results it has; nothing is added for its other calls.
#[must_use]
pub fn pairing(messages: Vec<Value>) -> Pairing {
    let plan = plan(messages.iter().map(look));
    let mut made = Pairing {
        messages: Vec::with_capacity(plan.places.len()),
        added: plan.added,
        dropped_duplicates: plan.duplicates,
        dropped_orphans: plan.orphans,
        moved: plan.changed,
    };
    let mut stock = messages;
    let mut speaker = Speaker::default();
    for place in plan.places {
        match place {
            Place::Keep { at } => {
                speaker = Speaker::of(&stock[at]);
                made.messages.push(stock[at].take());
            }
            Place::Answer { at, call } => {
                let mut answer = stock[at].take();
                if let Some(name) = name_for(&answer, &speaker.calls[call].1) {
                    answer["toolName"] = name.into();
                    made.moved = true;
                }
                made.messages.push(answer);
            }
            Place::Missing { call } => {
                let (id, name) = &speaker.calls[call];
                made.messages.push(lost(id, name, &speaker.timestamp));
            }
        }
    }
    made
}

/// The calls of the reply whose results are being placed, by id and name, and when it was made.
#[derive(Default)]
struct Speaker {
    calls: Vec<(String, String)>,
    timestamp: Value,
}

impl Speaker {
    fn of(message: &Value) -> Self {
        let calls = calls(message).map(|(id, name)| (id.to_owned(), name.to_owned()));
        Self { calls: calls.collect(), timestamp: message["timestamp"].clone() }
    }
}

/// The result that stands for one that is not there, as it is stored. It was made when its call was: the same
/// conversation is always mended in the same way.
fn lost(id: &str, name: &str, timestamp: &Value) -> Value {
    let name = Some(name.trim()).filter(|name| !name.is_empty()).unwrap_or(UNKNOWN);
    json!({
        "role": "toolResult", "toolCallId": id, "toolName": name,
        "content": [{"type": "text", "text": lost_text(name)}], "details": lost_details(),
        "isError": true, "timestamp": timestamp.as_u64().unwrap_or_default()
    })
}

/// The same as a typed message.
pub(super) fn lost_reply(call: &ToolCall, timestamp: u64) -> ToolReply {
    ToolReply {
        tool_call_id: call.id.clone(),
        tool_name: call.name.clone(),
        content: vec![Block::text(lost_text(&call.name))],
        details: Some(lost_details()),
        is_error: true,
        timestamp,
    }
}

fn lost_text(name: &str) -> String {
    format!(
        "The result of this call of `{name}` was lost, and the call may not have run. Check before you make it again."
    )
}

/// What tells programs, in words that OpenClaw also uses, that nobody made this result.
fn lost_details() -> Value {
    json!({"openclawSyntheticMissingToolResult": true, "reason": "missing_tool_result"})
}

/// What a message is to the plan.
pub(super) enum Seen<'a> {
    /// A reply with calls, by their ids.
    Calls { ids: Vec<&'a str>, whole: Whole },
    /// A result.
    Answer { id: Option<&'a str> },
    /// Anything else that is a message.
    Other,
    /// Not a message.
    Nothing,
}

/// Whether a reply came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whole {
    Yes,
    /// It failed or was interrupted, so its calls may be halves.
    No,
}

impl<'a> Seen<'a> {
    /// A reply with calls of these ids.
    pub(super) fn reply(ids: Vec<&'a str>, whole: Whole) -> Self {
        if ids.is_empty() { Self::Other } else { Self::Calls { ids, whole } }
    }
}

/// What stands where.
pub(super) struct Plan {
    pub(super) places: Vec<Place>,
    pub(super) added: usize,
    pub(super) duplicates: usize,
    pub(super) orphans: usize,
    pub(super) changed: bool,
}

/// One place in the mended conversation; `at` counts messages as they were given, `call` the calls of the reply that
/// was kept last.
pub(super) enum Place {
    /// A message that is no result.
    Keep { at: usize },
    /// The result of a call.
    Answer { at: usize, call: usize },
    /// No result for a call.
    Missing { call: usize },
}

/// The calls of one reply that have the same id, and how many of them have a result.
struct Open {
    of: usize,
    calls: Vec<usize>,
    answered: usize,
}

/// Plans where every message goes.
pub(super) fn plan<'a>(messages: impl Iterator<Item = Seen<'a>>) -> Plan {
    let mut open: HashMap<&str, Open> = HashMap::new();
    let mut replies: Vec<Reply> = Vec::new();
    let mut kept = Vec::new();
    let (mut given, mut duplicates, mut orphans) = (0, 0, 0);
    for (at, seen) in messages.enumerate() {
        given += 1;
        match seen {
            Seen::Nothing => {}
            Seen::Other => kept.push((at, None)),
            Seen::Calls { ids, whole } => {
                let of = replies.len();
                for (call, id) in ids.iter().enumerate() {
                    register(&mut open, id, of, call);
                }
                kept.push((at, Some(of)));
                replies.push(Reply { whole, answers: vec![None; ids.len()] });
            }
            Seen::Answer { id } => match id.and_then(|id| open.get_mut(id)) {
                None => orphans += 1,
                Some(open) if open.answered == open.calls.len() => duplicates += 1,
                Some(open) => {
                    replies[open.of].answers[open.calls[open.answered]] = Some(at);
                    open.answered += 1;
                }
            },
        }
    }
    let mut plan = Plan { places: Vec::with_capacity(given), added: 0, duplicates, orphans, changed: false };
    for (at, reply) in kept {
        plan.places.push(Place::Keep { at });
        let Some(reply) = reply.map(|of| &replies[of]) else { continue };
        for (call, answer) in reply.answers.iter().enumerate() {
            match (answer, reply.whole) {
                (Some(answer), _) => plan.places.push(Place::Answer { at: *answer, call }),
                (None, Whole::Yes) => {
                    plan.added += 1;
                    plan.places.push(Place::Missing { call });
                }
                (None, Whole::No) => {}
            }
        }
    }
    let stays = |(place, to): (&Place, usize)| match place {
        Place::Keep { at } | Place::Answer { at, .. } => *at == to,
        Place::Missing { .. } => false,
    };
    plan.changed = plan.places.len() != given || !plan.places.iter().zip(0..).all(stays);
    plan
}

/// A reply with calls, and where the result of each is.
struct Reply {
    whole: Whole,
    answers: Vec<Option<usize>>,
}

fn register<'a>(open: &mut HashMap<&'a str, Open>, id: &'a str, of: usize, call: usize) {
    match open.entry(id) {
        Entry::Occupied(mut entry) if entry.get().of == of => entry.get_mut().calls.push(call),
        Entry::Occupied(mut entry) => {
            entry.insert(Open { of, calls: vec![call], answered: 0 });
        }
        Entry::Vacant(entry) => {
            entry.insert(Open { of, calls: vec![call], answered: 0 });
        }
    }
}

fn look(message: &Value) -> Seen<'_> {
    if !message.is_object() {
        return Seen::Nothing;
    }
    match message["role"].as_str() {
        Some("toolResult") => Seen::Answer { id: result_id(message) },
        Some("assistant") => {
            let whole = match message["stopReason"].as_str() {
                Some("error" | "aborted") => Whole::No,
                _ => Whole::Yes,
            };
            Seen::reply(calls(message).map(|(id, _)| id).collect(), whole)
        }
        _ => Seen::Other,
    }
}

/// The ids and names of the calls in a message.
fn calls(message: &Value) -> impl Iterator<Item = (&str, &str)> {
    let blocks = message["content"].as_array().into_iter().flatten().filter(|block| is_call(block));
    blocks.filter_map(|block| {
        let id = block["id"].as_str().filter(|id| !id.is_empty())?;
        Some((id, block["name"].as_str().unwrap_or_default()))
    })
}

/// The id that a result answers, by either of its names.
pub(super) fn result_id(message: &Value) -> Option<&str> {
    ["toolCallId", "toolUseId"].iter().find_map(|key| message.get(key)?.as_str().filter(|id| !id.is_empty()))
}

/// The name that a result should have, when it has another.
fn name_for(answer: &Value, called: &str) -> Option<String> {
    let given = answer.get("toolName").and_then(Value::as_str);
    let some = |name: &str| Some(name.trim().to_owned()).filter(|name| !name.is_empty());
    let name = given.and_then(some).or_else(|| some(called)).unwrap_or_else(|| UNKNOWN.to_owned());
    (given != Some(name.as_str())).then_some(name)
}
