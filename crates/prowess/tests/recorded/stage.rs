//! The stage: the home, the model and the programs of a recording.

use prowess_testkit::{Answer, Chunking, ModelServer, Prowess, RecordedRequest, Served, Turn, eventually};
use serde_json::{Value, json};

/// What the recorded clients know.
const TOKEN: &str = "t0k";

/// A gateway in a home of its own, and perhaps a node beside it.
pub(crate) struct Stage {
    home: Prowess,
    node: Option<(Prowess, Served)>,
    gateway: Served,
    _model: ModelServer,
}

impl Stage {
    /// With these settings beside those that every recording has.
    pub(crate) fn set(settings: &str) -> Self {
        let model = ModelServer::answering(Chunking::Whole, think);
        let mut config: Value = serde_json::from_str(settings).expect("settings");
        config["gateway"] = json!({"mode": "local", "auth": {"mode": "token", "token": TOKEN}});
        config["agents"] = json!({"defaults": {"model": "fake/m"}});
        config["models"] = json!({"providers": {"fake": {
            "baseUrl": model.base_url(), "apiKey": "none", "api": "openai-completions",
            "models": [{"id": "m", "name": "m"}],
        }}});
        config["skills"] = json!({"entries": {"demo": {"apiKey": "sekret"}}});
        let home = skills(Prowess::new(env!("CARGO_BIN_EXE_prowess")).config(&config.to_string()));
        let path = std::env::var("PATH").unwrap_or_default();
        let home = home.env("PATH", &path).file(".openclaw/exec-approvals.json", APPROVALS);
        let gateway = Served::gateway(&home, &["--port", "0", "--wait", "0"]);
        Self { home, node: None, gateway, _model: model }
    }

    /// With a node that is connected.
    pub(crate) fn with_node(mut self, skills: Skills) -> Self {
        let home = Prowess::new(env!("CARGO_BIN_EXE_prowess"));
        let path = std::env::var("PATH").unwrap_or_default();
        let home = home
            .program("bin/demo-bin", "#!/bin/sh\necho demo-bin \"$@\" HOME=$HOME FOO=$FOO\n")
            .file(".openclaw/exec-approvals.json", node_approvals(skills))
            .env("PATH", &format!("$HOME/bin:{path}"))
            .env("OPENCLAW_GATEWAY_TOKEN", TOKEN);
        let node = Served::start(&home, &["node", "run", "--gateway", self.gateway.url()]);
        self.node = Some((home, node));
        let is_connected = |(_, node): &(_, Served)| node.log().contains("connected gateway=");
        eventually("the node is connected", || {
            self.node_id().is_some() && self.node.as_ref().is_some_and(is_connected)
        });
        self
    }

    pub(crate) fn url(&self) -> String {
        self.gateway.url().to_owned()
    }

    /// What recordings call by other names.
    pub(crate) fn expand(&self, text: &str) -> String {
        let home = self.home.home();
        let text = text.replace("$HOME", &home.to_string_lossy());
        if !text.contains("$NODE") {
            return text;
        }
        text.replace("$NODE", &self.node_id().expect("a node"))
    }

    /// The id of the node, once it is paired.
    fn node_id(&self) -> Option<String> {
        let (home, _) = self.node.as_ref()?;
        let identity = std::fs::read_to_string(home.path(".openclaw/identity/device.json")).ok()?;
        let identity: Value = serde_json::from_str(&identity).ok()?;
        let id = identity["deviceId"].as_str()?.to_owned();
        let paired = std::fs::read_to_string(self.home.path(".openclaw/devices/paired.json")).ok()?;
        paired.contains(&id).then_some(id)
    }

    /// What the programs said.
    pub(crate) fn log(&self) -> String {
        std::iter::once(&self.gateway).chain(self.node.as_ref().map(|(_, node)| node)).map(Served::log).collect()
    }
}

/// What may run without asking on the gateway: nothing.
const APPROVALS: &str = r#"{"version": 1, "agents": {}}"#;

/// What happens on the node to programs that skills name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Skills {
    /// They run.
    Run,
    /// Somebody is asked.
    Asked,
}

/// What may run without asking on the node.
fn node_approvals(skills: Skills) -> String {
    let is_allowed = skills == Skills::Run;
    json!({
        "version": 1,
        "defaults": {"security": "allowlist", "ask": "on-miss", "askFallback": "deny", "autoAllowSkills": is_allowed},
        "agents": {"main": {"allowlist": [{"pattern": "/usr/bin/uname"}]}},
    })
    .to_string()
}

fn skills(home: Prowess) -> Prowess {
    let needs = r#"metadata: {"openclaw": {"emoji": "D", "primaryEnv": "DEMO_API_KEY", "requires": {"bins": ["demo-bin"], "env": ["DEMO_API_KEY"]}, "install": [{"id": "npm", "kind": "node", "package": "demo-pkg", "bins": ["demo-bin", "demo2"]}]}}"#;
    let key = r#"metadata: {"openclaw": {"primaryEnv": "DEMO2_API_KEY"}}"#;
    home.skill("demo", "Demo skill for protocol capture", needs)
        .skill("demo2", "Runs a command", &format!("{key}\ncommand-dispatch: tool\ncommand-tool: exec"))
        .skill("demo3", "Has a command for the model", "")
        .skill("demo-four", "Has a name with a hyphen", "")
}

/// Calls `exec` with what stands between two words, and tells what came of it.
fn think(request: &RecordedRequest) -> Turn {
    let messages = request.body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let last = messages.last().cloned().unwrap_or_default();
    let text = match &last["content"] {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect(),
        _ => String::new(),
    };
    if last["role"] == "tool" {
        let told: String = text.chars().take(40).collect();
        return Turn::text(&format!("All done: {told}"));
    }
    match text.split_once("RUNTOOL:").and_then(|(_, rest)| rest.split_once("ENDTOOL")) {
        Some((command, _)) => Turn::Answer(Answer {
            text: "Let me run it.".to_owned(),
            calls: vec![("call_1".to_owned(), "exec".to_owned(), json!({"command": command}))],
            ..Answer::default()
        }),
        None => Turn::text("All done: "),
    }
}
