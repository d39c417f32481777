//! Git repositories: which one is a directory in, and what does its configuration name?
//!
//! Only a forecast and the choice of harmless settings are made from it, so what cannot be read is no error.

use std::io::Read;
use std::path::{Path, PathBuf};

use prowess_policy::git_config::{GitSetting, parse_git_config};
use prowess_policy::lookup::Repository;
use prowess_policy::protected::{GIT, gitdir_of, is_git_dir};

/// The most of a settings file that is read, in bytes.
const MAX_BYTES: u64 = 256 * 1024;

/// The repository whose working tree `dir` is in.
pub(crate) fn repository(dir: &Path) -> Option<Repository> {
    let git_dir = git_dir(dir)?;
    let common_dir = common_dir(&git_dir);
    let settings = read_settings(&common_dir.join("config"));
    let of = |section: &'static str| settings.iter().filter(move |setting| setting.section == section);
    let is_address = |setting: &&GitSetting| matches!(setting.key.as_str(), "url" | "pushurl");
    let remotes = of("remote").filter(is_address);
    let mut branches: Vec<String> = of("branch").filter_map(|setting| setting.subsection.clone()).collect();
    branches.dedup();
    let submodules = read_settings(&tree(dir).join(".gitmodules")).into_iter().filter(|one| one.key == "url");
    Some(Repository {
        remotes: remotes.filter_map(|one| Some((one.subsection.clone()?, one.value.clone()?))).collect(),
        submodules: submodules.filter_map(|one| one.value).collect(),
        branches,
        git_dir,
        common_dir,
    })
}

/// The Git directory of the working tree around `dir`.
pub(crate) fn git_dir(dir: &Path) -> Option<PathBuf> {
    dir.ancestors().find_map(|folder| {
        let git = folder.join(GIT);
        if git.is_dir() {
            return Some(git);
        }
        let text = read(&git)?;
        gitdir_of(&String::from_utf8_lossy(&text)).map(|named| plain(folder.join(named)))
    })
}

/// The top of the working tree around `dir`.
fn tree(dir: &Path) -> &Path {
    dir.ancestors().find(|folder| folder.join(GIT).symlink_metadata().is_ok()).unwrap_or(dir)
}

/// The Git directory that `path` is, or lies in.
pub(crate) fn git_dir_around(path: &Path) -> Option<PathBuf> {
    let is_one = |dir: &&Path| is_git_dir(|name| dir.join(name).symlink_metadata().is_ok());
    path.ancestors().find(is_one).map(Path::to_owned)
}

/// The Git directory that it shares with other working trees: itself, unless it is that of a linked one.
fn common_dir(git_dir: &Path) -> PathBuf {
    let named = read(&git_dir.join("commondir"));
    let named = named.map(|text| plain(git_dir.join(String::from_utf8_lossy(&text).trim())));
    named.unwrap_or_else(|| git_dir.to_owned())
}

/// What the files of a Git directory set. A linked working tree shares those of its repository.
pub(crate) fn settings(git_dir: &Path) -> Vec<GitSetting> {
    let files = [common_dir(git_dir).join("config"), git_dir.join("config.worktree")];
    files.iter().flat_map(|path| read_settings(path)).collect()
}

/// What git cannot read, it does not use.
pub(crate) fn read_settings(path: &Path) -> Vec<GitSetting> {
    read(path).and_then(|text| parse_git_config(&text).ok()).unwrap_or_default()
}

/// The content of a small file.
pub(crate) fn read(path: &Path) -> Option<Vec<u8>> {
    // Asked before it is opened: opening a pipe would wait for somebody to write to it.
    std::fs::metadata(path).ok().filter(|meta| meta.is_file() && meta.len() <= MAX_BYTES)?;
    let mut text = Vec::new();
    std::fs::File::open(path).ok()?.take(MAX_BYTES).read_to_end(&mut text).ok()?;
    Some(text)
}

/// The path without `..`, where it is there.
fn plain(path: PathBuf) -> PathBuf {
    path.canonicalize().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn a_repository_is_found_from_below_and_through_files() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        let config = "[core]\n\turl = no\n[remote \"origin\"]\n\turl = git@github.com:me/it\n\tfetch = x\n\
            [branch \"main\"]\n\tremote = origin\n\tmerge = x\n";
        write(&root.join("app/.git/config"), config);
        write(&root.join("app/.git/worktrees/w/commondir"), "../..\n");
        write(&root.join("w/.git"), "gitdir: ../app/.git/worktrees/w\n");
        write(&root.join("app/src/main.rs"), "");
        write(&root.join("app/.gitmodules"), "[submodule \"lib\"]\n\tpath = lib\n\turl = https://example.com/lib\n");
        let found = repository(&root.join("app/src")).unwrap();
        assert_eq!((&found.git_dir, &found.common_dir), (&root.join("app/.git"), &root.join("app/.git")));
        assert_eq!(found.remotes, [("origin".to_owned(), "git@github.com:me/it".to_owned())]);
        assert_eq!(
            (found.branches, found.submodules),
            (vec!["main".to_owned()], vec!["https://example.com/lib".to_owned()])
        );
        let linked = repository(&root.join("w")).unwrap();
        assert_eq!(linked.git_dir, root.join("app/.git/worktrees/w"));
        assert_eq!((linked.common_dir, linked.remotes), (found.common_dir, found.remotes));
        assert_eq!(repository(&root), None);
    }

    #[test]
    fn a_path_in_a_git_directory_is_known_by_what_is_around_it() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path();
        write(&root.join("g/HEAD"), "");
        assert_eq!(git_dir_around(&root.join("g/hooks/x")), None);
        fs::create_dir_all(root.join("g/objects")).unwrap();
        fs::create_dir_all(root.join("g/refs")).unwrap();
        assert_eq!(git_dir_around(&root.join("g/hooks/x")), Some(root.join("g")));
        assert_eq!(git_dir_around(&root.join("g")), Some(root.join("g")));
        assert_eq!(git_dir_around(&root.join("x")), None);
    }
}
