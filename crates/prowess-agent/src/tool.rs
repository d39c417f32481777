//! Tools: what may a model do, and how is it told?

mod edit;
mod exec;
mod named;
mod permission;
mod place;
mod policy;
mod process;
mod read;
mod secrets;
mod set;
mod standard;
mod store;
mod validate;
mod write;

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use prowess_exec::ToolResult;
use prowess_exec::approver::Approver;
use serde_json::{Map, Value};

pub use edit::EditTool;
pub use exec::{ExecTool, finished_since};
pub use policy::ToolSettings;
pub use process::ProcessTool;
pub use read::ReadTool;
pub use set::ToolSet;
pub use standard::standard;
pub use validate::validate;
pub use write::WriteTool;

pub(crate) use permission::{BY_LIST, RULE};
pub(crate) use set::resolve;

use crate::event::Events;
use crate::skills::{SkillSet, Uses};

/// What a model is told about a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// What it takes, as JSON Schema.
    pub parameters: Value,
}

/// Something a model may call. Others bring their own, so it is a trait.
pub trait Tool: Send + Sync {
    /// What the model is told about it.
    fn spec(&self) -> &ToolSpec;

    /// Whether calls may run beside other calls. One that may not makes a whole batch run in order.
    fn order(&self) -> Order {
        Order::InTurn
    }

    /// Takes out of `text` what nobody may learn from this tool.
    fn conceal(&self, text: &mut String) {
        let _ = text;
    }

    /// Carries out a call whose arguments fit the schema. What goes wrong is a result the model reads.
    fn call<'a>(
        &'a self,
        call: Call<'a>,
        scope: &'a Scope<'a>,
    ) -> Pin<Box<dyn Future<Output = ToolResult> + Send + 'a>>;
}

/// Whether a call may run beside others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// It may.
    Beside,
    /// One after the other.
    InTurn,
}

/// A call.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// Its id.
    pub id: &'a str,
    /// What it is given.
    pub arguments: &'a Map<String, Value>,
}

/// Where a call happens, and what it may look at and tell.
pub struct Scope<'a> {
    /// The agent.
    pub agent: &'a str,
    /// The conversation.
    pub session: &'a str,
    /// The agent's folder.
    pub workspace: &'a Path,
    /// The operator's home, for `~`.
    pub home: &'a Path,
    /// The skills of this conversation.
    pub skills: &'a Arc<SkillSet>,
    /// Which of them this turn has used so far.
    pub uses: &'a Uses,
    /// Who is asked.
    pub approver: &'a dyn Approver,
    /// Who listens.
    pub events: &'a Events,
}
