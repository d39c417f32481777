//! The gateway: what is there as long as it runs?

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use prowess_agent::news::News;
use prowess_config::{ConfigFile, EditError, Locations, Secret};
use prowess_exec::Exec;
use prowess_exec::approver::Approver;
use prowess_exec::connections::LiveConnections;
use prowess_exec::job::{self, Runner};
use prowess_exec::remote::Remote;
use prowess_host::{Context, Failure, Ground};
use serde_json::{Value, json};
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::agents::{self, Agents};
use crate::approvals::{Board, Connected};
use crate::aside::blocking;
use crate::auth::Guard;
use crate::door::Door;
use crate::hub::{Audience, Hub, Urgency};
use crate::limits::Limits;
use crate::methods::{self, health};
use crate::metrics::Metrics;
use crate::nodes::{NodeExec, Nodes, Wake};
use crate::pairing::{Pairing, fresh_token};
use crate::presence::Presence;
use crate::runs::{GRACE, JournalError, Runs, WAIT, settle_owed};
use crate::settings::{Auth, Settings, SettingsError};
use crate::telemetry::{Telemetry, TelemetrySettings};
use crate::throttle::Allowance;
use crate::tls::{Fingerprint, Tls, TlsError, TlsSettings};
use crate::wire::Refusal;
use crate::{pulse, server};

/// All that a running gateway knows.
pub struct Gateway {
    pub(crate) settings: Settings,
    pub(crate) limits: Limits,
    pub(crate) locations: Locations,
    /// The `session` section, as it was written when the gateway started.
    pub(crate) session: Value,
    /// The agent that is meant when none is named.
    pub(crate) default_agent: String,
    pub(crate) agents: Agents,
    pub(crate) hub: Arc<Hub>,
    pub(crate) presence: Presence,
    pub(crate) guard: Guard,
    pub(crate) pairing: Arc<Pairing>,
    pub(crate) door: Arc<Door>,
    /// Its certificate, if connections are encrypted.
    pub(crate) tls: Option<Tls>,
    /// Where it listens.
    pub(crate) address: SocketAddr,
    /// Changes of the configuration that one client may still make.
    pub(crate) changes: Allowance,
    pub(crate) runs: Runs,
    /// Runs the commands of all agents.
    pub(crate) exec: Arc<Exec>,
    /// What they talk to.
    pub(crate) traffic: Arc<LiveConnections>,
    /// Who is asked about them.
    pub(crate) approver: Arc<dyn Approver>,
    /// How long a turn waits for an answer.
    pub(crate) wait: Duration,
    pub(crate) approvals: Arc<Board>,
    pub(crate) nodes: Arc<Nodes>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) telemetry: Telemetry,
    pub(crate) started: Instant,
    /// Work that is waited for when the gateway ends.
    pub(crate) tasks: TaskTracker,
    /// Connections, which are closed when that work is done.
    pub(crate) connections: TaskTracker,
    /// No new work is begun.
    pub(crate) stop: CancellationToken,
    /// Whatever is left is left undone.
    pub(crate) end: CancellationToken,
}

/// What was asked for beyond the configuration.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Listen on this port.
    pub port: Option<u16>,
    /// Listen here: `loopback`, `lan`, `auto`, or an address.
    pub bind: Option<String>,
    /// Encrypt connections, or not; unless it is said, what other machines reach is encrypted.
    pub tls: Option<bool>,
    /// Clients have to know this token.
    pub token: Option<Secret>,
    /// How much clients may take.
    pub limits: Limits,
    /// How long turns go on when the gateway is told to end.
    pub grace: Option<Duration>,
    /// How long a turn waits for a person to approve a command before it goes on without it.
    pub wait: Option<Duration>,
    /// The program that sets up what commands run in; this one, unless something else is said.
    pub helper: Option<PathBuf>,
}

/// A gateway that runs; it ends when it is told to, or dropped.
pub struct Running {
    /// Where it listens.
    pub address: SocketAddr,
    gateway: Arc<Gateway>,
    serving: JoinHandle<()>,
    token_file: Option<PathBuf>,
    grace: Duration,
}

/// A gateway cannot start.
#[derive(Debug, Error)]
pub enum StartError {
    /// The operator's files cannot be used.
    #[error("{}", .0.sentence())]
    Host(Failure),
    /// The settings make no sense.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// A token was made up, and cannot be written where others find it.
    #[error("cannot save the new token in the configuration: {0}; set gateway.auth.token yourself")]
    Token(#[from] EditError),
    /// The system gives no random numbers.
    #[error("the system cannot provide random numbers for a token")]
    Random,
    /// Its journal of runs cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// It has no certificate to show.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// It cannot listen.
    #[error("cannot listen on {address}: {source}; choose another port with --port")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
}

/// What a gateway is built on.
struct Foundation {
    settings: Settings,
    tls: Option<Tls>,
    address: SocketAddr,
    context: Context,
    agents: Agents,
    runs: Runs,
    metrics: Arc<Metrics>,
    telemetry: Telemetry,
    stop: CancellationToken,
}

impl Gateway {
    /// Starts one on this ground.
    pub async fn start(ground: Ground, options: Options) -> Result<Running, StartError> {
        let context = Context::load(&ground).map_err(StartError::Host)?;
        let mut settings = Settings::resolve(&context.config, &options)?;
        let mut token_file = None;
        if matches!(settings.auth, Auth::Unset) {
            let (token, file) = make_token(&context.locations)?;
            settings.auth = Auth::Token(token);
            token_file = Some(file);
        }
        let tls = if settings.tls {
            let certificate = TlsSettings::read(&settings.section["tls"], &context.locations);
            let loaded = blocking(move || certificate.load()).await;
            Some(loaded.map_err(|refusal| StartError::Host(Failure::ours(refusal.message)))??)
        } else {
            None
        };
        let address = SocketAddr::new(settings.bind, settings.port);
        let listening = TcpListener::bind(address).await.and_then(|socket| Ok((socket.local_addr()?, socket)));
        let (address, socket) = listening.map_err(|source| StartError::Listen { address, source })?;
        let stop = CancellationToken::new();
        let (telemetry, exporter) = Telemetry::start(TelemetrySettings::read(&context.config), stop.clone());
        let metrics = Arc::new(Metrics::new(&methods::names()));
        let (agents, newcomers) = Agents::new(ground, Arc::clone(&metrics));
        let (state_dir, config) = (context.locations.state_dir.clone(), context.config.tree().clone());
        let runs = blocking(move || Runs::open(&state_dir, &config)).await;
        let runs = runs.map_err(|refusal| StartError::Host(Failure::ours(refusal.message)))??;
        let foundation = Foundation { settings, tls, address, context, agents, runs, metrics, telemetry, stop };
        let gateway = Arc::new(Self::new(foundation, &options)?);
        gateway.tasks.spawn(agents::tell_changes(Arc::clone(&gateway), newcomers));
        gateway.nodes.on_wake(wake(&gateway));
        settle_owed(&gateway);
        if let Some(exporter) = exporter {
            gateway.tasks.spawn(exporter.run());
        }
        health::look(&gateway).await;
        gateway.tasks.spawn(health::keep_telling(Arc::clone(&gateway)));
        gateway.tasks.spawn(pulse::ticks(Arc::clone(&gateway)));
        gateway.tasks.spawn(pulse::presence(Arc::clone(&gateway)));
        gateway.tasks.spawn(pulse::traffic(Arc::clone(&gateway)));
        gateway.tasks.spawn(Nodes::look_after(Arc::clone(&gateway)));
        let serving = tokio::spawn(server::serve(Arc::clone(&gateway), socket));
        Ok(Running { address, gateway, serving, grace: options.grace.unwrap_or(GRACE), token_file })
    }

    fn new(foundation: Foundation, options: &Options) -> Result<Self, StartError> {
        let Foundation { settings, tls, address, context, agents, runs, metrics, telemetry, stop } = foundation;
        let limits = options.limits.clone();
        let hub = Arc::new(Hub::default());
        let state_dir = &context.locations.state_dir;
        let board = Board::open(Arc::clone(&hub), Arc::clone(&metrics), state_dir, stop.clone());
        let nodes = Nodes::open(Arc::clone(&hub), Arc::clone(&metrics), state_dir, stop.clone());
        let approver: Arc<dyn Approver> = Arc::new(Connected::new(&board));
        let mut exec = exec(&context, Arc::clone(&approver), options.helper.clone())?;
        exec.remote = Some(Arc::new(NodeExec { nodes: Arc::clone(&nodes), board: Arc::clone(&board) }));
        Ok(Self {
            runs,
            traffic: exec.connections.watch(),
            exec: Arc::new(exec),
            approver,
            wait: options.wait.unwrap_or(WAIT),
            approvals: board,
            nodes,
            metrics,
            telemetry,
            guard: Guard::new(settings.auth.clone(), settings.lockout),
            pairing: Arc::new(Pairing::new(state_dir)),
            door: Door::new(limits.connections, limits.strangers, &settings.proxies),
            changes: Allowance::new(3, 60_000),
            session: context.config.tree()["session"].clone(),
            default_agent: context.config.agents().default_agent().id.to_string(),
            locations: context.locations,
            tls,
            address,
            settings,
            limits,
            agents,
            hub,
            presence: Presence::new(),
            started: Instant::now(),
            tasks: TaskTracker::new(),
            connections: TaskTracker::new(),
            stop,
            end: CancellationToken::new(),
        })
    }

    /// Whoever is connected and may answer, as those whom turns ask.
    #[must_use]
    pub fn approver(&self) -> Arc<dyn Approver> {
        Arc::clone(&self.approver)
    }

    /// The nodes, as machines that turns may run commands on.
    #[must_use]
    pub fn remote(&self) -> Arc<dyn Remote> {
        Arc::new(NodeExec { nodes: Arc::clone(&self.nodes), board: Arc::clone(&self.approvals) })
    }

    /// The list of skills that the next turn of an agent begins with; of the default agent if none is named. Looks at the
    /// disk when the agent was not used before.
    pub fn skills_prompt(&self, agent: Option<&str>) -> Result<String, Refusal> {
        Ok(self.agents.get(agent)?.skills().current().snapshot.prompt().text.clone())
    }
}

/// A token for a gateway that has none, written where other programs of this user find it.
fn make_token(locations: &Locations) -> Result<(Secret, PathBuf), StartError> {
    let token = fresh_token().map_err(|_| StartError::Random)?;
    let edited = ConfigFile::new(&locations.config_path).set("gateway.auth.token", token.as_str().into())?;
    tracing::info!("generated a token and saved it as gateway.auth.token");
    Ok((Secret::new(token), edited.file))
}

/// The means to run commands.
fn exec(context: &Context, approver: Arc<dyn Approver>, helper: Option<PathBuf>) -> Result<Exec, StartError> {
    let Some(helper) = helper else { return prowess_host::exec(context, approver).map_err(StartError::Host) };
    Ok(Exec::new(&context.locations.state_dir, approver, Runner::new(job::Limits::default()), helper))
}

/// Tells a session what became of something that nobody waited for.
fn wake(gateway: &Arc<Gateway>) -> Wake {
    let gateway = Arc::downgrade(gateway);
    Arc::new(move |key, text| {
        if let Some(gateway) = gateway.upgrade() {
            gateway.runs.wake(&gateway, key, News::of("exec", text));
        }
    })
}

impl Running {
    /// The fingerprint of its certificate, if connections are encrypted.
    #[must_use]
    pub fn fingerprint(&self) -> Option<Fingerprint> {
        self.gateway.tls.as_ref().map(|tls| tls.fingerprint)
    }

    /// The token or password that clients have to know.
    #[must_use]
    pub fn secret(&self) -> Option<&Secret> {
        match &self.gateway.settings.auth {
            Auth::Token(secret) | Auth::Password(secret) => Some(secret),
            Auth::None | Auth::Unset | Auth::Proxy(_) => None,
        }
    }

    /// The file in which a token was written that was made up at the start; none, if clients had one to know already.
    #[must_use]
    pub fn token_file(&self) -> Option<&Path> {
        self.token_file.as_deref()
    }

    /// What it knows.
    #[must_use]
    pub fn gateway(&self) -> &Arc<Gateway> {
        &self.gateway
    }

    /// Ends it, and waits until nothing of it is left.
    ///
    /// Nobody new is let in and nothing new is begun; turns come to their end or are interrupted; everybody hears of it;
    /// then the connections are closed.
    pub async fn end(mut self) {
        let gateway = Arc::clone(&self.gateway);
        gateway.runs.park(self.grace).await;
        let settling = Arc::clone(&gateway);
        // What could not be written is in the log, and beside the index.
        let _ = blocking(move || settling.agents.settle()).await;
        gateway.stop.cancel();
        // A task that panicked is over, too.
        let _ = (&mut self.serving).await;
        let farewell = json!({"reason": "gateway stopping", "restartExpectedMs": null});
        gateway.hub.tell(Audience::Everybody, "shutdown", &farewell, Urgency::Droppable);
        gateway.tasks.close();
        if timeout(2 * gateway.limits.grace, gateway.tasks.wait()).await.is_err() {
            tracing::warn!("some tasks did not finish in time");
        }
        gateway.hub.close(|_| true, 1012, "service restart");
        gateway.connections.close();
        let closed = timeout(gateway.limits.grace, gateway.connections.wait()).await;
        gateway.end.cancel();
        if closed.is_err() {
            gateway.connections.wait().await;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.gateway.runs.abandon();
        self.gateway.stop.cancel();
        self.gateway.end.cancel();
    }
}
