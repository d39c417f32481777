//! The socket: how do many texts get to many clients at little cost?
//!
//! Reading, signs of life and the last word are tungstenite's. Texts go past it: it would copy each of them into a buffer
//! that stays as large as the largest text ever was, and hand each to the system alone. Here a text that many hear is one
//! piece of memory, and all that waits for a client goes out together.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::{Sink, Stream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::wire::MAX_FRAME;

/// What is set aside for reading from each client: most only listen.
const READ_BUFFER: usize = 2 * 1024;

/// How many texts are handed to the system at once.
const TOGETHER: usize = 64;

/// The longest head of a frame that a server writes: a kind and a length.
const MAX_HEAD: usize = 10;

/// How the only frame of a message begins.
const TEXT: u8 = 0x81;
const BINARY: u8 = 0x82;

/// One end of a WebSocket, that of the server. Nothing may be sent after a close, whoever sent it.
pub(crate) struct Socket<S>(WebSocketStream<Line<S>>);

/// A stream, and the texts that are to be written to it before anything else.
struct Line<S> {
    stream: S,
    waiting: VecDeque<Frame>,
    /// How much of the first of them was written.
    written: usize,
}

/// A text with its head.
struct Frame {
    head: [u8; MAX_HEAD],
    head_length: usize,
    text: Bytes,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Socket<S> {
    /// Of a stream on which both sides have agreed to speak so.
    pub(crate) async fn new(stream: S) -> Self {
        let config = WebSocketConfig::default()
            .max_message_size(Some(MAX_FRAME))
            .max_frame_size(Some(MAX_FRAME))
            .read_buffer_size(READ_BUFFER)
            .write_buffer_size(0);
        let line = Line { stream, waiting: VecDeque::new(), written: 0 };
        Self(WebSocketStream::from_raw_socket(line, Role::Server, Some(config)).await)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Stream for Socket<S> {
    type Item = Result<Message, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut self.0).poll_next(cx)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Sink<Message> for Socket<S> {
    type Error = Error;

    fn poll_ready(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        // As long as texts wait, no part of any other frame is written. Otherwise one may be written in part, and has to be
        // whole before a text can follow it.
        if (1..TOGETHER).contains(&self.0.get_ref().waiting.len()) {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn start_send(mut self: Pin<&mut Self>, message: Message) -> Result<(), Error> {
        match message {
            Message::Text(text) => {
                self.0.get_mut().waiting.push_back(Frame::new(TEXT, Bytes::from(text)));
                Ok(())
            }
            Message::Binary(bytes) => {
                self.0.get_mut().waiting.push_back(Frame::new(BINARY, bytes));
                Ok(())
            }
            other => Pin::new(&mut self.0).start_send(other),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Pin::new(&mut self.0).poll_close(cx)
    }
}

impl Frame {
    /// A whole message in one frame, unmasked, as servers write them.
    fn new(kind: u8, text: Bytes) -> Self {
        let mut head = [0; MAX_HEAD];
        head[0] = kind;
        let head_length = match (u8::try_from(text.len()), u16::try_from(text.len())) {
            (Ok(short @ ..126), _) => {
                head[1] = short;
                2
            }
            (_, Ok(middle)) => {
                head[1] = 126;
                head[2..4].copy_from_slice(&middle.to_be_bytes());
                4
            }
            (_, Err(_)) => {
                head[1] = 127;
                head[2..].copy_from_slice(&(text.len() as u64).to_be_bytes());
                MAX_HEAD
            }
        };
        Self { head, head_length, text }
    }

    fn len(&self) -> usize {
        self.head_length + self.text.len()
    }

    /// What is left of it after so many bytes.
    fn after(&self, written: usize) -> [&[u8]; 2] {
        let head = &self.head[written.min(self.head_length)..self.head_length];
        [head, &self.text[written.saturating_sub(self.head_length)..]]
    }
}

impl<S: AsyncWrite + Unpin> Line<S> {
    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.waiting.is_empty() {
            let mut left = Vec::with_capacity(2 * self.waiting.len().min(TOGETHER));
            for (place, frame) in self.waiting.iter().take(TOGETHER).enumerate() {
                let written = if place == 0 { self.written } else { 0 };
                left.extend(frame.after(written).into_iter().filter(|part| !part.is_empty()).map(IoSlice::new));
            }
            let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, &left))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.advance(written);
        }
        Poll::Ready(Ok(()))
    }

    fn advance(&mut self, written: usize) {
        self.written += written;
        while let Some(length) = self.waiting.front().map(Frame::len).filter(|length| *length <= self.written) {
            self.written -= length;
            self.waiting.pop_front();
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Line<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Line<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_drain(cx))?;
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_drain(cx))?;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_drain(cx))?;
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{SinkExt, StreamExt};
    use tokio::io::{AsyncReadExt, DuplexStream, duplex};
    use tokio_tungstenite::tungstenite::Utf8Bytes;

    use super::*;

    /// Both ends of a line on which so many bytes are under way at most.
    async fn ends(room: usize) -> (Socket<DuplexStream>, WebSocketStream<DuplexStream>) {
        let (here, there) = duplex(room);
        (Socket::new(here).await, WebSocketStream::from_raw_socket(there, Role::Client, None).await)
    }

    /// Lengths around those where the head changes, and some that take many writes.
    const LENGTHS: [usize; 10] = [0, 1, 125, 126, 127, 65_535, 65_536, 65_537, 3, 200_000];

    #[tokio::test]
    async fn texts_of_all_lengths_arrive_whole_and_in_order_however_little_is_taken_at_once() {
        for room in [1, 7, 4096, 1 << 20] {
            let (mut server, mut client) = ends(room).await;
            // One byte at a time takes a while, so not all of them.
            let lengths = if room == 1 { &LENGTHS[..5] } else { &LENGTHS[..] };
            let texts: Vec<String> =
                lengths.iter().map(|&length| "ä".repeat(length / 2) + &"x".repeat(length % 2)).collect();
            let send = async {
                for text in &texts {
                    server.feed(Message::text(text.as_str())).await.expect("taken");
                }
                server.flush().await.expect("sent");
            };
            let hear = async {
                for text in &texts {
                    assert_eq!(client.next().await.expect("open").expect("a frame").into_text().expect("text"), *text);
                }
            };
            tokio::join!(send, hear);
        }
    }

    #[tokio::test]
    async fn answers_to_pings_and_questions_go_between_texts_and_never_into_them() {
        for room in [3, 64, 4096] {
            let (server, client) = ends(room).await;
            let ((mut writer, mut reader), (mut asks, mut back)) = (server.split(), client.split());
            let text = "t".repeat(300);
            let server = async {
                for _ in 0..100 {
                    writer.feed(Message::text(text.as_str())).await.expect("taken");
                    writer.feed(Message::Ping(Bytes::new())).await.expect("taken");
                    writer.send(Message::text(text.as_str())).await.expect("sent");
                }
                writer.send(Message::Close(None)).await.expect("sent");
            };
            // The pongs are written by whoever reads.
            let serve = async { while let Some(Ok(_)) = reader.next().await {} };
            let ask = async {
                while asks.send(Message::Ping(Bytes::from_static(b"?"))).await.is_ok() {
                    tokio::task::yield_now().await;
                }
            };
            let hear = async {
                let mut heard = 0;
                while let Some(Ok(message)) = back.next().await {
                    match message {
                        Message::Text(said) => {
                            assert_eq!(said.as_str(), text);
                            heard += 1;
                        }
                        Message::Close(_) => break,
                        _ => {}
                    }
                }
                heard
            };
            let told = async { tokio::join!(server, hear).1 };
            let heard = tokio::select! {
                heard = told => heard,
                _ = async { tokio::join!(serve, ask) } => panic!("nobody else ends it"),
            };
            assert_eq!(heard, 200, "{room}");
        }
    }

    #[tokio::test]
    async fn what_waits_goes_out_together_without_a_copy() {
        let (mut server, _client) = ends(1 << 20).await;
        let text = Utf8Bytes::from("x".repeat(1000));
        for _ in 0..TOGETHER {
            server.feed(Message::Text(text.clone())).await.expect("taken");
        }
        let line = server.0.get_ref();
        assert_eq!(line.waiting.len(), TOGETHER, "nothing is written before it has to be");
        assert!(line.waiting.iter().all(|frame| std::ptr::eq(frame.text.as_ptr(), text.as_str().as_ptr())));
        server.flush().await.expect("sent");
        assert!(server.0.get_ref().waiting.is_empty());
    }

    #[tokio::test]
    async fn a_close_comes_after_texts_that_nobody_waited_for() {
        let (here, mut there) = duplex(1 << 10);
        let mut server = Socket::new(here).await;
        server.feed(Message::text("last")).await.expect("taken");
        server.send(Message::Close(None)).await.expect("sent");
        drop(server);
        let mut heard = Vec::new();
        there.read_to_end(&mut heard).await.expect("read");
        assert_eq!(heard, b"\x81\x04last\x88\x00");
    }
}
