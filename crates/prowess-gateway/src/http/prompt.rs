//! Prompts: what does a list of messages say to an agent?
//!
//! An agent keeps its own history, so the last message is what it is asked. What came before it is told as text, and
//! what a client wants to say as the system goes to the end of the system prompt.

use serde_json::Value;

/// What an agent is asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Prompt {
    pub(super) text: String,
    pub(super) extra: Option<String>,
}

/// One thing that was said.
struct Said {
    who: String,
    text: String,
    is_asked: bool,
}

/// What `messages` say; nothing when there is nobody to answer.
pub(super) fn read(messages: &[Value]) -> Option<Prompt> {
    let mut system = Vec::new();
    let mut said: Vec<Said> = Vec::new();
    for message in messages {
        let text = words(message);
        if text.is_empty() {
            continue;
        }
        let (who, is_asked) = match message["role"].as_str().map(str::trim) {
            Some("system" | "developer") => {
                system.push(text);
                continue;
            }
            Some("user") => ("User".to_owned(), true),
            Some("assistant") => ("Assistant".to_owned(), false),
            Some("tool" | "function") => (tool(message), true),
            None if message["type"] == "function_call_output" => (tool(message), true),
            _ => continue,
        };
        said.push(Said { who, text, is_asked });
    }
    let last = said.iter().rposition(|one| one.is_asked)?;
    let extra = (!system.is_empty()).then(|| system.join("\n\n"));
    let before: Vec<String> = said[..last].iter().map(|one| format!("{}: {}", one.who, one.text)).collect();
    let asked = &said[last];
    let asked = if asked.who == "User" { asked.text.clone() } else { format!("{}: {}", asked.who, asked.text) };
    if before.is_empty() {
        return Some(Prompt { text: asked, extra });
    }
    let text = format!("What was said before, for context:\n{}\n\nWhat is asked now:\n{asked}", before.join("\n"));
    Some(Prompt { text, extra })
}

fn tool(message: &Value) -> String {
    match message["name"].as_str().map(str::trim).filter(|name| !name.is_empty()) {
        Some(name) => format!("Tool:{name}"),
        None => "Tool".to_owned(),
    }
}

/// The words of a message.
fn words(message: &Value) -> String {
    let content = if message["type"] == "function_call_output" { &message["output"] } else { &message["content"] };
    let text = match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| match part["type"].as_str() {
                Some("text" | "input_text" | "output_text") => part["text"].as_str(),
                _ => part["input_text"].as_str(),
            });
            texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    };
    text.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn prompt(messages: &Value) -> Option<Prompt> {
        read(messages.as_array().expect("a list"))
    }

    #[test]
    fn the_last_thing_asked_is_what_is_asked() {
        let one = json!([{"role": "user", "content": " hi "}]);
        assert_eq!(prompt(&one), Some(Prompt { text: "hi".to_owned(), extra: None }));
        let many = json!([
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            {"role": "assistant", "content": "c"},
            {"role": "developer", "content": "and kind"},
            {"role": "user", "content": "d"},
            {"role": "assistant", "content": "left out"},
        ]);
        let prompt = prompt(&many).expect("something is asked");
        assert_eq!(prompt.extra.as_deref(), Some("be brief\n\nand kind"));
        assert_eq!(
            prompt.text,
            "What was said before, for context:\nUser: a\nb\nAssistant: c\n\nWhat is asked now:\nd"
        );
    }

    #[test]
    fn results_of_tools_are_asked_too() {
        let tool = json!([{"role": "tool", "name": "clock", "content": "noon"}]);
        assert_eq!(prompt(&tool).map(|prompt| prompt.text).as_deref(), Some("Tool:clock: noon"));
        let output = json!([{"type": "function_call_output", "call_id": "1", "output": "noon"}]);
        assert_eq!(prompt(&output).map(|prompt| prompt.text).as_deref(), Some("Tool: noon"));
    }

    #[test]
    fn nothing_asked_is_nothing() {
        for messages in [
            json!([]),
            json!([{"role": "user", "content": " "}]),
            json!([{"role": "system", "content": "x"}]),
            json!([5]),
        ] {
            assert_eq!(prompt(&messages), None, "{messages}");
        }
    }
}
