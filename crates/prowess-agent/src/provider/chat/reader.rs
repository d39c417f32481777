//! What does each chunk of a chat completion say, also where servers leave out half of the format?

use std::collections::HashMap;

use serde_json::Value;

use super::{DETAILS, EXTRA, PARTS, THOUGHTS};
use crate::message::{StopReason, Usage};
use crate::model::{Delta, ModelError};
use crate::provider::{fault, tokens};

/// The block of thoughts.
const THINKING: u32 = 0;
/// The block of text.
const TEXT: u32 = 1;
/// The block of the first call.
const FIRST_CALL: u32 = 2;

/// How many calls one answer may make, and how many details its thoughts may have.
const MAX_CALLS: u32 = 1000;
const MAX_DETAILS: usize = 10_000;

/// Reads the chunks of one answer.
#[derive(Debug)]
pub struct Reader {
    provider: String,
    /// The call that each index means now.
    calls: HashMap<u64, Call>,
    count: u32,
    last_index: u64,
    has_thought: bool,
    said: Said,
    details: Vec<Value>,
    pub(in crate::provider) stopped: bool,
    pub(in crate::provider) over: bool,
}

/// Whether anything was said that would be lost if the answer did not count.
#[derive(Debug, PartialEq, Eq)]
enum Said {
    Nothing,
    Something,
}

#[derive(Debug, Clone)]
struct Call {
    block: u32,
    id: String,
}

impl Reader {
    /// For an answer of `provider`.
    #[must_use]
    pub fn new(provider: &str) -> Self {
        Self {
            provider: provider.to_owned(),
            calls: HashMap::new(),
            count: 0,
            last_index: 0,
            has_thought: false,
            said: Said::Nothing,
            details: Vec::new(),
            stopped: false,
            over: false,
        }
    }

    /// Takes one chunk.
    pub fn event(&mut self, data: &str) -> Result<Vec<Delta>, ModelError> {
        let data = data.trim();
        if data == "[DONE]" {
            return Ok(self.end());
        }
        if data.is_empty() {
            return Ok(Vec::new());
        }
        let chunk: Value =
            serde_json::from_str(data).map_err(|_| fault::unreadable(&self.provider, "a chunk is not JSON", data))?;
        self.chunk(&chunk, "delta")
    }

    /// Takes a whole answer of a server that does not stream.
    pub(in crate::provider) fn whole(&mut self, answer: &Value) -> Result<Vec<Delta>, ModelError> {
        if answer["error"].is_null() && !answer["choices"].is_array() {
            return Err(fault::unreadable(&self.provider, "it is not a completion", &answer.to_string()));
        }
        let mut deltas = self.chunk(answer, "message")?;
        deltas.extend(self.end());
        if self.stopped { Ok(deltas) } else { Err(ModelError::Cut { provider: self.provider.clone() }) }
    }

    /// Nothing more comes. Some servers never say why an answer ends; one that said something counts.
    fn end(&mut self) -> Vec<Delta> {
        let stop = (!self.stopped && self.said == Said::Something).then_some(Delta::Stop(StopReason::Stop));
        self.stopped |= stop.is_some();
        self.over = self.stopped;
        self.details().into_iter().chain(stop).collect()
    }

    fn chunk(&mut self, chunk: &Value, place: &str) -> Result<Vec<Delta>, ModelError> {
        if !chunk["error"].is_null() {
            return Err(fault::of_object(&self.provider, &chunk["error"]));
        }
        let choice = &chunk["choices"][0];
        let mut deltas = self.said(&choice[place])?;
        // Some count in the choice and not beside it.
        for usage in [&chunk["usage"], &choice["usage"]] {
            if usage.is_object() {
                deltas.push(Delta::Usage(usage_of(usage)));
                break;
            }
        }
        if let Some(reason) = choice["finish_reason"].as_str().filter(|reason| !reason.is_empty()) {
            deltas.extend(self.details());
            deltas.push(Delta::Stop(self.stop(reason, choice)?));
            self.stopped = true;
        }
        Ok(deltas)
    }

    fn said(&mut self, delta: &Value) -> Result<Vec<Delta>, ModelError> {
        let mut deltas = Vec::new();
        let thought = THOUGHTS
            .into_iter()
            .find_map(|field| Some((field, delta[field].as_str().filter(|text| !text.is_empty())?)));
        if let Some((field, text)) = thought {
            self.think(field, text, &mut deltas);
        }
        self.keep(delta, &mut deltas);
        match &delta["content"] {
            Value::String(text) => speak(text, &mut deltas),
            Value::Array(parts) => parts.iter().for_each(|part| self.part(part, &mut deltas)),
            _ => {}
        }
        if let Some(refusal) = delta["refusal"].as_str() {
            speak(refusal, &mut deltas);
        }
        for (position, call) in delta["tool_calls"].as_array().into_iter().flatten().enumerate() {
            self.call(position, call, &mut deltas);
        }
        if !deltas.is_empty() {
            self.said = Said::Something;
        }
        if self.count > MAX_CALLS {
            let why = format!("it makes more than {MAX_CALLS} calls at once");
            return Err(fault::unreadable(&self.provider, &why, ""));
        }
        Ok(deltas)
    }

    /// What goes back as it came.
    fn keep(&mut self, delta: &Value, deltas: &mut Vec<Delta>) {
        if delta[EXTRA].is_object() {
            deltas.push(Delta::Data { block: None, field: EXTRA, value: delta[EXTRA].clone() });
        }
        let Some(pieces) = delta[DETAILS].as_array().filter(|pieces| !pieces.is_empty()) else { return };
        self.said = Said::Something;
        for piece in pieces {
            add_detail(&mut self.details, piece);
        }
    }

    /// The details, once nothing more of them comes.
    fn details(&mut self) -> Option<Delta> {
        let details = std::mem::take(&mut self.details);
        (!details.is_empty()).then_some(Delta::Data { block: None, field: DETAILS, value: Value::Array(details) })
    }

    fn think(&mut self, field: &str, text: &str, deltas: &mut Vec<Delta>) {
        deltas.push(Delta::Thinking { block: THINKING, text: text.to_owned() });
        if !self.has_thought {
            deltas.push(Delta::Signature { block: THINKING, text: field.to_owned() });
            self.has_thought = true;
        }
    }

    /// A part of a content that is a list, as Mistral's thinking models write it.
    fn part(&mut self, part: &Value, deltas: &mut Vec<Delta>) {
        if let Some(text) = part["text"].as_str() {
            speak(text, deltas);
        }
        let thoughts = part["thinking"].as_array().into_iter().flatten();
        for text in thoughts.filter_map(|thought| thought["text"].as_str()).filter(|text| !text.is_empty()) {
            self.think(PARTS, text, deltas);
        }
    }

    /// A piece of a call belongs to the call of its index. Ids prove nothing: they come late, twice, or not at all.
    fn call(&mut self, position: usize, piece: &Value, deltas: &mut Vec<Delta>) {
        let id = piece["id"].as_str().unwrap_or("");
        let name = piece["function"]["name"].as_str().unwrap_or("");
        let index = piece["index"].as_u64().unwrap_or_else(|| self.unwritten_index(position, id, name));
        self.last_index = index;
        let known = self.calls.get(&index);
        // Some give every call the index 0. A new call is known by a new name and a new id together.
        let is_new =
            known.is_none_or(|known| !name.is_empty() && !id.is_empty() && !known.id.is_empty() && known.id != id);
        if is_new {
            let block = FIRST_CALL.saturating_add(self.count);
            self.count = self.count.saturating_add(1);
            self.calls.insert(index, Call { block, id: id.to_owned() });
        }
        let Some(call) = self.calls.get_mut(&index) else { return };
        if call.id.is_empty() {
            id.clone_into(&mut call.id);
        }
        let block = call.block;
        if is_new || !id.is_empty() || !name.is_empty() {
            deltas.push(Delta::Call { block, id: id.to_owned(), name: name.to_owned() });
        }
        if piece[EXTRA].is_object() {
            deltas.push(Delta::Data { block: Some(block), field: EXTRA, value: piece[EXTRA].clone() });
        }
        let json = match &piece["function"]["arguments"] {
            Value::String(json) => json.clone(),
            // An object where the format has a text of one.
            object @ Value::Object(_) => object.to_string(),
            _ => String::new(),
        };
        if !json.is_empty() {
            deltas.push(Delta::Arguments { block, json });
        }
    }

    /// The index of a piece that has none: that of its id, a new one if it names a tool, or else that of the piece before.
    fn unwritten_index(&self, position: usize, id: &str, name: &str) -> u64 {
        let same = self.calls.iter().find(|(_, call)| !id.is_empty() && call.id == id);
        if let Some((index, _)) = same {
            return *index;
        }
        if !name.is_empty() || self.calls.is_empty() {
            return self.calls.keys().max().map_or(0, |max| max.saturating_add(1));
        }
        self.last_index.max(u64::try_from(position).unwrap_or(0))
    }

    fn stop(&self, reason: &str, choice: &Value) -> Result<StopReason, ModelError> {
        let provider = || self.provider.clone();
        Ok(match reason {
            "length" | "max_tokens" | "model_length" => StopReason::Length,
            "tool_calls" | "function_call" => StopReason::ToolUse,
            "content_filter" => {
                let said = "a content filter stopped the answer".to_owned();
                return Err(ModelError::Refused { provider: provider(), said });
            }
            "error" => return Err(fault::of_object(&self.provider, &choice["error"])),
            "insufficient_system_resource" | "network_error" => {
                return Err(ModelError::Server {
                    provider: provider(),
                    status: 500,
                    said: reason.to_owned(),
                    after: None,
                });
            }
            // `stop` by its many names, and what is new: the answer counts.
            _ => StopReason::Stop,
        })
    }
}

/// Adds a piece of a detail to the one it belongs to: the last, if that has the same type and index.
fn add_detail(details: &mut Vec<Value>, piece: &Value) {
    let Some(fields) = piece.as_object() else { return };
    let is_same =
        |last: &Value| last["type"] == piece["type"] && last["index"] == piece["index"] && has_room(last, piece);
    let last = details.last_mut().filter(|last| is_same(last)).and_then(Value::as_object_mut);
    let Some(last) = last else {
        if details.len() < MAX_DETAILS {
            details.push(piece.clone());
        }
        return;
    };
    for (field, value) in fields {
        match (last.get_mut(field), value) {
            (Some(Value::String(known)), Value::String(more))
                if matches!(field.as_str(), "text" | "summary" | "data") =>
            {
                known.push_str(more);
            }
            (None | Some(Value::Null), value) => {
                last.insert(field.clone(), value.clone());
            }
            _ => {}
        }
    }
}

/// Whether `piece` can belong to `last`: two different ids, or two signatures, are two details.
fn has_room(last: &Value, piece: &Value) -> bool {
    ["id", "signature"]
        .iter()
        .all(|field| last[*field].is_null() || piece[*field].is_null() || last[*field] == piece[*field])
}

fn speak(text: &str, deltas: &mut Vec<Delta>) {
    if !text.is_empty() {
        deltas.push(Delta::Text { block: TEXT, text: text.to_owned() });
    }
}

fn usage_of(usage: &Value) -> Usage {
    let prompt = tokens(usage, "/prompt_tokens");
    let cache_read =
        tokens(usage, "/prompt_tokens_details/cached_tokens").max(tokens(usage, "/prompt_cache_hit_tokens"));
    let cache_write = tokens(usage, "/prompt_tokens_details/cache_write_tokens");
    let written = tokens(usage, "/completion_tokens");
    let thought = tokens(usage, "/completion_tokens_details/reasoning_tokens");
    // Thoughts are part of what was written, except with those whose total says otherwise.
    let is_apart = thought > 0 && tokens(usage, "/total_tokens") == prompt + written + thought;
    Usage {
        input: prompt.saturating_sub(cache_read).saturating_sub(cache_write),
        output: if is_apart { written + thought } else { written },
        cache_read,
        cache_write,
        ..Usage::default()
    }
    .totalled()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::message::{Assistant, Block};
    use crate::model::{About, Api, Draft};

    fn about() -> About {
        About {
            provider: "p".to_owned(),
            model: "m".to_owned(),
            api: Api::Chat,
            context_window: 0,
            max_tokens: 0,
            takes_images: false,
        }
    }

    fn read(chunks: &[Value]) -> Result<Assistant, ModelError> {
        let mut reader = Reader::new("p");
        let mut draft = Draft::new(&about());
        for chunk in chunks {
            for delta in reader.event(&chunk.to_string())? {
                draft.apply(&delta);
            }
        }
        Ok(draft.finish().message)
    }

    fn delta(delta: &Value) -> Value {
        json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
    }

    fn calls(calls: &Value) -> Value {
        delta(&json!({"tool_calls": calls}))
    }

    fn stop(reason: &str) -> Value {
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    }

    fn heard(chunks: &[Value]) -> Vec<(String, String, Value)> {
        let message = read(chunks).expect("an answer");
        message
            .calls()
            .map(|call| (call.id.clone(), call.name.clone(), Value::Object(call.arguments.clone())))
            .collect()
    }

    fn two(first: (&str, &str), second: (&str, &str)) -> Vec<(String, String, Value)> {
        let call = |(id, name): (&str, &str), n: u32| (id.to_owned(), name.to_owned(), json!({"n": n}));
        vec![call(first, 1), call(second, 2)]
    }

    #[test]
    fn pieces_of_calls_are_told_apart_by_index() {
        let piece = |index: u32, json: &str| calls(&json!([{"index": index, "function": {"arguments": json}}]));
        let begin = |index: u32, id: &str, name: &str| {
            calls(&json!([{"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": ""}}]))
        };
        // Interleaved, and with equal ids.
        for (a, b) in [("a", "b"), ("same", "same"), ("", "")] {
            let chunks = [
                begin(0, a, "x"),
                begin(1, b, "y"),
                piece(0, "{\"n\""),
                piece(1, "{\"n\":"),
                piece(0, ":1}"),
                piece(1, "2}"),
            ];
            assert_eq!(heard(&chunks), two((a, "x"), (b, "y")));
        }
        // The id comes late.
        let late = [
            piece(0, "{\"n\":1"),
            begin(0, "a", "x"),
            begin(1, "", "y"),
            piece(1, "{\"n\":2}"),
            begin(1, "b", ""),
            piece(0, "}"),
        ];
        assert_eq!(heard(&late), two(("a", "x"), ("b", "y")));
        // Id and name are said again with every piece.
        let again = |index: u32, id: &str, name: &str, json: &str| {
            calls(&json!([{"index": index, "id": id, "function": {"name": name, "arguments": json}}]))
        };
        let chunks = [
            again(0, "a", "x", "{\"n\":"),
            again(1, "b", "y", "{\"n\":"),
            again(0, "a", "x", "1}"),
            again(1, "b", "y", "2}"),
        ];
        assert_eq!(heard(&chunks), two(("a", "x"), ("b", "y")));
        // Another id with every piece, but no name: still the same call.
        let fickle = [
            again(0, "a", "x", "{\"n\":"),
            again(0, "q", "", "1"),
            again(0, "r", "", "}"),
            again(1, "b", "y", "{\"n\":2}"),
        ];
        assert_eq!(heard(&fickle), two(("a", "x"), ("b", "y")));
        // Every call has the index 0.
        let zero = [again(0, "a", "x", "{\"n\":1}"), again(0, "b", "y", "{\"n\":2}")];
        assert_eq!(heard(&zero), two(("a", "x"), ("b", "y")));
    }

    #[test]
    fn calls_without_an_index_are_told_apart_somehow() {
        let one_by_one = [
            calls(&json!([{"id": "a", "function": {"name": "x", "arguments": "{\"n\""}}])),
            calls(&json!([{"function": {"arguments": ":1}"}}])),
            calls(&json!([{"id": "b", "function": {"name": "y", "arguments": "{\"n\":2}"}}])),
        ];
        assert_eq!(heard(&one_by_one), two(("a", "x"), ("b", "y")));
        let together = [calls(&json!([
            {"id": "a", "function": {"name": "x", "arguments": {"n": 1}}},
            {"id": "b", "function": {"name": "y", "arguments": "{\"n\":2}"}}
        ]))];
        assert_eq!(heard(&together), two(("a", "x"), ("b", "y")));
    }

    #[test]
    fn there_is_an_end_to_calls() {
        let call = json!([{"function": {"name": "x", "arguments": "{}"}}]);
        let chunks = vec![calls(&call); usize::try_from(MAX_CALLS).expect("a size") + 1];
        assert_eq!(heard(&chunks[1..]).len(), chunks.len() - 1);
        assert!(matches!(read(&chunks), Err(ModelError::Malformed { .. })));
    }

    #[test]
    fn thoughts_come_under_three_names() {
        for field in THOUGHTS {
            let message = read(&[
                delta(&json!({"role": "assistant", "content": ""})),
                delta(&json!({field: "hm "})),
                delta(&json!({field: "ok", "content": null})),
                delta(&json!({"content": "hi"})),
                stop("stop"),
            ])
            .expect("an answer");
            let thinking = Block::Thinking {
                thinking: "hm ok".to_owned(),
                thinking_signature: Some(field.to_owned()),
                redacted: false,
            };
            assert_eq!(message.content, [thinking, Block::text("hi")]);
        }
        let parts = json!([
            {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
            {"type": "text", "text": "hi"}
        ]);
        let message = read(&[delta(&json!({"content": parts})), stop("stop")]).expect("an answer");
        assert_eq!((message.content.len(), message.text().as_str()), (2, "hi"));
    }

    #[test]
    fn tokens_are_counted_once() {
        let usage = |usage: Value| {
            let usage = read(&[stop("stop"), json!({"choices": [], "usage": usage})]).expect("an answer").usage;
            (usage.input, usage.cache_read, usage.output, usage.total_tokens)
        };
        let counted = json!({
            "prompt_tokens": 10, "completion_tokens": 7, "total_tokens": 17,
            "prompt_tokens_details": {"cached_tokens": 4}, "completion_tokens_details": {"reasoning_tokens": 5}
        });
        assert_eq!(usage(counted), (6, 4, 7, 17));
        let apart = json!({
            "prompt_tokens": 10, "completion_tokens": 7, "total_tokens": 22,
            "completion_tokens_details": {"reasoning_tokens": 5}
        });
        assert_eq!(usage(apart), (10, 0, 12, 22));
        let absurd =
            json!({"prompt_tokens": u64::MAX, "completion_tokens": u64::MAX, "prompt_cache_hit_tokens": u64::MAX});
        assert_eq!(usage(absurd), (0, 1 << 40, 1 << 40, 2 << 40));
    }

    #[test]
    fn every_reason_to_stop_is_known() {
        let table = [("stop", StopReason::Stop), ("eos", StopReason::Stop), ("length", StopReason::Length)];
        for (reason, expected) in table {
            assert_eq!(read(&[stop(reason)]).expect(reason).stop_reason, expected);
        }
        assert!(matches!(read(&[stop("content_filter")]), Err(ModelError::Refused { .. })));
        assert_eq!(read(&[stop("whim")]).expect("an answer counts").stop_reason, StopReason::Stop);
        let error = json!({"error": {"code": 502, "message": "upstream"}, "choices": [{"delta": {"content": ""}}]});
        assert!(matches!(read(&[error]), Err(ModelError::Server { status: 502, .. })));
        let mut reader = Reader::new("p");
        assert_eq!(reader.event("[DONE]"), Ok(Vec::new()));
        assert!(!reader.over, "nothing was said before the end");
        let mut reader = Reader::new("p");
        reader.event(&delta(&json!({"content": "hi"})).to_string()).expect("a chunk");
        assert_eq!(reader.event("[DONE]"), Ok(vec![Delta::Stop(StopReason::Stop)]), "it said something");
        assert!(reader.over && reader.stopped);
    }

    #[test]
    fn what_the_provider_wants_back_is_put_together() {
        let signature = |text: &str| json!({"google": {"thought_signature": text}});
        let detail = |detail: Value| delta(&json!({"reasoning_details": [detail]}));
        let message = read(&[
            detail(json!({"type": "reasoning.text", "text": "one ", "format": "f", "index": 0})),
            detail(json!({"type": "reasoning.text", "text": "two", "format": "f", "index": 0})),
            detail(json!({"type": "reasoning.text", "signature": "s", "format": "f", "index": 0})),
            detail(json!({"type": "reasoning.encrypted", "data": "d", "index": 1})),
            delta(&json!({"content": "", "extra_content": signature("m")})),
            calls(&json!([{"id": "a", "function": {"name": "x", "arguments": "{}"}, "extra_content": signature("c")}])),
            stop("tool_calls"),
        ])
        .expect("an answer");
        let details = json!([
            {"type": "reasoning.text", "text": "one two", "format": "f", "index": 0, "signature": "s"},
            {"type": "reasoning.encrypted", "data": "d", "index": 1}
        ]);
        assert_eq!(message.provider_data["reasoning_details"], details);
        assert_eq!(message.provider_data["extra_content"], signature("m"));
        assert_eq!(message.calls().next().expect("a call").provider_data["extra_content"], signature("c"));
    }
}
