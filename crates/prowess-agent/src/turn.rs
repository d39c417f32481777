//! A turn: from what a person says to the answer, by way of the model and its tools.
//!
//! Everything is on disk before it matters: the message before the model is asked, the reply before its calls run, each
//! result as soon as all before it are there. So whatever ends a turn, the next one can go on from it.

mod ask;
mod calls;
mod compact;
mod input;

use std::sync::Arc;
use std::time::{Duration, Instant};

use prowess_exec::ToolResult;
use serde_json::{Map, Value, json};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::conversation::{Conversation, reply};
use crate::event::{End, Event, Events, How};
use crate::frame::how_word;
use crate::guard::Guard;
use crate::ledger::{self, Account, Ledger};
use crate::message::{Assistant, Block, Message, StopReason, ToolCall, Usage, now};
use crate::model::{ModelError, Reply};
use crate::prompt::SystemPrompt;
use crate::repair;
use crate::session::{Body, SaveError, Spent, note};
use crate::skills::{SkillSet, Use, Uses};
use crate::slash::{self, Said};
use crate::tool::ToolSpec;

use ask::Asked;
pub use input::Input;

/// What is told a model whose calls were cut off.
const CUT_OFF: &str = "Not run: the reply was cut off at its length limit, so this call may not be whole. \
                       Make it again, with less text around it or in smaller parts.";

/// The longest name of a tool that providers take.
const MAX_NAME: usize = 64;

/// How a turn is listened to and ended from outside.
#[derive(Debug, Clone)]
pub struct Run {
    /// Its name.
    pub id: String,
    /// Who listens.
    pub events: Events,
    /// Ends it: what runs is ended, and what was said so far is kept.
    pub cancel: CancellationToken,
    /// When a reply is told.
    pub delivery: Delivery,
}

/// When a reply of the model is told to those who listen.
///
/// Nobody ever hears of an attempt that is thrown away. So what was told can no longer be taken back: a reply that breaks
/// afterwards ends the turn, while one that nobody has heard of yet is asked for again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Delivery {
    /// While it comes, after a short time in which it can still be asked for again.
    #[default]
    Live,
    /// Only when it is complete; for listeners that show nothing before that.
    Whole,
}

impl Run {
    /// A run that `events` hear of.
    #[must_use]
    pub fn new(events: Events) -> Self {
        let id = uuid::Uuid::new_v4().to_string();
        Self { id, events, cancel: CancellationToken::new(), delivery: Delivery::Live }
    }
}

impl Default for Run {
    /// A run that nobody listens to.
    fn default() -> Self {
        Self { delivery: Delivery::Whole, ..Self::new(Events::nobody()) }
    }
}

/// What a turn led to.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The run.
    pub run: String,
    /// The session's id.
    pub session_id: String,
    /// Who answered.
    pub provider: String,
    /// With which model.
    pub model: String,
    /// What was said, one text for each reply that had any; the last is the answer.
    pub texts: Vec<String>,
    /// How it ended.
    pub end: End,
    /// Why the model failed, if it did.
    pub error: Option<ModelError>,
    /// The skills that were used.
    pub uses: Vec<Use>,
    /// The calls that were made.
    pub calls: Vec<Made>,
    /// Tokens of all calls of the model.
    pub usage: Usage,
    /// Tokens of the last one.
    pub last_usage: Usage,
    /// Where the tokens went.
    pub ledger: Ledger,
    /// How long it took.
    pub took: Duration,
}

/// A call that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    /// The tool.
    pub tool: String,
    /// What it was about, in a line.
    pub summary: String,
    /// The skills it ran for.
    pub skills: Vec<String>,
    /// Whether it failed.
    pub is_error: bool,
    /// What it waits for, if it waits for a person to approve it: see [`crate::frame::waiting`].
    pub waiting: Option<Value>,
}

impl Outcome {
    /// The answer.
    #[must_use]
    pub fn text(&self) -> &str {
        self.texts.last().map_or("", String::as_str)
    }
}

/// Why a turn could not go on. What the model or a tool does wrong is an [`Outcome`].
#[derive(Debug, Error)]
pub enum TurnError {
    /// The transcript cannot be written, and nothing is said that is not kept.
    #[error(transparent)]
    Save(#[from] SaveError),
}

/// A turn under way.
struct Turn<'a> {
    run: &'a Run,
    uses: Uses,
    guard: Guard,
    /// Why the turn ends here, once the guard has seen enough.
    stuck: Option<End>,
    outcome: Outcome,
    compactions: u32,
    /// How many of the agent's models have failed.
    failed_models: usize,
    /// Tokens of answers that nobody got to see.
    wasted: Usage,
    deadline: Option<tokio::time::Instant>,
}

impl Conversation {
    /// Says `input` and answers it. Dropping the future ends what runs; [`Run::cancel`] also keeps what was said so far.
    pub async fn say(&mut self, input: impl Into<Input>, run: &Run) -> Result<Outcome, TurnError> {
        let input = input.into();
        let started = Instant::now();
        // Taken before anybody hears of the turn: who listens cannot change the skills of a turn that has begun.
        let skills = self.agent.skills.current();
        run.events.tell(Event::Started);
        let mut turn = Turn {
            run,
            uses: Uses::default(),
            guard: Guard::default(),
            stuck: None,
            outcome: self.outcome(run),
            compactions: 0,
            failed_models: 0,
            wasted: Usage::default(),
            deadline: self.agent.limits.time.map(|time| tokio::time::Instant::now() + time),
        };
        let end = self.turn(&input, skills, &mut turn).await;
        let saved = match &end {
            Ok(end) => self.save_turn(&turn, end).await,
            Err(_) => self.transcript.sync().await,
        };
        let end = end.and_then(|end| saved.map(|notice| (end, notice)).map_err(TurnError::from));
        let (end, notice) = end.inspect_err(|error| {
            run.events.tell(Event::Ended(End::Failed(error.to_string())));
        })?;
        if let Some(notice) = notice {
            run.events.tell(Event::Notice(notice));
        }
        run.events.tell(Event::Ended(end.clone()));
        let uses = turn.uses.all();
        Ok(Outcome { end, uses, took: started.elapsed(), ..turn.outcome })
    }

    /// Brings the turn to the disk, with what it used.
    async fn save_turn(&mut self, turn: &Turn<'_>, end: &End) -> Result<Option<String>, SaveError> {
        self.note_uses(&turn.uses)?;
        let Outcome { usage, last_usage, .. } = &turn.outcome;
        let about = self.agent.model.about();
        self.transcript.end_turn(&Spent { about, usage, last: last_usage, end }).await
    }

    fn outcome(&self, run: &Run) -> Outcome {
        let about = self.agent.model.about();
        Outcome {
            run: run.id.clone(),
            session_id: self.transcript.id().to_owned(),
            provider: about.provider.clone(),
            model: about.model.clone(),
            texts: Vec::new(),
            end: End::Answered,
            error: None,
            uses: Vec::new(),
            calls: Vec::new(),
            usage: Usage::default(),
            last_usage: Usage::default(),
            ledger: Ledger::default(),
            took: Duration::ZERO,
        }
    }

    async fn turn(&mut self, input: &Input, skills: Arc<SkillSet>, turn: &mut Turn<'_>) -> Result<End, TurnError> {
        let text = input.text();
        if self.take_skills(&skills)? {
            turn.run.events.tell(Event::SkillsChanged { count: skills.snapshot.skills().len() });
        }
        self.take_model()?;
        self.close_calls()?;
        let said = match slash::read(text, &skills, Some(&self.agent.home)) {
            Ok(said) => said,
            Err(error) => return Ok(End::Failed(error.to_string())),
        };
        let text = match said {
            Said::Plain => {
                if let Some(name) = unknown_command(text) {
                    let told = format!("there is no command `/{name}`; the message is sent as plain text");
                    turn.run.events.tell(Event::Notice(told));
                }
                text.to_owned()
            }
            Said::Dispatch { command, tool, args } => {
                let call = dispatched(command, tool, args);
                self.use_skill(command.skill.as_str(), How::Dispatched, turn);
                return self.dispatch(input, call, turn).await;
            }
            Said::Calls { text, skills } => {
                for skill in &skills {
                    self.use_skill(skill, How::Called, turn);
                }
                text
            }
        };
        let has_news = self.push_news()?;
        if has_news && text.is_empty() && input.images().is_empty() {
            self.push_notice()?;
        } else {
            self.push(Message::User(input.message(text)))?;
        }
        self.answer(turn).await
    }

    /// Notes the use of a skill that a person called on.
    fn use_skill(&self, name: &str, how: How, turn: &Turn<'_>) {
        let Some(skill) = self.skills.find(name) else { return };
        if turn.uses.note(skill, how) {
            let (skill, path) = (skill.name.to_string(), skill.file.clone());
            turn.run.events.tell(Event::SkillUsed { skill, path, how });
        }
    }

    /// Writes down which skills the turn used.
    fn note_uses(&mut self, uses: &Uses) -> Result<(), SaveError> {
        for one in uses.all() {
            let data = json!({"skill": one.skill, "path": one.path, "how": how_word(one.how)});
            self.transcript.append(Body::Custom { kind: note::USE, data })?;
        }
        Ok(())
    }

    /// Carries out a slash command that goes straight to a tool. The model has no part in it, but will see it.
    async fn dispatch(&mut self, input: &Input, call: ToolCall, turn: &mut Turn<'_>) -> Result<End, TurnError> {
        self.push(Message::User(input.message(input.text().to_owned())))?;
        let message = Assistant {
            content: vec![Block::ToolCall(call.clone())],
            api: crate::model::Api::Embedded.word().to_owned(),
            provider: "prowess".to_owned(),
            model: "dispatch".to_owned(),
            usage: Usage::default(),
            stop_reason: StopReason::ToolUse,
            error_message: None,
            provider_data: Map::new(),
            timestamp: now(),
        };
        (turn.outcome.provider, turn.outcome.model) = (message.provider.clone(), message.model.clone());
        self.push(Message::Assistant(message))?;
        let results = self.run_calls(&[call], turn).await?;
        let Some(results) = results else { return Ok(self.why_stopped(turn)) };
        let text = results.iter().map(for_person).collect::<String>().trim().to_owned();
        let text = if text.is_empty() { "Done.".to_owned() } else { text };
        if results.iter().any(|result| result.is_error) {
            return Ok(End::Failed(text));
        }
        turn.run.events.tell(Event::Text { delta: text.clone() });
        turn.outcome.texts.push(text);
        Ok(End::Answered)
    }

    /// Asks the model, runs its calls, and asks again, until it has no more.
    async fn answer(&mut self, turn: &mut Turn<'_>) -> Result<End, TurnError> {
        let system = self.system_prompt();
        let text = system.text();
        let tools = self.agent.tools.specs();
        for _ in 0..self.agent.limits.rounds {
            self.make_room(&text, turn).await?;
            let asked = self.ask(&text, &tools, turn).await;
            self.book_wasted(turn)?;
            let Reply { mut message, broken, is_paused } = match asked {
                Asked::Reply(reply) => reply,
                Asked::Interrupted(partial, why) => {
                    if let Some(partial) = partial {
                        self.book(&system, &tools, &partial, turn)?;
                        self.break_off(partial, turn)?;
                    }
                    return Ok(why);
                }
                Asked::Failed(ModelError::Overflow { .. }, _) if self.shrink(turn).await? => continue,
                Asked::Failed(error, partial) | Asked::Broken(error, partial) => {
                    let why = partial.error_message.clone().unwrap_or_else(|| error.to_string());
                    self.book(&system, &tools, &partial, turn)?;
                    let why = format!("{why}; {}", error.remedy());
                    self.break_off(partial, turn)?;
                    turn.outcome.error = Some(error);
                    return Ok(End::Failed(why));
                }
            };
            self.normalise(&mut message);
            self.book(&system, &tools, &message, turn)?;
            let stop = message.stop_reason;
            let calls: Vec<ToolCall> = message.calls().cloned().collect();
            turn.run.events.tell(Event::Replied { stop, usage: message.usage });
            self.keep(message, turn)?;
            if calls.is_empty() && is_paused {
                continue;
            }
            if calls.is_empty() {
                if stop == StopReason::Length {
                    turn.run.events.tell(Event::Notice("the answer was cut off at its length limit".to_owned()));
                }
                return Ok(End::Answered);
            }
            if let Some(end) = self.work(&calls, &broken, stop, turn).await? {
                return Ok(end);
            }
            if turn.outcome.usage.total_tokens > self.agent.limits.tokens {
                let limit = self.agent.limits.tokens;
                return Ok(End::Failed(format!("the turn was stopped: it used more than {limit} tokens")));
            }
        }
        let rounds = self.agent.limits.rounds;
        Ok(End::Failed(format!("the turn was stopped: the model called tools for {rounds} rounds without an answer")))
    }

    /// Runs the calls of one reply. Says how the turn ends, if it does.
    async fn work(
        &mut self,
        calls: &[ToolCall],
        broken: &[(usize, String)],
        stop: StopReason,
        turn: &mut Turn<'_>,
    ) -> Result<Option<End>, TurnError> {
        if stop == StopReason::Length {
            for call in calls {
                self.not_run(call, CUT_OFF, turn)?;
            }
            return Ok(None);
        }
        if !broken.is_empty() {
            // A reply that is half garbled is not carried out by halves.
            for (place, call) in calls.iter().enumerate() {
                let told = match broken.iter().find(|(broken, _)| *broken == place) {
                    Some((_, why)) => format!("Not run: {why}. Call it again."),
                    None => "Not run: another call in this reply was unreadable. Call it again.".to_owned(),
                };
                self.not_run(call, &told, turn)?;
            }
            return Ok(None);
        }
        if self.run_calls(calls, turn).await?.is_none() {
            return Ok(Some(self.why_stopped(turn)));
        }
        Ok(turn.stuck.take())
    }

    /// Answers a call that is not carried out, and tells the person.
    fn not_run(&mut self, call: &ToolCall, why: &str, turn: &Turn<'_>) -> Result<(), SaveError> {
        turn.run.events.tell(Event::CallStarted {
            id: call.id.clone(),
            tool: call.name.clone(),
            arguments: call.arguments.clone(),
            skills: Vec::new(),
        });
        turn.run.events.tell(Event::CallEnded {
            id: call.id.clone(),
            tool: call.name.clone(),
            summary: calls::summary(call),
            result: ToolResult::error(&call.name, why),
            took: Duration::ZERO,
        });
        self.push(Message::ToolResult(reply(&call.id, &call.name, why)))
    }

    /// Keeps what the model said before its reply was broken off, and tells that no more of it comes.
    fn break_off(&mut self, partial: Assistant, turn: &mut Turn<'_>) -> Result<(), SaveError> {
        if !partial.content.is_empty() {
            turn.run.events.tell(Event::Replied { stop: partial.stop_reason, usage: partial.usage });
        }
        self.keep(partial, turn)
    }

    /// Keeps what the model said.
    fn keep(&mut self, message: Assistant, turn: &mut Turn<'_>) -> Result<(), SaveError> {
        let text = message.text();
        if !text.trim().is_empty() {
            turn.outcome.texts.push(text);
        }
        turn.outcome.usage += message.usage;
        turn.outcome.last_usage = message.usage;
        (turn.outcome.provider, turn.outcome.model) = (message.provider.clone(), message.model.clone());
        if message.content.is_empty() && message.error_message.is_none() {
            return Ok(());
        }
        self.push(Message::Assistant(message))
    }

    /// Books what a call of the model cost.
    fn book(
        &mut self,
        system: &SystemPrompt,
        tools: &[ToolSpec],
        message: &Assistant,
        turn: &mut Turn<'_>,
    ) -> Result<(), SaveError> {
        let parts: Vec<(&str, &str)> = system.parts.iter().map(|part| (part.name, part.text.as_str())).collect();
        let weights = ledger::weigh(&parts, tools, &self.messages);
        let speaking = turn.uses.names().pop().map_or(Account::Model, Account::Output);
        self.note_usage(&ledger::charge(&weights, &message.usage, &speaking), turn)
    }

    /// Books what answers cost that were broken off and asked for again.
    fn book_wasted(&mut self, turn: &mut Turn<'_>) -> Result<(), SaveError> {
        let wasted = std::mem::take(&mut turn.wasted);
        if wasted.total_tokens == 0 {
            return Ok(());
        }
        turn.outcome.usage += wasted;
        self.note_usage(&ledger::charge(&[(Account::Other, 1)], &wasted, &Account::Other), turn)
    }

    fn note_usage(&mut self, charge: &Ledger, turn: &mut Turn<'_>) -> Result<(), SaveError> {
        turn.outcome.ledger += charge;
        self.transcript.append(Body::Custom { kind: note::USAGE, data: charge.render() })?;
        Ok(())
    }

    /// Gives calls the names of tools and ids that are different from each other.
    fn normalise(&self, message: &mut Assistant) {
        let mut calls: Vec<ToolCall> = message.calls().cloned().collect();
        for call in &mut calls {
            call.name = match self.agent.tools.resolve(&call.name) {
                Some(tool) => tool.spec().name.clone(),
                // It goes back to the provider, who takes only such names.
                None => speakable(&call.name),
            };
        }
        repair::call_ids(&mut calls);
        let places = message.content.iter_mut().filter_map(|block| match block {
            Block::ToolCall(call) => Some(call),
            Block::Text { .. } | Block::Thinking { .. } | Block::Image(_) | Block::Other(_) => None,
        });
        for (place, call) in places.zip(calls) {
            *place = call;
        }
    }
}

/// What a person is told of a result: some say it in other words than to a model.
fn for_person(result: &ToolResult) -> String {
    result.details["forPeople"].as_str().map_or_else(|| result.text(), str::to_owned)
}

/// The name of the command that `text` seems to call.
fn unknown_command(text: &str) -> Option<&str> {
    let name = text.trim_start().strip_prefix('/')?.split_whitespace().next()?;
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    is_name.then_some(name)
}

/// `name` in letters, digits, hyphens and underscores, and not too long.
fn speakable(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let name: String = name.trim().chars().take(MAX_NAME).map(|c| if is_plain(c) { c } else { '_' }).collect();
    if name.is_empty() { "unknown".to_owned() } else { name }
}

/// The call that a slash command makes of a tool.
fn dispatched(command: &prowess_skills::Command, tool: &str, args: &str) -> ToolCall {
    let mut arguments = Map::new();
    arguments.insert("command".to_owned(), Value::String(args.trim().to_owned()));
    arguments.insert("commandName".to_owned(), json!(command.name));
    arguments.insert("skillName".to_owned(), json!(command.skill.as_str()));
    let id = format!("cmd_{}", uuid::Uuid::new_v4().simple());
    ToolCall { id, name: tool.to_owned(), arguments, thought_signature: None, provider_data: Map::new() }
}
