//! Bytes both ways, counted and bounded.

mod linger;

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use prowess_policy::lease::Host;
use tokio::time::timeout;

pub(crate) use linger::Linger;

use crate::audit::{Draft, Refusal};
use crate::inspect::{Inspection, Inspector};
use crate::limits::Limits;
use crate::state::{CommandState, Stop};
use crate::stream::{Stream, Wire, more};

/// A fatal TLS alert, `access_denied`: what a client sees if its hello names another host.
const TLS_ACCESS_DENIED: [u8; 7] = [0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 49];

/// Counts the bytes of one connection, and ends it if there are too many, or none for too long.
pub(crate) struct Meter<'a> {
    state: &'a CommandState,
    draft: &'a Draft,
    start: Instant,
    /// Milliseconds from the start to the last byte.
    last: AtomicU64,
    /// How often bytes were passed on.
    passed: AtomicU64,
}

/// Which way bytes go.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Direction {
    Up,
    Down,
}

impl<'a> Meter<'a> {
    pub(crate) fn new(state: &'a CommandState, draft: &'a Draft) -> Self {
        Self { state, draft, start: Instant::now(), last: AtomicU64::new(0), passed: AtomicU64::new(0) }
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.state.context.limits
    }

    /// Counts bytes before they are passed on.
    pub(crate) fn count(&self, direction: Direction, bytes: usize) -> Result<(), Refusal> {
        let bytes = bytes as u64;
        let (own, other) = match direction {
            Direction::Up => (&self.draft.progress.up, &self.draft.progress.down),
            Direction::Down => (&self.draft.progress.down, &self.draft.progress.up),
        };
        let connection = own.load(Ordering::Relaxed) + other.load(Ordering::Relaxed) + bytes;
        if connection > self.limits().connection_bytes {
            return Err(Refusal::TooManyBytes("a connection"));
        }
        let command = self.state.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if command > self.limits().command_bytes {
            return Err(Refusal::TooManyBytes("the command"));
        }
        own.fetch_add(bytes, Ordering::Relaxed);
        let elapsed = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.store(elapsed, Ordering::Relaxed);
        self.passed.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Runs `work` until it is done, the connection was silent for too long, or it took too long altogether.
    pub(crate) async fn watch<T>(&self, work: impl Future<Output = Result<T, Stop>>) -> Result<T, Stop> {
        tokio::select! {
            done = work => done,
            stop = self.expire() => Err(stop),
        }
    }

    async fn expire(&self) -> Stop {
        loop {
            let now = self.start.elapsed();
            let last = Duration::from_millis(self.last.load(Ordering::Relaxed));
            let idle_left = (last + self.limits().idle_time).saturating_sub(now);
            let total_left = self.limits().total_time.saturating_sub(now);
            if idle_left.is_zero() {
                return Stop::Failed(format!("silent for {:?}", self.limits().idle_time));
            }
            if total_left.is_zero() {
                return Stop::Failed(format!("open for {:?}", self.limits().total_time));
            }
            tokio::time::sleep(idle_left.min(total_left)).await;
        }
    }
}

/// A client, and the host that it is connected with.
pub(crate) struct Tunnel {
    pub(crate) client: Wire,
    pub(crate) upstream: Stream,
    pub(crate) host: Host,
    pub(crate) draft: Draft,
}

impl Tunnel {
    /// Copies both ways until both sides are done. The first bytes of the client are inspected before any of them leaves;
    /// the host may speak first.
    pub(crate) async fn run(self, state: &CommandState) {
        let Self { client, upstream, host, draft } = self;
        let result = copy(state, &draft, client, &upstream, &host).await;
        draft.end(result.into());
    }
}

async fn copy(state: &CommandState, draft: &Draft, client: Wire, upstream: &Stream, host: &Host) -> Result<(), Stop> {
    let Wire { stream, kept } = client;
    let meter = Meter::new(state, draft);
    let up = async {
        // It is over soon, and needs more memory than what follows.
        if Box::pin(inspect(&meter, &stream, kept, upstream, host)).await? {
            pump(&meter, Direction::Up, &stream, upstream).await?;
        }
        upstream.shutdown_write();
        Ok(())
    };
    let down = async {
        pump(&meter, Direction::Down, upstream, &stream).await?;
        stream.shutdown_write();
        Ok(())
    };
    let both = async { tokio::try_join!(up, down) };
    let result = meter.watch(Linger::tunnel(state, &meter.passed, both)).await.map(|((), ())| ());
    match result {
        Err(Stop::Refused(refusal)) => {
            Box::pin(tell(&stream, &refusal, host)).await;
            Err(refusal.into())
        }
        // Many programs end a conversation that way.
        Err(Stop::Reset) if draft.progress.up() > 0 && draft.progress.down() > 0 => Ok(()),
        result => result,
    }
}

/// Tells the client why its first message was not forwarded, in the protocol that it speaks.
async fn tell(stream: &Stream, refusal: &Refusal, host: &Host) {
    let message = match refusal {
        Refusal::ServerName(_) | Refusal::NoServerName | Refusal::BadHello(_) => TLS_ACCESS_DENIED.to_vec(),
        Refusal::HostHeader(_) => crate::http::refusal_page(refusal, Some(host), None),
        _ => return,
    };
    // The client may be gone, or not read.
    timeout(Duration::from_secs(1), stream.write_all(&message)).await.ok();
    stream.shutdown_write();
}

/// Reads, inspects and forwards the client's first message. False if the client closed before it sent anything.
async fn inspect(
    meter: &Meter<'_>,
    stream: &Stream,
    mut kept: Vec<u8>,
    upstream: &Stream,
    host: &Host,
) -> Result<bool, Stop> {
    let limits = *meter.limits();
    loop {
        if kept.is_empty() && more(stream, &mut kept).await? == 0 {
            return Ok(false);
        }
        let mut inspector = Inspector::new(host.clone(), limits.head_bytes);
        let complete = async {
            loop {
                match inspector.look(&kept) {
                    Inspection::Refuse(refusal) => return Err(Stop::Refused(refusal)),
                    Inspection::More => {}
                    done => return Ok(Some(done)),
                }
                if more(stream, &mut kept).await? == 0 {
                    return Ok(None);
                }
            }
        };
        let done = timeout(limits.head_time, complete).await.map_err(|_| Refusal::HeadTooSlow)??;
        // Half a message is not forwarded: it was not checked.
        let Some(done) = done else {
            return Err(Refusal::Malformed("the client closed inside its first message").into());
        };
        meter.count(Direction::Up, kept.len())?;
        upstream.write_all(&kept).await?;
        kept.clear();
        if done == Inspection::Pass {
            return Ok(true);
        }
    }
}

/// Copies one direction until its end.
pub(crate) async fn pump(meter: &Meter<'_>, direction: Direction, from: &Stream, to: &Stream) -> Result<(), Stop> {
    let buffers = &meter.state.buffers;
    let mut is_bulk = false;
    loop {
        from.readable().await?;
        let large = if is_bulk { buffers.large() } else { None };
        let mut buffer = large.unwrap_or_else(|| buffers.small());
        is_bulk = loop {
            match from.try_read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => {
                    meter.count(direction, count)?;
                    to.write_all(&buffer[..count]).await?;
                    if count == buffer.len() && !is_bulk {
                        break true;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break is_bulk,
                Err(error) => return Err(error.into()),
            }
        };
    }
}
