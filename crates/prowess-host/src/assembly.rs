//! Assembly: what is an agent made of, as the configuration says?

use std::sync::Arc;
use std::time::Duration;

use prowess_agent::Agent;
use prowess_agent::agent::{Limits, PromptSettings};
use prowess_agent::embedded::{Act, Embedded, Forecast, Foreseen};
use prowess_agent::model::{Model, Thinking};
use prowess_agent::prompt::{PromptInputs, Runtime, SystemPrompt, assemble, bootstrap};
use prowess_agent::provider::{Clients, Endpoint, Remote};
use prowess_agent::scripted::Scripted;
use prowess_agent::session::{SessionKey, Sessions};
use prowess_agent::settings::{AuthProfiles, Choice, Configured, Settings, choose};
use prowess_agent::skills::SkillStore;
use prowess_agent::tool::{Tool, ToolSet, ToolSettings, standard};
use prowess_exec::approver::{Approver, Nobody};
use prowess_exec::exec_tool::ExecCall;
use prowess_exec::{Case, Exec, Setting, network};
use prowess_policy::env::RunEnv;
use prowess_policy::{Judgment, ProgramPlace, Verdict, is_read_only};
use prowess_skills::Mode;

use crate::context::{Context, View};
use crate::conversation::{skills, workspace};
use crate::failure::Failure;
use crate::setting::{base, exec};

/// Models that are asked when another fails.
type Fallbacks = Vec<Arc<dyn Model>>;

/// What an agent shares with others, or has already.
#[derive(Clone)]
pub struct Parts {
    /// Runs its commands.
    pub exec: Arc<Exec>,
    /// Where its newest skills are.
    pub skills: SkillStore,
    /// Who is asked.
    pub approver: Arc<dyn Approver>,
    /// Over which wires its models are asked.
    pub clients: Clients,
    /// What it may call besides the tools that every agent has.
    pub tools: Vec<Arc<dyn Tool>>,
    /// What is put around each tool that every agent has.
    pub around: Option<Around>,
    /// Where its conversations are, if somebody keeps that open for several agents.
    pub sessions: Option<Sessions>,
}

/// Puts something around a tool, or leaves it as it is.
pub type Around = Arc<dyn Fn(Arc<dyn Tool>) -> Arc<dyn Tool> + Send + Sync>;

/// What was asked for beyond the configuration.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Wanted {
    /// The session that its commands belong to.
    pub session: String,
    /// A model by name.
    pub model: Option<String>,
    /// How much the model should think.
    pub thinking: Option<Thinking>,
    /// How many seconds a turn may take; zero is as long as it wants.
    pub seconds: Option<u64>,
    /// What the embedded planner may do.
    pub act: Act,
    /// Whether commands that only read run unasked.
    pub reads: Reads,
    /// What the model is told besides.
    pub extra: Option<String>,
}

/// What happens to a command that only reads and that no rule covers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reads {
    /// Somebody is asked.
    #[default]
    Asked,
    /// It runs.
    Run,
}

/// The agent of `view`, not yet in use.
pub fn agent(view: &View, parts: &Parts, wanted: &Wanted) -> Result<Agent, Failure> {
    let context = &view.context;
    let settings = model_settings(context);
    let hint = "prowess models lists them";
    let choice = choose(&settings, wanted.model.as_deref()).map_err(|error| Failure::input(error).hint(hint))?;
    let setting = base(context, workspace(context)?, &wanted.session);
    let (model, fallbacks) = models(choice, context, parts, &setting, wanted)?;
    let runtime = runtime(context, &name(&*model));
    let thinking = wanted.thinking.or(settings.thinking).unwrap_or_default();
    let limits = Limits { thinking, time: time(context, wanted), ..Limits::default() };
    let agent = Agent::named(context.agent.id.as_str(), model, &setting.workspace, &context.locations.state_dir)
        .fallbacks(fallbacks)
        .skills(parts.skills.clone())
        .tools(tools(context, &parts.exec, setting, parts.around.as_ref(), &parts.tools))
        .home(context.user_home())
        .approver(Arc::clone(&parts.approver))
        .runner(parts.exec.runner.clone())
        .prompt(PromptSettings {
            runtime,
            limits: shares(context),
            extra: wanted.extra.clone(),
            ..PromptSettings::default()
        })
        .limits(limits);
    Ok(match &parts.sessions {
        Some(sessions) => agent.with_sessions(sessions.clone()),
        None => agent,
    })
}

/// What a model is called, with its provider.
#[must_use]
pub fn name(model: &dyn Model) -> String {
    let about = model.about();
    format!("{}/{}", about.provider, about.model)
}

/// Where the conversations of the agent are.
#[must_use]
pub fn sessions(context: &Context) -> Sessions {
    Sessions::new(&context.locations.state_dir, context.agent.id.as_str())
}

/// The system prompt that a new conversation would begin with. Nothing is made or opened for it.
pub fn system_prompt(view: &View, mode: Mode) -> Result<SystemPrompt, Failure> {
    let context = &view.context;
    let exec = Arc::new(exec(context, Arc::new(Nobody))?);
    let setting = base(context, context.workspace.clone(), "prompt");
    let model = match choose(&model_settings(context), None).map_err(Failure::input)? {
        Choice::Wire { first, .. } => first.id(),
        Choice::Embedded | Choice::Scripted(_) => "prowess/embedded".to_owned(),
    };
    Ok(assemble(&PromptInputs {
        mode,
        tools: &tools(context, &exec, setting, None, &[]).specs(),
        skills: &skills(view).snapshot.prompt().text,
        workspace: &context.workspace,
        files: &bootstrap::load(&context.workspace, &bootstrap::NAMES),
        limits: shares(context),
        runtime: &runtime(context, &model),
        extra: None,
    }))
}

/// Which models there are for the agent.
#[must_use]
pub fn model_settings(context: &Context) -> Settings {
    let env = |name: &str| context.config.env().get(name).map(str::to_owned);
    let agent = context.agent.id.as_str();
    let profiles = AuthProfiles::load(&context.locations.state_dir, agent);
    Settings::read_with(context.config.tree(), Some(agent), &profiles, env)
}

/// Who answers, and who answers in their place.
fn models(
    choice: Choice,
    context: &Context,
    parts: &Parts,
    setting: &Setting,
    wanted: &Wanted,
) -> Result<(Arc<dyn Model>, Fallbacks), Failure> {
    let remote = |model: &Configured| -> Result<Arc<dyn Model>, Failure> {
        Ok(Arc::new(Remote::sharing(Endpoint::from(model), &parts.clients).map_err(Failure::input)?))
    };
    match choice {
        Choice::Embedded => {
            let planner = Embedded::new(parts.skills.clone(), wanted.act).at_home(context.user_home());
            let forecast = forecast(parts, setting.clone(), wanted.reads);
            Ok((Arc::new(planner.preferring(forecast)), Vec::new()))
        }
        Choice::Scripted(path) => Ok((Arc::new(Scripted::load(&path).map_err(Failure::input)?), Vec::new())),
        Choice::Wire { first, fallbacks } => {
            Ok((remote(&first)?, fallbacks.iter().map(remote).collect::<Result<_, _>>()?))
        }
    }
}

/// Says what would become of commands here.
fn forecast(parts: &Parts, setting: Setting, reads: Reads) -> Forecast {
    let (exec, skills) = (Arc::clone(&parts.exec), parts.skills.clone());
    Forecast::new(move |command, skill| {
        let call = ExecCall { command: command.to_owned(), ..ExecCall::default() };
        let mut setting = setting.clone();
        // As when the skill is in use; one that brings nothing is found out when it is.
        if let Some(skill) = skill {
            setting.skills.extend(skills.current().share(skill));
            setting.readable.push(skill.dir().to_owned());
        }
        let hidden = network::blind(command, &setting).or_else(|| network::out_of_sight(command, &setting));
        if let Some(why) = hidden {
            return Foreseen::Blind(why);
        }
        let Ok(Case { judgment, env, .. }) = exec.judge(&call, &setting) else { return Foreseen::Refused };
        if let Some(program) = missing(&judgment, &env) {
            return Foreseen::Missing(program);
        }
        match judgment.verdict() {
            Verdict::Allow => Foreseen::Runs,
            Verdict::Ask if reads == Reads::Run && is_read_only(&judgment) => Foreseen::Runs,
            Verdict::Ask => Foreseen::Asks(judgment.lacks().phrases()),
            Verdict::Deny => Foreseen::Refused,
        }
    })
}

/// The program that a command begins with, if it is not installed. The shell's own commands are programs as well, or
/// change nothing but the shell.
fn missing(judgment: &Judgment, env: &RunEnv) -> Option<String> {
    let name = judgment.segments().first()?.argv.first()?;
    // A container has its own programs.
    let runs_here = judgment.request().place == ProgramPlace::Here;
    let is_there =
        name.contains('/') || SHELL_ONLY.contains(&name.as_str()) || env.path().any(|dir| dir.join(name).exists());
    (runs_here && !is_there).then(|| name.clone())
}

/// Commands that only the shell has.
const SHELL_ONLY: [&str; 12] =
    [".", ":", "cd", "eval", "exec", "export", "read", "set", "source", "trap", "unset", "wait"];

/// How long a turn may take: as was asked for, or the configuration says; zero is as long as it wants.
fn time(context: &Context, wanted: &Wanted) -> Option<Duration> {
    let written = &context.config.tree()["agents"]["defaults"]["timeoutSeconds"];
    match wanted.seconds.or_else(|| written.as_u64()) {
        Some(0) => None,
        Some(seconds) => Some(Duration::from_secs(seconds)),
        None => Limits::default().time,
    }
}

/// The tools of the agent, as far as it may have them.
fn tools(
    context: &Context,
    exec: &Arc<Exec>,
    setting: Setting,
    around: Option<&Around>,
    more: &[Arc<dyn Tool>],
) -> ToolSet {
    let settings = tool_settings(context, &setting.session);
    let standard = standard(Arc::clone(exec), setting, &settings).into_iter();
    let standard = standard.map(|tool| around.map_or_else(|| Arc::clone(&tool), |around| around(Arc::clone(&tool))));
    ToolSet::new(standard.chain(more.iter().cloned()).collect()).allowed_by(&settings)
}

/// Which tools the agent may have in that session: a sub-agent may be given fewer.
#[must_use]
pub fn tool_settings(context: &Context, session: &str) -> ToolSettings {
    let common = &context.config.tree()["tools"];
    let settings = ToolSettings::read(common, &context.agent.tools);
    match SessionKey::parse(session) {
        Some(key) if key.is_subagent() => settings.narrowed(&common["subagents"]["tools"]),
        _ => settings,
    }
}

/// How much of the workspace files goes into the prompt.
fn shares(context: &Context) -> bootstrap::Limits {
    let written = |name: &str| {
        let value = context.config.tree()["agents"]["defaults"][name].as_u64();
        value.and_then(|limit| usize::try_from(limit).ok()).filter(|limit| *limit > 0)
    };
    let usual = bootstrap::Limits::default();
    bootstrap::Limits {
        per_file: written("bootstrapMaxChars").unwrap_or(usual.per_file),
        total: written("bootstrapTotalMaxChars").unwrap_or(usual.total),
    }
}

/// What a model is told about where it works.
fn runtime(context: &Context, model: &str) -> Runtime {
    Runtime {
        agent: context.agent.id.to_string(),
        os: format!("{} ({})", std::env::consts::OS, std::env::consts::ARCH),
        model: model.to_owned(),
        ..Runtime::default()
    }
}
