//! The stand: the gateway under load, and the model behind it.

use std::env;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use prowess_testkit::{Chunking, ModelServer, Prowess, Served, Turn, free_port, terminate};

/// What clients have to know.
pub(crate) const TOKEN: &str = "a-token-for-the-load";

/// A gateway that is loaded.
pub(crate) struct Stand {
    pid: u32,
    served: Served,
    _home: Prowess,
    _model: ModelServer,
}

/// What the model says.
pub(crate) const HELLO: &str = "Hello, and good day to you.";

/// A model that answers at once.
pub(crate) fn model(text: String) -> ModelServer {
    ModelServer::answering(Chunking::Whole, move |_| Turn::text(&text))
}

impl Stand {
    /// A gateway of this build, or the OpenClaw in the folder that `PROWESS_PEER` names.
    ///
    /// The model says `text`, and the home has so many `sessions` already.
    pub(crate) fn start(text: String, sessions: usize) -> Self {
        let model = model(text);
        let config = serde_json::json!({
            "gateway": {"mode": "local", "auth": {"mode": "token", "token": TOKEN}},
            "agents": {"defaults": {"model": "load/m"}},
            "models": {"providers": {"load": {
                "baseUrl": model.base_url(), "apiKey": "none", "api": "openai-completions",
                "models": [{"id": "m", "name": "m"}],
            }}},
        });
        let home = Prowess::new(env!("CARGO_BIN_EXE_prowess")).config(&config.to_string());
        fill(&home.path(".openclaw/agents/main/sessions"), sessions);
        let served = Served::listening(command(&home), &home.path("gateway.log"));
        // OpenClaw starts a process of its own for it, and says which.
        let said = served.log();
        let told = said.split("(PID ").nth(1).and_then(|rest| rest.split(')').next()).and_then(|pid| pid.parse().ok());
        Self { pid: told.unwrap_or(served.id()), served, _home: home, _model: model }
    }

    pub(crate) fn url(&self) -> &str {
        self.served.url()
    }

    /// What it has in memory, in KiB.
    pub(crate) fn memory(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
        line.trim().trim_end_matches(" kB").parse().unwrap_or_default()
    }

    /// The same, once it has stopped growing.
    pub(crate) async fn settled_memory(&self) -> usize {
        let mut last = self.memory();
        loop {
            tokio::time::sleep(Duration::from_millis(500)).await;
            let now = self.memory();
            if now <= last {
                return now;
            }
            last = now;
        }
    }
}

impl Drop for Stand {
    fn drop(&mut self) {
        terminate(self.pid);
    }
}

fn command(home: &Prowess) -> Command {
    let Some(peer) = env::var_os("PROWESS_PEER") else {
        let mut command = home.command();
        command.args(["gateway", "run", "--port", "0"]);
        return command;
    };
    let peer = std::path::PathBuf::from(peer);
    let mut command = Command::new(peer.join("node_modules/.bin/node"));
    command
        .arg(peer.join("openclaw/openclaw.mjs"))
        .args(["gateway", "run", "--bind", "loopback", "--port", &free_port().to_string()])
        .env("HOME", home.home())
        .env("OPENCLAW_SKIP_CHANNELS", "1")
        .env("NO_COLOR", "1");
    command
}

/// Writes sessions as a gateway leaves them.
fn fill(folder: &Path, sessions: usize) {
    std::fs::create_dir_all(folder).expect("a folder");
    let mut index = serde_json::Map::new();
    for number in 0..sessions {
        let (id, key) = (format!("past-{number}"), format!("agent:main:past-{number}"));
        let file = folder.join(format!("{id}.jsonl"));
        let header = serde_json::json!({"type": "session", "version": 3, "id": id, "sessionKey": key});
        std::fs::write(&file, format!("{header}\n")).expect("a transcript");
        let entry = serde_json::json!({
            "sessionId": id, "updatedAt": 1_700_000_000_000_u64 + number as u64, "sessionFile": file,
            "modelProvider": "load", "model": "m", "abortedLastRun": false, "contextTokens": 200_000,
            "inputTokens": 10_000, "outputTokens": 300, "totalTokens": 10_300, "totalTokensFresh": true,
        });
        index.insert(key, entry);
    }
    if sessions > 0 {
        let index = serde_json::Value::Object(index);
        std::fs::write(folder.join("sessions.json"), index.to_string()).expect("an index");
    }
}
