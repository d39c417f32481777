//! A conversation with the configured model: what `run` and `chat` talk to.

use std::sync::Arc;

use prowess_agent::embedded::Act;
use prowess_agent::event::{End, Event, Events};
use prowess_agent::frame::Frames;
use prowess_agent::image::Image;
use prowess_agent::ledger::spent;
use prowess_agent::message::Usage;
use prowess_agent::prompt::SystemPrompt;
use prowess_agent::provider::Clients;
use prowess_agent::session::{OpenError, SessionKey, Sessions};
use prowess_agent::{Conversation, Delivery, Input, Outcome, Run};
use prowess_exec::approver::{Approver, ReadOnly};
use prowess_host::{Context, Failure, Live, Parts, Reads, View, Wanted, Watching, agent, exec, name, sessions};
use prowess_skills::Mode;
use tokio_util::sync::CancellationToken;

use crate::cli::{Globals, TalkArgs, WhichSession, fresh_session};
use crate::exec::person;
use crate::partner::{Offer, Partner};
use crate::show::{Printer, Unspun};

/// A conversation that is open, and all that another model would need to go on with it.
pub(crate) struct Talk {
    globals: Globals,
    /// Its skills, which are looked at when a turn begins and not in between.
    live: Arc<Live>,
    /// The same for as long as the program runs: what runs in the background outlives a change of the model.
    parts: Parts,
    wanted: Wanted,
    printer: Printer,
    /// None only while it is being replaced.
    conversation: Option<Conversation>,
    model: String,
    /// The model that was asked for by name, if one was; else the configuration says which.
    asked: Option<String>,
    /// The name of the next turn.
    run: String,
    outcome: Option<Outcome>,
    /// What the next message shows.
    images: Vec<Image>,
    delivery: Delivery,
    /// Whether the skills are those of this moment.
    is_fresh: bool,
}

impl Talk {
    /// Opens it as the command line says.
    pub(crate) fn open(globals: &Globals, args: &TalkArgs, printer: &Printer) -> Result<Self, Failure> {
        let person: Arc<dyn Approver> = Arc::new(Unspun::new(person(), printer));
        let approver = if args.yes_read_only { Arc::new(ReadOnly(person)) } else { person };
        let live = Live::start(globals.ground()?, Watching::OnDemand)?;
        let view = live.view();
        check_workspace(globals, &view.context)?;
        let skills = live.skills();
        let exec = Arc::new(exec(&view.context, Arc::clone(&approver))?);
        let wanted = Wanted {
            session: session(args, &sessions(&view.context), view.context.agent.id.as_str())?,
            model: None,
            thinking: args.thinking,
            seconds: args.timeout,
            act: if args.act { Act::Run } else { Act::Show },
            reads: if args.yes_read_only { Reads::Run } else { Reads::Asked },
            extra: started_in(&view.context),
        };
        let mut talk = Self {
            globals: globals.clone(),
            live,
            parts: Parts {
                exec,
                skills,
                approver,
                clients: Clients::default(),
                tools: Vec::new(),
                around: None,
                sessions: None,
            },
            wanted,
            printer: printer.clone(),
            conversation: None,
            model: String::new(),
            asked: None,
            run: uuid::Uuid::new_v4().to_string(),
            outcome: None,
            images: Vec::new(),
            delivery: Delivery::Live,
            is_fresh: true,
        };
        if args.new {
            talk.reset(&view.context)?;
        }
        talk.connect(&view, args.model.clone())?;
        Ok(talk)
    }

    /// Shows these with the next message.
    pub(crate) fn attach(&mut self, images: Vec<Image>) {
        self.images = images;
    }

    /// From now on replies are told so.
    pub(crate) fn deliver(&mut self, delivery: Delivery) {
        self.delivery = delivery;
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
        let begun = sessions(context).reset(&SessionKey::meant(&self.wanted.session, agent)).map_err(Failure::input)?;
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
        let wanted = Wanted { model: asked.clone(), ..self.wanted.clone() };
        let agent = agent(view, &self.parts, &wanted)?;
        let name = name(&**agent.model());
        // The old one has to let go of the transcript before it can be opened again.
        let old = self.conversation.take().map(|old| old.announced().clone());
        let port =
            view.context.config.tree()["gateway"]["port"].as_u64().unwrap_or(prowess_gateway::settings::PORT.into());
        let conversation = Arc::new(agent).open(&self.wanted.session).map_err(|error| match &error {
            OpenError::Busy { .. } => Failure::input(&error)
                .hint(format!("if a gateway has it, talk to it there: add --gateway ws://127.0.0.1:{port}")),
            _ => Failure::input(&error),
        })?;
        let conversation = conversation.having_announced(old.unwrap_or_default());
        self.notice(conversation.mended());
        self.conversation = Some(conversation);
        self.model = name;
        self.asked = asked;
        Ok(())
    }

    /// Looks for skills that were added or changed since the last turn, where the operator wants that noticed.
    fn look_again(&mut self) {
        if std::mem::take(&mut self.is_fresh) {
            return;
        }
        self.live.refresh_now();
    }

    fn view(&self) -> Result<View, Failure> {
        View::load(self.globals.context()?, None)
    }
}

impl Partner for Talk {
    async fn turn(&mut self, message: &str, events: Events, stop: CancellationToken) -> End {
        self.look_again();
        let Some(conversation) = &mut self.conversation else {
            return End::Failed("the session could not be reopened; leave with /quit and start again".to_owned());
        };
        let next = uuid::Uuid::new_v4().to_string();
        let id = std::mem::replace(&mut self.run, next);
        let run = Run { id, cancel: stop, events, delivery: self.delivery };
        self.outcome = None;
        let input = match Input::from(message).with_images(std::mem::take(&mut self.images)) {
            Ok(input) => input,
            Err(error) => return End::Failed(error.to_string()),
        };
        match conversation.say(input, &run).await {
            Ok(outcome) => self.outcome.insert(outcome).end.clone(),
            Err(error) => End::Failed(error.to_string()),
        }
    }

    async fn renew(&mut self) -> Result<(), Failure> {
        let view = self.view()?;
        self.reset(&view.context)?;
        // A new conversation sees all changes, even those that older ones were not to notice.
        self.parts.skills = self.live.open().skills;
        self.connect(&view, self.asked.clone())
    }

    fn model(&self) -> String {
        self.model.clone()
    }

    async fn choose(&mut self, model: &str) -> Result<(), Failure> {
        let view = self.view()?;
        self.connect(&view, Some(model.to_owned()))
    }

    fn skills(&self) -> Offer {
        Offer::from(&*self.parts.skills.current())
    }

    async fn usage(&self) -> Usage {
        // What is in memory has forgotten what was summed up; the transcript has not.
        let key = self.conversation.as_ref().map(|conversation| conversation.key().to_string());
        let stored = key.zip(self.globals.context().ok());
        let stored = stored.and_then(|(key, context)| sessions(&context).read(&key).ok());
        stored.map_or_else(Usage::default, |stored| spent(&stored.entries))
    }
}

/// Brings what this program noted beside a large index of sessions into the index itself, where OpenClaw sees it. A gateway
/// does that by itself.
pub(crate) fn settle_index(globals: &Globals) {
    let Ok(context) = globals.context() else { return };
    if !prowess_gateway::is_running_in(&context.locations.state_dir) {
        // What could not be written is still beside the index, and every reader of ours sees it there.
        let _ = sessions(&context).settle();
    }
}

/// The session that the flags ask for. A name may also be the id of one that has a key.
fn session(args: &TalkArgs, sessions: &Sessions, agent: &str) -> Result<String, Failure> {
    match args.which() {
        WhichSession::New => Ok(fresh_session()),
        WhichSession::Last => last(sessions),
        WhichSession::Named(name) => {
            if sessions.has(&SessionKey::meant(name, agent)).map_err(Failure::input)? {
                return Ok(name.to_owned());
            }
            let by_id = sessions.read(name).ok().and_then(|stored| stored.key);
            Ok(by_id.unwrap_or_else(|| name.to_owned()))
        }
    }
}

/// The key of the session that was used last.
pub(crate) fn last(sessions: &Sessions) -> Result<String, Failure> {
    let last = sessions.keys().map_err(Failure::input)?.next();
    last.ok_or_else(|| Failure::input("there is no session yet").hint("start one with: prowess run \"MESSAGE\""))
}

/// A workspace that was named must exist: creating it would hide a typo.
fn check_workspace(globals: &Globals, context: &Context) -> Result<(), Failure> {
    if globals.workspace.is_none() || context.workspace.is_dir() {
        return Ok(());
    }
    let path = context.workspace.display();
    Err(Failure::input(format!("the workspace {path} does not exist"))
        .hint(format!("create it with: prowess setup --workspace {path}")))
}

/// What the model should know of where the user is, unless that is its own folder, or none to work in.
fn started_in(context: &Context) -> Option<String> {
    let cwd = context.locations.cwd.canonicalize().ok()?;
    let is_own = context.workspace.canonicalize().is_ok_and(|workspace| cwd.starts_with(workspace));
    // A folder that contains the home is no place to work in.
    let is_wide = context.locations.os_home.canonicalize().is_ok_and(|home| home.starts_with(&cwd));
    (!is_own && !is_wide).then(|| {
        format!(
            "The user started this conversation in {}. If the request is about files there, use that folder: as \
             `workdir` of a command, and in absolute paths of files. The user is asked once.",
            prowess_policy::shown(&cwd.to_string_lossy())
        )
    })
}

/// The system prompt that a new conversation would begin with.
pub(crate) fn system_prompt(globals: &Globals, mode: Mode) -> Result<SystemPrompt, Failure> {
    let view = View::load(globals.context()?, None)?;
    check_workspace(globals, &view.context)?;
    prowess_host::system_prompt(&view, mode)
}
