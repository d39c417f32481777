//! OpenAI Chat Completions: how is a request written?
//!
//! Half the world speaks this format, each a little differently, so much of this is about what others do not take.

mod reader;

use serde_json::{Value, json};

pub use reader::Reader;

use super::{Endpoint, NO_IMAGE, http, image_url, images, is_broken_off, placeholder, result_text};
use crate::image::Image;
use crate::message::{Assistant, Block, Message};
use crate::model::Request;
use crate::model::facts::Effort;
use crate::repair::ids::{Ids, Rule};

/// Where servers put thoughts; the first that says something counts.
const THOUGHTS: [&str; 3] = ["reasoning_content", "reasoning", "reasoning_text"];

/// The signature of thoughts that came as parts of the content, as Mistral's do.
const PARTS: &str = "content.thinking";

/// Fields that go back as they came: `reasoning_details` of `OpenRouter` and those who copy it, `extra_content` of Google,
/// with the message or with a call.
const DETAILS: &str = "reasoning_details";
const EXTRA: &str = "extra_content";

/// The body of a request.
#[must_use]
pub fn body(request: &Request<'_>, endpoint: &Endpoint) -> Value {
    let mut messages = Vec::new();
    if !request.system.is_empty() {
        messages.push(json!({"role": "system", "content": request.system}));
    }
    messages.extend(conversation(request.messages, endpoint));
    let mut body = json!({
        "model": endpoint.model, "messages": null, "stream": true, "stream_options": {"include_usage": true}
    });
    // The macro would copy it, and it may be long.
    body["messages"] = Value::Array(messages);
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            let function = json!({"name": tool.name, "description": tool.description, "parameters": tool.parameters});
            json!({"type": "function", "function": function})
        });
        body["tools"] = tools.collect();
    }
    if let Some(max_tokens) = endpoint.answer_tokens(request) {
        let is_new = endpoint.is_openai() || endpoint.is_azure();
        body[if is_new { "max_completion_tokens" } else { "max_tokens" }] = json!(max_tokens);
    }
    if endpoint.facts.chat_tools_unthinking && !request.tools.is_empty() {
        body["reasoning_effort"] = json!(Effort::None.word());
    } else if let Some(effort) = endpoint.effort(request.thinking) {
        body["reasoning_effort"] = json!(effort);
    }
    if endpoint.is_openai() && !request.session.is_empty() {
        body["prompt_cache_key"] = json!(request.session);
    }
    body
}

fn conversation(messages: &[Message], endpoint: &Endpoint) -> Vec<Value> {
    let mut ids = Ids::new(id_rule(endpoint));
    let mut written: Vec<Value> = Vec::new();
    let mut seen: Vec<Value> = Vec::new();
    for message in messages {
        if !matches!(message, Message::ToolResult(_)) {
            show(&mut seen, &mut written);
        }
        match message {
            Message::User(user) => push_user(&mut written, user_content(&user.content, endpoint)),
            Message::Assistant(assistant) => written.extend(assistant_message(assistant, endpoint, &mut ids)),
            Message::ToolResult(reply) => {
                written.push(json!({
                    "role": "tool", "tool_call_id": ids.rewrite(&reply.tool_call_id),
                    "content": result_text(&reply.content, endpoint)
                }));
                seen.extend(images(&reply.content, endpoint).into_iter().map(image_part));
            }
        }
    }
    show(&mut seen, &mut written);
    written
}

/// Results take no images in this format, so those of a batch follow it in the name of the user.
fn show(seen: &mut Vec<Value>, written: &mut Vec<Value>) {
    if seen.is_empty() {
        return;
    }
    let mut parts = vec![json!({"type": "text", "text": "[The images of the results above:]"})];
    parts.append(seen);
    written.push(json!({"role": "user", "content": parts}));
}

/// Mistral's models take ids of nine characters only, wherever they run.
fn id_rule(endpoint: &Endpoint) -> Rule {
    let host = http::host(&endpoint.base_url).unwrap_or_default();
    let is_mistral =
        [&endpoint.provider, &endpoint.model, &host].iter().any(|name| name.to_lowercase().contains("stral"));
    if is_mistral { Rule::Strict9 } else { Rule::Strict }
}

/// Plain text where possible: some servers take nothing else.
fn user_content(blocks: &[Block], endpoint: &Endpoint) -> Value {
    if let [Block::Text { text, .. }] = blocks {
        return Value::String(text.clone());
    }
    let mut parts = Vec::new();
    for block in blocks {
        match block {
            Block::Text { text, .. } if !text.is_empty() => parts.push(json!({"type": "text", "text": text})),
            Block::Image(image) if endpoint.takes_images => parts.push(image_part(image)),
            Block::Image(_) => parts.push(json!({"type": "text", "text": NO_IMAGE})),
            Block::Other(value) => parts.push(json!({"type": "text", "text": placeholder(value)})),
            Block::Text { .. } | Block::Thinking { .. } | Block::ToolCall(_) => {}
        }
    }
    let texts: Option<Vec<&str>> = parts.iter().map(|part| part["text"].as_str()).collect();
    match texts {
        Some(texts) => json!(texts.join("\n")),
        None => Value::Array(parts),
    }
}

fn image_part(image: &Image) -> Value {
    json!({"type": "image_url", "image_url": {"url": image_url(image)}})
}

/// Many chat templates want the roles to alternate, so texts in a row become one.
fn push_user(written: &mut Vec<Value>, content: Value) {
    if content == "" {
        return;
    }
    let before = written.last_mut().filter(|last| last["role"] == "user").map(|last| &mut last["content"]);
    match (before, content) {
        (Some(Value::String(text)), Value::String(more)) => {
            text.push_str("\n\n");
            text.push_str(&more);
        }
        (Some(before), more) if before.is_array() || more.is_array() => {
            let mut parts = parts(before.take());
            parts.extend(self::parts(more));
            *before = Value::Array(parts);
        }
        (_, content) => {
            let mut message = json!({"role": "user", "content": null});
            message["content"] = content;
            written.push(message);
        }
    }
}

/// Content as a list of parts.
fn parts(content: Value) -> Vec<Value> {
    match content {
        Value::Array(parts) => parts,
        text => vec![json!({"type": "text", "text": text})],
    }
}

fn assistant_message(message: &Assistant, endpoint: &Endpoint, ids: &mut Ids) -> Option<Value> {
    ids.begin_reply();
    let text = message.text();
    let is_own = endpoint.wrote(message) && !is_broken_off(message);
    let calls: Vec<Value> = message
        .calls()
        .map(|call| {
            let function = json!({"name": call.name, "arguments": Value::Object(call.arguments.clone()).to_string()});
            let mut written = json!({"id": ids.rewrite(&call.id), "type": "function", "function": function});
            if let Some(extra) = call.provider_data.get(EXTRA).filter(|_| is_own) {
                written[EXTRA] = extra.clone();
            }
            written
        })
        .collect();
    if text.trim().is_empty() && calls.is_empty() {
        return None;
    }
    let mut written = json!({"role": "assistant", "content": null});
    if !text.is_empty() {
        written["content"] = Value::String(text);
    }
    if !calls.is_empty() {
        written["tool_calls"] = Value::Array(calls);
    }
    if is_own {
        give_back(message, &mut written);
    }
    Some(written)
}

/// Adds what the model thought, and what else its provider wants back.
fn give_back(message: &Assistant, written: &mut Value) {
    for field in [DETAILS, EXTRA] {
        if let Some(value) = message.provider_data.get(field) {
            written[field] = value.clone();
        }
    }
    let has_details = !written[DETAILS].is_null();
    for (field, thought) in thoughts(message) {
        match field {
            PARTS => {
                let thought = json!({"type": "thinking", "thinking": [{"type": "text", "text": thought}]});
                let said = match written["content"].take() {
                    Value::Null => Vec::new(),
                    content => parts(content),
                };
                written["content"] = std::iter::once(thought).chain(said).collect();
            }
            // The details have it already.
            "reasoning" if has_details => {}
            field => written[field] = json!(thought),
        }
    }
}

/// The thoughts of a message, by the field they came in, which is their signature.
fn thoughts(message: &Assistant) -> impl Iterator<Item = (&'static str, &str)> {
    message.content.iter().filter_map(|block| match block {
        Block::Thinking { thinking, thinking_signature: Some(field), .. } => {
            let mut fields = THOUGHTS.into_iter().chain([PARTS]);
            fields.find(|known| known == field).map(|field| (field, thinking.as_str()))
        }
        Block::Text { .. } | Block::Thinking { .. } | Block::ToolCall(_) | Block::Image(_) | Block::Other(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{StopReason, ToolCall, ToolReply, Usage, User};
    use crate::model::{Api, Thinking};
    use crate::tool::ToolSpec;

    fn said(content: Vec<Block>) -> Message {
        Message::Assistant(Assistant {
            content,
            api: Api::Chat.word().to_owned(),
            provider: "p".to_owned(),
            model: "m".to_owned(),
            usage: Usage::default(),
            stop_reason: StopReason::Stop,
            error_message: None,
            provider_data: serde_json::Map::new(),
            timestamp: 0,
        })
    }

    fn written(messages: &[Message], endpoint: &Endpoint) -> Value {
        let tools =
            [ToolSpec { name: "read".to_owned(), description: "d".to_owned(), parameters: json!({"type": "object"}) }];
        let thinking = Thinking::Off;
        body(
            &Request { system: "be good", messages, tools: &tools, max_tokens: Some(9), thinking, session: "s" },
            endpoint,
        )
    }

    #[test]
    fn a_request_is_written_for_everybody() {
        let arguments = json!({"n": 1}).as_object().cloned().unwrap_or_default();
        let (id, name) = ("call_1".to_owned(), "read".to_owned());
        let call = ToolCall { id, name, arguments, thought_signature: None, provider_data: serde_json::Map::new() };
        let image = Block::Image(Image { data: "AA".to_owned(), mime_type: "image/png".to_owned() });
        let reply = ToolReply {
            tool_call_id: "call_1".to_owned(),
            tool_name: "read".to_owned(),
            content: vec![Block::text("x"), image.clone()],
            details: Some(json!({"secret": true})),
            is_error: false,
            timestamp: 0,
        };
        let messages = [
            Message::User(User::says("one")),
            Message::User(User { content: vec![Block::text("two"), image], timestamp: 0 }),
            said(vec![Block::ToolCall(call)]),
            Message::ToolResult(reply),
        ];
        let mut endpoint = Endpoint::new("p", "http://h/v1", Api::Chat, "m");
        assert_eq!(
            written(&messages, &endpoint),
            json!({
                "model": "m",
                "messages": [
                    {"role": "system", "content": "be good"},
                    {"role": "user", "content": format!("one\n\ntwo\n{NO_IMAGE}")},
                    {"role": "assistant", "content": null, "tool_calls": [
                        {"id": "call1", "type": "function", "function": {"name": "read", "arguments": "{\"n\":1}"}}
                    ]},
                    {"role": "tool", "tool_call_id": "call1", "content": format!("x\n{NO_IMAGE}")}
                ],
                "stream": true, "stream_options": {"include_usage": true},
                "tools": [{"type": "function", "function": {
                    "name": "read", "description": "d", "parameters": {"type": "object"}
                }}],
                "max_tokens": 9
            })
        );
        endpoint.takes_images = true;
        endpoint.base_url = "https://api.openai.com/v1".to_owned();
        let body = written(&messages, &endpoint);
        let url = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}});
        assert_eq!(body["messages"][1]["content"][2], url, "{body}");
        assert_eq!((&body["messages"][3]["role"], &body["messages"][3]["content"]), (&json!("tool"), &json!("x")));
        assert_eq!(body["messages"][4]["content"][1], url, "results take no images here");
        assert_eq!((&body["max_completion_tokens"], &body["max_tokens"]), (&json!(9), &Value::Null));
        assert_eq!(body["prompt_cache_key"], "s");
        endpoint.model = "Devstral-small".to_owned();
        let id = written(&messages, &endpoint)["messages"][2]["tool_calls"][0]["id"].clone();
        assert_eq!(id.as_str().map(str::len), Some(9));
    }

    #[test]
    fn thoughts_go_back_under_the_name_they_came_by() {
        let thought = |field: &str| Block::Thinking {
            thinking: "hm".to_owned(),
            thinking_signature: Some(field.to_owned()),
            redacted: false,
        };
        let endpoint = |model: &str| Endpoint::new("p", "http://h", Api::Chat, model);
        for field in THOUGHTS {
            let messages = [said(vec![thought(field), Block::text("hi")])];
            let plain = json!({"role": "assistant", "content": "hi"});
            let with_thought = json!({"role": "assistant", "content": "hi", field: "hm"});
            assert_eq!(written(&messages, &endpoint("m"))["messages"][1], with_thought);
            assert_eq!(written(&messages, &endpoint("other"))["messages"][1], plain);
        }
        let strange = [said(vec![thought("content"), Block::text("hi")])];
        assert_eq!(written(&strange, &endpoint("m"))["messages"][1]["content"], "hi");
    }
}
