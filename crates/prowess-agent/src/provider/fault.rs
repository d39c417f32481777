//! Faults: what does it mean when a provider says no?
//!
//! Statuses and error objects become a [`ModelError`]. What the provider wrote is shown to people, so it is cut to a
//! length and loses its control characters.

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;
use serde_json::Value;

use crate::model::ModelError;

/// How much of a provider's words is shown, in characters.
const SHOWN: usize = 500;
/// How much of something unreadable is shown, in characters.
const EXCERPT: usize = 80;

/// The words by which providers say that a conversation is too long. All are in lower case.
const OVERFLOW: &[&str] = &[
    "context_length_exceeded",
    "exceed_context_size",
    "model_context_window_exceeded",
    "prompt is too long",
    "prompt too long",
    "input is too long",
    "exceed context limit",
    "exceeds context limit",
    "exceeds the context window",
    "exceeds the context length",
    "exceeds the available context",
    "exceeds the model's context",
    "exceeds the maximum number of tokens",
    "exceeds the maximum model length",
    "longer than the maximum model length",
    "maximum context length",
    "maximum prompt length",
    "context size has been exceeded",
    "context window exceeds",
    "greater than the context length",
    "reduce the length of the messages",
    "request_too_large",
];

/// The words by which providers say that a key is wrong, also where the status says something else. In lower case.
const WRONG_KEY: &[&str] = &[
    "incorrect api key",
    "invalid api key",
    "invalid_api_key",
    "api key not valid",
    "api_key_invalid",
    "invalid x-api-key",
    "authentication_error",
    "no auth credentials",
];

/// The words by which they say that there is nothing left to spend: waiting does not help. In lower case.
const NO_QUOTA: &[&str] = &[
    "insufficient_quota",
    "insufficient balance",
    "insufficient credits",
    "credit balance is too low",
    "billing_hard_limit",
    "requires more credits",
];

/// What a server says whose model made a call that does not fit the tool: the next try may be better.
const BAD_CALL: &str = "tool_use_failed";

/// An answer that is not one.
pub(super) struct Refusal<'a> {
    /// The HTTP status.
    pub(super) status: u16,
    /// The beginning of the body.
    pub(super) body: &'a str,
    /// When to come back, if that was said.
    pub(super) after: Option<Duration>,
}

/// What a status that is not success means.
pub(super) fn of_status(provider: &str, refusal: &Refusal<'_>) -> ModelError {
    let (kind, said) = words(refusal.body);
    sorted(provider, refusal.status, &kind, said, refusal.after)
}

/// What an error object in the middle of an answer means. `error` is what stands under `error`, or a whole event.
pub(super) fn of_object(provider: &str, error: &Value) -> ModelError {
    let (kind, said) = object_words(error);
    let status = error["code"].as_u64().or_else(|| error["status"].as_u64()).and_then(|code| u16::try_from(code).ok());
    sorted(provider, status.unwrap_or_else(|| usual_status(&kind)), &kind, said, None)
}

/// An event that cannot be read.
pub(super) fn unreadable(provider: &str, what: &str, data: &str) -> ModelError {
    let why = if data.is_empty() { what.to_owned() } else { format!("{what}: {}", clean(data, EXCERPT)) };
    ModelError::Malformed { provider: provider.to_owned(), why }
}

/// `text` in one line without control characters, at most `limit` characters long.
pub(super) fn clean(text: &str, limit: usize) -> String {
    // The rest is never looked at: a text from outside can be long.
    let start: String = text.chars().take(limit * 4).map(|c| if hides(c) { ' ' } else { c }).collect();
    let mut words = String::new();
    for word in start.split_whitespace() {
        if !words.is_empty() {
            words.push(' ');
        }
        words.push_str(word);
    }
    if words.chars().count() <= limit {
        return words;
    }
    words.chars().take(limit.saturating_sub(1)).chain(['…']).collect()
}

/// When to come back, from `retry-after-ms` and `retry-after`: a number of seconds, or a date.
pub(super) fn retry_after(millis: Option<&str>, after: Option<&str>, now: Timestamp) -> Option<Duration> {
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    if let Some(millis) = millis.and_then(number) {
        return Duration::try_from_secs_f64(millis / 1000.0).ok();
    }
    let after = after?;
    if let Some(seconds) = number(after) {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let then = DateTimeParser::new().parse_timestamp(after.trim()).ok()?;
    Some(Duration::try_from(then.duration_since(now)).unwrap_or_default())
}

/// Characters that a terminal obeys or that turn the order of a line around.
fn hides(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// The kind of an error and what was said, from the body of an answer.
fn words(body: &str) -> (String, String) {
    let body = body.trim_start_matches('\u{feff}').trim();
    if let Ok(value) = serde_json::from_str::<Value>(body) {
        let (outer, error) = match &value {
            // Some gateways put the object into a list.
            Value::Array(items) => (&value, items.first().unwrap_or(&Value::Null)),
            other => (other, other),
        };
        let inner = if error["error"].is_null() { error } else { &error["error"] };
        let (kind, said) = object_words(inner);
        return (kind, if said.is_empty() { clean(&outer.to_string(), SHOWN) } else { said });
    }
    if body.starts_with('<') {
        return (String::new(), web_page(body));
    }
    (String::new(), if body.is_empty() { "no reason was given".to_owned() } else { clean(body, SHOWN) })
}

fn object_words(error: &Value) -> (String, String) {
    if let Value::String(said) = error {
        return (String::new(), clean(said, SHOWN));
    }
    let kinds: Vec<&str> = ["type", "code", "status"].iter().filter_map(|key| error[*key].as_str()).collect();
    let said = ["message", "detail", "error", "msg"].iter().find_map(|key| match &error[*key] {
        Value::String(said) => Some(said.clone()),
        Value::Null => None,
        other => Some(other.to_string()),
    });
    let said = said.unwrap_or_default();
    // Who passes a request on says only that it failed; the reason is further inside.
    let said = match inner_words(&error["metadata"]["raw"]) {
        Some(raw) if !said.contains(&raw) => format!("{said}: {raw}"),
        _ => said,
    };
    let said = clean(&said, SHOWN);
    let kind = clean(&kinds.join(" "), SHOWN);
    let said = if said.is_empty() { kind.clone() } else { said };
    (kind, said)
}

/// What the provider behind the provider said: a text, or an error object as text.
fn inner_words(raw: &Value) -> Option<String> {
    let raw = raw.as_str().map(str::trim).filter(|raw| !raw.is_empty())?;
    let Ok(value @ Value::Object(_)) = serde_json::from_str::<Value>(raw) else { return Some(raw.to_owned()) };
    let inner = if value["error"].is_null() { &value } else { &value["error"] };
    let said = inner.as_str().or_else(|| inner["message"].as_str());
    Some(said.map_or_else(|| raw.to_owned(), str::to_owned))
}

/// What to say about a web page in place of an answer.
pub(super) fn web_page(body: &str) -> String {
    // Only the letters A to Z change, so places in the one are places in the other.
    let lower = body.to_ascii_lowercase();
    let title = lower.find("<title>").map(|at| at + "<title>".len()).and_then(|from| {
        let to = lower[from..].find("</title>")?;
        Some(clean(&body[from..from + to], EXCERPT))
    });
    match title {
        Some(title) if !title.is_empty() => {
            format!("the server returned a web page, \"{title}\" (is the base URL right?)")
        }
        _ => "the server returned a web page (is the base URL right?)".to_owned(),
    }
}

fn sorted(provider: &str, status: u16, kind: &str, said: String, after: Option<Duration>) -> ModelError {
    let provider = provider.to_owned();
    let says = |words: &[&str]| is_said(words, kind) || is_said(words, &said);
    if kind.contains(BAD_CALL) {
        return ModelError::Server { provider, status, said, after };
    }
    if status == 402 || (matches!(status, 400..=499) && says(NO_QUOTA)) {
        return ModelError::Quota { provider, said };
    }
    if status == 400 && says(WRONG_KEY) {
        return ModelError::Key { provider, said };
    }
    if !matches!(status, 401..=403 | 429) && (status == 413 || says(OVERFLOW)) {
        return ModelError::Overflow { said };
    }
    match status {
        401..=403 => ModelError::Key { provider, said },
        429 | 503 | 529 => ModelError::Busy { provider, status, said, after },
        408 | 500.. => ModelError::Server { provider, status, said, after },
        _ => ModelError::Request { provider, status, said },
    }
}

fn is_said(words: &[&str], text: &str) -> bool {
    let text = text.to_lowercase();
    words.iter().any(|words| text.contains(words))
}

/// The status that an error of this kind would have had, had it come before the answer began.
fn usual_status(kind: &str) -> u16 {
    let has = |words: &[&str]| words.iter().any(|word| kind.contains(word));
    if has(&["authentication", "invalid_api_key", "permission"]) {
        401
    } else if has(&["rate_limit", "too_many_requests", "insufficient_quota"]) {
        429
    } else if has(&["overloaded", "unavailable"]) {
        529
    } else if has(&["not_found"]) {
        404
    } else if has(&["invalid", "context_length_exceeded", "exceed_context_size"]) {
        400
    } else if has(&["request_too_large"]) {
        413
    } else {
        500
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(status: u16, body: &str) -> ModelError {
        of_status("p", &Refusal { status, body, after: None })
    }

    #[test]
    fn statuses_mean_what_they_mean() {
        let provider = || "p".to_owned();
        let said = || "no".to_owned();
        let body = r#"{"error":{"message":"no"}}"#;
        for status in [401, 403] {
            assert_eq!(at(status, body), ModelError::Key { provider: provider(), said: said() });
        }
        for status in [400, 404, 405, 422] {
            assert_eq!(at(status, body), ModelError::Request { provider: provider(), status, said: said() });
        }
        for status in [429, 503, 529] {
            assert_eq!(at(status, body), ModelError::Busy { provider: provider(), status, said: said(), after: None });
        }
        for status in [408, 500, 502, 504, 520] {
            assert_eq!(
                at(status, body),
                ModelError::Server { provider: provider(), status, said: said(), after: None }
            );
        }
        let empty = r#"{"error":{"message":"no","type":"insufficient_quota","code":"insufficient_quota"}}"#;
        assert_eq!(at(429, empty), ModelError::Quota { provider: provider(), said: said() });
        assert_eq!(at(402, body), ModelError::Quota { provider: provider(), said: said() });
        let low =
            r#"{"error":{"type":"invalid_request_error","message":"Your credit balance is too low to access it."}}"#;
        assert!(matches!(at(400, low), ModelError::Quota { .. }));
        let wrong_key = r#"{"code":"invalid-argument","error":"Incorrect API key provided."}"#;
        assert!(matches!(at(400, wrong_key), ModelError::Key { .. }));
        let bad_call = r#"{"error":{"message":"no","type":"invalid_request_error","code":"tool_use_failed"}}"#;
        assert!(at(400, bad_call).is_passing(), "the model may do better next time");
    }

    #[test]
    fn too_long_is_heard_in_every_dialect() {
        let table = [
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 213462 tokens > 200000 maximum"}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"Your input exceeds the context window of this model.","type":"invalid_request_error","code":"context_length_exceeded"}}"#,
            ),
            (
                400,
                r#"{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error"}}"#,
            ),
            (
                400,
                r#"{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens","type":"BadRequestError","code":400}"#,
            ),
            (400, r#"{"error":{"message":"This endpoint's maximum context length is 32768 tokens.","code":400}}"#),
            (413, r#"{"error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#),
            (500, r#"{"error":"the request exceeds the available context size"}"#),
        ];
        for (status, body) in table {
            assert!(matches!(at(status, body), ModelError::Overflow { .. }), "{body}");
        }
        let busy = r#"{"error":{"message":"Rate limit: reduce the length of the messages or wait","type":"tokens"}}"#;
        assert!(matches!(at(429, busy), ModelError::Busy { .. }));
    }

    #[test]
    fn errors_inside_an_answer_are_sorted_by_kind_or_code() {
        let table = [
            (json!({"type": "overloaded_error", "message": "Overloaded"}), 529),
            (json!({"type": "rate_limit_error", "message": "slow"}), 429),
            (json!({"code": "rate_limit_exceeded", "message": "slow"}), 429),
            (json!({"code": 503, "message": "no capacity"}), 503),
        ];
        for (error, expected) in table {
            let ModelError::Busy { status, .. } = of_object("p", &error) else { panic!("{error}") };
            assert_eq!(status, expected);
        }
        assert!(matches!(of_object("p", &json!({"type": "api_error", "message": "x"})), ModelError::Server { .. }));
        assert!(matches!(of_object("p", &json!({"type": "authentication_error"})), ModelError::Key { .. }));
        assert!(matches!(of_object("p", &json!({"code": "invalid_prompt"})), ModelError::Request { status: 400, .. }));
        assert!(matches!(of_object("p", &json!("boom")), ModelError::Server { said, .. } if said == "boom"));
    }

    #[test]
    fn words_are_found_wherever_they_are() {
        let table = [
            (r#"{"error":"model 'x' not found"}"#, "model 'x' not found"),
            (r#"{"detail":"Not Found"}"#, "Not Found"),
            (r#"{"error":{"message":"It failed","code":400,"metadata":{"raw":"too hot"}}}"#, "It failed: too hot"),
            (
                r#"{"error":{"message":"It failed","metadata":{"raw":"{\"error\":{\"message\":\"too cold\"}}"}}}"#,
                "It failed: too cold",
            ),
            (r#"{"detail":[{"msg":"bad"}]}"#, r#"[{"msg":"bad"}]"#),
            (r#"[{"error":{"message":"from a list"}}]"#, "from a list"),
            ("{}", "{}"),
            ("", "no reason was given"),
            ("plain\x1b[31m \r\n words\u{202e}", "plain [31m words"),
            (
                "<!doctype html><TITLE>Sign in</TITLE>",
                "the server returned a web page, \"Sign in\" (is the base URL right?)",
            ),
        ];
        for (body, expected) in table {
            assert!(matches!(at(400, body), ModelError::Request { said, .. } if said == expected), "{body}");
        }
        assert_eq!(clean(&"long ".repeat(1000), SHOWN).chars().count(), SHOWN);
    }

    #[test]
    fn when_to_come_back_is_a_number_or_a_date() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a time");
        let seconds = |n| Some(Duration::from_secs(n));
        let table = [
            (None, Some("7"), seconds(7)),
            (None, Some("0.5"), Some(Duration::from_millis(500))),
            (Some("1500"), Some("7"), Some(Duration::from_millis(1500))),
            (None, Some("Thu, 01 Jan 2026 00:01:00 GMT"), seconds(60)),
            (None, Some("Wed, 31 Dec 2025 23:59:00 GMT"), seconds(0)),
            (None, Some("soon"), None),
            (None, Some("-3"), None),
            (None, Some("1e300"), None),
            (None, None, None),
        ];
        for (millis, after, expected) in table {
            assert_eq!(retry_after(millis, after, now), expected, "{millis:?} {after:?}");
        }
    }
}
