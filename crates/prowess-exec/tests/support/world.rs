//! A world of its own for the whole of [`Exec`]: a state directory, a workspace, a home, and somebody to ask.

use std::future::Future;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use prowess_exec::approver::Approver;
use prowess_exec::exec_tool::ExecCall;
use prowess_exec::job::{Limits, Runner};
use prowess_exec::{Exec, Setting, ToolResult};
use prowess_policy::approvals::{EVERYONE, Entry};
use prowess_policy::posture::Security;
use prowess_policy::{Answer, ExecSettings, Question};
use serde_json::Value;
use tempfile::TempDir;

/// Far longer than anything takes. It is there so that a test that hangs says so.
const PATIENCE: Duration = Duration::from_secs(120);

/// Somebody who answers as a function says.
pub(crate) struct Says<F>(pub(crate) F);

impl<F: Fn(&Question) -> Option<Answer> + Send + Sync> Approver for Says<F> {
    fn ask<'a>(&'a self, question: &'a Question) -> Pin<Box<dyn Future<Output = Option<Answer>> + Send + 'a>> {
        let answer = (self.0)(question);
        Box::pin(std::future::ready(answer))
    }
}

/// Somebody who says yes to everything, once.
pub(crate) fn yes() -> Arc<dyn Approver> {
    Arc::new(Says(|_: &Question| Some(Answer::Once)))
}

/// Somebody who says yes to everything, for good.
pub(crate) fn always() -> Arc<dyn Approver> {
    Arc::new(Says(|_: &Question| Some(Answer::Always)))
}

/// The phrases of each question that was put.
pub(crate) type Asked = Arc<Mutex<Vec<Vec<String>>>>;

/// Answers in turn, and keeps what was asked.
pub(crate) fn answering(answers: &[Answer]) -> (Arc<dyn Approver>, Asked) {
    let (asked, answers) = (Asked::default(), Mutex::new(answers.to_vec()));
    let heard = Arc::clone(&asked);
    let says = Says(move |question: &Question| {
        heard.lock().expect("a list").push(question.judgment().lacks().phrases());
        let mut answers = answers.lock().expect("a list");
        if answers.is_empty() { None } else { Some(answers.remove(0)) }
    });
    (Arc::new(says), asked)
}

/// Folders, the means to run something in them, and for whom.
pub(crate) struct World {
    root: TempDir,
    pub(crate) exec: Exec,
    pub(crate) setting: Setting,
}

impl World {
    /// A world with an allowlist, in which nothing is allowed yet.
    pub(crate) fn new(approver: Arc<dyn Approver>) -> Self {
        let root = TempDir::new().expect("a folder");
        let base = root.path().canonicalize().expect("it is there");
        for dir in ["state", "ws", "home"] {
            std::fs::create_dir(base.join(dir)).expect("a folder");
        }
        let helper = PathBuf::from(env!("CARGO_BIN_EXE_prowess-confine"));
        let home = base.join("home");
        let host_env = [("PATH", "/usr/bin:/bin"), ("HOME", path_text(&home)), ("LANG", "C.UTF-8")];
        let setting = Setting {
            agent: "main".to_owned(),
            session: "test".to_owned(),
            workspace: base.join("ws"),
            home: base.join("home"),
            settings: ExecSettings { security: Some(Security::Allowlist), ..ExecSettings::default() },
            host_env: host_env.map(|(name, value)| (name.to_owned(), value.into())).to_vec(),
            skills: Vec::new(),
            readable: Vec::new(),
            hidden: Vec::new(),
            skill_bins: Vec::new(),
        };
        let exec = Exec::new(&base.join("state"), approver, Runner::new(Limits::default()), helper);
        Self { root, exec, setting }
    }

    /// The folder around everything, without links.
    pub(crate) fn root(&self) -> PathBuf {
        self.root.path().canonicalize().expect("it is there")
    }

    /// A path in the workspace.
    pub(crate) fn ws(&self, path: &str) -> PathBuf {
        self.setting.workspace.join(path)
    }

    /// A path in the state directory.
    pub(crate) fn state(&self, path: &str) -> PathBuf {
        self.root().join("state").join(path)
    }

    /// Writes a file into the workspace.
    pub(crate) fn file(&self, path: &str, text: &str) -> PathBuf {
        write(&self.ws(path), text, 0o644)
    }

    /// Writes a program into the workspace that runs `body` in `/bin/sh`.
    pub(crate) fn script(&self, path: &str, body: &str) -> PathBuf {
        write(&self.ws(path), &format!("#!/bin/sh\n{body}\n"), 0o755)
    }

    /// Lets programs run with any arguments, by their real paths.
    pub(crate) fn allow(&self, programs: &[&str]) {
        let update = |approvals: &mut prowess_policy::approvals::Approvals| {
            for program in programs {
                let path = Path::new(program).canonicalize().unwrap_or_else(|error| panic!("{program}: {error}"));
                let pattern = path_text(&path).to_owned();
                approvals.grant(Some(EVERYONE), &Entry { id: pattern.clone(), pattern, ..Entry::default() });
            }
        };
        self.exec.approvals.update(update).expect("it is written");
    }

    /// Writes the approvals file itself.
    pub(crate) fn approvals(&self, value: &Value) {
        write(self.exec.approvals.path(), &value.to_string(), 0o600);
    }

    /// Runs a command to its end.
    pub(crate) async fn run(&self, command: &str) -> ToolResult {
        self.call(&call(command)).await
    }

    /// The same for a whole call.
    pub(crate) async fn call(&self, call: &ExecCall) -> ToolResult {
        let run = self.exec.run(call, &self.setting);
        tokio::time::timeout(PATIENCE, run).await.expect("this should not take so long")
    }

    /// The lines of the audit trail.
    pub(crate) fn audit(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.exec.audit.path()).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    /// The endings in the audit trail.
    pub(crate) fn endings(&self) -> Vec<String> {
        self.audit().iter().map(|line| line["ending"].as_str().expect("a word").to_owned()).collect()
    }
}

/// A call for `command` that waits for its end.
pub(crate) fn call(command: &str) -> ExecCall {
    ExecCall { command: command.to_owned(), yield_ms: Some(120_000.0), timeout: Some(60.0), ..ExecCall::default() }
}

/// Writes a file with this mode, and the folders above it.
pub(crate) fn write(path: &Path, text: &str, mode: u32) -> PathBuf {
    std::fs::create_dir_all(path.parent().expect("a folder above")).expect("a folder");
    std::fs::write(path, text).expect("the file is written");
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("the mode is set");
    path.to_owned()
}

/// The path as text.
pub(crate) fn path_text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}
