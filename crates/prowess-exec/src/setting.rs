//! Settings: for whom, where and with what is a call made?

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use prowess_policy::lease::Lease;
use prowess_policy::ownership::OwnCommands;
use prowess_policy::{ExecSettings, Grants, SkillBin};

use crate::exec_tool::ExecCall;
use crate::leases::Holder;
use crate::withheld::WithheldKey;

/// For whom, where, and with what a call is made.
#[derive(Clone)]
pub struct Setting {
    /// The agent.
    pub agent: String,
    /// Its conversation.
    pub session: String,
    /// The folder it may change; calls without a folder of their own run there.
    pub workspace: PathBuf,
    /// The operator's home.
    pub home: PathBuf,
    /// What the operator wrote under `tools.exec`.
    pub settings: ExecSettings,
    /// The environment of this process, taken once.
    pub host_env: Vec<(String, OsString)>,
    /// The skills whose commands these are.
    pub skills: Vec<SkillShare>,
    /// Folders that may be read besides: where skills are.
    pub readable: Vec<PathBuf>,
    /// What no command may see or change, whatever else it may.
    pub hidden: Vec<PathBuf>,
    /// Programs of skills that may run unasked. Only a node has any.
    pub skill_bins: Vec<SkillBin>,
}

impl std::fmt::Debug for Setting {
    /// Of the host's variables only the names: their values are nobody's business.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { agent, session, workspace, home, settings, host_env, skills, readable, hidden, skill_bins } = self;
        f.debug_struct("Setting")
            .field("agent", agent)
            .field("session", session)
            .field("workspace", workspace)
            .field("home", home)
            .field("settings", settings)
            .field("host_env", &host_env.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .field("skills", skills)
            .field("readable", readable)
            .field("hidden", hidden)
            .field("skill_bins", skill_bins)
            .finish()
    }
}

impl Setting {
    /// The same for one command: with what it gets of the skills in use. That is what the last of them brings whose own
    /// command it is; two skills never share what they were given.
    #[must_use]
    pub fn for_command(&self, call: &ExecCall) -> Self {
        let cwd = call.workdir.as_ref().map_or_else(|| self.workspace.clone(), |dir| self.workspace.join(dir));
        let is_own = |skill: &SkillShare| skill.own.as_ref().is_some_and(|own| own.include(&call.command, &cwd));
        let owner = self.skills.iter().rposition(is_own);
        let mut narrowed = self.clone();
        let mut position = 0;
        narrowed.skills.retain(|skill| {
            position += 1;
            skill.own.is_none() || owner == Some(position - 1)
        });
        narrowed
    }

    /// The skill whose own command this is, in a setting [for one command](Self::for_command).
    #[must_use]
    pub fn owner(&self) -> Option<&SkillShare> {
        self.skills.iter().rfind(|skill| !skill.name.is_empty())
    }

    /// The holder whose leases apply to this command.
    pub(crate) fn holder(&self) -> Holder {
        let skill = self.owner().map(|skill| (skill.name.clone(), skill.source.clone()));
        Holder { agent: self.agent.clone(), session: self.session.clone(), skill }
    }

    /// What the operator grants to this command, by itself and through its skill.
    pub(crate) fn grants(&self) -> Grants {
        let own = self.settings.grants.clone();
        self.skills.iter().map(|skill| skill.grants.clone()).fold(own, Grants::and)
    }

    /// Where commands can change files, and where skills bring theirs.
    pub(crate) fn changeable(&self) -> Vec<PathBuf> {
        let granted = self.skills.iter().map(|skill| &skill.grants).chain([&self.settings.grants]);
        let written = granted.flat_map(|grants| &grants.write).map(|path| expand(path, &self.home));
        let bins = self.skills.iter().filter_map(|skill| skill.bins.clone());
        let own = [self.workspace.clone()].into_iter().chain(self.readable.iter().cloned());
        own.chain(written).chain(bins).collect()
    }
}

/// What one skill brings to its runs.
#[derive(Clone, Default)]
pub struct SkillShare {
    /// Its variables.
    pub vars: Vec<(String, OsString)>,
    /// Its folder of programs, which goes first on `PATH` when it is there.
    pub bins: Option<PathBuf>,
    /// What its commands may reach beyond the workspace, as the operator set it.
    pub grants: Grants,
    /// Its name.
    pub name: String,
    /// The key of its settings.
    pub key: String,
    /// Where it comes from: what the operator allows it is bound to this.
    pub source: String,
    /// Which commands are its own. The others get nothing of what it brings. Without it, all commands are.
    pub own: Option<OwnCommands>,
    /// What it declares that its commands use.
    pub declared: Lease,
    /// What the operator pinned for it in the settings.
    pub pinned: Lease,
    /// Variables that its commands get only with a lease.
    pub withheld: Vec<WithheldKey>,
}

impl std::fmt::Debug for SkillShare {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.vars.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("SkillShare")
            .field("vars", &names)
            .field("bins", &self.bins)
            .field("grants", &self.grants)
            .field("name", &self.name)
            .field("source", &self.source)
            .field("withheld", &self.withheld)
            .finish_non_exhaustive()
    }
}

/// `path` with a leading `~` as the home it stands for.
pub(crate) fn expand(path: &Path, home: &Path) -> PathBuf {
    path.strip_prefix("~").map_or_else(|_| path.to_owned(), |rest| home.join(rest))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A setting in which nothing is said.
    pub(crate) fn setting() -> Setting {
        Setting {
            agent: "main".to_owned(),
            session: "test".to_owned(),
            workspace: "/ws".into(),
            home: "/home/me".into(),
            settings: ExecSettings::default(),
            host_env: Vec::new(),
            skills: Vec::new(),
            readable: Vec::new(),
            hidden: Vec::new(),
            skill_bins: Vec::new(),
        }
    }
}
