//! What does a recorded answer say? Read apart from the program, by the simplest means.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// What an answer says.
#[derive(Debug, Default)]
pub(crate) struct Expected {
    pub(crate) text: String,
    pub(crate) thoughts: String,
    pub(crate) calls: Vec<(String, Value)>,
    /// Read, written, read from a cache, written to a cache.
    pub(crate) tokens: [u64; 4],
}

pub(crate) fn read(api: &str, body: &str) -> Expected {
    let whole: Option<Value> = serde_json::from_str(body).ok();
    let events: Vec<Value> = body
        .lines()
        .filter_map(|line| line.strip_prefix("data:"))
        .filter_map(|data| serde_json::from_str(data.trim()).ok())
        .collect();
    match (api, whole) {
        ("anthropic-messages", Some(whole)) => {
            anthropic(&[], whole["content"].as_array().into_iter().flatten(), &whole["usage"])
        }
        ("anthropic-messages", None) => {
            let mut usage = json!({});
            for counted in events.iter().flat_map(|event| [&event["message"]["usage"], &event["usage"]]) {
                for (name, value) in counted.as_object().into_iter().flatten().filter(|(_, value)| value.is_u64()) {
                    usage[name] = value.clone();
                }
            }
            let blocks: Vec<&Value> = events.iter().filter(|event| event["type"] == "content_block_start").collect();
            anthropic(&events, blocks.into_iter(), &usage)
        }
        ("openai-completions", Some(whole)) => {
            chat(std::iter::once((&whole["choices"][0]["message"], &whole["usage"])))
        }
        ("openai-completions", None) => {
            chat(events.iter().map(|event| (&event["choices"][0]["delta"], &event["usage"])))
        }
        (_, Some(whole)) => responses(&whole),
        (_, None) => {
            let last = events.iter().rev().find(|event| event["response"]["usage"].is_object()).expect("an end");
            let mut response = last["response"].clone();
            let items = events.iter().filter(|event| event["type"] == "response.output_item.done");
            response["output"] = items.map(|event| event["item"].clone()).collect();
            responses(&response)
        }
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn arguments(json: &str) -> Value {
    if json.trim().is_empty() { json!({}) } else { serde_json::from_str(json).expect("arguments") }
}

fn anthropic<'a>(events: &[Value], blocks: impl Iterator<Item = &'a Value>, usage: &Value) -> Expected {
    let mut expected = Expected::default();
    for block in blocks {
        let start = if block["content_block"].is_null() { block } else { &block["content_block"] };
        let pieces = |field: &str| -> String {
            let own = events
                .iter()
                .filter(|event| event["type"] == "content_block_delta" && event["index"] == block["index"]);
            own.map(|event| text(&event["delta"][field])).collect()
        };
        match text(&start["type"]) {
            "text" => expected.text.extend([text(&start["text"]), &pieces("text")]),
            "thinking" => expected.thoughts.extend([text(&start["thinking"]), &pieces("thinking")]),
            "tool_use" => {
                let json = pieces("partial_json");
                let input = if json.is_empty() { start["input"].clone() } else { arguments(&json) };
                expected.calls.push((text(&start["name"]).to_owned(), input));
            }
            _ => {}
        }
    }
    let count = |name: &str| usage[name].as_u64().unwrap_or_default();
    expected.tokens =
        ["input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"].map(count);
    expected
}

fn chat<'a>(chunks: impl Iterator<Item = (&'a Value, &'a Value)>) -> Expected {
    let mut expected = Expected::default();
    let mut calls: BTreeMap<u64, (String, String)> = BTreeMap::new();
    for (delta, usage) in chunks {
        match &delta["content"] {
            Value::Array(parts) => {
                for part in parts {
                    expected.text += text(&part["text"]);
                    for thought in part["thinking"].as_array().into_iter().flatten() {
                        expected.thoughts += text(&thought["text"]);
                    }
                }
            }
            content => expected.text += text(content),
        }
        let thought = ["reasoning_content", "reasoning"].iter().find_map(|field| delta[*field].as_str());
        expected.thoughts += thought.unwrap_or_default();
        for (position, call) in (0..).zip(delta["tool_calls"].as_array().into_iter().flatten()) {
            let known = calls.entry(call["index"].as_u64().unwrap_or(position)).or_default();
            known.0 += text(&call["function"]["name"]);
            known.1 += text(&call["function"]["arguments"]);
        }
        if usage.is_object() {
            let count = |path: &str| usage.pointer(path).and_then(Value::as_u64).unwrap_or_default();
            let cached = count("/prompt_tokens_details/cached_tokens").max(count("/prompt_cache_hit_tokens"));
            let thought = count("/completion_tokens_details/reasoning_tokens");
            let (read, written) = (count("/prompt_tokens"), count("/completion_tokens"));
            let is_apart = thought > 0 && count("/total_tokens") == read + written + thought;
            let written = if is_apart { written + thought } else { written };
            let cache_write = count("/prompt_tokens_details/cache_write_tokens");
            expected.tokens = [read - cached - cache_write, written, cached, cache_write];
        }
    }
    expected.calls = calls.into_values().map(|(name, json)| (name, arguments(&json))).collect();
    expected
}

fn responses(response: &Value) -> Expected {
    let mut expected = Expected::default();
    for item in response["output"].as_array().into_iter().flatten() {
        let texts = |list: &str| -> String {
            item[list].as_array().into_iter().flatten().map(|part| text(&part["text"])).collect()
        };
        match text(&item["type"]) {
            "message" => expected.text += &texts("content"),
            "reasoning" => {
                let summary = texts("summary");
                expected.thoughts += &if summary.is_empty() { texts("content") } else { summary };
            }
            "function_call" => {
                expected.calls.push((text(&item["name"]).to_owned(), arguments(text(&item["arguments"]))));
            }
            _ => {}
        }
    }
    let count = |path: &str| response["usage"].pointer(path).and_then(Value::as_u64).unwrap_or_default();
    let cached = count("/input_tokens_details/cached_tokens");
    expected.tokens = [count("/input_tokens") - cached, count("/output_tokens"), cached, 0];
    expected
}
