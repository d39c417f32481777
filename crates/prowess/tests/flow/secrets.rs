//! Secrets of a skill: do they reach its commands, and nobody else?

use std::fmt::Write as _;
use std::path::Path;

use prowess_testkit::{Chunking, Heard, ModelServer, Turn};
use serde_json::{Value, json};

use super::home::{self, APIS, KEY, Line};
use super::steps::location;

const CANARIES: [&str; 2] = ["sk-weather-canary", "units-canary"];

/// Everything that is written below a folder.
fn everything(dir: &Path) -> String {
    let mut all = String::new();
    for entry in std::fs::read_dir(dir).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            all.push_str(&everything(&path));
        } else {
            let bytes = std::fs::read(&path).expect("a file");
            writeln!(all, "{}\n{}", path.display(), String::from_utf8_lossy(&bytes))
                .expect("a string takes everything");
        }
    }
    all
}

/// Notes what it is given, in a file named by its last argument.
const NOTING: &str = "#!/bin/sh\nfor it; do :; done\nprintenv > \"$it\"\necho noted\n";

#[test]
fn a_skills_secrets_reach_only_commands_after_it_was_read_in_the_same_turn() {
    let run = |name: &str| ("exec".to_owned(), json!({"command": format!("curl {name}")}));
    let read = |skill: &str| ("read".to_owned(), json!({"skill": skill}));
    let steps = [
        vec![run("one"), read("other"), run("two"), read("weather"), run("three")],
        vec![run("four"), read("other"), run("five")],
    ];
    let server = ModelServer::answering(Chunking::Whole, move |request| {
        let heard = request.heard();
        let turns = heard.iter().filter(|one| matches!(one, Heard::Person(_))).count();
        let since = heard.iter().rev().take_while(|one| !matches!(one, Heard::Person(_)));
        let done = since.filter(|one| matches!(one, Heard::Call(..))).count();
        match steps[turns - 1].get(done) {
            None => Turn::text("All noted."),
            Some((tool, arguments)) => {
                let skill = arguments["skill"].as_str();
                let path = skill.map(|skill| json!({"path": location(&request.system(), skill)}));
                Turn::call(&format!("call_{turns}_{done}"), tool, path.unwrap_or_else(|| arguments.clone()))
            }
        }
    });
    let mut config = home::config(&server.base_url(), APIS[0]);
    let entry = json!({"apiKey": CANARIES[0], "env": {"WEATHER_UNITS": CANARIES[1]}});
    config["skills"] = json!({"entries": {"weather": entry}});
    let home = home::with_skill()
        .program("tools/curl", NOTING)
        .skill("other", "Does something else.", "")
        .config(&config.to_string());
    home.go("approvals allow curl").ok();
    let first = home.go("run --events first").ok();
    let second = home.go("run --continue --json second").ok();
    assert!(second.stdout().contains("All noted."), "{second}");

    for (name, gets_them) in [("one", false), ("two", false), ("three", true), ("four", false), ("five", false)] {
        let seen = std::fs::read_to_string(home.path(".openclaw/workspace").join(name)).expect(name);
        for line in ["WEATHER_API_KEY=sk-weather-canary", "WEATHER_UNITS=units-canary"] {
            assert_eq!(seen.contains(line), gets_them, "{name}: {seen}");
        }
        assert!(!seen.contains(KEY), "the model's key is nobody's business: {seen}");
        std::fs::remove_file(home.path(".openclaw/workspace").join(name)).expect("it was there");
    }
    std::fs::remove_file(home.path(".openclaw/openclaw.json")).expect("it was there");
    let kept = everything(&home.path(".openclaw"));
    let sent: Vec<Value> = server.requests().into_iter().map(|request| request.body).collect();
    assert!(kept.contains("curl three") && sent.len() == 10, "{} requests", sent.len());
    for canary in CANARIES.into_iter().chain([KEY]) {
        assert!(!kept.contains(canary), "{canary} is kept somewhere");
        assert!(!first.stdout().contains(canary) && !second.stdout().contains(canary), "{canary} was shown");
        assert!(!Value::from(sent.clone()).to_string().contains(canary), "{canary} was sent");
    }
}

#[test]
fn a_secret_that_a_command_prints_is_taken_out() {
    let server = ModelServer::script([
        Turn::call("a", "exec", json!({"command": "printenv WEATHER_API_KEY"})),
        Turn::text("done"),
    ]);
    let mut config = home::config(&server.base_url(), APIS[1]);
    config["skills"] = json!({"entries": {"weather": {"apiKey": CANARIES[0]}}});
    let home = home::with_skill().config(&config.to_string());
    let skill = home.path(".openclaw/workspace/skills/weather/SKILL.md");
    let text = std::fs::read_to_string(&skill).expect("a skill").replace("[curl]", "[curl, printenv]");
    std::fs::write(&skill, text).expect("the same skill, with another program of its own");
    home.go("approvals allow printenv").ok();
    home.go("run '/weather Shanghai'").ok();
    let told = server.requests()[1].last();
    assert!(told.contains("[WEATHER_API_KEY]"), "a skill that was called on is in use: {told}");
    assert!(
        !told.contains(CANARIES[0]) && !everything(&home.path(".openclaw/agents")).contains(CANARIES[0]),
        "and its key stays where it is"
    );
}
