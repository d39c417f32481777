//! The way out of a run: which hosts does its proxy serve, whom does it ask, and where is that written down?

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use prowess_egress::{
    Answer as HostAnswer, CommandContext, ConnectionRecord, HostQuestion, Lifetime, Outcome, environment,
};
use prowess_policy::lease::{HostRule, Lease};
use prowess_policy::{Answer, Denied, Permit, listed};

use crate::approver::{Approver, NETWORK, Offer, ToolQuestion, unanswered};
use crate::exec::Exec;
use crate::leases::{Holder, Leases};
use crate::loopback::SessionNetwork;
use crate::sandbox::PROXY_PORT;

/// What the body of a refusal says besides the reason.
const HINT: &str = "The sandbox lets this command reach only hosts that a person allowed.";

/// The most connections that the result of a run names because they did not work.
const MAX_NAMED: usize = 5;

/// How a line begins about a connection that was not let through.
pub const REFUSED: &str = "The sandbox refused a connection to";

/// The same for a host that could not be reached.
pub const FAILED: &str = "The sandbox's proxy cannot reach";

/// Where the proxy is, as a run sees it.
fn address() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, PROXY_PORT).into()
}

/// The variables that make programs use the proxy.
pub(crate) fn variables() -> Vec<(String, String)> {
    // Git reads the common variables too; its own are the ones that keep it from starting programs.
    environment(address(), None).into_iter().filter(|(name, _)| !name.starts_with("GIT_CONFIG_")).collect()
}

/// The way out of one run.
pub struct Egress {
    /// What its proxy serves.
    pub context: CommandContext,
    /// Which of its connections did not work.
    pub failed: FailedConnections,
    /// Where the run's own network is listed.
    pub(crate) network: Option<SessionNetwork>,
}

impl Egress {
    /// A proxy that serves what `context` allows, in a network that no other run sees.
    #[must_use]
    pub fn new(context: CommandContext) -> Self {
        Self { context, failed: FailedConnections::default(), network: None }
    }
}

/// Connections of a run that the proxy refused, and those whose host could not be reached: a line for each.
#[derive(Debug, Clone, Default)]
pub struct FailedConnections(Arc<Mutex<Vec<String>>>);

impl FailedConnections {
    /// All of them so far.
    #[must_use]
    pub fn list(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn note(&self, record: &ConnectionRecord) {
        let host = record.host.as_ref().zip(record.port).map(|(host, port)| host.with_port(port));
        let host = host.as_deref().unwrap_or("a host without a valid name");
        let text = match (&record.outcome, record.outcome.failure()) {
            (Outcome::Refused(why), _) => format!("{REFUSED} {host}: {why}"),
            // What broke off later is a matter between the program and the host.
            (_, Some(why)) if record.down == 0 => format!("{FAILED} {host}: {why}"),
            (Outcome::Served | Outcome::Failed(_), _) => return,
        };
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if list.len() < MAX_NAMED && !list.contains(&text) {
            list.push(text);
        }
    }
}

/// What the proxy of `exec` serves to the command of `permit`, which `holder` holds leases for.
pub(crate) fn egress(permit: &Permit, exec: &Exec, holder: Holder) -> Egress {
    let binding = permit.binding();
    let failed = FailedConnections::default();
    let trail = exec.connections.of_command(&binding.session, failed.clone());
    let mut context = CommandContext::new(binding.command.clone(), trail);
    context.skill = holder.skill.as_ref().map(|(name, _)| name.clone());
    context.rules.clone_from(&permit.lease().hosts);
    context.hint = Some(HINT.to_owned());
    context.names = exec.names.clone();
    let network = exec.network_of(&binding.session);
    context.own_loopback = Some(network.loopback());
    let asker = HostAsker {
        command: binding.command.clone(),
        approver: Arc::clone(&exec.approver),
        leases: exec.leases.clone(),
        holder,
    };
    let asker = Arc::new(asker);
    context.asker = Arc::new(move |question: HostQuestion| {
        let asker = Arc::clone(&asker);
        async move { asker.ask(&question).await }
    });
    Egress { context, failed, network: Some(network) }
}

/// Asks people about hosts while a connection is held.
struct HostAsker {
    command: String,
    approver: Arc<dyn Approver>,
    leases: Leases,
    holder: Holder,
}

impl HostAsker {
    async fn ask(&self, question: &HostQuestion) -> HostAnswer {
        let Ok(rule) = question.host.with_port(question.port).parse::<HostRule>() else {
            return HostAnswer::Refuse("it is not a host that can be allowed".to_owned());
        };
        let lease = Lease::for_hosts(vec![rule]);
        match self.approver.ask_tool(&self.question(&lease)).await {
            Some(Answer::No) => HostAnswer::Refuse(Denied::ByPerson.to_string()),
            Some(answer) => {
                let (leases, holder) = (self.leases.clone(), self.holder.clone());
                let keep = move || leases.keep_answer(&holder, lease, answer);
                match tokio::task::spawn_blocking(keep).await {
                    Ok(Ok(())) => HostAnswer::Allow(lifetime(answer)),
                    Ok(Err(error)) => HostAnswer::Refuse(format!("the lease could not be saved: {error}")),
                    Err(error) => HostAnswer::Refuse(format!("internal error: {error}")),
                }
            }
            None => HostAnswer::Refuse(format!(
                "{}. To allow it: {}",
                unanswered(&*self.approver),
                self.holder.allow_command(&lease)
            )),
        }
    }

    fn question(&self, lease: &Lease) -> ToolQuestion {
        let skill = self.holder.skill.as_ref().map(|(name, _)| format!(", for skill {name}")).unwrap_or_default();
        ToolQuestion {
            agent: self.holder.agent.clone(),
            session: self.holder.session.clone(),
            tool: NETWORK.to_owned(),
            summary: format!("{}{skill}", listed(&lease.phrases())),
            why: format!("it connects to this host: {}", self.command),
            content: Vec::new(),
            offer: Offer::Session,
        }
    }
}

fn lifetime(answer: Answer) -> Lifetime {
    match answer {
        Answer::Always => Lifetime::Always,
        Answer::Session => Lifetime::Session,
        Answer::Once | Answer::No => Lifetime::Once,
    }
}
