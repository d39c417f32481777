//! A conversation: what was said, kept in step with what is on disk.

use std::collections::HashSet;
use std::sync::Arc;

use prowess_skills::Mode;
use serde_json::{Value, json};

use crate::agent::Agent;
use crate::compaction;
use crate::message::{Assistant, Block, Message, StopReason, ToolReply, Usage, User, now};
use crate::model::Api;
use crate::news::{NOTICE, News};
use crate::prompt::bootstrap::{self, BootstrapFile};
use crate::prompt::{self, PromptInputs, SystemPrompt};
use crate::repair::{self, Loaded};
use crate::session::{Body, Context, EntryId, SaveError, SessionKey, Summary, Transcript, note};
use crate::skills::SkillSet;
use crate::tool::finished_since;

/// One conversation, owned by whoever holds this.
pub struct Conversation {
    pub(crate) agent: Arc<Agent>,
    pub(crate) transcript: Transcript,
    /// What the model is shown: the summary, if there is one, and what was said since.
    pub(crate) messages: Vec<Message>,
    /// Where each message is on disk; none for the summary, and for what was made up to mend the history.
    pub(crate) entries: Vec<Option<EntryId>>,
    /// What the first message summarises, if it is a summary.
    pub(crate) summary: Option<Summary>,
    pub(crate) skills: Arc<SkillSet>,
    /// Of the skills that the transcript has noted.
    fingerprint: Option<String>,
    /// Who answered last, as far as the transcript has noted it.
    model: Option<(String, String)>,
    /// Background jobs whose end the model knows of.
    pub(crate) announced: HashSet<String>,
    /// What happened without the model and was not told yet.
    news: Vec<News>,
    files: Vec<BootstrapFile>,
    mended: Vec<String>,
}

impl Conversation {
    pub(crate) fn new(agent: Arc<Agent>, transcript: Transcript) -> Self {
        let Context { messages: stored, ids, summary, skills: noted, model, .. } = transcript.context();
        // A tool that is gone since is no reason to forget what it did.
        let Loaded { mut messages, sources, mended: done } = repair::load(stored, None);
        let mut entries: Vec<Option<EntryId>> =
            sources.into_iter().map(|source| source.and_then(|source| ids.get(source).cloned())).collect();
        if let Some(summary) = &summary {
            let kept = std::mem::take(&mut messages);
            messages = compaction::rebuild(&summary.text, &kept);
            entries.splice(..0, std::iter::repeat_n(None, messages.len() - kept.len()));
        }
        let mended = transcript.mended().iter().cloned().chain(done.sentence()).collect();
        let files = files(&agent, transcript.key());
        Self {
            skills: agent.skills.current(),
            fingerprint: noted.and_then(|noted| noted["fingerprint"].as_str().map(str::to_owned)),
            model,
            agent,
            transcript,
            messages,
            entries,
            summary,
            announced: HashSet::new(),
            news: Vec::new(),
            files,
            mended,
        }
    }

    /// Its key.
    #[must_use]
    pub fn key(&self) -> &SessionKey {
        self.transcript.key()
    }

    /// What the model is shown of it.
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// What was wrong with it on disk, and is mended.
    #[must_use]
    pub fn mended(&self) -> &[String] {
        &self.mended
    }

    /// The background jobs whose end the model knows of.
    #[must_use]
    pub fn announced(&self) -> &HashSet<String> {
        &self.announced
    }

    /// The same, when the model knows of the end of these jobs from before it was opened.
    #[must_use]
    pub fn having_announced(self, announced: HashSet<String>) -> Self {
        Self { announced, ..self }
    }

    /// The session's id.
    #[must_use]
    pub fn id(&self) -> &str {
        self.transcript.id()
    }

    /// Adds what somebody else said in the model's name. It is on disk when this returns.
    pub fn inject(&mut self, text: &str) -> Result<(EntryId, Message), SaveError> {
        self.close_calls()?;
        let message = Message::Assistant(Assistant {
            content: vec![Block::text(text)],
            api: Api::Embedded.word().to_owned(),
            provider: "prowess".to_owned(),
            model: "injected".to_owned(),
            usage: Usage::default(),
            stop_reason: StopReason::Stop,
            error_message: None,
            provider_data: serde_json::Map::new(),
            timestamp: now(),
        });
        let entry = self.transcript.message(&message)?;
        self.messages.push(message.clone());
        self.entries.push(Some(entry.clone()));
        Ok((entry, message))
    }

    /// The skills it works with.
    #[must_use]
    pub fn skills(&self) -> &Arc<SkillSet> {
        &self.skills
    }

    /// What the model is told before anything else.
    #[must_use]
    pub fn system_prompt(&self) -> SystemPrompt {
        let settings = &self.agent.prompt;
        prompt::assemble(&PromptInputs {
            mode: mode(&self.agent, self.key()),
            tools: &self.agent.tools.specs(),
            skills: &self.skills.snapshot.prompt().text,
            workspace: &self.agent.workspace,
            files: &self.files,
            limits: settings.limits,
            runtime: &settings.runtime,
            extra: settings.extra.as_deref(),
        })
    }

    /// Takes over these skills, and notes them if they are others. Says whether they replaced any.
    pub(crate) fn take_skills(&mut self, current: &Arc<SkillSet>) -> Result<bool, SaveError> {
        let fingerprint = current.snapshot.fingerprint().to_string();
        self.skills = Arc::clone(current);
        if self.fingerprint.as_deref() == Some(&fingerprint) {
            return Ok(false);
        }
        let skills: Vec<Value> = self
            .skills
            .snapshot
            .skills()
            .iter()
            .map(|skill| {
                json!({
                    "name": skill.name.as_str(),
                    "primaryEnv": skill.metadata.primary_env,
                    "requiredEnv": skill.metadata.needs.env,
                })
            })
            .collect();
        let data = json!({
            "fingerprint": fingerprint,
            "prompt": self.skills.snapshot.prompt().text,
            "skills": skills,
            "skillFilter": self.skills.snapshot.filter(),
        });
        self.transcript.append(Body::Custom { kind: note::SKILLS, data })?;
        Ok(self.fingerprint.replace(fingerprint).is_some())
    }

    /// Notes who answers, if somebody else did before.
    pub(crate) fn take_model(&mut self) -> Result<(), SaveError> {
        let about = self.agent.model.about();
        let (provider, model) = (about.provider.as_str(), about.model.as_str());
        if self.model.as_ref().is_some_and(|known| known.0 == provider && known.1 == model) {
            return Ok(());
        }
        self.transcript.append(Body::ModelChange { provider, model })?;
        self.model = Some((provider.to_owned(), model.to_owned()));
        Ok(())
    }

    /// Adds to what was said, here and on disk.
    pub(crate) fn push(&mut self, message: Message) -> Result<(), SaveError> {
        let entry = self.transcript.message(&message)?;
        self.messages.push(message);
        self.entries.push(Some(entry));
        Ok(())
    }

    /// Has the model hear of this with its next turn.
    pub fn hear(&mut self, news: Vec<News>) {
        self.news.extend(news);
    }

    /// Adds news to what was said, without a turn. It is on disk when this returns.
    pub fn record(&mut self, news: News) -> Result<(), SaveError> {
        self.close_calls()?;
        news.messages().into_iter().try_for_each(|message| self.push(message))
    }

    /// Whether the result of the command that waited for this approval is among the messages.
    #[must_use]
    pub fn has_late_result(&self, approval: &str) -> bool {
        let details = self.messages.iter().filter_map(|message| match message {
            Message::ToolResult(reply) => reply.details.as_ref(),
            Message::User(_) | Message::Assistant(_) => None,
        });
        details.into_iter().any(|details| details["late"] == true && details["approvalId"] == approval)
    }

    /// Adds all news, and what ended in the background, to what was said. Says whether there was any.
    pub(crate) fn push_news(&mut self) -> Result<bool, SaveError> {
        let mut news = std::mem::take(&mut self.news);
        if let Some(runner) = &self.agent.runner {
            let scope = self.transcript.key().to_string();
            news.extend(finished_since(runner, &scope, &mut self.announced, &self.agent.tools));
        }
        let has_news = !news.is_empty();
        for message in news.into_iter().flat_map(News::messages) {
            self.push(message)?;
        }
        Ok(has_news)
    }

    /// Adds the message that follows news when the user has not sent one.
    pub(crate) fn push_notice(&mut self) -> Result<(), SaveError> {
        let entry = self.transcript.append(Body::Notice { text: NOTICE })?;
        self.messages.push(Message::User(User::says(NOTICE)));
        self.entries.push(Some(entry));
        Ok(())
    }

    /// Answers calls that were left open when an earlier turn was dropped in the middle.
    pub(crate) fn close_calls(&mut self) -> Result<(), SaveError> {
        let Some(at) = self.messages.iter().rposition(|message| !matches!(message, Message::ToolResult(_))) else {
            return Ok(());
        };
        let Message::Assistant(assistant) = &self.messages[at] else { return Ok(()) };
        let answered: HashSet<&str> = self.messages[at + 1..]
            .iter()
            .filter_map(|message| match message {
                Message::ToolResult(reply) => Some(reply.tool_call_id.as_str()),
                Message::User(_) | Message::Assistant(_) => None,
            })
            .collect();
        let open: Vec<(String, String)> = assistant
            .calls()
            .filter(|call| !answered.contains(call.id.as_str()))
            .map(|call| (call.id.clone(), call.name.clone()))
            .collect();
        for (id, name) in open {
            self.push(Message::ToolResult(reply(&id, &name, NOT_RUN)))?;
        }
        Ok(())
    }
}

/// What a call is answered with when the turn ended before it did.
pub(crate) const NOT_RUN: &str = "The turn was interrupted before this call was done. It may not have run.";

/// A failed result.
pub(crate) fn reply(id: &str, tool: &str, why: &str) -> ToolReply {
    ToolReply {
        tool_call_id: id.to_owned(),
        tool_name: tool.to_owned(),
        content: vec![Block::text(why)],
        details: None,
        is_error: true,
        timestamp: now(),
    }
}

/// How much of the system prompt a conversation gets: a sub-agent never all of it.
fn mode(agent: &Agent, key: &SessionKey) -> Mode {
    match agent.prompt.mode {
        Mode::Full if key.is_subagent() => Mode::Minimal,
        mode => mode,
    }
}

/// The workspace files that the prompt of a conversation begins with, read once.
fn files(agent: &Agent, key: &SessionKey) -> Vec<BootstrapFile> {
    let mode = mode(agent, key);
    let names: Vec<&str> = bootstrap::NAMES.into_iter().filter(|name| bootstrap::is_for(name, mode)).collect();
    let found = bootstrap::load(&agent.workspace, &names);
    match &agent.prompt.on_files {
        Some(replace) => replace(found),
        None => found,
    }
}
