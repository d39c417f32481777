//! A hall: a gateway whose agents speak to a model on this machine, and whoever listens.

use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;

use prowess_gateway::client::{Client, Event, Introduction};
use prowess_gateway::{Gateway, Options, Running};
use prowess_testkit::{ModelServer, Tree, Turn};
use serde_json::{Value, json};
use tokio::sync::broadcast;

use crate::room::{TOKEN, ground};

/// Far longer than anything takes. It is there so that a test that hangs says so.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// A gateway in a home of its own.
pub(crate) struct Hall {
    pub(crate) tree: Tree,
    pub(crate) running: Running,
}

impl Hall {
    /// With the files of `tree` in its home, and this configuration.
    pub(crate) async fn open(tree: Tree, config: &Value) -> Self {
        let tree = tree.file(".openclaw/openclaw.json", config.to_string());
        Self::open_again(tree, Duration::from_secs(60)).await
    }

    /// In a home that is there already. Turns have `grace` when it ends.
    pub(crate) async fn open_again(tree: Tree, grace: Duration) -> Self {
        let helper = Some(PathBuf::from(env!("CARGO_BIN_EXE_prowess-gateway-helper")));
        let options = Options { port: Some(0), grace: Some(grace), helper, ..Options::default() };
        let running = Gateway::start(ground(&tree), options).await.expect("a gateway");
        Self { tree, running }
    }

    /// Whoever is allowed everything.
    pub(crate) async fn operator(&self) -> Client {
        self.visitor(&Introduction::operator(TOKEN)).await
    }

    /// Somebody who says so.
    pub(crate) async fn visitor(&self, introduction: &Introduction) -> Client {
        Client::connect(&format!("ws://{}", self.running.address), introduction).await.expect("let in")
    }

    /// Ends it.
    pub(crate) async fn end(self) {
        self.running.end().await;
    }

    /// Ends it, and gives back its home.
    pub(crate) async fn leave(self) -> Tree {
        self.running.end().await;
        self.tree
    }
}

/// A configuration with that model, and `more` over it.
pub(crate) fn config(model: &ModelServer, more: Value) -> Value {
    let mut config = json!({
        "models": {"providers": {"fake": {
            "baseUrl": model.base_url(), "api": "openai-completions", "apiKey": "sk-canary-4711",
            "models": [{"id": "m", "contextWindow": 64_000, "maxTokens": 2_000}],
        }}},
        "agents": {"defaults": {"model": "fake/m"}},
        "tools": {"exec": {"security": "full", "ask": "off"}},
    });
    merge(&mut config, more);
    config
}

fn merge(into: &mut Value, more: Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (name, value) in more {
                merge(into.entry(name).or_insert(Value::Null), value);
            }
        }
        (into, more) => *into = more,
    }
}

/// A model that begins to speak, says more than is held back at first, and never ends.
pub(crate) fn endless() -> Turn {
    Turn::Stall { turn: Box::new(Turn::text(&"word ".repeat(200))), after: 12_000 }
}

/// Hears everything that a client is told.
pub(crate) struct Ears(broadcast::Receiver<Event>);

impl Ears {
    pub(crate) fn of(client: &Client) -> Self {
        Self(client.events())
    }

    /// Everything up to the first event that is the one.
    pub(crate) async fn until(&mut self, what: &str, is: impl Fn(&Event) -> bool) -> Vec<Event> {
        let mut heard = Vec::new();
        loop {
            let next = tokio::time::timeout(PATIENCE, self.0.recv()).await;
            let next = next.unwrap_or_else(|_| panic!("waited in vain for {what}; heard {heard:#?}"));
            let event = next.unwrap_or_else(|error| panic!("no {what}: {error}; heard {heard:#?}"));
            let is_it = is(&event);
            heard.push(event);
            if is_it {
                return heard;
            }
        }
    }

    /// Everything up to the `chat` event of `run` in `state`, which is the last.
    pub(crate) async fn until_chat(&mut self, run: &str, state: &str) -> Vec<Event> {
        let what = format!("chat {state} of {run}");
        self.until(&what, |event| {
            event.name == "chat" && event.payload["runId"] == run && event.payload["state"] == state
        })
        .await
    }

    /// Waits until the model of `run` has said something.
    pub(crate) async fn until_it_speaks(&mut self, run: &str) {
        let what = format!("words of {run}");
        self.until(&what, |event| event.payload["runId"] == run && event.payload["stream"] == "assistant").await;
    }

    /// What was heard and not looked at yet.
    pub(crate) fn rest(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.0.try_recv().ok()).collect()
    }
}

/// The words of a `chat` event.
pub(crate) fn words(event: &Event) -> &str {
    event.payload["message"]["content"][0]["text"].as_str().unwrap_or_default()
}

/// Asks again and again until the answer is the one.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, mut is: impl FnMut() -> F) {
    let asked = tokio::time::timeout(PATIENCE, async {
        while !is().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    asked.await.unwrap_or_else(|_| panic!("waited in vain: {what}"));
}
