//! Containers: which arguments run a command in a container that somebody else keeps?
//!
//! The values of variables never appear among the arguments, which everyone on the machine can read: the client is told
//! the names and takes the values from its own environment.
//!
//! A signal to the client does not reach what runs in the container, and ending the client leaves it running there. So
//! every run carries a variable of its own, [`RUN_VARIABLE`], and is ended by a second command in the container that
//! signals all processes that have it, and their sessions ([`StopInside`]).

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use super::Unavailable;

/// Who keeps the container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// Docker.
    Docker,
    /// Podman.
    Podman,
}

impl Engine {
    /// The client's name.
    #[must_use]
    pub fn program(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::Podman => "podman",
        }
    }
}

/// Whether the client passes a terminal on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Terminal {
    /// Standard input is a terminal.
    Yes,
    /// It is a pipe.
    No,
}

/// A variable whose value is put in front of the container's own `PATH`. The host's `PATH` itself means nothing there.
pub const PATH_VARIABLE: &str = "PROWESS_PREPEND_PATH";

/// A variable that marks the processes of one run.
pub const RUN_VARIABLE: &str = "PROWESS_RUN_ID";

/// How long the command that ends a run may take beyond the grace: the client has to start, and so does its shell.
const STOP_MARGIN: Duration = Duration::from_secs(10);

/// Ends the processes of the run `$1`: asks them, waits `$2` times a fifth of a second, and kills those that are left.
///
/// A process belongs to the run if it has the run's variable, or if the leader of its session has: one that was started
/// with an empty environment is found by its session. It needs a shell, `sleep`, and `grep` or `cat`.
const STOP: &str = r#"
run=$1 tries=$2
marked() {
  grep -lF "PROWESS_RUN_ID=$run" /proc/[0-9]*/environ
  command -v grep > /dev/null && return
  for dir in /proc/[0-9]*; do
    case $(cat "$dir/environ") in *"PROWESS_RUN_ID=$run"*) echo "$dir/environ" ;; esac
  done
}
signal_all() {
  marked=$(marked) left=no
  for dir in /proc/[0-9]*; do
    read -r stat < "$dir/stat" || continue
    set -- "${dir#/proc/}" ${stat##*) }
    [ "$2" = Z ] && continue
    case $marked in
      *"/proc/$1/environ"* | *"/proc/$5/environ"*) for signal in $signals; do kill -"$signal" "$1" && left=yes; done ;;
    esac
  done
}
{
  signals='TERM CONT'; signal_all
  signals=0
  while [ $left = yes ] && [ "$tries" -gt 0 ]; do
    sleep 0.2 || sleep 1
    tries=$((tries - 1)); signal_all
  done
  tries=20 signals=KILL
  while [ $left = yes ] && [ "$tries" -gt 0 ]; do
    tries=$((tries - 1)); signal_all
  done
} 2>/dev/null
"#;

/// Ends a run inside its container. Once armed, dropping it starts the end without waiting for it: the run must not
/// outlive us only because nobody waited.
#[derive(Debug)]
pub struct StopInside {
    program: PathBuf,
    name: String,
    run: String,
    is_armed: bool,
}

impl StopInside {
    pub(super) fn new(program: PathBuf, name: &str, run: &str) -> Self {
        Self { program, name: name.to_owned(), run: run.to_owned(), is_armed: false }
    }

    /// The longest that [`StopInside::run`] takes.
    pub(crate) fn longest(grace: Duration) -> Duration {
        grace + STOP_MARGIN
    }

    /// The run has started.
    pub(crate) fn armed(mut self) -> Self {
        self.is_armed = true;
        self
    }

    /// The run is over.
    pub(crate) fn disarm(mut self) {
        self.is_armed = false;
    }

    /// Ends the run: asks it, and kills what is left after the grace.
    pub(crate) async fn run(mut self, grace: Duration) {
        self.is_armed = false;
        let mut command = tokio::process::Command::from(self.command(grace));
        let Ok(mut child) = command.kill_on_drop(true).spawn() else { return };
        // Whatever comes of it, the client is ended after the same time.
        let _ = tokio::time::timeout(Self::longest(grace), child.wait()).await;
    }

    fn command(&self, grace: Duration) -> std::process::Command {
        let mut command = std::process::Command::new(&self.program);
        command.args(self.args(grace)).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn args(&self, grace: Duration) -> Vec<String> {
        let tries = (grace.as_millis() / 200).max(1).to_string();
        ["exec", &self.name, "/bin/sh", "-c", STOP, "sh", &self.run, &tries].map(str::to_owned).into()
    }
}

impl Drop for StopInside {
    fn drop(&mut self) {
        if self.is_armed {
            // There is nobody left to tell if it fails.
            let _ = self.command(Duration::ZERO).spawn();
        }
    }
}

/// The arguments for the client of an engine that run `text` with the container's shell.
pub fn exec_argv<'a>(
    engine: Engine,
    name: &str,
    workdir: &Path,
    env_names: impl IntoIterator<Item = &'a str>,
    terminal: Terminal,
    text: &str,
) -> Result<Vec<OsString>, Unavailable> {
    if !is_container_name(name) {
        return Err(Unavailable::new(
            format!("{name:?} is not a valid container name"),
            format!("use a name that `{} ps` shows", engine.program()),
        ));
    }
    let mut args: Vec<OsString> = ["exec", "-i"].map(OsString::from).into();
    if terminal == Terminal::Yes {
        args.push("-t".into());
    }
    args.push("-w".into());
    args.push(workdir.into());
    let mut prepends = false;
    for variable in env_names.into_iter().filter(|&variable| variable != "PATH") {
        if !is_variable_name(variable) {
            return Err(Unavailable::new(
                format!("{variable:?} is not a valid variable name"),
                "use letters, digits and underscores",
            ));
        }
        prepends |= variable == PATH_VARIABLE;
        args.push("-e".into());
        args.push(variable.into());
    }
    // Not a login shell: its start-up files are no part of what was judged.
    let text = if prepends {
        format!("export PATH=\"${{{PATH_VARIABLE}}}:$PATH\"; unset {PATH_VARIABLE}; {text}")
    } else {
        text.to_owned()
    };
    args.extend([name, "/bin/sh", "-c", &text].map(OsString::from));
    Ok(args)
}

/// Names as engines give them; above all nothing that begins like an option.
fn is_container_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c))
}

/// No `=`, which would bring a value along.
fn is_variable_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(name: &str, env: &[&str], terminal: Terminal) -> Result<String, Unavailable> {
        let args = exec_argv(Engine::Docker, name, Path::new("/w"), env.iter().copied(), terminal, "echo 'a b'")?;
        Ok(args.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join("|"))
    }

    #[test]
    fn a_run_in_a_container() {
        assert_eq!(
            words("box", &["HOME", "API_KEY", "PATH"], Terminal::No).unwrap(),
            "exec|-i|-w|/w|-e|HOME|-e|API_KEY|box|/bin/sh|-c|echo 'a b'"
        );
        assert_eq!(
            words("box", &[PATH_VARIABLE], Terminal::Yes).unwrap(),
            "exec|-i|-t|-w|/w|-e|PROWESS_PREPEND_PATH|box|/bin/sh|-c|\
             export PATH=\"${PROWESS_PREPEND_PATH}:$PATH\"; unset PROWESS_PREPEND_PATH; echo 'a b'"
        );
    }

    #[test]
    fn names_cannot_be_options_or_values() {
        for name in ["", "--privileged", "-u", "a b", "a/b", "a\n"] {
            assert!(words(name, &[], Terminal::No).is_err(), "{name:?}");
        }
        for variable in ["", "A=secret", "-u", "A B", "1A"] {
            assert!(words("box", &[variable], Terminal::No).is_err(), "{variable:?}");
        }
    }
}
