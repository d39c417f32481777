//! The outbox: what waits to be written to a client, and how much of that is too much?
//!
//! Nobody who tells something waits for a client to hear it. Instead there is a bound on what waits, and a client that
//! lets it grow past that is too slow for us: what it can do without is left out, and for what it cannot do without it is
//! sent away.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use serde_json::json;
use tokio::sync::{Notify, mpsc};
use tokio_tungstenite::tungstenite::Utf8Bytes;

use crate::wire;

/// What a frame costs besides its text.
const OVERHEAD: usize = 64;

/// How much is written together, in frames and bytes; the last may go beyond the bytes.
const TOGETHER: (usize, usize) = (64, 64 * 1024);

/// What waits to be written to a client.
#[derive(Debug)]
pub(crate) struct Outbox {
    queue: mpsc::UnboundedSender<Out>,
    load: Arc<Load>,
}

/// The other end of an [`Outbox`].
#[derive(Debug)]
pub(crate) struct Mail {
    queue: mpsc::UnboundedReceiver<Out>,
    load: Arc<Load>,
}

#[derive(Debug)]
struct Load {
    bytes: AtomicUsize,
    max: usize,
    farewell: OnceLock<Farewell>,
    bell: Notify,
}

/// One thing to be written.
#[derive(Debug)]
pub(crate) enum Out {
    /// A frame.
    Text(Utf8Bytes),
    /// A piece of what a run says.
    Piece(Piece),
    /// The question whether somebody is there.
    Ping,
    /// The last word.
    Close(Farewell),
}

/// A piece of what a run says, for clients that hear each piece once. Pieces that wait are put together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    /// The run.
    pub(crate) run: Arc<str>,
    /// In which of its streams: `assistant` or `reasoning`.
    pub(crate) stream: &'static str,
    /// Which reply of the run it belongs to, from 0.
    pub(crate) reply: u32,
    pub(crate) text: Arc<str>,
}

impl Piece {
    /// The frame of it.
    fn frame(&self) -> String {
        let data = json!({"reply": self.reply, "delta": &*self.text});
        wire::event("agent", &json!({"runId": &*self.run, "stream": self.stream, "data": data}), None)
    }

    /// Whether `next` goes on where this ends.
    fn goes_on(&self, next: &Self) -> bool {
        (&self.run, self.stream, self.reply) == (&next.run, next.stream, next.reply)
    }
}

/// What is written together.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// In this order.
    pub(crate) frames: Vec<Out>,
    /// What they count for.
    pub(crate) cost: usize,
}

impl Batch {
    /// Adds what comes next. Pieces of the same reply become one frame.
    fn add(&mut self, out: Out) {
        self.cost += out.cost();
        match (self.frames.last_mut(), out) {
            (Some(Out::Piece(last)), Out::Piece(next)) if last.goes_on(&next) => {
                last.text = format!("{}{}", last.text, next.text).into();
            }
            (_, out) => self.frames.push(out),
        }
    }
}

/// The last word to a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Farewell {
    /// Why, as a number.
    pub(crate) code: u16,
    /// Why, in words.
    pub(crate) reason: String,
}

/// What happens to something for a client that is too slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// It is left out.
    Droppable,
    /// The client is sent away.
    Needed,
}

impl Out {
    /// The text that is sent, if it is one.
    pub(crate) fn frame(&self) -> Option<Utf8Bytes> {
        match self {
            Self::Text(text) => Some(text.clone()),
            Self::Piece(piece) => Some(piece.frame().into()),
            Self::Ping | Self::Close(_) => None,
        }
    }

    /// What it counts for while it waits.
    fn cost(&self) -> usize {
        match self {
            Self::Text(text) => text.len() + OVERHEAD,
            Self::Piece(piece) => piece.text.len() + OVERHEAD,
            Self::Ping | Self::Close(_) => 0,
        }
    }
}

/// How many bytes a close frame has room for in its reason.
const MAX_REASON: usize = 123;

impl Farewell {
    /// With as much of the reason as fits.
    pub(crate) fn new(code: u16, reason: &str) -> Self {
        let end = (0..=MAX_REASON.min(reason.len())).rev().find(|end| reason.is_char_boundary(*end));
        Self { code, reason: reason[..end.unwrap_or(0)].to_owned() }
    }
}

impl Outbox {
    /// Waits until nobody reads any more: the client is gone.
    pub(crate) async fn closed(&self) {
        self.queue.closed().await;
    }

    /// One for a client for whom at most `max` bytes may wait.
    pub(crate) fn new(max: usize) -> (Self, Mail) {
        let (queue, waiting) = mpsc::unbounded_channel();
        let load = Load { bytes: AtomicUsize::new(0), max, farewell: OnceLock::new(), bell: Notify::new() };
        let load = Arc::new(load);
        (Self { queue, load: Arc::clone(&load) }, Mail { queue: waiting, load })
    }

    /// Puts a frame into the queue, if there is room.
    pub(crate) fn send(&self, text: Utf8Bytes, urgency: Urgency) {
        self.push(Out::Text(text), urgency);
    }

    /// Puts a piece of text into the queue. A client that has no room for it is sent away, for it would miss that piece.
    pub(crate) fn send_piece(&self, piece: Piece) {
        self.push(Out::Piece(piece), Urgency::Needed);
    }

    fn push(&self, out: Out, urgency: Urgency) {
        let cost = out.cost();
        let waiting = self.load.bytes.fetch_add(cost, Ordering::Relaxed);
        if waiting + cost > self.load.max {
            self.load.bytes.fetch_sub(cost, Ordering::Relaxed);
            if urgency == Urgency::Needed {
                self.cut(1008, "slow consumer");
            }
            return;
        }
        // Who is gone hears nothing more, and is taken out by its own task.
        let _ = self.queue.send(out);
    }

    /// Asks whether somebody is there.
    pub(crate) fn ping(&self) {
        let _ = self.queue.send(Out::Ping);
    }

    /// Ends the connection after what waits.
    pub(crate) fn close(&self, code: u16, reason: &str) {
        let _ = self.queue.send(Out::Close(Farewell::new(code, reason)));
    }

    /// Ends the connection now; what waits is lost.
    pub(crate) fn cut(&self, code: u16, reason: &str) {
        // The first reason counts.
        let _ = self.load.farewell.set(Farewell::new(code, reason));
        self.load.bell.notify_one();
    }
}

impl Mail {
    /// The next thing to be written; the last is a close, or nothing when nobody can send any more.
    pub(crate) async fn next(&mut self) -> Option<Out> {
        tokio::select! {
            biased;
            farewell = cut(&self.load) => Some(Out::Close(farewell)),
            out = self.queue.recv() => out,
        }
    }

    /// The next thing to be written, and what waits behind it, up to the last word. Nothing when nobody can send any more.
    pub(crate) async fn batch(&mut self) -> Option<Batch> {
        let first = self.next().await?;
        let mut batch = Batch::default();
        batch.add(first);
        let (most, bytes) = TOGETHER;
        let is_last = |out: &Out| matches!(out, Out::Close(_));
        while batch.frames.len() < most && batch.cost < bytes && !batch.frames.last().is_some_and(is_last) {
            let Ok(next) = self.queue.try_recv() else { break };
            batch.add(next);
        }
        Some(batch)
    }

    /// Frames that count for so much were written.
    pub(crate) fn written(&self, cost: usize) {
        self.load.bytes.fetch_sub(cost, Ordering::Relaxed);
    }

    /// Waits until the connection is to be ended at once.
    pub(crate) async fn cut(&self) -> Farewell {
        cut(&self.load).await
    }
}

async fn cut(load: &Load) -> Farewell {
    loop {
        if let Some(farewell) = load.farewell.get() {
            return farewell.clone();
        }
        load.bell.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(length: usize) -> Utf8Bytes {
        "x".repeat(length).into()
    }

    async fn kinds(mail: &mut Mail, count: usize) -> Vec<String> {
        let mut kinds = Vec::new();
        for _ in 0..count {
            kinds.push(match mail.next().await {
                Some(Out::Text(text)) => {
                    mail.written(text.len() + OVERHEAD);
                    format!("text {}", text.len())
                }
                Some(Out::Piece(piece)) => format!("piece {}", piece.text),
                Some(Out::Ping) => "ping".to_owned(),
                Some(Out::Close(farewell)) => format!("close {} {}", farewell.code, farewell.reason),
                None => "nothing".to_owned(),
            });
        }
        kinds
    }

    #[tokio::test]
    async fn what_a_slow_client_can_do_without_is_left_out() {
        let (outbox, mut mail) = Outbox::new(1000);
        outbox.send(text(500), Urgency::Droppable);
        outbox.send(text(501), Urgency::Droppable);
        outbox.send(text(300), Urgency::Droppable);
        assert_eq!(kinds(&mut mail, 2).await, ["text 500", "text 300"]);
        outbox.send(text(900), Urgency::Needed);
        assert_eq!(kinds(&mut mail, 1).await, ["text 900"], "there is room again after it was written");
    }

    #[tokio::test]
    async fn a_client_that_is_too_slow_for_what_it_needs_is_sent_away_at_once() {
        let (outbox, mut mail) = Outbox::new(1000);
        outbox.send(text(500), Urgency::Needed);
        outbox.send(text(500), Urgency::Needed);
        assert_eq!(kinds(&mut mail, 1).await, ["close 1008 slow consumer"], "what waits is lost");
        outbox.cut(1001, "another reason");
        assert_eq!(kinds(&mut mail, 1).await, ["close 1008 slow consumer"]);
    }

    #[tokio::test]
    async fn many_small_frames_count_too() {
        let (outbox, mut mail) = Outbox::new(100 * OVERHEAD);
        (0..200).for_each(|_| outbox.send(text(0), Urgency::Droppable));
        drop(outbox);
        let mut written = 0;
        while mail.next().await.is_some() {
            written += 1;
        }
        assert_eq!(written, 100);
    }

    #[tokio::test]
    async fn what_waits_is_taken_together_within_bounds_and_up_to_the_last_word() {
        let (outbox, mut mail) = Outbox::new(1_000_000);
        (0..=TOGETHER.0).for_each(|_| outbox.send(text(1), Urgency::Needed));
        let first = mail.batch().await.expect("frames");
        assert_eq!((first.frames.len(), first.cost), (TOGETHER.0, TOGETHER.0 * (1 + OVERHEAD)));
        mail.written(first.cost);
        assert_eq!(mail.batch().await.expect("the rest").frames.len(), 1);
        (0..3).for_each(|_| outbox.send(text(TOGETHER.1 / 2), Urgency::Needed));
        assert_eq!(mail.batch().await.expect("large ones").frames.len(), 2);
        outbox.ping();
        outbox.close(1012, "");
        outbox.ping();
        let last = mail.batch().await.expect("the last word").frames;
        assert!(matches!(last.as_slice(), [Out::Text(_), Out::Ping, Out::Close(_)]), "{last:?}");
    }

    #[tokio::test]
    async fn pieces_of_one_reply_that_wait_become_one_frame() {
        let (outbox, mut mail) = Outbox::new(1_000_000);
        let piece = |run: &str, reply: u32, text: &str| {
            outbox.send_piece(Piece { run: run.into(), stream: "assistant", reply, text: text.into() });
        };
        piece("a", 0, "one ");
        piece("a", 0, "two");
        piece("a", 1, "three");
        piece("b", 1, "four");
        let batch = mail.batch().await.expect("frames");
        assert_eq!(batch.cost, "one twothreefour".len() + 4 * OVERHEAD, "all of it counts as written");
        let frames: Vec<String> = batch.frames.iter().filter_map(Out::frame).map(|text| text.to_string()).collect();
        let first = json!({"type": "event", "event": "agent", "payload": {"runId": "a", "stream": "assistant", "data": {"reply": 0, "delta": "one two"}}});
        assert_eq!(serde_json::from_str::<serde_json::Value>(&frames[0]).expect("JSON"), first);
        assert!(frames.len() == 3 && frames[1].contains("three") && frames[2].contains("four"), "{frames:?}");
    }

    #[tokio::test]
    async fn a_close_comes_after_what_waits() {
        let (outbox, mut mail) = Outbox::new(1000);
        outbox.ping();
        outbox.send(text(1), Urgency::Needed);
        outbox.close(1012, "service restart");
        assert_eq!(kinds(&mut mail, 3).await, ["ping", "text 1", "close 1012 service restart"]);
    }

    #[test]
    fn a_reason_is_cut_to_what_fits_between_characters() {
        let long = "ä".repeat(100);
        let farewell = Farewell::new(1008, &long);
        assert_eq!(farewell.reason.len(), 122);
        assert!(long.starts_with(&farewell.reason));
    }
}
