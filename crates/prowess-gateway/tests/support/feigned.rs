//! A gateway that says what a test wants, for node hosts that dial in.

use std::collections::VecDeque;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;

use crate::machine::soon;

/// Where nodes dial in.
pub(crate) struct Feigned(TcpListener);

impl Feigned {
    pub(crate) async fn open() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").await.expect("a port"))
    }

    pub(crate) fn url(&self) -> String {
        format!("ws://{}", self.0.local_addr().expect("an address"))
    }

    /// Lets the next one in.
    pub(crate) async fn accept(&self) -> Line {
        let (mut line, id) = self.introduced().await;
        line.send(&json!({"type": "res", "id": id, "ok": true, "payload": {"type": "hello-ok"}})).await;
        line
    }

    /// Refuses the next one.
    pub(crate) async fn refuse(&self, error: Value) {
        let (mut line, id) = self.introduced().await;
        line.send(&json!({"type": "res", "id": id, "ok": false, "error": error})).await;
    }

    /// The next one, and its request to be let in.
    async fn introduced(&self) -> (Line, Value) {
        let (stream, _) = soon("a node dials in", self.0.accept()).await.expect("a connection");
        let socket = tokio_tungstenite::accept_async(stream).await.expect("a socket");
        let mut line = Line { socket, silent_on: "", unanswered: VecDeque::new(), heard: Vec::new() };
        line.send(&json!({"type": "event", "event": "connect.challenge", "payload": {"nonce": "n", "ts": 1}})).await;
        let connect = line.hear().await;
        assert_eq!(connect["method"], "connect");
        (line, connect["id"].clone())
    }
}

/// A connection with a node.
pub(crate) struct Line {
    socket: WebSocketStream<TcpStream>,
    /// The method whose requests are not answered until the test does so.
    pub(crate) silent_on: &'static str,
    unanswered: VecDeque<Value>,
    /// All requests that came.
    pub(crate) heard: Vec<Value>,
}

impl Line {
    /// Asks the node to do something. `id` names the request, `key` what is done once.
    pub(crate) async fn ask(&mut self, id: &str, key: &str, command: &str, params: &Value) {
        let payload = json!({
            "id": id, "nodeId": "n", "command": command, "paramsJSON": params.to_string(), "timeoutMs": 50_000,
            "idempotencyKey": key,
        });
        self.send(&json!({"type": "event", "event": "node.invoke.request", "payload": payload})).await;
    }

    /// The same for a text in a shell.
    pub(crate) async fn run(&mut self, id: &str, text: &str) {
        self.ask(id, id, "system.run", &json!({"command": ["/bin/sh", "-c", text]})).await;
    }

    /// Nobody waits for that request any more.
    pub(crate) async fn cancel(&mut self, id: &str) {
        let payload = json!({"id": id, "nodeId": "n"});
        self.send(&json!({"type": "event", "event": "node.invoke.cancel", "payload": payload})).await;
    }

    /// Waits for a request for which `is` says yes. Those that come before are answered.
    pub(crate) async fn until(&mut self, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        soon(what, async {
            loop {
                let request = self.hear().await;
                if request["method"] == self.silent_on {
                    self.unanswered.push_back(request["id"].clone());
                } else {
                    self.send(&json!({"type": "res", "id": request["id"], "ok": true, "payload": {}})).await;
                }
                if is(&request) {
                    return request;
                }
            }
        })
        .await
    }

    /// Waits for the node's answer to a request of ours.
    pub(crate) async fn result(&mut self, id: &str) -> Result<Value, String> {
        let is = |request: &Value| request["method"] == "node.invoke.result" && request["params"]["id"] == id;
        let params = self.until("the node answers", is).await["params"].take();
        if params["ok"] == true {
            return Ok(serde_json::from_str(params["payloadJSON"].as_str().expect("a text")).expect("JSON"));
        }
        Err(params["error"]["message"].as_str().unwrap_or_default().to_owned())
    }

    /// Refuses the oldest request that was not answered.
    pub(crate) async fn refuse(&mut self, message: &str) {
        let id = self.unanswered.pop_front().expect("somebody waits");
        let error = json!({"code": "UNAVAILABLE", "message": message});
        self.send(&json!({"type": "res", "id": id, "ok": false, "error": error})).await;
    }

    /// Answers the oldest request that was not answered.
    pub(crate) async fn answer(&mut self, payload: &Value) {
        let id = self.unanswered.pop_front().expect("somebody waits");
        self.send(&json!({"type": "res", "id": id, "ok": true, "payload": payload})).await;
    }

    /// How often that was asked for.
    pub(crate) fn count(&self, method: &str) -> usize {
        self.heard.iter().filter(|request| request["method"] == method).count()
    }

    /// What the node told of the output of its commands.
    pub(crate) fn outputs(&self) -> Vec<String> {
        let events = self.heard.iter().filter(|request| request["params"]["event"] == "exec.output");
        events.map(|request| output(request).expect("a text")).collect()
    }

    /// Closes the connection, and says why.
    pub(crate) async fn close(mut self, code: u16, reason: &'static str) {
        let frame = CloseFrame { code: code.into(), reason: reason.into() };
        // Who is gone already does not hear it.
        let _ = self.socket.close(Some(frame)).await;
    }

    async fn send(&mut self, frame: &Value) {
        self.socket.send(Message::text(frame.to_string())).await.expect("sent");
    }

    async fn hear(&mut self) -> Value {
        loop {
            match soon("the node says something", self.socket.next()).await {
                Some(Ok(Message::Text(text))) => {
                    let frame: Value = serde_json::from_str(&text).expect("JSON");
                    self.heard.push(frame.clone());
                    return frame;
                }
                Some(Ok(_)) => {}
                other => panic!("the node is gone: {other:?}"),
            }
        }
    }
}

/// The output that an event tells of.
pub(crate) fn output(request: &Value) -> Option<String> {
    let payload: Value = serde_json::from_str(request["params"]["payloadJSON"].as_str()?).ok()?;
    payload["output"].as_str().map(str::to_owned)
}
