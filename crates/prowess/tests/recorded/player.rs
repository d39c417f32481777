//! The player: sends what a recording sent, and holds what comes back against it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use crate::recorded::shape::differences;
use crate::recorded::stage::Stage;

/// How long anything may take; far longer than it does.
const PATIENCE: Duration = Duration::from_secs(60);

/// Events that come by themselves and are not part of what was asked for.
const UNASKED: [&str; 6] = ["tick", "presence", "health", "heartbeat", "skills.changed", "connect.challenge"];

/// Plays `recording` and returns every difference, each told once.
pub(crate) async fn play(recording: &Value, stage: &Stage) -> BTreeSet<String> {
    let steps = recording["steps"].as_array().expect("steps");
    let mut player = Player { stage, lines: HashMap::new(), approvals: Vec::new(), seen: BTreeSet::new() };
    for (place, step) in steps.iter().enumerate() {
        let conn = step["conn"].as_str().expect("a connection");
        if step.get("send").is_some() || step.get("raw").is_some() {
            player.send(conn, step).await;
        } else if let Some(answer) = step.get("answer") {
            player.answer(conn, answer).await;
        } else if let Some(code) = step.get("close") {
            player.close(conn, code).await;
        } else if step["event"] == "chat/final" && last_sent(&steps[..place]) == "chat.send" {
            // Nothing else tells that such a turn is over.
            let so_far = &steps[..=place];
            player.finals(conn, so_far.iter().filter(|step| step["event"] == "chat/final").count()).await;
        }
    }
    player.compare_events(steps, &recording["sometimes"]);
    player.seen
}

/// What was asked for last.
fn last_sent(steps: &[Value]) -> &str {
    let sent = steps.iter().rev().find_map(|step| step["send"]["method"].as_str());
    sent.unwrap_or_default()
}

struct Player<'a> {
    stage: &'a Stage,
    lines: HashMap<String, Line>,
    /// The ids of questions, in the order in which they were put.
    approvals: Vec<String>,
    seen: BTreeSet<String>,
}

/// One connection, and what was heard on it.
struct Line {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    answers: Vec<Value>,
    events: Vec<Value>,
    closed: Option<u16>,
}

impl Player<'_> {
    async fn send(&mut self, conn: &str, step: &Value) {
        if !self.lines.contains_key(conn) {
            let line = Line::open(&self.stage.url()).await;
            self.lines.insert(conn.to_owned(), line);
        }
        let mut text = match step.get("raw") {
            Some(raw) => raw.as_str().expect("a text").to_owned(),
            None => self.stage.expand(&step["send"].to_string()),
        };
        if let Some(at) = text.find("$APPROVAL") {
            let number: usize =
                text[at + 9..].chars().next().and_then(|digit| digit.to_digit(10)).expect("a number") as usize;
            while self.approvals.len() < number {
                self.hear(conn, "a question").await;
            }
            text = text.replace(&format!("$APPROVAL{number}"), &self.approvals[number - 1]);
        }
        let line = self.lines.get_mut(conn).expect("open");
        line.socket.send(Message::text(text)).await.expect("sent");
    }

    async fn answer(&mut self, conn: &str, expected: &Value) {
        let id = expected["id"].as_str().expect("an id");
        loop {
            let line = self.lines.get_mut(conn).expect("open");
            if let Some(place) = line.answers.iter().position(|answer| answer["id"] == id) {
                let answer = line.answers.remove(place);
                return self.compare(id, expected, &answer);
            }
            self.hear(conn, &format!("the answer to {id}")).await;
        }
    }

    /// Waits until so many answers of models were told.
    async fn finals(&mut self, conn: &str, count: usize) {
        let is_final = |event: &&Value| kind_of(event) == "chat/final";
        while self.lines[conn].events.iter().filter(is_final).count() < count {
            self.hear(conn, "the end of a turn").await;
        }
    }

    fn compare(&mut self, id: &str, expected: &Value, answer: &Value) {
        let mut found = Vec::new();
        if expected["ok"] == answer["ok"] {
            if let Some(code) = expected.get("code")
                && *code != answer["error"]["code"]
            {
                found.push(format!("error.code is {} and not {code}", answer["error"]["code"]));
            }
            for (shape, value, path) in [
                (expected.get("payload"), answer.get("payload"), "payload"),
                (expected.get("details"), answer["error"].get("details"), "error.details"),
            ] {
                match (shape, value) {
                    (Some(shape), Some(value)) => differences(shape, value, path, &mut found),
                    (Some(_), None) => found.push(format!("{path} is missing")),
                    (None, Some(_)) => found.push(format!("{path} is added")),
                    (None, None) => {}
                }
            }
        } else {
            found.push(format!("ok is {} and not {}", answer["ok"], expected["ok"]));
        }
        self.seen.extend(found.into_iter().map(|difference| format!("{id}: {difference}")));
    }

    async fn close(&mut self, conn: &str, code: &Value) {
        while self.lines[conn].closed.is_none() {
            self.hear(conn, "the end of the connection").await;
        }
        let heard = self.lines[conn].closed;
        if heard.map(u64::from) != code.as_u64() {
            self.seen.insert(format!("{conn}: closed with {} and not {code}", heard.unwrap_or_default()));
        }
    }

    /// Takes in the next thing that is said on a connection.
    async fn hear(&mut self, conn: &str, what: &str) {
        let line = self.lines.get_mut(conn).expect("open");
        let heard = tokio::time::timeout(PATIENCE, line.socket.next()).await;
        let heard = heard.unwrap_or_else(|_| panic!("waited in vain for {what}\n{}", self.stage.log()));
        match heard {
            Some(Ok(Message::Text(text))) => {
                let frame: Value = serde_json::from_str(&text).expect("JSON");
                if frame["event"] == "exec.approval.requested" {
                    self.approvals.push(frame["payload"]["id"].as_str().unwrap_or_default().to_owned());
                }
                if frame["type"] == "res" { line.answers.push(frame) } else { line.events.push(frame) }
            }
            Some(Ok(Message::Close(last))) => line.closed = Some(last.map_or(1000, |last| last.code.into())),
            Some(Ok(_)) => {}
            Some(Err(_)) | None => {
                assert!(line.closed.is_none(), "waited for {what} on a connection that has ended");
                line.closed = Some(1006);
            }
        }
    }

    /// Every kind of event that was recorded has to have come, in its shape, and no other; but some come only if there is
    /// time.
    fn compare_events(&mut self, steps: &[Value], sometimes: &Value) {
        let may_come = |kind: &str| sometimes.as_array().is_some_and(|kinds| kinds.iter().any(|one| *one == *kind));
        let mut expected: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
        for step in steps {
            if let Some(kind) = step["event"].as_str().filter(|kind| !UNASKED.contains(kind)) {
                expected.entry(kind).or_default().push(step);
            }
        }
        let heard: Vec<&Value> = self.lines.values().flat_map(|line| &line.events).collect();
        for (kind, recorded) in &expected {
            let own: Vec<&&Value> = heard.iter().filter(|event| kind_of(event) == *kind).collect();
            if own.is_empty() {
                self.seen.insert(format!("{kind}: never came"));
            }
            for event in own {
                let fitting = recorded.iter().map(|step| differences_of(step, event));
                let best = fitting.min_by_key(Vec::len).unwrap_or_default();
                self.seen.extend(best.into_iter().map(|difference| format!("{kind}: {difference}")));
            }
        }
        for event in heard {
            let kind = kind_of(event);
            if !expected.contains_key(kind.as_str()) && !UNASKED.contains(&kind.as_str()) && !may_come(&kind) {
                self.seen.insert(format!("{kind}: came and was not recorded"));
            }
        }
    }
}

fn differences_of(step: &Value, event: &Value) -> Vec<String> {
    let mut found = Vec::new();
    differences(&step["payload"], &event["payload"], "payload", &mut found);
    if step["numbered"] != event.get("seq").is_some() {
        found.push(format!("seq {}", if event.get("seq").is_some() { "is added" } else { "is missing" }));
    }
    found
}

/// The name of an event, with what tells its kinds apart.
fn kind_of(event: &Value) -> String {
    let name = event["event"].as_str().unwrap_or_default();
    let payload = &event["payload"];
    match (name, payload["stream"].as_str(), payload["data"]["phase"].as_str(), payload["state"].as_str()) {
        ("agent", Some(stream), Some(phase), _) => format!("agent/{stream}/{phase}"),
        ("agent", Some(stream), None, _) => format!("agent/{stream}"),
        ("chat", _, _, Some(state)) => format!("chat/{state}"),
        _ => name.to_owned(),
    }
}

impl Line {
    async fn open(url: &str) -> Self {
        let (socket, _) = tokio_tungstenite::connect_async(url).await.expect("a connection");
        Self { socket, answers: Vec::new(), events: Vec::new(), closed: None }
    }
}
