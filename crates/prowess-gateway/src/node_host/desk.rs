//! The desk: how is every request of the gateway done once and answered once?

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::approved::fingerprint;
use super::bench::{Bench, Failed};
use super::link::Link;
use super::order::Order;
use crate::aside::blocking;

/// For how long an answer is kept, once there is one, for whoever asks the same again.
const MEMORY: Duration = Duration::from_secs(5 * 60);

/// How many answers are kept.
const MAX_KEPT: usize = 1000;

/// The largest parameters that are read, in bytes.
const MAX_PARAMS: usize = 4 * 1024 * 1024;

/// What was asked of this machine.
pub(super) struct Desk {
    bench: Arc<Bench>,
    link: Link,
    /// By the gateway's name for what should be done only once.
    work: Mutex<HashMap<String, Work>>,
    tasks: TaskTracker,
}

struct Work {
    /// What it is, to tell whether somebody uses the same name for something else.
    what: String,
    /// The requests that wait for it.
    requests: Vec<String>,
    cancel: CancellationToken,
    done: watch::Sender<Option<Done>>,
}

/// What came of it.
#[derive(Debug, Clone)]
struct Done {
    result: Result<Value, Failed>,
    at: Instant,
}

impl Work {
    fn new(what: String, request: String) -> Self {
        Self { what, requests: vec![request], cancel: CancellationToken::new(), done: watch::Sender::new(None) }
    }

    fn end(&self, result: Result<Value, Failed>, at: Instant) {
        self.done.send_replace(Some(Done { result, at }));
    }

    /// When it was done, if it is.
    fn ended(&self) -> Option<Instant> {
        self.done.borrow().as_ref().map(|done| done.at)
    }
}

/// A request as it came.
struct Asked {
    id: String,
    node: String,
    command: String,
    params: Value,
    key: String,
    timeout: Option<Duration>,
}

impl Desk {
    pub(super) fn new(bench: Arc<Bench>, link: Link) -> Self {
        Self { bench, link, work: Mutex::default(), tasks: TaskTracker::new() }
    }

    /// Takes a request. Whatever comes of it is told to the gateway.
    pub(super) fn take(self: &Arc<Self>, payload: &Value) {
        let Some(asked) = read(payload) else { return };
        let what = fingerprint(&json!([asked.command, asked.params]).to_string());
        let done = {
            let mut work = self.lock();
            tidy(&mut work, Instant::now());
            match work.get_mut(&asked.key) {
                Some(same) if same.what == what => {
                    same.requests.push(asked.id.clone());
                    same.done.subscribe()
                }
                Some(_) => {
                    let other = Work::new(what, asked.id.clone());
                    other.end(Err(Failed::invalid("idempotencyKey was used for another request")), Instant::now());
                    other.done.subscribe()
                }
                None => {
                    let new = Work::new(what, asked.id.clone());
                    let (cancel, done) = (new.cancel.clone(), new.done.subscribe());
                    work.insert(asked.key.clone(), new);
                    self.begin(&asked, cancel);
                    done
                }
            }
        };
        self.answer(asked, done);
    }

    /// Ends what nobody waits for any more.
    pub(super) fn cancel(&self, payload: &Value) {
        let Some(id) = payload["id"].as_str() else { return };
        for work in self.lock().values_mut() {
            let before = work.requests.len();
            work.requests.retain(|request| request != id);
            if work.requests.is_empty() && before > 0 {
                work.cancel.cancel();
            }
        }
    }

    /// Ends all that runs.
    pub(super) fn end_all(&self) {
        for one in self.lock().values() {
            one.cancel.cancel();
        }
    }

    /// Waits until nothing runs any more.
    pub(super) async fn ended(&self) {
        self.link.end();
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn begin(self: &Arc<Self>, asked: &Asked, cancel: CancellationToken) {
        let desk = Arc::clone(self);
        let (command, params, key, timeout) =
            (asked.command.clone(), asked.params.clone(), asked.key.clone(), asked.timeout);
        self.tasks.spawn(async move {
            let result = desk.perform(&command, &params, timeout, &cancel).await;
            if let Some(work) = desk.lock().get(&key) {
                work.end(result, Instant::now());
            }
        });
    }

    async fn perform(
        &self,
        command: &str,
        params: &Value,
        timeout: Option<Duration>,
        cancel: &CancellationToken,
    ) -> Result<Value, Failed> {
        match command {
            "system.run" => {
                let mut order = Order::parse(params).map_err(Failed::invalid)?;
                // Past the gateway's deadline nobody waits.
                order.timeout = order.timeout.or(timeout);
                self.bench.run(&order, &self.link, cancel).await
            }
            "system.run.prepare" => self.bench.prepare(params, &self.link).await,
            "system.which" => self.look(params, Bench::which).await,
            "system.execApprovals.get" => self.look(params, |bench, _| bench.approvals()).await,
            "system.execApprovals.set" => self.look(params, Bench::set_approvals).await,
            _ => Err(Failed::unavailable("command not supported")),
        }
    }

    /// Does what is only a matter of files.
    async fn look(
        &self,
        params: &Value,
        work: impl FnOnce(&Bench, &Value) -> Result<Value, Failed> + Send + 'static,
    ) -> Result<Value, Failed> {
        let (bench, params) = (Arc::clone(&self.bench), params.clone());
        blocking(move || work(&bench, &params)).await?
    }

    /// Tells the gateway what came of a request, as soon as it is known.
    fn answer(self: &Arc<Self>, asked: Asked, mut done: watch::Receiver<Option<Done>>) {
        let link = self.link.clone();
        self.tasks.spawn(async move {
            let result = match done.wait_for(Option::is_some).await.as_deref() {
                Ok(Some(done)) => done.result.clone(),
                // It was ended because nobody waits.
                Ok(None) | Err(_) => return,
            };
            let mut params = json!({"id": asked.id, "nodeId": asked.node, "ok": result.is_ok()});
            match result {
                Ok(payload) => params["payloadJSON"] = payload.to_string().into(),
                Err(failed) => params["error"] = json!({"code": failed.code, "message": failed.message}),
            }
            link.deliver("node.invoke.result", params).await;
        });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Work>> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Forgets old answers, and the oldest of too many.
fn tidy(work: &mut HashMap<String, Work>, now: Instant) {
    work.retain(|_, one| one.ended().is_none_or(|at| now.saturating_duration_since(at) < MEMORY));
    while work.len() >= MAX_KEPT {
        let done = work.iter().filter_map(|(key, one)| Some((one.ended()?, key)));
        let Some(oldest) = done.min().map(|(_, key)| key.clone()) else { return };
        work.remove(&oldest);
    }
}

fn read(payload: &Value) -> Option<Asked> {
    let text = |name: &str| payload[name].as_str().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
    let id = text("id")?;
    let params = match &payload["paramsJSON"] {
        Value::String(text) if text.len() <= MAX_PARAMS => serde_json::from_str(text).unwrap_or_default(),
        Value::String(_) => return None,
        _ => payload["params"].clone(),
    };
    Some(Asked {
        node: text("nodeId")?,
        command: text("command")?,
        params,
        // Without a name it is done each time it is asked for.
        key: text("idempotencyKey").unwrap_or_else(|| format!("request:{id}")),
        timeout: payload["timeoutMs"].as_u64().filter(|millis| *millis > 0).map(Duration::from_millis),
        id,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(work: &mut HashMap<String, Work>, now: Instant) -> Vec<String> {
        tidy(work, now);
        let mut keys: Vec<String> = work.keys().cloned().collect();
        keys.sort();
        keys
    }

    #[test]
    fn an_answer_is_kept_from_when_there_is_one_however_long_it_took() {
        let begun = Instant::now();
        let mut work = HashMap::from([("long".to_owned(), Work::new(String::new(), String::new()))]);
        let ended = begun + 2 * MEMORY;
        assert_eq!(kept(&mut work, ended), ["long"], "what is not done is not forgotten");
        work["long"].end(Ok(Value::Null), ended);
        assert_eq!(kept(&mut work, ended + MEMORY / 2), ["long"]);
        assert_eq!(kept(&mut work, ended + MEMORY), [""; 0]);
    }

    #[test]
    fn of_too_many_answers_the_oldest_go_and_what_runs_stays() {
        let begun = Instant::now();
        let mut work = HashMap::from([("running".to_owned(), Work::new(String::new(), String::new()))]);
        for at in 0..MAX_KEPT {
            let one = Work::new(String::new(), String::new());
            one.end(Ok(Value::Null), begun + Duration::from_millis(u64::try_from(at).unwrap_or(0)));
            work.insert(format!("{at:04}"), one);
        }
        let left = kept(&mut work, begun + Duration::from_secs(1));
        assert_eq!((left.len(), left[0].as_str()), (MAX_KEPT - 1, "0002"));
        assert!(left.contains(&"running".to_owned()));
    }
}
