//! One step of a task: a named command, run in the root of the repository, that succeeds or ends the task.

use std::fmt;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A command with the name people know it by.
#[derive(Debug)]
pub(crate) struct Step {
    name: String,
    command: Command,
    output: Output,
}

/// When the output of a step is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Output {
    /// As it comes.
    Live,
    /// Only if the step fails.
    OnFailure,
}

impl Step {
    pub(crate) fn new(name: impl Into<String>, command: Command) -> Self {
        Self { name: name.into(), command, output: Output::Live }
    }

    /// A step whose output is shown only if it fails.
    pub(crate) fn quiet(name: impl Into<String>, command: Command) -> Self {
        Self { name: name.into(), command, output: Output::OnFailure }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Runs the command, and says how long it took.
    pub(crate) fn run(mut self) -> Result<(), Failure> {
        let start = Instant::now();
        let ended = match self.output {
            Output::Live => {
                eprintln!("{}: {}", self.name, shown(&self.command));
                self.command.status()
            }
            Output::OnFailure => {
                eprint!("{} ... ", self.name);
                self.run_quietly()
            }
        };
        match ended {
            Ok(status) if status.success() => {
                let name = if self.output == Output::Live { format!("{} ... ", self.name) } else { String::new() };
                eprintln!("{name}ok, {}", seconds(start.elapsed()));
                Ok(())
            }
            Ok(status) => Err(self.failure(Cause::Ended(status))),
            Err(error) => Err(self.failure(Cause::NotStarted(error))),
        }
    }

    fn run_quietly(&mut self) -> io::Result<ExitStatus> {
        let output = self.command.stdin(Stdio::null()).output()?;
        if !output.status.success() {
            let mut terminal = io::stderr().lock();
            terminal.write_all(b"failed\n")?;
            terminal.write_all(&output.stdout)?;
            terminal.write_all(&output.stderr)?;
        }
        Ok(output.status)
    }

    /// Runs the command without a heading and returns what it wrote to stdout.
    pub(crate) fn read(mut self) -> Result<String, Failure> {
        let output = match self.command.stderr(Stdio::inherit()).output() {
            Ok(output) => output,
            Err(error) => return Err(self.failure(Cause::NotStarted(error))),
        };
        if !output.status.success() {
            return Err(self.failure(Cause::Ended(output.status)));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn failure(self, cause: Cause) -> Failure {
        Failure { command: shown(&self.command), step: self.name, cause }
    }
}

/// A step that did not succeed.
#[derive(Debug)]
pub(crate) struct Failure {
    step: String,
    command: String,
    cause: Cause,
}

impl Failure {
    /// Something that belongs to `step` could not be started.
    pub(crate) fn new(step: &str, error: io::Error) -> Self {
        Self { step: step.to_owned(), command: step.to_owned(), cause: Cause::NotStarted(error) }
    }
}

#[derive(Debug)]
enum Cause {
    NotStarted(io::Error),
    Ended(ExitStatus),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { step, command, cause } = self;
        match cause {
            Cause::NotStarted(error) => write!(f, "step `{step}` failed: cannot start `{command}`: {error}"),
            Cause::Ended(status) => write!(f, "step `{step}` failed: `{command}` ended with {status}"),
        }
    }
}

/// `cargo` with these words, in the root of the repository.
///
/// It is the one from the `PATH`, which with rustup understands `+nightly`; the one in `$CARGO` does not.
pub(crate) fn cargo<'a>(words: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = Command::new("cargo");
    command.args(words).current_dir(root());
    command
}

/// The root of the repository.
pub(crate) fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// A duration as people read it.
pub(crate) fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

/// A command as one would type it.
fn shown(command: &Command) -> String {
    let env = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
    let env = env.map(|(name, value)| format!("{}={:?}", name.display(), value.display().to_string()));
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    env.chain(words.map(|word| word.display().to_string())).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::{Command, Step, cargo, root, shown};

    #[test]
    fn the_root_holds_the_workspace() {
        assert!(root().join("Cargo.lock").is_file());
    }

    #[test]
    fn a_command_is_shown_as_typed() {
        let mut command = cargo(["doc", "--locked"]);
        command.env("RUSTDOCFLAGS", "-D warnings");
        assert_eq!(shown(&command), "RUSTDOCFLAGS=\"-D warnings\" cargo doc --locked");
    }

    #[test]
    fn a_failure_names_its_step_and_command() {
        let failure = Step::quiet("dance", cargo(["no-such-dance"])).run().expect_err("no such command").to_string();
        assert!(failure.starts_with("step `dance` failed: `cargo no-such-dance` ended with exit"), "{failure}");
        let failure = Step::new("sing", Command::new("no-such-song")).read().expect_err("no such program").to_string();
        assert!(failure.starts_with("step `sing` failed: cannot start `no-such-song`: "), "{failure}");
    }
}
