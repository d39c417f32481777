//! Which settings of git apply where a command runs, and which of them must not start a program?

use std::io::Read;
use std::path::{Path, PathBuf};

use prowess_policy::env::{git_config_env, git_overrides, quiet_variables};
use prowess_policy::git_config::{GitSetting, parse_git_config};
use prowess_policy::protected::{GIT, gitdir_of};

/// The most of a settings file that is read.
const MAX_BYTES: u64 = 256 * 1024;

/// The variables under which tools in `cwd` start no editor, pager, hook or filter that a file names.
pub(crate) fn variables(cwd: &Path, home: &Path) -> Vec<(String, String)> {
    let repository = repository(cwd).map(|dir| settings(&dir)).unwrap_or_default();
    let user: Vec<GitSetting> = [home.join(".config/git/config"), home.join(".gitconfig")]
        .iter()
        .flat_map(|path| read_settings(path))
        .collect();
    quiet_variables().chain(git_config_env(&git_overrides(&repository, &user))).collect()
}

/// The Git directory of the working tree around `cwd`.
fn repository(cwd: &Path) -> Option<PathBuf> {
    cwd.ancestors().find_map(|folder| {
        let git = folder.join(GIT);
        if git.is_dir() {
            return Some(git);
        }
        let text = read(&git)?;
        gitdir_of(&String::from_utf8_lossy(&text)).map(|named| folder.join(named))
    })
}

/// What the files of a Git directory set. A linked working tree shares those of its repository.
fn settings(dir: &Path) -> Vec<GitSetting> {
    let shared = read(&dir.join("commondir")).map(|text| dir.join(String::from_utf8_lossy(&text).trim()));
    let shared = shared.as_deref().unwrap_or(dir);
    [shared.join("config"), dir.join("config.worktree")].iter().flat_map(|path| read_settings(path)).collect()
}

/// What git cannot read, it does not use.
fn read_settings(path: &Path) -> Vec<GitSetting> {
    read(path).and_then(|text| parse_git_config(&text).ok()).unwrap_or_default()
}

fn read(path: &Path) -> Option<Vec<u8>> {
    // Asked before it is opened: opening a pipe would wait for somebody to write to it.
    std::fs::metadata(path).ok().filter(|meta| meta.is_file() && meta.len() <= MAX_BYTES)?;
    let mut text = Vec::new();
    std::fs::File::open(path).ok()?.take(MAX_BYTES).read_to_end(&mut text).ok()?;
    Some(text)
}
