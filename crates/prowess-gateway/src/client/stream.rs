//! The stream to a gateway: plain within this machine, encrypted elsewhere.

use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::http::StatusCode;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

use super::CallError;
use super::address::Address;
use crate::tls::{Fingerprint, Recognised, verifier};
use crate::wire::MAX_FRAME;

/// How long a connection may take to be made.
const PATIENCE: Duration = Duration::from_secs(30);

/// Bytes to and from a gateway.
pub(super) trait Bytes: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Bytes for S {}

/// A WebSocket to a gateway.
pub(super) type Socket = WebSocketStream<Box<dyn Bytes>>;

pub(super) async fn open(address: &Address, pin: Option<Fingerprint>) -> Result<Socket, CallError> {
    if pin.is_some() && !address.is_secure {
        return Err(CallError::Gone("a fingerprint is given, but ws:// has no certificate; use wss://".to_owned()));
    }
    let opened = timeout(PATIENCE, async {
        let stream = TcpStream::connect((address.host.as_str(), address.port)).await.map_err(gone)?;
        stream.set_nodelay(true).map_err(gone)?;
        let stream: Box<dyn Bytes> =
            if address.is_secure { Box::new(encrypted(stream, &address.host, pin).await?) } else { Box::new(stream) };
        let config = WebSocketConfig::default()
            .max_message_size(Some(MAX_FRAME))
            .max_frame_size(Some(MAX_FRAME))
            .read_buffer_size(16 * 1024)
            .write_buffer_size(0);
        let opened = tokio_tungstenite::client_async_with_config(&address.uri, stream, Some(config)).await;
        opened.map(|(socket, _)| socket).map_err(|error| match error {
            Error::Http(response) if response.status() == StatusCode::TEMPORARY_REDIRECT && !address.is_secure => {
                CallError::Encrypted(address.host.clone())
            }
            error => gone(error),
        })
    });
    opened.await.map_err(|_| CallError::Gone(format!("no connection within {} s", PATIENCE.as_secs())))?
}

async fn encrypted(stream: TcpStream, host: &str, pin: Option<Fingerprint>) -> Result<impl Bytes + use<>, CallError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let seen = Recognised::default();
    let verifier = verifier(Arc::clone(&provider), pin, seen.clone()).map_err(gone)?;
    let config = rustls::ClientConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions().map_err(gone)?;
    let config = config.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
    let name = ServerName::try_from(host.to_owned()).map_err(gone)?;
    let connected = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
    connected.map_err(|error| {
        let about = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
        match (about, seen.fingerprint()) {
            (Some(rustls::Error::InvalidCertificate(why)), Some(seen)) => {
                let why = if pin.is_some() { "it has another fingerprint".to_owned() } else { why.to_string() };
                CallError::Certificate { host: host.to_owned(), why, seen }
            }
            _ => gone(error),
        }
    })
}

pub(super) fn gone(error: impl std::fmt::Display) -> CallError {
    CallError::Gone(error.to_string())
}
