//! Forecast: what would a command use beyond the sandbox, wherever it runs?
//!
//! For texts that nobody is about to run, such as the examples in a skill. It reads the command as the judge does, on a
//! machine where every program is installed.

use std::path::{Path, PathBuf};

use crate::judge::{ProgramPlace, Request, Rules};
use crate::lease::Lease;
use crate::lookup::{Identity, Keeper, Lookup, Program};
use crate::permit::{Binding, Dialect, Place, Shell};
use crate::posture::Posture;
use crate::safe_bin::SafeBins;
use crate::wants::Ground;

/// Places that every sandbox lets a command read.
const READABLE: [&str; 8] = ["/usr", "/bin", "/sbin", "/lib", "/etc", "/opt", "/tmp", "/var/tmp"];

/// Where the command is thought to run: what it names below is in its workspace.
const WORKSPACE: &str = "/workspace";

/// What `command` wants beyond the sandbox, as far as its text tells. `home` is what `~` stands for.
///
/// ```
/// use std::path::Path;
/// use prowess_policy::forecast::forecast;
///
/// let lease = forecast("curl -s 'https://wttr.in/Lisbon?format=3'", Path::new("/home/me"));
/// assert_eq!(lease.phrases(), ["reach wttr.in"]);
/// ```
#[must_use]
pub fn forecast(command: &str, home: &Path) -> Lease {
    let ground = Ground {
        home: home.to_owned(),
        readable: READABLE.iter().chain([&WORKSPACE]).map(PathBuf::from).collect(),
        writable: vec![WORKSPACE.into(), "/tmp".into()],
        ..Ground::default()
    };
    let rules = Rules {
        posture: Posture::HOST,
        allowlist: Vec::new(),
        safe_bins: SafeBins::default(),
        skill_bins: Vec::new(),
        home: home.to_owned(),
        ground,
    };
    let binding = Binding {
        command: command.to_owned(),
        cwd: Place { path: WORKSPACE.into(), device: 0, inode: 0 },
        environment: String::new(),
        agent: String::new(),
        session: String::new(),
    };
    let shell = Shell { path: "/bin/bash".into(), dialect: Dialect::Bash };
    let request = Request { binding, shell, variables: Vec::new(), place: ProgramPlace::Here };
    rules.judge(request, &Everywhere { home }).wants().clone()
}

/// A machine with every program, and an empty home.
struct Everywhere<'a> {
    home: &'a Path,
}

impl Lookup for Everywhere<'_> {
    fn program(&self, token: &str) -> Option<Program> {
        let path = Path::new("/usr/bin").join(token);
        let identity = Identity { device: 0, inode: 0, length: 0, modified: 0, changed: 0, digest: None };
        Some(Program { real: path.clone(), path, keeper: Keeper::System, identity })
    }

    fn file(&self, _: &Path) -> Option<Program> {
        None
    }

    fn exists(&self, path: &Path) -> bool {
        !path.starts_with(self.home)
    }
}
