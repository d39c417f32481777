//! The floor: a server that speaks the frames and does nothing else, and the model without a gateway.

use std::net::SocketAddr;
use std::time::Instant;

use axum::Router;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::routing::any;
use futures_util::future::join_all;
use prowess_testkit::ModelServer;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::crowd::Measured;
use crate::stand::{HELLO, model};

pub(crate) struct Floor {
    address: SocketAddr,
    serving: JoinHandle<()>,
    model: ModelServer,
}

impl Floor {
    pub(crate) async fn start() -> Self {
        let socket = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let address = socket.local_addr().expect("an address");
        let upgrade = |upgrade: WebSocketUpgrade| async { upgrade.on_upgrade(answer) };
        let router = Router::new().route("/", any(upgrade));
        let serving = tokio::spawn(async move { axum::serve(socket, router).await.expect("served") });
        Self { address, serving, model: model(HELLO.to_owned()) }
    }

    pub(crate) fn url(&self) -> String {
        format!("ws://{}", self.address)
    }

    /// Asks the model itself, as often as turns would.
    pub(crate) async fn turns(&self, speakers: usize, times: usize) -> Measured {
        let client = reqwest::Client::builder().no_proxy().build().expect("a client");
        let url = format!("{}/chat/completions", self.model.base_url());
        let body =
            json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": "hello"}]}).to_string();
        let start = Instant::now();
        let all = join_all((0..speakers).map(|_| async {
            let mut took = Vec::new();
            for _ in 0..times {
                let start = Instant::now();
                let sent = client.post(&url).header("content-type", "application/json").body(body.clone()).send().await;
                if let Ok(reply) = sent
                    && reply.bytes().await.is_ok()
                {
                    took.push(start.elapsed());
                }
            }
            took
        }))
        .await;
        let took = start.elapsed();
        let mut times_taken: Vec<_> = all.into_iter().flatten().collect();
        times_taken.sort();
        Measured { errors: speakers * times - times_taken.len(), times: times_taken, took }
    }
}

impl Drop for Floor {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn answer(mut socket: WebSocket) {
    let challenge = json!({"type": "event", "event": "connect.challenge", "payload": {"nonce": "n", "ts": 0}});
    if socket.send(Message::Text(challenge.to_string().into())).await.is_err() {
        return;
    }
    while let Some(Ok(message)) = socket.recv().await {
        let Message::Text(text) = message else { continue };
        let request: Value = serde_json::from_str(&text).unwrap_or_default();
        let answer = json!({"type": "res", "id": request["id"], "ok": true, "payload": {"ok": true}});
        if socket.send(Message::Text(answer.to_string().into())).await.is_err() {
            return;
        }
    }
}
