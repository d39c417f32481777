//! How does an answer get onto the wire in the pieces a test asks for?

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{ConnectInfo, Request, State};
use axum::response::Response;
use axum::serve::ListenerExt as _;
use futures_util::{Stream, StreamExt as _, stream};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::render::{Api, render, tokens};
use super::{Chunking, RecordedRequest, Shared, Turn};

/// The longest request that is read.
const MAX_REQUEST: usize = 64 * 1024 * 1024;

/// Serves until `stopped` says so or its sender is gone; open connections end with it.
pub(super) fn run(listener: TcpListener, shared: Arc<Shared>, stopped: oneshot::Receiver<()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async move {
        let listener = tokio::net::TcpListener::from_std(listener).expect("a listener").tap_io(|connection| {
            // As real servers do: a small piece does not wait until the one before it is acknowledged.
            connection.set_nodelay(true).expect("a connection");
        });
        let router = Router::new().fallback(answer).with_state(shared);
        let service = router.into_make_service_with_connect_info::<SocketAddr>();
        tokio::select! {
            _ = stopped => {}
            served = axum::serve(listener, service) => served.expect("a server that serves"),
        }
    });
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
) -> Result<Response, Infallible> {
    let request = record(request, peer).await;
    shared.requests.lock().unwrap_or_else(PoisonError::into_inner).push(request.clone());
    if request.path.ends_with("/models") {
        return Ok(plain(200, &[], models().to_string()));
    }
    let Some(api) = Api::of_path(&request.path) else {
        return Ok(plain(404, &[], json!({"error": {"message": "there is nothing here"}}).to_string()));
    };
    let turn = (shared.responder)(&request);
    shared.tokens.fetch_add(u64::try_from(tokens(&turn, &request)).unwrap_or(u64::MAX), Ordering::Relaxed);
    Ok(perform(turn, api, &request, &shared))
}

async fn record(request: Request, peer: SocketAddr) -> RecordedRequest {
    let (parts, body) = request.into_parts();
    let header = |(name, value): (&axum::http::HeaderName, &axum::http::HeaderValue)| {
        (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    let body = to_bytes(body, MAX_REQUEST).await.unwrap_or_default();
    RecordedRequest {
        method: parts.method.to_string(),
        path: parts.uri.path().to_owned(),
        peer: peer.port(),
        headers: parts.headers.iter().map(header).collect(),
        body: serde_json::from_slice(&body).unwrap_or(Value::Null),
    }
}

fn perform(turn: Turn, api: Api, request: &RecordedRequest, shared: &Arc<Shared>) -> Response {
    match turn {
        Turn::Status { code, headers, body } => plain(code, &headers, body),
        Turn::Endless { first, then } => {
            let pieces = stream::iter([first]).chain(stream::repeat(then)).map(Ok);
            streamed("text/event-stream", pieces, shared)
        }
        Turn::Stall { turn, after } => {
            let (kind, mut bytes) = bytes_of(&turn, api, request);
            bytes.truncate(after);
            let pieces = stream::iter(cut(bytes, shared.chunking).into_iter().map(Ok));
            streamed(kind, pieces.chain(stream::pending()), shared)
        }
        Turn::Cut { turn, after } => {
            let (kind, mut bytes) = bytes_of(&turn, api, request);
            bytes.truncate(after);
            let broken = stream::once(async {
                // What came before must be on its way when the connection breaks.
                tokio::task::yield_now().await;
                Err(io::Error::from(io::ErrorKind::ConnectionReset))
            });
            streamed(kind, stream::iter(cut(bytes, shared.chunking).into_iter().map(Ok)).chain(broken), shared)
        }
        turn => {
            let (kind, bytes) = bytes_of(&turn, api, request);
            streamed(kind, stream::iter(cut(bytes, shared.chunking).into_iter().map(Ok)), shared)
        }
    }
}

fn bytes_of(turn: &Turn, api: Api, request: &RecordedRequest) -> (&'static str, Vec<u8>) {
    match turn {
        Turn::Whole(_) => ("application/json", render(turn, api, request)),
        _ => ("text/event-stream", render(turn, api, request)),
    }
}

fn plain(code: u16, headers: &[(String, String)], body: String) -> Response {
    let mut response = Response::builder().status(code);
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
        response = response.header("content-type", "application/json");
    }
    for (name, value) in headers {
        response = response.header(name, value);
    }
    response.body(Body::from(body)).expect("a response")
}

fn streamed(
    kind: &str,
    pieces: impl Stream<Item = Result<Vec<u8>, io::Error>> + Send + 'static,
    shared: &Arc<Shared>,
) -> Response {
    let shared = Arc::clone(shared);
    let counted = pieces.then(move |piece| {
        let shared = Arc::clone(&shared);
        async move {
            if let Ok(piece) = &piece {
                shared.sent.fetch_add(u64::try_from(piece.len()).unwrap_or(u64::MAX), Ordering::Relaxed);
            }
            // Each piece gets its chance to leave before the next one is made.
            tokio::task::yield_now().await;
            piece
        }
    });
    Response::builder().header("content-type", kind).body(Body::from_stream(counted)).expect("a response")
}

/// The pieces of `bytes`.
fn cut(bytes: Vec<u8>, chunking: Chunking) -> Vec<Vec<u8>> {
    match chunking {
        Chunking::Whole => vec![bytes],
        Chunking::Events => {
            let is_end = |at: &usize| bytes[..*at].ends_with(b"\n\n");
            let ends: Vec<usize> = (1..bytes.len()).filter(is_end).chain([bytes.len()]).collect();
            let starts = std::iter::once(0).chain(ends.iter().copied());
            starts.zip(&ends).map(|(start, end)| bytes[start..*end].to_vec()).collect()
        }
        Chunking::Bytes(size) => bytes.chunks(size.max(1)).map(<[u8]>::to_vec).collect(),
        Chunking::Random(seed) => {
            // Small steps of a linear congruence are enough to fall between any two bytes.
            let mut state = seed;
            let mut rest = bytes.as_slice();
            let mut pieces = Vec::new();
            while !rest.is_empty() {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let size = usize::try_from(state >> 33).unwrap_or(0) % 40 + 1;
                let (piece, after) = rest.split_at(size.min(rest.len()));
                pieces.push(piece.to_vec());
                rest = after;
            }
            pieces
        }
    }
}

/// The list of models, with what both companies write.
fn models() -> Value {
    json!({
        "object": "list", "has_more": false, "first_id": "test-model", "last_id": "test-model",
        "data": [{
            "id": "test-model", "object": "model", "type": "model", "display_name": "Test Model",
            "created": 1_700_000_000, "created_at": "2026-01-01T00:00:00Z", "owned_by": "test"
        }]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_add_up() {
        let bytes: Vec<u8> = (0..=255).collect();
        for chunking in [
            Chunking::Whole,
            Chunking::Bytes(1),
            Chunking::Bytes(7),
            Chunking::Random(1),
            Chunking::Random(2),
            Chunking::Events,
        ] {
            assert_eq!(cut(bytes.clone(), chunking).concat(), bytes);
        }
        assert_eq!(cut(bytes.clone(), Chunking::Bytes(1)).len(), 256);
        assert_ne!(cut(bytes.clone(), Chunking::Random(1)), cut(bytes, Chunking::Random(2)));
    }
}
