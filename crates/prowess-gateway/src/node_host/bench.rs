//! The bench: what does this machine judge with, and how does it run what may run?

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use prowess_exec::approver::Nobody;
use prowess_exec::exec_tool::{Background, ExecCall, Plan};
use prowess_exec::job::{Exit, Handle, Outcome, State};
use prowess_exec::lookup::Disk;
use prowess_exec::{Exec, Setting, SkillShare, Terms};
use prowess_host::{Context, Ground, base, exec, workspace};
use prowess_policy::approvals::Overrides;
use prowess_policy::lookup::Lookup;
use prowess_policy::posture::{Ask, NodeRefusal, Security};
use prowess_policy::{Judgment, Objection, Verdict};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::approved::{Prepared, Vouched, fingerprint};
use super::link::Link;
use super::order::Order;
use super::skill_bins::SkillBins;
use super::{NodeHostError, Options};
use crate::approvals::file;
use crate::aside::blocking;
use crate::wire::Refusal;

/// The search path of a machine that has none.
pub(super) const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The most output of a run that is sent, in bytes.
const MAX_OUTPUT: usize = 200_000;

/// How much of the end of an output goes into an event, in characters.
const EVENT_OUTPUT: usize = 20_000;

/// How often the newest output is told, at most.
const UPDATE_EVERY: Duration = Duration::from_millis(250);

/// The most programs that are looked for at once.
const MAX_BINS: usize = 4096;

/// The shortest value that is treated as a secret.
const MIN_SECRET: usize = 8;

/// Judges and runs commands on this machine.
pub(super) struct Bench {
    pub(super) ground: Ground,
    pub(super) exec: Exec,
    state_dir: PathBuf,
    skill_bins: SkillBins,
    pub(super) prepared: Prepared,
}

/// What the rules say about programs of skills.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SkillPrograms {
    /// They run unasked.
    Run,
    /// They are like any other.
    AreAsked,
}

/// Why something is not done, as the gateway is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failed {
    pub(super) code: &'static str,
    pub(super) message: String,
}

impl Failed {
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self { code: "INVALID_REQUEST", message: message.into() }
    }

    pub(super) fn unavailable(message: impl Into<String>) -> Self {
        Self { code: "UNAVAILABLE", message: message.into() }
    }
}

impl From<Refusal> for Failed {
    fn from(refusal: Refusal) -> Self {
        Self::unavailable(refusal.message)
    }
}

/// A run that does not happen.
enum NotRun {
    /// It may not: the reason for events, and what is answered.
    Denied { reason: &'static str, message: String },
    /// It could not be found out, or nobody waits for it any more.
    Failed(Failed),
}

impl NotRun {
    fn off_plan(why: &str) -> Self {
        Self::Denied { reason: "execution-plan-miss", message: format!("SYSTEM_RUN_DENIED: {why}") }
    }

    fn cancelled() -> Self {
        Self::Failed(Failed::unavailable("cancelled before it began"))
    }
}

impl From<Failed> for NotRun {
    fn from(failed: Failed) -> Self {
        Self::Failed(failed)
    }
}

impl Bench {
    pub(super) fn new(options: &Options) -> Result<Self, NodeHostError> {
        let context = Context::load(&options.ground).map_err(|failure| NodeHostError::Host(failure.sentence()))?;
        let mut exec = exec(&context, Arc::new(Nobody)).map_err(|failure| NodeHostError::Host(failure.sentence()))?;
        exec.set_helper(options.helper.clone());
        Ok(Self {
            ground: options.ground.clone(),
            exec,
            state_dir: context.locations.state_dir,
            skill_bins: SkillBins::default(),
            prepared: Prepared::default(),
        })
    }

    pub(super) fn state_dir(&self) -> &Path {
        &self.state_dir
    }

    /// The approvals of this machine.
    pub(super) fn approvals(&self) -> Result<Value, Failed> {
        file::get(&self.exec.approvals).map_err(|error| Failed::unavailable(error.to_string()))
    }

    /// Replaces them.
    pub(super) fn set_approvals(&self, params: &Value) -> Result<Value, Failed> {
        file::set(&self.exec.approvals, params).map_err(|error| Failed::invalid(format!("INVALID_REQUEST: {error}")))
    }

    /// Where programs are.
    pub(super) fn which(&self, params: &Value) -> Result<Value, Failed> {
        let Value::Array(names) = &params["bins"] else {
            return Err(Failed::invalid("INVALID_REQUEST: bins required"));
        };
        let disk = Disk::new(self.path(), Path::new("/"));
        let names = names.iter().filter_map(Value::as_str).map(str::trim).take(MAX_BINS);
        let bare = names.filter(|name| !name.is_empty() && !name.contains(['/', '\\', '\0']));
        let found: Map<String, Value> =
            bare.filter_map(|name| Some((name.to_owned(), json!(disk.program(name)?.path)))).collect();
        Ok(json!({"bins": found}))
    }

    /// What a run of `order` is judged and run with.
    pub(super) async fn setting(self: &Arc<Self>, order: &Order, link: &Link) -> Result<Setting, Failed> {
        let (bench, asked) = (Arc::clone(self), order.clone());
        let (mut setting, programs) = blocking(move || bench.own_setting(&asked)).await??;
        if programs == SkillPrograms::Run {
            setting.skill_bins = self.skill_bins.get(link, self.path(), &setting.workspace).await?;
        }
        Ok(setting)
    }

    /// The same as far as this machine knows, and what of the rest has to be asked for. Looks at the disk.
    fn own_setting(&self, order: &Order) -> Result<(Setting, SkillPrograms), Failed> {
        let failed = |failure: prowess_host::Failure| Failed::unavailable(failure.sentence());
        let context = Context::load(&self.ground).map_err(failed)?;
        let folder = workspace(&context).map_err(failed)?;
        let mut setting = base(&context, folder, order.session.as_deref().unwrap_or("node"));
        setting.agent = order.agent.clone().unwrap_or_else(|| "main".to_owned());
        // It runs here, whatever this machine does with commands of its own agents.
        setting.settings.host = None;
        if !setting.host_env.iter().any(|(name, value)| name == "PATH" && !value.to_string_lossy().trim().is_empty()) {
            setting.host_env.push(("PATH".to_owned(), DEFAULT_PATH.into()));
        }
        if !order.skill_env.is_empty() {
            let vars = order.skill_env.iter().map(|(name, value)| (name.clone(), value.into())).collect();
            setting.skills.push(SkillShare { vars, ..SkillShare::default() });
        }
        // Without approvals that can be read nothing runs, so nothing has to be asked for it.
        let approvals = self.exec.approvals.load().map_err(|error| Failed::unavailable(error.to_string()))?;
        let settings = &mut setting.settings;
        let overrides = Overrides {
            security: Some(settings.security.unwrap_or(Security::Allowlist)),
            ask: Some(settings.ask.unwrap_or(Ask::OnMiss)),
            ..Overrides::default()
        };
        let posture = approvals.resolve(Some(&setting.agent), overrides).posture;
        // Where both are silent, the sandbox decides. Where the configuration is silent the file says it all; where both
        // speak the stricter counts.
        let is_unset = settings.security.is_none() && settings.ask.is_none();
        if !is_unset || !approvals.is_silent(Some(&setting.agent)) {
            settings.security.get_or_insert(posture.security);
            settings.ask.get_or_insert(posture.ask);
        }
        let programs = if posture.auto_allow_skills { SkillPrograms::Run } else { SkillPrograms::AreAsked };
        Ok((setting, programs))
    }

    /// Runs `order`, if it may run, until it ends or somebody calls it off.
    pub(super) async fn run(
        self: &Arc<Self>,
        order: &Order,
        link: &Link,
        cancel: &CancellationToken,
    ) -> Result<Value, Failed> {
        let about = json!({
            "sessionKey": order.session.as_deref().unwrap_or("node"),
            "runId": order.id,
            "host": "node",
            "command": concealed(order, &order.run.display),
        });
        let (handle, plan) = match self.start(order, link, cancel).await {
            Ok(started) => started,
            Err(NotRun::Denied { reason, message }) => {
                let mut event = about;
                event["reason"] = reason.into();
                link.tell("exec.denied", &event);
                return Err(Failed::unavailable(message));
            }
            Err(NotRun::Failed(failed)) => return Err(failed),
        };
        let outcome = tokio::select! {
            outcome = handle.job().wait() => outcome,
            () = self.stream(order, &handle, &about, link) => handle.job().wait().await,
            () = cancel.cancelled() => {
                handle.job().kill();
                handle.job().wait().await
            }
        };
        let result = result(&outcome, &plan);
        let mut event = about;
        for name in ["exitCode", "timedOut", "success"] {
            if !result[name].is_null() {
                event[name] = result[name].clone();
            }
        }
        let said = concealed(order, result["stdout"].as_str().unwrap_or_default());
        event["output"] = last_chars(&said, EVENT_OUTPUT).into();
        link.tell("exec.finished", &event);
        Ok(result)
    }

    /// Starts `order`, unless it may not run or is called off before.
    async fn start(
        self: &Arc<Self>,
        order: &Order,
        link: &Link,
        cancel: &CancellationToken,
    ) -> Result<(Handle, Plan), NotRun> {
        if order.wants_screen {
            let message = "PERMISSION_MISSING: screenRecording".to_owned();
            return Err(NotRun::Denied { reason: "permission:screenRecording", message });
        }
        let setting = cancel.run_until_cancelled(self.setting(order, link)).await.ok_or_else(NotRun::cancelled)??;
        let (bench, order, cancel) = (Arc::clone(self), order.clone(), cancel.clone());
        let runtime = tokio::runtime::Handle::current();
        let start = move || {
            let call = order.call();
            bench.check(&order, &call, &setting)?;
            if cancel.is_cancelled() {
                return Err(NotRun::cancelled());
            }
            let seal = order.seal.clone().or_else(|| bench.prepared.get(&request(&order)));
            let vouched = Vouched { answer: order.answer, seal: seal.filter(|_| order.answer.is_some()) };
            let terms = Terms { approver: &vouched, background: Background::NotAllowed };
            let started = runtime.block_on(bench.exec.start_on(&call, &setting, terms));
            started.map_err(|answer| NotRun::off_plan(&answer.text()))
        };
        blocking(start).await.map_err(Failed::from)?
    }

    /// Whether `order` may run by the rules and what was approved. Looks at the disk.
    fn check(&self, order: &Order, call: &ExecCall, setting: &Setting) -> Result<(), NotRun> {
        let case = self.exec.judge(call, setting).map_err(|answer| NotRun::off_plan(&answer.text()))?;
        denied(&case.judgment, order).map_or(Ok(()), Err)
    }

    /// Tells the newest of what a run says, as long as there is some, and then nothing for ever.
    async fn stream(&self, order: &Order, handle: &Handle, about: &Value, link: &Link) {
        let mut state = handle.job().watch();
        while state.changed().await.is_ok() {
            if matches!(*state.borrow_and_update(), State::Finished(_)) {
                return;
            }
            let mut event = about.clone();
            event["output"] = concealed(order, &handle.job().tail().await).into();
            link.tell("exec.output", &event);
            tokio::time::sleep(UPDATE_EVERY).await;
        }
    }

    fn path(&self) -> &str {
        let path = self.ground.env.get("PATH").filter(|path| !path.trim().is_empty());
        path.unwrap_or(DEFAULT_PATH)
    }
}

/// `text` without the values that skills brought.
fn concealed(order: &Order, text: &str) -> String {
    let secrets = order.skill_env.iter().map(|(_, value)| value).filter(|value| value.len() >= MIN_SECRET);
    secrets.fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), "[secret]"))
}

/// Under which name a prepared order is remembered.
pub(super) fn request(order: &Order) -> String {
    fingerprint(&json!([order.text, order.cwd, order.agent, order.session]).to_string())
}

/// Why an order does not run by the rules and what was approved.
fn denied(judgment: &Judgment, order: &Order) -> Option<NotRun> {
    let refusal = match judgment.verdict() {
        Verdict::Allow => return None,
        Verdict::Ask if order.answer.is_some() => return None,
        Verdict::Ask => NodeRefusal::ApprovalRequired,
        Verdict::Deny => {
            let last = judgment.objections().iter().find(|objection| objection.is_final());
            match last {
                Some(Objection::Off) => NodeRefusal::Disabled,
                Some(objection) => return Some(NotRun::off_plan(&objection.to_string())),
                None => NodeRefusal::Miss,
            }
        }
    };
    Some(NotRun::Denied { reason: refusal.event_reason(), message: refusal.to_string() })
}

fn result(outcome: &Outcome, plan: &Plan) -> Value {
    let (mut text, is_cut) = bounded(outcome.output.text());
    if !plan.warnings.is_empty() {
        text = format!("{}\n\n{text}", plan.warnings.join("\n"));
    }
    let timed_out = outcome.exit == Exit::TimedOut;
    let error = match &outcome.exit {
        Exit::Code(_) => None,
        Exit::Signal(signal) => Some(format!("killed by signal {signal}")),
        Exit::TimedOut => Some("timed out".to_owned()),
        Exit::Killed => Some("cancelled".to_owned()),
    };
    let mut result = json!({
        "timedOut": timed_out,
        "success": outcome.exit == Exit::Code(0),
        "stdout": text,
        "stderr": "",
        "error": error,
    });
    if let (Exit::Code(_), Some(code)) = (&outcome.exit, outcome.code) {
        result["exitCode"] = code.into();
    }
    if is_cut || outcome.output.dropped_bytes > 0 {
        result["truncated"] = true.into();
    }
    result
}

/// As much of an output as is sent, and whether something is missing.
fn bounded(mut text: String) -> (String, bool) {
    const MARK: &str = "\n... (truncated)";
    if text.len() <= MAX_OUTPUT {
        return (text, false);
    }
    let end = (0..=MAX_OUTPUT - MARK.len()).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    text.truncate(end);
    text.push_str(MARK);
    (text, true)
}

fn last_chars(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    let end: String = text.chars().skip(count - most).collect();
    format!("... (truncated) {end}")
}

#[cfg(test)]
mod tests {
    use super::{MAX_OUTPUT, bounded, last_chars};

    #[test]
    fn long_outputs_are_cut_and_say_so() {
        assert_eq!(bounded("short".to_owned()), ("short".to_owned(), false));
        let (text, is_cut) = bounded("ä".repeat(MAX_OUTPUT));
        assert!(is_cut && text.len() <= MAX_OUTPUT && text.ends_with("\n... (truncated)"));
        assert_eq!(last_chars("abc", 2), "... (truncated) bc");
    }
}
