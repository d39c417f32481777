//! What if a child never ends? It is given a time, then killed, and what it said until then is kept.

use std::io::Read;
use std::mem;
use std::process::{Child, ExitStatus};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// What became of a child.
pub(crate) struct Ended {
    /// How it ended, or nothing when it had to be killed.
    pub(crate) status: Option<ExitStatus>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

/// A child whose output is read from the beginning, so that it never waits for somebody to read it.
#[derive(Debug)]
pub(crate) struct Watched {
    child: Child,
    stdout: Pipe,
    stderr: Pipe,
}

impl Watched {
    pub(crate) fn new(mut child: Child) -> Self {
        let (stdout, stderr) = (Pipe::drain(child.stdout.take()), Pipe::drain(child.stderr.take()));
        Self { child, stdout, stderr }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it wrote to stdout so far.
    pub(crate) fn stdout(&self) -> Vec<u8> {
        self.stdout.bytes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends it, if it has not ended.
    pub(crate) fn kill(&mut self) -> std::io::Result<()> {
        self.child.kill()?;
        self.child.wait().map(drop)
    }

    /// Waits until it has ended *and* closed its output, at most for `limit`.
    ///
    /// A grandchild that keeps the pipes open counts as not ended: it would outlive its test.
    pub(crate) fn wait(mut self, limit: Duration) -> std::io::Result<Ended> {
        let deadline = Instant::now() + limit;
        let mut pause = Duration::from_micros(200);
        let status = loop {
            match self.child.try_wait()? {
                Some(status) if self.stdout.is_closed() && self.stderr.is_closed() => break Some(status),
                _ if Instant::now() >= deadline => {
                    self.kill()?;
                    break None;
                }
                _ => thread::sleep(pause),
            }
            // Short commands are not held up, long ones are not polled to death.
            pause = (pause * 2).min(Duration::from_millis(10));
        };
        Ok(Ended { status, stdout: self.stdout.take(), stderr: self.stderr.take() })
    }
}

/// One output of a child, read on a thread of its own so that neither can block the other.
#[derive(Debug)]
struct Pipe {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Pipe {
    fn drain(source: Option<impl Read + Send + 'static>) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&bytes);
        let reader = thread::spawn(move || {
            let mut chunk = [0; 8192];
            let Some(mut source) = source else { return };
            // An error ends the stream like its end does: the child is what is tested, not the pipe.
            while let Ok(count @ 1..) = source.read(&mut chunk) {
                sink.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&chunk[..count]);
            }
        });
        Self { bytes, reader }
    }

    fn is_closed(&self) -> bool {
        self.reader.is_finished()
    }

    fn take(&self) -> Vec<u8> {
        mem::take(&mut self.bytes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
