//! Other machines: real node hosts in this process, and nodes that say what a test wants.

use std::collections::BTreeMap;
use std::future::Future;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use prowess_config::{Env, Secret};
use prowess_exec::exec_tool::ExecCall;
use prowess_exec::{Exec, Setting};
use prowess_gateway::Identity;
use prowess_gateway::client::{Client, Introduction, Node};
use prowess_gateway::node_host::{NodeHost, NodeHostError, Options, WhenLost};
use prowess_host::{Context, Flags, Ground};
use prowess_policy::Host;
use prowess_testkit::Tree;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::room::{Room, TOKEN, ground};

/// A gateway whose skills need `demo-bin`.
pub(crate) async fn demo_room() -> Room {
    Room::open(Tree::new().file(
        ".openclaw/workspace/skills/demo/SKILL.md",
        "---\nname: demo\ndescription: d\nmetadata: {openclaw: {requires: {bins: [demo-bin]}}}\n---\n",
    ))
    .await
}

/// A gateway in a home that had one before, on a port that may be taken by now.
pub(crate) async fn reopen(tree: Tree, port: u16) -> Option<Room> {
    let options = prowess_gateway::Options { port: Some(port), ..prowess_gateway::Options::default() };
    let running = prowess_gateway::Gateway::start(ground(&tree), options).await.ok()?;
    Some(Room { tree, running })
}

/// Far longer than anything takes. It is there so that a test that hangs says so.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The program that sets up what commands may touch.
pub(crate) fn helper() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_prowess-gateway-helper"))
}

/// Waits until `is` says yes.
pub(crate) async fn until(what: &str, mut is: impl AsyncFnMut() -> bool) {
    let begin = std::time::Instant::now();
    while !is().await {
        assert!(begin.elapsed() < PATIENCE, "waited in vain: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits for something that has to come.
pub(crate) async fn soon<T>(what: &str, coming: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, coming).await.unwrap_or_else(|_| panic!("waited in vain: {what}"))
}

/// A real node host with a home of its own.
pub(crate) struct Machine {
    pub(crate) tree: Tree,
    /// Its id at the gateway.
    pub(crate) id: String,
    stop: CancellationToken,
    serving: Option<JoinHandle<Result<(), NodeHostError>>>,
}

impl Machine {
    /// Joins the gateway of `room`, with the files of `tree` in its home. Programs in `bin/` of it come first on `PATH`.
    pub(crate) async fn join(room: &Room, tree: Tree) -> Self {
        Self::join_with(room, tree, |_| {}).await
    }

    /// The same with other options.
    pub(crate) async fn join_with(room: &Room, tree: Tree, change: impl FnOnce(&mut Options)) -> Self {
        let operator = room.operator().await;
        let before = connected(&operator).await;
        let mut options = Options {
            token: Some(Secret::new(TOKEN)),
            helper: helper(),
            patience: Duration::from_millis(20),
            when_lost: WhenLost::End,
            ..Options::new(machine_ground(&tree), room.url()).expect("this program")
        };
        change(&mut options);
        let stop = CancellationToken::new();
        let serving = tokio::spawn(NodeHost::run(options, stop.clone()));
        let mut id = String::new();
        until("the node is there", async || connected(&operator).await.len() > before.len()).await;
        for node in connected(&operator).await {
            if !before.contains(&node) {
                id = node;
            }
        }
        Self { tree, id, stop, serving: Some(serving) }
    }

    /// Ends it, and waits until nothing of it is left.
    pub(crate) async fn end(mut self) {
        self.stop.cancel();
        let serving = self.serving.take().expect("it is ended once");
        soon("the node ends", serving).await.expect("no panic").expect("it was let in");
    }

    /// Ends it, and returns its files for another one.
    pub(crate) async fn into_tree(mut self) -> Tree {
        let tree = std::mem::take(&mut self.tree);
        self.end().await;
        tree
    }

    /// A path in its home.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.tree.root().join(path)
    }

    /// What its approvals file holds.
    pub(crate) fn approvals(&self) -> Value {
        let text = std::fs::read_to_string(self.path(".openclaw/exec-approvals.json")).expect("a file");
        serde_json::from_str(&text).expect("JSON")
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// What a node host in that home would know when it starts.
pub(crate) fn machine_ground(tree: &Tree) -> Ground {
    let root = tree.root().to_string_lossy().into_owned();
    let path = format!("{root}/bin:/usr/bin:/bin");
    let env = Env::from_iter([("HOME", root.as_str()), ("PATH", &path), ("LANG", "C.UTF-8")]);
    Ground { flags: Flags::default(), env, cwd: tree.root().to_owned() }
}

/// The ids of connected nodes.
pub(crate) async fn connected(operator: &Client) -> Vec<String> {
    let list = operator.call("node.list", json!({})).await.expect("a list");
    let nodes = list["nodes"].as_array().cloned().unwrap_or_default();
    let here = nodes.iter().filter(|node| node["connected"] == true);
    here.map(|node| node["nodeId"].as_str().expect("an id").to_owned()).collect()
}

/// A home for a node with these approvals, and a script in `bin/` for each program.
pub(crate) fn home(approvals: &Value, programs: &[(&str, &str)]) -> Tree {
    let tree = Tree::new().file(".openclaw/exec-approvals.json", approvals.to_string());
    for (name, body) in programs {
        program(&tree, &format!("bin/{name}"), body);
    }
    tree
}

/// Writes a program that runs `body` in `/bin/sh`.
pub(crate) fn program(tree: &Tree, path: &str, body: &str) -> PathBuf {
    let path = tree.root().join(path);
    std::fs::create_dir_all(path.parent().expect("a folder above")).expect("a folder");
    // Put in place in one step, so that nobody sees half of it.
    let draft = path.with_extension("draft");
    std::fs::write(&draft, format!("#!/bin/sh\n{body}\n")).expect("written");
    std::fs::set_permissions(&draft, PermissionsExt::from_mode(0o755)).expect("the mode is set");
    std::fs::rename(&draft, &path).expect("in place");
    path
}

/// Approvals that let these programs run, and ask about the rest.
pub(crate) fn allowing(programs: &[&str]) -> Value {
    let allowlist: Vec<Value> = programs.iter().map(|path| json!({"id": path, "pattern": path})).collect();
    json!({
        "version": 1,
        "defaults": {"security": "allowlist", "ask": "on-miss", "askFallback": "deny", "autoAllowSkills": true},
        "agents": {"*": {"allowlist": allowlist}},
    })
}

/// The real path of a program of this machine.
pub(crate) fn real(program: &str) -> String {
    let found = ["/usr/bin", "/bin"].iter().map(|dir| PathBuf::from(dir).join(program)).find(|path| path.exists());
    let real = found.unwrap_or_else(|| panic!("no {program} here")).canonicalize().expect("it is there");
    real.to_string_lossy().into_owned()
}

/// Asks a node through the gateway.
pub(crate) async fn invoke(
    operator: &Client,
    node: &str,
    command: &str,
    params: Value,
) -> Result<Value, prowess_gateway::client::CallError> {
    let key = unique();
    let params = json!({
        "nodeId": node, "command": command, "params": params, "timeoutMs": 60_000, "idempotencyKey": key,
    });
    soon("the node answers", operator.call("node.invoke", params)).await.map(|answer| answer["payload"].clone())
}

/// A name that nobody used before.
pub(crate) fn unique() -> String {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    format!("key-{}", NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
}

/// Commands of a turn at the gateway of a room.
pub(crate) struct Turn {
    pub(crate) exec: Exec,
    pub(crate) setting: Setting,
}

impl Turn {
    /// As the gateway itself would run them.
    pub(crate) fn of(room: &Room) -> Self {
        let context = Context::load(&ground(&room.tree)).expect("a context");
        let gateway = room.running.gateway();
        let mut exec = prowess_host::exec(&context, gateway.approver()).expect("an exec").with_remote(gateway.remote());
        exec.set_helper(helper());
        let folder = prowess_host::workspace(&context).expect("a workspace");
        let mut setting = prowess_host::base(&context, folder, "agent:main:test");
        setting.host_env = vec![("PATH".to_owned(), "/usr/bin:/bin".into())];
        // These tests are about questions, and the sandbox would leave few of them.
        setting.settings.security.get_or_insert(prowess_policy::posture::Security::Allowlist);
        Self { exec, setting }
    }

    /// Runs a command here.
    pub(crate) async fn here(&self, command: &str) -> prowess_exec::ToolResult {
        soon("the command ends", self.exec.run(&call(command), &self.setting)).await
    }

    /// Runs a command on a node.
    pub(crate) async fn there(&self, command: &str) -> prowess_exec::ToolResult {
        let call = ExecCall { host: Some(Host::Node), ..call(command) };
        soon("the command ends", self.exec.run(&call, &self.setting)).await
    }
}

/// A call for `command`.
pub(crate) fn call(command: &str) -> ExecCall {
    ExecCall { command: command.to_owned(), yield_ms: Some(120_000.0), timeout: Some(50.0), ..ExecCall::default() }
}

/// Answers every question with `decision`, and remembers the questions.
pub(crate) struct Person {
    pub(crate) asked: Arc<Mutex<Vec<Value>>>,
    task: JoinHandle<()>,
}

impl Person {
    pub(crate) async fn who_says(room: &Room, decision: &'static str) -> Self {
        let operator = room.operator().await;
        let mut events = operator.events();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&asked);
        let task = tokio::spawn(async move {
            while let Ok(event) = events.recv().await {
                if event.name == "exec.approval.requested" {
                    heard.lock().expect("no panic").push(event.payload["request"].clone());
                    // Who would allow it for good and cannot allows it once.
                    let offered = event.payload["request"]["decisions"].as_array().cloned().unwrap_or_default();
                    let may = offered.is_empty() || offered.contains(&json!(decision));
                    let decision = if may { decision } else { "allow-once" };
                    let answer = json!({"id": event.payload["id"], "decision": decision});
                    // Somebody else may have been first.
                    let _ = operator.call("exec.approval.resolve", answer).await;
                }
            }
        });
        Self { asked, task }
    }

    pub(crate) fn questions(&self) -> Vec<Value> {
        self.asked.lock().expect("no panic").clone()
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A node that does what `act` says.
pub(crate) struct Puppet {
    pub(crate) client: Client,
    pub(crate) id: String,
    /// All that it heard.
    pub(crate) heard: Arc<Mutex<Vec<(String, Value)>>>,
    task: JoinHandle<()>,
}

/// What a puppet answers: its payload, or a code and a message. Nothing is no answer.
pub(crate) type Reply = Option<Result<Value, (&'static str, &'static str)>>;

impl Puppet {
    /// Joins the gateway as a node called `name`.
    pub(crate) async fn join(
        room: &Room,
        name: &str,
        about: &Value,
        act: impl Fn(&str, &Value) -> Reply + Send + 'static,
    ) -> Self {
        let operator = room.operator().await;
        let client = Client::connect(&room.url(), &puppet_introduction(name, about)).await.expect("let in");
        let mut events = client.events();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let (speaker, ears) = (client.clone(), Arc::clone(&heard));
        let task = tokio::spawn(async move {
            while let Ok(event) = events.recv().await {
                ears.lock().expect("no panic").push((event.name.clone(), event.payload.clone()));
                if event.name != "node.invoke.request" {
                    continue;
                }
                let request = &event.payload;
                let params = request["paramsJSON"].as_str().and_then(|text| serde_json::from_str(text).ok());
                let reply = act(request["command"].as_str().unwrap_or_default(), &params.unwrap_or_default());
                let mut answer = json!({"id": request["id"], "nodeId": request["nodeId"]});
                match reply {
                    None => continue,
                    Some(Ok(payload)) => {
                        answer["ok"] = true.into();
                        answer["payloadJSON"] = payload.to_string().into();
                    }
                    Some(Err((code, message))) => {
                        answer["ok"] = false.into();
                        answer["error"] = json!({"code": code, "message": message});
                    }
                }
                let _ = speaker.ask("node.invoke.result", &answer);
            }
        });
        let mut id = String::new();
        until("the node is there", async || {
            let list = operator.call("node.list", json!({})).await.expect("a list");
            let rows = list["nodes"].as_array().cloned().unwrap_or_default();
            // The gateway puts a name on one line.
            let joined = |text: &str| text.split_whitespace().collect::<String>();
            let is_own = |row: &Value| row["displayName"].as_str().map(joined) == Some(joined(name));
            let own = rows.iter().find(|row| is_own(row) && row["connected"] == true);
            own.and_then(|row| row["nodeId"].as_str()).unwrap_or_default().clone_into(&mut id);
            !id.is_empty()
        })
        .await;
        Self { client, id, heard, task }
    }

    /// How often it heard that event.
    pub(crate) fn count(&self, name: &str) -> usize {
        self.heard.lock().expect("no panic").iter().filter(|(heard, _)| heard == name).count()
    }
}

impl Drop for Puppet {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The device of the puppet with that name, the same each time.
fn identity(name: &str) -> Identity {
    static KNOWN: Mutex<BTreeMap<String, Identity>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().expect("no panic");
    known.entry(name.to_owned()).or_insert_with(|| Identity::generate().expect("an identity")).clone()
}

/// How a puppet introduces itself.
pub(crate) fn puppet_introduction(name: &str, about: &Value) -> Introduction {
    let node = Node {
        name: Some(name.to_owned()),
        commands: ["system.run", "system.run.prepare", "system.which"].map(str::to_owned).to_vec(),
        caps: vec!["system".to_owned()],
        path_env: Some("/usr/bin:/bin".to_owned()),
    };
    let mut introduction = Introduction::node(identity(name), node).with_token(TOKEN);
    introduction.params["client"]["instanceId"] = name.into();
    introduction.params["client"]["platform"] = "linux".into();
    for (key, value) in about.as_object().into_iter().flatten() {
        match key.as_str() {
            "platform" | "deviceFamily" => introduction.params["client"][key] = value.clone(),
            _ => introduction.params[key] = value.clone(),
        }
    }
    introduction
}
