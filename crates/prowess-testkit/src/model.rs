//! What does a test talk to in place of a real model? A server on this machine that speaks the real wire formats.
//!
//! It answers Anthropic Messages, OpenAI Chat Completions and Responses on the paths they have, from a script or by a
//! function of the request, and cuts its answers into the pieces a test asks for. It listens on a port of its own, in a
//! thread of its own, and ends when it is dropped.

mod heard;
mod render;
mod serve;

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

pub use heard::Heard;
use serde_json::Value;
use tokio::sync::oneshot;

/// What the server does with one request.
#[derive(Debug, Clone, PartialEq)]
pub enum Turn {
    /// The model says this.
    Text(String),
    /// The model calls tools: id, name and arguments of each.
    Calls(Vec<(String, String, Value)>),
    /// The model thinks, speaks and calls.
    Answer(Answer),
    /// The same, but as one JSON object: a server that does not stream.
    Whole(Answer),
    /// No answer but a status.
    Status {
        /// The status.
        code: u16,
        /// Headers.
        headers: Vec<(String, String)>,
        /// The body.
        body: String,
    },
    /// These bytes as a stream of events.
    Raw(Vec<u8>),
    /// The beginning of another turn; then the connection breaks.
    Cut {
        /// The other turn.
        turn: Box<Turn>,
        /// How many bytes of it arrive.
        after: usize,
    },
    /// The beginning of another turn; then nothing more, for ever.
    Stall {
        /// The other turn.
        turn: Box<Turn>,
        /// How many bytes of it arrive.
        after: usize,
    },
    /// The first bytes, then the second ones again and again, until nobody listens.
    Endless {
        /// Once.
        first: Vec<u8>,
        /// For ever.
        then: Vec<u8>,
    },
}

/// What a model says in one turn.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// What it thinks first.
    pub thinking: String,
    /// What it says.
    pub text: String,
    /// What it calls: id, name and arguments of each.
    pub calls: Vec<(String, String, Value)>,
    /// Whether it runs out of room at the end.
    pub cut_short: bool,
}

/// Into which pieces a body is cut. Each is an HTTP chunk of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chunking {
    /// All at once.
    Whole,
    /// So many bytes each.
    Bytes(usize),
    /// As the dice fall that this seeds.
    Random(u64),
    /// One event each.
    Events,
}

/// A request as it arrived.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedRequest {
    /// The method.
    pub method: String,
    /// The path, without the query.
    pub path: String,
    /// The port it came from: requests over one connection have the same.
    pub peer: u16,
    /// The headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body; null when there was none.
    pub body: Value,
}

impl RecordedRequest {
    /// The value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Every text in the body, at any depth, in order: what the model can see of the conversation.
    #[must_use]
    pub fn texts(&self) -> Vec<&str> {
        fn collect<'a>(value: &'a Value, texts: &mut Vec<&'a str>) {
            match value {
                Value::String(text) => texts.push(text),
                Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
                Value::Object(map) => map.values().for_each(|item| collect(item, texts)),
                Value::Null | Value::Bool(_) | Value::Number(_) => {}
            }
        }
        let mut texts = Vec::new();
        collect(&self.body, &mut texts);
        texts
    }
}

impl Turn {
    /// The model says `text`.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    /// The model calls one tool.
    #[must_use]
    pub fn call(id: &str, name: &str, arguments: Value) -> Self {
        Self::Calls(vec![(id.to_owned(), name.to_owned(), arguments)])
    }

    /// A status with a body.
    #[must_use]
    pub fn status(code: u16, body: &str) -> Self {
        Self::Status { code, headers: Vec::new(), body: body.to_owned() }
    }
}

/// A model on this machine.
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

type Responder = dyn Fn(&RecordedRequest) -> Turn + Send + Sync;

/// What the server's thread and the test both see.
struct Shared {
    responder: Box<Responder>,
    chunking: Chunking,
    requests: Mutex<Vec<RecordedRequest>>,
    sent: AtomicU64,
    tokens: AtomicU64,
}

impl ModelServer {
    /// Answers with these turns, one after the other; a request too many gets a 400.
    #[must_use]
    pub fn script(turns: impl IntoIterator<Item = Turn>) -> Self {
        Self::chunked(Chunking::Whole, turns)
    }

    /// The same, in pieces.
    #[must_use]
    pub fn chunked(chunking: Chunking, turns: impl IntoIterator<Item = Turn>) -> Self {
        let mut turns = turns.into_iter().collect::<Vec<_>>().into_iter();
        let next = Mutex::new(move || turns.next());
        Self::answering(chunking, move |_| {
            let turn = (next.lock().unwrap_or_else(PoisonError::into_inner))();
            turn.unwrap_or_else(|| Turn::status(400, r#"{"error":{"message":"the script has no more turns"}}"#))
        })
    }

    /// Answers with what `responder` makes of each request.
    #[must_use]
    pub fn answering(chunking: Chunking, responder: impl Fn(&RecordedRequest) -> Turn + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        listener.set_nonblocking(true).expect("a listener that does not block");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared {
            responder: Box::new(responder),
            chunking,
            requests: Mutex::new(Vec::new()),
            sent: AtomicU64::new(0),
            tokens: AtomicU64::new(0),
        });
        let (stop, stopped) = oneshot::channel();
        let thread = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || serve::run(listener, shared, stopped))
        };
        Self { address, shared, stop: Some(stop), thread: Some(thread) }
    }

    /// Where it is, without a path: `http://127.0.0.1:1234`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The base URL as OpenAI's format has it: `http://127.0.0.1:1234/v1`.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("{}/v1", self.url())
    }

    /// The requests so far. Those for the list of models are among them.
    #[must_use]
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.shared.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many bytes of bodies were handed to the network so far.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.shared.sent.load(Ordering::Relaxed)
    }

    /// How many tokens its whole answers said they took, read and written.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.shared.tokens.load(Ordering::Relaxed)
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        // The server waits for this to go away.
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || thread::panicking(), "the model server panicked");
        }
    }
}
