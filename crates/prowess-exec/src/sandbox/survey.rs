//! The survey: which sandboxes work on this machine, why not, and what would help?
//!
//! It tries things rather than guessing from versions: a kernel can have a feature and a container's rules can still
//! forbid it.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use super::Kind;
use super::cgroup;
use super::cleanup::Cleanup;
use super::container::Engine;
use crate::confine::Attempt;

/// How long a program may take to show that it works.
const PATIENCE: Duration = Duration::from_secs(5);

/// How many bytes of a program's answer are read: fewer than fit into a pipe, so no program waits for its reader.
const MAX_SAID: u64 = 32 * 1024;

/// How many characters of a program's complaint are shown.
const COMPLAINT: usize = 120;

/// Where system programs are looked for before `PATH` is.
const SYSTEM_BINS: &[&str] = &["/usr/bin", "/bin", "/usr/local/bin", "/run/current-system/sw/bin"];

/// What was found out about one thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Whether it can be used.
    pub works: bool,
    /// What it does here, or why it does not work.
    pub what: String,
    /// What an operator could do about it.
    pub advice: Option<String>,
}

impl Finding {
    fn works(what: impl Into<String>) -> Self {
        Self { works: true, what: what.into(), advice: None }
    }

    fn fails(what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { works: false, what: what.into(), advice: Some(advice.into()) }
    }
}

/// What this machine can do. Each part is looked at when somebody asks for it, and only once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Survey {
    /// The helper that tries out namespaces; else this program.
    pub(super) helper: Option<PathBuf>,
    pub(super) namespaces: OnceLock<Attempt>,
    pub(super) landlock: OnceLock<Finding>,
    pub(super) seccomp: OnceLock<Finding>,
    pub(super) bubblewrap: OnceLock<Finding>,
    pub(super) docker: OnceLock<Finding>,
    pub(super) podman: OnceLock<Finding>,
    pub(super) processes: OnceLock<Finding>,
    pub(super) metadata: OnceLock<Finding>,
    pub(super) view: OnceLock<Finding>,
    pub(super) shared_memory: OnceLock<Finding>,
    pub(super) network: OnceLock<Finding>,
}

impl Survey {
    /// A survey that tries out namespaces with `helper` instead of this program, which may be no helper.
    #[must_use]
    pub fn with_helper(helper: PathBuf) -> Self {
        Self { helper: Some(helper), ..Self::default() }
    }

    /// Rules about files, the network and signals.
    #[must_use]
    pub fn landlock(&self) -> &Finding {
        self.landlock.get_or_init(landlock)
    }

    /// Rules about system calls.
    #[must_use]
    pub fn seccomp(&self) -> &Finding {
        self.seccomp.get_or_init(seccomp)
    }

    /// Bubblewrap.
    #[must_use]
    pub fn bubblewrap(&self) -> &Finding {
        self.bubblewrap.get_or_init(bubblewrap)
    }

    /// Docker.
    #[must_use]
    pub fn docker(&self) -> &Finding {
        self.docker.get_or_init(|| engine(Engine::Docker))
    }

    /// Podman.
    #[must_use]
    pub fn podman(&self) -> &Finding {
        self.podman.get_or_init(|| engine(Engine::Podman))
    }

    /// Whether the number of processes can be limited.
    #[must_use]
    pub fn processes(&self) -> &Finding {
        self.processes.get_or_init(processes)
    }

    /// Whether files outside are safe from changes of mode and time.
    #[must_use]
    pub fn metadata(&self) -> &Finding {
        self.metadata.get_or_init(|| metadata(self.namespaces()))
    }

    /// Whether a run under Landlock gets a view of the file systems of its own, in which single files of the workspace
    /// are read-only. Bubblewrap always gives it one.
    #[must_use]
    pub fn view(&self) -> &Finding {
        self.view.get_or_init(|| view(self.namespaces()))
    }

    /// Whether System V shared memory and message queues of other processes are out of reach under Landlock.
    #[must_use]
    pub fn shared_memory(&self) -> &Finding {
        self.shared_memory.get_or_init(|| shared_memory(self.namespaces()))
    }

    fn namespaces(&self) -> &Attempt {
        self.namespaces.get_or_init(|| {
            try_namespaces(self.helper.as_deref())
                .unwrap_or_else(|why| Attempt { why: Some(why), ..Attempt::default() })
        })
    }

    /// Whether a run can have a network of its own, with our proxy as the only way out.
    #[must_use]
    pub fn network(&self) -> &Finding {
        self.network.get_or_init(|| network(self.namespaces()))
    }

    /// Whether a sandbox of this kind keeps every command in its bounds, so that none has to be asked about.
    #[must_use]
    pub fn contains(&self, kind: &Kind) -> bool {
        let needed = match kind {
            Kind::Landlock => [self.landlock(), self.seccomp(), self.network(), self.view()],
            Kind::Bubblewrap => [self.bubblewrap(), self.seccomp(), self.network(), self.landlock()],
            Kind::Container { .. } | Kind::None => return false,
        };
        needed.iter().all(|finding| finding.works)
    }

    /// Every finding with its name, for a report. Starts a few short-lived programs.
    #[must_use]
    pub fn lines(&self) -> [(&'static str, &Finding); 10] {
        [
            ("landlock", self.landlock()),
            ("seccomp", self.seccomp()),
            ("bubblewrap", self.bubblewrap()),
            ("docker", self.docker()),
            ("podman", self.podman()),
            ("process limit", self.processes()),
            ("file modes outside", self.metadata()),
            ("protected files", self.view()),
            ("shared memory", self.shared_memory()),
            ("own network", self.network()),
        ]
    }
}

fn network(namespaces: &Attempt) -> Finding {
    if namespaces.network {
        Finding::works("each command has a network of its own; hosts that you allow are reached through a proxy")
    } else {
        Finding::fails(
            "commands cannot have a network namespace of their own",
            "allow unprivileged user namespaces (sysctl kernel.unprivileged_userns_clone=1), or run as root",
        )
    }
}

/// A program of the system: from its usual folders, else along our own `PATH`.
pub(super) fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs = SYSTEM_BINS.iter().map(PathBuf::from).chain(std::env::split_paths(&path));
    dirs.filter(|dir| dir.is_absolute()).map(|dir| dir.join(name)).find(|program| is_program(program))
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

fn landlock() -> Finding {
    let advice = "use a Linux kernel of 5.13 or later with `landlock` in its `lsm=` list, or choose bubblewrap";
    match crate::confine::landlock_level() {
        0 => Finding::fails("this kernel has no Landlock, or a container forbids it", advice),
        level @ 1..=3 => Finding::works(format!("level {level}: files; TCP and signals are not covered by it")),
        level @ 4..=5 => Finding::works(format!("level {level}: files and TCP; signals are not covered by it")),
        level => Finding::works(format!("level {level}: files, TCP, signals and abstract sockets")),
    }
}

fn seccomp() -> Finding {
    let actions = fs::read_to_string("/proc/sys/kernel/seccomp/actions_avail").unwrap_or_default();
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    if !crate::confine::filters_this_processor() {
        return Finding::fails(
            "system call filtering does not support this processor",
            "choose bubblewrap or a container",
        );
    }
    if actions.split_ascii_whitespace().any(|action| action == "errno") || status.contains("\nSeccomp:") {
        return Finding::works("system calls are filtered");
    }
    Finding::fails("this kernel cannot filter system calls", "use a kernel built with CONFIG_SECCOMP_FILTER")
}

fn bubblewrap() -> Finding {
    let Some(program) = find_program("bwrap") else {
        return Finding::fails("`bwrap` is not installed", "install the package `bubblewrap`");
    };
    match attempt(&program, &["--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "true"]) {
        Ok(_) => Finding::works(format!("{} makes namespaces", program.display())),
        Err(why) => Finding::fails(
            format!("{} does not work here: {why}", program.display()),
            "allow unprivileged user namespaces, or choose landlock",
        ),
    }
}

fn engine(engine: Engine) -> Finding {
    let name = engine.program();
    let Some(program) = find_program(name) else {
        return Finding::fails(format!("`{name}` is not installed"), format!("install {name} to run in containers"));
    };
    match attempt(&program, &["version", "--format", "{{.Server.Version}}"]) {
        Ok(_) => Finding::works(format!("{} reaches its engine", program.display())),
        Err(why) => Finding::fails(
            format!("{} does not reach its engine: {why}", program.display()),
            format!("start the engine, and check that `{name} version` works for this user"),
        ),
    }
}

fn processes() -> Finding {
    if !rustix::process::geteuid().is_root() {
        return Finding::works("limited for this user");
    }
    let Some(place) = cgroup::place() else {
        return Finding::fails(
            "runs as root are not limited: no control group counts processes here",
            "run as an ordinary user, or enable the `pids` controller",
        );
    };
    let advice = "run as an ordinary user, or make the control groups writable";
    let mut cleanup = Cleanup::default();
    let Some(group) = cleanup.make_cgroup(1) else {
        let place = place.display();
        return Finding::fails(
            format!("runs as root are not limited: cannot create a control group in {place}"),
            advice,
        );
    };
    let door = cgroup::door(&group);
    match attempt(Path::new("/bin/sh"), &[OsStr::new("-c"), OsStr::new("echo 0 > \"$0\""), door.as_os_str()]) {
        Ok(_) => Finding::works("limited by a control group"),
        Err(why) => {
            Finding::fails(format!("runs as root do not start: no control group can be joined ({why})"), advice)
        }
    }
}

/// Has the helper enter the namespaces of a run. It must be a process of its own: only one with a single thread may.
fn try_namespaces(helper: Option<&Path>) -> Result<Attempt, String> {
    let own = || crate::confine::helper().map_err(|error| error.to_string());
    let helper = helper.map_or_else(own, |helper| Ok(helper.to_owned()))?;
    let said = attempt(&helper, &[crate::confine::TRY_VERB])?;
    serde_json::from_str(&said).map_err(|_| format!("{} does not try it out", helper.display()))
}

fn view(namespaces: &Attempt) -> Finding {
    if namespaces.mounts {
        return Finding::works("read-only in every run under landlock");
    }
    Finding::fails(
        format!("under landlock a run can change them: it gets no mounts of its own ({})", why(namespaces)),
        "allow unprivileged user namespaces (user.max_user_namespaces, AppArmor), or choose bubblewrap",
    )
}

fn shared_memory(namespaces: &Attempt) -> Finding {
    if namespaces.ipc {
        return Finding::works("every run has its own");
    }
    Finding::fails(
        format!("under landlock a run reaches System V shared memory of this user ({})", why(namespaces)),
        "allow unprivileged user namespaces (user.max_user_namespaces, AppArmor), or choose bubblewrap",
    )
}

fn why(namespaces: &Attempt) -> &str {
    namespaces.why.as_deref().unwrap_or("the kernel does not allow it")
}

fn metadata(namespaces: &Attempt) -> Finding {
    let advice = "choose bubblewrap where that matters";
    match namespaces.mounts.then_some(namespaces.open.as_slice()) {
        Some([]) => {
            Finding::works("protected: everything except the folders that a run may change is mounted read-only")
        }
        Some([first, others @ ..]) => Finding::fails(
            format!(
                "protected, but not on {}{}: under landlock a run can change modes and times (not contents) there",
                first.display(),
                if others.is_empty() { String::new() } else { format!(" and {} more", others.len()) },
            ),
            advice,
        ),
        None => Finding::fails(
            "under landlock a run can change modes and times (not contents) of files that this user owns",
            advice,
        ),
    }
}

/// Runs a program without input, and returns what it says, or in one line why it failed.
fn attempt(program: &Path, args: &[impl AsRef<OsStr>]) -> Result<String, String> {
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let start = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if start.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(5)),
            Ok(None) => {
                // It is ours and has not been waited for, so this can only hit it.
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("no answer in {} seconds", PATIENCE.as_secs()));
            }
            Err(error) => return Err(error.to_string()),
        }
    };
    if status.success() {
        let mut said = String::new();
        let output = child.stdout.take().map(|stdout| stdout.take(MAX_SAID).read_to_string(&mut said));
        return output.unwrap_or(Ok(0)).map(|_| said).map_err(|error| error.to_string());
    }
    Err(complaint(child.stderr.take()).unwrap_or_else(|| status.to_string()))
}

fn complaint(stderr: Option<impl Read>) -> Option<String> {
    let mut bytes = [0; 512];
    let length = stderr?.read(&mut bytes).ok()?;
    first_sentence(&String::from_utf8_lossy(&bytes[..length]))
}

/// The first sentence of what a program complained: short, without control characters, and without its full stop.
fn first_sentence(text: &str) -> Option<String> {
    let line = text.lines().find(|line| !line.trim().is_empty())?;
    let end = [". ", "; ", "? "].iter().filter_map(|stop| line.find(stop)).min();
    let sentence = line[..end.unwrap_or(line.len())].trim().trim_end_matches('.');
    let mut short: String = sentence.chars().filter(|c| !c.is_control()).take(COMPLAINT).collect();
    if sentence.chars().count() > COMPLAINT {
        short.push('…');
    }
    (!short.is_empty()).then_some(short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_comes_with_advice() {
        for (name, finding) in Survey::default().lines() {
            assert_eq!(finding.works, finding.advice.is_none(), "{name}: {finding:?}");
            assert!(!finding.what.is_empty(), "{name}");
        }
    }

    #[test]
    fn one_sentence_of_a_complaint_is_enough() {
        let docker = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is it running?\n";
        let expected = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock";
        assert_eq!(first_sentence(docker).unwrap(), expected);
        assert_eq!(first_sentence("\n failed at a.b; check it: dial a.b\n").unwrap(), "failed at a.b");
        assert_eq!(first_sentence(&"é".repeat(500)).unwrap().chars().count(), COMPLAINT + 1);
        assert_eq!(first_sentence(" \n\x1b\n"), None);
    }

    #[test]
    fn a_program_that_fails_is_quoted_in_one_clean_line() {
        let why = attempt(Path::new("/bin/sh"), &["-c", "printf 'no \\033[31mway\\nmore\\n' >&2; exit 3"]).unwrap_err();
        assert_eq!(why, "no [31mway");
        assert!(attempt(Path::new("/bin/sh"), &["-c", "exit 3"]).unwrap_err().contains('3'));
        assert!(attempt(Path::new("/nonexistent"), &["x"]).is_err());
        assert!(attempt(Path::new("/bin/sh"), &["-c", "exit 0"]).is_ok());
    }
}
