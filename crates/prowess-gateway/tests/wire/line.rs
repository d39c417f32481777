//! A bare line to a gateway, over which anything can be said.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use crate::room::Room;

/// Far longer than anything takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A WebSocket that was opened, and nothing else.
pub(crate) struct Line(pub(crate) WebSocketStream<MaybeTlsStream<TcpStream>>);

/// What was heard.
#[derive(Debug, PartialEq)]
pub(crate) enum Heard {
    Frame(Value),
    Closed(u16, String),
    Gone,
}

impl Line {
    pub(crate) async fn open(room: &Room) -> Self {
        Self::open_from(room, &[]).await
    }

    /// With more headers, as a browser or a proxy sends them.
    pub(crate) async fn open_from(room: &Room, headers: &[(&'static str, &str)]) -> Self {
        let mut request = room.url().into_client_request().expect("a request");
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().expect("a header"));
        }
        Self(tokio_tungstenite::connect_async(request).await.expect("a socket").0)
    }

    pub(crate) async fn say(&mut self, text: impl Into<String>) {
        // Who is sent away in the middle of a sentence hears why when it listens.
        let _ = self.0.send(Message::text(text.into())).await;
    }

    pub(crate) async fn hear(&mut self) -> Heard {
        loop {
            match timeout(PATIENCE, self.0.next()).await.expect("something is heard in time") {
                Some(Ok(Message::Text(text))) => return Heard::Frame(serde_json::from_str(&text).expect("JSON")),
                Some(Ok(Message::Close(Some(frame)))) => {
                    return Heard::Closed(frame.code.into(), frame.reason.to_string());
                }
                Some(Ok(Message::Close(None)) | Err(_)) | None => return Heard::Gone,
                Some(Ok(_)) => {}
            }
        }
    }

    /// The challenge.
    pub(crate) async fn nonce(&mut self) -> String {
        let Heard::Frame(frame) = self.hear().await else { panic!("no challenge") };
        assert_eq!((&frame["type"], &frame["event"]), (&json!("event"), &json!("connect.challenge")));
        assert!(frame["payload"]["ts"].is_u64());
        frame["payload"]["nonce"].as_str().expect("a nonce").to_owned()
    }

    /// The next answer; events are passed over.
    pub(crate) async fn answer(&mut self) -> Value {
        loop {
            match self.hear().await {
                Heard::Frame(frame) if frame["type"] == "res" => return frame,
                Heard::Frame(_) => {}
                other => panic!("no answer but {other:?}"),
            }
        }
    }

    /// The last word; everything before it is passed over.
    pub(crate) async fn last_word(&mut self) -> Heard {
        loop {
            match self.hear().await {
                Heard::Frame(_) => {}
                other => return other,
            }
        }
    }

    /// Asks, and waits for the answer.
    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.say(json!({"type": "req", "id": method, "method": method, "params": params}).to_string()).await;
        self.answer().await
    }
}

/// The parameters of `connect` for an operator with a token.
pub(crate) fn connect(token: &str) -> Value {
    json!({
        "minProtocol": 3,
        "maxProtocol": 3,
        "client": {"id": "test", "version": "1", "platform": "linux", "mode": "test"},
        "scopes": ["operator.admin"],
        "auth": {"token": token},
    })
}
