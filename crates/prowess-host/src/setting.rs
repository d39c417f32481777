//! Settings: with what are the commands of an agent judged and run?

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use prowess_exec::approver::Approver;
use prowess_exec::job::{Limits, Runner};
use prowess_exec::{Exec, Setting, confine};
use prowess_policy::ExecSettings;

use crate::bindings;
use crate::context::Context;
use crate::failure::Failure;

/// The means to run commands, with what is in the state directory.
pub fn exec(context: &Context, approver: Arc<dyn Approver>) -> Result<Exec, Failure> {
    let helper =
        confine::helper().map_err(|error| Failure::ours(format!("cannot find this program itself: {error}")))?;
    Ok(Exec::new(&context.locations.state_dir, approver, Runner::new(Limits::default()), helper))
}

/// The setting of commands in `folder` that belong to no skill.
#[must_use]
pub fn base(context: &Context, folder: PathBuf, session: &str) -> Setting {
    let common = &context.config.tree()["tools"]["exec"];
    Setting {
        agent: context.agent.id.to_string(),
        session: session.to_owned(),
        workspace: folder,
        home: context.user_home().to_owned(),
        settings: ExecSettings::read(common, &context.agent.exec),
        host_env: host_env(context),
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
    let state = ["credentials", "identity", "devices", "gateway"].map(|name| context.locations.state_dir.join(name));
    // What agents log in with.
    let logins = ["main", context.agent.id.as_str()];
    let logins = logins.map(|agent| context.locations.state_dir.join("agents").join(agent).join("agent"));
    let bindings = bindings::files(&context.locations.state_dir);
    keys.chain(state).chain(logins).chain([context.locations.config_path.clone()]).chain(bindings).collect()
}

/// The environment of the process, exactly as it is.
fn host_env(context: &Context) -> Vec<(String, OsString)> {
    let env = &context.env;
    env.iter().filter_map(|(name, _)| Some((name.to_owned(), env.exact(name)?.to_owned()))).collect()
}
