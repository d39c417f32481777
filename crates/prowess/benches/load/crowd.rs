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
pub(crate) struct Crowd(Vec<Client>);

/// One client, and how many bytes of frames it has received.
struct Client {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    received: usize,
}

/// Which events of turns a client receives.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Events {
    /// OpenClaw's: the whole text each time, of every session.
    Whole,
    /// Each piece once, of the sessions that it follows.
    Deltas,
}

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
    pub(crate) async fn gather(url: &str, token: &str, count: usize, events: Events) -> Self {
        let mut all = Vec::with_capacity(count);
        while all.len() < count {
            let some = (count - all.len()).min(50);
            all.extend(join_all((0..some).map(|_| connect(url, token, events))).await);
        }
        Self(all)
    }

    /// Each takes what comes from now on and does nothing with it. They leave when this is dropped.
    pub(crate) fn listen(self) -> JoinSet<()> {
        let listen = |mut client: Client| async move { while let Some(Ok(_)) = client.socket.next().await {} };
        self.0.into_iter().map(listen).collect()
    }

    /// How many bytes each has received on average.
    pub(crate) fn received(&self) -> usize {
        self.0.iter().map(|client| client.received).sum::<usize>() / self.0.len().max(1)
    }

    /// The first says something `times` times, as a page does, and hears each answer to its end.
    pub(crate) async fn chat(&mut self, times: usize) {
        let client = self.0.first_mut().expect("a client");
        for number in 0..times {
            let params = json!({"sessionKey": "main", "message": "hello", "idempotencyKey": format!("chat-{number}")});
            call(client, &format!("c{number}"), "chat.send", params, 1).await.expect("accepted");
            while next(client).await.expect("an event")["payload"]["state"] != "final" {}
        }
    }

    /// Each asks for `health`, `times` times.
    pub(crate) async fn ask(&mut self, times: usize) -> Measured {
        measure(self.0.iter_mut().map(|client| async move {
            let mut results = Vec::with_capacity(times);
            for number in 0..times {
                results.push(call(client, &format!("h{number}"), "health", json!({}), 1).await);
            }
            results
        }))
        .await
    }

    /// Each says something in a session of its own, `times` times, and waits for the answer.
    pub(crate) async fn talk(&mut self, times: usize) -> Measured {
        let run = uuid::Uuid::new_v4();
        measure(self.0.iter_mut().enumerate().map(|(speaker, client)| async move {
            let mut results = Vec::with_capacity(times);
            for number in 0..times {
                let id = format!("t{number}");
                let params = json!({
                    "message": "hello",
                    "sessionKey": format!("agent:main:load-{run}-{speaker}"),
                    "idempotencyKey": format!("{run}-{speaker}-{number}"),
                });
                results.push(call(client, &id, "agent", params, 2).await);
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

async fn connect(url: &str, token: &str, events: Events) -> Client {
    let (socket, _) = tokio_tungstenite::connect_async(url).await.expect("a connection");
    let mut client = Client { socket, received: 0 };
    let challenge = next(&mut client).await.expect("a challenge");
    assert_eq!(challenge["event"], "connect.challenge");
    let params = json!({
        "minProtocol": 3, "maxProtocol": 3,
        "client": {"id": "gateway-client", "version": "1.0.0", "platform": "linux", "mode": "backend"},
        "role": "operator",
        "scopes": ["operator.admin", "operator.read", "operator.write"],
        "auth": {"token": token},
        "caps": match events {
            Events::Whole => json!([]),
            Events::Deltas => json!(["event-deltas"]),
        },
    });
    call(&mut client, "connect", "connect", params, 1).await.expect("let in");
    client.received = 0;
    client
}

/// Asks, and waits until so many answers have come.
async fn call(client: &mut Client, id: &str, method: &str, params: Value, answers: usize) -> Result<Duration, String> {
    let start = Instant::now();
    let request = json!({"type": "req", "id": id, "method": method, "params": params});
    client.socket.send(Message::text(request.to_string())).await.map_err(|error| error.to_string())?;
    let mut heard = 0;
    while heard < answers {
        let frame = next(client).await.ok_or("the connection ended")?;
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

async fn next(client: &mut Client) -> Option<Value> {
    loop {
        if let Message::Text(text) = client.socket.next().await?.ok()? {
            client.received += text.len();
            return serde_json::from_str(&text).ok();
        }
    }
}
