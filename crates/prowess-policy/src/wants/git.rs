//! Git: which hosts does one of its commands reach, and which protected files does it change?
//!
//! The configuration and the hooks of a repository can make git start programs, so the sandbox protects them. Ordinary
//! commands change them, too: `git remote add`, `git branch -m`, `git push -u`.

use std::path::PathBuf;

use super::hosts::{git_host, option, plain};
use super::paths::{Makes, looks_like_path};
use super::table::{GIT_CONFIG_CHANGES, GIT_CONFIG_READS, GIT_READS, GIT_REMOTE_CHANGES, GIT_VALUES};
use super::{Found, Reader};
use crate::lease::HostRule;
use crate::lookup::{Repository, USER_GIT_FILES};

/// A command of git, taken apart.
pub(super) struct GitCall<'a> {
    /// Where it runs: the working directory, or what `-C` says.
    dir: PathBuf,
    /// The repository that it finds there.
    repository: Option<Repository>,
    command: &'a str,
    args: &'a [String],
}

impl<'a> GitCall<'a> {
    /// Reads the words behind `git`. Nothing if they name no command, or a place that is not certain.
    pub(super) fn read(reader: &Reader<'_>, words: &'a [String]) -> Option<Self> {
        let (mut dir, mut git_dir) = (reader.cwd.to_owned(), None);
        let mut rest = words.iter().enumerate();
        while let Some((at, word)) = rest.next() {
            let (name, value) = word.split_once('=').map_or((word.as_str(), None), |(name, value)| (name, Some(value)));
            match name {
                "-C" => dir = reader.resolve_in(&dir, rest.next()?.1)?,
                "--git-dir" => git_dir = reader.resolve_in(&dir, value.or_else(|| Some(rest.next()?.1))?),
                "-c" | "--work-tree" | "--namespace" | "--exec-path" if value.is_none() => drop(rest.next()),
                _ if word.starts_with('-') => {}
                _ => {
                    let named = git_dir.map(|dir| Repository {
                        common_dir: dir.clone(),
                        git_dir: dir,
                        ..Repository::default()
                    });
                    let repository = named.or_else(|| reader.lookup.repository(&dir));
                    return Some(Self { dir, repository, command: word, args: &words[at + 1..] });
                }
            }
        }
        None
    }

    /// Notes what it wants beyond the sandbox.
    pub(super) fn wants(&self, reader: &Reader<'_>, found: &mut Found) {
        let ground = reader.ground;
        found.lease.hosts.extend(self.hosts());
        let is_open = |path: &PathBuf| ground.writable.iter().any(|place| path.starts_with(place));
        let is_kept = |path: &PathBuf| ground.protection.covers_git() || !is_open(path);
        found.lease.writes.extend(self.changes(reader).into_iter().filter(is_kept));
        if let Some((word, makes)) = self.made() {
            reader.change_in(&self.dir, word, makes, found);
        }
        let source =
            plain(self.args, GIT_VALUES).next().filter(|word| self.command == "clone" && looks_like_path(word));
        found.lease.reads.extend(source.and_then(|word| reader.outside(&self.dir, word, &ground.readable)));
        if self.dir != reader.cwd {
            let place = self.dir.to_string_lossy();
            if self.only_looks() {
                found.lease.reads.extend(reader.outside(&self.dir, &place, &ground.readable));
            } else {
                reader.change_in(&self.dir, &place, Makes::Nothing, found);
            }
        }
    }

    /// Whether it changes nothing in its directory.
    pub(super) fn only_looks(&self) -> bool {
        GIT_READS.contains(&self.command)
    }

    /// Hosts of a URL, or of the remote that it names or means.
    fn hosts(&self) -> Vec<HostRule> {
        let words: Vec<&str> = plain(self.args, GIT_VALUES).collect();
        let reaches = match self.command {
            "clone" | "fetch" | "pull" | "push" | "ls-remote" => true,
            "remote" => matches!(words.first(), Some(&("update" | "show" | "prune"))),
            "submodule" => matches!(words.first(), Some(&("add" | "update"))),
            _ => false,
        };
        let stays = self.args.iter().any(|word| matches!(word.as_str(), "--help" | "-h"));
        if !reaches || stays {
            return Vec::new();
        }
        let named: Vec<HostRule> = words.iter().filter_map(|word| git_host(word)).collect();
        if !named.is_empty() {
            return named;
        }
        if self.command == "clone" {
            return Vec::new();
        }
        if self.command == "submodule" {
            let urls = self.repository.iter().flat_map(|repository| &repository.submodules);
            return urls.filter_map(|url| git_host(url)).collect();
        }
        let remotes = self.repository.iter().flat_map(|repository| &repository.remotes);
        let is_meant = |name: &str| words.contains(&name);
        let known = remotes.clone().any(|(name, _)| is_meant(name));
        let meant = remotes.filter(|(name, _)| if known { is_meant(name) } else { name == "origin" });
        meant.filter_map(|(_, url)| git_host(url)).collect()
    }

    /// The file or directory that a word names and that it makes or changes.
    fn made(&self) -> Option<(&'a str, Makes)> {
        let mut words = plain(self.args, GIT_VALUES);
        match self.command {
            "clone" => words.nth(1).map(|dir| (dir, Makes::Dir)),
            "init" => words.next().map(|dir| (dir, Makes::Dir)),
            "worktree" if words.next() == Some("add") => words.next().map(|dir| (dir, Makes::Dir)),
            "config" if self.changes_config() => {
                let file = option(self.args, &["--file", "-f"]);
                file.or_else(|| self.has(&["--system"]).then_some("/etc/gitconfig")).map(|file| (file, Makes::Name))
            }
            "archive" | "format-patch" => {
                let makes = if self.command == "archive" { Makes::File } else { Makes::Dir };
                option(self.args, &["--output", "--output-directory", "-o"]).map(|file| (file, makes))
            }
            _ => None,
        }
    }

    /// The protected files that it changes.
    fn changes(&self, reader: &Reader<'_>) -> Vec<PathBuf> {
        let words: Vec<&str> = plain(self.args, GIT_VALUES).collect();
        let verb = words.first().copied().unwrap_or_default();
        match self.command {
            "config" => self.config_file(reader).into_iter().collect(),
            "remote" if GIT_REMOTE_CHANGES.contains(&verb) => self.shared("config"),
            "submodule" if !matches!(verb, "" | "status" | "summary" | "foreach") => self.shared("config"),
            "push" | "fetch" | "pull" if self.has(&["-u", "--set-upstream"]) => self.shared("config"),
            "branch" if self.changes_branch(&words) => self.shared("config"),
            "checkout" | "switch" if self.has(&["-t", "--track"]) => self.shared("config"),
            "sparse-checkout" if !matches!(verb, "" | "list" | "reapply" | "check-rules") => {
                let own = self.repository.iter().map(|repository| repository.git_dir.join("config.worktree"));
                self.shared("config").into_iter().chain(own).collect()
            }
            "worktree" if matches!(verb, "remove" | "move") => {
                let tree = words.get(1).and_then(|tree| reader.resolve_in(&self.dir, tree));
                self.shared("worktrees").into_iter().chain(tree.map(|tree| tree.join(".git"))).collect()
            }
            "worktree" if matches!(verb, "prune" | "repair") => self.shared("worktrees"),
            "init" => self.initialised(reader, words.first().copied()),
            "lfs" if verb == "install" => {
                let local = if self.has(&["--local"]) { self.shared("config") } else { vec![user_file(reader)] };
                local.into_iter().chain(self.shared("hooks")).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Whether one of these options is given.
    fn has(&self, flags: &[&str]) -> bool {
        self.args.iter().any(|word| flags.contains(&word.split_once('=').map_or(word.as_str(), |(name, _)| name)))
    }

    /// A file of the repository, in the directory that its working trees share.
    fn shared(&self, name: &str) -> Vec<PathBuf> {
        self.repository.iter().map(|repository| repository.common_dir.join(name)).collect()
    }

    fn changes_config(&self) -> bool {
        let words: Vec<&str> = plain(self.args, &["--file", "-f"]).collect();
        let Some(first) = words.first() else { return self.has(GIT_CONFIG_CHANGES) };
        let is_read = self.has(GIT_CONFIG_READS) || GIT_CONFIG_READS.contains(first);
        self.has(GIT_CONFIG_CHANGES) || words.len() > 1 && !is_read
    }

    /// The file of the repository or of the operator that `git config` changes, if it changes one.
    fn config_file(&self, reader: &Reader<'_>) -> Option<PathBuf> {
        if !self.changes_config() || self.has(&["--file", "-f", "--system"]) {
            return None;
        }
        if self.has(&["--global"]) {
            return Some(user_file(reader));
        }
        let repository = self.repository.as_ref()?;
        let own = repository.git_dir.join("config.worktree");
        Some(if self.has(&["--worktree"]) { own } else { repository.common_dir.join("config") })
    }

    /// Whether `git branch` changes the configuration. Deleting a branch does if there is something about it.
    fn changes_branch(&self, words: &[&str]) -> bool {
        let renames = ["-m", "-M", "--move", "-c", "-C", "--copy", "--edit-description"];
        let tracks = ["-u", "--set-upstream-to", "--unset-upstream", "-t", "--track"];
        let known = self.repository.iter().flat_map(|repository| &repository.branches);
        let is_known = || known.clone().any(|branch| words.contains(&branch.as_str()));
        self.has(&renames) || self.has(&tracks) || self.has(&["-d", "-D", "--delete"]) && is_known()
    }

    /// `git init` writes the configuration again where there is a repository already.
    fn initialised(&self, reader: &Reader<'_>, word: Option<&str>) -> Vec<PathBuf> {
        let Some(dir) = reader.resolve_in(&self.dir, word.unwrap_or(".")) else { return Vec::new() };
        let here = reader.lookup.repository(&dir).filter(|repository| repository.git_dir.parent() == Some(&dir));
        here.map(|repository| repository.common_dir.join("config")).into_iter().collect()
    }
}

/// The file with the operator's own settings that git would write to.
fn user_file(reader: &Reader<'_>) -> PathBuf {
    let files = USER_GIT_FILES.map(|name| reader.ground.home.join(name));
    let there = files.iter().find(|file| reader.lookup.exists(file));
    there.unwrap_or(&files[0]).clone()
}
