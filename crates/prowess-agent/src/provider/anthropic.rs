//! Anthropic Messages: how is a request written, and what does each event of the answer say?

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::{Endpoint, NO_IMAGE, fault, images, is_broken_off, placeholder, result_text, tokens};
use crate::image::Image;
use crate::message::{Assistant, Block, Message, StopReason, ToolReply, Usage};
use crate::model::{Delta, ModelError, Request, Thinking};
use crate::repair::ids::{Ids, Rule};

/// What an answer may have when neither the request nor the configuration says it: the format demands a number.
const USUAL_TOKENS: u64 = 4096;
/// The smallest budget for thinking that is taken.
const LEAST_THINKING: u64 = 1024;

/// The body of a request.
#[must_use]
pub fn body(request: &Request<'_>, endpoint: &Endpoint) -> Value {
    let mut messages = conversation(request.messages, endpoint);
    let answer = endpoint.answer_tokens(request).unwrap_or(USUAL_TOKENS);
    let (max_tokens, budget) = budget(request.thinking, answer, endpoint.max_tokens);
    let budget = budget.filter(|_| may_think(&messages));
    mark_last_user(&mut messages);

    let mut body = json!({"model": endpoint.model, "max_tokens": max_tokens, "stream": true, "messages": null});
    // The macro would copy it, and it may be long.
    body["messages"] = Value::Array(messages);
    if !request.system.is_empty() {
        body["system"] = json!([{"type": "text", "text": request.system, "cache_control": ephemeral()}]);
    }
    if !request.tools.is_empty() {
        let mut tools: Vec<Value> = request
            .tools
            .iter()
            .map(|tool| json!({"name": tool.name, "description": tool.description, "input_schema": tool.parameters}))
            .collect();
        if let Some(last) = tools.last_mut() {
            last["cache_control"] = ephemeral();
        }
        body["tools"] = Value::Array(tools);
    }
    if let Some(budget) = budget {
        body["thinking"] = json!({"type": "enabled", "budget_tokens": budget});
    }
    body
}

fn ephemeral() -> Value {
    json!({"type": "ephemeral"})
}

/// How long the answer may be with its thoughts, and how long the thoughts.
fn budget(thinking: Thinking, answer: u64, most: u64) -> (u64, Option<u64>) {
    let wanted = match thinking {
        Thinking::Off => return (answer, None),
        Thinking::Low => 2048,
        Thinking::Medium => 8192,
        Thinking::High => 16_384,
    };
    let raised = answer.saturating_add(wanted);
    let max_tokens = if most == 0 { raised } else { raised.min(most.max(answer)) };
    // Thoughts must leave something of the answer.
    let budget = wanted.min(max_tokens.saturating_sub(LEAST_THINKING));
    (max_tokens, (budget >= LEAST_THINKING).then_some(budget))
}

/// The messages, same roles merged, with every result in the user's turn after its call.
fn conversation(messages: &[Message], endpoint: &Endpoint) -> Vec<Value> {
    let mut ids = Ids::new(Rule::Strict);
    let mut turns: Vec<(&'static str, Vec<Value>)> = Vec::new();
    for message in messages {
        let (role, blocks) = match message {
            Message::User(user) => ("user", user_blocks(&user.content, endpoint)),
            Message::Assistant(assistant) => ("assistant", assistant_blocks(assistant, endpoint, &mut ids)),
            Message::ToolResult(reply) => ("user", vec![result_block(reply, endpoint, &mut ids)]),
        };
        if blocks.is_empty() {
            continue;
        }
        match turns.last_mut() {
            Some((last, content)) if *last == role => content.extend(blocks),
            _ => turns.push((role, blocks)),
        }
    }
    let turn = |(role, content): (&str, Vec<Value>)| {
        let mut turn = json!({"role": role, "content": null});
        turn["content"] = Value::Array(content);
        turn
    };
    turns.into_iter().map(turn).collect()
}

fn user_blocks(blocks: &[Block], endpoint: &Endpoint) -> Vec<Value> {
    blocks
        .iter()
        .filter_map(|block| match block {
            Block::Text { text, .. } => text_block(text),
            Block::Image(image) if endpoint.takes_images => Some(image_block(image)),
            Block::Image(_) => text_block(NO_IMAGE),
            Block::Other(value) => text_block(&placeholder(value)),
            Block::Thinking { .. } | Block::ToolCall(_) => None,
        })
        .collect()
}

fn text_block(text: &str) -> Option<Value> {
    (!text.trim().is_empty()).then(|| json!({"type": "text", "text": text}))
}

fn image_block(image: &Image) -> Value {
    json!({"type": "image", "source": {"type": "base64", "media_type": image.mime_type, "data": image.data}})
}

fn assistant_blocks(message: &Assistant, endpoint: &Endpoint, ids: &mut Ids) -> Vec<Value> {
    ids.begin_reply();
    let keeps_thoughts = endpoint.wrote(message) && !is_broken_off(message);
    let mut blocks = Vec::new();
    for block in &message.content {
        match block {
            Block::Text { text, .. } => blocks.extend(text_block(text)),
            Block::Thinking { thinking, thinking_signature: Some(signature), redacted } if keeps_thoughts => {
                blocks.push(if *redacted {
                    json!({"type": "redacted_thinking", "data": signature})
                } else {
                    json!({"type": "thinking", "thinking": thinking, "signature": signature})
                });
            }
            // A thought without a signature, or somebody else's, is not taken back.
            Block::Thinking { .. } | Block::Image(_) | Block::Other(_) => {}
            Block::ToolCall(call) => blocks.push(json!({
                "type": "tool_use", "id": ids.rewrite(&call.id), "name": call.name, "input": call.arguments
            })),
        }
    }
    // Thoughts alone are no message.
    let says = blocks.iter().any(|block| block["type"] == "text" || block["type"] == "tool_use");
    if says { blocks } else { Vec::new() }
}

fn result_block(reply: &ToolReply, endpoint: &Endpoint, ids: &mut Ids) -> Value {
    let content = if images(&reply.content, endpoint).is_empty() {
        json!(result_text(&reply.content, endpoint))
    } else {
        Value::Array(user_blocks(&reply.content, endpoint))
    };
    json!({
        "type": "tool_result", "tool_use_id": ids.rewrite(&reply.tool_call_id), "content": content,
        "is_error": reply.is_error
    })
}

/// Thinking cannot begin in the middle of a turn: if the calls whose results we bring were made without a thought, or
/// with one that is not taken back, the provider refuses.
fn may_think(messages: &[Value]) -> bool {
    let brings_results = messages.last().is_some_and(|last| last["content"][0]["type"] == "tool_result");
    let Some(before) = messages.len().checked_sub(2).map(|at| &messages[at]) else { return true };
    let first = before["content"][0]["type"].as_str();
    !brings_results || matches!(first, Some("thinking" | "redacted_thinking"))
}

/// What came before is read from the provider's cache next time.
fn mark_last_user(messages: &mut [Value]) {
    let last = messages.iter_mut().rev().find(|message| message["role"] == "user");
    let blocks = last.and_then(|message| message["content"].as_array_mut());
    if let Some(block) = blocks.and_then(|blocks| blocks.last_mut()) {
        block["cache_control"] = ephemeral();
    }
}

/// Reads the events of one answer.
#[derive(Debug)]
pub struct Reader {
    provider: String,
    usage: Usage,
    /// Arguments that came with the beginning of a call; they count unless pieces follow.
    given: HashMap<u32, Value>,
    pub(super) stopped: bool,
    pub(super) over: bool,
}

impl Reader {
    /// For an answer of `provider`.
    #[must_use]
    pub fn new(provider: &str) -> Self {
        Self {
            provider: provider.to_owned(),
            usage: Usage::default(),
            given: HashMap::new(),
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
    pub(super) fn whole(&mut self, answer: &Value) -> Result<Vec<Delta>, ModelError> {
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
        let stop = json!({"type": "message_delta", "delta": {"stop_reason": answer["stop_reason"]}});
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
                vec![Delta::Call { block, id: text("id"), name: text("name") }]
            }
            _ => Vec::new(),
        }
    }

    fn piece(&mut self, block: u32, delta: &Value) -> Vec<Delta> {
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
            "end_turn" | "pause_turn" | "stop_sequence" => StopReason::Stop,
            "max_tokens" | "model_context_window_exceeded" => StopReason::Length,
            "tool_use" => StopReason::ToolUse,
            "refusal" | "sensitive" => {
                let why = delta["stop_details"]["explanation"].as_str().unwrap_or(reason);
                return Err(ModelError::Refused { provider: self.provider.clone(), said: fault::clean(why, 300) });
            }
            other => return Err(fault::unreadable(&self.provider, "it stopped for an unknown reason", other)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{ToolCall, User};
    use crate::model::{About, Api, Draft};
    use crate::tool::ToolSpec;

    fn endpoint() -> Endpoint {
        Endpoint { max_tokens: 8192, ..Endpoint::new("anthropic", "https://h", Api::Anthropic, "m") }
    }

    fn written(messages: &[Message], thinking: Thinking) -> Value {
        let tool = |name: &str| ToolSpec {
            name: name.to_owned(),
            description: "d".to_owned(),
            parameters: json!({"type": "object"}),
        };
        let tools = [tool("read"), tool("exec")];
        let request =
            Request { system: "be good", messages, tools: &tools, max_tokens: Some(4000), thinking, session: "s" };
        body(&request, &endpoint())
    }

    fn said(model: &str, content: Vec<Block>) -> Message {
        Message::Assistant(Assistant {
            content,
            api: Api::Anthropic.word().to_owned(),
            provider: "anthropic".to_owned(),
            model: model.to_owned(),
            usage: Usage::default(),
            stop_reason: StopReason::ToolUse,
            error_message: None,
            timestamp: 0,
        })
    }

    fn thought(signature: Option<&str>) -> Block {
        let thinking_signature = signature.map(str::to_owned);
        Block::Thinking { thinking: "hm".to_owned(), thinking_signature, redacted: false }
    }

    fn call(id: &str) -> Block {
        let arguments = json!({"path": "x"}).as_object().cloned().unwrap_or_default();
        Block::ToolCall(ToolCall { id: id.to_owned(), name: "read".to_owned(), arguments, thought_signature: None })
    }

    fn result(id: &str, text: &str) -> Message {
        Message::ToolResult(ToolReply {
            tool_call_id: id.to_owned(),
            tool_name: "read".to_owned(),
            content: vec![Block::text(text)],
            details: None,
            is_error: false,
            timestamp: 0,
        })
    }

    #[test]
    fn a_request_has_its_marks_and_merged_turns() {
        let messages = [
            Message::User(User::says("hi")),
            Message::User(User::says(" ")),
            said("m", vec![thought(Some("sig")), Block::text(""), call("a|1"), call("b")]),
            result("a|1", "one"),
            result("b", ""),
            Message::User(User::says("go on")),
        ];
        let ephemeral = json!({"type": "ephemeral"});
        let schema = json!({"type": "object"});
        assert_eq!(
            written(&messages, Thinking::Off),
            json!({
                "model": "m", "max_tokens": 4000, "stream": true,
                "messages": [
                    {"role": "user", "content": [{"type": "text", "text": "hi"}]},
                    {"role": "assistant", "content": [
                        {"type": "thinking", "thinking": "hm", "signature": "sig"},
                        {"type": "tool_use", "id": "a1", "name": "read", "input": {"path": "x"}},
                        {"type": "tool_use", "id": "b", "name": "read", "input": {"path": "x"}}
                    ]},
                    {"role": "user", "content": [
                        {"type": "tool_result", "tool_use_id": "a1", "content": "one", "is_error": false},
                        {"type": "tool_result", "tool_use_id": "b", "content": "(no output)", "is_error": false},
                        {"type": "text", "text": "go on", "cache_control": ephemeral}
                    ]}
                ],
                "system": [{"type": "text", "text": "be good", "cache_control": ephemeral}],
                "tools": [
                    {"name": "read", "description": "d", "input_schema": schema},
                    {"name": "exec", "description": "d", "input_schema": schema, "cache_control": ephemeral}
                ]
            })
        );
    }

    #[test]
    fn thoughts_go_back_only_to_whom_they_came_from() {
        let kept = |message: Message| {
            let body = written(&[message, result("a", "x")], Thinking::Off);
            body["messages"][0]["content"][0]["type"].clone()
        };
        assert_eq!(kept(said("m", vec![thought(Some("s")), call("a")])), "thinking");
        assert_eq!(kept(said("m", vec![thought(None), call("a")])), "tool_use");
        assert_eq!(kept(said("other", vec![thought(Some("s")), call("a")])), "tool_use");
        let withheld =
            Block::Thinking { thinking: String::new(), thinking_signature: Some("d".to_owned()), redacted: true };
        assert_eq!(kept(said("m", vec![withheld, call("a")])), "redacted_thinking");
        let Message::Assistant(mut broken) = said("m", vec![thought(Some("s")), Block::text("half")]) else { return };
        broken.stop_reason = StopReason::Aborted;
        assert_eq!(kept(Message::Assistant(broken)), "text");
        // Nothing is left of this one but a thought, and that is no message.
        assert_eq!(kept(said("m", vec![thought(Some("s"))])), "tool_result");
    }

    #[test]
    fn thinking_has_a_budget_unless_the_turn_began_without() {
        let user = || Message::User(User::says("hi"));
        let body = written(&[user()], Thinking::Low);
        assert_eq!(body["thinking"], json!({"type": "enabled", "budget_tokens": 2048}));
        assert_eq!(body["max_tokens"], 6048);
        let body = written(&[user()], Thinking::High);
        assert_eq!((&body["max_tokens"], &body["thinking"]["budget_tokens"]), (&json!(8192), &json!(7168)));
        let unthought = [user(), said("m", vec![call("a")]), result("a", "x")];
        assert_eq!(written(&unthought, Thinking::High)["thinking"], Value::Null);
        let thoughtful = [user(), said("m", vec![thought(Some("s")), call("a")]), result("a", "x")];
        assert_eq!(written(&thoughtful, Thinking::Low)["thinking"]["budget_tokens"], 2048);
        assert_eq!(budget(Thinking::High, 1500, 1500), (1500, None));
    }

    #[test]
    fn reused_ids_stay_apart() {
        let turn = || [said("m", vec![call("call_1")]), result("call_1", "x")];
        let messages: Vec<Message> = turn().into_iter().chain(turn()).collect();
        let body = written(&messages, Thinking::Off);
        let at = |path: &str| body.pointer(path).and_then(Value::as_str).unwrap_or("").to_owned();
        assert_ne!(at("/messages/0/content/0/id"), at("/messages/2/content/0/id"));
        assert_eq!(at("/messages/0/content/0/id"), at("/messages/1/content/0/tool_use_id"));
        assert_eq!(at("/messages/2/content/0/id"), at("/messages/3/content/0/tool_use_id"));
    }

    fn read(events: &[Value]) -> Result<Assistant, ModelError> {
        let mut reader = Reader::new("anthropic");
        let about = About {
            provider: "anthropic".to_owned(),
            model: "m".to_owned(),
            api: Api::Anthropic,
            context_window: 0,
            max_tokens: 0,
            takes_images: false,
        };
        let mut draft = Draft::new(&about);
        for event in events {
            let deltas = reader.event(event["type"].as_str().unwrap_or(""), &event.to_string())?;
            for delta in &deltas {
                draft.apply(delta);
            }
        }
        assert!(reader.stopped);
        Ok(draft.finish().message)
    }

    fn stop(reason: &str) -> Value {
        json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 9}})
    }

    #[test]
    fn blocks_are_put_together_by_index() {
        let start =
            |index: u32, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
        let piece = |index: u32, json: &str| {
            let delta = json!({"type": "input_json_delta", "partial_json": json});
            json!({"type": "content_block_delta", "index": index, "delta": delta})
        };
        let message = read(&[
            json!({"type": "message_start", "message": {"usage": {
                "input_tokens": 3, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 7, "output_tokens": 1
            }}}),
            json!({"type": "something_new", "index": 4}),
            start(0, json!({"type": "redacted_thinking", "data": "xyz"})),
            start(1, json!({"type": "tool_use", "id": "same", "name": "read", "input": {}})),
            start(2, json!({"type": "tool_use", "id": "same", "name": "exec", "input": {}})),
            piece(1, "{\"a\""),
            piece(2, "{\"b\""),
            piece(1, ":1}"),
            piece(2, ":2}"),
            start(3, json!({"type": "tool_use", "id": "given", "name": "x", "input": {"c": 3}})),
            json!({"type": "content_block_stop", "index": 3}),
            stop("tool_use"),
        ])
        .expect("an answer");
        let calls: Vec<(&str, Value)> =
            message.calls().map(|call| (call.name.as_str(), Value::Object(call.arguments.clone()))).collect();
        assert_eq!(calls, [("read", json!({"a": 1})), ("exec", json!({"b": 2})), ("x", json!({"c": 3}))]);
        let withheld =
            Block::Thinking { thinking: String::new(), thinking_signature: Some("xyz".to_owned()), redacted: true };
        assert_eq!(message.content[0], withheld);
        let usage = message.usage;
        assert_eq!(
            (usage.input, usage.cache_read, usage.cache_write, usage.output, usage.total_tokens),
            (3, 5, 7, 9, 24)
        );
    }

    #[test]
    fn every_reason_to_stop_is_known() {
        let table = [
            ("end_turn", StopReason::Stop),
            ("pause_turn", StopReason::Stop),
            ("stop_sequence", StopReason::Stop),
            ("max_tokens", StopReason::Length),
        ];
        for (reason, expected) in table {
            assert_eq!(read(&[stop(reason)]).expect(reason).stop_reason, expected);
        }
        assert!(matches!(read(&[stop("refusal")]), Err(ModelError::Refused { .. })));
        assert!(matches!(read(&[stop("whim")]), Err(ModelError::Malformed { .. })));
        let error = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
        assert!(matches!(read(&[error]), Err(ModelError::Busy { status: 529, .. })));
        let why = Reader::new("p").event("x", "{\"type\": \u{7}oops").expect_err("not JSON").to_string();
        assert!(why.contains("oops") && !why.contains('\u{7}'), "{why}");
    }
}
