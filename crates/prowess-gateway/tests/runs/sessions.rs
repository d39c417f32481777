//! Sessions: what can be asked about conversations, and changed?

use prowess_gateway::client::Client;
use prowess_testkit::{Chunking, ModelServer, Tree, Turn};
use serde_json::{Value, json};

use crate::hall::{Ears, Hall, config, words};

async fn talk(client: &Client, ears: &mut Ears, key: &str, text: &str, run: &str) {
    let params = json!({"sessionKey": key, "message": text, "idempotencyKey": run});
    client.call("chat.send", params).await.expect("started");
    ears.until_chat(run, "final").await;
}

fn keys(list: &Value) -> Vec<&str> {
    list["sessions"].as_array().into_iter().flatten().filter_map(|row| row["key"].as_str()).collect()
}

#[tokio::test]
async fn sessions_are_listed_shown_and_found() {
    let model = ModelServer::answering(Chunking::Whole, |_| Turn::text("A short answer."));
    let agents = json!({"agents": {"list": [{"id": "main", "default": true}, {"id": "ops"}]}});
    let hall = Hall::open(Tree::new(), &config(&model, agents)).await;
    let client = hall.operator().await;
    let mut ears = Ears::of(&client);
    talk(&client, &mut ears, "main", "First words\nof it", "a").await;
    talk(&client, &mut ears, "agent:ops:work", "Other words", "b").await;

    let list = client.call("sessions.list", json!({"includeDerivedTitles": true, "includeLastMessage": true})).await;
    let list = list.expect("a list");
    assert_eq!(keys(&list), ["agent:ops:work", "agent:main:main"]);
    assert_eq!((&list["count"], &list["path"]), (&json!(2), &json!("(multiple)")));
    assert_eq!(list["defaults"], json!({"modelProvider": "fake", "model": "m", "contextTokens": 64_000}));
    let row = &list["sessions"][1];
    assert_eq!((&row["kind"], &row["modelProvider"], &row["model"]), (&json!("direct"), &json!("fake"), &json!("m")));
    assert_eq!(row["derivedTitle"], "First words of it");
    assert_eq!(row["lastMessagePreview"], "A short answer.");
    let ops = client.call("sessions.list", json!({"agentId": "ops", "limit": 5})).await.expect("a list");
    assert_eq!(keys(&ops), ["agent:ops:work"]);

    let previews = client.call("sessions.preview", json!({"keys": ["main", "nothing"], "limit": 1})).await;
    let previews = previews.expect("previews");
    let expected = json!([
        {"key": "main", "status": "ok", "items": [{"role": "assistant", "text": "A short answer."}]},
        {"key": "nothing", "status": "missing", "items": []},
    ]);
    assert_eq!(previews["previews"], expected);

    let found = client.call("sessions.resolve", json!({"sessionId": row["sessionId"]})).await.expect("found");
    assert_eq!(found, json!({"ok": true, "key": "agent:main:main"}));
    let found = client.call("sessions.resolve", json!({"key": "agent:ops:work"})).await.expect("found");
    assert_eq!(found["key"], "agent:ops:work");
    for (params, expected) in [
        (json!({"key": "nothing"}), "No session found: nothing"),
        (json!({"key": "main", "label": "x"}), "Provide either key, sessionId, or label (not multiple)"),
        (json!({}), "Either key, sessionId, or label is required"),
    ] {
        let refused = client.call("sessions.resolve", params).await.expect_err(expected);
        assert_eq!(refused.to_string(), expected);
    }
    hall.end().await;
}

#[tokio::test]
async fn a_session_is_changed_reset_and_deleted() {
    let model = ModelServer::answering(Chunking::Whole, |_| Turn::text("yes"));
    let hall = Hall::open(Tree::new(), &config(&model, json!({}))).await;
    let client = hall.operator().await;
    let mut ears = Ears::of(&client);
    talk(&client, &mut ears, "work", "hi", "a").await;
    let patched = client.call("sessions.patch", json!({"key": "work", "label": "Work", "thinkingLevel": "high"})).await;
    let patched = patched.expect("patched");
    assert_eq!((&patched["key"], &patched["entry"]["label"]), (&json!("agent:main:work"), &json!("Work")));
    assert_eq!(patched["resolved"], json!({"modelProvider": "fake", "model": "m"}));
    let found = client.call("sessions.resolve", json!({"label": "Work"})).await.expect("found");
    assert_eq!(found["key"], "agent:main:work");
    let unknown = client.call("sessions.patch", json!({"key": "work", "model": "nobody/knows"})).await;
    unknown.expect_err("no such model");
    client.call("sessions.patch", json!({"key": "work", "sendPolicy": "deny"})).await.expect("patched");
    let blocked = json!({"sessionKey": "work", "message": "hi", "idempotencyKey": "blocked"});
    let blocked = client.call("chat.send", blocked).await.expect_err("blocked");
    assert_eq!(blocked.to_string(), "send blocked by session policy");
    client.call("sessions.patch", json!({"key": "work", "sendPolicy": null})).await.expect("patched");

    let before = patched["entry"]["sessionId"].clone();
    let reset = client.call("sessions.reset", json!({"key": "work", "reason": "new"})).await.expect("reset");
    assert_eq!((&reset["ok"], &reset["entry"]["label"]), (&json!(true), &json!("Work")));
    assert_ne!(reset["entry"]["sessionId"], before);
    talk(&client, &mut ears, "work", "hi again", "b").await;
    assert_eq!(model.requests().pop().map(|request| request.heard().len()), Some(1), "nothing is left of it");

    let compact = client.call("sessions.compact", json!({"key": "work"})).await.expect("an answer");
    assert_eq!((&compact["ok"], &compact["compacted"]), (&json!(true), &json!(false)));
    let main = client.call("sessions.delete", json!({"key": "main"})).await.expect_err("not that one");
    assert_eq!(main.to_string(), "Cannot delete the main session (agent:main:main).");
    let deleted = client.call("sessions.delete", json!({"key": "work"})).await.expect("deleted");
    assert_eq!((&deleted["ok"], &deleted["deleted"]), (&json!(true), &json!(true)));
    let aside = deleted["archived"][0].as_str().expect("a path");
    assert!(std::path::Path::new(aside).is_file(), "{aside}");
    let again = client.call("sessions.delete", json!({"key": "work"})).await.expect("an answer");
    assert_eq!(again["deleted"], false);
    assert_eq!(keys(&client.call("sessions.list", json!({})).await.expect("a list")), [""; 0]);
    hall.end().await;
}

#[tokio::test]
async fn a_reset_ends_what_goes_on() {
    let model = ModelServer::script([crate::hall::endless(), Turn::text("new")]);
    let hall = Hall::open(Tree::new(), &config(&model, json!({}))).await;
    let client = hall.operator().await;
    let mut ears = Ears::of(&client);
    let params = json!({"sessionKey": "main", "message": "go", "idempotencyKey": "long"});
    client.call("chat.send", params).await.expect("started");
    ears.until_it_speaks("long").await;
    client.call("sessions.reset", json!({"key": "main"})).await.expect("reset");
    ears.until_chat("long", "aborted").await;
    talk(&client, &mut ears, "main", "hi", "next").await;
    hall.end().await;
}

#[tokio::test]
async fn something_can_be_said_in_the_models_name() {
    let model = ModelServer::answering(Chunking::Whole, |_| Turn::text("yes"));
    let hall = Hall::open(Tree::new(), &config(&model, json!({}))).await;
    let client = hall.operator().await;
    let mut ears = Ears::of(&client);
    let refused = client.call("chat.inject", json!({"sessionKey": "main", "message": "note"})).await;
    assert_eq!(refused.expect_err("nobody spoke there").to_string(), "session not found");
    talk(&client, &mut ears, "main", "hi", "a").await;
    let injected = client.call("chat.inject", json!({"sessionKey": "main", "message": "note", "label": "bot"})).await;
    let id = injected.expect("injected")["messageId"].as_str().map(str::to_owned).expect("an id");
    let heard = ears.until_chat(&format!("inject-{id}"), "final").await;
    assert_eq!(words(heard.last().expect("an event")), "[bot]\n\nnote");
    talk(&client, &mut ears, "main", "and?", "b").await;
    let request = model.requests().pop().expect("a request");
    let texts: Vec<String> = request.heard().iter().map(|one| one.text().to_owned()).collect();
    assert_eq!(texts, ["hi", "yes", "[bot]\n\nnote", "and?"]);
    hall.end().await;
}

#[tokio::test]
async fn history_is_short_and_for_people() {
    let model = ModelServer::answering(Chunking::Whole, |_| Turn::text("yes"));
    let hall = Hall::open(Tree::new(), &config(&model, json!({"session": {"mainKey": "home"}}))).await;
    let client = hall.operator().await;
    let mut ears = Ears::of(&client);
    let empty = client.call("chat.history", json!({"sessionKey": "main"})).await.expect("a history");
    assert_eq!((&empty["messages"], empty.get("sessionId")), (&json!([]), None));
    talk(&client, &mut ears, "main", "one", "a").await;
    talk(&client, &mut ears, "home", "two", "b").await;
    let history = client.call("chat.history", json!({"sessionKey": "agent:main:main", "limit": 3})).await;
    let history = history.expect("a history");
    let messages = history["messages"].as_array().expect("messages");
    let roles: Vec<&Value> = messages.iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["assistant", "user", "assistant"]);
    assert!(messages.iter().all(|message| message.get("usage").is_none()), "{history}");
    assert_eq!(history["thinkingLevel"], "off");
    let listed = client.call("sessions.list", json!({})).await.expect("a list");
    assert_eq!(keys(&listed), ["agent:main:home"], "both names are one session");
    hall.end().await;
}

#[tokio::test]
async fn models_and_tools_are_listed() {
    let model = ModelServer::script([]);
    let hall = Hall::open(Tree::new(), &config(&model, json!({}))).await;
    let client = hall.operator().await;
    let models = client.call("models.list", json!({})).await.expect("models");
    let ours: Vec<&Value> =
        models["models"].as_array().into_iter().flatten().filter(|row| row["provider"] == "fake").collect();
    assert_eq!(
        ours,
        [&json!({"id": "m", "name": "m", "provider": "fake", "reasoning": true, "contextWindow": 64_000})]
    );
    assert!(!models.to_string().contains("sk-canary"), "{models}");
    let catalog = client.call("tools.catalog", json!({})).await.expect("tools");
    assert_eq!(catalog["agentId"], "main");
    let groups: Vec<&Value> = catalog["groups"].as_array().into_iter().flatten().map(|group| &group["id"]).collect();
    assert_eq!(groups, ["fs", "runtime", "agents", "sessions"]);
    assert_eq!(catalog["groups"][1]["tools"][0]["id"], "exec");
    let refused = client.call("tools.catalog", json!({"agentId": "nobody"})).await.expect_err("no such agent");
    assert_eq!(refused.to_string(), "unknown agent id \"nobody\"");
    hall.end().await;
}
