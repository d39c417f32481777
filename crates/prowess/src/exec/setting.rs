//! Where, for whom and with what is a command judged and run?

use std::path::{Path, PathBuf};

use prowess_config::Env;
use prowess_exec::{Setting, SkillShare};
use prowess_policy::{ExecSettings, Grants};
use prowess_skills::Secret;
use prowess_skills::env::{EnvInputs, EnvValue, plan};

use crate::cli::{CommandArgs, Globals};
use crate::context::{Context, View};
use crate::failure::Failure;

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
    let common = &context.config.tree()["tools"]["exec"];
    let settings = ExecSettings::read(common, &context.agent.exec);
    let setting = Setting {
        agent: context.agent.id.to_string(),
        session: scope.session.to_owned(),
        workspace: folder,
        home: context.user_home().to_owned(),
        settings,
        host_env: host_env(),
        skills: Vec::new(),
        readable: readable(&context),
        hidden: hidden(&context),
        skill_bins: Vec::new(),
    };
    if scope.skills.is_empty() {
        return Ok(setting);
    }
    let view = View::load(context, None)?;
    let mut shares = Vec::new();
    for name in scope.skills {
        shares.push(share(&view, name)?);
    }
    let readable = setting.readable.iter().cloned().chain(shares.iter().map(|(dir, _)| dir.clone())).collect();
    Ok(Setting { skills: shares.into_iter().map(|(_, share)| share).collect(), readable, ..setting })
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

/// The folder of a skill, and what it brings to its runs.
fn share(view: &View, name: &str) -> Result<(PathBuf, SkillShare), Failure> {
    let skill = view.catalog.find(name).ok_or_else(|| {
        Failure::input(format!("there is no skill `{name}`")).hint("prowess skills list shows what there is")
    })?;
    let env = Env::from_process();
    let host = env.iter().filter(|(_, value)| !value.is_empty()).map(|(name, _)| name.to_owned()).collect();
    let config_env = view.config_env();
    let planned = plan(skill, EnvInputs { config: &view.settings, config_env: &config_env, host: &host });
    let mut vars = Vec::new();
    for (variable, planned) in planned.vars {
        let value = match planned.value {
            EnvValue::Set(secret) => secret,
            EnvValue::Inherit => Secret::new(env.get(&variable).unwrap_or_default()),
            EnvValue::Fetch(place) => fetch(&place, &env, &variable, name)?,
        };
        vars.push((variable, value.expose().to_owned()));
    }
    let entry = &view.context.config.tree()["skills"]["entries"][skill.key()];
    let grants = Grants::read(&entry["sandbox"]);
    Ok((skill.dir().to_owned(), SkillShare { vars, bins: planned.bins, grants }))
}

/// The secret that a reference leads to. Only variables can be read here.
fn fetch(place: &str, env: &Env, variable: &str, skill: &str) -> Result<Secret, Failure> {
    let found = place.strip_prefix("env:").and_then(|rest| rest.rsplit(':').next()).and_then(|name| env.get(name));
    found.map(Secret::new).ok_or_else(|| {
        Failure::input(format!("the key of skill `{skill}` is kept in {place}, which cannot be read here"))
            .hint(format!("set {variable} in the environment, or a reference of source `env`"))
    })
}

/// The environment of this process, as far as it is text.
fn host_env() -> Vec<(String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}
