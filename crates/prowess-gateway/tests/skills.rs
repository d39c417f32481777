//! What is told of skills, and what can be changed?

use crate::room;
use prowess_gateway::client::CallError;
use prowess_testkit::Tree;
use room::Room;
use serde_json::{Value, json};

const SECRET: &str = "sekret";

/// The skill that the recorded frames are about.
fn demo() -> Tree {
    let about = "{openclaw: {emoji: D, primaryEnv: DEMO_API_KEY, requires: {bins: [demo-bin], env: [DEMO_API_KEY]}, \
        install: [{id: npm, kind: node, package: demo-pkg, bins: [demo-bin, demo2]}]}}";
    Tree::new()
        .file(
            ".openclaw/workspace/skills/demo/SKILL.md",
            format!("---\nname: demo\ndescription: Demo skill for protocol capture\nmetadata: {about}\n---\n"),
        )
        .file(
            ".openclaw/openclaw.json",
            format!(r#"{{"skills": {{"entries": {{"demo": {{"apiKey": "{SECRET}", "env": {{"DROP": "x"}}}}}}}}}}"#),
        )
}

/// Where `found` lacks something that `wanted` says, or says it otherwise.
fn lacks(wanted: &Value, found: &Value, at: &str) -> Vec<String> {
    match (wanted, found) {
        (Value::Object(wanted), Value::Object(found)) => wanted
            .iter()
            .flat_map(|(key, wanted)| lacks(wanted, found.get(key).unwrap_or(&Value::Null), &format!("{at}/{key}")))
            .collect(),
        (wanted, found) if wanted == found => Vec::new(),
        (wanted, found) => vec![format!("{at}: {wanted} is {found}")],
    }
}

#[tokio::test]
async fn answers_are_those_of_the_recorded_gateway() {
    let room = Room::open(demo()).await;
    let operator = room.operator().await;
    let golden: Value = serde_json::from_str(include_str!("golden/skills.json")).expect("JSON");
    for call in golden["calls"].as_array().expect("calls") {
        let method = call["method"].as_str().expect("a method");
        let (error, payload) = match operator.call(method, call["params"].clone()).await {
            Ok(payload) => (None, Some(payload)),
            Err(CallError::Refused { error, payload }) => (Some(error), payload.map(|payload| *payload)),
            Err(gone) => panic!("{gone}"),
        };
        assert_eq!(error.as_deref(), call.get("error"), "{call}");
        let mut wanted = call.get("payload").cloned().unwrap_or_default();
        let mut found = payload.unwrap_or_default();
        if let (Some(row), Some(rows)) = (wanted["skills"].get(0).cloned(), found["skills"].as_array()) {
            let own = rows.iter().find(|one| one["name"] == row["name"]).cloned().expect("the skill");
            (wanted, found) = (row, own);
        }
        // Where it was recorded, another home and a secret that everybody could see.
        let home = room.tree.root().to_string_lossy().into_owned();
        let wanted: Value = serde_json::from_str(
            &wanted.to_string().replace("/home/demo", &home).replace(SECRET, "__OPENCLAW_REDACTED__"),
        )
        .expect("JSON");
        let wanted = if method == "skills.update" { covered(wanted) } else { wanted };
        assert_eq!(lacks(&wanted, &found, ""), Vec::<String>::new(), "{call}");
        assert!(!found.to_string().contains(SECRET), "{found}");
    }
    room.running.end().await;
}

/// The values of variables may be secrets, too.
fn covered(mut answer: Value) -> Value {
    for value in answer["config"]["env"].as_object_mut().into_iter().flat_map(serde_json::Map::values_mut) {
        *value = "__OPENCLAW_REDACTED__".into();
    }
    answer
}

#[tokio::test]
async fn a_skill_says_what_keeps_it_back_and_how_to_fix_it() {
    let room = Room::open(demo()).await;
    let status = room.operator().await.call("skills.status", json!({})).await.expect("an answer");
    let skill = status["skills"].as_array().and_then(|rows| rows.iter().find(|row| row["name"] == "demo")).expect("it");
    assert_eq!(skill["objections"][0]["id"], "bins");
    assert_eq!(skill["fixes"][0]["command"], "npm install -g --ignore-scripts demo-pkg");
    assert_eq!((&skill["tier"], &skill["hasKey"]), (&json!("workspace"), &json!(true)));
    assert!(!status.to_string().contains(SECRET));
    room.running.end().await;
}

#[tokio::test]
async fn what_is_hidden_or_broken_is_told_too() {
    let tree = demo()
        .file(".openclaw/skills/demo/SKILL.md", "---\nname: demo\ndescription: another\n---\n")
        .file(".openclaw/workspace/skills/half/SKILL.md", "---\nname: half\n---\n");
    let room = Room::open(tree).await;
    let status = room.operator().await.call("skills.status", json!({})).await.expect("an answer");
    assert_eq!(status["shadowed"][0]["name"], "demo");
    assert_eq!(status["shadowed"][0]["source"], "openclaw-managed");
    let broken = &status["broken"][0];
    assert!(broken["dir"].as_str().is_some_and(|dir| dir.ends_with("skills/half")), "{broken}");
    assert!(broken["problem"]["fix"].is_string() && broken["fixes"][0]["command"].is_string(), "{broken}");
    room.running.end().await;
}

#[tokio::test]
async fn a_client_gets_as_much_as_it_asks_for() {
    let row = |name: &str| {
        (
            format!(".openclaw/workspace/skills/{name}/SKILL.md"),
            format!("---\nname: {name}\ndescription: Xyzzy about {name}\n---\n"),
        )
    };
    let mut tree = Tree::new().file(".openclaw/openclaw.json", r#"{"skills": {"allowBundled": []}}"#);
    for name in ["ant", "bee", "cat", "dog", "eel"] {
        let (path, text) = row(name);
        tree = tree.file(&path, text);
    }
    let room = Room::open(tree).await;
    let operator = room.operator().await;
    let ask = async |params: Value| operator.call("skills.status", params).await.expect("an answer");
    let names = |answer: &Value| -> Vec<String> {
        let rows = answer["skills"].as_array().expect("rows");
        rows.iter().filter_map(|row| row["name"].as_str().map(str::to_owned)).collect()
    };
    let first = ask(json!({"fields": "summary", "search": "xyzzy", "limit": 2})).await;
    assert_eq!((names(&first), &first["cursor"]), (vec!["ant".into(), "bee".into()], &json!("2")));
    assert_eq!(first["matching"], 5);
    assert!(first["counts"]["skills"].as_u64().is_some_and(|all| all > 5), "the bundled ones are counted, too");
    assert!(first["skills"][0].get("requirements").is_none() && first["skills"][0]["eligible"] == true, "{first}");
    let last = ask(json!({"fields": "summary", "search": "xyzzy", "limit": 2, "cursor": "4"})).await;
    assert_eq!((names(&last), last.get("cursor")), (vec!["eel".into()], None));
    assert_eq!(names(&ask(json!({"fields": "summary", "search": "ABOUT dog"})).await), ["dog"]);
    let one = ask(json!({"skill": "cat"})).await;
    assert!(one["skills"][0]["requirements"].is_object() && one.get("problems").is_none(), "{one}");
    assert_eq!(one["commands"][0]["name"], "cat");
    let all = names(&ask(json!({})).await);
    assert_eq!(
        all.iter().filter(|name| name.len() == 3).count(),
        5,
        "nothing is left out unless a client asks for less"
    );
    let commands = operator.call("skills.commands", json!({})).await.expect("an answer");
    let callable = commands["commands"].as_array().expect("commands");
    assert!(["ant", "eel"].iter().all(|name| callable.iter().any(|one| one["name"] == *name)), "{commands}");
    let refused = operator.call("skills.status", json!({"cursor": "x"})).await.expect_err("no cursor");
    assert!(refused.to_string().contains("/cursor"), "{refused}");
    room.running.end().await;
}

#[tokio::test]
async fn what_a_limit_leaves_out_is_not_called_broken() {
    let mut tree = Tree::new().file(
        ".openclaw/openclaw.json",
        r#"{"skills": {"allowBundled": [], "limits": {"maxSkillsLoadedPerSource": 2}}}"#,
    );
    for name in ["ant", "bee", "cat", "dog"] {
        tree = tree.file(
            &format!(".openclaw/workspace/skills/{name}/SKILL.md"),
            format!("---\nname: {name}\ndescription: d\n---\n"),
        );
    }
    let room = Room::open(tree).await;
    let operator = room.operator().await;
    let status = operator.call("skills.status", json!({"fields": "summary"})).await.expect("an answer");
    assert_eq!(status["counts"]["broken"], 0, "{status}");
    let told = operator.call("skills.status", json!({"fields": "problems"})).await.expect("an answer");
    let left: Vec<&str> =
        told["leftOut"].as_array().expect("folders").iter().filter_map(|one| one["dir"].as_str()).collect();
    assert_eq!(status["counts"]["leftOut"], left.len());
    assert!(
        ["workspace/skills/cat", "workspace/skills/dog"].iter().all(|dir| left.iter().any(|one| one.ends_with(dir))),
        "{told}"
    );
    room.running.end().await;
}

#[tokio::test]
async fn a_change_is_written_and_seen_at_once() {
    let room = Room::open(demo()).await;
    let operator = room.operator().await;
    operator.call("skills.status", json!({})).await.expect("an answer");
    let mut events = operator.events();
    operator.call("skills.update", json!({"skillKey": "demo", "enabled": false, "apiKey": "  "})).await.expect("done");
    let file = std::fs::read_to_string(room.tree.path(".openclaw/openclaw.json")).expect("the file");
    let config: Value = serde_json::from_str(&file).expect("JSON");
    assert_eq!(config["skills"]["entries"]["demo"]["enabled"], false);
    assert_eq!(config["skills"]["entries"]["demo"].get("apiKey"), None);
    let status = operator.call("skills.status", json!({})).await.expect("an answer");
    let skill = status["skills"].as_array().and_then(|rows| rows.iter().find(|row| row["name"] == "demo")).expect("it");
    assert_eq!((&skill["disabled"], &skill["hasKey"]), (&json!(true), &json!(false)));
    while events.recv().await.expect("an event").name != "skills.changed" {}
    room.running.end().await;
}

#[tokio::test]
async fn a_change_is_written_whole_or_not_at_all() {
    let text = r#"{"skills": {"entries": {"demo": {"enabled": true, "env": "not what it should be"}}}}"#;
    let room = Room::open(Tree::new().file(".openclaw/openclaw.json", text)).await;
    let operator = room.operator().await;
    let params = json!({"skillKey": "demo", "enabled": false, "apiKey": "k", "env": {"A": "1"}});
    operator.call("skills.update", params).await.expect_err("there is no place for variables");
    let file = std::fs::read_to_string(room.tree.path(".openclaw/openclaw.json")).expect("the file");
    assert_eq!(file, text);
    room.running.end().await;
}

#[tokio::test]
async fn the_programs_of_all_workspaces_are_those_that_skills_declare() {
    let skill =
        |name: &str, needs: &str| format!("---\nname: {name}\ndescription: d\nmetadata: {{openclaw: {needs}}}\n---\n");
    let tree = demo()
        .file(
            ".openclaw/openclaw.json",
            r#"{"agents": {"list": [{"id": "main", "default": true}, {"id": "ops", "workspace": "~/ops"}]}}"#,
        )
        .file("ops/skills/a/SKILL.md", skill("a", "{requires: {bins: [zip, ' curl '], anyBins: [rg, '', grep]}}"))
        .file(
            "ops/skills/b/SKILL.md",
            skill("b", "{os: [plan9], requires: {bins: [zip]}, install: [{kind: brew, formula: f}]}"),
        );
    let room = Room::open(tree).await;
    let bins = room.operator().await.call("skills.bins", json!({})).await.expect("an answer");
    let mut wanted = vec!["curl", "demo-bin", "demo2", "grep", "rg", "zip"];
    // The bundled skills belong to every workspace.
    wanted.extend(["gh", "jq", "tmux"]);
    wanted.sort_unstable();
    assert_eq!(bins["bins"], json!(wanted));
    room.running.end().await;
}

#[tokio::test]
async fn an_installer_that_is_there_is_named() {
    let room = Room::open(demo()).await;
    let params = json!({"name": "demo", "installId": "npm"});
    let refused = room.operator().await.call("skills.install", params).await.expect_err("nothing is installed");
    assert!(refused.to_string().ends_with("npm install -g --ignore-scripts demo-pkg"), "{refused}");
    room.running.end().await;
}

#[tokio::test]
async fn the_prompt_is_told_in_parts_with_its_budget() {
    let tree = demo().file(".openclaw/workspace/skills/plain/SKILL.md", "---\nname: plain\ndescription: p\n---\n");
    let room = Room::open(tree).await;
    let operator = room.operator().await;
    let prompt = operator.call("prompt.preview", json!({})).await.expect("an answer");
    let parts = prompt["parts"].as_array().expect("parts");
    let joined: Vec<&str> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
    assert_eq!(prompt["prompt"], joined.join("\n\n"));
    let skills = &prompt["skills"];
    assert!(skills["entries"].as_array().is_some_and(|all| all.iter().any(|one| one["name"] == "plain")), "{skills}");
    assert_eq!(
        skills["entries"].as_array().map(Vec::len),
        skills["included"].as_u64().and_then(|n| usize::try_from(n).ok())
    );
    assert!(skills["chars"].as_u64() <= skills["maxChars"].as_u64());
    let minimal = operator.call("prompt.preview", json!({"mode": "minimal"})).await.expect("an answer");
    assert!(minimal["tokens"].as_u64() < prompt["tokens"].as_u64());
    let refused = operator.call("prompt.preview", json!({"mode": "loud"})).await.expect_err("no such mode");
    assert_eq!(
        refused.to_string(),
        "invalid prompt.preview params: at /mode: must be equal to constant; at /mode: must match a schema in anyOf"
    );
    room.running.end().await;
}

#[tokio::test]
async fn usage_without_conversations_is_nothing() {
    let room = Room::open(demo()).await;
    let operator = room.operator().await;
    let usage = operator.call("usage.skills", json!({"days": 7})).await.expect("an answer");
    assert_eq!((&usage["skills"], &usage["total"], &usage["sessions"]), (&json!([]), &json!(0), &json!(0)));
    let refused = operator.call("usage.skills", json!({"days": 0})).await.expect_err("no time at all");
    assert_eq!(refused.to_string(), "invalid usage.skills params: at /days: must be >= 1");
    room.running.end().await;
}
