//! `/tools/invoke`: a tool of the gateway, called by a program.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{Request, StatusCode};
use axum::response::Response;
use prowess_agent::event::Events;
use prowess_agent::session::{MAIN, SessionKey};
use prowess_agent::skills::Uses;
use prowess_agent::tool::{Call, Scope, Tool, validate};
use prowess_host::{Context, tool_settings};
use serde_json::{Map, Value, json};

use super::body::{invalid, posted};

use super::chat_completions::refused;
use crate::agents::AgentHome;
use crate::aside::blocking;
use crate::gateway::Gateway;
use crate::runs::tools;
use crate::wire::Refusal;

/// The largest body.
const MAX_BODY: usize = 2 * 1024 * 1024;

/// What programs cannot call unless `gateway.tools.allow` names it.
const DENIED: &[&str] = &["sessions_spawn", "sessions_send", "cron", "gateway", "whatsapp_login"];

/// Answers one request.
pub(crate) async fn answer(State(gateway): State<Arc<Gateway>>, request: Request<Body>) -> Response {
    let body = match posted(&gateway, request, MAX_BODY).await {
        Ok(body) => body,
        Err(refused) => return refused,
    };
    let name = body["tool"].as_str().map(str::trim).unwrap_or_default().to_owned();
    if name.is_empty() {
        return invalid("tools.invoke requires body.tool");
    }
    let session = body["sessionKey"].as_str().map(str::trim).filter(|key| !key.is_empty()).unwrap_or(MAIN).to_owned();
    let (asked_gateway, wanted) = (Arc::clone(&gateway), name.clone());
    let found = blocking(move || find(&asked_gateway, &wanted, &session)).await;
    let found = match found.and_then(|found| found) {
        Ok(found) => found,
        Err(refusal) => return refused(&refusal),
    };
    let Found { home, key, tool: Some(tool) } = found else {
        let shown: String = name.chars().take(100).collect();
        return failed(StatusCode::NOT_FOUND, "not_found", &format!("Tool not available: {shown}"));
    };
    let arguments = arguments(&body, &tool.spec().parameters);
    let arguments = match validate(&name, &tool.spec().parameters, &arguments) {
        Ok(arguments) => arguments,
        Err(wrong) => return failed(StatusCode::BAD_REQUEST, "tool_error", &wrong.text()),
    };
    call(&gateway, &home, &key, &*tool, &arguments).await
}

/// What a call needs.
struct Found {
    home: Arc<AgentHome>,
    key: SessionKey,
    tool: Option<Arc<dyn Tool>>,
}

/// The tool of that name, if it may be called. Looks at the disk.
fn find(gateway: &Arc<Gateway>, name: &str, session: &str) -> Result<Found, Refusal> {
    let key = gateway.agents.key(session)?;
    let home = gateway.agents.get(Some(key.agent()))?;
    let view = home.view();
    let is_allowed = may_be_called(&view.context, &key, name);
    let tools = tools::of(gateway, &view.context, &key);
    let tool = tools.into_iter().find(|tool| is_allowed && tool.spec().name == name);
    Ok(Found { home, key, tool })
}

fn may_be_called(context: &Context, key: &SessionKey, name: &str) -> bool {
    let section = &context.config.tree()["gateway"]["tools"];
    let lists = |list: &str| section[list].as_array().is_some_and(|names| names.iter().any(|known| known == name));
    let is_denied = lists("deny") || (DENIED.contains(&name) && !lists("allow"));
    !is_denied && tool_settings(context, &key.to_string()).allows(name)
}

/// What the tool is given; `action` beside it is one of its arguments, where it has such.
fn arguments(body: &Value, schema: &Value) -> Map<String, Value> {
    let mut arguments = body["args"].as_object().cloned().unwrap_or_default();
    let action = body["action"].as_str().map(str::trim).filter(|action| !action.is_empty());
    if let Some(action) = action.filter(|_| !schema["properties"]["action"].is_null()) {
        arguments.entry("action").or_insert_with(|| action.into());
    }
    arguments
}

async fn call(
    gateway: &Gateway,
    home: &AgentHome,
    key: &SessionKey,
    tool: &dyn Tool,
    arguments: &Map<String, Value>,
) -> Response {
    let context = home.view().context.clone();
    let (id, session) = (format!("http-{}", uuid::Uuid::new_v4()), key.to_string());
    let (skills, uses, events) = (home.skills().current(), Uses::default(), Events::nobody());
    let scope = Scope {
        agent: key.agent(),
        session: &session,
        workspace: &context.workspace,
        home: context.user_home(),
        skills: &skills,
        uses: &uses,
        approver: &*gateway.approver,
        events: &events,
    };
    let result = tool.call(Call { id: &id, arguments }, &scope).await;
    if result.is_error {
        return failed(StatusCode::BAD_REQUEST, "tool_error", &result.text());
    }
    let result = json!({"content": result.content, "details": result.details});
    super::json(StatusCode::OK, &json!({"ok": true, "result": result}))
}

fn failed(status: StatusCode, kind: &str, message: &str) -> Response {
    super::json(status, &json!({"ok": false, "error": {"type": kind, "message": message}}))
}
