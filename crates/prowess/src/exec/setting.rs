//! Where, for whom and with what is a command judged and run?

use std::path::{Path, PathBuf};

use prowess_exec::Setting;
use prowess_policy::ExecSettings;

use crate::cli::{CommandArgs, Globals};
use crate::context::{Context, View};
use crate::failure::Failure;
use crate::share::Shares;

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

/// The setting of commands in `folder` that belong to no skill.
pub(crate) fn base(context: &Context, folder: PathBuf, session: &str) -> Setting {
    let common = &context.config.tree()["tools"]["exec"];
    Setting {
        agent: context.agent.id.to_string(),
        session: session.to_owned(),
        workspace: folder,
        home: context.user_home().to_owned(),
        settings: ExecSettings::read(common, &context.agent.exec),
        host_env: host_env(),
        skills: Vec::new(),
        readable: readable(context),
        hidden: hidden(context),
        skill_bins: Vec::new(),
    }
}

/// Settings of programs in the home without which they fail, and that hold no keys.
fn readable(context: &Context) -> Vec<PathBuf> {
    let names = [".gitconfig", ".config/git/config", ".config/git/ignore", ".config/git/attributes"];
    names.iter().map(|name| context.user_home().join(name)).filter(|path| path.exists()).collect()
}

/// Folders of a home that hold keys, and the configuration itself.
fn hidden(context: &Context) -> Vec<PathBuf> {
    let keys = [".ssh", ".gnupg", ".aws", ".netrc", ".config/gh", ".kube", ".docker"];
    let keys = keys.iter().map(|name| context.user_home().join(name));
    let state = ["credentials", "identity", "devices"].map(|name| context.locations.state_dir.join(name));
    keys.chain(state).chain([context.locations.config_path.clone()]).collect()
}

/// The environment of this process, as far as it is text.
fn host_env() -> Vec<(String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}
