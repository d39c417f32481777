//! Connecting again: how long does somebody wait who has lost a gateway?

use std::time::Duration;

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
        Self::starting(FIRST)
    }
}

impl Backoff {
    /// With another first pause.
    #[must_use]
    pub fn starting(first: Duration) -> Self {
        Self { first, next: first }
    }

    /// The next pause, twice as long as the one before. Up to a quarter is added by chance, so that many who lost the
    /// same gateway do not all come back in the same moment.
    pub fn pause(&mut self) -> Duration {
        let pause = self.next;
        self.next = LONGEST.min(self.next.saturating_mul(2));
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
