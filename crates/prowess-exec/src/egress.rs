//! The way out of a run: which hosts does its proxy serve, whom does it ask, and where is that written down?

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use prowess_egress::{Answer as HostAnswer, CommandContext, ConnectionRecord, HostQuestion, Lifetime, environment};
use prowess_policy::Permit;

use crate::approver::{Approver, Consent, ToolQuestion};
use crate::audit::Audit;
use crate::sandbox::PROXY_PORT;

/// What the body of a refusal says besides the reason.
const HINT: &str = "The sandbox lets this command reach only hosts that a person allowed.";

/// Where the proxy is, as a run sees it.
fn address() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, PROXY_PORT).into()
}

/// The variables that make programs use the proxy.
pub(crate) fn variables() -> Vec<(String, String)> {
    // Git reads the common variables too; its own are the ones that keep it from starting programs.
    environment(address(), None).into_iter().filter(|(name, _)| !name.starts_with("GIT_CONFIG_")).collect()
}

/// What the proxy serves to the command of `permit`, which is one of `skill`'s if there is one.
pub(crate) fn context(
    permit: &Permit,
    skill: Option<&str>,
    approver: Arc<dyn Approver>,
    audit: Audit,
) -> CommandContext {
    let binding = permit.binding();
    let (agent, session, command) = (binding.agent.clone(), binding.session.clone(), binding.command.clone());
    let record_session = session.clone();
    let mut context = CommandContext::new(command.clone(), move |record: ConnectionRecord| {
        // A connection that is not written down is a gap in a record; it must not stop the run.
        let audit = audit.clone();
        let session = record_session.clone();
        tokio::task::spawn_blocking(move || {
            let _ = audit.record_connection(&record, &session);
        });
    });
    context.skill = skill.map(str::to_owned);
    context.rules.clone_from(&permit.lease().hosts);
    context.hint = Some(HINT.to_owned());
    context.asker = Arc::new(move |question: HostQuestion| {
        let asked = asked(&question, &agent, &session, &command);
        let approver = Arc::clone(&approver);
        async move {
            match approver.ask_tool(&asked).await {
                Some(Consent::Given) => HostAnswer::Allow(Lifetime::Once),
                Some(Consent::Refused) => HostAnswer::Refuse("a person refused it".to_owned()),
                None => HostAnswer::Refuse("it needs approval, and nobody answered".to_owned()),
            }
        }
    });
    context
}

fn asked(question: &HostQuestion, agent: &str, session: &str, command: &str) -> ToolQuestion {
    let skill = question.skill.as_deref().map(|skill| format!(", for skill {skill}")).unwrap_or_default();
    ToolQuestion {
        agent: agent.to_owned(),
        session: session.to_owned(),
        tool: "network".to_owned(),
        summary: format!("reach {}{skill}", question.host.with_port(question.port)),
        why: format!("this command waits for the connection: {command}"),
        content: Vec::new(),
    }
}
