//! Opening: what does a session need to be ready for its next turn?
//!
//! Every turn begins with what the operator's files say at that moment. The conversation is opened again only when they
//! say something else than before.

use std::sync::Arc;

use prowess_agent::embedded::Act;
use prowess_agent::image::Image;
use prowess_agent::model::Thinking;
use prowess_agent::session::{OpenError, SessionKey};
use prowess_agent::skills::SkillStore;
use prowess_agent::{Conversation, Delivery};
use prowess_config::session_skills;
use prowess_host::{Opened, Parts, Reads, View, Wanted, agent, skills};
use serde_json::Value;
use thiserror::Error;

use super::subagents::DEPTH_CEILING;
use crate::agents::AgentHome;
use crate::gateway::Gateway;

/// What a turn should be like, besides what the operator's files say.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Asked {
    /// A model by name.
    pub(crate) model: Option<String>,
    /// How much it should think.
    pub(crate) thinking: Option<Thinking>,
    /// How many seconds it may take; zero is as long as it wants.
    pub(crate) seconds: Option<u64>,
    /// What the model is told besides.
    pub(crate) extra: Option<String>,
    /// What it is shown.
    pub(crate) images: Arc<Vec<Image>>,
    /// Whether what it says is told as it comes.
    pub(crate) delivery: Delivery,
}

/// A session that is open.
pub(super) struct Open {
    pub(super) conversation: Conversation,
    /// Whether clients are shown what tools give back.
    pub(super) is_full: bool,
    home: Arc<AgentHome>,
    /// The skills of a session that does not notice changes, or whose channel has a list; otherwise nothing.
    own_skills: Option<SkillStore>,
    /// What `own_skills` were made from.
    view: Arc<View>,
    /// What the conversation was opened with.
    config: Value,
    wanted: Wanted,
}

/// A session is not ready for a turn.
#[derive(Debug, Error)]
pub(super) enum NotReady {
    /// Another program has it, perhaps not for long.
    #[error("{0}")]
    Busy(String),
    /// It cannot be opened.
    #[error("{0}")]
    No(String),
}

impl Open {
    /// Makes the session behind `key` ready. Looks at the disk.
    pub(super) fn ready(
        gateway: &Arc<Gateway>,
        key: &SessionKey,
        asked: &Asked,
        old: Option<Self>,
    ) -> Result<Self, NotReady> {
        let home = match &old {
            Some(old) => Arc::clone(&old.home),
            None => gateway.agents.get(Some(key.agent())).map_err(|refusal| NotReady::No(refusal.message))?,
        };
        let (view, fresh) = if old.is_some() {
            (home.refresh(), None)
        } else {
            let Opened { view, skills } = home.open();
            (view, Some(skills))
        };
        let context = &view.context;
        let config = context.config.tree();
        let store = gateway.agents.store(key.agent()).map_err(|refusal| NotReady::No(refusal.message))?;
        let entry = store.entry(key).ok().flatten().unwrap_or_default();
        let wanted = wanted(key, asked, &entry);
        let is_full = is_full(&entry, config);
        let watches = config["skills"]["load"]["watch"] != false;
        let place = place(gateway, key);
        let narrowed = || Some(skills(&view.with_channel(session_skills(config, place.rest())?)));
        if let Some(old) = old {
            if old.config == *config && old.wanted == wanted {
                if watches
                    && !Arc::ptr_eq(&old.view, &view)
                    && let (Some(own), Some(skills)) = (&old.own_skills, narrowed())
                {
                    own.replace(skills);
                }
                return Ok(Self { is_full, view, ..old });
            }
            let announced = old.conversation.announced().clone();
            let own = if watches { narrowed().map(SkillStore::new) } else { old.own_skills.clone() };
            // It has to let go of the transcript before it can be opened again.
            drop(old);
            let opened = Self::take(gateway, key, home, &view, wanted, own)?;
            return Ok(Self { conversation: opened.conversation.having_announced(announced), is_full, ..opened });
        }
        let own = narrowed().map(SkillStore::new).or(fresh.filter(|_| !watches));
        let opened = Self::take(gateway, key, home, &view, wanted, own)?;
        let announced = gateway.runs.announced.take(key);
        Ok(Self { conversation: opened.conversation.having_announced(announced), is_full, ..opened })
    }

    fn take(
        gateway: &Arc<Gateway>,
        key: &SessionKey,
        home: Arc<AgentHome>,
        view: &Arc<View>,
        wanted: Wanted,
        own_skills: Option<SkillStore>,
    ) -> Result<Self, NotReady> {
        let parts = Parts {
            exec: Arc::clone(&gateway.exec),
            skills: own_skills.clone().unwrap_or_else(|| home.skills()),
            approver: Arc::clone(&gateway.approver),
            clients: home.clients(),
            tools: super::tools::of(gateway, &view.context, key),
            around: super::later::around(gateway, key),
            sessions: gateway.agents.store(key.agent()).ok(),
        };
        let agent = agent(view, &parts, &wanted).map_err(|failure| NotReady::No(failure.sentence()))?;
        let conversation = Arc::new(agent).open(&key.to_string()).map_err(|error| match error {
            OpenError::Busy { .. } => NotReady::Busy(error.to_string()),
            OpenError::OtherAgent { .. } | OpenError::Outside(_) | OpenError::Index(_) | OpenError::Io { .. } => {
                NotReady::No(error.to_string())
            }
        })?;
        for mended in conversation.mended() {
            tracing::warn!(session = %key, "{mended}");
        }
        let config = view.context.config.tree().clone();
        Ok(Self { conversation, is_full: false, home, own_skills, view: Arc::clone(view), config, wanted })
    }
}

/// The session whose channel this one belongs to: a sub-agent works for another session, and has no more than that one.
fn place(gateway: &Gateway, key: &SessionKey) -> SessionKey {
    let mut place = key.clone();
    for _ in 0..=DEPTH_CEILING {
        if !place.is_subagent() {
            break;
        }
        let entry = gateway.agents.store(place.agent()).ok().and_then(|store| store.entry(&place).ok().flatten());
        let parent = entry.and_then(|entry| SessionKey::parse(entry["spawnedBy"].as_str()?));
        let Some(parent) = parent else { break };
        place = parent;
    }
    place
}

/// What is asked for now comes before what the session was told to keep to.
fn wanted(key: &SessionKey, asked: &Asked, entry: &Value) -> Wanted {
    let text = |name: &str| entry[name].as_str().map(str::trim).filter(|text| !text.is_empty());
    let kept = text("modelOverride").map(|model| match text("providerOverride") {
        Some(provider) => format!("{provider}/{model}"),
        None => model.to_owned(),
    });
    Wanted {
        session: key.to_string(),
        model: asked.model.clone().or(kept),
        thinking: asked.thinking.or_else(|| text("thinkingLevel").and_then(Thinking::parse)),
        seconds: asked.seconds,
        act: Act::Run,
        reads: Reads::Asked,
        extra: asked.extra.clone(),
    }
}

fn is_full(entry: &Value, config: &Value) -> bool {
    let own = entry["verboseLevel"].as_str();
    own.or_else(|| config["agents"]["defaults"]["verboseDefault"].as_str()) == Some("full")
}
