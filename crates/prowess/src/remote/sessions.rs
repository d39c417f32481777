//! Sessions that a gateway keeps.

use prowess_agent::message::Message;
use prowess_agent::session::{MAIN, SessionKey};
use prowess_gateway::client::Client;
use prowess_host::Failure;
use serde_json::{Value, json};

use super::call;
use crate::cli::{TalkArgs, WhichSession, fresh_session};
use crate::output::{Report, count};
use crate::sessions::told::{Line, Row, Source, Told};
use crate::sessions::{list as table, show as shown};

/// How many messages a gateway gives at once.
const MAX_MESSAGES: u64 = 1000;

/// The session that the flags ask for.
pub(super) async fn chosen(client: &Client, args: &TalkArgs, agent: &str) -> Result<SessionKey, Failure> {
    match args.which() {
        WhichSession::New => Ok(SessionKey::meant(&fresh_session(), agent)),
        WhichSession::Named(name) => Ok(SessionKey::meant(name, agent)),
        WhichSession::Last => last(client, agent).await,
    }
}

/// The session of `agent` that was used last.
async fn last(client: &Client, agent: &str) -> Result<SessionKey, Failure> {
    let answer = call(client, "sessions.list", json!({"agentId": agent, "limit": 1})).await?;
    let key = answer["sessions"][0]["key"].as_str().map(|key| SessionKey::meant(key, agent));
    key.ok_or_else(|| {
        Failure::input(format!("the agent {agent} has no session at this gateway yet"))
            .hint("start one with: prowess run --gateway URL \"MESSAGE\"")
    })
}

/// Which conversations are there?
pub(super) async fn list(client: &Client, json: bool) -> Result<Report, Failure> {
    let params = json!({"includeDerivedTitles": true});
    let answer = call(client, "sessions.list", params).await?;
    let rows = answer["sessions"].as_array().into_iter().flatten().map(row).collect::<Vec<_>>();
    table::report(&rows, json)
}

fn row(session: &Value) -> Row {
    let text = |name: &str| session[name].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let model = match (text("modelProvider"), text("model")) {
        (Some(provider), Some(model)) => Some(format!("{provider}/{model}")),
        (_, model) => model,
    };
    Row {
        key: text("key"),
        id: text("sessionId").unwrap_or_default(),
        updated: session["updatedAt"].as_u64().unwrap_or(0),
        messages: session["messages"].as_u64(),
        title: text("derivedTitle").or_else(|| text("displayName")).or_else(|| text("label")),
        model,
    }
}

/// What was said in one of them?
pub(super) async fn show(
    client: &Client,
    key: Option<&str>,
    agent: Option<&str>,
    json: bool,
) -> Result<Report, Failure> {
    let default = &client.hello()["snapshot"]["sessionDefaults"]["defaultAgentId"];
    let agent = agent.or(default.as_str()).unwrap_or(MAIN);
    let key = match key {
        Some(key) => SessionKey::meant(key, agent).to_string(),
        None => last(client, agent).await?.to_string(),
    };
    let answer = call(client, "chat.history", json!({"sessionKey": key, "limit": MAX_MESSAGES})).await?;
    let told = told(&key, &answer);
    if told.lines.is_empty() {
        return Err(Failure::input(format!("the gateway has no session {key}"))
            .hint("prowess sessions list --gateway URL lists its sessions"));
    }
    shown::report(&told, std::path::Path::new("/nonexistent"), json)
}

fn told(key: &str, answer: &Value) -> Told {
    let messages = answer["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let read = |message: &Value| {
        let mut message = message.clone();
        if message["approval"]["status"] == "waiting" {
            message["details"] = json!({"status": "approval-pending"});
        }
        serde_json::from_value::<Message>(message).ok()
    };
    let lines: Vec<Line> =
        messages.iter().filter_map(read).map(|message| Line { message, reads: Vec::new() }).collect();
    let mut problems = Vec::new();
    let lost = messages.len() - lines.len();
    if lost > 0 {
        problems.push(format!("{} could not be read", count(lost, "message")));
    }
    let id = answer["sessionId"].as_str().unwrap_or_default().to_owned();
    Told { key: Some(key.to_owned()), id, lines, problems, source: Source::Gateway, ..Told::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_waits_is_not_done() {
        let result = json!({
            "role": "toolResult", "toolCallId": "c", "toolName": "exec", "content": [], "isError": false, "timestamp": 1,
            "approval": {"status": "waiting", "approvalId": "a"},
        });
        let told = told("main", &json!({"messages": [result]}));
        let Message::ToolResult(reply) = &told.lines[0].message else { panic!("a result") };
        assert_eq!(reply.details, Some(json!({"status": "approval-pending"})));
    }

    #[test]
    fn a_row_of_openclaw_is_a_row_here() {
        let session = json!({
            "key": "agent:main:main", "sessionId": "s", "updatedAt": 5, "modelProvider": "p", "model": "m",
            "displayName": "d", "derivedTitle": "check the weather",
        });
        let row = row(&session);
        assert_eq!((row.key.as_deref(), row.model.as_deref()), (Some("agent:main:main"), Some("p/m")));
        assert_eq!((row.title.as_deref(), row.messages), (Some("check the weather"), None));
    }

    #[test]
    fn a_history_is_a_conversation() {
        let answer = json!({"sessionId": "s", "messages": [
            {"role": "user", "content": "hi", "timestamp": 1},
            {"role": "assistant", "content": [{"type": "text", "text": "All done:"}], "api": "openai-completions",
             "provider": "fake", "model": "m", "stopReason": "stop", "timestamp": 2},
            {"role": "nobody"},
        ]});
        let told = told("agent:main:main", &answer);
        assert_eq!((told.lines.len(), told.problems.len()), (2, 1), "{told:?}");
    }
}
