//! Is this tree fit to be merged?
//!
//! One list of steps. The tests come last, so that the runner's summary is the last thing on the screen.

use std::env;
use std::path::PathBuf;
use std::time::Instant;

use crate::step::{Failure, Step, cargo, seconds};
use crate::tool::{self, Tool};

/// How much is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Whether it works.
    Tests,
    /// The same, after all that is checked without running it.
    Full,
}

/// Checks the whole workspace; stops at the first step that fails.
pub(crate) fn run(scope: Scope) -> Result<(), Failure> {
    let start = Instant::now();
    let mut skipped = Vec::new();

    install(&missing_tools(), &mut skipped)?;
    let mut steps = match scope {
        Scope::Full => lints(&mut skipped),
        Scope::Tests => Vec::new(),
    };
    steps.extend([doctests(), tests()]);

    let names: Vec<String> = steps.iter().map(|step| step.name().to_owned()).collect();
    for step in steps {
        step.run()?;
    }
    eprintln!("\n{}", closing(&names, &skipped, &seconds(start.elapsed())));
    Ok(())
}

/// What is checked without running it, cheapest first.
fn lints(skipped: &mut Vec<String>) -> Vec<Step> {
    let mut steps = vec![format(), clippy(), docs()];
    if !tool::DENY.is_here() {
        skipped.push("dependencies (cargo-deny is not installed; CI runs it)".to_owned());
        return steps;
    }
    steps.push(dependencies());
    match advisories(Database::find()) {
        Ok(step) => steps.push(step),
        Err(why) => skipped.push(why.to_owned()),
    }
    steps
}

/// What the tests need and this machine does not have. Dependencies are checked where cargo-deny is installed, and in
/// CI: it takes minutes to build, and only a change of dependencies needs it.
fn missing_tools() -> Vec<&'static Tool> {
    let is_ci = env::var_os("CI").is_some_and(|value| value == "true");
    let mut needed = vec![&tool::NEXTEST, &tool::BUBBLEWRAP, &tool::CLIENTS, &tool::BROWSER];
    needed.extend(is_ci.then_some(&tool::DENY));
    needed.retain(|tool| !tool.is_here());
    needed
}

/// Says what will be installed, and then installs it.
fn install(missing: &[&Tool], skipped: &mut Vec<String>) -> Result<(), Failure> {
    if !missing.is_empty() {
        let plans: Vec<String> = missing.iter().map(|tool| format!("  {}", tool.plan())).collect();
        eprintln!("xtask: the tests need programs that are not installed. Installing them now:\n{}", plans.join("\n"));
    }
    for tool in missing {
        tool.install()?;
        if !tool.is_here() {
            eprintln!("xtask: that did not work; as root, run: {}", tool.plan());
            skipped.push(format!("what needs {}", tool.plan()));
        }
    }
    Ok(())
}

fn format() -> Step {
    Step::quiet("format", cargo(["fmt", "--all", "--check"]))
}

fn clippy() -> Step {
    Step::quiet(
        "clippy",
        cargo(["clippy", "--workspace", "--all-targets", "--locked", "--quiet", "--", "-D", "warnings"]),
    )
}

fn docs() -> Step {
    let mut command = cargo(["doc", "--workspace", "--no-deps", "--locked", "--quiet"]);
    command.env("RUSTDOCFLAGS", "-D warnings");
    Step::quiet("docs", command)
}

fn dependencies() -> Step {
    Step::quiet("dependencies", cargo(["deny", "--locked", "check", "bans", "licenses", "sources"]))
}

fn doctests() -> Step {
    Step::quiet("doctests", cargo(["test", "--doc", "--workspace", "--locked", "--quiet"]))
}

/// The tests, whose failures are shown as they come and whose summary is last.
fn tests() -> Step {
    let words = ["nextest", "run", "--workspace", "--locked", "--cargo-quiet", "--status-level=retry"];
    Step::new("tests", cargo(words))
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

/// The step that looks for advisories, or why it is skipped: the tests need no network but the package registry.
fn advisories(database: Database) -> Result<Step, &'static str> {
    let words: &[&str] = match database {
        Database::Fetched => &["deny", "--locked", "check", "advisories"],
        Database::Local => &["deny", "--locked", "--offline", "check", "advisories"],
        Database::Nowhere => {
            return Err("advisories (no local copy of the database; PROWESS_ADVISORIES=1 fetches one)");
        }
    };
    Ok(Step::quiet("advisories", cargo(words.iter().copied())))
}

fn cargo_home() -> Option<PathBuf> {
    let named = env::var_os("CARGO_HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    named.or_else(|| env::home_dir().map(|home| home.join(".cargo")))
}

fn closing(ran: &[String], skipped: &[String], time: &str) -> String {
    let mut line = format!("xtask: passed in {time}: {}", ran.join(", "));
    if !skipped.is_empty() {
        line = line + "; skipped: " + &skipped.join(", ");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::{Database, advisories, closing};

    #[test]
    fn skipped_steps_are_named() {
        let why = advisories(Database::Nowhere).expect_err("no database");
        let line = closing(&["format".to_owned(), "tests".to_owned()], &[why.to_owned()], "1.0 s");
        assert_eq!(
            line,
            "xtask: passed in 1.0 s: format, tests; skipped: advisories (no local copy of the database; \
             PROWESS_ADVISORIES=1 fetches one)"
        );
        assert_eq!(closing(&["format".to_owned()], &[], "1.0 s"), "xtask: passed in 1.0 s: format");
    }

    /// Cargo does not look for tests where they are one program, so a file that nobody names would never run.
    #[test]
    fn every_file_of_tests_is_part_of_the_test_program() {
        let crates = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates");
        let mut seen = 0;
        for member in std::fs::read_dir(crates).expect("crates").flatten() {
            let tests = member.path().join("tests");
            let Ok(root) = std::fs::read_to_string(tests.join("integration.rs")) else { continue };
            for file in std::fs::read_dir(&tests).expect("tests").flatten() {
                let name = file.file_name().into_string().expect("a name");
                assert!(!file.path().join("main.rs").exists(), "{} would not run", file.path().display());
                let Some(module) = name.strip_suffix(".rs").filter(|module| *module != "integration") else { continue };
                assert!(root.contains(&format!("mod {module};\n")), "{} would not run", file.path().display());
                seen += 1;
            }
        }
        assert!(seen > 80, "{seen} files");
    }
}
