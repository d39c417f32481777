//! `sessions_spawn`: how does an agent have another work for it?

use prowess_agent::model::Thinking;
use prowess_agent::tool::ToolSpec;
use serde_json::{Value, json};

use super::super::open::Asked;
use super::super::subagents::{self, Afterwards, NoChild, Task};
use super::{Act, Here};

pub(super) const NAME: &str = "sessions_spawn";

pub(super) fn tool() -> (ToolSpec, Act) {
    let spec = ToolSpec {
        name: NAME.to_owned(),
        description: "Starts a sub-agent in a session of its own and returns at once. It does the task without asking \
                      back; its answer comes to you as a message when it is done, so do not wait or look for it."
            .to_owned(),
        parameters: json!({
            "type": "object",
            "required": ["task"],
            "properties": {
                "task": {"type": "string", "description": "The task, with everything the sub-agent needs to know."},
                "label": {"type": "string", "description": "A short name for it."},
                "agentId": {"type": "string", "description": "Another agent; agents_list says which."},
                "model": {"type": "string", "description": "A model other than its usual one."},
                "thinking": {"type": "string", "description": "off, low, medium or high."},
                "runTimeoutSeconds": {"type": "number", "minimum": 0},
                "cleanup": {"type": "string", "enum": ["delete", "keep"]},
            },
        }),
    };
    (spec, |here| Box::pin(spawn(here)))
}

async fn spawn(here: Here) -> Result<Value, String> {
    let thinking = match here.text("thinking").as_deref() {
        None => None,
        Some(word) => Some(Thinking::parse(word).ok_or("thinking must be off, low, medium or high")?),
    };
    let task = Task {
        text: here.text("task").ok_or("task is required")?,
        label: here.text("label"),
        agent: here.text("agentId"),
        asked: Asked {
            model: here.text("model"),
            thinking,
            seconds: here.number("runTimeoutSeconds").or_else(|| here.number("timeoutSeconds")),
            extra: None,
            ..Asked::default()
        },
        afterwards: if here.text("cleanup").as_deref() == Some("delete") {
            Afterwards::Remove
        } else {
            Afterwards::Keep
        },
    };
    match subagents::spawn(&here.gateway, &here.key, task).await {
        Ok(child) => Ok(json!({
            "status": "accepted",
            "childSessionKey": child.key.to_string(),
            "runId": child.run.id,
            "mode": "run",
        })),
        Err(NoChild::Forbidden(why)) => Ok(json!({"status": "forbidden", "error": why})),
        Err(NoChild::Failed(why)) => Ok(json!({"status": "error", "error": why})),
    }
}
