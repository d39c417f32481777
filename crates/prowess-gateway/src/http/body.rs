//! Bodies: what was sent, and what is sent back?

use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::{authorize, not_allowed, refuse};
use crate::gateway::Gateway;
use crate::scope::Scope;
use crate::server::Visitor;

/// How long a body may take to arrive.
const PATIENCE: Duration = Duration::from_secs(30);

/// The JSON object that an authorised `POST` brought, or the answer that refuses it.
pub(super) async fn posted(gateway: &Gateway, request: Request<Body>, limit: usize) -> Result<Value, Response> {
    if request.method() != Method::POST {
        return Err(not_allowed("POST"));
    }
    let visitor = request.extensions().get::<Visitor>();
    let Some(visitor) = visitor else { return Err(refuse(StatusCode::FORBIDDEN, "forbidden", "Forbidden")) };
    authorize(gateway, request.headers(), visitor, Scope::Write)?;
    let too_large = || refuse(StatusCode::PAYLOAD_TOO_LARGE, "invalid_request_error", "Payload too large");
    // Who says beforehand that it is too much does not have to send it.
    let announced = request.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if announced.is_some_and(|length: usize| length > limit) {
        return Err(too_large());
    }
    let Ok(read) = tokio::time::timeout(PATIENCE, to_bytes(request.into_body(), limit)).await else {
        return Err(refuse(StatusCode::REQUEST_TIMEOUT, "invalid_request_error", "Request body timeout"));
    };
    let Ok(bytes) = read else { return Err(too_large()) };
    if bytes.is_empty() {
        return Ok(json!({}));
    }
    serde_json::from_slice(&bytes).map_err(|error| invalid(&format!("the body is not JSON: {error}")))
}

/// Something is wrong with the request.
pub(super) fn invalid(message: &str) -> Response {
    refuse(StatusCode::BAD_REQUEST, "invalid_request_error", message)
}

/// A stream of events.
pub(super) fn events(body: Body) -> Response {
    let kind = [(header::CONTENT_TYPE, "text/event-stream; charset=utf-8"), (header::CACHE_CONTROL, "no-cache")];
    (kind, body).into_response()
}

/// The line of one event.
pub(super) fn event(data: &Value) -> String {
    format!("data: {data}\n\n")
}

/// The last line of a stream.
pub(super) const DONE: &str = "data: [DONE]\n\n";
