//! The sandbox: how is a run kept to what it may touch?
//!
//! A plan, made by the parent: which kind of sandbox, which program to start, and the [`Order`] for the helper that runs
//! inside ([`confine`](crate::confine)). If the chosen kind does not work here, nothing runs; there is no falling back.

mod bubblewrap;
pub(crate) mod cgroup;
mod cleanup;
mod confinement;
pub mod container;
mod hosts;
mod order;
mod protected;
mod survey;

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

pub use cleanup::Cleanup;
pub use confinement::{Confinement, OwnView, PROXY_PORT, Proxy};
pub(crate) use confinement::{TMP, real};
pub use container::{Engine, StopInside, Terminal};
pub use hosts::NamedHost;
pub(crate) use hosts::{HOSTS_FILE, MAX_SOCKETS};
pub use order::{Cwd, Limits, MAX_ORDER, ORDER_FD, Order, OrderError, Pin, REFUSED_EXIT, Refused, read_report};
pub(crate) use order::{LISTENER, render_report};
pub use protected::{ApprovedFiles, ProtectedGuard, SetAside};
pub use survey::{Finding, Survey};

/// What keeps a run in its bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// Rules of the kernel that the helper gives itself: Landlock and seccomp.
    Landlock,
    /// Namespaces, made by `bwrap`, and the helper inside.
    Bubblewrap,
    /// A container that somebody else keeps.
    Container {
        /// Who keeps it.
        engine: Engine,
        /// Its name.
        name: String,
    },
    /// Nothing. Only ever chosen by the operator, by name.
    None,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Landlock => f.write_str("landlock"),
            Self::Bubblewrap => f.write_str("bubblewrap"),
            Self::Container { engine, name } => write!(f, "{} container {name}", engine.program()),
            Self::None => f.write_str("none"),
        }
    }
}

/// What the operator asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Choice {
    /// The default: Landlock, or no run at all.
    #[default]
    Auto,
    /// This kind and no other.
    Kind(Kind),
}

/// Why there is no sandbox, and so no run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}; {advice}")]
pub struct Unavailable {
    /// What is missing.
    pub why: String,
    /// What to do about it.
    pub advice: String,
}

impl Unavailable {
    pub(crate) fn new(why: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { why: why.into(), advice: advice.into() }
    }
}

/// A kind of sandbox, and the helper that sets it up.
#[derive(Debug, Clone)]
pub struct Sandbox {
    kind: Kind,
    helper: PathBuf,
    client: Option<PathBuf>,
}

/// What a sandbox would start: a program with arguments, and the bytes to send it. It is no right to start it: that is
/// a [`Launch`](crate::launch::Launch).
#[derive(Debug)]
pub struct Prepared {
    /// The program.
    pub program: PathBuf,
    /// Its arguments, without its own name.
    pub args: Vec<OsString>,
    /// What to send on descriptor [`ORDER_FD`]. Nothing for a container.
    pub order: Option<Vec<u8>>,
    /// Removes what was made for the run. Keep it until the run is over.
    pub cleanup: Cleanup,
    /// Variables that the run gets besides its own.
    pub vars: Vec<(String, OsString)>,
    /// Ends what runs inside a container.
    pub stop: Option<StopInside>,
}

/// A new name for a folder of temporary files. [`Sandbox::prepare`] makes it when a confinement names it.
#[must_use]
pub fn temp_name() -> PathBuf {
    std::env::temp_dir().join(format!("prowess-{}", uuid::Uuid::new_v4().simple()))
}

impl Sandbox {
    /// A sandbox of this kind, set up by `helper` (see [`confine::helper`](crate::confine::helper)).
    #[must_use]
    pub fn new(kind: Kind, helper: PathBuf) -> Self {
        Self { kind, helper, client: None }
    }

    /// The same, with the client of the container engine at `client` instead of the one on `PATH`.
    #[must_use]
    pub fn client_at(self, client: PathBuf) -> Self {
        Self { client: Some(client), ..self }
    }

    /// The kind that the choice comes down to on the machine of this survey.
    pub fn choose(choice: &Choice, survey: &Survey) -> Result<Kind, Unavailable> {
        let (kind, needed) = match choice {
            Choice::Auto | Choice::Kind(Kind::Landlock) => (Kind::Landlock, vec![survey.landlock(), survey.seccomp()]),
            Choice::Kind(Kind::Bubblewrap) => (Kind::Bubblewrap, vec![survey.bubblewrap(), survey.seccomp()]),
            Choice::Kind(kind @ Kind::Container { engine, .. }) => match engine {
                Engine::Docker => (kind.clone(), vec![survey.docker()]),
                Engine::Podman => (kind.clone(), vec![survey.podman()]),
            },
            Choice::Kind(Kind::None) => (Kind::None, Vec::new()),
        };
        match needed.into_iter().find(|finding| !finding.works) {
            None => Ok(kind),
            Some(finding) => Err(Unavailable::new(
                format!("the sandbox `{kind}` is not available: {}", finding.what),
                finding.advice.clone().unwrap_or_default(),
            )),
        }
    }

    /// The kind.
    #[must_use]
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// Plans a run: completes the order, makes what the run needs, and says what to start.
    ///
    /// The number of processes is the one limit that may be missing: the kernel counts those of an ordinary user, but
    /// root's only in a control group, and many containers let nobody make one. Such runs start nevertheless;
    /// [`Survey::processes`] says so. A group that was made but cannot be joined is a refusal.
    pub fn prepare(&self, mut order: Order) -> Result<Prepared, Unavailable> {
        if let Kind::Container { engine, name } = &self.kind {
            return self.enter(*engine, name, &order);
        }
        let mut cleanup = Cleanup::default();
        order.confinement = order.confinement.map(Confinement::settle);
        let private_tmp = |confinement: &Confinement| confinement.private_tmp.as_ref().map(|_| TMP.into());
        let temp = order.confinement.as_ref().and_then(|one| private_tmp(one).or_else(|| one.temp.clone()));
        match (&self.kind, &order.confinement) {
            (Kind::None, None) => {}
            (Kind::None, Some(confinement)) => {
                make_temp(confinement, &mut cleanup)?;
                order.confinement = None;
            }
            (_, Some(confinement)) => {
                agree(confinement)?;
                make_temp(confinement, &mut cleanup)?;
            }
            (_, None) => {
                return Err(Unavailable::new(
                    "the run has no confinement",
                    "give it one, or choose the sandbox `none` by name",
                ));
            }
        }
        if let Some(confinement) = &mut order.confinement {
            name_hosts(confinement, &mut cleanup);
        }
        let limit = order.limits.processes.filter(|_| rustix::process::geteuid().is_root());
        let cgroup = limit.and_then(|limit| cleanup.make_cgroup(limit));
        let (program, args) = match self.kind {
            Kind::Bubblewrap => self.wrap(&mut order, cgroup)?,
            Kind::Landlock | Kind::Container { .. } | Kind::None => {
                order.cgroup = cgroup;
                (self.helper.clone(), vec![crate::confine::VERB.into()])
            }
        };
        let frame =
            order.frame().map_err(|error| Unavailable::new(error.to_string(), "change the command or its folders"))?;
        let vars = temp.map(|temp| ("TMPDIR".to_owned(), temp.into_os_string())).into_iter().collect();
        Ok(Prepared { program, args, order: Some(frame), cleanup, vars, stop: None })
    }

    /// A run in a container: its own shell, no helper.
    fn enter(&self, engine: Engine, name: &str, order: &Order) -> Result<Prepared, Unavailable> {
        let program = self.client.clone().or_else(|| survey::find_program(engine.program())).ok_or_else(|| {
            Unavailable::new(format!("`{}` is not installed", engine.program()), "install it or choose another sandbox")
        })?;
        let text = script(&order.argv)
            .ok_or_else(|| Unavailable::new("a container runs shell commands only", "give it `sh -c` and a text"))?;
        let terminal = if order.terminal { Terminal::Yes } else { Terminal::No };
        let run = uuid::Uuid::new_v4().simple().to_string();
        let names = order.env_names.iter().map(String::as_str).chain([container::RUN_VARIABLE]);
        let args = container::exec_argv(engine, name, &order.cwd.path, names, terminal, text)?;
        let stop = Some(StopInside::new(program.clone(), name, &run));
        let vars = vec![(container::RUN_VARIABLE.to_owned(), run.into())];
        Ok(Prepared { program, args, order: None, cleanup: Cleanup::default(), vars, stop })
    }

    /// The arguments for bubblewrap. Control groups are not visible inside, so the helper joins on the way in.
    fn wrap(&self, order: &mut Order, cgroup: Option<PathBuf>) -> Result<(PathBuf, Vec<OsString>), Unavailable> {
        let bwrap = survey::find_program("bwrap")
            .ok_or_else(|| Unavailable::new("`bwrap` is not installed", "install the package `bubblewrap`"))?;
        let Some(confinement) = &mut order.confinement else {
            return Err(Unavailable::new("the run has no confinement", "give it one"));
        };
        let args = bubblewrap::argv(bubblewrap::Wrap { confinement, helper: &self.helper, cwd: &order.cwd.path });
        // Bubblewrap has made the namespaces already.
        confinement.view = OwnView::No;
        if confinement.proxy == Proxy::Separate {
            confinement.proxy = Proxy::Inside;
        }
        // New and empty inside: nothing hidden is left in them but what lies below something mounted, and that is covered.
        confinement.hidden.retain(|hidden| !bubblewrap::PRIVATE.iter().any(|private| hidden.starts_with(private)));
        confinement.write.extend(bubblewrap::PRIVATE.iter().map(PathBuf::from));
        let Some(cgroup) = cgroup else { return Ok((bwrap, args)) };
        let mut joined: Vec<OsString> = vec![crate::confine::JOIN_VERB.into(), cgroup.into(), bwrap.into()];
        joined.extend(args);
        Ok((self.helper.clone(), joined))
    }
}

/// Refuses a confinement that no mechanism can keep.
fn agree(confinement: &Confinement) -> Result<(), Unavailable> {
    let Some((open, hidden)) = confinement.conflict() else { return Ok(()) };
    Err(Unavailable::new(
        format!("refusing to run in {}: it contains {}", open.display(), hidden.display()),
        "use a separate directory, or a smaller workspace or grant",
    ))
}

fn make_temp(confinement: &Confinement, cleanup: &mut Cleanup) -> Result<(), Unavailable> {
    let Some(temp) = &confinement.temp else { return Ok(()) };
    cleanup.make_temp(temp).map_err(|error| {
        Unavailable::new(
            format!("cannot create the temporary directory {}: {error}", temp.display()),
            "make sure that its parent exists and is writable",
        )
    })
}

/// Writes down the names of the run's hosts. Without it, only programs that know the proxy find them.
fn name_hosts(confinement: &mut Confinement, cleanup: &mut Cleanup) {
    if confinement.hosts.is_empty() || !Path::new(HOSTS_FILE).is_file() {
        return;
    }
    let Ok(folder) = tempfile::TempDir::with_prefix("prowess-hosts-") else { return };
    let file = folder.path().join("hosts");
    let system = std::fs::read_to_string(HOSTS_FILE).unwrap_or_default();
    if std::fs::write(&file, NamedHost::render(&confinement.hosts, &system)).is_ok() {
        confinement.hosts_file = Some(file);
        cleanup.keep(folder);
    }
}

/// The text in `sh -c TEXT`.
fn script(argv: &[OsString]) -> Option<&str> {
    match argv {
        [shell, flag, text] if flag == "-c" || flag == "-lc" => {
            let name = Path::new(shell).file_name()?.to_str()?;
            matches!(name, "sh" | "bash" | "dash" | "zsh").then(|| text.to_str())?
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn survey(works: bool) -> Survey {
        let finding = Finding { works, what: "it is so".to_owned(), advice: (!works).then(|| "change it".to_owned()) };
        Survey {
            landlock: finding.clone().into(),
            seccomp: finding.clone().into(),
            bubblewrap: finding.clone().into(),
            docker: finding.clone().into(),
            podman: finding.into(),
            ..Survey::default()
        }
    }

    fn order(confinement: Option<Confinement>) -> Order {
        Order {
            program: "/bin/sh".into(),
            argv: ["sh", "-c", "echo"].map(OsString::from).into(),
            cwd: Cwd { path: "/w".into(), device: 0, inode: 0 },
            pins: Vec::new(),
            terminal: false,
            confinement,
            limits: Limits::none(),
            cgroup: None,
            env_names: vec!["KEY".to_owned()],
        }
    }

    #[test]
    fn the_default_is_landlock_or_nothing() {
        assert_eq!(Sandbox::choose(&Choice::Auto, &survey(true)), Ok(Kind::Landlock));
        let missing = Survey { seccomp: survey(false).seccomp, ..survey(true) };
        assert!(Sandbox::choose(&Choice::Auto, &missing).is_err(), "half a sandbox is none");
        let why = Sandbox::choose(&Choice::Auto, &survey(false)).unwrap_err();
        assert_eq!(why.to_string(), "the sandbox `landlock` is not available: it is so; change it");
    }

    #[test]
    fn what_was_chosen_is_taken_or_refused_and_never_replaced() {
        let container = Kind::Container { engine: Engine::Podman, name: "box".to_owned() };
        for kind in [Kind::Landlock, Kind::Bubblewrap, container] {
            assert_eq!(Sandbox::choose(&Choice::Kind(kind.clone()), &survey(true)), Ok(kind.clone()));
            assert!(Sandbox::choose(&Choice::Kind(kind), &survey(false)).is_err());
        }
        assert_eq!(Sandbox::choose(&Choice::Kind(Kind::None), &survey(false)), Ok(Kind::None));
    }

    #[test]
    fn a_sandbox_without_a_confinement_is_refused() {
        for kind in [Kind::Landlock, Kind::Bubblewrap] {
            assert!(Sandbox::new(kind, "/helper".into()).prepare(order(None)).is_err());
        }
        let prepared = Sandbox::new(Kind::None, "/helper".into()).prepare(order(None)).unwrap();
        assert_eq!(prepared.program, Path::new("/helper"));
        assert_eq!(prepared.args, ["__confine"]);
    }

    #[test]
    fn a_workspace_that_holds_the_systems_secrets_is_refused() {
        let all = Confinement::baseline(Path::new("/"), &[], None);
        let why = Sandbox::new(Kind::Landlock, "/helper".into()).prepare(order(Some(all))).unwrap_err();
        assert!(why.why.contains("/etc/shadow"), "{why}");
    }

    #[test]
    fn a_home_behind_a_link_is_no_workspace() {
        let scratch = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(scratch.path()).unwrap();
        std::fs::create_dir_all(root.join("disk/u")).unwrap();
        std::os::unix::fs::symlink("disk", root.join("home")).unwrap();
        for kind in [Kind::Landlock, Kind::Bubblewrap] {
            for (workspace, hidden) in [("home/u", "disk/u/approvals"), ("disk/u", "home/u/approvals")] {
                let mut confinement = Confinement::baseline(&root.join(workspace), &[], None);
                confinement.hidden.push(root.join(hidden));
                let prepared = Sandbox::new(kind.clone(), "/helper".into()).prepare(order(Some(confinement)));
                assert!(prepared.unwrap_err().why.contains("refusing to run in"), "{kind} {workspace}");
            }
        }
    }

    #[test]
    fn only_a_shells_text_enters_a_container() {
        assert_eq!(script(&["sh", "-c", "a b"].map(OsString::from)), Some("a b"));
        assert_eq!(script(&["/bin/bash", "-lc", "a"].map(OsString::from)), Some("a"));
        assert_eq!(script(&["python3", "-c", "a"].map(OsString::from)), None);
        assert_eq!(script(&["sh", "-c", "a", "b"].map(OsString::from)), None);
    }
}
