//! Runs: how do messages become turns, whoever sends them?
//!
//! A session is owned by one task, its desk; everybody else sends it letters. A run is known by its name, so that asking
//! twice runs once, and the journal knows of it before anybody is told that it was accepted.

mod announced;
mod background;
mod desk;
pub(crate) mod history;
mod journal;
pub(crate) mod keys;
mod known;
mod later;
pub(crate) mod listing;
mod open;
mod owed;
mod stop_words;
mod subagents;
mod teller;
mod ticket;
pub(crate) mod tools;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use prowess_agent::message::Message;
use prowess_agent::news::News;
use prowess_agent::session::{Begun, Removed, SessionKey, Transcripts};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(crate) use desk::Begin;
pub use journal::{JournalError, is_running_in};
pub(crate) use known::{Ended, How, Run, State, Why};
pub(crate) use later::{WAIT, settle_owed};
pub(crate) use open::Asked;
pub(crate) use stop_words::means_stop;
pub(crate) use teller::{Ear, TOOL_EVENTS, Teller};

use crate::gateway::Gateway;
use crate::wire::Refusal;
use announced::{Announced, Unheard};
use background::Attended;
use desk::{Letter, Order, Unread};
use journal::Journal;
use known::Known;
use owed::OwedResults;
use subagents::Children;
use ticket::Ticket;

/// How many letters wait for one session.
const MAX_LETTERS: usize = 32;

/// How many sessions are open at once.
const MAX_DESKS: usize = 1_024;

/// How many turns run at once, unless `agents.defaults.maxConcurrent` says otherwise.
const MAX_TURNS: usize = 256;

/// How much of images waits for turns to begin, in KiB of base64.
const MAX_IMAGE_KIB: usize = 256 * 1024;

/// How many pieces of news wait for a session, and how long each may be, in characters.
const MAX_NEWS: usize = 64;
const MAX_NEWS_CHARS: usize = 16 * 1024;

/// The longest name of a run, in bytes.
const MAX_NAME: usize = 256;

/// How long turns have to end once they are told to.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// How long turns go on when the gateway is to end, unless something else is said.
pub(crate) const GRACE: Duration = Duration::from_secs(20);

/// All runs of a gateway.
pub(crate) struct Runs {
    known: Known,
    journal: Journal,
    desks: Mutex<HashMap<SessionKey, Desk>>,
    children: Children,
    announced: Announced,
    attended: Attended,
    unheard: Unheard,
    places: Arc<Semaphore>,
    /// Room for the images of turns that wait or run, in KiB.
    image_room: Arc<Semaphore>,
    /// Commands that outlived their turn, by the session that waits for them.
    left: Mutex<Vec<(Left, AbortHandle)>>,
    /// Those of them whose sessions have no result yet.
    owed: Arc<OwedResults>,
    closing: CancellationToken,
    tasks: TaskTracker,
}

/// A command that outlived its turn.
struct Left {
    key: SessionKey,
    /// The run that made the call.
    run: Option<String>,
    /// Ends it; its session is told.
    stop: CancellationToken,
}

/// Where letters for a session go.
struct Desk {
    letters: mpsc::Sender<Letter>,
    news: Unread,
}

/// A turn that is asked for.
pub(crate) struct Wish {
    /// Its name.
    pub(crate) id: String,
    pub(crate) key: SessionKey,
    /// What is said.
    pub(crate) text: String,
    pub(crate) asked: Asked,
    pub(crate) begin: Begin,
    /// The connection that hears of its tools.
    pub(crate) conn: Option<String>,
    pub(crate) ear: Option<Ear>,
}

/// Whether the journal knows of a run. A run is accepted, and may begin, only when it does.
type Accepted = Shared<BoxFuture<'static, Result<(), Refusal>>>;

/// A turn that has its place in the queue of its session.
pub(crate) struct Enqueued {
    started: Started,
    accepted: Option<Accepted>,
}

/// What came of asking for a turn.
pub(crate) enum Started {
    /// It was accepted.
    New(Arc<Run>),
    /// It was asked for before.
    Known(Arc<Run>),
}

impl Enqueued {
    /// Waits until the run is accepted.
    pub(crate) async fn accepted(self) -> Result<Started, Refusal> {
        if let Some(accepted) = self.accepted {
            accepted.await?;
        }
        Ok(self.started)
    }
}

impl Started {
    /// The run, new or not.
    pub(crate) fn run(&self) -> &Arc<Run> {
        match self {
            Self::New(run) | Self::Known(run) => run,
        }
    }
}

impl Runs {
    /// Those of the gateway with this state directory. Runs that an earlier one left behind end here.
    pub(crate) fn open(state_dir: &Path, config: &serde_json::Value) -> Result<Self, JournalError> {
        let (journal, past) = Journal::open(&state_dir.join("gateway"))?;
        let known = Known::default();
        for one in past {
            if let Some(ended) = one.ended {
                known.restore(&one.run, &one.key, ended);
            }
        }
        let places = config["agents"]["defaults"]["maxConcurrent"].as_u64().and_then(|most| usize::try_from(most).ok());
        Ok(Self {
            known,
            journal,
            desks: Mutex::default(),
            children: Children::default(),
            announced: Announced::default(),
            attended: Attended::default(),
            unheard: Unheard::default(),
            places: Arc::new(Semaphore::new(places.unwrap_or(MAX_TURNS).clamp(1, MAX_TURNS))),
            image_room: Arc::new(Semaphore::new(MAX_IMAGE_KIB)),
            left: Mutex::default(),
            owed: Arc::new(OwedResults::open(&state_dir.join("gateway"))),
            closing: CancellationToken::new(),
            tasks: TaskTracker::new(),
        })
    }

    /// Starts a turn, or says which one it is already.
    pub(crate) async fn start(&self, gateway: &Arc<Gateway>, wish: Wish) -> Result<Started, Refusal> {
        self.enqueue(gateway, wish)?.accepted().await
    }

    /// Puts a turn into the queue of its session, or says which one it is already. Turns of one session run in the order
    /// of these calls.
    pub(crate) fn enqueue(&self, gateway: &Arc<Gateway>, wish: Wish) -> Result<Enqueued, Refusal> {
        let Wish { id, key, text, asked, begin, conn, ear } = wish;
        let join = |run: &Run| {
            if let Some(conn) = &conn {
                run.join(conn);
            }
        };
        if let Some(run) = self.known.get(&id) {
            join(&run);
            return Ok(Enqueued { started: Started::Known(run), accepted: None });
        }
        // Once it is in the journal it has to run, so there is a place for it first.
        let place = self.place_for_letter(gateway, &key)?;
        let image_room = self.room_for(&asked)?;
        let (ticket, accepted) = match self.ticket(gateway, &id, &key) {
            Ok(ticket) => ticket,
            // Another client may have asked for it at the same moment.
            Err(refusal) => {
                let run = self.known.get(&id).inspect(|run| join(run)).ok_or(refusal)?;
                return Ok(Enqueued { started: Started::Known(run), accepted: None });
            }
        };
        let run = Arc::clone(ticket.run());
        join(&run);
        let order = Order { ticket, accepted: accepted.clone(), text, asked, begin, ear, _image_room: image_room };
        place.send(Letter::Turn(Box::new(order)));
        Ok(Enqueued { started: Started::New(run), accepted: Some(accepted) })
    }

    /// Room for the images of a turn, until it is over.
    fn room_for(&self, asked: &Asked) -> Result<Option<OwnedSemaphorePermit>, Refusal> {
        let kib = asked.images.iter().map(|image| image.data.len()).sum::<usize>().div_ceil(1024);
        let Some(kib) = u32::try_from(kib).ok().filter(|kib| *kib > 0) else { return Ok(None) };
        Arc::clone(&self.image_room).try_acquire_many_owned(kib).map(Some).map_err(|_| {
            let why = "too many images are waiting for their turns; wait until some are done, or send smaller ones";
            Refusal::unavailable(why).retry_after(1_000)
        })
    }

    /// The run of that name, if it is remembered.
    pub(crate) fn get(&self, id: &str) -> Option<Arc<Run>> {
        self.known.get(id)
    }

    /// The run that is under way in a session.
    pub(crate) fn current(&self, key: &SessionKey) -> Option<Arc<Run>> {
        self.known.open(key).into_iter().find(|run| matches!(run.state(), State::Running(_)))
    }

    /// The runs that are under way: the key of each session, and who tells of the run.
    pub(crate) fn running(&self) -> Vec<(String, Arc<Teller>)> {
        let open = self.known.all_open();
        open.iter().filter_map(|run| Some((run.key.to_string(), run.teller()?))).collect()
    }

    /// Ends the runs of a session, and of the sub-agents that it started. Says which.
    pub(crate) fn stop_session(&self, key: &SessionKey, why: Why) -> Vec<String> {
        let runs = self.known.open(key);
        for run in &runs {
            run.stop(why);
        }
        for child in self.children.of(key) {
            self.stop_session(&child, why);
        }
        runs.iter().map(|run| run.id.clone()).collect()
    }

    /// The runs of a session that go on or wait for their turn.
    pub(crate) fn open_in(&self, key: &SessionKey) -> Vec<String> {
        let open = self.known.open(key);
        // The journal may not have heard yet of one whose end clients were told.
        open.iter().filter(|run| !run.is_told_over()).map(|run| run.id.clone()).collect()
    }

    /// Lets the model of a session know of something. If nobody speaks with it, a turn begins for that.
    pub(crate) fn wake(&self, gateway: &Arc<Gateway>, key: &SessionKey, news: News) {
        if let Some(letters) = self.tell(gateway, key, news) {
            // With a full queue it is told with one of the turns that wait.
            let _ = letters.try_send(Letter::News);
        }
    }

    /// The same, but its next turn is soon enough.
    pub(crate) fn note(&self, gateway: &Arc<Gateway>, key: &SessionKey, news: News) {
        self.tell(gateway, key, news);
    }

    /// Puts news where the next turn of the session finds it.
    fn tell(&self, gateway: &Arc<Gateway>, key: &SessionKey, news: News) -> Option<mpsc::Sender<Letter>> {
        if self.closing.is_cancelled() {
            return None;
        }
        let mut desks = self.lock();
        let Ok(desk) = self.desk(&mut desks, gateway, key) else {
            tracing::warn!(session = %key, "too many sessions are open; a result could not be delivered");
            return None;
        };
        let mut waiting = desk.news.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= MAX_NEWS {
            waiting.remove(0);
        }
        waiting.push(News { text: printable(&news.text), ..news });
        Some(desk.letters.clone())
    }

    /// Adds what came of something to the transcript of a session, without a turn.
    fn record(&self, gateway: &Arc<Gateway>, key: &SessionKey, news: News) {
        if let Err(refusal) = self.post(gateway, key, Letter::Record(Box::new(news))) {
            tracing::warn!(session = %key, "a result could not be delivered: {}", refusal.message);
        }
    }

    /// Carries `work` on for a session that no longer waits for it in a turn.
    fn leave(&self, left: Left, work: impl Future<Output = ()> + Send + 'static) {
        let mut all = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(_, work)| !work.is_finished());
        all.push((left, self.tasks.spawn(work).abort_handle()));
    }

    /// Ends the commands that turns of a session, or one of its runs, left behind. Questions that wait are taken back.
    /// Says to which runs they belong.
    pub(crate) fn stop_left(&self, key: &SessionKey, run: Option<&str>) -> Vec<String> {
        let all = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let is_meant = |left: &Left| left.key == *key && run.is_none_or(|run| left.run.as_deref() == Some(run));
        let mut runs = Vec::new();
        for (left, _) in all.iter().filter(|(left, work)| is_meant(left) && !work.is_finished()) {
            left.stop.cancel();
            runs.extend(left.run.clone().filter(|run| !runs.contains(run)));
        }
        runs
    }

    /// Ends what was left behind by the turns of a session that is over. A question that waits is taken back.
    async fn withdraw(&self, key: &SessionKey) {
        {
            let left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
            left.iter().filter(|(left, _)| left.key == *key).for_each(|(_, work)| work.abort());
        }
        self.owed.forget(key).await;
    }

    /// Begins a new session behind `key`, after what goes on there was ended.
    pub(crate) async fn renew(&self, gateway: &Arc<Gateway>, key: &SessionKey) -> Result<Begun, Refusal> {
        self.stop_session(key, Why::Asked);
        self.withdraw(key).await;
        self.children.disown(key);
        self.request(gateway, key, Letter::Renew).await
    }

    /// Removes a session, after what goes on there was ended.
    pub(crate) async fn remove(
        &self,
        gateway: &Arc<Gateway>,
        key: &SessionKey,
        transcripts: Transcripts,
    ) -> Result<Removed, Refusal> {
        self.stop_session(key, Why::Asked);
        self.withdraw(key).await;
        self.children.disown(key);
        self.request(gateway, key, |reply| Letter::Remove(transcripts, reply)).await
    }

    /// Says something in the model's name, after what is in the queue of the session at the moment of this call.
    pub(crate) fn inject(
        &self,
        gateway: &Arc<Gateway>,
        key: &SessionKey,
        text: String,
    ) -> impl Future<Output = Result<(String, Message), Refusal>> + use<> {
        self.request(gateway, key, |reply| Letter::Inject(text, reply)).boxed()
    }

    /// Ends everything: new turns are refused, those that wait fail, those that run have `grace` to come to their end
    /// and are interrupted then. All of it is on disk when this returns.
    pub(crate) async fn park(&self, grace: Duration) {
        self.closing.cancel();
        self.tasks.close();
        if tokio::time::timeout(grace, self.tasks.wait()).await.is_err() {
            for run in self.known.all_open() {
                run.stop(Why::Gateway);
            }
            if tokio::time::timeout(LAST_WORDS, self.tasks.wait()).await.is_err() {
                tracing::warn!("some turns did not finish in time; the next gateway reports them as interrupted");
            }
        }
        self.journal.close();
    }

    /// Lets go of everything at once, as if the gateway was killed.
    pub(crate) fn abandon(&self) {
        self.journal.close();
        self.closing.cancel();
        for run in self.known.all_open() {
            run.stop(Why::Gateway);
        }
    }

    /// A new run of that name, which the journal is told of.
    fn ticket(&self, gateway: &Arc<Gateway>, id: &str, key: &SessionKey) -> Result<(Ticket, Accepted), Refusal> {
        if self.closing.is_cancelled() {
            return Err(Refusal::unavailable(
                "the gateway is shutting down and accepts no more messages; try again later",
            ));
        }
        if id.len() > MAX_NAME {
            return Err(Refusal::invalid(format!("the idempotencyKey is longer than {MAX_NAME} bytes; shorten it")));
        }
        let run = match self.known.begin(id, key) {
            known::Begun::New(run) => run,
            known::Begun::Known => return Err(Refusal::invalid(format!("the run {id} has already started"))),
            known::Begun::Full => {
                let why = "too many runs at once; wait until some have finished";
                return Err(Refusal::unavailable(why).retry_after(1_000));
            }
        };
        let ticket = Ticket::new(gateway, Arc::clone(&run));
        let (written, gateway) = (self.journal.begun(&run), Arc::clone(gateway));
        let accepted = async move {
            written.await.map_err(|why| {
                let why = format!("cannot write the run journal: {why}");
                // It was never accepted, so it may be asked for again.
                gateway.runs.known.forget(&run.id);
                run.end(Ended::failed(&run.id, None, &why));
                Refusal::unavailable(why)
            })
        };
        Ok((ticket, accepted.boxed().shared()))
    }

    /// A run is over: on disk first, and then for those who wait.
    fn finish(&self, run: &Arc<Run>, ended: Ended) {
        if !run.is_over() {
            self.journal.ended(run, ended);
        }
    }

    /// Sends a letter that is answered. It has its place in the queue before the answer is waited for.
    fn request<T, F: FnOnce(desk::Reply<T>) -> Letter>(
        &self,
        gateway: &Arc<Gateway>,
        key: &SessionKey,
        letter: F,
    ) -> impl Future<Output = Result<T, Refusal>> + use<T, F> {
        let (reply, answer) = oneshot::channel();
        let posted = self.post(gateway, key, letter(reply));
        async move {
            posted?;
            answer.await.unwrap_or_else(|_| Err(Refusal::unavailable("the gateway is shutting down; try again later")))
        }
    }

    /// Sends a letter to a session.
    fn post(&self, gateway: &Arc<Gateway>, key: &SessionKey, letter: Letter) -> Result<(), Refusal> {
        self.place_for_letter(gateway, key).map(|place| drop(place.send(letter)))
    }

    /// A place for a letter to a session. Its desk is not given up before it is used or dropped.
    fn place_for_letter(&self, gateway: &Arc<Gateway>, key: &SessionKey) -> Result<mpsc::OwnedPermit<Letter>, Refusal> {
        let mut desks = self.lock();
        let desk = self.desk(&mut desks, gateway, key)?;
        desk.letters.clone().try_reserve_owned().map_err(|_| {
            let why =
                format!("{MAX_LETTERS} messages are already waiting in the session {key}; wait for an answer first");
            Refusal::unavailable(why).retry_after(1_000)
        })
    }

    /// The desk of a session, which is made if there is none. Places for letters are taken under the same lock, so that
    /// none is sent to a desk that is being given up.
    fn desk<'a>(
        &self,
        desks: &'a mut HashMap<SessionKey, Desk>,
        gateway: &Arc<Gateway>,
        key: &SessionKey,
    ) -> Result<&'a Desk, Refusal> {
        // One whose task was lost is made anew.
        if desks.get(key).is_some_and(|desk| desk.letters.is_closed()) {
            desks.remove(key);
        }
        if desks.len() >= MAX_DESKS && !desks.contains_key(key) {
            let why = format!("{MAX_DESKS} sessions are already open; wait until some are done");
            return Err(Refusal::unavailable(why).retry_after(1_000));
        }
        Ok(desks.entry(key.clone()).or_insert_with(|| {
            let (letters, inbox) = mpsc::channel(MAX_LETTERS);
            let news = Unread::new(Mutex::new(self.unheard.take(key)));
            self.tasks.spawn(desk::keep(Arc::clone(gateway), key.clone(), inbox, Arc::clone(&news)));
            Desk { letters, news }
        }))
    }

    /// Gives a desk up, unless a letter came. Says whether it was.
    fn retire(&self, key: &SessionKey, inbox: &mpsc::Receiver<Letter>) -> bool {
        let mut desks = self.lock();
        if inbox.capacity() < inbox.max_capacity() {
            return false;
        }
        if let Some(desk) = desks.remove(key) {
            let news = std::mem::take(&mut *desk.news.lock().unwrap_or_else(PoisonError::into_inner));
            self.unheard.keep(key, news);
        }
        true
    }

    /// Whether no more work is taken.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.is_cancelled()
    }

    fn closing(&self) -> CancellationToken {
        self.closing.clone()
    }

    /// A place among those that run.
    async fn place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.places).acquire_owned().await.ok()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<SessionKey, Desk>> {
        self.desks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a run said, for who wants nothing but that.
pub(crate) fn answer_text(ended: &Ended) -> String {
    let payloads = ended.payload["result"]["payloads"].as_array().map(Vec::as_slice).unwrap_or_default();
    let texts = payloads.iter().filter_map(|payload| payload["text"].as_str()).filter(|text| !text.is_empty());
    texts.collect::<Vec<_>>().join("\n\n")
}

/// `text` without control characters that a log or a terminal would act on, and not too long.
fn printable(text: &str) -> String {
    let is_shown = |c: &char| matches!(c, '\n' | '\t') || !c.is_control();
    let mut shown: String = text.chars().filter(is_shown).take(MAX_NEWS_CHARS).collect();
    if text.chars().nth(MAX_NEWS_CHARS).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use prowess_agent::image::Image;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_run_whose_end_was_told_is_not_open() {
        let dir = tempfile::tempdir().expect("a folder");
        let runs = Runs::open(dir.path(), &json!({})).expect("runs");
        let key = SessionKey::new("main", "main");
        let known::Begun::New(run) = runs.known.begin("a", &key) else { panic!("it is new") };
        run.begin();
        assert_eq!(runs.open_in(&key), ["a"]);
        run.tell_over();
        assert!(runs.open_in(&key).is_empty() && !run.is_over(), "the journal has not heard of it yet");
    }

    #[test]
    fn images_that_wait_have_a_bound_together() {
        let dir = tempfile::tempdir().expect("a folder");
        let runs = Runs::open(dir.path(), &json!({})).expect("runs");
        let image = Image { data: "x".repeat(MAX_IMAGE_KIB * 1024 / 4), mime_type: "image/png".to_owned() };
        let asked = Asked { images: Arc::new(vec![image.clone(), image.clone(), image]), ..Asked::default() };
        let first = runs.room_for(&asked).expect("there is room");
        assert!(first.is_some() && runs.room_for(&asked).is_err());
        assert!(
            runs.room_for(&Asked::default()).is_ok_and(|room| room.is_none()),
            "without images there is always room"
        );
        drop(first);
        assert!(runs.room_for(&asked).is_ok());
    }
}
