//! The commands of conversations as a person or a script uses them: each test is a sentence.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use prowess_testkit::{Chunking, ModelServer, Prowess, Turn};
use serde_json::json;

fn prowess() -> Prowess {
    Prowess::new(env!("CARGO_BIN_EXE_prowess"))
}

#[test]
fn help_says_what_each_command_does() {
    let home = prowess();
    let help = home.run("--help").ok();
    for (command, about) in [
        ("run", "Send one message and print the answer"),
        ("chat", "Start an interactive conversation"),
        ("sessions", "List, show and export sessions"),
        ("models", "List the configured models"),
        ("prompt", "Print the system prompt"),
    ] {
        assert!(help.stdout().contains(&format!("  {command} ")), "{command}\n{help}");
        assert!(help.stdout().contains(about), "{about}\n{help}");
    }
    for option in ["--session", "--new", "--model", "--act", "--yes-read-only", "--thinking", "--timeout", "--verbose"]
    {
        let _ = home.run("chat --help").ok().out_has(option);
        let _ = home.run("run --help").ok().out_has(option);
    }
    home.run("run --help").ok().out_has("--events").out_has("`-` reads it from stdin");
    home.run("sessions --help").ok().out_has("replay").out_has("export").out_has("reset");
    home.run("sessions export --help").ok().out_has("markdown").out_has("jsonl");
}

#[test]
fn a_mistake_on_the_command_line_is_named() {
    let home = prowess();
    home.run("run").code(2).err_has("MESSAGE");
    home.run("run hi --thinking hard").code(2).err_has("use off, minimal, low, medium, high or xhigh");
    home.run("run hi --timeout soon").code(2).err_has("--timeout");
    home.run("run hi --events --json").code(2).err_has("cannot be used with");
    home.run("sessions reset").code(2).err_has("KEY");
    home.run("sessions export --format pdf").code(2).err_has("markdown");
    home.run("prompt --mode most").code(2).err_has("minimal");
}

/// A home whose model is on this machine.
fn with_model(server: &ModelServer) -> Prowess {
    let config = json!({
        "models": {"providers": {"mine": {
            "baseUrl": server.base_url(), "apiKey": "k", "api": "openai-completions",
            "models": [{"id": "m", "name": "m"}]
        }}},
        "agents": {"defaults": {"model": {"primary": "mine/m"}}}
    });
    prowess().config(&config.to_string())
}

#[test]
fn an_empty_message_or_name_is_a_mistake() {
    let home = prowess();
    for line in ["run ''", "run ' ' '\t'", "run -"] {
        home.run(line).code(2).err_has("the message is empty");
    }
    for (line, why) in [
        ("run hi --model ''", "the model name is empty"),
        ("run hi --session ' '", "the session name is empty"),
        ("chat --session ''", "the session name is empty"),
        ("sessions reset ''", "the session name is empty"),
    ] {
        home.run(line).code(2).err_has(why);
    }
    home.run(&format!("run hi --session {}", "x".repeat(201))).code(2).err_has("at most 200 characters");
    home.run("run hi --session 'a\u{1b}b'").code(2).err_has("must not contain control characters");
    home.run("run hi --session 'a\u{202e}b'").code(2).err_has("invisible");
    home.run(&format!("run hi --session {}", "é".repeat(200))).ok();
}

#[test]
fn a_workspace_that_was_named_has_to_be_there() {
    let home = prowess();
    for line in ["run hi --workspace $HOME/a/b", "prompt --workspace $HOME/a/b", "chat --workspace $HOME/a/b"] {
        home.run(line).code(1).err_has("the workspace $HOME/a/b does not exist").err_has("prowess setup --workspace");
        assert!(!home.path("a").exists(), "{line}");
    }
    home.run("run hi").ok();
    assert!(home.path(".openclaw/workspace").is_dir(), "the agent's own is made");
}

#[test]
fn a_session_that_is_not_there_cannot_begin_anew() {
    let home = prowess();
    home.run("sessions reset nosuch")
        .code(1)
        .err_has("there is no session `agent:main:nosuch`")
        .err_has("sessions list");
    home.run("run hi --session work").ok();
    home.run("sessions reset work").ok().out_has("started agent:main:work over");
    home.run("sessions list").ok().lacks("nosuch");
}

#[test]
fn a_pipe_in_place_of_a_file_is_refused() {
    let home = prowess().tree(".openclaw/agents/main/sessions/");
    let make = |path: &str| {
        let path = home.path(path);
        assert!(std::process::Command::new("mkfifo").arg(&path).status().expect("mkfifo").success());
    };
    make(".openclaw/agents/main/sessions/sessions.json");
    make(".openclaw/exec-approvals.json");
    for line in ["run hi", "run hi --new", "sessions list", "sessions show"] {
        home.run(line).code(1).err_has("sessions.json: it is not a regular file; move it elsewhere");
    }
    home.run("exec check ls").code(1).err_has("exec-approvals.json is not a regular file");
    home.run("approvals list").code(1).err_has("exec-approvals.json is not a regular file");
}

#[test]
fn what_was_mended_is_told_on_stderr() {
    let home = prowess().file(".openclaw/agents/main/sessions/sessions.json", "{");
    home.run("run hi").ok().err_has("! the index of sessions was broken and was rebuilt");
    home.run("run hi --json").ok().lacks("was broken");
    std::fs::write(home.path(".openclaw/agents/main/sessions/sessions.json"), "{").expect("an index");
    home.run("run hi --new --json").ok().err_has("! the index of sessions was broken");
    let folder = home.path(".openclaw/agents/main/sessions");
    for entry in std::fs::read_dir(folder).expect("sessions").flatten() {
        if entry.file_name().to_string_lossy().ends_with(".jsonl") {
            let mut text = std::fs::read_to_string(entry.path()).expect("a transcript");
            text.push_str("garbage\n");
            std::fs::write(entry.path(), text).expect("a transcript");
        }
    }
    home.run("run --continue hi").ok().err_has("! ").err_has("line");
}

#[test]
fn a_turn_that_cannot_be_kept_is_a_failure_for_machines_too() {
    let home = Arc::new(OnceLock::<PathBuf>::new());
    let folder = Arc::clone(&home);
    // Another program takes the session over while the model is asked.
    let server = ModelServer::answering(Chunking::Whole, move |_| {
        let folder = folder.get().expect("a home").join(".openclaw/agents/main/sessions");
        for entry in std::fs::read_dir(folder).expect("sessions").flatten() {
            if entry.file_name().to_string_lossy().ends_with(".jsonl.lock") {
                std::fs::remove_file(entry.path()).expect("a lock");
            }
        }
        Turn::text("never kept")
    });
    let prowess = with_model(&server);
    home.set(prowess.home()).expect("once");
    let output = prowess.run("run hi --json").code(1).err_has("was taken over by another program");
    let error = &output.json()["error"];
    assert_eq!(error["type"], "input");
    assert!(error["message"].as_str().is_some_and(|why| why.contains("taken over")), "{output}");
    prowess.run("run hi").code(1).err_has("taken over");
}

#[test]
fn only_a_whole_reply_reaches_a_program() {
    let gone = Turn::Cut { turn: Box::new(Turn::text(&"gone ".repeat(400))), after: 1500 };
    let server = ModelServer::script([gone, Turn::text("The answer.")]);
    let output = with_model(&server).run("run hi").ok().err_has("attempt 2");
    assert_eq!(output.stdout(), "The answer.\n");
    assert!(server.sent() > 1500, "the first try came as far as its words");
}

#[test]
fn an_answer_that_is_cut_or_empty_is_noticed_once() {
    let turns = json!([{"text": "half", "stop": "length"}, {"text": ""}]).to_string();
    let home = prowess().file("cut.json", &turns).file("silent.json", json!([{"text": ""}]).to_string());
    let cut = home.run("run hi --model scripted:$HOME/cut.json").ok();
    assert_eq!(cut.stderr().matches("cut").count() - cut.stderr().matches("cut.json").count(), 1, "{cut}");
    home.run("sessions show").ok().out_has("! cut off at its length limit");
    let silent = home.run("run hi --model scripted:$HOME/silent.json").ok();
    assert_eq!(silent.stderr().matches("gave an empty answer").count(), 1, "{silent}");
}

#[test]
fn a_probe_asks_as_a_turn_would_and_says_what_is_wrong() {
    let server = ModelServer::answering(Chunking::Whole, |request| match request.header("authorization") {
        Some("Bearer good") if request.body["model"] == "m" => Turn::text("OK"),
        Some("Bearer good") => Turn::status(404, r#"{"error":{"message":"The model `n` does not exist"}}"#),
        Some("Bearer poor") => Turn::status(429, r#"{"error":{"message":"empty","type":"insufficient_quota"}}"#),
        _ => Turn::status(401, r#"{"error":{"message":"who are you"}}"#),
    });
    let provider = |key: &str, models: &[&str]| {
        let models: Vec<_> = models.iter().map(|id| json!({"id": id})).collect();
        json!({"baseUrl": server.base_url(), "apiKey": key, "models": models})
    };
    let mut providers = json!({"a": provider("good", &["m"])});
    let config = |providers: &serde_json::Value| json!({"models": {"providers": providers}}).to_string();
    let home = prowess().config(&config(&providers));
    home.run("models --probe").ok().out_has("✓");
    let asked = &server.requests()[0];
    assert_eq!((asked.method.as_str(), asked.path.as_str()), ("POST", "/v1/chat/completions"));
    assert!(asked.body["tools"].is_array(), "{}", asked.body);
    providers["b"] = provider("bad", &["m"]);
    providers["c"] = provider("poor", &["m"]);
    providers["d"] = provider("good", &["n"]);
    providers["e"] = json!({"baseUrl": "http://127.0.0.1:9/v1", "models": [{"id": "m"}]});
    let home = home.config(&config(&providers));
    let told = home.run("models --probe").code(1);
    for (model, wrong) in
        [("b/m", "wrong key"), ("c/m", "no quota"), ("d/n", "no such model"), ("e/m", "wrong address")]
    {
        assert!(told.stdout().lines().any(|line| line.contains(model) && line.contains(wrong)), "{model}: {told}");
    }
    let json = home.run("models --probe --json").code(1).json();
    assert_eq!(json["models"][1]["probe"], json!({"answers": true}));
    assert_eq!(json["models"][1]["key"]["place"], "configuration");
}

#[test]
fn keys_of_openclaw_are_found() {
    let profiles = json!({"version": 1, "profiles": {
        "anthropic:default": {"type": "api_key", "provider": "anthropic", "key": "sk-ant-s3cret"},
        "openai:me": {"type": "oauth", "provider": "openai", "access": "s3cret", "refresh": "s3cret", "expires": 1}
    }});
    let home = prowess().file(".openclaw/agents/main/agent/auth-profiles.json", profiles.to_string());
    home.run("models").ok().out_has("auth profile").out_has("anthropic:default").out_has("expired").lacks("s3cret");
    let models = home.run("models --json").ok().lacks("s3cret").json();
    let of =
        |name: &str| models["models"].as_array().and_then(|all| all.iter().find(|one| one["name"] == name)).cloned();
    let anthropic = of("anthropic/claude-opus-4-6").expect("a model");
    assert_eq!((&anthropic["key"]["present"], &anthropic["default"]), (&json!(true), &json!(true)));
    home.run("run hi --model openai/gpt-5.2").code(1).err_has("has expired").err_has("log in again");
}

#[test]
fn addresses_are_shown_without_their_secrets() {
    let provider = json!({"models": {"providers": {"mine": {
        "baseUrl": "http://me:s3cret@127.0.0.1:9/v1?key=s3cret", "apiKey": "k", "api": "openai-completions",
        "models": [{"id": "m", "name": "m"}]
    }}}});
    let home = prowess().config(&provider.to_string());
    for (line, code) in [("models", 0), ("models --json", 0), ("models --probe", 1), ("models --probe --json", 1)] {
        home.run(line).code(code).out_has("http://127.0.").lacks("s3cret");
    }
    let models = home.run("models --json").ok().json();
    assert_eq!(models["models"][1]["baseUrl"], "http://127.0.0.1:9/v1");
}

#[test]
fn an_export_for_machines_is_json() {
    let home = prowess();
    home.run("run 'hi \u{202e}there'").ok();
    assert!(home.run("sessions export --json").ok().json()["messages"].is_array());
    home.run("sessions export --json --format jsonl").ok().out_has("\\u202e").lacks("\u{202e}");
    home.run("sessions export").ok().out_has("# Session").lacks("\u{202e}");
    home.run("sessions show").ok().out_has("estimated: no model was asked");
}

#[test]
fn the_prompt_for_machines_has_text_and_parts() {
    let json = prowess().run("prompt --json").ok().json();
    let parts = json["parts"].as_array().expect("parts");
    let text = json["prompt"].as_str().expect("text");
    assert!(!parts.is_empty() && parts.iter().all(|part| text.contains(part["text"].as_str().expect("text").trim())));
    let cost = prowess().run("prompt --json --cost").ok().json();
    assert_eq!(cost["tokens"], json["tokens"]);
}

#[test]
fn an_image_reaches_the_model_or_is_named_to_it() {
    let server = ModelServer::script(vec![Turn::text("a cat"), Turn::text("cannot see")]);
    let mut model = json!({"id": "m", "input": ["text", "image"]});
    let config = |model: &serde_json::Value| {
        json!({
            "models": {"providers": {"mine": {"baseUrl": server.base_url(), "apiKey": "k", "models": [model]}}},
            "agents": {"defaults": {"model": {"primary": "mine/m"}}}
        })
        .to_string()
    };
    let home = prowess().config(&config(&model)).file("cat.gif", b"GIF89a").file("cat.txt", "meow");
    let show = |home: &Prowess, file: &str| home.run(&format!("run look --image {}", home.path(file).display()));
    show(&home, "cat.gif").ok().out_has("a cat");
    model["input"] = json!(["text"]);
    let home = home.config(&config(&model));
    show(&home, "cat.gif").ok();
    show(&home, "cat.txt").code(1).err_has("use PNG, JPEG, GIF or WebP");
    show(&home, "none.png").code(1).err_has("cannot read the image");
    let seen = server.requests();
    let parts =
        |at: usize| seen[at].body["messages"].as_array().and_then(|all| all.last()).expect("one")["content"].clone();
    assert_eq!(parts(0)[1]["image_url"]["url"], "data:image/gif;base64,R0lGODlh");
    assert!(parts(1).as_str().is_some_and(|text| text.contains("does not accept images")), "{}", parts(1));
}
