//! A conversation's ground: its skills and its folder.

use std::path::PathBuf;
use std::sync::Arc;

use prowess_agent::skills::{ShareOf, SkillSet};
use prowess_skills::{RESERVED, commands};

use crate::context::{Context, View};
use crate::failure::Failure;
use crate::share::Shares;

/// The skills as they are here and now, with their commands and a way to what they bring.
#[must_use]
pub fn skills(view: &View) -> SkillSet {
    let shares = Shares::of(view);
    skills_sharing(view, Arc::new(move |skill| shares.share(skill).map_err(|failure| failure.sentence())))
}

/// The same with another way to what they bring.
pub(crate) fn skills_sharing(view: &View, share: ShareOf) -> SkillSet {
    let snapshot = view.snapshot(&view.budget());
    let commands = commands(snapshot.skills().iter().map(AsRef::as_ref), RESERVED);
    SkillSet::new(snapshot, commands, share)
}

/// The agent's workspace, made if it is not there yet.
pub fn workspace(context: &Context) -> Result<PathBuf, Failure> {
    let made = std::fs::create_dir_all(&context.workspace).and_then(|()| context.workspace.canonicalize());
    made.map_err(|error| {
        Failure::input(format!("cannot use the workspace {}: {error}", context.workspace.display()))
            .hint("make it writable, or name another with --workspace")
    })
}
