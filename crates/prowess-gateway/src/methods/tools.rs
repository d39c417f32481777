//! `tools.catalog`: which tools can agents have?

use std::sync::Arc;

use prowess_agent::tool::{ToolSettings, ToolSpec, standard};
use prowess_host::base;
use serde_json::{Value, json};

use super::agent::text;
use super::{Answer, Ask, Method, method};
use crate::aside::blocking;
use crate::params::{BOOL, Shape, TEXT, optional, shape};
use crate::runs::keys::main_session;
use crate::runs::tools;
use crate::scope::{Access, Scope};

/// The methods of this matter.
pub(super) const METHODS: &[Method] = &[method!("tools.catalog", Access::Operator(Scope::Read), catalog)];

const CATALOG: Shape = shape(&[optional("agentId", TEXT), optional("includePlugins", BOOL)]);

/// Ready-made lists of tools.
const PROFILES: &[(&str, &str)] =
    &[("minimal", "Minimal"), ("coding", "Coding"), ("messaging", "Messaging"), ("full", "Full")];

/// Groups of tools, and which profiles have them.
const GROUPS: &[(&str, &str, &[&str], &[&str])] = &[
    ("fs", "Files", &["read", "write", "edit"], &["coding"]),
    ("runtime", "Runtime", &["exec", "process"], &["coding"]),
    ("sessions", "Sessions", &["sessions_list", "sessions_history", "sessions_send"], &["coding", "messaging"]),
    ("sessions", "Sessions", &["sessions_spawn"], &["coding"]),
    ("sessions", "Sessions", &["session_status"], &["minimal", "coding", "messaging"]),
    ("agents", "Agents", &["agents_list"], &[]),
];

async fn catalog(ask: Ask) -> Answer {
    CATALOG.check("tools.catalog", ask.params())?;
    blocking(move || {
        let home = ask.gateway.agents.get(text(ask.params(), "agentId").as_deref())?;
        let context = home.view().context.clone();
        let agent = context.agent.id.to_string();
        let setting = base(&context, context.workspace.clone(), "catalog");
        let own = standard(Arc::clone(&ask.gateway.exec), setting, &ToolSettings::default());
        let key = main_session(&agent, context.config.tree());
        let more = tools::of(&ask.gateway, &context, &key);
        let specs: Vec<ToolSpec> = own.iter().chain(&more).map(|tool| tool.spec().clone()).collect();
        let profiles: Vec<Value> = PROFILES.iter().map(|(id, label)| json!({"id": id, "label": label})).collect();
        Ok(json!({"agentId": agent, "profiles": profiles, "groups": groups(&specs)}))
    })
    .await?
}

fn groups(specs: &[ToolSpec]) -> Vec<Value> {
    let mut groups: Vec<Value> = Vec::new();
    for spec in specs {
        let found = GROUPS.iter().find(|(_, _, names, _)| names.contains(&spec.name.as_str()));
        let (id, label, _, profiles) = found.copied().unwrap_or(("other", "Other", &[], &[]));
        let tool = json!({
            "id": spec.name,
            "label": spec.name,
            "description": spec.description,
            "source": "core",
            "defaultProfiles": profiles,
        });
        match groups.iter_mut().find(|group| group["id"] == id).and_then(|group| group["tools"].as_array_mut()) {
            Some(tools) => tools.push(tool),
            None => groups.push(json!({"id": id, "label": label, "source": "core", "tools": [tool]})),
        }
    }
    groups
}
