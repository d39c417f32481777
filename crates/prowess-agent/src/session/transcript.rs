//! Transcripts: how is a conversation kept so that no kill can take it?
//!
//! One file, one line an entry, one write a line, and nothing is ever changed. A line that was torn when somebody was
//! killed is closed off and stepped over. Only a file whose first line is lost, or that is of an older version, is
//! written anew, whole, with the old one kept beside it: the peer would not go on with it otherwise.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{BufReader, BufWriter, ErrorKind, Seek, SeekFrom, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use prowess_files::Draft;
use rustix::fs::OFlags;
use serde_json::{Map, Value};

use super::entry::{self, Body, EntryId, VERSION};
use super::index::{Field, Index, Spent};
use super::key::SessionKey;
use super::lines::{self, MAX_LINE, Mended};
use super::lock::{Lock, LockError};
use super::tree::{Context, Tree, is_header};
use super::{IndexError, OpenError, SaveError};
use crate::message::Message;

/// How often the index is told that a conversation goes on. It is one file for all of them, and read and written whole.
const TOUCH: Duration = Duration::from_secs(60);

/// A conversation that this process owns.
#[derive(Debug)]
pub struct Transcript {
    key: SessionKey,
    id: String,
    path: PathBuf,
    file: File,
    lock: Lock,
    tree: Tree,
    index: Index,
    mended: Vec<String>,
    ending: Ending,
    durability: Durability,
    /// When the index was last told of it, and whether there is something to tell since.
    touched: Option<Instant>,
    is_news: bool,
    /// What the last turn was, for the index.
    fields: Vec<Field>,
}

/// How the file ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// With a whole line.
    Whole,
    /// Within a line: the next one must begin with a line end.
    Torn,
}

/// Whether the folder is known to hold the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Durability {
    NewFile,
    KnownFile,
}

/// Which conversation to open, and where.
pub(crate) struct Place<'a> {
    pub(crate) key: &'a SessionKey,
    pub(crate) id: &'a str,
    pub(crate) path: PathBuf,
    pub(crate) cwd: &'a Path,
    pub(crate) index: Index,
    /// What was wrong with the index.
    pub(crate) mended: Option<String>,
}

impl Transcript {
    /// Takes the conversation at `place`. What is in the file cannot stop it.
    pub(crate) fn open(place: Place<'_>) -> Result<Self, OpenError> {
        let Place { key, id, path, cwd, index, mended: of_index } = place;
        let lock = Lock::take(&path).map_err(|error| match error {
            LockError::Held(pid) => OpenError::Busy { key: key.to_string(), pid },
            LockError::Io(path, source) => OpenError::Io { path, source },
        })?;
        let failed = |source| OpenError::Io { path: path.clone(), source };
        let file = open_file(&path).map_err(failed)?;
        let mut mended = Mended::default();
        let (tree, is_torn) = read_tree(&file, &mut mended).map_err(failed)?;
        let ending = if is_torn { Ending::Torn } else { Ending::Whole };
        let mut transcript = Self {
            key: key.clone(),
            id: id.to_owned(),
            path: path.clone(),
            file,
            lock,
            tree,
            index,
            mended: Vec::new(),
            ending,
            durability: Durability::NewFile,
            touched: None,
            is_news: false,
            fields: Vec::new(),
        };
        transcript.mend(cwd, &mut mended).map_err(failed)?;
        transcript.tree.prune();
        transcript.mended = of_index.into_iter().chain(mended.finish()).collect();
        Ok(transcript)
    }

    /// The session's id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Its key.
    #[must_use]
    pub fn key(&self) -> &SessionKey {
        &self.key
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What was wrong with the file and could be helped.
    #[must_use]
    pub fn mended(&self) -> &[String] {
        &self.mended
    }

    /// What goes on in the conversation.
    #[must_use]
    pub fn context(&self) -> Context {
        self.tree.context()
    }

    /// Writes an entry after the last one. When this returns, a kill of this process cannot take it any more.
    pub fn append(&mut self, body: Body<'_>) -> Result<EntryId, SaveError> {
        let failed = |source| SaveError::Io { path: self.path.clone(), source };
        if !self.lock.is_held() {
            return Err(SaveError::Taken { key: self.key.to_string() });
        }
        self.lock.refresh().map_err(failed)?;
        let id = self.tree.fresh_id();
        let is_compaction = matches!(body, Body::Compaction { .. });
        let mut line = body.render(&id, self.tree.last()).map_err(|error| failed(error.into()))?;
        self.write_line(&line)?;
        self.tree.follow(&id, entry::parse(&mut line));
        if is_compaction {
            self.tree.prune();
        }
        Ok(id)
    }

    /// Writes a message after the last entry.
    pub fn message(&mut self, message: &Message) -> Result<EntryId, SaveError> {
        self.append(Body::Message(message))
    }

    /// Brings a turn to the disk, with what it was for the index.
    pub async fn end_turn(&mut self, spent: &Spent<'_>) -> Result<Option<String>, SaveError> {
        self.fields = spent.fields();
        self.sync().await
    }

    /// Brings what was written to the disk, for the end of a turn, and notes in the index when that was, now and then.
    /// What is wrong with the index is only told: the conversation itself is safe. The disk is waited for on a thread
    /// that may block.
    pub async fn sync(&mut self) -> Result<Option<String>, SaveError> {
        let failed = |source| SaveError::Io { path: self.path.clone(), source };
        let (file, path, durability) = (self.file.try_clone().map_err(failed)?, self.path.clone(), self.durability);
        let is_due = self.touched.is_none_or(|touched| touched.elapsed() >= TOUCH);
        let (index, key, id, fields) = (self.index.clone(), self.key.clone(), self.id.clone(), self.fields.clone());
        // From here on the index lacks something, also if nobody waits for the end of this.
        self.is_news = true;
        let work = move || {
            file.sync_data()?;
            if durability == Durability::NewFile {
                prowess_files::sync_dir(path.parent().unwrap_or(Path::new(".")))?;
            }
            Ok(is_due.then(|| index.touch(&key, &id, &fields)))
        };
        let done = tokio::task::spawn_blocking(work).await.map_err(std::io::Error::other).flatten();
        let touched = done.map_err(|source| SaveError::Io { path: self.path.clone(), source })?;
        self.durability = Durability::KnownFile;
        let Some(touched) = touched else { return Ok(None) };
        self.touched = Some(Instant::now());
        match touched {
            Ok(is_up_to_date) => {
                self.is_news = !is_up_to_date;
                Ok(None)
            }
            Err(error) => Ok(Some(format!("the session is kept, but its index is not up to date: {error}"))),
        }
    }

    /// Notes in the index that there was news.
    fn touch(&mut self) -> Result<(), IndexError> {
        self.touched = Some(Instant::now());
        self.is_news = !self.index.touch(&self.key, &self.id, &self.fields)?;
        Ok(())
    }

    /// One line, one write.
    fn write_line(&mut self, line: &Map<String, Value>) -> Result<(), SaveError> {
        let failed = |source| SaveError::Io { path: self.path.clone(), source };
        let mut bytes = Vec::with_capacity(512);
        if self.ending == Ending::Torn {
            bytes.push(b'\n');
        }
        serde_json::to_writer(&mut bytes, line).map_err(|error| failed(error.into()))?;
        bytes.push(b'\n');
        if bytes.len() > MAX_LINE {
            return Err(SaveError::TooLong { bytes: bytes.len() });
        }
        // Until it is known to be whole it may be torn: a full disk takes half a line.
        self.ending = Ending::Torn;
        (&self.file).write_all(&bytes).map_err(failed)?;
        self.ending = Ending::Whole;
        Ok(())
    }

    /// Makes the file one that anybody can go on with.
    fn mend(&mut self, cwd: &Path, mended: &mut Mended) -> std::io::Result<()> {
        let version = self.tree.header().map(|header| header.get("version").and_then(Value::as_u64).unwrap_or(1));
        let key = self.key.to_string();
        match (beginning(&self.file)?, version) {
            (Beginning::Header, Some(VERSION..)) => {}
            (Beginning::Nothing, None) if self.tree.is_empty() => {
                if self.ending == Ending::Torn {
                    mended.note("the first line was missing and was restored".to_owned());
                }
                let header = entry::header(&self.id, &cwd.to_string_lossy(), &key);
                self.write_line(&header).map_err(std::io::Error::other)?;
                self.tree.add(header);
            }
            (beginning, version) => {
                let old = match (beginning, version) {
                    (Beginning::Header, Some(version)) => format!("of version {version}"),
                    _ => "without its first line".to_owned(),
                };
                // Without room for a copy the conversation still goes on; only the peer could not.
                match self.rewrite(cwd, &key) {
                    Ok(kept) => mended.note(format!("the file was {old}; the old one is kept as {kept}")),
                    Err(error) => mended.note(format!("the file is {old} and could not be rewritten: {error}")),
                }
            }
        }
        if self.ending == Ending::Torn {
            (&self.file).write_all(b"\n")?;
            self.ending = Ending::Whole;
        }
        Ok(())
    }

    /// Puts a whole file of the newest version in the place of this one. Says under which name the old one is kept.
    fn rewrite(&mut self, cwd: &Path, key: &str) -> std::io::Result<String> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let mut draft = Draft::beside(&self.path)?;
        let mut header = entry::header(&self.id, &cwd.to_string_lossy(), key);
        header.extend(self.tree.header().cloned().unwrap_or_default());
        header.insert("version".to_owned(), VERSION.into());
        let mut out = BufWriter::new(&mut draft);
        write_json(&mut out, &header)?;
        let mut index = 0;
        let mut result = Ok(());
        (&self.file).seek(SeekFrom::Start(0))?;
        lines::each(BufReader::new(&self.file), &mut Mended::default(), |mut line| {
            if is_header(&line) || result.is_err() {
                return;
            }
            renew(&mut line, &self.tree, index);
            index += 1;
            result = write_json(&mut out, &line);
        })?;
        result?;
        out.flush()?;
        drop(out);
        let name = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let kept = format!("{name}.bak-{}-{}", std::process::id(), crate::message::now());
        std::fs::hard_link(&self.path, folder.join(&kept))?;
        draft.commit()?;
        self.file = open_file(&self.path)?;
        self.ending = Ending::Whole;
        Ok(kept)
    }
}

impl Drop for Transcript {
    fn drop(&mut self) {
        // The index only helps to find it; whoever goes on with it will try again.
        if self.is_news {
            self.touch().ok();
        }
    }
}

/// Brings a line of any version to the newest.
fn renew(line: &mut Map<String, Value>, tree: &Tree, index: usize) {
    let Some((id, parent)) = tree.link(index) else { return };
    line.insert("id".to_owned(), id.into());
    line.insert("parentId".to_owned(), parent.map_or(Value::Null, Value::from));
    if let Some(place) = line.remove("firstKeptEntryIndex").and_then(|place| place.as_u64())
        && !line.contains_key("firstKeptEntryId")
        && let Some(id) = usize::try_from(place).ok().and_then(|place| tree.at_place(place))
    {
        line.insert("firstKeptEntryId".to_owned(), id.into());
    }
    if let Some(role) = line.get_mut("message").and_then(|message| message.get_mut("role"))
        && role == "hookMessage"
    {
        *role = "custom".into();
    }
}

fn write_json(out: &mut impl Write, line: &Map<String, Value>) -> std::io::Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    out.write_all(b"\n")
}

/// What the peer takes for the first line: the first that is JSON as it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Beginning {
    Header,
    Another,
    Nothing,
}

fn beginning(mut file: &File) -> std::io::Result<Beginning> {
    file.seek(SeekFrom::Start(0))?;
    let mut from = BufReader::new(file);
    let mut line = Vec::new();
    while lines::next(&mut from, &mut line)? {
        let text = String::from_utf8_lossy(&line);
        match serde_json::from_str(&text) {
            Ok(Value::Object(object)) if is_header(&object) => return Ok(Beginning::Header),
            Ok(_) => return Ok(Beginning::Another),
            Err(_) => {}
        }
    }
    Ok(Beginning::Nothing)
}

/// Reads all entries. Says whether the last line lacks its end.
pub(crate) fn read_tree(file: &File, mended: &mut Mended) -> std::io::Result<(Tree, bool)> {
    let mut tree = Tree::default();
    let from = BufReader::with_capacity(1 << 16, file);
    let is_torn = lines::each(from, mended, |line| tree.add(line))?;
    Ok((tree, is_torn))
}

/// Opens a transcript to read it and to append to it, for its owner's eyes only.
fn open_file(path: &Path) -> std::io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true).mode(0o600).custom_flags(flags.bits().cast_signed());
    let file = options.open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(std::io::Error::new(ErrorKind::InvalidInput, "it is not a file"));
    }
    if metadata.permissions().mode() & 0o077 != 0 {
        file.set_permissions(Permissions::from_mode(0o600))?;
    }
    Ok(file)
}
