//! Does an answer stay the same however the wire cuts it, and does every fault end clearly and within bounds?

use std::collections::HashSet;

use futures_util::{Stream, StreamExt as _, stream};
use proptest::prelude::*;
use prowess_agent::message::{Assistant, Block, Message, StopReason, User};
use prowess_agent::model::{About, Api, Delta, Draft, Model as _, ModelError, Request, Thinking};
use prowess_agent::provider::{Endpoint, MAX_REPLY, Remote, answer};
use prowess_agent::tool::ToolSpec;
use prowess_skills::Secret;
use prowess_testkit::{Answer, Chunking, ModelServer, Turn};
use serde_json::{Value, json};

const APIS: [Api; 3] = [Api::Anthropic, Api::Chat, Api::Responses];
const KEY: &str = "sk-test-0123456789";

fn endpoint(api: Api, base_url: &str) -> Endpoint {
    Endpoint {
        key: Some(Secret::new(KEY)),
        context_window: 100_000,
        max_tokens: 4000,
        ..Endpoint::new("loopback", base_url, api, "test-model")
    }
}

/// Asks the model at `base_url` once, and puts the answer together.
async fn ask(api: Api, base_url: &str) -> Result<Assistant, ModelError> {
    let remote = Remote::new(endpoint(api, base_url)).expect("a model");
    let messages = [Message::User(User::says("What is the weather in 上海?"))];
    let tools = [ToolSpec {
        name: "read".to_owned(),
        description: "Reads a file".to_owned(),
        parameters: json!({"type": "object"}),
    }];
    let request = Request {
        system: "You are a test.",
        messages: &messages,
        tools: &tools,
        max_tokens: None,
        thinking: Thinking::Low,
        session: "s",
    };
    finish(remote.about(), remote.stream(request)).await
}

async fn finish(about: &About, deltas: impl Stream<Item = Result<Delta, ModelError>>) -> Result<Assistant, ModelError> {
    let mut deltas = std::pin::pin!(deltas);
    let mut draft = Draft::new(about);
    while let Some(delta) = deltas.next().await {
        draft.apply(&delta?);
    }
    assert!(draft.is_done(), "a stream without an error says that the model is done");
    let reply = draft.finish();
    assert_eq!(reply.broken, []);
    Ok(Assistant { timestamp: 0, ..reply.message })
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(future)
}

fn answers() -> [Answer; 3] {
    let call = |id: &str, name: &str, arguments: Value| (id.to_owned(), name.to_owned(), arguments);
    let calls = vec![
        call("call_1", "read", json!({"path": "/skills/weather/SKILL.md", "note": "ünï \"quoted\" 🌤️\n"})),
        call("call_2", "exec", json!({"command": "curl -s wttr.in/上海", "nested": {"list": [1, 2.5, null, true]}})),
        call("call_3", "process", json!({})),
    ];
    [
        Answer { text: "It is sunny ☀️ in 上海.\n\ndata: not an event\r\n".to_owned(), ..Answer::default() },
        Answer { text: "Let me look.".to_owned(), calls: calls.clone(), ..Answer::default() },
        Answer {
            thinking: "The user wants – hm – weather.".to_owned(),
            text: "Ok.".to_owned(),
            calls,
            ..Answer::default()
        },
    ]
}

/// What a test compares: text, thoughts and calls of an answer.
fn heard(message: &Assistant) -> Answer {
    let thinking = message.content.iter().filter_map(|block| match block {
        Block::Thinking { thinking, .. } => Some(thinking.as_str()),
        _ => None,
    });
    Answer {
        thinking: thinking.collect(),
        text: message.text(),
        calls: message
            .calls()
            .map(|call| (call.id.clone(), call.name.clone(), Value::Object(call.arguments.clone())))
            .collect(),
        cut_short: message.stop_reason == StopReason::Length,
    }
}

#[test]
fn an_answer_is_the_same_in_every_chunking() {
    let chunkings =
        [Chunking::Whole, Chunking::Bytes(1), Chunking::Bytes(17), Chunking::Random(1), Chunking::Random(2)];
    for api in APIS {
        for said in answers() {
            let mut first: Option<Assistant> = None;
            for chunking in chunkings {
                let server = ModelServer::chunked(chunking, [Turn::Answer(said.clone())]);
                let message = block_on(ask(api, &server.base_url())).expect("an answer");
                assert_eq!(heard(&message), said, "{api:?} {chunking:?}");
                assert_eq!(message.stop_reason == StopReason::ToolUse, !said.calls.is_empty());
                assert!(message.usage.input > 0 && message.usage.cache_read > 0 && message.usage.output > 1);
                // Signatures and counts included.
                assert_eq!(*first.get_or_insert_with(|| message.clone()), message, "{api:?} {chunking:?}");
            }
        }
    }
}

#[test]
fn an_answer_that_is_not_streamed_is_the_same_answer() {
    for api in APIS {
        for said in answers() {
            let server = ModelServer::script([Turn::Answer(said.clone()), Turn::Whole(said)]);
            let streamed = block_on(ask(api, &server.base_url())).expect("an answer");
            let whole = block_on(ask(api, &server.base_url())).expect("an answer");
            assert_eq!(streamed, whole, "{api:?}");
        }
    }
}

#[test]
fn an_answer_out_of_room_says_so() {
    for api in APIS {
        let said = Answer { text: "and then".to_owned(), cut_short: true, ..Answer::default() };
        let server = ModelServer::script([Turn::Answer(said)]);
        let message = block_on(ask(api, &server.base_url())).expect("an answer");
        assert_eq!(message.stop_reason, StopReason::Length, "{api:?}");
    }
}

#[test]
fn requests_arrive_where_and_as_they_should() {
    for (api, path, header, value) in [
        (Api::Anthropic, "/v1/messages", "x-api-key", KEY.to_owned()),
        (Api::Chat, "/v1/chat/completions", "authorization", format!("Bearer {KEY}")),
        (Api::Responses, "/v1/responses", "authorization", format!("Bearer {KEY}")),
    ] {
        let server = ModelServer::script((0..3).map(|_| Turn::text("hi")));
        for base in [server.url(), server.base_url(), format!("{}/", server.base_url())] {
            block_on(ask(api, &base)).expect("an answer");
        }
        for request in server.requests() {
            assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", path));
            assert_eq!(request.header(header), Some(value.as_str()));
            assert_eq!(request.header("content-type"), Some("application/json"));
            assert_eq!((&request.body["model"], &request.body["stream"]), (&json!("test-model"), &json!(true)));
            assert!(request.texts().contains(&"You are a test."));
        }
        assert_eq!(server.requests().len(), 3);
    }
}

#[test]
fn connections_are_used_again_and_nothing_is_sent_unasked() {
    let server =
        ModelServer::answering(Chunking::Random(3), |request| Turn::Text(format!("heard {}", request.texts().len())));
    let remote = Remote::new(endpoint(Api::Chat, &server.base_url())).expect("a model");
    let request =
        Request { system: "s", messages: &[], tools: &[], max_tokens: None, thinking: Thinking::Off, session: "" };
    drop(remote.stream(request));
    assert_eq!(server.requests().len(), 0);
    block_on(async {
        for _ in 0..20 {
            let message = finish(remote.about(), remote.stream(request)).await.expect("an answer");
            assert_eq!(message.text(), "heard 3");
        }
    });
    let peers: HashSet<u16> = server.requests().iter().map(|request| request.peer).collect();
    // The end of an answer is not waited for long, so on a busy machine a connection may be lost now and then.
    assert!(server.requests().len() == 20 && peers.len() <= 10, "{} connections", peers.len());
}

/// The real bytes of an answer, as the server writes them.
fn bytes_of(api: Api, said: &Answer) -> Vec<u8> {
    let server = ModelServer::script([Turn::Answer(said.clone())]);
    let path = match api {
        Api::Anthropic => "messages",
        Api::Chat => "chat/completions",
        Api::Responses | Api::Embedded => "responses",
    };
    block_on(async {
        let url = format!("{}/{path}", server.base_url());
        plain_post(&url).await
    })
}

/// A request by hand, so that the bytes do not pass through what is tested.
async fn plain_post(url: &str) -> Vec<u8> {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let (host, path) = url.trim_start_matches("http://").split_once('/').expect("a path");
    let mut socket = tokio::net::TcpStream::connect(host).await.expect("a connection");
    // HTTP/1.0: the body ends with the connection and has no chunks.
    let request = format!("POST /{path} HTTP/1.0\r\nhost: {host}\r\ncontent-length: 2\r\n\r\n{{}}");
    socket.write_all(request.as_bytes()).await.expect("sent");
    let mut all = Vec::new();
    socket.read_to_end(&mut all).await.expect("an answer");
    let head = all.windows(4).position(|window| window == b"\r\n\r\n").expect("a head");
    all.split_off(head + 4)
}

async fn read_pieces(api: Api, pieces: Vec<Vec<u8>>) -> Result<Assistant, ModelError> {
    let about = About {
        provider: "loopback".to_owned(),
        model: "test-model".to_owned(),
        api,
        context_window: 0,
        max_tokens: 0,
        takes_images: false,
    };
    finish(&about, answer(api, "loopback", stream::iter(pieces).map(Ok))).await
}

/// The same events with other line ends, a byte order mark, and comments between them.
fn dressed(bytes: &[u8], line_end: &str, mark: &str, comment: &str) -> Vec<u8> {
    let text = String::from_utf8(bytes.to_vec()).expect("text");
    let lines = text.split('\n').collect::<Vec<_>>().join(line_end);
    let blank = format!("{line_end}{line_end}");
    format!("{mark}{comment}{}", lines.replace(&blank, &format!("{blank}{comment}"))).into_bytes()
}

#[test]
fn line_ends_marks_and_comments_change_nothing() {
    for api in APIS {
        let said = &answers()[2];
        let bytes = bytes_of(api, said);
        for line_end in ["\n", "\r\n", "\r"] {
            for mark in ["", "\u{feff}", " \u{c}", "\u{feff}\t "] {
                for comment in [String::new(), format!(": OPENROUTER PROCESSING{line_end}{line_end}")] {
                    let dressed = dressed(&bytes, line_end, mark, &comment);
                    for size in [1, 2, 3, dressed.len()] {
                        let pieces = dressed.chunks(size).map(<[u8]>::to_vec).collect();
                        let message = block_on(read_pieces(api, pieces)).expect("an answer");
                        assert_eq!(heard(&message), *said, "{api:?} {line_end:?} {mark:?} {comment:?} {size}");
                    }
                }
            }
        }
    }
}

#[test]
fn an_answer_without_its_end_is_cut_or_whole_never_something_else() {
    let calls =
        vec![("c1".to_owned(), "read".to_owned(), json!({"n": "ü"})), ("c2".to_owned(), "x".to_owned(), json!({}))];
    let said = Answer { thinking: "Hm.".to_owned(), text: "Ok 上.".to_owned(), calls, ..Answer::default() };
    for api in APIS {
        let bytes = bytes_of(api, &said);
        block_on(async {
            for end in 0..bytes.len() {
                match read_pieces(api, vec![bytes[..end].to_vec()]).await {
                    Ok(message) => assert_eq!(heard(&message), said, "{api:?} at {end}"),
                    Err(error) => assert!(matches!(error, ModelError::Cut { .. }), "{api:?} at {end}: {error}"),
                }
            }
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_cuts_give_the_same_answer(which in 0_usize..3, cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..40)) {
        for api in APIS {
            let said = &answers()[which];
            let bytes = bytes_of(api, said);
            let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
            places.extend([0, bytes.len()]);
            places.sort_unstable();
            let pieces = places.windows(2).map(|pair| bytes[pair[0]..pair[1]].to_vec()).collect();
            prop_assert_eq!(&heard(&block_on(read_pieces(api, pieces)).expect("an answer")), said);
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), events in prop::collection::vec("(event|data): ?[\\[\\]{}\":,a-z0-9]{0,40}\n{1,2}", 0..6)) {
        for api in APIS {
            let text = events.concat().into_bytes();
            for pieces in [vec![bytes.clone()], vec![text.clone()], vec![text, bytes.clone()]] {
                // Neither noise nor broken events say that a model is done.
                prop_assert!(block_on(read_pieces(api, pieces)).is_err());
            }
        }
    }
}

#[test]
fn a_broken_connection_is_a_cut_answer() {
    for api in APIS {
        let said = &answers()[1];
        let len = bytes_of(api, said).len();
        for after in (0..len).step_by(len / 40 + 1) {
            let turn = Box::new(Turn::Answer(said.clone()));
            let server = ModelServer::chunked(Chunking::Random(7), [Turn::Cut { turn, after }]);
            match block_on(ask(api, &server.base_url())) {
                Ok(message) => assert_eq!(heard(&message), *said, "{api:?} after {after}"),
                Err(error) => {
                    assert!(matches!(error, ModelError::Cut { .. }), "{api:?} after {after}: {error}");
                    assert!(error.is_passing());
                }
            }
        }
    }
}

#[test]
fn statuses_are_told_apart() {
    let body = r#"{"error":{"type":"some_error","message":"no \u001b[31mway, sk-test-0123456789"}}"#;
    for api in APIS {
        for code in [400, 401, 403, 404, 422, 429, 500, 502, 503, 529] {
            let headers = vec![("retry-after".to_owned(), "7".to_owned())];
            let server = ModelServer::script([Turn::Status { code, headers, body: body.to_owned() }]);
            let error = block_on(ask(api, &server.base_url())).expect_err("a fault");
            let is_right = match code {
                401 | 403 => matches!(error, ModelError::Key { .. }),
                400 | 404 | 422 => matches!(error, ModelError::Request { status, .. } if status == code),
                429 | 503 | 529 => matches!(error, ModelError::Busy { status, .. } if status == code),
                _ => matches!(error, ModelError::Server { status, .. } if status == code),
            };
            assert!(is_right, "{code}: {error:?}");
            assert_eq!(error.after().map(|after| after.as_secs()), (code == 429 || code >= 500).then_some(7));
            let shown = format!("{error} {error:?}");
            assert!(shown.contains("way, …") && !shown.contains(KEY) && !shown.contains('\u{1b}'), "{shown}");
        }
    }
}

#[test]
fn what_is_no_answer_is_said_clearly() {
    let overloaded = |api| match api {
        Api::Anthropic => {
            "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"
        }
        Api::Chat => "data: {\"error\":{\"message\":\"Overloaded\",\"type\":\"overloaded_error\",\"code\":529}}\n\n",
        Api::Responses | Api::Embedded => {
            "event: error\ndata: {\"type\":\"error\",\"code\":\"overloaded_error\",\"message\":\"Overloaded\"}\n\n"
        }
    };
    for api in APIS {
        let raw = |text: &str| Turn::Raw(text.as_bytes().to_vec());
        let turns = [
            raw("<!DOCTYPE html><html><head><title>Sign in</title></head></html>"),
            raw("{\"hello\":\"world\"}"),
            raw("{\"hello\": nonsense}"),
            raw("data: {\"type\": oops\n\n"),
            raw("data: \u{fffd}\n\n"),
            Turn::Raw(b"data: \xff\xfe\n\n".to_vec()),
            Turn::Status {
                code: 307,
                headers: vec![("location".to_owned(), "http://127.0.0.1:1/elsewhere".to_owned())],
                body: String::new(),
            },
        ];
        for turn in turns {
            let server = ModelServer::script([turn.clone()]);
            let error = block_on(ask(api, &server.base_url())).expect_err("no answer");
            assert!(matches!(error, ModelError::Malformed { .. }), "{api:?} {turn:?}: {error:?}");
            assert!(!error.is_passing());
        }
        let server = ModelServer::script([raw(overloaded(api))]);
        let error = block_on(ask(api, &server.base_url())).expect_err("no answer");
        assert!(matches!(error, ModelError::Busy { status: 529, .. }), "{api:?}: {error:?}");
        let server = ModelServer::script([raw("")]);
        let error = block_on(ask(api, &server.base_url())).expect_err("no answer");
        assert!(matches!(error, ModelError::Cut { .. }), "{api:?}: {error:?}");
    }
}

#[test]
fn nobody_there_is_said_without_the_key() {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    for api in APIS {
        let error = block_on(ask(api, &format!("http://{address}/v1?key={KEY}"))).expect_err("nobody");
        assert!(matches!(error, ModelError::Connection { .. }), "{error:?}");
        assert!(error.to_string().contains("refused") && !error.to_string().contains(KEY), "{error}");
    }
}

#[test]
fn an_endless_answer_ends() {
    let word = |api| match api {
        Api::Anthropic => {
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x".repeat(60_000)}})
        }
        Api::Chat => json!({"choices": [{"delta": {"content": "x".repeat(60_000)}}]}),
        Api::Responses | Api::Embedded => {
            json!({"type": "response.output_text.delta", "output_index": 0, "delta": "x".repeat(60_000)})
        }
    };
    let endless = |first: &[u8], then: Vec<u8>| Turn::Endless { first: first.to_vec(), then };
    let events = |api| (api, endless(b"", format!("data: {}\n\n", word(api)).into_bytes()));
    let shapeless = [
        // A line, an object, and blanks without end.
        endless(b"data: \"", vec![b'a'; 60_000]),
        endless(b"{\"content\": \"", vec![b'a'; 60_000]),
        endless(b"\n", vec![b'\n'; 60_000]),
    ];
    for (api, turn) in APIS.map(events).into_iter().chain(shapeless.map(|turn| (Api::Chat, turn))) {
        let server = ModelServer::script([turn]);
        let error = block_on(ask(api, &server.base_url())).expect_err("too long");
        assert_eq!(error, ModelError::TooLong { provider: "loopback".to_owned(), limit: MAX_REPLY });
        // What is on its way in sockets comes on top of what was read.
        assert!(server.sent() < MAX_REPLY + 16 * 1024 * 1024, "{} bytes were sent", server.sent());
    }
}

#[test]
fn an_endless_error_is_not_read_to_its_end() {
    let server = ModelServer::script([Turn::status(500, &"all is lost ".repeat(1_000_000))]);
    let error = block_on(ask(Api::Chat, &server.base_url())).expect_err("a fault");
    assert!(matches!(&error, ModelError::Server { status: 500, said, .. } if said.chars().count() <= 500), "{error}");
}
