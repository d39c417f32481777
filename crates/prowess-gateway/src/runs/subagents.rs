//! Sub-agents: how does a session have others work for it?
//!
//! A sub-agent is a session of its own, with a short prompt and one task. Its last message goes back to the session that
//! started it, as news that wakes it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use prowess_agent::news::News;
use prowess_agent::session::{SessionKey, Transcripts};
use prowess_host::{Context, sessions};
use serde_json::Value;

use super::{Asked, Begin, Ended, How, Run, Started, Why, Wish};
use crate::agents::section;
use crate::aside::blocking;
use crate::gateway::Gateway;

/// How deep sub-agents may start others, and how many at once, unless the configuration says otherwise.
const MAX_DEPTH: u64 = 1;
const MAX_CHILDREN: u64 = 5;

/// What the configuration can raise them to.
pub(super) const DEPTH_CEILING: u64 = 5;
const CHILDREN_CEILING: u64 = 50;

/// The longest task, in bytes.
const MAX_TASK: usize = 256 * 1024;

/// The longest label, in characters.
const MAX_LABEL: usize = 64;

/// Sub-agents that work, with the session that each of them works for.
#[derive(Debug, Default)]
pub(super) struct Children(Mutex<HashMap<SessionKey, SessionKey>>);

impl Children {
    /// Those that work for `parent`.
    pub(super) fn of(&self, parent: &SessionKey) -> Vec<SessionKey> {
        let children = self.lock();
        children.iter().filter(|(_, known)| *known == parent).map(|(child, _)| child.clone()).collect()
    }

    /// One more for `parent`, unless it has `most` already.
    fn add(&self, parent: &SessionKey, child: &SessionKey, most: u64) -> Result<(), u64> {
        let mut children = self.lock();
        let working = children.values().filter(|known| *known == parent).count() as u64;
        if working >= most {
            return Err(working);
        }
        children.insert(child.clone(), parent.clone());
        Ok(())
    }

    /// Nobody waits any more for what those say that work for `parent`.
    pub(super) fn disown(&self, parent: &SessionKey) {
        self.lock().retain(|_, known| known != parent);
    }

    /// Says whether somebody still waited for it.
    fn remove(&self, child: &SessionKey) -> bool {
        self.lock().remove(child).is_some()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<SessionKey, SessionKey>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a sub-agent is to do.
#[derive(Debug, Clone, Default)]
pub(super) struct Task {
    pub(super) text: String,
    pub(super) label: Option<String>,
    /// Another agent than the one that asks.
    pub(super) agent: Option<String>,
    pub(super) asked: Asked,
    /// What happens to its session afterwards.
    pub(super) afterwards: Afterwards,
}

/// What happens to the session of a sub-agent that is done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Afterwards {
    /// It stays.
    #[default]
    Keep,
    /// It goes.
    Remove,
}

/// Why no sub-agent is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NoChild {
    /// It is not allowed.
    Forbidden(String),
    /// It did not work.
    Failed(String),
}

/// A sub-agent that works.
pub(super) struct Child {
    pub(super) key: SessionKey,
    pub(super) run: Arc<Run>,
}

/// Starts a sub-agent of `parent`. It says what came of it when it is done.
pub(super) async fn spawn(gateway: &Arc<Gateway>, parent: &SessionKey, mut task: Task) -> Result<Child, NoChild> {
    if task.text.trim().is_empty() || task.text.len() > MAX_TASK {
        return Err(NoChild::Failed(format!("task must have between 1 and {MAX_TASK} bytes")));
    }
    task.label = task.label.map(|label| label.trim().chars().take(MAX_LABEL).collect());
    let (key, most) = {
        let (gateway, parent, task) = (Arc::clone(gateway), parent.clone(), task.clone());
        let prepared = blocking(move || prepare(&gateway, &parent, &task)).await;
        prepared.map_err(|refusal| NoChild::Failed(refusal.message))??
    };
    gateway.runs.children.add(parent, &key, most).map_err(|working| {
        NoChild::Forbidden(format!(
            "sessions_spawn has reached max active children for this session ({working}/{most}); wait for one to be done"
        ))
    })?;
    let wish = Wish {
        id: uuid::Uuid::new_v4().to_string(),
        key: key.clone(),
        text: task.text.clone(),
        asked: Asked { extra: Some(briefing(parent)), ..task.asked.clone() },
        begin: Begin::GoOn,
        conn: None,
        ear: None,
    };
    let started = gateway.runs.start(gateway, wish).await.map_err(|refusal| {
        gateway.runs.children.remove(&key);
        NoChild::Failed(refusal.message)
    })?;
    let (Started::New(run) | Started::Known(run)) = started;
    let (owner, child, parent) = (Arc::clone(gateway), Child { key, run: Arc::clone(&run) }, parent.clone());
    let key = child.key.clone();
    gateway.runs.tasks.spawn(async move { announce(&owner, &parent, child, &task).await });
    Ok(Child { key, run })
}

/// Checks what is asked for, and notes the new session. Looks at the disk.
fn prepare(gateway: &Gateway, parent: &SessionKey, task: &Task) -> Result<(SessionKey, u64), NoChild> {
    let failed = |why: String| NoChild::Failed(why);
    let home = gateway.agents.get(Some(parent.agent())).map_err(|refusal| failed(refusal.message))?;
    let context = home.view().context.clone();
    let limits = Limits::read(context.config.tree());
    let depth = depth(&context, parent);
    if depth >= limits.depth {
        let why = format!(
            "sessions_spawn is not allowed at this depth (current depth: {depth}, max: {}); do the work yourself",
            limits.depth
        );
        return Err(NoChild::Forbidden(why));
    }
    let agent = task.agent.as_deref().map_or_else(|| parent.agent().to_owned(), prowess_agent::session::agent_id);
    if agent != parent.agent() {
        let allowed = allowed(&context);
        if !allowed.iter().any(|known| known == "*" || *known == agent) {
            let names: Vec<&str> = allowed.iter().map(String::as_str).collect();
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            return Err(NoChild::Forbidden(format!("agentId is not allowed for sessions_spawn (allowed: {names})")));
        }
    }
    gateway.agents.get(Some(&agent)).map_err(|refusal| failed(refusal.message))?;
    let store = gateway.agents.store(&agent).map_err(|refusal| failed(refusal.message))?;
    let key = SessionKey::new(&agent, &format!("subagent:{}", uuid::Uuid::new_v4()));
    let amended = store.amend(&key, |entry| {
        entry.insert("spawnedBy".to_owned(), parent.to_string().into());
        entry.insert("spawnDepth".to_owned(), (depth + 1).into());
        if let Some(label) = &task.label {
            entry.insert("label".to_owned(), label.as_str().into());
        }
        Ok::<(), std::convert::Infallible>(())
    });
    amended.map_err(|error| failed(error.to_string()))?.map_err(|never| match never {})?;
    Ok((key, limits.children))
}

/// Waits until the sub-agent is done, and tells its parent.
async fn announce(gateway: &Arc<Gateway>, parent: &SessionKey, child: Child, task: &Task) {
    let ended = child.run.over().await;
    if gateway.runs.children.remove(&child.key) {
        let news = News {
            is_error: matches!(ended.how, How::Failed(_)),
            ..News::of("sessions_spawn", news(&child.key, task.label.as_deref(), &ended))
        };
        match child.run.why() {
            // Who says stop does not want to hear more.
            Some(Why::Asked | Why::Said) => gateway.runs.note(gateway, parent, news),
            Some(Why::Gone | Why::Gateway) | None => gateway.runs.wake(gateway, parent, news),
        }
    }
    if task.afterwards == Afterwards::Remove
        && let Err(refusal) = gateway.runs.remove(gateway, &child.key, Transcripts::SetAside).await
    {
        tracing::warn!(session = %child.key, "the session of a sub-agent stays: {}", refusal.message);
    }
}

/// What the parent is told.
fn news(key: &SessionKey, label: Option<&str>, ended: &Ended) -> String {
    let name = label.map_or_else(|| key.to_string(), |label| format!("{label} ({key})"));
    match &ended.how {
        How::Done => {
            let payloads = ended.payload["result"]["payloads"].as_array();
            let answer = payloads.and_then(|texts| texts.last()).and_then(|last| last["text"].as_str());
            let answer = answer.filter(|text| !text.trim().is_empty()).unwrap_or("(it said nothing)");
            format!("The sub-agent {name} is done. It answered:\n{answer}")
        }
        How::Stopped => format!("The sub-agent {name} was stopped before it was done."),
        How::Failed(why) => format!("The sub-agent {name} failed: {why}"),
    }
}

/// What a sub-agent is told besides its task.
fn briefing(parent: &SessionKey) -> String {
    format!(
        "You work for the session {parent}, which gave you one task in the first message. Do that task and \
         nothing else. Nobody reads along, so do not ask questions: decide, and say what you assumed. Your last message \
         goes back to that session as the result, so put everything it needs into it."
    )
}

/// How far sub-agents may go.
pub(super) struct Limits {
    pub(super) depth: u64,
    children: u64,
}

impl Limits {
    pub(super) fn read(config: &Value) -> Self {
        let section = &config["agents"]["defaults"]["subagents"];
        Self {
            depth: section["maxSpawnDepth"].as_u64().unwrap_or(MAX_DEPTH).min(DEPTH_CEILING),
            children: section["maxChildrenPerAgent"].as_u64().unwrap_or(MAX_CHILDREN).min(CHILDREN_CEILING),
        }
    }
}

/// How deep a session is: 0 unless it is that of a sub-agent.
pub(super) fn depth(context: &Context, key: &SessionKey) -> u64 {
    if !key.is_subagent() {
        return 0;
    }
    let entry = sessions(context).entry(key).ok().flatten().unwrap_or_default();
    entry["spawnDepth"].as_u64().unwrap_or(1).max(1)
}

/// The other agents that the agent of `context` may have work for it; `*` is all of them.
pub(super) fn allowed(context: &Context) -> Vec<String> {
    let section = section(context.config.tree(), context.agent.id.as_str());
    let names = section["subagents"]["allowAgents"].as_array().map(Vec::as_slice).unwrap_or_default();
    let names = names.iter().filter_map(Value::as_str).map(str::trim).filter(|name| !name.is_empty());
    names.map(|name| if name == "*" { name.to_owned() } else { prowess_agent::session::agent_id(name) }).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_session_has_only_so_many() {
        let children = Children::default();
        let key = |rest: &str| SessionKey::new("main", rest);
        assert_eq!(children.add(&key("main"), &key("subagent:1"), 2), Ok(()));
        assert_eq!(children.add(&key("main"), &key("subagent:2"), 2), Ok(()));
        assert_eq!(children.add(&key("main"), &key("subagent:3"), 2), Err(2));
        assert_eq!(children.add(&key("work"), &key("subagent:4"), 2), Ok(()), "others have their own");
        children.remove(&key("subagent:1"));
        assert_eq!(children.add(&key("main"), &key("subagent:3"), 2), Ok(()));
        assert_eq!(children.of(&key("work")), [key("subagent:4")]);
    }

    #[test]
    fn the_configuration_cannot_raise_limits_without_end() {
        let usual = Limits::read(&json!({}));
        assert_eq!((usual.depth, usual.children), (1, 5));
        let section = json!({"maxSpawnDepth": 1_000_000, "maxChildrenPerAgent": 1_000_000});
        let wild = Limits::read(&json!({"agents": {"defaults": {"subagents": section}}}));
        assert_eq!((wild.depth, wild.children), (DEPTH_CEILING, CHILDREN_CEILING));
    }
}
