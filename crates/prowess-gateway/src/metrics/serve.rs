//! `/metrics`: who may read the numbers?

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{ConnectInfo, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};

use super::page::Connected;
use crate::caller::Caller;
use crate::gateway::Gateway;
use crate::http::authorize;
use crate::scope::Role;

/// The text form of Prometheus.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Answers with the page.
pub(crate) async fn answer(
    State(gateway): State<Arc<Gateway>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
) -> Response {
    let section = &gateway.settings.section["http"]["endpoints"]["metrics"];
    if section["enabled"] == false {
        return (StatusCode::NOT_FOUND, "Not Found").into_response();
    }
    let is_open = section["auth"] == "loopback" && Caller::of(peer.ip(), &headers, &gateway.settings).is_local;
    if !is_open && let Err(refused) = authorize(&gateway, &headers, peer.ip()) {
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
