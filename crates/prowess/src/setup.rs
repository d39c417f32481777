//! `prowess setup`: a workspace, ready to be filled in.
//!
//! The folder and its starting files are made where they are missing; what is there is never changed. A `skills` folder
//! is not made: that is the user's, or an installer's.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;

use prowess_config::ConfigFile;

use prowess_host::{Context, Failure};

use crate::cli::Globals;
use crate::output::Report;

/// Files every workspace has, with what a new one says.
const FILES: [(&str, &str); 6] = [
    (
        "AGENTS.md",
        "# How to work here\n\nRules for the agent in this workspace: what to do, what to leave alone, when to ask.\n",
    ),
    ("SOUL.md", "# Character\n\nHow the agent sounds and what it cares about.\n"),
    ("TOOLS.md", "# Tools\n\nNotes on this machine: host names, devices, programs and how they are used here.\n"),
    ("IDENTITY.md", "# Identity\n\n- Name:\n- Emoji:\n"),
    ("USER.md", "# The user\n\n- Name:\n- Time zone:\n- Good to know:\n"),
    ("HEARTBEAT.md", "# Regular checks\n\nWhat to look at when nobody asked. Empty means nothing.\n"),
];

/// Only in a workspace that is brand new.
const FIRST_RUN: (&str, &str) = (
    "BOOTSTRAP.md",
    "# First conversation\n\nAsk the user who they are and what this agent is for, fill in IDENTITY.md and USER.md, then delete this file.\n",
);

pub(crate) fn run(globals: &Globals) -> Result<Report, Failure> {
    let locations = globals.ground_to_edit().and_then(|ground| ground.locations())?;
    let workspace = Context::load(&globals.ground_to_edit()?)?.workspace;
    let made = prepare(&workspace).map_err(|error| {
        Failure::input(format!("cannot create {}: {error}", workspace.display())).hint("check that you can write there")
    })?;
    let mut lines = Vec::new();
    if globals.workspace.is_some() {
        let file = ConfigFile::new(&locations.config_path);
        let path = workspace.display().to_string();
        let edited = file.set("agents.defaults.workspace", path.into()).map_err(Failure::input)?;
        if edited.changed {
            lines.push(format!("changed agents.defaults.workspace in {}", edited.file.display()));
        }
    }
    if globals.json {
        return Report::json(&serde_json::json!({"workspace": workspace.display().to_string(), "created": made}));
    }
    lines.extend(made.iter().map(|name| format!("created {name}")));
    lines.push(format!("The workspace is ready: {}", workspace.display()));
    lines.push(format!("Put your skills in {}", workspace.join("skills").display()));
    Ok(Report::text(format!("{}\n", lines.join("\n"))))
}

/// Makes what is missing and says what that was.
fn prepare(workspace: &Path) -> std::io::Result<Vec<String>> {
    std::fs::create_dir_all(workspace)?;
    let is_new = FILES.iter().all(|(name, _)| !workspace.join(name).exists());
    let first_run = is_new.then_some(FIRST_RUN);
    let mut made = Vec::new();
    for (name, content) in FILES.into_iter().chain(first_run) {
        // Opened so that a file made in between is left alone.
        match OpenOptions::new().write(true).create_new(true).open(workspace.join(name)) {
            Ok(mut file) => {
                file.write_all(content.as_bytes())?;
                made.push(name.to_owned());
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Ok(made)
}
