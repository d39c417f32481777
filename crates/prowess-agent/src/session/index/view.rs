//! What the index says now: the file, and the changes that wait beside it.
//!
//! An index of many sessions is large, and writing all of it for each turn would make every turn slower. So a change of
//! a large index is one line in `sessions.json.changes`, and now and then all changes go into the file. Whoever reads
//! the index reads both. The last reading is kept, and used again as long as neither file has changed.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use indexmap::IndexMap;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::MAX_BYTES;
use crate::message::now;
use crate::session::files;

/// Up to this size the file itself is written for each change.
const SMALL: u64 = 64 * 1024;

/// Changes go into the file when they are a sixteenth of it, or when it is older than this.
const SHARE: u64 = 16;
const OLDEST: Duration = Duration::from_secs(5);

/// How much of the first line of the changes is read.
const SERIES_BYTES: u64 = 256;

/// How often a file that changes under our hands is read again.
const ATTEMPTS: usize = 5;

/// What the index says of each key. A copy shares its entries, so that a change of one of them while somebody reads does not
/// copy all others.
pub(in crate::session) type Entries = IndexMap<String, Arc<Value>>;

/// The files of an index, and what was read last.
#[derive(Debug, Clone)]
pub(super) struct Files {
    pub(super) path: PathBuf,
    changes: PathBuf,
    last: Arc<Mutex<Last>>,
    /// Held by who writes: a program waits for itself without looking at the disk.
    pub(super) writing: Arc<Mutex<()>>,
}

#[derive(Debug, Default)]
struct Last {
    stamp: Option<Stamp>,
    /// The first line of the changes, which no other file of changes has.
    series: Vec<u8>,
    /// How many bytes of changes are in the entries.
    applied: u64,
    entries: Arc<Entries>,
}

/// What tells one state of a file from another.
type Stamp = (u64, u64, u64, i64, i64);

/// What an attempt to read the index found.
pub(super) enum Content {
    Entries(Arc<Entries>),
    Missing,
    Broken,
}

impl Files {
    pub(super) fn new(folder: &Path) -> Self {
        let path = folder.join("sessions.json");
        let changes = folder.join("sessions.json.changes");
        Self { path, changes, last: Arc::default(), writing: Arc::default() }
    }

    /// What the index says now.
    pub(super) fn read(&self) -> std::io::Result<Content> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..ATTEMPTS {
            let Some(stamp) = stamp(&self.path)? else {
                *last = Last::default();
                return Ok(Content::Missing);
            };
            if last.stamp != Some(stamp) {
                *last = Last::default();
                let Some(entries) = parse(&self.path)? else { return Ok(Content::Broken) };
                last.entries = Arc::new(entries);
            }
            let is_whole = self.apply_changes(&mut last)?;
            // Another program may have put the changes into a new file in between.
            if is_whole && self::stamp(&self.path)? == Some(stamp) {
                last.stamp = Some(stamp);
                return Ok(Content::Entries(Arc::clone(&last.entries)));
            }
            *last = Last::default();
        }
        Err(std::io::Error::new(ErrorKind::ResourceBusy, "it is being written again and again"))
    }

    /// Adds the changes that were not read yet. Says whether those that were are still there.
    fn apply_changes(&self, last: &mut Last) -> std::io::Result<bool> {
        let mut file = match File::open(&self.changes) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(last.applied == 0),
            Err(error) => return Err(error),
        };
        let length = file.metadata()?.len();
        let mut series = Vec::new();
        BufReader::new(&file).take(SERIES_BYTES).read_until(b'\n', &mut series)?;
        if last.applied > 0 && last.series != series || length <= last.applied {
            return Ok(length == last.applied && last.series == series);
        }
        last.series = series;
        file.seek(SeekFrom::Start(last.applied))?;
        let mut text = Vec::new();
        file.take(MAX_BYTES).read_to_end(&mut text)?;
        // A line that is still being written is read the next time.
        let end = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let entries = Arc::make_mut(&mut last.entries);
        for line in text[..end].split(|byte| *byte == b'\n') {
            if let Ok(change) = serde_json::from_slice::<Value>(line) {
                apply(entries, &change);
            }
        }
        last.applied += end as u64;
        Ok(true)
    }

    /// Writes that the entry `name` is `after` now. The caller holds the lock, and `entries` is what the index said before.
    pub(super) fn write(&self, entries: &Arc<Entries>, name: &str, after: Option<&Value>) -> std::io::Result<()> {
        let before = entries.get(name).map(AsRef::as_ref);
        let whole = || {
            let mut entries = Entries::clone(entries);
            match after {
                Some(after) => drop(entries.insert(name.to_owned(), Arc::new(after.clone()))),
                None => drop(entries.shift_remove(name)),
            }
            self.write_whole(entries)
        };
        let size = std::fs::metadata(&self.path).map_or(0, |file| file.len());
        if size <= SMALL {
            return whole();
        }
        let Some(change) = difference(name, before, after) else { return Ok(()) };
        let mut file = OpenOptions::new().create(true).read(true).append(true).mode(0o600).open(&self.changes)?;
        let start = if file.metadata()?.len() == 0 {
            format!("{}\n", json!({"series": uuid::Uuid::new_v4().to_string()}))
        } else if prowess_files::is_torn(&mut file)? {
            // It was torn when a program was killed, and is closed off.
            "\n".to_owned()
        } else {
            String::new()
        };
        file.write_all(format!("{start}{change}\n").as_bytes())?;
        if before.is_none_or(|before| after.is_none_or(|after| before["sessionId"] != after["sessionId"])) {
            // After a power cut the session could not be found without this line.
            file.sync_data()?;
        }
        let is_old = std::fs::metadata(&self.path)?.modified()?.elapsed().is_ok_and(|age| age > OLDEST);
        if is_old || file.metadata()?.len() > size / SHARE {
            return whole();
        }
        Ok(())
    }

    /// Puts all that the index says into the file. The caller holds the lock.
    pub(super) fn write_whole(&self, entries: Entries) -> std::io::Result<()> {
        let mut text = serde_json::to_vec_pretty(&Whole(&entries))?;
        text.push(b'\n');
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        prowess_files::replace(&self.path, &text)?;
        match std::fs::remove_file(&self.changes) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        *last = Last { stamp: stamp(&self.path)?, entries: Arc::new(entries), ..Last::default() };
        Ok(())
    }

    /// Whether there are changes beside the file.
    pub(super) fn has_changes(&self) -> bool {
        std::fs::metadata(&self.changes).is_ok_and(|file| file.len() > 0)
    }
}

/// The whole index as one object.
struct Whole<'a>(&'a Entries);

impl Serialize for Whole<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, entry)| (name, entry.as_ref())))
    }
}

fn stamp(path: &Path) -> std::io::Result<Option<Stamp>> {
    match std::fs::metadata(path) {
        Ok(file) => Ok(Some((file.dev(), file.ino(), file.len(), file.mtime(), file.mtime_nsec()))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn parse(path: &Path) -> std::io::Result<Option<Entries>> {
    let file = files::open(path)?;
    if file.metadata()?.len() > MAX_BYTES {
        return Ok(None);
    }
    let mut text = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut text)?;
    Ok(match serde_json::from_slice(&text) {
        Ok(Value::Object(entries)) => Some(entries.into_iter().map(|(name, entry)| (name, Arc::new(entry))).collect()),
        Ok(_) | Err(_) => None,
    })
}

/// What has to be done to the entry `name` to make of `before` what it is now; nothing if nothing.
fn difference(name: &str, before: Option<&Value>, after: Option<&Value>) -> Option<Value> {
    let Some(after) = after else { return before.map(|_| json!({"key": name, "removed": true, "at": now()})) };
    let empty = Value::Object(Map::new());
    let (Some(old), Some(new)) = (before.unwrap_or(&empty).as_object(), after.as_object()) else {
        return Some(json!({"key": name, "entry": after}));
    };
    let set: Map<String, Value> = new
        .iter()
        .filter(|(field, value)| old.get(*field) != Some(value))
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect();
    let unset: Vec<&String> = old.keys().filter(|field| !new.contains_key(*field)).collect();
    (!set.is_empty() || !unset.is_empty()).then(|| json!({"key": name, "set": set, "unset": unset}))
}

fn apply(entries: &mut Entries, change: &Value) {
    let Some(name) = change["key"].as_str() else { return };
    // OpenClaw does not see changes that wait here. What it wrote after them counts.
    let at = change["at"].as_u64().or_else(|| change["set"]["updatedAt"].as_u64());
    let is_stale = |entry: &Value| at.is_some_and(|at| entry["updatedAt"].as_u64().is_some_and(|newer| newer > at));
    if entries.get(name).is_some_and(|entry| is_stale(entry)) {
        return;
    }
    if change["removed"] == true {
        entries.shift_remove(name);
        return;
    }
    if let Some(entry) = change.get("entry") {
        entries.insert(name.to_owned(), Arc::new(entry.clone()));
        return;
    }
    let entry = entries.entry(name.to_owned()).or_insert_with(|| Arc::new(Value::Object(Map::new())));
    let Some(entry) = Arc::make_mut(entry).as_object_mut() else { return };
    for field in change["unset"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        entry.shift_remove(field);
    }
    for (field, value) in change["set"].as_object().into_iter().flatten() {
        entry.insert(field.clone(), value.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_while_somebody_reads_copies_one_entry() {
        let dir = tempfile::tempdir().expect("a folder");
        let files = Files::new(dir.path());
        let entry = |number: usize| (format!("k{number}"), Arc::new(json!({"sessionId": "s", "x": "y".repeat(100)})));
        files.write_whole((0..1_000).map(entry).collect()).expect("written");
        let read = || match files.read().expect("an index") {
            Content::Entries(entries) => entries,
            Content::Missing | Content::Broken => panic!("it is there"),
        };
        let before = read();
        files.write(&before, "k7", Some(&json!({"sessionId": "other"}))).expect("written");
        let after = read();
        let copied = before.iter().filter(|(name, entry)| !Arc::ptr_eq(entry, &after[*name]));
        assert_eq!(copied.map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["k7"]);
        assert_eq!(before["k7"]["sessionId"], "s", "who reads still sees what was there");
    }

    #[test]
    fn a_difference_makes_of_one_entry_the_other() {
        let table = [
            (Value::Null, json!({"a": 1})),
            (json!({"a": 1, "b": 2}), json!({"a": 3, "c": {"d": null}})),
            (json!({"a": 1}), json!([1])),
            (json!({"a": 1}), Value::Null),
        ];
        for (before, after) in table {
            let mut entries = Entries::new();
            let of = |value: &Value| (!value.is_null()).then(|| value.clone());
            if let Some(before) = of(&before) {
                entries.insert("k".to_owned(), Arc::new(before));
            }
            let change = difference("k", of(&before).as_ref(), of(&after).as_ref()).expect("a change");
            apply(&mut entries, &change);
            assert_eq!(entries.get("k").map(AsRef::as_ref), of(&after).as_ref(), "{change}");
        }
        assert_eq!(difference("k", Some(&json!({"a": 1})), Some(&json!({"a": 1}))), None);
    }
}
