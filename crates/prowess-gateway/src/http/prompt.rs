//! Prompts: what does a list of messages say to an agent?
//!
//! An agent keeps its own history, so the last message is what it is asked. What came before it is told as text, and
//! what a client wants to say as the system goes to the end of the system prompt.

use prowess_agent::image::{self, Image};
use serde_json::Value;

/// What an agent is asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Prompt {
    pub(super) text: String,
    pub(super) extra: Option<String>,
    /// What it is shown, from all messages that are asked, in their order.
    pub(super) images: Vec<Image>,
}

/// One thing that was said.
struct Said {
    who: String,
    text: String,
    is_asked: bool,
}

/// What `messages` say; nothing when there is nobody to answer. What a model cannot be given is an error, so that nothing
/// is left out in silence. Images are decoded, which takes a while.
pub(super) fn read(messages: &[Value]) -> Result<Option<Prompt>, String> {
    let (mut system, mut images) = (Vec::new(), Vec::new());
    let mut said: Vec<Said> = Vec::new();
    for message in messages {
        let text = words(message);
        let before = images.len();
        for part in message["content"].as_array().into_iter().flatten() {
            images.extend(shown(part)?);
            image::check(&images).map_err(|error| error.to_string())?;
        }
        if text.is_empty() && images.len() == before {
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
    let Some(last) = said.iter().rposition(|one| one.is_asked) else { return Ok(None) };
    let extra = (!system.is_empty()).then(|| system.join("\n\n"));
    let before: Vec<String> = said[..last].iter().map(|one| format!("{}: {}", one.who, one.text)).collect();
    let asked = &said[last];
    let asked = if asked.who == "User" { asked.text.clone() } else { format!("{}: {}", asked.who, asked.text) };
    let text = if before.is_empty() {
        asked
    } else {
        format!("What was said before, for context:\n{}\n\nWhat is asked now:\n{asked}", before.join("\n"))
    };
    Ok(Some(Prompt { text, extra, images }))
}

/// The image that a part of a message is, if it is one.
fn shown(part: &Value) -> Result<Option<Image>, String> {
    let kind = part["type"].as_str().unwrap_or_default();
    let source = &part["source"];
    let image = match kind {
        "image_url" | "input_image" => {
            let url = part["image_url"]["url"].as_str().or_else(|| part["image_url"].as_str());
            url.or_else(|| source["data"].as_str()).or_else(|| source["url"].as_str())
        }
        "input_file" | "file" | "input_audio" => {
            return Err(format!("{kind} is not supported; put the file into the workspace and mention its path"));
        }
        _ => return Ok(None),
    };
    let image = image.map(str::trim).unwrap_or_default();
    let is_link = |scheme: &str| image.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    if is_link("http:") || is_link("https:") {
        return Err(format!("{kind}: links to images are not supported; send the image itself as a data: URL"));
    }
    if image.is_empty() {
        return Err(format!("{kind}: the image is missing; send it as a data: URL"));
    }
    Image::from_base64(image).map(Some).map_err(|error| format!("{kind}: {error}"))
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
        read(messages.as_array().expect("a list")).expect("nothing is wrong")
    }

    #[test]
    fn images_are_shown_and_what_cannot_be_is_refused() {
        let png = "data:image/png;base64,iVBORw0KGgo=";
        let parts = [
            json!({"type": "image_url", "image_url": {"url": png}}),
            json!({"type": "image_url", "image_url": png}),
            json!({"type": "input_image", "image_url": png}),
            json!({"type": "input_image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}),
        ];
        for part in parts {
            let alone = prompt(&json!([{"role": "user", "content": [part]}])).expect("an image alone is a message");
            assert_eq!((alone.text.as_str(), alone.images.len()), ("", 1), "{part}");
            assert_eq!(alone.images[0].mime_type, "image/png");
        }
        let wrong = [
            (json!({"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}), "data: URL"),
            (json!({"type": "input_image", "image_url": "HTTP://example.com/a.png"}), "data: URL"),
            (json!({"type": "input_image", "file_id": "f"}), "missing"),
            (json!({"type": "image_url", "image_url": {"url": "data:text/plain;base64,aGVsbG8="}}), "PNG"),
            (json!({"type": "input_audio"}), "input_audio is not supported"),
        ];
        for (part, why) in wrong {
            let refused = read(&[json!({"role": "user", "content": ["x", part]})]).expect_err("refused");
            assert!(refused.contains(why), "{refused}");
        }
        let many: Vec<_> = vec![json!({"type": "image_url", "image_url": png}); 21];
        assert!(read(&[json!({"role": "user", "content": many})]).is_err());
    }

    #[test]
    fn the_last_thing_asked_is_what_is_asked() {
        let one = json!([{"role": "user", "content": " hi "}]);
        assert_eq!(prompt(&one), Some(Prompt { text: "hi".to_owned(), ..Prompt::default() }));
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
