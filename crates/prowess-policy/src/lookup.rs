//! Programs and files: what does a word of a command mean on this machine?
//!
//! The judge looks at no disk. Whoever asks it hands it a [`Lookup`], which answers from a real `PATH` on the machine
//! that will run the command, or from a table in a test.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A file as it was when somebody looked: enough to tell later whether it is still the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The file system.
    pub device: u64,
    /// The file on it.
    pub inode: u64,
    /// Bytes.
    pub length: u64,
    /// Last change of the content, in nanoseconds since 1970.
    pub modified: i128,
    /// Last change of anything about it, in nanoseconds since 1970; nobody can set this one back.
    #[serde(default)]
    pub changed: i128,
    /// BLAKE3 of the content, for files that will run and that others could change.
    pub digest: Option<String>,
}

/// Who can change a file or put another in its place, the fewest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Keeper {
    /// The administrator only.
    System,
    /// The operator too; but no command that runs here, and no skill.
    Operator,
    /// Commands that run here, skills, or other people.
    Anyone,
}

/// A program or script that a command names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Where the search found it.
    pub path: PathBuf,
    /// The same without links.
    pub real: PathBuf,
    /// Who can change it.
    pub keeper: Keeper,
    /// The file behind it.
    pub identity: Identity,
}

impl Program {
    /// Whether nobody but the administrator can change it.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.keeper == Keeper::System
    }

    /// Whether it is what the administrator or the operator put there.
    #[must_use]
    pub fn is_trusted(&self) -> bool {
        self.keeper <= Keeper::Operator
    }
}

/// Where git keeps the operator's settings, seen from the home. It writes to the first that is there.
pub const USER_GIT_FILES: [&str; 2] = [".gitconfig", ".config/git/config"];

/// A Git repository, as far as a forecast needs it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Repository {
    /// The Git directory of the working tree.
    pub git_dir: PathBuf,
    /// The Git directory that all of its working trees share. A linked working tree has one of its own besides.
    pub common_dir: PathBuf,
    /// Its remotes: names and addresses.
    pub remotes: Vec<(String, String)>,
    /// The addresses of its submodules.
    pub submodules: Vec<String>,
    /// The branches that its configuration says something about.
    pub branches: Vec<String>,
}

/// The eyes of the judge.
pub trait Lookup {
    /// The program that `token` starts: looked for along `PATH` when it has no slash, from the working directory when
    /// it does. Nothing unless it is a regular file that may be executed.
    fn program(&self, token: &str) -> Option<Program>;

    /// The regular file at `path`, from the working directory; its content is not read.
    fn file(&self, path: &Path) -> Option<Program>;

    /// `file` with the digest of its content where others could change it. Asked for what will run, once it is known that
    /// it will: a file that is only named costs a look at its place and times.
    fn seal(&self, file: Program) -> Program {
        file
    }

    /// Whether there is anything at `path`. A forecast uses it, nothing rests on it.
    fn exists(&self, path: &Path) -> bool {
        let _ = path;
        true
    }

    /// The text of a small file. The same holds for it.
    fn text(&self, path: &Path) -> Option<String> {
        let _ = path;
        None
    }

    /// Whether there is a directory at `path`. The same holds for it.
    fn is_dir(&self, path: &Path) -> bool {
        let _ = path;
        false
    }

    /// Whether the user may change what is at `path`. The same holds for it.
    fn can_change(&self, path: &Path) -> bool {
        let _ = path;
        true
    }

    /// The Git repository whose working tree `dir` is in. A forecast uses it, nothing rests on it.
    fn repository(&self, dir: &Path) -> Option<Repository> {
        let _ = dir;
        None
    }

    /// The Git directory that `path` is, or lies in. The same holds for it.
    fn git_dir_around(&self, path: &Path) -> Option<PathBuf> {
        let _ = path;
        None
    }

    /// The program that the system starts in place of `program`, when that is a script whose first line names one.
    fn interpreter(&self, program: &Program) -> Option<Program> {
        let _ = program;
        None
    }
}
