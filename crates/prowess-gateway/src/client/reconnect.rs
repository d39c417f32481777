//! Connecting again: how does somebody stay connected to a gateway that comes and goes?

use std::time::Duration;

use super::{CallError, Client, Introduction};

/// How long to wait before the first attempt after a connection was lost.
pub(crate) const FIRST: Duration = Duration::from_secs(1);

/// How long to wait at most.
const LONGEST: Duration = Duration::from_secs(30);

/// How long to wait before the next attempt.
#[derive(Debug, Clone)]
pub struct Backoff {
    first: Duration,
    next: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self::starting_with(FIRST)
    }
}

impl Backoff {
    /// With another first pause than the usual one.
    #[must_use]
    pub fn starting_with(first: Duration) -> Self {
        Self { first, next: first }
    }

    /// The next pause, twice as long as the one before. Up to a quarter is added by chance, so that many who lost the
    /// same gateway do not all come back in the same moment.
    pub fn pause(&mut self) -> Duration {
        let pause = self.next;
        self.next = LONGEST.min(self.next * 2);
        let mut chance = [0];
        // Without chance they come back together, which works, too.
        let _ = getrandom::fill(&mut chance);
        pause + pause * u32::from(chance[0]) / (4 * 255)
    }

    /// It worked, so the next pause is short again.
    pub fn reset(&mut self) {
        self.next = self.first;
    }
}

/// Connects to a gateway again and again.
#[derive(Debug)]
pub struct Reconnecting {
    url: String,
    introduction: Introduction,
    backoff: Backoff,
    is_first: bool,
}

impl Reconnecting {
    /// To that gateway, as that.
    #[must_use]
    pub fn new(url: &str, introduction: Introduction) -> Self {
        Self { url: url.to_owned(), introduction, backoff: Backoff::default(), is_first: true }
    }

    /// Who connects; it may know more after each connection.
    pub fn introduction_mut(&mut self) -> &mut Introduction {
        &mut self.introduction
    }

    /// The next connection, whenever there is one. `failed` hears of each attempt that came to nothing, and how long the
    /// pause after it is; if it says no, the last error is returned.
    pub async fn next(&mut self, mut failed: impl FnMut(&CallError, Duration) -> Go) -> Result<Client, CallError> {
        if !std::mem::take(&mut self.is_first) {
            tokio::time::sleep(self.backoff.pause()).await;
        }
        loop {
            let error = match Client::connect(&self.url, &self.introduction).await {
                Ok(client) => {
                    self.backoff.reset();
                    return Ok(client);
                }
                Err(error) => error,
            };
            let pause = self.backoff.pause();
            match failed(&error, pause) {
                Go::On => tokio::time::sleep(pause).await,
                Go::Home => return Err(error),
            }
        }
    }
}

/// Whether to try once more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Go {
    /// Yes.
    On,
    /// No.
    Home,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_half_a_minute_and_start_over() {
        let mut backoff = Backoff::default();
        for seconds in [1, 2, 4, 8, 16, 30, 30] {
            let (pause, least) = (backoff.pause(), Duration::from_secs(seconds));
            assert!(pause >= least && pause <= least * 5 / 4, "{pause:?}");
        }
        backoff.reset();
        assert!(backoff.pause() < Duration::from_secs(2));
    }
}
