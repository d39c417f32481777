//! A histogram: how long do things take, without remembering each of them?

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The upper ends of the buckets, in milliseconds: from what memory answers to what a long turn takes.
pub(super) const ENDS: [u64; 13] = [1, 5, 10, 25, 50, 100, 250, 500, 1_000, 5_000, 15_000, 60_000, 300_000];

/// How many things took how long.
#[derive(Debug)]
pub(super) struct Histogram {
    /// One for each end, and one for what took longer than all of them.
    buckets: [AtomicU64; ENDS.len() + 1],
    micros: AtomicU64,
}

/// A histogram at one moment.
#[derive(Debug, PartialEq)]
pub(super) struct Shown {
    /// How many took at most as long as each end.
    pub(super) within: [u64; ENDS.len()],
    pub(super) count: u64,
    pub(super) seconds: f64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { buckets: std::array::from_fn(|_| AtomicU64::new(0)), micros: AtomicU64::new(0) }
    }
}

impl Histogram {
    pub(super) fn record(&self, took: Duration) {
        let place = ENDS.iter().take_while(|&&end| Duration::from_millis(end) < took).count();
        self.buckets[place].fetch_add(1, Ordering::Relaxed);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    pub(super) fn show(&self) -> Shown {
        let mut count = 0;
        let mut within = [0; ENDS.len()];
        for (place, bucket) in self.buckets.iter().enumerate() {
            count += bucket.load(Ordering::Relaxed);
            if let Some(sum) = within.get_mut(place) {
                *sum = count;
            }
        }
        Shown { within, count, seconds: Duration::from_micros(self.micros.load(Ordering::Relaxed)).as_secs_f64() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thing_is_counted_in_every_bucket_it_fits() {
        let histogram = Histogram::default();
        for millis in [0, 1, 2, 100, 400_000] {
            histogram.record(Duration::from_millis(millis));
        }
        let shown = histogram.show();
        assert_eq!(shown.within, [2, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4]);
        assert_eq!((shown.count, shown.seconds), (5, 400.103));
    }
}
