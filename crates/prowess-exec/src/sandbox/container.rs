//! Containers: which arguments run a command in a container that somebody else keeps?
//!
//! The values of variables never appear among the arguments, which everyone on the machine can read: the client is told
//! the names and takes the values from its own environment.

use std::ffi::OsString;
use std::path::Path;

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
            format!("{name:?} is no name of a container"),
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
                format!("{variable:?} is no name of a variable"),
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
