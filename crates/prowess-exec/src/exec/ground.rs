//! The ground: where can a command go without asking?

use std::ffi::OsString;
use std::path::Path;

use prowess_policy::env::RunEnv;
use prowess_policy::protected::Protection;
use prowess_policy::wants::Ground;

use super::Exec;
use crate::sandbox::{Confinement, TMP};
use crate::setting::Setting;

/// The most names of a directory that a forecast looks at.
const MAX_NAMES: usize = 10_000;

impl Exec {
    /// Where a command can go without asking.
    pub(super) fn ground(&self, setting: &Setting, env: &RunEnv, cwd: &Path) -> Result<Ground, String> {
        let Confinement { read, write, hidden, .. } = self.confinement(setting, env, &[]);
        let has_own_tmp = self.kind(setting).is_ok_and(|kind| self.has_own_tmp(&kind));
        let owner = setting.owner();
        let held = self.leases.held(&setting.holder()).map_err(|error| error.to_string())?;
        Ok(Ground {
            home: setting.home.clone(),
            readable: read.into_iter().chain(write.iter().cloned()).collect(),
            writable: write,
            hidden,
            foreign_tmp: has_own_tmp.then(|| names_in(Path::new(TMP))),
            root_names: names_in(Path::new("/")),
            installed: names_in(&cwd.join("node_modules/.bin"))
                .into_iter()
                .filter_map(|it| it.into_string().ok())
                .collect(),
            protection: Protection::new(&setting.settings.protected),
            skill: owner.map(|skill| skill.name.clone()),
            declared: owner.map(|skill| skill.declared.clone().seen_from(&setting.workspace)).unwrap_or_default(),
            served: self.network_of(&setting.session).ports(),
            open_network: setting.grants().network,
            held: owner.iter().fold(held, |held, skill| held.and(&skill.pinned.clone().seen_from(&setting.workspace))),
        })
    }
}

/// The names in `dir`, as far as there are not too many of them.
fn names_in(dir: &Path) -> Vec<OsString> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().take(MAX_NAMES);
    entries.filter_map(|entry| Some(entry.ok()?.file_name())).collect()
}
