//! Would a provider take this request? The rules that hold for all of them, whatever was answered.

use prowess_agent::model::facts::{Facts, ThinkingForm};
use serde_json::Value;

/// Checks every request of one conversation.
pub(crate) fn check(case: &Value, requests: &[Value]) {
    let api = case["api"].as_str().expect("one");
    for request in requests {
        match api {
            "anthropic-messages" => messages(case, request),
            "openai-completions" => chat(case, request),
            _ => responses(case, request),
        }
    }
    if case["window"].is_null() {
        stays(case, requests);
    }
    if api == "anthropic-messages" && Facts::of(text(&case["model"])).preserved {
        bound(case, requests);
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn only(case: &Value, request: &Value, fields: &[&str]) {
    let unknown: Vec<&String> =
        request.as_object().expect("an object").keys().filter(|key| !fields.contains(&key.as_str())).collect();
    assert!(unknown.is_empty(), "{}: {unknown:?} is no field of the API", case["id"]);
}

fn is_thought(block: &Value) -> bool {
    matches!(text(&block["type"]), "thinking" | "redacted_thinking")
}

fn messages(case: &Value, request: &Value) {
    let id = &case["id"];
    only(case, request, &["model", "max_tokens", "stream", "messages", "system", "tools", "thinking", "output_config"]);
    let marks = request.to_string().matches("\"cache_control\"").count();
    assert!(marks <= 4, "{id}: {marks} cache marks");
    thinking(case, request);
    assert!(list(&request["tools"]).iter().all(|tool| tool["input_schema"]["type"] == "object"), "{id}");
    let all = list(&request["messages"]);
    for (at, message) in all.iter().enumerate() {
        let role = if at % 2 == 0 { "user" } else { "assistant" };
        assert_eq!(message["role"], role, "{id}: roles alternate, the user first");
        let blocks = list(&message["content"]);
        assert!(!blocks.is_empty(), "{id}: an empty message");
        assert!(blocks.iter().all(|block| block["type"] != "text" || !text(&block["text"]).trim().is_empty()), "{id}");
        assert!(!blocks.last().is_some_and(is_thought), "{id}: a thought is the last block");
        let calls: Vec<&str> =
            blocks.iter().filter(|block| block["type"] == "tool_use").map(|block| text(&block["id"])).collect();
        let is_plain = |call: &&str| {
            !call.is_empty() && call.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
        };
        assert!(calls.iter().all(is_plain), "{id}: {calls:?}");
        assert!(
            blocks.iter().filter(|block| block["type"] == "tool_use").all(|block| !text(&block["name"]).is_empty()),
            "{id}"
        );
        let answered: Vec<&str> = all
            .get(at + 1)
            .map_or(&[][..], |next| list(&next["content"]))
            .iter()
            .take_while(|block| block["type"] == "tool_result")
            .map(|block| text(&block["tool_use_id"]))
            .collect();
        assert!(role == "user" || calls == answered, "{id}: {calls:?} are answered by {answered:?}");
    }
    assert!(all.len() % 2 == 1, "{id}: the user ends");
}

/// The form that the model takes, and only that.
fn thinking(case: &Value, request: &Value) {
    let id = &case["id"];
    let (thinking, effort) = (&request["thinking"], &request["output_config"]["effort"]);
    let form = Facts::of(text(&case["model"])).form;
    match text(&thinking["type"]) {
        "" => assert!(effort.is_null(), "{id}: an effort without thinking"),
        "enabled" => {
            assert_eq!(form, ThinkingForm::Budget, "{id}");
            let budget = thinking["budget_tokens"].as_u64().expect("a budget");
            assert!(budget >= 1024 && budget < request["max_tokens"].as_u64().expect("a limit"), "{id}: {budget}");
        }
        "adaptive" => assert!(!matches!(form, ThinkingForm::Budget | ThinkingForm::None), "{id}"),
        other => panic!("{id}: thinking {other:?}"),
    }
    if case["thinking"] != "off" && form == ThinkingForm::Budget {
        let is_first = list(&request["messages"]).len() == 1;
        assert!(!is_first || thinking["type"] == "enabled", "{id}: it is asked to think");
    }
}

fn responses(case: &Value, request: &Value) {
    let id = &case["id"];
    only(
        case,
        request,
        &[
            "model",
            "input",
            "stream",
            "store",
            "instructions",
            "tools",
            "max_output_tokens",
            "reasoning",
            "include",
            "prompt_cache_key",
        ],
    );
    assert_eq!(request["store"], false, "{id}");
    assert!(list(&request["include"]).iter().any(|one| one == "reasoning.encrypted_content"), "{id}");
    let items = list(&request["input"]);
    let mut open: Vec<&str> = Vec::new();
    let mut is_behind_thought = false;
    for (at, item) in items.iter().enumerate() {
        match text(&item["type"]) {
            "function_call" => {
                assert!(
                    item["id"].is_null() || (text(&item["id"]).starts_with("fc") && is_behind_thought),
                    "{id}: {item}"
                );
                assert!(!open.contains(&text(&item["call_id"])), "{id}: an id twice");
                open.push(text(&item["call_id"]));
            }
            "function_call_output" => {
                let call =
                    open.iter().position(|call| *call == text(&item["call_id"])).expect("a call before its output");
                open.remove(call);
                is_behind_thought = false;
            }
            "reasoning" => {
                assert!(!text(&item["encrypted_content"]).is_empty() && item["summary"].is_array(), "{id}: {item}");
                let next = items.get(at + 1).map(|next| (text(&next["type"]), text(&next["role"])));
                assert!(
                    matches!(next, Some(("function_call" | "reasoning", _) | ("message", "assistant"))),
                    "{id}: {next:?}"
                );
                is_behind_thought = true;
            }
            "message" if item["role"] == "assistant" => {
                assert!(item["id"].is_null() || is_behind_thought, "{id}: {item}");
            }
            "message" => is_behind_thought = false,
            other => panic!("{id}: an item {other:?}"),
        }
    }
    assert!(open.is_empty(), "{id}: calls without output: {open:?}");
}

fn chat(case: &Value, request: &Value) {
    let id = &case["id"];
    only(
        case,
        request,
        &[
            "model",
            "messages",
            "stream",
            "stream_options",
            "tools",
            "max_tokens",
            "max_completion_tokens",
            "reasoning_effort",
            "prompt_cache_key",
        ],
    );
    let is_openai = text(&case["base"]).contains("api.openai.com");
    assert_eq!(request["max_completion_tokens"].is_u64(), is_openai, "{id}");
    assert_eq!(request["max_tokens"].is_u64(), !is_openai, "{id}");
    let is_mistral = text(&case["base"]).contains("mistral");
    let mut open: Vec<&str> = Vec::new();
    for message in list(&request["messages"]) {
        let calls = list(&message["tool_calls"]);
        let says = !message["content"].is_null() && message["content"] != "";
        assert!(says || !calls.is_empty(), "{id}: a message says nothing");
        if message["role"] == "tool" {
            let call =
                open.iter().position(|call| *call == text(&message["tool_call_id"])).expect("a call before its result");
            open.remove(call);
            continue;
        }
        assert!(open.is_empty(), "{id}: calls without results");
        for call in calls {
            let call_id = text(&call["id"]);
            let is_nine = call_id.len() == 9 && call_id.bytes().all(|byte| byte.is_ascii_alphanumeric());
            assert!(!call_id.is_empty() && (!is_mistral || is_nine), "{id}: {call_id}");
            open.push(call_id);
        }
    }
    assert!(open.is_empty(), "{id}: calls without results");
    gives_back(case, request);
}

/// What the provider wants back is in the request: of every answer that came before it.
fn gives_back(case: &Value, request: &Value) {
    let said: Vec<&Value> =
        list(&request["messages"]).iter().filter(|message| message["role"] == "assistant").collect();
    let answers = list(&case["turns"]).iter().flat_map(list);
    for (message, answer) in said.into_iter().zip(answers) {
        let body = text(&answer["body"]);
        for field in ["reasoning_details", "extra_content"] {
            let was_given = body.contains(&format!("\"{field}\":[{{")) || body.contains(&format!("\"{field}\":{{"));
            assert!(!was_given || message.to_string().contains(field), "{}: {field} does not go back", case["id"]);
        }
        let thought = body.contains("\"reasoning_content\":\"");
        let is_lost = !list(&message["tool_calls"]).is_empty() && message["reasoning_content"].is_null();
        assert!(!(thought && is_lost), "{}: reasoning_content does not go back", case["id"]);
        for piece in body.split("\"signature\":\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(message.to_string().contains(piece), "{}: a signature does not go back", case["id"]);
        }
    }
}

/// What was sent, without marks for caches.
fn sent(request: &Value) -> Vec<Value> {
    let list = if request["messages"].is_null() { &request["input"] } else { &request["messages"] };
    let mut list = list.as_array().cloned().unwrap_or_default();
    for block in list.iter_mut().filter_map(|message| message["content"].as_array_mut()).flatten() {
        block.as_object_mut().map(|block| block.remove("cache_control"));
    }
    list
}

/// What was sent stays as it was, and what is new comes after it.
fn stays(case: &Value, requests: &[Value]) {
    for pair in requests.windows(2) {
        let (before, after) = (sent(&pair[0]), sent(&pair[1]));
        assert!(after.starts_with(&before), "{}: what was sent has changed", case["id"]);
    }
}

/// A thought goes back only behind exactly what it was made behind.
fn bound(case: &Value, requests: &[Value]) {
    for (at, request) in requests.iter().enumerate() {
        let messages = sent(request);
        for (place, message) in
            messages.iter().enumerate().filter(|(_, message)| list(&message["content"]).iter().any(is_thought))
        {
            let was_made = requests[..at].iter().any(|made| {
                made["system"] == request["system"]
                    && made["tools"] == request["tools"]
                    && sent(made) == messages[..place]
            });
            assert!(was_made, "{}: a thought goes back behind another beginning: {message}", case["id"]);
        }
    }
}
