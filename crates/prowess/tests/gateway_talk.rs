//! `prowess chat --gateway` and `run --gateway`: is a conversation at a real gateway like one here?

#![cfg(target_os = "linux")]

use crate::desk;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::time::Duration;

use desk::{Desk, ENTER};
use prowess_testkit::{Chunking, ModelServer, Prowess, Running, Turn, eventually, terminate};
use serde_json::{Value, json};

/// A gateway that runs, in a home of its own.
struct Served<'a> {
    running: Running<'a>,
    url: String,
}

impl<'a> Served<'a> {
    /// Turns do not wait for approvals there.
    #[track_caller]
    fn start(home: &'a Prowess) -> Self {
        let running = home.start("gateway run --port 0 --json --wait 0");
        eventually("the gateway says where it is", || running.stdout().contains('\n'));
        let said: Value = serde_json::from_str(running.stdout().trim()).expect("a line of JSON");
        Self { running, url: said["url"].as_str().expect("an address").to_owned() }
    }

    #[track_caller]
    fn end(self) {
        terminate(self.running.id());
        self.running.wait().ok();
    }
}

/// A home whose commands have to be approved, with these models and their fallbacks.
fn home(models: &[&ModelServer]) -> Prowess {
    let provider = |(at, model): (usize, &&ModelServer)| {
        let provider = json!({"baseUrl": model.base_url(), "apiKey": "k", "models": [{"id": format!("m{at}")}]});
        (format!("p{at}"), provider)
    };
    let providers: serde_json::Map<String, Value> = models.iter().enumerate().map(provider).collect();
    let names: Vec<String> = (0..models.len()).map(|at| format!("p{at}/m{at}")).collect();
    let config = json!({
        "models": {"providers": providers},
        "agents": {"defaults": {"model": {"primary": names[0], "fallbacks": names[1..]}}},
        "tools": {"exec": {"security": "allowlist", "ask": "on-miss"}},
    });
    Prowess::new(env!("CARGO_BIN_EXE_prowess")).config(&config.to_string())
}

/// Runs `mark` when it is asked to, and then says that it waits, or what came of it.
fn runs(mark: &'static str) -> ModelServer {
    ModelServer::answering(Chunking::Whole, move |request| match request.last() {
        last if last == "run it" => Turn::call("c1", "exec", json!({"command": mark})),
        last if last.contains("waits for a person") => Turn::text("It is waiting."),
        last if last.contains("in the background has ended") => Turn::text("Now it has come to an end."),
        last => Turn::text(&format!("heard {last}")),
    })
}

#[test]
fn a_command_that_waits_is_answered_at_the_prompt_and_its_result_is_shown() {
    let model = runs("echo made-$((40 + 2))");
    let home = home(&[&model]);
    let served = Served::start(&home);
    let mut desk = Desk::sit(&home, &["chat", "--session", "main", "--gateway", &served.url]);
    desk.say("run it").see("It is waiting.").see("A command wants to run").see("echo made-$((40 + 2))");
    desk.see("Type y to run it once").say("w").see("which commands may run").say("y").see("approved");
    desk.see("made-42").see("Now it has come to an end.");
    // The prompt was there all the time.
    desk.type_in(&["run it", ENTER]).see("It is waiting.").see("Type y to run it once").say("no").see("refused");
    desk.see("Now it has come to an end.").type_in(&["y", ENTER]).see("heard y").say("/usage").see(" written");
    desk.say("/quit");
    let raw = desk.leave().well();
    let number =
        |text: &str| text.rsplit(|c: char| !c.is_ascii_digit()).next().and_then(|word| word.parse::<u64>().ok());
    let (read, rest) = raw.rsplit_once(" tokens read").expect("a line about tokens");
    let (written, _) = rest.split_once(" written").expect("a line about tokens");
    assert_eq!(number(read).zip(number(written)).map(|(read, written)| read + written), Some(model.tokens()), "{raw}");
    served.end();
}

#[test]
fn a_typo_and_another_model_are_told_as_here() {
    let broken = ModelServer::answering(Chunking::Whole, |_| Turn::status(401, r#"{"error":{"message":"no"}}"#));
    let spare = ModelServer::answering(Chunking::Whole, |request| Turn::text(&format!("heard {}", request.last())));
    let home = home(&[&broken, &spare]);
    let served = Served::start(&home);
    let mut desk = Desk::sit(&home, &["chat", "--session", "main", "--gateway", &served.url]);
    desk.say("/wether Lisbon")
        .see("there is no command `/wether`")
        .see("asking m1 instead")
        .see("heard /wether Lisbon");
    desk.say("/quit");
    desk.leave().well();
    let mut desk = Desk::sit(&home, &["chat", "--session", "here"]);
    desk.say("/wether Lisbon")
        .see("there is no command `/wether`")
        .see("asking m1 instead")
        .see("heard /wether Lisbon");
    desk.say("/quit");
    desk.leave().well();
    served.end();
}

/// The address of a model that breaks off each reply after it has said enough to be shown to a person.
fn breaks_off() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
    let half = json!({"choices": [{"index": 0, "delta": {"content": "half of it ".repeat(100)}}]});
    let event = format!("data: {half}\n\n");
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let Ok(mut connection) = connection else { return };
            let event = event.clone();
            std::thread::spawn(move || {
                let mut request = [0; 8 * 1024];
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 100000\r\n\r\n";
                let _ = connection
                    .read(&mut request)
                    .and_then(|_| connection.write_all((head.to_owned() + &event).as_bytes()));
                // Longer than a reply is held back.
                std::thread::sleep(Duration::from_millis(600));
            });
        }
    });
    url
}

#[test]
fn a_program_gets_whole_answers_only() {
    let spare = ModelServer::answering(Chunking::Whole, |_| Turn::text("All of it."));
    let home = home(&[&spare, &spare]);
    let path = home.path(".openclaw/openclaw.json");
    let mut config: Value = serde_json::from_str(&std::fs::read_to_string(path).expect("written")).expect("JSON");
    config["models"]["providers"]["p0"]["baseUrl"] = breaks_off().into();
    let home = home.config(&config.to_string());
    let served = Served::start(&home);
    let there = format!("run --gateway {}", served.url);
    let all = ["run".to_owned(), "run --json".to_owned(), there.clone(), format!("{there} --json")];
    let all = all.map(|command| home.start(&format!("{command} hello")));
    for told in all.map(Running::wait) {
        let told = told.ok();
        assert!(told.stdout().contains("All of it.") && !told.stdout().contains("half"), "{told}");
    }
    served.end();
}

#[test]
fn a_turn_whose_command_waits_has_ended_well_and_says_how_to_answer() {
    let model = runs("touch made");
    let home = home(&[&model]);
    let served = Served::start(&home);
    let told = home.run(&format!("run --gateway {} 'run it'", served.url)).code(0);
    told.out_has("It is waiting.")
        .err_has("waiting for approval, not run yet: touch made")
        .err_has("prowess approvals resolve");
    served.end();
}

#[test]
fn a_session_that_a_gateway_has_is_found_there() {
    let model = ModelServer::answering(Chunking::Whole, |_| Turn::text("hello"));
    let home = home(&[&model]);
    let served = Served::start(&home);
    home.run(&format!("run --session trip --gateway {} hello", served.url)).ok();
    let busy = home.run("run --session trip hello").code(1);
    let _ = busy.err_has("is in use").err_has("add --gateway ws://127.0.0.1:");
    served.end();
}
