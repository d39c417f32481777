//! `/v1/chat/completions`: an agent as programs for OpenAI's chat speak to it.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{Request, StatusCode};
use axum::response::Response;
use futures_util::stream;
use serde_json::{Value, json};

use super::body::{DONE, event, events, invalid, posted};
use super::prompt::{self, Prompt};
use super::request::session;
use super::stream::{Cost, Following, Step, delivery, failure, seconds};
use super::{not_found, refuse};
use crate::aside::blocking;
use crate::gateway::Gateway;
use crate::runs::{Asked, answer_text};
use crate::wire::{Code, Refusal};

/// The largest body: images are in it.
const MAX_BODY: usize = 20 * 1024 * 1024;

/// The model that is named when a client names none.
const MODEL: &str = "openclaw";

/// Answers one request.
pub(crate) async fn answer(State(gateway): State<Arc<Gateway>>, request: Request<Body>) -> Response {
    if gateway.settings.section["http"]["endpoints"]["chatCompletions"]["enabled"] != true {
        return not_found();
    }
    let headers = request.headers().clone();
    let body = match posted(&gateway, request, MAX_BODY).await {
        Ok(body) => body,
        Err(refused) => return refused,
    };
    let read = blocking(move || {
        let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
        (prompt::read(messages), body)
    });
    let (prompt, body) = match read.await {
        Ok((Ok(Some(prompt)), body)) => (prompt, body),
        Ok((Ok(None), _)) => return invalid("Missing user message in `messages`."),
        Ok((Err(why), _)) => return invalid(&why),
        Err(refusal) => return refused(&refusal),
    };
    let model = body["model"].as_str().unwrap_or(MODEL).to_owned();
    let (asked_gateway, name) = (Arc::clone(&gateway), model.clone());
    let user = body["user"].as_str().map(str::to_owned);
    let key = blocking(move || session(&asked_gateway, &headers, &name, user.as_deref(), "openai")).await;
    let key = match key.and_then(|key| key) {
        Ok(key) => key,
        Err(refusal) => return refused(&refusal),
    };
    let id = format!("chatcmpl_{}", uuid::Uuid::new_v4());
    let Prompt { text, extra, images } = prompt;
    let asked = Asked { extra, images: Arc::new(images), delivery: delivery(&body), ..Asked::default() };
    let following = match Following::start(&gateway, &id, key, text, asked).await {
        Ok(following) => following,
        Err(refusal) => return refused(&refusal),
    };
    if body["stream"] == true {
        let with_usage = body["stream_options"]["include_usage"] == true;
        return streamed(Chunks { id, model, with_usage, following, stage: Stage::Role });
    }
    whole(&id, &model, following).await
}

async fn whole(id: &str, model: &str, mut following: Following) -> Response {
    let ended = following.over().await;
    if let Some(why) = failure(&ended) {
        return refuse(StatusCode::INTERNAL_SERVER_ERROR, "api_error", why);
    }
    super::json(
        StatusCode::OK,
        &json!({
            "id": id,
            "object": "chat.completion",
            "created": seconds(),
            "model": model,
            "choices": [{
                "index": 0,
                "message": {"role": "assistant", "content": answer_text(&ended)},
                "finish_reason": following.finish_reason(),
            }],
            "usage": Cost::of(&ended).chat(),
        }),
    )
}

/// An answer that is sent as it comes.
struct Chunks {
    id: String,
    model: String,
    with_usage: bool,
    following: Following,
    stage: Stage,
}

/// What comes next.
enum Stage {
    /// Who speaks.
    Role,
    /// What is said.
    Words,
    /// Nothing.
    Over,
}

fn streamed(chunks: Chunks) -> Response {
    let body = stream::unfold(chunks, |mut chunks| async move {
        let text = chunks.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from(text)), chunks))
    });
    events(Body::from_stream(body))
}

impl Chunks {
    async fn next(&mut self) -> Option<String> {
        match self.stage {
            Stage::Role => {
                self.stage = Stage::Words;
                return Some(event(&self.chunk(&json!({"role": "assistant"}), None)));
            }
            Stage::Words => {}
            Stage::Over => return None,
        }
        match self.following.next().await? {
            Step::Text(text) => Some(event(&self.chunk(&json!({"content": text}), None))),
            Step::Over(ended) => {
                self.stage = Stage::Over;
                if let Some(why) = failure(&ended) {
                    let error = json!({"error": {"message": why, "type": "api_error"}});
                    return Some(event(&error) + DONE);
                }
                let mut last = event(&self.chunk(&json!({}), Some(self.following.finish_reason())));
                if self.with_usage {
                    let mut usage = self.chunk(&json!({}), None);
                    usage["choices"] = json!([]);
                    usage["usage"] = Cost::of(&ended).chat();
                    last += &event(&usage);
                }
                Some(last + DONE)
            }
        }
    }

    fn chunk(&self, delta: &Value, finish: Option<&str>) -> Value {
        json!({
            "id": self.id,
            "object": "chat.completion.chunk",
            "created": seconds(),
            "model": self.model,
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        })
    }
}

/// A refusal as programs for OpenAI's formats know it.
pub(super) fn refused(refusal: &Refusal) -> Response {
    match refusal.code {
        Code::InvalidRequest | Code::NotPaired => invalid(&refusal.message),
        Code::Unavailable | Code::AgentTimeout => {
            refuse(StatusCode::SERVICE_UNAVAILABLE, "api_error", &refusal.message)
        }
    }
}
