//! A desk: one task that owns one session. Everybody else sends it letters.
//!
//! Letters are dealt with one after the other, so nothing of a session happens twice at once. A desk where nothing
//! happens is given up after a moment, and with it the session, so that another program can go on with it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prowess_agent::event::End;
use prowess_agent::frame;
use prowess_agent::message::{Message, now};
use prowess_agent::news::News;
use prowess_agent::session::{Begun, Removed, SessionKey, Transcripts};
use prowess_agent::{Input, Outcome, Run as Turn};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use super::Accepted;
use super::background;
use super::journal::LEFT_BEHIND;
use super::known::{Ended, How, Run, Why};
use super::open::{Asked, NotReady, Open};
use super::teller::{Ear, TICK, Teller};
use super::ticket::Ticket;
use crate::aside::blocking;
use crate::gateway::Gateway;
use crate::metrics;
use crate::telemetry::{Kind, Span};
use crate::wire::Refusal;

/// After how long a desk where nothing happens is given up.
const IDLE: Duration = Duration::from_secs(5);

/// How long, and how often, a session is waited for that another program has.
const BUSY: (Duration, u32) = (Duration::from_millis(200), 150);

/// What is said to a model when somebody begins anew and says nothing else.
const ANEW: &str = "A new session begins. Greet the person briefly, and ask what they would like to do.";

/// What a session is sent.
pub(super) enum Letter {
    /// Somebody says something.
    Turn(Box<Order>),
    /// Something happened that the model should know of.
    News,
    /// This command has ended, which went on in the background.
    JobEnded(String),
    /// The result of something that went on without a turn.
    Record(Box<News>),
    /// Somebody says something in the model's name.
    Inject(String, Reply<(String, Message)>),
    /// The session begins anew.
    Renew(Reply<Begun>),
    /// The session goes away.
    Remove(Transcripts, Reply<Removed>),
}

/// Where an answer goes.
pub(super) type Reply<T> = oneshot::Sender<Result<T, Refusal>>;

/// A turn that was asked for.
pub(super) struct Order {
    pub(super) ticket: Ticket,
    /// Whether the run was accepted.
    pub(super) accepted: Accepted,
    pub(super) text: String,
    pub(super) asked: Asked,
    pub(super) begin: Begin,
    pub(super) ear: Option<Ear>,
    /// Its share of the room that all images have together, until it is over.
    pub(super) _image_room: Option<OwnedSemaphorePermit>,
}

/// Whether a turn goes on with what was said before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Begin {
    /// It does.
    #[default]
    GoOn,
    /// It begins a new session behind the same key.
    Anew,
}

/// What the model should know of at its next turn.
pub(super) type Unread = Arc<Mutex<Vec<News>>>;

struct Desk {
    gateway: Arc<Gateway>,
    key: SessionKey,
    news: Unread,
    open: Option<Open>,
}

/// Keeps a session until nothing happens any more.
pub(super) async fn keep(gateway: Arc<Gateway>, key: SessionKey, mut letters: mpsc::Receiver<Letter>, news: Unread) {
    let closing = gateway.runs.closing();
    let mut desk = Desk { gateway, key, news, open: None };
    loop {
        let letter = tokio::select! {
            biased;
            () = closing.cancelled() => break,
            letter = letters.recv() => letter,
            () = tokio::time::sleep(IDLE) => {
                if desk.gateway.runs.retire(&desk.key, &letters) {
                    break;
                }
                continue;
            }
        };
        let Some(letter) = letter else { break };
        desk.open_letter(letter).await;
    }
    if let Some(open) = desk.open.take() {
        desk.gateway.runs.announced.keep(&desk.key, open.conversation.announced().clone());
        // The transcript notes its last use in the index when it is closed. What it cannot note is not missed.
        let _ = blocking(move || drop(open)).await;
    }
    // What is still in the queue is dropped with it, and ends by that.
    letters.close();
}

impl Desk {
    async fn open_letter(&mut self, letter: Letter) {
        match letter {
            Letter::Turn(order) => self.turn(*order).await,
            Letter::News => self.tell_news().await,
            Letter::JobEnded(job) => self.tell_end_of(&job).await,
            Letter::Record(news) => self.record(*news).await,
            // Who no longer waits for an answer does not get one.
            Letter::Inject(text, reply) => drop(reply.send(self.inject(&text).await)),
            Letter::Renew(reply) => drop(reply.send(self.renew().await)),
            Letter::Remove(transcripts, reply) => drop(reply.send(self.remove(transcripts).await)),
        }
    }

    /// A turn of its own, if the model has not heard the news with another.
    async fn tell_news(&mut self) {
        let is_empty = self.news.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
        if is_empty {
            return;
        }
        if !self.is_there().await {
            return self.forget_news();
        }
        self.speak_first().await;
    }

    /// Adds a result to the transcript, unless it is there.
    async fn record(&mut self, news: News) {
        let owed: Vec<String> = owed(&news).into_iter().collect();
        if self.is_there().await {
            if self.open.is_none()
                && let Err(why) = self.ready(&CancellationToken::new(), &Asked::default(), Begin::GoOn).await
            {
                tracing::warn!(session = %self.key, "a result could not be added to the session: {why}");
                return;
            }
            let Some(open) = &mut self.open else { return };
            if !owed.iter().any(|approval| open.conversation.has_late_result(approval))
                && let Err(error) = open.conversation.record(news)
            {
                tracing::warn!(session = %self.key, "a result could not be added to the session: {error}");
                return;
            }
        }
        self.gateway.runs.owed.settle(&owed).await;
    }

    /// A turn of its own, if the model has not heard of the end of `job` with another.
    async fn tell_end_of(&mut self, job: &str) {
        let knows = match &self.open {
            Some(open) => open.conversation.announced().contains(job),
            None => self.gateway.runs.announced.knows(&self.key, job),
        };
        let ended = self.gateway.exec.runner.find(&self.key.to_string(), job).and_then(|job| job.outcome());
        if !knows && ended.is_some_and(|outcome| background::is_news(&outcome)) && self.wants_ends().await {
            self.speak_first().await;
        }
    }

    /// Whether the session is there and is to hear of the end of commands by itself.
    async fn wants_ends(&self) -> bool {
        let (gateway, key) = (Arc::clone(&self.gateway), self.key.clone());
        let is_wanted = blocking(move || {
            let view = gateway.agents.get(Some(key.agent()))?.view();
            let own = &view.context.agent.tools["exec"]["notifyOnExit"];
            let common = &view.context.config.tree()["tools"]["exec"]["notifyOnExit"];
            Ok::<_, Refusal>(own.as_bool().or(common.as_bool()).unwrap_or(true))
        });
        matches!(is_wanted.await, Ok(Ok(true))) && self.is_there().await
    }

    /// A turn that nobody asked for: it begins with what the model should know of.
    async fn speak_first(&mut self) {
        let id = uuid::Uuid::new_v4().to_string();
        let Ok((ticket, accepted)) = self.gateway.runs.ticket(&self.gateway, &id, &self.key) else { return };
        let (asked, begin) = (Asked::default(), Begin::GoOn);
        self.turn(Order { ticket, accepted, text: String::new(), asked, begin, ear: None, _image_room: None }).await;
    }

    /// Whether the session is still there: one that was removed does not come back by itself.
    async fn is_there(&self) -> bool {
        let (gateway, key) = (Arc::clone(&self.gateway), self.key.clone());
        let entry = blocking(move || {
            gateway.agents.store(key.agent())?.entry(&key).map_err(|error| Refusal::unavailable(error.to_string()))
        });
        matches!(entry.await, Ok(Ok(Some(_))))
    }

    fn forget_news(&self) {
        self.news.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    async fn turn(&mut self, order: Order) {
        let Order { ticket, accepted, text, asked, begin, ear, _image_room } = order;
        if accepted.await.is_err() {
            return;
        }
        let run = Arc::clone(ticket.run());
        let teller = Teller::new(&self.gateway, &run, ear);
        let Some(_place) = self.place(&run).await else {
            teller.never_began();
            let stopped = run.why() == Some(Why::Gateway);
            ticket.end(if stopped { Ended::failed(&run.id, None, LEFT_BEHIND) } else { Ended::stopped(&run.id) });
            return;
        };
        if let Err(why) = self.ready(&run.cancel, &asked, begin).await {
            teller.failed(&why);
            ticket.end(Ended::failed(&run.id, None, &why));
            return;
        }
        let text = if text.is_empty() && begin == Begin::Anew { ANEW.to_owned() } else { text };
        let news = self.news_for(&text);
        let settled: Vec<String> = news.iter().filter_map(owed).collect();
        let Some(open) = &mut self.open else { return };
        open.conversation.hear(news);
        if open.is_full {
            teller.tell_results();
        }
        run.begin();
        let input = match Input::from(text).with_images(asked.images.to_vec()) {
            Ok(input) => input,
            Err(error) => {
                teller.failed(&error.to_string());
                ticket.end(Ended::failed(&run.id, run.started(), &error.to_string()));
                return;
            }
        };
        let (id, cancel, delivery) = (run.id.clone(), run.cancel.clone(), asked.delivery);
        let turn = Turn { id, cancel, delivery, ..Turn::new(teller.events()) };
        let span = self.gateway.telemetry.span("turn", Kind::Internal);
        let said = ticking(&teller, open.conversation.say(input, &turn)).await;
        self.gateway.telemetry.ended(span.map(|span| measured(said.as_ref().ok(), span)));
        let ended = match said {
            Ok(outcome) => {
                self.gateway.runs.owed.settle(&settled).await;
                count(&self.gateway, &outcome);
                ended(&run, &outcome)
            }
            Err(error) => {
                // The transcript may be somebody else's now.
                self.open = None;
                Ended::failed(&run.id, run.started(), &error.to_string())
            }
        };
        ticket.end(ended);
        background::attend(&self.gateway, &self.key);
    }

    /// Waits until there is a place among those that run; nothing if the run is ended before.
    async fn place(&self, run: &Run) -> Option<OwnedSemaphorePermit> {
        tokio::select! {
            biased;
            () = run.cancel.cancelled() => None,
            place = self.gateway.runs.place() => place,
        }
    }

    async fn ready(&mut self, cancel: &CancellationToken, asked: &Asked, begin: Begin) -> Result<(), String> {
        if begin == Begin::Anew {
            self.renew().await.map_err(|refusal| refusal.message)?;
        }
        let mut left = BUSY.1;
        loop {
            let (gateway, key, asked) = (Arc::clone(&self.gateway), self.key.clone(), asked.clone());
            let old = self.open.take();
            let ready = blocking(move || Open::ready(&gateway, &key, &asked, old)).await;
            match ready.map_err(|refusal| refusal.message)? {
                Ok(open) => {
                    self.open = Some(open);
                    return Ok(());
                }
                Err(NotReady::Busy(_)) if left > 0 && !cancel.is_cancelled() => {
                    left -= 1;
                    tokio::time::sleep(BUSY.0).await;
                }
                Err(why) => return Err(why.to_string()),
            }
        }
    }

    /// What the model should know of before it hears `text`. A command does not go to the model, so news stays for later.
    fn news_for(&self, text: &str) -> Vec<News> {
        if text.trim_start().starts_with('/') {
            return Vec::new();
        }
        std::mem::take(&mut *self.news.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn inject(&mut self, text: &str) -> Result<(String, Message), Refusal> {
        if self.open.is_none() {
            self.ready(&CancellationToken::new(), &Asked::default(), Begin::GoOn)
                .await
                .map_err(Refusal::unavailable)?;
        }
        let Some(open) = &mut self.open else { return Err(Refusal::unavailable("the session is not open")) };
        let injected = open.conversation.inject(text);
        injected.map(|(id, message)| (id.to_string(), message)).map_err(|error| Refusal::unavailable(error.to_string()))
    }

    async fn renew(&mut self) -> Result<Begun, Refusal> {
        self.open = None;
        self.forget_news();
        self.gateway.nodes.session_over(&self.key);
        let (gateway, key) = (Arc::clone(&self.gateway), self.key.clone());
        blocking(move || {
            gateway.agents.store(key.agent())?.reset(&key).map_err(|error| Refusal::unavailable(error.to_string()))
        })
        .await?
    }

    async fn remove(&mut self, transcripts: Transcripts) -> Result<Removed, Refusal> {
        self.open = None;
        self.forget_news();
        self.gateway.nodes.session_over(&self.key);
        let (gateway, key) = (Arc::clone(&self.gateway), self.key.clone());
        blocking(move || {
            let store = gateway.agents.store(key.agent())?;
            store.remove(&key, transcripts).map_err(|error| Refusal::unavailable(error.to_string()))
        })
        .await?
    }
}

/// Carries out a turn, and sees to it that what it says is told in time.
async fn ticking<T>(teller: &Teller, turn: impl Future<Output = T>) -> T {
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    tokio::pin!(turn);
    loop {
        tokio::select! {
            biased;
            done = &mut turn => return done,
            _ = ticks.tick() => teller.tick(),
        }
    }
}

/// The approval of the command whose late result this is.
fn owed(news: &News) -> Option<String> {
    let approval = news.details["approvalId"].as_str().filter(|_| news.details["late"] == true);
    approval.map(str::to_owned)
}

/// Puts a turn into the numbers.
fn count(gateway: &Gateway, outcome: &Outcome) {
    let how = match &outcome.end {
        End::Answered => metrics::Ended::Done,
        End::Interrupted => metrics::Ended::Stopped,
        End::Failed(_) => metrics::Ended::Failed,
    };
    gateway.metrics.turn_ended(how, outcome.took, &outcome.usage);
    for call in &outcome.calls {
        let how = if call.is_error { metrics::Ended::Failed } else { metrics::Ended::Done };
        gateway.metrics.tool_ended(&call.tool, how);
    }
}

/// A turn in a trace.
fn measured(outcome: Option<&Outcome>, span: Span) -> Span {
    let Some(outcome) = outcome else { return span.failed("not saved") };
    let span = span
        .attribute("gen_ai.request.model", outcome.model.as_str())
        .attribute("gen_ai.usage.input_tokens", outcome.usage.input)
        .attribute("gen_ai.usage.output_tokens", outcome.usage.output);
    match &outcome.end {
        End::Answered => span,
        End::Interrupted => span.failed("interrupted"),
        End::Failed(_) => span.failed("failed"),
    }
}

/// How a turn ended, for those who asked for it.
fn ended(run: &Run, outcome: &Outcome) -> Ended {
    let mut payload = frame::result(outcome);
    let how = match &outcome.end {
        End::Answered => How::Done,
        End::Interrupted if run.why() == Some(Why::Gateway) => {
            payload["status"] = "error".into();
            payload["summary"] = LEFT_BEHIND.into();
            How::Failed(LEFT_BEHIND.to_owned())
        }
        End::Interrupted => How::Stopped,
        End::Failed(why) => How::Failed(why.clone()),
    };
    // What was answered in the meantime waits no longer.
    let waiting = run.waiting();
    match payload.as_object_mut() {
        Some(payload) if waiting.is_empty() => drop(payload.shift_remove("waiting")),
        _ => payload["waiting"] = waiting.into(),
    }
    Ended { started: run.started(), at: now(), how, payload }
}
