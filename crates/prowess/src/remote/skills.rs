//! The skills of a gateway's agents, from `skills.status`.

use std::fmt::Write as _;

use prowess_gateway::client::Client;
use prowess_host::Failure;
use prowess_skills::text::shorten;
use serde_json::{Value, json};

use super::call;
use crate::output::{BAD, BOLD, DIM, GOOD, Report, WARN, paint, safe, table};
use crate::skills::fits;
use crate::suggest::did_you_mean;

/// How much of a description a row shows.
const SHORT_DESCRIPTION: usize = 120;

/// What is left out and what is added.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Options<'a> {
    /// What to look for; empty means everything.
    pub(super) words: &'a [String],
    pub(super) eligible: bool,
    pub(super) verbose: bool,
}

async fn status(client: &Client, agent: Option<&str>) -> Result<Value, Failure> {
    let params = agent.map_or_else(|| json!({}), |agent| json!({"agentId": agent}));
    call(client, "skills.status", params).await
}

fn rows(status: &Value) -> &[Value] {
    status["skills"].as_array().map(Vec::as_slice).unwrap_or_default()
}

pub(super) async fn list(
    client: &Client,
    options: Options<'_>,
    agent: Option<&str>,
    json: bool,
) -> Result<Report, Failure> {
    let mut status = status(client, agent).await?;
    if let Some(skills) = status["skills"].as_array_mut() {
        let text = |skill: &Value, name: &str| skill[name].as_str().unwrap_or_default().to_owned();
        let texts = |skill: &Value| ["name", "skillKey", "description", "source"].map(|name| text(skill, name));
        skills.retain(|skill| fits(options.words, &texts(skill).each_ref().map(String::as_str)));
        skills.retain(|skill| !options.eligible || skill["eligible"] == true);
    }
    if json {
        return Report::json(&status);
    }
    let skills = rows(&status);
    if skills.is_empty() {
        return Ok(Report::text("The gateway has no such skills.\n"));
    }
    let ready = skills.iter().filter(|skill| skill["eligible"] == true).count();
    let heading = paint(BOLD, &format!("Skills ({ready}/{} ready)", skills.len()));
    let mut header = vec!["Status", "Skill", "Description", "Source"];
    if options.verbose {
        header.push("Missing");
    }
    let cells = skills.iter().map(|skill| {
        let text = |name: &str| skill[name].as_str().unwrap_or_default();
        let description =
            if options.verbose { safe(text("description")) } else { shorten(text("description"), SHORT_DESCRIPTION) };
        let mut row = vec![standing(skill), safe(text("name")), description, safe(text("source"))];
        if options.verbose {
            row.push(missing(skill));
        }
        row
    });
    Ok(Report::text(format!("{heading}\n{}", table(&header, &[0, 3], cells.collect()))))
}

/// How a skill stands, in a word.
fn standing(skill: &Value) -> String {
    let is = |name: &str| skill[name] == true;
    if is("eligible") {
        paint(GOOD, "✓ ready")
    } else if is("disabled") {
        paint(DIM, "⏸ disabled")
    } else if is("blockedByAllowlist") {
        paint(WARN, "⊘ blocked")
    } else if is("blockedByAgentFilter") {
        paint(DIM, "⊘ excluded")
    } else {
        paint(BAD, "✗ missing")
    }
}

/// What it lacks, in a line.
fn missing(skill: &Value) -> String {
    let groups = ["bins", "anyBins", "env", "config", "os"].into_iter().filter_map(|name| {
        let items = skill["missing"][name].as_array()?.iter().filter_map(Value::as_str).map(safe).collect::<Vec<_>>();
        if items.is_empty() { None } else { Some(format!("{name}: {}", items.join(", "))) }
    });
    groups.collect::<Vec<_>>().join("; ")
}

pub(super) async fn info(client: &Client, name: &str, agent: Option<&str>, json: bool) -> Result<Report, Failure> {
    let status = status(client, agent).await?;
    let found = rows(&status).iter().find(|skill| skill["name"] == name || skill["skillKey"] == name);
    let Some(skill) = found else {
        let failure = Failure::input(format!("the gateway has no skill `{}`", safe(name)));
        let near = did_you_mean(name, rows(&status).iter().filter_map(|skill| skill["name"].as_str()));
        let failure = near.into_iter().fold(failure, Failure::hint);
        return Err(failure.hint("prowess skills list --gateway URL lists its skills"));
    };
    if json {
        return Report::json(skill);
    }
    let text = |name: &str| safe(skill[name].as_str().unwrap_or_default());
    let mut out = format!("{} {}\n\n{}\n\n", paint(BOLD, &text("name")), standing(skill), text("description"));
    for (label, name) in
        [("Source", "source"), ("Path", "filePath"), ("Homepage", "homepage"), ("Main variable", "primaryEnv")]
    {
        if skill[name].is_string() {
            let _ = writeln!(out, "  {label}: {}", text(name));
        }
    }
    let lacks = missing(skill);
    if !lacks.is_empty() {
        let _ = writeln!(out, "  Missing: {lacks}");
    }
    for objection in skill["objections"].as_array().into_iter().flatten() {
        let _ = writeln!(out, "  {}", safe(objection["message"].as_str().unwrap_or_default()));
    }
    Ok(Report::text(out))
}

pub(super) async fn check(client: &Client, agent: Option<&str>, json: bool) -> Result<Report, Failure> {
    let status = status(client, agent).await?;
    let skills = rows(&status);
    let names = |is: fn(&Value) -> bool| -> Vec<&str> {
        skills.iter().filter(|skill| is(skill)).filter_map(|skill| skill["name"].as_str()).collect()
    };
    let ready = names(|skill| skill["eligible"] == true);
    let disabled = names(|skill| skill["disabled"] == true);
    let blocked = names(|skill| skill["blockedByAllowlist"] == true && skill["disabled"] != true);
    let lacking: Vec<&Value> = skills
        .iter()
        .filter(|skill| ["eligible", "disabled", "blockedByAllowlist"].iter().all(|name| skill[*name] != true))
        .collect();
    if json {
        let lacks =
            |skill: &&Value| json!({"name": skill["name"], "missing": skill["missing"], "install": skill["install"]});
        return Report::json(&json!({
            "summary": {
                "total": skills.len(), "eligible": ready.len(), "disabled": disabled.len(), "blocked": blocked.len(),
                "missingRequirements": lacking.len(),
            },
            "eligible": ready, "disabled": disabled, "blocked": blocked,
            "missingRequirements": lacking.iter().map(lacks).collect::<Vec<_>>(),
            "problems": status["problems"],
        }));
    }
    let mut out = format!(
        "{} skills: {} ready, {} disabled, {} blocked, {} missing something\n",
        skills.len(),
        ready.len(),
        disabled.len(),
        blocked.len(),
        lacking.len()
    );
    for skill in lacking {
        let _ = writeln!(out, "  {} ({})", safe(skill["name"].as_str().unwrap_or_default()), missing(skill));
    }
    for problem in status["problems"].as_array().into_iter().flatten() {
        let text = |name: &str| safe(problem[name].as_str().unwrap_or_default());
        let _ = writeln!(out, "  {} {}: {}", text("severity"), text("path"), text("reason"));
    }
    Ok(Report::text(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skill_lacks_what_the_gateway_says() {
        let skill = json!({"missing": {"bins": ["jq", "a\u{1b}[2Jb"], "env": [], "os": ["macos"]}});
        assert_eq!(missing(&skill), "bins: jq, a[2Jb; os: macos");
        assert!(standing(&skill).contains("missing"));
        assert!(standing(&json!({"eligible": true})).contains("ready"));
    }
}
