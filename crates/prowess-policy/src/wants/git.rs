//! Git: which hosts does one of its commands reach, and which protected files does it change?
//!
//! The configuration and the hooks of a repository can make git start programs, so the sandbox protects them. Ordinary
//! commands change them, too: `git remote add`, `git branch -m`, `git push -u`.

use std::path::PathBuf;

use super::Reader;
use super::hosts::{git_host, plain};
use super::table::{GIT_CONFIG_CHANGES, GIT_CONFIG_READS, GIT_READS, GIT_REMOTE_CHANGES, GIT_VALUES};
use crate::lease::{HostRule, Lease};
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

    /// What it wants beyond the sandbox.
    pub(super) fn wants(&self, reader: &Reader<'_>) -> Lease {
        let mut lease = Lease { hosts: self.hosts(), ..Lease::default() };
        let is_open = |path: &PathBuf| reader.ground.writable.iter().any(|place| path.starts_with(place));
        let is_kept = |path: &PathBuf| reader.ground.protection.covers_git() || !is_open(path);
        lease.writes.extend(self.changes(reader).into_iter().filter(is_kept));
        let source = plain(self.args, GIT_VALUES).next().filter(|word| self.command == "clone" && is_path(word));
        lease.reads.extend(source.and_then(|word| reader.outside_in(&self.dir, word, &reader.ground.readable)));
        if self.dir != reader.cwd {
            let place = self.dir.to_string_lossy();
            if GIT_READS.contains(&self.command) {
                lease.reads.extend(reader.outside(&place, &reader.ground.readable));
            } else {
                lease.writes.extend(reader.unwritable(&place));
            }
        }
        lease
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

    /// The protected files that it changes, and directories outside that it makes.
    fn changes(&self, reader: &Reader<'_>) -> Vec<PathBuf> {
        let words: Vec<&str> = plain(self.args, GIT_VALUES).collect();
        let verb = words.first().copied().unwrap_or_default();
        let made = |word: Option<&&str>| word.and_then(|word| reader.unwritable_in(&self.dir, word));
        match self.command {
            "config" => self.config_file(reader, &words).into_iter().collect(),
            "remote" if GIT_REMOTE_CHANGES.contains(&verb) => self.shared("config"),
            "submodule" if !matches!(verb, "" | "status" | "summary" | "foreach") => self.shared("config"),
            "push" | "fetch" | "pull" if self.has(&["-u", "--set-upstream"]) => self.shared("config"),
            "branch" if self.changes_branch(&words) => self.shared("config"),
            "checkout" | "switch" if self.has(&["-t", "--track"]) => self.shared("config"),
            "sparse-checkout" if !matches!(verb, "" | "list" | "reapply" | "check-rules") => {
                let own = self.repository.iter().map(|repository| repository.git_dir.join("config.worktree"));
                self.shared("config").into_iter().chain(own).collect()
            }
            "worktree" if verb == "add" => made(words.get(1)).into_iter().collect(),
            "worktree" if matches!(verb, "remove" | "move") => {
                let tree = words.get(1).and_then(|tree| reader.resolve_in(&self.dir, tree));
                self.shared("worktrees").into_iter().chain(tree.map(|tree| tree.join(".git"))).collect()
            }
            "worktree" if matches!(verb, "prune" | "repair") => self.shared("worktrees"),
            "clone" => made(words.get(1)).into_iter().collect(),
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

    /// The file that `git config` changes, if it changes one.
    fn config_file(&self, reader: &Reader<'_>, words: &[&str]) -> Option<PathBuf> {
        let is_new_style = words.first().is_some_and(|verb| GIT_CONFIG_CHANGES.contains(verb));
        let sets = words.len() > 1 && !self.has(GIT_CONFIG_READS) && !GIT_CONFIG_READS.contains(&words[0]);
        if !is_new_style && !self.has(GIT_CONFIG_CHANGES) && !sets {
            return None;
        }
        let option = |names: &[&str]| super::hosts::option(self.args, names);
        if let Some(file) = option(&["--file", "-f"]) {
            return reader.unwritable_in(&self.dir, file);
        }
        if self.has(&["--global"]) {
            return Some(user_file(reader));
        }
        if self.has(&["--system"]) {
            return reader.unwritable("/etc/gitconfig");
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
        let config = here.map(|repository| repository.common_dir.join("config"));
        config.or_else(|| reader.unwritable_in(&self.dir, word?)).into_iter().collect()
    }
}

fn is_path(word: &str) -> bool {
    word.starts_with(['/', '~', '.'])
}

/// The file with the operator's own settings that git would write to.
fn user_file(reader: &Reader<'_>) -> PathBuf {
    let files = USER_GIT_FILES.map(|name| reader.ground.home.join(name));
    let there = files.iter().find(|file| reader.lookup.exists(file));
    there.unwrap_or(&files[0]).clone()
}
