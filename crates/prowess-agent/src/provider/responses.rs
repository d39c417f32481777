//! OpenAI Responses: how is a request written, and what does each event of the answer say?

mod reader;

use serde_json::{Value, json};

use super::{Endpoint, NO_IMAGE, image_url, images, is_broken_off, placeholder, result_text};
use crate::message::{Assistant, Block, Message, ToolCall};
use crate::model::Request;
use crate::repair::ids::{Ids, Rule};

pub use reader::Reader;

/// The longest id that is taken back.
const MAX_ID: usize = 64;

/// The body of a request.
#[must_use]
pub fn body(request: &Request<'_>, endpoint: &Endpoint) -> Value {
    let mut body = json!({"model": endpoint.model, "input": null, "stream": true, "store": false});
    // The macro would copy it, and it may be long.
    body["input"] = Value::Array(conversation(request.messages, endpoint));
    if !request.system.is_empty() {
        body["instructions"] = json!(request.system);
    }
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            json!({
                "type": "function", "name": tool.name, "description": tool.description,
                "parameters": tool.parameters, "strict": false
            })
        });
        body["tools"] = tools.collect();
    }
    if let Some(max_tokens) = endpoint.answer_tokens(request) {
        body["max_output_tokens"] = json!(max_tokens);
    }
    if let Some(effort) = endpoint.effort(request.thinking) {
        body["reasoning"] = json!({"effort": effort, "summary": "auto"});
    }
    if endpoint.reasoning {
        // Most models reason unasked, and nothing is stored: what they thought has to come along to go back.
        body["include"] = json!(["reasoning.encrypted_content"]);
    }
    if endpoint.is_openai() && !request.session.is_empty() {
        body["prompt_cache_key"] = json!(request.session);
    }
    body
}

fn conversation(messages: &[Message], endpoint: &Endpoint) -> Vec<Value> {
    let mut ids = Ids::new(Rule::Keep);
    let mut items = Vec::new();
    for message in messages {
        match message {
            Message::User(user) => {
                let content = user_parts(&user.content, endpoint);
                if !content.is_empty() {
                    items.push(json!({"type": "message", "role": "user", "content": content}));
                }
            }
            Message::Assistant(assistant) => items.extend(assistant_items(assistant, endpoint, &mut ids)),
            Message::ToolResult(reply) => items.push(json!({
                "type": "function_call_output",
                "call_id": ids.rewrite(call_id(&reply.tool_call_id)),
                "output": output(&reply.content, endpoint)
            })),
        }
    }
    items
}

/// OpenClaw writes the id of a call and the id of its item into one, with a bar between them.
fn call_id(id: &str) -> &str {
    match id.split_once('|') {
        Some((call, _)) if !call.is_empty() => call,
        _ => id,
    }
}

fn user_parts(blocks: &[Block], endpoint: &Endpoint) -> Vec<Value> {
    let part = |text: &str| json!({"type": "input_text", "text": text});
    blocks
        .iter()
        .filter_map(|block| match block {
            Block::Text { text, .. } => (!text.is_empty()).then(|| part(text)),
            Block::Image(image) if endpoint.takes_images => {
                Some(json!({"type": "input_image", "detail": "auto", "image_url": image_url(image)}))
            }
            Block::Image(_) => Some(part(NO_IMAGE)),
            Block::Other(value) => Some(part(&placeholder(value))),
            Block::Thinking { .. } | Block::ToolCall(_) => None,
        })
        .collect()
}

/// The result of a call: plain text unless there is an image to look at.
fn output(blocks: &[Block], endpoint: &Endpoint) -> Value {
    if images(blocks, endpoint).is_empty() {
        return json!(result_text(blocks, endpoint));
    }
    Value::Array(user_parts(blocks, endpoint))
}

fn assistant_items(message: &Assistant, endpoint: &Endpoint, ids: &mut Ids) -> Vec<Value> {
    ids.begin_reply();
    let is_own = endpoint.wrote(message) && !is_broken_off(message);
    let mut items = Vec::new();
    // A thought is taken back only in front of what it led to.
    let mut thoughts = Vec::new();
    // And what it led to keeps its id only behind the thought.
    let mut keeps_id = false;
    for block in &message.content {
        let item = match block {
            Block::Thinking { thinking_signature, .. } => {
                let thought = thinking_signature.as_deref().filter(|_| is_own).and_then(reasoning_item);
                keeps_id = thought.is_some();
                thoughts.extend(thought);
                continue;
            }
            Block::Text { text, .. } if text.is_empty() => continue,
            Block::Text { text, text_signature } => {
                text_item(text, text_signature.as_deref().filter(|_| is_own), keeps_id)
            }
            Block::ToolCall(call) => call_item(call, keeps_id, ids),
            Block::Image(_) | Block::Other(_) => continue,
        };
        items.append(&mut thoughts);
        items.push(item);
    }
    items
}

/// The item that a signature is, if it can be sent back: nothing is stored, so without its content an id means nothing.
fn reasoning_item(signature: &str) -> Option<Value> {
    let item: Value = serde_json::from_str(signature).ok()?;
    let has_content = item["encrypted_content"].as_str().is_some_and(|content| !content.is_empty());
    (item["type"] == "reasoning" && has_content).then_some(item)
}

fn text_item(text: &str, signature: Option<&str>, keeps_id: bool) -> Value {
    let mut item = json!({
        "type": "message", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": []}]
    });
    if let Some(id) = signature.filter(|_| keeps_id).and_then(|signature| item_id(signature, "msg_")) {
        item["id"] = json!(id);
    }
    let parsed = signature.and_then(|signature| serde_json::from_str::<Value>(signature).ok());
    if let Some(phase) = parsed.as_ref().and_then(|signature| signature["phase"].as_str()) {
        item["phase"] = json!(phase);
    }
    item
}

fn call_item(call: &ToolCall, keeps_id: bool, ids: &mut Ids) -> Value {
    let mut item = json!({
        "type": "function_call", "call_id": ids.rewrite(call_id(&call.id)), "name": call.name,
        "arguments": Value::Object(call.arguments.clone()).to_string()
    });
    let after_bar = call.id.split_once('|').map(|(_, item)| item);
    let signature = call.thought_signature.as_deref().or(after_bar).filter(|_| keeps_id);
    if let Some(id) = signature.and_then(|signature| item_id(signature, "fc_")) {
        item["id"] = json!(id);
    }
    item
}

/// The id of an item from a signature: the id itself, or an object with it, as OpenClaw writes it for texts.
fn item_id(signature: &str, start: &str) -> Option<String> {
    let inner = serde_json::from_str::<Value>(signature).ok().and_then(|value| value["id"].as_str().map(str::to_owned));
    let id = inner.unwrap_or_else(|| signature.to_owned());
    (id.starts_with(start) && id.len() <= MAX_ID).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{StopReason, ToolReply, User};
    use crate::model::{About, Api, Draft, ModelError, Thinking};
    use crate::tool::ToolSpec;

    fn read(events: &[Value]) -> Result<Assistant, ModelError> {
        let mut reader = Reader::new("openai");
        let about = About {
            provider: "openai".to_owned(),
            model: "m".to_owned(),
            api: Api::Responses,
            context_window: 0,
            max_tokens: 0,
            takes_images: false,
        };
        let mut draft = Draft::new(&about);
        for event in events {
            for delta in reader.event("", &event.to_string())? {
                draft.apply(&delta);
            }
        }
        assert!(reader.stopped && reader.over);
        Ok(draft.finish().message)
    }

    fn completed() -> Value {
        json!({"type": "response.completed", "response": {"status": "completed", "usage": {
            "input_tokens": 10, "input_tokens_details": {"cached_tokens": 4},
            "output_tokens": 7, "output_tokens_details": {"reasoning_tokens": 5}
        }}})
    }

    fn reasoning() -> Value {
        json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "enc", "summary": [
            {"type": "summary_text", "text": "one"}, {"type": "summary_text", "text": "two"}
        ]})
    }

    fn function(n: u32) -> Value {
        let arguments = format!("{{\"n\":{n}}}");
        json!({
            "type": "function_call", "id": format!("fc_{n}"), "call_id": format!("call_{n}"), "name": "read",
            "arguments": arguments
        })
    }

    /// The same answer in three ways: in interleaved pieces, in whole items, and only at the end.
    fn three_ways() -> [Vec<Value>; 3] {
        let items = [reasoning(), function(1), function(2)];
        let done = |(index, item): (usize, &Value)| json!({"type": "response.output_item.done", "output_index": index, "item": item});
        let whole: Vec<Value> = items.iter().enumerate().map(done).collect();
        let at = |index: u32, kind: &str, delta: &str| json!({"type": kind, "output_index": index, "delta": delta});
        let thought = "response.reasoning_summary_text.delta";
        let arguments = "response.function_call_arguments.delta";
        let begun = |index: u32, kind: &str, call: &str| {
            let item = json!({"type": kind, "call_id": call, "name": "read", "arguments": ""});
            json!({"type": "response.output_item.added", "output_index": index, "item": item})
        };
        let mut pieces = vec![
            json!({"type": "response.created", "response": {"status": "in_progress"}}),
            begun(0, "reasoning", ""),
            json!({"type": "response.reasoning_summary_part.added", "output_index": 0, "summary_index": 0}),
            at(0, thought, "on"),
            at(0, thought, "e"),
            json!({"type": "response.reasoning_summary_part.added", "output_index": 0, "summary_index": 1}),
            at(0, thought, "two"),
            begun(1, "function_call", "call_1"),
            begun(2, "function_call", "call_2"),
            at(1, arguments, "{\"n\""),
            at(2, arguments, "{\"n\":2"),
            at(1, arguments, ":1}"),
            at(2, arguments, "}"),
            json!({"type": "response.function_call_arguments.done", "output_index": 1, "arguments": "{\"n\":1}"}),
        ];
        pieces.extend(whole.clone());
        pieces.push(completed());
        let mut last = completed();
        last["response"]["output"] = json!(items);
        [pieces, whole.into_iter().chain([completed()]).collect(), vec![last]]
    }

    #[test]
    fn an_answer_is_the_same_however_it_comes() {
        for events in three_ways() {
            let message = read(&events).expect("an answer");
            let calls: Vec<(&str, Value, Option<&str>)> = message
                .calls()
                .map(|call| {
                    (call.id.as_str(), Value::Object(call.arguments.clone()), call.thought_signature.as_deref())
                })
                .collect();
            assert_eq!(calls, [("call_1", json!({"n": 1}), Some("fc_1")), ("call_2", json!({"n": 2}), Some("fc_2"))]);
            let thinking = Block::Thinking {
                thinking: "one\n\ntwo".to_owned(),
                thinking_signature: Some(reasoning().to_string()),
                redacted: false,
            };
            assert_eq!(message.content[0], thinking);
            let usage = message.usage;
            assert_eq!((usage.input, usage.cache_read, usage.output, usage.total_tokens), (6, 4, 7, 17));
            assert_eq!(message.stop_reason, StopReason::ToolUse);
        }
    }

    #[test]
    fn every_end_is_known() {
        let ended = |kind: &str, response: Value| read(&[json!({"type": kind, "response": response})]);
        let incomplete = |reason: &str| {
            ended("response.incomplete", json!({"status": "incomplete", "incomplete_details": {"reason": reason}}))
        };
        assert_eq!(incomplete("max_output_tokens").expect("an answer").stop_reason, StopReason::Length);
        assert!(matches!(incomplete("content_filter"), Err(ModelError::Refused { .. })));
        assert_eq!(incomplete("whim").expect("an answer counts").stop_reason, StopReason::Stop);
        let failed =
            |code: &str| ended("response.failed", json!({"status": "failed", "error": {"code": code, "message": "x"}}));
        assert!(matches!(failed("server_error"), Err(ModelError::Server { .. })));
        assert!(matches!(failed("rate_limit_exceeded"), Err(ModelError::Busy { .. })));
        assert!(matches!(failed("context_length_exceeded"), Err(ModelError::Overflow { .. })));
        let error = json!({"type": "error", "code": "invalid_api_key", "message": "x", "param": null});
        assert!(matches!(read(&[error]), Err(ModelError::Key { .. })));
        assert!(matches!(ended("response.cancelled", json!({"status": "cancelled"})), Err(ModelError::Cut { .. })));
    }

    fn written(messages: &[Message], thinking: Thinking) -> Value {
        let tools =
            [ToolSpec { name: "read".to_owned(), description: "d".to_owned(), parameters: json!({"type": "object"}) }];
        let request = Request { system: "be good", messages, tools: &tools, max_tokens: None, thinking, session: "s" };
        body(&request, &Endpoint::new("openai", "https://api.openai.com/v1", Api::Responses, "m"))
    }

    fn result(id: &str) -> Message {
        Message::ToolResult(ToolReply {
            tool_call_id: id.to_owned(),
            tool_name: "read".to_owned(),
            content: vec![Block::text("out")],
            details: None,
            is_error: false,
            timestamp: 0,
        })
    }

    #[test]
    fn what_came_goes_back_as_it_came() {
        let [pieces, ..] = three_ways();
        let own = read(&pieces).expect("an answer");
        let messages = [Message::User(User::says("hi")), Message::Assistant(own), result("call_1"), result("call_2")];
        let call = |n: u32| {
            json!({
                "type": "function_call", "call_id": format!("call_{n}"), "name": "read",
                "arguments": format!("{{\"n\":{n}}}"), "id": format!("fc_{n}")
            })
        };
        let output = |n: u32| json!({"type": "function_call_output", "call_id": format!("call_{n}"), "output": "out"});
        assert_eq!(
            written(&messages, Thinking::Medium),
            json!({
                "model": "m",
                "input": [
                    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
                    reasoning(), call(1), call(2), output(1), output(2)
                ],
                "stream": true, "store": false, "instructions": "be good",
                "tools": [{
                    "type": "function", "name": "read", "description": "d", "parameters": {"type": "object"}, "strict": false
                }],
                "reasoning": {"effort": "medium", "summary": "auto"},
                "include": ["reasoning.encrypted_content"],
                "prompt_cache_key": "s"
            })
        );
    }

    #[test]
    fn others_words_go_without_their_signatures() {
        let [pieces, ..] = three_ways();
        let mut other = read(&pieces).expect("an answer");
        other.model = "another".to_owned();
        let body = written(&[Message::Assistant(other.clone()), result("call_1")], Thinking::Off);
        assert_eq!((&body["input"][0]["type"], &body["input"][0]["id"]), (&json!("function_call"), &Value::Null));
        // Thoughts that led to nothing stay behind, whoever had them.
        other.model = "m".to_owned();
        other.content.truncate(1);
        assert_eq!(written(&[Message::Assistant(other)], Thinking::Off)["input"], json!([]));
    }

    #[test]
    fn ids_of_openclaw_are_taken_apart() {
        let [pieces, ..] = three_ways();
        let mut message = read(&pieces).expect("an answer");
        let call = ToolCall {
            id: "call_9|fc_9".to_owned(),
            name: "read".to_owned(),
            arguments: serde_json::Map::new(),
            thought_signature: None,
            provider_data: serde_json::Map::new(),
        };
        let text = Block::Text { text: "t".to_owned(), text_signature: Some(r#"{"v":1,"id":"msg_9"}"#.to_owned()) };
        let thought = message.content[0].clone();
        message.content = vec![thought, text, Block::ToolCall(call)];
        let input = written(&[Message::Assistant(message), result("call_9|fc_9")], Thinking::Off)["input"].clone();
        assert_eq!((&input[1]["id"], &input[2]["id"]), (&json!("msg_9"), &json!("fc_9")));
        assert_eq!((&input[2]["call_id"], &input[3]["call_id"]), (&json!("call_9"), &json!("call_9")));
    }

    #[test]
    fn ids_go_back_only_behind_their_thought_and_phases_always() {
        let item = |n: u32, phase: &str| json!({"type": "message", "id": format!("msg_{n}"), "phase": phase, "content": [{"type": "output_text", "text": "t"}]});
        let mut hidden = reasoning();
        hidden["encrypted_content"] = Value::Null;
        let output =
            json!([hidden, item(1, "commentary"), function(1), reasoning(), item(2, "final_answer"), function(2)]);
        let mut last = completed();
        last["response"]["output"] = output;
        let own = read(&[last]).expect("an answer");
        let messages = [Message::User(User::says("hi")), Message::Assistant(own), result("call_1"), result("call_2")];
        let body = written(&messages, Thinking::Off);
        let shape = |item: &Value| (item["type"].clone(), item["id"].clone(), item["phase"].clone());
        let shapes: Vec<_> = body["input"].as_array().expect("a list")[1..6].iter().map(shape).collect();
        let expected = [
            ("message", Value::Null, json!("commentary")),
            ("function_call", Value::Null, Value::Null),
            ("reasoning", json!("rs_1"), Value::Null),
            ("message", json!("msg_2"), json!("final_answer")),
            ("function_call", json!("fc_2"), Value::Null),
        ];
        assert_eq!(shapes, expected.map(|(kind, id, phase)| (json!(kind), id, phase)));
        assert_eq!(
            body["include"],
            json!(["reasoning.encrypted_content"]),
            "asked for also when it is not told to think"
        );
    }
}
