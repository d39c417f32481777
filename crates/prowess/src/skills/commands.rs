//! `skills commands`: what can a person type after a slash?

use prowess_host::{Failure, View};
use prowess_skills::{Command, RESERVED, commands, resolve};
use serde::Serialize;

use crate::output::{Report, safe, table};

#[derive(Serialize)]
struct CommandsShape {
    commands: Vec<CommandShape>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CommandShape {
    name: String,
    skill_name: String,
    description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    dispatch: Option<DispatchShape>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DispatchShape {
    kind: &'static str,
    tool_name: String,
    arg_mode: &'static str,
}

impl From<&Command> for CommandShape {
    fn from(command: &Command) -> Self {
        let dispatch = command.dispatch.as_ref().map(|dispatch| DispatchShape {
            kind: "tool",
            tool_name: dispatch.tool.clone(),
            arg_mode: "raw",
        });
        Self {
            name: command.name.clone(),
            skill_name: command.skill.to_string(),
            description: command.description.clone(),
            dispatch,
        }
    }
}

/// The commands of the skills that passed the gate.
pub(super) fn of(view: &View) -> Vec<Command> {
    let snapshot = view.snapshot(&view.budget());
    commands(snapshot.skills().iter().map(AsRef::as_ref), RESERVED)
}

pub(super) fn run(view: &View, message: Option<&str>, json: bool) -> Result<Report, Failure> {
    let commands = of(view);
    if let Some(message) = message {
        return call(&commands, message, json);
    }
    if json {
        return Report::json(&CommandsShape { commands: commands.iter().map(CommandShape::from).collect() });
    }
    if commands.is_empty() {
        return Ok(Report::text("No slash commands: no ready skill offers one.\n"));
    }
    let rows = commands.iter().map(|command| {
        let goes_to =
            command.dispatch.as_ref().map_or_else(|| "model".to_owned(), |dispatch| format!("tool {}", dispatch.tool));
        vec![format!("/{}", command.name), safe(command.skill.as_str()), safe(&command.description), safe(&goes_to)]
    });
    Ok(Report::text(table(&["Command", "Skill", "Description", "Goes to"], &[0, 3], rows.collect())))
}

fn call(commands: &[Command], message: &str, json: bool) -> Result<Report, Failure> {
    let found = resolve(message, commands);
    if json {
        let shape =
            found.map(|call| serde_json::json!({"command": CommandShape::from(call.command), "args": call.args}));
        return Report::json(&shape);
    }
    Ok(Report::text(match found {
        None => "A plain message: it calls no skill.\n".to_owned(),
        Some(call) => {
            let args = call.args.map_or_else(|| "without arguments".to_owned(), |args| format!("with: {}", safe(args)));
            format!("Calls /{} (skill {}) {args}\n", call.command.name, safe(call.command.skill.as_str()))
        }
    }))
}
