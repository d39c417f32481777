//! Bootstrap files: which files of a workspace does every conversation begin with, and how much of them?

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use prowess_skills::Mode;
use prowess_skills::text::{clean, is_space, prefix_units, units};

/// The files, in their order.
pub const NAMES: [&str; 9] = [
    "AGENTS.md",
    "SOUL.md",
    "TOOLS.md",
    "IDENTITY.md",
    "USER.md",
    "HEARTBEAT.md",
    "BOOTSTRAP.md",
    "MEMORY.md",
    "memory.md",
];
/// Those that nobody misses when they are not there.
const OPTIONAL: [&str; 2] = ["MEMORY.md", "memory.md"];
/// Those that a sub-agent gets.
const FOR_HELPERS: [&str; 5] = ["AGENTS.md", "TOOLS.md", "SOUL.md", "IDENTITY.md", "USER.md"];
/// The largest file that is read.
const MAX_BYTES: u64 = 2 * 1024 * 1024;
/// When less than this is left of the total, nothing more is begun.
const LEAST_ROOM: usize = 64;

/// How much of the files a prompt may have, in UTF-16 units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Of one file.
    pub per_file: usize,
    /// Of all of them.
    pub total: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { per_file: 20_000, total: 150_000 }
    }
}

/// A file of the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootstrapFile {
    /// Its name.
    pub name: String,
    /// Where it is, or should be.
    pub path: PathBuf,
    /// What is in it; `None` when it is missing or cannot be read.
    pub text: Option<String>,
    /// Why it was not read although it is there.
    pub problem: Option<String>,
}

/// A file as a model sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Injected {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// What the model sees of it.
    pub text: String,
}

/// Whether the file of that name is part of a prompt in that mode.
#[must_use]
pub fn is_for(name: &str, mode: Mode) -> bool {
    match mode {
        Mode::Full => true,
        Mode::Minimal => FOR_HELPERS.contains(&name),
        Mode::None => false,
    }
}

/// Reads the files of these names. One that is too large, no file, or a link out of the workspace has no text but says
/// why; one that is missing has neither. `MEMORY.md` and `memory.md` are only there if there is one, and once if they are
/// the same file.
#[must_use]
pub fn load(workspace: &Path, names: &[&str]) -> Vec<BootstrapFile> {
    let root = workspace.canonicalize().ok();
    let mut seen = HashSet::new();
    let mut files = Vec::new();
    for name in names {
        let found = root.as_deref().map_or(Ok(None), |root| read(root, name));
        let is_news = match &found {
            Ok(Some((real, _))) => seen.insert(real.clone()) || !OPTIONAL.contains(name),
            Ok(None) => !OPTIONAL.contains(name),
            Err(_) => true,
        };
        if !is_news {
            continue;
        }
        let (text, problem) = match found {
            Ok(found) => (found.map(|(_, text)| text), None),
            Err(why) => (None, Some(why)),
        };
        files.push(BootstrapFile { name: (*name).to_owned(), path: workspace.join(name), text, problem });
    }
    files
}

/// The real path and the text of a file in the folder `root`, which is a real path itself; nothing when there is none.
fn read(root: &Path, name: &str) -> Result<Option<(PathBuf, String)>, String> {
    let mut parts = Path::new(name).components();
    if !matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None)) {
        return Err("it is not the name of a file".to_owned());
    }
    let path = root.join(name);
    let told = |error: io::Error| error.to_string();
    let real = match path.canonicalize() {
        Ok(real) => real,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let is_link = path.symlink_metadata().is_ok();
            return if is_link { Err("it is a link that leads nowhere".to_owned()) } else { Ok(None) };
        }
        Err(error) => return Err(told(error)),
    };
    if !real.starts_with(root) {
        return Err("it is a link that leads out of the workspace".to_owned());
    }
    let file = open(&real).map_err(told)?;
    if !file.metadata().map_err(told)?.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(told)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(format!("it is larger than {MAX_BYTES} bytes"));
    }
    Ok(Some((real, String::from_utf8_lossy(&bytes).into_owned())))
}

/// Opens a file without following a link put there meanwhile, and without waiting for the writer of a pipe.
#[cfg(unix)]
fn open(path: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

#[cfg(not(unix))]
fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// The files as a model sees them, within `per_file` and `total` UTF-16 units, and a sentence about each that was cut.
///
/// A long file keeps its first seven tenths and its last two, with a note between them, counted as OpenClaw counts.
#[must_use]
pub fn fit(files: &[BootstrapFile], per_file: usize, total: usize) -> (Vec<Injected>, Vec<String>) {
    let mut left = total;
    let mut made = Vec::new();
    let mut warnings = Vec::new();
    for file in files {
        let text = match &file.text {
            None => clamp(absent(file), left),
            Some(_) if left < LEAST_ROOM => {
                warnings.push(format!(
                    "{} and what follows it is not in the prompt: {left} characters are left for workspace files",
                    file.name
                ));
                break;
            }
            Some(text) => {
                let limit = per_file.min(left).max(1);
                let whole = text.trim_end_matches(is_space);
                let shown = cut(whole, &file.name, limit);
                if shown.is_some() {
                    warnings.push(format!(
                        "{} has {} characters, and {limit} is the most: the prompt has its beginning and its end",
                        file.name,
                        units(whole)
                    ));
                }
                clamp(shown.unwrap_or_else(|| whole.to_owned()), left)
            }
        };
        if text.is_empty() {
            continue;
        }
        left -= units(&text);
        made.push(Injected { name: file.name.clone(), path: file.path.clone(), text });
    }
    (made, warnings)
}

/// What stands in place of a file that has no text.
fn absent(file: &BootstrapFile) -> String {
    let path = file.path.to_string_lossy();
    match &file.problem {
        Some(why) => format!("[not read: {}] is at {}", clean(why), clean(&path)),
        None => format!("[missing] should be at {}", clean(&path)),
    }
}

/// The beginning and the end of a text that is longer than `limit`.
fn cut(text: &str, name: &str, limit: usize) -> Option<String> {
    let length = units(text);
    if length <= limit {
        return None;
    }
    let (head, tail) = (limit * 7 / 10, limit * 2 / 10);
    // As long as OpenClaw's note, so that what is left for the next file is the same.
    Some(format!(
        "{}\n\n[... left out here: read {name} for more ...]\n({name}: the first {head} and last {tail} of {length} chars)\n\n{}",
        prefix_units(text, head),
        suffix_units(text, tail)
    ))
}

/// The longest suffix of `text` that has at most `limit` UTF-16 units and begins between characters.
fn suffix_units(text: &str, limit: usize) -> &str {
    let mut used = 0;
    for (at, c) in text.char_indices().rev() {
        used += c.len_utf16();
        if used > limit {
            return &text[at + c.len_utf8()..];
        }
    }
    text
}

/// `text` within `limit` units, with an ellipsis when something is missing at its end.
fn clamp(text: String, limit: usize) -> String {
    if units(&text) <= limit {
        return text;
    }
    match limit {
        0..=3 => prefix_units(&text, limit).to_owned(),
        _ => format!("{}…", prefix_units(&text, limit - 1)),
    }
}
