//! Which settings of git apply where a command runs, and which of them must not start a program?

use std::path::Path;

use prowess_policy::env::{git_config_env, git_overrides, quiet_variables};
use prowess_policy::git_config::GitSetting;

use crate::repository::{git_dir, read_settings, settings};

/// The variables under which tools in `cwd` start no editor, pager, hook or filter that a file names.
pub(crate) fn variables(cwd: &Path, home: &Path) -> Vec<(String, String)> {
    let repository = git_dir(cwd).map(|dir| settings(&dir)).unwrap_or_default();
    let user: Vec<GitSetting> = [home.join(".config/git/config"), home.join(".gitconfig")]
        .iter()
        .flat_map(|path| read_settings(path))
        .collect();
    quiet_variables().chain(git_config_env(&git_overrides(&repository, &user))).collect()
}
