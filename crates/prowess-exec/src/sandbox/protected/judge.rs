//! May a protected file that has appeared stay as it is?
//!
//! Making a repository is ordinary use. Its settings may be what git writes by itself, its hooks git's own samples, and
//! it may refer to other Git directories that are looked at too.

use std::fs;
use std::path::{Component, Path, PathBuf};

use prowess_policy::git_config::parse_git_config;
use prowess_policy::protected::gitdir_of;

use super::ASIDE;
use super::scan::{Found, Role, read};

/// The most settings that are named in a reason.
const MAX_NAMED: usize = 5;

/// What has to go, and what it is: nothing, the file itself, or files in it.
pub(super) fn objections(found: &Found, roots: &[PathBuf]) -> Vec<(PathBuf, String)> {
    let whole = |what: String| vec![(found.path.clone(), what)];
    let as_found = || whole(found.what.to_owned());
    let is_link = fs::symlink_metadata(&found.path).is_ok_and(|meta| meta.is_symlink());
    let leads_inside = |path: &Path| fs::canonicalize(path).is_ok_and(|path| is_inside(&path, roots));
    let folder = found.path.parent().unwrap_or(&found.path);
    match found.role {
        Role::GitFile => {
            let named = read(&found.path).filter(|_| !is_link);
            let named = named.and_then(|text| Some(folder.join(gitdir_of(&String::from_utf8_lossy(&text))?)));
            if leads_inside(named.as_deref().unwrap_or(&found.path)) { Vec::new() } else { as_found() }
        }
        Role::InGitDir("config" | "config.worktree") if !is_link => {
            settings(&found.path, folder, roots).map_or_else(Vec::new, |why| whole(format!("{} ({why})", found.what)))
        }
        Role::InGitDir("hooks") if !is_link => hooks(&found.path, found.what),
        Role::InGitDir("commondir") if !is_link => {
            let named = read(&found.path).map(|text| normal(&folder.join(String::from_utf8_lossy(&text).trim())));
            // Git makes `REPOSITORY/worktrees/NAME` with a `commondir` that leads back to the repository.
            let list = folder.parent().filter(|list| list.file_name().is_some_and(|name| name == "worktrees"));
            if named.is_some() && named.as_deref() == list.and_then(Path::parent) { Vec::new() } else { as_found() }
        }
        // Where the working tree is, for git's own housekeeping.
        Role::InGitDir("gitdir") if !is_link => Vec::new(),
        // A link in a Git directory leads to what its target's owner may change.
        Role::Listed | Role::InGitDir(_) => as_found(),
    }
}

/// Why the settings may not stay.
fn settings(path: &Path, folder: &Path, roots: &[PathBuf]) -> Option<String> {
    let Some(text) = read(path) else { return Some("it is not a plain file of ordinary size".to_owned()) };
    let settings = match parse_git_config(&text) {
        Ok(settings) => settings,
        Err(error) => return Some(error.to_string()),
    };
    let strange = settings.iter().filter(|setting| {
        let tree = (setting.name() == "core.worktree").then_some(setting.value.as_deref()).flatten();
        !setting.is_harmless() && !tree.is_some_and(|tree| is_inside(&normal(&folder.join(tree)), roots))
    });
    let mut names: Vec<String> = strange.map(|setting| setting.name().escape_debug().to_string()).collect();
    names.truncate(MAX_NAMED);
    (!names.is_empty()).then(|| format!("it sets {}", names.join(", ")))
}

/// Every hook but git's own samples, which have no effect.
fn hooks(path: &Path, what: &str) -> Vec<(PathBuf, String)> {
    let Ok(entries) = fs::read_dir(path) else { return vec![(path.to_owned(), what.to_owned())] };
    let hooks = entries.flatten().map(|entry| entry.path());
    let is_inert = |name: &str| name.ends_with(".sample") || name.contains(ASIDE);
    let active = hooks.filter(|hook| !hook.file_name().and_then(|name| name.to_str()).is_some_and(is_inert));
    active.map(|hook| (hook, "a Git hook".to_owned())).collect()
}

fn is_inside(path: &Path, roots: &[PathBuf]) -> bool {
    roots.iter().any(|root| path.starts_with(root))
}

/// The path without `.` and `..`, whether or not it is there.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                normal.pop();
            }
            Component::CurDir => {}
            other => normal.push(other),
        }
    }
    normal
}
