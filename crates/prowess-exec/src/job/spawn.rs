//! A launch becomes a process: what does it get, and did its helper agree?

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdStream;
use std::process::Stdio;
use std::time::Duration;

use command_fds::{CommandFdExt, FdMapping};
use rustix::process::Pid;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};

use super::family::Family;
use super::{Input, StartError};
use crate::launch::Launch;
use crate::sandbox::{Cleanup, ORDER_FD, Prepared, StopInside, read_report};
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
    let Launch { command: _, cwd, env, input, prepared } = launch;
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
    let spawned = Spawned { child, leader, family: Family::of(leader), stream, cleanup, stop };
    if let (Some(helper), Some(order)) = (helper, &order) {
        let talk = tokio::time::timeout(HELPER, instruct(helper, order));
        let report = talk.await.map_err(|_| StartError::Silent)?.map_err(StartError::Helper)?;
        if let Some(refused) = read_report(&report) {
            return Err(StartError::Refused(refused));
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

/// Tells the helper what to do, and returns what it says until it becomes the program or gives up.
async fn instruct(mut helper: UnixStream, order: &[u8]) -> io::Result<Vec<u8>> {
    let told = async {
        helper.write_all(order).await?;
        helper.shutdown().await
    };
    // A helper that refuses early may not have read everything. What it says matters more than what it missed.
    let told = told.await;
    let mut report = Vec::new();
    let heard = helper.take(REPORT).read_to_end(&mut report).await;
    if report.is_empty() {
        told?;
        heard?;
    }
    Ok(report)
}
