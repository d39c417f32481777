//! The server: who is listened to on the port?
//!
//! Our own loop instead of a ready-made one, because it has to know who connects: how many there are, how many of them
//! have not said who they are, and how much those may send.

mod metered;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::header::{CONNECTION, HOST, LOCATION};
use axum::http::{HeaderValue, StatusCode};
use axum::response::IntoResponse as _;
use hyper::server::conn::http1::Builder;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_rustls::server::TlsStream;

use crate::door::Full;
use crate::gateway::Gateway;
use crate::http;
pub(crate) use metered::Meter;
use metered::Metered;

use crate::tls::Tls;

/// How long to wait when the system has no more descriptors for us.
const PAUSE: Duration = Duration::from_millis(100);

/// What the head of a request may have.
const MAX_HEAD: usize = 64 * 1024;

/// From where a request came.
#[derive(Debug, Clone)]
pub(crate) struct Visitor {
    /// The address at the other end of the wire.
    pub(crate) peer: IpAddr,
    /// What is counted of the connection.
    pub(crate) meter: Arc<Meter>,
}

/// Answers until the gateway is told to stop.
pub(crate) async fn serve(gateway: Arc<Gateway>, socket: TcpListener) {
    let router = http::router(Arc::clone(&gateway));
    let mut full = None;
    loop {
        let accepted = tokio::select! {
            biased;
            () = gateway.stop.cancelled() => return,
            accepted = socket.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!("cannot accept a connection: {error}");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        match gateway.door.open(peer.ip()) {
            Ok(ticket) => {
                full = None;
                let meter = Arc::new(Meter::new(ticket));
                gateway.connections.spawn(answer(Arc::clone(&gateway), router.clone(), stream, peer, meter));
            }
            Err(why) => {
                gateway.metrics.turned_away();
                note_full(&mut full, why, peer);
            }
        }
    }
}

/// Logs that there is no room, once until there is.
fn note_full(full: &mut Option<Full>, why: Full, peer: SocketAddr) {
    if full.replace(why) != Some(why) {
        let why = match why {
            Full::Connections => "the connection limit is reached",
            Full::Strangers => "too many unauthenticated connections from this address",
        };
        tracing::warn!(from = %peer.ip(), "hung up: {why}");
    }
}

async fn answer(gateway: Arc<Gateway>, router: Router, stream: TcpStream, peer: SocketAddr, meter: Arc<Meter>) {
    // Small frames are to arrive now, not together with the next one.
    let _ = stream.set_nodelay(true);
    let Some(tls) = gateway.tls.clone() else { return converse(gateway, router, stream, peer, meter).await };
    let greeted = tokio::select! {
        greeted = timeout(gateway.limits.handshake, encrypt(&tls, stream)) => greeted,
        () = gateway.stop.cancelled() => return,
    };
    match greeted {
        Ok(Ok(Greeted::Encrypted(stream))) => converse(Arc::clone(&gateway), router, *stream, peer, meter).await,
        Ok(Ok(Greeted::Plain(stream))) => redirect(&gateway, stream).await,
        Ok(Err(error)) => tracing::debug!(from = %peer.ip(), "a TLS handshake failed: {error}"),
        Err(_) => tracing::debug!(from = %peer.ip(), "a TLS handshake took too long"),
    }
}

/// What a client that connects to the encrypted port speaks.
enum Greeted {
    Encrypted(Box<TlsStream<TcpStream>>),
    Plain(TcpStream),
}

/// The first byte of a TLS handshake.
const TLS_HANDSHAKE: u8 = 0x16;

async fn encrypt(tls: &Tls, stream: TcpStream) -> std::io::Result<Greeted> {
    let mut first = [0];
    if stream.peek(&mut first).await? == 1 && first[0] != TLS_HANDSHAKE {
        return Ok(Greeted::Plain(stream));
    }
    tls.acceptor.accept(stream).await.map(|stream| Greeted::Encrypted(Box::new(stream)))
}

/// Sends whoever speaks plain HTTP to the same address with HTTPS. Nothing else is answered without encryption. Browsers do
/// not remember it, so that the operator can switch TLS off again.
async fn redirect(gateway: &Gateway, stream: TcpStream) {
    let service = tower::service_fn(async |request: axum::http::Request<hyper::body::Incoming>| {
        let host = request.headers().get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        let text = "This gateway requires HTTPS. Use https:// in a browser and wss:// in programs.\n";
        let mut response = (StatusCode::TEMPORARY_REDIRECT, [(CONNECTION, "close")], text).into_response();
        if let Ok(location) = HeaderValue::from_str(&format!("https://{host}{path}")) {
            response.headers_mut().insert(LOCATION, location);
        }
        Ok::<_, std::convert::Infallible>(response)
    });
    let mut builder = Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(gateway.limits.handshake).max_buf_size(MAX_HEAD);
    let serving = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
    // Whoever hangs up first has seen enough.
    let _ = timeout(gateway.limits.handshake, serving).await;
}

async fn converse<S>(gateway: Arc<Gateway>, router: Router, stream: S, peer: SocketAddr, meter: Arc<Meter>)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    // Only HTTP/1: the limit on a head then counts from the first moment, not from when it is clear which HTTP it is.
    let mut builder = Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(gateway.limits.handshake).max_buf_size(MAX_HEAD);
    let stream = TokioIo::new(Metered::new(stream, Arc::clone(&meter)));
    let service = tower::service_fn({
        let gateway = Arc::clone(&gateway);
        move |request: axum::http::Request<_>| {
            let mut request: Request = request.map(axum::body::Body::new);
            let visitor = Visitor { peer: peer.ip(), meter: Arc::clone(&meter) };
            request.extensions_mut().insert(visitor.clone());
            http::answer(Arc::clone(&gateway), router.clone(), request, visitor)
        }
    });
    let connection = builder.serve_connection(stream, TowerToHyperService::new(service)).with_upgrades();
    let mut connection = std::pin::pin!(connection);
    let served = tokio::select! {
        served = connection.as_mut() => served,
        () = gateway.stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                served = connection => served,
                () = gateway.end.cancelled() => return,
            }
        }
    };
    if let Err(error) = served {
        tracing::debug!(from = %peer.ip(), "a connection ended: {error}");
    }
}
