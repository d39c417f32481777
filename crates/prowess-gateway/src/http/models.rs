//! `/v1/models`: the agents, as programs for OpenAI's API list models.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{Method, Request, StatusCode};
use axum::response::Response;
use prowess_agent::message::now;
use serde_json::{Value, json};

use super::chat_completions::refused;
use super::{authorize, json as reply, not_allowed, not_found, refuse};
use crate::aside::blocking;
use crate::gateway::Gateway;
use crate::scope::Scope;
use crate::server::Visitor;

/// Answers with all of them, or with the one that the path names.
pub(crate) async fn answer(State(gateway): State<Arc<Gateway>>, request: Request<Body>) -> Response {
    let endpoints = &gateway.settings.section["http"]["endpoints"];
    if ["chatCompletions", "responses"].iter().all(|name| endpoints[name]["enabled"] != true) {
        return not_found();
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return not_allowed("GET, HEAD");
    }
    let visitor = request.extensions().get::<Visitor>();
    let Some(visitor) = visitor else { return refuse(StatusCode::FORBIDDEN, "forbidden", "Forbidden") };
    if let Err(refused) = authorize(&gateway, request.headers(), visitor, Scope::Read) {
        return refused;
    }
    let since = now() / 1000 - gateway.started.elapsed().as_secs();
    let names = match blocking(move || gateway.agents.names()).await.and_then(|names| names) {
        Ok((names, _)) => names,
        Err(refusal) => return refused(&refusal),
    };
    let model = |id: String| json!({"id": id, "object": "model", "created": since, "owned_by": "prowess"});
    let ids = std::iter::once("openclaw".to_owned()).chain(names.iter().map(|name| format!("openclaw:{name}")));
    let models: Vec<Value> = ids.map(model).collect();
    let wanted = request.uri().path().strip_prefix("/v1/models").unwrap_or_default().trim_matches('/');
    if wanted.is_empty() {
        return reply(StatusCode::OK, &json!({"object": "list", "data": models}));
    }
    let is_wanted = |model: &Value| {
        let id = model["id"].as_str().unwrap_or_default();
        id == wanted || id.replace(':', "%3A") == wanted
    };
    models.into_iter().find(is_wanted).map_or_else(
        || {
            let shown: String = wanted.chars().take(100).collect();
            refuse(StatusCode::NOT_FOUND, "invalid_request_error", &format!("The model `{shown}` does not exist."))
        },
        |model| reply(StatusCode::OK, &model),
    )
}
