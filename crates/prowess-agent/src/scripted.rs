//! The scripted model: what if the answers are known beforehand?
//!
//! It replays a file of turns, for tests, demonstrations and replays. The file is a JSON array, or one JSON object a
//! line; a transcript will do too, and then what its model said is said again.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use serde::Deserialize;
use serde_json::{Map, Value};
use thiserror::Error;

use crate::answer::Answer;
use crate::message::{Block, Message, StopReason, ToolCall, Usage};
use crate::model::{About, Api, Delta, Model, ModelError, Request};

/// Who runs it, as transcripts name them.
pub const PROVIDER: &str = "prowess";

/// Its name there.
pub const MODEL: &str = "scripted";

/// The longest script, in bytes, and the most turns.
pub const MAX_BYTES: u64 = 64 * 1024 * 1024;
const MAX_TURNS: usize = 100_000;

/// The longest wait before an answer, in milliseconds.
const MAX_DELAY: u64 = 60_000;

/// How much of a message an error shows, in characters.
const MAX_SHOWN: usize = 200;

/// One answer of a script.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Turn {
    thinking: String,
    text: String,
    calls: Vec<ScriptedCall>,
    stop: Option<StopReason>,
    usage: Option<Usage>,
    error: Option<ScriptedError>,
    delay_ms: u64,
    expect: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ScriptedCall {
    name: String,
    #[serde(default)]
    arguments: Map<String, Value>,
    #[serde(default)]
    id: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct ScriptedError {
    status: Option<u16>,
    message: String,
    retry_after_ms: Option<u64>,
}

/// Why a script cannot be used.
#[derive(Debug, Error)]
pub enum ScriptError {
    /// The file cannot be read.
    #[error("cannot read the script {file}: {source}")]
    Read {
        /// The file.
        file: String,
        /// Why.
        source: std::io::Error,
    },
    /// It is too long.
    #[error("the script is longer than {MAX_BYTES} bytes or {MAX_TURNS} turns; cut it into several")]
    TooLong,
    /// A turn is not one.
    #[error(
        "turn {turn} of the script is invalid: {why}. \
         A turn is an object with `text`, `thinking`, `calls`, `error`, `stop`, `usage`, `delayMs` and `expect`"
    )]
    Turn {
        /// Which, from 1.
        turn: usize,
        /// Why.
        why: String,
    },
    /// There is no turn in it.
    #[error("the script has no turns; write one JSON object a line, such as {{\"text\": \"hello\"}}")]
    Empty,
}

/// A model that says what a script says.
#[derive(Debug)]
pub struct Scripted {
    about: About,
    turns: Vec<Turn>,
    next: AtomicUsize,
}

impl Scripted {
    /// Reads the script in `file`.
    pub fn load(file: &Path) -> Result<Self, ScriptError> {
        let unreadable = |source| ScriptError::Read { file: file.display().to_string(), source };
        if std::fs::metadata(file).map_err(unreadable)?.len() > MAX_BYTES {
            return Err(ScriptError::TooLong);
        }
        Self::parse(&std::fs::read_to_string(file).map_err(unreadable)?)
    }

    /// Reads a script: a JSON array, JSON lines, or a transcript.
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        let values = values(text)?;
        let is_transcript = values.first().is_some_and(|first| first["type"] == "session");
        let mut turns = Vec::new();
        for (place, value) in values.into_iter().enumerate() {
            if is_transcript {
                turns.extend(said(value));
            } else {
                let turn = Turn::deserialize(value);
                turns.push(turn.map_err(|error| ScriptError::Turn { turn: place + 1, why: error.to_string() })?);
            }
        }
        if turns.is_empty() {
            return Err(ScriptError::Empty);
        }
        if turns.len() > MAX_TURNS {
            return Err(ScriptError::TooLong);
        }
        let about = About {
            provider: PROVIDER.to_owned(),
            model: MODEL.to_owned(),
            api: Api::Embedded,
            context_window: 1_000_000,
            max_tokens: 1_000_000,
            takes_images: true,
        };
        Ok(Self { about, turns, next: AtomicUsize::new(0) })
    }

    /// With the context window of another model, for what depends on it.
    #[must_use]
    pub fn with_context_window(mut self, tokens: u64) -> Self {
        self.about.context_window = tokens;
        self
    }

    /// How many turns have not been played yet.
    #[must_use]
    pub fn left(&self) -> usize {
        self.turns.len().saturating_sub(self.next.load(Ordering::Relaxed))
    }

    /// The next turn as deltas, or why there is none.
    fn play(&self, place: usize, request: &Request<'_>) -> Result<Vec<Delta>, ModelError> {
        let Some(turn) = self.turns.get(place) else {
            let count = self.turns.len();
            return Err(refused(
                400,
                format!("the script has no more turns: all {count} were played; add another turn to it"),
            ));
        };
        let heard = request.messages.last().map(text_of).unwrap_or_default();
        if let Some(expected) = turn.expect.as_deref().filter(|expected| !heard.contains(*expected)) {
            let shown: String = heard.chars().take(MAX_SHOWN).collect();
            let why =
                format!("turn {} of the script expects a message with {expected:?}, but heard {shown:?}", place + 1);
            return Err(refused(400, why));
        }
        if let Some(error) = &turn.error {
            return Err(error.to_model_error());
        }
        let calls = turn.calls.iter().enumerate().map(|(number, call)| ToolCall {
            id: call.id.clone().unwrap_or_else(|| format!("call_{}_{}", place + 1, number + 1)),
            name: call.name.clone(),
            arguments: call.arguments.clone(),
            thought_signature: None,
            provider_data: serde_json::Map::new(),
        });
        let answer = Answer {
            thinking: turn.thinking.clone(),
            text: turn.text.clone(),
            calls: calls.collect(),
            stop: turn.stop.unwrap_or_default(),
            usage: turn.usage.unwrap_or_default(),
        };
        Ok(answer.deltas())
    }
}

impl Model for Scripted {
    fn about(&self) -> &About {
        &self.about
    }

    fn stream<'a>(&'a self, request: Request<'a>) -> BoxStream<'a, Result<Delta, ModelError>> {
        let played = async move {
            // Taken when the call begins, so that one that is dropped unpolled has not happened.
            let place = self.next.fetch_add(1, Ordering::Relaxed);
            let delay = self.turns.get(place).map_or(0, |turn| turn.delay_ms).min(MAX_DELAY);
            if delay > 0 {
                tokio::time::sleep(Duration::from_millis(delay)).await;
            }
            match self.play(place, &request) {
                Ok(deltas) => stream::iter(deltas.into_iter().map(Ok).collect::<Vec<_>>()),
                Err(error) => stream::iter(vec![Err(error)]),
            }
        };
        stream::once(played).flatten().boxed()
    }
}

impl ScriptedError {
    /// The error that a provider's answer of that status is.
    fn to_model_error(&self) -> ModelError {
        let (provider, said) = (PROVIDER.to_owned(), self.message.clone());
        let after = self.retry_after_ms.map(Duration::from_millis);
        match self.status {
            None => ModelError::Connection { provider, why: said },
            Some(401 | 403) => ModelError::Key { provider, said },
            Some(413) => ModelError::Overflow { said },
            Some(status @ (429 | 503 | 529)) => ModelError::Busy { provider, status, said, after },
            Some(status @ 500..) => ModelError::Server { provider, status, said, after },
            Some(status) => refused(status, said),
        }
    }
}

fn refused(status: u16, said: String) -> ModelError {
    ModelError::Request { provider: PROVIDER.to_owned(), status, said }
}

fn values(text: &str) -> Result<Vec<Value>, ScriptError> {
    let text = text.trim_start_matches('\u{feff}');
    if text.trim_start().starts_with('[') {
        let wrong = |error: serde_json::Error| ScriptError::Turn { turn: 1, why: error.to_string() };
        return serde_json::from_str(text).map_err(wrong);
    }
    let mut values = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        match serde_json::from_str(line) {
            Ok(value) => values.push(value),
            // A transcript may end in half a line, and may have been mended in the middle.
            Err(_) if values.first().is_some_and(|first: &Value| first["type"] == "session") => {}
            Err(error) => return Err(ScriptError::Turn { turn: values.len() + 1, why: error.to_string() }),
        }
    }
    Ok(values)
}

/// What the model said in a line of a transcript. Answers that failed or were broken off are not said again.
fn said(mut entry: Value) -> Option<Turn> {
    let Ok(Message::Assistant(message)) = Message::deserialize(entry["message"].take()) else { return None };
    if entry["type"] != "message" || matches!(message.stop_reason, StopReason::Error | StopReason::Aborted) {
        return None;
    }
    let mut turn =
        Turn { stop: Some(message.stop_reason), usage: Some(message.usage), text: message.text(), ..Turn::default() };
    for block in message.content {
        match block {
            Block::Thinking { thinking, .. } => turn.thinking.push_str(&thinking),
            Block::ToolCall(call) => {
                turn.calls.push(ScriptedCall { name: call.name, arguments: call.arguments, id: Some(call.id) });
            }
            Block::Text { .. } | Block::Image(_) | Block::Other(_) => {}
        }
    }
    Some(turn)
}

fn text_of(message: &Message) -> String {
    match message {
        Message::User(user) => user.content.iter().filter_map(Block::as_text).collect::<Vec<_>>().join("\n"),
        Message::Assistant(assistant) => assistant.text(),
        Message::ToolResult(reply) => reply.text(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use futures_util::StreamExt;
    use serde_json::json;

    use super::*;
    use crate::message::{Assistant, User};
    use crate::model::{Draft, Thinking};

    async fn ask(model: &Scripted, text: &str) -> Result<Assistant, ModelError> {
        let messages = [Message::User(User { content: vec![Block::text(text)], timestamp: 0 })];
        let request = Request {
            system: "",
            messages: &messages,
            tools: &[],
            max_tokens: None,
            thinking: Thinking::Off,
            session: "s",
        };
        let mut draft = Draft::new(model.about());
        let mut stream = model.stream(request);
        while let Some(delta) = stream.next().await {
            draft.apply(&delta?);
        }
        Ok(draft.finish().message)
    }

    #[tokio::test]
    async fn turns_are_played_in_order_and_end() {
        let lines = "{\"text\": \"one two\"}\n\n{\"calls\": [{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}, {\"name\": \"exec\", \"id\": \"x\"}]}\n";
        let array = format!("[{}]", lines.trim().replace("\n\n", ","));
        for script in [lines, &array] {
            let model = Scripted::parse(script).expect("a script");
            let first = ask(&model, "hi").await.expect("an answer");
            assert_eq!((first.text().as_str(), first.stop_reason), ("one two", StopReason::Stop));
            let second = ask(&model, "hi").await.expect("an answer");
            let calls: Vec<_> = second.calls().map(|call| (call.id.as_str(), call.name.as_str())).collect();
            assert_eq!((calls, second.stop_reason), (vec![("call_2_1", "read"), ("x", "exec")], StopReason::ToolUse));
            assert_eq!(model.left(), 0);
            let error = ask(&model, "hi").await.expect_err("the end").to_string();
            assert!(error.contains("the script has no more turns"), "{error}");
        }
    }

    #[tokio::test]
    async fn everything_a_turn_can_say() {
        let script = json!([
            {"thinking": "hm", "text": "half a", "stop": "length", "usage": {"input": 3, "output": 2}, "delayMs": 1},
            {"expect": "weather", "text": "sun"},
            {"expect": "weather", "text": "sun"},
        ]);
        let model = Scripted::parse(&script.to_string()).expect("a script");
        let first = ask(&model, "hi").await.expect("an answer");
        assert_eq!((first.stop_reason, first.usage.total_tokens), (StopReason::Length, 5));
        assert!(matches!(&first.content[0], Block::Thinking { thinking, .. } if thinking == "hm"));
        assert_eq!(ask(&model, "the weather").await.expect("an answer").text(), "sun");
        let error = ask(&model, "hello").await.expect_err("another message").to_string();
        assert!(error.contains("turn 3") && error.contains("\"weather\"") && error.contains("\"hello\""), "{error}");
    }

    #[tokio::test]
    async fn errors_are_those_of_their_status() {
        let table = [
            (json!({"status": 529, "message": "m", "retryAfterMs": 5}), true, "busy (529)"),
            (json!({"status": 429}), true, "busy (429)"),
            (json!({"status": 500}), true, "failed (500)"),
            (json!({"status": 400}), false, "refused the request (400)"),
            (json!({"status": 401}), false, "does not accept the key"),
            (json!({"status": 413}), false, "too long"),
            (json!({"message": "gone"}), true, "cannot be reached: gone"),
        ];
        for (error, is_passing, says) in table {
            let model = Scripted::parse(&json!([{ "error": error }]).to_string()).expect("a script");
            let found = ask(&model, "hi").await.expect_err("an error");
            assert_eq!(found.is_passing(), is_passing, "{error}");
            assert!(found.to_string().contains(says), "{found}");
        }
    }

    #[tokio::test]
    async fn a_transcript_is_a_script() {
        let call = json!({"type": "toolCall", "id": "c", "name": "read", "arguments": {"path": "p"}});
        let lines = [
            json!({"type": "session", "version": 3, "id": "s"}),
            json!({"type": "message", "message": {"role": "user", "content": "hi"}}),
            json!({"type": "message", "message": {"role": "assistant", "content": [{"type": "text", "text": "a"}, call], "stopReason": "toolUse"}}),
            json!({"type": "message", "message": {"role": "assistant", "content": [], "stopReason": "aborted"}}),
            json!({"type": "message", "message": {"role": "toolResult", "toolCallId": "c", "content": []}}),
            json!({"type": "message", "message": {"role": "assistant", "content": "done", "stopReason": "stop"}}),
        ];
        let mut lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
        lines.push("{\"type\": \"mess".to_owned());
        let text = lines.join("\n");
        let model = Scripted::parse(&text).expect("a script");
        assert_eq!(model.left(), 2);
        let first = ask(&model, "hi").await.expect("an answer");
        assert_eq!((first.text().as_str(), first.calls().count()), ("a", 1));
        assert_eq!(ask(&model, "hi").await.expect("an answer").text(), "done");
    }

    #[test]
    fn wrong_scripts_are_explained() {
        for (script, says) in [
            ("", "no turns"),
            ("[]", "no turns"),
            ("{\"text\": 1}", "turn 1"),
            ("{\"text\": \"a\"}\n{\"txt\": \"a\"}", "turn 2"),
            ("{\"text\"", "turn 1"),
            ("[1]", "turn 1"),
            ("{\"type\":\"session\"}\n", "no turns"),
        ] {
            let error = Scripted::parse(script).expect_err("no script").to_string();
            assert!(error.contains(says), "{script}: {error}");
        }
        let error = Scripted::load(Path::new("/nowhere/at/all")).expect_err("no file").to_string();
        assert!(error.contains("/nowhere/at/all"), "{error}");
    }
}
