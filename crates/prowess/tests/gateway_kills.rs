//! Faults: the gateway and a node are killed and started again at random. Every run ends exactly once, as done or as
//! failed with the reason, and no command runs twice.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use prowess_gateway::client::{CallError, Client, Introduction};
use prowess_testkit::{Chunking, Dice, ModelServer, Prowess, RecordedRequest, Served, Turn, free_port};
use serde_json::{Value, json};

/// What clients have to know.
const TOKEN: &str = "a-token-for-tests";

/// How many runs there are, unless `PROWESS_KILL_RUNS` says otherwise.
const RUNS: usize = 60;

/// How many at once.
const SPEAKERS: usize = 4;

/// What the model says when the command has run.
const RAN: &str = "It ran.";

/// How long a run may take, all kills included.
const PATIENCE: Duration = Duration::from_secs(90);

/// How a run ended, as a client was told.
#[derive(Debug, Clone, PartialEq, Eq)]
enum End {
    /// With this answer.
    Done(String),
    Failed(String),
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_run_ends_once_whoever_is_killed() {
    let runs = std::env::var("PROWESS_KILL_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(RUNS);
    let stage = Arc::new(Stage::set());
    let over = Arc::new(AtomicBool::new(false));
    let killer = tokio::spawn(kill(Arc::clone(&stage), Arc::clone(&over)));
    let next = Arc::new(AtomicUsize::new(0));
    let speakers = (0..SPEAKERS).map(|speaker| {
        let (stage, next) = (Arc::clone(&stage), Arc::clone(&next));
        tokio::spawn(async move {
            let mut ends = BTreeMap::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= runs {
                    return ends;
                }
                let id = format!("run-{number}");
                let end = stage.run(&id, speaker).await;
                ends.insert(id, end);
            }
        })
    });
    let mut ends = BTreeMap::new();
    for speaker in speakers.collect::<Vec<_>>() {
        ends.extend(speaker.await.expect("a speaker"));
    }
    over.store(true, Ordering::Relaxed);
    let kills = killer.await.expect("the killer");
    assert_eq!(ends.len(), runs);
    for (id, end) in &ends {
        assert_eq!(stage.end_of(id).await, *end, "{id} is told differently the second time");
        let times = stage.times(id);
        match end {
            End::Done(text) if text == RAN => assert_eq!(times, 1, "{id}"),
            // The node may have been killed before it could tell.
            End::Done(text) => assert!(times <= 1, "{id} ran {times} times: {text}"),
            End::Failed(why) => assert!(times <= 1 && !why.is_empty(), "{id} ran {times} times and failed: {why}"),
        }
    }
    let done = ends.values().filter(|end| **end == End::Done(RAN.to_owned())).count();
    println!("{} gateways and {} nodes killed; {done} runs done, {} failed", kills.0, kills.1, runs - done);
    assert!(done > 0, "nothing was ever done: {ends:?}");
}

/// Kills and starts again, until all runs are over. Says how many gateways and nodes it killed.
async fn kill(stage: Arc<Stage>, over: Arc<AtomicBool>) -> (usize, usize) {
    let mut dice = Dice::new(42);
    let mut kills = (0, 0);
    while !over.load(Ordering::Relaxed) {
        tokio::time::sleep(Duration::from_millis(600 + dice.below(1_200))).await;
        let stage = Arc::clone(&stage);
        let is_gateway = dice.below(2) == 0;
        tokio::task::spawn_blocking(move || stage.replace(is_gateway)).await.expect("started again");
        if is_gateway { kills.0 += 1 } else { kills.1 += 1 }
    }
    kills
}

struct Stage {
    home: Prowess,
    node_home: Prowess,
    port: u16,
    programs: Mutex<(Served, Served)>,
    _model: ModelServer,
}

impl Stage {
    fn set() -> Self {
        let model = ModelServer::answering(Chunking::Whole, think);
        let config = json!({
            "gateway": {"auth": {"mode": "token", "token": TOKEN}},
            "agents": {"defaults": {"model": "fake/m"}},
            "tools": {"exec": {"security": "full", "ask": "off"}},
            "models": {"providers": {"fake": {
                "baseUrl": model.base_url(), "apiKey": "none", "api": "openai-completions",
                "models": [{"id": "m", "name": "m"}],
            }}},
        });
        let path = std::env::var("PATH").unwrap_or_default();
        let home = Prowess::new(env!("CARGO_BIN_EXE_prowess")).config(&config.to_string()).env("PATH", &path);
        let node_config = json!({"tools": {"exec": {"security": "full", "ask": "off"}}});
        let rules = json!({"version": 1, "defaults": {"security": "full", "ask": "off"}});
        let node_home = Prowess::new(env!("CARGO_BIN_EXE_prowess"))
            .config(&node_config.to_string())
            .file(".openclaw/exec-approvals.json", rules.to_string())
            .env("PATH", &path)
            .env("OPENCLAW_GATEWAY_TOKEN", TOKEN);
        let port = free_port();
        let programs = Mutex::new((gateway(&home, port), node(&node_home, port)));
        Self { home, node_home, port, programs, _model: model }
    }

    fn replace(&self, is_gateway: bool) {
        let mut programs = self.programs.lock().expect("nobody panicked");
        if is_gateway {
            programs.0.kill();
            programs.0 = gateway(&self.home, self.port);
        } else {
            programs.1.kill();
            programs.1 = node(&self.node_home, self.port);
        }
    }

    /// Sees a run through, whatever happens on the way: the same words under the same name, until there is an end.
    async fn run(&self, id: &str, speaker: usize) -> End {
        let begun = tokio::time::Instant::now();
        loop {
            assert!(begun.elapsed() < PATIENCE, "{id} has no end\n{}", self.log());
            match self.ask(id, speaker).await {
                Ok(answer) => {
                    let payloads = answer["result"]["payloads"].as_array().cloned().unwrap_or_default();
                    let last = payloads.last().and_then(|last| last["text"].as_str()).unwrap_or_default();
                    return End::Done(last.to_owned());
                }
                Err(CallError::Refused { error, payload }) if is_end(payload.as_deref(), id) => {
                    return End::Failed(error["message"].as_str().unwrap_or_default().to_owned());
                }
                // Not begun, or nobody there to tell: it is asked again.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    }

    async fn ask(&self, id: &str, speaker: usize) -> Result<Value, CallError> {
        let client = self.client().await?;
        let place = if id.ends_with(['0', '3', '6']) { "node" } else { "gateway" };
        let params = json!({
            "message": format!("RUN {place} {id}"),
            "sessionKey": format!("agent:main:kills-{speaker}"),
            "idempotencyKey": id,
        });
        client.finish("agent", params, PATIENCE).await
    }

    async fn client(&self) -> Result<Client, CallError> {
        Client::connect(&format!("ws://127.0.0.1:{}", self.port), &Introduction::operator(TOKEN)).await
    }

    /// How a run ended, asked once more.
    async fn end_of(&self, id: &str) -> End {
        self.run(id, 0).await
    }

    /// How often the command of a run was run.
    fn times(&self, id: &str) -> usize {
        let file = format!(".openclaw/workspace/{id}");
        [&self.home, &self.node_home].map(|home| lines(&home.path(&file))).iter().sum()
    }

    fn log(&self) -> String {
        let programs = self.programs.lock().expect("nobody panicked");
        format!("{}\n{}", programs.0.log(), programs.1.log())
    }
}

/// Whether a refusal is the end of that run, and not of this attempt to tell of it.
fn is_end(payload: Option<&Value>, id: &str) -> bool {
    payload.is_some_and(|payload| payload["runId"] == id && payload["status"] == "error")
}

fn gateway(home: &Prowess, port: u16) -> Served {
    Served::gateway(home, &["--port", &port.to_string()])
}

fn node(home: &Prowess, port: u16) -> Served {
    Served::start(home, &["node", "run", "--gateway", &format!("ws://127.0.0.1:{port}")])
}

fn lines(path: &Path) -> usize {
    std::fs::read_to_string(path).map_or(0, |text| text.lines().count())
}

/// Runs what it was told to, once, and says so.
fn think(request: &RecordedRequest) -> Turn {
    let messages = request.body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let last = messages.last().cloned().unwrap_or_default();
    let text: String = match &last["content"] {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect(),
        _ => String::new(),
    };
    // What was said before a kill may stand in front of it, unanswered.
    let mut words = text.rsplit_once("RUN ").map_or("", |(_, wish)| wish).split_whitespace();
    match (last["role"] == "user", words.next(), words.next()) {
        (true, Some(place), Some(file)) => {
            let mut arguments = json!({"command": format!("echo ran | tee -a {file}"), "host": place});
            if place == "gateway" {
                arguments.as_object_mut().expect("an object").remove("host");
            }
            Turn::call("call_1", "exec", arguments)
        }
        _ if text.trim() == "ran" => Turn::text(RAN),
        _ => Turn::text(&format!("It did not run: {text}")),
    }
}
