//! The registry: which nodes are here, and who waits for what from them?

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use serde_json::{Map, Value};
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

use super::eligibility::Eligibility;
use super::invoke::{InvokeError, Reply};
use super::known::Known;
use super::policy::{Kind, allowed_commands};
use super::runs::Run;
use super::{Wake, probe};
use crate::hub::{Guest, Hub};
use crate::metrics::Metrics;

/// Why the older of two connections of a node is closed.
pub(crate) const REPLACED: &str = "replaced by a newer connection";

/// All nodes of a gateway.
pub(crate) struct Nodes {
    pub(super) hub: Arc<Hub>,
    pub(super) metrics: Arc<Metrics>,
    /// The gateway ends.
    pub(super) stop: CancellationToken,
    pub(super) known: Arc<Known>,
    pub(super) state: Mutex<State>,
    pub(super) eligibility: Mutex<Eligibility>,
    /// Something happened that may change what nodes have to offer.
    pub(super) stirred: Notify,
    pub(super) wake: OnceLock<Wake>,
}

/// What changes.
#[derive(Default)]
pub(super) struct State {
    /// By id.
    pub(super) nodes: HashMap<String, Arc<Node>>,
    /// Requests without an answer, by their id.
    pub(super) waiting: HashMap<String, Waiting>,
    /// Commands that were sent out, by their id.
    pub(super) runs: HashMap<String, Run>,
}

/// A node that is connected.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) id: String,
    pub(crate) guest: Arc<Guest>,
    /// What it can do, as far as it may.
    pub(crate) commands: Vec<String>,
}

/// A request that has no answer yet.
pub(super) struct Waiting {
    pub(super) conn: String,
    pub(super) command: String,
    pub(super) reply: oneshot::Sender<Result<Reply, InvokeError>>,
}

impl Node {
    /// Whether it can do that, and may.
    pub(crate) fn can(&self, command: &str) -> bool {
        self.commands.iter().any(|one| one == command)
    }

    /// What kind of machine it is.
    pub(super) fn kind(&self) -> Kind {
        Kind::of(&self.guest.about)
    }
}

impl Nodes {
    /// A registry without nodes. Looks at the disk for what is known of nodes that were here before.
    pub(crate) fn open(hub: Arc<Hub>, metrics: Arc<Metrics>, state_dir: &Path, stop: CancellationToken) -> Arc<Self> {
        Arc::new(Self {
            hub,
            metrics,
            stop,
            known: Arc::new(Known::open(state_dir)),
            state: Mutex::default(),
            eligibility: Mutex::default(),
            stirred: Notify::new(),
            wake: OnceLock::new(),
        })
    }

    /// The id of the node that a guest is.
    pub(crate) fn id_of(guest: &Guest) -> &str {
        guest.device.as_deref().or(guest.about.instance_id.as_deref()).unwrap_or(&guest.about.id)
    }

    /// Takes a node in. A connection that it had before is over, whatever it thinks; `section` is `gateway.nodes`.
    pub(crate) fn join(&self, guest: &Arc<Guest>, section: &Value) {
        let allowed = allowed_commands(section, &guest.about);
        let mut commands: Vec<String> =
            guest.commands.iter().filter(|command| allowed.contains(command)).cloned().collect();
        commands.sort();
        commands.dedup();
        let id = Self::id_of(guest).to_owned();
        self.known.seen(&id, guest);
        let known = Arc::clone(&self.known);
        // Nobody waits for it; what fails is in the log.
        drop(tokio::task::spawn_blocking(move || known.save()));
        let node = Arc::new(Node { id: id.clone(), guest: Arc::clone(guest), commands });
        let older = self.lock().nodes.insert(id, node);
        if let Some(older) = older {
            self.drop_waiting(&older.guest.conn);
            older.guest.outbox.close(1000, REPLACED);
        }
        self.stirred.notify_one();
    }

    /// A connection is gone. The node is gone with it, unless it has a newer one.
    pub(crate) fn leave(&self, guest: &Guest) {
        self.drop_waiting(&guest.conn);
        let id = Self::id_of(guest);
        let mut state = self.lock();
        if state.nodes.get(id).is_some_and(|node| node.guest.conn == guest.conn) {
            state.nodes.remove(id);
            drop(state);
            self.forget_probe(id);
            self.stirred.notify_one();
        }
    }

    /// The node of that id, if it is connected.
    pub(crate) fn get(&self, id: &str) -> Option<Arc<Node>> {
        self.lock().nodes.get(id).cloned()
    }

    /// All nodes that are connected, by id.
    pub(crate) fn connected(&self) -> Vec<Arc<Node>> {
        let mut nodes: Vec<Arc<Node>> = self.lock().nodes.values().cloned().collect();
        nodes.sort_by(|one, other| one.id.cmp(&other.id));
        nodes
    }

    /// What a node is called.
    pub(crate) fn name(&self, node: &Node) -> String {
        self.known.name(&node.id).unwrap_or_else(|| node.guest.name().to_owned())
    }

    /// What is told about all nodes: those that are here first, then by name.
    pub(crate) fn rows(&self) -> Vec<Value> {
        let mut rows: Vec<(bool, String, String, Value)> = Vec::new();
        for node in self.connected() {
            rows.push((false, self.name(&node).to_lowercase(), node.id.clone(), self.row(&node)));
        }
        for (id, row) in self.known.rows() {
            if !rows.iter().any(|(_, _, there, _)| *there == id) {
                let name = row["displayName"].as_str().unwrap_or(&id).to_lowercase();
                rows.push((true, name, id, row));
            }
        }
        rows.sort_by(|one, other| (&one.0, &one.1, &one.2).cmp(&(&other.0, &other.1, &other.2)));
        rows.into_iter().map(|(_, _, _, row)| row).collect()
    }

    /// What is told about one node.
    pub(crate) fn describe(&self, id: &str) -> Option<Value> {
        match self.get(id) {
            Some(node) => Some(self.row(&node)),
            None => self.known.rows().into_iter().find(|(known, _)| known == id).map(|(_, row)| row),
        }
    }

    /// Gives a node another name; what it is called then, if there is such a node. Writes to the disk.
    pub(crate) fn rename(&self, id: &str, name: &str) -> Option<String> {
        let renamed = self.known.rename(id, name)?;
        self.stirred.notify_one();
        Some(renamed)
    }

    /// All nodes that were let in.
    pub(crate) fn paired(&self) -> Vec<Value> {
        self.known.all()
    }

    /// Forgets a node whose device is no longer let in. Writes to the disk.
    pub(crate) fn forget(&self, id: &str) {
        self.known.forget(id);
    }

    /// Somebody changed skills: what nodes are asked for may be something else now.
    pub(crate) fn skills_changed(&self) {
        self.stirred.notify_one();
    }

    /// Whom to tell what happened on a node after nobody waits for it any more. The first one counts.
    pub(crate) fn on_wake(&self, wake: Wake) {
        // Somebody is told already.
        let _ = self.wake.set(wake);
    }

    fn row(&self, node: &Node) -> Value {
        let guest = &node.guest;
        let about = &guest.about;
        let mut caps = guest.caps.clone();
        caps.sort();
        caps.dedup();
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty()).map(Value::from);
        let fields = [
            ("nodeId", Some(node.id.clone().into())),
            ("displayName", Some(self.name(node).into())),
            ("platform", text(&about.platform)),
            ("version", text(&about.version)),
            ("deviceFamily", about.device_family.clone().map(Value::from)),
            ("modelIdentifier", about.model_identifier.clone().map(Value::from)),
            ("remoteIp", guest.remote_ip.clone().map(Value::from)),
            ("caps", Some(caps.into())),
            ("commands", Some(node.commands.clone().into())),
            ("pathEnv", guest.path_env.clone().map(Value::from)),
            ("permissions", guest.permissions.clone()),
            ("connectedAtMs", Some(guest.connected_at.into())),
            ("paired", Some(true.into())),
            ("connected", Some(true.into())),
        ];
        let present = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        Value::Object(present.collect::<Map<_, _>>())
    }

    /// Ends all that waits for a connection.
    fn drop_waiting(&self, conn: &str) {
        let mut state = self.lock();
        let gone: Vec<String> =
            state.waiting.iter().filter(|(_, waiting)| waiting.conn == conn).map(|(id, _)| id.clone()).collect();
        for waiting in gone.iter().filter_map(|id| state.waiting.remove(id)) {
            // Who no longer waits does not mind.
            let _ = waiting.reply.send(Err(InvokeError::Disconnected(waiting.command)));
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn forget_probe(&self, id: &str) {
        self.eligibility.lock().unwrap_or_else(PoisonError::into_inner).forget(id);
    }

    /// Looks after what nodes have to offer to skills, as long as the gateway runs.
    pub(crate) async fn look_after(gateway: Arc<crate::gateway::Gateway>) {
        probe::look_after(&gateway).await;
    }
}
