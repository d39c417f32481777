//! What does a model get back for a command: finished, failed, still running, or waiting for a person?

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::{NAME, Plan};
use crate::job::{Exit, Job, Outcome, StartError};
use crate::tool::ToolResult;

/// A command that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    /// The approval's id.
    pub id: String,
    /// When it is too late to answer.
    pub expires_at: SystemTime,
    /// Where the command would run.
    pub host: String,
    /// The command.
    pub command: String,
    /// Its folder.
    pub cwd: String,
    /// The other machine, if it would run there.
    pub node: Option<String>,
}

/// A command that is over.
#[must_use]
pub fn finished(outcome: &Outcome, plan: &Plan, cwd: &str) -> ToolResult {
    let output = outcome.output.text();
    let output = output.trim();
    let mut warnings = plan.warnings.clone();
    warnings.extend(about_processes(outcome));
    warnings.extend(outcome.set_aside.iter().map(ToString::to_string));
    warnings.extend(outcome.failed_connections.iter().cloned());
    if let (Exit::Code(code), true) = (&outcome.exit, outcome.exit.is_completed()) {
        let note = if *code == 0 { String::new() } else { format!("\n\n(Command exited with code {code})") };
        let aggregated = format!("{output}{note}");
        let shown = if aggregated.is_empty() { "(no output)" } else { &aggregated };
        let text = with_warnings(&warnings, shown);
        return ToolResult::done(text, details(outcome, json!({"status": "completed"}), &aggregated, cwd));
    }
    let why = match &outcome.exit {
        Exit::Code(127) => "Command not found".to_owned(),
        Exit::Code(_) => "Command not executable (permission denied)".to_owned(),
        Exit::TimedOut => timed_out(plan.timeout.unwrap_or_default()),
        Exit::Signal(signal) => format!("Command aborted by signal {signal}"),
        Exit::Killed => match &outcome.signal {
            Some(signal) => format!("Command aborted by signal {signal}"),
            None => "Command aborted before exit code was captured".to_owned(),
        },
    };
    let error = if output.is_empty() { why } else { format!("{output}\n\n{why}") };
    let status = json!({"status": "error", "tool": NAME, "error": error});
    ToolResult::failed(with_warnings(&warnings, &error), details(outcome, status, output, cwd))
}

/// A command that did not even start.
#[must_use]
pub fn not_started(error: &StartError) -> ToolResult {
    ToolResult::error(NAME, &format!("The command was not run: {error}."))
}

/// A command that goes on in the background.
#[must_use]
pub fn running(job: &Job, tail: &str, warnings: &[String]) -> ToolResult {
    let text = format!(
        "Command still running (session {}, pid {}). Use process (list/poll/log/write/kill/clear/remove) for follow-up.",
        job.id, job.pid
    );
    let details = json!({
        "status": "running",
        "sessionId": job.id,
        "pid": job.pid,
        "startedAt": millis(job.started_at),
        "cwd": job.cwd,
        "tail": tail,
    });
    ToolResult::done(with_warnings(warnings, &text), details)
}

/// A command that waits for a person.
#[must_use]
pub fn approval_pending(pending: &Pending, warnings: &[String]) -> ToolResult {
    let slug: String = pending.id.chars().take(8).collect();
    let text = format!("Approval required (id {slug}). Approve to run; updates will arrive after completion.");
    let mut details = json!({
        "status": "approval-pending",
        "approvalId": pending.id,
        "approvalSlug": slug,
        "expiresAtMs": millis(pending.expires_at),
        "host": pending.host,
        "command": pending.command,
        "cwd": pending.cwd,
    });
    if let Some(node) = &pending.node {
        details["nodeId"] = json!(node);
    }
    ToolResult::done(with_warnings(warnings, &text), details)
}

/// Milliseconds since 1970.
pub(crate) fn millis(time: SystemTime) -> u64 {
    whole_millis(time.duration_since(UNIX_EPOCH).unwrap_or_default())
}

/// Milliseconds.
pub(crate) fn whole_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn timed_out(timeout: Duration) -> String {
    format!(
        "Command timed out after {} seconds. If this command is expected to take longer, re-run with a higher timeout \
         (e.g., exec timeout=300).",
        timeout.as_secs_f64()
    )
}

fn with_warnings(warnings: &[String], text: &str) -> String {
    if warnings.is_empty() { text.to_owned() } else { format!("{}\n\n{text}", warnings.join("\n")) }
}

/// What became of processes that the command left behind.
fn about_processes(outcome: &Outcome) -> Vec<String> {
    let mut notes = Vec::new();
    if outcome.ended_with_it > 0 {
        notes.push(format!(
            "Note: the command left {} running, which was stopped with it. Use background=true to keep processes running.",
            count(outcome.ended_with_it)
        ));
    }
    if outcome.left > 0 {
        notes.push(format!("Warning: {} of this command could not be stopped.", count(outcome.left)));
    }
    notes
}

fn count(processes: usize) -> String {
    if processes == 1 { "1 process".to_owned() } else { format!("{processes} processes") }
}

/// `start` with what is known about every command that ran.
fn details(outcome: &Outcome, start: Value, aggregated: &str, cwd: &str) -> Value {
    let mut details = start;
    details["exitCode"] = json!(outcome.code);
    details["durationMs"] = json!(whole_millis(outcome.duration));
    details["aggregated"] = json!(aggregated);
    details["cwd"] = json!(cwd);
    if outcome.output.dropped_bytes > 0 {
        details["droppedBytes"] = json!(outcome.output.dropped_bytes);
        details["totalBytes"] = json!(outcome.output.total_bytes);
        details["totalLines"] = json!(outcome.output.total_lines);
    }
    details
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use serde_json::json;

    use super::{Pending, approval_pending};

    #[test]
    fn a_command_that_waits_for_a_person() {
        let pending = Pending {
            id: "0123456789abcdef".to_owned(),
            expires_at: UNIX_EPOCH + Duration::from_secs(5),
            host: "gateway".to_owned(),
            command: "ls".to_owned(),
            cwd: "/ws".to_owned(),
            node: Some("n1".to_owned()),
        };
        let result = approval_pending(&pending, &["Warning: w.".to_owned()]);
        let text =
            "Warning: w.\n\nApproval required (id 01234567). Approve to run; updates will arrive after completion.";
        assert_eq!((result.text().as_str(), result.is_error), (text, false));
        let details = json!({
            "status": "approval-pending", "approvalId": "0123456789abcdef", "approvalSlug": "01234567",
            "expiresAtMs": 5000, "host": "gateway", "command": "ls", "cwd": "/ws", "nodeId": "n1",
        });
        assert_eq!(result.details, details);
    }
}
