//! `/metrics`: who may read the numbers?

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};

use super::page::Connected;
use crate::caller::Caller;
use crate::gateway::Gateway;
use crate::http::authorize;
use crate::scope::{Role, Scope};
use crate::server::Visitor;

/// The text form of Prometheus.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Answers with the page.
pub(crate) async fn answer(
    State(gateway): State<Arc<Gateway>>,
    Extension(visitor): Extension<Visitor>,
    headers: HeaderMap,
) -> Response {
    let section = &gateway.settings.section["http"]["endpoints"]["metrics"];
    if section["enabled"] == false {
        return (StatusCode::NOT_FOUND, "Not Found").into_response();
    }
    let is_open = section["auth"] == "loopback" && Caller::of(visitor.peer, &headers, &gateway.settings).is_local;
    if !is_open && let Err(refused) = authorize(&gateway, &headers, &visitor, Scope::Read) {
        return refused;
    }
    let mut connected = Connected::default();
    for guest in gateway.hub.guests() {
        match guest.role {
            Role::Operator => connected.operators += 1,
            Role::Node => connected.nodes += 1,
        }
    }
    ([(CONTENT_TYPE, TEXT)], gateway.metrics.page(connected)).into_response()
}
