//! The process tool: can a model follow, feed and end what runs in the background, and nothing else?

#![cfg(target_os = "linux")]

use crate::processes;
use crate::support;
use std::sync::Arc;

use processes::{is_running, pids, says};
use prowess_exec::exec_tool::{self, Plan, Window};
use prowess_exec::job::{Input, Job, Runner};
use prowess_exec::process_tool;
use prowess_exec::tool::ToolResult;
use serde_json::{Value, json};
use support::{Begin, Begins, bash, runner, soon, start};
use tempfile::TempDir;

/// A runner, a folder, and one job in the background.
struct Desk {
    runner: Runner,
    job: Arc<Job>,
    _folder: TempDir,
}

impl Desk {
    async fn new(text: &str, input: Input) -> Self {
        let folder = TempDir::new().expect("a folder");
        let runner = runner();
        let begin = Begin { input, ..start(folder.path()) };
        let plan = Plan { window: Window::AtOnce, timeout: None, warnings: Vec::new() };
        let handle = runner.begin(bash(text), begin).await.expect("a start");
        let result = exec_tool::wait(handle, &plan).await;
        assert_eq!((&result.details["status"], result.is_error), (&json!("running"), false));
        let job = runner.find("scope", result.details["sessionId"].as_str().expect("a name")).expect("a job");
        let said = format!(
            "Command still running (session {}, pid {}). Use process (list/poll/log/write/kill/clear/remove) for follow-up.",
            job.id, job.pid
        );
        assert_eq!(result.text(), said);
        Self { runner, job, _folder: folder }
    }

    async fn ask(&self, action: &str, more: Value) -> ToolResult {
        let mut given = json!({"action": action, "sessionId": self.job.id});
        for (name, value) in more.as_object().expect("arguments") {
            given[name] = value.clone();
        }
        soon(process_tool::run(&self.runner, "scope", &given)).await
    }

    /// The answer with the job's name replaced, as text, status and whether it is an error.
    async fn answer(&self, action: &str, more: Value) -> (String, Value, bool) {
        let result = self.ask(action, more).await;
        (result.text().replace(&self.job.id, "ID"), result.details["status"].clone(), result.is_error)
    }
}

fn failed(text: &str) -> (String, Value, bool) {
    (text.to_owned(), json!("failed"), true)
}

#[tokio::test]
async fn a_poll_tells_what_is_new() {
    let desk = Desk::new("echo one; read -r line; echo two $line; exit 3", Input::Terminal).await;
    says(&desk.job, "one").await;
    let first = desk.ask("poll", json!({})).await;
    assert_eq!(first.text(), "one\n\nProcess still running.");
    assert_eq!((&first.details["status"], &first.details["retryInMs"]), (&json!("running"), &json!(5_000)));
    for wait in [5_000, 10_000, 30_000, 60_000, 60_000] {
        let nothing = desk.ask("poll", json!({"timeout": 0})).await;
        assert_eq!(nothing.text(), "(no new output)\n\nProcess still running.");
        assert_eq!(nothing.details["retryInMs"], wait);
    }
    let wrote = desk.answer("write", json!({"data": "x\n"})).await;
    assert_eq!(wrote, ("Wrote 2 bytes to session ID.".to_owned(), json!("running"), false));
    let last = desk.ask("poll", json!({"timeout": "60000"})).await;
    assert!(last.text().ends_with("two x\n\nProcess exited with code 3."), "{last:?}");
    assert_eq!((&last.details["status"], &last.details["exitCode"]), (&json!("completed"), &json!(3)));
    // Who asks again sees the end of it all.
    let again = desk.ask("poll", json!({})).await.text();
    assert!(again.starts_with("one\n") && again.ends_with("two x\n\nProcess exited with code 3."), "{again}");
}

#[tokio::test]
async fn a_job_without_output_says_so() {
    let desk = Desk::new("true", Input::Closed).await;
    soon(desk.job.wait()).await;
    assert_eq!(desk.ask("poll", json!({})).await.text(), "(no output recorded)\n\nProcess exited with code 0.");
    assert_eq!(desk.ask("log", json!({})).await.text(), "(no output recorded)");
}

#[tokio::test]
async fn a_log_is_read_in_pages() {
    let desk = Desk::new("seq 1 300", Input::Closed).await;
    soon(desk.job.wait()).await;
    let last = desk.ask("log", json!({})).await;
    assert!(last.text().starts_with("101\n"), "{}", last.text());
    assert!(last.text().ends_with("\n300\n\n[showing last 200 of 300 lines; pass offset/limit to page]"));
    assert_eq!((&last.details["totalLines"], &last.details["truncated"]), (&json!(300), &json!(false)));
    assert_eq!(desk.ask("log", json!({"limit": 2})).await.text(), "299\n300");
    assert_eq!(desk.ask("log", json!({"offset": 9, "limit": 2})).await.text(), "10\n11");
}

#[tokio::test]
async fn a_terminal_takes_text_keys_and_pastes() {
    // In this mode every byte is passed on as it is, and shown in hexadecimal.
    let desk = Desk::new("stty raw -echo; echo ready; exec od -An -v -tx1 -w1", Input::Terminal).await;
    says(&desk.job, "ready").await;
    let table = [
        ("write", json!({"data": "hé"}), "Wrote 3 bytes to session ID.", "68 c3 a9"),
        ("submit", json!({}), "Submitted session ID (sent CR).", "0d"),
        ("send-keys", json!({"keys": ["Up", "C-c"]}), "Sent 4 bytes to session ID.", "1b 5b 41 03"),
        ("send-keys", json!({"literal": "a", "hex": ["7e"]}), "Sent 2 bytes to session ID.", "61 7e"),
        ("paste", json!({"text": "b"}), "Pasted 1 chars to session ID.", "1b 5b 32 30 30 7e 62 1b 5b 32 30 31 7e"),
        ("paste", json!({"text": "😀", "bracketed": false}), "Pasted 2 chars to session ID.", "f0 9f 98 80"),
        (
            "send-keys",
            json!({"keys": ["Nope"]}),
            "Sent 4 bytes to session ID.\nWarning: `Nope` is not a known key; it was sent as text.",
            "4e 6f 70 65",
        ),
    ];
    let mut expected = String::from("ready");
    for (action, more, text, bytes) in table {
        assert_eq!(
            desk.answer(action, more.clone()).await,
            (text.to_owned(), json!("running"), false),
            "{action} {more}"
        );
        for byte in bytes.split(' ') {
            expected = format!("{expected}\n {byte}");
        }
    }
    // `od` writes when it has read enough or when it ends.
    desk.ask("write", json!({"data": "\u{4}".repeat(4096)})).await;
    let said = says(&desk.job, "4e\n 6f\n 70\n 65\n").await;
    assert!(said.starts_with(&expected), "{said}");
    for (action, more, text) in
        [("paste", json!({}), "There is no text to paste."), ("send-keys", json!({}), "There are no keys to send.")]
    {
        assert_eq!(desk.answer(action, more).await, failed(text));
    }
    desk.ask("kill", json!({})).await;
    soon(desk.job.wait()).await;
}

#[tokio::test]
async fn input_can_be_closed() {
    let desk = Desk::new("cat; echo over", Input::Piped).await;
    let wrote = desk.answer("write", json!({"data": "last\n", "eof": true})).await;
    assert_eq!(wrote.0, "Wrote 5 bytes to session ID (stdin closed).");
    assert_eq!(soon(desk.job.wait()).await.output.text(), "last\nover\n");
}

#[tokio::test]
async fn without_a_terminal_there_is_no_input() {
    let desk = Desk::new("sleep 1000", Input::Closed).await;
    let refused = desk.answer("write", json!({"data": "x"})).await;
    assert_eq!(
        refused,
        failed("Session ID takes no input: its input is closed. Programs that read input need pty=true.")
    );
    desk.ask("kill", json!({})).await;
    soon(desk.job.wait()).await;
}

#[tokio::test]
async fn what_is_killed_is_gone_but_not_forgotten() {
    let desk = Desk::new("sleep 1000 & echo pid=$$ pid=$! ready; wait", Input::Closed).await;
    let pids = pids(&says(&desk.job, "ready").await);
    assert_eq!(desk.answer("clear", json!({})).await, failed("No finished session found for ID"));
    let killed = desk.answer("kill", json!({})).await;
    assert_eq!(killed, ("Termination requested for session ID.".to_owned(), json!("failed"), false));
    let end = desk.ask("poll", json!({"timeout": 60_000})).await;
    assert!(end.text().ends_with("ready\n\nProcess exited with signal SIGTERM."), "{end:?}");
    assert_eq!(end.details["status"], "failed");
    assert!(pids.len() == 2 && !pids.iter().any(|&pid| is_running(pid)), "{pids:?}");
    for action in ["kill", "write", "submit", "paste", "send-keys"] {
        let more = json!({"data": "x", "text": "x", "keys": ["x"]});
        assert_eq!(desk.answer(action, more).await, failed("No active session found for ID"), "{action}");
    }
    assert_eq!(desk.answer("clear", json!({})).await, ("Cleared session ID.".to_owned(), json!("completed"), false));
    assert_eq!(desk.answer("poll", json!({})).await, failed("No session found for ID"));
}

#[tokio::test]
async fn what_is_removed_is_ended() {
    let desk = Desk::new("echo pid=$$ ready; exec sleep 1000", Input::Closed).await;
    let pids = pids(&says(&desk.job, "ready").await);
    assert_eq!(desk.answer("remove", json!({})).await.0, "Removed session ID (termination requested).");
    assert_eq!(desk.answer("remove", json!({})).await, failed("No session found for ID"));
    soon(desk.job.wait()).await;
    assert!(pids.len() == 1 && !is_running(pids[0]));
    let desk = Desk::new("true", Input::Closed).await;
    soon(desk.job.wait()).await;
    assert_eq!(desk.answer("remove", json!({})).await, ("Removed session ID.".to_owned(), json!("completed"), false));
}

#[tokio::test]
async fn the_list_has_a_line_for_each_job() {
    let desk = Desk::new("sleep -- 1000", Input::Closed).await;
    let list = process_tool::run(&desk.runner, "scope", &json!({"action": "list"})).await;
    let line = list.text();
    let (head, name) = line.split_once(" :: ").unwrap();
    assert!(head.starts_with(&format!("{} running   ", desk.job.id)), "{head}");
    assert_eq!((name, &list.details["sessions"][0]["command"]), ("sleep 1000", &json!("sleep -- 1000")));
    desk.ask("kill", json!({})).await;
    soon(desk.job.wait()).await;
    let list = process_tool::run(&desk.runner, "scope", &json!({"action": "list"})).await;
    assert_eq!(
        (&list.details["sessions"][0]["status"], &list.details["sessions"][0]["exitSignal"]),
        (&json!("failed"), &json!("SIGTERM"))
    );
}

#[tokio::test]
async fn other_conversations_see_nothing() {
    let desk = Desk::new("echo secret; sleep 1000", Input::Closed).await;
    let list = process_tool::run(&desk.runner, "other", &json!({"action": "list"})).await;
    assert_eq!((list.text().as_str(), &list.details["sessions"]), ("No running or recent sessions.", &json!([])));
    for action in ["poll", "log", "write", "submit", "paste", "send-keys", "kill", "clear", "remove"] {
        let given = json!({"action": action, "sessionId": desk.job.id, "data": "x", "text": "x", "keys": ["x"]});
        let result = process_tool::run(&desk.runner, "other", &given).await;
        assert!(result.is_error && result.text().ends_with(&format!("session found for {}", desk.job.id)), "{action}");
        assert!(desk.job.outcome().is_none());
    }
    desk.ask("kill", json!({})).await;
    soon(desk.job.wait()).await;
}

#[tokio::test]
async fn a_job_in_the_foreground_is_nobody_elses() {
    let folder = TempDir::new().unwrap();
    let runner = runner();
    let handle = runner.begin(bash("sleep 1000"), start(folder.path())).await.unwrap();
    let id = handle.job().id.clone();
    for action in ["poll", "log", "write", "kill", "remove"] {
        let result =
            process_tool::run(&runner, "scope", &json!({"action": action, "sessionId": id, "data": "x"})).await;
        assert_eq!((result.text(), result.is_error), (format!("Session {id} is not backgrounded."), true), "{action}");
    }
    handle.job().kill();
    soon(handle.job().wait()).await;
}

#[tokio::test]
async fn calls_that_make_no_sense_are_answered() {
    let runner = runner();
    let table = [
        (json!({"action": "poll"}), "sessionId is required for this action."),
        (json!({"action": "dance", "sessionId": "x"}), "Unknown action dance"),
        (json!({"action": "poll", "sessionId": "x"}), "No session found for x"),
        (json!({"action": "write", "sessionId": "x"}), "No active session found for x"),
        (json!({"action": "clear", "sessionId": "x"}), "No finished session found for x"),
        (
            json!({}),
            "Validation failed for tool \"process\":\n  - action: must have required property 'action'\n\nReceived arguments:\n{}",
        ),
    ];
    for (given, text) in table {
        let result = process_tool::run(&runner, "scope", &given).await;
        assert_eq!((result.text().as_str(), result.is_error), (text, true), "{given}");
    }
}
