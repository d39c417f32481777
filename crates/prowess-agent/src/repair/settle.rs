//! What does a stored message say, once its odd parts are set right?
//!
//! A wrong time stamp is no reason to lose what was said. So what can be left out of a message is, when it is not what
//! it should be; only a message without a role or content that we know is given up.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::inputs::is_call;
use super::pairing::result_id;
use crate::message::{Message, StopReason, Usage};

/// The message that `value` stands for, if any. Calls that cannot be read are left out and counted.
pub(super) fn message(mut value: Value, dropped_calls: &mut usize) -> Option<Message> {
    let fields = value.as_object_mut()?;
    let role = fields.get("role")?.as_str()?.to_owned();
    let had = fields.get("content").and_then(Value::as_array).map_or(0, Vec::len);
    let is_result = role == "toolResult";
    if let Some(Value::Array(content)) = fields.get_mut("content") {
        content.retain_mut(|block| !is_call(block) || (role == "assistant" && call(block).is_some()));
        *dropped_calls += had - content.len();
        // Nothing but calls, and none of them of any use.
        if had > 0 && content.is_empty() && !is_result {
            return None;
        }
    }
    if is_result {
        let id = result_id(&value)?.trim().to_owned();
        value["toolCallId"] = id.into();
    }
    clear(value.as_object_mut()?);
    Message::deserialize(&value).ok()
}

/// Brings a call into the form it is typed by; `None` when its arguments are not an object.
fn call(block: &mut Value) -> Option<()> {
    let fields = block.as_object_mut()?;
    let id = fields.get("id")?.as_str()?.trim().to_owned();
    fields.get("name")?.as_str()?;
    let input = fields.remove("input");
    let given = fields.remove("arguments").filter(|arguments| !arguments.is_null()).or(input)?;
    let arguments = match given {
        Value::Object(arguments) => arguments,
        // Some providers hand over the text, and some programs keep it.
        Value::String(text) => serde_json::from_str::<Map<String, Value>>(&text).ok()?,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => return None,
    };
    fields.insert("type".to_owned(), "toolCall".into());
    fields.insert("id".to_owned(), id.into());
    fields.insert("arguments".to_owned(), arguments.into());
    drop_unless(fields, "thoughtSignature", Value::is_string);
    drop_unless(fields, "providerData", Value::is_object);
    Some(())
}

/// Leaves out, or sets right, the fields that a message can do without.
fn clear(fields: &mut Map<String, Value>) {
    if let Some(stamp) = fields.get_mut("timestamp").filter(|stamp| !stamp.is_u64()) {
        *stamp = whole(stamp).into();
    }
    for field in ["api", "provider", "model", "errorMessage", "toolName"] {
        drop_unless(fields, field, Value::is_string);
    }
    drop_unless(fields, "isError", Value::is_boolean);
    drop_unless(fields, "providerData", Value::is_object);
    drop_unless(fields, "usage", |usage| Usage::deserialize(usage).is_ok());
    drop_unless(fields, "stopReason", |reason| StopReason::deserialize(reason).is_ok());
    let is_content = fields.get("content").is_some_and(|content| content.is_string() || content.is_array());
    if !is_content {
        fields.remove("content");
    }
}

fn drop_unless(fields: &mut Map<String, Value>, field: &str, is_right: impl Fn(&Value) -> bool) {
    if fields.get(field).is_some_and(|value| !is_right(value)) {
        fields.remove(field);
    }
}

/// A time stamp that was written with a fraction, or zero.
fn whole(stamp: &Value) -> u64 {
    let stamp = stamp.as_f64().filter(|stamp| (0.0..9e15).contains(stamp)).unwrap_or_default();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is in the range of whole numbers")]
    let whole = stamp as u64;
    whole
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn settled(value: Value) -> Option<Value> {
        message(value, &mut 0).map(|message| serde_json::to_value(message).expect("JSON"))
    }

    #[test]
    fn odd_fields_do_not_cost_a_message() {
        let odd = json!({
            "role": "assistant", "content": "said", "timestamp": 12.9, "usage": {"input": -1}, "stopReason": "tired",
            "api": 3, "errorMessage": [], "providerData": 1
        });
        let made = settled(odd).expect("a message");
        assert_eq!(made["content"], json!([{"type": "text", "text": "said"}]));
        assert_eq!((&made["timestamp"], &made["stopReason"]), (&json!(12), &json!("stop")));
        let result =
            json!({"role": "toolResult", "toolUseId": " a ", "content": null, "isError": "no", "timestamp": "x"});
        let made = settled(result).expect("a result");
        assert_eq!((&made["toolCallId"], &made["isError"], &made["content"]), (&json!("a"), &json!(false), &json!([])));
    }

    #[test]
    fn arguments_become_an_object_or_the_call_goes() {
        let table = [
            (json!({"a": 1}), Some(json!({"a": 1}))),
            (json!("{\"a\": 1}"), Some(json!({"a": 1}))),
            (json!("{\"a\": "), None),
            (json!([1]), None),
            (json!(5), None),
        ];
        for (given, wanted) in table {
            let call = json!({"type": "toolUse", "id": "a", "name": "exec", "input": given, "thoughtSignature": 1});
            let text = json!({"type": "text", "text": "t"});
            let made = settled(json!({"role": "assistant", "content": [text, call]})).expect("a message");
            assert_eq!(made["content"].get(1).map(|call| call["arguments"].clone()), wanted, "{given}");
        }
    }

    #[test]
    fn what_says_nothing_is_given_up() {
        for value in [
            json!(null),
            json!([]),
            json!({}),
            json!({"role": "narrator", "content": "once"}),
            json!({"role": "user"}),
            json!({"role": "user", "content": 5}),
            json!({"role": "toolResult", "content": "no id"}),
            json!({"role": "assistant", "content": [{"type": "toolCall", "id": "a", "name": "x", "arguments": 1}]}),
        ] {
            assert_eq!(settled(value.clone()), None, "{value}");
        }
    }

    #[test]
    fn only_a_model_makes_calls() {
        let call = json!({"type": "toolCall", "id": "a", "name": "exec", "arguments": {}});
        let said = json!({"role": "user", "content": [{"type": "text", "text": "hi"}, call]});
        let mut dropped = 0;
        assert!(message(said, &mut dropped).is_some());
        assert_eq!(dropped, 1);
    }
}
