//! Tools of the gateway: what can an agent do here that it cannot do at a command line?
//!
//! It can have other agents work for it, and look at or speak to other sessions, as far as the operator lets it.

mod agents_list;
mod sessions;
mod spawn;
mod visibility;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use prowess_agent::session::SessionKey;
use prowess_agent::tool::{Call, Order, Scope, Tool, ToolSpec};
use prowess_exec::ToolResult;
use prowess_host::Context;
use serde_json::{Map, Value};

use super::subagents;
use crate::gateway::Gateway;

/// What sub-agents never have.
const NOT_FOR_SUBAGENTS: &[&str] = &[agents_list::NAME, sessions::STATUS, sessions::SEND];

/// What sub-agents have only if they may start others.
const FOR_PARENTS: &[&str] = &[spawn::NAME, sessions::LIST, sessions::HISTORY];

/// What a tool does for the session behind the key.
type Act = fn(Here) -> Pin<Box<dyn Future<Output = Result<Value, String>> + Send>>;

/// Where a tool is called, and with what.
pub(super) struct Here {
    pub(super) gateway: Arc<Gateway>,
    /// The session that calls.
    pub(super) key: SessionKey,
    pub(super) arguments: Map<String, Value>,
}

impl Here {
    /// A text that is not empty, if it was given.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        let text = self.arguments.get(name)?.as_str()?.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// A whole number, if it was given.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        let value = self.arguments.get(name)?;
        // Models write 30.0 for 30.
        value.as_u64().or_else(|| format!("{:.0}", value.as_f64()?).parse().ok())
    }
}

/// One of them.
struct GatewayTool {
    spec: ToolSpec,
    act: Act,
    gateway: Arc<Gateway>,
    key: SessionKey,
}

impl Tool for GatewayTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn order(&self) -> Order {
        Order::Beside
    }

    fn call<'a>(
        &'a self,
        call: Call<'a>,
        _scope: &'a Scope<'a>,
    ) -> Pin<Box<dyn Future<Output = ToolResult> + Send + 'a>> {
        Box::pin(async move {
            let here =
                Here { gateway: Arc::clone(&self.gateway), key: self.key.clone(), arguments: call.arguments.clone() };
            match (self.act)(here).await {
                Ok(details) => {
                    let text = serde_json::to_string_pretty(&details).unwrap_or_else(|_| details.to_string());
                    ToolResult::done(text, details)
                }
                Err(why) => ToolResult::error(&self.spec.name, &why),
            }
        })
    }
}

/// The tools that the session behind `key` has here. What the operator denies is taken away later.
pub(crate) fn of(gateway: &Arc<Gateway>, context: &Context, key: &SessionKey) -> Vec<Arc<dyn Tool>> {
    let is_leaf = || subagents::depth(context, key) >= subagents::Limits::read(context.config.tree()).depth;
    let hidden: Vec<&str> = match key.is_subagent() {
        false => Vec::new(),
        true if is_leaf() => [NOT_FOR_SUBAGENTS, FOR_PARENTS].concat(),
        true => NOT_FOR_SUBAGENTS.to_vec(),
    };
    let all = [
        agents_list::tool(),
        spawn::tool(),
        sessions::list_tool(),
        sessions::history_tool(),
        sessions::send_tool(),
        sessions::status_tool(),
    ];
    all.into_iter()
        .filter(|(spec, _)| !hidden.contains(&spec.name.as_str()))
        .map(|(spec, act)| -> Arc<dyn Tool> {
            Arc::new(GatewayTool { spec, act, gateway: Arc::clone(gateway), key: key.clone() })
        })
        .collect()
}
