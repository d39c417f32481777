//! A stage: the real page on a gateway that says what a test wants it to say.
//!
//! Files come from a real gateway, and so do the answers that a test does not write itself.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::{SinkExt, StreamExt};
use prowess_gateway::client::{CallError, Client};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::broadcast;
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::Message;

use crate::room::Room;

/// What a test answers to a method; nothing for what the real gateway is asked.
pub(crate) type Script = fn(&str, &Value) -> Option<Value>;

/// The page, and what it hears.
pub(crate) struct Stage {
    // It ends when it is dropped.
    _room: Room,
    pub(crate) address: SocketAddr,
    /// What the page asked, in its order.
    asked: Arc<Mutex<Vec<(String, Value)>>>,
    events: broadcast::Sender<String>,
    /// How many more introductions are hung up on.
    hang_ups: Arc<AtomicUsize>,
    serving: JoinHandle<()>,
}

/// No frame, but the end of the connection.
const HANG_UP: &str = "";

/// All methods that the page may use.
const METHODS: &[&str] = &[
    "agents.list",
    "chat.abort",
    "chat.history",
    "chat.send",
    "config.get",
    "config.patch",
    "config.schema",
    "connect",
    "device.pair.approve",
    "device.pair.list",
    "device.pair.reject",
    "device.pair.remove",
    "device.token.revoke",
    "egress.log",
    "exec.approval.list",
    "exec.approval.log",
    "exec.approval.resolve",
    "exec.approvals.get",
    "exec.approvals.set",
    "logs.tail",
    "models.list",
    "node.list",
    "prompt.preview",
    "sessions.list",
    "sessions.reset",
    "skills.commands",
    "skills.status",
    "skills.update",
    "status",
    "usage.skills",
];

impl Stage {
    /// In front of `room`, with `script`.
    pub(crate) async fn open(room: Room, script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (events, asked) = (broadcast::Sender::new(1024), Arc::<Mutex<Vec<_>>>::default());
        let hang_ups = Arc::<AtomicUsize>::default();
        let play = Play {
            real: room.operator().await,
            script,
            events: events.clone(),
            asked: Arc::clone(&asked),
            hang_ups: Arc::clone(&hang_ups),
        };
        let behind = room.running.address;
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(play.clone().serve(stream, behind));
            }
        });
        Self { _room: room, address, asked, events, hang_ups, serving }
    }

    /// Where a browser goes, with the token.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/#token={}&at=/skills", self.address, crate::room::TOKEN)
    }

    /// Hangs up on the next `times` that the page says who it is.
    pub(crate) fn hang_up(&self, times: usize) {
        self.hang_ups.store(times, Ordering::SeqCst);
    }

    /// Goes away: hangs up now, and on whoever comes until [`Self::come_back`].
    pub(crate) fn go_away(&self) {
        self.hang_up(usize::MAX);
        self.events.send(HANG_UP.to_owned()).expect("somebody listens");
    }

    /// Is there again.
    pub(crate) fn come_back(&self) {
        self.hang_up(0);
    }

    /// Tells the page something.
    pub(crate) fn tell(&self, event: &str, payload: &Value) {
        let frame = json!({"type": "event", "event": event, "payload": payload});
        self.events.send(frame.to_string()).expect("somebody listens");
    }

    /// What the page asked of `method`.
    pub(crate) fn asked(&self, method: &str) -> Vec<Value> {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.iter().filter(|(name, _)| name == method).map(|(_, params)| params.clone()).collect()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

#[derive(Clone)]
struct Play {
    real: Client,
    script: Script,
    events: broadcast::Sender<String>,
    asked: Arc<Mutex<Vec<(String, Value)>>>,
    hang_ups: Arc<AtomicUsize>,
}

impl Play {
    async fn serve(self, mut stream: TcpStream, behind: SocketAddr) {
        let mut start = [0; 4096];
        loop {
            let length = stream.peek(&mut start).await.unwrap_or(0);
            if length == 0 || length == start.len() || start[..length].windows(4).any(|four| four == b"\r\n\r\n") {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
        if !String::from_utf8_lossy(&start).to_lowercase().contains("upgrade: websocket") {
            let Ok(mut real) = TcpStream::connect(behind).await else { return };
            // A browser that hangs up is no failure.
            drop(tokio::io::copy_bidirectional(&mut stream, &mut real).await);
            return;
        }
        let Ok(socket) = tokio_tungstenite::accept_async(stream).await else { return };
        let (mut writer, mut reader) = socket.split();
        let mut events = self.events.subscribe();
        let challenge = json!({"type": "event", "event": "connect.challenge", "payload": {"nonce": "n", "ts": 0}});
        let mut next = Some(challenge.to_string());
        loop {
            if let Some(text) = next.take()
                && writer.send(Message::text(text)).await.is_err()
            {
                return;
            }
            tokio::select! {
                heard = reader.next() => match heard {
                    Some(Ok(Message::Text(text))) if self.hangs_up(&text) => return,
                    Some(Ok(Message::Text(text))) => next = self.answer(&text).await,
                    Some(Ok(_)) => {}
                    Some(Err(_)) | None => return,
                },
                told = events.recv() => match told {
                    Ok(text) if text == HANG_UP => return,
                    told => next = told.ok(),
                },
            }
        }
    }

    fn hangs_up(&self, text: &str) -> bool {
        let less = |left: usize| left.checked_sub(1);
        text.contains("\"method\":\"connect\"")
            && self.hang_ups.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok()
    }

    async fn answer(&self, text: &str) -> Option<String> {
        let request: Value = serde_json::from_str(text).ok()?;
        let (method, params) = (request["method"].as_str()?, &request["params"]);
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push((method.to_owned(), params.clone()));
        let result = match (self.script)(method, params) {
            Some(payload) => Ok(payload),
            None if method == "connect" => Ok(json!({
                "type": "hello-ok", "protocol": 3, "auth": {"role": "operator", "scopes": ["operator.admin"]}, "features": {"methods": METHODS, "events": []},
                "snapshot": {"sessionDefaults": {"defaultAgentId": "main", "mainSessionKey": "agent:main:main"}},
            })),
            None => self.real.call(method, params.clone()).await,
        };
        let id = &request["id"];
        let frame = match result {
            Ok(payload) => json!({"type": "res", "id": id, "ok": true, "payload": payload}),
            Err(CallError::Refused { error, .. }) => json!({"type": "res", "id": id, "ok": false, "error": error}),
            Err(error) => json!({"type": "res", "id": id, "ok": false, "error": {"message": error.to_string()}}),
        };
        Some(frame.to_string())
    }
}
