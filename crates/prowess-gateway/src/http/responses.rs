//! `/v1/responses`: an agent as programs for OpenAI's responses speak to it.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{Request, StatusCode};
use axum::response::Response;
use futures_util::stream;
use serde_json::{Value, json};

use super::body::{DONE, events, invalid, posted};
use super::chat_completions::refused;
use super::not_found;
use super::prompt::{self, Prompt};
use super::request::session;
use super::stream::{Cost, Following, Step, delivery, failure, seconds};
use crate::aside::blocking;
use crate::gateway::Gateway;
use crate::runs::{Asked, answer_text};

/// The largest body, unless the configuration says less.
const MAX_BODY: usize = 20 * 1024 * 1024;

/// Answers one request.
pub(crate) async fn answer(State(gateway): State<Arc<Gateway>>, request: Request<Body>) -> Response {
    let section = &gateway.settings.section["http"]["endpoints"]["responses"];
    if section["enabled"] != true {
        return not_found();
    }
    let limit = section["maxBodyBytes"].as_u64().and_then(|bytes| usize::try_from(bytes).ok());
    let headers = request.headers().clone();
    let body = match posted(&gateway, request, limit.unwrap_or(MAX_BODY).min(MAX_BODY)).await {
        Ok(body) => body,
        Err(refused) => return refused,
    };
    let (Prompt { text, extra, images }, body) = match blocking(move || (read(&body), body)).await {
        Ok((Ok(prompt), body)) => (prompt, body),
        Ok((Err(why), _)) => return invalid(&why),
        Err(refusal) => return refused(&refusal),
    };
    let model = body["model"].as_str().unwrap_or_default().to_owned();
    let (asked_gateway, name) = (Arc::clone(&gateway), model.clone());
    let user = body["user"].as_str().map(str::to_owned);
    let key = blocking(move || session(&asked_gateway, &headers, &name, user.as_deref(), "openresponses")).await;
    let key = match key.and_then(|key| key) {
        Ok(key) => key,
        Err(refusal) => return refused(&refusal),
    };
    let id = format!("resp_{}", uuid::Uuid::new_v4());
    let asked = Asked { extra, images: Arc::new(images), delivery: delivery(&body), ..Asked::default() };
    let following = match Following::start(&gateway, &id, key, text, asked).await {
        Ok(following) => following,
        Err(refusal) => return refused(&refusal),
    };
    let written = Written { id, item: format!("msg_{}", uuid::Uuid::new_v4()), model, created: seconds() };
    if body["stream"] == true {
        return streamed(Steps { written, following, text: String::new(), stage: Stage::Opening });
    }
    whole(&written, following).await
}

/// What an agent is asked, or what is wrong with the request.
fn read(body: &Value) -> Result<Prompt, String> {
    if !body["model"].is_string() {
        return Err("model: must be a string".to_owned());
    }
    let items = match &body["input"] {
        Value::String(text) => vec![json!({"role": "user", "content": text})],
        Value::Array(items) => items.clone(),
        _ => return Err("input: must be a string or a list".to_owned()),
    };
    let wants_a_call = body["tool_choice"] == "required" || body["tool_choice"].is_object();
    if wants_a_call {
        return Err("tool_choice is not supported: the agent chooses its own tools".to_owned());
    }
    let prompt = prompt::read(&items).map_err(|why| format!("input: {why}"))?;
    let prompt = prompt.ok_or("Missing user message in `input`.")?;
    let instructions = body["instructions"].as_str().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
    let extra: Vec<String> = [instructions, prompt.extra].into_iter().flatten().collect();
    Ok(Prompt { extra: (!extra.is_empty()).then(|| extra.join("\n\n")), ..prompt })
}

async fn whole(written: &Written, mut following: Following) -> Response {
    let ended = following.over().await;
    let usage = Cost::of(&ended).responses();
    if let Some(why) = failure(&ended) {
        return super::json(StatusCode::INTERNAL_SERVER_ERROR, &written.failed(why, &usage));
    }
    let item = written.message(&answer_text(&ended), "completed");
    super::json(StatusCode::OK, &written.response("completed", &json!([item]), &usage))
}

/// What all parts of one answer have in common.
struct Written {
    id: String,
    item: String,
    model: String,
    created: u64,
}

impl Written {
    fn response(&self, status: &str, output: &Value, usage: &Value) -> Value {
        json!({
            "id": self.id,
            "object": "response",
            "created_at": self.created,
            "status": status,
            "model": self.model,
            "output": output,
            "usage": usage,
        })
    }

    fn failed(&self, why: &str, usage: &Value) -> Value {
        let mut response = self.response("failed", &json!([]), usage);
        response["error"] = json!({"code": "api_error", "message": why});
        response
    }

    fn message(&self, text: &str, status: &str) -> Value {
        json!({
            "type": "message",
            "id": self.item,
            "role": "assistant",
            "content": [{"type": "output_text", "text": text}],
            "status": status,
        })
    }

    /// An event about the text of the answer.
    fn about_text(&self, kind: &str, field: &str, value: &Value) -> String {
        let mut event = json!({"type": kind, "item_id": self.item, "output_index": 0, "content_index": 0});
        event[field] = value.clone();
        event_named(&event)
    }
}

/// An answer that is sent as it comes.
struct Steps {
    written: Written,
    following: Following,
    /// What was said so far.
    text: String,
    stage: Stage,
}

/// What comes next.
enum Stage {
    /// What every stream begins with.
    Opening,
    /// What is said.
    Words,
    /// Nothing.
    Over,
}

fn streamed(steps: Steps) -> Response {
    let body = stream::unfold(steps, |mut steps| async move {
        let text = steps.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from(text)), steps))
    });
    events(Body::from_stream(body))
}

impl Steps {
    async fn next(&mut self) -> Option<String> {
        match self.stage {
            Stage::Opening => {
                self.stage = Stage::Words;
                return Some(self.opening());
            }
            Stage::Words => {}
            Stage::Over => return None,
        }
        match self.following.next().await? {
            Step::Text(text) => {
                self.text.push_str(&text);
                Some(self.written.about_text("response.output_text.delta", "delta", &text.into()))
            }
            Step::Over(ended) => {
                self.stage = Stage::Over;
                let usage = Cost::of(&ended).responses();
                if let Some(why) = failure(&ended) {
                    let failed = json!({"type": "response.failed", "response": self.written.failed(why, &usage)});
                    return Some(event_named(&failed) + DONE);
                }
                Some(self.closing(&usage) + DONE)
            }
        }
    }

    fn opening(&self) -> String {
        let nothing = json!({"input_tokens": 0, "output_tokens": 0, "total_tokens": 0});
        let begun = self.written.response("in_progress", &json!([]), &nothing);
        let item = self.written.message("", "in_progress");
        let part = json!({"type": "output_text", "text": ""});
        event_named(&json!({"type": "response.created", "response": begun}))
            + &event_named(&json!({"type": "response.in_progress", "response": begun}))
            + &event_named(&json!({"type": "response.output_item.added", "output_index": 0, "item": item}))
            + &self.written.about_text("response.content_part.added", "part", &part)
    }

    fn closing(&self, usage: &Value) -> String {
        let text = Value::from(self.text.as_str());
        let item = self.written.message(&self.text, "completed");
        let part = json!({"type": "output_text", "text": self.text});
        let response = self.written.response("completed", &json!([item]), usage);
        self.written.about_text("response.output_text.done", "text", &text)
            + &self.written.about_text("response.content_part.done", "part", &part)
            + &event_named(&json!({"type": "response.output_item.done", "output_index": 0, "item": item}))
            + &event_named(&json!({"type": "response.completed", "response": response}))
    }
}

/// The lines of an event that says what it is.
fn event_named(event: &Value) -> String {
    format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_done_is_refused() {
        for (body, expected) in [
            (json!({"input": "hi"}), "model: must be a string"),
            (json!({"model": "m"}), "input: must be a string or a list"),
            (json!({"model": "m", "input": []}), "Missing user message in `input`."),
            (
                json!({"model": "m", "input": "hi", "tool_choice": "required"}),
                "tool_choice is not supported: the agent chooses its own tools",
            ),
            (
                json!({"model": "m", "input": [{"role": "user", "content": [{"type": "input_file"}]}]}),
                "input: input_file is not supported; put the file into the workspace and mention its path",
            ),
        ] {
            assert_eq!(read(&body), Err(expected.to_owned()), "{body}");
        }
    }

    #[test]
    fn instructions_come_first() {
        let body = json!({
            "model": "m", "instructions": "be brief",
            "input": [{"role": "system", "content": "and kind"}, {"type": "message", "role": "user", "content": "hi"}],
        });
        let extra = Some("be brief\n\nand kind".to_owned());
        let expected = Prompt { text: "hi".to_owned(), extra, ..Prompt::default() };
        assert_eq!(read(&body), Ok(expected));
    }
}
