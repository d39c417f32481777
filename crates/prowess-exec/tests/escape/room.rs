//! A room for attempts: a home with a secret, a workspace, and a parent that starts helpers as a runtime does.

#![expect(clippy::unwrap_used, reason = "a room for tests panics where something is wrong with the room")]

use std::ffi::OsString;
use std::fs;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

use command_fds::{CommandFdExt, FdMapping};
use prowess_exec::sandbox::{
    Choice, Cleanup, Confinement, Cwd, Kind, Limits, ORDER_FD, Order, Pin, Prepared, Refused, Sandbox, Survey,
    read_report, temp_name,
};
use prowess_policy::Grants;
use prowess_policy::lookup::Identity;
use tempfile::TempDir;

/// No sandbox, and every kind that works on this machine.
pub(crate) fn kinds() -> Vec<Kind> {
    let survey = survey();
    let mut kinds = vec![Kind::None];
    for kind in [Kind::Landlock, Kind::Bubblewrap] {
        match Sandbox::choose(&Choice::Kind(kind), &survey) {
            Ok(kind) => kinds.push(kind),
            Err(why) => eprintln!("skipped: {why}"),
        }
    }
    assert!(kinds.len() > 1, "no sandbox works here, so nothing can be shown");
    kinds
}

/// What this machine can do, found out with the helper.
pub(crate) fn survey() -> Survey {
    Survey::with_helper(helper().to_owned())
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

pub(crate) fn helper() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_prowess-confine"))
}

/// The program that makes attempts.
pub(crate) fn attempt() -> &'static Path {
    static PATH: std::sync::OnceLock<PathBuf> = std::sync::OnceLock::new();
    PATH.get_or_init(|| {
        let path = helper().with_file_name("examples").join("attempt");
        assert!(path.exists(), "build the examples too: {} is missing", path.display());
        path
    })
}

/// The folder of that program, which a run must be able to read.
pub(crate) fn folder_of_attempts() -> PathBuf {
    attempt().parent().unwrap().to_owned()
}

/// Processes and threads of the machine.
pub(crate) fn tasks() -> u64 {
    let load = fs::read_to_string("/proc/loadavg").unwrap();
    load.split_whitespace().nth(3).unwrap().split_once('/').unwrap().1.parse().unwrap()
}

/// The pin of a file as it is now.
pub(crate) fn pin(path: &Path) -> Pin {
    let meta = fs::metadata(path).unwrap();
    let digest = blake3::hash(&fs::read(path).unwrap()).to_hex().to_string();
    let modified = i128::from(meta.mtime()) * 1_000_000_000 + i128::from(meta.mtime_nsec());
    let changed = i128::from(meta.ctime()) * 1_000_000_000 + i128::from(meta.ctime_nsec());
    let identity =
        Identity { device: meta.dev(), inode: meta.ino(), length: meta.len(), modified, changed, digest: Some(digest) };
    Pin { path: path.to_owned(), identity }
}

/// Both ends of a new terminal.
pub(crate) fn terminal() -> (OwnedFd, OwnedFd) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC;
    let slave = rustix::fs::open(name, flags, rustix::fs::Mode::empty()).unwrap();
    (master, slave)
}

/// A process outside, with a secret.
pub(crate) struct Bystander(Child);

impl Bystander {
    pub(crate) fn new() -> Self {
        let mut command = Command::new("/bin/sleep");
        Self(command.arg("600").env("SECRET", "bystanders-secret").spawn().unwrap())
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    pub(crate) fn lives(&mut self) -> bool {
        // A signal that was sent has arrived when the sender has ended, but dying takes a moment.
        for _ in 0..100 {
            if self.0.try_wait().unwrap().is_some() {
                return false;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        true
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What to start for an order.
pub(crate) fn prepare(kind: &Kind, order: Order) -> Prepared {
    Sandbox::new(kind.clone(), helper().to_owned()).prepare(order).unwrap()
}

/// What came of a run.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) stdout: String,
    pub(crate) status: ExitStatus,
    pub(crate) refused: Option<Refused>,
}

pub(crate) struct Room {
    root: TempDir,
    workspace: PathBuf,
    temp: PathBuf,
    grants: Grants,
    limits: Limits,
    leak: Option<fs::File>,
    user: Option<u32>,
}

impl Room {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let path = fs::canonicalize(root.path()).unwrap();
        let workspace = path.join("workspace");
        fs::create_dir(&workspace).unwrap();
        fs::create_dir(path.join("home")).unwrap();
        fs::write(path.join("home/secret"), "the secret of the home").unwrap();
        Self {
            root,
            workspace,
            temp: temp_name(),
            grants: Grants::default(),
            limits: Limits::default(),
            leak: None,
            user: None,
        }
    }

    pub(crate) fn grant(mut self, grants: Grants) -> Self {
        self.grants = grants;
        self
    }

    pub(crate) fn limit(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The room of an ordinary user, who also owns the home and its secret. Only root can make one.
    pub(crate) fn of_user(mut self, user: u32) -> Self {
        let root = fs::canonicalize(self.root.path()).unwrap();
        for path in [root.clone(), self.workspace.clone(), root.join("home"), root.join("home/secret")] {
            std::os::unix::fs::chown(path, Some(user), Some(user)).unwrap();
        }
        // Only root's runs are counted in a control group, which this user could not join.
        self.limits = Limits::none();
        self.user = Some(user);
        self
    }

    /// Leaves a file open in the helper, as a careless parent would.
    pub(crate) fn leak(mut self, file: fs::File) -> Self {
        self.leak = Some(file);
        self
    }

    pub(crate) fn workspace(&self) -> &Path {
        &self.workspace
    }

    pub(crate) fn home(&self) -> PathBuf {
        fs::canonicalize(self.root.path()).unwrap().join("home")
    }

    pub(crate) fn secret(&self) -> PathBuf {
        self.home().join("secret")
    }

    pub(crate) fn temp(&self) -> PathBuf {
        self.temp.clone()
    }

    /// Who runs with this room's folder for temporary files among its variables.
    pub(crate) fn processes(&self) -> Vec<i32> {
        let mark = self.temp.as_os_str().as_encoded_bytes();
        let numbers =
            fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        numbers
            .filter(|pid: &i32| {
                let variables = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
                variables.windows(mark.len()).any(|window| window == mark)
            })
            .collect()
    }

    /// What the attempt says for itself.
    pub(crate) fn attempt(&self, kind: &Kind, words: &[String]) -> String {
        let outcome = self.run(kind, attempt(), words);
        assert_eq!(outcome.refused, None, "{kind}: {words:?}");
        assert!(outcome.stdout.starts_with("ok") || outcome.stdout.starts_with("failed"), "{kind}: {outcome:?}");
        outcome.stdout
    }

    pub(crate) fn run(&self, kind: &Kind, program: &Path, words: &[String]) -> Outcome {
        self.carry_out(kind, self.order(program, words))
    }

    pub(crate) fn run_pinned(&self, kind: &Kind, program: &Path, words: &[String], pins: Vec<Pin>) -> Outcome {
        self.carry_out(kind, Order { pins, ..self.order(program, words) })
    }

    pub(crate) fn order(&self, program: &Path, words: &[String]) -> Order {
        self.order_at(&self.workspace, program, words)
    }

    pub(crate) fn order_at(&self, cwd: &Path, program: &Path, words: &[String]) -> Order {
        let meta = fs::metadata(cwd).unwrap();
        let path_dirs = [folder_of_attempts()];
        let mut confinement =
            Confinement::baseline(&self.workspace, &path_dirs, Some(&self.home())).merge(&self.grants);
        confinement.temp = Some(self.temp.clone());
        let name = OsString::from(program.file_name().unwrap());
        Order {
            program: program.to_owned(),
            argv: std::iter::once(name).chain(words.iter().map(OsString::from)).collect(),
            cwd: Cwd { path: cwd.to_owned(), device: meta.dev(), inode: meta.ino() },
            pins: Vec::new(),
            terminal: false,
            confinement: Some(confinement),
            limits: self.limits,
            cgroup: None,
            env_names: Vec::new(),
        }
    }

    pub(crate) fn carry_out(&self, kind: &Kind, order: Order) -> Outcome {
        self.launch(prepare(kind, order)).finish()
    }

    pub(crate) fn prepare(&self, kind: &Kind, program: &Path, words: &[String]) -> Prepared {
        prepare(kind, self.order(program, words))
    }

    pub(crate) fn start(&self, kind: &Kind, program: &Path, words: &[String]) -> Run {
        self.launch(self.prepare(kind, program, words))
    }

    /// Sends these bytes to a helper instead of an order.
    pub(crate) fn send(&self, bytes: &[u8]) -> Outcome {
        self.launch(Prepared {
            program: helper().to_owned(),
            args: vec!["__confine".into()],
            order: Some(bytes.to_vec()),
            cleanup: Cleanup::default(),
            vars: Vec::new(),
            stop: None,
        })
        .finish()
    }

    pub(crate) fn launch(&self, launch: Prepared) -> Run {
        self.launch_on(launch, Stdio::null())
    }

    /// Starts a helper as a runtime would, with this as its standard input.
    pub(crate) fn launch_on(&self, launch: Prepared, stdin: Stdio) -> Run {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut maps = vec![FdMapping { parent_fd: OwnedFd::from(theirs), child_fd: ORDER_FD }];
        if let Some(file) = &self.leak {
            maps.push(FdMapping { parent_fd: file.try_clone().unwrap().into(), child_fd: 7 });
        }
        let mut command = Command::new(&launch.program);
        command.args(&launch.args).env_clear().env("TMPDIR", &self.temp).stdin(stdin).stdout(Stdio::piped());
        if let Some(user) = self.user {
            std::os::unix::fs::chown(&self.temp, Some(user), Some(user)).unwrap();
            command.uid(user).gid(user);
        }
        command.fd_mappings(maps).unwrap();
        let child = command.spawn().unwrap();
        drop(command);
        // A helper that refuses may not read to the end.
        let mut writer = ours.try_clone().unwrap();
        let bytes = launch.order.unwrap();
        let sender = std::thread::spawn(move || {
            let _ = writer.write_all(&bytes);
            let _ = writer.shutdown(Shutdown::Write);
        });
        let mut said = Vec::new();
        let mut reader = ours;
        // Ends when the helper turns into the program, long before the program ends.
        let _ = reader.read_to_end(&mut said);
        sender.join().unwrap();
        Run { child, refused: read_report(&said), _cleanup: launch.cleanup }
    }
}

/// A run under way.
pub(crate) struct Run {
    child: Child,
    refused: Option<Refused>,
    _cleanup: Cleanup,
}

impl Run {
    pub(crate) fn pid(&self) -> i32 {
        self.child.id().try_into().unwrap()
    }

    pub(crate) fn take_stdout(&mut self) -> ChildStdout {
        self.child.stdout.take().unwrap()
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    /// Ends a run of one process.
    pub(crate) fn end(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn finish(mut self) -> Outcome {
        let mut stdout = String::new();
        let mut bytes = Vec::new();
        self.take_stdout().read_to_end(&mut bytes).unwrap();
        stdout.push_str(&String::from_utf8_lossy(&bytes));
        Outcome { stdout, status: self.wait(), refused: self.refused }
    }
}
