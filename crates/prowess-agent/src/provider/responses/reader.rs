//! What does each event of a response say?

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::message::{StopReason, Usage};
use crate::model::{Delta, ModelError};
use crate::provider::{fault, tokens};

/// Reads the events of one answer.
#[derive(Debug)]
pub struct Reader {
    provider: String,
    items: HashMap<u32, Item>,
    newest: u32,
    pub(in crate::provider) stopped: bool,
    pub(in crate::provider) over: bool,
}

/// What is known of an item of the answer.
#[derive(Debug, Default)]
struct Item {
    /// Whether its text, thought or arguments came in pieces; then the end, which has all of it, says nothing new.
    in_pieces: bool,
    done: bool,
}

impl Reader {
    /// For an answer of `provider`.
    #[must_use]
    pub fn new(provider: &str) -> Self {
        Self { provider: provider.to_owned(), items: HashMap::new(), newest: 0, stopped: false, over: false }
    }

    /// Takes one event.
    pub fn event(&mut self, name: &str, data: &str) -> Result<Vec<Delta>, ModelError> {
        if data.trim().is_empty() || data.trim() == "[DONE]" {
            return Ok(Vec::new());
        }
        let event: Value =
            serde_json::from_str(data).map_err(|_| fault::unreadable(&self.provider, "an event is not JSON", data))?;
        let kind = event["type"].as_str().unwrap_or(name);
        self.take(kind, &event)
    }

    /// Takes a whole answer of a server that does not stream.
    pub(in crate::provider) fn whole(&mut self, answer: &Value) -> Result<Vec<Delta>, ModelError> {
        if answer["error"].is_null() && !answer["output"].is_array() {
            return Err(fault::unreadable(&self.provider, "it is not a response", &answer.to_string()));
        }
        self.finish(answer)
    }

    fn take(&mut self, kind: &str, event: &Value) -> Result<Vec<Delta>, ModelError> {
        let block = event["output_index"].as_u64().and_then(|index| u32::try_from(index).ok()).unwrap_or(self.newest);
        let delta = || event["delta"].as_str().unwrap_or("").to_owned();
        Ok(match kind {
            "response.output_item.added" => {
                self.newest = block;
                self.items.entry(block).or_default();
                begin(block, &event["item"])
            }
            "response.output_text.delta" | "response.refusal.delta" => {
                self.in_pieces(block, Delta::Text { block, text: delta() })
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.in_pieces(block, Delta::Thinking { block, text: delta() })
            }
            "response.reasoning_summary_part.added" if event["summary_index"].as_u64().unwrap_or(0) > 0 => {
                vec![Delta::Thinking { block, text: "\n\n".to_owned() }]
            }
            "response.function_call_arguments.delta" => {
                self.in_pieces(block, Delta::Arguments { block, json: delta() })
            }
            "response.function_call_arguments.done" => {
                let all = event["arguments"].as_str().unwrap_or("").to_owned();
                if self.items.entry(block).or_default().in_pieces {
                    Vec::new()
                } else {
                    self.in_pieces(block, Delta::Arguments { block, json: all })
                }
            }
            "response.output_item.done" => self.end(block, &event["item"]),
            "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" => {
                self.finish(&event["response"])?
            }
            "error" => {
                let error = if event["error"].is_object() { &event["error"] } else { event };
                return Err(fault::of_object(&self.provider, error));
            }
            _ if event["error"].is_object() => return Err(fault::of_object(&self.provider, &event["error"])),
            _ => Vec::new(),
        })
    }

    fn in_pieces(&mut self, block: u32, delta: Delta) -> Vec<Delta> {
        self.items.entry(block).or_default().in_pieces = true;
        vec![delta]
    }

    /// An item is whole: what did not come in pieces comes now, and what goes back with it.
    fn end(&mut self, block: u32, whole: &Value) -> Vec<Delta> {
        let item = self.items.entry(block).or_default();
        if std::mem::replace(&mut item.done, true) {
            return Vec::new();
        }
        let mut deltas = begin(block, whole);
        if !item.in_pieces {
            deltas.extend(contents(block, whole));
        }
        let signature = match whole["type"].as_str().unwrap_or("") {
            "reasoning" => {
                whole["encrypted_content"].as_str().filter(|content| !content.is_empty()).map(|_| whole.to_string())
            }
            "message" => match (&whole["id"], &whole["phase"]) {
                (Value::String(id), Value::Null) => Some(id.clone()),
                (_, Value::Null) => None,
                // As OpenClaw writes it.
                (id, phase) => Some(json!({"v": 1, "id": id, "phase": phase}).to_string()),
            },
            "function_call" => whole["id"].as_str().map(str::to_owned),
            _ => None,
        };
        deltas.extend(signature.map(|text| Delta::Signature { block, text }));
        deltas
    }

    fn finish(&mut self, response: &Value) -> Result<Vec<Delta>, ModelError> {
        let provider = || self.provider.clone();
        let stop = match response["status"].as_str().unwrap_or("completed") {
            "completed" => StopReason::Stop,
            "incomplete" => match response["incomplete_details"]["reason"].as_str().unwrap_or("") {
                "max_output_tokens" | "max_tokens" => StopReason::Length,
                "content_filter" => {
                    let said = "a content filter stopped the answer".to_owned();
                    return Err(ModelError::Refused { provider: provider(), said });
                }
                // What there is counts.
                _ => StopReason::Stop,
            },
            "failed" => return Err(fault::of_object(&self.provider, &response["error"])),
            _ if !response["error"].is_null() => return Err(fault::of_object(&self.provider, &response["error"])),
            // Cancelled, or still queued: there is no more to come.
            _ => return Err(ModelError::Cut { provider: provider() }),
        };
        let mut deltas = Vec::new();
        for (index, item) in (0_u32..).zip(response["output"].as_array().into_iter().flatten()) {
            deltas.extend(self.end(index, item));
        }
        if response["usage"].is_object() {
            deltas.push(Delta::Usage(usage_of(&response["usage"])));
        }
        deltas.push(Delta::Stop(stop));
        self.stopped = true;
        self.over = true;
        Ok(deltas)
    }
}

/// What kind of block an item is. Said again it changes nothing.
fn begin(block: u32, item: &Value) -> Vec<Delta> {
    let text = |key: &str| item[key].as_str().unwrap_or("").to_owned();
    match item["type"].as_str().unwrap_or("") {
        "message" => vec![Delta::Text { block, text: String::new() }],
        "reasoning" => vec![Delta::Thinking { block, text: String::new() }],
        "function_call" => vec![Delta::Call { block, id: text("call_id"), name: text("name") }],
        _ => Vec::new(),
    }
}

/// All that an item says.
fn contents(block: u32, item: &Value) -> Vec<Delta> {
    let texts = |list: &str, keys: &[&str], between: &str| {
        let parts = item[list].as_array().into_iter().flatten();
        let texts: Vec<&str> = parts.filter_map(|part| keys.iter().find_map(|key| part[*key].as_str())).collect();
        texts.join(between)
    };
    match item["type"].as_str().unwrap_or("") {
        "message" => vec![Delta::Text { block, text: texts("content", &["text", "refusal"], "") }],
        "reasoning" => {
            let summary = texts("summary", &["text"], "\n\n");
            let text = if summary.is_empty() { texts("content", &["text"], "\n\n") } else { summary };
            vec![Delta::Thinking { block, text }]
        }
        "function_call" => {
            vec![Delta::Arguments { block, json: item["arguments"].as_str().unwrap_or("").to_owned() }]
        }
        _ => Vec::new(),
    }
}

fn usage_of(usage: &Value) -> Usage {
    let cache_read = tokens(usage, "/input_tokens_details/cached_tokens");
    Usage {
        input: tokens(usage, "/input_tokens").saturating_sub(cache_read),
        output: tokens(usage, "/output_tokens"),
        cache_read,
        ..Usage::default()
    }
    .totalled()
}
