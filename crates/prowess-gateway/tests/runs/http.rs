//! HTTP: agents and tools, as programs for OpenAI's formats call them.

use prowess_gateway::client::Event;
use prowess_testkit::{Answer as Says, Chunking, Heard, ModelServer, Tree, Turn, cases};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

use crate::hall::{Ears, Hall, config, endless, until};
use crate::plain::{Answer, announce, ask, send};
use crate::room::TOKEN;

const GOLDEN: &str = include_str!("../golden/http.json");

const CHAT: &str = "/v1/chat/completions";
const RESPONSES: &str = "/v1/responses";
const TOOLS: &str = "/tools/invoke";

fn open_to_programs(model: &ModelServer, more: Value) -> Value {
    let mut config = config(model, more);
    config["gateway"]["http"]["endpoints"] =
        json!({"chatCompletions": {"enabled": true}, "responses": {"enabled": true}});
    config
}

async fn post(hall: &Hall, path: &str, body: &Value) -> Answer {
    let bearer = format!("Bearer {TOKEN}");
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    ask(hall.running.address, "POST", path, &headers, &body.to_string()).await
}

fn question(text: &str) -> Value {
    json!({"model": "openclaw", "messages": [{"role": "user", "content": text}]})
}

#[tokio::test]
async fn agents_are_listed_as_models() {
    let model = ModelServer::script([]);
    let agents = json!({"agents": {"list": [{"id": "main"}, {"id": "ops"}]}});
    let hall = Hall::open(Tree::new(), &open_to_programs(&model, agents)).await;
    let bearer = format!("Bearer {TOKEN}");
    let get = async |path: &str, headers: &[(&str, &str)]| {
        let answer = ask(hall.running.address, "GET", path, headers, "").await;
        (answer.status, serde_json::from_str::<Value>(&answer.body).unwrap_or_default())
    };
    let known: &[(&str, &str)] = &[("authorization", &bearer)];
    let (status, list) = get("/v1/models", known).await;
    let ids: Vec<&Value> = list["data"].as_array().into_iter().flatten().map(|model| &model["id"]).collect();
    assert_eq!((status, &list["object"]), (200, &json!("list")), "{list}");
    assert_eq!(ids, ["openclaw", "openclaw:main", "openclaw:ops"]);
    let (status, one) = get("/v1/models/openclaw:ops", known).await;
    assert_eq!((status, &one["id"], &one["object"]), (200, &json!("openclaw:ops"), &json!("model")));
    assert!(one["created"].is_u64() && one["owned_by"].is_string(), "{one}");
    assert_eq!(get("/v1/models/gpt-5", known).await.0, 404);
    assert_eq!(get("/v1/models", &[]).await.0, 401);
    hall.running.end().await;
}

#[tokio::test]
async fn recorded_answers_are_the_same() {
    let model = ModelServer::script([]);
    let hall = Hall::open(Tree::new(), &open_to_programs(&model, json!({}))).await;
    let bearer = format!("Bearer {TOKEN}");
    let known: &[(&str, &str)] = &[("authorization", &bearer)];
    for (id, case) in cases(GOLDEN) {
        let (method, path, headers, body) = match id.as_str() {
            "GET" => ("GET", CHAT, known, ""),
            "empty" => ("POST", CHAT, known, "{}"),
            "badjson" => ("POST", CHAT, known, "{bad"),
            "tools noauth" => ("POST", TOOLS, &[][..], "{}"),
            "tools notool" => ("POST", TOOLS, known, "{}"),
            "tools exec" => ("POST", TOOLS, known, r#"{"tool":"exec","args":{"command":"id"}}"#),
            "tools agents_list" => ("POST", TOOLS, known, r#"{"tool":"agents_list"}"#),
            "tools gateway denied" => ("POST", TOOLS, known, r#"{"tool":"gateway"}"#),
            // Of a tool that is not here; and what is served elsewhere.
            _ => continue,
        };
        let answer = ask(hall.running.address, method, path, headers, body).await;
        assert_eq!(Value::from(answer.status), case["status"], "{id}: {answer:?}");
        for (name, value) in case["headers"].as_object().expect("headers") {
            assert_eq!(answer.headers.get(name).map(String::as_str), value.as_str(), "{id}: {name}");
        }
        let mut ours = serde_json::from_str(&answer.body).unwrap_or_else(|_| Value::from(answer.body.as_str()));
        if id == "badjson" {
            // Every parser has words of its own.
            ours["error"]["message"] = "".into();
        }
        let pretty = "/result/content/0/text";
        if let Some(text) = ours.pointer(pretty).and_then(Value::as_str) {
            let parsed: Value = serde_json::from_str(text).expect("JSON");
            assert_eq!(parsed, ours["result"]["details"], "{id}");
            ours["result"]["content"][0]["text"] = case["body"].pointer(pretty).cloned().unwrap_or_default();
        }
        assert_eq!(ours, case["body"], "{id}");
    }
    hall.end().await;
}

#[tokio::test]
async fn what_is_not_switched_on_is_not_there() {
    let model = ModelServer::script([]);
    let hall = Hall::open(Tree::new(), &config(&model, json!({}))).await;
    for path in [CHAT, RESPONSES] {
        let answer = post(&hall, path, &question("hi")).await;
        assert_eq!((answer.status, answer.body.as_str()), (404, "Not Found"));
    }
    hall.end().await;
}

#[tokio::test]
async fn a_question_is_answered_with_what_it_cost() {
    let model = ModelServer::script([
        Turn::Answer(Says {
            text: "Let me look.".to_owned(),
            calls: vec![("c1".to_owned(), "read".to_owned(), json!({"path": "note.txt"}))],
            ..Says::default()
        }),
        Turn::text("It says hello."),
    ]);
    let tree = Tree::new().file(".openclaw/workspace/note.txt", "hello\n");
    let hall = Hall::open(tree, &open_to_programs(&model, json!({}))).await;
    let body = json!({"model": "openclaw:main", "user": "Ada", "messages": [
        {"role": "system", "content": "Be brief, canary-17."},
        {"role": "user", "content": "earlier"}, {"role": "assistant", "content": "indeed"},
        {"role": "user", "content": "what does it say?"},
    ]});
    let answer = post(&hall, CHAT, &body).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let answer = answer.json();
    assert_eq!((&answer["object"], &answer["model"]), (&json!("chat.completion"), &json!("openclaw:main")));
    let choice = json!({"index": 0, "finish_reason": "stop",
        "message": {"role": "assistant", "content": "Let me look.\n\nIt says hello."}});
    assert_eq!(answer["choices"], json!([choice]));
    assert_eq!(answer["usage"]["total_tokens"].as_u64(), Some(model.tokens()));
    let request = &model.requests()[0];
    assert!(request.system().contains("Be brief, canary-17."));
    let asked = request.heard().pop().map(|heard| heard.text().to_owned()).unwrap_or_default();
    assert!(asked.contains("User: earlier\nAssistant: indeed") && asked.ends_with("what does it say?"), "{asked}");
    let sessions = hall.operator().await.call("sessions.list", json!({})).await.expect("a list");
    assert_eq!(sessions["sessions"][0]["key"], "agent:main:openai-user:ada");
    hall.end().await;
}

#[tokio::test]
async fn an_answer_is_streamed_to_its_end() {
    let model = ModelServer::script([Turn::text("One two three."), Turn::text("Four five.")]);
    let hall = Hall::open(Tree::new(), &open_to_programs(&model, json!({}))).await;
    let mut body = question("count");
    body["stream"] = true.into();
    body["stream_options"] = json!({"include_usage": true});
    let answer = post(&hall, CHAT, &body).await;
    assert_eq!(answer.headers["content-type"], "text/event-stream; charset=utf-8");
    assert!(answer.body.ends_with("data: [DONE]\n\n"), "{}", answer.body);
    let events = answer.events();
    assert_eq!(events[0]["choices"][0]["delta"], json!({"role": "assistant"}));
    let text: String = events.iter().filter_map(|event| event["choices"][0]["delta"]["content"].as_str()).collect();
    assert_eq!(text, "One two three.");
    let ends: Vec<&Value> =
        events.iter().map(|event| &event["choices"][0]["finish_reason"]).filter(|reason| !reason.is_null()).collect();
    assert_eq!(ends, ["stop"]);
    let last = events.last().expect("an event");
    assert_eq!(last["choices"], json!([]));
    assert_eq!(last["usage"]["total_tokens"].as_u64(), Some(model.tokens()));

    let body = json!({"model": "openclaw", "input": "count on", "stream": true});
    let answer = post(&hall, RESPONSES, &body).await;
    let events = answer.events();
    let kinds: Vec<&str> = events.iter().filter_map(|event| event["type"].as_str()).collect();
    let mut expected =
        vec!["response.created", "response.in_progress", "response.output_item.added", "response.content_part.added"];
    expected.extend(vec!["response.output_text.delta"; kinds.len() - 8]);
    expected.extend([
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]);
    assert_eq!(kinds, expected);
    let response = &events.last().expect("an event")["response"];
    assert_eq!(response["output"][0]["content"][0]["text"], "Four five.");
    assert_eq!(
        (&response["status"], response["usage"]["output_tokens"].as_u64() > Some(0)),
        (&json!("completed"), true)
    );
    assert!(answer.body.ends_with("data: [DONE]\n\n"));
    hall.end().await;
}

/// Answers that break are asked for again, and the model may have a stand-in; programs see one answer.
#[tokio::test]
async fn what_breaks_is_never_part_of_an_answer() {
    let whole = Turn::text("The first half of an answer that breaks.");
    let cut = Turn::Cut { turn: Box::new(whole), after: 900 };
    let stand_in = ModelServer::answering(Chunking::Whole, |_| Turn::text("Whole."));
    let broken = ModelServer::answering(Chunking::Bytes(100), move |_| cut.clone());
    let more = json!({
        "models": {"providers": {"spare": {
            "baseUrl": stand_in.base_url(), "api": "openai-completions", "apiKey": "sk-canary-4712",
            "models": [{"id": "m", "contextWindow": 64_000, "maxTokens": 2_000}],
        }}},
        "agents": {"defaults": {"model": {"primary": "fake/m", "fallbacks": ["spare/m"]}}},
    });
    let hall = Hall::open(Tree::new(), &open_to_programs(&broken, more)).await;
    let client = hall.operator().await;
    let mut ears = Ears::of(&client);
    for is_streamed in [true, false] {
        let mut body = question("go");
        body["stream"] = is_streamed.into();
        let answer = post(&hall, CHAT, &body).await;
        assert!(answer.body.contains("Whole.") && !answer.body.contains("first"), "{}", answer.body);
        let body = json!({"model": "openclaw", "input": "go", "stream": is_streamed});
        let answer = post(&hall, RESPONSES, &body).await;
        assert!(answer.body.contains("Whole.") && !answer.body.contains("first"), "{}", answer.body);
    }
    assert!(broken.requests().len() >= 4, "it was asked");
    let told = ears.rest();
    assert!(!told.is_empty() && !told.iter().any(|event| event.payload.to_string().contains("first")), "{told:?}");
    hall.end().await;
}

#[tokio::test]
async fn responses_are_answered_whole_as_well() {
    let model = ModelServer::script([Turn::text("Yes."), Turn::status(401, r#"{"error":{"message":"no key"}}"#)]);
    let hall = Hall::open(Tree::new(), &open_to_programs(&model, json!({}))).await;
    let body = json!({"model": "openclaw", "instructions": "Be kind, canary-18.", "input": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "well?"}]},
    ]});
    let answer = post(&hall, RESPONSES, &body).await.json();
    assert_eq!((&answer["object"], &answer["status"]), (&json!("response"), &json!("completed")));
    assert_eq!(answer["output"][0]["content"], json!([{"type": "output_text", "text": "Yes."}]));
    assert_eq!(answer["usage"]["total_tokens"].as_u64(), Some(model.tokens()));
    assert!(model.requests()[0].system().contains("Be kind, canary-18."));
    let failed = post(&hall, RESPONSES, &body).await;
    assert_eq!(failed.status, 500);
    let failed = failed.json();
    assert_eq!((&failed["status"], &failed["error"]["code"]), (&json!("failed"), &json!("api_error")));
    let wrong = post(&hall, RESPONSES, &json!({"model": "openclaw", "input": []})).await;
    assert_eq!(wrong.status, 400);
    assert_eq!(wrong.json()["error"]["message"], "Missing user message in `input`.");
    hall.end().await;
}

#[tokio::test]
async fn images_reach_the_model_and_links_to_images_are_refused() {
    let model = ModelServer::answering(Chunking::Whole, |_| Turn::text("I see."));
    let models = json!([{"id": "m", "contextWindow": 64_000, "maxTokens": 2_000, "input": ["text", "image"]}]);
    let accepts_images = json!({"models": {"providers": {"fake": {"models": models}}}});
    let hall = Hall::open(Tree::new(), &open_to_programs(&model, accepts_images)).await;
    let body = |path: &str, url: &str| {
        let (text, image) = if path == CHAT {
            (json!({"type": "text", "text": "What is it?"}), json!({"type": "image_url", "image_url": {"url": url}}))
        } else {
            (json!({"type": "input_text", "text": "What is it?"}), json!({"type": "input_image", "image_url": url}))
        };
        let messages = if path == CHAT { "messages" } else { "input" };
        json!({"model": "openclaw", messages: [{"role": "user", "content": [text, image]}]})
    };
    for (number, path) in [CHAT, RESPONSES].into_iter().enumerate() {
        let seen = post(&hall, path, &body(path, "data:image/png;base64,iVBORw0KGgo=")).await;
        assert_eq!(seen.status, 200, "{}", seen.body);
        let requests = model.requests();
        let asked = requests.last().expect("the model was asked").body["messages"].to_string();
        assert!(asked.contains("What is it?") && asked.contains("data:image/png;base64,iVBORw0KGgo="), "{asked}");
        let refused = post(&hall, path, &body(path, "https://example.com/a.png")).await;
        let why = refused.json()["error"]["message"].as_str().expect("a reason").to_owned();
        assert!(refused.status == 400 && why.contains("data: URL"), "{why}");
        assert_eq!(model.requests().len(), number + 1, "nothing is asked about a link");
    }
    hall.end().await;
}

#[tokio::test]
async fn failures_keep_their_shape() {
    let model = ModelServer::answering(Chunking::Whole, |_| Turn::status(401, r#"{"error":{"message":"no key"}}"#));
    let hall = Hall::open(Tree::new(), &open_to_programs(&model, json!({}))).await;
    let failed = post(&hall, CHAT, &question("hi")).await;
    assert_eq!((failed.status, &failed.json()["error"]["type"]), (500, &json!("api_error")));
    let mut body = question("hi");
    body["stream"] = true.into();
    let failed = post(&hall, CHAT, &body).await;
    let events = failed.events();
    assert_eq!(events.last().expect("an event")["error"]["type"], "api_error");
    assert!(failed.body.ends_with("data: [DONE]\n\n"));
    let unknown = post(&hall, CHAT, &json!({"model": "openclaw:nobody", "messages": question("x")["messages"]})).await;
    assert_eq!((unknown.status, &unknown.json()["error"]["type"]), (400, &json!("invalid_request_error")));
    let large = announce(hall.running.address, CHAT, &format!("Bearer {TOKEN}"), 20 * 1024 * 1024 + 1).await;
    assert_eq!((large.status, &large.json()["error"]["message"]), (413, &json!("Payload too large")));
    let wrong = [("authorization", "Bearer wrong")];
    let wrong = ask(hall.running.address, "POST", CHAT, &wrong, "{}").await;
    assert_eq!(wrong.status, 401);
    hall.end().await;
}

#[tokio::test]
async fn who_hangs_up_ends_the_run() {
    let model = ModelServer::answering(Chunking::Whole, |request| {
        let is_last = request.heard().last().is_some_and(|last| matches!(last, Heard::Person(text) if text == "go on"));
        if is_last { endless() } else { Turn::text("done") }
    });
    let hall = Hall::open(Tree::new(), &open_to_programs(&model, json!({}))).await;
    let client = hall.operator().await;
    let mut ears = Ears::of(&client);
    let bearer = format!("Bearer {TOKEN}");
    for is_streamed in [true, false] {
        let mut body = question("go on");
        body["stream"] = is_streamed.into();
        let headers = [("authorization", bearer.as_str()), ("x-openclaw-session-key", "programs")];
        let mut socket = send(hall.running.address, "POST", CHAT, &headers, &body.to_string()).await;
        // The program that wants the whole answer at once hears nothing before its end, and nor does anyone else.
        let begins = |event: &Event| {
            let (at, word) = if is_streamed { ("/stream", "assistant") } else { ("/data/phase", "start") };
            event.payload.pointer(at).is_some_and(|found| found == word)
        };
        ears.until("work", begins).await;
        if is_streamed {
            let mut some = [0; 64];
            assert!(socket.read(&mut some).await.expect("bytes") > 0, "the answer has begun");
        }
        drop(socket);
        let heard = ears.until("the end", |event| event.payload["state"] == "aborted").await;
        assert_eq!(heard.last().expect("an event").payload["stopReason"], "disconnect", "streamed: {is_streamed}");
    }
    let heard = || async {
        let list = client.call("sessions.list", json!({})).await.expect("a list");
        list["sessions"][0]["key"] == "agent:main:programs"
    };
    until("it was the session of that name", heard).await;
    hall.end().await;
}

#[tokio::test]
async fn programs_call_only_the_tools_they_may() {
    let model = ModelServer::answering(Chunking::Whole, |_| Turn::text("yes"));
    let tools = json!({"tools": {"deny": ["sessions_history"]}, "gateway": {"tools": {"allow": ["sessions_send"]}}});
    let hall = Hall::open(Tree::new(), &open_to_programs(&model, tools)).await;
    for (tool, status) in [
        ("sessions_list", 200),
        ("sessions_history", 404),
        ("sessions_spawn", 404),
        ("sessions_send", 400),
        ("read", 404),
        ("exec", 404),
    ] {
        let answer = post(&hall, TOOLS, &json!({"tool": tool})).await;
        assert_eq!(answer.status, status, "{tool}: {answer:?}");
        assert_eq!(answer.json()["ok"], status == 200, "{tool}");
    }
    let wrong = post(&hall, TOOLS, &json!({"tool": "sessions_list", "args": {"limit": "many"}})).await;
    assert_eq!((wrong.status, &wrong.json()["error"]["type"]), (400, &json!("tool_error")));
    let large = announce(hall.running.address, TOOLS, &format!("Bearer {TOKEN}"), 2 * 1024 * 1024 + 1).await;
    assert_eq!(large.status, 413);
    hall.end().await;
}
