//! A stage: a gateway that says what a test wants it to say, over a real socket.

use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_tungstenite::tungstenite::Message;

/// What clients have to know.
pub(crate) const TOKEN: &str = "a-token-for-tests";

/// One thing that the gateway does when it is asked.
pub(crate) enum Act {
    /// Answers the request.
    Answer(Value),
    /// Refuses it.
    Refuse(&'static str),
    /// Tells something.
    Tell(&'static str, Value),
    /// Hangs up.
    HangUp,
}

/// What was asked for, in its order.
type Asked = Arc<Mutex<Vec<(String, Value)>>>;

type Script = Arc<Mutex<dyn FnMut(&str, &Value) -> Vec<Act> + Send>>;

/// A gateway that plays a script until it is dropped.
pub(crate) struct Stage {
    pub(crate) url: String,
    asked: Asked,
    over: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Stage {
    /// Plays `script`, which says what to do about a method and its parameters.
    pub(crate) fn play(script: impl FnMut(&str, &Value) -> Vec<Act> + Send + 'static) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("a socket");
        let url = format!("ws://{}", listener.local_addr().expect("an address"));
        let (over, ends) = watch::channel(false);
        let asked = Asked::default();
        let (heard, script): (Asked, Script) = (Arc::clone(&asked), Arc::new(Mutex::new(script)));
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let listener = TcpListener::from_std(listener).expect("a socket");
                let mut ends = ends;
                loop {
                    tokio::select! {
                        _ = ends.changed() => return,
                        Ok((socket, _)) = listener.accept() => {
                            tokio::spawn(hold(socket, Arc::clone(&heard), Arc::clone(&script)));
                        }
                    }
                }
            });
        });
        Self { url, asked, over, thread: Some(thread) }
    }

    /// What was asked of that method.
    pub(crate) fn asked(&self, method: &str) -> Vec<Value> {
        let asked = self.asked.lock().expect("no panic");
        asked.iter().filter(|(name, _)| name == method).map(|(_, params)| params.clone()).collect()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // A thread that has ended by itself needs not be told.
        let _ = self.over.send(true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn hold(socket: TcpStream, asked: Asked, script: Script) {
    let Ok(mut socket) = tokio_tungstenite::accept_async(socket).await else { return };
    let challenge = json!({"type": "event", "event": "connect.challenge", "payload": {"nonce": "n", "ts": 1}});
    let mut send = vec![challenge];
    loop {
        for frame in send.drain(..) {
            if socket.send(Message::text(frame.to_string())).await.is_err() {
                return;
            }
        }
        let Some(Ok(message)) = socket.next().await else { return };
        let Message::Text(text) = message else { continue };
        let request: Value = serde_json::from_str(&text).expect("a frame");
        let method = request["method"].as_str().expect("a method");
        if method == "connect" {
            send.push(greet(&request));
            continue;
        }
        asked.lock().expect("no panic").push((method.to_owned(), request["params"].clone()));
        let acts = (script.lock().expect("no panic"))(method, &request["params"]);
        for act in acts {
            let frame = match act {
                Act::Answer(payload) => json!({"type": "res", "id": request["id"], "ok": true, "payload": payload}),
                Act::Refuse(why) => {
                    let error = json!({"code": "INVALID_REQUEST", "message": why});
                    json!({"type": "res", "id": request["id"], "ok": false, "error": error})
                }
                Act::Tell(name, payload) => json!({"type": "event", "event": name, "payload": payload}),
                Act::HangUp => return,
            };
            if socket.send(Message::text(frame.to_string())).await.is_err() {
                return;
            }
        }
    }
}

fn greet(request: &Value) -> Value {
    if request["params"]["auth"]["token"] != TOKEN {
        let error = json!({"code": "INVALID_REQUEST", "message": "unauthorized: gateway token mismatch"});
        return json!({"type": "res", "id": request["id"], "ok": false, "error": error});
    }
    let hello = json!({
        "type": "hello-ok", "protocol": 3, "server": {"version": "2026.3.2", "connId": "c"},
        "features": {"methods": [], "events": []},
        "snapshot": {"uptimeMs": 1, "sessionDefaults": {"defaultAgentId": "main"}},
        "policy": {"maxPayload": 26_214_400, "maxBufferedBytes": 52_428_800, "tickIntervalMs": 30_000},
    });
    json!({"type": "res", "id": request["id"], "ok": true, "payload": hello})
}
