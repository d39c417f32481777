//! A key in the environment: does the same command use the model, and does nothing else change?

use std::path::Path;

use prowess_testkit::{Chunking, ModelServer, Prowess, Turn};

use super::MESSAGE;
use super::home::{KEY, Line, with_skill};
use super::steps::{self, forecaster};

/// The files below the state directory, with the ids of sessions left out.
fn files(home: &Prowess) -> Vec<String> {
    fn collect(dir: &Path, base: &Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(dir).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                collect(&path, base, found);
                continue;
            }
            let name = path.strip_prefix(base).expect("below").to_string_lossy().into_owned();
            let is_id = |part: &str| part.len() == 36 && part.matches('-').count() == 4;
            let parts: Vec<&str> = name.split('/').collect();
            let parts = parts.iter().map(|part| match part.split_once('.') {
                Some((stem, end)) if is_id(stem) => format!("<id>.{end}"),
                _ => (*part).to_owned(),
            });
            found.push(parts.collect::<Vec<_>>().join("/"));
        }
    }
    let base = home.path(".openclaw");
    let mut found = Vec::new();
    collect(&base, &base, &mut found);
    found.sort();
    found
}

#[test]
fn a_key_in_the_environment_changes_who_answers_and_nothing_else() {
    let planner = with_skill();
    planner.go("approvals allow curl").ok();
    planner.go(&format!("run --session main --act {MESSAGE}")).ok().out_has("This is the embedded planner");
    for (who, path) in [("ANTHROPIC", ""), ("OPENAI", "/v1")] {
        let server = ModelServer::answering(Chunking::Random(9), forecaster);
        let address = format!("{}{path}", server.url());
        let home = with_skill().env(&format!("{who}_API_KEY"), KEY).env(&format!("{who}_BASE_URL"), &address);
        home.go("approvals allow curl").ok();
        let output = home.go(&format!("run --session main --act {MESSAGE}")).ok();
        let requests = server.requests();
        steps::the_catalogue_is_in_the_prompt(&requests[0]);
        steps::the_model_has_read_the_skill(&requests[1], &home);
        steps::the_command_has_run(&requests[2], &home);
        steps::the_answer_is_printed(&output);
        let headers = &requests[0].headers;
        assert!(headers.iter().any(|(_, value)| value.ends_with(KEY)), "the key goes to its owner");
        assert_eq!(files(&home), files(&planner), "{who}");
        let keys = |home: &Prowess| home.go("sessions list --json").ok().json()["sessions"][0]["key"].clone();
        assert_eq!(keys(&home), keys(&planner));
    }
}

#[test]
fn models_shows_what_is_configured_and_what_answers() {
    let server = ModelServer::script([Turn::text("Yes.")]);
    let home = super::home::talking_to(&server, "openai-completions");
    let list = home.go("models --json").ok().json();
    let ours = |list: &serde_json::Value| {
        let models = list["models"].as_array().expect("a list");
        models.iter().find(|model| model["name"] == "loop/test-model").expect("ours").clone()
    };
    assert_eq!((&ours(&list)["default"], &ours(&list)["api"]), (&true.into(), &"openai-completions".into()));
    assert_eq!(server.requests().len(), 0, "a list asks nobody");
    home.go("models").ok().out_has("● loop/test-model").lacks(KEY);
    let probed = home.go("models --probe --json").ok().lacks(KEY).json();
    assert_eq!(ours(&probed)["probe"]["answers"], true);
    let requests = server.requests();
    assert_eq!((requests.len(), requests[0].path.as_str()), (1, "/v1/chat/completions"), "as a turn would ask");
    assert_eq!(requests[0].header("authorization"), Some(format!("Bearer {KEY}").as_str()));
}
