//! What real providers answered, replayed: is every answer read right, and would every request of ours be taken?
//!
//! The server is the proxy of the real host, so that addresses are those of the recording. See `recordings/README.md`.

#[path = "recordings/expected.rs"]
mod expected;
#[path = "recordings/rules.rs"]
mod rules;

use crate::stage;
use std::path::Path;
use std::sync::{Arc, Mutex};

use futures_util::{StreamExt as _, stream};
use prowess_agent::agent::Limits;
use prowess_agent::event::End;
use prowess_agent::message::{Assistant, Block, Message};
use prowess_agent::model::{About, Api, Draft, ModelError, Thinking};
use prowess_agent::provider::{Clients, Endpoint, Remote, answer};
use prowess_agent::retry::Backoff;
use prowess_agent::settings::Settings;
use prowess_testkit::{Chunking, ModelServer, RecordedRequest, Turn};
use serde_json::{Value, json};
use stage::{Prop, Stage};

/// The recordings, by their ids.
fn cases(kind: char) -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    let read = |file: &std::path::PathBuf| -> Value {
        serde_json::from_slice(&std::fs::read(file).expect("a file")).expect("JSON")
    };
    files.iter().map(read).filter(|case| case["id"].as_str().is_some_and(|id| id.starts_with(kind))).collect()
}

/// What is left to answer in the turn under way, and what was answered last.
#[derive(Default)]
struct Script {
    left: Vec<Turn>,
    last: Option<(Value, Turn)>,
}

/// Everything that happened in the replay of a case.
struct Replay {
    case: Value,
    requests: Vec<Value>,
    replies: Vec<Assistant>,
    ends: Vec<End>,
}

fn answer_of(recorded: &Value) -> Turn {
    let body = recorded["body"].as_str().expect("a body").to_owned();
    match recorded["status"].as_u64() {
        Some(200) => Turn::Raw(body.into_bytes()),
        status => Turn::Status {
            code: status.and_then(|status| u16::try_from(status).ok()).expect("a status"),
            headers: Vec::new(),
            body,
        },
    }
}

/// The same request again gets the same answer again; after the last one, any short answer does.
fn responder(script: &Arc<Mutex<Script>>) -> impl Fn(&RecordedRequest) -> Turn + Send + Sync + 'static {
    let script = Arc::clone(script);
    move |request: &RecordedRequest| {
        let mut script = script.lock().expect("no panic");
        if let Some((_, turn)) = script.last.as_ref().filter(|(body, _)| *body == request.body) {
            return turn.clone();
        }
        let turn = if script.left.is_empty() { Turn::text("Enough.") } else { script.left.remove(0) };
        script.last = Some((request.body.clone(), turn.clone()));
        turn
    }
}

fn endpoint(case: &Value) -> Endpoint {
    let (provider, model) = (case["provider"].as_str().expect("one"), case["model"].as_str().expect("one"));
    let mut described = json!({"id": model});
    if let Some(window) = case["window"].as_u64() {
        described["contextWindow"] = json!(window);
    }
    let section = json!({"baseUrl": case["base"], "apiKey": "key", "api": case["api"], "models": [described]});
    let settings = Settings::read(&json!({"models": {"providers": {provider: section}}}), None, |_| None);
    Endpoint::from(&settings.find(&format!("{provider}/{model}")).expect("a model"))
}

async fn replay(case: Value, chunking: Chunking) -> Replay {
    let script = Arc::new(Mutex::new(Script::default()));
    let server = ModelServer::answering(chunking, responder(&script));
    let clients = Clients::through(server.url().parse().expect("an address"));
    let model = Remote::sharing(endpoint(&case), &clients).expect("a model");
    let stage = Stage::new();
    let backoff = Backoff { attempts: 3, first: std::time::Duration::ZERO, most: std::time::Duration::ZERO };
    let thinking = case["thinking"].as_str().and_then(Thinking::parse).unwrap_or_default();
    let limits = Limits { backoff, thinking, ..Limits::default() };
    let agent = Arc::new(stage.agent(Arc::new(model), &[Prop::echo("echo")]).limits(limits));
    let mut conversation = agent.open("main").expect("a conversation");
    let (says, turns) = (case["say"].as_array().expect("words"), case["turns"].as_array().expect("turns"));
    let mut ends = Vec::new();
    for (say, turn) in says.iter().zip(turns) {
        script.lock().expect("no panic").left = turn.as_array().expect("answers").iter().map(answer_of).collect();
        let outcome = conversation.say(say.as_str().expect("words"), &stage.run()).await.expect("a turn");
        ends.push(outcome.end);
    }
    let replies = stage.lines().into_iter().filter_map(|line| match serde_json::from_value(line["message"].clone()) {
        Ok(Message::Assistant(reply)) => Some(reply),
        _ => None,
    });
    let replies = replies.collect();
    let requests = server.requests().into_iter().map(|request| request.body).collect();
    Replay { case, requests, replies, ends }
}

/// The answers of the recording that are in the transcript are what the recording says.
fn check_replies(whole: &Replay) {
    let case = &whole.case;
    let answers: Vec<&Value> =
        case["turns"].as_array().into_iter().flatten().filter_map(Value::as_array).flatten().collect();
    let mut replies = whole.replies.iter();
    for answer in answers {
        let expected = expected::read(case["api"].as_str().expect("one"), answer["body"].as_str().expect("a body"));
        // A summary takes the place of an answer where the conversation is too long.
        let Some(reply) = replies.by_ref().find(|reply| case["window"].is_null() || reply.text() == expected.text)
        else {
            assert!(!case["window"].is_null(), "{}: an answer is not in the transcript", case["id"]);
            return;
        };
        assert_eq!(reply.text(), expected.text, "{}", case["id"]);
        let thoughts: String = reply
            .content
            .iter()
            .filter_map(|block| match block {
                Block::Thinking { thinking, .. } => Some(thinking.as_str()),
                _ => None,
            })
            .collect();
        let squeezed = |text: &str| text.split_whitespace().collect::<String>();
        assert_eq!(squeezed(&thoughts), squeezed(&expected.thoughts), "{}", case["id"]);
        let calls: Vec<(String, Value)> =
            reply.calls().map(|call| (call.name.clone(), Value::Object(call.arguments.clone()))).collect();
        assert_eq!(calls, expected.calls, "{}", case["id"]);
        let usage = reply.usage;
        let tokens = [usage.input, usage.output, usage.cache_read, usage.cache_write];
        assert_eq!(tokens, expected.tokens, "{}", case["id"]);
    }
}

fn check(whole: &Replay) {
    let case = &whole.case;
    rules::check(case, &whole.requests);
    let Some(error) = case["error"].as_object() else {
        assert!(whole.ends.iter().all(|end| *end == End::Answered), "{}: {:?}", case["id"], whole.ends);
        return check_replies(whole);
    };
    let Some(End::Failed(why)) = whole.ends.last() else { panic!("{}: {:?}", case["id"], whole.ends) };
    for said in error["says"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        assert!(why.contains(said), "{}: {why}", case["id"]);
    }
    let tries = whole.requests.len() as u64;
    assert!(error.get("tries").and_then(Value::as_u64).is_none_or(|most| tries <= most), "{}: {tries}", case["id"]);
    assert!(error.get("least").and_then(Value::as_u64).is_none_or(|least| tries >= least), "{}: {tries}", case["id"]);
}

async fn replay_all(kind: char, count: usize) {
    let cases = cases(kind);
    assert_eq!(cases.len(), count);
    for case in cases {
        for chunking in [Chunking::Events, Chunking::Whole, Chunking::Random(7)] {
            check(&replay(case.clone(), chunking).await);
        }
    }
}

#[tokio::test]
async fn anthropic_messages_are_replayed() {
    replay_all('a', 19).await;
}

#[tokio::test]
async fn chat_completions_are_replayed() {
    replay_all('c', 20).await;
}

#[tokio::test]
async fn responses_are_replayed() {
    replay_all('r', 16).await;
}

/// What an answer comes to when its bytes arrive in pieces of this size.
async fn read_in_pieces(api: Api, body: &str, size: usize) -> Result<Assistant, ModelError> {
    let (provider, model) = ("p".to_owned(), "m".to_owned());
    let about = About { provider, model, api, context_window: 0, max_tokens: 0, takes_images: false };
    let pieces: Vec<Result<Vec<u8>, ModelError>> =
        body.as_bytes().chunks(size).map(|piece| Ok(piece.to_vec())).collect();
    let mut deltas = std::pin::pin!(answer(api, "p", stream::iter(pieces)));
    let mut draft = Draft::new(&about);
    while let Some(delta) = deltas.next().await {
        draft.apply(&delta?);
    }
    Ok(Assistant { timestamp: 0, ..draft.finish().message })
}

#[tokio::test]
async fn one_byte_at_a_time_is_the_same_answer() {
    for case in ['a', 'c', 'r'].into_iter().flat_map(cases) {
        let api = case["api"].as_str().and_then(Api::parse).expect("a wire format");
        let answers = case["turns"].as_array().into_iter().flatten().filter_map(Value::as_array).flatten();
        for body in answers.filter(|answer| answer["status"] == 200).filter_map(|answer| answer["body"].as_str()) {
            let at_once = read_in_pieces(api, body, body.len()).await;
            for size in [1, 3] {
                assert_eq!(read_in_pieces(api, body, size).await, at_once, "{}: {size}", case["id"]);
            }
        }
    }
}
