//! A machine made of names, for the judge to look at.

pub(crate) use crate::asked;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use prowess_policy::lookup::{Identity, Keeper, Lookup, Program};
use prowess_policy::{Judgment, Request, Rules};
use serde_json::Value;

pub(crate) use asked::rules;

/// Programs by path, links by path, and where to search.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stage {
    pub(crate) programs: BTreeSet<PathBuf>,
    pub(crate) links: BTreeMap<PathBuf, PathBuf>,
    pub(crate) path: Vec<PathBuf>,
    pub(crate) cwd: PathBuf,
}

impl Stage {
    /// The recorded machine: everything below `/fx`, of which `/fx/bin`, `/fx/sys` and `/fx/tbin` belong to the system.
    pub(crate) fn recorded(fixture: &Value) -> Self {
        let mut stage = Self { cwd: text(&fixture["cwd"]).into(), ..Self::default() };
        stage.path = std::env::split_paths(&text(&fixture["env"]["PATH"])).collect();
        let executables = &fixture["executables"];
        for dir in ["bin", "sys", "tbin", "ws", "home"] {
            let names = executables[dir].as_array().expect("a list of names");
            stage.programs.extend(names.iter().map(|name| Path::new("/fx").join(dir).join(text(name))));
        }
        for (name, target) in executables["bin_symlink"].as_object().expect("links") {
            stage.links.insert(Path::new("/fx/bin").join(name), text(target).into());
        }
        stage
    }

    /// A machine with these programs in `/usr/bin`.
    pub(crate) fn usual(names: &[&str]) -> Self {
        Self {
            programs: names.iter().map(|name| Path::new("/usr/bin").join(name)).collect(),
            path: vec!["/usr/bin".into()],
            cwd: "/home/me/work".into(),
            ..Self::default()
        }
    }

    fn describe(&self, path: &Path) -> Option<Program> {
        let path: PathBuf = path.components().filter(|part| part.as_os_str() != ".").collect();
        let real = self.links.get(&path).unwrap_or(&path).clone();
        let is_system = ["/fx/bin", "/fx/sys", "/fx/tbin", "/usr/bin", "/bin"].iter().any(|dir| real.starts_with(dir));
        let digest = (!is_system).then(|| "0".to_owned());
        let keeper = if is_system { Keeper::System } else { Keeper::Anyone };
        let identity =
            Identity { device: 1, inode: real.as_os_str().len() as u64, length: 1, modified: 0, changed: 0, digest };
        self.programs.contains(&real).then_some(Program { path, real, keeper, identity })
    }
}

impl Lookup for Stage {
    fn program(&self, token: &str) -> Option<Program> {
        if token.contains('/') {
            return self.describe(&self.cwd.join(token));
        }
        self.path.iter().find_map(|dir| self.describe(&dir.join(token)))
    }

    fn file(&self, path: &Path) -> Option<Program> {
        self.describe(&self.cwd.join(path))
    }
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

/// A request to run `command` on that machine.
pub(crate) fn request(command: &str, stage: &Stage) -> Request {
    asked::request(command, &stage.cwd)
}

/// The judgment of `command` by `rules`.
pub(crate) fn judge(command: &str, rules: &Rules, stage: &Stage) -> Judgment {
    rules.judge(request(command, stage), stage)
}
