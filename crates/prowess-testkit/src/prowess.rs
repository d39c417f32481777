//! How does a test run the command line? In a home of its own, with nothing from the machine around it.
//!
//! The child sees an empty home, a `PATH` with only the programs the test put there, and no other variable than those
//! the test sets. So a test says everything it depends on, and passes or fails alike on every machine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::{Output, Running, Tree, words};

/// Where a skill given by its bare name goes, below the home.
const WORKSPACE_SKILLS: &str = ".openclaw/workspace/skills";

/// The program under test and the small world it runs in.
#[derive(Debug)]
#[must_use = "nothing happens before `run`"]
pub struct Prowess {
    program: PathBuf,
    tree: Tree,
    cwd: String,
    env: BTreeMap<String, String>,
    pub(crate) limit: Duration,
}

impl Prowess {
    /// A fresh world for `program`, usually `env!("CARGO_BIN_EXE_prowess")`.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        let tree = Tree::new().dir("home").dir("bin");
        Self {
            program: program.into(),
            tree,
            cwd: "home".to_owned(),
            env: BTreeMap::new(),
            limit: Duration::from_secs(60),
        }
    }

    /// Adds entries below the home, in the notation of [`Tree::plant`].
    #[track_caller]
    pub fn tree(self, entries: &str) -> Self {
        let entries: String = entries.lines().map(str::trim).filter(|line| !line.is_empty()).map(below_home).collect();
        self.grow(|tree| tree.plant(&entries))
    }

    /// Adds a skill: a bare name goes into the default workspace, a path with a slash is taken from the home.
    #[track_caller]
    pub fn skill(self, dir: &str, description: &str, extra: &str) -> Self {
        let dir = if dir.contains('/') { format!("home/{dir}") } else { format!("home/{WORKSPACE_SKILLS}/{dir}") };
        self.grow(|tree| tree.skill(&dir, description, extra))
    }

    /// Writes a file below the home.
    #[track_caller]
    pub fn file(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        self.grow(|tree| tree.file(&format!("home/{path}"), content))
    }

    /// Writes a program below the home.
    #[track_caller]
    pub fn program(self, path: &str, text: impl AsRef<[u8]>) -> Self {
        let path = format!("home/{path}");
        self.grow(|tree| tree.file(&path, text).mode(&path, 0o755))
    }

    /// Writes `~/.openclaw/openclaw.json`; `$HOME` in it becomes the path of the home.
    #[track_caller]
    pub fn config(self, json: &str) -> Self {
        let text = self.expand(json);
        self.file(".openclaw/openclaw.json", text)
    }

    /// Puts a program on the `PATH` that does nothing, successfully.
    #[track_caller]
    pub fn bin(self, name: &str) -> Self {
        self.grow(|tree| tree.exe(&format!("bin/{name}")))
    }

    /// Puts a program on the `PATH` that runs `body` in `/bin/sh`.
    #[track_caller]
    pub fn script(self, name: &str, body: &str) -> Self {
        let path = format!("bin/{name}");
        self.grow(|tree| tree.file(&path, format!("#!/bin/sh\n{body}\n")).mode(&path, 0o755))
    }

    /// Sets a variable for the child; `$HOME` in it becomes the path of the home.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        let value = self.expand(value);
        self.env.insert(name.to_owned(), value);
        self
    }

    /// Runs the child in this directory below the home, made if need be, instead of in the home itself.
    #[track_caller]
    pub fn cwd(mut self, dir: &str) -> Self {
        self.cwd = format!("home/{dir}");
        let cwd = self.cwd.clone();
        self.grow(|tree| tree.dir(&cwd))
    }

    /// Kills the child after this long, instead of after a minute.
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// The home of the child.
    #[must_use]
    pub fn home(&self) -> PathBuf {
        self.tree.path("home")
    }

    /// Where a file below the home is, or would be.
    #[track_caller]
    #[must_use]
    pub fn path(&self, path: &str) -> PathBuf {
        self.tree.path(&format!("home/{path}"))
    }

    /// Runs the program with the words of `line`, split as a shell would; `$HOME` outside single quotes expands.
    #[track_caller]
    #[must_use = "an output that nobody looks at tests nothing"]
    pub fn run(&self, line: &str) -> Output {
        self.start(line).wait()
    }

    /// Starts the program like [`Prowess::run`], but does not wait for it.
    #[track_caller]
    pub fn start(&self, line: &str) -> Running<'_> {
        let words = words::split(line, &self.home_text());
        let child = self.command().args(&words).spawn();
        let child = child.unwrap_or_else(|error| panic!("cannot start {}: {error}", self.program.display()));
        Running::new(self, line, child)
    }

    /// The program in its world, for a test that starts it in a way of its own.
    #[must_use]
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .env_clear()
            .env("PATH", self.tree.path("bin"))
            .env("HOME", self.home())
            .env("NO_COLOR", "1")
            .env("LANG", "C.UTF-8")
            .envs(&self.env)
            .current_dir(self.tree.path(&self.cwd))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// What the child wrote, the same in every run: its home is `$HOME`, its program directory `$BIN`.
    pub(crate) fn mask(&self, bytes: &[u8]) -> String {
        let text = String::from_utf8_lossy(bytes);
        text.replace(&self.home_text(), "$HOME").replace(&path_text(&self.tree.path("bin")), "$BIN")
    }

    fn expand(&self, text: &str) -> String {
        text.replace("$HOME", &self.home_text())
    }

    fn home_text(&self) -> String {
        path_text(&self.home())
    }

    #[track_caller]
    fn grow(mut self, add: impl FnOnce(Tree) -> Tree) -> Self {
        self.tree = add(self.tree);
        self
    }
}

fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// One line of a tree, moved below the home; the first name of a hard link moves too, for it is in the tree.
fn below_home(line: &str) -> String {
    match line.split_once(" => ") {
        Some((path, existing)) => format!("home/{path} => home/{existing}\n"),
        None => format!("home/{line}\n"),
    }
}
