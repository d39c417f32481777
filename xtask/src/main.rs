//! How is prowess checked? `cargo xtask` is where the answer is written down, for people and machines alike.

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
The chores of prowess.

usage: cargo xtask <chore>

  test [--fast]        format, clippy, docs, dependencies, doctests and tests; --fast leaves out docs and dependencies
  test --with-model    all of that, and the tests that talk to a real, small model; needs Python 3 and installs with pip
  fuzz [--seconds N]   every fuzz target in turn, N seconds each (30)
  bench                the benchmarks

`test` checks dependencies against the advisory database when there is a local copy of it; PROWESS_ADVISORIES=1 fetches
one. Tools that are missing are installed with `cargo install`.
";

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
enum Chore {
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
        Ok(chore) => report(run(&chore)),
        Err(why) => {
            eprintln!("xtask: {why}\n\n{HELP}");
            ExitCode::from(2)
        }
    }
}

fn parse(words: &[&str]) -> Result<Chore, String> {
    match words {
        [] | ["help" | "--help" | "-h", ..] => Ok(Chore::Help),
        ["test"] => Ok(Chore::Test(test::Scope::Full)),
        ["test", "--fast"] => Ok(Chore::Test(test::Scope::Fast)),
        ["test", "--with-model"] => Ok(Chore::TestWithModel),
        ["fuzz"] => Ok(Chore::Fuzz(fuzz::DEFAULT)),
        ["fuzz", "--seconds", count] => match count.parse() {
            // libFuzzer takes 0 for "without end".
            Ok(seconds @ 1..) => Ok(Chore::Fuzz(Duration::from_secs(seconds))),
            _ => Err(format!("`{count}` is not a number of seconds")),
        },
        ["bench"] => Ok(Chore::Bench),
        _ => Err(format!("there is no `cargo xtask {}`", words.join(" "))),
    }
}

fn run(chore: &Chore) -> Result<(), Failure> {
    match chore {
        Chore::Help => print!("{HELP}"),
        Chore::Test(scope) => test::run(*scope)?,
        Chore::TestWithModel => {
            test::run(test::Scope::Full)?;
            small_model::run()?;
        }
        Chore::Fuzz(each) => fuzz::run(*each)?,
        Chore::Bench => Step::new("bench", cargo(["bench", "--workspace", "--locked"])).run()?,
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
    use super::{Chore, Duration, parse, test};

    #[test]
    fn chores_are_understood() {
        let table: &[(&[&str], Chore)] = &[
            (&[], Chore::Help),
            (&["--help"], Chore::Help),
            (&["test"], Chore::Test(test::Scope::Full)),
            (&["test", "--fast"], Chore::Test(test::Scope::Fast)),
            (&["test", "--with-model"], Chore::TestWithModel),
            (&["fuzz"], Chore::Fuzz(Duration::from_secs(30))),
            (&["fuzz", "--seconds", "5"], Chore::Fuzz(Duration::from_secs(5))),
            (&["bench"], Chore::Bench),
        ];
        for (words, chore) in table {
            assert_eq!(parse(words).as_ref(), Ok(chore), "{words:?}");
        }
    }

    #[test]
    fn a_mistake_is_named() {
        assert_eq!(parse(&["test", "--slow"]), Err("there is no `cargo xtask test --slow`".to_owned()));
        assert_eq!(parse(&["fuzz", "--seconds", "0"]), Err("`0` is not a number of seconds".to_owned()));
        assert_eq!(parse(&["fuzz", "--seconds", "-1"]), Err("`-1` is not a number of seconds".to_owned()));
    }
}
