//! The board: which questions are open, and how is each answered once?

use std::collections::HashMap;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prowess_agent::message::now;
use prowess_exec::approver::{Approver, Offer, RemoteAnswer, RemoteQuestion, ToolQuestion};
use prowess_policy::{Answer, Question};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

use super::journal::Journal;
use super::log::{self, Answerer, ApprovalLog};
use super::record::{Decision, Draft, PATIENCE, Record, Requester, Settled};
use super::show;
use crate::hub::{Audience, Hub, Urgency};
use crate::metrics::{Decided, Metrics};
use crate::scope::Scope;
use crate::wire::Refusal;

/// How many questions are kept, open and just answered ones together.
const MAX_QUESTIONS: usize = 256;

/// How many of them may be of clients. The rest is for what this gateway itself has to ask.
const MAX_OF_CLIENTS: usize = 192;

/// How many open ones may be of one client.
const MAX_OF_ONE: usize = 32;

/// How long an answered question is still known.
const LINGER: Duration = Duration::from_secs(15);

/// The longest that a question stays open.
const LONGEST: Duration = Duration::from_secs(60 * 60);

/// The fewest characters by which a question may be named instead of its whole id.
const MIN_PREFIX: usize = 8;

/// The longest id that somebody may give a question.
const MAX_ID: usize = 200;

/// All questions of a gateway.
pub(crate) struct Board {
    hub: Arc<Hub>,
    metrics: Arc<Metrics>,
    journal: Arc<Journal>,
    pub(crate) log: Arc<ApprovalLog>,
    questions: Mutex<HashMap<String, Entry>>,
    stop: CancellationToken,
}

struct Entry {
    record: Arc<Record>,
    settled: watch::Sender<Option<Settled>>,
    /// Whether what it allowed once was used.
    is_spent: bool,
}

/// A question that was put.
pub(crate) struct Asked {
    pub(crate) record: Arc<Record>,
    settled: watch::Receiver<Option<Settled>>,
    stop: CancellationToken,
}

impl Asked {
    /// Waits for its end, or that of the gateway.
    pub(crate) async fn settled(&mut self) -> Option<Decision> {
        tokio::select! {
            settled = self.settled.wait_for(Option::is_some) => settled.ok()?.as_ref()?.decision,
            () = self.stop.cancelled() => None,
        }
    }
}

/// Takes a question back when whoever put it no longer waits.
struct Withdraw<'a> {
    board: &'a Arc<Board>,
    id: String,
}

impl Drop for Withdraw<'_> {
    fn drop(&mut self) {
        self.board.settle(&self.id, Settled::without_answer("withdrawn"));
    }
}

impl Board {
    /// An empty one; what an earlier gateway left open is known as over. Looks at the disk.
    pub(crate) fn open(hub: Arc<Hub>, metrics: Arc<Metrics>, state_dir: &Path, stop: CancellationToken) -> Arc<Self> {
        let journal = Arc::new(Journal::open(state_dir));
        let log = Arc::new(ApprovalLog::in_state_dir(state_dir));
        Arc::new(Self { hub, metrics, journal, log, questions: Mutex::default(), stop })
    }

    /// Puts a question to everybody who may answer. If there is nobody, it is over at once.
    pub(crate) async fn put(self: &Arc<Self>, draft: Draft) -> Result<Asked, Refusal> {
        let patience = draft.patience.min(LONGEST);
        let asked = self.register(draft, patience)?;
        self.watch(asked.record.id.clone(), patience);
        self.save().await;
        let record = &asked.record;
        let payload = json!({
            "id": record.id,
            "request": record.request,
            "createdAtMs": record.created_at,
            "expiresAtMs": record.expires_at,
            "expiresInMs": record.time_left(),
        });
        self.hub.tell(Audience::With(Scope::Approvals), "exec.approval.requested", &payload, Urgency::Droppable);
        if !self.hub.guests().iter().any(|guest| guest.may(Scope::Approvals)) {
            self.settle(&record.id, Settled::without_answer("auto-expire:no-approver-clients"));
        }
        Ok(asked)
    }

    /// Puts a question for a turn of this gateway, and waits for the answer. Tells its id, too. `open` has the question as
    /// long as it waits.
    async fn ask(
        self: &Arc<Self>,
        request: Value,
        once_only: Option<String>,
        open: Option<&OpenQuestion>,
    ) -> Option<(String, Decision)> {
        let id = uuid::Uuid::new_v4().to_string();
        let _withdraw = Withdraw { board: self, id: id.clone() };
        let requester = Requester::Gateway;
        let draft = Draft { id: Some(id.clone()), request, patience: PATIENCE, requester, once_only };
        let mut asked = self.put(draft).await.ok()?;
        let Some(open) = open else { return Some((id, asked.settled().await?)) };
        open.send_replace(Some(Arc::clone(&asked.record)));
        let decision = asked.settled().await;
        open.send_replace(None);
        Some((id, decision?))
    }

    /// Answers the question of that id, or of an id that begins so. The first answer counts.
    pub(crate) fn resolve(&self, id: &str, decision: Decision, who: Answerer) -> Result<(), Refusal> {
        let id = self.find(id)?;
        let once_only = self.lock().get(&id).and_then(|entry| entry.record.once_only.clone());
        if let (Decision::Always, Some(why)) = (decision, once_only) {
            return Err(Refusal::invalid(format!(
                "this command cannot always be allowed: {why}; use allow-once or deny"
            )));
        }
        if self.settle(&id, Settled { decision: Some(decision), by: who.name.clone(), who: Some(who) }) {
            return Ok(());
        }
        Err(self.over(&id))
    }

    /// The question of that id, as long as it is known, with its answer.
    pub(crate) fn look(&self, id: &str) -> Option<(Arc<Record>, Option<Settled>)> {
        let questions = self.lock();
        let entry = questions.get(id)?;
        let settled = entry.settled.borrow().clone();
        Some((Arc::clone(&entry.record), settled))
    }

    /// Waits for the end of a question that is known.
    pub(crate) fn listen(&self, id: &str) -> Option<Asked> {
        let questions = self.lock();
        let entry = questions.get(id)?;
        let (record, settled) = (Arc::clone(&entry.record), entry.settled.subscribe());
        Some(Asked { record, settled, stop: self.stop.clone() })
    }

    /// Uses up what was allowed once. Tells whether it was there to be used.
    pub(crate) fn spend(&self, id: &str) -> bool {
        let mut questions = self.lock();
        let Some(entry) = questions.get_mut(id) else { return false };
        !std::mem::replace(&mut entry.is_spent, true)
    }

    /// All open questions, the oldest first.
    pub(crate) fn list(&self) -> Vec<Arc<Record>> {
        let questions = self.lock();
        let open = questions.values().filter(|entry| entry.settled.borrow().is_none());
        let mut open: Vec<_> = open.map(|entry| Arc::clone(&entry.record)).collect();
        open.sort_by(|one, other| (one.created_at, &one.id).cmp(&(other.created_at, &other.id)));
        open
    }

    fn register(&self, draft: Draft, patience: Duration) -> Result<Asked, Refusal> {
        let id = draft.id.unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
        if id.len() > MAX_ID {
            return Err(Refusal::invalid(format!("approval id too long: use at most {MAX_ID} bytes")));
        }
        let mut questions = self.lock();
        if questions.contains_key(&id) {
            return Err(Refusal::invalid("approval id already pending"));
        }
        check_room(&questions, &draft.requester)?;
        let created_at = now();
        let record = Arc::new(Record {
            id: id.clone(),
            request: draft.request,
            created_at,
            expires_at: created_at.saturating_add(u64::try_from(patience.as_millis()).unwrap_or(u64::MAX)),
            requester: draft.requester,
            once_only: draft.once_only,
        });
        let settled = watch::Sender::new(None);
        let asked = Asked { record: Arc::clone(&record), settled: settled.subscribe(), stop: self.stop.clone() };
        questions.insert(id, Entry { record, settled, is_spent: false });
        Ok(asked)
    }

    /// Ends a question, unless it has ended already, and tells everybody.
    fn settle(&self, id: &str, settled: Settled) -> bool {
        let (decision, by, who) = (settled.decision, settled.by.clone(), settled.who.clone());
        let record = {
            let questions = self.lock();
            let Some(entry) = questions.get(id) else { return false };
            // A late answer is no answer, even if the clock has not rung yet.
            if decision.is_some() && now() >= entry.record.expires_at {
                return false;
            }
            let is_first = entry.settled.send_if_modified(|state| {
                let is_open = state.is_none();
                if is_open {
                    *state = Some(settled);
                }
                is_open
            });
            if !is_first {
                return false;
            }
            Arc::clone(&entry.record)
        };
        self.metrics.approval_ended(match decision {
            Some(Decision::Once) => Decided::AllowOnce,
            Some(Decision::Session) => Decided::AllowSession,
            Some(Decision::Always) => Decided::AllowAlways,
            Some(Decision::Deny) => Decided::Deny,
            None => Decided::Expired,
        });
        let payload = json!({
            "id": record.id,
            "decision": decision.map(Decision::as_str),
            "resolvedBy": by,
            "by": who.as_ref().map(Answerer::render),
            "ts": now(),
            "request": record.request,
        });
        self.hub.tell(Audience::With(Scope::Approvals), "exec.approval.resolved", &payload, Urgency::Droppable);
        let (log, entry) = (Arc::clone(&self.log), log::entry(&record, &Settled { decision, by, who }, now()));
        // The client that answered gets its response at once, without waiting for the disk.
        spawn_blocking(move || log.append(&entry));
        true
    }

    /// Ends the question when its time is up, and forgets it a while after its end.
    fn watch(self: &Arc<Self>, id: String, patience: Duration) {
        let Some(mut asked) = self.listen(&id) else { return };
        let (board, stop) = (Arc::clone(self), self.stop.clone());
        tokio::spawn(async move {
            let life = async {
                if tokio::time::timeout(patience, asked.settled()).await.is_err() {
                    board.settle(&id, Settled::without_answer("timeout"));
                }
                board.save().await;
                tokio::time::sleep(LINGER).await;
                board.lock().remove(&id);
            };
            tokio::select! {
                () = life => {}
                () = stop.cancelled() => {}
            }
        });
    }

    /// The whole id of a question.
    fn find(&self, id: &str) -> Result<String, Refusal> {
        let questions = self.lock();
        if questions.contains_key(id) {
            return Ok(id.to_owned());
        }
        let is_meant = |entry: &&Entry| entry.settled.borrow().is_none() && entry.record.id.starts_with(id);
        let mut meant = questions.values().filter(|_| id.len() >= MIN_PREFIX).filter(is_meant);
        match (meant.next(), meant.next()) {
            (Some(entry), None) => Ok(entry.record.id.clone()),
            (Some(_), Some(_)) => Err(Refusal::invalid("ambiguous approval id prefix; use the full id")),
            (None, _) if self.journal.is_expired(id) => Err(expired()),
            (None, _) => Err(Refusal::invalid("unknown approval id")),
        }
    }

    /// Why a question that is known cannot be answered any more.
    fn over(&self, id: &str) -> Refusal {
        match self.look(id) {
            Some((_, Some(Settled { decision: Some(decision), by, .. }))) => {
                let details = json!({"code": "ALREADY_RESOLVED", "decision": decision.as_str(), "resolvedBy": by});
                Refusal::invalid("unknown approval id").details(details)
            }
            Some(_) => expired(),
            None => Refusal::invalid("unknown approval id"),
        }
    }

    async fn save(self: &Arc<Self>) {
        let board = Arc::clone(self);
        let save = move || board.journal.save(|| board.list().iter().map(|record| record.id.clone()).collect());
        // What could not be written is in the log.
        let _ = spawn_blocking(save).await;
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Entry>> {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether one more question of `requester` fits.
fn check_room(questions: &HashMap<String, Entry>, requester: &Requester) -> Result<(), Refusal> {
    let own = |entry: &&Entry| entry.record.requester.is_same_client(requester) && entry.settled.borrow().is_none();
    let is_full = match requester {
        Requester::Gateway => questions.len() >= MAX_QUESTIONS,
        Requester::Client { .. } => {
            let of_clients = questions.values().filter(|entry| entry.record.requester != Requester::Gateway).count();
            of_clients >= MAX_OF_CLIENTS || questions.values().filter(own).count() >= MAX_OF_ONE
        }
    };
    if is_full {
        return Err(Refusal::unavailable("too many approvals are pending; answer some first"));
    }
    Ok(())
}

fn expired() -> Refusal {
    Refusal::invalid("approval expired; run the command again to be asked again")
        .details(json!({"code": "APPROVAL_EXPIRED"}))
}

/// The question that a call of a tool waits for, while it waits for one.
pub(crate) type OpenQuestion = watch::Sender<Option<Arc<Record>>>;

/// The people who are connected to a gateway, as those whom its turns ask.
pub(crate) struct Connected {
    board: Arc<Board>,
    /// Where a question is kept as long as it waits.
    open: Option<OpenQuestion>,
}

impl Connected {
    /// Those who answer the questions of `board`.
    pub(crate) fn new(board: &Arc<Board>) -> Self {
        Self { board: Arc::clone(board), open: None }
    }

    /// The same for one call, which shows in `open` what it waits for.
    pub(crate) fn for_call(board: &Arc<Board>, open: OpenQuestion) -> Self {
        Self { board: Arc::clone(board), open: Some(open) }
    }

    async fn put(&self, request: Option<Value>, once_only: Option<String>) -> Option<(String, Decision)> {
        self.board.ask(request?, once_only, self.open.as_ref()).await
    }
}

impl Approver for Connected {
    fn ask<'a>(&'a self, question: &'a Question) -> Pin<Box<dyn Future<Output = Option<Answer>> + Send + 'a>> {
        let judgment = question.judgment();
        let request = show::request(judgment);
        let once_only = judgment.grants().err().map(|why| why.to_string());
        Box::pin(async move { Some(self.put(request, once_only).await?.1.answer()) })
    }

    fn ask_remote<'a>(
        &'a self,
        question: &'a RemoteQuestion,
    ) -> Pin<Box<dyn Future<Output = Option<RemoteAnswer>> + Send + 'a>> {
        Box::pin(async move {
            let (id, decision) = self.put(Some(question.request.clone()), question.once_only.clone()).await?;
            Some(RemoteAnswer { id, answer: decision.answer() })
        })
    }

    fn ask_tool<'a>(&'a self, question: &'a ToolQuestion) -> Pin<Box<dyn Future<Output = Option<Answer>> + Send + 'a>> {
        let request = show::tool_request(question);
        let once_only = (question.offer == Offer::Once).then(|| "it can only be allowed once".to_owned());
        Box::pin(async move { Some(self.put(request, once_only).await?.1.answer()) })
    }

    fn nobody(&self) -> Option<&'static str> {
        let is_anybody_here = self.board.hub.guests().iter().any(|guest| guest.may(Scope::Approvals));
        (!is_anybody_here).then_some("no client that can approve is connected (`prowess dashboard` opens one)")
    }
}
