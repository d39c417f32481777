//! Where, for whom and with what is a command judged and run?

use std::path::Path;

use prowess_exec::Setting;
use prowess_host::{Context, Failure, Shares, View, base};

use crate::cli::{CommandArgs, Globals};

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
            Failure::input(format!("there is no skill `{name}`")).hint("prowess skills list shows what there is")
        })?;
        skills.push(shares.share(skill)?);
        readable.push(skill.dir().to_owned());
    }
    Ok(Setting { skills, readable, ..setting })
}
