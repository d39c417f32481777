//! A stage for conversations: a model that says what a test wants it to, tools that note what was asked of them, and
//! skills made of a few lines.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::stream::{self, BoxStream, StreamExt};
use prowess_agent::agent::Limits;
use prowess_agent::event::{Event, Events};
use prowess_agent::message::{Message, StopReason, Usage};
use prowess_agent::model::{About, Api, Delta, Model, ModelError, Request};
use prowess_agent::retry::Backoff;
use prowess_agent::skills::{SkillSet, SkillStore};
use prowess_agent::tool::{Call, Order, Scope, Tool, ToolSet, ToolSpec};
use prowess_agent::{Agent, Run};
use prowess_exec::{SkillShare, ToolResult};
use prowess_skills::{
    Budget, Candidate, Catalog, Filters, Finding, Gate, RESERVED, Skill, SkillsConfig, Snapshot, Tier, World, commands,
};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

/// A reply, piece by piece.
pub(crate) type Pieces = Vec<Result<Delta, ModelError>>;

/// What a model says, by how often it was asked and what.
type Says = Box<dyn Fn(usize, &[Message]) -> Pieces + Send + Sync>;

/// A model that is asked what it would say.
pub(crate) struct Puppet {
    about: About,
    says: Says,
    /// What it was asked: the system prompt and the messages.
    pub(crate) asked: Mutex<Vec<(String, Vec<Message>)>>,
}

impl Puppet {
    pub(crate) fn new(says: impl Fn(usize, &[Message]) -> Pieces + Send + Sync + 'static) -> Arc<Self> {
        Self::with_window(200_000, says)
    }

    pub(crate) fn with_window(
        window: u64,
        says: impl Fn(usize, &[Message]) -> Pieces + Send + Sync + 'static,
    ) -> Arc<Self> {
        Self::of(("puppet", "m"), window, says)
    }

    /// One of another provider or name.
    pub(crate) fn of(
        (provider, name): (&str, &str),
        window: u64,
        says: impl Fn(usize, &[Message]) -> Pieces + Send + Sync + 'static,
    ) -> Arc<Self> {
        let about = About {
            provider: provider.to_owned(),
            model: name.to_owned(),
            api: Api::Chat,
            context_window: window,
            max_tokens: 1_000,
            takes_images: true,
        };
        Arc::new(Self { about, says: Box::new(says), asked: Mutex::default() })
    }

    pub(crate) fn times(&self) -> usize {
        self.asked.lock().expect("no panic").len()
    }

    pub(crate) fn last(&self) -> Vec<Message> {
        self.asked.lock().expect("no panic").last().expect("it was asked").1.clone()
    }
}

impl Model for Puppet {
    fn about(&self) -> &About {
        &self.about
    }

    fn stream<'a>(&'a self, request: Request<'a>) -> BoxStream<'a, Result<Delta, ModelError>> {
        let mut asked = self.asked.lock().expect("no panic");
        asked.push((request.system.to_owned(), request.messages.to_vec()));
        let pieces = (self.says)(asked.len(), request.messages);
        stream::iter(pieces).boxed()
    }
}

/// A plain answer.
pub(crate) fn says(text: &str) -> Pieces {
    vec![
        Ok(Delta::Text { block: 0, text: text.to_owned() }),
        Ok(Delta::Usage(Usage { input: 100, output: 10, ..Usage::default() })),
        Ok(Delta::Stop(StopReason::Stop)),
    ]
}

/// Calls: id, tool, arguments as JSON text.
pub(crate) fn calls(calls: &[(&str, &str, &str)]) -> Pieces {
    let mut pieces: Pieces = Vec::new();
    for (block, (id, name, json)) in (0..).zip(calls) {
        pieces.push(Ok(Delta::Call { block, id: (*id).to_owned(), name: (*name).to_owned() }));
        pieces.push(Ok(Delta::Arguments { block, json: (*json).to_owned() }));
    }
    pieces.push(Ok(Delta::Usage(Usage { input: 200, output: 20, cache_read: 7, ..Usage::default() })));
    pieces.push(Ok(Delta::Stop(StopReason::ToolUse)));
    pieces
}

/// The text of the last message.
pub(crate) fn heard(messages: &[Message]) -> String {
    match messages.last() {
        Some(Message::User(user)) => user.content.iter().filter_map(|block| block.as_text()).collect(),
        Some(Message::ToolResult(reply)) => reply.text(),
        Some(Message::Assistant(_)) | None => String::new(),
    }
}

type Carry = Box<dyn Fn(Map<String, Value>) -> Pin<Box<dyn Future<Output = ToolResult> + Send>> + Send + Sync>;

/// A tool that does what a test wants it to.
pub(crate) struct Prop {
    spec: ToolSpec,
    order: Order,
    carry: Carry,
    pub(crate) calls: Mutex<Vec<Map<String, Value>>>,
}

impl Prop {
    /// One that says at once what it was given.
    pub(crate) fn echo(name: &str) -> Arc<Self> {
        Self::new(name, Order::Beside, |arguments| async move {
            ToolResult::done(Value::Object(arguments).to_string(), Value::Null)
        })
    }

    pub(crate) fn new<F: Future<Output = ToolResult> + Send + 'static>(
        name: &str,
        order: Order,
        carry: impl Fn(Map<String, Value>) -> F + Send + Sync + 'static,
    ) -> Arc<Self> {
        let spec = ToolSpec {
            name: name.to_owned(),
            description: "A prop.".to_owned(),
            parameters: json!({"type": "object"}),
        };
        let carry: Carry = Box::new(move |arguments| Box::pin(carry(arguments)));
        Arc::new(Self { spec, order, carry, calls: Mutex::default() })
    }

    pub(crate) fn times(&self) -> usize {
        self.calls.lock().expect("no panic").len()
    }
}

impl Tool for Prop {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn order(&self) -> Order {
        self.order
    }

    fn call<'a>(
        &'a self,
        call: Call<'a>,
        _scope: &'a Scope<'a>,
    ) -> Pin<Box<dyn Future<Output = ToolResult> + Send + 'a>> {
        self.calls.lock().expect("no panic").push(call.arguments.clone());
        (self.carry)(call.arguments.clone())
    }
}

/// Skills by name and the rest of their frontmatter.
pub(crate) fn skills(dir: &Path, skills: &[(&str, &str)]) -> SkillSet {
    filtered_skills(dir, skills, &Filters::default())
}

/// The same, as far as `filters` let them through.
pub(crate) fn filtered_skills(dir: &Path, skills: &[(&str, &str)], filters: &Filters) -> SkillSet {
    let candidates = skills.iter().map(|(name, extra)| {
        let file = dir.join(name).join("SKILL.md");
        let text = format!("---\nname: {name}\ndescription: About {name}.\n{extra}\n---\n# {name}\n\nDo {name}.\n");
        std::fs::create_dir_all(dir.join(name)).expect("a folder");
        std::fs::write(&file, &text).expect("a file");
        let skill = Skill::parse(text.as_bytes(), &file, Tier::Workspace).expect("a skill").0;
        Candidate { dir: skill.dir().to_owned(), tier: skill.tier, outcome: Ok(skill.into()) }
    });
    let finding = Finding { candidates: candidates.collect(), problems: Vec::new() };
    let (world, config) = (World::default(), SkillsConfig::default());
    let gate = Gate { world: &world, config: &config, filters };
    let budget = Budget::from(&prowess_skills::Limits::default());
    let snapshot = Snapshot::take(&Catalog::merge(vec![finding]), &gate, None, &budget);
    let commands = commands(snapshot.skills().iter().map(AsRef::as_ref), RESERVED);
    SkillSet::new(snapshot, commands, Arc::new(|_| Ok(SkillShare::default())))
}

/// Where conversations take place.
pub(crate) struct Stage {
    pub(crate) root: TempDir,
    pub(crate) store: SkillStore,
    events: Arc<Mutex<Vec<Event>>>,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let root = TempDir::new().expect("a folder");
        std::fs::create_dir(root.path().join("ws")).expect("a folder");
        Self { root, store: SkillStore::new(SkillSet::default()), events: Arc::default() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// An agent that never waits.
    pub(crate) fn agent(&self, model: Arc<dyn Model>, tools: &[Arc<Prop>]) -> Agent {
        self.agent_with(model, tools.iter().map(|tool| Arc::clone(tool) as Arc<dyn Tool>).collect())
    }

    /// The same with tools of any kind.
    pub(crate) fn agent_with(&self, model: Arc<dyn Model>, tools: Vec<Arc<dyn Tool>>) -> Agent {
        let backoff = Backoff { attempts: 3, first: Duration::ZERO, most: Duration::ZERO };
        Agent::new(model, &self.path("ws"), &self.path("state"))
            .skills(self.store.clone())
            .tools(ToolSet::new(tools))
            .home(self.root.path())
            .limits(Limits { backoff, ..Limits::default() })
    }

    pub(crate) fn run(&self) -> Run {
        let events = Arc::clone(&self.events);
        Run::new(Events::to(move |event| events.lock().expect("no panic").push(event)))
    }

    /// What happened since the last look.
    pub(crate) fn seen(&self) -> Vec<Event> {
        std::mem::take(&mut *self.events.lock().expect("no panic"))
    }

    /// The lines of all transcripts.
    pub(crate) fn lines(&self) -> Vec<Value> {
        let dir = self.path("state/agents/main/sessions");
        let mut lines = Vec::new();
        for entry in std::fs::read_dir(dir).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.extension().is_some_and(|extension| extension == "jsonl") {
                let text = std::fs::read_to_string(path).expect("text");
                lines.extend(text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")));
            }
        }
        lines
    }
}
