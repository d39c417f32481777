//! What does each event of an answer over Anthropic Messages say?

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::CALLER;
use crate::message::{StopReason, Usage};
use crate::model::{Delta, ModelError};
use crate::provider::{fault, tokens};

/// Reads the events of one answer.
#[derive(Debug)]
pub struct Reader {
    provider: String,
    usage: Usage,
    /// Arguments that came with the beginning of a call; they count unless pieces follow.
    given: HashMap<u32, Value>,
    /// Blocks that belong to the server, and the JSON of their input as far as it came.
    servers: HashMap<u32, (Value, String)>,
    pub(in crate::provider) stopped: bool,
    pub(in crate::provider) over: bool,
}

impl Reader {
    /// For an answer of `provider`.
    #[must_use]
    pub fn new(provider: &str) -> Self {
        Self {
            provider: provider.to_owned(),
            usage: Usage::default(),
            given: HashMap::new(),
            servers: HashMap::new(),
            stopped: false,
            over: false,
        }
    }

    /// Takes one event.
    pub fn event(&mut self, name: &str, data: &str) -> Result<Vec<Delta>, ModelError> {
        if data.trim().is_empty() || data.trim() == "[DONE]" || name == "ping" {
            return Ok(Vec::new());
        }
        let event: Value =
            serde_json::from_str(data).map_err(|_| fault::unreadable(&self.provider, "an event is not JSON", data))?;
        self.take(&event)
    }

    /// Takes a whole answer of a server that does not stream, as the events it stands for.
    pub(in crate::provider) fn whole(&mut self, answer: &Value) -> Result<Vec<Delta>, ModelError> {
        if answer["type"] == "error" || answer["error"].is_object() {
            return Err(fault::of_object(&self.provider, &answer["error"]));
        }
        let Some(blocks) = answer["content"].as_array() else {
            return Err(fault::unreadable(&self.provider, "it is not a message", &answer.to_string()));
        };
        let mut deltas = self.take(&json!({"type": "message_start", "message": {"usage": answer["usage"]}}))?;
        for (index, block) in blocks.iter().enumerate() {
            for kind in ["content_block_start", "content_block_stop"] {
                deltas.extend(self.take(&json!({"type": kind, "index": index, "content_block": block}))?);
            }
        }
        let stop = json!({"stop_reason": answer["stop_reason"], "stop_details": answer["stop_details"]});
        let stop = json!({"type": "message_delta", "delta": stop});
        deltas.extend(self.take(&stop)?);
        if self.stopped { Ok(deltas) } else { Err(ModelError::Cut { provider: self.provider.clone() }) }
    }

    fn take(&mut self, event: &Value) -> Result<Vec<Delta>, ModelError> {
        let block = event["index"].as_u64().and_then(|index| u32::try_from(index).ok()).unwrap_or(0);
        Ok(match event["type"].as_str().unwrap_or("") {
            "message_start" => self.count(&event["message"]["usage"]),
            "content_block_start" => self.begin(block, &event["content_block"]),
            "content_block_delta" => self.piece(block, &event["delta"]),
            "content_block_stop" => self.end(block),
            "message_delta" => {
                let mut deltas = self.count(&event["usage"]);
                if let Some(reason) = event["delta"]["stop_reason"].as_str() {
                    if reason == "pause_turn" {
                        deltas.push(Delta::Pause);
                    }
                    deltas.push(Delta::Stop(self.stop(reason, &event["delta"])?));
                    self.stopped = true;
                }
                deltas
            }
            "message_stop" => {
                self.over = self.stopped;
                Vec::new()
            }
            "error" => return Err(fault::of_object(&self.provider, &event["error"])),
            _ => Vec::new(),
        })
    }

    fn begin(&mut self, block: u32, content: &Value) -> Vec<Delta> {
        let text = |key: &str| content[key].as_str().unwrap_or("").to_owned();
        match content["type"].as_str().unwrap_or("") {
            "text" => vec![Delta::Text { block, text: text("text") }],
            "thinking" => {
                let mut deltas = vec![Delta::Thinking { block, text: text("thinking") }];
                let signature = text("signature");
                if !signature.is_empty() {
                    deltas.push(Delta::Signature { block, text: signature });
                }
                deltas
            }
            "redacted_thinking" => vec![Delta::Redacted { block, data: text("data") }],
            "tool_use" => {
                if content["input"].as_object().is_some_and(|input| !input.is_empty()) {
                    self.given.insert(block, content["input"].clone());
                }
                let mut deltas = vec![Delta::Call { block, id: text("id"), name: text("name") }];
                // Who made the call matters only where it was not the model itself.
                if content["caller"]["type"].as_str().is_some_and(|kind| kind != "direct") {
                    deltas.push(Delta::Data { block: Some(block), field: CALLER, value: content["caller"].clone() });
                }
                deltas
            }
            "" => Vec::new(),
            _ => {
                self.servers.insert(block, (content.clone(), String::new()));
                vec![Delta::Opaque { block, value: content.clone() }]
            }
        }
    }

    fn piece(&mut self, block: u32, delta: &Value) -> Vec<Delta> {
        if let Some((content, json)) = self.servers.get_mut(&block) {
            extend(content, json, delta);
            return Vec::new();
        }
        let text = |key: &str| delta[key].as_str().unwrap_or("").to_owned();
        match delta["type"].as_str().unwrap_or("") {
            "text_delta" => vec![Delta::Text { block, text: text("text") }],
            "thinking_delta" => vec![Delta::Thinking { block, text: text("thinking") }],
            "signature_delta" => {
                // The empty thought says what kind of block the signature is for.
                vec![
                    Delta::Thinking { block, text: String::new() },
                    Delta::Signature { block, text: text("signature") },
                ]
            }
            "input_json_delta" => {
                let json = text("partial_json");
                if !json.is_empty() {
                    self.given.remove(&block);
                }
                vec![Delta::Arguments { block, json }]
            }
            _ => Vec::new(),
        }
    }

    fn end(&mut self, block: u32) -> Vec<Delta> {
        if let Some((mut value, json)) = self.servers.remove(&block) {
            if let Ok(input) = serde_json::from_str::<Value>(&json) {
                value["input"] = input;
            }
            return vec![Delta::Opaque { block, value }];
        }
        self.given.remove(&block).map(|input| Delta::Arguments { block, json: input.to_string() }).into_iter().collect()
    }

    /// What is known of the tokens by now; later events say only what changed.
    fn count(&mut self, usage: &Value) -> Vec<Delta> {
        let none = Map::new();
        let said = usage.as_object().unwrap_or(&none);
        let mut heard = false;
        for (key, place) in [
            ("input_tokens", &mut self.usage.input),
            ("output_tokens", &mut self.usage.output),
            ("cache_read_input_tokens", &mut self.usage.cache_read),
            ("cache_creation_input_tokens", &mut self.usage.cache_write),
        ] {
            if said.get(key).is_some_and(Value::is_u64) {
                *place = tokens(usage, &format!("/{key}"));
                heard = true;
            }
        }
        if heard { vec![Delta::Usage(self.usage.totalled())] } else { Vec::new() }
    }

    fn stop(&self, reason: &str, delta: &Value) -> Result<StopReason, ModelError> {
        Ok(match reason {
            "max_tokens" | "model_context_window_exceeded" => StopReason::Length,
            "tool_use" => StopReason::ToolUse,
            "refusal" | "sensitive" => {
                let why = delta["stop_details"]["explanation"].as_str().unwrap_or(reason);
                return Err(ModelError::Refused { provider: self.provider.clone(), said: fault::clean(why, 300) });
            }
            // `end_turn`, `pause_turn`, `stop_sequence`, and what is new: the answer counts.
            _ => StopReason::Stop,
        })
    }
}

/// Adds a piece to a block of the server: JSON to its input, text to the field of the same name, and the rest as it is.
fn extend(content: &mut Value, json: &mut String, delta: &Value) {
    if let Some(piece) = delta["partial_json"].as_str() {
        json.push_str(piece);
        return;
    }
    let Some(fields) = content.as_object_mut() else { return };
    for (field, value) in delta.as_object().into_iter().flatten().filter(|(field, _)| *field != "type") {
        match (fields.get_mut(field), value) {
            (Some(Value::String(known)), Value::String(more)) => known.push_str(more),
            _ => {
                fields.insert(field.clone(), value.clone());
            }
        }
    }
}
