//! Frames: what do OpenClaw's clients expect to see of a turn?
//!
//! The payloads of its `agent` events and the result of its `agent` method, made from our [`Event`]s and [`Outcome`].
//! `--events` and `--json` print them; a gateway sends them.

use prowess_exec::ToolResult;
use prowess_exec::tool::Content;
use serde_json::{Value, json};

use crate::event::{End, Event, How};
use crate::ledger::Ledger;
use crate::message::{Usage, now};
use crate::turn::Outcome;

/// Up to this length every piece of a text is told as it comes.
const EVERY_PIECE: usize = 4 * 1024;

/// Beyond it a piece waits until it is this part of the whole: each frame has all of the text, and a long answer in small
/// pieces would be told again and again.
const WORTH_TELLING: usize = 32;

/// Numbers the events of one run.
#[derive(Debug)]
pub struct Frames {
    run: String,
    session: String,
    seq: u64,
    /// What the model says in its current reply, or said in its last one.
    text: String,
    /// How much of it was told.
    told: usize,
    /// Whether that reply is complete: the next text begins another one.
    is_complete: bool,
}

impl Frames {
    /// The events of the run `run` in the session `session`.
    #[must_use]
    pub fn new(run: impl Into<String>, session: impl Into<String>) -> Self {
        Self { run: run.into(), session: session.into(), seq: 0, text: String::new(), told: 0, is_complete: false }
    }

    /// What the model says in its current reply, or said in its last one.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The number of the last payload.
    #[must_use]
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Records `event` without making a payload. The next payload contains the whole text.
    pub fn keep_up(&mut self, event: &Event) {
        match event {
            Event::Text { delta } => self.hear(delta),
            Event::Replied { .. } => self.is_complete = true,
            _ => {}
        }
    }

    /// The payloads for `event`, in their order; none for what these clients are not told.
    pub fn frames(&mut self, event: &Event) -> Vec<Value> {
        let mut frames = Vec::new();
        self.keep_up(event);
        match event {
            Event::Text { .. } => {
                let pending = self.text.len() - self.told;
                if self.text.len() <= EVERY_PIECE || pending > self.text.len() / WORTH_TELLING {
                    frames.extend(self.pending());
                }
            }
            _ => frames.extend(self.pending()),
        }
        if let Some((stream, data)) = data(event) {
            frames.push(self.number(stream, &data));
        }
        frames
    }

    /// What was said and not told yet.
    fn pending(&mut self) -> Option<Value> {
        let delta = self.text.get(self.told..).filter(|delta| !delta.is_empty())?;
        let data = json!({"text": self.text, "delta": delta});
        self.told = self.text.len();
        Some(self.number("assistant", &data))
    }

    fn hear(&mut self, delta: &str) {
        if self.is_complete {
            self.forget();
        }
        self.text.push_str(delta);
    }

    fn forget(&mut self) {
        self.text.clear();
        self.told = 0;
        self.is_complete = false;
    }

    fn number(&mut self, stream: &str, data: &Value) -> Value {
        self.seq += 1;
        json!({
            "runId": self.run,
            "seq": self.seq,
            "stream": stream,
            "ts": now(),
            "sessionKey": self.session,
            "data": data,
        })
    }
}

/// What an event is to these clients: its stream and data. Nothing for text, which is told by the whole.
#[must_use]
pub fn data(event: &Event) -> Option<(&'static str, Value)> {
    Some(match event {
        Event::Text { .. } | Event::Replied { .. } => return None,
        Event::Notice(text) => ("notice", json!({"text": text})),
        Event::Started => ("lifecycle", json!({"phase": "start", "startedAt": now()})),
        Event::Ended(end) => ("lifecycle", ended(end)),
        Event::Thinking { delta } => ("reasoning", json!({"delta": delta})),
        Event::CallStarted { id, tool, arguments, .. } => {
            ("tool", json!({"phase": "start", "name": tool, "toolCallId": id, "args": arguments}))
        }
        Event::CallUpdate { id, tool, tail } => {
            ("tool", json!({"phase": "update", "name": tool, "toolCallId": id, "partialResult": tail}))
        }
        Event::CallEnded { id, tool, summary, result, .. } => {
            let mut data = json!({
                "phase": "result",
                "name": tool,
                "toolCallId": id,
                "meta": summary,
                "isError": result.is_error,
                "result": shown(result),
            });
            if let Some(waiting) = waiting(id, result) {
                data["status"] = "waiting".into();
                data["approval"] = waiting;
            }
            ("tool", data)
        }
        Event::SkillUsed { skill, path, how } => {
            ("skill", json!({"phase": how_word(*how), "name": skill, "path": path}))
        }
        Event::SkillsChanged { count } => ("skill", json!({"phase": "changed", "count": count})),
        Event::Compacted { before, after } => {
            ("compaction", json!({"phase": "end", "tokensBefore": before, "tokensAfter": after}))
        }
        Event::Retrying { attempt, wait, why } => {
            let wait = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            ("lifecycle", json!({"phase": "retry", "attempt": attempt, "waitMs": wait, "error": why}))
        }
    })
}

/// What a tool gave back, with the size of each image in place of the image.
fn shown(result: &ToolResult) -> Value {
    let content = result.content.iter().map(|one| match one {
        Content::Text { text } => json!({"type": "text", "text": text}),
        Content::Image { data, mime_type } => {
            json!({"type": "image", "mimeType": mime_type, "bytes": data.len() / 4 * 3, "omitted": true})
        }
    });
    let content: Vec<Value> = content.collect();
    json!({"content": content, "details": result.details, "isError": result.is_error})
}

/// What a call waits for, if it has not run yet and waits for a person to approve it: the id of the question, the command,
/// and until when it can be answered.
#[must_use]
pub fn waiting(call: &str, result: &ToolResult) -> Option<Value> {
    let details = &result.details;
    (details["status"] == "approval-pending").then(|| {
        json!({
            "toolCallId": call,
            "approvalId": details["approvalId"],
            "approvalSlug": details["approvalSlug"],
            "expiresAtMs": details["expiresAtMs"],
            "command": details["command"],
            "host": details["host"],
        })
    })
}

/// How a skill came to be used, as one word.
#[must_use]
pub fn how_word(how: How) -> &'static str {
    match how {
        How::Read => "read",
        How::Called => "called",
        How::Dispatched => "dispatched",
        How::Named => "named",
    }
}

fn ended(end: &End) -> Value {
    match end {
        End::Answered => json!({"phase": "end", "endedAt": now()}),
        End::Interrupted => json!({"phase": "end", "endedAt": now(), "aborted": true}),
        End::Failed(why) => json!({"phase": "error", "endedAt": now(), "error": why}),
    }
}

/// The result of a run, as the `agent` method gives it, with what we add: the skills and the ledger.
#[must_use]
pub fn result(outcome: &Outcome) -> Value {
    let (status, summary) = match &outcome.end {
        End::Answered => ("ok", "completed".to_owned()),
        End::Interrupted => ("ok", "aborted".to_owned()),
        End::Failed(why) => ("error", why.clone()),
    };
    let mut payloads: Vec<Value> = outcome.texts.iter().map(|text| json!({"text": text, "mediaUrl": null})).collect();
    if let End::Failed(why) = &outcome.end {
        payloads.push(json!({"text": why, "mediaUrl": null, "isError": true}));
    }
    let uses: Vec<Value> =
        outcome.uses.iter().map(|one| json!({"name": one.skill, "path": one.path, "how": how_word(one.how)})).collect();
    let calls: Vec<Value> = outcome
        .calls
        .iter()
        .map(
            |call| json!({"tool": call.tool, "summary": call.summary, "skills": call.skills, "isError": call.is_error}),
        )
        .collect();
    let mut result = json!({
        "runId": outcome.run,
        "status": status,
        "summary": summary,
        "result": {
            "payloads": payloads,
            "meta": {
                "durationMs": u64::try_from(outcome.took.as_millis()).unwrap_or(u64::MAX),
                "agentMeta": {
                    "sessionId": outcome.session_id,
                    "provider": outcome.provider,
                    "model": outcome.model,
                    "usage": usage(&outcome.usage),
                    "lastCallUsage": usage(&outcome.last_usage),
                    "promptTokens": outcome.last_usage.read(),
                },
                "aborted": outcome.end == End::Interrupted,
                "skills": uses,
                "calls": calls,
                "ledger": ledger(&outcome.ledger),
            },
        },
    });
    let waiting: Vec<Value> = outcome.calls.iter().filter_map(|call| call.waiting.clone()).collect();
    if !waiting.is_empty() {
        result["waiting"] = waiting.into();
    }
    result
}

/// Where the tokens went: all of them, and what each skill cost.
#[must_use]
pub fn ledger(ledger: &Ledger) -> Value {
    json!({"total": ledger.total().total(), "skills": ledger.skills(), "accounts": ledger.render()["accounts"]})
}

fn usage(usage: &Usage) -> Value {
    json!({
        "input": usage.input,
        "output": usage.output,
        "cacheRead": usage.cache_read,
        "cacheWrite": usage.cache_write,
        "total": usage.total_tokens,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::StopReason;

    #[test]
    fn a_long_answer_in_small_pieces_is_not_told_again_and_again() {
        let mut frames = Frames::new("run", "session");
        let piece = "12345";
        let mut told = Vec::new();
        for _ in 0..40_000 {
            told.extend(frames.frames(&Event::Text { delta: piece.to_owned() }));
        }
        told.extend(frames.frames(&Event::Replied { stop: StopReason::Stop, usage: Usage::default() }));
        let bytes: usize = told.iter().map(|frame| frame.to_string().len()).sum();
        assert!(bytes < 60 * 40_000 * piece.len(), "{bytes}");
        let deltas: String = told.iter().filter_map(|frame| frame["data"]["delta"].as_str()).collect();
        assert_eq!(deltas, piece.repeat(40_000), "and nothing of it is missing");
        assert_eq!(told.last().map(|frame| frame["data"]["text"] == deltas.as_str()), Some(true));
        let numbers: Vec<u64> = told.iter().filter_map(|frame| frame["seq"].as_u64()).collect();
        assert_eq!(numbers, (1..=told.len() as u64).collect::<Vec<_>>());
    }
}
