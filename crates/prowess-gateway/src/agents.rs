//! Agents: which are there, and what does each of them have at hand?

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use prowess_agent::provider::Clients;
use prowess_agent::session::{SessionKey, Sessions, agent_id};
use prowess_agent::skills::SkillStore;
use prowess_host::{Cause, Change, Context, Failure, Ground, Kept, Live, Opened, View, Watching};
use prowess_skills::Machine;
use serde_json::{Value, json};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::sync::watch::Receiver;

use crate::gateway::Gateway;
use crate::hub::{Audience, Urgency};
use crate::metrics::Metrics;
use crate::runs::keys;
use crate::skill_report::SkillReport;
use crate::wire::Refusal;

/// All agents of the configuration.
pub(crate) struct Agents {
    kept: Kept,
    homes: Mutex<HashMap<String, Arc<Place>>>,
    /// Held while homes are told of it, so that the newest is the last they hear of.
    remote: Mutex<Elsewhere>,
    metrics: Arc<Metrics>,
    clients: Clients,
    /// The conversations of each agent, by folder. What was read of their indexes is kept with them.
    stores: Mutex<HashMap<PathBuf, Sessions>>,
    /// Hears of every agent that is used for the first time.
    news: UnboundedSender<Newcomer>,
}

/// Other machines, and a sentence about them.
type Elsewhere = (Vec<Machine>, Option<String>);

/// An agent that is used for the first time, and what tells of its changes.
pub(crate) type Newcomer = (String, Receiver<Change>);

/// Where the home of an agent is, once it is there.
#[derive(Default)]
struct Place {
    home: OnceLock<Arc<AgentHome>>,
    /// One makes it, and only those who want the same wait.
    making: Mutex<()>,
}

/// What one agent has at hand.
pub(crate) struct AgentHome {
    live: Arc<Live>,
    /// The last report on its skills, and the view that it is about.
    report: Mutex<Option<(Arc<View>, Arc<SkillReport>)>>,
    metrics: Arc<Metrics>,
    clients: Clients,
}

impl Agents {
    /// The agents of that ground. Whoever holds the other end of the channel hears of those that are used.
    pub(crate) fn new(ground: Ground, metrics: Arc<Metrics>) -> (Self, UnboundedReceiver<Newcomer>) {
        let (news, heard) = mpsc::unbounded_channel();
        (
            Self {
                kept: Kept::new(ground, complain()),
                homes: Mutex::default(),
                remote: Mutex::default(),
                metrics,
                clients: Clients::default(),
                stores: Mutex::default(),
                news,
            },
            heard,
        )
    }

    /// Tells all agents which other machines there are.
    pub(crate) fn set_remote(&self, machines: &[Machine], note: Option<&str>) {
        let mut remote = self.remote.lock().unwrap_or_else(PoisonError::into_inner);
        *remote = (machines.to_vec(), note.map(str::to_owned));
        let places: Vec<Arc<Place>> =
            self.homes.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
        // One that is not there yet looks for itself when it is.
        for home in places.iter().filter_map(|place| place.home.get()) {
            home.live.set_remote(remote.0.clone(), remote.1.clone());
        }
    }

    /// What was known when the gateway started.
    pub(crate) fn ground(&self) -> &Ground {
        self.kept.ground()
    }

    /// What the operator asked for, as it is written now.
    pub(crate) fn context(&self) -> Result<Arc<Context>, Refusal> {
        self.kept.context().map_err(|failure| refused(&failure))
    }

    /// The names of all agents, and which of them is meant when none is named.
    pub(crate) fn names(&self) -> Result<(Vec<String>, String), Refusal> {
        let context = self.context()?;
        let agents = context.config.agents();
        let names = agents.list().iter().map(|agent| agent.id.to_string()).collect();
        Ok((names, agents.default_agent().id.to_string()))
    }

    /// The session that a client means by `text`. Its agent has to be there.
    pub(crate) fn key(&self, text: &str) -> Result<SessionKey, Refusal> {
        let context = self.context()?;
        let agents = context.config.agents();
        let key = keys::meant(text, context.config.tree(), agents.default_agent().id.as_str())?;
        if agents.list().iter().all(|agent| agent.id.as_str() != key.agent()) {
            return Err(unknown(key.agent()));
        }
        Ok(key)
    }

    /// Where the conversations of that agent are.
    pub(crate) fn store(&self, agent: &str) -> Result<Sessions, Refusal> {
        let context = self.context()?;
        Ok(self.kept_store(&context, agent))
    }

    fn kept_store(&self, context: &Context, agent: &str) -> Sessions {
        let store = Sessions::new(&context.locations.state_dir, agent);
        let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        stores.entry(store.folder().to_owned()).or_insert(store).clone()
    }

    /// Brings what the indexes of all agents say into their files. Looks at the disk.
    pub(crate) fn settle(&self) {
        let stores: Vec<Sessions> =
            self.stores.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
        for store in stores {
            if let Err(error) = store.settle() {
                tracing::warn!("{error}");
            }
        }
    }

    /// Where the conversations of all agents are.
    pub(crate) fn stores(&self) -> Result<Vec<Sessions>, Refusal> {
        let context = self.context()?;
        let agents = context.config.agents();
        Ok(agents.list().iter().map(|agent| self.kept_store(&context, agent.id.as_str())).collect())
    }

    /// The agent of that name, or the one that is meant when none is named. Looks at the disk.
    pub(crate) fn get(&self, id: Option<&str>) -> Result<Arc<AgentHome>, Refusal> {
        let context = self.context()?;
        let agents = context.config.agents();
        let id = id.unwrap_or(agents.default_agent().id.as_str());
        if agents.list().iter().all(|agent| agent.id.as_str() != id) {
            return Err(unknown(id));
        }
        let place = {
            let mut homes = self.homes.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(homes.entry(id.to_owned()).or_default())
        };
        if let Some(home) = place.home.get() {
            return Ok(Arc::clone(home));
        }
        let _alone = place.making.lock().unwrap_or_else(PoisonError::into_inner);
        match place.home.get() {
            Some(home) => Ok(Arc::clone(home)),
            None => self.make(id, &place),
        }
    }

    /// Loads what an agent has at hand. The caller is the only one who does that for it.
    fn make(&self, id: &str, place: &Place) -> Result<Arc<AgentHome>, Refusal> {
        let ground = self.ground().for_agent(id);
        let live = Live::start(ground, Watching::Configured).map_err(|failure| refused(&failure))?;
        let made = AgentHome {
            live,
            report: Mutex::default(),
            metrics: Arc::clone(&self.metrics),
            clients: self.clients.clone(),
        };
        let home = Arc::clone(place.home.get_or_init(|| Arc::new(made)));
        // It is looked for after the home is there: whoever changes it later finds the home.
        let remote = self.remote.lock().unwrap_or_else(PoisonError::into_inner);
        if !remote.0.is_empty() || remote.1.is_some() {
            home.live.set_remote(remote.0.clone(), remote.1.clone());
        }
        drop(remote);
        // Where nobody listens, nobody has to be told.
        let _ = self.news.send((id.to_owned(), home.live.changes()));
        Ok(home)
    }
}

impl AgentHome {
    /// Its skills as they were seen last, with all that was found out about them.
    pub(crate) fn view(&self) -> Arc<View> {
        self.live.view()
    }

    /// The report on its skills as they were seen last. It is made once for each view; who comes meanwhile waits for it.
    pub(crate) fn skill_report(&self) -> Arc<SkillReport> {
        let view = self.view();
        let mut known = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, report)) = known.as_ref()
            && Arc::ptr_eq(of, &view)
        {
            return Arc::clone(report);
        }
        let report = Arc::new(SkillReport::new(&view));
        *known = Some((view, Arc::clone(&report)));
        report
    }

    /// Looks again, so that whatever is on disk now is seen, unless watching is switched off. Looks at the disk.
    pub(crate) fn refresh(&self) -> Arc<View> {
        let began = Instant::now();
        self.live.refresh_now();
        self.metrics.refreshed(began.elapsed());
        self.live.view()
    }

    /// Reads the configuration again, and the skills by it. Looks at the disk.
    pub(crate) fn reload(&self) -> Result<Arc<View>, Failure> {
        self.live.reload_config()
    }

    /// What a new session begins with. Looks at the disk.
    pub(crate) fn open(&self) -> Opened {
        self.live.open()
    }

    /// Over which wires its models are asked.
    pub(crate) fn clients(&self) -> Clients {
        self.clients.clone()
    }

    /// Where its newest skills are.
    pub(crate) fn skills(&self) -> SkillStore {
        self.live.skills()
    }
}

/// Tells operators and nodes when the skills of an agent have changed, until the gateway ends.
pub(crate) async fn tell_changes(gateway: Arc<Gateway>, mut newcomers: UnboundedReceiver<Newcomer>) {
    while let Some(Some((agent, changes))) = gateway.stop.run_until_cancelled(newcomers.recv()).await {
        gateway.tasks.spawn(tell_changes_of(Arc::clone(&gateway), agent, changes));
    }
}

async fn tell_changes_of(gateway: Arc<Gateway>, agent: String, mut changes: Receiver<Change>) {
    while let Some(Ok(())) = gateway.stop.run_until_cancelled(changes.changed()).await {
        let (reason, number) = {
            let change = changes.borrow_and_update();
            let reason = match change.cause {
                Cause::Start | Cause::Asked => "manual",
                Cause::Disk => "watch",
                Cause::Remote => "remote-node",
            };
            (reason, change.number)
        };
        if reason != "remote-node" {
            gateway.nodes.skills_changed();
        }
        let payload = json!({"agentId": agent, "reason": reason, "version": number});
        gateway.hub.tell(Audience::Operators, "skills.changed", &payload, Urgency::Droppable);
    }
}

/// Writes down what cannot be read, once.
fn complain() -> impl Fn(&Failure) + Send + Sync + 'static {
    let last = Mutex::new(String::new());
    move |failure| {
        let why = failure.sentence();
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        if *last != why {
            tracing::warn!("cannot read the configuration; keeping the previous one: {why}");
            *last = why;
        }
    }
}

fn refused(failure: &Failure) -> Refusal {
    Refusal::unavailable(failure.sentence())
}

fn unknown(agent: &str) -> Refusal {
    Refusal::invalid(format!("unknown agent id \"{agent}\""))
}

/// What the operator wrote for the agent `id`; null when nothing.
pub(crate) fn section(tree: &Value, id: &str) -> Value {
    let section = &tree["agents"];
    let mut listed = section["list"].as_array().into_iter().flatten();
    let own = listed.find(|entry| entry["id"].as_str().is_some_and(|known| agent_id(known) == id));
    let mut entries = section["entries"].as_object().into_iter().flatten();
    let own = own.or_else(|| entries.find(|(known, _)| agent_id(known) == id).map(|(_, entry)| entry));
    own.cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use prowess_config::Env;
    use prowess_host::Flags;
    use prowess_testkit::Tree;

    use super::*;

    #[test]
    fn an_agent_that_is_being_loaded_stops_nobody_else() {
        let written = "{ agents: { list: [{ id: 'a' }, { id: 'b', default: true }] } }";
        let tree = Tree::new().file(".openclaw/openclaw.json", written);
        let home = tree.root().to_string_lossy().into_owned();
        let env = Env::from_iter([("HOME", home.as_str())]);
        let ground = Ground { flags: Flags::default(), env, cwd: tree.root().to_owned() };
        let (agents, mut news) = Agents::new(ground, Arc::new(Metrics::new(&[])));
        let place: Arc<Place> = Arc::default();
        agents.homes.lock().expect("nobody panicked").insert("a".to_owned(), Arc::clone(&place));
        let loading = place.making.lock().expect("nobody panicked");
        let first = agents.get(None).expect("the other agent");
        assert!(Arc::ptr_eq(&first, &agents.get(Some("b")).expect("the same")), "it is loaded once");
        drop(loading);
        agents.get(Some("a")).expect("an agent");
        let heard: Vec<String> = std::iter::from_fn(|| news.try_recv().ok()).map(|(id, _)| id).collect();
        assert_eq!(heard, ["b", "a"]);
        assert!(agents.get(Some("c")).is_err());
    }
}
