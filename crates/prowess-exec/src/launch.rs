//! Launches: how does a permit become a process, and nothing but what was judged?
//!
//! A [`Warrant`] is a permit that was used up for one environment. A [`Launch`] is made from a warrant alone: its command,
//! directory, shell, files and variables are those of the permit, and the caller only says how it is confined. The
//! [`Runner`](crate::job::Runner) starts launches and nothing else.
//!
//! A launch cannot be made up, nor changed once it is made:
//!
//! ```compile_fail,E0451
//! fn forge(launch: prowess_exec::launch::Launch) -> prowess_exec::launch::Launch {
//!     prowess_exec::launch::Launch { command: "rm -rf /".to_owned(), ..launch }
//! }
//! ```
//!
//! ```compile_fail,E0616
//! fn forge(mut launch: prowess_exec::launch::Launch) {
//!     launch.prepared.program = "/bin/rm".into();
//! }
//! ```
//!
//! And what a sandbox has prepared without a warrant cannot be started:
//!
//! ```compile_fail,E0308
//! async fn forge(runner: prowess_exec::job::Runner, prepared: prowess_exec::sandbox::Prepared, start: prowess_exec::job::Start) {
//!     let _ = runner.start(prepared, start).await;
//! }
//! ```

use std::ffi::OsString;
use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use prowess_policy::env::{EnvRefusal, RunEnv};
use prowess_policy::{Permit, Pin as JudgedPin};
use tempfile::TempDir;

use crate::egress::Egress;
use crate::git_file::GitFileCopy;
use crate::job::Input;
use crate::made_files::MadeFiles;
use crate::sandbox::{
    Confinement, Cwd, Kind, Limits, NamedHost, Order, Pin, Prepared, ProtectedGuard, Sandbox, TMP, temp_name,
};
use crate::seal::seal;
use crate::withheld::WithheldKey;

/// The proof that a command may run with an environment: a permit, used up. Without one nothing starts.
#[derive(Debug)]
pub struct Warrant {
    permit: Permit,
    env: RunEnv,
}

/// The environment is not the one that was judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the environment changed after the command was judged")]
pub struct EnvDrift;

impl Warrant {
    /// Uses up `permit` for a run with `env`, which must be the environment it was given for.
    pub fn new(permit: Permit, env: RunEnv) -> Result<Self, EnvDrift> {
        if permit.binding().environment == env.digest() { Ok(Self { permit, env }) } else { Err(EnvDrift) }
    }

    /// Adds those of `keys` that the permit's lease names. The others stay out, whoever offers them.
    pub fn with_keys(mut self, keys: &[WithheldKey]) -> Result<Self, EnvRefusal> {
        for key in keys.iter().filter(|key| self.permit.lease().keys.contains(&key.name)) {
            self.env.add_key(&key.name, &key.value)?;
        }
        Ok(self)
    }

    /// Has git change `copy` in place of the operator's own settings.
    #[must_use]
    pub(crate) fn with_git_file(mut self, copy: Option<&GitFileCopy>) -> Self {
        if let Some(copy) = copy {
            self.env.use_git_file(copy.path());
        }
        self
    }

    /// The permit.
    #[must_use]
    pub fn permit(&self) -> &Permit {
        &self.permit
    }
}

/// How a launch is confined: the part of it that the permit does not say.
pub struct Bounds {
    /// What it may touch, besides the copies of approved files. `None` only for the sandbox `none` and containers.
    pub confinement: Option<Confinement>,
    /// How much it may use.
    pub limits: Limits,
    /// What it has for input.
    pub input: Input,
    /// What the proxy serves it. Without it, a confinement with a proxy reaches nothing.
    pub egress: Option<Egress>,
}

/// A command that may be started, once, as it was judged.
pub struct Launch {
    pub(crate) command: String,
    pub(crate) cwd: PathBuf,
    pub(crate) env: Vec<(String, OsString)>,
    pub(crate) input: Input,
    pub(crate) prepared: Prepared,
    pub(crate) egress: Option<Egress>,
    /// Hosts that it finds by name.
    pub(crate) hosts: Vec<NamedHost>,
}

/// Why there is no launch.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct LaunchError(String);

impl Launch {
    /// Turns a warrant into something that can be started. Copies the files that must run as they were approved, and
    /// makes what the sandbox needs, so it blocks.
    pub fn new(warrant: Warrant, sandbox: &Sandbox, bounds: Bounds) -> Result<Self, LaunchError> {
        let Warrant { permit, env } = warrant;
        let (sealed, folder) = seal_pins(&permit)?;
        let place = |pin: &JudgedPin| {
            sealed.iter().find(|(one, _)| one == pin).map_or_else(|| pin.path.clone(), |(_, copy)| copy.clone())
        };
        let is_container = matches!(sandbox.kind(), Kind::Container { .. });
        // In a container the paths of this machine mean nothing.
        let text = if is_container { permit.binding().command.clone() } else { permit.text_with(&place) };
        let shell = permit.shell();
        let cwd = &permit.binding().cwd;
        let mut confinement = bounds.confinement;
        if let Some(confinement) = &mut confinement {
            confinement.read.extend(folder.as_ref().map(|folder| folder.path().to_owned()));
            if !is_container && *sandbox.kind() != Kind::None && confinement.private_tmp.is_none() {
                confinement.temp.get_or_insert_with(temp_name);
            }
        }
        let mut place = Cwd { path: cwd.path.clone(), device: cwd.device, inode: cwd.inode };
        if let Some(own) = confinement.as_ref().and_then(|confinement| confinement.private_tmp.as_ref())
            && cwd.path == Path::new(TMP)
        {
            let own = std::fs::metadata(own).map_err(|error| LaunchError(error.to_string()))?;
            (place.device, place.inode) = (own.dev(), own.ino());
        }
        let hosts = confinement.as_ref().map(|confinement| confinement.hosts.clone()).unwrap_or_default();
        let judged = permit.pins().iter().filter(|pin| !permit.seals(pin));
        let order = Order {
            program: shell.path.clone(),
            argv: shell.argv(&text).into_iter().map(OsString::from).collect(),
            cwd: place,
            pins: judged.map(|pin| Pin { path: pin.path.clone(), identity: pin.identity.clone() }).collect(),
            terminal: bounds.input == Input::Terminal,
            confinement,
            limits: bounds.limits,
            cgroup: None,
            env_names: env.iter().map(|(name, _)| name.to_owned()).collect(),
        };
        let mut prepared = sandbox.prepare(order).map_err(|why| LaunchError(why.to_string()))?;
        if let Some(folder) = folder {
            prepared.cleanup.keep(folder);
        }
        let mut vars: Vec<_> = env.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        vars.append(&mut prepared.vars);
        Ok(Self {
            command: permit.binding().command.clone(),
            cwd: cwd.path.clone(),
            env: vars,
            input: bounds.input,
            prepared,
            egress: bounds.egress,
            hosts,
        })
    }

    /// The same, with `guard` looking after protected files until the run is over.
    #[must_use]
    pub fn guarded(mut self, guard: Option<ProtectedGuard>) -> Self {
        if let Some(guard) = guard {
            self.prepared.cleanup.guard(guard);
        }
        self
    }

    /// The same, with `dir` kept until the run is over.
    #[must_use]
    pub(crate) fn keeping(mut self, dir: Option<Arc<TempDir>>) -> Self {
        self.prepared.cleanup.keep_shared(dir);
        self
    }

    /// The same, with `copy` written back when the run is over.
    #[must_use]
    pub(crate) fn writing_back(mut self, copy: Option<GitFileCopy>) -> Self {
        self.prepared.cleanup.write_back(copy);
        self
    }

    /// The same, with files that were made for it.
    #[must_use]
    pub(crate) fn with_made(mut self, made: MadeFiles) -> Self {
        self.prepared.cleanup.made(made);
        self
    }

    /// The command as it was judged.
    #[must_use]
    pub fn command(&self) -> &str {
        &self.command
    }
}

impl fmt::Debug for Launch {
    /// Of the variables only the names: their values may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { command, cwd, env, input, prepared: _, egress: _, hosts: _ } = self;
        f.debug_struct("Launch")
            .field("command", command)
            .field("cwd", cwd)
            .field("env", &env.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .field("input", input)
            .finish_non_exhaustive()
    }
}

/// Copies of the files that must run as approved, and the folder they are in.
type Sealed = (Vec<(JudgedPin, PathBuf)>, Option<TempDir>);

fn seal_pins(permit: &Permit) -> Result<Sealed, LaunchError> {
    let to_seal: Vec<_> = permit.pins().iter().filter(|pin| permit.seals(pin)).collect();
    if to_seal.is_empty() {
        return Ok((Vec::new(), None));
    }
    let failed = |error: std::io::Error| LaunchError(error.to_string());
    let folder = tempfile::Builder::new().prefix("prowess-sealed-").tempdir().map_err(failed)?;
    let mut sealed = Vec::new();
    for (index, pin) in to_seal.into_iter().enumerate() {
        let into = folder.path().join(index.to_string());
        std::fs::create_dir(&into).map_err(failed)?;
        sealed.push((pin.clone(), seal(pin, &into).map_err(|error| LaunchError(error.to_string()))?));
    }
    Ok((sealed, Some(folder)))
}
