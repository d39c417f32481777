//! The client: how is a gateway asked from another program?

mod address;
mod backoff;
mod introduction;
mod memory;
mod stream;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use thiserror::Error;
use tokio::sync::{broadcast, mpsc, watch};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;

pub use address::Trust;
pub use backoff::Backoff;
pub(crate) use backoff::FIRST;
pub use introduction::{Introduction, Node};

use crate::tls::Fingerprint;
use address::Address;
use stream::{Socket, gone};

/// How many events wait for a slow listener before the oldest are lost.
const EVENTS: usize = 4096;

/// How many answers to one request wait to be looked at.
const ANSWERS: usize = 64;

/// How long an answer may take, unless something else is said.
const PATIENCE: Duration = Duration::from_secs(600);

/// How long the handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(30);

/// How often a gateway gives a sign of life, unless it says otherwise.
const TICK: Duration = Duration::from_secs(30);

/// How long a gateway may be silent in any case: whoever is busy is not gone.
const LEAST_SILENCE: Duration = Duration::from_secs(5);

/// Requests without an answer.
type Open = Arc<Mutex<HashMap<String, mpsc::Sender<Result<Value, CallError>>>>>;

/// A connection to a gateway that was let in.
#[derive(Debug, Clone)]
pub struct Client {
    requests: mpsc::UnboundedSender<Message>,
    open: Open,
    events: broadcast::Sender<Event>,
    next: Arc<AtomicU64>,
    hello: Arc<Value>,
    ended: watch::Receiver<Option<String>>,
}

/// Something that the gateway told unasked.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// What it is about.
    pub name: String,
    /// What happened.
    pub payload: Value,
    /// Its number, if it went to everybody.
    pub seq: Option<u64>,
}

/// Why a call came to nothing.
#[derive(Debug, Clone, Error, PartialEq)]
pub enum CallError {
    /// The gateway cannot be reached, or is gone.
    #[error("the gateway cannot be reached: {0}")]
    Gone(String),
    /// Everybody on the way could read along.
    #[error(
        "refusing to send secrets to {0} without encryption; use wss://, or a tunnel to a port of this machine, or set \
         OPENCLAW_ALLOW_INSECURE_PRIVATE_WS=1 for private networks"
    )]
    Insecure(String),
    /// It only speaks TLS.
    #[error("the gateway at {0} only accepts encrypted connections; use wss:// instead of ws://")]
    Encrypted(String),
    /// It shows a certificate that does not count.
    #[error(
        "the certificate of {host} is not trusted ({why}); its SHA-256 fingerprint is {seen}. If the gateway prints the \
         same one when it starts, give it with --tls-fingerprint or as gateway.remote.tlsFingerprint"
    )]
    Certificate {
        /// Who shows it.
        host: String,
        /// What is wrong with it.
        why: String,
        /// Its fingerprint.
        seen: Fingerprint,
    },
    /// No answer came in time.
    #[error("no answer to {method} within {} s", within.as_secs_f32())]
    Late {
        /// What was asked.
        method: String,
        /// How long was waited.
        within: Duration,
    },
    /// It said no.
    #[error("{}", error["message"].as_str().unwrap_or("refused without a reason"))]
    Refused {
        /// The error as it came.
        error: Box<Value>,
        /// What came with it.
        payload: Option<Box<Value>>,
    },
}

impl CallError {
    /// The code of a refusal, as in `NOT_PAIRED`.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Refused { error, .. } => error["code"].as_str(),
            Self::Gone(_) | Self::Insecure(_) | Self::Encrypted(_) | Self::Certificate { .. } | Self::Late { .. } => {
                None
            }
        }
    }

    /// What a refusal has for programs.
    #[must_use]
    pub fn details(&self) -> &Value {
        match self {
            Self::Refused { error, .. } => &error["details"],
            Self::Gone(_) | Self::Insecure(_) | Self::Encrypted(_) | Self::Certificate { .. } | Self::Late { .. } => {
                &Value::Null
            }
        }
    }
}

impl Client {
    /// Connects to `url`, as in `ws://127.0.0.1:18789`.
    pub async fn connect(url: &str, introduction: &Introduction) -> Result<Self, CallError> {
        Self::join(url, introduction).await.map(|(client, _)| client)
    }

    /// Connects, and hears everything that is told from the first moment on.
    pub async fn join(url: &str, introduction: &Introduction) -> Result<(Self, broadcast::Receiver<Event>), CallError> {
        let address = Address::parse(url, introduction.trust)?;
        let mut socket = stream::open(&address, introduction.pin).await?;
        let introduction = memory::recall(introduction, url).await;
        let shaken = timeout(HANDSHAKE, shake(&mut socket, &introduction)).await;
        let shaken = shaken.map_err(|_| CallError::Gone("it does not respond to the handshake".to_owned()))?;
        memory::learn(&introduction, url, &shaken).await;
        let hello = shaken?;
        let (client, line) = Self::over(socket, hello);
        let events = client.events();
        tokio::spawn(line.run());
        Ok((client, events))
    }

    /// A client, and the line that it talks over.
    fn over(socket: Socket, hello: Value) -> (Self, Line) {
        let tick = hello["policy"]["tickIntervalMs"].as_u64().map_or(TICK, Duration::from_millis);
        let (requests, waiting) = mpsc::unbounded_channel();
        let (ending, ended) = watch::channel(None);
        let client = Self {
            requests,
            open: Arc::default(),
            events: broadcast::Sender::new(EVENTS),
            next: Arc::default(),
            hello: Arc::new(hello),
            ended,
        };
        let line =
            Line { socket, waiting, open: Arc::clone(&client.open), events: client.events.clone(), tick, ending };
        (client, line)
    }

    /// What the gateway said when it let us in.
    #[must_use]
    pub fn hello(&self) -> &Value {
        &self.hello
    }

    /// Hears everything that is told from now on.
    #[must_use]
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.events.subscribe()
    }

    /// Waits for the end of the connection, and says why it ended.
    pub async fn ended(&self) -> String {
        let mut ended = self.ended.clone();
        match ended.wait_for(Option::is_some).await {
            Ok(why) => why.clone().unwrap_or_default(),
            Err(_) => "the connection was closed".to_owned(),
        }
    }

    /// Asks, and waits for the first answer.
    pub async fn call(&self, method: &str, params: Value) -> Result<Value, CallError> {
        self.call_within(method, params, PATIENCE).await
    }

    /// Asks, and waits so long for the first answer.
    pub async fn call_within(&self, method: &str, params: Value, within: Duration) -> Result<Value, CallError> {
        self.ask(method, &params)?.next_within(within).await
    }

    /// Asks, and waits for the answer after which there is no other.
    pub async fn finish(&self, method: &str, params: Value, within: Duration) -> Result<Value, CallError> {
        let mut answers = self.ask(method, &params)?;
        let end = Instant::now() + within;
        loop {
            let answer = answers.next_within(end.saturating_duration_since(Instant::now())).await?;
            if answer["status"] != "accepted" {
                return Ok(answer);
            }
        }
    }

    /// Asks; there may be more than one answer.
    pub fn ask(&self, method: &str, params: &Value) -> Result<Answers, CallError> {
        let id = format!("c{}", self.next.fetch_add(1, Ordering::Relaxed));
        let (sender, coming) = mpsc::channel(ANSWERS);
        self.open.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), sender);
        let request = json!({"type": "req", "id": id, "method": method, "params": params});
        let method = method.to_owned();
        let answers = Answers { id, method, coming, open: Arc::clone(&self.open), ended: self.ended.clone() };
        let sent = self.requests.send(Message::text(request.to_string()));
        sent.map_err(|_| answers.gone())?;
        Ok(answers)
    }
}

/// The answers to one request.
#[derive(Debug)]
pub struct Answers {
    id: String,
    method: String,
    coming: mpsc::Receiver<Result<Value, CallError>>,
    open: Open,
    ended: watch::Receiver<Option<String>>,
}

impl Answers {
    /// The next one.
    pub async fn next(&mut self) -> Result<Value, CallError> {
        self.next_within(PATIENCE).await
    }

    /// The next one, if it comes in time.
    pub async fn next_within(&mut self, within: Duration) -> Result<Value, CallError> {
        match timeout(within, self.coming.recv()).await {
            Ok(Some(answer)) => answer,
            Ok(None) => Err(self.gone()),
            Err(_) => Err(CallError::Late { method: self.method.clone(), within }),
        }
    }

    fn gone(&self) -> CallError {
        let why = self.ended.borrow().clone();
        CallError::Gone(why.unwrap_or_else(|| "the connection was closed".to_owned()))
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

/// Answers the challenge, and returns what the gateway says to that.
async fn shake(socket: &mut Socket, introduction: &Introduction) -> Result<Value, CallError> {
    let nonce = loop {
        let frame = hear(socket).await?;
        if frame["event"] == "connect.challenge" {
            break frame["payload"]["nonce"].as_str().unwrap_or_default().to_owned();
        }
    };
    let connect =
        json!({"type": "req", "id": "connect", "method": "connect", "params": introduction.answer_to(&nonce)});
    socket.send(Message::text(connect.to_string())).await.map_err(gone)?;
    loop {
        let frame = hear(socket).await?;
        if frame["type"] == "res" && frame["id"] == "connect" {
            return result(&frame);
        }
    }
}

/// The next frame.
async fn hear(socket: &mut Socket) -> Result<Value, CallError> {
    loop {
        match socket.next().await {
            Some(Ok(Message::Text(text))) => return Ok(serde_json::from_str(&text).unwrap_or_default()),
            Some(Ok(Message::Close(frame))) => return Err(CallError::Gone(closed(frame.as_ref()))),
            Some(Ok(_)) => {}
            Some(Err(error)) => return Err(gone(error)),
            None => return Err(CallError::Gone("it closed the connection during the handshake".to_owned())),
        }
    }
}

fn closed(frame: Option<&CloseFrame>) -> String {
    match frame {
        Some(frame) => format!("it closed the connection ({}): {}", u16::from(frame.code), frame.reason),
        None => "it closed the connection".to_owned(),
    }
}

/// The connection itself, which lives as long as somebody may ask something.
struct Line {
    socket: Socket,
    waiting: mpsc::UnboundedReceiver<Message>,
    open: Open,
    events: broadcast::Sender<Event>,
    tick: Duration,
    ending: watch::Sender<Option<String>>,
}

impl Line {
    async fn run(mut self) {
        let why = self.talk().await;
        self.end(why);
    }

    /// Lets everybody go who waits for an answer.
    fn end(&mut self, why: String) {
        // Those who wait see why before they see that nothing comes any more.
        self.ending.send_replace(Some(why));
        // Whoever asks from now on is told so; whoever asked before is among those who wait.
        self.waiting.close();
        self.open.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    async fn talk(&mut self) -> String {
        let patience = LEAST_SILENCE.max(2 * self.tick);
        let mut silent_at = Instant::now() + patience;
        loop {
            tokio::select! {
                // What has arrived is looked at before anybody is called silent.
                biased;
                request = self.waiting.recv() => {
                    let Some(request) = request else {
                        let _ = timeout(Duration::from_secs(1), self.socket.close(None)).await;
                        return "the connection is no longer needed".to_owned();
                    };
                    match timeout(patience, self.socket.send(request)).await {
                        Ok(Ok(())) => {}
                        Ok(Err(error)) => return error.to_string(),
                        Err(_) => return "it does not read from the connection".to_owned(),
                    }
                }
                heard = self.socket.next() => {
                    silent_at = Instant::now() + patience;
                    match heard {
                        Some(Ok(Message::Text(text))) => self.sort(&text),
                        Some(Ok(Message::Close(frame))) => return closed(frame.as_ref()),
                        Some(Ok(_)) => {}
                        Some(Err(error)) => return error.to_string(),
                        None => return "it closed the connection".to_owned(),
                    }
                }
                () = sleep_until(silent_at) => {
                    let frame = CloseFrame { code: 4000.into(), reason: "tick timeout".into() };
                    let _ = timeout(Duration::from_secs(1), self.socket.close(Some(frame))).await;
                    return "it stopped responding".to_owned();
                }
            }
        }
    }

    fn sort(&self, text: &str) {
        let Ok(mut frame) = serde_json::from_str::<Value>(text) else { return };
        match frame["type"].as_str() {
            Some("res") => {
                let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(sender) = frame["id"].as_str().and_then(|id| open.get(id)) {
                    // Who no longer waits, or lets answers pile up, does not mind.
                    let _ = sender.try_send(result(&frame));
                }
            }
            Some("event") => {
                let event = Event {
                    name: frame["event"].as_str().unwrap_or_default().to_owned(),
                    payload: frame["payload"].take(),
                    seq: frame["seq"].as_u64(),
                };
                // Nobody may be listening.
                let _ = self.events.send(event);
            }
            _ => {}
        }
    }
}

fn result(frame: &Value) -> Result<Value, CallError> {
    if frame["ok"] == true {
        return Ok(frame["payload"].clone());
    }
    let error = Box::new(frame["error"].clone());
    Err(CallError::Refused { error, payload: frame.get("payload").cloned().map(Box::new) })
}

#[cfg(test)]
mod tests {
    use tokio::io::DuplexStream;
    use tokio_tungstenite::WebSocketStream;
    use tokio_tungstenite::tungstenite::protocol::Role;

    use super::*;

    /// A client of a gateway that reads nothing of what it is sent.
    async fn deaf() -> (Client, Line, DuplexStream) {
        let (near, far) = tokio::io::duplex(16);
        let near: Box<dyn stream::Bytes> = Box::new(near);
        let socket = WebSocketStream::from_raw_socket(near, Role::Client, None).await;
        let (client, line) = Client::over(socket, json!({}));
        (client, line, far)
    }

    #[tokio::test]
    async fn whoever_asks_while_the_connection_ends_does_not_wait() {
        let (client, mut line, _far) = deaf().await;
        let mut before = client.ask("health", &json!({})).expect("asked");
        line.end("it is over".to_owned());
        let gone = CallError::Gone("it is over".to_owned());
        assert_eq!(before.next().await, Err(gone.clone()));
        assert_eq!(client.ask("health", &json!({})).err(), Some(gone));
    }

    #[tokio::test(start_paused = true)]
    async fn a_gateway_that_takes_nothing_is_left() {
        let (client, line, _far) = deaf().await;
        let mut answers = client.ask("health", &json!({})).expect("asked");
        line.run().await;
        assert_eq!(client.ended().await, "it does not read from the connection");
        assert!(matches!(answers.next().await, Err(CallError::Gone(_))));
    }
}
