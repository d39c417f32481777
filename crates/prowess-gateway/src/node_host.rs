//! The node host: how does this machine run commands for a gateway elsewhere?
//!
//! It dials in, says what it can do, and judges every command for itself: with its own approvals, its own sandbox and its
//! own programs. The gateway is asked only which programs skills need. A connection that is lost is made again; what runs
//! then is ended, or goes on, as the operator likes.

mod approved;
mod bench;
mod desk;
mod link;
mod order;
mod prepare;
mod skill_bins;
mod state;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use prowess_config::Secret;
use prowess_files::{Holder, Lock, LockError};
use prowess_host::Ground;
use thiserror::Error;
use tokio::sync::broadcast::Receiver;
use tokio::sync::mpsc::UnboundedSender;
use tokio_util::sync::CancellationToken;

use crate::Fingerprint;
use crate::aside::blocking;
use crate::client::{Backoff, CallError, Client, Event, FIRST, Introduction, Node};
use crate::identity::{Identity, IdentityError};
use crate::nodes::REPLACED;
use bench::Bench;
use desk::Desk;
use link::Link;
use state::NodeState;
pub use state::StateError;

/// What a node host can be asked for.
const COMMANDS: [&str; 5] =
    ["system.run.prepare", "system.run", "system.which", "system.execApprovals.get", "system.execApprovals.set"];

/// After how long a connection counts as a good one: when it is lost, the next is made soon.
const STEADY: Duration = Duration::from_secs(5);

/// How long to wait for another node host that may be about to end.
const PATIENCE: Duration = Duration::from_secs(3);

/// How this machine serves as a node.
#[derive(Debug, Clone)]
pub struct Options {
    /// The operator's files and variables on this machine.
    pub ground: Ground,
    /// The gateway, as in `ws://127.0.0.1:18789`.
    pub url: String,
    /// What the gateway wants to know.
    pub token: Option<Secret>,
    /// The same, where it is a password.
    pub password: Option<Secret>,
    /// The only certificate of the gateway that counts.
    pub tls_fingerprint: Option<Fingerprint>,
    /// What people call this node; the name of the machine, if nothing is said.
    pub display_name: Option<String>,
    /// What happens to commands when the connection is lost.
    pub when_lost: WhenLost,
    /// The program that sets up sandboxes: usually this one.
    pub helper: PathBuf,
    /// How long to wait before dialing again, the first time.
    pub patience: Duration,
    /// Who is told whenever it is connected.
    pub connected: Option<UnboundedSender<Connected>>,
}

/// A connection that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connected {
    /// The gateway.
    pub url: String,
    /// What the gateway knows this node by.
    pub node_id: String,
    /// What people call it.
    pub name: String,
}

impl Options {
    /// The usual ones: for `url`, with this program as its own helper.
    pub fn new(ground: Ground, url: impl Into<String>) -> std::io::Result<Self> {
        Ok(Self {
            ground,
            url: url.into(),
            token: None,
            password: None,
            tls_fingerprint: None,
            display_name: None,
            when_lost: WhenLost::default(),
            helper: prowess_exec::confine::helper()?,
            patience: FIRST,
            connected: None,
        })
    }
}

/// What happens to commands when the connection to the gateway is lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WhenLost {
    /// They are ended: nobody waits for them.
    #[default]
    End,
    /// They go on, and the gateway is told when it is there again.
    GoOn,
}

/// A node host cannot work.
#[derive(Debug, Error)]
pub enum NodeHostError {
    /// Its own file cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// The operator's files cannot be used.
    #[error("{0}")]
    Host(String),
    /// Who it is cannot be kept.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The gateway does not want it, and will not want it a second later either.
    #[error("the gateway refused this node: {0}; check the token, or approve the node there")]
    Refused(Box<CallError>),
    /// Another node host works with the same files.
    #[error("another node host ({}) uses the files in {}; stop it first, or choose another state directory", .1, .0.display())]
    Taken(PathBuf, Holder),
    /// Somebody else dialed in as this node. Two of them would cut each other off for ever.
    #[error(
        "another node host connected to {0} as this node, with a copy of its files; give each machine its own \
         state directory"
    )]
    Replaced(String),
}

/// Why a connection is over.
enum Lost {
    /// We are to end.
    Stopped,
    /// It broke, or was closed.
    Gone,
    /// The gateway has a newer connection of this node.
    Replaced,
}

/// A machine that runs commands for a gateway.
#[derive(Debug)]
pub struct NodeHost;

impl NodeHost {
    /// Serves until `stop`. Dials again whenever the connection is lost.
    pub async fn run(options: Options, stop: CancellationToken) -> Result<(), NodeHostError> {
        let bench = Arc::new(Bench::new(&options)?);
        let _lock = sole(bench.state_dir()).await?;
        let state = NodeState::load_or_make(bench.state_dir(), &options)?;
        let identity = Identity::load(bench.state_dir())?;
        let state_dir = bench.state_dir().to_owned();
        let link = Link::default();
        let desk = Arc::new(Desk::new(bench, link.clone()));
        let introduction = introduction(&options, &state, &identity).remembering(&state_dir);
        let own =
            Connected { url: options.url.clone(), node_id: identity.id().to_owned(), name: state.display_name.clone() };
        let served = dial(&options, (&introduction, &own), (&desk, &link), &stop).await;
        desk.end_all();
        desk.ended().await;
        served
    }
}

/// Makes sure that no other node host works in that state directory, as long as the result is kept.
async fn sole(state_dir: &Path) -> Result<Lock, NodeHostError> {
    let path = state_dir.join("node.lock");
    let taken = blocking(move || Lock::acquire(&path, PATIENCE)).await;
    taken.map_err(|refusal| NodeHostError::Host(refusal.message))?.map_err(|error| match error {
        LockError::Held { holder, .. } => NodeHostError::Taken(state_dir.to_owned(), holder),
        LockError::Io { path, source } => StateError { path, source }.into(),
    })
}

/// Dials in, and again whenever the connection is lost.
async fn dial(
    options: &Options,
    (introduction, own): (&Introduction, &Connected),
    (desk, link): (&Arc<Desk>, &Link),
    stop: &CancellationToken,
) -> Result<(), NodeHostError> {
    let mut backoff = Backoff::starting(options.patience);
    loop {
        let dialed = tokio::select! {
            dialed = Client::join(&options.url, introduction) => dialed,
            () = stop.cancelled() => return Ok(()),
        };
        match dialed {
            Ok((client, events)) => {
                tracing::info!(gateway = options.url, "connected");
                if let Some(told) = &options.connected {
                    // Whoever does not listen any more does not want to know.
                    let _ = told.send(own.clone());
                }
                let since = Instant::now();
                let lost = serve(desk, link, client, events, stop).await;
                link.close();
                if options.when_lost == WhenLost::End {
                    desk.end_all();
                }
                match lost {
                    Lost::Stopped => return Ok(()),
                    Lost::Replaced => return Err(NodeHostError::Replaced(options.url.clone())),
                    Lost::Gone if since.elapsed() >= STEADY => backoff.reset(),
                    Lost::Gone => {}
                }
            }
            Err(refused @ CallError::Refused { .. }) if !may_change(&refused) => {
                return Err(NodeHostError::Refused(Box::new(refused)));
            }
            Err(error) => tracing::warn!(gateway = options.url, "not connected: {error}"),
        }
        tokio::select! {
            () = tokio::time::sleep(backoff.pause()) => {}
            () = stop.cancelled() => return Ok(()),
        }
    }
}

/// Takes what the gateway wants until the connection is lost.
async fn serve(
    desk: &Arc<Desk>,
    link: &Link,
    client: Client,
    mut events: Receiver<Event>,
    stop: &CancellationToken,
) -> Lost {
    link.open(client.clone());
    loop {
        tokio::select! {
            event = events.recv() => match event {
                Ok(event) => match event.name.as_str() {
                    "node.invoke.request" => desk.take(&event.payload),
                    "node.invoke.cancel" => desk.cancel(&event.payload),
                    _ => {}
                },
                // Too much came at once; whoever waits for what was lost hears it at their deadline.
                Err(tokio::sync::broadcast::error::RecvError::Lagged(lost)) => tracing::warn!(lost, "events lost"),
                Err(tokio::sync::broadcast::error::RecvError::Closed) => return Lost::Gone,
            },
            why = client.ended() => return if why.ends_with(REPLACED) { Lost::Replaced } else { Lost::Gone },
            () = stop.cancelled() => return Lost::Stopped,
        }
    }
}

/// A refusal that may be another one later: the node has to be approved first, or the gateway cannot tell just now.
fn may_change(error: &CallError) -> bool {
    let CallError::Refused { error, .. } = error else { return true };
    matches!(error["code"].as_str(), Some("NOT_PAIRED" | "UNAVAILABLE")) || error["retryable"] == true
}

/// Who dials in, and what it can do.
fn introduction(options: &Options, state: &NodeState, identity: &Identity) -> Introduction {
    let path = options.ground.env.get("PATH").map(str::trim).filter(|path| !path.is_empty());
    let node = Node {
        name: Some(state.display_name.clone()),
        commands: COMMANDS.map(str::to_owned).to_vec(),
        caps: vec!["system".to_owned(), crate::nodes::SKILL_ENV.to_owned()],
        path_env: Some(path.unwrap_or(bench::DEFAULT_PATH).to_owned()),
    };
    let mut introduction =
        Introduction::node(identity.clone(), node).trusting(&options.ground.env).pinned(options.tls_fingerprint);
    introduction.params["client"]["platform"] = platform().into();
    introduction.params["client"]["instanceId"] = state.node_id.as_str().into();
    match (&options.token, &options.password) {
        (Some(token), _) => introduction.with_token(token.expose()),
        (None, Some(password)) => introduction.with_password(password.expose()),
        (None, None) => introduction,
    }
}

/// What the peer calls this system.
fn platform() -> &'static str {
    match std::env::consts::OS {
        "macos" => "darwin",
        "windows" => "win32",
        other => other,
    }
}
