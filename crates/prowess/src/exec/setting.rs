//! Where, for whom and with what is a command judged and run?

use std::path::Path;

use prowess_exec::{Setting, SkillShare};
use prowess_host::{Context, Failure, Shares, View, base};

use crate::cli::{CommandArgs, Globals};
use crate::output::safe;
use crate::suggest::did_you_mean;

/// What the command line says about a command's surroundings.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    workdir: Option<&'a Path>,
    workspace: Option<&'a Path>,
    skills: &'a [String],
    session: &'a str,
}

impl<'a> Scope<'a> {
    pub(crate) fn of(command: &'a CommandArgs, globals: &'a Globals) -> Self {
        Self {
            workdir: command.workdir.as_deref(),
            workspace: globals.workspace.as_deref(),
            skills: &command.skill,
            session: &command.session,
        }
    }
}

/// The setting of a command that an operator gives: it runs where they are, unless they say otherwise.
pub(crate) fn setting(context: Context, scope: &Scope<'_>) -> Result<Setting, Failure> {
    let here = std::env::current_dir().map_err(|error| Failure::ours(format!("no current directory: {error}")))?;
    let folder = match (scope.workdir, scope.workspace) {
        (Some(dir), _) => here.join(dir),
        (None, Some(_)) => context.workspace.clone(),
        (None, None) => here,
    };
    let folder = folder.canonicalize().map_err(|error| {
        Failure::input(format!("{}: {error}", folder.display())).hint("name a directory that exists")
    })?;
    let setting = base(&context, folder, scope.session);
    if scope.skills.is_empty() {
        return Ok(setting);
    }
    let view = View::load(context, None)?;
    let shares = Shares::of(&view);
    let Setting { mut skills, mut readable, .. } = setting;
    for name in scope.skills {
        let skill = view.catalog.find(name).ok_or_else(|| {
            let names = view.catalog.skills().iter().map(|skill| skill.name.as_str());
            let failure = Failure::input(format!("there is no skill `{}`", safe(name)));
            did_you_mean(name, names)
                .into_iter()
                .fold(failure, Failure::hint)
                .hint("prowess skills list shows all skills")
        })?;
        // Who names the skill says that the command is one of its own.
        skills.push(SkillShare { own: None, ..shares.share(skill)? });
        readable.push(skill.dir().to_owned());
    }
    Ok(Setting { skills, readable, ..setting })
}
