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

use super::known::Run;
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
            let answer = self.gateway.approvals.listen(&record.id);
            let (gateway, call_id) = (Arc::clone(&self.gateway), call.id.to_owned());
            let mut late = Late { gateway, key: self.key.clone(), run, call: call_id, answer };
            let arguments = call.arguments.clone();
            self.gateway.runs.leave(&self.key, async move {
                let Some(running) = going.0.as_mut() else { return };
                let closing = late.gateway.runs.closing();
                // A gateway that ends has nobody left to tell.
                if let Some(Ok(result)) = closing.run_until_cancelled(running).await {
                    late.ended(&record, arguments, &result);
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
    call: String,
    /// The answer to the question, also when the question is long forgotten.
    answer: Option<Asked>,
}

impl Late {
    /// Tells clients and the model what came of the command.
    fn ended(&mut self, record: &Record, arguments: Map<String, Value>, result: &ToolResult) {
        if let Some(run) = &self.run {
            run.end_waiting(&record.id);
        }
        let status = self.status();
        let details = json!({
            "status": status,
            "late": true,
            "approvalId": record.id,
            "toolCallId": self.call,
            "exitCode": result.details["exitCode"],
        });
        self.tell(record, &details, result);
        let news = News { arguments, details, is_error: result.is_error, ..News::of(EXEC, news(record, result)) };
        self.gateway.runs.wake(&self.gateway, &self.key, news);
    }

    /// In one word, what became of the question.
    fn status(&mut self) -> &'static str {
        match self.answer.as_mut().and_then(|answer| answer.settled().now_or_never()).flatten() {
            Some(Decision::Once | Decision::Always) => "approved",
            Some(Decision::Deny) => "denied",
            None => "expired",
        }
    }

    /// Tells the clients that follow the session, as the result of the call that was left waiting.
    fn tell(&self, record: &Record, details: &Value, result: &ToolResult) {
        let text: String = result.text().chars().take(MAX_TOLD).collect();
        let key = self.key.to_string();
        let payload = json!({
            "runId": self.run.as_ref().map(|run| run.id.as_str()),
            "sessionKey": key,
            "stream": "tool",
            "data": {
                "phase": "result",
                "name": EXEC,
                "toolCallId": self.call,
                "meta": record.request["command"],
                "isError": result.is_error,
                "late": true,
                "status": details["status"],
                "approvalId": record.id,
                "result": {"content": [{"type": "text", "text": text}], "details": details},
            },
        });
        let audience = Audience::Followers(&key, &[TOOL_EVENTS]);
        self.gateway.hub.tell(audience, "agent", &payload, Urgency::Needed);
    }
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
    let slug = slug(record);
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
fn news(record: &Record, result: &ToolResult) -> String {
    let (host, command) = (record.request["host"].as_str().unwrap_or("gateway"), &record.request["command"]);
    let command = command.as_str().unwrap_or_default();
    let (slug, text) = (slug(record), result.text());
    match &result.details["exitCode"] {
        Value::Number(code) => format!("Exec finished ({host} id={slug}, code {code}): {command}\n{text}"),
        _ if result.is_error => format!("Exec denied ({host} id={slug}): {command}\n{text}"),
        // It may still run, in the background.
        _ => format!("Exec running ({host} id={slug}): {command}\n{text}"),
    }
}

fn slug(record: &Record) -> String {
    record.id.chars().take(SLUG).collect()
}

fn lost() -> ToolResult {
    ToolResult::error(EXEC, "The command ended without a result; see the gateway's log.")
}
