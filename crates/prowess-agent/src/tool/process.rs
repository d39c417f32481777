//! The process tool in a conversation: a conversation looks after its own commands, and no others.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use prowess_exec::process_tool::{self, NAME};
use prowess_exec::{Exec, ToolResult};
use serde_json::Value;

use super::secrets::Secrets;
use crate::tool::{Call, Scope, Tool, ToolSpec};

/// Looks after commands in the background.
pub struct ProcessTool {
    spec: ToolSpec,
    exec: Arc<Exec>,
    secrets: Arc<Secrets>,
}

impl ProcessTool {
    pub(crate) fn new(exec: Arc<Exec>, secrets: Arc<Secrets>) -> Self {
        let spec = ToolSpec {
            name: NAME.to_owned(),
            description:
                "Look after commands that exec left running: list them, poll or read what they say, give them \
                          input, end them."
                    .to_owned(),
            parameters: process_tool::schema(),
        };
        Self { spec, exec, secrets }
    }
}

impl std::fmt::Debug for ProcessTool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ProcessTool")
    }
}

impl Tool for ProcessTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn conceal(&self, text: &mut String) {
        self.secrets.conceal(text);
    }

    fn call<'a>(
        &'a self,
        call: Call<'a>,
        scope: &'a Scope<'a>,
    ) -> Pin<Box<dyn Future<Output = ToolResult> + Send + 'a>> {
        Box::pin(async move {
            let given = Value::Object(call.arguments.clone());
            self.secrets.redact(process_tool::run(&self.exec.runner, scope.session, &given).await)
        })
    }
}
