//! What can happen to folders of skills while somebody looks at them?
//!
//! An [`Upheaval`] does one thing after the other to some folders of a [`Tree`], at random and always the same for the
//! same seed: what people, editors, package managers and accidents do. What cannot be done at the moment, such as
//! removing what is not there, is left undone.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::Tree;
use crate::tree::link_symbolic;

/// Names of folders; few, so that they meet often.
const NAMES: [&str; 6] = ["a", "b", "c", "group", "skills", ".hidden"];

/// Random changes below some folders.
#[derive(Debug)]
pub struct Upheaval {
    root: PathBuf,
    folders: Vec<String>,
    state: u64,
    steps: usize,
}

impl Upheaval {
    /// Changes below these folders of `tree`, which may come and go themselves.
    #[must_use]
    pub fn new(tree: &Tree, folders: &[&str], seed: u64) -> Self {
        let folders = folders.iter().map(|&folder| folder.to_owned()).collect();
        Self { root: tree.root().to_owned(), folders, state: seed, steps: 0 }
    }

    /// Does the next thing, and says what it was.
    pub fn step(&mut self) -> String {
        self.steps += 1;
        let (dir, other) = (self.dir(), self.dir());
        let (file, text) = (dir.join("SKILL.md"), self.skill());
        let (what, done) = match self.below(25) {
            0..=4 => ("write", make(&dir).and_then(|()| fs::write(&file, text))),
            5 => ("rewrite, byte for byte", fs::read(&file).and_then(|bytes| fs::write(&file, bytes))),
            6 => ("append", append(&file, "more\n")),
            7 => ("break", fs::write(&file, "---\nname: [\n---\n")),
            8 => ("replace by renaming", replace(&file, &text)),
            9 => ("remove and write", fs::remove_file(&file).and_then(|()| fs::write(&file, text))),
            10 => ("keep a backup", fs::rename(&file, dir.join("SKILL.md~")).and_then(|()| fs::write(&file, text))),
            11 | 12 => ("remove the file", fs::remove_file(&file)),
            13 => ("rename the file", fs::rename(&file, dir.join("skill.md"))),
            14 => ("name the file", fs::rename(dir.join("skill.md"), &file)),
            15 => ("move the file", fs::rename(&file, other.join("SKILL.md"))),
            16 | 17 => ("move the folder", fs::rename(&dir, &other)),
            18..=21 => ("remove the folder", fs::remove_dir_all(&dir)),
            22 => ("link the folder", link_symbolic(&other, &dir)),
            23 => ("link the file", link_symbolic(Path::new("text.md"), &file)),
            _ => self.rare(&dir),
        };
        let outcome = if done.is_ok() { "" } else { ", in vain" };
        format!("{what} {}{outcome}", dir.strip_prefix(&self.root).unwrap_or(&dir).display())
    }

    /// What happens to whole roots, and to what is no skill.
    fn rare(&mut self, dir: &Path) -> (&'static str, std::io::Result<()>) {
        let root = self.folder();
        let away = self.root.join("away");
        match self.below(6) {
            0 => ("remove the root of", fs::remove_dir_all(&root)),
            1 => ("move away the root of", fs::rename(&root, &away)),
            2 | 3 => ("bring back the root of", fs::rename(&away, &root)),
            4 => ("note something in", make(dir).and_then(|()| fs::write(dir.join("text.md"), self.skill()))),
            _ => ("lead nowhere from", link_symbolic(Path::new("nowhere"), dir)),
        }
    }

    fn folder(&mut self) -> PathBuf {
        let place = self.below(self.folders.len());
        self.root.join(&self.folders[place])
    }

    /// A folder one to three levels below a root, seldom three.
    fn dir(&mut self) -> PathBuf {
        let mut dir = self.folder();
        for _ in 0..=self.below(5) / 2 {
            dir.push(NAMES[self.below(NAMES.len())]);
        }
        dir
    }

    /// A skill that shares its name with others more often than not.
    fn skill(&mut self) -> String {
        let (name, step) = (self.below(8), self.steps);
        format!("---\nname: skill-{name}\ndescription: as of {step:05}\n---\nbody\n")
    }

    /// A number below `limit`.
    fn below(&mut self, limit: usize) -> usize {
        // SplitMix64: short, and good enough to meet every combination.
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % limit as u64).expect("below a usize")
    }
}

/// Makes the folder and those above it; what is in the way goes.
fn make(dir: &Path) -> std::io::Result<()> {
    if dir.is_symlink() && !dir.exists() {
        fs::remove_file(dir)?;
    }
    fs::create_dir_all(dir)
}

fn append(file: &Path, text: &str) -> std::io::Result<()> {
    OpenOptions::new().append(true).open(file)?.write_all(text.as_bytes())
}

fn replace(file: &Path, text: &str) -> std::io::Result<()> {
    let draft = file.with_extension("draft");
    fs::write(&draft, text)?;
    fs::rename(draft, file)
}
