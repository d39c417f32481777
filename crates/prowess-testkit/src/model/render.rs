//! What does an answer look like on the wire, in each of the three formats?

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{Answer, RecordedRequest, Turn};

/// A wire format, by the path it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Api {
    Anthropic,
    Chat,
    Responses,
}

impl Api {
    pub(super) fn of_path(path: &str) -> Option<Self> {
        match path.rsplit_once('/')? {
            (_, "messages") => Some(Self::Anthropic),
            (_, "completions") => Some(Self::Chat),
            (_, "responses") => Some(Self::Responses),
            _ => None,
        }
    }
}

/// The bytes of a turn that has an answer in it; statuses have none here.
pub(super) fn render(turn: &Turn, api: Api, request: &RecordedRequest) -> Vec<u8> {
    let counts = |answer: &Answer| Counts::of(answer, request);
    match turn {
        Turn::Text(text) => stream(&Answer { text: text.clone(), ..Answer::default() }, api, request),
        Turn::Calls(calls) => stream(&Answer { calls: calls.clone(), ..Answer::default() }, api, request),
        Turn::Answer(answer) => stream(answer, api, request),
        Turn::Whole(answer) => match api {
            Api::Anthropic => anthropic_whole(answer, &counts(answer)),
            Api::Chat => chat_whole(answer, &counts(answer)),
            Api::Responses => response(answer, &counts(answer)),
        }
        .to_string()
        .into_bytes(),
        Turn::Raw(bytes) => bytes.clone(),
        Turn::Cut { turn, after } | Turn::Stall { turn, after } => {
            let mut bytes = render(turn, api, request);
            bytes.truncate(*after);
            bytes
        }
        Turn::Status { body, .. } => body.clone().into_bytes(),
        Turn::Endless { first, .. } => first.clone(),
    }
}

/// The tokens that a turn says it took; one that is broken off says nothing.
pub(super) fn tokens(turn: &Turn, request: &RecordedRequest) -> usize {
    let answer = match turn {
        Turn::Text(text) => Answer { text: text.clone(), ..Answer::default() },
        Turn::Calls(calls) => Answer { calls: calls.clone(), ..Answer::default() },
        Turn::Answer(answer) | Turn::Whole(answer) => answer.clone(),
        Turn::Status { .. } | Turn::Raw(_) | Turn::Cut { .. } | Turn::Stall { .. } | Turn::Endless { .. } => return 0,
    };
    let counts = Counts::of(&answer, request);
    counts.input + counts.output
}

fn stream(answer: &Answer, api: Api, request: &RecordedRequest) -> Vec<u8> {
    let counts = Counts::of(answer, request);
    let text = match api {
        Api::Anthropic => anthropic(answer, &counts),
        Api::Chat => chat(answer, &counts),
        Api::Responses => responses(answer, &counts),
    };
    text.into_bytes()
}

/// Tokens, made up from lengths: about four bytes each, a quarter of the question cached.
struct Counts {
    input: usize,
    cached: usize,
    output: usize,
    thought: usize,
}

impl Counts {
    fn of(answer: &Answer, request: &RecordedRequest) -> Self {
        let input = request.body.to_string().len() / 4 + 1;
        let calls: usize =
            answer.calls.iter().map(|(_, name, arguments)| name.len() + arguments.to_string().len()).sum();
        let thought = answer.thinking.len().div_ceil(4);
        Self { input, cached: input / 4, output: (answer.text.len() + calls).div_ceil(4) + thought + 1, thought }
    }
}

/// The words of a text with the blanks after them: what a model says at a time.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(' ')
}

/// The JSON of arguments in pieces of a few characters, cut without regard to what they mean.
fn pieces(arguments: &Value) -> Vec<String> {
    let json: Vec<char> = arguments.to_string().chars().collect();
    json.chunks(5).map(|piece| piece.iter().collect()).collect()
}

fn named(out: &mut String, name: &str, data: &Value) {
    write!(out, "event: {name}\ndata: {data}\n\n").expect("a string takes everything");
}

fn anthropic(answer: &Answer, counts: &Counts) -> String {
    let mut out = String::new();
    let usage = json!({
        "input_tokens": counts.input - counts.cached, "cache_read_input_tokens": counts.cached,
        "cache_creation_input_tokens": 0, "output_tokens": 1
    });
    let message = json!({
        "id": "msg_01Test", "type": "message", "role": "assistant", "model": "test-model", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": usage
    });
    named(&mut out, "message_start", &json!({"type": "message_start", "message": message}));
    named(&mut out, "ping", &json!({"type": "ping"}));
    let mut index = 0;
    let mut block = |out: &mut String, start: Value, deltas: Vec<Value>| {
        named(
            out,
            "content_block_start",
            &json!({"type": "content_block_start", "index": index, "content_block": start}),
        );
        for delta in deltas {
            named(out, "content_block_delta", &json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        named(out, "content_block_stop", &json!({"type": "content_block_stop", "index": index}));
        index += 1;
    };
    if !answer.thinking.is_empty() {
        let thoughts = words(&answer.thinking).map(|text| json!({"type": "thinking_delta", "thinking": text}));
        let signature = json!({"type": "signature_delta", "signature": "c2lnbmF0dXJl"});
        block(
            &mut out,
            json!({"type": "thinking", "thinking": "", "signature": ""}),
            thoughts.chain([signature]).collect(),
        );
    }
    if !answer.text.is_empty() {
        let deltas = words(&answer.text).map(|text| json!({"type": "text_delta", "text": text})).collect();
        block(&mut out, json!({"type": "text", "text": ""}), deltas);
    }
    for (id, name, arguments) in &answer.calls {
        let json =
            pieces(arguments).into_iter().map(|piece| json!({"type": "input_json_delta", "partial_json": piece}));
        let first = json!({"type": "input_json_delta", "partial_json": ""});
        let start = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
        block(&mut out, start, [first].into_iter().chain(json).collect());
    }
    let delta = json!({"stop_reason": anthropic_stop(answer), "stop_sequence": null});
    let usage = json!({"output_tokens": counts.output});
    named(&mut out, "message_delta", &json!({"type": "message_delta", "delta": delta, "usage": usage}));
    named(&mut out, "message_stop", &json!({"type": "message_stop"}));
    out
}

fn anthropic_stop(answer: &Answer) -> &'static str {
    if answer.cut_short {
        "max_tokens"
    } else if answer.calls.is_empty() {
        "end_turn"
    } else {
        "tool_use"
    }
}

fn anthropic_whole(answer: &Answer, counts: &Counts) -> Value {
    let mut content = Vec::new();
    if !answer.thinking.is_empty() {
        content.push(json!({"type": "thinking", "thinking": answer.thinking, "signature": "c2lnbmF0dXJl"}));
    }
    if !answer.text.is_empty() {
        content.push(json!({"type": "text", "text": answer.text}));
    }
    for (id, name, arguments) in &answer.calls {
        content.push(json!({"type": "tool_use", "id": id, "name": name, "input": arguments}));
    }
    json!({
        "id": "msg_01Test", "type": "message", "role": "assistant", "model": "test-model", "content": content,
        "stop_reason": anthropic_stop(answer), "stop_sequence": null,
        "usage": {
            "input_tokens": counts.input - counts.cached, "cache_read_input_tokens": counts.cached,
            "cache_creation_input_tokens": 0, "output_tokens": counts.output
        }
    })
}

fn chat(answer: &Answer, counts: &Counts) -> String {
    let mut out = String::new();
    let mut chunk = |choices: Value, usage: Value| {
        let chunk = json!({
            "id": "chatcmpl-test", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "test-model",
            "choices": choices, "usage": usage
        });
        write!(out, "data: {chunk}\n\n").expect("a string takes everything");
    };
    let choice =
        |delta: Value, finish: Value| json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}]);
    chunk(choice(json!({"role": "assistant", "content": ""}), Value::Null), Value::Null);
    for text in words(&answer.thinking) {
        chunk(choice(json!({"reasoning_content": text}), Value::Null), Value::Null);
    }
    for text in words(&answer.text) {
        chunk(choice(json!({"content": text}), Value::Null), Value::Null);
    }
    for (index, (id, name, _)) in answer.calls.iter().enumerate() {
        let function = json!({"name": name, "arguments": ""});
        let call = json!({"index": index, "id": id, "type": "function", "function": function});
        chunk(choice(json!({"tool_calls": [call]}), Value::Null), Value::Null);
    }
    // Calls made at the same time arrive at the same time: a piece of each in turn.
    let all: Vec<Vec<String>> = answer.calls.iter().map(|(_, _, arguments)| pieces(arguments)).collect();
    for round in 0..all.iter().map(Vec::len).max().unwrap_or(0) {
        for (index, pieces) in all.iter().enumerate() {
            if let Some(piece) = pieces.get(round) {
                let call = json!({"index": index, "function": {"arguments": piece}});
                chunk(choice(json!({"tool_calls": [call]}), Value::Null), Value::Null);
            }
        }
    }
    chunk(choice(json!({}), json!(chat_stop(answer))), Value::Null);
    chunk(json!([]), chat_usage(counts));
    out.push_str("data: [DONE]\n\n");
    out
}

fn chat_stop(answer: &Answer) -> &'static str {
    if answer.cut_short {
        "length"
    } else if answer.calls.is_empty() {
        "stop"
    } else {
        "tool_calls"
    }
}

fn chat_usage(counts: &Counts) -> Value {
    json!({
        "prompt_tokens": counts.input, "completion_tokens": counts.output, "total_tokens": counts.input + counts.output,
        "prompt_tokens_details": {"cached_tokens": counts.cached},
        "completion_tokens_details": {"reasoning_tokens": counts.thought}
    })
}

fn chat_whole(answer: &Answer, counts: &Counts) -> Value {
    let mut message = json!({"role": "assistant", "content": answer.text});
    if !answer.thinking.is_empty() {
        message["reasoning_content"] = json!(answer.thinking);
    }
    if !answer.calls.is_empty() {
        let call = |(id, name, arguments): &(String, String, Value)| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments.to_string()}});
        message["tool_calls"] = answer.calls.iter().map(call).collect();
    }
    json!({
        "id": "chatcmpl-test", "object": "chat.completion", "created": 1_700_000_000, "model": "test-model",
        "choices": [{"index": 0, "message": message, "finish_reason": chat_stop(answer)}], "usage": chat_usage(counts)
    })
}

fn responses(answer: &Answer, counts: &Counts) -> String {
    let mut out = String::new();
    let mut number = 0;
    let mut event = |name: &str, mut data: Value| {
        data["type"] = json!(name);
        data["sequence_number"] = json!(number);
        number += 1;
        named(&mut out, name, &data);
    };
    let started = json!({"id": "resp_test", "object": "response", "status": "in_progress", "output": []});
    event("response.created", json!({"response": started}));
    event("response.in_progress", json!({"response": started}));
    for (index, item) in items(answer).iter().enumerate() {
        let mut begun = item.clone();
        begun["status"] = json!("in_progress");
        for key in ["content", "summary"] {
            if begun[key].is_array() {
                begun[key] = json!([]);
            }
        }
        if begun["arguments"].is_string() {
            begun["arguments"] = json!("");
        }
        event("response.output_item.added", json!({"output_index": index, "item": begun}));
        let at = |mut data: Value| {
            data["output_index"] = json!(index);
            data["item_id"] = item["id"].clone();
            data
        };
        match item["type"].as_str() {
            Some("reasoning") => {
                event("response.reasoning_summary_part.added", at(json!({"summary_index": 0})));
                for text in words(&answer.thinking) {
                    event("response.reasoning_summary_text.delta", at(json!({"summary_index": 0, "delta": text})));
                }
                event("response.reasoning_summary_text.done", at(json!({"summary_index": 0, "text": answer.thinking})));
            }
            Some("message") => {
                event("response.content_part.added", at(json!({"content_index": 0, "part": {"type": "output_text"}})));
                for text in words(&answer.text) {
                    event("response.output_text.delta", at(json!({"content_index": 0, "delta": text})));
                }
                event("response.output_text.done", at(json!({"content_index": 0, "text": answer.text})));
            }
            _ => {
                let all: Value = serde_json::from_str(item["arguments"].as_str().unwrap_or("{}")).unwrap_or_default();
                for piece in pieces(&all) {
                    event("response.function_call_arguments.delta", at(json!({"delta": piece})));
                }
                event("response.function_call_arguments.done", at(json!({"arguments": item["arguments"]})));
            }
        }
        event("response.output_item.done", json!({"output_index": index, "item": item}));
    }
    let name = if answer.cut_short { "response.incomplete" } else { "response.completed" };
    event(name, json!({"response": response(answer, counts)}));
    out
}

fn items(answer: &Answer) -> Vec<Value> {
    let mut items = Vec::new();
    if !answer.thinking.is_empty() {
        items.push(json!({
            "type": "reasoning", "id": "rs_test", "encrypted_content": "ZW5jcnlwdGVk",
            "summary": [{"type": "summary_text", "text": answer.thinking}]
        }));
    }
    if !answer.text.is_empty() {
        items.push(json!({
            "type": "message", "id": "msg_test", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": answer.text, "annotations": []}]
        }));
    }
    for (index, (id, name, arguments)) in answer.calls.iter().enumerate() {
        items.push(json!({
            "type": "function_call", "id": format!("fc_test{index}"), "call_id": id, "name": name,
            "arguments": arguments.to_string(), "status": "completed"
        }));
    }
    items
}

fn response(answer: &Answer, counts: &Counts) -> Value {
    let (status, details) = if answer.cut_short {
        ("incomplete", json!({"reason": "max_output_tokens"}))
    } else {
        ("completed", Value::Null)
    };
    json!({
        "id": "resp_test", "object": "response", "status": status, "incomplete_details": details, "error": null,
        "model": "test-model", "output": items(answer),
        "usage": {
            "input_tokens": counts.input, "input_tokens_details": {"cached_tokens": counts.cached},
            "output_tokens": counts.output, "output_tokens_details": {"reasoning_tokens": counts.thought},
            "total_tokens": counts.input + counts.output
        }
    })
}
