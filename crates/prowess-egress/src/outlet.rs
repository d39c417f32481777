//! The proxy of one command: its listeners, and the thread that serves them.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use prowess_policy::lease::{Host, HostRule};
use tokio::net::TcpListener;
#[cfg(unix)]
use tokio::net::UnixListener;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::ask::{AskNobody, Asker};
use crate::audit::{AuditSink, Outcome, Refusal};
use crate::limits::Limits;
use crate::names::{Names, OwnLoopback};
use crate::serve::{direct, serve, turn_away};
use crate::state::CommandState;
use crate::stream::Stream;
use crate::token::Token;

/// What the proxy knows about the command that it serves. Make one with [`new`](Self::new) and set what differs.
#[derive(Clone)]
#[non_exhaustive]
pub struct CommandContext {
    /// The skill that the command belongs to.
    pub skill: Option<String>,
    /// The command's id, for questions and records.
    pub command: String,
    /// The hosts that it may reach without a question.
    pub rules: Vec<HostRule>,
    /// Answers questions about other hosts. [`AskNobody`] unless set.
    pub asker: Arc<dyn Asker>,
    /// Takes one record for each connection.
    pub audit: Arc<dyn AuditSink>,
    /// How names are looked up.
    pub names: Names,
    /// Where `localhost` leads first. Nowhere unless set.
    pub own_loopback: Option<OwnLoopback>,
    /// The bounds.
    pub limits: Limits,
    /// What clients have to send, if others can reach the listener.
    pub token: Option<Token>,
    /// A line for the body of a refusal: what the reader can do about it.
    pub hint: Option<String>,
}

impl CommandContext {
    /// A command that may reach nothing, with records going to `audit`.
    #[must_use]
    pub fn new(command: impl Into<String>, audit: impl AuditSink) -> Self {
        Self {
            skill: None,
            command: command.into(),
            rules: Vec::new(),
            asker: Arc::new(AskNobody),
            audit: Arc::new(audit),
            names: Names::default(),
            own_loopback: None,
            limits: Limits::default(),
            token: None,
            hint: None,
        }
    }
}

/// Where clients connect. The socket may belong to another network namespace: the proxy only accepts on it.
#[derive(Debug)]
pub struct ProxyListener(Kind);

#[derive(Debug)]
enum Kind {
    Tcp(TcpListener),
    #[cfg(unix)]
    Unix(UnixListener),
}

impl From<TcpListener> for ProxyListener {
    fn from(listener: TcpListener) -> Self {
        Self(Kind::Tcp(listener))
    }
}

#[cfg(unix)]
impl From<UnixListener> for ProxyListener {
    fn from(listener: UnixListener) -> Self {
        Self(Kind::Unix(listener))
    }
}

impl TryFrom<std::net::TcpListener> for ProxyListener {
    type Error = io::Error;

    /// Takes a bound socket over. Call it inside a tokio runtime.
    fn try_from(listener: std::net::TcpListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        Ok(TcpListener::from_std(listener)?.into())
    }
}

#[cfg(unix)]
impl TryFrom<std::os::unix::net::UnixListener> for ProxyListener {
    type Error = io::Error;

    /// Takes a bound socket over. Call it inside a tokio runtime.
    fn try_from(listener: std::os::unix::net::UnixListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        Ok(UnixListener::from_std(listener)?.into())
    }
}

impl ProxyListener {
    /// The same listener for another runtime.
    fn hand_over(self) -> io::Result<Moved> {
        Ok(match self.0 {
            Kind::Tcp(listener) => Moved::Tcp(listener.into_std()?),
            #[cfg(unix)]
            Kind::Unix(listener) => Moved::Unix(listener.into_std()?),
        })
    }

    fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<Stream>> {
        match &self.0 {
            Kind::Tcp(listener) => listener.poll_accept(cx).map(|accepted| {
                let (stream, _) = accepted?;
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }),
            #[cfg(unix)]
            Kind::Unix(listener) => listener.poll_accept(cx).map(|accepted| Ok(Stream::Unix(accepted?.0))),
        }
    }
}

/// A listener between two runtimes.
enum Moved {
    Tcp(std::net::TcpListener),
    #[cfg(unix)]
    Unix(std::os::unix::net::UnixListener),
}

impl Moved {
    fn arrive(self) -> io::Result<ProxyListener> {
        match self {
            Self::Tcp(listener) => listener.try_into(),
            #[cfg(unix)]
            Self::Unix(listener) => listener.try_into(),
        }
    }
}

/// A listener for programs that know no proxy. All its clients mean one port of one host, to which a name that only the
/// command sees has led them, and speak its protocol from the first byte.
#[derive(Debug)]
pub struct Forward {
    /// Where they connect.
    pub listener: ProxyListener,
    /// The host that they mean. The rules decide whether they reach it.
    pub host: Host,
    /// The port.
    pub port: u16,
}

/// A client, and the host and port that it means if it does not say them.
type Client = (Stream, Option<(Host, u16)>);

/// Where the clients of one command connect.
struct Entrances {
    proxy: ProxyListener,
    forwards: Vec<Forward>,
    /// The one that is asked first, so that none has to wait for ever.
    first: usize,
}

impl Entrances {
    /// The next client.
    async fn accept(&mut self) -> io::Result<Client> {
        let count = self.forwards.len() + 1;
        self.first = (self.first + 1) % count;
        let this = &*self;
        std::future::poll_fn(|cx| {
            for index in (0..count).map(|offset| (this.first + offset) % count) {
                let forward = this.forwards.get(index);
                let listener = forward.map_or(&this.proxy, |forward| &forward.listener);
                if let Poll::Ready(stream) = listener.poll_accept(cx) {
                    let target = forward.map(|forward| (forward.host.clone(), forward.port));
                    return Poll::Ready(stream.map(|stream| (stream, target)));
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Takes everything to the runtime in which the returned function is called, with a client that is there already.
    fn hand_over(self, (stream, target): Client) -> io::Result<impl FnOnce() -> io::Result<(Self, Client)> + Send> {
        let stream = stream.hand_over()?;
        let proxy = self.proxy.hand_over()?;
        let forwards = self.forwards.into_iter().map(|one| Ok((one.listener.hand_over()?, one.host, one.port)));
        let forwards = forwards.collect::<io::Result<Vec<_>>>()?;
        Ok(move || {
            let arrive = |(moved, host, port): (Moved, _, _)| Ok(Forward { listener: moved.arrive()?, host, port });
            let forwards = forwards.into_iter().map(arrive).collect::<io::Result<_>>()?;
            Ok((Self { proxy: proxy.arrive()?, forwards, first: 0 }, (stream.arrive()?, target)))
        })
    }
}

/// Where the records go.
struct Sink(Arc<dyn AuditSink>);

impl std::fmt::Debug for Sink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sink")
    }
}

/// The way out for one command. Dropping it stops the proxy and closes its connections.
#[derive(Debug)]
#[must_use = "the proxy stops when this is dropped"]
pub struct Outlet {
    audit: Sink,
    stop: oneshot::Sender<()>,
    /// Nothing is ever sent: it closes when everything is over.
    over: oneshot::Receiver<()>,
}

impl Outlet {
    /// Serves the connections of `listener` for one command. Call it inside a tokio runtime.
    pub fn serve(listener: impl Into<ProxyListener>, context: CommandContext) -> Self {
        Self::serve_with(listener, Vec::new(), context)
    }

    /// The same, with `forwards` for programs that know no proxy.
    pub fn serve_with(listener: impl Into<ProxyListener>, forwards: Vec<Forward>, context: CommandContext) -> Self {
        let entrances = Entrances { proxy: listener.into(), forwards, first: 0 };
        let ((stop, stopped), (running, over)) = (oneshot::channel(), oneshot::channel());
        let audit = Sink(Arc::clone(&context.audit));
        let state = Arc::new(CommandState::new(context));
        tokio::spawn(wait(entrances, state, Ending { stopped, running }));
        Self { audit, stop, over }
    }

    /// Closes all connections, and returns when their records are stored.
    pub async fn close(self) {
        drop(self.stop);
        self.over.await.ok();
        self.audit.0.flush().await;
    }
}

/// How the end of an outlet gets to its thread and back.
struct Ending {
    /// Closes when the outlet is to end.
    stopped: oneshot::Receiver<()>,
    /// Dropped when nothing is left.
    running: oneshot::Sender<()>,
}

/// Waits for the first client, and then serves it and all others on a thread of their own. Most commands connect to nothing
/// and need none. On a runtime that serves everything else as well, each message could wait for another task, or wake
/// another thread.
async fn wait(mut entrances: Entrances, state: Arc<CommandState>, mut ending: Ending) {
    let client = tokio::select! {
        _ = &mut ending.stopped => return,
        client = next(&mut entrances) => client,
    };
    let thread = std::thread::Builder::new().name("egress".to_owned());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let (Ok(runtime), Ok(arrive)) = (runtime, entrances.hand_over(client)) else { return };
    // If the system has no thread left, the listeners close, and clients cannot connect.
    let _ = thread.spawn(move || {
        runtime.block_on(async {
            if let Ok((entrances, client)) = arrive() {
                accept(entrances, client, state, ending.stopped).await;
            }
        });
        // A lookup that hangs must not hold up the end of the command.
        runtime.shutdown_background();
        drop(ending.running);
    });
}

/// The next client.
async fn next(entrances: &mut Entrances) -> Client {
    loop {
        match entrances.accept().await {
            Ok(client) => return client,
            // No descriptors, usually: wait until some connections end.
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

/// The most clients that are told at once that there are too many. More wait in the kernel's queue.
const MAX_TURNED_AWAY: usize = 64;

async fn accept(mut entrances: Entrances, first: Client, state: Arc<CommandState>, mut stopped: oneshot::Receiver<()>) {
    let mut connections = JoinSet::new();
    let mut turned_away = JoinSet::new();
    let mut client = Some(first);
    loop {
        if let Some((stream, target)) = client.take() {
            let state = Arc::clone(&state);
            let most = state.context.limits.connections;
            let is_full = connections.len() >= most;
            match target {
                None if !is_full => drop(connections.spawn(serve(state, stream))),
                Some((host, port)) if !is_full => drop(connections.spawn(direct(state, stream, host, port))),
                None => drop(turned_away.spawn(turn_away(state, stream))),
                // There is nothing to say in a protocol that is not known.
                Some(_) => state.draft().end(Outcome::Refused(Refusal::TooManyConnections(most))),
            }
        }
        tokio::select! {
            _ = &mut stopped => break,
            Some(_) = connections.join_next() => {}
            Some(_) = turned_away.join_next() => {}
            next = next(&mut entrances), if turned_away.len() < MAX_TURNED_AWAY => client = Some(next),
        }
    }
    tokio::join!(connections.shutdown(), turned_away.shutdown());
}
