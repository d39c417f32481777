//! The process tool: how is it going with what runs in the background, and what should be done about it?
//!
//! Everything is seen through a scope: a job of another conversation is the same as no job.

mod show;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::exec_tool::{millis, whole_millis};
use crate::job::{Exit, Job, Outcome, Runner, Then, WriteError};
use crate::keys::{self, Bracketed};
use crate::output::units;
use crate::tool::{Args, ToolResult};

/// The tool's name.
pub const NAME: &str = "process";

/// The longest a poll waits, in milliseconds.
const LONGEST_POLL: f64 = 120_000.0;

/// When to ask again after nothing new came once, twice, three times, and more often; in milliseconds.
const RETRY: [u32; 4] = [5_000, 10_000, 30_000, 60_000];

/// What the model asked for.
#[derive(Debug, Clone, PartialEq, Default)]
struct Call {
    action: String,
    session: Option<String>,
    data: Option<String>,
    keys: Vec<String>,
    hex: Vec<String>,
    literal: Option<String>,
    text: Option<String>,
    bracketed: Option<bool>,
    eof: bool,
    offset: Option<f64>,
    limit: Option<f64>,
    timeout: Option<f64>,
}

impl Call {
    fn parse(given: &Value) -> Result<Self, ToolResult> {
        let mut args = Args::new(NAME, given);
        let call = Self {
            action: args.required("action"),
            session: args.text("sessionId").filter(|id| !id.is_empty()),
            data: args.text("data"),
            keys: args.texts("keys"),
            hex: args.texts("hex"),
            literal: args.text("literal"),
            text: args.text("text"),
            bracketed: args.flag("bracketed"),
            eof: args.flag("eof").unwrap_or_default(),
            offset: args.number("offset"),
            limit: args.number("limit"),
            timeout: args.number("timeout"),
        };
        args.finish()?;
        Ok(call)
    }
}

/// Answers one call from `scope`.
pub async fn run(runner: &Runner, scope: &str, given: &Value) -> ToolResult {
    let call = match Call::parse(given) {
        Ok(call) => call,
        Err(answer) => return answer,
    };
    if call.action == "list" {
        return list(runner, scope).await;
    }
    let Some(id) = call.session.as_deref() else {
        return failed("sessionId is required for this action.");
    };
    let job = runner.find(scope, id);
    match call.action.as_str() {
        "poll" => match in_background(job, id, "No session found for") {
            Ok(job) => poll(&job, &call).await,
            Err(answer) => answer,
        },
        "log" => match in_background(job, id, "No session found for") {
            Ok(job) => log(&job, &call).await,
            Err(answer) => answer,
        },
        "write" | "submit" | "send-keys" | "paste" => match active(job, id) {
            Ok(job) => send(&job, &call).await,
            Err(answer) => answer,
        },
        "kill" => match active(job, id) {
            Ok(job) => kill(&job),
            Err(answer) => answer,
        },
        "clear" => clear(runner, job, id),
        "remove" => match in_background(job, id, "No session found for") {
            Ok(job) => remove(runner, &job),
            Err(answer) => answer,
        },
        other => failed(format!("Unknown action {other}")),
    }
}

/// What the model is told about the tool.
#[must_use]
pub fn schema() -> Value {
    let texts = |about: &str| json!({"type": "array", "items": {"type": "string"}, "description": about});
    json!({
        "type": "object",
        "required": ["action"],
        "properties": {
            "action": {
                "type": "string",
                "description": "One of list, poll, log, write, submit, send-keys, paste, kill, clear, remove."
            },
            "sessionId": {"type": "string", "description": "The session; for every action but list."},
            "data": {"type": "string", "description": "write: the input."},
            "keys": texts("send-keys: keys by name, such as Enter, Up, C-c, M-x, ^D."),
            "hex": texts("send-keys: bytes in hexadecimal."),
            "literal": {"type": "string", "description": "send-keys: text to send unchanged."},
            "text": {"type": "string", "description": "paste: the text."},
            "bracketed": {"type": "boolean", "description": "paste: mark it as pasted (default true)."},
            "eof": {"type": "boolean", "description": "write: close the input afterwards."},
            "offset": {"type": "number", "description": "log: the first line, from 0."},
            "limit": {"type": "number", "description": "log: how many lines."},
            "timeout": {"type": "number", "minimum": 0, "description": "poll: milliseconds to wait for the end."}
        }
    })
}

async fn list(runner: &Runner, scope: &str) -> ToolResult {
    let mut lines = Vec::new();
    let mut rows = Vec::new();
    for job in runner.list(scope) {
        let outcome = job.outcome();
        let name = show::name(&job.command);
        let runtime = runner.runtime(&job);
        let status = status(outcome.as_deref());
        lines.push(format!("{} {status:<9} {} :: {}", job.id, show::duration(runtime), show::shorten(&name, 80)));
        let mut row = json!({
            "sessionId": job.id,
            "status": status,
            "pid": job.pid,
            "startedAt": millis(job.started_at),
            "runtimeMs": whole_millis(runtime),
            "cwd": job.cwd,
            "command": job.command,
            "name": name,
            "tail": job.tail().await,
        });
        if let Some(outcome) = outcome {
            row["endedAt"] = json!(millis(outcome.ended_at));
            row["exitCode"] = json!(outcome.code);
            row["exitSignal"] = json!(outcome.signal);
        }
        rows.push(row);
    }
    let text = if lines.is_empty() { "No running or recent sessions.".to_owned() } else { lines.join("\n") };
    ToolResult::done(text, json!({"status": "completed", "sessions": rows}))
}

async fn poll(job: &Job, call: &Call) -> ToolResult {
    if let Some(outcome) = job.outcome() {
        let cut = if outcome.output.dropped_bytes > 0 { " — truncated to cap" } else { "" };
        let tail = outcome.tail.trim_end();
        let said = if tail.is_empty() { format!("(no output recorded{cut})") } else { tail.to_owned() };
        return over(job, &outcome, &said);
    }
    let wait = Duration::from_secs_f64(call.timeout.unwrap_or_default().clamp(0.0, LONGEST_POLL) / 1_000.0);
    // Whether it ended in time shows in its state; what came until now is of interest either way.
    let _ = tokio::time::timeout(wait, job.wait()).await;
    let news = job.news().await;
    let said = match (news.drained.text.trim_end(), news.drained.truncated) {
        ("", _) => "(no new output)".to_owned(),
        (text, false) => text.to_owned(),
        (text, true) => format!("[… earlier output omitted; log has more …]\n{text}"),
    };
    if let Some(outcome) = job.outcome() {
        return over(job, &outcome, &said);
    }
    let mut details = about(job, "running");
    details["aggregated"] = json!(job.output().await.text());
    details["retryInMs"] = json!(retry(news.empty));
    ToolResult::done(format!("{said}\n\nProcess still running."), details)
}

fn over(job: &Job, outcome: &Outcome, said: &str) -> ToolResult {
    let mut details = about(job, status(Some(outcome)));
    details["exitCode"] = json!(outcome.code);
    details["exitSignal"] = json!(outcome.signal);
    details["aggregated"] = json!(outcome.output.text());
    let why = if outcome.exit == Exit::TimedOut { " It timed out." } else { "" };
    let aside = outcome.set_aside.iter().fold(String::new(), |text, file| text + "\n" + &file.to_string());
    ToolResult::done(format!("{said}\n\nProcess exited with {}.{why}{aside}", ending(outcome)), details)
}

async fn log(job: &Job, call: &Call) -> ToolResult {
    let kept = job.output().await;
    let outcome = job.outcome();
    let text = kept.text();
    let page = show::page(&text, call.offset, call.limit);
    let empty = if outcome.is_some() { "(no output recorded)" } else { "(no output yet)" };
    let shown = if page.text.is_empty() { empty } else { &page.text };
    let hint = page.hint.unwrap_or_default();
    let mut details = json!({
        "status": status(outcome.as_deref()),
        "sessionId": job.id,
        "total": page.lines,
        "totalLines": page.lines,
        "totalChars": units(&text),
        "truncated": kept.dropped_bytes > 0,
        "droppedBytes": kept.dropped_bytes,
        "name": show::name(&job.command),
    });
    if let Some(outcome) = outcome {
        details["exitCode"] = json!(outcome.code);
        details["exitSignal"] = json!(outcome.signal);
    }
    ToolResult::done(format!("{shown}{hint}"), details)
}

/// Everything that gives a program input.
async fn send(job: &Job, call: &Call) -> ToolResult {
    let id = &job.id;
    let mut then = Then::Continue;
    let (bytes, text) = match call.action.as_str() {
        "submit" => (b"\r".to_vec(), format!("Submitted session {id} (sent CR).")),
        "paste" => {
            let text = call.text.as_deref().unwrap_or_default();
            if text.is_empty() {
                return failed("There is no text to paste.");
            }
            let bracketed = if call.bracketed == Some(false) { Bracketed::No } else { Bracketed::Yes };
            (keys::paste(text, bracketed), format!("Pasted {} chars to session {id}.", units(text)))
        }
        "send-keys" => {
            let typed = keys::encode(call.literal.as_deref(), &call.hex, &call.keys);
            if typed.bytes.is_empty() {
                return failed("There are no keys to send.");
            }
            let mut lines = vec![format!("Sent {} bytes to session {id}.", typed.bytes.len())];
            lines.extend(typed.warnings.iter().map(|warning| format!("Warning: {warning}.")));
            (typed.bytes, lines.join("\n"))
        }
        _ => {
            let bytes = call.data.clone().unwrap_or_default().into_bytes();
            let closed = if call.eof { " (stdin closed)" } else { "" };
            then = if call.eof { Then::Close } else { Then::Continue };
            let text = format!("Wrote {} bytes to session {id}{closed}.", bytes.len());
            (bytes, text)
        }
    };
    match job.write(bytes, then).await {
        Ok(()) => ToolResult::done(text, about(job, "running")),
        Err(WriteError::Ended) => failed(format!("No active session found for {id}")),
        Err(why @ (WriteError::Closed | WriteError::Full)) => {
            failed(format!("Session {id} takes no input: {why}. Programs that read input need pty=true."))
        }
    }
}

fn kill(job: &Job) -> ToolResult {
    job.kill();
    ToolResult::done(format!("Termination requested for session {}.", job.id), about(job, "failed"))
}

fn clear(runner: &Runner, job: Option<Arc<Job>>, id: &str) -> ToolResult {
    match job.filter(|job| job.is_backgrounded() && job.outcome().is_some()) {
        Some(job) => {
            runner.remove(&job);
            ToolResult::done(format!("Cleared session {id}."), json!({"status": "completed"}))
        }
        None => failed(format!("No finished session found for {id}")),
    }
}

fn remove(runner: &Runner, job: &Job) -> ToolResult {
    let was_running = job.outcome().is_none();
    runner.remove(job);
    let id = &job.id;
    if was_running {
        return ToolResult::done(format!("Removed session {id} (termination requested)."), about(job, "failed"));
    }
    ToolResult::done(format!("Removed session {id}."), about(job, "completed"))
}

/// A job that may be asked about by name.
fn in_background(job: Option<Arc<Job>>, id: &str, missing: &str) -> Result<Arc<Job>, ToolResult> {
    match job {
        Some(job) if job.is_backgrounded() => Ok(job),
        Some(_) => Err(failed(format!("Session {id} is not backgrounded."))),
        None => Err(failed(format!("{missing} {id}"))),
    }
}

/// One that runs.
fn active(job: Option<Arc<Job>>, id: &str) -> Result<Arc<Job>, ToolResult> {
    in_background(job.filter(|job| job.outcome().is_none()), id, "No active session found for")
}

fn failed(text: impl Into<String>) -> ToolResult {
    ToolResult::failed(text, json!({"status": "failed"}))
}

fn about(job: &Job, status: &str) -> Value {
    json!({"status": status, "sessionId": job.id, "name": show::name(&job.command)})
}

fn status(outcome: Option<&Outcome>) -> &'static str {
    match outcome {
        None => "running",
        Some(outcome) if outcome.exit.is_completed() => "completed",
        Some(_) => "failed",
    }
}

fn ending(outcome: &Outcome) -> String {
    match (&outcome.signal, outcome.code) {
        (Some(signal), _) => format!("signal {signal}"),
        (None, Some(code)) => format!("code {code}"),
        (None, None) => "no exit code".to_owned(),
    }
}

fn retry(empty: u32) -> u32 {
    let at = usize::try_from(empty.saturating_sub(1)).unwrap_or(usize::MAX);
    RETRY[at.min(RETRY.len() - 1)]
}

#[cfg(test)]
mod tests {
    #[test]
    fn who_asks_in_vain_is_told_to_wait_longer() {
        let waits: Vec<u32> = (0..7).map(super::retry).collect();
        assert_eq!(waits, [5_000, 5_000, 10_000, 30_000, 60_000, 60_000, 60_000]);
    }
}
