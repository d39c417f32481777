//! Commands for bash, judged by rules that allow everything and run for real in a folder of their own.

#![allow(dead_code, clippy::allow_attributes, reason = "each test file takes what it needs")]

use std::ffi::OsString;
use std::future::Future;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use prowess_egress::CommandContext;
use prowess_exec::egress::Egress;
use prowess_exec::exec::find_shell;
use prowess_exec::job::{Handle, Input, Leftovers, Limits as JobLimits, Runner, Start, StartError};
use prowess_exec::launch::{Bounds, Launch, Warrant};
use prowess_exec::lookup::Disk;
use prowess_exec::sandbox::{Confinement, Kind, Limits, Sandbox};
use prowess_policy::env::{EnvInputs, compose};
use prowess_policy::posture::{Ask, Posture, Security};
use prowess_policy::safe_bin::SafeBins;
use prowess_policy::{Binding, Dialect, Place, ProgramPlace, Request, Rules, Shell};
use tempfile::TempDir;

/// Far longer than anything takes. It is there so that a test that hangs says so.
const PATIENCE: Duration = Duration::from_secs(60);

/// A command, and the sandbox it runs in.
pub(crate) struct Bash {
    text: String,
    shell: Shell,
    sandbox: Sandbox,
    confinement: Option<Confinement>,
    limits: Limits,
    egress: Option<CommandContext>,
    /// What has to live as long as the command is being started.
    _kept: Option<TempDir>,
}

/// `text`, to be run by bash without a sandbox.
pub(crate) fn bash(text: &str) -> Bash {
    let helper = PathBuf::from(env!("CARGO_BIN_EXE_prowess-confine"));
    Bash {
        text: text.to_owned(),
        shell: find_shell(),
        sandbox: Sandbox::new(Kind::None, helper),
        confinement: None,
        limits: Limits::none(),
        egress: None,
        _kept: None,
    }
}

impl Bash {
    /// The same in another sandbox.
    pub(crate) fn within(self, sandbox: Sandbox) -> Self {
        Self { sandbox, ..self }
    }

    /// The same with a confinement.
    pub(crate) fn confined_to(self, confinement: Confinement) -> Self {
        Self { confinement: Some(confinement), ..self }
    }

    /// The same with a proxy that serves it what `context` allows.
    pub(crate) fn served(self, context: CommandContext) -> Self {
        Self { egress: Some(context), ..self }
    }

    /// The same for the system's own shell, as in a container.
    pub(crate) fn by_sh(self) -> Self {
        Self { shell: Shell { path: "/bin/sh".into(), dialect: Dialect::Posix }, ..self }
    }

    /// The same, with a helper that is this script.
    pub(crate) fn helped_by(self, script: &str, kind: Kind) -> Self {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join("helper");
        std::fs::write(&path, format!("#!/bin/bash\n{script}\n")).expect("a script");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("the mode is set");
        Self { sandbox: Sandbox::new(kind, path), _kept: Some(folder), ..self }
    }
}

/// How a command is run.
pub(crate) struct Begin {
    pub(crate) cwd: PathBuf,
    pub(crate) shown_cwd: String,
    pub(crate) env: Vec<(String, OsString)>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) input: Input,
    pub(crate) leftovers: Leftovers,
}

/// A run in `folder` with nothing special about it.
pub(crate) fn start(folder: &Path) -> Begin {
    Begin {
        cwd: folder.to_owned(),
        shown_cwd: folder.display().to_string(),
        env: Vec::new(),
        timeout: None,
        input: Input::Closed,
        leftovers: Leftovers::End,
    }
}

/// Judges `bash` by rules that allow everything, and makes a launch of it.
pub(crate) fn launch(bash: &Bash, begin: &Begin) -> Launch {
    let inputs = EnvInputs { skill: &begin.env, ..EnvInputs::default() };
    let env = compose(inputs).expect("an environment");
    let cwd = begin.cwd.canonicalize().expect("a folder");
    let meta = std::fs::metadata(&cwd).expect("a folder");
    let binding = Binding {
        command: bash.text.clone(),
        cwd: Place { path: cwd.clone(), device: meta.dev(), inode: meta.ino() },
        environment: env.digest(),
        agent: "main".to_owned(),
        session: "test".to_owned(),
    };
    let rules = Rules {
        posture: Posture { security: Security::Full, ask: Ask::Off, ..Posture::HOST },
        allowlist: Vec::new(),
        safe_bins: SafeBins::default(),
        skill_bins: Vec::new(),
        home: "/".into(),
        ground: prowess_policy::wants::Ground::default(),
    };
    let request = Request { binding, shell: bash.shell.clone(), variables: Vec::new(), place: ProgramPlace::Here };
    let judgment = rules.judge(request, &Disk::new("/usr/bin:/bin", &cwd));
    let warrant = Warrant::new(judgment.permit().expect("everything is allowed"), env).expect("the same environment");
    let egress = bash.egress.clone().map(Egress::new);
    let confinement = bash.confinement.clone();
    let bounds = Bounds { confinement, limits: bash.limits, input: begin.input, egress };
    Launch::new(warrant, &bash.sandbox, bounds).expect("a launch")
}

/// Starts commands for bash.
pub(crate) trait Begins {
    /// Starts `bash` as `begin` says.
    async fn begin(&self, bash: Bash, begin: Begin) -> Result<Handle, StartError>;
}

impl Begins for Runner {
    async fn begin(&self, bash: Bash, begin: Begin) -> Result<Handle, StartError> {
        let launch = launch(&bash, &begin);
        let Begin { shown_cwd, timeout, leftovers, .. } = begin;
        self.start(launch, Start { shown_cwd, timeout, scope: "scope".to_owned(), leftovers }).await
    }
}

/// A runner that does not wait long before it kills.
pub(crate) fn runner() -> Runner {
    Runner::new(JobLimits { grace: Duration::from_millis(300), ..JobLimits::default() })
}

/// Waits for `future`, but not for ever.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("this should not take so long")
}
