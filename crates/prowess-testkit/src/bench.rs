//! Ratios: how much more does ours cost than the floor, measured in the same run?
//!
//! A time says more about the machine than about the code. So two things are measured in turn, round by round, and
//! what is reported is the median of the rounds' ratios.

use std::time::{Duration, Instant};

/// A measured ratio.
#[derive(Debug, Clone, Copy)]
pub struct Ratio {
    /// The median of `ours / floor` over all rounds.
    pub ratio: f64,
    /// The median time of the floor.
    pub floor: Duration,
    /// The median time of ours.
    pub ours: Duration,
}

/// Runs both in turn `rounds` times, after one round to warm up, and prints the result under `name`.
pub fn ratio<A, B>(name: &str, rounds: usize, mut floor: impl FnMut() -> A, mut ours: impl FnMut() -> B) -> Ratio {
    let mut pairs = Vec::with_capacity(rounds);
    for round in 0..=rounds {
        let pair = (time(&mut floor), time(&mut ours));
        if round > 0 {
            pairs.push(pair);
        }
    }
    let mut ratios: Vec<f64> = pairs.iter().map(|(floor, ours)| ours.as_secs_f64() / floor.as_secs_f64()).collect();
    ratios.sort_by(f64::total_cmp);
    let median = |pick: fn(&(Duration, Duration)) -> Duration| {
        let mut times: Vec<Duration> = pairs.iter().map(pick).collect();
        times.sort();
        times[times.len() / 2]
    };
    let result = Ratio { ratio: ratios[ratios.len() / 2], floor: median(|pair| pair.0), ours: median(|pair| pair.1) };
    println!(
        "{name}: {:.2} x the floor ({:.2?} against {:.2?}, {rounds} rounds)",
        result.ratio, result.ours, result.floor
    );
    result
}

/// The time of one run, without the time it takes to let go of its result.
fn time<T>(run: &mut impl FnMut() -> T) -> Duration {
    let start = Instant::now();
    let result = std::hint::black_box(run());
    let elapsed = start.elapsed();
    drop(result);
    elapsed
}
