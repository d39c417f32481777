//! An agent: what does a conversation need besides words?

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use prowess_exec::approver::{Approver, Nobody};
use prowess_exec::job::Runner;
use prowess_skills::Mode;

use crate::conversation::Conversation;
use crate::model::{Model, Thinking};
use crate::prompt::Runtime;
use crate::prompt::bootstrap::{self, BootstrapFile};
use crate::retry::Backoff;
use crate::session::{OpenError, SessionKey, Sessions};
use crate::skills::{SkillSet, SkillStore};
use crate::tool::ToolSet;

/// How many times one message may send the model to its tools and back.
const ROUNDS: u32 = 100;
/// How many tokens the calls for one message may use together.
const TOKENS: u64 = 5_000_000;
/// How long one message may take.
const TIME: Duration = Duration::from_secs(600);

/// Everything that the conversations of one agent have in common.
pub struct Agent {
    pub(crate) id: String,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) fallbacks: Vec<Arc<dyn Model>>,
    pub(crate) skills: SkillStore,
    pub(crate) tools: ToolSet,
    pub(crate) sessions: Sessions,
    pub(crate) workspace: PathBuf,
    pub(crate) home: PathBuf,
    pub(crate) approver: Arc<dyn Approver>,
    pub(crate) runner: Option<Runner>,
    pub(crate) prompt: PromptSettings,
    pub(crate) limits: Limits,
}

/// What one message may cost.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// How many times it may send the model to its tools and back.
    pub rounds: u32,
    /// How many tokens its calls may use together.
    pub tokens: u64,
    /// How long it may take; `None` is without end.
    pub time: Option<Duration>,
    /// How often and when a failed call is tried again.
    pub backoff: Backoff,
    /// How much the model should think.
    pub thinking: Thinking,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            rounds: ROUNDS,
            tokens: TOKENS,
            time: Some(TIME),
            backoff: Backoff::default(),
            thinking: Thinking::default(),
        }
    }
}

/// How the system prompt is made.
#[derive(Clone)]
pub struct PromptSettings {
    /// How much of it there is; sub-agents get [`Mode::Minimal`] in any case.
    pub mode: Mode,
    /// How much of the workspace files goes into it.
    pub limits: bootstrap::Limits,
    /// What the model is told about where it runs.
    pub runtime: Runtime,
    /// A part of the operator's own.
    pub extra: Option<String>,
    /// Replaces the workspace files when a conversation is opened.
    pub on_files: Option<OnFiles>,
}

/// Replaces the workspace files that go into the prompt.
pub type OnFiles = Arc<dyn Fn(Vec<BootstrapFile>) -> Vec<BootstrapFile> + Send + Sync>;

impl Default for PromptSettings {
    fn default() -> Self {
        Self {
            mode: Mode::Full,
            limits: bootstrap::Limits::default(),
            runtime: Runtime::default(),
            extra: None,
            on_files: None,
        }
    }
}

impl Agent {
    /// An agent that answers with `model`, works in `workspace` and keeps its conversations below `state_dir`. It has no
    /// skills and no tools yet, and there is nobody to ask.
    #[must_use]
    pub fn new(model: Arc<dyn Model>, workspace: &Path, state_dir: &Path) -> Self {
        Self::named("main", model, workspace, state_dir)
    }

    /// With its conversations in `sessions`. Agents that share it share what was read of its index.
    #[must_use]
    pub fn with_sessions(self, sessions: Sessions) -> Self {
        Self { sessions, ..self }
    }

    /// The same, under another name than `main`.
    #[must_use]
    pub fn named(id: &str, model: Arc<dyn Model>, workspace: &Path, state_dir: &Path) -> Self {
        Self {
            id: id.to_owned(),
            model,
            fallbacks: Vec::new(),
            skills: SkillStore::new(SkillSet::default()),
            tools: ToolSet::default(),
            sessions: Sessions::new(state_dir, id),
            workspace: workspace.to_owned(),
            home: workspace.to_owned(),
            approver: Arc::new(Nobody),
            runner: None,
            prompt: PromptSettings::default(),
            limits: Limits::default(),
        }
    }

    /// With models to ask when the first one fails, one after the other.
    #[must_use]
    pub fn fallbacks(self, fallbacks: Vec<Arc<dyn Model>>) -> Self {
        Self { fallbacks, ..self }
    }

    /// With these skills.
    #[must_use]
    pub fn skills(self, skills: SkillStore) -> Self {
        Self { skills, ..self }
    }

    /// With these tools, as far as they are allowed.
    #[must_use]
    pub fn tools(self, tools: ToolSet) -> Self {
        Self { tools, ..self }
    }

    /// With `home` for `~`.
    #[must_use]
    pub fn home(self, home: &Path) -> Self {
        Self { home: home.to_owned(), ..self }
    }

    /// With somebody to ask.
    #[must_use]
    pub fn approver(self, approver: Arc<dyn Approver>) -> Self {
        Self { approver, ..self }
    }

    /// With the runner of its `exec` tool, so that the end of what runs in the background is told.
    #[must_use]
    pub fn runner(self, runner: Runner) -> Self {
        Self { runner: Some(runner), ..self }
    }

    /// With these settings for the system prompt.
    #[must_use]
    pub fn prompt(self, prompt: PromptSettings) -> Self {
        Self { prompt, ..self }
    }

    /// With these limits.
    #[must_use]
    pub fn limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Where its conversations are.
    #[must_use]
    pub fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// Who answers.
    #[must_use]
    pub fn model(&self) -> &Arc<dyn Model> {
        &self.model
    }

    /// Who answers, and who answers in their place.
    pub(crate) fn models(&self) -> impl Iterator<Item = &Arc<dyn Model>> {
        std::iter::once(&self.model).chain(&self.fallbacks)
    }

    /// Whether any of its models can look at images.
    pub(crate) fn takes_images(&self) -> bool {
        self.models().any(|model| model.about().takes_images)
    }

    /// How many tokens fit into one call, if that is known.
    pub(crate) fn window(&self) -> Option<u64> {
        let window = self.model.about().context_window;
        (window > 0).then_some(window)
    }

    /// Opens the conversation called `name`, by its short name or its whole key, or begins it. Nobody else can while it
    /// is open.
    pub fn open(self: &Arc<Self>, name: &str) -> Result<Conversation, OpenError> {
        let key = SessionKey::meant(name, &self.id);
        let transcript = self.sessions.open(&key, &self.workspace)?;
        Ok(Conversation::new(Arc::clone(self), transcript))
    }
}
