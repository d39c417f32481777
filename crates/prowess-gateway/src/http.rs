//! HTTP: what is answered to requests that are no WebSocket?
//!
//! Those that are one are taken on every path, before the paths are looked at. Whatever is answered carries the same few
//! headers.

mod body;
mod chat_completions;
mod models;
mod prompt;
mod request;
mod responses;
mod stream;
mod tools;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{FromRequestParts, Request, State, WebSocketUpgrade};
use axum::http::header::{
    ALLOW, AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, REFERRER_POLICY, RETRY_AFTER, SEC_WEBSOCKET_ACCEPT,
    SEC_WEBSOCKET_KEY, UPGRADE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use prowess_agent::message::now;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tower::ServiceExt;

use crate::auth::{Denied, Shown};
use crate::caller::Caller;
use crate::connection;
use crate::gateway::Gateway;
use crate::metrics::serve;
use crate::page;
use crate::scope::Scope;
use crate::server::Visitor;
use crate::socket::Socket;
use crate::wire::MAX_FIRST_FRAME;

/// What each path answers, in the order in which they are looked at.
pub(crate) fn router(gateway: Arc<Gateway>) -> Router {
    Router::new()
        .route("/health", any(live))
        .route("/healthz", any(live))
        .route("/ready", any(ready))
        .route("/readyz", any(ready))
        .route("/metrics", any(serve::answer))
        .route("/tools/invoke", any(tools::answer))
        .route("/v1/models", any(models::answer))
        .route("/v1/models/{id}", any(models::answer))
        .route("/v1/responses", any(responses::answer))
        .route("/v1/chat/completions", any(chat_completions::answer))
        .route("/", any(index))
        .route("/assets/{name}", any(page::asset))
        .fallback(async || not_found())
        .with_state(gateway)
}

/// Answers one request.
pub(crate) async fn answer(
    gateway: Arc<Gateway>,
    router: Router,
    request: Request,
    visitor: Visitor,
) -> Result<Response, std::convert::Infallible> {
    let is_upgrade = request.headers().get(UPGRADE).is_some_and(|to| to.as_bytes().eq_ignore_ascii_case(b"websocket"));
    let metrics = Arc::clone(&gateway.metrics);
    let mut response = if is_upgrade {
        upgrade(gateway, request, visitor).await
    } else {
        router.oneshot(request).await.unwrap_or_else(|never| match never {})
    };
    metrics.http_ended(response.status().as_u16());
    let headers = response.headers_mut();
    headers.entry(X_CONTENT_TYPE_OPTIONS).or_insert(HeaderValue::from_static("nosniff"));
    headers.entry(REFERRER_POLICY).or_insert(HeaderValue::from_static("no-referrer"));
    Ok(response)
}

async fn upgrade(gateway: Arc<Gateway>, request: Request, Visitor { peer, meter }: Visitor) -> Response {
    let (mut parts, _) = request.into_parts();
    let coming = parts.extensions.get::<OnUpgrade>().cloned();
    // Its rules count, but the socket is our own.
    let checked: Result<WebSocketUpgrade, WebSocketUpgradeRejection> =
        WebSocketUpgrade::from_request_parts(&mut parts, &()).await;
    if let Err(rejection) = checked {
        return rejection.into_response();
    }
    let (Some(coming), Some(key)) = (coming, parts.headers.get(SEC_WEBSOCKET_KEY)) else {
        return StatusCode::UPGRADE_REQUIRED.into_response();
    };
    let accept = derive_accept_key(key.as_bytes());
    let caller = Caller::of(peer, &parts.headers, &gateway.settings);
    meter.limit(MAX_FIRST_FRAME);
    let connections = gateway.connections.clone();
    connections.spawn(async move {
        match coming.await {
            Ok(stream) => connection::hold(gateway, Socket::new(TokioIo::new(stream)).await, caller, meter).await,
            Err(error) => tracing::debug!(from = %caller.peer, "a connection ended: {error}"),
        }
    });
    let agreed = [(CONNECTION, "upgrade"), (UPGRADE, "websocket"), (SEC_WEBSOCKET_ACCEPT, accept.as_str())];
    (StatusCode::SWITCHING_PROTOCOLS, agreed).into_response()
}

/// Whether a request may use what only clients with the gateway's secret may use.
///
/// The secret comes as a bearer token, whether it is a token or a password. A page in a browser also has to be one that
/// may connect, because a browser sends requests for pages that we know nothing about. Whoever may is no stranger any
/// more. Whoever knows the secret may do everything; a user whom a proxy named needs the scope.
#[expect(clippy::result_large_err, reason = "the error is the answer")]
pub(crate) fn authorize(
    gateway: &Gateway,
    headers: &HeaderMap,
    visitor: &Visitor,
    needed: Scope,
) -> Result<(), Response> {
    let caller = Caller::of(visitor.peer, headers, &gateway.settings);
    let is_welcome = caller.origin.is_none() || caller.is_welcome_page(&gateway.settings.allowed_origins);
    if !is_welcome || (gateway.guard.is_open() && !caller.is_local) {
        return Err(refuse(StatusCode::FORBIDDEN, "forbidden", "Forbidden"));
    }
    let bearer = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let bearer = bearer.and_then(|value| value.split_once(' '));
    let bearer = bearer.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map(|(_, secret)| secret.trim());
    let shown = Shown { token: bearer, password: bearer };
    match gateway.guard.check(shown, &caller, now()) {
        Ok(_) => {
            visitor.meter.known();
            let listed = gateway.settings.proxy_scopes(&caller);
            if listed.is_some_and(|listed| !listed.iter().any(|own| own.covers(needed))) {
                let message = format!("missing scope: {}", needed.as_str());
                return Err(refuse(StatusCode::FORBIDDEN, "forbidden", &message));
            }
            Ok(())
        }
        Err(Denied::RateLimited(millis)) => {
            let message = "Too many failed attempts. Try again later.";
            let mut response = refuse(StatusCode::TOO_MANY_REQUESTS, "rate_limited", message);
            response.headers_mut().insert(RETRY_AFTER, millis.div_ceil(1000).into());
            Err(response)
        }
        Err(_) => Err(refuse(StatusCode::UNAUTHORIZED, "unauthorized", "Unauthorized")),
    }
}

/// An answer in JSON.
pub(crate) fn json(status: StatusCode, body: &Value) -> Response {
    (status, [(CONTENT_TYPE, "application/json; charset=utf-8")], body.to_string()).into_response()
}

/// A refusal in JSON.
pub(crate) fn refuse(status: StatusCode, kind: &str, message: &str) -> Response {
    json(status, &json!({"error": {"message": message, "type": kind}}))
}

/// The refusal of a method, with those that are allowed.
pub(crate) fn not_allowed(allow: &'static str) -> Response {
    let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed");
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
    response
}

async fn index(State(gateway): State<Arc<Gateway>>, request: Request) -> Response {
    page::index(&gateway, request.method(), request.headers())
}

async fn live(request: Request) -> Response {
    probe(&request, Ok("live"))
}

async fn ready(State(gateway): State<Arc<Gateway>>, request: Request) -> Response {
    if gateway.runs.is_closing() { probe(&request, Err("stopping")) } else { probe(&request, Ok("ready")) }
}

fn probe(request: &Request, status: Result<&str, &str>) -> Response {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return not_allowed("GET, HEAD");
    }
    let code = if status.is_ok() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let (Ok(word) | Err(word)) = status;
    let mut response = json(code, &json!({"ok": status.is_ok(), "status": word}));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if *request.method() == Method::HEAD {
        *response.body_mut() = Body::empty();
    }
    response
}

/// There is nothing here.
fn not_found() -> Response {
    text(StatusCode::NOT_FOUND, "Not Found")
}

fn text(status: StatusCode, body: &'static str) -> Response {
    (status, [(CONTENT_TYPE, "text/plain; charset=utf-8")], body).into_response()
}

#[cfg(test)]
mod tests {
    use prowess_config::{Env, Secret};
    use prowess_host::{Flags, Ground};
    use prowess_testkit::Tree;

    use super::*;
    use crate::Options;
    use crate::door::{Door, Full};
    use crate::server::Meter;

    fn visitor(door: &Arc<Door>, ip: &str) -> Result<Visitor, Full> {
        let peer = ip.parse().expect("an address");
        Ok(Visitor { peer, meter: Arc::new(Meter::new(door.open(peer)?)) })
    }

    /// The status for somebody with these headers.
    fn status(gateway: &Gateway, ip: &str, headers: &[(&'static str, &str)]) -> u16 {
        status_of(gateway, &visitor(&Door::new(1, 1, &[]), ip).expect("a place"), headers)
    }

    fn status_of(gateway: &Gateway, visitor: &Visitor, headers: &[(&'static str, &str)]) -> u16 {
        let headers = headers
            .iter()
            .map(|(name, value)| (axum::http::HeaderName::from_static(name), value.parse().expect("a header")));
        let authorized = authorize(gateway, &headers.collect(), visitor, Scope::Write);
        authorized.map_or_else(|response| response.status().as_u16(), |()| 200)
    }

    async fn start(tree: &Tree, token: Option<&str>) -> crate::Running {
        let home = tree.root().to_string_lossy().into_owned();
        let env = Env::from_iter([("HOME", home.as_str())]);
        let ground = Ground { flags: Flags::default(), env, cwd: tree.root().to_owned() };
        let options = Options { port: Some(0), token: token.map(Secret::new), ..Options::default() };
        Gateway::start(ground, options).await.expect("a gateway")
    }

    #[tokio::test]
    async fn a_bearer_is_a_token_or_a_password_and_too_many_mistakes_lock_out() {
        for (token, secret) in [(Some("t"), "Bearer t"), (None, "bearer  p")] {
            let written = "{ gateway: { auth: { mode: 'password', password: 'p' } } }";
            let tree = Tree::new().file(".openclaw/openclaw.json", written);
            let running = start(&tree, token).await;
            let gateway = running.gateway();
            assert_eq!(status(gateway, "192.0.2.1", &[("authorization", secret)]), 200);
            assert_eq!(status(gateway, "192.0.2.1", &[]), 401);
            assert_eq!(status(gateway, "192.0.2.1", &[("authorization", "Basic t")]), 401);
            let page = [("authorization", secret), ("origin", "https://evil.example")];
            assert_eq!(status(gateway, "127.0.0.1", &page), 403);
            (0..10).for_each(|_| _ = status(gateway, "192.0.2.1", &[("authorization", "Bearer x")]));
            assert_eq!(status(gateway, "192.0.2.1", &[("authorization", secret)]), 429);
            running.end().await;
        }
    }

    #[tokio::test]
    async fn whoever_showed_the_secret_over_http_is_no_stranger_any_more() {
        let running = start(&Tree::new(), Some("t")).await;
        let door = Door::new(10, 1, &[]);
        let far = visitor(&door, "192.0.2.1").expect("a place");
        assert_eq!(status_of(running.gateway(), &far, &[("authorization", "Bearer x")]), 401);
        assert_eq!(visitor(&door, "192.0.2.1").expect_err("no second stranger"), Full::Strangers);
        assert_eq!(status_of(running.gateway(), &far, &[("authorization", "Bearer t")]), 200);
        assert!(visitor(&door, "192.0.2.1").is_ok());
        running.end().await;
    }

    #[tokio::test]
    async fn a_user_whom_a_proxy_named_may_do_what_is_set_for_them() {
        let written = "{ gateway: { trustedProxies: ['192.0.2.1'], auth: { mode: 'trusted-proxy', trustedProxy: {
            userHeader: 'x-user', scopes: { ann: ['operator.write'], bob: ['operator.read'] } } } } }";
        let running = start(&Tree::new().file(".openclaw/openclaw.json", written), None).await;
        let gateway = running.gateway();
        for (user, expected) in [("ann", 200), ("bob", 403), ("eve", 200)] {
            assert_eq!(status(gateway, "192.0.2.1", &[("x-user", user)]), expected, "{user}");
        }
        assert_eq!(status(gateway, "192.0.2.9", &[("x-user", "ann")]), 401, "anybody can write a header");
        running.end().await;
    }

    #[tokio::test]
    async fn without_secrets_only_this_machine_is_served_and_no_page_that_leads_here() {
        let tree = Tree::new().file(".openclaw/openclaw.json", "{ gateway: { auth: { mode: 'none' } } }");
        let running = start(&tree, None).await;
        let gateway = running.gateway();
        assert_eq!(status(gateway, "127.0.0.1", &[("host", "127.0.0.1:1")]), 200);
        assert_eq!(status(gateway, "127.0.0.1", &[("host", "evil.example")]), 403);
        assert_eq!(status(gateway, "192.0.2.1", &[("host", "127.0.0.1:1")]), 403);
        running.end().await;
    }
}
