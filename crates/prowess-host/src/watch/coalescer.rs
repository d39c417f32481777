//! The coalescer: when is a burst of changes over?
//!
//! It has no clock: every change comes with its time, and the answer is a time. A burst is over when nothing has changed
//! for a while; one that does not end is cut now and then, so that even an endless storm does not keep a change from
//! being seen.

use std::time::{Duration, Instant};

/// A storm is cut after this many times the quiet that ends a burst, and not before [`LEAST_STORM`].
const STORM: u32 = 20;
/// The shortest storm that is cut.
const LEAST_STORM: Duration = Duration::from_secs(5);

/// Changes that have not been dealt with.
#[derive(Debug)]
pub(crate) struct Coalescer {
    quiet: Duration,
    /// The first and the last change of the burst.
    burst: Option<(Instant, Instant)>,
}

impl Coalescer {
    /// One whose bursts are over after `quiet`.
    pub(crate) fn new(quiet: Duration) -> Self {
        Self { quiet, burst: None }
    }

    /// From now on bursts are over after `quiet`.
    pub(crate) fn set_quiet(&mut self, quiet: Duration) {
        self.quiet = quiet;
    }

    /// Something changed at `now`.
    pub(crate) fn note(&mut self, now: Instant) {
        let first = self.burst.map_or(now, |(first, _)| first);
        self.burst = Some((first, now));
    }

    /// When the burst counts as over, if there is one and nothing else comes.
    pub(crate) fn due(&self) -> Option<Instant> {
        let (first, last) = self.burst?;
        let storm = self.quiet.saturating_mul(STORM).max(LEAST_STORM);
        Some((last + self.quiet).min(first + storm))
    }

    /// Whether the burst is over at `now`. If so it is dealt with, and the next change begins another.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        let is_over = self.due().is_some_and(|due| due <= now);
        if is_over {
            self.burst = None;
        }
        is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: Duration = Duration::from_millis(250);

    /// The times, in milliseconds, at which bursts end when changes come at these times.
    fn ends(quiet: Duration, changes: impl IntoIterator<Item = u64>) -> Vec<u128> {
        let begin = Instant::now();
        let mut coalescer = Coalescer::new(quiet);
        let mut ends = Vec::new();
        let mut end = |coalescer: &mut Coalescer, due: Instant| {
            assert!(coalescer.take(due), "it is over when it is due");
            assert!(!coalescer.take(due), "and only once");
            ends.push((due - begin).as_millis());
        };
        for at in changes {
            let now = begin + Duration::from_millis(at);
            if let Some(due) = coalescer.due().filter(|due| *due <= now) {
                end(&mut coalescer, due);
            }
            coalescer.note(now);
        }
        if let Some(due) = coalescer.due() {
            end(&mut coalescer, due);
        }
        ends
    }

    #[test]
    fn nothing_is_due_before_something_changed() {
        let mut coalescer = Coalescer::new(QUIET);
        assert_eq!((coalescer.due(), coalescer.take(Instant::now())), (None, false));
    }

    #[test]
    fn a_burst_is_one() {
        assert_eq!(ends(QUIET, [0]), [250]);
        assert_eq!(ends(QUIET, [0, 100, 349]), [599]);
        assert_eq!(ends(QUIET, (0..10_000).map(|touch| touch / 10)), [1_249]);
    }

    #[test]
    fn quiet_separates_bursts() {
        assert_eq!(ends(QUIET, [0, 250, 600]), [250, 500, 850]);
    }

    #[test]
    fn without_a_debounce_every_change_counts_at_once() {
        assert_eq!(ends(Duration::ZERO, [0, 1, 2]), [0, 1, 2]);
    }

    #[test]
    fn an_endless_storm_is_cut_now_and_then() {
        assert_eq!(ends(QUIET, (0..12_000).step_by(10)), [5_000, 10_000, 12_240]);
        assert_eq!(ends(Duration::from_secs(1), (0..45_000).step_by(10)), [20_000, 40_000, 45_990]);
    }

    #[test]
    fn another_debounce_holds_for_what_has_begun() {
        let begin = Instant::now();
        let mut coalescer = Coalescer::new(QUIET);
        coalescer.note(begin);
        coalescer.set_quiet(Duration::ZERO);
        assert!(coalescer.take(begin));
    }
}
