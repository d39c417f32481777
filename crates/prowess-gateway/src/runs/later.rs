//! Later: what becomes of a command that waits for a person who does not answer at once?
//!
//! A turn waits a while, for whoever is there answers at once. Then the model is told that the command waits, and goes
//! on. The question stays open as long as any other; what came of it is news for the session, and wakes it.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use prowess_agent::event::{Event, Events};
use prowess_agent::frame;
use prowess_agent::news::News;
use prowess_agent::session::SessionKey;
use prowess_agent::skills::{SkillSet, Uses};
use prowess_agent::tool::{Call, Order, Scope, Tool, ToolSpec};
use prowess_exec::ToolResult;
use prowess_exec::approver::Approver;
use prowess_host::Around;
use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::Left;
use super::known::Run;
use super::owed::OwedResult;
use super::teller::TOOL_EVENTS;
use crate::approvals::{Asked, Connected, Decision, Record};
use crate::gateway::Gateway;
use crate::hub::{Audience, Urgency};

/// How long a turn waits for an answer, unless something else is said.
pub(crate) const WAIT: Duration = Duration::from_secs(10);

/// The tool whose calls may be left waiting.
const EXEC: &str = prowess_exec::exec_tool::NAME;

/// How much of a late result clients are sent, in characters; the session has all of it.
const MAX_TOLD: usize = 16 * 1024;

/// How many characters of an id name a question among people.
const SLUG: usize = 8;

/// Puts this around the exec tool of a session. A sub-agent waits, for nobody reads what it says before it is done.
pub(super) fn around(gateway: &Arc<Gateway>, key: &SessionKey) -> Option<Around> {
    if key.is_subagent() {
        return None;
    }
    let (gateway, key) = (Arc::clone(gateway), key.clone());
    Some(Arc::new(move |tool| {
        if tool.spec().name != EXEC {
            return tool;
        }
        Arc::new(Patient { tool, gateway: Arc::clone(&gateway), key: key.clone() })
    }))
}

/// A tool whose calls may outlive the turn that made them, as long as they wait for a person.
struct Patient {
    tool: Arc<dyn Tool>,
    gateway: Arc<Gateway>,
    key: SessionKey,
}

impl Tool for Patient {
    fn spec(&self) -> &ToolSpec {
        self.tool.spec()
    }

    fn order(&self) -> Order {
        self.tool.order()
    }

    fn conceal(&self, text: &mut String) {
        self.tool.conceal(text);
    }

    fn call<'a>(
        &'a self,
        call: Call<'a>,
        scope: &'a Scope<'a>,
    ) -> Pin<Box<dyn Future<Output = ToolResult> + Send + 'a>> {
        Box::pin(async move {
            let (open, mut question) = watch::channel(None);
            let approver = Arc::new(Connected::for_call(&self.gateway.approvals, open));
            let listener = Listener::new(Mutex::new(Some(scope.events.clone())));
            let own = Own::of(call, scope, approver, &listener);
            let tool = Arc::clone(&self.tool);
            // Whoever stops waiting ends it.
            let mut going = Ending(Some(tokio::spawn(async move { own.carry_out(&*tool).await })));
            let Some(running) = going.0.as_mut() else { return lost() };
            let record = tokio::select! {
                biased;
                result = running => return result.unwrap_or_else(|_| lost()),
                record = unanswered(&mut question, self.gateway.wait) => record,
            };
            // An HTTP client that waits for the end of the turn's events does not wait for this command.
            drop(listener.lock().unwrap_or_else(PoisonError::into_inner).take());
            let pending = pending(&record);
            let run = self.gateway.runs.current(&self.key);
            if let (Some(run), Some(waiting)) = (&run, frame::waiting(call.id, &pending)) {
                run.begin_waiting(waiting);
            }
            let owed = owed(&self.key, run.as_deref(), call, &record);
            // From here on the transcript says that it waits, so whoever comes next has to know of it.
            self.gateway.runs.owed.add(owed.clone()).await;
            let answer = self.gateway.approvals.listen(&record.id);
            let mut late = Late { gateway: Arc::clone(&self.gateway), key: self.key.clone(), run, owed, answer };
            let stop = CancellationToken::new();
            let left = Left { key: self.key.clone(), run: late.owed.run_id.clone(), stop: stop.clone() };
            self.gateway.runs.leave(left, async move {
                let Some(running) = going.0.as_mut() else { return };
                let closing = late.gateway.runs.closing();
                tokio::select! {
                    biased;
                    // The next gateway says that it was interrupted.
                    () = closing.cancelled() => {}
                    () = stop.cancelled() => {
                        drop(going);
                        late.stopped();
                    }
                    result = running => late.ended(&result.unwrap_or_else(|_| lost())),
                }
            });
            pending
        })
    }
}

/// A command that outlived its turn, and where its result belongs.
struct Late {
    gateway: Arc<Gateway>,
    key: SessionKey,
    /// The run that made the call.
    run: Option<Arc<Run>>,
    owed: OwedResult,
    /// The answer to the question, also when the question is long forgotten.
    answer: Option<Asked>,
}

impl Late {
    /// Tells clients and the model what came of the command.
    fn ended(&mut self, result: &ToolResult) {
        self.waits_no_longer();
        let status = self.status();
        let news = deliver(&self.gateway, &self.owed, status, result);
        self.gateway.runs.wake(&self.gateway, &self.key, news);
    }

    /// The person stopped it. Its session has the result at once, and no turn begins for it.
    fn stopped(&self) {
        self.waits_no_longer();
        let result =
            ToolResult::error(EXEC, "The user stopped it. If it was approved before that, it may have run in part.");
        let news = deliver(&self.gateway, &self.owed, INTERRUPTED, &result);
        self.gateway.runs.record(&self.gateway, &self.key, news);
    }

    fn waits_no_longer(&self) {
        if let Some(run) = &self.run {
            run.end_waiting(&self.owed.approval_id);
        }
    }

    /// In one word, what became of the question.
    fn status(&mut self) -> &'static str {
        match self.answer.as_mut().and_then(|answer| answer.settled().now_or_never()).flatten() {
            Some(Decision::Once | Decision::Session | Decision::Always) => "approved",
            Some(Decision::Deny) => "denied",
            None => "expired",
        }
    }
}

/// The state of a command that ended without a result of its own.
const INTERRUPTED: &str = "interrupted";

/// What is kept of a call that waits.
fn owed(key: &SessionKey, run: Option<&Run>, call: Call<'_>, record: &Record) -> OwedResult {
    OwedResult {
        session_key: key.to_string(),
        run_id: run.map(|run| run.id.clone()),
        tool_call_id: call.id.to_owned(),
        approval_id: record.id.clone(),
        command: record.request["command"].as_str().unwrap_or_default().to_owned(),
        host: record.request["host"].as_str().unwrap_or("gateway").to_owned(),
        arguments: call.arguments.clone(),
    }
}

/// Gives the sessions of commands that an earlier gateway left behind the result that is missing.
pub(crate) fn settle_owed(gateway: &Arc<Gateway>) {
    for owed in gateway.runs.owed.all() {
        let Some(key) = SessionKey::parse(&owed.session_key) else { continue };
        let why = "The gateway stopped before the command was done. If nobody had approved it, it has not run; otherwise \
                   it may have run in part.";
        let news = deliver(gateway, &owed, INTERRUPTED, &ToolResult::error(EXEC, why));
        gateway.runs.record(gateway, &key, news);
    }
}

/// Tells the clients that follow the session, as the result of the call that was left waiting. Makes the news for its
/// model.
fn deliver(gateway: &Gateway, owed: &OwedResult, status: &str, result: &ToolResult) -> News {
    let details = json!({
        "status": status,
        "late": true,
        "approvalId": owed.approval_id,
        "toolCallId": owed.tool_call_id,
        "exitCode": result.details["exitCode"],
    });
    let text: String = result.text().chars().take(MAX_TOLD).collect();
    let payload = json!({
        "runId": owed.run_id,
        "sessionKey": owed.session_key,
        "stream": "tool",
        "data": {
            "phase": "result",
            "name": EXEC,
            "toolCallId": owed.tool_call_id,
            "meta": owed.command,
            "isError": result.is_error,
            "late": true,
            "status": status,
            "approvalId": owed.approval_id,
            "result": {"content": [{"type": "text", "text": text}], "details": details},
        },
    });
    let audience = Audience::Followers(&owed.session_key, &[TOOL_EVENTS]);
    gateway.hub.tell(audience, "agent", &payload, Urgency::Needed);
    let text = news(owed, status, result);
    News { arguments: owed.arguments.clone(), details, is_error: result.is_error, ..News::of(EXEC, text) }
}

/// Where the progress of a call is told, as long as its turn lasts.
type Listener = Arc<Mutex<Option<Events>>>;

/// What a call needs, as its own.
struct Own {
    id: String,
    arguments: Map<String, Value>,
    agent: String,
    session: String,
    workspace: PathBuf,
    home: PathBuf,
    skills: Arc<SkillSet>,
    uses: Uses,
    approver: Arc<dyn Approver>,
    events: Events,
}

impl Own {
    /// A copy that tells of its progress as long as there is a listener.
    fn of(call: Call<'_>, scope: &Scope<'_>, approver: Arc<dyn Approver>, listener: &Listener) -> Self {
        let listener = Arc::clone(listener);
        let tell = move |event: Event| {
            if let Some(events) = &*listener.lock().unwrap_or_else(PoisonError::into_inner) {
                events.tell(event);
            }
        };
        Self {
            id: call.id.to_owned(),
            arguments: call.arguments.clone(),
            agent: scope.agent.to_owned(),
            session: scope.session.to_owned(),
            workspace: scope.workspace.to_owned(),
            home: scope.home.to_owned(),
            skills: Arc::clone(scope.skills),
            uses: scope.uses.clone(),
            approver,
            events: Events::to(tell),
        }
    }

    async fn carry_out(&self, tool: &dyn Tool) -> ToolResult {
        let scope = Scope {
            agent: &self.agent,
            session: &self.session,
            workspace: &self.workspace,
            home: &self.home,
            skills: &self.skills,
            uses: &self.uses,
            approver: &*self.approver,
            events: &self.events,
        };
        tool.call(Call { id: &self.id, arguments: &self.arguments }, &scope).await
    }
}

/// Ends a task when nobody waits for it any more.
struct Ending(Option<JoinHandle<ToolResult>>);

impl Drop for Ending {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

/// The question that has waited so long for an answer, once there is one.
async fn unanswered(question: &mut watch::Receiver<Option<Arc<Record>>>, wait: Duration) -> Arc<Record> {
    loop {
        let found = question.wait_for(Option::is_some).await.map(|record| record.clone());
        // Otherwise its call is over.
        let Ok(record) = found else { std::future::pending().await };
        let answered = tokio::time::timeout(wait, question.wait_for(Option::is_none)).await.is_ok();
        if let (false, Some(record)) = (answered, record) {
            return record;
        }
    }
}

/// What the model is told of a command that waits.
fn pending(record: &Record) -> ToolResult {
    let slug = short(&record.id);
    let text = format!(
        "The command waits for a person to approve it (id {slug}). Nobody has answered yet, so it has not run. Do not run \
         it again and do not look for a way around it. What comes of it will be told in this conversation; say that it \
         waits, and go on with what does not need it."
    );
    let command = record.request["command"].as_str().unwrap_or_default();
    let mut details = json!({
        "status": "approval-pending",
        "forPeople": format!(
            "Waiting for approval (id {slug}), not run yet: {command}\nAnswer on the page, or with: prowess approvals \
             resolve {slug} allow-once"
        ),
        "approvalId": record.id,
        "approvalSlug": slug,
        "expiresAtMs": record.expires_at,
        "host": record.request["host"],
        "command": record.request["command"],
        "cwd": record.request["cwd"],
    });
    if let node @ Value::String(_) = &record.request["nodeId"] {
        details["nodeId"] = node.clone();
    }
    ToolResult::done(text, details)
}

/// What the session is told when it is over.
fn news(owed: &OwedResult, status: &str, result: &ToolResult) -> String {
    let OwedResult { host, command, .. } = owed;
    let (slug, text) = (short(&owed.approval_id), result.text());
    match &result.details["exitCode"] {
        Value::Number(code) => format!("Exec finished ({host} id={slug}, code {code}): {command}\n{text}"),
        _ if status == INTERRUPTED => format!("Exec interrupted ({host} id={slug}): {command}\n{text}"),
        _ if result.is_error => format!("Exec denied ({host} id={slug}): {command}\n{text}"),
        // It may still run, in the background.
        _ => format!("Exec running ({host} id={slug}): {command}\n{text}"),
    }
}

/// The beginning of an id, which names a question among people.
fn short(id: &str) -> String {
    id.chars().take(SLUG).collect()
}

fn lost() -> ToolResult {
    ToolResult::error(EXEC, "The command ended without a result; see the gateway's log.")
}
