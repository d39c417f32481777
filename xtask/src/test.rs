//! Is this tree fit to be merged?
//!
//! One list of steps, cheapest first. The tests come last, so that the runner's summary is the last thing on the screen.

use std::env;
use std::path::PathBuf;
use std::time::Instant;

use crate::step::{Failure, Step, cargo, seconds};
use crate::tool;

/// How much is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Everything.
    Full,
    /// What one wants to know between two edits.
    Fast,
}

/// Checks the whole workspace; stops at the first step that fails.
pub(crate) fn run(scope: Scope) -> Result<(), Failure> {
    let start = Instant::now();
    let mut ran = Vec::new();
    let mut skipped = Vec::new();

    perform(format(), &mut ran)?;
    perform(clippy(), &mut ran)?;
    match scope {
        Scope::Fast => skipped.push("docs and dependencies (--fast)"),
        Scope::Full => {
            perform(docs(), &mut ran)?;
            tool::DENY.ensure()?;
            perform(dependencies(), &mut ran)?;
            match advisories(Database::find()) {
                Ok(step) => perform(step, &mut ran)?,
                Err(why) => skipped.push(why),
            }
        }
    }
    perform(doctests(), &mut ran)?;
    tool::NEXTEST.ensure()?;
    if let Err(why) = tool::ensure_bubblewrap() {
        skipped.push(why);
    }
    tool::ensure_browser();
    perform(tests(), &mut ran)?;

    eprintln!("\n{}", closing(&ran, &skipped, &seconds(start.elapsed())));
    Ok(())
}

fn perform(step: Step, ran: &mut Vec<String>) -> Result<(), Failure> {
    let name = step.name().to_owned();
    step.run()?;
    ran.push(name);
    Ok(())
}

fn format() -> Step {
    Step::new("format", cargo(["fmt", "--all", "--check"]))
}

fn clippy() -> Step {
    Step::new("clippy", cargo(["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]))
}

fn docs() -> Step {
    let mut command = cargo(["doc", "--workspace", "--no-deps", "--locked"]);
    command.env("RUSTDOCFLAGS", "-D warnings");
    Step::new("docs", command)
}

fn dependencies() -> Step {
    Step::new("dependencies", cargo(["deny", "--locked", "check", "bans", "licenses", "sources"]))
}

fn doctests() -> Step {
    Step::new("doctests", cargo(["test", "--doc", "--workspace", "--locked"]))
}

fn tests() -> Step {
    Step::new("tests", cargo(["nextest", "run", "--workspace", "--locked"]))
}

/// Where the advisories about dependencies can come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Database {
    /// The network, because the user says so.
    Fetched,
    /// A copy that an earlier fetch left.
    Local,
    Nowhere,
}

impl Database {
    fn find() -> Self {
        if env::var_os("PROWESS_ADVISORIES").is_some_and(|value| value == "1") {
            return Self::Fetched;
        }
        let has_copy = cargo_home()
            .and_then(|home| home.join("advisory-dbs").read_dir().ok())
            .is_some_and(|mut entries| entries.any(|entry| entry.is_ok_and(|entry| entry.path().is_dir())));
        if has_copy { Self::Local } else { Self::Nowhere }
    }
}

/// The step that looks for advisories, or why there is none: the tests of prowess need no network but the registry.
fn advisories(database: Database) -> Result<Step, &'static str> {
    let words: &[&str] = match database {
        Database::Fetched => &["deny", "--locked", "check", "advisories"],
        Database::Local => &["deny", "--locked", "--offline", "check", "advisories"],
        Database::Nowhere => {
            return Err("advisories (no local copy of the database; PROWESS_ADVISORIES=1 fetches one)");
        }
    };
    Ok(Step::new("advisories", cargo(words.iter().copied())))
}

fn cargo_home() -> Option<PathBuf> {
    let named = env::var_os("CARGO_HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    named.or_else(|| env::home_dir().map(|home| home.join(".cargo")))
}

fn closing(ran: &[String], skipped: &[&str], time: &str) -> String {
    let mut line = format!("xtask: passed in {time}: {}", ran.join(", "));
    if !skipped.is_empty() {
        line = line + "; SKIPPED: " + &skipped.join(", ");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::{Database, advisories, closing};

    #[test]
    fn what_was_skipped_is_said_plainly() {
        let why = advisories(Database::Nowhere).expect_err("no database");
        let line = closing(&["format".to_owned(), "tests".to_owned()], &[why], "1.0 s");
        assert_eq!(
            line,
            "xtask: passed in 1.0 s: format, tests; SKIPPED: advisories (no local copy of the database; \
             PROWESS_ADVISORIES=1 fetches one)"
        );
        assert_eq!(closing(&["format".to_owned()], &[], "1.0 s"), "xtask: passed in 1.0 s: format");
    }
}
