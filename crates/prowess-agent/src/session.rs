//! Sessions: where are conversations kept, and who may go on with them?
//!
//! Files and formats are those of OpenClaw 2026.3.2: `agents/<agent>/sessions/<id>.jsonl` in the state directory, with an
//! index by session key beside them. So either program can go on with the other's sessions, one at a time.

mod amend;
mod entry;
mod files;
mod index;
mod key;
mod lines;
mod lock;
mod transcript;
mod tree;

use std::collections::HashMap;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use thiserror::Error;

pub use amend::{Removed, Transcripts};
pub use entry::{Body, EntryId, note};
pub use index::Spent;
pub use key::{MAIN, SessionKey, agent_id};
pub use transcript::Transcript;
pub use tree::{Context, Summary};

use index::{Found, Index, Known};
use lines::Mended;
use transcript::Place;
use tree::Tree;

/// How many sessions an ambiguous prefix names in its error.
const MAX_NAMED: usize = 5;

/// The sessions of one agent.
#[derive(Debug, Clone)]
pub struct Sessions {
    agent: String,
    folder: PathBuf,
    index: Index,
}

/// A session in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its key; nothing for one that was reset or that the index does not know.
    pub key: Option<String>,
    /// Its id.
    pub id: String,
    /// When it was last used, in milliseconds since 1970.
    pub updated: u64,
    /// How many messages it has.
    pub messages: u64,
    /// How it began, in short.
    pub title: Option<String>,
    /// The model that spoke last.
    pub model: Option<String>,
    /// Its transcript.
    pub path: PathBuf,
}

/// A session that begins anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begun {
    /// Its id.
    pub id: String,
    /// What was wrong with the index, and is mended.
    pub mended: Option<String>,
}

/// A session as it is on disk, for showing and exporting.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    /// Its key, if the index knows it.
    pub key: Option<String>,
    /// Its id.
    pub id: String,
    /// Its transcript.
    pub path: PathBuf,
    /// The first line.
    pub header: Option<Value>,
    /// All other lines, in the order of the file.
    pub entries: Vec<Value>,
    /// Every message of the conversation, also those that a summary stands for.
    pub conversation: Vec<Value>,
    /// What a turn would go on from.
    pub context: Context,
    /// What is wrong with the file.
    pub mended: Vec<String>,
}

/// A session cannot be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// Another process has it.
    #[error("the session {key} is in use{}; end the other program or choose another session", by(*pid))]
    Busy {
        /// Which.
        key: String,
        /// Who, if that is known.
        pid: Option<u32>,
    },
    /// It is another agent's.
    #[error("the session {key} does not belong to the agent {agent}; open it as its own agent")]
    OtherAgent {
        /// Which.
        key: String,
        /// The agent whose sessions these are.
        agent: String,
    },
    /// Its file is a link that leads elsewhere, or no file at all.
    #[error("{} is not a regular file; remove it or replace it with the session file", .0.display())]
    Outside(PathBuf),
    /// The index cannot be used.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// The system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// What it said.
        source: std::io::Error,
    },
}

/// Something could not be written to a transcript.
#[derive(Debug, Error)]
pub enum SaveError {
    /// Another program took the session over because nothing was heard of us for too long.
    #[error("the session {key} was taken over by another program; open it again to continue")]
    Taken {
        /// Which.
        key: String,
    },
    /// The entry is too long to be read again.
    #[error("an entry of {bytes} bytes exceeds the limit of a transcript ({} bytes); shorten it", lines::MAX_LINE)]
    TooLong {
        /// How long it is.
        bytes: usize,
    },
    /// The system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// What it said.
        source: std::io::Error,
    },
}

/// A session cannot be shown.
#[derive(Debug, Error)]
pub enum ReadError {
    /// There is none of that name.
    #[error("there is no session {0}; `prowess sessions list` lists the sessions")]
    Unknown(String),
    /// There are several.
    #[error("{given} may mean {}; give more of the id", ids.join(", "))]
    Ambiguous {
        /// What was given.
        given: String,
        /// What it may mean.
        ids: Vec<String>,
    },
    /// It cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// The index of sessions cannot be used.
#[derive(Debug, Error)]
pub enum IndexError {
    /// Another process writes it, and takes its time.
    #[error("{} is in use{}; try again later", path.display(), by(*pid))]
    Busy {
        /// Which file.
        path: PathBuf,
        /// Who, if that is known.
        pid: Option<u32>,
    },
    /// The system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// What it said.
        source: std::io::Error,
    },
}

fn by(pid: Option<u32>) -> String {
    pid.map_or_else(String::new, |pid| format!(" by process {pid}"))
}

impl Sessions {
    /// The sessions of `agent` in a state directory.
    #[must_use]
    pub fn new(state_dir: &Path, agent: &str) -> Self {
        let agent = agent_id(agent);
        let folder = state_dir.join("agents").join(&agent).join("sessions");
        let index = Index::new(&folder);
        Self { agent, folder, index }
    }

    /// Where they are.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Takes the session behind `key`, and makes one if there is none. Nobody else can have it until it is dropped.
    pub fn open(&self, key: &SessionKey, cwd: &Path) -> Result<Transcript, OpenError> {
        self.check(key)?;
        self.make_folder()?;
        let Found { known, mended } = self.index.find(key, fresh_id)?;
        let path = self.path_of(&known.id, known.file.as_deref())?;
        Transcript::open(Place { key, id: &known.id, path, cwd, index: self.index.clone(), mended })
    }

    /// Begins a new session behind `key`; the transcript of the old one stays.
    pub fn reset(&self, key: &SessionKey) -> Result<Begun, OpenError> {
        self.check(key)?;
        self.make_folder()?;
        let Found { known, mended } = self.index.reset(key, fresh_id())?;
        Ok(Begun { id: known.id, mended })
    }

    /// Whether there is a session behind `key`.
    pub fn has(&self, key: &SessionKey) -> Result<bool, IndexError> {
        let name = key.to_string();
        Ok(self.index.load()?.iter().any(|(known, _)| known.trim().to_lowercase() == name))
    }

    /// The keys of all sessions that have messages, the last used first; sub-agents' own are left out.
    pub fn keys(&self) -> Result<impl Iterator<Item = String>, IndexError> {
        let mut known = self.index.load()?;
        known.retain(|(key, _)| !SessionKey::meant(key, &self.agent).is_subagent());
        known.sort_by_key(|(_, one)| std::cmp::Reverse(one.updated));
        let is_there = |one: &Known| files::path_of(&self.folder, &one.id, one.file.as_deref()).exists();
        Ok(known.into_iter().filter(move |(_, one)| is_there(one)).map(|(key, _)| key))
    }

    /// All sessions, the last used first.
    pub fn list(&self) -> Result<Vec<Listed>, IndexError> {
        let known = self.index.load()?;
        let mut by_id: HashMap<&str, &(String, Known)> = HashMap::new();
        let mut by_path: HashMap<PathBuf, &(String, Known)> = HashMap::new();
        for entry in &known {
            let (_, one) = entry;
            by_id.entry(&one.id).or_insert(entry);
            by_path.entry(files::path_of(&self.folder, &one.id, one.file.as_deref())).or_insert(entry);
        }
        let mut listed = Vec::new();
        for file in files::list(&self.folder) {
            let behind = by_id.get(file.id.as_str()).or_else(|| by_path.get(&file.path)).copied();
            // One that cannot be read is still there.
            let glance = files::glance(&file.path).unwrap_or_default();
            listed.push(Listed {
                key: behind.map(|(key, _)| key.clone()),
                id: behind.map_or(file.id, |(_, one)| one.id.clone()),
                updated: behind.map_or(0, |(_, one)| one.updated).max(file.changed),
                messages: glance.messages,
                title: glance.title,
                model: glance.model.or_else(|| behind.and_then(|(_, one)| one.model.clone())),
                path: file.path,
            });
        }
        listed.sort_by(|a, b| (b.updated, &a.id).cmp(&(a.updated, &b.id)));
        Ok(listed)
    }

    /// The session of that key, id, or beginning of an id. It may be in use; nothing is changed.
    pub fn read(&self, name: &str) -> Result<Stored, ReadError> {
        let (key, id, path) = self.locate(name)?;
        let failed = |source| OpenError::Io { path: path.clone(), source };
        let file = files::open(&path).map_err(failed)?;
        let mut mended = Mended::default();
        let mut tree = Tree::default();
        let mut entries = Vec::new();
        lines::each(std::io::BufReader::new(&file), &mut mended, |line: Map<String, Value>| {
            if !tree::is_header(&line) {
                entries.push(Value::Object(line.clone()));
            }
            tree.add(line);
        })
        .map_err(failed)?;
        Ok(Stored {
            key,
            id,
            header: tree.header().cloned().map(Value::Object),
            entries,
            conversation: tree.conversation(),
            context: tree.context(),
            mended: mended.finish(),
            path,
        })
    }

    fn locate(&self, name: &str) -> Result<(Option<String>, String, PathBuf), ReadError> {
        let known = self.index.load().map_err(OpenError::from)?;
        let meant = SessionKey::meant(name, &self.agent).to_string();
        let by_key = known.iter().find(|(key, _)| key == name || key.trim().to_lowercase() == meant);
        if let Some((key, one)) = by_key.or_else(|| known.iter().find(|(_, one)| one.id == name)) {
            let path = self.path_of(&one.id, one.file.as_deref())?;
            if path.exists() {
                return Ok((Some(key.clone()), one.id.clone(), path));
            }
        }
        let mut found = files::list(&self.folder);
        found.retain(|file| !name.is_empty() && file.id.starts_with(name));
        if let Some(exact) = found.iter().position(|file| file.id == name) {
            found = vec![found.swap_remove(exact)];
        }
        found.sort_by(|a, b| a.id.cmp(&b.id));
        match found.as_slice() {
            [] => Err(ReadError::Unknown(name.to_owned())),
            [file] => {
                let key = known.iter().find(|(_, one)| one.id == file.id).map(|(key, _)| key.clone());
                Ok((key, file.id.clone(), file.path.clone()))
            }
            several => Err(ReadError::Ambiguous {
                given: name.to_owned(),
                ids: several.iter().take(MAX_NAMED).map(|file| file.id.clone()).collect(),
            }),
        }
    }

    fn check(&self, key: &SessionKey) -> Result<(), OpenError> {
        if key.agent() == self.agent {
            return Ok(());
        }
        Err(OpenError::OtherAgent { key: key.to_string(), agent: self.agent.clone() })
    }

    fn make_folder(&self) -> Result<(), OpenError> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&self.folder);
        made.map_err(|source| OpenError::Io { path: self.folder.clone(), source })
    }

    /// The file of a session. A link is followed if it stays in the folder, for then it is only another name.
    fn path_of(&self, id: &str, named: Option<&str>) -> Result<PathBuf, OpenError> {
        let path = files::path_of(&self.folder, id, named);
        let Ok(metadata) = std::fs::symlink_metadata(&path) else { return Ok(path) };
        if metadata.is_file() {
            return Ok(path);
        }
        let folder = self.folder.canonicalize().ok();
        match path.canonicalize() {
            Ok(real) if metadata.is_symlink() && real.is_file() && real.parent() == folder.as_deref() => Ok(real),
            _ => Err(OpenError::Outside(path)),
        }
    }
}

fn fresh_id() -> String {
    uuid::Uuid::new_v4().to_string()
}
