//! History: what is shown of a conversation, and how much of it?
//!
//! What a transcript keeps for programs is left out, long texts are cut, and all of it together stays small enough for
//! one answer.

use serde_json::{Value, json};

/// The longest text of one piece, in characters.
const MAX_TEXT: usize = 12_000;

/// The largest message, and the largest answer, in bytes of JSON.
const MAX_MESSAGE: usize = 128 * 1024;
const MAX_ANSWER: usize = 6 * 1024 * 1024;

/// How much of its images an answer has for clients that want them, in bytes of base64. The newest come first.
pub(crate) const MAX_IMAGES: usize = 8 * 1024 * 1024;

/// What stands in the place of a message that is too large.
const TOO_LARGE: &str = "[chat.history omitted: message too large]";

/// Which messages are shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HistoryQuery {
    /// How many at most.
    pub(crate) limit: usize,
    /// Only those before this one, counted from the first of the session.
    pub(crate) before: usize,
    /// How much room there is for their images, in bytes of base64.
    pub(crate) room_for_images: usize,
}

/// Messages as they are shown, and how many there are before them.
#[derive(Debug)]
pub(crate) struct HistoryPage {
    pub(crate) messages: Vec<Value>,
    pub(crate) before: usize,
}

/// The newest messages that are asked for, the oldest of them first.
pub(crate) fn shown(messages: Vec<Value>, query: HistoryQuery) -> HistoryPage {
    let HistoryQuery { limit, before, mut room_for_images } = query;
    let mut messages: Vec<Value> = messages.into_iter().filter(|message| message["display"] != false).collect();
    messages.truncate(before);
    let end = messages.len();
    let mut room = MAX_ANSWER;
    let mut kept: Vec<Value> = Vec::new();
    for mut message in messages.into_iter().rev().take(limit) {
        let images = image_bytes(&message);
        match room_for_images.checked_sub(images) {
            Some(left) => room_for_images = left,
            None => omit_images(&mut message),
        }
        let message = small(show(message));
        let size = message.to_string().len() - image_bytes(&message) + 1;
        if size > room {
            break;
        }
        room -= size;
        kept.push(message);
    }
    kept.reverse();
    HistoryPage { before: end - kept.len(), messages: kept }
}

fn image_bytes(message: &Value) -> usize {
    let blocks = message["content"].as_array().into_iter().flatten().filter(|block| block["type"] == "image");
    blocks.filter_map(|block| block["data"].as_str()).map(str::len).sum()
}

fn omit_images(message: &mut Value) {
    let blocks = message.get_mut("content").and_then(Value::as_array_mut).into_iter().flatten();
    for image in blocks.filter(|block| block["type"] == "image").filter_map(Value::as_object_mut) {
        if let Some(Value::String(data)) = image.remove("data") {
            image.insert("omitted".to_owned(), true.into());
            image.insert("bytes".to_owned(), data.len().into());
        }
    }
}

/// One message, without what is for programs only.
fn show(mut message: Value) -> Value {
    let Some(fields) = message.as_object_mut() else { return message };
    if let Some(state) = fields.get("details").and_then(state) {
        fields.insert("approval".to_owned(), state);
    }
    for name in ["details", "usage", "cost", "providerData"] {
        fields.remove(name);
    }
    match fields.get_mut("content") {
        Some(Value::String(text)) => cut(text),
        Some(Value::Array(blocks)) => blocks.iter_mut().for_each(show_block),
        _ => {}
    }
    message
}

/// What became of a command that had to be approved and was not at once: whether it waits, and whose result this is.
fn state(details: &Value) -> Option<Value> {
    let status = match details["status"].as_str()? {
        "approval-pending" => "waiting",
        status @ ("approved" | "denied" | "expired" | "interrupted") if details["late"] == true => status,
        _ => return None,
    };
    let mut state = json!({"status": status, "approvalId": details["approvalId"]});
    if details["late"] == true {
        state["toolCallId"] = details["toolCallId"].clone();
    }
    Some(state)
}

fn show_block(block: &mut Value) {
    let Some(fields) = block.as_object_mut() else { return };
    for name in ["thinkingSignature", "textSignature", "thoughtSignature", "providerData"] {
        fields.remove(name);
    }
    for name in ["text", "thinking", "partialJson", "arguments"] {
        if let Some(Value::String(text)) = fields.get_mut(name) {
            cut(text);
        }
    }
}

fn cut(text: &mut String) {
    if let Some((at, _)) = text.char_indices().nth(MAX_TEXT) {
        text.truncate(at);
        text.push_str("\n...(truncated)...");
    }
}

/// The message, or what stands in its place.
fn small(message: Value) -> Value {
    if message.to_string().len() - image_bytes(&message) <= MAX_MESSAGE {
        return message;
    }
    json!({
        "role": message["role"],
        "timestamp": message["timestamp"],
        "content": [{"type": "text", "text": TOO_LARGE}],
        "__openclaw": {"truncated": true, "reason": "oversized"},
    })
}

/// The words of a message, without thoughts and calls.
pub(crate) fn words(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts =
                blocks.iter().filter(|block| block["type"] == "text").filter_map(|block| block["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn newest(messages: Vec<Value>, limit: usize, room_for_images: usize) -> Vec<Value> {
        shown(messages, HistoryQuery { limit, before: usize::MAX, room_for_images }).messages
    }

    #[test]
    fn only_what_is_for_people_is_shown() {
        let message = json!({
            "role": "assistant", "usage": {"input": 1}, "cost": 1, "details": {}, "timestamp": 5, "model": "m",
            "content": [
                {"type": "thinking", "thinking": "t", "thinkingSignature": "s"},
                {"type": "text", "text": "a", "textSignature": "s"},
                {"type": "image", "data": "abcd", "mimeType": "image/png"},
            ],
        });
        let expected = json!({
            "role": "assistant", "timestamp": 5, "model": "m",
            "content": [
                {"type": "thinking", "thinking": "t"},
                {"type": "text", "text": "a"},
                {"type": "image", "mimeType": "image/png", "omitted": true, "bytes": 4},
            ],
        });
        assert_eq!(newest(vec![message.clone()], 10, 3), [expected]);
        assert_eq!(newest(vec![message], 10, 4)[0]["content"][2]["data"], "abcd");
    }

    #[test]
    fn long_texts_are_cut_and_large_messages_replaced() {
        let long = json!({"role": "user", "content": "ä".repeat(MAX_TEXT + 1)});
        let cut = newest(vec![long], 1, 0);
        assert!(cut[0]["content"].as_str().is_some_and(|text| text.ends_with("ä\n...(truncated)...")));
        let blocks: Vec<Value> = (0..20).map(|_| json!({"type": "text", "text": "x".repeat(MAX_TEXT)})).collect();
        let large = json!({"role": "toolResult", "content": blocks, "timestamp": 7});
        let small = newest(vec![large], 1, 0);
        assert_eq!(small[0]["content"][0]["text"], TOO_LARGE);
        assert_eq!(small[0]["timestamp"], 7);
    }

    #[test]
    fn the_newest_are_kept_and_all_of_it_is_bounded() {
        let one = |number: usize| json!({"role": "user", "content": format!("{number} {}", "x".repeat(MAX_TEXT - 10))});
        let messages: Vec<Value> = (0..600).map(one).collect();
        assert_eq!(newest(messages.clone(), 3, 0), messages[597..]);
        let all = newest(messages.clone(), 600, 0);
        assert!(Value::from(all.clone()).to_string().len() <= MAX_ANSWER + 2);
        assert!(all.len() > 400);
        assert_eq!(all.last(), messages.last());
    }

    #[test]
    fn pages_go_back_to_the_first_message() {
        let messages: Vec<Value> =
            (0..7).map(|number| json!({"role": "user", "content": number.to_string()})).collect();
        let mut query = HistoryQuery { limit: 3, before: usize::MAX, room_for_images: 0 };
        let mut pages = Vec::new();
        while query.before > 0 {
            let page = shown(messages.clone(), query);
            query.before = page.before;
            pages.push(page.messages);
        }
        pages.reverse();
        assert_eq!((pages.concat(), pages.len()), (messages, 3));
    }
}
