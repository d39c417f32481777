//! A conversation with the configured model: what `run` and `chat` talk to.

use std::sync::Arc;
use std::time::Duration;

use prowess_agent::agent::{Agent, Limits, PromptSettings};
use prowess_agent::embedded::{Act, Embedded, MayRun};
use prowess_agent::event::{End, Event, Events};
use prowess_agent::frame::Frames;
use prowess_agent::message::Usage;
use prowess_agent::model::Model;
use prowess_agent::prompt::{PromptInputs, Runtime, SystemPrompt, assemble, bootstrap};
use prowess_agent::provider::{Endpoint, Remote};
use prowess_agent::scripted::Scripted;
use prowess_agent::session::{SessionKey, Sessions};
use prowess_agent::settings::{Choice, Configured, Settings, choose};
use prowess_agent::skills::{SkillSet, SkillStore};
use prowess_agent::tool::{ToolSet, ToolSettings, standard};
use prowess_agent::{Conversation, Outcome, Run};
use prowess_exec::approver::{Approver, Nobody, ReadOnly};
use prowess_exec::exec_tool::ExecCall;
use prowess_exec::{Exec, Setting};
use prowess_policy::{Verdict, is_read_only};
use prowess_skills::Mode;
use tokio_util::sync::CancellationToken;

use crate::cli::{Globals, TalkArgs};
use crate::context::{Context, View};
use crate::failure::Failure;
use crate::partner::Partner;
use crate::sessions::stored::spent;
use crate::show::{Printer, Unspun};
use crate::{conversation, exec};

/// Models that are asked when another fails.
type Fallbacks = Vec<Arc<dyn Model>>;

/// A conversation that is open, and all that another model would need to go on with it.
pub(crate) struct Talk {
    globals: Globals,
    args: TalkArgs,
    approver: Arc<dyn Approver>,
    /// One for as long as the program runs: what runs in the background outlives a change of the model.
    exec: Arc<Exec>,
    skills: SkillStore,
    printer: Printer,
    /// None only while it is being replaced.
    conversation: Option<Conversation>,
    model: String,
    /// The model that was asked for by name, if one was; else the configuration says which.
    asked: Option<String>,
    /// The name of the next turn.
    run: String,
    outcome: Option<Outcome>,
    /// Whether the skills are those of this moment.
    is_fresh: bool,
}

impl Talk {
    /// Opens it as the command line says.
    pub(crate) fn open(globals: &Globals, args: &TalkArgs, printer: &Printer) -> Result<Self, Failure> {
        let person: Arc<dyn Approver> = Arc::new(Unspun::new(exec::person(), printer));
        let approver = if args.yes_read_only { Arc::new(ReadOnly(person)) } else { person };
        let view = View::load(Context::load(globals)?, None)?;
        check_workspace(globals, &view.context)?;
        let skills = SkillStore::new(conversation::skills(&view));
        let exec = Arc::new(exec::exec(&view.context, Arc::clone(&approver))?);
        let mut talk = Self {
            globals: globals.clone(),
            args: args.clone(),
            approver,
            exec,
            skills,
            printer: printer.clone(),
            conversation: None,
            model: String::new(),
            asked: None,
            run: uuid::Uuid::new_v4().to_string(),
            outcome: None,
            is_fresh: true,
        };
        if args.new {
            talk.reset(&view.context)?;
        }
        talk.connect(&view, args.model.clone())?;
        Ok(talk)
    }

    /// Numbers the events of the next turn.
    pub(crate) fn frames(&self) -> Frames {
        let key = self.conversation.as_ref().map(|conversation| conversation.key().to_string());
        Frames::new(&self.run, key.unwrap_or_default())
    }

    /// What the last turn led to.
    pub(crate) fn outcome(&self) -> Option<&Outcome> {
        self.outcome.as_ref()
    }

    fn reset(&self, context: &Context) -> Result<(), Failure> {
        let agent = context.agent.id.as_str();
        let begun = sessions(context).reset(&SessionKey::meant(&self.args.session, agent)).map_err(Failure::input)?;
        self.notice(begun.mended.as_slice());
        Ok(())
    }

    /// Tells the person, whatever the output is for.
    fn notice(&self, notices: &[String]) {
        for notice in notices {
            self.printer.show(&Event::Notice(notice.clone()));
        }
    }

    /// Opens the conversation with the model of that name, or the configured one.
    fn connect(&mut self, view: &View, asked: Option<String>) -> Result<(), Failure> {
        let context = &view.context;
        let env = |name: &str| context.config.env().get(name).map(str::to_owned);
        let settings = Settings::read(context.config.tree(), Some(context.agent.id.as_str()), env);
        let hint = "prowess models shows what there is";
        let choice = choose(&settings, asked.as_deref()).map_err(|error| Failure::input(error).hint(hint))?;
        let setting = conversation::setting(view, &self.args.session)?;
        let (model, fallbacks) = self.models(choice, context, &setting)?;
        let about = model.about();
        let name = format!("{}/{}", about.provider, about.model);
        let tools = tools(context, &self.exec, setting.clone());
        let thinking = self.args.thinking.or(settings.thinking).unwrap_or_default();
        let limits = Limits { thinking, time: self.time(context), ..Limits::default() };
        let runtime = runtime(context, &name);
        let agent = Agent::named(context.agent.id.as_str(), model, &setting.workspace, &context.locations.state_dir)
            .fallbacks(fallbacks)
            .skills(self.skills.clone())
            .tools(tools)
            .home(context.user_home())
            .approver(Arc::clone(&self.approver))
            .runner(self.exec.runner.clone())
            .prompt(PromptSettings { runtime, limits: shares(context), ..PromptSettings::default() })
            .limits(limits);
        // The old one has to let go of the transcript before it can be opened again.
        let old = self.conversation.take().map(|old| old.announced().clone());
        let conversation = Arc::new(agent).open(&self.args.session).map_err(Failure::input)?;
        let conversation = conversation.having_announced(old.unwrap_or_default());
        self.notice(conversation.mended());
        self.conversation = Some(conversation);
        self.model = name;
        self.asked = asked;
        Ok(())
    }

    /// Who answers, and who answers in their place.
    fn models(
        &self,
        choice: Choice,
        context: &Context,
        setting: &Setting,
    ) -> Result<(Arc<dyn Model>, Fallbacks), Failure> {
        let remote = |model: &Configured| -> Result<Arc<dyn Model>, Failure> {
            Ok(Arc::new(Remote::new(Endpoint::from(model)).map_err(Failure::input)?))
        };
        match choice {
            Choice::Embedded => {
                let act = if self.args.act { Act::Run } else { Act::Show };
                let planner = Embedded::new(self.skills.clone(), act).at_home(context.user_home());
                Ok((Arc::new(planner.preferring(self.may_run(setting.clone()))), Vec::new()))
            }
            Choice::Scripted(path) => Ok((Arc::new(Scripted::load(&path).map_err(Failure::input)?), Vec::new())),
            Choice::Wire { first, fallbacks } => {
                Ok((remote(&first)?, fallbacks.iter().map(remote).collect::<Result<_, _>>()?))
            }
        }
    }

    /// Says which commands would run here without a question.
    fn may_run(&self, setting: Setting) -> MayRun {
        let (exec, reads) = (Arc::clone(&self.exec), self.args.yes_read_only);
        MayRun::new(move |command| {
            let call = ExecCall { command: command.to_owned(), ..ExecCall::default() };
            let Ok(case) = exec.judge(&call, &setting) else { return false };
            match case.judgment.verdict() {
                Verdict::Allow => true,
                Verdict::Ask => reads && is_read_only(&case.judgment),
                Verdict::Deny => false,
            }
        })
    }

    /// How long a turn may take: as the command line says, or the configuration; zero is as long as it wants.
    fn time(&self, context: &Context) -> Option<Duration> {
        let written = &context.config.tree()["agents"]["defaults"]["timeoutSeconds"];
        match self.args.timeout.or_else(|| written.as_u64()) {
            Some(0) => None,
            Some(seconds) => Some(Duration::from_secs(seconds)),
            None => Limits::default().time,
        }
    }

    /// Looks for skills that were added or changed since the last turn, where the operator wants that noticed.
    fn look_again(&mut self) {
        if std::mem::take(&mut self.is_fresh) {
            return;
        }
        // What cannot be read now leaves the old ones in place.
        if let Ok(view) = self.view()
            && view.context.config.tree()["skills"]["load"]["watch"] != false
        {
            self.skills.replace(conversation::skills(&view));
        }
    }

    fn view(&self) -> Result<View, Failure> {
        View::load(Context::load(&self.globals)?, None)
    }
}

impl Partner for Talk {
    async fn turn(&mut self, message: &str, events: Events, stop: CancellationToken) -> End {
        self.look_again();
        let Some(conversation) = &mut self.conversation else {
            return End::Failed("the conversation could not be opened again; leave and come back".to_owned());
        };
        let next = uuid::Uuid::new_v4().to_string();
        let run = Run { id: std::mem::replace(&mut self.run, next), cancel: stop, events };
        self.outcome = None;
        match conversation.say(message, &run).await {
            Ok(outcome) => self.outcome.insert(outcome).end.clone(),
            Err(error) => End::Failed(error.to_string()),
        }
    }

    fn renew(&mut self) -> Result<(), Failure> {
        let view = self.view()?;
        self.reset(&view.context)?;
        self.connect(&view, self.asked.clone())
    }

    fn model(&self) -> String {
        self.model.clone()
    }

    fn choose(&mut self, model: &str) -> Result<(), Failure> {
        let view = self.view()?;
        self.connect(&view, Some(model.to_owned()))
    }

    fn skills(&self) -> Arc<SkillSet> {
        self.skills.current()
    }

    fn usage(&self) -> Usage {
        // What is in memory has forgotten what was summed up; the transcript has not.
        let key = self.conversation.as_ref().map(|conversation| conversation.key().to_string());
        let stored = key.zip(Context::load(&self.globals).ok());
        let stored = stored.and_then(|(key, context)| sessions(&context).read(&key).ok());
        stored.map_or_else(Usage::default, |stored| spent(&stored.entries))
    }
}

/// A folder that was named has to be there: making it would hide a slip of the pen.
fn check_workspace(globals: &Globals, context: &Context) -> Result<(), Failure> {
    if globals.workspace.is_none() || context.workspace.is_dir() {
        return Ok(());
    }
    let path = context.workspace.display();
    Err(Failure::input(format!("the workspace {path} is not a folder that exists"))
        .hint("name one that does; prowess setup --workspace makes it"))
}

fn sessions(context: &Context) -> Sessions {
    Sessions::new(&context.locations.state_dir, context.agent.id.as_str())
}

/// The tools of the agent, as far as it may have them.
fn tools(context: &Context, exec: &Arc<Exec>, setting: Setting) -> ToolSet {
    let settings = ToolSettings::read(&context.config.tree()["tools"], &context.agent.tools);
    ToolSet::new(standard(Arc::clone(exec), setting, &settings)).allowed_by(&settings)
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

/// The system prompt that a new conversation would begin with. Nothing is made or opened for it.
pub(crate) fn system_prompt(globals: &Globals, mode: Mode) -> Result<SystemPrompt, Failure> {
    let view = View::load(Context::load(globals)?, None)?;
    let context = &view.context;
    check_workspace(globals, context)?;
    let exec = Arc::new(exec::exec(context, Arc::new(Nobody))?);
    let setting = exec::base(context, context.workspace.clone(), "prompt");
    let env = |name: &str| context.config.env().get(name).map(str::to_owned);
    let settings = Settings::read(context.config.tree(), Some(context.agent.id.as_str()), env);
    let model = match choose(&settings, None).map_err(Failure::input)? {
        Choice::Wire { first, .. } => first.id(),
        Choice::Embedded | Choice::Scripted(_) => "prowess/embedded".to_owned(),
    };
    Ok(assemble(&PromptInputs {
        mode,
        tools: &tools(context, &exec, setting).specs(),
        skills: &conversation::skills(&view).snapshot.prompt().text,
        workspace: &context.workspace,
        files: &bootstrap::load(&context.workspace, &bootstrap::NAMES),
        limits: shares(context),
        runtime: &runtime(context, &model),
        extra: None,
    }))
}
