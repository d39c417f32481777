//! Other machines: does a call run here, or is it handed on?

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use prowess_policy::Host;

use crate::approver::Approver;
use crate::exec::Exec;
use crate::exec_tool::ExecCall;
use crate::leases::Holder;
use crate::refusal::{not_run, refuse};
use crate::setting::Setting;
use crate::tool::ToolResult;

/// Runs commands on other machines. Who does knows which there are.
pub trait Remote: Send + Sync {
    /// Runs `call` on the machine that it or its setting names, and tells `progress` the newest of what it says.
    /// `approver` is asked where the command needs approval. Dropping the future ends the command.
    fn run<'a>(
        &'a self,
        call: &'a ExecCall,
        setting: &'a Setting,
        approver: &'a dyn Approver,
        progress: &'a (dyn Fn(String) + Send + Sync),
    ) -> Pin<Box<dyn Future<Output = ToolResult> + Send + 'a>>;
}

impl Exec {
    /// The same, with other machines to run commands on.
    #[must_use]
    pub fn with_remote(mut self, remote: Arc<dyn Remote>) -> Self {
        self.remote = Some(remote);
        self
    }

    /// Who runs `call`, if it is to run on another machine and may. What may not is refused where it is judged, and noted.
    #[must_use]
    pub fn elsewhere(&self, call: &ExecCall, setting: &Setting) -> Option<&dyn Remote> {
        match host(call, setting) {
            Ok(Some(Host::Node)) => self.remote.as_deref(),
            Ok(Some(Host::Sandbox | Host::Gateway | Host::Unknown) | None) | Err(_) => None,
        }
    }

    /// The setting of one command on another machine: with what its own skill brings, and the keys that this skill holds a
    /// lease for.
    pub async fn for_remote(&self, call: &ExecCall, setting: &Setting) -> Result<Setting, ToolResult> {
        let (leases, mut setting) = (self.leases.clone(), setting.for_command(call));
        let giving = tokio::task::spawn_blocking(move || {
            let (agent, session) = (setting.agent.clone(), setting.session.clone());
            for skill in setting.skills.iter_mut().filter(|skill| !skill.withheld.is_empty()) {
                let own = Some((skill.name.clone(), skill.source.clone()));
                let held = leases.held(&Holder { agent: agent.clone(), session: session.clone(), skill: own });
                skill.give_held(&held.map_err(|error| refuse(&format!("exec denied: {error}.")))?);
            }
            Ok(setting)
        });
        giving.await.map_err(|error| not_run(&format!("internal error: {error}")))?
    }
}

/// Refuses a call that cannot run on this machine.
pub(crate) fn check_here(call: &ExecCall, setting: &Setting) -> Result<(), ToolResult> {
    match host(call, setting)? {
        Some(Host::Node) => Err(no_node()),
        Some(Host::Sandbox | Host::Gateway | Host::Unknown) | None => Ok(()),
    }
}

/// Where `call` is to run, if it may run there.
fn host(call: &ExecCall, setting: &Setting) -> Result<Option<Host>, ToolResult> {
    if call.elevated {
        return Err(refuse(
            "elevated is not available right now (runtime=sandboxed).\nRun it without elevated: a person is asked \
             about what leaves the sandbox.",
        ));
    }
    let asked = call.host.or(setting.settings.host);
    match (asked, setting.settings.host) {
        (Some(asked), Some(set)) if asked != set => Err(refuse(&format!(
            "exec host not allowed (requested {0}; configure tools.exec.host={0} to allow).",
            asked.word()
        ))),
        (Some(Host::Unknown), _) => {
            Err(refuse("tools.exec.host is not a host; use sandbox, gateway or node, or leave it out."))
        }
        (asked, _) => Ok(asked),
    }
}

fn no_node() -> ToolResult {
    refuse("exec host=node requires a paired node (none available). Use host=gateway, or connect a node first.")
}
