//! `prowess chat` as a person at a real terminal sees it: each test is a sentence.

#![cfg(target_os = "linux")]

use crate::desk;
use std::io::Write;
use std::process::Stdio;

use desk::{CTRL_A, CTRL_C, CTRL_D, Desk, ENTER, LEFT, PROMPT, TAB, UP};
use prowess_testkit::{ModelServer, Prowess, Turn};
use serde_json::{Value, json};

/// A home with a weather skill whose program notes that it ran, and a model that says these things.
fn home(turns: &[Value]) -> Prowess {
    let script = turns.iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
    let home = Prowess::new(env!("CARGO_BIN_EXE_prowess")).skill("weather", "Forecasts for a place.", "");
    let note = home.path(".openclaw/workspace/ran");
    let body = format!("echo \"$*\" >> '{}'\necho forecast for \"$*\"", note.display());
    let config = "{ tools: { exec: { security: 'allowlist' } } }";
    home.script("forecast", &body).file("script.jsonl", script).config(config)
}

fn chat(home: &Prowess) -> Desk {
    let script = format!("scripted:{}", home.path("script.jsonl").display());
    Desk::sit(home, &["chat", "--session", "main", "--model", &script])
}

/// What the program noted when it ran.
fn ran(home: &Prowess) -> String {
    std::fs::read_to_string(home.path(".openclaw/workspace/ran")).unwrap_or_default()
}

/// Everything a person said in the conversation, as it is stored.
fn said(home: &Prowess) -> Vec<String> {
    let stored = home.run("sessions export --format jsonl").ok();
    let lines = stored.stdout().lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let user = lines.filter(|line| line["role"] == "user");
    user.map(|line| line["content"][0]["text"].as_str().expect("text").to_owned()).collect()
}

fn forecast() -> Value {
    json!({"calls": [{"name": "exec", "arguments": {"command": "forecast Lisbon"}}]})
}

#[test]
fn an_answer_is_rendered_and_its_escapes_stay_out() {
    let evil = "\u{1b}[2J\u{1b}[1;1Hgone\u{1b}]0;title\u{7}\u{9b}31m\u{8}\u{8}";
    let home = home(&[json!({"text": format!("# Today\n\nIt is **sunny**, see `sky`. {evil}\n\n- one\n- two\n")})]);
    let mut desk = chat(&home);
    desk.see("prowess/scripted answers").say("hi").see("Today").see("It is sunny, see sky.").see("• two");
    desk.see(PROMPT).type_in(&[CTRL_D]);
    let raw = desk.leave().well();
    assert!(raw.contains("\u{1b}[1msunny\u{1b}[0m"), "{raw:?}");
    assert!(raw.contains("gone"), "the text itself is there: {raw:?}");
    for sign in ["\u{1b}[2J", "\u{1b}[1;1H", "\u{1b}]", "\u{7}", "\u{9b}", "\u{8}", "**", "`"] {
        assert!(!raw.contains(sign), "{sign:?} in {raw:?}");
    }
}

#[test]
fn a_line_can_be_edited_and_an_old_one_taken_again() {
    let home = home(&[json!({"text": "one"}), json!({"text": "two"})]);
    let mut desk = chat(&home);
    desk.see(PROMPT).type_in(&["ello wrld", LEFT, LEFT, LEFT, "o", CTRL_A, "h", ENTER]).see("one");
    desk.see(PROMPT).type_in(&[UP, " again", ENTER]).see("two").see(PROMPT).type_in(&[CTRL_D]);
    desk.leave().well();
    assert_eq!(said(&home), ["hello world", "hello world again"]);

    let mut later = chat(&home);
    later.see(PROMPT).type_in(&[UP, UP, ENTER]).see("one").see(PROMPT).type_in(&["two\\", ENTER, "lines", ENTER]);
    later.see("two").see(PROMPT).type_in(&[CTRL_D]);
    later.leave().well();
    assert_eq!(said(&home)[2..], ["hello world", "two\nlines"]);
}

#[test]
fn tab_completes_a_command_of_a_skill() {
    let home = home(&[json!({"text": "sunny", "expect": "Lisbon"})]);
    let mut desk = chat(&home);
    desk.see(PROMPT).type_in(&["/wea", TAB]).see("/weather ").type_in(&["Lisbon", ENTER]);
    desk.see("weather (called)").see("sunny").see(PROMPT).type_in(&[CTRL_D]);
    desk.leave().well();
}

#[test]
fn a_command_is_asked_about_and_runs_only_after_a_yes() {
    let home = home(&[forecast(), json!({"text": "Not then."}), forecast(), json!({"text": "All is well."})]);
    let mut desk = chat(&home);
    desk.say("look").see("forecast Lisbon").see("Allow it?").type_in(&["n", ENTER]).see("✗").see("Not then.");
    assert_eq!(ran(&home), "");
    desk.say("do look").see("forecast Lisbon").see("Allow it?").type_in(&["y", ENTER]);
    desk.see("▸ exec forecast Lisbon  ✓").see("All is well.");
    assert_eq!(ran(&home), "Lisbon\n");
    desk.see(PROMPT).type_in(&[CTRL_D]);
    desk.leave().well();
}

#[test]
fn ctrl_c_at_a_question_is_no_answer_and_the_next_line_is_whole() {
    let home = home(&[forecast(), json!({"text": "Go on."}), forecast(), json!({"text": "Done."})]);
    let mut desk = chat(&home);
    desk.say("look").see("[w]hy: ").type_in(&[CTRL_C]).see("\n").see("■ stopped");
    desk.say("yes, and then some").see("Go on.");
    desk.say("look again").see("Allow it?").type_in(&["y", ENTER]).see("Done.");
    desk.see(PROMPT).type_in(&[CTRL_D]);
    desk.leave().well();
    assert_eq!(said(&home), ["look", "yes, and then some", "look again"]);
    assert_eq!(ran(&home), "Lisbon\n");
}

#[test]
fn ctrl_c_stops_the_turn_and_not_the_program() {
    let home = home(&[json!({"text": "late", "delayMs": 60_000}), json!({"text": "at once"})]);
    let mut desk = chat(&home);
    desk.say("slow").see("waiting for the model").type_in(&[CTRL_C]).see("stopped");
    desk.say("quick").see("at once").see(PROMPT).type_in(&[CTRL_D]);
    let raw = desk.leave().well();
    assert!(!raw.contains("late"), "{raw:?}");
    assert_eq!(said(&home), ["slow", "quick"]);
}

#[test]
fn ctrl_c_ends_a_command_that_runs() {
    let wait = json!({"calls": [{"name": "exec", "arguments": {"command": "wait-here", "timeout": 300}}]});
    let home = home(&[wait, json!({"text": "next"})]);
    let note = home.path(".openclaw/workspace/ran");
    let home = home.script("wait-here", &format!("echo begun > '{0}'\nread forever < '{0}.never'", note.display()));
    let fifo = home.path(".openclaw/workspace/ran.never");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).expect("a pipe");
    let mut desk = chat(&home);
    desk.say("wait").see("Allow it?").type_in(&["y", ENTER]);
    while ran(&home).is_empty() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    desk.type_in(&[CTRL_C]).see("stopped").say("on").see("next").see(PROMPT).type_in(&[CTRL_D]);
    desk.leave().well();
    // Nobody reads from the pipe any more.
    let open =
        rustix::fs::open(&fifo, rustix::fs::OFlags::WRONLY | rustix::fs::OFlags::NONBLOCK, rustix::fs::Mode::empty());
    assert_eq!(open.err(), Some(rustix::io::Errno::NXIO));
}

#[test]
fn ctrl_c_at_the_prompt_clears_it_and_twice_leaves() {
    let home = home(&[json!({"text": "heard"})]);
    let mut desk = chat(&home);
    desk.see(PROMPT).type_in(&["never mind", CTRL_C]).see("press Ctrl-C again or Ctrl-D to leave");
    desk.say("this").see("heard");
    desk.see(PROMPT).type_in(&[CTRL_C]).see("again").see(PROMPT).type_in(&[CTRL_C]);
    desk.leave().well();
    assert_eq!(said(&home), ["this"]);
}

#[test]
fn the_chats_own_commands_answer_without_the_model() {
    let usage = json!({"input": 1200, "output": 34, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 1234});
    let home = home(&[json!({"text": "first", "usage": usage}), json!({"text": "second"})]);
    let mut desk = chat(&home);
    desk.say("/help").see("/usage").see("Ctrl-D leaves");
    desk.say("/model").see("prowess/scripted");
    desk.say("/model nope").see("no model is called").say("/model").see("prowess/scripted");
    desk.say("/skills").see("skills").see("/weather").see("Forecasts for a place.");
    desk.say("hello").see("first");
    desk.say("/usage").see("1200").see("34");
    desk.say("/new").see("new conversation started");
    desk.say("/usage").see("0");
    desk.say("again").see("first").say("/x marks").see("second");
    desk.say("/quit");
    desk.leave().well();
    assert_eq!(said(&home), ["again", "/x marks"], "what no command is meant by is said");
}

#[test]
fn a_program_that_is_ended_at_the_prompt_gives_the_terminal_back() {
    let home = home(&[json!({"text": "x"})]);
    let mut desk = chat(&home);
    desk.see(PROMPT).type_in(&["half a li"]).see("li").terminate();
    let left = desk.leave();
    assert_eq!(left.status.code(), Some(143), "{:?}", left.raw);
    assert!(left.echoes);
}

#[test]
fn a_pipe_is_a_message_a_line() {
    let home = home(&[json!({"text": "**one**"}), json!({"text": "two"})]);
    let script = format!("scripted:{}", home.path("script.jsonl").display());
    let talk = |input: &str| {
        let mut command = home.command();
        let mut child = command.args(["chat", "--model", &script]).stdin(Stdio::piped()).spawn().expect("a child");
        child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("it reads");
        let output = child.wait_with_output().expect("an end");
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, out, _) = talk("first\n\nsecond");
    assert_eq!((code, out.as_str()), (Some(0), "**one**\ntwo\n"));
    assert_eq!(said(&home), ["first", "second"]);
    // The third has no answer, and a script hears of it.
    let (code, out, err) = talk("first\nsecond\nthird\n");
    assert_eq!((code, out.as_str()), (Some(1), "**one**\ntwo\n"));
    assert!(err.contains("the script has no more turns"), "{err}");
}

/// A home whose model is on this machine.
fn with_model(server: &ModelServer, watch: bool) -> Prowess {
    let config = json!({
        "skills": {"load": {"watch": watch}},
        "models": {"providers": {"mine": {
            "baseUrl": server.base_url(), "apiKey": "k", "api": "openai-completions",
            "models": [{"id": "m", "name": "m"}]
        }}},
        "agents": {"defaults": {"model": {"primary": "mine/m"}}}
    });
    Prowess::new(env!("CARGO_BIN_EXE_prowess")).skill("early", "Is there.", "").config(&config.to_string())
}

/// Whether the model was told of the late skill, request by request.
fn told_of_late(server: &ModelServer) -> Vec<bool> {
    server.requests().iter().map(|request| request.body.to_string().contains("<name>late</name>")).collect()
}

#[test]
fn a_skill_that_is_added_is_in_the_next_turns_prompt() {
    let server = ModelServer::script(["one", "two"].map(Turn::text));
    let home = with_model(&server, true);
    let mut desk = Desk::sit(&home, &["chat"]);
    desk.say("hi").see("one");
    let _home = home.skill("late", "Came later.", "");
    desk.say("again").see("two").see(PROMPT).type_in(&[CTRL_D]);
    desk.leave().well();
    assert_eq!(told_of_late(&server), [false, true]);
}

#[test]
fn without_watching_it_is_in_the_prompt_of_a_new_conversation() {
    let server = ModelServer::script(["one", "two", "three"].map(Turn::text));
    let home = with_model(&server, false);
    let mut desk = Desk::sit(&home, &["chat"]);
    desk.say("hi").see("one");
    let _home = home.skill("late", "Came later.", "");
    desk.say("again").see("two").say("/new").say("anew").see("three").see(PROMPT).type_in(&[CTRL_D]);
    desk.leave().well();
    assert_eq!(told_of_late(&server), [false, false, true]);
}

#[test]
fn a_secret_is_asked_for_and_not_shown() {
    let home = home(&[]);
    let mut desk = Desk::sit(&home, &["config", "set", "skills.entries.weather.apiKey"]);
    desk.see("skills.entries.weather.apiKey (not shown): ")
        .type_in(&["s3cret-key", ENTER])
        .see("changed skills.entries");
    let raw = desk.leave().well();
    assert!(!raw.contains("s3cret"), "{raw:?}");
    let shown = home.run("config get skills.entries.weather.apiKey --show-secrets").ok();
    assert_eq!(shown.stdout(), "s3cret-key\n");
}

#[test]
fn everything_fits_eighty_columns_and_breaks_between_words() {
    let words = "somewhat lengthy sentences about ordinary weather ".repeat(8);
    let connection = json!({"at": 1_794_709_331_913_u64, "skill": "weather", "host": "api.openweather.example.org",
        "port": 443, "up": 1_234, "down": 56_789_012, "outcome": "refused", "reason": words, "command": words});
    let home = home(&[json!({"text": format!("{words}\n\n- {words}\n")})])
        .file(".openclaw/audit/egress.jsonl", format!("{connection}\n"));
    let script = format!("scripted:{}", home.path("script.jsonl").display());
    let lines: [&[&str]; 9] = [
        &["run", "--model", &script, "hi there, and a long message to be listed in a table of sessions"],
        &["sessions", "list"],
        &["sessions", "show"],
        &["skills", "list"],
        &["models"],
        &["doctor"],
        &["config", "keys"],
        &["skills", "commands"],
        &["egress", "log"],
    ];
    for line in lines {
        let raw = Desk::sit_before(80, &home, line).leave().well();
        let shown = anstream::adapter::strip_str(&raw).to_string();
        for row in shown.lines() {
            let row = row.rsplit('\r').find(|part| !part.is_empty()).unwrap_or_default();
            let width = unicode_width::UnicodeWidthStr::width(row);
            let is_one_word = row.split_whitespace().any(|word| word.chars().count() > 60);
            assert!(width <= 80 || is_one_word, "{line:?}: {width} columns\n{row}\n---\n{shown}");
        }
        if line[0] == "run" || line == ["sessions", "show"] {
            for word in ["somewhat", "lengthy", "sentences", "ordinary", "weather"] {
                let whole = shown.split(|c: char| !c.is_alphabetic()).filter(|part| *part == word).count();
                assert!(whole >= 16, "{line:?}: {word} is whole {whole} times\n{shown}");
            }
        }
    }
}
