//! A crowd: many clients of one gateway.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

/// Clients that were let in.
pub(crate) struct Crowd(Vec<WebSocketStream<MaybeTlsStream<TcpStream>>>);

/// What it took.
pub(crate) struct Measured {
    /// Of each that was answered, shortest first.
    pub(crate) times: Vec<Duration>,
    pub(crate) errors: usize,
    /// All together.
    pub(crate) took: Duration,
}

impl Crowd {
    /// Lets `count` clients connect, some at a time.
    pub(crate) async fn gather(url: &str, token: &str, count: usize) -> Self {
        let mut all = Vec::with_capacity(count);
        while all.len() < count {
            let some = (count - all.len()).min(50);
            all.extend(join_all((0..some).map(|_| connect(url, token))).await);
        }
        Self(all)
    }

    /// Each takes what comes from now on and does nothing with it. They leave when this is dropped.
    pub(crate) fn listen(self) -> JoinSet<()> {
        let listen = |mut socket: WebSocketStream<_>| async move { while let Some(Ok(_)) = socket.next().await {} };
        self.0.into_iter().map(listen).collect()
    }

    /// Each asks for `health`, `times` times.
    pub(crate) async fn ask(&mut self, times: usize) -> Measured {
        measure(self.0.iter_mut().map(|socket| async move {
            let mut results = Vec::with_capacity(times);
            for number in 0..times {
                results.push(call(socket, &format!("h{number}"), "health", json!({}), 1).await);
            }
            results
        }))
        .await
    }

    /// Each says something in a session of its own, `times` times, and waits for the answer.
    pub(crate) async fn talk(&mut self, times: usize) -> Measured {
        let run = uuid::Uuid::new_v4();
        measure(self.0.iter_mut().enumerate().map(|(speaker, socket)| async move {
            let mut results = Vec::with_capacity(times);
            for number in 0..times {
                let id = format!("t{number}");
                let params = json!({
                    "message": "hello",
                    "sessionKey": format!("agent:main:load-{run}-{speaker}"),
                    "idempotencyKey": format!("{run}-{speaker}-{number}"),
                });
                results.push(call(socket, &id, "agent", params, 2).await);
            }
            results
        }))
        .await
    }
}

async fn measure<F: Future<Output = Vec<Result<Duration, String>>>>(work: impl Iterator<Item = F>) -> Measured {
    let start = Instant::now();
    let results: Vec<_> = join_all(work).await.into_iter().flatten().collect();
    let took = start.elapsed();
    let errors: Vec<&String> = results.iter().filter_map(|result| result.as_ref().err()).collect();
    if let Some(first) = errors.first() {
        eprintln!("the first error: {first}");
    }
    let errors = errors.len();
    let mut times: Vec<Duration> = results.into_iter().flatten().collect();
    times.sort();
    Measured { times, errors, took }
}

async fn connect(url: &str, token: &str) -> WebSocketStream<MaybeTlsStream<TcpStream>> {
    let (mut socket, _) = tokio_tungstenite::connect_async(url).await.expect("a connection");
    let challenge = next(&mut socket).await.expect("a challenge");
    assert_eq!(challenge["event"], "connect.challenge");
    let params = json!({
        "minProtocol": 3, "maxProtocol": 3,
        "client": {"id": "gateway-client", "version": "1.0.0", "platform": "linux", "mode": "backend"},
        "role": "operator",
        "scopes": ["operator.admin", "operator.read", "operator.write"],
        "auth": {"token": token},
    });
    call(&mut socket, "connect", "connect", params, 1).await.expect("let in");
    socket
}

/// Asks, and waits until so many answers have come.
async fn call(
    socket: &mut WebSocketStream<MaybeTlsStream<TcpStream>>,
    id: &str,
    method: &str,
    params: Value,
    answers: usize,
) -> Result<Duration, String> {
    let start = Instant::now();
    let request = json!({"type": "req", "id": id, "method": method, "params": params});
    socket.send(Message::text(request.to_string())).await.map_err(|error| error.to_string())?;
    let mut heard = 0;
    while heard < answers {
        let frame = next(socket).await.ok_or("the connection ended")?;
        if frame["id"] != id {
            continue;
        }
        if frame["ok"] != true {
            return Err(frame.to_string());
        }
        heard += 1;
    }
    Ok(start.elapsed())
}

async fn next(socket: &mut WebSocketStream<MaybeTlsStream<TcpStream>>) -> Option<Value> {
    loop {
        if let Message::Text(text) = socket.next().await?.ok()? {
            return serde_json::from_str(&text).ok();
        }
    }
}
