//! Faults: what does a person see when the model fails or the program is ended, and does the conversation go on?

#![cfg(target_os = "linux")]

use crate::flow::home;
use home::{APIS, KEY, Line, talking_to};
use prowess_testkit::{Chunking, Heard, ModelServer, Output, Prowess, Running, Turn, eventually};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::json;

/// What goes wrong.
const BAD: &str = "go wrong";
/// What does not.
const GOOD: &str = "go on";

/// A model that does `fault` when it is asked to go wrong, and answers otherwise.
fn failing(fault: Turn) -> ModelServer {
    ModelServer::answering(Chunking::Random(4), move |request| {
        if request.last().ends_with(BAD) { fault.clone() } else { Turn::text("All is well.") }
    })
}

fn status(code: u16, headers: &[(&str, &str)], body: &str) -> Turn {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Turn::Status { code, headers, body: body.to_owned() }
}

/// The one line of stderr that says how it ended.
#[track_caller]
fn verdict(output: &Output) -> String {
    let lines: Vec<&str> = output.stderr().lines().filter(|line| line.starts_with('✗')).collect();
    let [line] = lines.as_slice() else { panic!("not one line says how it ended\n{output}") };
    (*line).to_owned()
}

/// The next message is answered, and the model sees what people said and nothing that is invalid.
#[track_caller]
fn the_conversation_goes_on(home: &Prowess, server: &ModelServer) {
    home.go(&format!("run --continue {GOOD}")).ok().out_has("All is well.");
    let heard = server.requests().last().expect("a request").heard();
    let said: Vec<&str> = heard.iter().filter(|one| matches!(one, Heard::Person(_))).map(Heard::text).collect();
    assert!(said[0].starts_with(BAD) && said[said.len() - 1].ends_with(GOOD), "{heard:?}");
    assert!(matches!(heard.last(), Some(Heard::Person(_))), "{heard:?}");
    for pair in heard.windows(2) {
        if let Heard::Call(name, _) = &pair[0] {
            assert!(matches!(pair[1], Heard::Result(_)), "the call of {name} has no result: {heard:?}");
        }
    }
    home.go("sessions show").ok().out_has(BAD).out_has("All is well.");
}

/// Asks, as a person and as a machine; both see that it failed, why, and what to do.
#[track_caller]
fn fails(turn: Turn, api: &str, why: &str, remedy: &str) -> usize {
    let server = failing(turn);
    let home = talking_to(&server, api);
    let output = home.go(&format!("run {BAD}")).code(1);
    let asked = server.requests().len();
    let line = verdict(&output);
    for part in ["loop", why, remedy] {
        assert!(line.contains(part), "expected: {part}\n{output}");
    }
    assert!(!output.stderr().contains(KEY) && !output.stderr().contains('\u{1b}'), "{output}");
    let told = home.go(&format!("run --json {BAD}")).code(1).json();
    assert_eq!(told["status"], "error", "{told}");
    for part in [why, remedy] {
        assert!(told["summary"].as_str().is_some_and(|summary| summary.contains(part)), "{part}: {told}");
    }
    the_conversation_goes_on(&home, &server);
    asked
}

#[test]
fn what_no_later_try_can_help_is_said_at_once() {
    let page = "<!DOCTYPE html><html><head><title>Sign in</title></head></html>";
    let html = [("content-type", "text/html")];
    let body = |kind: &str| format!(r#"{{"error":{{"type":"{kind}","message":"no \u001b[31m{KEY}"}}}}"#);
    let raw = |text: &str| Turn::Raw(text.as_bytes().to_vec());
    let table = [
        (status(400, &[], &body("invalid_request_error")), "refused the request (400): no ", "--model"),
        (status(401, &[], &body("authentication_error")), "does not accept the key", "check the key"),
        (status(403, &[], &body("permission_error")), "does not accept the key", "check the key"),
        (status(404, &[], &body("not_found_error")), "refused the request (404)", "check the model's name"),
        (status(404, &html, page), "the server returned a web page, \"Sign in\"", "base URL"),
        (raw(page), "the server returned a web page, \"Sign in\"", "base URL"),
        (raw("data: {\"type\": oops\n\n"), "is invalid", "wire format"),
        (raw("{\"hello\": nonsense}"), "is invalid", "wire format"),
        (raw("{\"hello\": \"world\"}"), "is invalid", "wire format"),
    ];
    for (index, (turn, why, remedy)) in table.into_iter().enumerate() {
        assert_eq!(fails(turn, APIS[index % 3], why, remedy), 1, "{why}: it is asked once");
    }
}

#[test]
fn what_may_pass_is_tried_again_when_the_provider_says() {
    for (index, code) in [429, 500, 502, 503, 529].into_iter().enumerate() {
        let turn = status(code, &[("retry-after", "0")], r#"{"error":{"message":"come back later"}}"#);
        let why = format!("({code}): come back later");
        assert_eq!(fails(turn, APIS[index % 3], &why, "try again later"), 4, "{code}: it is asked four times");
    }
    // Longer than anybody wants to wait.
    let turn = status(429, &[("retry-after", "3600")], r#"{"error":{"message":"come back later"}}"#);
    assert_eq!(fails(turn, APIS[0], "come back in 3600 seconds", "try again later"), 1);
}

#[test]
fn a_fault_that_passes_is_only_a_notice() {
    let busy = status(529, &[("retry-after", "0")], "{}");
    let server = ModelServer::script([busy.clone(), busy, Turn::text("All is well.")]);
    let home = talking_to(&server, APIS[0]);
    let output = home.go(&format!("run {GOOD}")).ok();
    assert_eq!(output.stdout(), "All is well.\n");
    output.err_has("↻ loop is busy (529)").err_has("attempt 2").err_has("attempt 3").lacks("✗");
    let heard = home.go("sessions show --json").ok().json();
    assert_eq!(heard["messages"].as_array().map(Vec::len), Some(2), "only what was said is kept: {heard}");
}

/// Starts them all at once, for they mostly wait.
fn side_by_side<'a>(homes: &'a [(Prowess, ModelServer)], line: &str) -> Vec<(&'a Prowess, &'a ModelServer, Output)> {
    let running: Vec<Running<'a>> = homes.iter().map(|(home, _)| home.begin(line)).collect();
    let ended = running.into_iter().map(Running::wait);
    homes.iter().zip(ended).map(|((home, server), output)| (home, server, output)).collect()
}

const ANSWER: &str = "Two lines.\nThis is the second one, and it has some more words.";

#[test]
fn an_answer_that_is_cut_anywhere_is_asked_for_again() {
    let mut homes = Vec::new();
    for api in APIS {
        for after in [0, 1, 180, 700, 1100, 1500] {
            let cut = Turn::Cut { turn: Box::new(Turn::text(ANSWER)), after };
            let server = ModelServer::chunked(Chunking::Random(6), [cut, Turn::text(ANSWER), Turn::text("Yes.")]);
            homes.push((talking_to(&server, api), server));
        }
    }
    for batch in homes.chunks(9) {
        for (home, server, output) in side_by_side(batch, "run 'say two lines'") {
            let output = output.ok();
            assert!(output.stdout().ends_with(&format!("{ANSWER}\n")), "{output}");
            assert!(output.stderr().contains("was cut off; attempt 2"), "{output}");
            assert_eq!(server.requests().len(), 2);
            home.go("run --continue 'was that all?'").ok();
            let heard = server.requests()[2].heard();
            let said: Vec<&str> = heard.iter().map(Heard::text).collect();
            assert_eq!(said, ["say two lines", ANSWER, "was that all?"], "half an answer is nowhere");
        }
    }
}

#[test]
fn who_never_answers_is_given_up_and_the_conversation_goes_on() {
    let half = Turn::Cut { turn: Box::new(Turn::text(ANSWER)), after: 500 };
    let homes: Vec<(Prowess, ModelServer)> = [half, status(500, &[], "<html>"), status(503, &[], "")]
        .into_iter()
        .zip(APIS)
        .map(|(turn, api)| {
            let server = failing(turn);
            (talking_to(&server, api), server)
        })
        .collect();
    // Nobody is there.
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address = format!("http://{}/v1", listener.local_addr().expect("an address"));
    drop(listener);
    let lonely = home::with_skill().config(&home::config(&address, APIS[1]).to_string());
    let unanswered = lonely.begin(&format!("run {BAD}"));
    for (home, server, output) in side_by_side(&homes, &format!("run {BAD}")) {
        let line = verdict(&output.code(1));
        assert!(line.contains("loop") && line.contains("try again later"), "{line}");
        assert_eq!(server.requests().len(), 4);
        the_conversation_goes_on(home, server);
    }
    let output = unanswered.wait().code(1);
    let line = verdict(&output);
    assert!(line.contains("loop cannot be reached") && line.contains("refused"), "{line}");
    assert!(line.contains("prowess models --probe"), "{line}");
    let server = failing(Turn::text("unused"));
    let found = lonely.config(&home::config(&server.base_url(), APIS[1]).to_string());
    the_conversation_goes_on(&found, &server);
}

/// The most memory that a process has had so far, in kilobytes; none when it is gone.
fn peak(id: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// What a program may take, in kilobytes, that is given answers without end.
const MAX_PEAK: u64 = 160_000;

#[test]
fn an_endless_answer_ends_within_bounds() {
    let word = |api: &str| match api {
        "anthropic-messages" => {
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x".repeat(60_000)}})
        }
        "openai-completions" => json!({"choices": [{"delta": {"content": "x".repeat(60_000)}}]}),
        _ => json!({"type": "response.output_text.delta", "output_index": 0, "delta": "x".repeat(60_000)}),
    };
    let endless = |first: &[u8], then: Vec<u8>| Turn::Endless { first: first.to_vec(), then };
    let hundred = {
        let event = format!("data: {}\n\n", word(APIS[1]));
        Turn::Raw(event.repeat(100_000_000 / event.len()).into_bytes())
    };
    let cases = [
        (APIS[0], endless(b"", format!("data: {}\n\n", word(APIS[0])).into_bytes())),
        (APIS[1], hundred),
        (APIS[2], endless(b"", format!("data: {}\n\n", word(APIS[2])).into_bytes())),
        (APIS[1], endless(b"data: \"", vec![b'a'; 60_000])),
        (APIS[0], endless(b"{\"content\": \"", vec![b'a'; 60_000])),
    ];
    for (api, turn) in cases {
        let server = ModelServer::answering(Chunking::Bytes(60_000), move |request| {
            if request.last().ends_with(BAD) { turn.clone() } else { Turn::text("All is well.") }
        });
        let home = talking_to(&server, api);
        let running = home.begin(&format!("run --json {BAD}"));
        let mut most = 0;
        eventually("the program ends", || {
            let now = peak(running.id());
            most = most.max(now.unwrap_or(0));
            now.is_none()
        });
        let output = running.wait().code(1);
        assert!(output.json()["summary"].as_str().is_some_and(|it| it.contains("is longer than")), "{api}");
        assert!(most > 0 && most < MAX_PEAK, "{api}: {most} kB");
        assert!(output.stdout().len() < 1_000_000, "{api}: {} bytes", output.stdout().len());
        the_conversation_goes_on(&home, &server);
    }
}

fn signal(running: &Running<'_>, signal: Signal) {
    let group = Pid::from_raw(i32::try_from(running.id()).expect("a process")).expect("a process");
    kill_process_group(group, signal).expect("it runs");
}

/// A home whose model begins to answer and then falls silent, and the program waiting for it.
fn in_the_middle(api: &str) -> (Prowess, ModelServer) {
    // As much as is needed before an answer is shown at all, in every wire format.
    let long = format!("The first line.\n{}", "More and more words. ".repeat(800));
    let server = failing(Turn::Stall { turn: Box::new(Turn::Text(long)), after: 30_000 });
    (talking_to(&server, api), server)
}

#[test]
fn an_interrupt_ends_the_turn_and_keeps_what_was_said() {
    for (api, wish) in APIS.into_iter().zip([Signal::INT, Signal::TERM, Signal::HUP]) {
        let (home, server) = in_the_middle(api);
        let running = home.begin(&format!("run --events {BAD}"));
        eventually("words are told while the answer is on its way", || running.stdout().contains("More "));
        signal(&running, wish);
        let output = running.wait().code(130);
        assert!(output.stdout().contains("\"aborted\":true"), "{output}");
        let shown = home.go("sessions show --json").ok().json();
        let last = &shown["messages"][1];
        assert_eq!((&last["stopReason"], shown["messages"].as_array().map(Vec::len)), (&json!("aborted"), Some(2)));
        assert!(last["content"][0]["text"].as_str().is_some_and(|text| text.starts_with("The first line.\nMore ")));
        the_conversation_goes_on(&home, &server);
        let heard = server.requests().last().expect("a request").heard();
        assert!(matches!(&heard[1], Heard::Model(text) if text.starts_with("The first line.")), "{heard:?}");
    }
}

#[test]
fn an_interrupt_is_told_machines_too() {
    let (home, server) = in_the_middle(APIS[0]);
    let running = home.begin(&format!("run --json {BAD}"));
    eventually("it has asked", || server.requests().len() == 1);
    signal(&running, Signal::INT);
    let told = running.wait().code(130).json();
    assert_eq!((&told["summary"], &told["result"]["meta"]["aborted"]), (&json!("aborted"), &json!(true)), "{told}");
}

#[test]
fn an_interrupt_ends_the_wait_for_another_try() {
    let server = failing(status(503, &[], "{}"));
    let home = talking_to(&server, APIS[0]);
    let running = home.begin(&format!("run --events {BAD}"));
    eventually("it waits", || running.stdout().contains("\"phase\":\"retry\""));
    signal(&running, Signal::INT);
    running.wait().code(130).out_has("\"aborted\":true");
    assert_eq!(server.requests().len(), 1);
    the_conversation_goes_on(&home, &server);
}

/// Whether a process with this word on its command line runs.
fn runs(word: &str) -> bool {
    let all = std::fs::read_dir("/proc").expect("processes").filter_map(Result::ok);
    let mut lines = all.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.any(|line| String::from_utf8_lossy(&line).contains(word))
}

/// Ends the program while a command runs, with a command line that has a number nobody else sleeps for.
#[track_caller]
fn ended_while_a_command_runs(wish: Signal, seconds: u32) {
    let word = format!("{seconds}.{}", std::process::id());
    let server = failing(Turn::call("call_1", "exec", json!({"command": format!("sleep {word}")})));
    let home = talking_to(&server, APIS[1]);
    home.go("approvals allow sleep").ok();
    let running = home.begin(&format!("run {BAD}"));
    eventually("the command runs", || runs(&word));
    signal(&running, wish);
    let output = running.wait();
    // Whoever is killed outright leaves his commands to their limits.
    if wish != Signal::KILL {
        let _checked = output.code(130).err_has("■ stopped");
        assert!(!runs(&word), "the command ends with the turn");
    }
    the_conversation_goes_on(&home, &server);
    let heard = server.requests().last().expect("a request").heard();
    let results: Vec<&str> = heard.iter().filter(|one| matches!(one, Heard::Result(_))).map(Heard::text).collect();
    assert!(matches!(results.as_slice(), [told] if !told.is_empty()), "the model knows that it did not end: {heard:?}");
    eventually("the command ends", || !runs(&word));
}

#[test]
fn an_interrupt_ends_what_runs_and_answers_the_call() {
    ended_while_a_command_runs(Signal::INT, 1000);
    ended_while_a_command_runs(Signal::TERM, 1001);
}

#[test]
fn a_kill_while_a_command_runs_leaves_a_conversation_that_goes_on() {
    ended_while_a_command_runs(Signal::KILL, 2);
}

#[test]
fn a_kill_in_the_middle_of_an_answer_takes_only_that_answer() {
    for api in APIS {
        let (home, server) = in_the_middle(api);
        home.go("run 'before all that'").ok();
        let running = home.begin(&format!("run --continue --events {BAD}"));
        eventually("the answer is on its way", || running.stdout().contains("The first line."));
        signal(&running, Signal::KILL);
        running.wait().lacks("\"end\"");
        home.go(&format!("run --continue {GOOD}")).ok().out_has("All is well.");
        let heard = server.requests().last().expect("a request").heard();
        let texts: Vec<&str> = heard.iter().map(Heard::text).collect();
        assert_eq!(texts[..2], ["before all that", "All is well."], "{heard:?}");
        assert_eq!(texts[2..].join("\n\n"), format!("{BAD}\n\n{GOOD}"), "{heard:?}");
    }
}
