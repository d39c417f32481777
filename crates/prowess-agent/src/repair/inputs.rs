//! Which stored calls can still be carried out?

use std::collections::HashSet;

use serde_json::Value;

use super::names::is_tool_name;

/// The types that a block with a call may have: OpenClaw's own, Anthropic's and Google's.
const CALLS: [&str; 3] = ["toolCall", "toolUse", "functionCall"];
/// The tool whose attachments are not kept, and what stands in their place.
const SPAWN: &str = "sessions_spawn";
const REDACTED: &str = "__OPENCLAW_REDACTED__";

/// Messages in which every call has an id, a name and arguments.
#[derive(Debug, Clone, PartialEq)]
pub struct Inputs {
    /// The messages.
    pub messages: Vec<Value>,
    /// How many calls were left out.
    pub dropped_calls: usize,
    /// How many messages went because nothing else was in them.
    pub dropped_messages: usize,
}

/// Leaves out the calls that lack something, or that call a tool which is not in `known`, in any case.
///
/// An empty list says as little as none: an agent that has lost its tools still knows what it has done.
#[must_use]
pub fn inputs(messages: Vec<Value>, known: Option<&[String]>) -> Inputs {
    let sieve = Sieve::new(known);
    let given = messages.len();
    let mut dropped_calls = 0;
    let messages: Vec<Value> =
        messages.into_iter().filter_map(|message| sieve.pass(message, &mut dropped_calls)).collect();
    Inputs { dropped_calls, dropped_messages: given - messages.len(), messages }
}

/// The tools whose calls are kept; none for those of any tool.
pub(super) struct Sieve(Option<HashSet<String>>);

impl Sieve {
    pub(super) fn new(known: Option<&[String]>) -> Self {
        let known = known.filter(|known| !known.is_empty());
        Self(known.map(|known| known.iter().map(|name| name.trim().to_lowercase()).collect()))
    }

    /// The message without the calls that nobody could carry out, unless nothing else was in it.
    pub(super) fn pass(&self, mut message: Value, dropped_calls: &mut usize) -> Option<Value> {
        let dropped = filter(&mut message, self.0.as_ref());
        *dropped_calls += dropped;
        let is_empty = dropped > 0 && message["content"].as_array().is_some_and(Vec::is_empty);
        (!is_empty).then_some(message)
    }
}

/// Whether a block is a call, whole or not.
pub(super) fn is_call(block: &Value) -> bool {
    block.get("type").and_then(Value::as_str).is_some_and(|kind| CALLS.contains(&kind))
}

/// Filters one message, and says how many calls went.
fn filter(message: &mut Value, known: Option<&HashSet<String>>) -> usize {
    if message.get("role").and_then(Value::as_str) != Some("assistant") {
        return 0;
    }
    let Some(Value::Array(content)) = message.get_mut("content") else { return 0 };
    let before = content.len();
    content.retain_mut(|block| !is_call(block) || mend(block, known).is_some());
    before - content.len()
}

/// Trims the name of a call and redacts what should not be kept; `None` when the call cannot be carried out.
fn mend(call: &mut Value, known: Option<&HashSet<String>>) -> Option<()> {
    call.get("id")?.as_str().filter(|id| !id.trim().is_empty())?;
    let has = |field: &str| call.get(field).is_some_and(|value| !value.is_null());
    if !has("input") && !has("arguments") {
        return None;
    }
    let name = call.get("name")?.as_str()?;
    let trimmed = name.trim();
    let lower = trimmed.to_lowercase();
    if !is_tool_name(trimmed) || known.is_some_and(|known| !known.contains(&lower)) {
        return None;
    }
    if trimmed.len() < name.len() {
        let trimmed = trimmed.to_owned();
        call["name"] = trimmed.into();
    }
    if lower == SPAWN {
        for field in ["input", "arguments"] {
            redact(call.get_mut(field));
        }
    }
    Some(())
}

fn redact(arguments: Option<&mut Value>) {
    let attachments = arguments.and_then(|arguments| arguments.get_mut("attachments")).and_then(Value::as_array_mut);
    for attachment in attachments.into_iter().flatten() {
        if let Some(content) = attachment.get_mut("content").filter(|content| !content.is_null()) {
            *content = REDACTED.into();
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn one(call: &Value, known: Option<&[String]>) -> Inputs {
        inputs(vec![json!({"role": "assistant", "content": [{"type": "text", "text": "t"}, call]})], known)
    }

    #[test]
    fn a_call_needs_an_id_a_name_and_arguments() {
        let table = [
            (json!({"type": "toolCall", "id": "a", "name": "exec", "arguments": {}}), true),
            (json!({"type": "functionCall", "id": "a", "name": "exec", "arguments": "{}"}), true),
            (json!({"type": "toolUse", "id": "a", "name": "exec", "arguments": null, "input": {}}), true),
            (json!({"type": "toolCall", "id": "a", "name": "mcp.files-read_2", "arguments": {}}), true),
            (json!({"type": "toolCall", "id": 7, "name": "exec", "arguments": {}}), false),
            (json!({"type": "toolCall", "id": "a", "name": "ex ec", "arguments": {}}), false),
            (json!({"type": "toolCall", "id": "a", "name": "  ", "arguments": {}}), false),
            (json!({"type": "toolCall", "id": "a", "name": null, "arguments": {}}), false),
            (json!({"type": "toolCall", "id": "a", "name": "über", "arguments": {}}), false),
            (json!({"type": "picture", "id": ""}), true),
        ];
        for (call, is_kept) in table {
            let made = one(&call, None);
            assert_eq!(made.messages[0]["content"].as_array().map(Vec::len), Some(1 + usize::from(is_kept)), "{call}");
            assert_eq!(made.dropped_calls, usize::from(!is_kept), "{call}");
        }
    }

    #[test]
    fn tools_are_known_in_any_case_and_names_are_trimmed() {
        let known = ["Exec".to_owned()];
        let made = one(&json!({"type": "toolCall", "id": "a", "name": " eXec\n", "arguments": {}}), Some(&known));
        assert_eq!(made.messages[0]["content"][1]["name"], "eXec");
        assert_eq!(
            one(&json!({"type": "toolCall", "id": "a", "name": "x", "arguments": {}}), Some(&known)).dropped_calls,
            1
        );
    }

    #[test]
    fn an_empty_list_of_tools_drops_nothing() {
        let call = json!({"type": "toolCall", "id": "a", "name": "exec", "arguments": {}});
        assert_eq!(one(&call, Some(&[])).dropped_calls, 0);
    }

    #[test]
    fn what_is_no_message_of_a_model_stays() {
        let odd = vec![json!(null), json!(3), json!({"role": "user", "content": [{"type": "toolCall"}]}), json!({})];
        assert_eq!(inputs(odd.clone(), None), Inputs { messages: odd, dropped_calls: 0, dropped_messages: 0 });
    }
}
