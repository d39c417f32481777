//! What happens to those who do it wrong, and do others notice?

use std::cell::RefCell;
use std::sync::Once;
use std::time::Duration;

use futures_util::SinkExt;
use prowess_gateway::{Limits, Options};
use prowess_testkit::Tree;
use serde_json::json;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::room::{Room, TOKEN};
use crate::wire::line::{Heard, Line, PATIENCE, connect};

async fn entered(room: &Room) -> Line {
    let mut line = Line::open(room).await;
    line.nonce().await;
    assert_eq!(line.ask("connect", connect(TOKEN)).await["ok"], true);
    line
}

fn limited(limits: Limits) -> Options {
    Options { limits, ..Options::default() }
}

#[tokio::test]
async fn each_kind_of_broken_message_is_refused_and_logged_once() {
    Log::listen();
    let room = Room::open(Tree::new()).await;
    let mut line = entered(&room).await;
    let deep = "[".repeat(100_000);
    for _ in 0..50 {
        line.say("not json").await;
        line.say(r#"{"type":"nope"}"#).await;
        line.say(deep.as_str()).await;
        line.0.send(Message::binary(vec![1, 2, 3])).await.expect("sent");
    }
    for _ in 0..100 {
        let answer = line.answer().await;
        assert_eq!((&answer["id"], &answer["ok"]), (&json!("invalid"), &json!(false)));
    }
    let answer = line.ask("system-presence", json!({})).await;
    assert_eq!(answer["ok"], true, "it is still listened to");
    let lines = Log::lines("refused a message");
    // The name of a connection is another one each time.
    let mut lines: Vec<&str> = lines.iter().filter_map(|line| line.split(" \"").next()).collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "refused a message: binary",
            "refused a message: nested too deep",
            "refused a message: not JSON",
            "refused a message: not a request",
        ]
    );
    room.running.end().await;
}

#[tokio::test]
async fn whoever_is_not_let_in_is_logged_once_without_what_they_said() {
    Log::listen();
    let room = Room::open(Tree::new()).await;
    let mut line = Line::open(&room).await;
    line.nonce().await;
    line.ask("connect", connect("a-wrong-secret")).await;
    line.last_word().await;
    let lines = Log::lines("connection refused");
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(!Log::lines("").iter().any(|line| line.contains("a-wrong-secret")));
    room.running.end().await;
}

#[tokio::test]
async fn strangers_may_say_little() {
    let room = Room::open(Tree::new()).await;
    let mut line = Line::open(&room).await;
    line.nonce().await;
    let mut params = connect(TOKEN);
    params["userAgent"] = "x".repeat(70 * 1024).into();
    line.say(json!({"type": "req", "id": "1", "method": "connect", "params": params}).to_string()).await;
    let last = line.last_word().await;
    assert!(matches!(last, Heard::Gone | Heard::Closed(1009, _)), "{last:?}");
    let mut line = entered(&room).await;
    let long = line.ask(&"m".repeat(200 * 1024), json!({})).await;
    assert_eq!(long["ok"], false, "who was let in may say more");
    room.running.end().await;
}

#[tokio::test]
async fn a_message_beyond_the_limit_ends_the_connection() {
    let room = Room::open(Tree::new()).await;
    let mut line = entered(&room).await;
    line.say("x".repeat(26 * 1024 * 1024)).await;
    let last = line.last_word().await;
    assert!(matches!(last, Heard::Gone | Heard::Closed(1009, _)), "{last:?}");
    assert!(room.operator().await.call("system-presence", json!({})).await.is_ok());
    room.running.end().await;
}

#[tokio::test]
async fn a_client_that_does_not_listen_is_sent_away_and_others_do_not_notice() {
    let limits = Limits { buffered: 256 * 1024, ..Limits::default() };
    let room = Room::open_with(Tree::new(), limited(limits)).await;
    let mut line = entered(&room).await;
    // Each answer repeats its id. How much the system takes before the gateway has to keep it is not our business.
    let request = json!({"type": "req", "id": "x".repeat(64 * 1024), "method": "no.such"}).to_string();
    let sent_away = timeout(2 * PATIENCE, async { while line.0.send(Message::text(request.clone())).await.is_ok() {} });
    sent_away.await.expect("it is sent away in time");
    let last = line.last_word().await;
    assert!(matches!(last, Heard::Gone | Heard::Closed(1008, _)), "{last:?}");
    assert!(room.operator().await.call("system-presence", json!({})).await.is_ok());
    room.running.end().await;
}

#[tokio::test]
async fn a_client_that_gives_no_sign_of_life_is_sent_away() {
    let limits = Limits { tick: Duration::from_millis(500), missed_ticks: 2, ..Limits::default() };
    let room = Room::open_with(Tree::new(), limited(limits)).await;
    let mut dead = entered(&room).await;
    let alive = room.operator().await;
    let mut events = alive.events();
    let mut ticks = 0;
    while ticks < 6 {
        let event = timeout(PATIENCE, events.recv()).await.expect("in time").expect("an event");
        ticks += usize::from(event.name == "tick");
    }
    let last = dead.last_word().await;
    assert!(matches!(last, Heard::Gone | Heard::Closed(1001, _)), "{last:?}");
    room.running.end().await;
}

#[tokio::test]
async fn more_requests_at_once_than_are_worked_on_are_refused_for_now() {
    let room = Room::open_with(Tree::new(), limited(Limits { in_flight: 0, ..Limits::default() })).await;
    let mut line = entered(&room).await;
    let answer = line.ask("system-presence", json!({})).await;
    assert_eq!((&answer["error"]["code"], &answer["error"]["retryable"]), (&json!("UNAVAILABLE"), &json!(true)));
    room.running.end().await;
}

thread_local! {
    /// What was logged on this thread, which is one test's own.
    static LINES: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Remembers what is logged. It hears all threads: one that heard only its own could be made deaf by another, because
/// whether anybody listens is decided for all threads at once.
struct Log;

impl Log {
    fn listen() {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| tracing::subscriber::set_global_default(Self).expect("nobody else listens"));
    }

    fn lines(beginning: &str) -> Vec<String> {
        LINES.with_borrow(|lines| lines.iter().filter(|line| line.starts_with(beginning)).cloned().collect())
    }
}

impl Subscriber for Log {
    fn enabled(&self, about: &Metadata<'_>) -> bool {
        about.target().starts_with("prowess_gateway") && *about.level() <= Level::DEBUG
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        struct Message(String);
        impl Visit for Message {
            fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
                if field.name() == "message" {
                    self.0.insert_str(0, &format!("{value:?}"));
                } else {
                    self.0 = format!("{} {value:?}", self.0);
                }
            }
        }
        let mut message = Message(String::new());
        event.record(&mut message);
        LINES.with_borrow_mut(|lines| lines.push(message.0));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
