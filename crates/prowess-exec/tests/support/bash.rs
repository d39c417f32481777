//! Commands for bash, run for real in a folder of their own.

use std::future::Future;
use std::path::Path;
use std::time::Duration;

use prowess_exec::exec::find_shell;
use prowess_exec::job::{Input, Leftovers, Limits, Runner, Start, Warrant};
use prowess_exec::lookup::Disk;
use prowess_exec::sandbox::{Cleanup, Launch};
use prowess_policy::env::{EnvInputs, compose};
use prowess_policy::posture::{Ask, Posture, Security};
use prowess_policy::safe_bin::SafeBins;
use prowess_policy::{Binding, Place, ProgramPlace, Request, Rules};

/// Far longer than anything takes. It is there so that a test that hangs says so.
const PATIENCE: Duration = Duration::from_secs(60);

/// `text`, to be run by bash.
pub(crate) fn bash(text: &str) -> Launch {
    Launch {
        program: "/bin/bash".into(),
        args: vec!["-c".into(), text.into()],
        order: None,
        cleanup: Cleanup::default(),
    }
}

/// A run in `folder` with nothing special about it.
pub(crate) fn start(folder: &Path) -> Start {
    Start {
        warrant: warrant(),
        command: "test".to_owned(),
        cwd: folder.to_owned(),
        shown_cwd: folder.display().to_string(),
        env: vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())],
        timeout: None,
        input: Input::Closed,
        scope: "scope".to_owned(),
        leftovers: Leftovers::End,
    }
}

/// The proof that something may run, from rules that allow everything.
fn warrant() -> Warrant {
    let env = compose(EnvInputs { host: &[], skill: &[], caller: &[], fixed: &[], path_prepend: &[] })
        .expect("nothing is in it");
    let binding = Binding {
        command: "true".to_owned(),
        cwd: Place { path: "/".into(), device: 0, inode: 0 },
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
    };
    let judgment = rules.judge(
        Request { binding, shell: find_shell(), variables: Vec::new(), place: ProgramPlace::Here },
        &Disk::new("/usr/bin:/bin", Path::new("/")),
    );
    Warrant::new(judgment.permit().expect("everything is allowed"), &env).expect("it is the same environment")
}

/// A runner that does not wait long before it kills.
pub(crate) fn runner() -> Runner {
    Runner::new(Limits { grace: Duration::from_millis(300), ..Limits::default() })
}

/// Waits for `future`, but not for ever.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("this should not take so long")
}
