//! Does anything fall over when it is fed nonsense for a while?

use std::process::Command;
use std::time::Duration;

use crate::step::{Failure, Step, cargo};
use crate::tool;

/// How long each target runs unless told otherwise.
pub(crate) const DEFAULT: Duration = Duration::from_secs(30);

/// Runs every fuzz target in turn, each for `each`; stops at the first that finds something.
pub(crate) fn run(each: Duration) -> Result<(), Failure> {
    if !tool::FUZZ.is_here() {
        eprintln!("xtask: cargo-fuzz is not installed. Installing it now:\n  {}", tool::FUZZ.plan());
        tool::FUZZ.install()?;
    }
    // cargo-fuzz has no `--locked`; once this succeeds, the lock file is complete and stays as it is.
    Step::new("lock file of fuzz/", lock()).read()?;
    let targets = Step::new("list of fuzz targets", fuzz("list", &[])).read()?;
    for target in targets.split_whitespace() {
        let time = format!("-max_total_time={}", each.as_secs());
        // What a parser keeps for the next text looks like a leak, and looking for leaks takes ten times as long as the
        // run itself. An input that takes seconds is a finding: everything here is linear.
        let words = [target, "--", &time, "-detect_leaks=0", "-timeout=10"];
        Step::new(format!("fuzz {target}"), fuzz("run", &words)).run()?;
    }
    eprintln!("\nxtask: nothing found in {}", targets.split_whitespace().collect::<Vec<_>>().join(", "));
    Ok(())
}

fn lock() -> Command {
    cargo(["metadata", "--locked", "--format-version=1", "--manifest-path=fuzz/Cargo.toml"])
}

/// `cargo fuzz` on nightly, which the sanitizers need.
fn fuzz(verb: &str, words: &[&str]) -> Command {
    let head = ["+nightly", "fuzz", verb, "--fuzz-dir=fuzz"];
    cargo(head.into_iter().chain(words.iter().copied()))
}
