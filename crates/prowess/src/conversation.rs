//! A conversation's ground: its skills, its folder, and who is asked.
//!
//! Everything here comes from the configuration and the command line; what is made of it is up to `prowess_agent`.

use std::path::PathBuf;
use std::sync::Arc;

use prowess_agent::skills::SkillSet;
use prowess_exec::Setting;
use prowess_skills::{RESERVED, commands};

use crate::context::{Context, View};
use crate::exec;
use crate::failure::Failure;
use crate::share::Shares;

/// The skills as they are here and now, with their commands and a way to what they bring.
pub(crate) fn skills(view: &View) -> SkillSet {
    let snapshot = view.snapshot(&view.budget());
    let commands = commands(snapshot.skills().iter().map(AsRef::as_ref), RESERVED);
    let shares = Shares::of(view);
    SkillSet::new(snapshot, commands, Arc::new(move |skill| shares.share(skill).map_err(|failure| told(&failure))))
}

/// The setting of a conversation's commands: they run in the agent's workspace, wherever the person is.
pub(crate) fn setting(view: &View, session: &str) -> Result<Setting, Failure> {
    Ok(exec::base(&view.context, workspace(&view.context)?, session))
}

/// The agent's workspace, made if it is not there yet.
pub(crate) fn workspace(context: &Context) -> Result<PathBuf, Failure> {
    let made = std::fs::create_dir_all(&context.workspace).and_then(|()| context.workspace.canonicalize());
    made.map_err(|error| {
        Failure::input(format!("cannot use the workspace {}: {error}", context.workspace.display()))
            .hint("make it writable, or name another with --workspace")
    })
}

/// A failure as one text, for a model.
fn told(failure: &Failure) -> String {
    let hints = failure.hints.iter().map(|hint| format!("; {hint}"));
    hints.fold(failure.message.clone(), |text, hint| text + &hint)
}
