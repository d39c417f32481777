//! How does a test describe the files it needs?
//!
//! A [`Tree`] is a temporary directory that is filled while it is described, and gone when it is dropped.

use std::fs;
use std::path::{Component, Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

/// A directory of files, links and skills that lives as long as the value does.
#[derive(Debug)]
#[must_use = "the files are deleted when the tree is dropped"]
pub struct Tree {
    // Kept for its `Drop`; `root` is the same directory with links resolved.
    _dir: TempDir,
    root: PathBuf,
}

impl Default for Tree {
    fn default() -> Self {
        Self::new()
    }
}

impl Tree {
    /// An empty tree.
    pub fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("prowess-test-").tempdir().expect("a temporary directory");
        // Where the temporary directory is itself behind a link, programs report the resolved path.
        let root = dir.path().canonicalize().expect("the path of a directory that was just made");
        Self { _dir: dir, root }
    }

    /// The tree of a golden case: path → content, `null` (empty directory), `{symlink}`, `{hard}` or `"<N bytes>"`.
    ///
    /// Files come first, then hard links, then symbolic links, whatever the order of the keys: a hard link needs its
    /// file, and nothing may be written through a link by accident.
    #[track_caller]
    pub fn from_golden(tree: &Value) -> Self {
        let entries = tree.as_object().unwrap_or_else(|| panic!("a golden tree is an object, not {tree}"));
        let link = |entry: &Value, kind: &str| entry.get(kind).and_then(Value::as_str).map(str::to_owned);
        let mut made = Self::new();
        for (path, entry) in entries {
            made = match entry {
                Value::Null => made.dir(path),
                Value::String(text) => made.golden_file(path, text),
                _ if link(entry, "hard").or(link(entry, "symlink")).is_some() => made,
                _ => panic!("{path}: no such kind of entry in a golden tree: {entry}"),
            };
        }
        for (path, entry) in entries {
            if let Some(existing) = link(entry, "hard") {
                made = made.hardlink(path, &existing);
            }
        }
        for (path, entry) in entries {
            if let Some(target) = link(entry, "symlink") {
                let target = made.expand(&target);
                made = made.symlink(path, target);
            }
        }
        made
    }

    /// Adds entries written one a line, which is the shortest way to say "these skills, and a link":
    ///
    /// ```
    /// # use prowess_testkit::Tree;
    /// let tree = Tree::new().plant(
    ///     "skills/weather: Get the weather
    ///      skills/w -> weather
    ///      skills/weather/copy.md => skills/weather/SKILL.md
    ///      empty/",
    /// );
    /// assert!(tree.path("skills/w/copy.md").is_file());
    /// ```
    ///
    /// `path: description` is a skill, `path -> target` a symbolic link, `path => existing` a hard link, and `path/` an
    /// empty directory.
    #[track_caller]
    pub fn plant(self, entries: &str) -> Self {
        entries.lines().map(str::trim).filter(|line| !line.is_empty()).fold(self, |tree, line| {
            if let Some((path, target)) = line.split_once(" -> ") {
                tree.symlink(path, target)
            } else if let Some((path, existing)) = line.split_once(" => ") {
                tree.hardlink(path, existing)
            } else if let Some((dir, description)) = line.split_once(": ") {
                tree.skill(dir, description, "")
            } else if let Some(dir) = line.strip_suffix('/') {
                tree.dir(dir)
            } else {
                panic!("not an entry of a tree: `{line}`");
            }
        })
    }

    /// Adds a valid skill named after its folder; `extra` is further frontmatter, whole lines.
    #[track_caller]
    pub fn skill(self, dir: &str, description: &str, extra: &str) -> Self {
        let name = file_name(dir);
        let (title, description) = (scalar(name), scalar(description));
        let extra: String = extra.lines().flat_map(|line| [line, "\n"]).collect();
        let text = format!("---\nname: {title}\ndescription: {description}\n{extra}---\n# {name}\n");
        self.file(&format!("{dir}/SKILL.md"), text)
    }

    /// Writes a file, making the directories above it.
    #[track_caller]
    pub fn file(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        let full = self.place(path);
        fs::write(&full, content).unwrap_or_else(|error| panic!("cannot write {path}: {error}"));
        self
    }

    /// Makes a directory and those above it.
    #[track_caller]
    pub fn dir(self, path: &str) -> Self {
        fs::create_dir_all(self.path(path)).unwrap_or_else(|error| panic!("cannot make {path}: {error}"));
        self
    }

    /// Makes a symbolic link that says `target`, word for word: it may be relative, absolute or lead nowhere.
    #[track_caller]
    pub fn symlink(self, path: &str, target: impl AsRef<Path>) -> Self {
        let full = self.place(path);
        link_symbolic(target.as_ref(), &full).unwrap_or_else(|error| panic!("cannot link {path}: {error}"));
        self
    }

    /// Makes `path` a second name of `existing`, which is already in the tree.
    #[track_caller]
    pub fn hardlink(self, path: &str, existing: &str) -> Self {
        let full = self.place(path);
        fs::hard_link(self.path(existing), full)
            .unwrap_or_else(|error| panic!("cannot link {path} to {existing}: {error}"));
        self
    }

    /// Writes a script that does nothing, successfully, and that everyone may run.
    #[track_caller]
    pub fn exe(self, path: &str) -> Self {
        self.file(path, "#!/bin/sh\nexit 0\n").mode(path, 0o755)
    }

    /// Sets the permission bits of an entry, where the system has them.
    #[track_caller]
    pub fn mode(self, path: &str, bits: u32) -> Self {
        set_mode(&self.path(path), bits).unwrap_or_else(|error| panic!("cannot set the mode of {path}: {error}"));
        self
    }

    /// The directory that holds everything, with links resolved.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where an entry is, or would be.
    #[track_caller]
    #[must_use]
    pub fn path(&self, path: &str) -> PathBuf {
        // A test must not reach a real file by a slip of the pen.
        let inside = Path::new(path).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        assert!(inside, "`{path}` leaves the tree");
        self.root.join(path)
    }

    /// `text` with `$ROOT` replaced by the path of the tree.
    #[must_use]
    pub fn expand(&self, text: &str) -> String {
        text.replace("$ROOT", &self.root.to_string_lossy())
    }

    /// `text` with the path of the tree replaced by `$ROOT`.
    #[must_use]
    pub fn mask(&self, text: &str) -> String {
        text.replace(&*self.root.to_string_lossy(), "$ROOT")
    }

    /// `"<N bytes>"` is a skill of exactly that size; anything else is the content itself.
    #[track_caller]
    fn golden_file(self, path: &str, text: &str) -> Self {
        let Some(size) = text.strip_prefix('<').and_then(|rest| rest.strip_suffix(" bytes>")) else {
            return self.file(path, text);
        };
        let size: usize = size.parse().unwrap_or_else(|_| panic!("{path}: not a size: `{text}`"));
        let folder = path.rsplit_once('/').map_or("", |(dir, _)| file_name(dir));
        let head = format!("---\nname: {folder}\ndescription: d\n---\n");
        let room = size.checked_sub(head.len()).unwrap_or_else(|| panic!("{path}: {size} bytes hold no frontmatter"));
        self.file(path, head + &"x".repeat(room))
    }

    /// The full path of `path`, with the directories above it made.
    #[track_caller]
    fn place(&self, path: &str) -> PathBuf {
        let full = self.path(path);
        let above = full.parent().unwrap_or(&self.root);
        fs::create_dir_all(above).unwrap_or_else(|error| panic!("cannot make the directories of {path}: {error}"));
        full
    }
}

/// The last part of a path written with slashes.
fn file_name(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or(path)
}

/// A YAML scalar that means `text`: as it is where that is safe, quoted where it is not.
///
/// Tests that want broken frontmatter write it themselves with [`Tree::file`].
fn scalar(text: &str) -> String {
    let plain =
        |c: char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_' | '.' | ',' | '/' | '(' | ')' | '&' | '\'');
    let starts_well = text.starts_with(char::is_alphabetic);
    // YAML reads these, in any case, as something other than text.
    let is_word = !["true", "false", "yes", "no", "on", "off", "null", "y", "n"].contains(&&*text.to_lowercase());
    if starts_well && is_word && !text.ends_with(' ') && text.chars().all(plain) {
        text.to_owned()
    } else {
        Value::from(text).to_string()
    }
}

#[cfg(unix)]
pub(crate) fn link_symbolic(target: &Path, link: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

#[cfg(windows)]
pub(crate) fn link_symbolic(target: &Path, link: &Path) -> std::io::Result<()> {
    // Windows wants to know beforehand what the target is.
    let is_dir = link.parent().is_some_and(|above| above.join(target).is_dir());
    if is_dir {
        std::os::windows::fs::symlink_dir(target, link)
    } else {
        std::os::windows::fs::symlink_file(target, link)
    }
}

#[cfg(unix)]
fn set_mode(path: &Path, bits: u32) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(bits))
}

#[cfg(not(unix))]
fn set_mode(path: &Path, _bits: u32) -> std::io::Result<()> {
    fs::metadata(path).map(drop)
}
