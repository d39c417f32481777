//! A machine where every name is a program of the system.

use std::path::{Path, PathBuf};

use prowess_policy::lookup::{Identity, Keeper, Lookup, Program};

/// All of `/usr/bin` that anybody can think of, and no other file.
pub(crate) struct Everywhere;

impl Lookup for Everywhere {
    fn program(&self, token: &str) -> Option<Program> {
        let path = Path::new("/usr/bin").join(token);
        let is_there = path.parent() == Some(Path::new("/usr/bin")) && path.file_name().is_some();
        is_there.then(|| program(path))
    }

    fn file(&self, _: &Path) -> Option<Program> {
        None
    }
}

fn program(path: PathBuf) -> Program {
    let identity =
        Identity { device: 1, inode: path.as_os_str().len() as u64, length: 1, modified: 0, changed: 0, digest: None };
    Program { real: path.clone(), path, keeper: Keeper::System, identity }
}
