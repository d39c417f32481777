//! Turns: what does a conversation cost over sending the same bytes to the same server?
//!
//! The floor is a bare POST of the body that a turn sent, to the same server in the same round. So what is left is ours:
//! the transcript, the prompt, the body, the ledger, and bringing it all to the disk.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};

use prowess_agent::event::{Event, Events};
use prowess_agent::message::{Assistant, Block, Message, StopReason, Usage, User, now};
use prowess_agent::model::Api;
use prowess_agent::provider::{Endpoint, Remote};
use prowess_agent::session::{SessionKey, Sessions};
use prowess_agent::tool::{Call, Order, Scope, Tool, ToolSet, ToolSpec};
use prowess_agent::{Agent, Conversation, Run};
use prowess_exec::ToolResult;
use prowess_testkit::bench::ratio;
use prowess_testkit::{Chunking, ModelServer, Tree, Turn};
use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};
use tokio::runtime::{Handle, Runtime};
use tokio::task::JoinHandle;

/// How often the first words are measured, a turn with a call, and a turn of a long session.
const FIRST: usize = 200;
const CALLS: usize = 50;
const LONG: usize = 9;

/// What the model says in the end.
const ANSWER: &str = "It is sunny in Lisbon, and it will stay so.";

/// A tool that does nothing.
struct Nothing(ToolSpec);

impl Tool for Nothing {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn order(&self) -> Order {
        Order::Beside
    }

    fn call<'a>(
        &'a self,
        _call: Call<'a>,
        _scope: &'a Scope<'a>,
    ) -> Pin<Box<dyn Future<Output = ToolResult> + Send + 'a>> {
        Box::pin(std::future::ready(ToolResult::done("nothing", Value::Null)))
    }
}

/// A server, an agent that talks to it, and a client that only sends.
struct Bench {
    tree: Tree,
    server: ModelServer,
    agent: Arc<Agent>,
    client: Client,
    runtime: Runtime,
}

/// Work that goes on after what was measured. It is waited for when nobody measures, and then a request follows, so that
/// whatever is measured next finds the same server awake.
struct Rest {
    runtime: Handle,
    task: Option<JoinHandle<()>>,
    after: Option<RequestBuilder>,
}

impl Drop for Rest {
    fn drop(&mut self) {
        let (Some(task), Some(after)) = (self.task.take(), self.after.take()) else { return };
        self.runtime.block_on(async {
            task.await.expect("no panic");
            after.send().await.expect("an answer").bytes().await.expect("an answer");
        });
    }
}

impl Bench {
    fn new() -> Self {
        let tree = Tree::new().dir("ws").dir("state");
        let server = ModelServer::answering(Chunking::Whole, |request| {
            let last = request.body["messages"].as_array().and_then(|messages| messages.last());
            match last {
                Some(last) if last["role"] == "user" && last["content"] == "call" => {
                    Turn::call("call_1", "nothing", json!({}))
                }
                _ => Turn::text(ANSWER),
            }
        });
        // Large enough that nothing is ever summarised.
        let endpoint = Endpoint {
            context_window: 1_000_000_000,
            max_tokens: 1_000,
            ..Endpoint::new("loopback", server.base_url(), Api::Chat, "m")
        };
        let spec = ToolSpec {
            name: "nothing".to_owned(),
            description: "Does nothing.".to_owned(),
            parameters: json!({"type": "object"}),
        };
        let tools: Vec<Arc<dyn Tool>> = vec![Arc::new(Nothing(spec))];
        let model = Arc::new(Remote::new(endpoint).expect("a model"));
        let agent = Agent::new(model, &tree.path("ws"), &tree.path("state")).tools(ToolSet::new(tools));
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        Self { tree, server, agent: Arc::new(agent), client: Client::new(), runtime: runtime.expect("a runtime") }
    }

    fn open(&self, name: &str) -> Conversation {
        self.agent.open(name).expect("a session")
    }

    fn whole_turn(&self, conversation: &mut Conversation, text: &str) {
        self.runtime.block_on(conversation.say(text, &Run::default())).expect("an answer");
    }

    /// A session that has had its first turn, which has more to bring to the disk than others.
    fn begun(&self, name: &str) -> Conversation {
        let mut conversation = self.open(name);
        self.whole_turn(&mut conversation, "hello");
        conversation
    }

    /// Turns with a call of a tool, each in a session of its own.
    fn turn_with_call(&self) -> impl FnMut() -> Conversation {
        let mut begun: Vec<Conversation> = (0..=CALLS).map(|number| self.begun(&format!("s{number}"))).collect();
        move || {
            let mut conversation = begun.pop().expect("one for each round");
            self.whole_turn(&mut conversation, "call");
            conversation
        }
    }

    /// The floor for them.
    fn two_requests(&self) -> impl Fn() {
        self.whole_turn(&mut self.begun("warm"), "call");
        let bodies = self.bodies(2);
        move || bodies.iter().for_each(|body| self.send(body))
    }

    /// What the last turns sent.
    fn bodies(&self, count: usize) -> Vec<Vec<u8>> {
        let requests = self.server.requests();
        let last = &requests[requests.len() - count..];
        last.iter().map(|request| serde_json::to_vec(&request.body).expect("JSON")).collect()
    }

    fn post(&self, body: &[u8]) -> RequestBuilder {
        let url = format!("{}/chat/completions", self.server.base_url());
        self.client.post(url).header("content-type", "application/json").body(body.to_vec())
    }

    /// The floor: sends a body and reads the whole answer.
    fn send(&self, body: &[u8]) {
        self.runtime.block_on(async {
            let answer = self.post(body).send().await.expect("an answer").bytes().await.expect("an answer");
            assert!(!answer.is_empty());
        });
    }

    /// The floor: sends a body and reads up to the first words of the answer.
    fn first_words(&self, body: &[u8]) -> Rest {
        let (post, (heard, first)) = (self.post(body), mpsc::channel());
        let task = self.runtime.spawn(async move {
            let mut answer = post.send().await.expect("an answer");
            let mut read = Vec::new();
            let mut heard = Some(heard);
            while let Some(piece) = answer.chunk().await.expect("an answer") {
                read.extend_from_slice(&piece);
                if has_words(&read)
                    && let Some(heard) = heard.take()
                {
                    heard.send(()).expect("somebody waits");
                }
            }
        });
        self.rest(task, &first, body)
    }

    /// Says something and waits for the first words of the answer.
    fn first_event(&self, mut conversation: Conversation, body: &[u8]) -> Rest {
        let (heard, first) = mpsc::channel();
        let events = Events::to(move |event| {
            if matches!(event, Event::Text { .. }) {
                // There is more than one, and only the first is waited for.
                heard.send(()).ok();
            }
        });
        let task = self.runtime.spawn(async move {
            conversation.say("hello", &Run::new(events)).await.expect("an answer");
        });
        self.rest(task, &first, body)
    }

    fn rest(&self, task: JoinHandle<()>, first: &Receiver<()>, body: &[u8]) -> Rest {
        first.recv().expect("an answer");
        Rest { runtime: self.runtime.handle().clone(), task: Some(task), after: Some(self.post(body)) }
    }
}

/// Whether a piece of text has arrived.
fn has_words(read: &[u8]) -> bool {
    let text = String::from_utf8_lossy(read);
    text.lines().filter_map(|line| line.strip_prefix("data: ")).any(|data| {
        serde_json::from_str::<Value>(data)
            .is_ok_and(|event| event["choices"][0]["delta"]["content"].as_str().is_some_and(|text| !text.is_empty()))
    })
}

fn main() {
    // The bare client never speaks TLS, but will not be built without it.
    rustls::crypto::ring::default_provider().install_default().expect("nobody else did");
    first_words();
    tool_round_trip();
    long_sessions();
}

/// From what a person says to the first words of the answer.
fn first_words() {
    let bench = Bench::new();
    bench.whole_turn(&mut bench.open("warm"), "hello");
    let body = bench.bodies(1).remove(0);
    let mut fresh: Vec<Conversation> = (0..=FIRST).map(|number| bench.open(&format!("s{number}"))).collect();
    ratio(
        "first words of an answer / a bare request",
        FIRST,
        || bench.first_words(&body),
        || bench.first_event(fresh.pop().expect("one for each round"), &body),
    );
}

/// A turn that calls a tool: two requests, and what lies between and after them.
fn tool_round_trip() {
    let bench = Bench::new();
    ratio("a turn with a call of a tool / two bare requests", CALLS, bench.two_requests(), bench.turn_with_call());
    let bench = Bench::new();
    let (disk, send) = (Disk::new(&bench.tree.path("disk")), bench.two_requests());
    let floor = || {
        send();
        disk.bring();
    };
    ratio("the same / two bare requests, and two files brought to the disk", CALLS, floor, bench.turn_with_call());
}

/// What has to reach the disk at the end of a turn: what was said, and when.
struct Disk(PathBuf);

impl Disk {
    fn new(dir: &Path) -> Self {
        std::fs::create_dir(dir).expect("a folder");
        Self(dir.to_owned())
    }

    fn bring(&self) {
        let write = |name: &str, bytes: &[u8]| {
            let path = self.0.join(name);
            std::fs::write(&path, bytes).and_then(|()| std::fs::File::open(&path)?.sync_data()).expect("a disk");
        };
        write("transcript", &[b'x'; 4_000]);
        write("index", &[b'x'; 4_000]);
    }
}

/// Going on with a session of very many messages.
fn long_sessions() {
    let bench = Bench::new();
    let go_on = |name: &str| {
        let mut conversation = bench.open(name);
        bench.whole_turn(&mut conversation, "hello");
        conversation
    };
    for (name, messages) in [("short", 1_000), ("long", 10_000)] {
        fill(&bench.tree, name, messages);
    }
    let linear = ratio(
        "10,000 messages opened and gone on with / 1,000 messages (10 is linear)",
        LONG,
        || go_on("short"),
        || go_on("long"),
    );
    println!("  a message: {:.2?} against {:.2?}", linear.ours / 10_000, linear.floor / 1_000);
    let body = bench.bodies(1).remove(0);
    println!("  the body has {} bytes", body.len());
    ratio("10,000 messages opened and gone on with / its body sent", LONG, || bench.send(&body), || go_on("long"));
    let mut open = bench.open("long");
    ratio(
        "10,000 messages gone on with / its body sent",
        LONG,
        || bench.send(&body),
        || bench.whole_turn(&mut open, "hello"),
    );
}

fn fill(tree: &Tree, name: &str, messages: usize) {
    let sessions = Sessions::new(&tree.path("state"), "main");
    let mut transcript = sessions.open(&SessionKey::new("main", name), Path::new("/")).expect("a session");
    for number in 0..messages {
        let text = format!("message {number}: {}", "the quick brown fox jumps over the lazy dog ".repeat(4));
        let message = if number % 2 == 0 { Message::User(User::says(text)) } else { said(text) };
        transcript.message(&message).expect("room on the disk");
    }
}

fn said(text: String) -> Message {
    Message::Assistant(Assistant {
        content: vec![Block::text(text)],
        api: Api::Chat.word().to_owned(),
        provider: "loopback".to_owned(),
        model: "m".to_owned(),
        usage: Usage { input: 10, output: 10, ..Usage::default() }.totalled(),
        stop_reason: StopReason::Stop,
        error_message: None,
        provider_data: serde_json::Map::new(),
        timestamp: now(),
    })
}
