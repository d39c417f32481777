//! From a call to a result, by way of the judge.
//!
//! [`Exec::judge`] finds out what a call means here and now, and changes nothing. [`Exec::start`] asks whoever has to
//! be asked, turns the permit into a launch and starts it; [`Exec::run`] waits for it as the tool does. Each decision
//! leaves one line in the audit trail.

mod ground;

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use prowess_egress::Names;
use prowess_policy::approvals::{Approvals, Entry, Overrides, Use};
use prowess_policy::env::{EnvInputs, RunEnv, compose};
use prowess_policy::protected::Protection;
use prowess_policy::{
    Answer, Basis, Binding, Denied, Dialect, ExecSettings, Grant, Grants, Judgment, Permit, Place, ProgramPlace,
    Request, Rules, SandboxChoice, Shell,
};

use crate::approver::{Approver, unanswered};
use crate::audit::{Audit, Ending, Note, now};
use crate::connections::Connections;
use crate::egress;
use crate::exec_tool::{self, Background, Defaults, ExecCall, Plan, Workdir, preflight};
use crate::git_file::GitFileCopy;
use crate::job::{Handle, Input, Leftovers, Runner, Start};
use crate::launch::{Bounds, Launch, Warrant};
use crate::leases::{Holder, Leases};
use crate::lookup::Disk;
use crate::loopback::{SessionNetwork, SessionNetworks};
use crate::made_files::MadeFiles;
use crate::program_homes::program_homes;
use crate::refusal::{Refusal, explained, not_run, refuse, remedies};
use crate::remote::{Remote, check_here};
use crate::rules::rules;
use crate::sandbox::{
    ApprovedFiles, Choice, Confinement, Engine, Kind, Limits, NamedHost, OwnView, ProtectedGuard, Proxy, Sandbox,
    Survey,
};
use crate::session_tmp::SessionTmp;
use crate::setting::{Setting, expand};
use crate::store::ApprovalsFile;
use crate::tool::ToolResult;

/// How seldom the last use of an entry is written down, in milliseconds.
const USE_EVERY: u64 = 60_000;

/// Runs commands for agents.
#[derive(Clone)]
pub struct Exec {
    /// What may run for good.
    pub approvals: ApprovalsFile,
    /// Where decisions are written down.
    pub audit: Audit,
    /// Who is asked.
    pub approver: Arc<dyn Approver>,
    /// What runs.
    pub runner: Runner,
    /// The program that sets up sandboxes; see [`confine`](crate::confine).
    helper: PathBuf,
    /// What people allowed beyond the sandbox.
    pub leases: Leases,
    /// Where connections are written down.
    pub connections: Connections,
    /// How names of hosts are looked up for commands.
    pub names: Names,
    /// Who runs commands on other machines, if there are any.
    pub remote: Option<Arc<dyn Remote>>,
    /// Protected files that a person let a tool change.
    pub approved_files: Arc<ApprovedFiles>,
    /// What this machine can do.
    survey: Arc<Survey>,
    temporary: SessionTmp,
    networks: SessionNetworks,
}

/// What differs between those who start commands.
#[derive(Clone, Copy)]
pub struct Terms<'a> {
    /// Who is asked.
    pub approver: &'a dyn Approver,
    /// Whether commands may go on in the background.
    pub background: Background,
}

/// What has to be remembered of a judgment once it is used up.
struct Docket {
    note: Note,
    /// Entries of the allowlist, by id, with the program each covered.
    uses: Vec<(String, String)>,
    programs: Vec<PathBuf>,
}

impl Docket {
    fn of(judgment: &Judgment) -> Self {
        let starts = judgment.segments().iter().flat_map(|segment| &segment.starts);
        Self {
            note: Note::of(judgment),
            uses: judgment.uses().map(|(id, program)| (id.to_owned(), program)).collect(),
            programs: starts.map(|program| program.real.clone()).collect(),
        }
    }
}

/// A call that was judged, and the sandbox it would run in.
struct Ready {
    judgment: Judgment,
    env: RunEnv,
    workdir: Workdir,
    kind: Kind,
}

/// A call that was judged.
#[derive(Debug)]
pub struct Case {
    /// What the judge found.
    pub judgment: Judgment,
    /// What the command would get.
    pub env: RunEnv,
    workdir: Workdir,
    holder: Holder,
}

impl Case {
    /// What would change the verdict.
    #[must_use]
    pub fn remedies(&self) -> Vec<String> {
        remedies(&self.judgment, &self.holder)
    }
}

impl Exec {
    /// Runs commands with what is in `state_dir`, and asks `approver`.
    #[must_use]
    pub fn new(state_dir: &Path, approver: Arc<dyn Approver>, runner: Runner, helper: PathBuf) -> Self {
        Self {
            approvals: ApprovalsFile::in_state_dir(state_dir),
            audit: Audit::in_state_dir(state_dir),
            approver,
            runner,
            survey: Arc::new(Survey::with_helper(helper.clone())),
            helper,
            leases: Leases::in_state_dir(state_dir),
            connections: Connections::in_state_dir(state_dir),
            names: Names::default(),
            remote: None,
            approved_files: Arc::default(),
            temporary: SessionTmp::default(),
            networks: SessionNetworks::default(),
        }
    }

    /// Has sandboxes set up by another program than this one.
    pub fn set_helper(&mut self, helper: PathBuf) {
        self.survey = Arc::new(Survey::with_helper(helper.clone()));
        self.helper = helper;
    }

    /// The networks of the commands that run in `session`.
    pub(crate) fn network_of(&self, session: &str) -> SessionNetwork {
        self.networks.of(session, &self.helper)
    }

    /// Finds out what `call` means and whether it may run. Looks at the disk and hashes files, so it blocks.
    pub fn judge(&self, call: &ExecCall, setting: &Setting) -> Result<Case, ToolResult> {
        check_here(call, setting)?;
        let setting = &setting.for_command(call);
        let workdir = exec_tool::workdir(call.workdir.as_deref(), &setting.workspace, Path::is_dir)?;
        let cwd = place(&workdir.path).map_err(|error| refuse(&format!("{}: {error}", workdir.path.display())))?;
        let kind = self.kind(setting).ok();
        let proxied = kind.as_ref().is_some_and(|kind| self.is_proxied(kind, setting));
        let env = environment(call, setting, &cwd.path, proxied).map_err(|refusal| refuse(&refusal))?;
        let approvals = self.approvals.load().map_err(|error| {
            refuse(&format!("exec denied: the approvals cannot be read, so nothing runs: {error}."))
        })?;
        let can_contain = kind.as_ref().is_some_and(|kind| self.survey.contains(kind));
        let ground = self.ground(setting, &env, &cwd.path).map_err(|why| refuse(&format!("exec denied: {why}.")))?;
        let rules = Rules { ground, ..rules(call, setting, &approvals, can_contain) };
        let disk = Disk::new(env.get("PATH").unwrap_or_default(), &cwd.path).open_to_runs(setting.changeable());
        let binding = Binding {
            command: call.command.clone(),
            cwd,
            environment: env.digest(),
            agent: setting.agent.clone(),
            session: setting.session.clone(),
        };
        let (shell, place) = match setting.settings.sandbox {
            // A container brings its own shell, of which only the common language is certain, and its own programs.
            SandboxChoice::Docker(_) | SandboxChoice::Podman(_) => {
                (Shell { path: "/bin/sh".into(), dialect: Dialect::Posix }, ProgramPlace::Container)
            }
            _ => (find_shell(), ProgramPlace::Here),
        };
        let judgment = rules.judge(Request { binding, shell, variables: call.env.clone(), place }, &disk);
        Ok(Case { judgment, env, workdir, holder: setting.holder() })
    }

    /// Starts `call`, if it may run. The result says why it did not.
    pub async fn start(&self, call: &ExecCall, setting: &Setting) -> Result<(Handle, Plan), ToolResult> {
        let terms = Terms { approver: &*self.approver, background: Background::Allowed };
        // Boxed: it is by far the largest part of whatever awaits it.
        Box::pin(self.start_on(call, setting, terms)).await
    }

    /// The same on other terms than its own.
    pub async fn start_on(
        &self,
        call: &ExecCall,
        setting: &Setting,
        terms: Terms<'_>,
    ) -> Result<(Handle, Plan), ToolResult> {
        let (call, setting) = (Arc::new(call.clone()), Arc::new(setting.for_command(call)));
        let ready = self.aside(&call, &setting, Self::ready).await??;
        let docket = Arc::new(Docket::of(&ready.judgment));
        let permit = self.permit(ready.judgment, &docket, &setting, terms.approver).await?;
        let ending = if permit.basis() == Basis::Person { Ending::Approved } else { Ending::Allowed };
        let mut plan = call.plan(&Defaults { background: terms.background, ..defaults(&setting.settings) });
        plan.warnings.extend(setting.owner().into_iter().flat_map(|skill| skill.key_warnings(permit.lease())));
        let start = Start {
            shown_cwd: ready.workdir.shown,
            timeout: plan.timeout,
            scope: setting.session.clone(),
            leftovers: if permit.lease().keeps_running { Leftovers::Keep } else { Leftovers::End },
        };
        let (env, kind, used) = (ready.env, ready.kind, Arc::clone(&docket));
        let launch = move |exec: &Self, call: &ExecCall, setting: &Setting| {
            exec.launch(permit, env, kind, (call, setting, &used.programs))
        };
        let started = match self.aside(&call, &setting, launch).await? {
            Ok(launch) => self.runner.start(launch, start).await.map_err(|error| exec_tool::not_started(&error)),
            Err(result) => Err(result),
        };
        let why = started.as_ref().err().map(ToolResult::text);
        self.aside(&call, &setting, move |exec, call, setting| match why {
            None => {
                exec.note(&docket.note, ending, "");
                exec.note_use(&docket.uses, call, setting);
            }
            Some(why) => exec.note(&docket.note, Ending::NotStarted, &why),
        })
        .await?;
        started.map(|handle| (handle, plan))
    }

    /// Judges `call` and finds out what would stop it anyway, before anybody is asked.
    fn ready(&self, call: &ExecCall, setting: &Setting) -> Result<Ready, ToolResult> {
        let ready = self.judge(call, setting).and_then(|Case { judgment, env, workdir, .. }| {
            let kind = self.kind(setting).map_err(|why| not_run(&why))?;
            preflight(&call.command, |path| exec_tool::script_text(&workdir.path.join(path)))
                .map_err(|why| refuse(&why))?;
            Ok(Ready { judgment, env, workdir, kind })
        });
        ready.inspect_err(|result| self.note_unjudged(call, setting, &result.text()))
    }

    /// Does `work` on a thread that may block: it looks at files, hashes them, waits for locks or for the disk.
    async fn aside<T: Send + 'static>(
        &self,
        call: &Arc<ExecCall>,
        setting: &Arc<Setting>,
        work: impl FnOnce(&Self, &ExecCall, &Setting) -> T + Send + 'static,
    ) -> Result<T, ToolResult> {
        let (exec, call, setting) = (self.clone(), Arc::clone(call), Arc::clone(setting));
        let done = tokio::task::spawn_blocking(move || work(&exec, &call, &setting)).await;
        done.map_err(|error| not_run(&format!("internal error: {error}")))
    }

    /// Runs `call` and waits for it as long as a tool call waits.
    pub async fn run(&self, call: &ExecCall, setting: &Setting) -> ToolResult {
        if let Some(remote) = self.elsewhere(call, setting) {
            return match self.for_remote(call, setting).await {
                Ok(setting) => remote.run(call, &setting, &*self.approver, &|_| {}).await,
                Err(result) => result,
            };
        }
        match self.start(call, setting).await {
            Ok((handle, plan)) => exec_tool::wait(handle, &plan).await,
            Err(result) => result,
        }
    }

    /// The permit for a judged command: at once, after asking, or not at all.
    async fn permit(
        &self,
        judgment: Judgment,
        docket: &Arc<Docket>,
        setting: &Arc<Setting>,
        approver: &dyn Approver,
    ) -> Result<Permit, ToolResult> {
        let judgment = match judgment.permit() {
            Ok(permit) => return Ok(permit),
            Err(judgment) => *judgment,
        };
        let explained = explained(&judgment, &setting.holder());
        let lacks = judgment.lacks().clone();
        let asked = match judgment.question() {
            Ok(question) => {
                let answer = approver.ask(&question).await;
                let answered = match answer {
                    Some(answer) => question.answer(answer),
                    None => question.unanswered().map(|permit| (permit, Vec::new())),
                };
                answered.map(|(permit, grants)| (permit, grants, answer)).map_err(|why| match why {
                    Denied::Unanswered => Refusal::new(unanswered(approver)).with(explained),
                    Denied::ByPerson | Denied::NotForGood(_) => Refusal::new(why.to_string()),
                })
            }
            Err(_) => Err(Refusal::new("the rules do not allow it").with(explained)),
        };
        let (exec, docket, setting) = (self.clone(), Arc::clone(docket), Arc::clone(setting));
        let settle = move || {
            let settled = asked.and_then(|(permit, grants, answer)| {
                if answer == Some(Answer::Always) {
                    let stored = exec.store(&grants, &setting);
                    stored.map_err(|why| Refusal::new(format!("the rule could not be saved: {why}")))?;
                }
                let kept = answer.map_or(Ok(()), |answer| exec.leases.keep_answer(&setting.holder(), lacks, answer));
                kept.map_err(|why| Refusal::new(format!("the lease could not be saved: {why}")))?;
                Ok(permit)
            });
            settled.map_err(|refusal| {
                exec.note(&docket.note, Ending::Refused, &refusal.what);
                refusal.result()
            })
        };
        let settled = tokio::task::spawn_blocking(settle).await;
        settled.unwrap_or_else(|error| Err(not_run(&format!("internal error: {error}"))))
    }

    fn store(&self, grants: &[Grant], setting: &Setting) -> Result<(), String> {
        let entries: Vec<Entry> = grants.iter().map(|grant| Entry::granted(new_id(), grant, now())).collect();
        let update = |approvals: &mut Approvals| {
            for entry in &entries {
                approvals.grant(Some(&setting.agent), entry);
            }
        };
        self.approvals.update(update).map_err(|error| error.to_string())
    }

    /// Whether runs get a network of their own, with the proxy as the only way out.
    fn is_proxied(&self, kind: &Kind, setting: &Setting) -> bool {
        !setting.grants().network && matches!(kind, Kind::Landlock | Kind::Bubblewrap) && self.survey.network().works
    }

    /// Whether runs have a `/tmp` of their own.
    fn has_own_tmp(&self, kind: &Kind) -> bool {
        matches!(kind, Kind::Landlock | Kind::Bubblewrap) && self.survey.view().works
    }

    /// The sandbox that the operator chose, if it is to be had.
    fn kind(&self, setting: &Setting) -> Result<Kind, String> {
        Sandbox::choose(&choice(&setting.settings.sandbox)?, &self.survey).map_err(|why| why.to_string())
    }

    /// Turns `permit` into something that can be started.
    fn launch(
        &self,
        permit: Permit,
        env: RunEnv,
        kind: Kind,
        (call, setting, programs): (&ExecCall, &Setting, &[PathBuf]),
    ) -> Result<Launch, ToolResult> {
        let mut confinement = self.confinement(setting, &env, programs);
        let lease = permit.lease();
        confinement.read.extend(lease.reads.iter().cloned());
        let git_file = match kind {
            Kind::Landlock | Kind::Bubblewrap => GitFileCopy::make(lease, &setting.home),
            Kind::Container { .. } | Kind::None => Ok(None),
        };
        let git_file = git_file.map_err(|why| not_run(&format!("Git's settings cannot be read: {why}")))?;
        let is_copied = |path: &&PathBuf| git_file.as_ref().is_some_and(|copy| copy.original() == path.as_path());
        let writes: Vec<PathBuf> = lease.writes.iter().filter(|path| !is_copied(path)).cloned().collect();
        confinement.write.extend(writes.iter().cloned());
        confinement.write.extend(git_file.as_ref().map(|copy| copy.dir().to_owned()));
        let made = MadeFiles::make(permit.creates()).map_err(|why| not_run(&why))?;
        confinement.sockets.clone_from(&lease.sockets);
        let is_inside =
            |path: &Path| confinement.write.iter().any(|open| path != open && path.starts_with(open) && open.is_dir());
        if let Some(path) = writes.iter().find(|path| path.symlink_metadata().is_err() && !is_inside(path)) {
            let path = path.display();
            return Err(not_run(&format!(
                "{path} does not exist, and only what exists can be opened to a command; create it first (mkdir or \
                 touch), and run the command again"
            )));
        }
        // Files of this machine mean nothing in a container, and without a sandbox nothing is protected.
        let guard = matches!(kind, Kind::Landlock | Kind::Bubblewrap).then(|| {
            let protection = Protection::new(&setting.settings.protected);
            ProtectedGuard::new(&confinement, protection, Arc::clone(&self.approved_files)).with_leases(&writes)
        });
        if let Some(guard) = &guard {
            guard.apply(&mut confinement).map_err(|why| not_run(&why))?;
        }
        confinement.view = if self.survey.view().works { OwnView::Required } else { OwnView::No };
        let mut own_tmp = None;
        // Bubblewrap makes one for each run.
        if kind == Kind::Landlock && self.has_own_tmp(&kind) && !confinement.uses_tmp(&permit.binding().cwd.path) {
            let (dir, path) = self.temporary.dir(&setting.session).map_err(|error| not_run(&error))?;
            confinement.private_tmp = Some(path);
            own_tmp = Some(dir);
        }
        let mut egress = None;
        if self.is_proxied(&kind, setting) {
            confinement.proxy = Proxy::Separate;
            confinement.hosts = NamedHost::all(&permit.lease().hosts);
            egress = Some(egress::egress(&permit, self, setting.holder()));
        }
        let input = if call.pty { Input::Terminal } else { Input::Closed };
        // A command that was given a terminal looks it up by name, and a new `/dev/pts` would not have that name.
        confinement.own_terminals = confinement.view == OwnView::Required && input == Input::Closed;
        let bounds = Bounds { confinement: Some(confinement), limits: Limits::default(), input, egress };
        let warrant = Warrant::new(permit, env).map_err(|drift| not_run(&drift))?;
        let keys = setting.owner().map(|skill| skill.withheld.as_slice()).unwrap_or_default();
        let warrant = warrant.with_keys(keys).map_err(|refusal| not_run(&refusal))?;
        let warrant = warrant.with_git_file(git_file.as_ref());
        let launch = Launch::new(warrant, &Sandbox::new(kind, self.helper.clone()), bounds);
        launch
            .map(|launch| launch.guarded(guard).keeping(own_tmp).writing_back(git_file).with_made(made))
            .map_err(|why| not_run(&why))
    }

    /// What a run may touch. What decides about runs is out of its reach, and so is what the operator hides.
    fn confinement(&self, setting: &Setting, env: &RunEnv, programs: &[PathBuf]) -> Confinement {
        let path: Vec<PathBuf> = env.path().collect();
        let grants = setting.grants();
        let expanded = |paths: &[PathBuf]| paths.iter().map(|path| expand(path, &setting.home)).collect::<Vec<_>>();
        // Whatever may run can be read, wherever a symlink on PATH leads.
        let besides = setting.readable.iter().chain(programs).cloned().chain(program_homes(&path, &setting.home));
        let grants = Grants {
            read: expanded(&grants.read).into_iter().chain(besides).collect(),
            write: expanded(&grants.write),
            ..grants
        };
        let mut confinement = Confinement::baseline(&setting.workspace, &path, Some(&setting.home)).merge(&grants);
        let audit = self.audit.path().parent().unwrap_or(self.audit.path()).to_owned();
        let leases = [self.leases.path().to_owned(), self.leases.lock_path()];
        let own = [self.approvals.path().to_owned(), self.approvals.lock_path(), audit].into_iter().chain(leases);
        confinement.hidden.extend(own.chain(setting.hidden.iter().cloned()));
        confinement
    }

    fn note(&self, note: &Note, ending: Ending, detail: &str) {
        // The trail is for people who look back; a full disk must not decide what runs.
        let _ = self.audit.record(note, ending, detail);
    }

    fn note_unjudged(&self, call: &ExecCall, setting: &Setting, detail: &str) {
        let _ = self.audit.record_unjudged(&setting.agent, &setting.session, &call.command, detail);
    }

    /// Writes down which entries were used, not more than once a minute each.
    fn note_use(&self, used: &[(String, String)], call: &ExecCall, setting: &Setting) {
        let now = now();
        if used.is_empty() {
            return;
        }
        let is_stale = |entry: &Entry| entry.last_used_at.is_none_or(|at| at.saturating_add(USE_EVERY) < now);
        let Ok(approvals) = self.approvals.load() else { return };
        let stale: Vec<Entry> = approvals
            .resolve(Some(&setting.agent), Overrides::default())
            .allowlist
            .into_iter()
            .filter(is_stale)
            .collect();
        let due: Vec<_> = used.iter().filter(|(id, _)| stale.iter().any(|entry| entry.id == *id)).collect();
        if due.is_empty() {
            return;
        }
        let command = &call.command;
        // A use that is not written down costs a date in a list.
        let _ = self.approvals.update(|approvals| {
            for (id, resolved) in due {
                approvals.record_use(Some(&setting.agent), id, Use { at: now, command, resolved });
            }
        });
    }
}

/// The shell that runs texts: bash, whose grammar they were read with, or else the system's own.
#[must_use]
pub fn find_shell() -> Shell {
    let bash = ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/run/current-system/sw/bin/bash"];
    let found = bash.iter().map(PathBuf::from).find(|path| path.is_file());
    found.map_or_else(
        || Shell { path: "/bin/sh".into(), dialect: Dialect::Posix },
        |path| Shell { path, dialect: Dialect::Bash },
    )
}

fn environment(call: &ExecCall, setting: &Setting, cwd: &Path, proxied: bool) -> Result<RunEnv, String> {
    let bins = setting.skills.iter().filter_map(|skill| skill.bins.clone()).filter(|dir| dir.is_dir());
    let prepend: Vec<PathBuf> = bins.chain(setting.settings.path_prepend.iter().map(PathBuf::from)).collect();
    let skill: Vec<(String, OsString)> = setting.skills.iter().flat_map(|skill| skill.vars.clone()).collect();
    // An operator who switched the sandbox off wants commands to behave as they do outside.
    let quiet = match setting.settings.sandbox {
        SandboxChoice::Off => Vec::new(),
        _ => crate::code_paths::variables(cwd, &setting.home),
    };
    // A pager must not become a way to start programs.
    let own = [("OPENCLAW_SHELL", "exec"), ("LESSSECURE", "1")];
    let proxy = if proxied { egress::variables() } else { Vec::new() };
    let others = quiet.iter().chain(&proxy).map(|(name, value)| (name.as_str(), value.as_str()));
    let fixed: Vec<(&str, &str)> = own.into_iter().chain(others).collect();
    let inputs =
        EnvInputs { host: &setting.host_env, skill: &skill, caller: &call.env, fixed: &fixed, path_prepend: &prepend };
    compose(inputs).map_err(|refusal| refusal.to_string())
}

/// The kind of sandbox that the operator's word stands for.
pub fn choice(choice: &SandboxChoice) -> Result<Choice, String> {
    let container = |engine, name: &String| Choice::Kind(Kind::Container { engine, name: name.clone() });
    Ok(match choice {
        SandboxChoice::Auto => Choice::Auto,
        SandboxChoice::Landlock => Choice::Kind(Kind::Landlock),
        SandboxChoice::Bubblewrap => Choice::Kind(Kind::Bubblewrap),
        SandboxChoice::Docker(name) => container(Engine::Docker, name),
        SandboxChoice::Podman(name) => container(Engine::Podman, name),
        SandboxChoice::Off => Choice::Kind(Kind::None),
        SandboxChoice::Unknown(word) => {
            return Err(format!(
                "unknown sandbox `{word}`; use auto, landlock, bubblewrap or off, or docker or podman with a container"
            ));
        }
    })
}

fn defaults(settings: &ExecSettings) -> Defaults {
    Defaults {
        yield_ms: settings.background.map(|wait| wait.as_secs_f64() * 1_000.0),
        timeout_seconds: settings.timeout.map(|timeout| timeout.as_secs_f64()),
        ..Defaults::default()
    }
}

fn place(path: &Path) -> std::io::Result<Place> {
    let path = path.canonicalize()?;
    let metadata = std::fs::metadata(&path)?;
    Ok(Place { path, device: metadata.dev(), inode: metadata.ino() })
}

fn new_id() -> String {
    uuid::Uuid::new_v4().to_string()
}
