//! A connection: from the first challenge to the last word.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use prowess_agent::message::now;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

use crate::aside::blocking;
use crate::caller::Caller;
use crate::compress;
use crate::gateway::Gateway;
use crate::handshake::{self, Entered};
use crate::hub::{Batch, Farewell, Guest, Mail, Out, Urgency};
use crate::methods::{self, Ask};
use crate::pairing::Pairing;
use crate::scope::Role;
use crate::sequence::Sequence;
use crate::server::Meter;
use crate::socket::Socket;
use crate::wire::{self, Malformed, Refusal};

/// How long the last word may take, and how long we wait for the other side to hang up first.
const LAST_WORD: Duration = Duration::from_secs(2);

/// What clients are spoken with on.
pub(crate) type Link = Socket<TokioIo<Upgraded>>;

/// Holds a connection until one of both ends it.
pub(crate) async fn hold(gateway: Arc<Gateway>, socket: Link, caller: Caller, meter: Arc<Meter>) {
    let (mut writer, mut reader) = socket.split();
    // The handshake needs much more memory than a client that only listens, so it has a place of its own for a while.
    let greeted =
        Box::pin(timeout(gateway.limits.handshake, handshake::greet(&gateway, &caller, &mut writer, &mut reader)));
    let greeted = tokio::select! {
        greeted = greeted => greeted,
        () = gateway.stop.cancelled() => Ok(Err(Farewell::new(1012, "service restart"))),
    };
    if !matches!(greeted, Ok(Ok(_))) {
        gateway.metrics.turned_away();
    }
    let farewell = match greeted {
        Ok(Ok(entered)) => {
            meter.known();
            drop(caller);
            converse(&gateway, entered, &mut writer, &mut reader).await
        }
        Ok(Err(farewell)) => Some(farewell),
        Err(_) => {
            tracing::warn!(from = %caller.peer, "connection refused: no handshake in time");
            Some(Farewell::new(1000, ""))
        }
    };
    if let Some(farewell) = farewell {
        part(&mut writer, &mut reader, farewell).await;
    }
}

/// Talks with somebody who was let in, and returns what is left to be said.
async fn converse(
    gateway: &Arc<Gateway>,
    entered: Entered,
    writer: &mut SplitSink<Link, Message>,
    reader: &mut SplitStream<Link>,
) -> Option<Farewell> {
    let guest = Arc::clone(&entered.guest);
    // It is there before it is told what is there, so that nothing is missed in between.
    gateway.hub.enter(&guest);
    if let Some(farewell) = second_look(&gateway.pairing, entered.paired(), guest.role).await {
        gateway.hub.leave(&guest.conn);
        return Some(farewell);
    }
    gateway.presence.enter(&guest);
    methods::joined(gateway, &guest);
    let welcome = entered.welcome(gateway);
    let farewell = tokio::select! {
        farewell = write(writer, welcome, entered.mail, &guest, gateway.limits.writing) => farewell,
        farewell = read(gateway, &guest, reader) => farewell,
        () = gateway.end.cancelled() => None,
    };
    gateway.hub.leave(&guest.conn);
    gateway.presence.leave(&guest);
    methods::left(gateway, &guest);
    farewell
}

/// Whoever removes a device sends away those who are here. One that was on its way in then is noticed now.
async fn second_look(pairing: &Arc<Pairing>, device: Option<&str>, role: Role) -> Option<Farewell> {
    let (pairing, device) = (Arc::clone(pairing), device?.to_owned());
    match blocking(move || pairing.is_known(&device, role, now())).await {
        Ok(Ok(true)) => None,
        Ok(Ok(false)) => Some(Farewell::new(1008, "device no longer paired")),
        Ok(Err(error)) => Some(Farewell::new(1011, &error.to_string())),
        Err(refusal) => Some(Farewell::new(1011, &refusal.message)),
    }
}

async fn write(
    writer: &mut SplitSink<Link, Message>,
    welcome: String,
    mut mail: Mail,
    guest: &Guest,
    patience: Duration,
) -> Option<Farewell> {
    let packing = Packing::of(guest);
    let mut batch = Batch { frames: vec![Out::Text(welcome.into())], cost: 0 };
    loop {
        let Batch { frames, cost } = batch;
        let sent = tokio::select! {
            biased;
            farewell = mail.cut() => return Some(farewell),
            sent = timeout(patience, write_together(writer, frames, packing)) => sent,
        };
        match sent {
            Ok(Ok(None)) => mail.written(cost),
            Ok(Ok(Some(farewell))) => return Some(farewell),
            Ok(Err(_)) => return None,
            Err(_) => return Some(Farewell::new(1008, "slow consumer")),
        }
        batch = mail.batch().await?;
    }
}

/// How a client wants its frames.
#[derive(Clone, Copy)]
enum Packing {
    Plain,
    Deflate,
}

impl Packing {
    fn of(guest: &Guest) -> Self {
        if guest.caps.iter().any(|cap| cap == compress::CAP) { Self::Deflate } else { Self::Plain }
    }

    /// The message for a frame. A large one is compressed on a blocking thread; those behind it wait, so the order stays.
    async fn message(self, text: Utf8Bytes) -> Message {
        match self {
            Self::Deflate if text.len() >= compress::LARGE => {
                let whole = text.clone();
                match blocking(move || compress::deflate(whole.as_bytes())).await {
                    Ok(packed) => Message::Binary(packed),
                    Err(_) => Message::Text(text),
                }
            }
            Self::Deflate | Self::Plain => Message::Text(text),
        }
    }
}

/// Writes frames, up to the last word, which is given back.
async fn write_together(
    writer: &mut SplitSink<Link, Message>,
    frames: Vec<Out>,
    packing: Packing,
) -> Result<Option<Farewell>, Error> {
    let mut last = None;
    for frame in frames {
        match frame {
            Out::Text(text) => writer.feed(packing.message(text).await).await?,
            piece @ Out::Piece(_) => {
                if let Some(text) = piece.frame() {
                    writer.feed(packing.message(text).await).await?;
                }
            }
            Out::Ping => writer.feed(Message::Ping(Bytes::new())).await?,
            Out::Close(farewell) => last = Some(farewell),
        }
    }
    writer.flush().await?;
    Ok(last)
}

async fn read(gateway: &Arc<Gateway>, guest: &Arc<Guest>, reader: &mut SplitStream<Link>) -> Option<Farewell> {
    let mut noted = Noted::default();
    let mut sequence = Sequence::default();
    loop {
        let message = match reader.next().await? {
            Ok(message) => message,
            // Who hangs up without a word has done nothing wrong.
            Err(
                Error::Io(_)
                | Error::ConnectionClosed
                | Error::AlreadyClosed
                | Error::Protocol(ProtocolError::ResetWithoutClosingHandshake),
            ) => return None,
            Err(Error::Capacity(_)) => {
                noted.log(guest, "too large");
                return Some(Farewell::new(1009, "message too big"));
            }
            Err(_) => {
                noted.log(guest, "broken");
                return Some(Farewell::new(1002, "protocol error"));
            }
        };
        gateway.hub.heard(guest);
        match message {
            Message::Text(text) => hear(gateway, guest, &text, &mut sequence, &mut noted),
            Message::Binary(_) => noted.log(guest, "binary"),
            Message::Close(_) => return None,
            Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
        }
    }
}

fn hear(gateway: &Arc<Gateway>, guest: &Arc<Guest>, text: &str, sequence: &mut Sequence, noted: &mut Noted) {
    let answer = |id: &str, refusal: Refusal| {
        guest.outbox.send(Utf8Bytes::from(wire::answer(id, &Err(refusal))), Urgency::Needed);
    };
    let request = match wire::parse(text) {
        Ok(request) => request,
        Err(malformed) => {
            noted.log(guest, malformed.as_str());
            return match malformed {
                Malformed::NotJson => {}
                Malformed::TooDeep => answer("invalid", Refusal::invalid("invalid request frame: nested too deep")),
                Malformed::Refused { id, refusal } => answer(&id, *refusal),
            };
        }
    };
    let Some(place) = guest.begin(gateway.limits.in_flight) else {
        noted.log(guest, "too many requests at once");
        return answer(
            &request.id,
            Refusal::unavailable("too many requests at once; wait for responses").retry_after(1000),
        );
    };
    if gateway.stop.is_cancelled() {
        return answer(&request.id, Refusal::unavailable("the gateway is shutting down").retry_after(1000));
    }
    let slot = methods::keeps_order(&request.method).then(|| sequence.next());
    let ask = Ask { gateway: Arc::clone(gateway), guest: Arc::clone(guest), request, slot };
    gateway.tasks.spawn(async move {
        methods::answer(ask).await;
        drop(place);
    });
}

/// What was already logged about a client: each kind of mistake once, however often it is made.
#[derive(Debug, Default)]
struct Noted(Vec<&'static str>);

impl Noted {
    fn log(&mut self, guest: &Guest, what: &'static str) {
        if self.is_new(what) {
            tracing::warn!(conn = guest.conn, "refused a message: {what}");
        }
    }

    fn is_new(&mut self, what: &'static str) -> bool {
        let is_new = !self.0.contains(&what);
        if is_new {
            self.0.push(what);
        }
        is_new
    }
}

/// Says the last word, and gives the other side a moment to hear it: hanging up on what it still says would make its
/// system throw the last word away.
async fn part(writer: &mut SplitSink<Link, Message>, reader: &mut SplitStream<Link>, farewell: Farewell) {
    let Farewell { code, reason } = farewell;
    let close = Message::Close(Some(CloseFrame { code: code.into(), reason: reason.into() }));
    let part = async {
        writer.send(close).await.ok()?;
        while let Some(Ok(message)) = reader.next().await {
            if matches!(message, Message::Close(_)) {
                break;
            }
        }
        Some(())
    };
    // Who does not listen any more does not have to be told.
    let _ = timeout(LAST_WORD, part).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pairing::tests::wish;

    #[tokio::test]
    async fn a_device_that_was_removed_on_its_way_in_is_sent_away() {
        let dir = tempfile::tempdir().expect("a folder");
        let pairing = Arc::new(Pairing::new(dir.path()));
        let wish = wish(Role::Node, &[]);
        let device = Some(wish.device.as_str());
        pairing.admit(&wish, now()).expect("paired");
        assert_eq!(second_look(&pairing, device, Role::Node).await, None);
        pairing.revoke(&wish.device, "node", now()).expect("revoked");
        assert!(second_look(&pairing, device, Role::Node).await.is_some());
        pairing.admit(&wish, now()).expect("it has another token");
        pairing.remove(&wish.device, now()).expect("removed");
        let farewell = second_look(&pairing, device, Role::Node).await;
        assert_eq!(farewell, Some(Farewell::new(1008, "device no longer paired")));
        assert_eq!(second_look(&pairing, None, Role::Operator).await, None, "it was not paired in the first place");
    }

    #[test]
    fn each_kind_of_mistake_is_noted_once() {
        let mut noted = Noted::default();
        let seen: Vec<bool> = ["a", "a", "b", "a", "b"].into_iter().map(|what| noted.is_new(what)).collect();
        assert_eq!(seen, [true, false, true, false, false]);
    }
}
