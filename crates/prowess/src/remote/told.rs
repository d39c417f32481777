//! Models and prompts of a gateway.

use prowess_gateway::client::Client;
use prowess_host::Failure;
use serde_json::{Value, json};

use super::call;
use crate::cli::{Mode, PromptArgs};
use crate::output::{Report, cleaned, safe, table};

/// Which models can be chosen?
pub(super) async fn models(client: &Client, json: bool) -> Result<Report, Failure> {
    let answer = call(client, "models.list", json!({})).await?;
    if json {
        return Report::json(&answer);
    }
    let models = answer["models"].as_array().map(Vec::as_slice).unwrap_or_default();
    if models.is_empty() {
        return Ok(Report::text("The gateway has no models configured.\n"));
    }
    let cells = models.iter().map(|model| {
        let text = |name: &str| safe(model[name].as_str().unwrap_or_default());
        let window = model["contextWindow"].as_u64().map_or_else(String::new, |window| window.to_string());
        vec![format!("{}/{}", text("provider"), text("id")), text("name"), window]
    });
    Ok(Report::text(table(&["Model", "Name", "Window"], &[2], cells.collect())))
}

async fn preview(client: &Client, mode: Mode, agent: Option<&str>) -> Result<Value, Failure> {
    let mode = match mode {
        Mode::Full => "full",
        Mode::Minimal => "minimal",
        Mode::None => "none",
    };
    let mut params = json!({"mode": mode});
    if let Some(agent) = agent {
        params["agentId"] = agent.into();
    }
    call(client, "prompt.preview", params).await
}

/// What would a model be told, or what does it cost?
pub(super) async fn prompt(
    client: &Client,
    args: PromptArgs,
    agent: Option<&str>,
    json: bool,
) -> Result<Report, Failure> {
    let answer = preview(client, args.mode, agent).await?;
    if json {
        return Report::json(&answer);
    }
    if !args.cost {
        return Ok(Report::text(format!("{}\n", cleaned(answer["prompt"].as_str().unwrap_or_default()))));
    }
    let cells = answer["parts"].as_array().into_iter().flatten().map(|part| {
        let number = |name: &str| part[name].as_u64().map_or_else(String::new, |number| number.to_string());
        vec![safe(part["name"].as_str().unwrap_or_default()), number("chars"), number("tokens")]
    });
    Ok(Report::text(table(&["Part", "Characters", "Tokens"], &[1, 2], cells.collect())))
}

/// What would a model be told of skills?
pub(super) async fn skills_prompt(
    client: &Client,
    mode: Mode,
    agent: Option<&str>,
    json: bool,
) -> Result<Report, Failure> {
    let answer = preview(client, mode, agent).await?;
    if json {
        return Report::json(&answer["skills"]);
    }
    let parts = answer["parts"].as_array().map(Vec::as_slice).unwrap_or_default();
    let skills = parts.iter().find(|part| part["name"] == "skills").and_then(|part| part["text"].as_str());
    Ok(Report::text(format!("{}\n", cleaned(skills.unwrap_or_default()))))
}
