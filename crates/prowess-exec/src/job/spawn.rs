//! A launch becomes a process: what does it get, and did its helper agree?

use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdStream;
use std::process::Stdio;
use std::time::Duration;

use command_fds::{CommandFdExt, FdMapping};
use prowess_egress::{CommandContext, Forward, Outlet, ProxyListener};
use prowess_policy::lease::Host;
use rustix::process::Pid;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};

use super::family::Family;
use super::{Input, StartError};
use crate::egress::FailedConnections;
use crate::launch::Launch;
use crate::loopback::Listed;
use crate::sandbox::{Cleanup, LISTENER, MAX_SOCKETS, NamedHost, ORDER_FD, Prepared, StopInside, read_report};
use crate::terminal::{self, Terminal};

/// How long a helper may take to set itself up.
const HELPER: Duration = Duration::from_secs(20);

/// The most a helper may say.
const REPORT: u64 = 64 * 1024;

/// A process that runs, and our ends of its streams.
#[derive(Debug)]
pub(super) struct Spawned {
    pub(super) child: Child,
    pub(super) leader: Pid,
    pub(super) family: Family,
    pub(super) stream: Stream,
    pub(super) cleanup: Cleanup,
    /// Ends what runs inside a container, where no signal of ours arrives.
    pub(super) stop: Option<StopInside>,
    /// The way out, for as long as the run lasts.
    pub(super) outlet: Option<OpenOutlet>,
}

/// The way out of a run.
#[derive(Debug)]
pub(super) struct OpenOutlet {
    /// Its network, in the list of its session's.
    listed: Option<Listed>,
    outlet: Outlet,
    failed: FailedConnections,
}

impl OpenOutlet {
    /// Closes it. Returns which connections did not work.
    pub(super) async fn close(self) -> Vec<String> {
        // The socket of the proxy is what keeps the number of the network from being another's.
        drop(self.listed);
        self.outlet.close().await;
        self.failed.list()
    }
}

/// Our ends of a program's streams. Output and errors share one, so their order is the one they were written in.
#[derive(Debug)]
pub(super) enum Stream {
    Pipe { output: pipe::Receiver, input: Option<pipe::Sender> },
    Terminal(Terminal),
}

impl Stream {
    /// Waits for the next bytes. Zero is the end.
    pub(super) async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Terminal(terminal) => terminal.read(buffer).await,
            Self::Pipe { output, .. } => terminal::read(output, buffer).await,
        }
    }

    /// The next bytes, if there are any now.
    pub(super) fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Terminal(terminal) => terminal.try_read(buffer),
            Self::Pipe { output, .. } => output.try_read(buffer),
        }
    }

    /// Whether the program can be given input.
    pub(super) fn takes_input(&self) -> bool {
        matches!(self, Self::Terminal(_) | Self::Pipe { input: Some(_), .. })
    }

    /// Waits until some of `bytes` is on its way to the program.
    pub(super) async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Terminal(terminal) => terminal.write(bytes).await,
            Self::Pipe { input: None, .. } => Err(io::ErrorKind::BrokenPipe.into()),
            Self::Pipe { input: Some(input), .. } => terminal::write(input, bytes).await,
        }
    }

    /// No more input.
    pub(super) fn close_input(&mut self) {
        if let Self::Pipe { input, .. } = self {
            *input = None;
        }
    }
}

/// Starts the program of `launch`.
pub(super) async fn spawn(launch: Launch) -> Result<Spawned, StartError> {
    let Launch { command: _, cwd, env, input, prepared, egress, hosts } = launch;
    let Prepared { program, args, order, cleanup, vars: _, stop } = prepared;
    let mut command = Command::new(&program);
    command.args(&args).current_dir(&cwd).env_clear().kill_on_drop(true);
    if input == Input::Terminal {
        command.env("TERM", terminal::KIND);
    }
    command.envs(env);
    let stream = connect(&mut command, input)?;
    let helper = if order.is_some() {
        Some(line_to_helper(&mut command)?)
    } else {
        // Not for a helper: it begins a session, which the leader of a group cannot.
        command.process_group(0);
        None
    };
    let child = command.spawn().map_err(StartError::Spawn)?;
    // Our copies of the child's ends: as long as they are open, its output never ends.
    drop(command);
    let number = child.id().and_then(|id| i32::try_from(id).ok());
    let leader = number.and_then(Pid::from_raw).ok_or(StartError::Vanished)?;
    // From here on, an early return ends the process.
    let stop = stop.map(StopInside::armed);
    let mut spawned = Spawned { child, leader, family: Family::of(leader), stream, cleanup, stop, outlet: None };
    if let (Some(helper), Some(order)) = (helper, &order) {
        let talk = tokio::time::timeout(HELPER, instruct(helper, order));
        let Heard { report, sockets } = talk.await.map_err(|_| StartError::Silent)?.map_err(StartError::Helper)?;
        if let Some(refused) = read_report(&report) {
            return Err(StartError::Refused(refused));
        }
        if let Some(sockets) = &sockets {
            spawned.family.live_in(sockets.namespace);
        }
        if let (Some(sockets), Some(egress)) = (sockets, egress) {
            let listed = egress.network.map(|network| network.list(sockets.namespace));
            let outlet = sockets.serve(&hosts, egress.context).map_err(StartError::Helper)?;
            spawned.outlet = Some(OpenOutlet { listed, outlet, failed: egress.failed });
        }
    }
    Ok(spawned)
}

/// Gives the child its standard streams.
fn connect(command: &mut Command, input: Input) -> Result<Stream, StartError> {
    if input == Input::Terminal {
        let (ours, theirs) = terminal::open().map_err(StartError::Terminal)?;
        let copies = (theirs.try_clone(), theirs.try_clone());
        let (first, second) = (copies.0.map_err(StartError::Terminal)?, copies.1.map_err(StartError::Terminal)?);
        command.stdin(first).stdout(second).stderr(theirs);
        return Ok(Stream::Terminal(ours));
    }
    let (reader, writer) = io::pipe().map_err(StartError::Spawn)?;
    command.stdout(writer.try_clone().map_err(StartError::Spawn)?).stderr(writer);
    let output = pipe::Receiver::from_owned_fd(OwnedFd::from(reader)).map_err(StartError::Spawn)?;
    if input == Input::Closed {
        command.stdin(Stdio::null());
        return Ok(Stream::Pipe { output, input: None });
    }
    let (reader, writer) = io::pipe().map_err(StartError::Spawn)?;
    command.stdin(reader);
    let input = pipe::Sender::from_owned_fd(OwnedFd::from(writer)).map_err(StartError::Spawn)?;
    Ok(Stream::Pipe { output, input: Some(input) })
}

/// A socket whose other end the child will find at [`ORDER_FD`].
fn line_to_helper(command: &mut Command) -> Result<UnixStream, StartError> {
    let (ours, theirs) = StdStream::pair().map_err(StartError::Helper)?;
    ours.set_nonblocking(true).map_err(StartError::Helper)?;
    let mapping = FdMapping { parent_fd: theirs.into(), child_fd: ORDER_FD };
    command.as_std_mut().fd_mappings(vec![mapping]).map_err(|error| StartError::Helper(io::Error::other(error)))?;
    UnixStream::from_std(ours).map_err(StartError::Helper)
}

/// What a helper said, and the sockets that it handed over.
struct Heard {
    report: Vec<u8>,
    sockets: Option<ProxySockets>,
}

/// The sockets of the proxy.
struct ProxySockets {
    /// The number of the network namespace that they belong to.
    namespace: u64,
    proxy: OwnedFd,
    /// Those for programs that know no proxy, each with its place among the run's [`NamedHost`]s.
    forwards: Vec<(usize, OwnedFd)>,
}

impl ProxySockets {
    /// Serves the run what `context` allows.
    fn serve(self, hosts: &[NamedHost], context: CommandContext) -> io::Result<Outlet> {
        let listener = |socket: OwnedFd| ProxyListener::try_from(TcpListener::from(socket));
        let named: Vec<(&str, _, u16)> = NamedHost::sockets(hosts).collect();
        let mut forwards = Vec::new();
        for (place, socket) in self.forwards {
            let Some(&(name, _, port)) = named.get(place) else { continue };
            let host = Host::parse(name).map_err(io::Error::other)?;
            forwards.push(Forward { listener: listener(socket)?, host, port });
        }
        Ok(Outlet::serve_with(listener(self.proxy)?, forwards, context))
    }
}

/// Tells the helper what to do, and returns what it says until it becomes the program or gives up.
async fn instruct(mut helper: UnixStream, order: &[u8]) -> io::Result<Heard> {
    let told = async {
        helper.write_all(order).await?;
        helper.shutdown().await
    };
    // A helper that refuses early may not have read everything. What it says matters more than what it missed.
    let told = told.await;
    let (mut report, sockets) = helper.async_io(Interest::READABLE, || first_words(&helper)).await?;
    let heard = helper.take(REPORT).read_to_end(&mut report).await;
    if report.is_empty() && sockets.is_none() {
        told?;
        heard?;
    }
    Ok(Heard { report, sockets })
}

/// The first that a helper says: the sockets of the proxy, or the beginning of a report.
fn first_words(helper: &UnixStream) -> io::Result<(Vec<u8>, Option<ProxySockets>)> {
    use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_SOCKETS + 1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut bytes = [0; 1024];
    let flags = RecvFlags::CMSG_CLOEXEC;
    let said = recvmsg(helper, &mut [io::IoSliceMut::new(&mut bytes)], &mut ancillary, flags)?;
    let fds = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(fds) => Some(fds.collect::<Vec<_>>()),
        _ => None,
    });
    let said = &bytes[..said.bytes];
    let mut fds = fds.into_iter().flatten();
    let Some((proxy, (namespace, [count, rest @ ..]))) =
        fds.next().zip(said.strip_prefix(&[LISTENER]).and_then(number))
    else {
        return Ok((said.to_vec(), None));
    };
    let (places, rest) = rest.split_at_checked(usize::from(*count)).unwrap_or((rest, &[]));
    let forwards = places.iter().map(|place| usize::from(*place)).zip(fds).collect();
    Ok((rest.to_vec(), Some(ProxySockets { namespace, proxy, forwards })))
}

/// A number of eight bytes, least first, and what follows it.
fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u64::from_le_bytes(*number), rest))
}
