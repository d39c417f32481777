//! The line to a person: how is a question put, and an answer taken, by somebody who may be called off at any time?

use std::fs::File;
use std::io::{PipeReader, Read, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The longest answer that is read.
const MAX_ANSWER_BYTES: usize = 256;

/// How many reads of earlier input are thrown away before a question.
const MAX_FORGOTTEN: usize = 1024;

/// The terminal, for one conversation.
pub(super) struct Line<'a> {
    input: &'a mut File,
    output: &'a mut File,
    /// At its end once nobody waits for the answer any more.
    dropped: &'a PipeReader,
    deadline: Instant,
}

impl<'a> Line<'a> {
    /// Takes the terminal, unless nobody waits any more. What was typed before is thrown away: an answer that came too
    /// late for the last question is none to this one.
    pub(super) fn begin(
        input: &'a mut File,
        output: &'a mut File,
        dropped: &'a PipeReader,
        patience: Duration,
    ) -> Option<Self> {
        let mut line = Self { input, output, dropped, deadline: Instant::now() + patience };
        if line.ready(Duration::ZERO) == Ready::Dropped {
            return None;
        }
        line.forget();
        Some(line)
    }

    /// Shows `text`.
    pub(super) fn say(&mut self, text: &str) -> Option<()> {
        self.output.write_all(text.as_bytes()).and_then(|()| self.output.flush()).ok()
    }

    /// A line of the answer, unless the time is up, the other end has gone, or nobody waits for it any more.
    pub(super) fn hear(&mut self) -> Option<String> {
        let mut line = Vec::new();
        while line.len() < MAX_ANSWER_BYTES {
            let left = self.deadline.checked_duration_since(Instant::now())?;
            if self.ready(left) != Ready::Input {
                return None;
            }
            let mut byte = [0];
            match self.input.read(&mut byte) {
                Ok(1) if byte[0] == b'\n' => return String::from_utf8(line).ok(),
                Ok(1) => line.push(byte[0]),
                _ => return None,
            }
        }
        None
    }

    fn forget(&mut self) {
        // Only terminals hold back half a line.
        let _ = rustix::termios::tcflush(&*self.input, rustix::termios::QueueSelector::IFlush);
        let mut bytes = [0; 1024];
        for _ in 0..MAX_FORGOTTEN {
            if self.ready(Duration::ZERO) != Ready::Input || !matches!(self.input.read(&mut bytes), Ok(1..)) {
                return;
            }
        }
    }

    /// Waits for something to read. That nobody waits for it any more is looked at first, so that nothing is taken then.
    fn ready(&self, wait: Duration) -> Ready {
        let Ok(seconds) = i64::try_from(wait.as_secs()) else { return Ready::Nothing };
        let timeout = Timespec { tv_sec: seconds, tv_nsec: i64::from(wait.subsec_nanos()) };
        let mut ready = [
            PollFd::from_borrowed_fd(self.dropped.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.input.as_fd(), PollFlags::IN),
        ];
        match poll(&mut ready, Some(&timeout)) {
            Ok(0) | Err(_) => Ready::Nothing,
            Ok(_) if !ready[0].revents().is_empty() => Ready::Dropped,
            Ok(_) => Ready::Input,
        }
    }
}

/// What there is on the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ready {
    /// Something to read, or the end of it.
    Input,
    /// Nobody who waits.
    Dropped,
    /// Nothing.
    Nothing,
}
