//! The wire: how are requests, answers and events written?
//!
//! Text frames of JSON, in the shapes of protocol version 3. Everything here is pure.

use serde::Serialize;
use serde_json::{Value, json};

use crate::params::{ANY, Kind, Shape, TEXT, optional, required, shape};

/// The version of the protocol that is spoken.
pub const PROTOCOL: u64 = 3;

/// How many bytes a frame may have.
pub const MAX_FRAME: usize = 25 * 1024 * 1024;

/// How many bytes a frame of somebody may have who is not let in yet.
pub const MAX_FIRST_FRAME: usize = 64 * 1024;

/// How deep a frame may nest.
pub const MAX_DEPTH: usize = 96;

/// Stands where a secret is that clients are not shown, in the word that they know. Sent back, it leaves the secret as
/// it is.
pub const REDACTED: &str = "__OPENCLAW_REDACTED__";

/// What every request has.
const REQUEST: Shape = shape(&[
    required("type", Kind::Constant("req")),
    required("id", TEXT),
    required("method", TEXT),
    optional("params", ANY),
]);

/// What a client asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The client's name for it, which the answer repeats.
    pub id: String,
    /// What is to be done.
    pub method: String,
    /// With what.
    pub params: Value,
}

/// Why a request is refused, in the words that clients know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// Something is wrong with the request.
    InvalidRequest,
    /// It cannot be done now.
    Unavailable,
    /// Whoever asks has to be let in first.
    NotPaired,
    /// An agent took too long.
    AgentTimeout,
}

impl Code {
    /// As it is written.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidRequest => "INVALID_REQUEST",
            Self::Unavailable => "UNAVAILABLE",
            Self::NotPaired => "NOT_PAIRED",
            Self::AgentTimeout => "AGENT_TIMEOUT",
        }
    }
}

/// A request that is not granted: what, why, and what to do about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// Of which kind.
    pub code: Code,
    /// For a person.
    pub message: String,
    /// For a program.
    pub details: Option<Box<Value>>,
    /// After how long the same may be asked again, in milliseconds.
    pub retry_after: Option<u64>,
    /// What goes with it: some methods tell how far they came.
    pub payload: Option<Box<Value>>,
}

impl Refusal {
    /// Of that kind.
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), details: None, retry_after: None, payload: None }
    }

    /// Something is wrong with the request.
    #[must_use]
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidRequest, message)
    }

    /// It cannot be done now.
    #[must_use]
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(Code::Unavailable, message)
    }

    /// With details for programs.
    #[must_use]
    pub fn details(self, details: Value) -> Self {
        Self { details: Some(Box::new(details)), ..self }
    }

    /// With what goes with it.
    #[must_use]
    pub fn payload(self, payload: Value) -> Self {
        Self { payload: Some(Box::new(payload)), ..self }
    }

    /// With when to try again.
    #[must_use]
    pub fn retry_after(self, millis: u64) -> Self {
        Self { retry_after: Some(millis), ..self }
    }

    /// The `error` of an answer.
    #[must_use]
    pub fn render(&self) -> Value {
        let mut error = json!({"code": self.code.as_str(), "message": self.message});
        if let Some(details) = &self.details {
            error["details"] = Value::clone(details);
        }
        if let Some(millis) = self.retry_after {
            error["retryable"] = true.into();
            error["retryAfterMs"] = millis.into();
        }
        error
    }
}

/// How often something changed that clients keep a copy of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct StateVersion {
    /// Who is connected.
    pub presence: u64,
    /// How we are.
    pub health: u64,
}

#[derive(Serialize)]
struct AnswerFrame<'a> {
    r#type: &'static str,
    id: &'a str,
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Value>,
}

#[derive(Serialize)]
struct EventFrame<'a> {
    r#type: &'static str,
    event: &'a str,
    payload: &'a Value,
}

/// An event that is written but for its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event(String);

impl Event {
    /// Writes what may be long.
    pub(crate) fn write(name: &str, payload: &Value) -> Self {
        let mut text = write(&EventFrame { r#type: "event", event: name, payload });
        text.pop();
        text.reserve(MAX_END);
        Self(text)
    }

    /// The text of it, with its number if it has one, and the state that it belongs to.
    pub(crate) fn finish(self, seq: Option<u64>, state: Option<StateVersion>) -> String {
        let Self(mut text) = self;
        if let Some(seq) = seq {
            text.push_str(",\"seq\":");
            text.push_str(&seq.to_string());
        }
        if let Some(state) = state {
            text.push_str(",\"stateVersion\":");
            text.push_str(&write(&state));
        }
        text.push('}');
        text
    }
}

/// How long the end of an event is at most.
const MAX_END: usize = 128;

/// The text of an answer.
#[must_use]
pub fn answer(id: &str, result: &Result<Value, Refusal>) -> String {
    let (payload, error) = match result {
        Ok(payload) => (Some(payload), None),
        Err(refusal) => (refusal.payload.as_deref(), Some(refusal.render())),
    };
    write(&AnswerFrame { r#type: "res", id, ok: result.is_ok(), payload, error })
}

/// The text of an event; those that go to everybody have a number.
#[must_use]
pub fn event(name: &str, payload: &Value, seq: Option<u64>) -> String {
    Event::write(name, payload).finish(seq, None)
}

fn write(frame: &impl Serialize) -> String {
    // Only maps with keys that are no texts can fail, and there are none here.
    serde_json::to_string(frame).unwrap_or_default()
}

/// A text that is no request.
#[derive(Debug, Clone, PartialEq)]
pub enum Malformed {
    /// It is not even JSON, so there is nobody to answer.
    NotJson,
    /// It nests so deep that it is not looked at.
    TooDeep,
    /// It is answered under this id.
    Refused {
        /// The id it gave, or a word in its place.
        id: String,
        /// What is wrong.
        refusal: Box<Refusal>,
    },
}

impl Malformed {
    /// In a word, for logs.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::NotJson => "not JSON",
            Self::TooDeep => "nested too deep",
            Self::Refused { .. } => "not a request",
        }
    }
}

/// A request, or what is wrong with a text that is none.
pub fn parse(text: &str) -> Result<Request, Malformed> {
    if depth(text) > MAX_DEPTH {
        return Err(Malformed::TooDeep);
    }
    let mut frame: Value = serde_json::from_str(text).map_err(|_| Malformed::NotJson)?;
    let complaints = REQUEST.complaints(&frame);
    if !complaints.is_empty() {
        let id = frame["id"].as_str().unwrap_or("invalid").to_owned();
        let refusal = Refusal::invalid(format!("invalid request frame: {}", complaints.join("; ")));
        return Err(Malformed::Refused { id, refusal: Box::new(refusal) });
    }
    // Taken out, not copied: parameters may be large.
    let mut take = |name: &str| frame.get_mut(name).map(Value::take).unwrap_or_default();
    let text = |value: Value| match value {
        Value::String(text) => text,
        _ => String::new(),
    };
    Ok(Request { id: text(take("id")), method: text(take("method")), params: take("params") })
}

/// How deep a JSON text nests. What is no JSON may count as deeper than it is, never as shallower.
fn depth(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0_usize);
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'"' => skip_text(&mut bytes),
            _ => {}
        }
    }
    deepest
}

/// Goes behind the quote that ends a text.
fn skip_text(bytes: &mut impl Iterator<Item = u8>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return,
            b'\\' => _ = bytes.next(),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn refused(text: &str) -> (String, String) {
        match parse(text) {
            Err(Malformed::Refused { id, refusal }) => (id, refusal.message),
            other => panic!("{text} was read as {other:?}"),
        }
    }

    #[test]
    fn a_request_is_read() {
        let request = parse(r#"{"type":"req","id":"1","method":"health","params":{"a":[1]}}"#).expect("a request");
        assert_eq!((request.id.as_str(), request.method.as_str()), ("1", "health"));
        assert_eq!(request.params, json!({"a": [1]}));
        let bare = parse(r#"{"type":"req","id":"1","method":"health"}"#).expect("a request");
        assert_eq!(bare.params, Value::Null);
    }

    #[test]
    fn what_is_wrong_with_a_frame_is_told_under_its_id() {
        let cases = [
            (r#"{"type":"req","id":"","method":"m"}"#, "", "at /id: must NOT have fewer than 1 characters"),
            (
                r#"{"type":"nope"}"#,
                "invalid",
                "must have required property 'id'; must have required property 'method'; at /type: must be equal to constant",
            ),
            (r#"{"type":"req","id":"7","method":"m","x":1}"#, "7", "at root: unexpected property 'x'"),
            (r#"{"type":"req","id":7,"method":"m"}"#, "invalid", "at /id: must be string"),
            ("[]", "invalid", "must be object"),
            ("null", "invalid", "must be object"),
        ];
        for (text, id, message) in cases {
            assert_eq!(refused(text), (id.to_owned(), format!("invalid request frame: {message}")), "{text}");
        }
    }

    #[test]
    fn what_nests_too_deep_is_not_looked_at() {
        let nested = |levels: usize| {
            let (open, close) = ("[".repeat(levels), "]".repeat(levels));
            parse(&format!(r#"{{"type":"req","id":"1","method":"m","params":{open}{close}}}"#))
        };
        assert!(nested(MAX_DEPTH - 1).is_ok());
        assert_eq!(nested(MAX_DEPTH), Err(Malformed::TooDeep));
        assert_eq!(nested(1_000_000), Err(Malformed::TooDeep));
        let quoted = format!(r#"{{"type":"req","id":"1","method":"m","params":"{}\\\"["}}"#, "[".repeat(1000));
        assert!(parse(&quoted).is_ok(), "brackets inside a text are no levels");
        assert_eq!(parse("not json"), Err(Malformed::NotJson));
    }

    #[test]
    fn answers_and_events_have_the_keys_that_clients_know() {
        assert_eq!(answer("1", &Ok(json!({"a": 1}))), r#"{"type":"res","id":"1","ok":true,"payload":{"a":1}}"#);
        let refusal = Refusal::unavailable("later").retry_after(5).details(json!({"code": "X"})).payload(json!(1));
        assert_eq!(
            answer("1", &Err(refusal)),
            r#"{"type":"res","id":"1","ok":false,"payload":1,"error":{"code":"UNAVAILABLE","message":"later","details":{"code":"X"},"retryable":true,"retryAfterMs":5}}"#
        );
        let state = StateVersion { presence: 2, health: 3 };
        assert_eq!(
            Event::write("presence", &json!({})).finish(Some(4), Some(state)),
            r#"{"type":"event","event":"presence","payload":{},"seq":4,"stateVersion":{"presence":2,"health":3}}"#
        );
        assert_eq!(event("tick", &json!({"ts": 1}), None), r#"{"type":"event","event":"tick","payload":{"ts":1}}"#);
    }

    proptest! {
        #[test]
        fn whatever_arrives_is_read_or_refused(text in "\\PC*") {
            let _ = parse(&text);
        }

        #[test]
        fn what_looks_like_a_frame_is_read_or_refused(text in r#"[\[\]{}":,a\\ 0-9]{0,400}"#) {
            let _ = parse(&text);
        }

        #[test]
        fn what_json_takes_is_never_too_deep_by_mistake(text in "\\PC*") {
            let frame = json!({"type": "req", "id": "1", "method": "m", "params": text}).to_string();
            prop_assert!(parse(&frame).is_ok());
        }
    }
}
