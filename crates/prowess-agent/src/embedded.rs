//! The embedded planner: what can be done for a request with no model at hand?
//!
//! It is a [`Model`] like any other, called with the same prompt, messages and tools, but there is no language model in
//! it: it picks the skill whose description has the words of the request, reads its `SKILL.md` with the `read` tool,
//! and shows the section and the commands that answer, or runs one with the `exec` tool when it may. It says what it
//! is. The same conversation on the same machine always gets the same answer.
//!
//! It reports usage as the others do, so that the ledger of a conversation can be tried out without one. The numbers are
//! estimates, a token for four characters, of what a model would have read and written: each call reads the whole
//! prompt, all tools and all messages again, so a few short turns have tens of thousands. Nobody was asked or paid.

mod commands;
mod fill;
mod kinds;
mod pick;
mod plan;
mod said;
mod say;
mod sections;
mod words;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use prowess_skills::{Skill, compact, tokens};
use serde_json::Value;

use crate::answer::Answer;
use crate::message::{Block, Message, StopReason, Usage};
use crate::model::{About, Api, Delta, Model, ModelError, Request};
use crate::skills::SkillStore;

/// Who runs it, as configurations and transcripts name them.
pub const PROVIDER: &str = "prowess";

/// Its name there.
pub const MODEL: &str = "embedded";

/// How much it takes and says at most, in tokens.
const CONTEXT_WINDOW: u64 = 1_000_000;
const MAX_TOKENS: u64 = 16_384;

/// What it may do with the commands it finds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Act {
    /// Show them.
    #[default]
    Show,
    /// Run the best one, as the policy allows.
    Run,
}

/// What would become of a command here and now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Foreseen {
    /// It would run.
    Runs,
    /// A person would be asked first: what it would do beyond the sandbox, in words, as far as that is known.
    Asks(Vec<String>),
    /// This program of it is not installed.
    Missing(String),
    /// It would run, but not see what it is asked about: why not, in words.
    Blind(String),
    /// It would be refused.
    Refused,
}

/// Says what would become of a command, of this skill if of one.
#[derive(Clone)]
pub struct Forecast(Arc<Judge>);

type Judge = dyn Fn(&str, Option<&Skill>) -> Foreseen + Send + Sync;

impl Forecast {
    /// As `judge` says.
    pub fn new(judge: impl Fn(&str, Option<&Skill>) -> Foreseen + Send + Sync + 'static) -> Self {
        Self(Arc::new(judge))
    }
}

impl std::fmt::Debug for Forecast {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Forecast")
    }
}

/// The planner. The usage it reports is an estimate of what a model would have read and written.
#[derive(Debug, Clone)]
pub struct Embedded {
    about: About,
    skills: SkillStore,
    act: Act,
    home: Option<PathBuf>,
    forecast: Option<Forecast>,
}

impl Embedded {
    /// One that picks from these skills.
    #[must_use]
    pub fn new(skills: SkillStore, act: Act) -> Self {
        let about = About {
            provider: PROVIDER.to_owned(),
            model: MODEL.to_owned(),
            api: Api::Embedded,
            context_window: CONTEXT_WINDOW,
            max_tokens: MAX_TOKENS,
            takes_images: false,
        };
        Self { about, skills, act, home: None, forecast: None }
    }

    /// With the folder that the prompt's locations shorten to `~`.
    #[must_use]
    pub fn at_home(self, home: &Path) -> Self {
        Self { home: Some(home.to_owned()), ..self }
    }

    /// With somebody who knows what would run: of commands that fit alike, one that does is run.
    #[must_use]
    pub fn preferring(self, forecast: Forecast) -> Self {
        Self { forecast: Some(forecast), ..self }
    }

    /// The answer, whole.
    fn answer(&self, request: &Request<'_>) -> Answer {
        let mut answer = plan::answer(self, request);
        // Once in a conversation is enough.
        if request
            .messages
            .iter()
            .any(|message| matches!(message, Message::Assistant(said) if said.text().contains(say::WHAT_I_AM)))
        {
            let rest = answer.text.replace(say::WHAT_I_AM, "");
            rest.trim_end().clone_into(&mut answer.text);
        }
        let allowed = request.max_tokens.map_or(MAX_TOKENS, |asked| asked.min(MAX_TOKENS));
        if count(&answer.text) > allowed {
            let bytes = usize::try_from(allowed).unwrap_or(usize::MAX);
            answer.text.truncate(words::cut(&answer.text, bytes).len());
            answer.calls.clear();
            answer.stop = StopReason::Length;
        }
        answer.usage = usage(request, &answer);
        answer
    }

    /// Where the prompt says that a skill is; its file where the prompt does not show it.
    fn location(&self, skill: &Skill, system: &str) -> String {
        let file = skill.file.to_string_lossy().into_owned();
        let short = compact(&file, self.home.as_deref());
        if system.contains(&short) { short } else { file }
    }
}

impl Model for Embedded {
    fn about(&self) -> &About {
        &self.about
    }

    fn stream<'a>(&'a self, request: Request<'a>) -> BoxStream<'a, Result<Delta, ModelError>> {
        let deltas = stream::once(async move { stream::iter(blocking(|| self.answer(&request)).deltas()) });
        deltas.flatten().map(Ok).boxed()
    }
}

/// What a model would have read and said in this one call, estimated as everything else here is.
fn usage(request: &Request<'_>, answer: &Answer) -> Usage {
    let messages: u64 = request.messages.iter().map(said).sum();
    let tools: u64 =
        request.tools.iter().map(|tool| count(&tool.name) + count(&tool.description) + json(&tool.parameters)).sum();
    let calls: u64 =
        answer.calls.iter().map(|call| count(&call.name) + json(&Value::Object(call.arguments.clone()))).sum();
    let input = count(request.system) + messages + tools;
    Usage { input, output: count(&answer.text) + calls, ..Usage::default() }.totalled()
}

fn said(message: &Message) -> u64 {
    let blocks = match message {
        Message::User(user) => &user.content,
        Message::Assistant(assistant) => &assistant.content,
        Message::ToolResult(reply) => &reply.content,
    };
    let block = |block: &Block| match block {
        Block::Text { text, .. } => count(text),
        Block::Thinking { thinking, .. } => count(thinking),
        Block::ToolCall(call) => count(&call.name) + json(&Value::Object(call.arguments.clone())),
        // Images and the like are not looked at.
        Block::Image(_) | Block::Other(_) => 0,
    };
    blocks.iter().map(block).sum()
}

fn json(value: &Value) -> u64 {
    count(&value.to_string())
}

fn count(text: &str) -> u64 {
    u64::try_from(tokens(text)).unwrap_or(u64::MAX)
}

/// Does `work`, which judges commands and so looks at the disk, without holding up other tasks where there are threads
/// for them.
fn blocking<T>(work: impl FnOnce() -> T) -> T {
    match tokio::runtime::Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(tokio::runtime::RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        Ok(_) | Err(_) => work(),
    }
}
