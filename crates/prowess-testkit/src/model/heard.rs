//! What does a request say, whatever its wire format?

use serde_json::Value;

use super::RecordedRequest;

/// One thing that stands in a request's conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// What a person said.
    Person(String),
    /// What the model said before.
    Model(String),
    /// A tool that the model called before, with its arguments.
    Call(String, Value),
    /// What a tool answered.
    Result(String),
}

impl Heard {
    /// Its words; a call has none.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Person(text) | Self::Model(text) | Self::Result(text) => text,
            Self::Call(..) => "",
        }
    }
}

impl RecordedRequest {
    /// The system prompt.
    #[must_use]
    pub fn system(&self) -> String {
        let body = &self.body;
        let first = |list: &Value| list.as_array().and_then(|list| list.iter().find(|it| is_system(it)).cloned());
        match () {
            () if !body["system"].is_null() => words(&body["system"]),
            () if !body["instructions"].is_null() => words(&body["instructions"]),
            () => {
                let message = first(&body["messages"]).or_else(|| first(&body["input"]));
                message.map(|message| words(&message["content"])).unwrap_or_default()
            }
        }
    }

    /// The conversation, without the system prompt.
    #[must_use]
    pub fn heard(&self) -> Vec<Heard> {
        let list = if self.body["input"].is_null() { &self.body["messages"] } else { &self.body["input"] };
        let mut heard = Vec::new();
        for message in list.as_array().into_iter().flatten().filter(|it| !is_system(it)) {
            match (message["role"].as_str(), message["type"].as_str()) {
                (Some("tool"), _) => heard.push(Heard::Result(words(&message["content"]))),
                (Some(role), _) => said(role, message, &mut heard),
                (None, Some("function_call")) => heard.push(call(&message["name"], &message["arguments"])),
                (None, Some("function_call_output")) => heard.push(Heard::Result(words(&message["output"]))),
                // Thoughts that go back as they came.
                (None, _) => {}
            }
        }
        heard
    }

    /// What the last message says.
    #[must_use]
    pub fn last(&self) -> String {
        self.heard().last().map(|heard| heard.text().to_owned()).unwrap_or_default()
    }
}

/// A message of a person or the model; Anthropic's format has calls and their results inside.
fn said(role: &str, message: &Value, heard: &mut Vec<Heard>) {
    let blocks = message["content"].as_array().into_iter().flatten();
    let of_kind = |kind: &str| blocks.clone().filter(|block| block["type"] == kind).collect::<Vec<_>>();
    heard.extend(of_kind("tool_result").into_iter().map(|block| Heard::Result(words(&block["content"]))));
    // Messages that follow each other are blocks of one there.
    let texts = match &message["content"] {
        Value::Array(blocks) => blocks.iter().map(|block| block["text"].as_str().unwrap_or_default()).collect(),
        text => vec![text.as_str().unwrap_or_default()],
    };
    for text in texts.into_iter().filter(|text| !text.is_empty()).map(str::to_owned) {
        heard.push(if role == "assistant" { Heard::Model(text) } else { Heard::Person(text) });
    }
    heard.extend(of_kind("tool_use").into_iter().map(|block| call(&block["name"], &block["input"])));
    let calls = message["tool_calls"].as_array().into_iter().flatten();
    heard.extend(calls.map(|one| call(&one["function"]["name"], &one["function"]["arguments"])));
}

fn call(name: &Value, arguments: &Value) -> Heard {
    let name = name.as_str().unwrap_or_default().to_owned();
    let read = |text: &str| serde_json::from_str(text).unwrap_or_else(|error| panic!("arguments of {name}: {error}"));
    let arguments = arguments.as_str().map_or_else(|| arguments.clone(), read);
    Heard::Call(name, arguments)
}

fn is_system(message: &Value) -> bool {
    matches!(message["role"].as_str(), Some("system" | "developer"))
}

/// The text of a content: text itself, or blocks of which some have text.
fn words(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let text = |block: &Value| block["text"].as_str().map(str::to_owned);
            blocks.iter().filter_map(text).collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn all_formats_say_the_same() {
        let arguments = json!({"path": "x"});
        let text = arguments.to_string();
        let bodies = [
            json!({"system": [{"type": "text", "text": "be good"}], "messages": [
                {"role": "user", "content": [{"type": "text", "text": "hi"}]},
                {"role": "assistant", "content": [
                    {"type": "text", "text": "ok"}, {"type": "tool_use", "id": "a", "name": "read", "input": arguments}
                ]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "done"}]}
            ]}),
            json!({"messages": [
                {"role": "system", "content": "be good"},
                {"role": "user", "content": "hi"},
                {"role": "assistant", "content": "ok", "tool_calls": [
                    {"id": "a", "type": "function", "function": {"name": "read", "arguments": text}}
                ]},
                {"role": "tool", "tool_call_id": "a", "content": "done"}
            ]}),
            json!({"instructions": "be good", "input": [
                {"role": "user", "content": [{"type": "input_text", "text": "hi"}]},
                {"type": "reasoning", "summary": []},
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "ok"}]},
                {"type": "function_call", "call_id": "a", "name": "read", "arguments": text},
                {"type": "function_call_output", "call_id": "a", "output": "done"}
            ]}),
        ];
        for body in bodies {
            let request =
                RecordedRequest { method: String::new(), path: String::new(), peer: 0, headers: Vec::new(), body };
            let expected = [
                Heard::Person("hi".to_owned()),
                Heard::Model("ok".to_owned()),
                Heard::Call("read".to_owned(), arguments.clone()),
                Heard::Result("done".to_owned()),
            ];
            assert_eq!((request.system().as_str(), request.heard()), ("be good", expected.to_vec()));
            assert_eq!(request.last(), "done");
        }
    }
}
