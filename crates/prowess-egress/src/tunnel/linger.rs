//! Is the answer about to come?
//!
//! Falling asleep and waking up again takes longer than anything else that the proxy does for a short message. Where the
//! last answers came at once, as between programs of one machine or one site, a connection stays awake for a moment and
//! looks for the next. It lets other tasks run meanwhile. Where answers take longer, it sleeps as usual; and of all
//! connections of a command only one stays awake at a time.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use crate::state::CommandState;

/// How long a tunnel stays awake, and how soon an answer has to come to be worth it.
const MOMENT: Duration = Duration::from_micros(50);

/// The same for a handshake, which takes several messages.
const HANDSHAKE: Duration = Duration::from_micros(200);

/// How many answers in a row have to come that soon. On a busy machine, staying awake would only take time from whoever
/// has to answer.
const STREAK: u8 = 3;

/// How soon answers come on one connection.
#[derive(Debug)]
struct Pace {
    moment: Duration,
    /// How often bytes were passed on when it was looked at last, and when that changed.
    passed: u64,
    since: Instant,
    /// How many answers in a row came soon, up to [`STREAK`].
    streak: u8,
}

impl Pace {
    /// Whether to stay awake, now that bytes were passed on `passed` times.
    fn is_quick(&mut self, passed: u64, now: Instant) -> bool {
        let is_soon = now.duration_since(self.since) < self.moment;
        if passed != self.passed {
            (self.passed, self.since) = (passed, now);
            self.streak = if is_soon { STREAK.min(self.streak + 1) } else { 0 };
            return self.streak == STREAK;
        }
        is_soon && self.streak == STREAK
    }
}

/// Work on a connection, kept awake for a moment when bytes were passed on.
pub(crate) struct Linger<'a, F> {
    state: &'a CommandState,
    /// How often bytes were passed on; not for a handshake.
    passed: Option<&'a AtomicU64>,
    work: Pin<Box<F>>,
    pace: Pace,
    is_awake: bool,
}

impl<'a, F: Future> Linger<'a, F> {
    /// A tunnel. A host that was reached quickly is expected to answer quickly.
    pub(super) fn tunnel(state: &'a CommandState, passed: &'a AtomicU64, work: F) -> Self {
        let mut linger = Self::handshake(state, work);
        (linger.passed, linger.pace.moment) = (Some(passed), MOMENT);
        linger
    }

    /// What comes before a tunnel. It stays awake if the last one took only a moment.
    pub(crate) fn handshake(state: &'a CommandState, work: F) -> Self {
        let streak = if state.is_near.load(Ordering::Relaxed) { STREAK } else { 0 };
        let pace = Pace { moment: HANDSHAKE, passed: 0, since: Instant::now(), streak };
        Self { state, passed: None, work: Box::pin(work), pace, is_awake: false }
    }

    fn stay_awake(&mut self) -> bool {
        self.is_awake = self.is_awake || !self.state.is_lingering.swap(true, Ordering::Relaxed);
        self.is_awake
    }
}

impl<F> Linger<'_, F> {
    fn fall_asleep(&mut self) {
        if std::mem::take(&mut self.is_awake) {
            self.state.is_lingering.store(false, Ordering::Relaxed);
        }
    }
}

impl<F: Future> Future for Linger<'_, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        if let Poll::Ready(done) = self.work.as_mut().poll(cx) {
            if self.passed.is_none() {
                self.state.is_near.store(self.pace.since.elapsed() < HANDSHAKE, Ordering::Relaxed);
            }
            return Poll::Ready(done);
        }
        let passed = self.passed.map_or(0, |passed| passed.load(Ordering::Relaxed));
        if !self.pace.is_quick(passed, Instant::now()) {
            self.fall_asleep();
        } else if self.stay_awake() {
            // The runtime looks for events before it comes back to this task.
            let _ = std::pin::pin!(tokio::task::yield_now()).poll(cx);
        }
        Poll::Pending
    }
}

impl<F> Drop for Linger<'_, F> {
    fn drop(&mut self) {
        self.fall_asleep();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether it stays awake, each time that it is looked at after so many microseconds with so many messages.
    fn awake(looks: &[(u64, u64)]) -> String {
        let start = Instant::now();
        let mut pace = Pace { moment: MOMENT, passed: 0, since: start, streak: 0 };
        let is_quick = |&(micros, passed): &(u64, u64)| {
            if pace.is_quick(passed, start + Duration::from_micros(micros)) { 'y' } else { 'n' }
        };
        looks.iter().map(is_quick).collect()
    }

    #[test]
    fn only_a_row_of_quick_answers_keeps_it_awake() {
        // Three within a moment each; then it waits for the fourth, and gives up after a moment.
        assert_eq!(awake(&[(20, 1), (40, 2), (60, 3), (80, 3), (109, 3), (111, 3), (400, 3)]), "nnyyynn");
        // One late answer, and it takes three quick ones again.
        assert_eq!(awake(&[(20, 1), (40, 2), (60, 3), (900, 4), (920, 5), (940, 6), (960, 7)]), "nnynnny");
        // A host far away is never waited for.
        assert_eq!(awake(&[(20_000, 1), (40_000, 2), (60_000, 3), (60_010, 3), (80_000, 4)]), "nnnnn");
        // Looking often at nothing makes nothing quick.
        assert_eq!(awake(&[(1, 0), (2, 0), (3, 0), (4, 0)]), "nnnn");
    }
}
